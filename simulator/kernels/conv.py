"""Convolution on channels-first data.

Three ways, chosen by shape when the kernel is built:

1. A 1x1 window without stride and padding is a matrix product on the data as they lie.
2. One channel per group (depthwise): multiply-add of shifted rows, a few channels at a time.
3. Everything else unfolds a block of output rows into columns and multiplies. When filter rows are long enough to keep
   a matrix product busy, only the taps along the inner axes are unfolded, and each filter row multiplies the same
   columns a few lines further down: that copies less than half.

Columns, and operands that need padding or widening, lie in scratch, in blocks of bounded size.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

import numpy as np

from ge.graph.types import DataType, numpy_dtype
from ge.ops.conv import conv_windows
from ge.ops.window import Window
from simulator.kernels.halves import convert
from simulator.kernels.registry import Array, Inputs, Kernel, KernelRequest, Outputs, ScratchLayout, kernel

COLUMN_BYTES = 4 << 20
"""Most bytes of unfolded columns; they should stay in the caches between being written and being read."""
PLANE_BYTES = 1 << 18
"""Most bytes of one operand of a depthwise block."""
MIN_ROW_DEPTH = 48
"""Shortest filter row (channels per group times inner taps) that is worth a matrix product of its own."""
_TYPES = (DataType.DT_FLOAT, DataType.DT_FLOAT16, DataType.DT_BF16, DataType.DT_DOUBLE)
_TRIVIAL = Window(1, 1, 1, 1, 0, 0, 1)


@dataclass(frozen=True)
class Convolution:
    """What is to be computed: y[n, o, counts] from x[n, c, sizes] and the filter [o, c / groups, taps]."""

    batch: int
    channels: int
    outputs: int
    groups: int
    windows: tuple[Window, ...]
    dtype: np.dtype[Any]
    """Type of x and y in memory."""

    @property
    def compute_dtype(self) -> np.dtype[Any]:
        """Type of products and sums."""
        return self.dtype if self.dtype.kind == "f" and self.dtype.itemsize >= 4 else np.dtype(np.float32)

    @property
    def is_narrow(self) -> bool:
        """True when x and y are widened in memory."""
        return self.compute_dtype != self.dtype

    @property
    def depth(self) -> int:
        """Channels per group."""
        return self.channels // self.groups

    @property
    def positions(self) -> int:
        """Elements of one output plane."""
        return prod(w.count for w in self.windows)


@kernel("Conv2D", "Conv3D", dtypes=_TYPES)
def build_conv(request: KernelRequest) -> Kernel | None:
    """Bind a convolution of channels-first data with a channels-first filter."""
    op, form = request.op, request.op.data_format
    if not form.startswith("NC") or op.get("_x_filter_format", form) != form or request.dtype(1) != request.dtype(0):
        return None
    x, filter_shape, y = request.shape(0), request.shape(1), tuple(request.outputs[0].shape)
    windows = conv_windows(op, x[2:], filter_shape[2:])
    if tuple(w.count for w in windows) != y[2:] or not prod(x) or not prod(y):
        return None
    work = Convolution(x[0], x[1], y[1], op.groups, _essential(windows), numpy_dtype(request.dtype(0)))
    if work.depth == 1 and work.outputs == work.channels:
        return _depthwise(work)
    return _pointwise(work) if _is_pointwise(work) else _unfolding(work, request)


def _essential(windows: Sequence[Window]) -> tuple[Window, ...]:
    """Drop leading axes of one element; at least two axes stay, the first the one that is cut into blocks."""
    kept = list(windows)
    while len(kept) > 1 and kept[0] == _TRIVIAL:
        kept.pop(0)
    return tuple(kept) if len(kept) > 1 else (kept[0], _TRIVIAL)


def _is_pointwise(work: Convolution) -> bool:
    # one position that strides would follow has a stride of 1: the counts tell whether every element is one
    return not work.is_narrow and all(
        w.kernel == 1 and w.size == w.count and w.before == w.after == 0 for w in work.windows
    )


def _bias(inputs: Sequence[Array | None], work: Convolution) -> Array | None:
    """Return the bias as [groups, outputs per group, 1] in the compute type."""
    bias = inputs[2] if len(inputs) > 2 else None
    if bias is None:
        return None
    return bias.astype(work.compute_dtype, copy=False).reshape(work.groups, -1, 1)


def _pointwise(work: Convolution) -> Kernel:
    batch, groups, positions = work.batch, work.groups, work.positions

    def run(inputs: Inputs, outputs: Outputs, scratch: Array) -> None:
        x = inputs[0].reshape(batch, groups, work.depth, positions)
        weights = inputs[1].reshape(groups, -1, work.depth)
        y = outputs[0].reshape(batch, groups, -1, positions)
        bias = _bias(inputs, work)
        for sample in range(batch):
            if groups == 1:
                np.matmul(weights[0], x[sample, 0], out=y[sample, 0])
            else:
                np.matmul(weights, x[sample], out=y[sample])
            if bias is not None:
                np.add(y[sample], bias, out=y[sample])

    return Kernel("conv-pointwise", run, product_size=work.outputs // groups * work.depth * positions)


# -- padding and widening ----------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Staging:
    """A padded copy of some input rows: [channels, rows, inner sizes..., last], in the compute type.

    With ``phases`` above 1 the last axis is split into that many interleaved parts, [.., phases, last / phases], so
    that every tap of a strided window reads neighbouring elements.
    """

    windows: tuple[Window, ...]
    phases: int

    @property
    def inner_sizes(self) -> tuple[int, ...]:
        """Sizes of the axes behind the rows."""
        middle = [max(w.size + w.before + w.after, w.reach) for w in self.windows[1:-1]]
        last = self.windows[-1]
        width = -(-max(last.size + last.before + last.after, last.reach) // self.phases)
        return (*middle, self.phases, width) if self.phases > 1 else (*middle, width)

    def fill(self, target: Array, x: Array, first: int) -> None:
        """Copy rows from padded row ``first`` on of ``x`` [channels, sizes...]; what is outside becomes 0."""
        target.fill(0)
        rows = self.windows[0]
        start = max(rows.before - first, 0)
        stop = min(rows.before - first + rows.size, target.shape[1])
        if start >= stop:
            return
        inside = [slice(None), slice(start, stop)]
        inside += [slice(w.before, w.before + w.size) for w in self.windows[1:-1]]
        source = x[:, start + first - rows.before : stop + first - rows.before]
        last = self.windows[-1]
        for phase in range(self.phases):
            # padded position phase + k * phases holds element phase + k * phases - before
            k = max(-(-(last.before - phase) // self.phases), 0)
            part = source[..., phase + k * self.phases - last.before :: self.phases]
            width = min(part.shape[-1], target.shape[-1] - k)
            where: tuple[Any, ...] = (*inside, phase) if self.phases > 1 else tuple(inside)
            where = (*where, slice(k, k + width))
            convert(target[where], part[..., :width])


# -- unfolding ---------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class _RowPhase:
    """Input rows that are congruent modulo the row stride: ``lines`` of them beyond one per output row."""

    remainder: int
    extra: int


class _Unfolding:
    """Shapes and steps of way 3 for one convolution."""

    def __init__(self, work: Convolution, is_split: bool) -> None:
        self.work = work
        self.is_split = is_split
        self.rows, self.inner = work.windows[0], work.windows[1:]
        self.plane = prod(w.count for w in self.inner)
        self.taps = [w.kernel for w in (self.inner if is_split else work.windows)]
        offsets = [divmod(i * self.rows.dilation, self.rows.stride) for i in range(self.rows.kernel)]
        extras: dict[int, int] = {}
        for line, remainder in offsets:
            extras[remainder] = max(extras.get(remainder, 0), line)
        self.offsets = offsets
        self.phases = [_RowPhase(remainder, extra) for remainder, extra in extras.items()]
        last = self.inner[-1]
        split_last = last.stride if last.kernel > 1 else 1
        self.staging = Staging(work.windows, split_last)
        self.is_staged = work.is_narrow or split_last > 1 or any(w.before or w.after for w in work.windows)
        self.block = self._block()

    def lines(self, rows: int) -> int:
        """Lines of columns for a block of output rows."""
        return sum(rows + phase.extra for phase in self.phases) if self.is_split else rows

    def input_rows(self, rows: int) -> int:
        """Padded input rows that a block of output rows reads."""
        return (rows - 1) * self.rows.stride + self.rows.extent

    def column_size(self, rows: int) -> int:
        """Elements of the columns of a block."""
        return self.work.channels * prod(self.taps) * self.lines(rows) * self.plane

    def _block(self) -> int:
        """Return the output rows per block: as many as fit, in blocks of nearly equal size."""
        item, count = self.work.compute_dtype.itemsize, self.rows.count
        rows = count
        while rows > 1 and self.column_size(rows) * item > COLUMN_BYTES:
            rows = max(rows * 3 // 4, 1)
        return -(-count // -(-count // rows))

    def unfold(self, source: Array, first: int, columns: Array, rows: int) -> None:
        """Fill ``columns``, flat, for ``rows`` output rows; row ``first`` of ``source`` is their first input row."""
        channels = self.work.channels
        counts = [w.count for w in self.inner]
        steps = [s // source.itemsize for s in source.strides]
        middle, last = self.inner[:-1], self.inner[-1]
        is_phased = source.ndim > len(self.work.windows) + 1
        last_step = 1 if is_phased or last.stride == 1 else last.stride
        tap_steps = [w.dilation * s for w, s in zip(middle, steps[2:], strict=False)]
        count_steps = [*(w.stride * s for w, s in zip(middle, steps[2:], strict=False)), last_step]
        if not self.is_split:
            tap_steps.insert(0, self.rows.dilation * steps[1])
        target = columns.reshape(channels, *self.taps, self.lines(rows), *counts)
        lead = (slice(None),) * (len(self.taps))
        for tap in range(last.kernel):
            phase, place = divmod_phase(tap * last.dilation, last.stride if is_phased else 1)
            start = first * steps[1] + (phase * steps[-2] if is_phased else 0) + place
            line = 0
            for row_phase in self.phases if self.is_split else [_RowPhase(0, 0)]:
                lines = rows + row_phase.extra
                view = strided(
                    source,
                    start + row_phase.remainder * steps[1],
                    [channels, *self.taps[:-1], lines, *counts],
                    [steps[0], *tap_steps, self.rows.stride * steps[1], *count_steps],
                )
                place_of: tuple[Any, ...] = (*lead, tap, slice(line, line + lines))
                np.copyto(target[place_of], view)
                line += lines

    def products(self, rows: int) -> list[int]:
        """Return the first column of the operand of every matrix product."""
        if not self.is_split:
            return [0]
        starts, line = {}, 0
        for phase in self.phases:
            starts[phase.remainder] = line
            line += rows + phase.extra
        return [(starts[remainder] + offset) * self.plane for offset, remainder in self.offsets]


def divmod_phase(position: int, phases: int) -> tuple[int, int]:
    """Return in which of ``phases`` interleaved parts a position lies, and where."""
    place, phase = divmod(position, phases)
    return phase, place


def strided(base: Array, start: int, shape: Sequence[int], steps: Sequence[int]) -> Array:
    """Return a view of a contiguous array; ``start`` and ``steps`` are elements. Leaves bounds to numpy's check."""
    item = base.itemsize
    return np.ndarray(shape, base.dtype, base, start * item, [s * item for s in steps])


