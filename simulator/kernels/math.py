"""Elementwise mathematics: the table of ufuncs, and formulas of several steps."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ge.graph.types import DataType
from simulator.kernels.blocks import Formula, elementwise
from simulator.kernels.registry import FLOATS, Array, Inputs, Kernel, KernelRequest, Outputs, kernel

INTEGERS = frozenset(
    {
        DataType.DT_INT8,
        DataType.DT_INT16,
        DataType.DT_INT32,
        DataType.DT_INT64,
        DataType.DT_UINT8,
        DataType.DT_UINT16,
        DataType.DT_UINT32,
        DataType.DT_UINT64,
    }
)
NUMBERS = FLOATS | INTEGERS
BOOLS = frozenset({DataType.DT_BOOL})
_BOOL = np.dtype(np.bool_)

UNARY: dict[str, tuple[np.ufunc, frozenset[DataType]]] = {
    "Abs": (np.abs, NUMBERS),
    "Acos": (np.arccos, FLOATS),
    "Acosh": (np.arccosh, FLOATS),
    "Asin": (np.arcsin, FLOATS),
    "Asinh": (np.arcsinh, FLOATS),
    "Atan": (np.arctan, FLOATS),
    "Atanh": (np.arctanh, FLOATS),
    "Ceil": (np.ceil, FLOATS),
    "Cos": (np.cos, FLOATS),
    "Cosh": (np.cosh, FLOATS),
    "Expm1": (np.expm1, FLOATS),
    "Floor": (np.floor, FLOATS),
    "Invert": (np.invert, INTEGERS),
    "Log1p": (np.log1p, FLOATS),
    "Neg": (np.negative, NUMBERS),
    "Reciprocal": (np.reciprocal, FLOATS),
    "Rint": (np.rint, FLOATS),
    "Sign": (np.sign, NUMBERS),
    "Sin": (np.sin, FLOATS),
    "Sinh": (np.sinh, FLOATS),
    "Sqrt": (np.sqrt, FLOATS),
    "Square": (np.square, NUMBERS),
    "Tan": (np.tan, FLOATS),
    "Tanh": (np.tanh, FLOATS),
}
TESTS: dict[str, tuple[np.ufunc, frozenset[DataType]]] = {
    "IsFinite": (np.isfinite, FLOATS),
    "IsNan": (np.isnan, FLOATS),
    "LogicalNot": (np.logical_not, BOOLS),
}
BINARY: dict[str, tuple[np.ufunc, frozenset[DataType]]] = {
    "Add": (np.add, NUMBERS),
    "AddV2": (np.add, NUMBERS),
    "Atan2": (np.arctan2, FLOATS),
    "BitwiseAnd": (np.bitwise_and, INTEGERS),
    "BitwiseOr": (np.bitwise_or, INTEGERS),
    "BitwiseXor": (np.bitwise_xor, INTEGERS),
    "Div": (np.divide, FLOATS),
    "FloorMod": (np.remainder, NUMBERS),
    "Maximum": (np.maximum, NUMBERS),
    "Minimum": (np.minimum, NUMBERS),
    "Mul": (np.multiply, NUMBERS),
    "RealDiv": (np.divide, FLOATS),
    "Sub": (np.subtract, NUMBERS),
    "TruncateMod": (np.fmod, NUMBERS),
}
COMPARISONS: dict[str, tuple[np.ufunc, frozenset[DataType]]] = {
    "Equal": (np.equal, NUMBERS | BOOLS),
    "Greater": (np.greater, NUMBERS | BOOLS),
    "GreaterEqual": (np.greater_equal, NUMBERS | BOOLS),
    "Less": (np.less, NUMBERS | BOOLS),
    "LessEqual": (np.less_equal, NUMBERS | BOOLS),
    "LogicalAnd": (np.logical_and, BOOLS),
    "LogicalOr": (np.logical_or, BOOLS),
    "NotEqual": (np.not_equal, NUMBERS | BOOLS),
}


def _register(table: dict[str, tuple[np.ufunc, frozenset[DataType]]], slots: tuple[int, ...], makes_bool: bool) -> None:
    def builder(ufunc: np.ufunc) -> Callable[[KernelRequest], Kernel | None]:
        def build(request: KernelRequest) -> Kernel | None:
            if len({request.dtype(slot) for slot in slots}) > 1:
                return None
            result = _BOOL if makes_bool else None
            return elementwise(ufunc.__name__, request, ufunc, slots, result=result, is_one_step=True)

        return build

    for name, (ufunc, dtypes) in table.items():
        kernel(name, dtypes=dtypes)(builder(ufunc))


_register(UNARY, (0,), makes_bool=False)
_register(TESTS, (0,), makes_bool=True)
_register(BINARY, (0, 1), makes_bool=False)
_register(COMPARISONS, (0, 1), makes_bool=True)


def formula(*types: str, slots: tuple[int, ...] = (0,), temporaries: int = 0) -> Callable[[Any], Any]:
    """Register the decorated ``make(op) -> formula`` (or ``None``: leave it to the reference) for float operands."""

    def decorate(make: Callable[[Any], Formula | None]) -> Callable[[Any], Formula | None]:
        def build(request: KernelRequest) -> Kernel | None:
            if len({request.dtype(slot) for slot in slots}) > 1:
                return None
            found = make(request.op)
            if found is None:
                return None
            return elementwise(request.type.lower(), request, found, slots, temporaries=temporaries)

        kernel(*types, dtypes=FLOATS)(build)
        return make

    return decorate


# -- one operand -------------------------------------------------------------------------------------------------------
@formula("Rsqrt")
def rsqrt(op: Any) -> Formula:
    def run(x: Array, out: Array) -> None:
        np.sqrt(x, out=out)
        np.reciprocal(out, out=out)

    return run


@formula("Muls")
def muls(op: Any) -> Formula:
    return lambda x, out: np.multiply(x, op.value, out)


@formula("Adds")
def adds(op: Any) -> Formula:
    return lambda x, out: np.add(x, op.value, out)


@formula("Round")
def round_half_even(op: Any) -> Formula | None:
    return np.rint if op.decimals == 0 else None


@formula("Exp")
def exp(op: Any) -> Formula:
    factor = op.scale if op.base == -1 else op.scale * math.log(op.base)
    offset = op.shift if op.base == -1 else op.shift * math.log(op.base)
    if factor == 1 and offset == 0:
        return np.exp

    def run(x: Array, out: Array) -> None:
        np.multiply(x, factor, out=out)
        np.add(out, offset, out=out)
        np.exp(out, out=out)

    return run


@formula("Log")
def log(op: Any) -> Formula:
    if (op.base, op.scale, op.shift) == (-1, 1, 0):
        return np.log

    def run(x: Array, out: Array) -> None:
        np.multiply(x, op.scale, out=out)
        np.add(out, op.shift, out=out)
        np.log(out, out=out)
        if op.base != -1:
            np.divide(out, math.log(op.base), out=out)

    return run


@formula("Power")
def power(op: Any) -> Formula:
    def run(x: Array, out: Array) -> None:
        np.multiply(x, op.scale, out=out)
        np.add(out, op.shift, out=out)
        if op.power == 2:
            np.square(out, out=out)
        elif op.power != 1:
            np.power(out, op.power, out=out)

    return run


@kernel("IsInf", dtypes=FLOATS)
def build_is_inf(request: KernelRequest) -> Kernel | None:
    """Bind IsInf of both signs; one sign alone is left to the reference."""
    if not (request.op.get("_x_detect_positive", 1) and request.op.get("_x_detect_negative", 1)):
        return None
    return elementwise("isinf", request, np.isinf, result=_BOOL, is_one_step=True)


@kernel(
    "Dropout",
    "ExpandDims",
    "Flatten",
    "Identity",
    "Reshape",
    "Squeeze",
    "SqueezeV3",
    "TensorMove",
    "Unsqueeze",
    "UnsqueezeV3",
)
def build_copy(request: KernelRequest) -> Kernel | None:
    """Bind operators that only pass their elements on (those without a task are views and never come here)."""

    def run(inputs: Inputs, outputs: Outputs, scratch: Array) -> None:
        x, y = inputs[0], outputs[0]
        if y is not None:
            np.copyto(y, x.reshape(y.shape))

    return Kernel("copy", run, is_in_place_safe=True)


# -- several operands --------------------------------------------------------------------------------------------------
@formula("SquaredDifference", slots=(0, 1), temporaries=1)
def squared_difference(op: Any) -> Formula:
    def run(x1: Array, x2: Array, difference: Array, out: Array) -> None:
        np.subtract(x1, x2, out=difference)
        np.square(difference, out=out)

    return run


@formula("FloorDiv", slots=(0, 1), temporaries=1)
def floor_div(op: Any) -> Formula:
    def run(x1: Array, x2: Array, quotient: Array, out: Array) -> None:
        np.divide(x1, x2, out=quotient)
        np.floor(quotient, out=out)

    return run


@formula("DivNoNan", slots=(0, 1), temporaries=1)
def div_no_nan(op: Any) -> Formula:
    def run(x1: Array, x2: Array, quotient: Array, out: Array) -> None:
        np.divide(x1, x2, out=quotient)
        np.copyto(quotient, 0, where=np.equal(x2, 0))
        np.copyto(out, quotient)

    return run


@kernel("Mod", dtypes=NUMBERS)
def build_mod(request: KernelRequest) -> Kernel | None:
    """Bind Mod: the sign of the divisor (Python's way) or of the dividend (C's)."""
    if request.dtype(0) != request.dtype(1):
        return None
    ufunc = np.remainder if request.op.get("_x_fmod", 1) == 0 else np.fmod
    return elementwise("mod", request, ufunc, (0, 1), is_one_step=True)


@kernel("Pow", dtypes=FLOATS)
def build_pow(request: KernelRequest) -> Kernel | None:
    """Bind Pow of floats; a constant exponent of 2 or 3 becomes multiplications."""
    exponent = request.constants.get(1)
    if exponent is not None and exponent.size == 1 and len(request.shape(1)) <= len(request.shape(0)):
        if float(exponent.reshape(())) == 2:
            return elementwise("square", request, np.square, is_one_step=True)
        if float(exponent.reshape(())) == 3:
            return elementwise("cube", request, _cube, temporaries=1)
    if request.dtype(0) != request.dtype(1):
        return None
    return elementwise("power", request, np.power, (0, 1), is_one_step=True)


def _cube(x: Array, square: Array, out: Array) -> None:
    np.square(x, out=square)
    np.multiply(square, x, out=out)


@kernel("ClipByValue", dtypes=NUMBERS)
def build_clip(request: KernelRequest) -> Kernel | None:
    """Bind ``min(max(x, low), high)``."""
    if len({request.dtype(slot) for slot in range(3)}) > 1:
        return None

    def clip(x: Array, low: Array, high: Array, raised: Array, out: Array) -> None:
        np.maximum(x, low, out=raised)
        np.minimum(raised, high, out=out)

    return elementwise("clip", request, clip, (0, 1, 2), temporaries=1)


@kernel("AddN", "AccumulateNV2", dtypes=NUMBERS)
def build_sum(request: KernelRequest) -> Kernel | None:
    """Bind a sum of any number of operands, added from left to right."""
    slots = [slot for slot, desc in enumerate(request.inputs) if desc is not None]

    def add(*arrays: Array, out: Array) -> None:
        *operands, total = arrays
        np.copyto(total, operands[0])
        for operand in operands[1:-1]:
            np.add(total, operand, out=total)
        if len(operands) > 1:
            np.add(total, operands[-1], out=out)
        else:
            np.copyto(out, total)

    return elementwise("sum", request, add, slots, temporaries=1)
