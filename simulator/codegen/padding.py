"""Copying rows of blocks of channels to float32 rows with zeros around them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, auto

from simulator.codegen.emission import ELEMENTS, LANES, Emitter, Value


class PadWord(IntEnum):
    """Words of the parameter block; sizes in positions, of LANES elements each."""

    SOURCE = 0
    TARGET = auto()
    TARGET_ROWS = auto()
    ROWS = auto()
    COLUMNS = auto()
    TARGET_COLUMNS = auto()
    TOP = auto()
    LEFT = auto()


@dataclass(frozen=True)
class PadCode:
    """Copy row ``task % TARGET_ROWS`` of plane ``task // TARGET_ROWS``; ``element`` is the source's type."""

    element: str

    def emit(self, e: Emitter) -> None:
        """Write the function."""
        source, target = e.pointer(PadWord.SOURCE), e.pointer(PadWord.TARGET)
        height, rows, columns, width, top, left = (e.word(word) for word in list(PadWord)[2:])
        size, zero = ELEMENTS[self.element][1], e.splat(0.0)

        def task(number: Value) -> None:
            plane, line = e.divide(number, height)
            row = e.build.sub(line, top)
            # rows above the first one are large numbers without a sign
            is_inside = e.build.icmp_unsigned("<", row, rows)
            count = e.build.select(is_inside, columns, e.constant(0))
            before = e.build.select(is_inside, left, width)
            at = e.at(source, e.times(e.times(e.sum(e.times(plane, rows), row), columns), LANES * size))
            to = e.at(target, e.times(e.times(number, width), LANES * 4))

            def clear(i: Value, _: list[Value]) -> None:
                e.store(zero, e.at(to, e.times(i, LANES * 4)))

            def copy(i: Value, _: list[Value]) -> None:
                value = e.load_wide(e.at(at, e.times(i, LANES * size)), self.element)
                e.store(value, e.at(to, e.times(e.sum(i, before), LANES * 4)))

            e.loop(0, before, clear)
            e.loop(0, count, copy)
            e.loop(e.sum(before, count), width, clear)

        e.tasks(task)
