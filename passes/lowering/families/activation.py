"""Lowerings of activation functions (``ge/ops/activation.py``)."""

from __future__ import annotations

import math

from ge.ops.activation import SELU_ALPHA, SELU_GAMMA
from passes.lowering.loop_ir import LoopOp
from passes.lowering.registry import NodeLowering, lowering, pointwise

pointwise("Erf")
pointwise("Gelu")
pointwise("Relu")
pointwise("Sigmoid")
pointwise("Tanh")


def _clipped(node: NodeLowering, x: LoopOp, low: float, high: float) -> LoopOp:
    return node.apply("Minimum", node.apply("Maximum", x, node.number(low)), node.number(high))


@lowering("LeakyRelu")
def leaky_relu(node: NodeLowering) -> None:
    [x] = node.operands()
    node.store(node.apply("LeakyRelu", x, negative_slope=float(node.op.negative_slope)))


@lowering("Swish")
def swish(node: NodeLowering) -> None:
    [x] = node.operands()
    scaled = x if node.op.scale == 1 else node.apply("Mul", x, node.number(node.op.scale))
    node.store(node.apply("Mul", x, node.apply("Sigmoid", scaled)))


def _exponential_less_one(node: NodeLowering, x: LoopOp) -> LoopOp:
    """Return e^x - 1 where x is negative, else 0; the host's functor keeps small numbers."""
    negative = node.apply("Minimum", x, node.number(0))
    if node.strategy.allows_ours:
        return node.apply("Expm1", negative)
    return node.apply("Sub", node.apply("Exp", negative), node.number(1))


def _times(node: NodeLowering, x: LoopOp, factor: float) -> LoopOp:
    return x if factor == 1 else node.apply("Mul", x, node.number(factor))


@lowering("Elu")
def elu(node: NodeLowering) -> None:
    [x] = node.operands()
    negative = _times(node, _exponential_less_one(node, _times(node, x, node.op.input_scale)), node.op.alpha)
    chosen = node.apply("Where", node.apply("Gt", x, node.number(0)), x, negative)
    node.store(_times(node, chosen, node.op.scale))


@lowering("Selu", is_ours=True)
def selu(node: NodeLowering) -> None:
    [x] = node.operands()
    negative = _times(node, _exponential_less_one(node, x), node.op.get("_x_alpha", SELU_ALPHA))
    chosen = node.apply("Where", node.apply("Gt", x, node.number(0)), x, negative)
    node.store(_times(node, chosen, node.op.get("_x_gamma", SELU_GAMMA)))


@lowering("Relu6", is_ours=True)
def relu6(node: NodeLowering) -> None:
    [x] = node.operands()
    node.store(_clipped(node, x, 0, 6))


@lowering("HardSigmoid", is_ours=True)
def hard_sigmoid(node: NodeLowering) -> None:
    [x] = node.operands()
    line = node.apply("Add", _times(node, x, node.op.alpha), node.number(node.op.beta))
    node.store(_clipped(node, line, 0, 1))


@lowering("HardSwish", is_ours=True)
def hard_swish(node: NodeLowering) -> None:
    [x] = node.operands()
    line = node.apply("Add", _times(node, x, 1 / 6), node.number(0.5))
    node.store(node.apply("Mul", x, _clipped(node, line, 0, 1)))


def _softplus(node: NodeLowering, x: LoopOp) -> LoopOp:
    small = node.apply("Exp", node.apply("Neg", node.apply("Abs", x)))
    return node.apply("Add", node.apply("Relu", x), node.apply("Log1p", small))


@lowering("Softplus", is_ours=True)
def softplus(node: NodeLowering) -> None:
    [x] = node.operands()
    node.store(_softplus(node, x))


@lowering("Mish", is_ours=True)
def mish(node: NodeLowering) -> None:
    [x] = node.operands()
    node.store(node.apply("Mul", x, node.apply("Tanh", _softplus(node, x))))


@lowering("Softsign", is_ours=True)
def softsign(node: NodeLowering) -> None:
    [x] = node.operands()
    node.store(node.apply("TrueDiv", x, node.apply("Add", node.apply("Abs", x), node.number(1))))


@lowering("FastGelu", is_ours=True)
def fast_gelu(node: NodeLowering) -> None:
    [x] = node.operands()
    node.store(node.apply("Mul", x, node.apply("Sigmoid", _times(node, x, 1.702))))


@lowering("GeluV2", is_ours=True)
def gelu_v2(node: NodeLowering) -> None:
    [x] = node.operands()
    if node.op.approximate != "tanh":
        node.store(node.apply("Gelu", x))
        return
    cube = node.apply("Mul", node.apply("Mul", x, x), _times(node, x, 0.044715))
    inner = _times(node, node.apply("Add", x, cube), math.sqrt(8 / math.pi))
    node.store(node.apply("Mul", x, node.apply("Sigmoid", inner)))
