"""Fusion of RMSNorm written with a mean."""

from __future__ import annotations

from typing import ClassVar

from ge.graph import Node
from passes.fusion.expression_fusion import Expression, ExpressionFusion, furthest, operands, tolerance_of
from passes.fusion.normalised import in_shape, normalised
from passes.fusion.polynomial import Polynomial, Reader
from passes.fusion.reductions import MEANS, reduction_of

REACH = 4
"""How many tensors below the mean are looked at."""


class FuseRmsNorm(ExpressionFusion):
    """Before: ``x / Sqrt(ReduceMean(x**2) + epsilon) * gamma``, in any way. After: ``RmsNorm(x, gamma)``.

    Left alone:
    1. gamma is no constant with one element per normalised one: RmsNorm needs it;
    2. other axes than the last ones are normalised;
    3. the size of a normalised axis is not known;
    4. a value in between has other readers.
    """

    name: ClassVar[str] = "RmsNormFusionPass"
    anchors: ClassVar[tuple[str, ...]] = MEANS

    def find(self, anchor: Node) -> Expression | None:
        """Find x below the mean of squares, then the quotient above."""
        squares = reduction_of(anchor, MEANS)
        if squares is None:
            return None
        for x in operands(squares.source, REACH):
            below, symbol = Reader([x]), Polynomial.of(x)
            found = below.polynomial(squares.source)
            if found is None or not found.is_close(symbol**2, tolerance_of(x)):
                continue
            above = Reader([x, anchor.output()])
            candidates = [
                Expression(
                    result.output,
                    [*above.nodes(result.output), anchor, *below.nodes(squares.source)],
                    "RmsNorm",
                    (x, in_shape(result.scale, squares.length)),
                    {"epsilon": result.epsilon},
                    squares.refusal or ("" if result.scale is not None else "it has no gamma, which RmsNorm needs"),
                )
                for result in normalised(anchor, symbol, above, squares.length)
                if result.shift is None
            ]
            if candidates:
                return furthest(candidates)
        return None
