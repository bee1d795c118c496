"""Fusion of two Reshapes in a row."""

from __future__ import annotations

from typing import Any, ClassVar

from ge.es.all import Reshape
from ge.passes import MatchResult, pattern
from passes.fusion.graph_fusion import GraphFusion


class ReshapeReshape(GraphFusion):
    """Before: ``Reshape(Reshape(x, first), second)``. After: ``Reshape(x, second)``.

    Left alone:
    1. the inner result has other readers (the matcher sees to that);
    2. the outer Reshape replaces some of the axes only;
    3. its shape is not a constant, or has a 0, which stands for a dim of the inner result.
    """

    name: ClassVar[str] = "ReshapeReshapeFusionPass"

    @pattern
    def two_in_a_row(self, inputs: Any) -> Any:
        x, first, second = inputs[:3]
        return Reshape(Reshape(x, first), second)

    def refusal(self, match_result: MatchResult) -> str:
        """Look at cases 2 and 3."""
        outer = match_result.get_captured_tensor(3).node
        if (outer.get_attr("axis"), outer.get_attr("num_axes")) != (0, -1):
            return "the outer Reshape replaces some axes only"
        shape = match_result.get_captured_tensor(2).node
        if shape.type != "Const":
            return "the shape of the outer Reshape is not a constant"
        if 0 in shape.attrs["value"].array:
            return "the shape of the outer Reshape keeps a dim of the inner result"
        return ""

    def replacement(self, inputs: Any) -> Any:
        """Reshape once."""
        x, _, second = inputs[:3]
        return Reshape(x, second)
