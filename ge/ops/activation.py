"""Activations: elementwise, one operand.

Extra attributes, for meaning that the GE operator lacks:
  PRelu  ``_x_unidirectional``: true broadcasts a one-dimensional weight to the last axis (ONNX), not to the channels
  Selu   ``_x_alpha``, ``_x_gamma``: other constants than the usual ones

Dropout passes its input on: this is inference.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ge.graph.tensor_desc import Shape
from ge.ops.inference import same_as
from ge.ops.math import erfc
from ge.ops.registry import Array, InferContext, OutputSpec, operator

SELU_ALPHA = 1.6732632423543772
SELU_GAMMA = 1.0507009873554805


# -- scalar functions ----------------------------------------------------------------------------------------------
def sigmoid(x: Array) -> Array:
    """Return 1 / (1 + exp(-x))."""
    return 1 / (1 + np.exp(-x))


def softplus(x: Array) -> Array:
    """Return log(1 + exp(x)), without overflow."""
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def relu6(x: Array) -> Array:
    """Return x limited to 0..6."""
    return np.minimum(np.maximum(x, 0), 6)


def _erf_series() -> tuple[Array, float]:
    """Return Chebyshev coefficients of erf(x)/x over x**2 in [0, limit**2]."""
    limit = 4.0
    degree = 24
    nodes = np.cos((np.arange(degree + 1) + 0.5) * np.pi / (degree + 1))
    xs = np.sqrt((nodes + 1) / 2) * limit
    values = np.array([math.erf(x) / x for x in xs])
    return np.polynomial.chebyshev.chebfit(nodes, values, degree), limit


_ERF_COEFFICIENTS, _ERF_LIMIT = _erf_series()


def erf(x: Array) -> Array:
    """Return the error function; float32 results are right to one unit in the last place or two."""
    if x.dtype == np.float64:
        return np.asarray(np.frompyfunc(math.erf, 1, 1)(x), np.float64)
    limited = np.clip(x.astype(np.float64), -_ERF_LIMIT, _ERF_LIMIT)
    scaled = limited * limited * (2 / _ERF_LIMIT**2) - 1
    series = np.polynomial.chebyshev.chebval(scaled, _ERF_COEFFICIENTS)
    return np.clip(series * limited, -1, 1).astype(x.dtype)


_TAIL_LIMIT = 40.0
"""The tail of the normal distribution is 0 in float64 from here on."""


def gelu(x: Array) -> Any:
    """Return x * Phi(x), Phi being the normal distribution function; far below zero, too, right in all digits."""
    size = np.minimum(np.abs(x.astype(np.float64)), _TAIL_LIMIT)
    tail = erfc(size * math.sqrt(0.5)) * 0.5
    return np.maximum(x, 0) - (size * tail).astype(x.dtype)


def gelu_tanh(x: Array) -> Any:
    """Return the approximation of :func:`gelu` by tanh."""
    double_inner = x.dtype.type(math.sqrt(8 / math.pi)) * (x + x.dtype.type(0.044715) * x * x * x)
    return x / (1 + np.exp(-double_inner))


def hard_swish(x: Array) -> Any:
    """Return x * clip(x / 6 + 1/2, 0, 1)."""
    return x * np.clip(x * x.dtype.type(1 / 6) + x.dtype.type(0.5), 0, 1)


def _activation(type: str, function: Callable[[Array], Array]) -> None:
    operator(f"{type}(x)", infer=same_as("x"))(lambda op, x: function(x))


_activation("Erf", erf)
_activation("Tanh", np.tanh)
_activation("Relu", lambda x: np.maximum(x, 0))
_activation("Relu6", relu6)
_activation("Sigmoid", sigmoid)
_activation("Softplus", softplus)
_activation("Softsign", lambda x: x / (1 + np.abs(x)))
_activation("Mish", lambda x: x * np.tanh(softplus(x)))
_activation("HardSwish", hard_swish)
_activation("Gelu", gelu)
_activation("FastGelu", lambda x: x * sigmoid(x * x.dtype.type(1.702)))


@operator("GeluV2(x) [approximate:s=none]", infer=same_as("x"))
def gelu_v2(op: Any, x: Array) -> Any:
    return gelu_tanh(x) if op.approximate == "tanh" else gelu(x)


@operator("Swish(x) [scale:f=1]", infer=same_as("x"))
def swish(op: Any, x: Array) -> Array:
    return x * sigmoid(x * x.dtype.type(op.scale))


@operator("LeakyRelu(x) [negative_slope:f=0]", infer=same_as("x"))
def leaky_relu(op: Any, x: Array) -> Array:
    return np.where(x >= 0, x, x * x.dtype.type(op.negative_slope))


@operator("Elu(x) [alpha:f=1 scale:f=1 input_scale:f=1]", infer=same_as("x"))
def elu(op: Any, x: Array) -> Any:
    negative = op.alpha * np.expm1(np.minimum(x * x.dtype.type(op.input_scale), 0))
    return (np.where(x > 0, x, negative) * op.scale).astype(x.dtype)


@operator("Celu(x) [alpha1:f=1 alpha2:f=1 alpha3:f=1]", infer=same_as("x"))
def celu(op: Any, x: Array) -> Any:
    """``max(0, alpha3 * x) + min(0, alpha1 * (exp(x / alpha2) - 1))``."""
    negative = op.alpha1 * np.expm1(np.minimum(x / x.dtype.type(op.alpha2), 0))
    return np.maximum(x * x.dtype.type(op.alpha3), 0) + np.minimum(negative, 0)


@operator("Selu(x)", infer=same_as("x"))
def selu(op: Any, x: Array) -> Any:
    negative = op.get("_x_alpha", SELU_ALPHA) * np.expm1(np.minimum(x, 0))
    return op.get("_x_gamma", SELU_GAMMA) * np.where(x > 0, x, negative)


@operator("HardSigmoid(input_x) -> output_y [alpha:f=0.16666666 beta:f=0.5]", infer=same_as("input_x"))
def hard_sigmoid(op: Any, input_x: Array) -> Any:
    return np.clip(input_x * input_x.dtype.type(op.alpha) + input_x.dtype.type(op.beta), 0, 1)


@operator("Shrink(input_x) -> output_y [lambd:f=0.5 bias:f=0]", infer=same_as("input_x"))
def shrink(op: Any, input_x: Array) -> Array:
    x = input_x
    return np.where(x < -op.lambd, x + op.bias, np.where(x > op.lambd, x - op.bias, np.zeros_like(x)))


@operator("Threshold(x) [threshold:f=0]", infer=same_as("x"))
def threshold(op: Any, x: Array) -> Any:
    """1 where x is above the threshold, else 0."""
    return (x > op.threshold).astype(x.dtype)


@operator("Dropout(x) [dropout_ratio:f=0.5 scale_train:b=T alpha:f=1 beta:f=0]", infer=same_as("x"), exact_types=True)
def dropout(op: Any, x: Array) -> Array:
    return x


def _infer_prelu(ctx: InferContext) -> Sequence[OutputSpec]:
    shape, weight = ctx.shape("x"), ctx.shape("weight")
    if not (shape.is_unknown_rank() or weight.is_unknown_rank()):
        by_channel = Shape(_slope_shape(ctx.op, len(shape), weight))
        fits = len(by_channel) <= len(shape) and all(
            w in (1, -1, d) or d == -1 for d, w in zip(reversed(shape), reversed(by_channel), strict=False)
        )
        if not fits:
            raise ctx.fail(f"weight {weight} cannot be broadcast to x {shape}", value="weight")
    return [(shape, ctx.dtype("x"))]


def _slope_shape(op: Any, rank: int, weight: Sequence[int]) -> list[int]:
    if len(weight) == 1 and rank > 1 and not op.get("_x_unidirectional", False):
        return [weight[0], *[1] * (rank - 2)]
    return list(weight)


@operator("PRelu(x, weight)", infer=_infer_prelu)
def prelu(op: Any, x: Array, weight: Array) -> Array:
    return np.where(x >= 0, x, x * weight.reshape(_slope_shape(op, x.ndim, weight.shape)))
