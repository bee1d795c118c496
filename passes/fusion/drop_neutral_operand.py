"""Removal of arithmetic that changes nothing."""

from __future__ import annotations

from collections.abc import Collection
from typing import ClassVar

from ge.graph import Node, NodeOut
from passes.fusion.constants import attributes, is_everywhere, is_fixed, is_float
from passes.fusion.graph_fusion import WalkingFusion
from passes.fusion.rewriting import Rewriting

_NEUTRAL: dict[str, tuple[float, tuple[int, ...]]] = {
    "Add": (0, (0, 1)),
    "AddV2": (0, (0, 1)),
    "Sub": (0, (1,)),
    "Mul": (1, (0, 1)),
    "RealDiv": (1, (1,)),
    "Div": (1, (1,)),
    "Pow": (1, (1,)),
}
"""Per operator the number that changes nothing, and the inputs where it may stand."""
_NEUTRAL_ATTRS = {"Adds": 0.0, "Muls": 1.0}
_TELLS_ZEROS_APART = frozenset(
    {"Atan2", "Bitcast", "Div", "DivNoNan", "Mod", "Pow", "RealDiv", "Reciprocal", "Rsqrt", "Sign", "TruncateDiv"}
)
"""Operators to which 0.0 and -0.0 may be different operands."""


class DropNeutralOperand(WalkingFusion):
    """Before: ``x + 0``, ``x - 0``, ``x * 1``, ``x / 1``, ``Pow(x, 1)``, Adds and Muls alike. After: ``x``.

    NaN and infinities stay what they are, whole numbers too; the constant may have any shape.

    Left alone:
    1. the result is larger than x, or of another type;
    2. ``x + 0.0`` makes 0.0 of -0.0, and a reader could tell: something is divided by it, for one;
    3. x is constant itself: folding sees to that.
    """

    name: ClassVar[str] = "NeutralOperandFusionPass"

    @classmethod
    def anchor_types(cls) -> Collection[str]:
        """Return the types that are looked at."""
        return (*_NEUTRAL, *_NEUTRAL_ATTRS)

    def walk(self, rewriting: Rewriting) -> None:
        """Look at every such operator."""
        for node in rewriting.graph.nodes_of_type(*_NEUTRAL, *_NEUTRAL_ATTRS):
            source = _unchanged(node)
            if source is None or is_fixed(source):
                continue
            teller = _teller(node)
            if teller:
                rewriting.refuse([node], f"{teller} can tell 0.0 from -0.0, which {node.name} makes one")
            else:
                rewriting.bypass([node], node.output(), source)


def _unchanged(node: Node) -> NodeOut | None:
    """Return what ``node`` gives out unchanged."""
    if node.type in _NEUTRAL_ATTRS:
        return node.input(0) if attributes(node).value == _NEUTRAL_ATTRS[node.type] else None
    number, slots = _NEUTRAL[node.type]
    slot = next((slot for slot in slots if is_everywhere(node.input(slot), number)), None)
    return None if slot is None else node.input(1 - slot)


def _teller(node: Node) -> str:
    """Return who could tell that -0.0 became 0.0; empty if nobody could."""
    if node.type not in ("Add", "AddV2", "Adds") or not is_float(node.output()):
        return ""
    return next((reader.node.name for reader in node.consumers() if reader.node.type in _TELLS_ZEROS_APART), "")
