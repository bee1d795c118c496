"""What a model takes and gives: the partition MODEL_INOUT_INFO.

The partition is a row of ``{u32 type, u32 length, value}``; rows without content are left out.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

from ge.graph.tensor_desc import Shape, TensorDesc
from ge.graph.types import DataType, Format, bit_width, byte_size, has_numpy_dtype
from om_format.header import broken_model

MAX_RANK = 256

_ROW = struct.Struct("<II")
_COUNT = struct.Struct("<I")
_TENSOR = struct.Struct("<QiiIIII")


class RowType(IntEnum):
    """Type field of a row."""

    INPUTS = 0
    OUTPUTS = 1
    DYNAMIC_BATCH = 2
    DYNAMIC_HW = 3
    DYNAMIC_DIMS = 4
    DYNAMIC_OUTPUT_SHAPE = 5
    DATA_NAME_ORDER = 6


@dataclass(frozen=True)
class TensorInfo:
    """One model input or output. ``size`` is in bytes, 0 when a dim is unknown; ``ranges`` are ``(min, max)`` per dim.

    ``dims_v2`` are the dims as the runtime shows them; they differ from ``dims`` only when preprocessing is built in.
    """

    name: str
    data_type: DataType
    format: Format
    dims: Shape
    size: int
    dims_v2: Shape
    ranges: tuple[tuple[int, int], ...] = ()

    @classmethod
    def of(cls, name: str, desc: TensorDesc) -> TensorInfo:
        """Describe a tensor by its storage shape and format."""
        elements = desc.shape.elements
        known = elements >= 0 and has_numpy_dtype(desc.data_type) and bit_width(desc.data_type) > 0
        size = byte_size(desc.data_type, elements) if known else 0
        return cls(name, desc.data_type, desc.format, desc.shape, size, desc.shape, tuple(desc.shape_range))


@dataclass(frozen=True)
class ModelIO:
    """Inputs and outputs in model order, and the gears of a model with several static shapes."""

    inputs: tuple[TensorInfo, ...] = ()
    outputs: tuple[TensorInfo, ...] = ()
    dynamic_batch: tuple[int, ...] = ()
    dynamic_hw: tuple[tuple[int, ...], ...] = ()
    dynamic_dims: tuple[tuple[int, ...], ...] = ()
    dynamic_output_shape: tuple[str, ...] = ()
    data_name_order: tuple[str, ...] = ()

    def pack(self) -> bytes:
        """Return the partition's bytes."""
        rows = [
            (RowType.INPUTS, _pack_tensors(self.inputs)),
            (RowType.OUTPUTS, _pack_tensors(self.outputs)),
            (RowType.DYNAMIC_BATCH, _pack_batches(self.dynamic_batch)),
            (RowType.DYNAMIC_HW, _pack_lists(self.dynamic_hw)),
            (RowType.DYNAMIC_DIMS, _pack_lists(self.dynamic_dims)),
            (RowType.DYNAMIC_OUTPUT_SHAPE, _pack_texts(self.dynamic_output_shape)),
            (RowType.DATA_NAME_ORDER, _pack_texts(self.data_name_order)),
        ]
        return b"".join(_ROW.pack(row, len(value)) + value for row, value in rows if value)

    @classmethod
    def unpack(cls, data: bytes | memoryview, source: str) -> ModelIO:
        """Read the partition's bytes (E10041 for any fault). Rows of unknown types are skipped."""
        values: dict[RowType, _Cursor] = {}
        cursor = _Cursor(memoryview(data), source, "MODEL_INOUT_INFO")
        while cursor.left:
            number, length = cursor.fields(_ROW)
            value = cursor.take(length)
            try:
                row = RowType(number)
            except ValueError:
                continue
            if row in values:
                raise broken_model(source, f"MODEL_INOUT_INFO lists {row.name} twice")
            values[row] = _Cursor(value, source, f"MODEL_INOUT_INFO, {row.name}")

        def rows(row: RowType) -> _Cursor:
            return values.get(row, _Cursor(memoryview(b""), source, row.name))

        return cls(
            inputs=_unpack_tensors(rows(RowType.INPUTS)),
            outputs=_unpack_tensors(rows(RowType.OUTPUTS)),
            dynamic_batch=_unpack_batches(rows(RowType.DYNAMIC_BATCH)),
            dynamic_hw=_unpack_lists(rows(RowType.DYNAMIC_HW)),
            dynamic_dims=_unpack_lists(rows(RowType.DYNAMIC_DIMS)),
            dynamic_output_shape=_unpack_texts(rows(RowType.DYNAMIC_OUTPUT_SHAPE)),
            data_name_order=_unpack_texts(rows(RowType.DATA_NAME_ORDER)),
        )


