"""What is known of tensors while a graph is built: shapes by inference, and the values of small constants.

Mappings that depend on a rank or a shape ask here. Values flow through shape arithmetic (Shape, Gather, Concat, ...) so
that the rank behind a computed Reshape is known too.
"""

from __future__ import annotations

from functools import partial
from math import prod
from typing import Any

import numpy as np

from ge.errors import ReportedError
from ge.graph import Node, NodeOut, Tensor, TensorDesc
from ge.graph.types import has_numpy_dtype
from ge.ops import InferContext, OpDef, infer_node, lookup
from ge.ops.known_value import KnownValue
from ge.ops.partial_evaluation import evaluate_partly, may_be_partial

Array = np.ndarray[Any, np.dtype[Any]]

MAX_ELEMENTS = 4096
"""Larger values are not followed: shape arithmetic works on short vectors."""


class Knowledge:
    """Known values of one graph under construction."""

    def __init__(self) -> None:
        self._values: dict[NodeOut, KnownValue] = {}

    def value(self, source: NodeOut | None) -> Array | None:
        """Return the value of a tensor if it is a constant (of any size) or follows from small ones."""
        found = self.known(source)
        return None if found is None else found.whole

    def known(self, source: NodeOut | None) -> KnownValue | None:
        """Return what is known of the elements of a tensor: all, some, or nothing."""
        if source is None:
            return None
        if source.node.type == "Const":
            held = source.node.attrs.get("value")
            return KnownValue(held.array) if isinstance(held, Tensor) else None
        return self._values.get(source)

    def tell(self, source: NodeOut, value: Array | None) -> None:
        """Record a value that is known from elsewhere (a captured tensor of an outer graph)."""
        if value is not None and value.size <= MAX_ELEMENTS:
            self._values[source] = KnownValue(value)

    def infer(self, node: Node) -> None:
        """Infer the outputs of a new node; remember them where they follow from small constants."""
        definition = lookup(node.type)
        if definition is None or node.type in ("Data", "Const"):
            return
        infer_node(node, self._known_at)
        self._evaluate(node, definition)
        if may_be_partial(node) and node.output() not in self._values:
            for out, known in zip(
                node.outputs(), evaluate_partly(node, partial(self._known_at, node)) or (), strict=False
            ):
                self._values[out] = known

    def _known_at(self, node: Node, slot: int) -> KnownValue | None:
        return self.known(node.input(slot))

    def _evaluate(self, node: Node, definition: OpDef) -> None:
        if any(not _can_be_known(desc) for desc in node.output_descs):
            return
        if definition.value_infer is not None:
            found = definition.value_infer(InferContext(node, definition, self._known_at))
            if found is not None:
                self.tell(node.output(0), found)
                return
        if definition.compute is None or definition.is_stateful or not node.inputs:
            return
        values = [self.value(source) for source in node.inputs]
        is_unknown = any(v is None and s is not None for v, s in zip(values, node.inputs, strict=True))
        if is_unknown or any(v is not None and prod(v.shape) > MAX_ELEMENTS for v in values):
            return
        types = [desc.data_type for desc in node.output_descs]
        try:
            results = definition.evaluate(node.attrs, values, types)
        except (ReportedError, ArithmeticError, LookupError, TypeError, ValueError):
            return  # not known then; folding evaluates again and reports
        for out, result in zip(node.outputs(), results, strict=False):
            self.tell(out, result)


def _can_be_known(desc: TensorDesc) -> bool:
    shape = desc.origin_shape  # an empty tensor may still have a huge dim
    return max(shape.elements, *shape, 0) <= MAX_ELEMENTS and has_numpy_dtype(desc.data_type)
