"""Normalisation.

Extra attributes, for meaning that the GE operator lacks:
  ``_x_momentum``     BatchNorm in training: ONNX's running statistics (``old * momentum + batch * (1 - momentum)``,
                      population variance) instead of TensorFlow's
  ``_x_size``         LRN: ONNX's size where it is even, so that 2 * depth_radius + 1 cannot say it
  ``_x_data_format``  LRN, BNInfer, which have no data_format: NHWC for channels-last data

ONNX divides alpha by the window size, GE's LRN does not: the parser divides.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ge.graph.tensor_desc import Shape
from ge.graph.types import DataType
from ge.ops.inference import axis_in_rank, broadcast_shapes, common_type, distinct_axes, same_as, vector_length
from ge.ops.layout import channel_axis
from ge.ops.registry import Array, InferContext, OutputSpec, operator


def _along(values: Array, axis: int, rank: int) -> Array:
    """Shape a vector so that it broadcasts along ``axis``."""
    return values.reshape([-1 if i == axis else 1 for i in range(rank)])


def _scaled(x: Array, scale: Array, offset: Array, mean: Array, variance: Array, epsilon: float, axis: int) -> Array:
    """Return ``(x - mean) / sqrt(variance + epsilon) * scale + offset`` with two passes over ``x``."""
    factor = scale / np.sqrt(variance + variance.dtype.type(epsilon))
    y = x * _along(factor, axis, x.ndim)
    y += _along(offset - mean * factor, axis, x.ndim)
    return y


def _standardised(x: Array, axes: tuple[int, ...], epsilon: float) -> tuple[Array, Array, Array]:
    """Return ``(x - mean) / sqrt(variance + epsilon)``, mean and variance over ``axes`` (kept as 1)."""
    mean = x.mean(axis=axes, keepdims=True)
    y = x - mean
    variance = np.square(y).mean(axis=axes, keepdims=True)
    y /= np.sqrt(variance + variance.dtype.type(epsilon))
    return y, mean, variance


def _infer_batch_norm(ctx: InferContext) -> Sequence[OutputSpec]:
    x = ctx.desc("x")
    shape = x.origin_shape
    statistics = ctx.shape("scale")
    if not ctx.op.is_training and not (ctx.has("mean") and ctx.has("variance")):
        raise ctx.fail("mean and variance are needed when is_training is false", value="mean")
    if not shape.is_unknown_rank():
        if len(shape) < 2:
            raise ctx.fail(f"x has shape {shape}, but needs a batch and a channel axis", value="x")
        _check_channels(ctx, shape[channel_axis(ctx.op.data_format, len(shape))], shape, _BATCH_PARAMETERS)
    return [(shape, x.data_type)] + [(statistics, ctx.dtype("scale"))] * 5


_BATCH_PARAMETERS = ("scale", "offset", "mean", "variance")
_SCALE_AND_SHIFT = ("gamma", "beta")


def _check_channels(ctx: InferContext, channels: int, shape: Sequence[int], names: Sequence[str]) -> None:
    for name in names:
        if ctx.has(name):
            size = ctx.shape(name).elements
            if size != channels and -1 not in (size, channels):
                raise ctx.fail(f"{name} has {size} elements, but x {shape} has {channels} channels", value=name)


@operator(
    "BatchNorm(x, scale, offset, mean?, variance?) -> y, batch_mean, batch_variance, reserve_space_1, reserve_space_2, "
    "reserve_space_3 [epsilon:f=0.0001 data_format:s=NHWC is_training:b=T exponential_avg_factor:f=1]",
    infer=_infer_batch_norm,
)
def batch_norm(
    op: Any, x: Array, scale: Array, offset: Array, mean: Array | None, variance: Array | None
) -> tuple[Array, ...]:
    axis = channel_axis(op.data_format, x.ndim)
    if not op.is_training:
        assert mean is not None
        assert variance is not None
        y = _scaled(x, scale, offset, mean, variance, op.epsilon, axis)
        return y, mean, variance, mean, variance, np.zeros_like(scale)
    others = tuple(i for i in range(x.ndim) if i != axis)
    batch_mean, batch_variance = x.mean(axis=others), x.var(axis=others)
    y = _scaled(x, scale, offset, batch_mean, batch_variance, op.epsilon, axis)
    running = _running_statistics(op, batch_mean, batch_variance, mean, variance, x.size // x.shape[axis])
    return y, *running, batch_mean, batch_variance, np.zeros_like(scale)


def _running_statistics(
    op: Any, mean: Array, variance: Array, old_mean: Array | None, old_variance: Array | None, count: int
) -> tuple[Array, Array]:
    momentum = op.get("_x_momentum")
    if momentum is None:
        variance = variance * (count / max(count - 1, 1))
        momentum = 1.0 - op.exponential_avg_factor
    if old_mean is None or old_variance is None:
        return mean, variance
    keep, take = mean.dtype.type(momentum), mean.dtype.type(1.0 - momentum)
    return old_mean * keep + mean * take, old_variance * keep + variance * take


def _infer_bn_infer(ctx: InferContext) -> Sequence[OutputSpec]:
    shape = ctx.shape("x")
    if not shape.is_unknown_rank():
        _check_channels(ctx, shape[_layout_axis(ctx.op, len(shape))], shape, _BATCH_PARAMETERS)
    return [(shape, ctx.dtype("x"))]


def _layout_axis(op: Any, rank: int) -> int:
    return channel_axis(op.get("_x_data_format", "NCHW"), rank)


@operator("BNInfer(x, scale, offset, mean, variance) [epsilon:f!]", infer=_infer_bn_infer)
def bn_infer(op: Any, x: Array, scale: Array, offset: Array, mean: Array, variance: Array) -> Array:
    return _scaled(x, scale, offset, mean, variance, op.epsilon, _layout_axis(op, x.ndim))


def _infer_instance_norm(ctx: InferContext) -> Sequence[OutputSpec]:
    shape, dtype = ctx.shape("x"), ctx.dtype("x")
    if shape.is_unknown_rank():
        return [(shape, dtype)] * 3
    if len(shape) < 3:
        raise ctx.fail(f"x has shape {shape}, but needs a batch, a channel and a spatial axis", value="x")
    axis = channel_axis(ctx.op.data_format, len(shape))
    _check_channels(ctx, shape[axis], shape, _SCALE_AND_SHIFT)
    statistics = [dim if i in (0, axis) else 1 for i, dim in enumerate(shape)]
    return [(shape, dtype), (statistics, dtype), (statistics, dtype)]


@operator(
    "InstanceNorm(x, gamma, beta) -> y, mean, variance [data_format:s=NDHWC epsilon:f=1e-06]",
    infer=_infer_instance_norm,
)
def instance_norm(op: Any, x: Array, gamma: Array, beta: Array) -> tuple[Array, ...]:
    axis = channel_axis(op.data_format, x.ndim)
    y, mean, variance = _standardised(x, tuple(i for i in range(1, x.ndim) if i != axis), op.epsilon)
    return y * _along(gamma, axis, x.ndim) + _along(beta, axis, x.ndim), mean, variance


def _infer_group_norm(ctx: InferContext) -> Sequence[OutputSpec]:
    shape, dtype, groups = ctx.shape("x"), ctx.dtype("x"), ctx.op.num_groups
    if shape.is_unknown_rank():
        return [(shape, dtype), ([-1, groups], dtype), ([-1, groups], dtype)]
    if len(shape) < 2:
        raise ctx.fail(f"x has shape {shape}, but needs a batch and a channel axis", value="x")
    channels = shape[channel_axis(ctx.op.data_format, len(shape))]
    if groups < 1 or (channels != -1 and channels % groups):
        raise ctx.fail(f"{channels} channels cannot be split into {groups} groups", value="num_groups")
    _check_channels(ctx, channels, shape, _SCALE_AND_SHIFT)
    return [(shape, dtype), ([shape[0], groups], dtype), ([shape[0], groups], dtype)]


@operator(
    "GroupNorm(x, gamma, beta) -> y, mean, variance [num_groups:i! data_format:s=NCHW eps:f=0.0001 is_training:b=T]",
    infer=_infer_group_norm,
)
def group_norm(op: Any, x: Array, gamma: Array, beta: Array) -> tuple[Array, ...]:
    """Statistics are per sample and group: shape [N, num_groups]."""
    axis = channel_axis(op.data_format, x.ndim)
    first = np.moveaxis(x, axis, 1)
    grouped = first.reshape(len(x), op.num_groups, -1)
    y, mean, variance = _standardised(grouped, (2,), op.eps)
    y = np.moveaxis(y.reshape(first.shape), 1, axis)
    return y * _along(gamma, axis, x.ndim) + _along(beta, axis, x.ndim), mean[..., 0], variance[..., 0]


# -- over the last axes --------------------------------------------------------------------------------------------
def _statistics_shape(shape: Sequence[int], begin: int) -> list[int]:
    return [*shape[:begin], *[1] * (len(shape) - begin)]


def _infer_layer_norm(ctx: InferContext) -> Sequence[OutputSpec]:
    shape, dtype = ctx.shape("x"), ctx.dtype("x")
    if shape.is_unknown_rank():
        return [(shape, dtype)] * 3
    begin = axis_in_rank(ctx.op.begin_norm_axis, len(shape))
    params = Shape(shape[axis_in_rank(ctx.op.begin_params_axis, len(shape)) :])
    for name in ("gamma", "beta"):
        _check_parameters(ctx, name, params)
    return [(shape, dtype)] + [(_statistics_shape(shape, begin), dtype)] * 2


def _check_parameters(ctx: InferContext, name: str, params: Shape) -> None:
    size = ctx.shape(name).elements
    if size != params.elements and -1 not in (size, params.elements):
        raise ctx.fail(f"{name} has shape {ctx.shape(name)}, but {params} is needed", value=name)


def _layer_norm(op: Any, x: Array, gamma: Array, beta: Array) -> tuple[Array, Array, Array]:
    y, mean, variance = _standardised(x, tuple(range(op.begin_norm_axis % x.ndim, x.ndim)), op.epsilon)
    params = x.shape[op.begin_params_axis % x.ndim :]
    y *= gamma.reshape(params)
    y += beta.reshape(params)
    return y, mean, variance


@operator(
    "LayerNorm(x, gamma, beta) -> y, mean, variance [begin_norm_axis:i=0 begin_params_axis:i=0 epsilon:f=1e-07]",
    infer=_infer_layer_norm,
)
def layer_norm(op: Any, x: Array, gamma: Array, beta: Array) -> tuple[Array, ...]:
    return _layer_norm(op, x, gamma, beta)


@operator(
    "LayerNormV3(x, gamma, beta) -> y, mean, rstd [begin_norm_axis:i=0 begin_params_axis:i=0 epsilon:f=1e-05]",
    infer=_infer_layer_norm,
)
def layer_norm_v3(op: Any, x: Array, gamma: Array, beta: Array) -> tuple[Array, ...]:
    y, mean, variance = _layer_norm(op, x, gamma, beta)
    return y, mean, 1 / np.sqrt(variance + variance.dtype.type(op.epsilon))


def _wide_float(dtype: DataType) -> DataType:
    return DataType.DT_DOUBLE if dtype is DataType.DT_DOUBLE else DataType.DT_FLOAT


def _infer_layer_norm_v4(ctx: InferContext) -> Sequence[OutputSpec]:
    shape, dtype = ctx.shape("x"), ctx.dtype("x")
    axes = vector_length(ctx, "normalized_shape")
    if shape.is_unknown_rank() or axes == -1:
        return [(shape, dtype)] + [([-2], _wide_float(dtype))] * 2
    params = Shape(shape[len(shape) - axes :])
    wanted = ctx.ints("normalized_shape")
    if axes > len(shape) or (wanted and any(d not in (-1, w) for d, w in zip(params, wanted, strict=True))):
        raise ctx.fail(f"normalized_shape {wanted} does not match the last axes of x {shape}", value="normalized_shape")
    for name in ("gamma", "beta"):
        if ctx.has(name):
            _check_parameters(ctx, name, params)
    statistics = _statistics_shape(shape, len(shape) - axes)
    return [(shape, dtype)] + [(statistics, _wide_float(dtype))] * 2


@operator(
    "LayerNormV4(x, normalized_shape, gamma?, beta?) -> y, mean, rstd [epsilon:f=1e-05]", infer=_infer_layer_norm_v4
)
def layer_norm_v4(
    op: Any, x: Array, normalized_shape: Array, gamma: Array | None, beta: Array | None
) -> tuple[Array, ...]:
    begin = x.ndim - normalized_shape.size
    y, mean, variance = _standardised(x, tuple(range(begin, x.ndim)), op.epsilon)
    if gamma is not None:
        y *= gamma.reshape(x.shape[begin:])
    if beta is not None:
        y += beta.reshape(x.shape[begin:])
    return y, mean, 1 / np.sqrt(variance + variance.dtype.type(op.epsilon))


def _infer_rms_norm(ctx: InferContext) -> Sequence[OutputSpec]:
    shape, gamma, dtype = ctx.shape("x"), ctx.shape("gamma"), ctx.dtype("x")
    if shape.is_unknown_rank() or gamma.is_unknown_rank():
        return [(shape, dtype), ([-2], _wide_float(dtype))]
    begin = len(shape) - len(gamma)
    if begin < 0 or any(-1 not in (d, g) and d != g for d, g in zip(shape[begin:], gamma, strict=True)):
        raise ctx.fail(f"gamma {gamma} does not match the last axes of x {shape}", value="gamma")
    return [(shape, dtype), (_statistics_shape(shape, begin), _wide_float(dtype))]


@operator("RmsNorm(x, gamma) -> y, rstd [epsilon:f=1e-06]", infer=_infer_rms_norm)
def rms_norm(op: Any, x: Array, gamma: Array) -> tuple[Array, ...]:
    axes = tuple(range(x.ndim - gamma.ndim, x.ndim))
    rstd = 1 / np.sqrt(np.square(x).mean(axis=axes, keepdims=True) + x.dtype.type(op.epsilon))
    return x * rstd * gamma, rstd


def _infer_add_layer_norm(ctx: InferContext) -> Sequence[OutputSpec]:
    dtype = common_type(ctx, [ctx.desc("x1"), ctx.desc("x2")])
    addends = ["x1", "x2", "bias"] if ctx.has("bias") else ["x1", "x2"]
    shape, gamma = broadcast_shapes(ctx, [ctx.shape(name) for name in addends]), ctx.shape("gamma")
    if shape.is_unknown_rank() or gamma.is_unknown_rank():
        return [(shape, dtype), ([-2], _wide_float(dtype)), ([-2], _wide_float(dtype)), (shape, dtype)]
    begin = len(shape) - len(gamma)
    if begin < 0:
        raise ctx.fail(f"gamma {gamma} does not match the last axes of x1 + x2 {shape}", value="gamma")
    for name in ("gamma", "beta"):
        _check_parameters(ctx, name, shape[begin:])
    statistics = (_statistics_shape(shape, begin), _wide_float(dtype))
    return [(shape, dtype), statistics, statistics, (shape, dtype)]


@operator(
    "AddLayerNorm(x1, x2, gamma, beta, bias?) -> y, mean, rstd, x [epsilon:f=1e-05 additional_output:b=F]",
    infer=_infer_add_layer_norm,
)
def add_layer_norm(op: Any, x1: Array, x2: Array, gamma: Array, beta: Array, bias: Array | None) -> tuple[Array, ...]:
    """Normalise ``x = x1 + x2 + bias`` over the last axes, those of gamma.

    ``x`` is given out whether ``additional_output`` asks for it or not.
    """
    x = x1 + x2 if bias is None else x1 + x2 + bias
    y, mean, variance = _standardised(x, tuple(range(x.ndim - gamma.ndim, x.ndim)), op.epsilon)
    return y * gamma + beta, mean, 1 / np.sqrt(variance + variance.dtype.type(op.epsilon)), x


# -- others --------------------------------------------------------------------------------------------------------
def _infer_lrn(ctx: InferContext) -> Sequence[OutputSpec]:
    if ctx.op.norm_region != "ACROSS_CHANNELS":
        raise ctx.fail(f"norm_region {ctx.op.norm_region} is not ACROSS_CHANNELS", value="norm_region")
    if ctx.op.depth_radius < 0:
        raise ctx.fail(f"depth_radius {ctx.op.depth_radius} must not be negative", value="depth_radius")
    return [(ctx.shape("x"), ctx.dtype("x"))]


@operator(
    "LRN(x) [depth_radius:i=5 bias:f=1 alpha:f=1 beta:f=0.5 norm_region:s=ACROSS_CHANNELS]",
    infer=_infer_lrn,
)
def lrn(op: Any, x: Array) -> Any:
    """``x / (bias + alpha * sum of squares of the neighbouring channels) ** beta``."""
    size = op.get("_x_size", 2 * op.depth_radius + 1)
    axis = _layout_axis(op, x.ndim)
    squares = np.moveaxis(np.square(x), axis, 0)
    sums = np.zeros_like(squares)
    for shift in range(-((size - 1) // 2), size // 2 + 1):
        inside = len(squares) - abs(shift)
        if inside > 0:
            sums[max(-shift, 0) :][:inside] += squares[max(shift, 0) :][:inside]
    base = x.dtype.type(op.bias) + x.dtype.type(op.alpha) * np.moveaxis(sums, 0, axis)
    return x / np.power(base, x.dtype.type(op.beta))


def _infer_lp_norm(ctx: InferContext) -> Sequence[OutputSpec]:
    shape, dtype = ctx.shape("x"), ctx.dtype("x")
    if shape.is_unknown_rank():
        return [(shape, dtype)]
    axes = distinct_axes(ctx.op.axes, len(shape)) if ctx.op.axes else list(range(len(shape)))
    if ctx.op.keepdim:
        return [([1 if i in axes else d for i, d in enumerate(shape)], dtype)]
    return [([d for i, d in enumerate(shape) if i not in axes], dtype)]


@operator("LpNormV2(x) [p:f=2 axes:I=[] keepdim:b=F epsilon:f=1e-12]", infer=_infer_lp_norm)
def lp_norm_v2(op: Any, x: Array) -> Any:
    """``sum(|x| ** p) ** (1 / p)``; p = 0 counts the elements other than 0, infinite p takes the extreme magnitude."""
    axes = tuple(axis % x.ndim for axis in op.axes) if op.axes else None
    return lp_norm(x, op.p, axes, op.keepdim)


def lp_norm(x: Array, p: float, axes: tuple[int, ...] | None, keepdims: bool) -> Any:
    """Return the p-norm over ``axes`` (``None``: all)."""
    size = np.abs(x)
    if np.isinf(p):
        return (size.max if p > 0 else size.min)(axis=axes, keepdims=keepdims)
    if p == 0:
        return np.count_nonzero(x, axis=axes, keepdims=keepdims)
    if p == 1:
        return size.sum(axis=axes, keepdims=keepdims)
    if p == 2:
        return np.sqrt(np.square(size).sum(axis=axes, keepdims=keepdims))
    return np.power(np.power(size, p).sum(axis=axes, keepdims=keepdims), 1 / p)


@operator("MVNV2(x) [eps:f=1e-09 axes:I=[0,2,3]]", infer=same_as("x"))
def mvn_v2(op: Any, x: Array) -> Any:
    """``(x - mean) / (standard deviation + eps)`` over the axes."""
    axes = tuple(axis % x.ndim for axis in op.axes)
    centred = x - x.mean(axis=axes, keepdims=True)
    deviation = np.sqrt(np.square(centred).mean(axis=axes, keepdims=True))
    return centred / (deviation + x.dtype.type(op.eps))
