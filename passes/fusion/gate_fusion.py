"""Fusion of activations that multiply a tensor by a function of itself."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar

from ge.graph import Node, NodeOut
from passes.fusion.expression_fusion import Expression, ExpressionFusion, operands, results, tolerance_of
from passes.fusion.polynomial import Polynomial, Reader

REACH = 8
"""How many tensors around an anchor are looked at."""


@dataclass(frozen=True)
class Gate:
    """What is expected around an anchor: of which x it is a function, and what is made of both."""

    argument: Polynomial
    """What the anchor's input should be, in x."""
    product: Polynomial
    """What the result should be, in x and the anchor's output."""
    type: str
    attrs: dict[str, Any] = field(default_factory=dict)


class GateFusion(ExpressionFusion):
    """``product(x, f(argument(x)))`` becomes one operator of x; f is the operator that gives the activation away.

    Left alone:
    1. the numbers are others, beyond the accuracy of the type;
    2. a value in between has other readers.
    """

    source_slot: ClassVar[int] = 0
    """The input of the anchor that is a function of x."""

    @abstractmethod
    def gate(self, anchor: Node, x: Polynomial, argument: Polynomial) -> Gate | None:
        """Return what is expected, or ``None`` where ``argument`` has nothing of it."""

    def find(self, anchor: Node) -> Expression | None:
        """Find x below the anchor, then the product above it."""
        argument = anchor.input(self.source_slot)
        if argument is None:
            return None
        refused = None
        for x in operands(argument, REACH):
            below = Reader([x])
            found = below.polynomial(argument)
            gate = None if found is None else self.gate(anchor, Polynomial.of(x), found)
            if gate is None or found is None or not found.is_like(gate.argument):
                continue
            expression = self._above(anchor, x, gate)
            if expression is None:
                continue
            expression.nodes += below.nodes(argument)
            if not found.is_close(gate.argument, tolerance_of(argument)):
                expression.refusal = f"{anchor.type} takes {found.text({x: 'x'})}, not {gate.argument.text({x: 'x'})}"
            if not expression.refusal:
                return expression
            refused = expression
        return refused

    def _above(self, anchor: Node, x: NodeOut, gate: Gate) -> Expression | None:
        made = anchor.output()
        above = Reader([x, made])
        refused = None
        for output in results(made, REACH):
            found = above.polynomial(output)
            if found is None or not found.is_like(gate.product):
                continue
            expression = Expression(output, [anchor, *above.nodes(output)], gate.type, (x,), dict(gate.attrs))
            if found.is_close(gate.product, tolerance_of(output)):
                return expression
            names = {x: "x", made: "f"}
            expression.refusal = f"the result is {found.text(names)}, not {gate.product.text(names)}"
            refused = expression
        return refused
