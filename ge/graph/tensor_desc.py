"""Shapes and tensor descriptors."""

from __future__ import annotations

from collections.abc import Iterable

from ge.graph.types import DataType, Format

UNKNOWN_DIM = -1
UNKNOWN_RANK = -2


class OpenDim(int):
    """An unknown dim that has a name: where the same name stands, the same number will be in a run.

    It is -1 to everybody who does not ask. Inference gives the names, files do not keep them.
    """

    name: str

    def __new__(cls, name: str) -> OpenDim:
        dim = super().__new__(cls, UNKNOWN_DIM)
        dim.name = name
        return dim


def same_dim(first: int, second: int) -> bool:
    """Tell whether two dims are certainly equal: the same number, or unknown under the same name."""
    if isinstance(first, OpenDim) and isinstance(second, OpenDim):
        return first.name == second.name
    return first == second and first >= 0


_DIM_TYPES = frozenset({int, OpenDim})


class Shape(tuple[int, ...]):
    """Immutable dims. ``-1`` is an unknown dim, ``Shape([-2])`` an unknown rank, ``Shape([])`` a scalar."""

    __slots__ = ()

    def __new__(cls, dims: Iterable[int] = ()) -> Shape:
        if type(dims) is cls:
            return dims
        return super().__new__(cls, [dim if type(dim) in _DIM_TYPES else int(dim) for dim in dims])

    @property
    def dims(self) -> list[int]:
        """The dims as a list."""
        return list(self)

    def is_unknown_rank(self) -> bool:
        """True for ``[-2]``."""
        return len(self) == 1 and self[0] == UNKNOWN_RANK

    def is_unknown_shape(self) -> bool:
        """True when any dim or the rank is unknown."""
        return any(d < 0 for d in self)

    def get_shape_size(self) -> int:
        """Return the number of elements; -1 when unknown. As in GE, a scalar answers 0 (see :attr:`elements`)."""
        return 0 if not self else self.elements

    @property
    def elements(self) -> int:
        """The number of elements; 1 for a scalar, -1 when unknown."""
        count = 1
        for d in self:
            if d < 0:
                return -1
            count *= d
        return count

    def __repr__(self) -> str:
        return f"[{','.join(map(str, self))}]"


class TensorDesc:
    """What is known of a tensor: storage shape and format, origin shape and format, element type.

    ``shape``/``format`` describe the bytes in memory, ``origin_shape``/``origin_format`` what the user's model meant.
    Until formats are refined both agree. ``shape_range`` is a list of ``(min, max)`` per dim (max -1: unbounded) or
    empty. ``attrs`` holds descriptor attributes that an .om carries.
    """

    __slots__ = ("attrs", "data_type", "format", "name", "origin_format", "origin_shape", "shape", "shape_range")

    def __init__(
        self,
        shape: Iterable[int] | None = None,
        format: Format = Format.FORMAT_ND,
        data_type: DataType = DataType.DT_FLOAT,
        origin_shape: Iterable[int] | None = None,
        origin_format: Format | None = None,
    ) -> None:
        self.shape = Shape(() if shape is None else shape)
        self.format = format
        self.data_type = data_type
        self.origin_shape = self.shape if origin_shape is None else Shape(origin_shape)
        self.origin_format = format if origin_format is None else origin_format
        self.shape_range: list[tuple[int, int]] = []
        self.name = ""
        self.attrs: dict[str, object] = {}

    def copy(self) -> TensorDesc:
        """Return an independent copy."""
        new = TensorDesc.__new__(TensorDesc)
        new.shape, new.format, new.data_type = self.shape, self.format, self.data_type
        new.origin_shape, new.origin_format = self.origin_shape, self.origin_format
        new.shape_range = list(self.shape_range)
        new.name = self.name
        new.attrs = dict(self.attrs)
        return new

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TensorDesc):
            return NotImplemented
        return all(getattr(self, field) == getattr(other, field) for field in TensorDesc.__slots__)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"TensorDesc({self.data_type.name}, {self.shape}@{self.format.name})"

    # CANN's accessor spelling; setters chain.
    def get_shape(self) -> Shape:
        """Return the storage shape."""
        return self.shape

    def set_shape(self, shape: Iterable[int]) -> TensorDesc:
        """Set the storage shape."""
        self.shape = Shape(shape)
        return self

    def get_origin_shape(self) -> Shape:
        """Return the origin shape."""
        return self.origin_shape

    def set_origin_shape(self, shape: Iterable[int]) -> TensorDesc:
        """Set the origin shape."""
        self.origin_shape = Shape(shape)
        return self

    def get_format(self) -> Format:
        """Return the storage format."""
        return self.format

    def set_format(self, format: Format) -> TensorDesc:
        """Set the storage format."""
        self.format = format
        return self

    def get_origin_format(self) -> Format:
        """Return the origin format."""
        return self.origin_format

    def set_origin_format(self, format: Format) -> TensorDesc:
        """Set the origin format."""
        self.origin_format = format
        return self

    def get_data_type(self) -> DataType:
        """Return the element type."""
        return self.data_type

    def set_data_type(self, data_type: DataType) -> TensorDesc:
        """Set the element type."""
        self.data_type = data_type
        return self
