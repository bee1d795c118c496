"""Constant tensors: a descriptor and a numpy array that is never copied unless it changes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ge.error import GeError
from ge.graph.tensor_desc import Shape, TensorDesc, checked_dims
from ge.graph.types import (
    DataType,
    Format,
    Placement,
    bit_width,
    byte_size,
    data_type_of,
    has_numpy_dtype,
    numpy_dtype,
)


class Tensor:
    """A tensor with data. ``array`` may be a read-only view of a memory map.

    CANN's constructor takes a flat list of numbers, or a file that holds the elements in row-major order, packed and
    little-endian as in a weights file; ``shape`` ``None`` is a scalar. Without both the tensor has no elements yet.
    :meth:`of` wraps an existing array without copying.

    Raises ``RuntimeError`` for two sources, for DT_DOUBLE and types that cannot be held, and for a number of elements
    that is not that of ``shape``; ``TypeError`` for arguments of other types.
    """

    __slots__ = ("array", "desc", "placement")

    def __init__(
        self,
        data: list[Any] | None = None,
        file_path: str | None = None,
        data_type: DataType = DataType.DT_FLOAT,
        format: Format = Format.FORMAT_ND,
        shape: list[int] | None = None,
        placement: Placement = Placement.PLACEMENT_HOST,
    ) -> None:
        if data is not None and file_path is not None:
            raise GeError("a Tensor is made of data or of a file, not of both")
        self.desc = TensorDesc(() if shape is None else checked_dims(shape), format, data_type)
        if not isinstance(placement, Placement):
            raise TypeError(f"placement must be a Placement, not {type(placement).__name__}")
        if data_type is DataType.DT_DOUBLE:
            raise GeError("a Tensor of DT_DOUBLE cannot be made here")
        if not has_numpy_dtype(data_type):
            raise GeError(f"a Tensor of {data_type.name} cannot be held")
        self.placement = placement
        if file_path is not None:
            self.array = _from_file(file_path, self.desc)
        elif data is not None:
            self.array = _from_list(data, self.desc)
        else:
            self.array = np.empty(0, numpy_dtype(data_type))

    @classmethod
    def of(cls, array: np.ndarray[Any, Any], format: Format = Format.FORMAT_ND) -> Tensor:
        """Wrap ``array`` (any shape, no copy). Raises ``KeyError`` for numpy dtypes without a GE type."""
        tensor = cls.__new__(cls)
        tensor.array = array
        tensor.desc = TensorDesc(array.shape, format, data_type_of(array.dtype))
        tensor.placement = Placement.PLACEMENT_HOST
        return tensor

    def view(self) -> Tensor:
        """Return a tensor of its own descriptor over the same elements."""
        tensor = Tensor.__new__(Tensor)
        tensor.array, tensor.desc, tensor.placement = self.array, self.desc.copy(), self.placement
        return tensor

    def __copy__(self) -> Tensor:
        raise GeError("a Tensor cannot be copied")

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        raise GeError("a Tensor cannot be copied")

    @property
    def nbytes(self) -> int:
        """Bytes as stored in a file (sub-byte types packed). Strings answer 0."""
        return byte_size(self.desc.data_type, self.array.size)

    @property
    def shape(self) -> Shape:
        """The storage shape."""
        return self.desc.shape

    @property
    def data_type(self) -> DataType:
        """The element type."""
        return self.desc.data_type

    @property
    def format(self) -> Format:
        """The storage format."""
        return self.desc.format

    @property
    def data(self) -> Any:
        """Nested lists; a plain number for a scalar."""
        array = self.array
        if array.dtype.kind == "V" or array.dtype.isbuiltin != 1:  # ml_dtypes: lists of its scalars help nobody
            is_whole = data_type_is_integer(self.desc.data_type)
            array = array.astype(np.int64 if is_whole else np.float64)
        return array.tolist()

    # CANN's accessor spelling; setters chain.
    def get_data(self) -> Any:
        """Return nested lists; a plain number for a scalar."""
        return self.data

    def get_data_type(self) -> DataType:
        """Return the element type."""
        return self.desc.data_type

    def get_format(self) -> Format:
        """Return the storage format."""
        return self.desc.format

    def get_shape(self) -> Shape:
        """Return the storage shape."""
        return self.desc.shape

    def get_placement(self) -> Placement:
        """Return where the bytes live."""
        return self.placement

    def get_tensor_desc(self) -> TensorDesc:
        """Return a copy of the descriptor."""
        return self.desc.copy()

    def set_format(self, format: Format) -> Tensor:
        """Say in which format the elements lie. Raises ``TypeError`` unless it is a Format."""
        self.desc.set_format(format)
        return self

    def set_data_type(self, data_type: DataType) -> Tensor:
        """Say what the bytes mean; they stay as they are.

        Raises ``TypeError`` unless it is a DataType, ``RuntimeError`` if its elements have another width.
        """
        if not isinstance(data_type, DataType):
            raise TypeError(f"data type must be a DataType, not {type(data_type).__name__}")
        old = self.desc.data_type
        if data_type is not old:
            fits = has_numpy_dtype(data_type) and bit_width(data_type) == bit_width(old) != 0
            if not fits and self.array.size:
                raise GeError(f"elements of {old.name} cannot be read as {data_type.name}: their widths differ")
            self.array = self.array.view(numpy_dtype(data_type)) if fits else np.empty(0, numpy_dtype(data_type))
            self.desc.data_type = data_type
        return self

    def to_host(self) -> Tensor:
        """Return a tensor over the same elements that is placed on the host."""
        return self._placed(Placement.PLACEMENT_HOST)

    def to_device(self) -> Tensor:
        """Return a tensor over the same elements that is placed on the device (which shares the host's memory here)."""
        return self._placed(Placement.PLACEMENT_DEVICE)

    def _placed(self, placement: Placement) -> Tensor:
        tensor = self.view()
        tensor.placement = placement
        return tensor

    def __repr__(self) -> str:
        return f"Tensor({self.desc!r})"


def data_type_is_integer(data_type: DataType) -> bool:
    """Tell whether the elements are whole numbers."""
    return "INT" in data_type.name


def _from_list(data: object, desc: TensorDesc) -> np.ndarray[Any, Any]:
    if not isinstance(data, list):
        raise TypeError(f"data must be a flat list of numbers, not {type(data).__name__}")
    if any(isinstance(v, list | tuple) for v in data):
        raise TypeError("data must be a flat list of numbers; shape says how they are arranged")
    is_text = desc.data_type is DataType.DT_STRING
    if not all(isinstance(v, str | bytes if is_text else bool | int | float | complex) for v in data):
        raise TypeError(f"data of {desc.data_type.name} must be a list of {'strings' if is_text else 'numbers'}")
    if len(data) != desc.shape.elements:
        raise GeError(f"a Tensor of shape {desc.shape} needs {desc.shape.elements} elements, {len(data)} are given")
    target = numpy_dtype(desc.data_type)
    try:
        if data_type_is_integer(desc.data_type):
            return _whole_numbers(data, target).reshape(desc.shape)
        return np.asarray(data, dtype=target).reshape(desc.shape)
    except (OverflowError, ValueError) as fault:
        raise GeError(f"data does not fit into {desc.data_type.name}: {fault}") from None


def _whole_numbers(data: list[Any], target: np.dtype[Any]) -> np.ndarray[Any, Any]:
    wide = [int(v) for v in data]
    unsigned = bool(wide) and max(wide) >= 2**63
    exact = np.asarray(wide, dtype=np.uint64 if unsigned else np.int64)
    array = exact.astype(target)
    if not np.array_equal(array.astype(exact.dtype), exact) or (wide and min(wide) < 0 and target.kind == "u"):
        raise OverflowError("a value is out of range")
    return array


def _from_file(path: object, desc: TensorDesc) -> np.ndarray[Any, Any]:
    from ge.proto.tensor_bytes import array_of  # ge.proto imports this module

    if not isinstance(path, str):
        raise TypeError(f"file_path must be a str, not {type(path).__name__}")
    expected = byte_size(desc.data_type, desc.shape.elements)
    try:
        size = Path(path).stat().st_size
        if size != expected or desc.shape.elements < 0 or desc.data_type is DataType.DT_STRING:
            raise GeError(f"file {path} has {size} bytes, a {desc.data_type.name} of {desc.shape} has {expected}")
        return array_of(np.fromfile(path, np.uint8), desc.data_type, desc.shape)
    except OSError as fault:
        raise GeError(f"file {path} cannot be read: {fault.strerror}") from None
