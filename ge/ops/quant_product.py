"""Products of quantised operands, ours for ONNX's: XMatMulInteger, XQLinearMatMul, XConvInteger, XQLinearConv.

Inputs, in ONNX's order: 8-bit tensors with their scales and zero points. The convolutions have the attributes of Conv2D
or Conv3D (data_format NCHW or NCDHW by rank; see ge/ops/conv.py). Sums are exact; one multiplication by a float32
factor, one rounding (halves to even), then the zero point of the result.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ge.graph.tensor_desc import Shape
from ge.graph.types import DataType
from ge.ops.conv import conv_windows, convolve
from ge.ops.layout import channels_first_name
from ge.ops.matmul import product_shape
from ge.ops.quant import require_bytes, saturated, scale_of
from ge.ops.registry import Array, InferContext, Misfit, OutputSpec, operator

INT32 = DataType.DT_INT32


def _centred(x: Array, zero: Array | None, axis: int) -> Array:
    """Return ``x`` minus its zero points (one, or one per slice along ``axis``) as float64."""
    values = x.astype(np.float64)
    if zero is None:
        return values
    return values - _along(zero.astype(np.float64), x.ndim, axis)


def _along(values: Array, rank: int, axis: int) -> Array:
    if values.size == 1:
        return values.reshape(())
    if values.ndim > 1:
        return values
    return values.reshape([-1 if i == axis % rank else 1 for i in range(rank)])


def _requantized(total: Array, factor: Array, zero: Array, dtype: DataType) -> Array:
    scaled = total.astype(np.float32) * factor.astype(np.float32)
    return saturated(np.rint(scaled) + scale_of(zero).astype(np.float32), dtype)


# -- matrices ------------------------------------------------------------------------------------------------------
def _infer_matmul(ctx: InferContext) -> Sequence[OutputSpec]:
    require_bytes(ctx, "a", "b")
    return [(product_shape(ctx, ctx.shape("a"), ctx.shape("b")), INT32)]


@operator("XMatMulInteger(a, b, a_zero_point?, b_zero_point?)", infer=_infer_matmul)
def matmul_integer(op: Any, a: Array, b: Array, a_zero_point: Array | None, b_zero_point: Array | None) -> Any:
    """Zero points of ``a`` go by row, those of ``b`` by column."""
    return np.matmul(_centred(a, a_zero_point, -2), _centred(b, b_zero_point, -1))


def _infer_qlinear_matmul(ctx: InferContext) -> Sequence[OutputSpec]:
    require_bytes(ctx, "a", "b", "y_zero_point")
    return [(product_shape(ctx, ctx.shape("a"), ctx.shape("b")), ctx.dtype("y_zero_point"))]


@operator(
    "XQLinearMatMul(a, a_scale, a_zero_point, b, b_scale, b_zero_point, y_scale, y_zero_point)",
    infer=_infer_qlinear_matmul,
)
def qlinear_matmul(
    op: Any,
    a: Array,
    a_scale: Array,
    a_zero_point: Array,
    b: Array,
    b_scale: Array,
    b_zero_point: Array,
    y_scale: Array,
    y_zero_point: Array,
) -> Array:
    total = np.matmul(_centred(a, a_zero_point, -2), _centred(b, b_zero_point, -1))
    factor = _along(a_scale, max(a.ndim, 2), -2) * _along(b_scale, max(b.ndim, 2), -1) / scale_of(y_scale)
    return _requantized(total, factor, y_zero_point, op.output_types[0])


# -- convolution ---------------------------------------------------------------------------------------------------
_CONV_ATTRS = "[strides:I! pads:I! dilations:I=[1] groups:i=1 data_format:s=NCHW]"


def _infer_sizes(ctx: InferContext) -> list[int]:
    require_bytes(ctx, "x", "w")
    x, w, op = ctx.shape("x"), ctx.shape("w"), ctx.op
    if x.is_unknown_rank() or w.is_unknown_rank():
        return [-2] if x.is_unknown_rank() and w.is_unknown_rank() else [-1] * max(len(x), len(w))
    if len(x) != len(w) or op.data_format != channels_first_name(len(x)):
        raise ctx.fail(f"x {x} and w {w} must both have the rank of data_format {op.data_format}, channels first")
    if op.groups < 1 or (-1 not in (x[1], w[1]) and x[1] != w[1] * op.groups) or (w[0] > 0 and w[0] % op.groups):
        raise ctx.fail(f"x {x} and w {w} do not fit for {op.groups} groups", value="groups")
    return [x[0], w[0], *(window.count for window in conv_windows(op, x[2:], w[2:]))]


def _convolved(op: Any, x: Array, w: Array, x_zero: Array | None, w_zero: Array | None) -> Array:
    if x_zero is not None and x_zero.size != 1:
        raise Misfit(f"x needs one zero point, found {x_zero.size}")
    windows = conv_windows(op, x.shape[2:], w.shape[2:])
    return convolve(_centred(x, x_zero, 0), _centred(w, w_zero, 0), windows, op.groups)


@operator(
    f"XConvInteger(x, w, x_zero_point?, w_zero_point?) {_CONV_ATTRS}", infer=lambda ctx: [(_infer_sizes(ctx), INT32)]
)
def conv_integer(op: Any, x: Array, w: Array, x_zero_point: Array | None, w_zero_point: Array | None) -> Array:
    return _convolved(op, x, w, x_zero_point, w_zero_point)


def _infer_qlinear_conv(ctx: InferContext) -> Sequence[OutputSpec]:
    require_bytes(ctx, "y_zero_point")
    dims = _infer_sizes(ctx)
    if ctx.has("bias") and len(dims) > 1:
        size = Shape(ctx.shape("bias")).elements
        if -1 not in (size, dims[1]) and size != dims[1]:
            raise ctx.fail(f"bias has {size} elements, but there are {dims[1]} output channels", value="bias")
    return [(dims, ctx.dtype("y_zero_point"))]


@operator(
    "XQLinearConv(x, x_scale, x_zero_point, w, w_scale, w_zero_point, y_scale, y_zero_point, bias?) " + _CONV_ATTRS,
    infer=_infer_qlinear_conv,
)
def qlinear_conv(
    op: Any,
    x: Array,
    x_scale: Array,
    x_zero_point: Array,
    w: Array,
    w_scale: Array,
    w_zero_point: Array,
    y_scale: Array,
    y_zero_point: Array,
    bias: Array | None,
) -> Array:
    """``bias`` is int32, in units of x_scale * w_scale; scales and zero points of ``w`` go by output channel."""
    total = _convolved(op, x, w, x_zero_point, w_zero_point)
    if bias is not None:
        total += bias.reshape(-1, *[1] * (x.ndim - 2))
    factor = scale_of(x_scale) * _along(w_scale, x.ndim, 1) / scale_of(y_scale)
    return _requantized(total, factor, y_zero_point, op.output_types[0])
