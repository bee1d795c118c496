"""Lowerings of choices (``ge/ops/selection.py``) and of tensors of one number (``ge/ops/creation.py``)."""

from __future__ import annotations

from passes.lowering.registry import NodeLowering, lowering, pointwise

pointwise("SelectV2", "Where")


@lowering("Select")
def select(node: NodeLowering) -> None:
    """A vector as the condition chooses rows; that is left to the operator."""
    condition, x1 = node.source("condition"), node.source("x1")
    if condition is None or x1 is None or len(condition.desc.shape) != len(x1.desc.shape):
        raise node.refusal("the condition has another rank")
    node.store(node.apply("Where", *node.operands()))


@lowering("Fill")
def fill(node: NodeLowering) -> None:
    value = node.load("value")
    if value.type != "Scalar":
        raise node.refusal("the number is not constant")
    node.require_plain()
    node.store(node.loops.broadcast(value, node.dims))
