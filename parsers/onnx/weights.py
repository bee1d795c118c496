"""Tensor data: every encoding of TensorProto, and external data over read-only memory maps."""

from __future__ import annotations

import os
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from onnx import SparseTensorProto, TensorProto

from ge.errors import ReportedError
from ge.graph.types import DataType, bit_width, byte_size, numpy_dtype
from ge.mapped_file import MappedFile
from ge.proto.tensor_bytes import unpacked
from parsers.tensor_data import MAX_MADE_BYTES, checked_dims, filled, from_bytes, tensor_fault
from parsers.wire import Pieces

Array = np.ndarray[Any, np.dtype[Any]]

DATA_TYPES: dict[int, DataType] = {
    TensorProto.FLOAT: DataType.DT_FLOAT,
    TensorProto.UINT8: DataType.DT_UINT8,
    TensorProto.INT8: DataType.DT_INT8,
    TensorProto.UINT16: DataType.DT_UINT16,
    TensorProto.INT16: DataType.DT_INT16,
    TensorProto.INT32: DataType.DT_INT32,
    TensorProto.INT64: DataType.DT_INT64,
    TensorProto.STRING: DataType.DT_STRING,
    TensorProto.BOOL: DataType.DT_BOOL,
    TensorProto.FLOAT16: DataType.DT_FLOAT16,
    TensorProto.DOUBLE: DataType.DT_DOUBLE,
    TensorProto.UINT32: DataType.DT_UINT32,
    TensorProto.UINT64: DataType.DT_UINT64,
    TensorProto.COMPLEX64: DataType.DT_COMPLEX64,
    TensorProto.COMPLEX128: DataType.DT_COMPLEX128,
    TensorProto.BFLOAT16: DataType.DT_BF16,
    TensorProto.FLOAT8E4M3FN: DataType.DT_FLOAT8_E4M3FN,
    TensorProto.FLOAT8E5M2: DataType.DT_FLOAT8_E5M2,
    TensorProto.FLOAT8E4M3FNUZ: DataType.DT_FLOAT8_E4M3FNUZ,
    TensorProto.FLOAT8E5M2FNUZ: DataType.DT_FLOAT8_E5M2FNUZ,
    TensorProto.FLOAT8E8M0: DataType.DT_FLOAT8_E8M0,
    TensorProto.FLOAT6E2M3: DataType.DT_FLOAT6_E2M3,
    TensorProto.FLOAT6E3M2: DataType.DT_FLOAT6_E3M2,
    TensorProto.FLOAT4E2M1: DataType.DT_FLOAT4_E2M1,
    TensorProto.INT4: DataType.DT_INT4,
    TensorProto.UINT4: DataType.DT_UINT4,
    TensorProto.INT2: DataType.DT_INT2,
    TensorProto.UINT2: DataType.DT_UINT2,
}
"""ONNX element types and ours; see :class:`DataType` for those that GE lacks."""

_FIELD_OF_TYPE: dict[int, str] = {
    TensorProto.FLOAT: "float_data",
    TensorProto.COMPLEX64: "float_data",
    TensorProto.DOUBLE: "double_data",
    TensorProto.COMPLEX128: "double_data",
    TensorProto.INT64: "int64_data",
    TensorProto.UINT32: "uint64_data",
    TensorProto.UINT64: "uint64_data",
    TensorProto.STRING: "string_data",
}
"""Typed fields; all other types use int32_data, as bit patterns."""


def type_name(elem_type: int) -> str:
    """Return ONNX's name of an element type, or its number."""
    names = TensorProto.DataType
    return names.Name(elem_type) if elem_type in names.values() else str(elem_type)


def data_type(elem_type: int, owner: str) -> DataType:
    """Return the GE type of an ONNX element type. Raises E19999 that names ``owner`` when there is none."""
    found = DATA_TYPES.get(elem_type)
    if found is None:
        raise tensor_fault(f"{owner} has the element type {type_name(elem_type)}, which GE does not have")
    return found


