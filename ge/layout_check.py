"""Whether the tensors of a node lie in memory so that the operator can work on them."""

from __future__ import annotations

from ge.formats import can_transfer, in_axis_order, is_private, lies_in_origin, storage_fault
from ge.graph.node import Node
from ge.graph.tensor_desc import TensorDesc
from ge.graph.types import FORMAT_TEXT
from ge.ops.format_columns import format_columns, is_laid_out_as
from ge.ops.fused import FUSED_TYPES

STORAGE_FORMAT = "storage_format"
"""Attribute of the descriptor of an input or result of the model whose layout its user has chosen."""

_GIVEN = frozenset({"Data", "RefData", "AnyData", "AippData", "Variable", "Const"})
"""Types whose outputs lie as a user or a file has them."""


def layout_fault(node: Node) -> str:
    """Return what is wrong with the layouts of a node's tensors; empty when nothing is.

    The storage view of every tensor must follow from its origin view, and the layouts must be one of the operator's
    columns (:mod:`ge.ops.format_columns`). Inputs, constants and results of the model have no columns, and a fused node
    works on memory as it lies.
    """
    for index, made in enumerate(node.output_descs):
        reason = storage_fault(made)
        if reason:
            return f"output {index}: {reason}"
    if node.type in ("TransData", "ReFormat"):
        return _transfer_fault(node)
    if all(map(lies_in_origin, (*node.output_descs, *_sources(node)))):
        return ""
    if node.type in _GIVEN or node.type in FUSED_TYPES:
        return ""
    if node.type == "NetOutput":
        return result_fault(node)
    return _column_fault(node)


def _sources(node: Node) -> list[TensorDesc]:
    return [source.desc for source in node.inputs if source is not None]


def _column_fault(node: Node) -> str:
    for slot, desc in enumerate(node.input_descs):
        if desc is not None and is_private(desc.format):
            reason = storage_fault(desc)
            if reason:
                return f"input {slot} as this node names its axes: {reason}"
    if any(is_laid_out_as(column, node) for column in format_columns(node)):
        return ""
    inputs = " ".join("_" if desc is None else FORMAT_TEXT[desc.format] for desc in node.input_descs)
    outputs = " ".join(FORMAT_TEXT[desc.format] for desc in node.output_descs)
    return f"it cannot work with the layouts {inputs} -> {outputs}: it has no such column"


def result_fault(node: Node) -> str:
    """Return which result of a NetOutput lies in a layout that the user has not chosen; empty when all lie as they
    must: as their origin view says unless the user has chosen another layout."""
    for slot, desc in enumerate(node.input_descs):
        source = node.input(slot)
        if desc is None or source is None or lies_in_origin(source.desc):
            continue
        chosen = desc.attrs.get(STORAGE_FORMAT)
        if not isinstance(chosen, int) or chosen & 0xFF != int(source.desc.format):
            return f"result {slot} lies in {FORMAT_TEXT[source.desc.format]}, which nobody asked for"
    return ""


def transfer_type_fault(node: Node) -> str:
    """Return what is wrong with the types of a node that only moves elements; empty when nothing is."""
    source = node.input(0) if node.type in ("TransData", "ReFormat") else None
    if source is None or source.desc.data_type is node.output_descs[0].data_type:
        return ""
    before, after = source.desc.data_type.name, node.output_descs[0].data_type.name
    return f"it cannot turn {before}, which it reads of {source}, into {after}: that is for a Cast"


def _transfer_fault(node: Node) -> str:
    before, after = _sources(node)[0], node.output_descs[0]
    expected = before.origin_shape
    if node.type != "ReFormat":
        expected = in_axis_order(expected, before.origin_format, after.origin_format)
    if expected != after.origin_shape or before.data_type != after.data_type:
        return f"it turns {before!r} into {after!r}, which is not the same tensor"
    if node.type == "ReFormat":
        is_view = lies_in_origin(before) and lies_in_origin(after)
        return "" if is_view else "it changes names of axes, and its tensors do not lie in their origin view"
    start = before.origin_format if lies_in_origin(before) else before.format
    end = after.origin_format if lies_in_origin(after) else after.format
    if start != end and not can_transfer(start, end):
        return f"no TransData turns {FORMAT_TEXT[start]} into {FORMAT_TEXT[end]}"
    said = str(node.attrs.get("src_format")), str(node.attrs.get("dst_format"))
    if said != (FORMAT_TEXT[start], FORMAT_TEXT[end]):
        return f"it says that it turns {said[0]} into {said[1]}, and turns {FORMAT_TEXT[start]} into {FORMAT_TEXT[end]}"
    return ""
