"""Tensor elements as files hold them: little-endian, C order, elements below one byte packed from the low bits up."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ge.graph.tensor import Tensor
from ge.graph.types import DataType, bit_width, byte_size, numpy_dtype
from ge.tensor_memory import MAX_RANK

Array = np.ndarray[Any, np.dtype[Any]]

CHUNK_ELEMENTS = 1 << 18
"""Elements that are converted at a time (a multiple of what one byte can hold)."""

_SIGNED_SUB_BYTE = frozenset({DataType.DT_INT4, DataType.DT_INT2})
_STRING_HEAD = np.dtype("<i8")


def chunks(tensor: Tensor) -> Iterator[Array]:
    """Yield the stored bytes of ``tensor`` as uint8 arrays; views wherever memory already holds them in file order.

    Needs memory for one chunk at most. String tensors are not streamed, see :func:`string_bytes`.
    """
    array, width = tensor.array, bit_width(tensor.data_type)
    flat = array.reshape(-1) if array.flags.c_contiguous else None
    for start in range(0, array.size, CHUNK_ELEMENTS):
        stop = start + CHUNK_ELEMENTS
        piece = array.flat[start:stop] if flat is None else flat[start:stop]
        piece = piece.astype(piece.dtype.newbyteorder("<"), copy=False)
        yield piece.view(np.uint8) if width >= 8 else _pack(piece.view(np.uint8), width)


def stored_bytes(tensor: Tensor) -> bytes:
    """Return the stored bytes of a small ``tensor`` at once."""
    if tensor.data_type is DataType.DT_STRING:
        return string_bytes(tensor.array)
    return b"".join(chunk.tobytes() for chunk in chunks(tensor))


def array_of(data: Array, dtype: DataType, dims: Sequence[int]) -> Array:
    """Return the tensor stored in the uint8 array ``data``: a view, except for packed elements and strings.

    Raises ``ValueError`` when the bytes do not fit shape and type, which are checked before anything is allocated.
    """
    try:
        element = numpy_dtype(dtype)
    except KeyError:
        raise ValueError(f"tensors of type {dtype.name} cannot hold data") from None
    if len(dims) > MAX_RANK or any(not 0 <= d < 1 << 48 for d in dims):
        raise ValueError(f"{list(dims)} is not the shape of a constant")
    elements = 1
    for d in dims:
        elements *= d
    if dtype is DataType.DT_STRING:
        return _strings(data, elements).reshape(tuple(dims))
    expected = byte_size(dtype, elements)
    if data.size != expected:
        raise ValueError(f"{dtype.name} of shape {list(dims)} takes {expected} bytes, {data.size} are given")
    width = bit_width(dtype)
    if width < 8:
        return unpacked(data, dtype, elements).reshape(tuple(dims))
    if dtype is DataType.DT_BOOL and elements and int(data.max()) > 1:
        raise ValueError("a boolean tensor may hold the bytes 0 and 1 only")
    return data.view(element.newbyteorder("<")).reshape(tuple(dims))


def unpacked(data: Array, dtype: DataType, elements: int) -> Array:
    """Return the first ``elements`` elements of a type below one byte that the uint8 array ``data`` holds packed."""
    width = bit_width(dtype)
    if 8 % width:
        parts = [_codes_across_bytes(piece, width) for piece in _pieces(data, CHUNK_ELEMENTS * width // 8)]
        codes = np.concatenate([np.zeros(0, np.uint8), *parts])
    else:
        shifts = (np.arange(8 // width) * width).astype(np.uint8)
        codes = ((data[:, None] >> shifts) & ((1 << width) - 1)).astype(np.uint8).reshape(-1)
    codes = codes[:elements]
    if dtype in _SIGNED_SUB_BYTE:
        sign = np.uint8(1 << (width - 1))
        codes = (codes ^ sign) - sign
    return codes.view(numpy_dtype(dtype))


def _pieces(data: Array, size: int) -> Iterator[Array]:
    return (data[start : start + size] for start in range(0, data.size, size))


def _codes_across_bytes(data: Array, width: int) -> Array:
    bits = np.unpackbits(data, bitorder="little")
    whole = bits[: bits.size // width * width].reshape(-1, width)
    codes: Array = np.packbits(whole, axis=1, bitorder="little")[:, 0]
    return codes


def _pack(codes: Array, width: int) -> Array:
    if 8 % width:
        bits = np.unpackbits(codes[:, None], axis=1, bitorder="little")[:, :width]
        stream: Array = np.packbits(bits, bitorder="little")
        return stream
    per_byte = 8 // width
    codes = np.concatenate([codes & ((1 << width) - 1), np.zeros(-codes.size % per_byte, np.uint8)])
    shifts = (np.arange(per_byte) * width).astype(np.uint8)
    packed: Array = np.bitwise_or.reduce(codes.reshape(-1, per_byte) << shifts, axis=1)
    return packed


def string_bytes(array: Array) -> bytes:
    """Return a string tensor's bytes: per element ``(i64 offset, i64 length)``, then the texts, each with a NUL."""
    texts = [t.encode() if isinstance(t, str) else bytes(t) for t in array.reshape(-1)]
    heads, position = [], 16 * len(texts)
    for text in texts:
        heads += [position, len(text)]
        position += len(text) + 1
    return np.array(heads, _STRING_HEAD).tobytes() + b"".join(text + b"\0" for text in texts)


def _strings(data: Array, elements: int) -> Array:
    if 16 * elements > data.size:
        raise ValueError(f"{elements} strings need at least {16 * elements} bytes, {data.size} are given")
    heads = data[: 16 * elements].tobytes()
    found: Array = np.empty(elements, np.object_)
    # Heads may point anywhere, so the sum of lengths is bounded too: overlapping texts would multiply the file's size.
    left = data.size
    for i, (offset, length) in enumerate(np.frombuffer(heads, _STRING_HEAD).reshape(-1, 2).tolist()):
        left -= length
        if not 0 <= offset <= data.size or not 0 <= length <= data.size - offset or left < 0:
            raise ValueError(f"string {i} lies outside the {data.size} bytes of its tensor")
        raw = data[offset : offset + length].tobytes()
        try:
            found[i] = raw.decode()
        except UnicodeDecodeError:
            found[i] = raw
    return found
