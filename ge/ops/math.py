"""Elementwise mathematics: one operand, two operands, comparisons, logic, bits.

Integer results wrap as two's complement. Integer division (RealDiv, Div, TruncateDiv) truncates toward zero as C and
ONNX do, FloorDiv rounds down; a zero divisor gives 0. Shifts by the width or more give 0 (-1 for negative numbers
shifted right).

Extra attributes, for meaning that the GE operator lacks:
  Mod    ``_x_fmod``: 0 lets the result take the sign of the divisor (ONNX's default), otherwise that of the dividend
  IsInf  ``_x_detect_negative``, ``_x_detect_positive``: 0 leaves that infinity out
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import numpy as np

from ge.graph.types import DataType
from ge.ops.cast import saturate
from ge.ops.inference import broadcast, broadcast_shapes, common_type, same_as
from ge.ops.registry import InferContext, InferFunction, OutputSpec, operator

BOOL = DataType.DT_BOOL


_LIKE_X = same_as("x")
_BROADCAST = broadcast("x1", "x2")


def unary(type: str, function: Callable[[Any], Any], infer: InferFunction = _LIKE_X, **flags: Any) -> None:
    """Register ``type(x) -> y`` as ``function`` of its elements."""
    operator(f"{type}(x)", infer=infer, **flags)(lambda op, x: function(x))


def binary(type: str, function: Callable[[Any, Any], Any], infer: InferFunction = _BROADCAST) -> None:
    """Register ``type(x1, x2) -> y`` as ``function`` of its broadcast elements."""
    operator(f"{type}(x1, x2)", infer=infer)(lambda op, x1, x2: function(x1, x2))


def comparison(type: str, function: Callable[[Any, Any], Any]) -> None:
    """Register ``type(x1, x2) -> y`` with a boolean result."""
    binary(type, function, infer=broadcast("x1", "x2", dtype=BOOL))


def is_integer(array: Any) -> bool:
    """True for signed and unsigned integers (not bool)."""
    return array.dtype.kind in "iu"


def truncated_quotient(x1: Any, x2: Any) -> Any:
    """Divide; integers truncate toward zero, as in C, and give 0 for a zero divisor."""
    if not is_integer(x1):
        return np.divide(x1, x2)
    down = np.floor_divide(x1, x2)
    if x1.dtype.kind == "u":
        return down
    is_rounded_up = (np.remainder(x1, x2) != 0) & ((x1 < 0) != (x2 < 0))
    return down + is_rounded_up.astype(down.dtype)


def _floor_quotient(x1: Any, x2: Any) -> Any:
    return np.floor_divide(x1, x2) if is_integer(x1) else np.floor(np.divide(x1, x2))


def _quotient_or_zero(x1: Any, x2: Any) -> Any:
    return np.where(x2 == 0, np.zeros_like(x1), np.divide(x1, x2))


def _power(x1: Any, x2: Any) -> Any:
    if not is_integer(x1):
        return np.power(x1, x2)
    if is_integer(x2) and not np.any(x2 < 0):
        return np.power(x1.astype(np.uint64), x2.astype(np.uint64)).astype(x1.dtype)  # exact modulo 2^64
    return saturate(np.power(x1.astype(np.float64), x2.astype(np.float64)), x1.dtype)


_erfc = np.frompyfunc(math.erfc, 1, 1)


def erfc(x: Any) -> Any:
    """Return 1 - erf(x), in float64; where that tends to 0 it is right in all digits."""
    return np.asarray(_erfc(x)).astype(np.float64)


# -- one operand -------------------------------------------------------------------------------------------------------
unary("Abs", np.abs)
unary("Acos", np.arccos)
unary("Acosh", np.arccosh)
unary("Asin", np.arcsin)
unary("Asinh", np.arcsinh)
unary("Atan", np.arctan)
unary("Atanh", np.arctanh)
unary("Ceil", np.ceil)
unary("Cos", np.cos)
unary("Cosh", np.cosh)
unary("Erfc", erfc)
unary("Expm1", np.expm1)
unary("Floor", np.floor)
unary("Invert", np.invert)
unary("IsFinite", np.isfinite, infer=same_as("x", BOOL))
unary("IsNan", np.isnan, infer=same_as("x", BOOL))
unary("Log1p", np.log1p)
unary("LogicalNot", np.logical_not, infer=same_as("x", BOOL))
unary("Neg", np.negative)
unary("OnesLike", np.ones_like)
unary("Reciprocal", lambda x: 1 / x)
unary("Rint", np.rint)
unary("Rsqrt", lambda x: 1 / np.sqrt(x))
unary("Sign", np.sign)
unary("Sin", np.sin)
unary("Sinh", np.sinh)
unary("Sqrt", np.sqrt)
unary("Square", np.square)
unary("Tan", np.tan)
unary("TensorMove", np.copy, exact_types=True)
unary("ZerosLike", np.zeros_like)

# -- two operands ------------------------------------------------------------------------------------------------------
binary("Add", np.add)
binary("AddV2", np.add)
binary("Atan2", np.arctan2)
binary("BitwiseAnd", np.bitwise_and)
binary("BitwiseOr", np.bitwise_or)
binary("BitwiseXor", np.bitwise_xor)
binary("Div", truncated_quotient)
binary("DivNoNan", _quotient_or_zero)
binary("FloorDiv", _floor_quotient)
binary("FloorMod", np.remainder)
binary("Maximum", np.maximum)
binary("Minimum", np.minimum)
binary("Mul", np.multiply)
binary("RealDiv", truncated_quotient)
binary("SquaredDifference", lambda x1, x2: np.square(x1 - x2))
binary("Sub", np.subtract)
binary("TruncateDiv", lambda x1, x2: np.trunc(truncated_quotient(x1, x2)))
binary("TruncateMod", np.fmod)

comparison("Equal", np.equal)
comparison("Greater", np.greater)
comparison("GreaterEqual", np.greater_equal)
comparison("Less", np.less)
comparison("LessEqual", np.less_equal)
comparison("LogicalAnd", np.logical_and)
comparison("LogicalOr", np.logical_or)
comparison("NotEqual", np.not_equal)


def _base_type(ctx: InferContext) -> Sequence[OutputSpec]:
    return [(broadcast_shapes(ctx, [ctx.shape("x1"), ctx.shape("x2")]), ctx.dtype("x1"))]


# The exponent may have another type. Integer bases: a negative or fractional exponent is computed in float64,
# truncates toward zero and saturates; other results are exact and wrap.
binary("Pow", _power, infer=_base_type)


@operator("Mod(x1, x2)", infer=_BROADCAST)
def mod(op: Any, x1: Any, x2: Any) -> Any:
    return np.remainder(x1, x2) if op.get("_x_fmod", 1) == 0 else np.fmod(x1, x2)


@operator("LeftShift(x, y) -> z", infer=broadcast("x", "y"))
def left_shift(op: Any, x: Any, y: Any) -> Any:
    return np.left_shift(x, y)


@operator("RightShift(x, y) -> z", infer=broadcast("x", "y"))
def right_shift(op: Any, x: Any, y: Any) -> Any:
    return np.right_shift(x, y)


# -- with attributes ---------------------------------------------------------------------------------------------------
@operator("IsInf(x)", infer=same_as("x", BOOL))
def is_inf(op: Any, x: Any) -> Any:
    found = np.zeros(x.shape, bool)
    if op.get("_x_detect_positive", 1):
        found |= np.isposinf(x)
    if op.get("_x_detect_negative", 1):
        found |= np.isneginf(x)
    return found


@operator("Round(x) [decimals:i=0]", infer=_LIKE_X)
def round_half_even(op: Any, x: Any) -> Any:
    return np.round(x, op.decimals)


@operator("Muls(x) [value:f!]", infer=_LIKE_X)
def muls(op: Any, x: Any) -> Any:
    return x * op.value


@operator("Adds(x) [value:f!]", infer=_LIKE_X)
def adds(op: Any, x: Any) -> Any:
    return x + op.value


@operator("Power(x) [power:f=1 scale:f=1 shift:f=0]", infer=_LIKE_X)
def power(op: Any, x: Any) -> Any:
    return np.power(x * op.scale + op.shift, op.power)


@operator("Exp(x) [base:f=-1 scale:f=1 shift:f=0]", infer=_LIKE_X)
def exp(op: Any, x: Any) -> Any:
    exponent = x if op.scale == 1 and op.shift == 0 else x * op.scale + op.shift
    return np.exp(exponent) if op.base == -1 else np.power(op.base, exponent)


@operator("Log(x) [base:f=-1 scale:f=1 shift:f=0]", infer=_LIKE_X)
def log(op: Any, x: Any) -> Any:
    result = np.log(x if op.scale == 1 and op.shift == 0 else x * op.scale + op.shift)
    return result if op.base == -1 else result / math.log(op.base)


def _clipped(ctx: InferContext) -> Sequence[OutputSpec]:
    names = ("x", "clip_value_min", "clip_value_max")
    common_type(ctx, [ctx.desc(name) for name in names])
    return [(broadcast_shapes(ctx, [ctx.shape(name) for name in names]), ctx.dtype("x"))]


@operator("ClipByValue(x, clip_value_min, clip_value_max)", infer=_clipped)
def clip_by_value(op: Any, x: Any, clip_value_min: Any, clip_value_max: Any) -> Any:
    return np.minimum(np.maximum(x, clip_value_min), clip_value_max)


def _sum_of_inputs(ctx: InferContext) -> Sequence[OutputSpec]:
    descs = ctx.descs("x")
    dtype = common_type(ctx, descs)
    return [(broadcast_shapes(ctx, [desc.origin_shape for desc in descs]), dtype)]


@operator("AccumulateNV2(x*) [N:i!]", infer=_sum_of_inputs)
def accumulate_nv2(op: Any, x: list[Any]) -> Any:
    return reduce(np.add, x)


@operator("AddN(x*) [N:i!]", infer=_sum_of_inputs)
def add_n(op: Any, x: list[Any]) -> Any:
    return reduce(np.add, x)


def _determinant(ctx: InferContext) -> Sequence[OutputSpec]:
    shape = ctx.shape("x")
    if shape.is_unknown_rank():
        return [(shape, ctx.dtype("x"))]
    if len(shape) < 2 or (shape[-1] != shape[-2] and -1 not in shape[-2:]):
        raise ctx.fail(f"input x of shape {shape} holds no square matrices")
    return [(shape[:-2], ctx.dtype("x"))]


@operator("MatrixDeterminant(x)", infer=_determinant)
def matrix_determinant(op: Any, x: Any) -> Any:
    return np.linalg.det(x.astype(np.float64))
