"""Elementwise mathematics, comparisons, logic and bits."""

from __future__ import annotations

from functools import reduce

from ge.graph import DataType
from parsers.onnx.mapping import Mapped, Row, maps, maps_rows
from parsers.onnx.node_builder import NodeBuilder, Source

maps_rows(
    {
        "Abs": "Abs",
        "Acos": "Acos",
        "Acosh": "Acosh",
        "Add": "Add",
        "And": "LogicalAnd",
        "Asin": "Asin",
        "Asinh": "Asinh",
        "Atan": "Atan",
        "Atanh": "Atanh",
        "BitwiseAnd": "BitwiseAnd",
        "BitwiseNot": "Invert",
        "BitwiseOr": "BitwiseOr",
        "BitwiseXor": "BitwiseXor",
        "Ceil": "Ceil",
        "Cos": "Cos",
        "Cosh": "Cosh",
        "Det": "MatrixDeterminant",
        "Div": "RealDiv",
        "Equal": "Equal",
        "Erf": "Erf",
        "Exp": "Exp",
        "Floor": "Floor",
        "Greater": "Greater",
        "GreaterOrEqual": "GreaterEqual",
        "IsInf": Row("IsInf", detect_negative="_x_detect_negative", detect_positive="_x_detect_positive"),
        "IsNaN": "IsNan",
        "Less": "Less",
        "LessOrEqual": "LessEqual",
        "Log": "Log",
        "Mod": Row("Mod", fmod="_x_fmod"),
        "Mul": "Mul",
        "Neg": "Neg",
        "Not": "LogicalNot",
        "Or": "LogicalOr",
        "Pow": "Pow",
        "Reciprocal": "Reciprocal",
        "Round": "Round",
        "Sign": "Sign",
        "Sin": "Sin",
        "Sinh": "Sinh",
        "Sqrt": "Sqrt",
        "Sub": "Sub",
        "Tan": "Tan",
    }
)


@maps("Max")
def maximum(n: NodeBuilder) -> Mapped:
    """Before: Max(a, b, c). After: Maximum(Maximum(a, b), c); Identity for one input."""
    return _chain(n, "Maximum")


@maps("Min")
def minimum(n: NodeBuilder) -> Mapped:
    """Before: Min(a, b, c). After: Minimum(Minimum(a, b), c); Identity for one input."""
    return _chain(n, "Minimum")


def _chain(n: NodeBuilder, type: str) -> Mapped:
    if len(n.inputs) == 1:
        return n.add("Identity", *n.inputs)
    last = len(n.inputs) - 1

    def step(left: Source, pair: tuple[int, Source]) -> Source:
        i, right = pair
        return n.add(type, left, right, role="" if i == last else f"{type}_{i}")

    first: Source = n.inputs[0]
    result = reduce(step, enumerate(n.inputs[1:], start=1), first)
    assert result is not None
    return result


@maps("Sum")
def total(n: NodeBuilder) -> Mapped:
    """Before: Sum(a, ...). After: AccumulateNV2(a, ...)."""
    return n.add("AccumulateNV2", *n.inputs, N=len(n.inputs))


@maps("Mean")
def mean(n: NodeBuilder) -> Mapped:
    """Before: Mean of k inputs. After: AccumulateNV2 -> Muls(1/k)."""
    summed = n.add("AccumulateNV2", *n.inputs, role="AccumulateNV2", N=len(n.inputs))
    return n.add("Muls", summed, value=1.0 / len(n.inputs))


@maps("Clip")
def clip(n: NodeBuilder) -> Mapped:
    """Before: Clip(x, min, max). After: ClipByValue, Maximum, Minimum or Identity, by which limits there are."""
    x = n.need(0)
    if n.since_version < 11:
        dtype = n.dtype(x)
        limits = [n.scalar(role, n.attr(name), dtype) for role, name in (("Min", "min"), ("Max", "max"))]
        return n.add("ClipByValue", x, *limits)
    low, high = n.input(1), n.input(2)
    if low is not None and high is not None:
        return n.add("ClipByValue", x, low, high)
    if low is not None:
        return n.add("Maximum", x, low)
    return n.add("Identity", x) if high is None else n.add("Minimum", x, high)


@maps("Xor")
def exclusive_or(n: NodeBuilder) -> Mapped:
    """Before: Xor of booleans. After: Cast(int32) x 2 -> BitwiseXor -> Cast(bool)."""
    words = [n.add("Cast", n.need(i), role=f"Cast_{i}", dst_type=int(DataType.DT_INT32)) for i in (0, 1)]
    differs = n.add("BitwiseXor", *words, role="BitwiseXor")
    return n.add("Cast", differs, dst_type=int(DataType.DT_BOOL))


@maps("BitShift")
def bit_shift(n: NodeBuilder) -> Mapped:
    """Before: BitShift. After: LeftShift or RightShift."""
    direction = n.choice("direction", "LEFT", "RIGHT")
    return n.add("LeftShift" if direction == "LEFT" else "RightShift", n.need(0), n.need(1))


@maps("CumSum")
def cumulative_sum(n: NodeBuilder) -> Mapped:
    """Before: CumSum(x, axis). After: Cumsum(x, axis)."""
    return n.add("Cumsum", *n.inputs, exclusive=bool(n.attr("exclusive")), reverse=bool(n.attr("reverse")))


@maps("CumProd")
def cumulative_product(n: NodeBuilder) -> Mapped:
    """Before: CumProd(x, axis). After: Cumprod(x, axis)."""
    return n.add("Cumprod", *n.inputs, exclusive=bool(n.attr("exclusive")), reverse=bool(n.attr("reverse")))


@maps("Einsum")
def einsum(n: NodeBuilder) -> Mapped:
    """Before: Einsum. After: Einsum."""
    return n.add("Einsum", *n.inputs, equation=n.attr("equation"), N=len(n.inputs))
