"""Fusion of Gelu written with tanh."""

from __future__ import annotations

import math
from typing import ClassVar

from ge.graph import Node
from passes.fusion.gate_fusion import Gate, GateFusion
from passes.fusion.polynomial import Polynomial


class FuseGeluTanh(GateFusion):
    """Before: ``x * (1 + Tanh(sqrt(2 / pi) * (x + 0.044715 * x**3))) * 0.5``, in any order.

    After: ``GeluV2(x)`` with ``approximate="tanh"``.
    """

    name: ClassVar[str] = "GeluTanhFusionPass"
    anchors: ClassVar[tuple[str, ...]] = ("Tanh",)

    def gate(self, anchor: Node, x: Polynomial, argument: Polynomial) -> Gate:
        """Half of x, and half of x times Tanh."""
        tanh = Polynomial.of(anchor.output())
        inner = (x + x**3 * 0.044715) * math.sqrt(2 / math.pi)
        return Gate(inner, (x + x * tanh) * 0.5, "GeluV2", {"approximate": "tanh"})
