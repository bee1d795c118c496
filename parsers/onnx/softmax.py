"""Softmax and its relatives.

Since opset 13 they normalise along one axis. Before, all axes from ``axis`` on count as one: ``need_fusion`` marks this
old form, and ``_x_flatten`` tells the operator, unless the axes behind ``axis`` are known to be 1.
Since opset 13, too, Softmax has a function body, whose tensors are of the element type: ``_x_half_steps`` says so of
float16 (the difference to the maximum is kept exact all the same).
"""

from __future__ import annotations

from typing import Any

from ge.graph import DataType
from parsers.onnx.mapping import Mapped, maps
from parsers.onnx.node_builder import NodeBuilder


@maps("Softmax")
def softmax(n: NodeBuilder) -> Mapped:
    """Before: Softmax. After: SoftmaxV2(axes)."""
    if n.since_version < 13:
        extra: dict[str, Any] = {"need_fusion": 1}
    else:
        extra = {"_x_half_steps": True} if n.dtype(n.need(0)) is DataType.DT_FLOAT16 else {}
    return n.add("SoftmaxV2", *n.inputs, axes=[n.attr("axis")], **extra, **_flattening(n))


@maps("LogSoftmax")
def log_softmax(n: NodeBuilder) -> Mapped:
    """Before: LogSoftmax. After: LogSoftmaxV2(axes)."""
    return n.add("LogSoftmaxV2", *n.inputs, axes=[n.attr("axis")], **_flattening(n))


@maps("Hardmax")
def hardmax(n: NodeBuilder) -> Mapped:
    """Before: Hardmax. After: HardMax(axis)."""
    return n.add("HardMax", *n.inputs, axis=n.attr("axis"), **_flattening(n))


def _flattening(n: NodeBuilder) -> dict[str, Any]:
    if n.since_version >= 13:
        return {}
    shape = n.shape(n.need(0))
    if not shape.is_unknown_rank():
        axis = n.axis(n.attr("axis"), len(shape))
        if all(d == 1 for d in shape[axis + 1 :]):
            return {}
    return {"_x_flatten": True}
