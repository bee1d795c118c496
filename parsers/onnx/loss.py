"""Losses."""

from __future__ import annotations

from typing import Any

from parsers.onnx.mapping import Mapped, maps
from parsers.onnx.node_builder import NodeBuilder


@maps("SoftmaxCrossEntropyLoss")
def softmax_cross_entropy(n: NodeBuilder) -> Mapped:
    """Before: SoftmaxCrossEntropyLoss. After: the same; ``ignore_index`` only where the node gives it."""
    extra: dict[str, Any] = {"ignore_index": n.attr("ignore_index")} if n.has_attr("ignore_index") else {}
    reduction = n.choice("reduction", "none", "mean", "sum")
    return n.add("SoftmaxCrossEntropyLoss", *n.inputs, reduction=reduction, **extra)
