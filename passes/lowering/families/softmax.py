"""Lowerings of softmax (``ge/ops/softmax.py``): a reduction, repeated along its axis, is one value like another."""

from __future__ import annotations

import numpy as np

from ge.graph import DataType
from ge.ops.softmax import takes_masked_rows
from passes.lowering.element_types import FLOATS
from passes.lowering.loop_ir import LoopOp
from passes.lowering.refusal import Rule
from passes.lowering.registry import NodeLowering, lowering, normalised_axes


@lowering("SoftmaxV2", is_ours=True, needs="reduce")
def softmax(node: NodeLowering) -> None:
    if node.op.get("_x_half_steps", False):
        raise node.refusal("steps are rounded to float16")
    shifted, axis = _shifted(node, "x")
    powers = node.apply("Exp", shifted)
    total = node.loops.reduce_then_broadcast("SUM", powers, axis)
    node.store(node.apply("TrueDiv", powers, total))
    node.is_material = True


@lowering("LogSoftmaxV2", is_ours=True, needs="reduce")
def log_softmax(node: NodeLowering) -> None:
    shifted, axis = _shifted(node, "logits")
    total = node.loops.reduce_then_broadcast("SUM", node.apply("Exp", shifted), axis)
    node.store(node.apply("Sub", shifted, node.apply("Ln", total)))
    node.is_material = True


def _shifted(node: NodeLowering, name: str) -> tuple[LoopOp, int]:
    """Return x minus its maximum along the axis, in float, and the axis."""
    node.require_plain()
    x = node.load(name)
    if node.op.get("_x_flatten", False) or x.dtype not in FLOATS:
        raise node.refusal("a softmax of rows, or of integers")
    axes = normalised_axes(list(node.op.axes), len(x.dims))
    if len(axes) != 1:
        raise node.refusal(f"a softmax over {len(axes)} axes")
    wide = x if x.dtype is DataType.DT_DOUBLE else node.loops.cast(x, DataType.DT_FLOAT)
    if takes_masked_rows(node.op, node.dtype):
        wide = node.apply("Maximum", wide, node.number(float(np.finfo(np.float32).min), wide.dtype))
    if x.dims[axes[0]] < 2:
        raise node.refusal("a softmax over one element", Rule.NOT_EXPRESSIBLE)
    return node.apply("Sub", wide, node.loops.reduce_then_broadcast("MAX", wide, axes[0])), axes[0]
