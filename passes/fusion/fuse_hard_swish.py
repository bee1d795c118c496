"""Fusion of HardSwish."""

from __future__ import annotations

from typing import ClassVar

from ge.graph import Node
from passes.fusion.constants import attributes, number_of
from passes.fusion.gate_fusion import Gate, GateFusion
from passes.fusion.polynomial import Polynomial


class FuseHardSwish(GateFusion):
    """Before: x times a line through x that is cut below and above. After: ``HardSwish(x)``.

    1. ``x * ClipByValue(x + 3, 0, 6) / 6``, in any order, also with the sixth drawn in, or with Relu6.
    2. ``x * HardSigmoid(x)`` of slope 1/6 and offset 1/2.
    """

    name: ClassVar[str] = "HardSwishFusionPass"
    anchors: ClassVar[tuple[str, ...]] = ("ClipByValue", "Relu6", "HardSigmoid")

    def gate(self, anchor: Node, x: Polynomial, argument: Polynomial) -> Gate | None:
        """The gate reaches ``top``: dividing by that makes it 1."""
        cut = Polynomial.of(anchor.output())
        if anchor.type == "HardSigmoid":
            op = attributes(anchor)
            # what HardSigmoid takes is multiplied and shifted inside: say what that must be before
            return Gate((x * (1 / 6) + 0.5 - op.beta) * (1 / op.alpha), x * cut, "HardSwish") if op.alpha else None
        top = 6.0 if anchor.type == "Relu6" else _top_over_zero(anchor)
        return None if top is None else Gate((x * (1 / 6) + 0.5) * top, x * cut * (1 / top), "HardSwish")


def _top_over_zero(clip: Node) -> float | None:
    low, high = number_of(clip.input(1)), number_of(clip.input(2))
    return high if low == 0 and high is not None and 0 < high < float("inf") else None
