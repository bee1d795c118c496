"""Lowerings of elementwise mathematics (``ge/ops/math.py``)."""

from __future__ import annotations

import math
from functools import reduce as fold

from passes.lowering.element_types import FLOATS
from passes.lowering.loop_ir import LoopOp
from passes.lowering.refusal import Rule
from passes.lowering.registry import NodeLowering, lowering, pointwise

# -- one functor -------------------------------------------------------------------------------------------------------
pointwise("Abs")
pointwise("Acos")
pointwise("Add")
pointwise("AddV2", "Add")
pointwise("Asin")
pointwise("BitwiseAnd")
pointwise("ClipByValue")
pointwise("Equal", "Eq")
pointwise("FloorDiv")
pointwise("Greater", "Gt")
pointwise("GreaterEqual", "Ge")
pointwise("IsFinite")
pointwise("IsNan", "Isnan")
pointwise("Less", "Lt")
pointwise("LessEqual", "Le")
pointwise("LogicalAnd")
pointwise("LogicalNot")
pointwise("LogicalOr")
pointwise("Maximum")
pointwise("Minimum")
pointwise("Mul")
pointwise("Neg")
pointwise("NotEqual", "Ne")
pointwise("Pow")
pointwise("Reciprocal")
pointwise("Rsqrt")
pointwise("Sign")
pointwise("Sqrt")
pointwise("Sub")

pointwise("BitwiseOr", is_ours=True)
pointwise("BitwiseXor", is_ours=True)
pointwise("Ceil", is_ours=True)
pointwise("Cos", is_ours=True)
pointwise("Expm1", is_ours=True)
pointwise("Floor", is_ours=True)
pointwise("Invert", "BitwiseNot", is_ours=True)
pointwise("Rint", "Round", is_ours=True)
pointwise("Sin", is_ours=True)
pointwise("Tan", is_ours=True)


# -- several -----------------------------------------------------------------------------------------------------------
@lowering("Div", "RealDiv")
def divide(node: NodeLowering) -> None:
    """RealDiv of floating point is a TrueDiv; integers truncate."""
    is_true = node.node.type == "RealDiv" and node.dtype in FLOATS
    node.store(node.apply("TrueDiv" if is_true else "Div", *node.operands()))


@lowering("AddN", "AccumulateNV2")
def add_n(node: NodeLowering) -> None:
    node.store(fold(lambda total, value: node.apply("Add", total, value), node.operands()))


@lowering("DivNoNan")
def divide_or_zero(node: NodeLowering) -> None:
    x1, x2 = node.operands()
    zero = node.number(0)
    node.store(node.apply("Where", node.apply("Eq", x2, zero), zero, node.apply("Div", x1, x2)))


@lowering("Square")
def square(node: NodeLowering) -> None:
    [x] = node.operands()
    node.store(node.apply("Mul", x, x))


@lowering("SquaredDifference")
def squared_difference(node: NodeLowering) -> None:
    difference = node.apply("Sub", *node.operands())
    node.store(node.apply("Mul", difference, difference))


@lowering("Muls")
def multiply_by_number(node: NodeLowering) -> None:
    [x] = node.operands()
    node.store(node.apply("Mul", x, node.number(node.op.value)))


@lowering("Adds", is_ours=True)
def add_number(node: NodeLowering) -> None:
    [x] = node.operands()
    node.store(node.apply("Add", x, node.number(node.op.value)))


def _scaled(node: NodeLowering, x: LoopOp) -> LoopOp:
    """Return ``x * scale + shift``, attributes of the node."""
    if node.op.scale != 1:
        x = node.apply("Mul", x, node.number(node.op.scale))
    return x if node.op.shift == 0 else node.apply("Add", x, node.number(node.op.shift))


@lowering("Exp")
def exponential(node: NodeLowering) -> None:
    if node.op.base != -1:
        raise node.refusal(f"Exp to the base {node.op.base}")
    [x] = node.operands()
    node.store(node.apply("Exp", _scaled(node, x)))


@lowering("Log")
def logarithm(node: NodeLowering) -> None:
    [x] = node.operands()
    result = node.apply("Ln", _scaled(node, x))
    if node.op.base != -1:
        if not node.op.base > 0 or node.op.base == 1:
            raise node.refusal(f"Log to the base {node.op.base}")
        result = node.apply("TrueDiv", result, node.number(math.log(node.op.base)))
    node.store(result)


@lowering("Log1p")
def logarithm_of_one_more(node: NodeLowering) -> None:
    """CANN adds 1 and takes the logarithm; that loses small numbers, so the host has a functor of its own."""
    [x] = node.operands()
    if node.strategy.allows_ours:
        node.store(node.apply("Log1p", x))
        return
    if node.dtype not in FLOATS:
        raise node.refusal(f"Log1p of {node.dtype.name}", Rule.ELEMENT_TYPE)
    node.store(node.apply("Ln", node.apply("Add", x, node.number(1))))


@lowering("Round", is_ours=True)
def round_half_even(node: NodeLowering) -> None:
    if node.op.decimals != 0:
        raise node.refusal(f"Round to {node.op.decimals} decimals")
    node.store(node.apply("Round", *node.operands()))


@lowering("IsInf", is_ours=True)
def is_infinite(node: NodeLowering) -> None:
    if not (node.op.get("_x_detect_positive", 1) and node.op.get("_x_detect_negative", 1)):
        raise node.refusal("IsInf of one sign")
    node.store(node.apply("IsInf", *node.operands()))


@lowering("ZerosLike")
def zeros_like(node: NodeLowering) -> None:
    """Nothing is read: what makes the input need not be part of the kernel."""
    readers = node.node.consumers()
    if len(readers) != 1 or readers[0].node.type.startswith("Reduce"):
        raise node.refusal("its result has several readers, or is reduced")
    node.store(node.loops.broadcast(node.number(0), node.dims))
