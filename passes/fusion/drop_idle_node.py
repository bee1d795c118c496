"""Removal of operators that give out their input as it is."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import ClassVar

from ge.graph import Node, NodeOut
from passes.fusion.constants import attributes, ints_of, is_everywhere, is_fixed
from passes.fusion.graph_fusion import WalkingFusion
from passes.fusion.rewriting import Rewriting
from passes.fusion.sketch import is_alike


class DropIdleNode(WalkingFusion):
    """Before: a Concat of one tensor, a slice of everything, a Pad by nothing, an Expand or Tile to the same shape, a
    Split into one part, a sum of one. After: the input.

    Left alone: shapes that are not known to be equal.
    """

    name: ClassVar[str] = "IdleNodeFusionPass"

    @classmethod
    def anchor_types(cls) -> Collection[str]:
        """Return the types that are looked at."""
        return _RULES

    def walk(self, rewriting: Rewriting) -> None:
        """Look at every operator that may be idle."""
        for node in rewriting.graph.nodes_of_type(*_RULES):
            source = _RULES[node.type](node)
            if source is not None and not is_fixed(source) and is_alike(source.desc, node.output_descs[0]):
                rewriting.bypass([node], node.output(), source)


def _only(*, of_inputs: slice = slice(None)) -> Callable[[Node], NodeOut | None]:
    """Return a rule for operators that do nothing if they read one tensor."""

    def rule(node: Node) -> NodeOut | None:
        sources = node.inputs[of_inputs]
        return sources[0] if len(sources) == 1 else None

    return rule


def _split(slot: int) -> Callable[[Node], NodeOut | None]:
    return lambda node: node.input(slot) if len(node.output_descs) == 1 else None


def _same_shape(node: Node) -> NodeOut | None:
    """Rule for operators that repeat: if the shape stays, nothing was repeated."""
    return node.input(0)


def _whole_slice(node: Node) -> NodeOut | None:
    """Rule for slices: one of all elements, in steps of 1."""
    if node.type == "Slice":
        return node.input(0)
    op = attributes(node)
    strides = node.input(4 if node.type == "StridedSliceV2" else 3)
    if op.new_axis_mask or op.shrink_axis_mask or not (strides is None or is_everywhere(strides, 1)):
        return None
    return node.input(0)


def _no_padding(node: Node) -> NodeOut | None:
    widths = [w for pair in attributes(node).paddings for w in pair] if node.type == "PadD" else ints_of(node.input(1))
    return node.input(0) if widths is not None and not any(widths) else None


_RULES: dict[str, Callable[[Node], NodeOut | None]] = {
    "AccumulateNV2": _only(),
    "AddN": _only(),
    "BroadcastTo": _same_shape,
    "Concat": _only(of_inputs=slice(1, None)),
    "ConcatD": _only(),
    "ConcatV2": _only(of_inputs=slice(0, -1)),
    "Expand": _same_shape,
    "MirrorPad": _no_padding,
    "Pad": _no_padding,
    "PadD": _no_padding,
    "PadV2": _no_padding,
    "PadV3": _no_padding,
    "Slice": _whole_slice,
    "Split": _split(1),
    "SplitD": _split(0),
    "SplitV": _split(0),
    "SplitVD": _split(0),
    "StridedSlice": _whole_slice,
    "StridedSliceV2": _whole_slice,
    "Tile": _same_shape,
    "TileD": _same_shape,
}
