"""Drawing the graph that takes the place of what is fused."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ge.graph import Format, Graph, Node, NodeOut, Tensor, TensorDesc, same_dim
from ge.graph_inference import infer_graph
from ge.ops import lookup
from ge.ops.known_value import KnownValue
from ge.ops.registry import Array
from ge.tensor_memory import LOAD_TIME_CONST

_OF_THE_NODE = frozenset({"_datadump_original_op_names", "_datadump_original_op_types", "pass_name", LOAD_TIME_CONST})
"""Attributes that say something of one node, not of what it computes."""


class Sketch:
    """A replacement in the making. ``inputs`` stand for the tensors of ``feeding``, in the same order."""

    def __init__(self, feeding: Iterable[NodeOut] = ()) -> None:
        self.graph = Graph("replacement")
        self.feeding: list[NodeOut] = []
        self.inputs: list[NodeOut] = []
        self._places: dict[NodeOut, int] = {}
        for source in feeding:
            self._feed(source)

    def _feed(self, source: NodeOut) -> NodeOut:
        place = len(self.feeding)
        descs = [source.desc.copy()]
        node = self.graph.add_node("Data", f"input_{place}", attrs={"index": place}, output_descs=descs)
        self.feeding.append(source)
        self.inputs.append(node.output())
        self._places.setdefault(source, place)
        return self.inputs[-1]

    def input_of(self, source: NodeOut) -> NodeOut:
        """Return the input that stands for a tensor of the graph; there will be one more if it had none."""
        place = self._places.get(source)
        return self._feed(source) if place is None else self.inputs[place]

    def add(self, type: str, *inputs: NodeOut | None, like: Node | None = None, **attrs: Any) -> NodeOut:
        """Add a node and return its first output. ``like`` is a node whose attributes it takes over."""
        definition = lookup(type)
        assert definition is not None
        taken = {} if like is None else {k: v for k, v in like.attrs.items() if k not in _OF_THE_NODE}
        node = self.graph.add_node(
            type,
            self.graph.unique_name(type),
            inputs,
            taken | attrs,
            n_outputs=len(definition.signature.outputs),
        )
        return node.output()

    def const(self, array: Array, format: Format = Format.FORMAT_ND) -> NodeOut:
        """Add a constant."""
        return self.graph.add_const(self.graph.unique_name("Const"), Tensor.of(array, format))

    def ints(self, values: Sequence[int]) -> NodeOut:
        """Add a constant vector of int64: a shape, axes, a permutation."""
        return self.const(np.array(values, np.int64))

    def finish(self, *outputs: NodeOut) -> Graph:
        """Say what the results are, and return the graph. What they do not need is no part of it."""
        self.graph.outputs = outputs
        needed, waiting = set(self.inputs), list(outputs)
        while waiting:
            source = waiting.pop()
            needed.add(source)
            waiting.extend(before for before in source.node.inputs if before is not None and before not in needed)
        kept = {source.node for source in needed}
        for node in reversed(list(self.graph)):
            if node not in kept:
                self.graph.remove_unread(node)
        return self.graph

    def infer(self, target: TensorDesc) -> str:
        """Give all tensors shapes and types, and the result what is known of the tensor that it stands for.

        Returns why it cannot stand for it; empty if it can.
        """
        known = {
            inner: KnownValue(source.node.attrs["value"].array)
            for inner, source in zip(self.inputs, self.feeding, strict=True)
            if source.node.type == "Const"
        }
        infer_graph(self.graph, known)
        [result] = self.graph.outputs
        is_new = result not in self.inputs
        if not (fits(result.desc, target) if is_new else is_alike(result.desc, target)):
            found = result.desc
            return f"{found.data_type.name} {found.origin_shape} would take the place of {target.origin_shape}"
        if is_new:
            attrs = result.desc.attrs
            result.node.output_descs[result.index] = desc = target.copy()
            desc.attrs = attrs | desc.attrs
        return ""


def is_alike(desc: TensorDesc, other: TensorDesc) -> bool:
    """Tell whether two tensors certainly have the same type and shape."""
    found, wanted = desc.origin_shape, other.origin_shape
    return desc.data_type == other.data_type and len(found) == len(wanted) and all(map(same_dim, found, wanted))


def fits(desc: TensorDesc, target: TensorDesc) -> bool:
    """Tell whether a tensor has the type and, as far as it is known, the shape of another one."""
    found, wanted = desc.origin_shape, target.origin_shape
    return desc.data_type == target.data_type and (
        found.is_unknown_rank()
        or (len(found) == len(wanted) and all(f in (-1, w) for f, w in zip(found, wanted, strict=True)))
    )
