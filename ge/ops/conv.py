"""Convolution and BiasAdd; the transpose is in ge/ops/conv_transpose.py.

Attributes of the computation besides the signatures (padding: see ge/ops/window.py):
  ``auto_pad``           as ONNX has it (NOTSET, VALID, SAME_UPPER, SAME_LOWER); ``padding`` as TensorFlow has it
  ``_x_output_type``     0: the result of float operands is float32, the sums without a rounding
  ``_x_filter_format``   order of the filter's axes; default NCHW, NCDHW for channels-first data, else HWCN, DHWCN

int8 and uint8 operands give int32; ``offset_x`` is subtracted from them before padding with zeros.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from math import prod
from typing import Any

import numpy as np

from ge.graph.tensor_desc import Shape
from ge.graph.types import DataType
from ge.ops.inference import same_as
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
from ge.ops.registry import Array, InferContext, OutputSpec, operator
from ge.ops.window import Window, pad_for, padding_mode, slide_all

INTEGERS = (DataType.DT_INT8, DataType.DT_UINT8)
_COLUMN_BYTES = 1 << 25
"""Unfolded input is made in pieces of about this size."""


# -- numpy meaning -------------------------------------------------------------------------------------------------
def convolve(x: Array, filter: Array, windows: Sequence[Window], groups: int = 1) -> Array:
    """Correlate ``x`` [N, C, space] with ``filter`` [O, C/groups, taps]; result [N, O, counts]."""
    outputs, depth = filter.shape[:2]
    counts = [w.count for w in windows]
    x = pad_for(x, windows, 0)
    result = np.empty((len(x), outputs, *counts), np.result_type(x, filter))
    if depth == 1 and outputs == groups:
        _convolve_depthwise(x, filter, windows, result)
        return result
    weights = filter.reshape(groups, outputs // groups, -1)
    row_bytes = max(weights.shape[2] * groups * prod(counts[1:]) * x.itemsize, 1)
    rows = max(_COLUMN_BYTES // row_bytes, 1)
    for sample in range(len(x)):
        for start in range(0, counts[0], rows):
            piece = slice(start, min(start + rows, counts[0]))
            columns = _unfold(x[sample], windows, groups, piece)
            product_ = np.matmul(weights, columns)
            result[sample, :, piece] = product_.reshape(outputs, -1, *counts[1:])
    return result


def _unfold(x: Array, windows: Sequence[Window], groups: int, rows: slice) -> Array:
    """Return [groups, C/groups * taps, positions] of the windows whose first coordinate lies in ``rows``."""
    space = x.shape[1:]
    counts = [rows.stop - rows.start, *(w.count for w in windows[1:])]
    steps = x.strides[1:]
    x = x[:, rows.start * windows[0].stride :]
    shape = [x.shape[0], *(w.kernel for w in windows), *counts]
    strides = [
        x.strides[0],
        *(step * w.dilation for step, w in zip(steps, windows, strict=True)),
        *(step * w.stride for step, w in zip(steps, windows, strict=True)),
    ]
    assert all((w.count - 1) * w.stride + w.extent <= size for w, size in zip(windows, space, strict=True))
    view = np.lib.stride_tricks.as_strided(x, shape, strides, writeable=False)
    return view.reshape(groups, shape[0] // groups * prod(w.kernel for w in windows), prod(counts))


def taps(windows: Sequence[Window]) -> Iterator[tuple[tuple[int, ...], tuple[slice, ...]]]:
    """Iterate over the taps of a kernel: its index, and the padded input positions that it meets."""
    for index in product(*(range(w.kernel) for w in windows)):
        yield index, tuple(w.taps(i) for w, i in zip(windows, index, strict=True))


def _convolve_depthwise(x: Array, filter: Array, windows: Sequence[Window], result: Array) -> None:
    per_channel = (slice(None), slice(None))
    result[...] = 0
    term = np.empty_like(result)
    weights = filter.reshape(len(filter), -1).T.reshape(-1, len(filter), *[1] * len(windows))
    for weight, (_, positions) in zip(weights, taps(windows), strict=True):
        np.multiply(x[per_channel + positions], weight, out=term)
        result += term


def convolve_transposed(x: Array, filter: Array, windows: Sequence[Window], groups: int = 1) -> Array:
    """Transpose of :func:`convolve`: scatter ``x`` [N, C, counts] by ``filter`` [C, O/groups, taps] to [N, O, sizes].

    ``windows`` are those of the convolution that reads the result.
    """
    channels, per_group = filter.shape[:2]
    kernel = filter.shape[2:]
    weights = filter.reshape(groups, channels // groups, -1).transpose(0, 2, 1)
    space = [max(w.size + w.before, w.reach) for w in windows]
    result = np.zeros((len(x), groups * per_group, *space), np.result_type(x, filter))
    for sample in range(len(x)):
        spread = np.matmul(weights, x[sample].reshape(groups, channels // groups, -1))
        spread = spread.reshape(groups * per_group, *kernel, *x.shape[2:])
        for index, positions in taps(windows):
            result[sample][(slice(None), *positions)] += spread[(slice(None), *index)]
    inside = tuple(slice(w.before, w.before + w.size) for w in windows)
    return result[(slice(None), slice(None), *inside)]


def exact_operand(x: Array, offset: int = 0) -> Array:
    """Return integers as float64, minus ``offset``: BLAS is then fast, and sums of int8 products stay exact."""
    return x.astype(np.float64) - offset if x.dtype.kind in "iu" else x


def filter_format(op: Any, data_format: str) -> str:
    """Return the order of the filter's axes."""
    by_data = data_format if data_format.startswith("NC") else data_format[1:-1] + "CN"
    return str(op.get("_x_filter_format", by_data))


