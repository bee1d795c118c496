"""Sequences of tensors."""

from __future__ import annotations

from ge.graph import DataType
from parsers.onnx.mapping import Mapped, Row, maps, maps_rows
from parsers.onnx.node_builder import NodeBuilder

maps_rows(
    {
        "ConcatFromSequence": Row("ConcatFromSequence", axis="axis", new_axis="new_axis"),
        "SequenceAt": "SequenceAt",
        "SequenceConstruct": "SequenceConstruct",
        "SequenceErase": "SequenceErase",
        "SequenceInsert": "SequenceInsert",
        "SequenceLength": "SequenceLength",
    }
)


@maps("SequenceEmpty")
def sequence_empty(n: NodeBuilder) -> Mapped:
    """Before: SequenceEmpty(dtype). After: SequenceEmpty."""
    wanted = n.attr("dtype")
    dtype = DataType.DT_FLOAT if wanted is None else n.element_type(wanted, "dtype")
    return n.add("SequenceEmpty", dtype=dtype)


@maps("SplitToSequence")
def split_to_sequence(n: NodeBuilder) -> Mapped:
    """Before: SplitToSequence. After: SplitToSequence."""
    return n.add("SplitToSequence", *n.inputs, axis=n.attr("axis"), keepdims=bool(n.attr("keepdims")))
