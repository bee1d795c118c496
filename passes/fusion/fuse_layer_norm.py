"""Fusion of LayerNorm written with means."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from ge.graph import Node, NodeOut
from passes.fusion.expression_fusion import Expression
from passes.fusion.norm_fusion import NormFusion, Numerator
from passes.fusion.normalised import Normalised, in_shape
from passes.fusion.polynomial import Polynomial
from passes.fusion.reductions import MEANS, Reduction, reduction_of


class FuseLayerNorm(NormFusion):
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
    reach: ClassVar[int] = 8

    def numerator(self, source: NodeOut, squares: Reduction) -> Numerator | None:
        """Return x without its mean, if ``source`` is a mean over the same axes."""
        inner = reduction_of(source.node, MEANS)
        if inner is None or inner.axes != squares.axes:
            return None
        centred = Polynomial.of(inner.source) - Polynomial.of(source)
        return Numerator(centred, (inner.source, source), (source.node,), inner)

    def expression(self, found: Normalised, numerator: Numerator, nodes: list[Node]) -> Expression | None:
        """Return LayerNormV4."""
        length = numerator.reduction.length
        gamma, beta = (in_shape(parameter, length) for parameter in (found.scale, found.shift))
        return Expression(
            found.output,
            nodes,
            "LayerNormV4",
            (numerator.tensors[0], np.array(length, np.int64), gamma, beta),
            {"epsilon": found.epsilon},
            numerator.reduction.refusal,
        )
