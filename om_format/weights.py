"""The weights pool: where each constant lies in the partition WEIGHTS_DATA, and its bytes.

The pool starts at 512, because offset 0 stands for "not in the pool"; every constant starts at a multiple of 512; 32
bytes are added behind the last one and the whole is rounded up to 512 again. Equal constants share an offset.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import BinaryIO

import numpy as np

from ge.graph.tensor import Tensor
from ge.graph.types import DataType, bit_width
from ge.mapped_file import MappedFile
from ge.plan import ALIGNMENT, align
from ge.proto.tensor_bytes import Array, chunks

TAIL_BYTES = 32
MAX_COMPARED = 16
_SAMPLE_BYTES = 64

_Fingerprint = tuple[int, int, bytes]


class WeightsPool:
    """Gives constants their offsets, then writes them.

    Arrays are only looked at, never copied whole: placing reads a few samples of each, and all of it only to tell two
    constants apart that look alike; writing passes them through in pieces.
    """

    def __init__(self) -> None:
        self._end = ALIGNMENT
        self._placed: list[tuple[int, Tensor]] = []
        self._groups: dict[_Fingerprint, _Group] = {}

    @property
    def size(self) -> int:
        """Bytes of the partition; 0 while nothing has been placed."""
        return align(self._end + TAIL_BYTES) if self._placed else 0

    def place(self, tensor: Tensor) -> int | None:
        """Return the offset of ``tensor``; ``None`` for strings and empty tensors, which stay in the message.

        Raises E13026 when a mapped file that holds it was changed: reading what was cut off would end the process.
        """
        if tensor.data_type is DataType.DT_STRING or tensor.nbytes == 0:
            return None
        mapped = MappedFile.behind(tensor.array)
        if mapped is not None:
            mapped.check_unchanged()
        alike = self._groups.setdefault(_fingerprint(tensor), _Group())
        known = alike.find(tensor)
        if known is not None:
            return known
        offset = self._end
        alike.add(tensor, offset)
        self._placed.append((offset, tensor))
        self._end = align(offset + tensor.nbytes)
        return offset

    def write(self, file: BinaryIO) -> None:
        """Write the partition's :attr:`size` bytes.

        Raises E13026 when a mapped file that holds constants was changed meanwhile.
        """
        position = 0
        for offset, tensor in self._placed:
            file.write(bytes(offset - position))
            for chunk in _stored(tensor):
                file.write(chunk.data)
            position = offset + tensor.nbytes
        file.write(bytes(self.size - position))


class _Group:
    """Constants that look alike. A few are compared with each other, which ends at the first difference; where there
    are many, each is read once, for its digest."""

    def __init__(self) -> None:
        self._members: list[tuple[Tensor, int]] = []
        self._by_digest: dict[bytes, int] = {}

    def find(self, tensor: Tensor) -> int | None:
        """Return the offset of the constant that equals ``tensor``."""
        if len(self._members) <= MAX_COMPARED:
            return next((offset for other, offset in self._members if _equal(tensor, other)), None)
        if not self._by_digest:
            self._by_digest = {_digest(other): offset for other, offset in self._members}
        return self._by_digest.get(_digest(tensor))

    def add(self, tensor: Tensor, offset: int) -> None:
        """Add a constant that equals none."""
        self._members.append((tensor, offset))
        if self._by_digest:
            self._by_digest[_digest(tensor)] = offset


def _fingerprint(tensor: Tensor) -> _Fingerprint:
    """Size, element width and a few elements from the beginning, the middle and the end."""
    width = bit_width(tensor.data_type)
    array, count = tensor.array, _SAMPLE_BYTES * 8 // width
    if array.size <= count:
        return tensor.nbytes, width, array.tobytes() + array.dtype.byteorder.encode()
    flat = array.reshape(-1) if array.flags.c_contiguous else array.flat
    middle = array.size // 2
    pieces = (flat[:count], flat[middle : middle + count], flat[max(array.size - count, 0) :])
    return tensor.nbytes, width, b"".join(piece.tobytes() for piece in pieces) + array.dtype.byteorder.encode()


def _equal(a: Tensor, b: Tensor) -> bool:
    """Compare the stored bytes of two tensors of equal size and element width."""
    if a.array is b.array:
        return True
    return all(np.array_equal(x, y) for x, y in zip(_stored(a), _stored(b), strict=True))


def _digest(tensor: Tensor) -> bytes:
    found = hashlib.blake2b(digest_size=16)
    for chunk in _stored(tensor):
        found.update(chunk.data)
    return found.digest()


def _stored(tensor: Tensor) -> Iterator[Array]:
    """Yield the stored bytes piece by piece; a mapped file behind them is told, and checked before and after."""
    mapped = MappedFile.behind(tensor.array)
    if mapped is None:
        yield from chunks(tensor)
        return
    mapped.check_unchanged()
    for chunk in chunks(tensor):
        yield chunk
        mapped.note_read(chunk.nbytes)
    mapped.check_unchanged()
