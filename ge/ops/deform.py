"""Deformable convolution: every tap of every window reads at its own offset, bilinearly, zeros outside.

DeformableConv2D is GE's: ``offsets`` holds planes of x offsets, then y offsets, then (``modulated``) factors, each
[deformable_groups * taps]. XDeformConv is ours, with the inputs of ONNX's DeformConv: ``offset`` interleaves y and x,
the factors are the input ``mask``. Padding and filter attributes: see ge/ops/conv.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from ge.ops.conv import check_bias, conv_windows, filter_format, formats, operand_dims, result_type, with_bias
from ge.ops.layout import channels_first, from_channels_first, shape_in_format
from ge.ops.registry import Array, InferContext, OutputSpec, operator
from ge.ops.sample import sample
from ge.ops.window import Window


def _deformed(
    x: Array, filter: Array, windows: Sequence[Window], groups: int, offset: Array, mask: Array | None
) -> Any:
    """Convolve; ``offset`` is [N, D, taps, 2 (y, x), counts], ``mask`` [N, D, taps, counts], D deformable groups."""
    n, channels = x.shape[:2]
    parts = offset.shape[1]
    kernel, counts = [w.kernel for w in windows], [w.count for w in windows]
    taps = np.indices(kernel).reshape(2, -1, 1, 1)
    places = np.indices(counts).reshape(2, 1, *counts)
    coordinates = []
    for axis, window in enumerate(windows):
        fixed = places[axis] * window.stride + taps[axis] * window.dilation - window.before
        coordinates.append((offset[:, :, :, axis] + fixed.astype(x.dtype)).reshape(n * parts, -1))
    read = sample(x.reshape(n * parts, channels // parts, *x.shape[2:]), coordinates)
    columns = read.reshape(n, parts, channels // parts, prod(kernel), *counts)
    if mask is not None:
        columns = columns * mask[:, :, None]
    columns = columns.reshape(n, groups, -1, prod(counts))
    y = np.matmul(filter.reshape(groups, len(filter) // groups, -1), columns)
    return y.reshape(n, len(filter), *counts)


def _infer_deformed(ctx: InferContext, parts: int, planes: int, offset_name: str) -> Sequence[OutputSpec]:
    """Check the operands; ``planes`` are the offset values per tap."""
    data_format, weights_format = formats(ctx, 4)
    dtype, groups = result_type(ctx, "x", "filter"), ctx.op.groups
    x = operand_dims(ctx, "x", data_format, "data_format") or [-1] * 4
    outputs, depth, *kernel = operand_dims(ctx, "filter", weights_format, "filter format") or [-1] * 4
    if groups < 1 or (-1 not in (x[1], depth) and x[1] != depth * groups) or (outputs != -1 and outputs % groups):
        raise ctx.fail(
            f"x has {x[1]} channels, but the filter takes {depth} in each of {groups} groups for {outputs} outputs",
            value="filter",
        )
    if parts < 1 or (x[1] != -1 and x[1] % parts):
        raise ctx.fail(f"{x[1]} channels cannot be split into {parts} deformable groups", value="deformable_groups")
    check_bias(ctx, outputs)
    windows = conv_windows(ctx.op, x[2:], kernel)
    counts = [w.count for w in windows]
    offsets = operand_dims(ctx, offset_name, data_format, "data_format")
    wanted = [x[0], -1 if -1 in kernel else parts * planes * prod(kernel), *counts]
    if offsets is not None and any(-1 not in (a, b) and a != b for a, b in zip(offsets, wanted, strict=True)):
        raise ctx.fail(f"{offset_name} has dims {offsets} (N, C, H, W), but {wanted} are needed", value=offset_name)
    return [(shape_in_format([x[0], outputs, *counts], data_format), dtype)]


@operator(
    "DeformableConv2D(x, filter, offsets, bias?) [strides:I! pads:I! dilations:I=[1]*4 groups:i=1 data_format:s=NHWC "
    "deformable_groups:i=1 modulated:b=T]",
    infer=lambda ctx: _infer_deformed(ctx, ctx.op.deformable_groups, 3 if ctx.op.modulated else 2, "offsets"),
)
def deformable_conv2d(op: Any, x: Array, filter: Array, offsets: Array, bias: Array | None) -> Array:
    form = op.data_format
    x, offsets = channels_first(x, form), channels_first(offsets, form)
    weights = channels_first(filter, filter_format(op, form))
    windows = conv_windows(op, x.shape[2:], weights.shape[2:])
    counts = [w.count for w in windows]
    planes = offsets.reshape(len(x), -1, op.deformable_groups, prod(weights.shape[2:]), *counts)
    offset = np.stack([planes[:, 1], planes[:, 0]], 3)
    y = _deformed(x, weights, windows, op.groups, offset, planes[:, 2] if op.modulated else None)
    return from_channels_first(with_bias(y, bias), form)


@operator(
    "XDeformConv(x, filter, offset, bias?, mask?) [strides:I! pads:I! dilations:I=[1]*4 groups:i=1 data_format:s=NCHW "
    "deformable_groups:i=1]",
    infer=lambda ctx: _infer_deformed(ctx, ctx.op.deformable_groups, 2, "offset"),
)
def deform_conv(op: Any, x: Array, filter: Array, offset: Array, bias: Array | None, mask: Array | None) -> Array:
    form, parts = op.data_format, op.deformable_groups
    x, weights = channels_first(x, form), channels_first(filter, filter_format(op, form))
    windows = conv_windows(op, x.shape[2:], weights.shape[2:])
    counts, taps = [w.count for w in windows], prod(weights.shape[2:])
    shifts = channels_first(offset, form).reshape(len(x), parts, taps, 2, *counts)
    factors = None if mask is None else channels_first(mask, form).reshape(len(x), parts, taps, *counts)
    y = _deformed(x, weights, windows, op.groups, shifts, factors)
    return from_channels_first(with_bias(y, bias), form)
