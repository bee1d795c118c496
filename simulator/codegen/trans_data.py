"""Moving elements between plain images and blocks of channels.

Channels-first data are turned in squares: LANES positions of LANES channels are loaded as rows and stored as columns.
Channels that do not exist are read from a block of zeros that stands still while the others move on. Channels-last data
are copied position by position.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, auto

from llvmlite import ir

from simulator.codegen.emission import ELEMENTS, I32, LANES, Emitter, Value, vector


class TransWord(IntEnum):
    """Words of the parameter block."""

    SOURCE = 0
    TARGET = auto()
    CHANNELS = auto()
    BLOCKS = auto()
    POSITIONS = auto()
    STRIPS = auto()
    """A task is strip ``task % STRIPS`` of block ``task // STRIPS % BLOCKS`` of a sample."""
    STRIP = auto()
    """Positions of a strip, a multiple of LANES."""
    ZEROS = auto()
    """LANES elements of 0."""


@dataclass(frozen=True)
class TransCode:
    """``element`` is ``b2`` or ``b4``; ``is_packing`` is the way to blocks; ``is_last`` says where channels stand."""

    element: str
    is_packing: bool
    is_last: bool

    def emit(self, e: Emitter) -> None:
        """Write the function."""
        _Moves(self, e).emit()


class _Moves:
    def __init__(self, code: TransCode, e: Emitter) -> None:
        self.code, self.e = code, e
        self.size = ELEMENTS[code.element][1]
        self.source, self.target = e.pointer(TransWord.SOURCE), e.pointer(TransWord.TARGET)
        self.channels, self.blocks = e.word(TransWord.CHANNELS), e.word(TransWord.BLOCKS)
        self.positions = e.word(TransWord.POSITIONS)
        self.strips, self.strip = e.word(TransWord.STRIPS), e.word(TransWord.STRIP)
        self.zeros = e.pointer(TransWord.ZEROS)
        self.plain, self.packed = (self.source, self.target) if code.is_packing else (self.target, self.source)

    def emit(self) -> None:
        e, size = self.e, self.size

        def task(number: Value) -> None:
            rest, strip = e.divide(number, self.strips)
            sample, block = e.divide(rest, self.blocks)
            first = e.times(strip, self.strip)
            stop = e.least(e.sum(first, self.strip), self.positions)
            packed = e.at(self.packed, e.times(e.times(rest, self.positions), LANES * size))
            channel = e.times(block, LANES)
            known = e.least(e.build.sub(self.channels, channel), LANES)
            if self.code.is_last:
                start = e.sum(e.times(e.times(sample, self.positions), self.channels), channel)
                self._rows(e.at(self.plain, e.times(start, size)), packed, known, first, stop)
            else:
                start = e.times(e.sum(e.times(sample, self.channels), channel), self.positions)
                self._squares(e.at(self.plain, e.times(start, size)), packed, known, first, stop)

        e.tasks(task)

    def _rows(self, plain: Value, packed: Value, known: Value, first: Value, stop: Value) -> None:
        e, size, element = self.e, self.size, self.code.element
        mask = e.first_lanes(known)

        def position(index: Value, _: list[Value]) -> None:
            block = e.at(packed, e.times(index, LANES * size))
            row = e.at(plain, e.times(e.times(index, self.channels), size))
            if self.code.is_packing:
                e.store(e.load_some(row, mask, element), block, element)
            else:
                e.store_some(e.load(block, element), row, mask, element)

        e.loop(first, stop, position)

    def _squares(self, plain: Value, packed: Value, known: Value, first: Value, stop: Value) -> None:
        e, size = self.e, self.size
        pitch = e.times(self.positions, size)
        rows, moves = [], []
        for lane in range(LANES):
            exists = e.build.icmp_signed("<", e.constant(lane), known)
            there = e.at(plain, e.times(pitch, lane))
            rows.append(e.build.select(exists, there, self.zeros))
            moves.append(e.build.select(exists, e.constant(size), e.constant(0)))

        def square(index: Value, mask: Value | None) -> None:
            block = e.at(packed, e.times(index, LANES * size))
            if self.code.is_packing:
                self._pack(rows, moves, block, index, mask)
            else:
                self._unpack(rows, block, known, index, mask)

        whole = e.sum(first, e.times(e.divide(e.build.sub(stop, first), LANES)[0], LANES))
        e.loop(first, whole, lambda i, _: square(i, None), step=LANES)
        e.loop(whole, stop, lambda i, _: square(i, e.first_lanes(e.build.sub(stop, i))), step=LANES)

    def _pack(self, rows: list[Value], moves: list[Value], block: Value, index: Value, mask: Value | None) -> None:
        e, element = self.e, self.code.element
        loaded = []
        for row, move in zip(rows, moves, strict=True):
            at = e.at(row, e.times(index, move))
            loaded.append(e.load(at, element) if mask is None else e.load_some(at, mask, element))
        for place, column in enumerate(turned(e, loaded)):
            at = e.at(block, e.constant(place * LANES * self.size))
            if mask is None:
                e.store(column, at, element)
                continue
            is_there = e.build.extract_element(mask, e.constant(place, I32))
            with e.build.if_then(is_there):
                e.store(column, at, element)

    def _unpack(self, rows: list[Value], block: Value, known: Value, index: Value, mask: Value | None) -> None:
        e, element = self.e, self.code.element
        last = e.build.sub(self.positions, e.build.add(index, e.constant(1)))
        loaded = []
        for place in range(LANES):
            # positions behind the last one show the last one, and are not stored
            near = e.constant(place) if mask is None else e.least(e.constant(place), last)
            loaded.append(e.load(e.at(block, e.times(near, LANES * self.size)), element))
        for lane, channel in enumerate(turned(e, loaded)):
            exists = e.build.icmp_signed("<", e.constant(lane), known)
            with e.build.if_then(exists):
                at = e.at(rows[lane], e.times(index, self.size))
                if mask is None:
                    e.store(channel, at, element)
                else:
                    e.store_some(channel, at, mask, element)


def turned(e: Emitter, rows: list[Value]) -> list[Value]:
    """Return the columns of a square of vectors: halves of it change places, then halves of these, and so on."""
    count = len(rows)
    step = count // 2
    found = list(rows)
    while step:
        low = [lane if not lane & step else lane - step + count for lane in range(count)]
        high = [lane + step if not lane & step else lane + count for lane in range(count)]
        for i in range(count):
            if not i & step:
                a, b = found[i], found[i + step]
                found[i], found[i + step] = _mixed(e, a, b, low), _mixed(e, a, b, high)
        step //= 2
    return found


def _mixed(e: Emitter, a: Value, b: Value, lanes: list[int]) -> Value:
    """Return lanes of two vectors, those of the second counted behind those of the first."""
    return e.build.shuffle_vector(a, b, ir.Constant(vector(I32, len(lanes)), lanes))
