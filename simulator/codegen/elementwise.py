"""Loops over broadcast operands that compute one formula.

A task is one index of the three outer axes; inside there are a middle axis and the innermost one, along which an
operand is either contiguous or a single number. Flat data are rows of one axis, the last row may be shorter.
"""

from __future__ import annotations

from dataclasses import dataclass

from simulator.codegen.emission import ELEMENTS, I32, LANES, SINGLE, WORD, Emitter, Value
from simulator.codegen.formulas import FORMULAS
from simulator.codegen.pointwise import Pointwise

INNER, MIDDLE, TOTAL, SECOND, THIRD = range(5)
"""Words: elements of a row, rows of a task, elements of all rows where rows are flat, dims of two outer axes."""
HEAD = 5
POINTER_OF, MIDDLE_STRIDE, STRIDES = 0, 1, 2
PER_OPERAND = 5
"""Words of every operand, and of the result behind them: address, strides of the middle and the three outer axes."""
TOGETHER = 2
"""Vectors that are computed side by side."""
MAX_OPERANDS, MAX_PARAMETERS = 8, 4


@dataclass(frozen=True)
class Operand:
    """An operand: element type, and whether the innermost axis repeats it."""

    element: str
    is_single: bool


@dataclass(frozen=True)
class ElementwiseCode:
    """``result = formula(operands, parameters)``; parameters are float32 bits behind the words of the result."""

    formula: str
    operands: tuple[Operand, ...]
    result: str
    parameters: int = 0

    def emit(self, e: Emitter) -> None:
        """Write the function."""
        _Loops(self, e).emit()


class _Loops:
    def __init__(self, code: ElementwiseCode, e: Emitter) -> None:
        self.code, self.e, self.pointwise = code, e, Pointwise(e)
        tail = HEAD + PER_OPERAND * (len(code.operands) + 1)
        self.parameters = [self._parameter(tail + i) for i in range(code.parameters)]
        self.formula = FORMULAS[code.formula]

    def _parameter(self, index: int) -> Value:
        bits = self.e.build.load(self.e.at(self.e.block, self.e.constant(index * WORD)), align=4, typ=SINGLE)
        return self.e.spread(bits, LANES)

    def emit(self) -> None:
        e = self.e
        inner, middle, total, second, third = (e.word(i) for i in range(HEAD))
        bases = []
        for number in range(len(self.code.operands) + 1):
            start = HEAD + number * PER_OPERAND
            bases.append((e.pointer(start), [e.word(start + i) for i in range(1, PER_OPERAND)]))

        def task(index: Value) -> None:
            rest, c = e.divide(index, third)
            a, b = e.divide(rest, second)
            count = e.least(inner, e.build.sub(total, e.times(index, inner)))
            places = [
                e.at(base, e.times(a, strides[1]), e.times(b, strides[2]), e.times(c, strides[3]))
                for base, strides in bases
            ]

            def row(number: Value, _: list[Value]) -> None:
                moved = [
                    e.at(place, e.times(number, strides[0])) for place, (_, strides) in zip(places, bases, strict=True)
                ]
                self._row(moved, count)

            e.loop(0, middle, row)

        e.tasks(task)

    def _row(self, places: list[Value], count: Value) -> None:
        e, code = self.e, self.code
        singles = {
            i: e.spread(self._single(place, operand.element), LANES)
            for i, (place, operand) in enumerate(zip(places, code.operands, strict=False))
            if operand.is_single
        }

        def compute(start: Value, mask: Value | None = None) -> None:
            values = []
            for i, operand in enumerate(code.operands):
                if i in singles:
                    values.append(singles[i])
                    continue
                at = e.at(places[i], e.times(start, ELEMENTS[operand.element][1]))
                loaded = e.load(at, operand.element) if mask is None else e.load_some(at, mask, operand.element)
                values.append(e.widened(loaded, operand.element))
            made = e.narrowed(self.formula(self.pointwise, values, self.parameters), code.result)
            at = e.at(places[-1], e.times(start, ELEMENTS[code.result][1]))
            if mask is None:
                e.store(made, at, code.result)
            else:
                e.store_some(made, at, mask, code.result)

        def several(start: Value, _: list[Value]) -> None:
            for i in range(TOGETHER):
                compute(e.sum(start, i * LANES))

        step = LANES * TOGETHER
        several_end = e.times(e.divide(count, step)[0], step)
        e.loop(0, several_end, several, step=step)
        whole_end = e.times(e.divide(count, LANES)[0], LANES)
        e.loop(several_end, whole_end, lambda start, _: compute(start), step=LANES)
        e.loop(whole_end, count, lambda start, _: compute(start, e.first_lanes(e.build.sub(count, start))), step=LANES)

    def _single(self, place: Value, element: str) -> Value:
        kind, size = ELEMENTS[element]
        one = self.e.spread(self.e.build.load(place, align=size, typ=kind), LANES)
        return self.e.build.extract_element(self.e.widened(one, element), self.e.constant(0, I32))


@dataclass(frozen=True)
class ClearLanesCode:
    """Write zeros into the padding of the last block of channels. ``element`` is ``b2`` or ``b4``.

    Words: address of the last block of the first sample, bytes between samples, positions, channels of the block.
    Tasks are samples.
    """

    element: str

    def emit(self, e: Emitter) -> None:
        """Write the function."""
        base, pitch, positions, known = e.pointer(0), e.word(1), e.word(2), e.word(3)
        kind, size = ELEMENTS[self.element]
        mask = e.build.not_(e.first_lanes(known))
        zeros = e.spread(e.constant(0, kind), LANES)

        def task(index: Value) -> None:
            start = e.at(base, e.times(index, pitch))
            e.loop(
                0,
                positions,
                lambda i, _: e.store_some(zeros, e.at(start, e.times(i, LANES * size)), mask, self.element),
            )

        e.tasks(task)
