"""Shapes and tensor descriptors."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, SupportsIndex, overload

from ge.error import GeError
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

    # CANN's Shape is a list: comparison with lists, slices and sums behave as there.
    def __eq__(self, other: object) -> bool:
        return tuple.__eq__(self, tuple(other)) if isinstance(other, list) else tuple.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = tuple.__hash__

    @overload
    def __getitem__(self, key: SupportsIndex, /) -> int: ...
    @overload
    def __getitem__(self, key: slice[Any, Any, Any], /) -> Shape: ...
    def __getitem__(self, key: SupportsIndex | slice[Any, Any, Any], /) -> int | Shape:
        found = tuple.__getitem__(self, key)
        return tuple.__new__(Shape, found) if isinstance(found, tuple) else found

    def __add__(self, other: Any, /) -> Any:
        return list(self) + other if isinstance(other, list) else tuple.__add__(self, other)

    def __radd__(self, other: Any, /) -> Any:
        return other + list(self) if isinstance(other, list) else NotImplemented

    def __repr__(self) -> str:
        return f"[{','.join(map(str, self))}]"


def checked_dims(dims: object, what: str = "shape") -> Shape:
    """Return ``dims`` as a Shape. Raises ``TypeError`` unless it is a list (or tuple) of ints."""
    if isinstance(dims, Shape):
        return dims
    if not isinstance(dims, list | tuple) or not all(isinstance(d, int) for d in dims):
        raise TypeError(f"{what} must be a list of int, not {dims!r}")
    return Shape(dims)


def _checked_format(format: object, what: str = "format") -> Format:
    if not isinstance(format, Format):
        raise TypeError(f"{what} must be a Format, not {type(format).__name__}")
    return format


def _checked_data_type(data_type: object) -> DataType:
    if not isinstance(data_type, DataType):
        raise TypeError(f"data type must be a DataType, not {type(data_type).__name__}")
    return data_type


class TensorDesc:
    """What is known of a tensor: storage shape and format, origin shape and format, element type.

    ``shape``/``format`` describe the bytes in memory, ``origin_shape``/``origin_format`` what the user's model meant.
    Until formats are refined both agree. ``sub_format`` is the number of groups that a filter in FRACTAL_Z or
    FRACTAL_Z_3D is laid out for (0: none). ``shape_range`` is a list of ``(min, max)`` per dim (max -1: unbounded) or
    empty. ``attrs`` holds descriptor attributes that an .om carries.
    """

    __slots__ = (
        "attrs",
        "data_type",
        "format",
        "name",
        "origin_format",
        "origin_shape",
        "shape",
        "shape_range",
        "sub_format",
    )

    def __init__(
        self,
        shape: Iterable[int] | None = None,
        format: Format = Format.FORMAT_ND,
        data_type: DataType = DataType.DT_FLOAT,
        origin_shape: Iterable[int] | None = None,
        origin_format: Format | None = None,
    ) -> None:
        self.shape = Shape(() if shape is None else shape)
        self.format = _checked_format(format)
        self.data_type = _checked_data_type(data_type)
        self.origin_shape = self.shape if origin_shape is None else Shape(origin_shape)
        self.origin_format = format if origin_format is None else origin_format
        self.sub_format = 0
        self.shape_range: list[tuple[int, int]] = []
        self.name = ""
        self.attrs: dict[str, object] = {}

    def copy(self) -> TensorDesc:
        """Return an independent copy."""
        new = TensorDesc.__new__(TensorDesc)
        new.shape, new.format, new.data_type = self.shape, self.format, self.data_type
        new.origin_shape, new.origin_format = self.origin_shape, self.origin_format
        new.sub_format = self.sub_format
        new.shape_range = list(self.shape_range)
        new.name = self.name
        new.attrs = dict(self.attrs)
        return new

    def __copy__(self) -> TensorDesc:
        raise GeError("a TensorDesc is copied with its method copy")

    def __deepcopy__(self, memo: dict[int, Any]) -> TensorDesc:
        raise GeError("a TensorDesc is copied with its method copy")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TensorDesc):
            return NotImplemented
        return all(getattr(self, field) == getattr(other, field) for field in TensorDesc.__slots__)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"TensorDesc({self.data_type.name}, {self.shape}@{self.format.name})"

    @property
    def layout(self) -> tuple[Shape, Format, int, DataType]:
        """What of the tensor is in memory: storage shape, format, groups and element type."""
        return self.shape, self.format, self.sub_format, self.data_type

    # CANN's accessor spelling; setters chain and raise TypeError for values of another type.
    def get_shape(self) -> Shape:
        """Return the storage shape."""
        return self.shape

    def set_shape(self, shape: Iterable[int]) -> TensorDesc:
        """Set the storage shape."""
        self.shape = checked_dims(shape)
        return self

    def get_origin_shape(self) -> Shape:
        """Return the origin shape."""
        return self.origin_shape

    def set_origin_shape(self, shape: Iterable[int]) -> TensorDesc:
        """Set the origin shape."""
        self.origin_shape = checked_dims(shape, "origin shape")
        return self

    def get_format(self) -> Format:
        """Return the storage format."""
        return self.format

    def set_format(self, format: Format) -> TensorDesc:
        """Set the storage format."""
        self.format = _checked_format(format)
        return self

    def get_origin_format(self) -> Format:
        """Return the origin format."""
        return self.origin_format

    def set_origin_format(self, format: Format) -> TensorDesc:
        """Set the origin format."""
        self.origin_format = _checked_format(format, "origin format")
        return self

    def get_data_type(self) -> DataType:
        """Return the element type."""
        return self.data_type

    def set_data_type(self, data_type: DataType) -> TensorDesc:
        """Set the element type."""
        self.data_type = _checked_data_type(data_type)
        return self
