"""Conversion of element types."""

from __future__ import annotations

from typing import Any

from parsers.onnx.mapping import Mapped, maps
from parsers.onnx.node_builder import NodeBuilder


@maps("Cast")
def cast(n: NodeBuilder) -> Mapped:
    """Before: Cast(to). After: Cast(dst_type as GE counts types)."""
    return n.add("Cast", n.need(0), dst_type=int(n.element_type(n.attr("to"), "to")), **_rounding(n))


@maps("CastLike")
def cast_like(n: NodeBuilder) -> Mapped:
    """Before: CastLike(x, target). After: CastLike."""
    return n.add("CastLike", n.need(0), n.need(1), **_rounding(n))


def _rounding(n: NodeBuilder) -> dict[str, Any]:
    """What concerns float8 only: out of range, and rounding to float8_e8m0."""
    extra: dict[str, Any] = {}
    if n.attr("saturate", 1) != 1:
        extra["_x_saturate"] = 0
    if n.attr("round_mode", "up") != "up":
        extra["_x_round_mode"] = n.choice("round_mode", "up", "down", "nearest")
    return extra


@maps("BitCast")
def bit_cast(n: NodeBuilder) -> Mapped:
    """Before: BitCast(to). After: Bitcast(type)."""
    return n.add("Bitcast", n.need(0), type=n.element_type(n.attr("to"), "to"))
