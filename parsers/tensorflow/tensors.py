"""Constants of a model: every encoding of a TensorProto becomes an array."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from ge.graph.types import DataType, bit_width, has_numpy_dtype, numpy_dtype
from parsers.tensor_data import Array, checked_dims, filled, from_bytes, tensor_fault
from parsers.tensorflow import graph_def_pb2 as pb
from parsers.tensorflow.data_types import data_type
from parsers.wire import Pieces

_FIELDS: dict[DataType, str] = {
    DataType.DT_FLOAT: "float_val",
    DataType.DT_DOUBLE: "double_val",
    DataType.DT_FLOAT16: "half_val",
    DataType.DT_BF16: "half_val",
    DataType.DT_INT8: "int_val",
    DataType.DT_INT16: "int_val",
    DataType.DT_INT32: "int_val",
    DataType.DT_UINT8: "int_val",
    DataType.DT_UINT16: "int_val",
    DataType.DT_INT4: "int_val",
    DataType.DT_UINT4: "int_val",
    DataType.DT_INT2: "int_val",
    DataType.DT_UINT2: "int_val",
    DataType.DT_INT64: "int64_val",
    DataType.DT_UINT32: "uint32_val",
    DataType.DT_UINT64: "uint64_val",
    DataType.DT_BOOL: "bool_val",
    DataType.DT_STRING: "string_val",
    DataType.DT_COMPLEX64: "scomplex_val",
    DataType.DT_COMPLEX128: "dcomplex_val",
}
"""Where the values of a type stand that are not in ``tensor_content``; those of eight-bit floats are bytes."""


def read_tensor(tensor: pb.TensorProto, pieces: Pieces, owner: str) -> Array:
    """Return the values of ``tensor``: a view of its bytes where the encoding allows, never to be changed.

    ``owner`` names the tensor in errors. A field with fewer values than the shape needs is extended with its last
    value, one without values gives zeros. Raises E19999 for shapes, types or data that do not fit.
    """
    dtype = data_type(tensor.dtype, owner)
    if not has_numpy_dtype(dtype):
        raise tensor_fault(f"{owner} is a handle ({dtype.name}), which no constant can be")
    if tensor.tensor_shape.unknown_rank:
        raise tensor_fault(f"{owner} has no shape")
    dims = checked_dims((dim.size for dim in tensor.tensor_shape.dim), dtype, owner)
    content = pieces.get(tensor.tensor_content)
    if len(content):
        return _from_content(content, dtype, dims, owner)
    if prod(dims) == 0:
        return np.empty(dims, numpy_dtype(dtype))
    values = _from_field(tensor, dtype, owner)[: prod(dims)]
    if not len(values):
        values = np.zeros(1, values.dtype) if dtype is not DataType.DT_STRING else _strings([b""])
    return filled(values, dims, owner)


def _from_content(content: bytes | memoryview, dtype: DataType, dims: list[int], owner: str) -> Array:
    if bit_width(dtype) >= 8:
        return from_bytes(content, dtype, dims, owner)
    if len(content) != prod(dims):  # each element has a byte of its own, unlike in an .om
        raise tensor_fault(f"{owner} of shape {dims} and type {dtype.name} has {len(content)} bytes")
    return np.frombuffer(content, np.int8).astype(numpy_dtype(dtype)).reshape(dims)


def _from_field(tensor: pb.TensorProto, dtype: DataType, owner: str) -> Array:
    if dtype not in _FIELDS:
        return np.frombuffer(tensor.float8_val, np.uint8).view(numpy_dtype(dtype))
    values = getattr(tensor, _FIELDS[dtype])
    if dtype is DataType.DT_STRING:
        return _strings(list(values))
    if dtype in _CONVERTED:
        return _CONVERTED[dtype](values, owner)
    target = numpy_dtype(dtype)
    return np.fromiter(values, np.int64 if target.kind in "iu" else target, len(values)).astype(target, copy=False)


def _strings(values: list[bytes]) -> Array:
    result = np.empty(len(values), np.object_)
    result[:] = values
    return result


def _bit_patterns(dtype: DataType) -> Callable[[Any, str], Array]:
    def convert(values: Any, owner: str) -> Array:
        return np.fromiter(values, np.int64, len(values)).astype(np.uint16).view(numpy_dtype(dtype))

    return convert


def _pairs(dtype: DataType) -> Callable[[Any, str], Array]:
    def convert(values: Any, owner: str) -> Array:
        if len(values) % 2:
            raise tensor_fault(f"{owner} has {len(values)} numbers, which are no pairs of real and imaginary part")
        part = np.float32 if dtype is DataType.DT_COMPLEX64 else np.float64
        return np.fromiter(values, part, len(values)).view(numpy_dtype(dtype))

    return convert


def _unsigned(values: Any, owner: str) -> Array:
    return np.fromiter(values, np.uint64, len(values))


_CONVERTED: dict[DataType, Callable[[Any, str], Array]] = {
    DataType.DT_FLOAT16: _bit_patterns(DataType.DT_FLOAT16),
    DataType.DT_BF16: _bit_patterns(DataType.DT_BF16),
    DataType.DT_COMPLEX64: _pairs(DataType.DT_COMPLEX64),
    DataType.DT_COMPLEX128: _pairs(DataType.DT_COMPLEX128),
    DataType.DT_UINT64: _unsigned,
}