class TensorReader:
    """Turns tensors of one model into arrays. Maps each external file once.

    ``folder`` holds the model's file; external data must lie in it or below it. ``pieces`` hold data for which the
    tensors have tokens.
    """

    def __init__(self, folder: Path | None, pieces: Pieces | None = None) -> None:
        self._folder = folder
        self._pieces = Pieces() if pieces is None else pieces
        self._maps: dict[str, memoryview] = {}

    def read(self, tensor: TensorProto, owner: str) -> Array:
        """Return the values of ``tensor``: a view of its bytes where the encoding allows, never to be changed.

        ``owner`` names the tensor in errors. Raises E19999 for sizes, types or data that do not fit, E10001 and E13026
        for external data that cannot be used.
        """
        dtype = data_type(tensor.data_type, owner)
        dims = checked_dims(tensor.dims, dtype, owner)
        if tensor.HasField("segment"):
            raise tensor_fault(f"{owner} is stored in segments, which nobody ever specified")
        elements = prod(dims)
        if tensor.data_location == TensorProto.EXTERNAL:
            if dtype is DataType.DT_STRING:
                raise tensor_fault(f"{owner} holds strings, which cannot lie in a file of external data")
            data = self._external(tensor, byte_size(dtype, elements), owner)
            return from_bytes(data, dtype, dims, owner)
        if elements == 0:
            return np.empty(dims, numpy_dtype(dtype))
        values = getattr(tensor, _FIELD_OF_TYPE.get(tensor.data_type, "int32_data"))
        if len(values):
            return filled(_from_field(tensor, values, dtype, elements, owner), dims, owner)
        if not tensor.HasField("raw_data") or dtype is DataType.DT_STRING:
            raise tensor_fault(f"{owner} of shape {dims} holds no data")
        return from_bytes(self._pieces.get(tensor.raw_data), dtype, dims, owner)

    def read_sparse(self, sparse: SparseTensorProto, owner: str) -> Array:
        """Return the dense form of a sparse tensor (zero where no value is given)."""
        values = self.read(sparse.values, owner)
        indices = self.read(sparse.indices, f"the indices of {owner}")
        dims = list(sparse.dims)
        if any(d < 0 for d in dims) or prod(max(d, 1) for d in dims) * values.itemsize > MAX_MADE_BYTES:
            raise tensor_fault(f"{owner} has the dense shape {dims}, which is negative or too large")
        dense = np.zeros(dims, values.dtype)
        is_fit = (
            values.ndim == 1
            and indices.dtype == np.int64
            and indices.shape in ((values.size,), (values.size, len(dims)))
        )
        if not is_fit:
            raise tensor_fault(
                f"{owner} has {values.shape} values and indices of shape {indices.shape}, which do not fit"
            )
        bounds = np.asarray(dims) if indices.ndim == 2 else np.asarray(dense.size)
        if np.any(indices < 0) or np.any(indices >= bounds):
            raise tensor_fault(f"{owner} has an index outside its shape {dims}")
        if indices.ndim == 2:
            dense[tuple(indices.T)] = values
        else:
            dense.reshape(-1)[indices] = values
        return dense

    # -- external data ---------------------------------------------------------------------------------------------
    def _external(self, tensor: TensorProto, needed: int, owner: str) -> memoryview:
        entries = {entry.key: entry.value for entry in tensor.external_data}
        location = entries.get("location", "")
        whole = self._map(location, owner)
        offset = self._number(entries, "offset", 0, owner)
        length = self._number(entries, "length", needed, owner)
        if length != needed:
            raise self._refuse("length", length, f"{owner} needs {needed} bytes of {location}")
        if offset + length > len(whole):
            reason = f"{owner} ends at byte {offset + length}, but {location} has {len(whole)} bytes"
            raise self._refuse("offset", offset, reason)
        return whole[offset : offset + length]

    def _number(self, entries: dict[Any, Any], key: str, default: int, owner: str) -> int:
        text = entries.get(key)
        if text is None:
            return default
        if not (isinstance(text, str) and text.isascii() and text.isdecimal() and len(text) < 19):
            reason = f"it is no number of bytes; {owner} says so of its data in {entries.get('location')}"
            raise self._refuse(key, text, reason)
        return int(text)

    @staticmethod
    def _refuse(key: str, value: object, reason: str) -> ReportedError:
        solution = "Export the model again, or copy its data file completely."
        return ReportedError("E10001", value=value, parameter=key, reason=reason, solution=solution)

    def _map(self, location: Any, owner: str) -> memoryview:
        """Return the bytes of an external file. Raises E13026 unless it is a regular file below the model's folder."""
        path = self._contained_path(location, owner)
        if path not in self._maps:
            try:
                mapped = MappedFile.open(path, owner)
            except OSError as fault:
                reason = f"{fault.strerror or fault}; {owner} needs it"
                raise ReportedError("E13026", pathname=location, reason=reason) from fault
            self._maps[path] = memoryview(b"" if mapped is None else mapped)
        return self._maps[path]

    def _contained_path(self, location: Any, owner: str) -> str:
        def refuse(reason: str) -> ReportedError:
            solution = "Keep the data file in the folder of the model, and export with its plain name as location."
            return ReportedError("E13026", pathname=location, reason=f"{reason}; {owner} needs it", solution=solution)

        if self._folder is None:
            raise refuse("a model in memory has no folder in which external data could lie")
        if not isinstance(location, str) or not location or "\0" in location:
            raise refuse("the location of external data is empty or malformed")
        parts = location.replace("\\", "/").split("/")
        if os.path.isabs(location) or not parts[0] or ":" in parts[0] or ".." in parts:
            raise refuse("the location of external data must be relative and must not contain '..'")
        path = os.path.realpath(self._folder / location)
        if os.path.commonpath([path, self._folder]) != str(self._folder):
            raise refuse("it is a link to a place outside of the model's folder")
        if not os.path.isfile(path):
            raise refuse("there is no such file" if not os.path.exists(path) else "it is no regular file")
        return path


