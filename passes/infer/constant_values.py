"""What is known about tensors at compile time: values of constant expressions, evaluated at most once."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ge.graph import Node, NodeOut, Tensor
from ge.graph.types import byte_size, has_numpy_dtype
from ge.ops import InferContext, lookup
from ge.ops.registry import Array, Misfit

MAX_TRANSIENT_BYTES = 64 << 20
"""Largest intermediate value that is computed to learn a smaller one."""


class ConstantValues:
    """Values of constant tensors, learned on demand and remembered.

    A tensor is constant when it comes from a Const, from shapes alone (Shape of a static tensor), or from an operator
    with numpy semantics whose inputs are constant. Stateful operators and call nodes never are.
    """

    def __init__(self, given: Mapping[NodeOut, Array] | None = None) -> None:
        """``given`` are values known beforehand, each the only output of its node: Data of a body, for one."""
        self._known: dict[NodeOut, Array | None] = {} if given is None else dict(given)
        self._is_constant: dict[Node, bool] = {out.node: True for out in self._known}

    def is_constant(self, node: Node) -> bool:
        """Tell whether all outputs of ``node`` are constant. Costs one visit per node over all calls."""
        stack = [node]
        while stack:
            top = stack[-1]
            if top in self._is_constant:
                stack.pop()
                continue
            sources = [s.node for s in top.inputs if s is not None]
            unsettled = [s for s in sources if s not in self._is_constant]
            if unsettled and _may_be_constant(top) and not _has_value_from_shape(top):
                stack.extend(unsettled)
                continue
            self._is_constant[top] = _may_be_constant(top) and (
                top.type == "Const"
                or _has_value_from_shape(top)
                or (bool(sources) and all(self._is_constant.get(s) for s in sources))
            )
            stack.pop()
        return self._is_constant[node]

    def of_input(self, node: Node, slot: int) -> Array | None:
        """Return the value at an input slot, ``None`` when it is not constant or too large to compute here."""
        source = node.input(slot)
        return None if source is None else self.of(source)

    def of(self, out: NodeOut) -> Array | None:
        """Return the value of one output; see :meth:`of_input`."""
        stack = [out]
        while stack:
            top = stack[-1]
            if top in self._known:
                stack.pop()
                continue
            missing = self._missing(top)
            if missing:
                stack.extend(missing)
                continue
            self._learn(top)
            stack.pop()
        return self._known[out]

    def _missing(self, out: NodeOut) -> list[NodeOut]:
        node = out.node
        if node.type == "Const" or _has_value_from_shape(node) or not self._is_computable(node):
            return []
        return [s for s in node.inputs if s is not None and s not in self._known]

    def _is_computable(self, node: Node) -> bool:
        if not _may_be_constant(node) or not self.is_constant(node):
            return False
        size = 0
        for desc in node.output_descs:
            if desc.origin_shape.is_unknown_shape() or not has_numpy_dtype(desc.data_type):
                return False
            size += byte_size(desc.data_type, desc.origin_shape.elements)
        return size <= MAX_TRANSIENT_BYTES

    def _learn(self, out: NodeOut) -> None:
        node = out.node
        value = node.attrs.get("value")
        if node.type == "Const":
            self._known[out] = value.array if isinstance(value, Tensor) else None
            return
        from_shape = _value_from_shape(node, self.of_known)
        if from_shape is not None:
            self._known[out] = from_shape
            return
        inputs = [None if s is None else self._known[s] for s in node.inputs] if self._is_computable(node) else []
        known = bool(inputs) and all(v is not None for s, v in zip(node.inputs, inputs, strict=True) if s is not None)
        if not known:
            self._known[out] = None
            return
        found = lookup(node.type)
        assert found is not None
        try:
            results = found.evaluate(node.attrs, inputs, [d.data_type for d in node.output_descs])
        except Misfit as fault:
            raise InferContext(node, found, self.of_known).fail(str(fault)) from fault
        for index, result in enumerate(results):
            self._known[NodeOut(node, index)] = result

    def of_known(self, node: Node, slot: int) -> Array | None:
        """Return what was learned about an input slot so far."""
        source = node.input(slot)
        return None if source is None else self._known.get(source)


def _may_be_constant(node: Node) -> bool:
    if node.type == "Const":
        return True
    found = lookup(node.type)
    if found is None or found.compute is None or found.is_stateful or node.subgraphs:
        return False
    return all(has_numpy_dtype(desc.data_type) for desc in node.output_descs)  # handles come to be in a run


def _has_value_from_shape(node: Node) -> bool:
    return _value_from_shape(node, lambda node, slot: None) is not None


def _value_from_shape(node: Node, value_of: Callable[[Node, int], Array | None]) -> Array | None:
    found = lookup(node.type)
    if found is None or found.value_infer is None:
        return None
    return found.value_infer(InferContext(node, found, value_of))
