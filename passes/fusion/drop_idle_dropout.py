"""Removal of dropout that keeps everything."""

from __future__ import annotations

from collections.abc import Collection
from typing import ClassVar

from ge.graph import Node, NodeOut
from passes.fusion.constants import is_everywhere, is_float
from passes.fusion.graph_fusion import WalkingFusion
from passes.fusion.rewriting import Rewriting, producers_first
from passes.fusion.sketch import is_alike


class DropIdleDropout(WalkingFusion):
    """Before: ``x * Floor(r + 1)``, ``x * Cast(r >= 0)``, ``SelectV2(r >= 0, x, y)``. After: ``x``.

    r is RandomUniform, which is never negative and below 1: what TensorFlow writes for dropout with a rate of 0, the
    default of many an input that says how much to keep.

    Left alone:
    1. other numbers: then something is dropped at random;
    2. x is smaller than the random numbers;
    3. the random numbers, or what is made of them, have other readers.
    """

    name: ClassVar[str] = "IdleDropoutFusionPass"

    @classmethod
    def anchor_types(cls) -> Collection[str]:
        """Return the random numbers."""
        return ("RandomUniform",)

    def walk(self, rewriting: Rewriting) -> None:
        """Look at what is made of all random numbers."""
        for numbers in rewriting.graph.nodes_of_type("RandomUniform"):
            found = _dropout(numbers)
            if found is None:
                continue
            nodes, end, kept, is_complete = found
            if not is_complete:
                rewriting.refuse(nodes, "something is dropped at random")
            elif not is_alike(kept.desc, end.output_descs[0]):
                rewriting.refuse(nodes, f"{end.name} makes {kept.node.name} larger")
            else:
                rewriting.bypass(producers_first(nodes), end.output(), kept)


def _dropout(numbers: Node) -> tuple[list[Node], Node, NodeOut, bool] | None:
    """Return the nodes of a dropout, the last of them, what it keeps, and whether it keeps all of it."""
    step = _only_reader(numbers)
    if step is None or len(step.inputs) != 2:
        return None
    slot = step.inputs.index(numbers.output())
    other = step.input(1 - slot)
    mask = _only_reader(step)
    if mask is None:
        return None
    if step.type == "GreaterEqual" and slot == 0 and mask.type == "SelectV2" and mask.input(0) == step.output():
        kept = mask.input(1)
        return None if kept is None else ([numbers, step, mask], mask, kept, is_everywhere(other, 0))
    if step.type in ("Add", "AddV2") and mask.type == "Floor":
        is_complete = is_everywhere(other, 1)
    elif step.type == "GreaterEqual" and slot == 0 and mask.type == "Cast" and is_float(mask.output()):
        is_complete = is_everywhere(other, 0)
    else:
        return None
    product = _only_reader(mask)
    if product is None or product.type != "Mul":
        return None
    kept = product.input(1 - product.inputs.index(mask.output()))
    if kept is None or kept.node is mask:
        return None
    return [numbers, step, mask, product], product, kept, is_complete


def _only_reader(node: Node) -> Node | None:
    readers = [reader.node for reader in node.consumers(0)]
    return readers[0] if len(readers) == 1 else None
