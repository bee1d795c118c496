"""Pass sink-constants."""

from __future__ import annotations

from typing import ClassVar

from ge.call_tree import bodies, callers_first, parent_slot, unchanged_slots
from ge.graph import Graph, Node
from ge.session import CompileSession


class SinkConstants:
    """Before: a call node gives constants to its bodies. After: each body has a Const of its own where it reads one.

    Of what a loop is given only that which its body gives back unchanged is constant in every turn. Const nodes of one
    array are stored once in the file and need no memory of a run, so repeating them costs nothing.
    """

    name: ClassVar[str] = "sink-constants"

    def run(self, graph: Graph, session: CompileSession) -> bool:
        """Repeat the constants level by level."""
        if not graph.subgraphs:
            return False
        added = [sink_into_bodies(part) for part in callers_first(graph)]
        return any(added)


def sink_into_bodies(graph: Graph) -> list[Node]:
    """Give the constants that call nodes of one graph read to their bodies; return the Const nodes added there."""
    added: list[Node] = []
    for node in graph:
        if node.subgraphs:
            added += _sink(node)
    return added


def _sink(caller: Node) -> list[Node]:
    constants = {
        slot: source.node
        for slot, source in enumerate(caller.inputs)
        if source is not None and source.node.type == "Const"
    }
    found = bodies(caller)
    if "body" in found:
        unchanged = unchanged_slots(found["body"], caller)
        constants = {slot: constant for slot, constant in constants.items() if slot in unchanged}
    if not constants:
        return []
    added: list[Node] = []
    for body in {graph.name: graph for graph in found.values()}.values():
        for data in body.data_nodes():
            constant = constants.get(parent_slot(data, caller))
            if constant is not None:
                added += _repeat(constant, body, data, is_loop="body" in found)
    return added


def _repeat(constant: Node, body: Graph, data: Node, *, is_loop: bool) -> list[Node]:
    """Let what reads ``data`` read a Const instead. A loop goes on to hand the value itself from turn to turn."""
    readers = [r for r in data.consumers() if not (is_loop and r.node.type in ("NetOutput", "Identity"))]
    if not readers:
        return []
    stem = constant.name.removeprefix(f"{constant.graph.name}/")
    copy = body.add_const(body.unique_name(f"{body.name}/{stem}"), constant.attrs["value"])
    copy.node.attrs["_datadump_original_op_names"] = []
    for reader in readers:
        body.set_input(reader.node, reader.index, copy)
    return [copy.node]
