"""Tensor data of model files: bounds for what files claim, bytes as arrays, fields shorter than their tensor."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod
from typing import Any

import numpy as np

from ge.errors import ReportedError
from ge.graph.types import DataType, bit_width, byte_size, numpy_dtype
from ge.proto.tensor_bytes import unpacked

Array = np.ndarray[Any, np.dtype[Any]]

MAX_TENSOR_BYTES = 2**40
"""No dense tensor is larger; a bound for sizes claimed by a file."""
MAX_MADE_BYTES = 2**28
"""Largest tensor that is made from less data than it holds (repeated last value, sparse tensors)."""
_MAX_RANK = 32


def tensor_fault(reason: str) -> ReportedError:
    """Return the error for a tensor that cannot be read."""
    return ReportedError("E19999", reason=reason, solution="Correct the tensor in the model.")


def checked_dims(given: Iterable[int], dtype: DataType, owner: str) -> list[int]:
    """Return the dims of the tensor ``owner``. Raises E19999 for negative dims and sizes that no tensor has."""
    dims = list(given)
    if any(d < 0 for d in dims):
        raise tensor_fault(f"{owner} has the shape {dims} with a negative dimension")
    # dims of 0 do not count: numpy makes no array without elements either whose other dims are too large
    size = prod(max(d, 1) for d in dims) * max(bit_width(dtype), 8) // 8
    if len(dims) > _MAX_RANK or size > MAX_TENSOR_BYTES:
        raise tensor_fault(f"{owner} has the shape {dims}, which is too large")
    return dims


def from_bytes(data: bytes | memoryview, dtype: DataType, dims: Sequence[int], owner: str) -> Array:
    """View little-endian bytes as an array; sub-byte types are unpacked, low bits first.

    Raises E19999 unless there are as many bytes as the shape needs.
    """
    elements, needed = prod(dims), byte_size(dtype, prod(dims))
    if dtype is DataType.DT_STRING or len(data) != needed:
        raise tensor_fault(
            f"{owner} of shape {list(dims)} and type {dtype.name} needs {needed} bytes, but {len(data)} are there"
        )
    if bit_width(dtype) < 8:
        return unpacked(np.frombuffer(data, np.uint8), dtype, elements).reshape(dims)
    target = numpy_dtype(dtype)
    if dtype is DataType.DT_BOOL:
        codes = np.frombuffer(data, np.uint8)
        return (codes.view(np.bool_) if codes.max(initial=0) <= 1 else codes != 0).reshape(dims)
    return np.frombuffer(data, target.newbyteorder("<")).astype(target, copy=False).reshape(dims)


def filled(values: Array, dims: Sequence[int], owner: str) -> Array:
    """Shape ``values``; a short field is extended with its last element. Raises E19999 where that makes too much."""
    elements = prod(dims)
    if len(values) == elements:
        return values.reshape(dims)
    if elements * max(values.itemsize, 1) > MAX_MADE_BYTES:
        raise tensor_fault(f"{owner} of shape {list(dims)} has {len(values)} values only")
    return np.concatenate([values, np.full(elements - len(values), values[-1], values.dtype)]).reshape(dims)
