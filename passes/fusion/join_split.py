"""Removal of a Concat that joins what a Split has parted."""

from __future__ import annotations

from collections.abc import Collection
from typing import ClassVar

from ge.graph import Node, NodeOut
from passes.fusion.constants import attributes, ints_of
from passes.fusion.graph_fusion import WalkingFusion
from passes.fusion.rewriting import Rewriting

_SPLITS = {"Split": (1, 0), "SplitD": (0, None), "SplitV": (0, 2), "SplitVD": (0, None), "Unpack": (0, None)}
"""Per type the input that is parted, and the one that names the axis (else an attribute does)."""
_CONCATS = ("Concat", "ConcatD", "ConcatV2", "Pack")


class JoinSplit(WalkingFusion):
    """Before: ``Concat`` of all parts of a ``Split`` in their order, along its axis. After: what was split.

    1. The same for Pack of what Unpack has parted.
    2. The Split stays if others read parts of it.

    Left alone: parts that are left out, repeated, in another order, or joined along another axis.
    """

    name: ClassVar[str] = "SplitConcatFusionPass"

    @classmethod
    def anchor_types(cls) -> Collection[str]:
        """Return the types that are looked at."""
        return _SPLITS

    def walk(self, rewriting: Rewriting) -> None:
        """Look at every Concat."""
        for concat in rewriting.graph.nodes_of_type(*_CONCATS):
            parts, axis = _joined(concat)
            split = parts[0].node if parts else None
            if split is None or split.type not in _SPLITS or {part.node for part in parts} != {split}:
                continue
            source = split.input(_SPLITS[split.type][0])
            assert source is not None
            reason = _obstacle(concat, parts, axis, split, source)
            if reason:
                rewriting.refuse([split, concat], reason)
            else:
                rewriting.bypass([concat], concat.output(), source)


def _joined(concat: Node) -> tuple[list[NodeOut], int | None]:
    """Return what is joined, and along which axis."""
    sources = [source for source in concat.inputs if source is not None]
    if concat.type == "Concat":
        axis, sources = ints_of(sources[0]), sources[1:]
    elif concat.type == "ConcatV2":
        axis, sources = ints_of(sources[-1]), sources[:-1]
    else:
        axis = [attributes(concat).axis if concat.type == "Pack" else attributes(concat).concat_dim]
    return sources, axis[0] if axis else None


def _axis_of(split: Node) -> int | None:
    slot = _SPLITS[split.type][1]
    if slot is None:
        op = attributes(split)
        return int(op.axis if split.type == "Unpack" else op.split_dim)
    found = ints_of(split.input(slot))
    return found[0] if found else None


def _obstacle(concat: Node, parts: list[NodeOut], axis: int | None, split: Node, source: NodeOut) -> str:
    if (split.type == "Unpack") != (concat.type == "Pack"):
        return f"{concat.name} ({concat.type}) does not undo {split.name} ({split.type})"
    if parts != list(split.outputs()):
        return f"{concat.name} joins other parts than all of {split.name} in their order"
    if source.desc.origin_shape.is_unknown_rank():
        return f"the rank of {source.node.name} is not known"
    rank = len(source.desc.origin_shape)
    own = _axis_of(split)
    if axis is None or own is None or axis % rank != own % rank:
        return f"{concat.name} joins along another axis than {split.name} splits"
    return ""
