"""What is known about tensors at compile time: values of constant expressions, evaluated at most once."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ge.formats import origin_array
from ge.graph import Node, NodeOut, Tensor
from ge.graph.types import byte_size, has_numpy_dtype
from ge.mapped_file import note_read
from ge.ops import InferContext, lookup
from ge.ops.known_value import KnownValue
from ge.ops.partial_evaluation import evaluate_partly, may_be_partial
from ge.ops.registry import Array, Misfit

MAX_TRANSIENT_BYTES = 64 << 20
"""Largest intermediate value that is computed to learn a smaller one."""

SMALL_BYTES = 4 << 10
MAX_HELD_BYTES = 64 << 20
"""Values above ``SMALL_BYTES`` are forgotten once they take more than this; whoever asks again pays again."""


class ConstantValues:
    """Values of constant tensors, learned on demand and remembered.

    A tensor is constant when it comes from a Const, from shapes alone (Shape of a static tensor), or from an operator
    with numpy semantics whose inputs are constant. Stateful operators and call nodes never are. Of small tensors that
    are computed from shapes single elements may be known; one of which all are is constant too.
    """

    def __init__(self, given: Mapping[NodeOut, KnownValue] | None = None) -> None:
        """``given`` is known beforehand, each the only output of its node: Data of a body, for one."""
        self._known: dict[NodeOut, KnownValue | None] = {} if given is None else dict(given)
        self._is_constant: dict[Node, bool] = {
            out.node: known is not None and known.whole is not None for out, known in self._known.items()
        }
        self._from_shape: dict[Node, Array] = {}
        self._held: dict[NodeOut, int] = {}
        self._held_bytes = 0

    def is_constant(self, node: Node) -> bool:
        """Tell whether all outputs of ``node`` are constant. Costs one visit per node over all calls."""
        stack = [node]
        while stack:
            top = stack[-1]
            if top in self._is_constant:
                stack.pop()
                continue
            unsettled = [s for s in self._deciding(top) if s not in self._is_constant]
            if unsettled:
                stack.extend(unsettled)
                continue
            self._is_constant[top] = self._settle(top)
            stack.pop()
        return self._is_constant[node]

    def known_input(self, node: Node, slot: int) -> KnownValue | None:
        """Return what is known at an input slot; values too large to compute here are not."""
        source = node.input(slot)
        return None if source is None else self.known(source)

    def of(self, out: NodeOut) -> Array | None:
        """Return the value of one output, ``None`` when it is not constant or too large to compute here."""
        found = self.known(out)
        return None if found is None else found.whole

    def known(self, out: NodeOut) -> KnownValue | None:
        """Return what is known of one output: all elements, some, or nothing."""
        if self.is_constant(out.node):
            self._compute(out)
        return self._known.get(out)

    # -- constant or not -----------------------------------------------------------------------------------------------
    def _deciding(self, node: Node) -> list[Node]:
        """Return the nodes on which it depends whether ``node`` is constant."""
        if node.type in ("Const", "Shape") or not _may_be_constant(node) or self._value_from_shape(node) is not None:
            return []
        return [s.node for s in node.inputs if s is not None]

    def _value_from_shape(self, node: Node) -> Array | None:
        """Return the value that follows from the shapes of inputs alone; it is asked for more than once."""
        value = self._from_shape.get(node)
        if value is None:
            found = lookup(node.type)
            if found is None or found.value_infer is None:
                return None
            value = found.value_infer(InferContext(node, found, lambda node, slot: None))
            if value is not None:
                self._from_shape[node] = value
        return value

    def _settle(self, node: Node) -> bool:
        """Decide for a node whose sources are decided; learn elements where it is not constant as a whole."""
        if not _may_be_constant(node):
            return False
        if node.type == "Const" or self._value_from_shape(node) is not None:
            return True
        sources = [s.node for s in node.inputs if s is not None]
        if sources and all(self._is_constant.get(s) for s in sources):
            return True
        found = evaluate_partly(node, lambda slot: self.known_input(node, slot)) if may_be_partial(node) else None
        if found is None:
            return False
        self._known.update({NodeOut(node, index): known for index, known in enumerate(found)})
        return all(known.whole is not None for known in found)

    # -- values --------------------------------------------------------------------------------------------------------
    def _compute(self, out: NodeOut) -> None:
        """Compute a constant tensor and what it needs, without recursion (chains may be long)."""
        if out in self._known:
            return
        if self._held_bytes > MAX_HELD_BYTES:
            self._forget_held()
        stack = [out]
        while stack:
            top = stack[-1]
            missing = [] if top in self._known else self._missing(top.node)
            if missing:
                stack.extend(missing)
                continue
            if top not in self._known:
                self._learn(top)
            stack.pop()

    def _missing(self, node: Node) -> list[NodeOut]:
        if node.type == "Const" or self._value_from_shape(node) is not None or not self._is_computable(node):
            return []
        return [s for s in node.inputs if s is not None and s not in self._known]

    def _is_computable(self, node: Node) -> bool:
        if not self.is_constant(node):
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
            self._known[out] = self._constant(out, value) if isinstance(value, Tensor) else None
            return
        from_shape = self._value_from_shape(node)
        if from_shape is not None:
            self._known[out] = KnownValue(from_shape)
            return
        inputs = [None if s is None else self._array(s) for s in node.inputs] if self._is_computable(node) else []
        known = bool(inputs) and all(v is not None for s, v in zip(node.inputs, inputs, strict=True) if s is not None)
        if not known:
            self._known[out] = None
            return
        found = lookup(node.type)
        assert found is not None
        try:
            results = found.evaluate(node.attrs, inputs, [d.data_type for d in node.output_descs])
        except Misfit as fault:
            raise InferContext(node, found, self.known_input).fail(fault) from fault
        given = [array for array in inputs if array is not None]
        for index, (result, desc) in enumerate(zip(results, node.output_descs, strict=False)):
            if result.shape != desc.origin_shape:
                reason = f"output {index} is described as {desc.origin_shape}, the operator makes {list(result.shape)}"
                raise InferContext(node, found, self.known_input).fail(found.misfit(reason))
            self._known[NodeOut(node, index)] = KnownValue(result)
            if result.nbytes > SMALL_BYTES and not any(np.may_share_memory(result, source) for source in given):
                self._held[NodeOut(node, index)] = result.nbytes
                self._held_bytes += result.nbytes
        for source in given:
            if source.nbytes > SMALL_BYTES:
                note_read(source)

    def _constant(self, out: NodeOut, value: Tensor) -> KnownValue:
        """Return the origin view of a Const: its own array, unless it lies in another layout."""
        origin = origin_array(value.array, out.desc)
        if origin is not value.array and origin.nbytes > SMALL_BYTES:
            self._held[out] = origin.nbytes
            self._held_bytes += origin.nbytes
        return KnownValue(origin)

    def _forget_held(self) -> None:
        for out in self._held:
            del self._known[out]
        self._held.clear()
        self._held_bytes = 0

    def _array(self, source: NodeOut) -> Array | None:
        found = self._known.get(source)
        return None if found is None else found.whole


def _may_be_constant(node: Node) -> bool:
    if node.type == "Const":
        return True
    found = lookup(node.type)
    if found is None or found.compute is None or found.is_stateful or node.subgraphs:
        return False
    return all(has_numpy_dtype(desc.data_type) for desc in node.output_descs)  # handles come to be in a run