def conv_windows(op: Any, sizes: Sequence[int], kernel: Sequence[int]) -> list[Window]:
    """Place the windows of a convolution on spatial ``sizes``. Raises ``Misfit``."""
    form = op.data_format
    strides, dilations = spatial_values(op.strides, form), spatial_values(op.dilations, form)
    mode = padding_mode(op, "padding" if op.get("pad_mode") is None else "pad_mode")
    return slide_all(sizes, kernel, strides, dilations, op.pads, mode)


def with_bias(y: Array, bias: Array | None) -> Array:
    """Add one value per channel to ``y`` (N, C, space), in place."""
    if bias is not None:
        y += bias.reshape(-1, *[1] * (y.ndim - 2)).astype(y.dtype, copy=False)
    return y


def _conv(op: Any, x: Array, filter: Array, bias: Array | None, groups: int) -> Array:
    x = exact_operand(channels_first(x, op.data_format), op.offset_x)
    windows = conv_windows(op, x.shape[2:], filter.shape[2:])
    return from_channels_first(with_bias(convolve(x, exact_operand(filter), windows, groups), bias), op.data_format)


# -- inference -----------------------------------------------------------------------------------------------------
def operand_dims(ctx: InferContext, name: str, data_format: str, attribute: str) -> list[int] | None:
    """Return the dims of an operand, channels first; ``None`` when the rank is unknown."""
    shape = ctx.shape(name)
    if shape.is_unknown_rank():
        return None
    if len(shape) != len(data_format):
        raise ctx.fail(f"{name} has shape {shape}, but {attribute} {data_format} needs rank {len(data_format)}")
    return shape_channels_first(shape, data_format)


def formats(ctx: InferContext, rank: int) -> tuple[str, str]:
    """Return the formats of data and filter. Raises the node's E14001 when they are no order of the axes."""
    letters = channels_first_name(rank)
    data_format = check_format(ctx, ctx.op.data_format, letters)
    return data_format, check_format(ctx, filter_format(ctx.op, data_format), letters)


def check_reserved(ctx: InferContext) -> None:
    """Raise the node's E14001 when offset_w is connected."""
    if ctx.has("offset_w"):
        raise ctx.fail("input offset_w is reserved and must not be connected", value="offset_w")


def check_bias(ctx: InferContext, outputs: int) -> None:
    """Raise the node's E14001 unless the bias, if there is one, has one element per output channel."""
    if ctx.has("bias"):
        size = Shape(ctx.shape("bias")).elements
        if -1 not in (size, outputs) and size != outputs:
            raise ctx.fail(f"bias has {size} elements, but there are {outputs} output channels", value="bias")


def result_type(ctx: InferContext, x: str, filter: str) -> DataType:
    """Return int32 for bytes, otherwise the type of both operands. Raises the node's E14001 when they differ."""
    found, other = ctx.dtype(x), ctx.dtype(filter)
    if found in INTEGERS and other in INTEGERS:
        return DataType.DT_INT32
    if found != other:
        raise ctx.fail(f"{x} is {found.name}, but {filter} is {other.name}", value=filter)
    return DataType.DT_FLOAT if ctx.op.get("_x_output_type") == DataType.DT_FLOAT else found