def _unfolding(work: Convolution, request: KernelRequest) -> Kernel:
    constant = request.constants.get(1)
    inner_taps = prod(w.kernel for w in work.windows[1:])
    is_split = constant is not None and work.windows[0].kernel > 1 and work.depth * inner_taps >= MIN_ROW_DEPTH
    how = _Unfolding(work, is_split)
    layout = ScratchLayout()
    dtype, plane = work.compute_dtype, how.plane
    take_columns = layout.take([how.column_size(how.block)], dtype)
    staged_rows = how.input_rows(how.block)
    take_staged = layout.take([work.channels * staged_rows * prod(how.staging.inner_sizes) * how.is_staged], dtype)
    take_sums = layout.take([work.outputs * how.block * plane * work.is_narrow], dtype)
    take_terms = layout.take([work.outputs * how.block * plane * is_split], dtype)
    prepare = _weights(work, request, is_split)
    blocks = [(r, min(how.block, how.rows.count - r)) for r in range(0, how.rows.count, how.block)]

    def run(inputs: Inputs, outputs: Outputs, scratch: Array) -> None:
        weights, bias = prepare(inputs[1]), _bias(inputs, work)
        columns, staged, sums, terms = (take(scratch) for take in (take_columns, take_staged, take_sums, take_terms))
        sizes = [w.size for w in work.windows]
        xs = inputs[0].reshape(work.batch, work.channels, *sizes)
        ys = outputs[0].reshape(work.batch, work.groups, -1, work.positions)
        for sample in range(work.batch):
            for row, rows in blocks:
                source, first = xs[sample], row * how.rows.stride
                if how.is_staged:
                    needed = how.input_rows(rows)
                    shape = (work.channels, needed, *how.staging.inner_sizes)
                    source = staged[: prod(shape)].reshape(shape)
                    how.staging.fill(source, xs[sample], first)
                    first = 0
                size = how.column_size(rows)
                how.unfold(source, first, columns[:size], rows)
                target = ys[sample, :, :, row * plane : (row + rows) * plane]
                result = target
                if work.is_narrow:
                    result = sums[: target.size].reshape(target.shape)
                operand = columns[:size].reshape(work.groups, -1, how.lines(rows) * plane)
                starts = how.products(rows)
                _multiply(weights, operand, starts, result, terms[: target.size * is_split])
                if bias is not None:
                    np.add(result, bias, out=result)
                if result is not target:
                    convert(target, result)

    size = work.outputs // work.groups * work.depth * prod(how.taps) * how.block * plane
    return Kernel("conv-unfolded-rows" if is_split else "conv-unfolded", run, layout.size, product_size=size)


