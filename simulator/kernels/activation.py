"""Activations: elementwise formulas of one operand."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ge.graph.types import NARROW_FLOATS, DataType, numpy_dtype
from simulator.kernels.blocks import BLOCK_ELEMENTS, Formula, elementwise
from simulator.kernels.math import formula
from simulator.kernels.registry import FLOATS, Array, Inputs, Kernel, KernelRequest, Outputs, ScratchLayout, kernel

SELU_ALPHA = 1.6732632423543772
SELU_GAMMA = 1.0507009873554805
_SINGLE = FLOATS - {DataType.DT_DOUBLE}


def _relu(x: Array, out: Array) -> None:
    np.maximum(x, 0, out=out)


def _relu6(x: Array, out: Array) -> None:
    np.clip(x, 0, 6, out=out)


def sigmoid(x: Array, out: Array) -> None:
    """Write ``1 / (1 + exp(-x))``."""
    np.negative(x, out=out)
    np.exp(out, out=out)
    np.add(out, 1, out=out)
    np.reciprocal(out, out=out)


def softplus(x: Array, magnitude: Array, out: Array) -> None:
    """Write ``log(1 + exp(x))`` as ``max(x, 0) + log1p(exp(-abs(x)))``."""
    np.abs(x, out=magnitude)
    np.negative(magnitude, out=magnitude)
    np.exp(magnitude, out=magnitude)
    np.log1p(magnitude, out=magnitude)
    np.maximum(x, 0, out=out)
    np.add(out, magnitude, out=out)


@kernel("Relu", "Relu6", dtypes=FLOATS | {DataType.DT_INT8, DataType.DT_INT32, DataType.DT_INT64, DataType.DT_UINT8})
def build_relu(request: KernelRequest) -> Kernel:
    """Bind Relu and Relu6."""
    if request.type == "Relu" and request.dtype() in NARROW_FLOATS:
        return _narrow_relu(request)
    if request.type == "Relu":
        return elementwise("relu", request, _relu, is_one_step=True)
    return elementwise("relu6", request, _relu6)


def _narrow_relu(request: KernelRequest) -> Kernel:
    """Bind Relu of floats of 16 bits without widening: from -0 to minus infinity, as unsigned numbers, becomes 0."""
    infinity = np.array(np.inf, numpy_dtype(request.dtype())).view(np.uint16)
    layout = ScratchLayout()
    take_behind, take_flags = layout.take([BLOCK_ELEMENTS], np.uint16), layout.take([BLOCK_ELEMENTS], np.bool_)

    def run(inputs: Inputs, outputs: Outputs, scratch: Array) -> None:
        x, y = (array.reshape(-1).view(np.uint16) for array in (inputs[0], outputs[0]))
        for start in range(0, len(x), BLOCK_ELEMENTS):
            part = x[start : start + BLOCK_ELEMENTS]
            behind, is_kept = take_behind(scratch)[: len(part)], take_flags(scratch)[: len(part)]
            np.subtract(part, 0x8000, out=behind)
            np.greater(behind, infinity, out=is_kept)  # positive numbers wrap around; NaN of either sign stays
            np.multiply(part, is_kept, out=y[start : start + BLOCK_ELEMENTS])

    return Kernel("relu-bits", run, layout.size, is_in_place_safe=True)


@formula("Sigmoid")
def build_sigmoid(op: Any) -> Formula:
    return sigmoid


@formula("Softplus", temporaries=1)
def build_softplus(op: Any) -> Formula:
    return softplus


@formula("Softsign", temporaries=1)
def softsign(op: Any) -> Formula:
    def run(x: Array, divisor: Array, out: Array) -> None:
        np.abs(x, out=divisor)
        np.add(divisor, 1, out=divisor)
        np.divide(x, divisor, out=out)

    return run


@formula("Mish", temporaries=2)
def mish(op: Any) -> Formula:
    def run(x: Array, gate: Array, magnitude: Array, out: Array) -> None:
        softplus(x, magnitude, gate)
        np.tanh(gate, out=gate)
        np.multiply(x, gate, out=out)

    return run


@formula("HardSwish", temporaries=1)
def hard_swish(op: Any) -> Formula:
    def run(x: Array, gate: Array, out: Array) -> None:
        _hard_gate(x, gate, 1 / 6, 0.5)
        np.multiply(x, gate, out=out)

    return run


@formula("HardSigmoid")
def hard_sigmoid(op: Any) -> Formula:
    return lambda x, out: _hard_gate(x, out, op.alpha, op.beta)


def _hard_gate(x: Array, out: Array, slope: float, offset: float) -> None:
    np.multiply(x, slope, out=out)
    np.add(out, offset, out=out)
    np.clip(out, 0, 1, out=out)


@formula("Swish", temporaries=1)
def swish(op: Any) -> Formula:
    return lambda x, gate, out: _scaled_gate(x, gate, op.scale, out)


@formula("FastGelu", temporaries=1)
def fast_gelu(op: Any) -> Formula:
    return lambda x, gate, out: _scaled_gate(x, gate, 1.702, out)


def _scaled_gate(x: Array, divisor: Array, scale: float, out: Array) -> None:
    """Write ``x / (1 + exp(-scale * x))``."""
    np.multiply(x, -scale, out=divisor)
    np.exp(divisor, out=divisor)
    np.add(divisor, 1, out=divisor)
    np.divide(x, divisor, out=out)


# -- error function, normal distribution -------------------------------------------------------------------------------
ERF_LIMIT = 3.92
"""erf is 1 in float32 from here on."""
TAIL_LIMIT = 15.0
"""exp(-x * x / 2) is 0 in float32 from here on."""


def _fit(nodes: Array, target: Array, n_top: int, n_bottom: int) -> tuple[list[float], list[float]]:
    """Return numerator and denominator (lowest power first) of a rational fit of ``target`` at ``nodes``.

    Least squares of the relative error; the denominator is linearised and refined.
    """
    top, bottom = nodes[:, None] ** np.arange(n_top + 1), nodes[:, None] ** np.arange(1, n_bottom + 1)
    weight = 1 / target
    found = np.zeros(n_top + 1 + n_bottom)
    for _ in range(8):
        matrix = np.hstack([top, -bottom * target[:, None]]) * weight[:, None]
        scale = np.abs(matrix).max(axis=0)
        found = np.linalg.lstsq(matrix / scale, target * weight, rcond=None)[0] / scale
        weight = 1 / (target * np.abs(1 + bottom @ found[n_top + 1 :]))
    return [float(v) for v in found[: n_top + 1]], [1.0, *(float(v) for v in found[n_top + 1 :])]


def _fit_erf() -> tuple[list[float], list[float]]:
    """Fit erf(x) / x over x**2."""
    nodes = _chebyshev_nodes(ERF_LIMIT**2)
    return _fit(nodes, np.array([math.erf(math.sqrt(v)) / math.sqrt(v) for v in nodes]), 6, 4)


def _fit_tail() -> tuple[list[float], list[float]]:
    """Fit exp(x * x / 2) * erfc(x / sqrt(2)) / 2: what the upper tail of the normal distribution is but for exp."""
    nodes = _chebyshev_nodes(TAIL_LIMIT)
    return _fit(nodes, np.array([math.exp(v * v / 2) * math.erfc(v * math.sqrt(0.5)) / 2 for v in nodes]), 4, 4)


def _chebyshev_nodes(limit: float) -> Array:
    return (1 - np.cos((np.arange(400) + 0.5) * np.pi / 400)) / 2 * limit


ERF_TOP, ERF_BOTTOM = _fit_erf()
TAIL_TOP, TAIL_BOTTOM = _fit_tail()


def _polynomial(x: Array, coefficients: list[float], out: Array) -> None:
    np.multiply(x, coefficients[-1], out=out)
    for coefficient in coefficients[-2:0:-1]:
        np.add(out, coefficient, out=out)
        np.multiply(out, x, out=out)
    np.add(out, coefficients[0], out=out)


def erf(x: Array, square: Array, top: Array, bottom: Array, out: Array) -> None:
    """Write the error function of float32 numbers, right to a few units in the last place."""
    np.clip(x, -ERF_LIMIT, ERF_LIMIT, out=out)
    np.square(out, out=square)
    _polynomial(square, ERF_TOP, top)
    _polynomial(square, ERF_BOTTOM, bottom)
    np.multiply(out, top, out=out)
    np.divide(out, bottom, out=out)
    np.clip(out, -1, 1, out=out)


@kernel("Erf", dtypes=_SINGLE)
def build_erf(request: KernelRequest) -> Kernel:
    """Bind the error function."""
    return elementwise("erf", request, erf, temporaries=3)


@kernel("Gelu", "GeluV2", dtypes=FLOATS)
def build_gelu(request: KernelRequest) -> Kernel | None:
    """Bind Gelu, exact or with tanh."""
    if request.type == "GeluV2" and request.op.approximate == "tanh":
        return elementwise("gelu-tanh", request, _gelu_tanh, temporaries=1)
    if request.dtype() is DataType.DT_DOUBLE:
        return None
    return elementwise("gelu", request, _gelu, temporaries=3)


def _gelu(x: Array, size: Array, top: Array, bottom: Array, out: Array) -> None:
    """Write ``max(x, 0) - |x| * tail(|x|)``: nothing cancels, however far from zero."""
    np.abs(x, out=size)
    np.minimum(size, TAIL_LIMIT, out=size)
    _polynomial(size, TAIL_TOP, top)
    _polynomial(size, TAIL_BOTTOM, bottom)
    np.divide(top, bottom, out=top)
    np.multiply(top, size, out=top)
    np.square(size, out=size)
    np.multiply(size, -0.5, out=size)
    np.exp(size, out=size)
    np.multiply(top, size, out=top)
    np.maximum(x, 0, out=out)
    np.subtract(out, top, out=out)


def _gelu_tanh(x: Array, gate: Array, out: Array) -> None:
    """Write ``x / (1 + exp(-2 * inner))``, which is ``x * (1 + tanh(inner)) / 2`` but for what cancels."""
    np.square(x, out=gate)
    np.multiply(gate, -0.044715 * math.sqrt(8 / math.pi), out=gate)
    np.subtract(gate, math.sqrt(8 / math.pi), out=gate)
    np.multiply(gate, x, out=gate)
    np.exp(gate, out=gate)
    np.add(gate, 1, out=gate)
    np.divide(x, gate, out=out)


# -- two branches ------------------------------------------------------------------------------------------------------
@formula("LeakyRelu", temporaries=1)
def leaky_relu(op: Any) -> Formula | None:
    slope = op.negative_slope
    if not math.isfinite(slope):
        return None
    if 0 < slope <= 1:

        def run(x: Array, scaled: Array, out: Array) -> None:
            np.multiply(x, slope, out=scaled)
            np.maximum(x, scaled, out=out)

        return run
    return lambda x, low, out: _by_sign(x, slope, low, out)


def _by_sign(x: Array, slope: Any, low: Array, out: Array) -> None:
    """Multiply what is negative by ``slope``, which must be finite: it meets the zeros in the place of the others."""
    np.minimum(x, 0, out=low)
    np.multiply(low, slope, out=low)
    np.maximum(x, 0, out=out)
    np.add(out, low, out=out)


@kernel("PRelu", dtypes=FLOATS)
def build_prelu(request: KernelRequest) -> Kernel | None:
    """Bind PRelu; the slopes broadcast to the channels, or to the last axes as ``_x_unidirectional`` says."""
    shape, weight = request.shape(0), request.shape(1)
    slopes = request.constants.get(1)
    if request.dtype(0) != request.dtype(1) or (slopes is not None and not np.isfinite(slopes).all()):
        return None
    if len(weight) == 1 and len(shape) > 1 and not request.op.get("_x_unidirectional", False):
        weight = (weight[0], *[1] * (len(shape) - 2))
    return elementwise("prelu", request, _by_sign, (0, 1), temporaries=1, shapes=(shape, weight))


@formula("Elu", temporaries=1)
def elu(op: Any) -> Formula | None:
    if op.input_scale < 0:
        return None

    def run(x: Array, low: Array, out: Array) -> None:
        np.multiply(x, op.input_scale, out=low)
        np.minimum(low, 0, out=low)
        np.expm1(low, out=low)
        np.multiply(low, op.alpha * op.scale, out=low)
        np.maximum(x, 0, out=out)
        np.multiply(out, op.scale, out=out)
        np.add(out, low, out=out)

    return run


@formula("Selu", temporaries=1)
def selu(op: Any) -> Formula:
    alpha, gamma = op.get("_x_alpha", SELU_ALPHA), op.get("_x_gamma", SELU_GAMMA)

    def run(x: Array, low: Array, out: Array) -> None:
        np.minimum(x, 0, out=low)
        np.expm1(low, out=low)
        np.multiply(low, alpha * gamma, out=low)
        np.maximum(x, 0, out=out)
        np.multiply(out, gamma, out=out)
        np.add(out, low, out=out)

    return run


@formula("Celu", temporaries=1)
def celu(op: Any) -> Formula:
    def run(x: Array, low: Array, out: Array) -> None:
        np.divide(x, op.alpha2, out=low)
        np.minimum(low, 0, out=low)
        np.expm1(low, out=low)
        np.multiply(low, op.alpha1, out=low)
        np.minimum(low, 0, out=low)
        np.multiply(x, op.alpha3, out=out)
        np.maximum(out, 0, out=out)
        np.add(out, low, out=out)

    return run


@formula("Threshold")
def threshold(op: Any) -> Formula:
    return lambda x, out: np.greater(x, op.threshold, out)


@formula("Shrink", temporaries=2)
def shrink(op: Any) -> Formula | None:
    if op.lambd < 0:
        return None

    def run(x: Array, shifted: Array, flags: Array, out: Array) -> None:
        is_low, is_high = np.less(x, -op.lambd), np.greater(x, op.lambd)
        np.add(x, op.bias, out=shifted)
        np.subtract(x, op.bias, out=flags)
        np.copyto(out, 0)
        np.copyto(out, shifted, where=is_low)
        np.copyto(out, flags, where=is_high)

    return run
