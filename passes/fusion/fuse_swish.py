"""Fusion of Swish."""

from __future__ import annotations

from typing import ClassVar

from ge.graph import Node
from passes.fusion.gate_fusion import Gate, GateFusion
from passes.fusion.polynomial import Polynomial


class FuseSwish(GateFusion):
    """Before: ``x * Sigmoid(scale * x)``, in any order. After: ``Swish(x)`` with that scale, which often is 1."""

    name: ClassVar[str] = "SwishFusionPass"
    anchors: ClassVar[tuple[str, ...]] = ("Sigmoid",)

    def gate(self, anchor: Node, x: Polynomial, argument: Polynomial) -> Gate | None:
        """Whatever number x is multiplied by is the scale."""
        if len(argument.terms) != 1:
            return None
        [scale] = argument.terms.values()
        return Gate(x * scale, x * Polynomial.of(anchor.output()), "Swish", {"scale": scale})