def _pack_tensors(tensors: Sequence[TensorInfo]) -> bytes:
    if not tensors:
        return b""
    parts = [_COUNT.pack(len(tensors))]
    for t in tensors:
        name = t.name.encode()
        flat = [bound for pair in t.ranges for bound in pair]
        lengths = (len(name), 8 * len(t.dims), 8 * len(t.dims_v2), 8 * len(flat))
        parts.append(_TENSOR.pack(t.size, t.format, t.data_type, *lengths))
        parts += [name, _pack_ints(t.dims), _pack_ints(t.dims_v2), _pack_ints(flat)]
    return b"".join(parts)


def _pack_batches(batches: Sequence[int]) -> bytes:
    return _COUNT.pack(len(batches)) + _pack_ints(batches) if batches else b""


def _pack_lists(lists: Sequence[Sequence[int]]) -> bytes:
    if not lists:
        return b""
    lengths = struct.pack(f"<{len(lists)}I", *map(len, lists))
    return _COUNT.pack(len(lists)) + lengths + b"".join(map(_pack_ints, lists))


def _pack_texts(texts: Sequence[str]) -> bytes:
    if not texts:
        return b""
    encoded = [t.encode() for t in texts]
    lengths = struct.pack(f"<{len(encoded)}I", *map(len, encoded))
    return _COUNT.pack(len(encoded)) + lengths + b"".join(encoded)


def _pack_ints(values: Sequence[int]) -> bytes:
    return struct.pack(f"<{len(values)}q", *values)


class _Cursor:
    """Reads forward through one value; asks for more than there is end in E10041."""

    def __init__(self, data: memoryview, source: str, where: str) -> None:
        self._data = data
        self._position = 0
        self._source = source
        self._where = where

    @property
    def left(self) -> int:
        return len(self._data) - self._position

    def fail(self, reason: str) -> Exception:
        return broken_model(self._source, f"{self._where}: {reason}")

    def take(self, length: int) -> memoryview:
        if length > self.left:
            raise self.fail(f"{length} bytes expected at offset {self._position}, {self.left} are left")
        start = self._position
        self._position += length
        return self._data[start : self._position]

    def fields(self, layout: struct.Struct) -> tuple[int, ...]:
        return layout.unpack(self.take(layout.size))

    def count(self, least_bytes_each: int) -> int:
        """Read a u32 count of items that take at least so many bytes each."""
        (count,) = self.fields(_COUNT)
        if count * least_bytes_each > self.left:
            raise self.fail(f"{count} items do not fit into the {self.left} bytes that are left")
        return count

    def ints(self, count: int) -> tuple[int, ...]:
        return struct.unpack(f"<{count}q", self.take(8 * count))

    def text(self, length: int) -> str:
        try:
            return str(self.take(length), "utf-8")
        except UnicodeDecodeError:
            raise self.fail(f"the text before offset {self._position} is not UTF-8") from None

    def close(self) -> None:
        if self.left:
            raise self.fail(f"{self.left} bytes follow the last item")


def _unpack_tensors(cursor: _Cursor) -> tuple[TensorInfo, ...]:
    if not cursor.left:
        return ()
    tensors = []
    for _ in range(cursor.count(_TENSOR.size)):
        size, layout, data_type, name_length, *lengths = cursor.fields(_TENSOR)
        name = cursor.text(name_length)
        for length, unit in zip(lengths, (8, 8, 16), strict=True):
            if length % unit or length > unit * MAX_RANK:
                raise cursor.fail(f"tensor {name!r}: {length} bytes are not a list of up to {MAX_RANK} dims")
        dims, dims_v2, flat = (cursor.ints(length // 8) for length in lengths)
        if any(d < -2 for d in (*dims, *dims_v2)):
            raise cursor.fail(f"tensor {name!r}: {list(dims)} is not a shape")
        try:
            kind, tensor_format = DataType(data_type), Format(layout & 0xFF)
        except ValueError:
            raise cursor.fail(f"tensor {name!r}: unknown data type {data_type} or format {layout}") from None
        ranges = tuple(zip(flat[::2], flat[1::2], strict=True))
        tensors.append(TensorInfo(name, kind, tensor_format, Shape(dims), size, Shape(dims_v2), ranges))
    cursor.close()
    return tuple(tensors)


def _unpack_batches(cursor: _Cursor) -> tuple[int, ...]:
    if not cursor.left:
        return ()
    batches = cursor.ints(cursor.count(8))
    cursor.close()
    return batches


def _unpack_lengths(cursor: _Cursor) -> tuple[int, ...]:
    count = cursor.count(4)
    return struct.unpack(f"<{count}I", cursor.take(4 * count))


def _unpack_lists(cursor: _Cursor) -> tuple[tuple[int, ...], ...]:
    if not cursor.left:
        return ()
    lists = tuple(cursor.ints(length) for length in _unpack_lengths(cursor))
    cursor.close()
    return lists


def _unpack_texts(cursor: _Cursor) -> tuple[str, ...]:
    if not cursor.left:
        return ()
    texts = tuple(cursor.text(length) for length in _unpack_lengths(cursor))
    cursor.close()
    return texts
