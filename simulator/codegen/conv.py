"""Direct convolution of feature maps whose channels lie in blocks of 16.

``OB`` blocks of output channels times ``WB`` neighbouring columns are summed in registers: per channel of a tap ``OB``
vectors of weights are loaded, one element of x per column is spread over all lanes and multiplied into them. Weights
are packed as they are read, [groups of OB blocks][channel blocks][taps][channels][OB][lanes].

x holds float32 with the padding around it; y is written in its own type. A row is divided into tiles of WB columns, of
which the last one may reach back into its neighbour: what both compute is the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, auto

from simulator.codegen.emission import ELEMENTS, F32V, I32V, LANES, Emitter, Value


class Word(IntEnum):
    """Words of the parameter block."""

    X = 0
    WEIGHTS = auto()
    BIAS = auto()
    """LANES floats per block of output channels."""
    MASK = auto()
    """As many integers: -1 for channels, 0 for padding."""
    Y = auto()
    OUTER_DIVISOR = auto()
    INNER_DIVISOR = auto()
    """A task is filter group (task / OUTER_DIVISOR) % FILTER_GROUPS of part (task / INNER_DIVISOR) % PARTS."""
    FILTER_GROUPS = auto()
    PARTS = auto()
    """Samples x rows x strips; a strip is TILES_PER_STRIP tiles of a row."""
    STRIPS = auto()
    ROWS = auto()
    COLUMNS = auto()
    TILES = auto()
    TILES_PER_STRIP = auto()
    BLOCKS = auto()
    """Blocks of channels that are summed."""
    TAP_ROWS = auto()
    TAP_COLUMNS = auto()
    X_SAMPLE = auto()
    X_GROUP = auto()
    """Bytes between the channels of one group and the next; FILTERS_PER_GROUP filter groups read the same."""
    FILTERS_PER_GROUP = auto()
    X_BLOCK = auto()
    X_ROW = auto()
    X_TAP_ROW = auto()
    X_TAP_COLUMN = auto()
    Y_SAMPLE = auto()
    Y_BLOCK = auto()


@dataclass(frozen=True)
class ConvCode:
    """What differs between compiled convolutions. ``channels`` is 16, or fewer if x is a single block of so many."""

    filter_blocks: int
    columns: int
    stride: int
    channels: int
    result: str
    has_padding: bool
    """The last block of output channels is not full."""
    is_grouped: bool = False
    """Groups of ``channels`` neighbouring channels give as many results, in the same lanes; one filter block only."""
    unroll: int = 2

    def emit(self, e: Emitter) -> None:
        """Write the function."""
        _Conv(self, e).emit()


class _Conv:
    def __init__(self, code: ConvCode, e: Emitter) -> None:
        self.code, self.e = code, e
        self.words: dict[Word, Value] = {}
        for word in Word:
            is_address = word in (Word.X, Word.WEIGHTS, Word.BIAS, Word.MASK, Word.Y)
            self.words[word] = e.pointer(word) if is_address else e.word(word)
        self.tap_bytes = code.filter_blocks * code.channels * LANES * 4

    def emit(self) -> None:
        e, w = self.e, self.words

        def task(number: Value) -> None:
            group = e.divide(e.divide(number, w[Word.OUTER_DIVISOR])[0], w[Word.FILTER_GROUPS])[1]
            part = e.divide(e.divide(number, w[Word.INNER_DIVISOR])[0], w[Word.PARTS])[1]
            line, strip = e.divide(part, w[Word.STRIPS])
            sample, row = e.divide(line, w[Word.ROWS])
            first = e.times(strip, w[Word.TILES_PER_STRIP])
            last = e.least(e.sum(first, w[Word.TILES_PER_STRIP]), w[Word.TILES])
            conv_group = e.divide(group, w[Word.FILTERS_PER_GROUP])[0]
            x = e.at(
                w[Word.X],
                e.times(sample, w[Word.X_SAMPLE]),
                e.times(conv_group, w[Word.X_GROUP]),
                e.times(row, w[Word.X_ROW]),
            )
            taps = e.times(w[Word.TAP_ROWS], w[Word.TAP_COLUMNS])
            weights = e.at(w[Word.WEIGHTS], e.times(e.times(e.times(group, w[Word.BLOCKS]), taps), self.tap_bytes))
            block = e.times(group, self.code.filter_blocks)
            size = ELEMENTS[self.code.result][1]
            y = e.at(
                w[Word.Y],
                e.times(sample, w[Word.Y_SAMPLE]),
                e.times(block, w[Word.Y_BLOCK]),
                e.times(e.times(row, w[Word.COLUMNS]), LANES * size),
            )

            def tile(index: Value, _: list[Value]) -> None:
                place = e.least(
                    e.times(index, self.code.columns), e.build.sub(w[Word.COLUMNS], e.constant(self.code.columns))
                )
                at_x = e.at(x, e.times(place, self.code.stride * LANES * 4))
                self._tile(at_x, weights, block, e.at(y, e.times(place, LANES * size)))

            e.loop(first, last, tile)

        e.tasks(task)

    def _tile(self, x: Value, weights: Value, block: Value, y: Value) -> None:
        """Sum up and store one tile."""
        e, w, code = self.e, self.words, self.code
        lane_offset = e.times(block, LANES * 4)
        sums = []
        for ob in range(code.filter_blocks):
            bias = e.load(e.at(w[Word.BIAS], lane_offset, e.constant(ob * LANES * 4)))
            sums += [bias] * code.columns

        def by_block(_: Value, state: list[Value]) -> list[Value]:
            at_x, at_w, *inner = state

            def by_row(_: Value, state: list[Value]) -> list[Value]:
                row_x, row_w, *inner = state

                def by_column(_: Value, state: list[Value]) -> list[Value]:
                    tap_x, tap_w, *inner = state
                    inner = self._tap(tap_x, tap_w, inner)
                    return [e.at(tap_x, w[Word.X_TAP_COLUMN]), e.at(tap_w, e.constant(self.tap_bytes)), *inner]

                _, next_w, *inner = e.loop(0, w[Word.TAP_COLUMNS], by_column, [row_x, row_w, *inner])
                return [e.at(row_x, w[Word.X_TAP_ROW]), next_w, *inner]

            _, next_w, *inner = e.loop(0, w[Word.TAP_ROWS], by_row, [at_x, at_w, *inner])
            return [e.at(at_x, w[Word.X_BLOCK]), next_w, *inner]

        _, _, *sums = e.loop(0, w[Word.BLOCKS], by_block, [x, weights, *sums])
        size = ELEMENTS[code.result][1]
        for ob in range(code.filter_blocks):
            mask = None
            if code.has_padding:
                mask = e.load(e.at(w[Word.MASK], lane_offset, e.constant(ob * LANES * 4)), "b4")
            target = e.at(y, e.times(w[Word.Y_BLOCK], ob))
            for j in range(code.columns):
                value = sums[ob * code.columns + j]
                if mask is not None:
                    value = e.build.bitcast(e.build.and_(e.build.bitcast(value, I32V), mask), F32V)
                e.store_narrow(value, e.at(target, e.constant(j * LANES * size)), code.result)

    def _tap(self, x: Value, weights: Value, sums: list[Value]) -> list[Value]:
        """Add the products of all channels of one tap."""
        e, code = self.e, self.code
        if code.is_grouped:
            return self._lane_by_lane(x, weights, sums)
        unroll = next(n for n in (code.channels if code.channels <= 4 else code.unroll, 1) if code.channels % n == 0)

        def channels(c: Value, sums: list[Value]) -> list[Value]:
            at_x = e.at(x, e.times(c, 4))
            at_w = e.at(weights, e.times(c, code.filter_blocks * LANES * 4))
            for q in range(unroll):
                vectors = [
                    e.load(e.at(at_w, e.constant((q * code.filter_blocks + ob) * LANES * 4)))
                    for ob in range(code.filter_blocks)
                ]
                for j in range(code.columns):
                    element = e.broadcast(e.at(at_x, e.constant((j * code.stride * LANES + q) * 4)))
                    for ob, weight in enumerate(vectors):
                        place = ob * code.columns + j
                        sums[place] = e.multiply_add(element, weight, sums[place])
            return sums

        if unroll == code.channels:
            return channels(e.constant(0), list(sums))
        return e.loop(0, code.channels, channels, sums, step=unroll)

    def _lane_by_lane(self, x: Value, weights: Value, sums: list[Value]) -> list[Value]:
        """Multiply every lane by the weights of its own group: channel ``c`` of the group is brought to all of it."""
        e, code = self.e, self.code
        inputs = [e.load(e.at(x, e.constant(j * code.stride * LANES * 4))) for j in range(code.columns)]
        found = list(sums)
        for c in range(code.channels):
            weight = e.load(e.at(weights, e.constant(c * LANES * 4)))
            lanes = [lane - lane % code.channels + c for lane in range(LANES)]
            for j, value in enumerate(inputs):
                moved = value if code.channels == 1 else e.moved(value, lanes)
                found[j] = e.multiply_add(moved, weight, found[j])
        return found
