"""Pooling.

Attributes of the computation besides the signatures (padding: see ge/ops/window.py):
  ``_x_dilations``    spatial dilations (ONNX) of MaxPoolV3, AvgPoolV2, AvgPool3D
  ``_x_auto_pad``     ONNX's auto_pad, where SAME_LOWER must be told from SAME_UPPER
  ``_x_data_format``  GlobalAveragePool, GlobalLpPool: NHWC, NDHWC for channels-last data

``ceil_mode`` follows ONNX: a last window may hang over the end, but not start behind the input and its leading padding.
A sum pool (ONNX LpPool) is an average pool with ``divisor_override = 1``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ge.ops.layout import (
    channel_axis,
    channels_first,
    channels_first_name,
    check_format,
    from_channels_first,
    shape_channels_first,
    shape_in_format,
    spatial_values,
)
from ge.ops.norm import lp_norm
from ge.ops.registry import Array, InferContext, OutputSpec, operator
from ge.ops.window import Window, pad_for, padding_mode, slide_all


# -- numpy meaning -------------------------------------------------------------------------------------------------
def _reduce_axis(x: Array, axis: int, window: Window, function: Any) -> Array:
    def tap(index: int) -> Array:
        return x[(slice(None),) * axis + (window.taps(index),)]

    result = tap(0).copy()
    for index in range(1, window.kernel):
        function(result, tap(index), out=result)
    return result


def _reduce_windows(x: Array, windows: Sequence[Window], function: Any, fill: float) -> Array:
    """Reduce every window of ``x`` (N, C, space), one axis after the other."""
    x = pad_for(x, windows, fill)
    for axis in range(len(windows) + 1, 1, -1):
        x = _reduce_axis(x, axis, windows[axis - 2], function)
    return x


def lowest(dtype: np.dtype[Any]) -> float:
    """Return the identity of max for an element type."""
    return int(np.iinfo(dtype).min) if dtype.kind in "iu" else -np.inf


def max_pool(x: Array, windows: Sequence[Window]) -> Array:
    """Return the maximum of every window of ``x`` (N, C, space)."""
    return _reduce_windows(x, windows, np.maximum, lowest(x.dtype))


def average_pool(x: Array, windows: Sequence[Window], counts_padding: bool, divisor: int = 0) -> Any:
    """Return the mean of every window of ``x`` (N, C, space); a ``divisor`` other than 0 replaces the element count."""
    sums = _reduce_windows(x if x.dtype.kind == "f" else x.astype(np.float64), windows, np.add, 0)
    if divisor:
        return sums / sums.dtype.type(divisor)
    for axis, window in enumerate(windows):
        counts = tap_counts(window, counts_padding).astype(sums.dtype)
        sums /= counts.reshape(-1, *[1] * (len(windows) - 1 - axis))
    return sums


def tap_counts(window: Window, counts_padding: bool) -> Any:
    """Return how many elements each position of a window averages: those of the input, or also of its padding."""
    starts = np.arange(window.count) * window.stride
    positions = starts[:, None] + np.arange(window.kernel) * window.dilation
    first = 0 if counts_padding else window.before
    last = window.before + window.size + (window.after if counts_padding else 0)
    return np.count_nonzero((positions >= first) & (positions < last), axis=1)


def pool_windows(op: Any, sizes: Sequence[int], *, attribute: str, ceil: bool = False) -> list[Window]:
    """Return the windows of a pooling operator over the spatial ``sizes``. Raises ``Misfit``."""
    form, n = op.data_format, len(sizes)
    if getattr(op, "global_pooling", False):
        return slide_all(sizes, sizes, [1] * n, [1] * n, [0] * 2 * n, "EXPLICIT")
    dilations = op.get("_x_dilations", getattr(op, "dilation", [1]))
    return slide_all(
        sizes,
        spatial_values(op.ksize, form),
        spatial_values(op.strides, form),
        spatial_values(dilations, form),
        getattr(op, "pads", [0] * 2 * n),
        padding_mode(op, attribute),
        ceil,
    )


# -- inference -----------------------------------------------------------------------------------------------------
def _infer_pool(n_spatial: int, attribute: str) -> Callable[[InferContext], Sequence[OutputSpec]]:
    """One output; ``n_spatial`` spatial axes; ``attribute`` names how the padding is chosen."""

    def infer(ctx: InferContext) -> Sequence[OutputSpec]:
        rank = n_spatial + 2
        form = check_format(ctx, ctx.op.data_format, channels_first_name(rank))
        shape = ctx.shape("x")
        if shape.is_unknown_rank():
            return [([-1] * rank, ctx.dtype("x"))]
        if len(shape) != rank:
            raise ctx.fail(f"x has shape {shape}, but data_format {form} needs rank {rank}", value="x")
        dims = shape_channels_first(shape, form)
        windows = pool_windows(ctx.op, dims[2:], attribute=attribute, ceil=bool(getattr(ctx.op, "ceil_mode", 0)))
        return [(shape_in_format([*dims[:2], *(w.count for w in windows)], form), ctx.dtype("x"))]

    return infer


# -- operators -----------------------------------------------------------------------------------------------------
def _max(op: Any, x: Array, attribute: str) -> Array:
    x = channels_first(x, op.data_format)
    ceil = bool(getattr(op, "ceil_mode", 0))
    windows = pool_windows(op, x.shape[2:], attribute=attribute, ceil=ceil)
    return from_channels_first(max_pool(x, windows), op.data_format)


def _average(op: Any, x: Array, attribute: str, counts_padding: bool) -> Array:
    x = channels_first(x, op.data_format)
    ceil = bool(getattr(op, "ceil_mode", 0))
    windows = pool_windows(op, x.shape[2:], attribute=attribute, ceil=ceil)
    divisor = getattr(op, "divisor_override", 0)
    return from_channels_first(average_pool(x, windows, counts_padding, divisor), op.data_format)


@operator("MaxPool(x) [ksize:I! strides:I! padding:s! data_format:s=NHWC]", infer=_infer_pool(2, "padding"))
def max_pool_2d(op: Any, x: Array) -> Array:
    return _max(op, x, "padding")


@operator(
    "MaxPoolV3(x) [ksize:I! strides:I! padding_mode:s=CALCULATED pads:I=[0]*4 data_format:s=NCHW global_pooling:b=F "
    "ceil_mode:b=F]",
    infer=_infer_pool(2, "padding_mode"),
)
def max_pool_v3(op: Any, x: Array) -> Array:
    return _max(op, x, "padding_mode")


@operator(
    "MaxPool3D(x) [ksize:I! strides:I! padding:s! pads:I=[0]*6 dilation:I=[1]*5 ceil_mode:i=0 data_format:s=NDHWC]",
    infer=_infer_pool(3, "padding"),
)
def max_pool_3d(op: Any, x: Array) -> Array:
    return _max(op, x, "padding")


@operator("AvgPool(x) [ksize:I! strides:I! padding:s! data_format:s=NHWC]", infer=_infer_pool(2, "padding"))
def avg_pool(op: Any, x: Array) -> Array:
    return _average(op, x, "padding", counts_padding=False)


@operator(
    "AvgPoolV2(x) [ksize:I! strides:I! padding_mode:s=CALCULATED pads:I=[0]*4 data_format:s=NCHW global_pooling:b=F "
    "ceil_mode:b=F exclusive:b=T divisor_override:i=0]",
    infer=_infer_pool(2, "padding_mode"),
)
def avg_pool_v2(op: Any, x: Array) -> Array:
    return _average(op, x, "padding_mode", counts_padding=not op.exclusive)


@operator(
    "AvgPool3D(x) [ksize:I! strides:I! pads:I! ceil_mode:b=F count_include_pad:b=T divisor_override:i=0 "
    "data_format:s=NDHWC]",
    infer=_infer_pool(3, "padding"),
)
def avg_pool_3d(op: Any, x: Array) -> Array:
    return _average(op, x, "padding", counts_padding=op.count_include_pad)


def _space_of(op: Any, rank: int) -> tuple[int, ...]:
    channels = channel_axis(op.get("_x_data_format", "NCHW"), rank)
    return tuple(axis for axis in range(1, rank) if axis != channels)


def _infer_global(ctx: InferContext) -> Sequence[OutputSpec]:
    shape = ctx.shape("x")
    if shape.is_unknown_rank():
        return [(shape, ctx.dtype("x"))]
    if len(shape) < 2:
        raise ctx.fail(f"x has shape {shape}, but needs a batch and a channel axis", value="x")
    space = _space_of(ctx.op, len(shape))
    return [([1 if axis in space else dim for axis, dim in enumerate(shape)], ctx.dtype("x"))]


@operator("GlobalAveragePool(x)", infer=_infer_global)
def global_average_pool(op: Any, x: Array) -> Any:
    return np.mean(x, axis=_space_of(op, x.ndim), keepdims=True)


@operator("GlobalLpPool(x) [p:f=2]", infer=_infer_global)
def global_lp_pool(op: Any, x: Array) -> Any:
    return lp_norm(x, op.p, _space_of(op, x.ndim), keepdims=True)


def _infer_adaptive(ctx: InferContext) -> Sequence[OutputSpec]:
    shape, wanted = ctx.shape("x"), list(ctx.op.output_size)
    if not 1 <= len(wanted) <= 2 or min(wanted) < 1:
        raise ctx.fail(f"output_size must be one or two positive sizes, not {wanted}", value="output_size")
    if shape.is_unknown_rank():
        return [(shape, ctx.dtype("x"))]
    if len(shape) not in (3, 4):
        raise ctx.fail(f"x has shape {shape}, but needs rank 3 or 4", value="x")
    return [([*shape[:-2], wanted[0], wanted[-1]], ctx.dtype("x"))]


def _mean_matrix(size: int, count: int) -> Any:
    """Return [count, size]: row i averages the elements from floor(i*size/count) to ceil((i+1)*size/count)."""
    starts = np.arange(count) * size // count
    ends = -(-(np.arange(count) + 1) * size // count)
    places = np.arange(size)
    covers = (places >= starts[:, None]) & (places < ends[:, None])
    return covers / covers.sum(axis=1, keepdims=True)


@operator("AdaptiveAvgPool2d(x) [output_size:I!]", infer=_infer_adaptive)
def adaptive_avg_pool_2d(op: Any, x: Array) -> Any:
    rows = _mean_matrix(x.shape[-2], op.output_size[0]).astype(x.dtype)
    columns = _mean_matrix(x.shape[-1], op.output_size[-1]).astype(x.dtype)
    return np.matmul(np.matmul(rows, x), columns.T)
