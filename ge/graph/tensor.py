"""Constant tensors: a descriptor and a numpy array that is never copied unless it changes."""

from __future__ import annotations

from typing import Any

import numpy as np

from ge.graph.tensor_desc import Shape, TensorDesc
from ge.graph.types import DataType, Format, Placement, byte_size, data_type_of, numpy_dtype


class Tensor:
    """A tensor with data. ``array`` may be a read-only view of a memory map.

    CANN's constructor takes a flat list; :meth:`of` wraps an existing array without copying.
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
            raise RuntimeError("Tensor takes either data or file_path, not both")
        if data_type is DataType.DT_DOUBLE:
            raise RuntimeError("Tensor cannot be built from a list of DT_DOUBLE")
        dims = Shape(() if shape is None else shape)
        dtype = numpy_dtype(data_type)
        if file_path is not None:
            array = np.fromfile(file_path, dtype=dtype)
        else:
            array = np.asarray([] if data is None else data, dtype=dtype)
        if array.size != dims.elements and not (data is None and file_path is None):
            raise RuntimeError(f"Tensor of shape {dims} needs {dims.elements} elements, got {array.size}")
        self.array: np.ndarray[Any, Any] = array.reshape(dims) if array.size == dims.elements else array
        self.desc = TensorDesc(dims, format, data_type)
        self.placement = placement

    @classmethod
    def of(cls, array: np.ndarray[Any, Any], format: Format = Format.FORMAT_ND) -> Tensor:
        """Wrap ``array`` (any shape, no copy). Raises ``KeyError`` for numpy dtypes without a GE type."""
        tensor = cls.__new__(cls)
        tensor.array = array
        tensor.desc = TensorDesc(array.shape, format, data_type_of(array.dtype))
        tensor.placement = Placement.PLACEMENT_HOST
        return tensor

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
        return self.array.tolist()

    def get_tensor_desc(self) -> TensorDesc:
        """Return a copy of the descriptor."""
        return self.desc.copy()

    def __repr__(self) -> str:
        return f"Tensor({self.desc!r})"
