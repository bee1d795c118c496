"""The two zeros of floating point numbers."""

from __future__ import annotations

from ge.graph import Node

_TELLING_SLOTS = {
    "Atan2": (0, 1),
    **dict.fromkeys(("Div", "DivNoNan", "FloorDiv", "Mod", "RealDiv", "TruncateDiv"), (1,)),
    **dict.fromkeys(("Bitcast", "Pow", "Power", "Reciprocal", "Rsqrt", "Sign"), (0,)),
}
"""Operators to which 0.0 and -0.0 may be different operands, and the inputs where they may."""


def teller_of_zeros(node: Node) -> str:
    """Return a reader of ``node``'s result that could tell 0.0 from -0.0 there; empty if none could."""
    readers = node.consumers()
    return next((r.node.name for r in readers if r.index in _TELLING_SLOTS.get(r.node.type, ())), "")
