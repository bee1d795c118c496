"""Convolution on channels-last data with a channels-last filter (NHWC and HWCN, NDHWC and DHWCN).

The channels of a position lie side by side, so windows unfold by copying runs, and results come out in place:

1. A 1x1 window without stride and padding is a matrix product on the data as they lie.
2. Depthwise: multiply-add of shifted rows. With a stride of 1 along the last axis a row is one run of elements.
3. Everything else unfolds a block of output rows, [positions, taps * channels], and multiplies by [taps * channels, O].

Input that needs padding or widening is staged in scratch, block by block. Groups that are no depthwise ones, and
several results per channel, are left to the reference semantics.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

import numpy as np

from ge.graph.types import DataType, numpy_dtype
from ge.ops.conv import conv_windows, filter_format
from ge.ops.window import Window
from simulator.kernels.conv import COLUMN_BYTES, strided
from simulator.kernels.halves import convert
from simulator.kernels.registry import Array, Inputs, Kernel, KernelRequest, Outputs, ScratchLayout, kernel

_TYPES = (DataType.DT_FLOAT, DataType.DT_FLOAT16, DataType.DT_BF16, DataType.DT_DOUBLE)


@dataclass(frozen=True)
class _Work:
    """What is to be computed: y [n, counts, o] from x [n, sizes, c]."""

    batch: int
    channels: int
    outputs: int
    windows: tuple[Window, ...]
    dtype: np.dtype[np.generic]

    @property
    def compute_dtype(self) -> np.dtype[np.generic]:
        """Type of products and sums."""
        return self.dtype if self.dtype.kind == "f" and self.dtype.itemsize >= 4 else np.dtype(np.float32)

    @property
    def is_narrow(self) -> bool:
        """True when x and y are widened in memory."""
        return self.compute_dtype != self.dtype

    @property
    def counts(self) -> list[int]:
        """Positions per spatial axis."""
        return [w.count for w in self.windows]

    @property
    def sizes(self) -> list[int]:
        """Elements per spatial axis."""
        return [w.size for w in self.windows]

    @property
    def padded_sizes(self) -> list[int]:
        """What the windows touch of the axes behind the first, with padding."""
        return [max(w.size + w.before + w.after, w.reach) for w in self.windows[1:]]

    @property
    def is_staged(self) -> bool:
        """True when the data cannot be read as they lie."""
        return self.is_narrow or any(w.before or w.after or w.reach > w.size for w in self.windows)


@kernel("Conv2D", "Conv3D", "DepthwiseConv2D", dtypes=_TYPES)
def build_conv_channels_last(request: KernelRequest) -> Kernel | None:
    """Bind a convolution of channels-last data."""
    op, form = request.op, request.op.data_format
    last = form[1:-1]
    if form.startswith("NC") or filter_format(op, form) != f"{last}CN" or request.dtype(1) != request.dtype(0):
        return None
    x, weights, y = request.shape(0), request.shape(1), tuple(request.outputs[0].shape)
    windows = tuple(conv_windows(op, x[1:-1], weights[:-2]))
    if tuple(w.count for w in windows) != y[1:-1] or not prod(x) or not prod(y) or len(x) != len(form):
        return None
    dtype = numpy_dtype(request.dtype(0))
    work = _Work(x[0], x[-1], y[-1], windows, dtype)
    if request.type == "DepthwiseConv2D":
        return _depthwise(work, request) if weights[-1] == 1 else None
    if op.groups == weights[-1] == x[-1] and weights[-2] == 1:
        return _depthwise(work, request)
    if op.groups != 1:
        return None
    return _pointwise(work) if _is_pointwise(work) else _unfolding(work, request)


def _is_pointwise(work: _Work) -> bool:
    return not work.is_staged and all(w.kernel == 1 and w.size == w.count for w in work.windows)


def _bias(inputs: Sequence[Array | None], work: _Work) -> Array | None:
    bias = inputs[2] if len(inputs) > 2 else None
    return None if bias is None else bias.astype(work.compute_dtype, copy=False).reshape(-1)


def _pointwise(work: _Work) -> Kernel:
    def run(inputs: Inputs, outputs: Outputs, scratch: Array) -> None:
        y = outputs[0].reshape(-1, work.outputs)
        np.matmul(inputs[0].reshape(-1, work.channels), inputs[1].reshape(work.channels, work.outputs), out=y)
        bias = _bias(inputs, work)
        if bias is not None:
            np.add(y, bias, out=y)

    size = work.channels * work.outputs * work.batch * prod(work.counts)
    return Kernel("conv-pointwise-channels-last", run, product_size=size)


# -- blocks of rows ----------------------------------------------------------------------------------------------------
class _Rows:
    """Input rows of a block of output rows: as they lie, or staged with padding in the compute type."""

    def __init__(self, work: _Work, block: int, layout: ScratchLayout) -> None:
        self.work = work
        self.block = block
        self.rows = work.windows[0]
        self.shape = (*work.padded_sizes, work.channels)
        self._take = layout.take([self.needed(block) * work.is_staged, *self.shape], work.compute_dtype)

    def needed(self, rows: int) -> int:
        """Padded input rows that a block of output rows reads."""
        return (rows - 1) * self.rows.stride + self.rows.extent

    def blocks(self) -> list[tuple[int, int]]:
        """First output row and number of output rows of each block."""
        return [(r, min(self.block, self.rows.count - r)) for r in range(0, self.rows.count, self.block)]

    def read(self, x: Array, row: int, rows: int, scratch: Array) -> Array:
        """Return the input rows for ``rows`` output rows from ``row`` on; ``x`` is one sample."""
        first, count = row * self.rows.stride, self.needed(rows)
        if not self.work.is_staged:
            return x[first : first + count]
        staged = self._take(scratch)[:count]
        staged.fill(0)
        start = max(self.rows.before - first, 0)
        stop = min(self.rows.before - first + self.rows.size, count)
        if start < stop:
            inside = tuple(slice(w.before, w.before + w.size) for w in self.work.windows[1:])
            source = x[start + first - self.rows.before : stop + first - self.rows.before]
            convert(staged[(slice(start, stop), *inside)], source)
        return staged


def _rows_per_block(work: _Work, bytes_per_row: int) -> int:
    """Return the output rows per block: as many as fit, in blocks of nearly equal size."""
    count = work.windows[0].count
    rows = max(min(COLUMN_BYTES // max(bytes_per_row, 1), count), 1)
    return -(-count // -(-count // rows))


def _unfolding(work: _Work, request: KernelRequest) -> Kernel:
    taps = [w.kernel for w in work.windows]
    depth, plane = prod(taps) * work.channels, prod(work.counts[1:])
    block = _rows_per_block(work, depth * plane * work.compute_dtype.itemsize)
    layout = ScratchLayout()
    rows_of = _Rows(work, block, layout)
    take_columns = layout.take([block * plane, depth], work.compute_dtype)
    take_sums = layout.take([block * plane * work.is_narrow, work.outputs], work.compute_dtype)
    weights_of = _constant(request, lambda w: w.reshape(depth, work.outputs).astype(work.compute_dtype, copy=False))

    def run(inputs: Inputs, outputs: Outputs, scratch: Array) -> None:
        weights, bias = weights_of(inputs[1]), _bias(inputs, work)
        xs = inputs[0].reshape(work.batch, *work.sizes, work.channels)
        ys = outputs[0].reshape(work.batch, work.windows[0].count * plane, work.outputs)
        columns, sums = take_columns(scratch), take_sums(scratch)
        for sample in range(work.batch):
            for row, rows in rows_of.blocks():
                operand = columns[: rows * plane]
                _unfold(rows_of.read(xs[sample], row, rows, scratch), work, rows, operand)
                target = ys[sample, row * plane : (row + rows) * plane]
                result = sums[: len(target)] if work.is_narrow else target
                np.matmul(operand, weights, out=result)
                if bias is not None:
                    np.add(result, bias, out=result)
                if work.is_narrow:
                    convert(target, result)

    size = block * plane * depth * work.outputs
    return Kernel("conv-unfolded-channels-last", run, layout.size, product_size=size)


def _unfold(source: Array, work: _Work, rows: int, columns: Array) -> None:
    """Fill ``columns`` [positions, taps * channels] from input rows [rows, inner sizes, channels]."""
    counts, taps = [rows, *work.counts[1:]], [w.kernel for w in work.windows]
    steps = [stride // source.itemsize for stride in source.strides[:-1]]
    target = columns.reshape(*counts, *taps, work.channels)
    count_steps = [w.stride * s for w, s in zip(work.windows, steps, strict=True)]
    n = len(taps)
    if work.windows[-1].dilation == 1:  # the taps of a row lie side by side: one run
        inner = taps[-1] * work.channels
        for index in product(*map(range, taps[:-1])):
            start = sum(i * w.dilation * s for i, w, s in zip(index, work.windows, steps, strict=False))
            view = strided(source, start, [*counts, inner], [*count_steps, 1])
            np.copyto(target[(slice(None),) * n + index].reshape(*counts, inner), view)
        return
    for index in product(*map(range, taps)):
        start = sum(i * w.dilation * s for i, w, s in zip(index, work.windows, steps, strict=True))
        view = strided(source, start, [*counts, work.channels], [*count_steps, 1])
        np.copyto(target[(slice(None),) * n + index], view)


def _constant(request: KernelRequest, prepare: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """Return how to find the prepared filter: once and for all where it is a constant."""
    constant = request.constants.get(1)
    if constant is None:
        return prepare
    known = prepare(constant)
    return lambda given: known


# -- depthwise ---------------------------------------------------------------------------------------------------------
def _depthwise(work: _Work, request: KernelRequest) -> Kernel:
    taps = [w.kernel for w in work.windows]
    width = work.counts[-1]
    plane = prod(work.counts[1:])
    block = _rows_per_block(work, plane * work.channels * work.compute_dtype.itemsize * 4)
    layout = ScratchLayout()
    rows_of = _Rows(work, block, layout)
    take_sums = layout.take([block * plane * work.is_narrow, work.channels], work.compute_dtype)
    take_terms = layout.take([block * plane, work.channels], work.compute_dtype)
    is_run = work.windows[-1].stride == 1

    def prepared(weights: Array) -> Array:
        """Return [taps, C], repeated along the last axis where a row of outputs is one run of inputs."""
        by_tap = weights.reshape(prod(taps), work.channels).astype(work.compute_dtype, copy=False)
        return np.tile(by_tap, (1, width)) if is_run else by_tap

    weights_of = _constant(request, prepared)

    def run(inputs: Inputs, outputs: Outputs, scratch: Array) -> None:
        weights, bias = weights_of(inputs[1]), _bias(inputs, work)
        xs = inputs[0].reshape(work.batch, *work.sizes, work.channels)
        ys = outputs[0].reshape(work.batch, work.windows[0].count * plane, work.channels)
        sums, terms = take_sums(scratch), take_terms(scratch)
        for sample in range(work.batch):
            for row, rows in rows_of.blocks():
                source = rows_of.read(xs[sample], row, rows, scratch)
                target = ys[sample, row * plane : (row + rows) * plane]
                result = sums[: len(target)] if work.is_narrow else target
                _multiply_add(source, weights, work, rows, result, terms[: len(target)])
                if bias is not None:
                    np.add(result, bias, out=result)
                if work.is_narrow:
                    convert(target, result)

    return Kernel("conv-depthwise-channels-last", run, layout.size)


def _multiply_add(source: Array, weights: Array, work: _Work, rows: int, sums: Array, terms: Array) -> None:
    counts = [rows, *work.counts[1:]]
    steps = [stride // source.itemsize for stride in source.strides[:-1]]
    count_steps = [w.stride * s for w, s in zip(work.windows, steps, strict=True)]
    shape, strides = [*counts, work.channels], [*count_steps, 1]
    if weights.shape[1] != work.channels:  # rows of outputs are runs
        shape, strides = [*counts[:-1], counts[-1] * work.channels], [*count_steps[:-1], 1]
    for number, index in enumerate(product(*(range(w.kernel) for w in work.windows))):
        start = sum(i * w.dilation * s for i, w, s in zip(index, work.windows, steps, strict=True))
        view = strided(source, start, shape, strides)
        target = sums if number == 0 else terms
        np.multiply(view, weights[number], out=target.reshape(shape))
        if number:
            np.add(sums, terms, out=sums)
