"""Depthwise convolution of blocks of channels: shifted rows times weights, [rows, width x lanes] at a time.

The weights of a tap are repeated along a row, so that numpy multiplies long rows. Columns of strided windows are split
into interleaved parts first, so that the taps of all positions lie side by side.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np

from ge.ops.window import Window
from simulator.kernels.halves import convert
from simulator.kernels.registry import Array, Inputs, Kernel, KernelRequest, Outputs, ScratchLayout
from simulator.kernels.storage.convolution import Convolution
from simulator.kernels.storage.filters import StoredFilter

BLOCK_BYTES = 1 << 18
"""Most bytes of one operand of a block."""


class _Plan:
    """How one image of blocks of channels is cut: output rows per block, and the pitch of staged rows."""

    def __init__(self, work: Convolution) -> None:
        self.work = work
        _, self.rows, self.columns = work.windows
        self.blocks = -(-work.channels // work.lanes)
        self.phases = self.columns.stride if self.columns.kernel > 1 else 1
        padded = max(self.columns.size + self.columns.before + self.columns.after, self.columns.reach)
        self.pitch = -(-padded // self.phases)
        self.step = self.columns.stride // self.phases
        """Distance of neighbouring positions in a staged row."""
        self.reach = (self.columns.count - 1) * self.step + 1
        self.taps = list(product(range(self.rows.kernel), range(self.columns.kernel)))
        line = self.phases * self.pitch * work.lanes * work.computed.itemsize
        room = max((BLOCK_BYTES // line - self.rows.extent) // self.rows.stride + 1, 1)
        self.count = min(room, self.rows.count)
        """Output rows per block."""
        self.together = min(max(BLOCK_BYTES // (line * self.lines(self.count)), 1), self.blocks)
        """Blocks of channels that are computed together."""

    def lines(self, rows: int) -> int:
        """Staged input rows for so many output rows."""
        return (rows - 1) * self.rows.stride + self.rows.extent


def build_depthwise(work: Convolution, stored: StoredFilter, request: KernelRequest) -> Kernel:
    """Bind a convolution of one filter per channel."""
    how, dtype, lanes = _Plan(work), work.computed, work.lanes
    layout = ScratchLayout()
    take_staged = layout.take([how.together, how.lines(how.count), how.phases, how.pitch, lanes], dtype)
    sums_shape = [how.together, how.count, how.reach * lanes]
    take_sums, take_terms = layout.take(sums_shape, dtype), layout.take(sums_shape, dtype)
    take_bias = layout.take([how.blocks, 1, lanes], dtype)
    weight_shape = (how.blocks, len(how.taps), how.reach * lanes)
    weights_of = stored.reader(request, 1, layout, [weight_shape], _repeat(how))
    row_blocks = [(r, min(how.count, how.rows.count - r)) for r in range(0, how.rows.count, how.count)]
    is_rounded = dtype != work.output_dtype

    def run(inputs: Inputs, outputs: Outputs, scratch: Array) -> None:
        space = (how.rows.size, how.columns.size)
        x = inputs[0].reshape(work.batch, how.blocks, *space, lanes)
        y = outputs[0].reshape(work.batch, how.blocks, how.rows.count, how.columns.count, lanes)
        [weights] = weights_of(inputs[1], scratch)
        bias = take_bias(scratch) if len(inputs) > 2 and inputs[2] is not None else None
        if bias is not None:
            bias.reshape(-1)[: work.channels] = inputs[2].reshape(-1)
            bias.reshape(-1)[work.channels :] = 0
        for sample in range(work.batch):
            for start in range(0, how.blocks, how.together):
                part = slice(start, min(start + how.together, how.blocks))
                size = part.stop - start
                for row, rows in row_blocks:
                    staged = take_staged(scratch)[:size, : how.lines(rows)]
                    _stage(how, x[sample, part], row * how.rows.stride, staged)
                    sums, terms = take_sums(scratch)[:size, :rows], take_terms(scratch)[:size, :rows]
                    _multiply_add(how, staged, weights[part], rows, sums, terms)
                    wanted = sums.reshape(size, rows, how.reach, lanes)[:, :, :: how.step]
                    target = y[sample, part, row : row + rows]
                    if bias is None:
                        convert(target, wanted)
                    elif is_rounded:
                        np.add(wanted, bias[part, np.newaxis], out=wanted)
                        convert(target, wanted)
                    else:
                        np.add(wanted, bias[part, np.newaxis], out=target)
        if work.channels % lanes:
            y[:, -1, ..., work.channels % lanes :] = 0

    return Kernel("conv-blocks-depthwise", run, layout.size)


def _repeat(how: _Plan) -> Callable[[Array, list[Array]], None]:
    """Return what writes the weights of every tap along a row; lanes without a channel get 0."""
    work = how.work

    def fill(filter: Array, matrices: list[Array]) -> None:
        by_channel = filter.reshape(work.channels, *filter.shape[4:])
        [target] = matrices
        rows = target.reshape(how.blocks, len(how.taps), how.reach, work.lanes)
        rows[-1] = 0
        for number, (row, column) in enumerate(how.taps):
            for block in range(how.blocks):
                own = by_channel[block * work.lanes : (block + 1) * work.lanes, row, column]
                rows[block, number, :, : len(own)] = own

    return fill


def _stage(how: _Plan, x: Array, first: int, staged: Array) -> None:
    """Copy padded rows from ``first`` on of ``x`` [blocks, h, w, lanes] to [blocks, rows, phases, pitch, lanes]."""
    rows, columns = how.rows, how.columns
    staged.fill(0)
    start = max(rows.before - first, 0)
    stop = min(rows.before - first + rows.size, staged.shape[1])
    if start >= stop:
        return
    source = x[:, start + first - rows.before : stop + first - rows.before]
    for phase in range(how.phases):
        place, offset = _first_of_phase(columns, how.phases, phase)
        part = source[:, :, offset :: how.phases]
        width = min(part.shape[2], how.pitch - place)
        target = staged[:, start:stop, phase, place : place + width]
        if how.work.offset:
            np.subtract(part[:, :, :width], how.work.offset, out=target, dtype=how.work.computed)
        else:
            convert(target, part[:, :, :width])


def _first_of_phase(columns: Window, phases: int, phase: int) -> tuple[int, int]:
    """Return the first place of a phase that shows an element, and which: place k shows k * phases + phase - before."""
    place = max(-(-(columns.before - phase) // phases), 0)
    return place, place * phases + phase - columns.before


def _multiply_add(how: _Plan, staged: Array, weights: Array, rows: int, sums: Array, terms: Array) -> None:
    lanes = how.work.lanes
    lines = staged.reshape(*staged.shape[:3], how.pitch * lanes)
    for number, (row, column) in enumerate(how.taps):
        line = row * how.rows.dilation
        place, phase = divmod(column * how.columns.dilation, how.phases)
        stop = line + (rows - 1) * how.rows.stride + 1
        source = lines[:, line : stop : how.rows.stride, phase, place * lanes : (place + how.reach) * lanes]
        target = terms if number else sums
        np.multiply(source, weights[:, number, np.newaxis], out=target)
        if number:
            np.add(sums, terms, out=sums)
