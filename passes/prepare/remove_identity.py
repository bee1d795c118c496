"""Pass remove-identity."""

from __future__ import annotations

from typing import ClassVar

from ge.graph import Graph, Node
from ge.ops import lookup
from ge.session import CompileSession

PASS_THROUGH = frozenset({"Identity", "IdentityN", "Dropout"})
"""Operator types whose output i is their input i at inference."""


class RemoveIdentity:
    """Before: ``y = Identity(x)``. After: readers of y read x.

    1. Identity, IdentityN, and Dropout (which does nothing at inference) go.
    2. A Cast to the type that its input has already goes.
    3. A NoOp goes. What waited for it waits for the nodes with an effect that it waited for, itself or through others;
       nobody can tell when the rest of them ran.

    Control edges are handed on to the neighbours.
    """

    name: ClassVar[str] = "remove-identity"

    def run(self, graph: Graph, session: CompileSession) -> bool:
        """Remove them in all graphs of the model."""
        changed = False
        for part in graph.all_graphs():
            for node in part:
                if node.type in PASS_THROUGH or _is_idle_cast(node):
                    changed |= _bypass(part, node)
            changed |= _remove_no_ops(part)
        return changed


def _is_idle_cast(node: Node) -> bool:
    source = node.input(0)
    return (
        node.type == "Cast"
        and source is not None
        and not source.desc.origin_shape.is_unknown_rank()
        and source.desc.data_type == node.output_descs[0].data_type
    )


def _bypass(graph: Graph, node: Node) -> bool:
    sources = node.inputs[: len(node.output_descs)]
    if any(source is None for source in sources):
        return False
    _keep_order(graph, node)
    for out, source in zip(node.outputs(), sources, strict=True):
        assert source is not None
        graph.replace_uses(out, source)
    graph.remove_unread(node)
    return True


def _keep_order(graph: Graph, node: Node) -> None:
    """Let the readers wait for what ``node`` waited for, and its control successors for what it read."""
    readers = dict.fromkeys(r.node for i in range(len(node.output_descs)) for r in node.consumers(i))
    for before in node.control_inputs:
        for reader in readers:
            graph.add_control(before, reader)
    producers = dict.fromkeys(s.node for s in node.inputs if s is not None and s.node.type not in ("Data", "Const"))
    for after in node.control_outputs:
        for producer in producers:
            graph.add_control(producer, after)


def _remove_no_ops(graph: Graph) -> bool:
    no_ops = [node for node in graph if node.type == "NoOp" and not node.inputs]
    if not no_ops:
        return False
    effects: dict[Node, list[Node]] = {}  # what must have run before each NoOp
    for node in graph.topological_order():
        if node.type == "NoOp":
            before = [effects.get(other, [other] if _has_effect(other) else []) for other in node.control_inputs]
            effects[node] = list(dict.fromkeys(other for others in before for other in others))
    for node in no_ops:
        for after in node.control_outputs:
            if after.type != "NoOp":
                for before_it in effects[node]:
                    graph.add_control(before_it, after)
    for node in no_ops:
        for other in node.control_inputs:
            graph.remove_control(other, node)
        for other in node.control_outputs:
            graph.remove_control(node, other)
        graph.remove_unread(node)
    return True


def _has_effect(node: Node) -> bool:
    found = lookup(node.type)
    return bool(node.subgraphs) or found is None or found.is_stateful
