"""Removal of arithmetic that changes nothing."""

from __future__ import annotations

from collections.abc import Collection
from typing import ClassVar

import numpy as np

from ge.graph import Node, NodeOut
from passes.fusion.constants import attributes, is_everywhere, is_fixed, is_float, value_of
from passes.fusion.graph_fusion import WalkingFusion
from passes.fusion.rewriting import Rewriting
from passes.fusion.signed_zero import teller_of_zeros

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
_SUMS = {"Add": 1.0, "AddV2": 1.0, "Adds": 1.0, "Sub": -1.0}
"""Operators that add, with the sign of the zero that makes 0.0 of -0.0: ``-0.0 + 0.0`` is, ``-0.0 - 0.0`` is not."""


class DropNeutralOperand(WalkingFusion):
    """Before: ``x + 0``, ``x - 0``, ``x * 1``, ``x / 1``, ``Pow(x, 1)``, Adds and Muls alike. After: ``x``.

    NaN and infinities stay what they are, whole numbers too; the constant may have any shape.

    Left alone:
    1. the result is larger than x, or of another type;
    2. ``x + 0.0`` makes 0.0 of -0.0, and a reader could tell: something is divided by it, for one. (``x - 0.0`` and
       ``x + -0.0`` leave -0.0 as it is.)
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
            teller = teller_of_zeros(node) if _makes_one_zero(node, source) else ""
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


def _makes_one_zero(node: Node, source: NodeOut) -> bool:
    """Tell whether ``node``, which gives out ``source``, makes 0.0 of -0.0."""
    if node.type not in _SUMS or not is_float(source):
        return False
    other = value_of(next((s for s in node.inputs if s != source), None))
    zero = attributes(node).value if node.type == "Adds" else other
    return bool(np.any(np.copysign(1.0, np.asarray(zero, np.float64)) == _SUMS[node.type]))
