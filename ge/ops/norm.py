"""Normalisation.

Extra attributes, for meaning that the GE operator lacks:
  ``_x_momentum``     BatchNorm in training: ONNX's running statistics (``old * momentum + batch * (1 - momentum)``,
                      population variance) instead of TensorFlow's
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

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


def _infer_batch_norm(ctx: InferContext) -> Sequence[OutputSpec]:
    x = ctx.desc("x")
    shape = x.origin_shape
    statistics = ctx.shape("scale")
    if not ctx.op.is_training and not (ctx.has("mean") and ctx.has("variance")):
        raise ctx.fail("mean and variance are needed when is_training is false", value="mean")
    if not shape.is_unknown_rank():
        if len(shape) < 2:
            raise ctx.fail(f"x has shape {shape}, but needs a batch and a channel axis", value="x")
        _check_channels(ctx, shape[channel_axis(ctx.op.data_format, len(shape))], shape)
    return [(shape, x.data_type)] + [(statistics, ctx.dtype("scale"))] * 5


def _check_channels(ctx: InferContext, channels: int, shape: Sequence[int]) -> None:
    for name in ("scale", "offset", "mean", "variance"):
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