def _weights(work: Convolution, request: KernelRequest, is_split: bool) -> Callable[[Array], list[Array]]:
    """Return how to find the matrices [groups, outputs per group, depth] of the matrix products."""

    def matrices(filter: Array) -> list[Array]:
        if not is_split:
            return [filter.reshape(work.groups, work.outputs // work.groups, -1)]
        shape = [w.kernel for w in work.windows]
        by_row = filter.reshape(work.groups, -1, work.depth, *shape)
        per_row = [np.ascontiguousarray(by_row[:, :, :, i]) for i in range(shape[0])]
        return [m.reshape(work.groups, work.outputs // work.groups, -1) for m in per_row]

    constant = request.constants.get(1)
    if constant is None:
        dtype = work.compute_dtype
        return lambda given: matrices(given.astype(dtype, copy=False))
    known = matrices(constant.astype(work.compute_dtype, copy=False))
    return lambda given: known


def _multiply(weights: Sequence[Array], columns: Array, starts: Sequence[int], result: Array, terms: Array) -> None:
    """Sum the products of ``weights`` with the columns that begin at ``starts``."""
    width = result.shape[-1]
    if len(result) == 1:  # a plain matrix product has less to look after than a stack of one
        weights, columns, result = [w[0] for w in weights], columns[0], result[0]
    np.matmul(weights[0], columns[..., starts[0] : starts[0] + width], out=result)
    if len(starts) > 1:
        term = terms.reshape(result.shape)
        for matrix, start in zip(weights[1:], starts[1:], strict=True):
            np.matmul(matrix, columns[..., start : start + width], out=term)
            np.add(result, term, out=result)


# -- depthwise ---------------------------------------------------------------------------------------------------------
def _depthwise(work: Convolution) -> Kernel:
    strides = [w.stride if w.kernel > 1 else 1 for w in work.windows]
    # every axis is split into `stride` interleaved parts of `pitch` elements
    pitches = [-(-max(w.size + w.before + w.after, w.reach) // s) for w, s in zip(work.windows, strides, strict=True)]
    steps = [prod(pitches[i + 1 :]) for i in range(len(pitches))]
    padded = [p * s for p, s in zip(pitches, strides, strict=True)]
    counts = [w.count for w in work.windows]
    # strided axes without taps are thinned out only when storing
    stores = [w.stride if w.kernel == 1 else 1 for w in work.windows]
    reach = [(w.count - 1) * store + 1 for w, store in zip(work.windows, stores, strict=True)]
    length = sum((r - 1) * step for r, step in zip(reach, steps, strict=True)) + 1
    plane = prod(padded)
    block = min(max(PLANE_BYTES // (plane * work.compute_dtype.itemsize), 1), work.channels)
    taps = [
        _depthwise_tap(work.windows, strides, index, steps, plane)
        for index in product(*(range(w.kernel) for w in work.windows))
    ]
    layout = ScratchLayout()
    dtype = work.compute_dtype
    take_padded = layout.take([block, *padded], dtype)
    take_parts = layout.take([block, plane * (max(strides) > 1)], dtype)
    take_sums = layout.take([block, prod(pitches)], dtype)
    take_terms = layout.take([block, prod(pitches)], dtype)
    staging = Staging(work.windows, 1)
    split = [size for pair in zip(pitches, strides, strict=True) for size in pair]
    n = len(padded)
    order = [0, *(2 * i + 2 for i in range(n)), *(2 * i + 1 for i in range(n))]
    kept = (slice(None), *(slice(0, r, store) for r, store in zip(reach, stores, strict=True)))

    def run(inputs: Inputs, outputs: Outputs, scratch: Array) -> None:
        weights = inputs[1].reshape(work.channels, -1).astype(dtype, copy=False)
        bias = _bias(inputs, work)
        xs = inputs[0].reshape(work.batch, work.channels, *(w.size for w in work.windows))
        ys = outputs[0].reshape(work.batch, work.channels, *counts)
        for sample in range(work.batch):
            for start in range(0, work.channels, block):
                channels = slice(start, min(start + block, work.channels))
                size = channels.stop - start
                source = take_padded(scratch)[:size]
                staging.fill(source, xs[sample, channels], 0)
                parts = source.reshape(size, plane)
                if max(strides) > 1:
                    parts = take_parts(scratch)[:size]
                    np.copyto(parts.reshape(size, *strides, *pitches), source.reshape(size, *split).transpose(order))
                sums, terms = take_sums(scratch)[:size], take_terms(scratch)[:size]
                _multiply_add(parts, weights[channels], taps, length, sums, terms)
                result = sums.reshape(size, *pitches)[kept]
                target = ys[sample, channels]
                if bias is None:
                    convert(target, result)
                elif work.is_narrow:
                    np.add(result, bias[channels].reshape(size, *[1] * n), out=result)
                    convert(target, result)
                else:
                    np.add(result, bias[channels].reshape(size, *[1] * n), out=target)

    return Kernel("conv-depthwise", run, layout.size)


def _depthwise_tap(
    windows: Sequence[Window], strides: Sequence[int], index: Sequence[int], steps: Sequence[int], plane: int
) -> int:
    """Return where a tap of the first window lies among the interleaved parts."""
    part, place = 0, 0
    for window, stride, i, step in zip(windows, strides, index, steps, strict=True):
        phase, position = divmod_phase(i * window.dilation, stride)
        part = part * stride + phase
        place += position * step
    return part * (plane // prod(strides)) + place


def _multiply_add(parts: Array, weights: Array, taps: Sequence[int], length: int, sums: Array, terms: Array) -> None:
    """Sum shifted rows of ``parts`` times their weight; only the first ``length`` sums of each row mean anything."""
    all_sums, all_terms = sums.reshape(-1), terms.reshape(-1)
    for number, tap in enumerate(taps):
        target = sums if number == 0 else terms
        np.multiply(parts[:, tap : tap + length], weights[:, number : number + 1], out=target[:, :length])
        if number:
            np.add(all_sums, all_terms, out=all_sums)  # as one row: several times faster than row by row
