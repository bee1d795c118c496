"""Fusion of LayerNorm written with means."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from ge.graph import Node, NodeOut
from passes.fusion.expression_fusion import Expression, ExpressionFusion, furthest, operands, tolerance_of
from passes.fusion.normalised import Normalised, in_shape, normalised
from passes.fusion.polynomial import Polynomial, Reader
from passes.fusion.reductions import MEANS, Reduction, reduction_of

REACH = 8
"""How many tensors below the mean of squares are looked at."""


class FuseLayerNorm(ExpressionFusion):
    """Before: ``(x - m) / Sqrt(ReduceMean((x - m)**2) + epsilon) * gamma + beta`` with ``m = ReduceMean(x)``.

    After: ``LayerNormV4(x, gamma, beta)``.

    1. Squares, roots, quotients and orders may be written in any way.
    2. Without beta, or without both, the operator has these inputs absent. They belong to the match only if they are
       constants with one element per normalised one.

    Left alone:
    3. other axes than the last ones are normalised;
    4. the size of a normalised axis is not known;
    5. a value in between has other readers.
    """

    name: ClassVar[str] = "LayerNormFusionPass"
    anchors: ClassVar[tuple[str, ...]] = MEANS

    def find(self, anchor: Node) -> Expression | None:
        """Find the mean of x below the mean of squares, then the quotient above."""
        squares = reduction_of(anchor, MEANS)
        if squares is None:
            return None
        for mean in operands(squares.source, REACH):
            inner = reduction_of(mean.node, MEANS)
            if inner is None or inner.axes != squares.axes:
                continue
            below = Reader([inner.source, mean])
            centred = Polynomial.of(inner.source) - Polynomial.of(mean)
            found = below.polynomial(squares.source)
            if found is not None and found.is_close(centred**2, tolerance_of(squares.source)):
                inside = [anchor, mean.node, *below.nodes(squares.source)]
                return _above(anchor, mean, inner, centred, inside)
        return None


def _above(anchor: Node, mean: NodeOut, inner: Reduction, centred: Polynomial, inside: list[Node]) -> Expression | None:
    x = inner.source
    above, length = Reader([x, mean, anchor.output()]), inner.length

    def expression(found: Normalised) -> Expression:
        gamma, beta = (in_shape(parameter, length) for parameter in (found.scale, found.shift))
        return Expression(
            found.output,
            [*above.nodes(found.output), *inside],
            "LayerNormV4",
            (x, np.array(length, np.int64), gamma, beta),
            {"epsilon": found.epsilon},
            inner.refusal,
        )

    return furthest([expression(found) for found in normalised(anchor, centred, above, length)])
