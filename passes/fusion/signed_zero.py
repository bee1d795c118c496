"""The two zeros of floating point numbers."""

from __future__ import annotations

from ge.graph import Node

_TELLS_ZEROS_APART = frozenset(
    {"Atan2", "Bitcast", "Div", "DivNoNan", "FloorDiv", "Mod", "Pow", "Power", "RealDiv", "Reciprocal", "Rsqrt"}
    | {"Sign", "TruncateDiv"}
)
"""Operators to which 0.0 and -0.0 may be different operands."""


def teller_of_zeros(node: Node) -> str:
    """Return a reader of ``node``'s result that could tell 0.0 from -0.0 there; empty if none could."""
    return next((reader.node.name for reader in node.consumers() if reader.node.type in _TELLS_ZEROS_APART), "")
