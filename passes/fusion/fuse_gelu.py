"""Fusion of Gelu written with the error function."""

from __future__ import annotations

import math
from typing import ClassVar

from ge.graph import Node
from passes.fusion.gate_fusion import Gate, GateFusion
from passes.fusion.polynomial import Polynomial


class FuseGelu(GateFusion):
    """Before: ``x * (1 + Erf(x / sqrt(2))) * 0.5``, in any order. After: ``GeluV2(x)``.

    So too ``x * Erfc(-x / sqrt(2)) * 0.5``, which TensorFlow makes of it.
    """

    name: ClassVar[str] = "GeluFusionPass"
    anchors: ClassVar[tuple[str, ...]] = ("Erf", "Erfc")

    def gate(self, anchor: Node, x: Polynomial, argument: Polynomial) -> Gate:
        """Half of x, and half of x times Erf; or half of x times Erfc."""
        erf = Polynomial.of(anchor.output())
        if anchor.type == "Erfc":
            return Gate(x * -math.sqrt(0.5), x * erf * 0.5, "GeluV2", {"approximate": "none"})
        return Gate(x * math.sqrt(0.5), (x + x * erf) * 0.5, "GeluV2", {"approximate": "none"})
