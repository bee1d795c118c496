"""What fusions of normalisations have in common: a mean of squares, and above it a quotient by its root."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from ge.graph import Node, NodeOut
from passes.fusion.expression_fusion import Expression, ExpressionFusion, furthest, operands, tolerance_of
from passes.fusion.normalised import Normalised, normalised
from passes.fusion.polynomial import Polynomial, Reader
from passes.fusion.reductions import MEANS, Reduction, reduction_of


@dataclass(frozen=True)
class Numerator:
    """What is squared and normalised: ``value``, an expression in ``tensors``, of which x is the first.

    ``nodes`` compute the others of x; ``reduction`` says over which axes.
    """

    value: Polynomial
    tensors: tuple[NodeOut, ...]
    nodes: tuple[Node, ...]
    reduction: Reduction


class NormFusion(ExpressionFusion):
    """Below a mean of squares the numerator is found, above it the quotient, scaled and shifted."""

    anchors: ClassVar[tuple[str, ...]] = MEANS
    reach: ClassVar[int]
    """How many tensors below the mean of squares are looked at."""

    @abstractmethod
    def numerator(self, source: NodeOut, squares: Reduction) -> Numerator | None:
        """Return the numerator that ``source``, which is below the squares, gives away."""

    @abstractmethod
    def expression(self, found: Normalised, numerator: Numerator, nodes: list[Node]) -> Expression | None:
        """Return the one node that computes what ``nodes`` do."""

    def find(self, anchor: Node) -> Expression | None:
        """Find the numerator, then the quotient that reaches furthest."""
        squares = reduction_of(anchor, MEANS)
        if squares is None:
            return None
        for source in operands(squares.source, self.reach):
            numerator = self.numerator(source, squares)
            if numerator is None:
                continue
            below = Reader(list(numerator.tensors))
            square = below.polynomial(squares.source)
            if square is None or not square.is_close(numerator.value**2, tolerance_of(squares.source)):
                continue
            inside = [anchor, *numerator.nodes, *below.nodes(squares.source)]
            found = furthest(self._candidates(anchor, numerator, inside))
            if found is not None:
                return found
        return None

    def _candidates(self, anchor: Node, numerator: Numerator, inside: list[Node]) -> list[Expression]:
        above = Reader([*numerator.tensors, anchor.output()])
        quotients = normalised(anchor, numerator.value, above, numerator.reduction.length)
        found = (self.expression(q, numerator, [*above.nodes(q.output), *inside]) for q in quotients)
        return [expression for expression in found if expression is not None]