# -- decoding ------------------------------------------------------------------------------------------------------
def _from_field(tensor: TensorProto, values: Any, dtype: DataType, elements: int, owner: str) -> Array:
    """Return the (flat) elements that a typed field holds, at most ``elements``."""
    kind = tensor.data_type
    if dtype is DataType.DT_STRING:
        result = np.empty(len(values), np.object_)
        result[:] = list(values)
    elif kind in (TensorProto.COMPLEX64, TensorProto.COMPLEX128):
        parts = np.fromiter(values, np.float32 if kind == TensorProto.COMPLEX64 else np.float64, len(values))
        if len(parts) % 2:
            raise tensor_fault(f"{owner} has {len(parts)} numbers, which are no pairs of real and imaginary part")
        result = parts.view(numpy_dtype(dtype))
    elif _FIELD_OF_TYPE.get(kind) is not None:
        result = np.asarray(values, numpy_dtype(dtype) if kind != TensorProto.UINT32 else np.uint64)
        result = result.astype(numpy_dtype(dtype), copy=False)
    else:
        result = _from_int32(np.asarray(values, np.int32), dtype, elements)
    if len(result) > elements:
        raise tensor_fault(f"{owner} of {elements} elements has {len(result)} values")
    return result


def _from_int32(words: Array, dtype: DataType, elements: int) -> Array:
    """Reinterpret int32_data: narrow integers by value, narrow floats by bits, sub-byte types packed in bytes."""
    bits = bit_width(dtype)
    target = numpy_dtype(dtype)
    if bits == 6:  # one element per word, as the only type below a byte
        return (words & 0x3F).astype(np.uint8).view(target)
    if bits < 8:
        return unpacked(words.astype(np.uint8), dtype, min(elements, len(words) * 8 // bits))
    if dtype is DataType.DT_BOOL:
        return words != 0
    if target.kind in "iu":
        return words.astype(target)
    return words.astype(np.uint8 if bits == 8 else np.uint16).view(target)
