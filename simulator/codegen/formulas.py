"""The table of elementwise operators that are compiled: formulas of :class:`Pointwise`, and what attributes give them.

A formula gets its operands and its parameters, numbers that are not part of the code: so attributes of a model never
make more code. ``CHOICES`` says, by operator type, which formula with which parameters, or ``None`` for numpy's kernel.
The numpy kernels (:mod:`simulator.kernels.math`, :mod:`simulator.kernels.activation`) say the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from simulator.codegen.emission import Value
from simulator.codegen.pointwise import Pointwise
from simulator.kernels.activation import SELU_ALPHA, SELU_GAMMA

Formula = Callable[[Pointwise, Sequence[Value], Sequence[Value]], Value]
Choice = tuple[str, tuple[float, ...]]


def _sum(p: Pointwise, x: Sequence[Value], _: Sequence[Value]) -> Value:
    total = x[0]
    for operand in x[1:]:
        total = p.add(total, operand)
    return total


def _hard_gate(p: Pointwise, x: Value, slope: Value, offset: Value) -> Value:
    gate = p.add(p.multiply(x, slope), offset)
    return p.at_most(p.at_least(gate, p.number(0.0)), p.number(1.0))


def _by_sign(p: Pointwise, x: Sequence[Value], slope: Value) -> Value:
    return p.choose(p.is_less(x[0], p.number(0.0)), p.multiply(x[0], slope), x[0])


def _exponential_unit(p: Pointwise, x: Sequence[Value], n: Sequence[Value]) -> Value:
    """Return ``n2 * max(x, 0) + n1 * expm1(min(n0 * x, 0))``."""
    low = p.expm1(p.at_most(p.multiply(x[0], n[0]), p.number(0.0)))
    return p.add(p.multiply(p.at_least(x[0], p.number(0.0)), n[2]), p.multiply(low, n[1]))


def _square(p: Pointwise, x: Value) -> Value:
    return p.multiply(x, x)


FORMULAS: dict[str, Formula] = {
    "copy": lambda p, x, n: x[0],
    "abs": lambda p, x, n: p.absolute(x[0]),
    "neg": lambda p, x, n: p.negative(x[0]),
    "square": lambda p, x, n: _square(p, x[0]),
    "sqrt": lambda p, x, n: p.root(x[0]),
    "rsqrt": lambda p, x, n: p.divide(p.number(1.0), p.root(x[0])),
    "reciprocal": lambda p, x, n: p.divide(p.number(1.0), x[0]),
    "relu": lambda p, x, n: p.at_least(x[0], p.number(0.0)),
    "relu6": lambda p, x, n: p.at_most(p.at_least(x[0], p.number(0.0)), p.number(6.0)),
    "leaky-relu": lambda p, x, n: _by_sign(p, x, n[0]),
    "prelu": lambda p, x, n: _by_sign(p, x, x[1]),
    "exp": lambda p, x, n: p.exp(x[0]),
    "exp-of": lambda p, x, n: p.exp(p.add(p.multiply(x[0], n[0]), n[1])),
    "expm1": lambda p, x, n: p.expm1(x[0]),
    "log": lambda p, x, n: p.log(x[0]),
    "tanh": lambda p, x, n: p.tanh(x[0]),
    "sigmoid": lambda p, x, n: p.sigmoid(x[0]),
    "swish": lambda p, x, n: p.gated(x[0], p.multiply(x[0], n[0])),
    "softplus": lambda p, x, n: p.softplus(x[0]),
    "softsign": lambda p, x, n: p.divide(x[0], p.add(p.absolute(x[0]), p.number(1.0))),
    "mish": lambda p, x, n: p.multiply(x[0], p.tanh(p.softplus(x[0]))),
    "hard-sigmoid": lambda p, x, n: _hard_gate(p, x[0], n[0], n[1]),
    "hard-swish": lambda p, x, n: p.multiply(x[0], _hard_gate(p, x[0], n[0], n[1])),
    "exponential-unit": _exponential_unit,
    "erf": lambda p, x, n: p.erf(x[0]),
    "gelu": lambda p, x, n: p.gelu(x[0]),
    "gelu-tanh": lambda p, x, n: p.gelu_tanh(x[0]),
    "muls": lambda p, x, n: p.multiply(x[0], n[0]),
    "adds": lambda p, x, n: p.add(x[0], n[0]),
    "add": lambda p, x, n: p.add(x[0], x[1]),
    "sub": lambda p, x, n: p.subtract(x[0], x[1]),
    "mul": lambda p, x, n: p.multiply(x[0], x[1]),
    "div": lambda p, x, n: p.divide(x[0], x[1]),
    "maximum": lambda p, x, n: p.maximum(x[0], x[1]),
    "minimum": lambda p, x, n: p.minimum(x[0], x[1]),
    "squared-difference": lambda p, x, n: _square(p, p.subtract(x[0], x[1])),
    "clip": lambda p, x, n: p.minimum(p.maximum(x[0], x[1]), x[2]),
    "multiply-add": lambda p, x, n: p.e.multiply_add(x[0], x[1], x[2]),
    "sum": _sum,
}


def _exp(op: Any) -> Choice:
    base = 1.0 if op.base == -1 else math.log(op.base)
    factor, offset = op.scale * base, op.shift * base
    return ("exp", ()) if (factor, offset) == (1, 0) else ("exp-of", (factor, offset))


def _elu(op: Any) -> Choice | None:
    if op.input_scale < 0:
        return None
    return "exponential-unit", (op.input_scale, op.alpha * op.scale, op.scale)


def _selu(op: Any) -> Choice:
    alpha, gamma = op.get("_x_alpha", SELU_ALPHA), op.get("_x_gamma", SELU_GAMMA)
    return "exponential-unit", (1.0, alpha * gamma, gamma)


def _plain(name: str) -> Callable[[Any], Choice | None]:
    return lambda op: (name, ())


CHOICES: dict[str, Callable[[Any], Choice | None]] = {
    "Abs": _plain("abs"),
    "AccumulateNV2": _plain("sum"),
    "Add": _plain("add"),
    "AddN": _plain("sum"),
    "AddV2": _plain("add"),
    "Adds": lambda op: ("adds", (op.value,)),
    "ClipByValue": _plain("clip"),
    "Div": _plain("div"),
    "Elu": _elu,
    "Erf": _plain("erf"),
    "Exp": _exp,
    "Expm1": _plain("expm1"),
    "FastGelu": lambda op: ("swish", (-1.702,)),
    "Gelu": _plain("gelu"),
    "GeluV2": lambda op: ("gelu-tanh" if op.approximate == "tanh" else "gelu", ()),
    "HardSigmoid": lambda op: ("hard-sigmoid", (op.alpha, op.beta)),
    "HardSwish": lambda op: ("hard-swish", (1 / 6, 0.5)),
    "LeakyRelu": lambda op: ("leaky-relu", (op.negative_slope,)) if math.isfinite(op.negative_slope) else None,
    "Log": lambda op: ("log", ()) if (op.base, op.scale, op.shift) == (-1, 1, 0) else None,
    "Maximum": _plain("maximum"),
    "Minimum": _plain("minimum"),
    "Mish": _plain("mish"),
    "Mul": _plain("mul"),
    "Muls": lambda op: ("muls", (op.value,)),
    "Neg": _plain("neg"),
    "RealDiv": _plain("div"),
    "Reciprocal": _plain("reciprocal"),
    "Relu": _plain("relu"),
    "Relu6": _plain("relu6"),
    "Rsqrt": _plain("rsqrt"),
    "Selu": _selu,
    "Sigmoid": _plain("sigmoid"),
    "Softplus": _plain("softplus"),
    "Softsign": _plain("softsign"),
    "Sqrt": _plain("sqrt"),
    "Square": _plain("square"),
    "SquaredDifference": _plain("squared-difference"),
    "Sub": _plain("sub"),
    "Swish": lambda op: ("swish", (-op.scale,)),
    "Tanh": _plain("tanh"),
}
