"""The weights pool: where each constant lies in the partition WEIGHTS_DATA, and its bytes.

The pool starts at 512, because offset 0 stands for "not in the pool"; every constant starts at a multiple of 512; 32
bytes are added behind the last one and the whole is rounded up to 512 again. Equal constants share an offset.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

import numpy as np

from ge.graph.tensor import Tensor
from ge.graph.types import DataType, bit_width
from ge.mapped_file import MappedFile
from ge.plan import ALIGNMENT, align
from ge.proto.tensor_bytes import Array, chunks

TAIL_BYTES = 32
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
        self._candidates: dict[_Fingerprint, list[tuple[int, Tensor]]] = {}

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
        alike = self._candidates.setdefault(_fingerprint(tensor), [])
        for offset, other in alike:
            if _equal(tensor, other):
                return offset
        offset = self._end
        alike.append((offset, tensor))
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


def _fingerprint(tensor: Tensor) -> _Fingerprint:
    """Size, element width and a few elements from the beginning, the middle and the end."""
    width = bit_width(tensor.data_type)
    array, count = tensor.array, _SAMPLE_BYTES * 8 // width
    flat = array.reshape(-1) if array.flags.c_contiguous else array.flat
    middle = array.size // 2
    pieces = (flat[:count], flat[middle : middle + count], flat[max(array.size - count, 0) :])
    return tensor.nbytes, width, b"".join(piece.tobytes() for piece in pieces) + array.dtype.byteorder.encode()


def _equal(a: Tensor, b: Tensor) -> bool:
    """Compare the stored bytes of two tensors of equal size and element width."""
    if a.array is b.array:
        return True
    return all(np.array_equal(x, y) for x, y in zip(_stored(a), _stored(b), strict=True))


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
