"""Fusion of RMSNorm written with a mean."""

from __future__ import annotations

from typing import ClassVar

from ge.graph import Node, NodeOut
from passes.fusion.expression_fusion import Expression
from passes.fusion.norm_fusion import NormFusion, Numerator
from passes.fusion.normalised import Normalised, in_shape
from passes.fusion.polynomial import Polynomial
from passes.fusion.reductions import Reduction


class FuseRmsNorm(NormFusion):
    """Before: ``x / Sqrt(ReduceMean(x**2) + epsilon) * gamma``, in any way. After: ``RmsNorm(x, gamma)``.

    Left alone:
    1. gamma is no constant with one element per normalised one: RmsNorm needs it;
    2. other axes than the last ones are normalised;
    3. the size of a normalised axis is not known;
    4. a value in between has other readers.
    """

    name: ClassVar[str] = "RmsNormFusionPass"
    reach: ClassVar[int] = 4

    def numerator(self, source: NodeOut, squares: Reduction) -> Numerator | None:
        """Return x: any tensor may be it."""
        return Numerator(Polynomial.of(source), (source,), (), squares)

    def expression(self, found: Normalised, numerator: Numerator, nodes: list[Node]) -> Expression | None:
        """Return RmsNorm, which cannot shift."""
        if found.shift is not None:
            return None
        reduction = numerator.reduction
        return Expression(
            found.output,
            nodes,
            "RmsNorm",
            (numerator.tensors[0], in_shape(found.scale, reduction.length)),
            {"epsilon": found.epsilon},
            reduction.refusal or ("" if found.scale is not None else "it has no gamma, which RmsNorm needs"),
        )
