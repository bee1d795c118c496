"""Formulas of elementwise nodes, for operators that become many."""

from __future__ import annotations

from typing import Any

from ge.graph import NodeOut
from parsers.onnx.node_builder import NodeBuilder, Source


class Arithmetic:
    """Adds the elementwise nodes of one ONNX node; each is named after its type."""

    def __init__(self, n: NodeBuilder) -> None:
        self._n = n

    def op(self, type: str, *inputs: Source, **attrs: Any) -> NodeOut:
        """Add a node."""
        return self._n.add(type, *inputs, role=type, **attrs).output()

    def plus(self, x: Source, y: Source | float) -> NodeOut:
        """Add two tensors, or a number."""
        return self.op("Adds", x, value=float(y)) if isinstance(y, int | float) else self.op("Add", x, y)

    def minus(self, x: Source, y: Source) -> NodeOut:
        """Subtract a tensor."""
        return self.op("Sub", x, y)

    def times(self, x: Source, y: Source | float) -> NodeOut:
        """Multiply two tensors, or by a number; by 1 is nothing to do."""
        if not isinstance(y, int | float):
            return self.op("Mul", x, y)
        if y == 1:
            assert x is not None
            return x if isinstance(x, NodeOut) else x.output()
        return self.op("Muls", x, value=float(y))

    def over(self, x: Source, y: Source) -> NodeOut:
        """Divide by a tensor."""
        return self.op("RealDiv", x, y)
