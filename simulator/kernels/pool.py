"""Pooling, one axis after the other, by combining shifted rows.

Works on [planes, space...] for channels-first and on [samples, space..., channels] for channels-last data, a block of
planes or samples at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np

from ge.graph.types import DataType, numpy_dtype
from ge.ops.layout import channel_axis, shape_channels_first
from ge.ops.pool import lowest, pool_windows, tap_counts
from ge.ops.window import Window
from simulator.kernels.blocks import compute_dtype
from simulator.kernels.halves import convert
from simulator.kernels.registry import FLOATS, Array, Inputs, Kernel, KernelRequest, Outputs, ScratchLayout, kernel
from simulator.kernels.taps import clipped_taps

BLOCK_BYTES = 1 << 19
"""Most bytes of input per block, unless one plane alone is larger."""
MAX_WASTE = 2
"""Largest product of strides for which all positions are computed, wanted or not."""
MAX_FLAT_TAPS = 16
"""Longest window that is combined in flat rows."""
_CHANNELS_FIRST = ("NCHW", "NCDHW")
_CHANNELS_LAST = ("NHWC", "NDHWC")
_PADDING = {"MaxPoolV3": "padding_mode", "AvgPoolV2": "padding_mode"}


@kernel("MaxPool", "MaxPoolV3", "MaxPool3D", dtypes=FLOATS | {DataType.DT_INT8, DataType.DT_UINT8, DataType.DT_INT32})
def build_max_pool(request: KernelRequest) -> Kernel | None:
    """Bind a maximum over windows."""
    windows = _windows(request)
    return None if windows is None else _over_planes(maximum_over(request, windows), request)


@kernel("AvgPool", "AvgPoolV2", "AvgPool3D", dtypes=FLOATS)
def build_average_pool(request: KernelRequest) -> Kernel | None:
    """Bind a mean over windows, with or without the padding, or a sum divided by a fixed number."""
    windows = _windows(request)
    return None if windows is None else _over_planes(mean_over(request, windows), request)


@kernel("GlobalAveragePool", dtypes=FLOATS)
def build_global_average(request: KernelRequest) -> Kernel | None:
    """Bind the mean over all spatial axes."""
    shape = request.shape()
    if len(shape) < 3 or not prod(shape):
        return None
    axis = channel_axis(request.op.get("_x_data_format", "NCHW"), len(shape))
    what = global_mean(request, shape[2:] if axis == 1 else shape[1:-1])
    return _over_planes(what, request, is_channels_last=axis != 1)


def _windows(request: KernelRequest) -> list[Window] | None:
    form, shape = request.op.data_format, request.shape()
    if form not in _CHANNELS_FIRST + _CHANNELS_LAST or not prod(shape) or not prod(request.outputs[0].shape):
        return None
    return windows_of(request, shape_channels_first(shape, form)[2:])


def windows_of(request: KernelRequest, sizes: Sequence[int]) -> list[Window]:
    """Return the windows of a pooling operator over its spatial axes, whatever holds them."""
    ceil = bool(getattr(request.op, "ceil_mode", 0))
    return pool_windows(request.op, sizes, attribute=_PADDING.get(request.type, "padding"), ceil=ceil)


def maximum_over(request: KernelRequest, windows: Sequence[Window]) -> Pooling:
    """Return the maximum over windows; where it is taken is still open."""
    computed = compute_dtype(request.dtype())
    return Pooling("max-pool", windows, numpy_dtype(request.dtype()), computed, np.maximum, lowest(computed))


def mean_over(request: KernelRequest, windows: Sequence[Window]) -> Pooling:
    """Return the mean (or sum) over windows that an average pool takes; where it is taken is still open."""
    op, computed = request.op, compute_dtype(request.dtype())
    what = Pooling("average-pool", windows, numpy_dtype(request.dtype()), computed, np.add, 0)
    divisor = getattr(op, "divisor_override", 0)
    if divisor:
        return replace(what, name="sum-pool", divisors=np.full([1] * (len(windows) + 1), divisor, computed))
    if request.type == "AvgPool3D":
        counts_padding = op.count_include_pad
    else:
        counts_padding = request.type == "AvgPoolV2" and not op.exclusive
    counts = np.ones([1] * (len(windows) + 1), computed)
    for axis, window in enumerate(windows, start=1):
        per_axis = tap_counts(window, counts_padding).astype(computed)
        per_axis = per_axis[:1] if (per_axis == per_axis[0]).all() else per_axis
        counts = counts * per_axis.reshape([-1 if i == axis else 1 for i in range(len(windows) + 1)])
    return replace(what, divisors=counts)


def global_mean(request: KernelRequest, sizes: Sequence[int]) -> Pooling:
    """Return the mean over whole spatial axes; where it is taken is still open."""
    computed = compute_dtype(request.dtype())
    windows = [Window(size, size, 1, 1, 0, 0, 1) for size in sizes]
    counts = np.full([1] * (len(sizes) + 1), prod(sizes), computed)
    return Pooling("global-average", windows, numpy_dtype(request.dtype()), computed, np.add, 0, counts)


class _AxisReduction:
    """Combine the windows along one axis: ``count`` results from ``size`` elements."""

    def __init__(self, axis: int, window: Window, ufunc: np.ufunc, fill: float) -> None:
        self.axis, self.window, self.ufunc, self.fill = axis, window, ufunc, fill
        # those that reach every window come first: they need no neutral element to begin with
        self.taps = sorted(clipped_taps(window), key=lambda tap: -tap.reach)
        self.n_whole = sum(tap.reach == window.count for tap in self.taps)

    def __call__(self, x: Array, out: Array) -> None:
        lead = (slice(None),) * self.axis
        window = self.window
        if window.count == 1 and window.dilation == 1 and self.taps:
            elements = slice(self.taps[0].elements.start, self.taps[-1].elements.stop)
            self.ufunc.reduce(x[(*lead, elements)], axis=self.axis, out=out, keepdims=True)
            return
        rest = self.taps
        if self.n_whole >= 2:
            first, second, *rest = self.taps
            self.ufunc(x[(*lead, first.elements)], x[(*lead, second.elements)], out=out)
        elif self.n_whole == 1:
            first, *rest = self.taps
            np.copyto(out, x[(*lead, first.elements)])
        else:
            out.fill(self.fill)
        for tap in rest:
            target = out[(*lead, tap.windows)]
            self.ufunc(target, x[(*lead, tap.elements)], out=target)


@dataclass(frozen=True)
class Pooling:
    """Windows of [planes, sizes..., tail...] combined by ``ufunc`` (identity ``fill``) and divided by ``divisors``.

    ``divisors`` are [1, counts...] with an axis more per axis of the tail.
    """

    name: str
    windows: Sequence[Window]
    dtype: np.dtype[Any]
    computed: np.dtype[Any]
    ufunc: np.ufunc
    fill: float
    divisors: Array | None = None
    planes: int = 1
    tail: tuple[int, ...] = ()
    """Channels, where they come last."""

    @property
    def is_narrow(self) -> bool:
        return self.computed != self.dtype

    @property
    def sizes(self) -> list[int]:
        return [w.size for w in self.windows]

    @property
    def counts(self) -> list[int]:
        return [w.count for w in self.windows]

    def block(self, plane: int) -> int:
        """Return how many planes of so many elements make a block."""
        return min(max(BLOCK_BYTES // (plane * prod(self.tail) * self.computed.itemsize), 1), self.planes)


def _over_planes(what: Pooling, request: KernelRequest, *, is_channels_last: bool | None = None) -> Kernel:
    """Take a pool over the planes of plain data."""
    shape = request.shape()
    if is_channels_last is None:
        is_channels_last = request.op.data_format in _CHANNELS_LAST
    if not is_channels_last:
        return bind_pooling(replace(what, planes=shape[0] * shape[1]))
    divisors = None if what.divisors is None else what.divisors[..., np.newaxis]
    return bind_pooling(replace(what, planes=shape[0], tail=(shape[-1],), divisors=divisors))


def bind_pooling(what: Pooling) -> Kernel:
    """Return the faster of both ways for a pool that says where it is taken."""
    is_dense = prod(w.stride for w in what.windows) <= MAX_WASTE and all(
        w.kernel <= MAX_FLAT_TAPS for w in what.windows
    )
    if is_dense and all(w.count > 1 or w.kernel == 1 for w in what.windows) and any(w.kernel > 1 for w in what.windows):
        return _flat(what)
    return _by_axis(what)


def _by_axis(what: Pooling) -> Kernel:
    """Way 1: results of one axis after the other, each as small as the strides make it."""
    steps = [
        _AxisReduction(axis, window, what.ufunc, what.fill)
        for axis, window in enumerate(what.windows, start=1)
        if (window.kernel, window.stride, window.before, window.after, window.dilation) != (1, 1, 0, 0, 1)
        or window.count != window.size
    ]
    if not steps:
        steps = [_AxisReduction(1, what.windows[0], what.ufunc, what.fill)]
    block = what.block(prod(what.sizes))
    layout = ScratchLayout()
    dims = [block, *what.sizes, *what.tail]
    widened = layout.take(list(dims) if what.is_narrow else [0], what.computed)
    between = []
    for number, step in enumerate(steps):
        dims[step.axis] = step.window.count
        needed = number < len(steps) - 1 or what.is_narrow
        between.append(layout.take(list(dims) if needed else [0], what.computed))

    def run(inputs: Inputs, outputs: Outputs, scratch: Array) -> None:
        x = inputs[0].reshape(what.planes, *what.sizes, *what.tail)
        y = outputs[0].reshape(what.planes, *what.counts, *what.tail)
        buffers = [take(scratch) for take in between]
        for start in range(0, what.planes, block):
            stop = min(start + block, what.planes)
            source, target = x[start:stop], y[start:stop]
            if what.is_narrow:
                wide = widened(scratch)[: stop - start]
                convert(wide, source)
                source = wide
            for number, step in enumerate(steps):
                is_last = number == len(steps) - 1
                result = target if is_last and not what.is_narrow else buffers[number][: stop - start]
                step(source, result)
                source = result
            if what.divisors is not None:
                np.divide(source, what.divisors, out=source)
            if what.is_narrow:
                convert(target, source)

    return Kernel(what.name, run, layout.size)


def _flat(what: Pooling) -> Kernel:
    """Way 2: padded planes as one long row, combined with itself shifted; what is wanted is picked at the end.

    Long rows run several times faster than short ones, which outweighs positions that nobody wants.
    """
    padded = [max(w.size + w.before, w.reach) for w in what.windows]
    inside = (slice(None), *(slice(w.before, w.before + w.size) for w in what.windows))
    wanted = (slice(None), *(slice(0, (w.count - 1) * w.stride + 1, w.stride) for w in what.windows))
    is_padded = padded != what.sizes
    block = what.block(prod(padded))
    layout = ScratchLayout()
    dims = [block, *padded, *what.tail]
    rows = [layout.take(list(dims), what.computed) for _ in range(2)]
    pitches = [prod(dims[axis + 2 :]) for axis in range(len(padded))]
    shifts = [
        [tap * window.dilation * pitch for tap in _shifts(window.kernel, what.ufunc is np.maximum)]
        for window, pitch in zip(what.windows, pitches, strict=True)
    ]

    def run(inputs: Inputs, outputs: Outputs, scratch: Array) -> None:
        x = inputs[0].reshape(what.planes, *what.sizes, *what.tail)
        y = outputs[0].reshape(what.planes, *what.counts, *what.tail)
        for start in range(0, what.planes, block):
            stop = min(start + block, what.planes)
            first, second = (take(scratch)[: stop - start] for take in rows)
            if is_padded:
                first.fill(what.fill)
            convert(first[inside], x[start:stop])
            current, other = first, second
            length = first.size
            for along in shifts:
                if what.ufunc is np.maximum:
                    current, other, length = _maxima(current, other, length, along)
                else:
                    current, other, length = _sums(current, other, length, along)
            result = current[wanted]
            if what.divisors is None:
                convert(y[start:stop], result)
            elif what.is_narrow:
                np.divide(result, what.divisors, out=result)
                convert(y[start:stop], result)
            else:
                np.divide(result, what.divisors, out=y[start:stop])

    return Kernel(what.name, run, layout.size)


def _shifts(taps: int, is_idempotent: bool) -> list[int]:
    """Return how far to shift, step by step, to combine so many neighbours.

    Sums take each neighbour once. Maxima combine what is already combined: 1, 2, 4, ... and the rest overlapping.
    """
    if not is_idempotent:
        return list(range(1, taps))
    steps, width = [], 1
    while width < taps:
        steps.append(min(width, taps - width))
        width += steps[-1]
    return steps


def _maxima(current: Array, other: Array, length: int, shifts: Sequence[int]) -> tuple[Array, Array, int]:
    """Combine ``current`` with itself, shifted further with every step; return result, spare buffer and length."""
    for shift in shifts:
        length -= shift
        row = current.reshape(-1)
        np.maximum(row[:length], row[shift : shift + length], out=other.reshape(-1)[:length])
        current, other = other, current
    return current, other, length


def _sums(current: Array, other: Array, length: int, shifts: Sequence[int]) -> tuple[Array, Array, int]:
    """Add up ``current`` and its shifted copies; return result, spare buffer and length."""
    if not shifts:
        return current, other, length
    length -= shifts[-1]
    row, total = current.reshape(-1), other.reshape(-1)[:length]
    np.add(row[:length], row[shifts[0] : shifts[0] + length], out=total)
    for shift in shifts[1:]:
        np.add(total, row[shift : shift + length], out=total)
    return other, current, length
