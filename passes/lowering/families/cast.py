"""Lowerings of conversions (``ge/ops/cast.py``)."""

from __future__ import annotations

from ge.graph import DataType
from ge.ops.cast import CLIP
from passes.lowering.refusal import Rule
from passes.lowering.registry import NodeLowering, lowering


@lowering("Cast")
def cast(node: NodeLowering) -> None:
    [x] = node.operands()
    if node.dtype is DataType.DT_BOOL:
        raise node.refusal("Cast to BOOL", Rule.ELEMENT_TYPE)
    if node.op.dst_type != node.dtype:
        raise node.refusal(f"dst_type is {node.op.dst_type}, the result {node.dtype.name}", Rule.ELEMENT_TYPE)
    if node.op.get(CLIP):
        raise node.refusal("a Cast that clips to the range of its result first")
    node.store(node.loops.cast(x, node.dtype))