def _infer_conv(rank: int) -> Callable[[InferContext], Sequence[OutputSpec]]:
    def infer(ctx: InferContext) -> Sequence[OutputSpec]:
        data_format, weights_format = formats(ctx, rank)
        check_reserved(ctx)
        dtype = result_type(ctx, "x", "filter")
        x = operand_dims(ctx, "x", data_format, "data_format") or [-1] * rank
        weights = operand_dims(ctx, "filter", weights_format, "filter format") or [-1] * rank
        groups = ctx.op.groups
        if groups < 1:
            raise ctx.fail(f"groups {groups} must be positive", value="groups")
        if -1 not in (x[1], weights[1]) and x[1] != weights[1] * groups:
            raise ctx.fail(
                f"x has {x[1]} channels, but the filter takes {weights[1]} in each of {groups} groups", value="filter"
            )
        if weights[0] % groups and weights[0] != -1:
            raise ctx.fail(f"{weights[0]} output channels cannot be split into {groups} groups", value="groups")
        return [(_infer_counts(ctx, x, weights[2:], weights[0], data_format), dtype)]

    return infer


def _infer_counts(
    ctx: InferContext, x: Sequence[int], kernel: Sequence[int], outputs: int, data_format: str
) -> list[int]:
    check_bias(ctx, outputs)
    windows = conv_windows(ctx.op, x[2:], kernel)
    return shape_in_format([x[0], outputs, *(w.count for w in windows)], data_format)


def _infer_depthwise(ctx: InferContext) -> Sequence[OutputSpec]:
    data_format, weights_format = formats(ctx, 4)
    check_reserved(ctx)
    x = operand_dims(ctx, "x", data_format, "data_format") or [-1] * 4
    multiplier, channels, *kernel = operand_dims(ctx, "filter", weights_format, "filter format") or [-1] * 4
    if -1 not in (x[1], channels) and x[1] != channels:
        raise ctx.fail(f"x has {x[1]} channels, but the filter is for {channels}", value="filter")
    known = x[1] if channels == -1 else channels
    outputs = -1 if -1 in (known, multiplier) else known * multiplier
    return [(_infer_counts(ctx, x, kernel, outputs, data_format), result_type(ctx, "x", "filter"))]


# -- operators -----------------------------------------------------------------------------------------------------
@operator(
    "Conv2D(x, filter, bias?, offset_w?) [strides:I! pads:I! dilations:I=[1]*4 groups:i=1 data_format:s=NHWC "
    "offset_x:i=0]",
    infer=_infer_conv(4),
)
def conv2d(op: Any, x: Array, filter: Array, bias: Array | None, offset_w: None) -> Array:
    return _conv(op, x, channels_first(filter, filter_format(op, op.data_format)), bias, op.groups)


_CONV2D_V2 = (
    "Conv2DV2(x, filter, bias?, offset_w?) [strides:I! pads:I=[0]*4 dilations:I=[1]*4 groups:i=1 data_format:s=NCHW "
    "offset_x:i=0 pad_mode:s=SPECIFIC enable_hf32:b=F]"
)
operator(_CONV2D_V2, infer=_infer_conv(4))(conv2d)


@operator(
    "Conv3D(x, filter, bias?, offset_w?) [strides:I! pads:I! dilations:I=[1]*5 groups:i=1 data_format:s=NDHWC "
    "offset_x:i=0]",
    infer=_infer_conv(5),
)
def conv3d(op: Any, x: Array, filter: Array, bias: Array | None, offset_w: None) -> Array:
    return _conv(op, x, channels_first(filter, filter_format(op, op.data_format)), bias, op.groups)


@operator(
    "DepthwiseConv2D(x, filter, bias?, offset_w?) [strides:I! dilations:I=[1]*4 pads:I! data_format:s=NHWC "
    "offset_x:i=0]",
    infer=_infer_depthwise,
)
def depthwise_conv2d(op: Any, x: Array, filter: Array, bias: Array | None, offset_w: None) -> Array:
    """Output channel ``c * multiplier + m`` is channel ``c`` under filter ``[m, c]``."""
    by_channel = channels_first(filter, filter_format(op, op.data_format)).swapaxes(0, 1)
    channels = by_channel.shape[0]
    return _conv(op, x, by_channel.reshape(-1, 1, *by_channel.shape[2:]), bias, channels)


@operator("BiasAdd(x, bias) [data_format:s=NHWC]", infer=same_as("x"))
def bias_add(op: Any, x: Array, bias: Array) -> Array:
    shape = [1] * x.ndim
    shape[channel_axis(op.data_format, x.ndim)] = -1
    return x + bias.reshape(shape)
