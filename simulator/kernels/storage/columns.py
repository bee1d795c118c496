"""Columns of a convolution, [groups, positions, taps x channels], from feature maps in blocks of channels.

In NC1HWC0 the channels of a block at one position are followed by those of the next position. So the taps along a
filter row are one run of bytes, as long as neither dilation nor lanes that are left out come between; it is copied as
such. What must be padded, widened, or gathered from parts of blocks is staged before, some rows at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from simulator.kernels.halves import convert
from simulator.kernels.registry import Array, ScratchLayout
from simulator.kernels.storage.convolution import Convolution
from simulator.kernels.storage.layout import copy_runs

COLUMN_BYTES = 1 << 20
"""Most bytes of columns of a block, which should still be in the cache when they are multiplied."""


def runs_of(base: Array, start: int, shape: Sequence[int], steps: Sequence[int], length: int) -> Array:
    """Show runs of ``length`` elements of a contiguous array as items; start and steps are elements."""
    item, memory = base.itemsize, base.reshape(-1).view(np.uint8)
    return np.ndarray(shape, np.dtype((np.void, length * item)), memory, start * item, [s * item for s in steps])


@dataclass(frozen=True)
class Part:
    """Channels of every group from ``first`` on that lie alike: ``planes`` times ``lanes`` of them."""

    first: int
    planes: int
    lanes: int

    @property
    def channels(self) -> int:
        return self.planes * self.lanes


def parts_of(work: Convolution) -> list[Part]:
    """Divide the channels of a group: whole blocks as they lie, what begins or ends within a block for itself."""
    depth, lanes = work.depth, work.lanes
    if work.groups > 1 and depth % lanes:
        return [Part(0, 1, depth)]
    whole, rest = divmod(depth, lanes)
    found = [Part(0, whole, lanes)] if whole else []
    return [*found, Part(whole * lanes, 1, rest)] if rest else found


@dataclass(frozen=True)
class Source:
    """Where the channels of a part lie: a contiguous array, and the steps from group to group, and so on."""

    base: Array
    start: int
    group: int
    plane: int
    line: int
    column: int


class Columns:
    """Sizes and steps of the columns of one convolution.

    With ``is_split`` only the taps along a filter row are unfolded, and each filter row finds its operand some lines
    further down. ``extra`` columns behind the channels are left to the caller.
    """

    def __init__(self, work: Convolution, extra: int, layout: ScratchLayout, *, is_split: bool) -> None:
        self.work = work
        self.is_split = is_split
        self.deep, self.rows, self.row = work.windows
        self.parts = parts_of(work)
        self.offsets = [divmod(i * self.rows.dilation, self.rows.stride) for i in range(self.rows.kernel)]
        extras: dict[int, int] = {}
        for line, remainder in self.offsets:
            extras[remainder] = max(extras.get(remainder, 0), line)
        self.phases = list(extras.items()) if is_split else [(0, 0)]
        """Input rows congruent modulo the stride, and how many of them are needed beyond one per output row."""
        taps = self.deep.kernel * self.row.kernel * (1 if is_split else self.rows.kernel)
        self.depth = work.depth * taps
        self.width = self.depth + extra
        self.pitch = _pitch(self.width, work.computed.itemsize)
        self.block = self._block()
        shape = [work.groups, self.lines(self.block) * self.row.count, self.pitch]
        self.take = layout.take(shape, work.computed)
        staged = [self._staged_shape(part, self.block) for part in self.parts] if self.is_staged else []
        self._staged = [layout.take(shape, work.computed) for shape in staged]
        is_gathered = self.is_staged and work.dtype != work.computed
        self._narrow = [
            layout.take([prod(shape)] if is_gathered and part.lanes != work.lanes else [0], work.dtype)
            for shape, part in zip(staged, self.parts, strict=False)
        ]

    @cached_property
    def is_staged(self) -> bool:
        """Whether x must be padded, widened or gathered before it is unfolded."""
        work = self.work
        is_padded = any(w.before or w.after or w.reach > w.size for w in work.windows)
        is_scattered = work.groups > 1 and bool(work.depth % work.lanes)
        return work.computed != work.dtype or is_padded or is_scattered or self.deep.kernel > 1 or bool(work.offset)

    @cached_property
    def is_in_rows(self) -> bool:
        """Whether all channels of a position are staged side by side, so that groups begin anywhere among them."""
        work = self.work
        return work.groups > 1 and bool(work.depth % work.lanes) and self.row.kernel == self.deep.kernel == 1

    @cached_property
    def is_unfolded(self) -> bool:
        """Whether columns are made at all: those of single taps may be the channels of x, as they lie or staged."""
        work = self.work
        is_pointwise = all(w.kernel == 1 and w.size == w.count and not w.before for w in work.windows)
        is_one_block = not self.is_staged and work.groups == 1 and work.depth == work.lanes
        return not (is_pointwise and (is_one_block or self.is_in_rows))

    def operand(self, source: Source, first: int, count: int) -> Array:
        """Return positions of x [groups, positions, channels] that need no unfolding."""
        work = self.work
        rows = source.base.reshape(-1, source.column)
        rows = rows[:count] if self.is_staged else rows[first : first + count]
        return rows[:, : work.channels].reshape(count, work.groups, work.depth).swapaxes(0, 1)

    def lines(self, rows: int) -> int:
        """Lines of columns for a block of output rows."""
        return sum(rows + extra for _, extra in self.phases) if self.is_split else rows

    def input_rows(self, rows: int) -> int:
        """Padded input rows that a block of output rows reads."""
        return (rows - 1) * self.rows.stride + self.rows.extent

    def _block(self) -> int:
        """Return the output rows per block: as many as fit, in blocks of nearly equal size."""
        count = rows = self.rows.count
        line = self.row.count * self.depth * self.work.groups * self.work.computed.itemsize
        while rows > 1 and self.lines(rows) * line > COLUMN_BYTES:
            rows = max(rows * 3 // 4, 1)
        return -(-count // -(-count // rows))

    def blocks(self) -> list[tuple[int, int]]:
        """Return the first output row of every block, and how many there are."""
        count = self.rows.count
        return [(row, min(self.block, count - row)) for row in range(0, count, self.block)]

    def products(self, rows: int) -> list[int]:
        """Return the first row of columns of the operand of every product."""
        if not self.is_split:
            return [0]
        starts, line = {}, 0
        for remainder, extra in self.phases:
            starts[remainder] = line
            line += rows + extra
        return [(starts[remainder] + offset) * self.row.count for offset, remainder in self.offsets]

    # -- staging ---------------------------------------------------------------------------------------------------
    def _staged_shape(self, part: Part, rows: int) -> tuple[int, ...]:
        """[groups, depth taps, planes, rows, columns, lanes]; groups of parts of blocks fill up the blocks."""
        w = self.row
        width = max(w.size + w.before + w.after, w.reach)
        if self.is_in_rows:
            return (1, 1, 1, self.input_rows(rows), width, self.work.blocks * self.work.lanes)
        groups = self.work.groups
        if self._shares_blocks(part):
            groups = self.work.blocks * (self.work.lanes // part.lanes)
        return (groups, self.deep.kernel, part.planes, self.input_rows(rows), width, part.lanes)

    def _shares_blocks(self, part: Part) -> bool:
        """Whether whole groups share a block of channels."""
        return self.work.groups > 1 and part.lanes < self.work.lanes and self.work.lanes % part.lanes == 0

    def sources(self, x: Array, first: int, depth: int, rows: int, scratch: Array) -> list[Source]:
        """Return where the parts of ``x`` [d, blocks, h, w, lanes] lie, from padded input row ``first`` on."""
        work = self.work
        if not self.is_staged:
            base = x[depth * self.deep.stride]
            plane, line = prod(base.shape[1:]), prod(base.shape[2:])
            start = first * line
            return [
                Source(base, start + part.first // work.lanes * plane, part.planes * plane, plane, line, work.lanes)
                for part in self.parts
            ]
        found = []
        for part, take, narrow in zip(self.parts, self._staged, self._narrow, strict=True):
            shape = self._staged_shape(part, rows)
            staged = take(scratch).reshape(-1)[: prod(shape)].reshape(shape)
            self._stage(part, x, first, depth, staged, narrow(scratch))
            line = shape[4] * shape[5]
            plane = shape[3] * line
            group = self.work.depth if self.is_in_rows else shape[1] * shape[2] * plane
            found.append(Source(staged, 0, group, plane, line, shape[5]))
        return found

    def _stage(self, part: Part, x: Array, first: int, depth: int, staged: Array, narrow: Array) -> None:
        """Copy the channels of a part with padding around them."""
        window, columns = self.rows, self.row
        if any(w.before or w.after or w.reach > w.size for w in self.work.windows):
            staged.fill(0)
        start = max(window.before - first, 0)
        stop = min(window.before - first + window.size, staged.shape[3])
        if start >= stop:
            return
        lines = slice(start + first - window.before, stop + first - window.before)
        inside = slice(columns.before, columns.before + columns.size)
        for tap in range(self.deep.kernel):
            at = depth * self.deep.stride + tap * self.deep.dilation - self.deep.before
            if 0 <= at < self.deep.size:
                target = staged[:, tap, :, start:stop, inside]
                if narrow.size:
                    own = narrow[: target.size].reshape(target.shape)
                    self._gather(part, x[at, :, lines], own)
                    self._convert(own, target)
                elif part.lanes == self.work.lanes:
                    blocks = slice(part.first // part.lanes, part.first // part.lanes + len(target) * part.planes)
                    self._convert(x[at, blocks, lines].reshape(target.shape), target)
                else:
                    self._gather(part, x[at, :, lines], target)
                    if self.work.offset:
                        np.subtract(target, self.work.offset, out=target)

    def _convert(self, source: Array, target: Array) -> None:
        if self.work.offset:
            np.subtract(source, self.work.offset, out=target, dtype=self.work.computed)
        else:
            convert(target, source)

    def _gather(self, part: Part, x: Array, target: Array) -> None:
        """Copy lanes of ``x`` [blocks, h, w, lanes] to [groups, 1, h, w, lanes of the part], of equal type."""
        work, lanes = self.work, part.lanes
        space = x.shape[1:3]
        if self.is_in_rows:
            copy_runs(target[0, 0].reshape(*space, len(x), work.lanes), x.transpose(1, 2, 0, 3))
        elif work.groups == 1:
            copy_runs(target[0, 0], x[part.first // work.lanes, ..., :lanes])
        elif self._shares_blocks(part):
            split = x.reshape(len(x), *space, work.lanes // lanes, lanes).transpose(0, 3, 1, 2, 4)
            copy_runs(target.reshape(split.shape) if target.flags.c_contiguous else _split_first(target, len(x)), split)
        else:
            for group in range(work.groups):
                self._gather_group(group * work.depth, x, target[group, 0])

    def _gather_group(self, start: int, x: Array, target: Array) -> None:
        """Bring the channels of one group together that begin and end anywhere in the blocks."""
        lanes, place = self.work.lanes, 0
        while place < self.work.depth:
            block, lane = divmod(start + place, lanes)
            taken = min(lanes - lane, self.work.depth - place)
            copy_runs(target[..., place : place + taken], x[block, ..., lane : lane + taken])
            place += taken

    # -- unfolding -------------------------------------------------------------------------------------------------
    def unfold(self, sources: Sequence[Source], rows: int, columns: Array) -> None:
        """Fill the columns of a block of output rows."""
        count, taps, dilation = self.row.count, self.row.kernel, self.row.dilation
        groups, size, pitch = columns.shape[0], columns.shape[1] * self.pitch, self.pitch
        place = 0
        for part, source in zip(self.parts, sources, strict=True):
            lanes, planes = part.lanes, part.planes * self.deep.kernel
            is_run = taps == 1 or (dilation == 1 and source.column == lanes)
            length = taps * lanes if is_run else lanes
            row_taps = 1 if self.is_split else self.rows.kernel
            tap_step = self.rows.dilation * source.line
            line = 0
            for remainder, extra in self.phases:
                lines = rows + extra if self.is_split else rows
                shape = [groups, lines, count, planes, row_taps]
                steps = [source.group, self.rows.stride * source.line, self.row.stride * source.column, source.plane]
                into = [size, count * pitch, pitch, row_taps * taps * lanes, taps * lanes]
                for tap in range(1 if is_run else taps):
                    start = source.start + remainder * source.line + tap * dilation * source.column
                    first = line * count * pitch + place + tap * lanes
                    target = runs_of(columns, first, shape, into, length)
                    np.copyto(target, runs_of(source.base, start, shape, [*steps, tap_step], length))
                line += lines
            place += planes * row_taps * taps * lanes


def _pitch(width: int, itemsize: int) -> int:
    """Return the distance of rows of columns: whole cache lines, but not so many that rows meet in the same sets."""
    line = max(64 // itemsize, 1)
    pitch = -(-width // line) * line
    return pitch + line if pitch * itemsize % 1024 == 0 else pitch


def _split_first(array: Array, count: int) -> Array:
    """Show [groups, 1, ...] as [blocks, groups per block, ...]."""
    steps: tuple[Any, ...] = array.strides
    groups = array.shape[0] // count
    shape = (count, groups, *array.shape[2:])
    return np.lib.stride_tricks.as_strided(array, shape, (steps[0] * groups, steps[0], *steps[2:]))
