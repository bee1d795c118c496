"""Pooling, one axis after the other: shifted rows are combined, so that nothing is padded and nothing copied twice.

Works on [planes, space...] for channels-first and on [samples, space..., channels] for channels-last data, a block of
planes or samples at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from ge.graph.types import DataType, numpy_dtype
from ge.ops.layout import channel_axis, shape_channels_first
from ge.ops.pool import lowest, pool_windows, tap_counts
from ge.ops.window import Window
from simulator.kernels.blocks import compute_dtype
from simulator.kernels.registry import FLOATS, Array, Inputs, Kernel, KernelRequest, Outputs, ScratchLayout, kernel
from simulator.kernels.taps import clipped_taps

BLOCK_BYTES = 1 << 19
"""Most bytes of input per block, unless one plane alone is larger."""
_CHANNELS_FIRST = ("NCHW", "NCDHW")
_CHANNELS_LAST = ("NHWC", "NDHWC")
_PADDING = {"MaxPoolV3": "padding_mode", "AvgPoolV2": "padding_mode"}


@kernel("MaxPool", "MaxPoolV3", "MaxPool3D", dtypes=FLOATS | {DataType.DT_INT8, DataType.DT_UINT8, DataType.DT_INT32})
def build_max_pool(request: KernelRequest) -> Kernel | None:
    """Bind a maximum over windows."""
    windows = _windows(request)
    if windows is None:
        return None
    dtype = compute_dtype(request.dtype())
    return _pooling("max-pool", request, windows, np.maximum, lowest(dtype), None)


@kernel("AvgPool", "AvgPoolV2", "AvgPool3D", dtypes=FLOATS)
def build_average_pool(request: KernelRequest) -> Kernel | None:
    """Bind a mean over windows, with or without the padding, or a sum divided by a fixed number."""
    windows = _windows(request)
    if windows is None:
        return None
    op, dtype = request.op, compute_dtype(request.dtype())
    divisor = getattr(op, "divisor_override", 0)
    if divisor:
        return _pooling("sum-pool", request, windows, np.add, 0, np.full([1] * (len(windows) + 1), divisor, dtype))
    if request.type == "AvgPool3D":
        counts_padding = op.count_include_pad
    else:
        counts_padding = request.type == "AvgPoolV2" and not op.exclusive
    counts = np.ones([1] * (len(windows) + 1), dtype)
    for axis, window in enumerate(windows, start=1):
        per_axis = tap_counts(window, counts_padding).astype(dtype)
        per_axis = per_axis[:1] if (per_axis == per_axis[0]).all() else per_axis
        counts = counts * per_axis.reshape([-1 if i == axis else 1 for i in range(len(windows) + 1)])
    return _pooling("average-pool", request, windows, np.add, 0, counts)


@kernel("GlobalAveragePool", dtypes=FLOATS)
def build_global_average(request: KernelRequest) -> Kernel | None:
    """Bind the mean over all spatial axes."""
    shape = request.shape()
    if len(shape) < 3 or not prod(shape):
        return None
    axis = channel_axis(request.op.get("_x_data_format", "NCHW"), len(shape))
    sizes = shape[2:] if axis == 1 else shape[1:-1]
    windows = [Window(size, size, 1, 1, 0, 0, 1) for size in sizes]
    counts = np.full([1] * (len(sizes) + 1), prod(sizes), compute_dtype(request.dtype()))
    return _pooling("global-average", request, windows, np.add, 0, counts, is_channels_last=axis != 1)


def _windows(request: KernelRequest) -> list[Window] | None:
    op, form, shape = request.op, request.op.data_format, request.shape()
    if form not in _CHANNELS_FIRST + _CHANNELS_LAST or not prod(shape) or not prod(request.outputs[0].shape):
        return None
    sizes = shape_channels_first(shape, form)[2:]
    ceil = bool(getattr(op, "ceil_mode", 0))
    return pool_windows(op, sizes, attribute=_PADDING.get(request.type, "padding"), ceil=ceil)


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


def _pooling(
    name: str,
    request: KernelRequest,
    windows: Sequence[Window],
    ufunc: np.ufunc,
    fill: float,
    divisors: Array | None,
    *,
    is_channels_last: bool | None = None,
) -> Kernel:
    """Bind windows combined by ``ufunc`` (identity ``fill``) and divided by ``divisors`` [1, counts...]."""
    shape, dtype = request.shape(), numpy_dtype(request.dtype())
    if is_channels_last is None:
        is_channels_last = request.op.data_format in _CHANNELS_LAST
    planes = shape[0] if is_channels_last else shape[0] * shape[1]
    tail = [shape[-1]] if is_channels_last else []
    sizes, counts = [w.size for w in windows], [w.count for w in windows]
    if divisors is not None and is_channels_last:
        divisors = divisors[..., np.newaxis]
    steps = [
        _AxisReduction(axis, window, ufunc, fill)
        for axis, window in enumerate(windows, start=1)
        if (window.kernel, window.stride, window.before, window.after, window.dilation) != (1, 1, 0, 0, 1)
        or window.count != window.size
    ]
    if not steps:
        steps = [_AxisReduction(1, windows[0], ufunc, fill)]
    computed = compute_dtype(request.dtype())
    is_narrow = computed != dtype
    block = min(max(BLOCK_BYTES // (prod(sizes) * prod(tail) * computed.itemsize), 1), planes)
    layout = ScratchLayout()
    widened = layout.take([block, *sizes, *tail][: None if is_narrow else 0], computed)
    between, dims = [], [block, *sizes, *tail]
    for number, step in enumerate(steps):
        dims[step.axis] = step.window.count
        needed = number < len(steps) - 1 or is_narrow
        between.append(layout.take(list(dims) if needed else [0], computed))

    def run(inputs: Inputs, outputs: Outputs, scratch: Array) -> None:
        x = inputs[0].reshape(planes, *sizes, *tail)
        y = outputs[0].reshape(planes, *counts, *tail)
        buffers = [take(scratch) for take in between]
        for start in range(0, planes, block):
            stop = min(start + block, planes)
            source, target = x[start:stop], y[start:stop]
            if is_narrow:
                wide = widened(scratch)[: stop - start]
                np.copyto(wide, source, casting="unsafe")
                source = wide
            for number, step in enumerate(steps):
                is_last = number == len(steps) - 1
                result = target if is_last and not is_narrow else buffers[number][: stop - start]
                step(source, result)
                source = result
            if divisors is not None:
                np.divide(source, divisors, out=source)
            if is_narrow:
                np.copyto(target, source, casting="unsafe")

    return Kernel(name, run, layout.size)
