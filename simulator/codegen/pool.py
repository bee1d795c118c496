"""Pooling of feature maps whose channels lie in blocks of 16: one vector per position.

Windows are clipped to the data by tables: first element and number of taps of every row and column of the result.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, auto

from simulator.codegen.emission import ELEMENTS, I64, LANES, WORD, Emitter, Value
from simulator.codegen.pointwise import Pointwise


class PoolWord(IntEnum):
    """Words of the parameter block."""

    SOURCE = 0
    TARGET = auto()
    ROWS = auto()
    COLUMNS = auto()
    HEIGHT = auto()
    WIDTH = auto()
    """ROWS and COLUMNS are those of the result, HEIGHT and WIDTH those of the data."""
    ROW_TAPS = auto()
    COLUMN_TAPS = auto()
    """Addresses of (first element, taps) per row or column of the result."""
    ROW_STEP = auto()
    COLUMN_STEP = auto()
    """Elements from one tap to the next."""
    DIVISORS = auto()
    """Address of one float32 per position of the result."""


@dataclass(frozen=True)
class PoolCode:
    """A task is one row of the result; ``is_mean`` divides sums, otherwise the largest element is taken."""

    is_mean: bool
    element: str

    def emit(self, e: Emitter) -> None:
        """Write the function."""
        _Pool(self, e).emit()


class _Pool:
    def __init__(self, code: PoolCode, e: Emitter) -> None:
        self.code, self.e, self.pointwise = code, e, Pointwise(e)
        addresses = (
            PoolWord.SOURCE,
            PoolWord.TARGET,
            PoolWord.ROW_TAPS,
            PoolWord.COLUMN_TAPS,
            PoolWord.DIVISORS,
        )
        self.words = {word: e.pointer(word) if word in addresses else e.word(word) for word in PoolWord}
        self.bytes = LANES * ELEMENTS[code.element][1]
        self.start = e.splat(0.0 if code.is_mean else float("-inf"))

    def emit(self) -> None:
        e, w = self.e, self.words
        pitch = e.times(w[PoolWord.WIDTH], self.bytes)

        def task(number: Value) -> None:
            plane, row = e.divide(number, w[PoolWord.ROWS])
            first, count = self._taps(PoolWord.ROW_TAPS, row)
            top = e.sum(e.times(plane, w[PoolWord.HEIGHT]), first)
            source = e.at(w[PoolWord.SOURCE], e.times(top, pitch))
            target = e.at(w[PoolWord.TARGET], e.times(e.times(number, w[PoolWord.COLUMNS]), self.bytes))
            divisors = e.at(w[PoolWord.DIVISORS], e.times(e.times(row, w[PoolWord.COLUMNS]), 4))

            def position(column: Value, _: list[Value]) -> None:
                found = self._window(source, pitch, count, column)
                if self.code.is_mean:
                    found = self.pointwise.divide(found, e.broadcast(e.at(divisors, e.times(column, 4))))
                e.store_narrow(found, e.at(target, e.times(column, self.bytes)), self.code.element)

            e.loop(0, w[PoolWord.COLUMNS], position)

        e.tasks(task)

    def _taps(self, table: PoolWord, index: Value) -> tuple[Value, Value]:
        e = self.e
        entry = e.at(self.words[table], e.times(index, 2 * WORD))
        first = e.build.load(entry, align=WORD, typ=I64)
        return first, e.build.load(e.at(entry, e.constant(WORD)), align=WORD, typ=I64)

    def _window(self, source: Value, pitch: Value, rows: Value, column: Value) -> Value:
        """Combine a window: the elements of a row first, then the rows."""
        e, w = self.e, self.words
        first, columns = self._taps(PoolWord.COLUMN_TAPS, column)
        corner = e.at(source, e.times(first, self.bytes))
        row_step = e.times(w[PoolWord.ROW_STEP], pitch)
        column_step = e.times(w[PoolWord.COLUMN_STEP], self.bytes)

        def by_row(row: Value, state: list[Value]) -> list[Value]:
            line = e.at(corner, e.times(row, row_step))

            def by_column(index: Value, state: list[Value]) -> list[Value]:
                value = e.load_wide(e.at(line, e.times(index, column_step)), self.code.element)
                return [self._combined(state[0], value)]

            [found] = e.loop(0, columns, by_column, [self.start])
            return [self._combined(state[0], found)]

        return e.loop(0, rows, by_row, [self.start])[0]

    def _combined(self, a: Value, b: Value) -> Value:
        return self.pointwise.add(a, b) if self.code.is_mean else self.pointwise.maximum(a, b)
