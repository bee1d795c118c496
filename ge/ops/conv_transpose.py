"""Transposed convolution: Conv2DTranspose, Conv3DTranspose, Conv2DBackpropInput.

``input_size`` is the shape of the result in data_format order, or its spatial part; zeros leave the sizes to follow
from strides, pads and output_padding. Filter and padding attributes: see ge/ops/conv.py. ``_x_output_shape`` (ONNX's
output_shape, spatial sizes) makes the padding follow from the sizes; SAME then decides where an odd rest goes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ge.ops.conv import (
    check_bias,
    check_reserved,
    convolve_transposed,
    exact_operand,
    filter_format,
    formats,
    operand_dims,
    result_type,
    with_bias,
)
from ge.ops.inference import plain_number, vector_parts
from ge.ops.layout import channels_first, from_channels_first, shape_in_format, spatial_axes, spatial_values
from ge.ops.registry import Array, InferContext, Misfit, OutputSpec, operator
from ge.ops.window import Window, padding_mode, slide_all


def requested_sizes(op: Any, input_size: Sequence[int]) -> list[int] | None:
    """Return the spatial sizes that ``input_size`` asks for; ``None`` when it is all zeros."""
    form = op.data_format
    axes = spatial_axes(form)
    if len(input_size) not in (len(form), len(axes)):
        raise Misfit(f"input_size {list(input_size)} has neither one entry per axis of {form} nor one per spatial axis")
    sizes = [int(input_size[axis]) for axis in axes] if len(input_size) == len(form) else [int(v) for v in input_size]
    return sizes if any(sizes) else None


def transposed_windows(
    op: Any, counts: Sequence[int], kernel: Sequence[int], sizes: Sequence[int] | None
) -> list[Window]:
    """Return, per spatial axis, the window of the convolution that would turn the result into x."""
    form, n = op.data_format, len(counts)
    strides, dilations = spatial_values(op.strides, form), spatial_values(op.dilations, form)
    mode = padding_mode(op, "padding")
    given = op.get("_x_output_shape")
    if sizes is not None and given is None:
        windows = slide_all(sizes, kernel, strides, dilations, op.pads, mode)
        for axis, (window, count) in enumerate(zip(windows, counts, strict=True)):
            if window.count != count and -1 not in (window.count, count):
                raise Misfit(f"input_size {sizes[axis]} on spatial axis {axis} leads to {window.count}, not {count}")
        return windows
    extra = spatial_values(op.output_padding, form) if hasattr(op, "output_padding") else [0] * n
    pads = [0] * 2 * n if mode != "EXPLICIT" or given is not None else op.pads
    if len(pads) != 2 * n or (given is not None and len(given) != n):
        raise Misfit(f"pads {pads} must have two values, output_shape {given} one for each of {n} spatial axes")
    return [
        _window(
            counts[i],
            kernel[i],
            strides[i],
            dilations[i],
            (pads[2 * i], pads[2 * i + 1]),
            extra[i],
            mode,
            None if given is None else int(given[i]),
        )
        for i in range(n)
    ]


def _window(
    count: int,
    kernel: int,
    stride: int,
    dilation: int,
    pads: tuple[int, int],
    extra: int,
    mode: str,
    size: int | None,
) -> Window:
    if min(stride, dilation) < 1 or kernel == 0 or min(*pads, extra) < 0:
        raise Misfit(
            f"kernel {kernel}, stride {stride} and dilation {dilation} must be positive, pads {pads[0]} and {pads[1]} "
            f"and output_padding {extra} must not be negative"
        )
    if count < 0 or kernel < 0:
        return Window(-1 if size is None else size, kernel, stride, dilation, *pads, count)
    whole = (count - 1) * stride + (kernel - 1) * dilation + 1 + extra
    if size is None and mode in ("SAME_UPPER", "SAME_LOWER"):
        size = count * stride
    if size is None:
        size = whole - sum(pads)
        if size < 1:
            raise Misfit(f"pads {pads[0]} and {pads[1]} leave nothing of {whole} elements")
        return Window(size, kernel, stride, dilation, *pads, count)
    total = max(whole - size, 0)
    before = total // 2 if mode == "SAME_UPPER" else total - total // 2
    return Window(size, kernel, stride, dilation, before, total - before, count)


def _transposed(op: Any, x: Array, filter: Array, bias: Array | None, input_size: Array, offset: int) -> Array:
    form = op.data_format
    x = exact_operand(channels_first(x, form), offset)
    weights = exact_operand(channels_first(filter, filter_format(op, form)))
    windows = transposed_windows(op, x.shape[2:], weights.shape[2:], requested_sizes(op, np.ravel(input_size).tolist()))
    return from_channels_first(with_bias(convolve_transposed(x, weights, windows, op.groups), bias), form)


def _infer_transposed(rank: int, x_name: str) -> Callable[[InferContext], Sequence[OutputSpec]]:
    def infer(ctx: InferContext) -> Sequence[OutputSpec]:
        data_format, weights_format = formats(ctx, rank)
        dtype = result_type(ctx, x_name, "filter")
        groups = ctx.op.groups
        x = operand_dims(ctx, x_name, data_format, "data_format") or [-1] * rank
        inputs, per_group, *kernel = operand_dims(ctx, "filter", weights_format, "filter format") or [-1] * rank
        if -1 not in (x[1], inputs) and x[1] != inputs:
            raise ctx.fail(f"{x_name} has {x[1]} channels, but the filter takes {inputs}", value="filter")
        if groups < 1 or (inputs != -1 and inputs % groups):
            raise ctx.fail(f"{inputs} channels cannot be split into {groups} groups", value="groups")
        outputs = -1 if per_group == -1 else per_group * groups
        if x_name == "x":
            check_reserved(ctx)
            check_bias(ctx, outputs)
        parts = vector_parts(ctx, "input_size")  # the batch may be open while the spatial sizes are known
        if parts is None:
            return [(shape_in_format([x[0], outputs, *[-1] * (rank - 2)], data_format), dtype)]
        wanted = [-1 if number is None else number for number in map(plain_number, parts)]
        sizes = [w.size for w in transposed_windows(ctx.op, x[2:], kernel, requested_sizes(ctx.op, wanted))]
        return [(shape_in_format([x[0], outputs, *sizes], data_format), dtype)]

    return infer


@operator(
    "Conv2DTranspose(input_size, x, filter, bias?, offset_w?) [strides:I! pads:I! dilations:I=[1]*4 groups:i=1 "
    "data_format:s=NHWC output_padding:I=[0]*4 offset_x:i=0]",
    infer=_infer_transposed(4, "x"),
)
def conv2d_transpose(op: Any, input_size: Array, x: Array, filter: Array, bias: Array | None, offset_w: None) -> Array:
    return _transposed(op, x, filter, bias, input_size, op.offset_x)


@operator(
    "Conv3DTranspose(input_size, x, filter, bias?, offset_w?) [strides:I! pads:I! dilations:I=[1]*5 groups:i=1 "
    "data_format:s=NDHWC output_padding:I=[0]*5 offset_x:i=0]",
    infer=_infer_transposed(5, "x"),
)
def conv3d_transpose(op: Any, input_size: Array, x: Array, filter: Array, bias: Array | None, offset_w: None) -> Array:
    return _transposed(op, x, filter, bias, input_size, op.offset_x)


@operator(
    "Conv2DBackpropInput(input_size, filter, out_backprop) [strides:I! pads:I! dilations:I=[1]*4 groups:i=1 "
    "data_format:s=NHWC]",
    infer=_infer_transposed(4, "out_backprop"),
)
def conv2d_backprop_input(op: Any, input_size: Array, filter: Array, out_backprop: Array) -> Array:
    return _transposed(op, out_backprop, filter, None, input_size, 0)
