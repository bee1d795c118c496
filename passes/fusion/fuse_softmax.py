"""Fusion of softmax written with exponentials."""

from __future__ import annotations

from typing import ClassVar

from ge.graph import Node, NodeOut
from passes.fusion.constants import attributes
from passes.fusion.expression_fusion import Expression, ExpressionFusion, operands, results
from passes.fusion.polynomial import Polynomial, Reader
from passes.fusion.reductions import SUMS, reduction_of

REACH = 4
"""How many tensors around an exponential are looked at."""


class FuseSoftmax(ExpressionFusion):
    """Before: ``e / ReduceSum(e)`` with ``e = Exp(x - ReduceMax(x))``. After: ``SoftmaxV2(x)``.

    Left alone:
    1. the maximum is not subtracted: where Exp overflows, softmax would give other results;
    2. maximum and sum are over different axes, or these do not lie side by side;
    3. a value in between has other readers.
    """

    name: ClassVar[str] = "SoftmaxFusionPass"
    anchors: ClassVar[tuple[str, ...]] = ("Exp",)

    def find(self, anchor: Node) -> Expression | None:
        """Find the sum and the quotient above Exp, then what it takes."""
        op, argument, power = attributes(anchor), anchor.input(0), anchor.output()
        if argument is None or (op.base, op.scale, op.shift) != (-1, 1, 0):
            return None
        for reader in power.node.consumers():
            total = reduction_of(reader.node, SUMS)
            if total is None or total.source != power:
                continue
            total_out = reader.node.output()
            above = Reader([power, total_out])
            quotient = Polynomial.of(power) * Polynomial.of(total_out, -1.0)
            for output in results(total_out, REACH):
                if above.polynomial(output) != quotient:
                    continue
                nodes = [*above.nodes(output), reader.node, anchor]
                found = Expression(output, nodes, "SoftmaxV2", (argument,), {"axes": list(total.axes)})
                if not total.is_over_neighbours:
                    found.refusal = f"the axes {list(total.axes)} do not lie side by side"
                    return found
                return _with_argument(found, argument, total.axes)
        return None


def _with_argument(found: Expression, argument: NodeOut, axes: tuple[int, ...]) -> Expression:
    """Find x and its maximum in what Exp takes."""
    for peak in operands(argument, REACH):
        maximum = reduction_of(peak.node, ("ReduceMax",))
        if maximum is None:
            continue
        x = maximum.source
        below = Reader([x, peak])
        if below.polynomial(argument) != Polynomial.of(x) - Polynomial.of(peak):
            continue
        found.inputs = (x,)
        found.nodes += [*below.nodes(argument), peak.node]
        if maximum.axes != axes:
            found.refusal = f"the maximum is over the axes {list(maximum.axes)}, the sum over {list(axes)}"
        return found
    found.refusal = "the maximum is not subtracted"
    return found
