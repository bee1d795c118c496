"""Partition tables: which parts a file holds and where they lie."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

from om_format.header import HEADER_BYTES, ModelFileHeader, ModelType, broken_model

MAX_PARTITIONS = 8
MAX_FLOW_PARTITIONS = 4096
MAX_BLOCKS = 4096
SMALL_PARTITION_LIMIT = 1 << 32

_WIDE_HEAD, _WIDE_ENTRY = struct.Struct("<II"), struct.Struct("<IIQQ")
_NARROW_HEAD, _NARROW_ENTRY = struct.Struct("<I"), struct.Struct("<III")


class PartitionType(IntEnum):
    """Contents of a partition."""

    MODEL_DEF = 0
    WEIGHTS_DATA = 1
    TASK_INFO = 2
    TBE_KERNELS = 3
    CUST_AICPU_KERNELS = 4
    SO_BINS = 5
    FLOW_MODEL = 6
    FLOW_SUBMODEL = 7
    MODEL_INOUT_INFO = 8
    STATIC_TASK_DESC = 9
    DYNAMIC_TASK_DESC = 10
    TASK_PARAM = 11
    TILING_DATA = 12
    PRE_MODEL_DESC = 20
    PRE_MODEL_SQE = 21
    PRE_KERNEL_ARGS = 22
    PRE_MODEL_DESC_EXTEND = 23
    BUNDLE_MODEL_INFO = 24
    BUNDLE_MODEL_VAR_INFO = 25
    CUSTOM_OPS = 26


_MAY_BE_HUGE = frozenset(
    {PartitionType.WEIGHTS_DATA, PartitionType.TBE_KERNELS, PartitionType.CUST_AICPU_KERNELS},
)
_MAY_REPEAT = frozenset({PartitionType.FLOW_SUBMODEL, PartitionType.BUNDLE_MODEL_INFO})


@dataclass(frozen=True)
class Partition:
    """One part of a file: ``start`` counts from the beginning of the file, ``size`` is in bytes."""

    type: PartitionType
    start: int
    size: int

    @property
    def end(self) -> int:
        """The first byte after the partition."""
        return self.start + self.size


@dataclass(frozen=True)
class Block:
    """One model of a file: a table and the partitions behind it."""

    partitions: tuple[Partition, ...]

    def find(self, kind: PartitionType) -> Partition | None:
        """Return the (first) partition of that type, or ``None``."""
        return next((p for p in self.partitions if p.type is kind), None)

    def size_of(self, kind: PartitionType) -> int:
        """Return the bytes of the partition of that type; 0 when there is none."""
        found = self.find(kind)
        return 0 if found is None else found.size


def table_bytes(count: int, wide: bool = True) -> int:
    """Return the size of a table of ``count`` entries."""
    head, entry = (_WIDE_HEAD, _WIDE_ENTRY) if wide else (_NARROW_HEAD, _NARROW_ENTRY)
    return head.size + count * entry.size


def pack_table(entries: Sequence[tuple[PartitionType, int]], wide: bool = True) -> bytes:
    """Return the table of partitions given as ``(type, size)`` in file order, packed without gaps.

    Empty partitions must have been left out by the caller.
    """
    kinds = {kind for kind, size in entries if size > 0}
    if not 1 <= len(entries) <= MAX_PARTITIONS or len(kinds) != len(entries):
        raise ValueError(f"not a legal list of partitions: {entries}")
    table = bytearray(_WIDE_HEAD.pack(len(entries), 0) if wide else _NARROW_HEAD.pack(len(entries)))
    offset = 0
    for kind, size in entries:
        table += _WIDE_ENTRY.pack(kind, 0, offset, size) if wide else _NARROW_ENTRY.pack(kind, offset, size)
        offset += size
    return bytes(table)


def read_blocks(data: bytes | memoryview, header: ModelFileHeader, source: str) -> tuple[Block, ...]:
    """Read the tables of all models of the file ``data`` (E10041 for any fault).

    Every partition lies inside the file, follows the one before it without a gap, and has a type of its own; the last
    block ends where the file ends.
    """
    if header.model_num > MAX_BLOCKS:
        raise broken_model(source, f"at most {MAX_BLOCKS} models can share a file, the header says {header.model_num}")
    blocks = []
    position = HEADER_BYTES
    for index in range(header.model_num):
        where = f"partition table {index}" if header.model_num > 1 else "the partition table"
        block = _read_block(data, position, header, source, where)
        blocks.append(block)
        position = block.partitions[-1].end
    if position != len(data):
        raise broken_model(source, f"the partitions end at byte {position}, the file ends at byte {len(data)}")
    return tuple(blocks)


def _read_block(data: bytes | memoryview, position: int, header: ModelFileHeader, source: str, where: str) -> Block:
    wide = header.has_wide_table
    head, entry = (_WIDE_HEAD, _WIDE_ENTRY) if wide else (_NARROW_HEAD, _NARROW_ENTRY)
    if len(data) - position < head.size:
        raise broken_model(source, f"{where} should start at byte {position}, the file has {len(data)} bytes")
    count = head.unpack_from(data, position)[0]
    limit = MAX_FLOW_PARTITIONS if header.modeltype in (ModelType.FLOW, ModelType.BUNDLE) else MAX_PARTITIONS
    if not 1 <= count <= limit:
        raise broken_model(source, f"{where} must have 1 to {limit} entries, it says {count}")
    end_of_table = position + table_bytes(count, wide)
    if end_of_table > len(data):
        raise broken_model(
            source, f"{where} has {count} entries up to byte {end_of_table}, the file has {len(data)} bytes"
        )
    # A bundle counts offsets from the end of the header, every other file from the end of the table.
    base = position if header.modeltype == ModelType.BUNDLE else end_of_table
    partitions: list[Partition] = []
    expected = end_of_table
    for i in range(count):
        fields = entry.unpack_from(data, position + head.size + i * entry.size)
        partition = Partition(_known_type(fields[0], source, where), base + fields[-2], fields[-1])
        _check_partition(partition, expected, len(data), source)
        partitions.append(partition)
        expected = partition.end
    _check_types(partitions, source, where)
    return Block(tuple(partitions))


def _known_type(number: int, source: str, where: str) -> PartitionType:
    try:
        return PartitionType(number)
    except ValueError:
        raise broken_model(source, f"{where} has an entry of the unknown type {number}") from None


def _check_partition(partition: Partition, expected: int, file_size: int, source: str) -> None:
    name = partition.type.name
    if partition.start != expected:
        raise broken_model(
            source, f"partition {name} must start at byte {expected}, the table puts it at byte {partition.start}"
        )
    if partition.size > file_size - partition.start:
        raise broken_model(
            source, f"partition {name} has {partition.size} bytes, {file_size - partition.start} are left in the file"
        )
    if partition.size >= SMALL_PARTITION_LIMIT and partition.type not in _MAY_BE_HUGE:
        raise broken_model(source, f"partition {name} must be below 4 GiB, it has {partition.size} bytes")


def _check_types(partitions: list[Partition], source: str, where: str) -> None:
    seen = set()
    for partition in partitions:
        if partition.type in seen and partition.type not in _MAY_REPEAT:
            raise broken_model(source, f"{where} lists {partition.type.name} twice")
        seen.add(partition.type)
