"""Who calls whom: the bodies of a model form a tree, each belongs to one node (which may call it in two places).

A body's Data node stands for an input of the node that calls it.
"""

from __future__ import annotations

from ge.graph.graph import Graph
from ge.graph.node import Node, NodeOut

MAX_NESTING = 64
"""Bodies within bodies, calls within calls: what works level by level stays far from the interpreter's limit."""

_CONDITION_FIRST = frozenset({"If", "StatelessIf", "Case"})


class CallFault(ValueError):
    """Bodies that are missing, called by two nodes, call themselves, or are nested too deeply."""


def parent_slot(data: Node, caller: Node) -> int:
    """Return the input slot of ``caller`` that a Data node of one of its bodies stands for.

    It is the attribute ``_parent_node_index``; without it the Data's ``index``, behind the condition if there is one.
    """
    slot = data.attrs.get("_parent_node_index")
    if slot is None:
        return int(data.attrs.get("index", 0)) + (caller.type in _CONDITION_FIRST)
    return int(slot)


def bodies(node: Node) -> dict[str, Graph]:
    """Return the bodies of a call node by their formal names. Raises ``KeyError`` for a missing one."""
    return {formal: node.graph.root.subgraphs[name] for formal, name in node.subgraphs}


def unchanged_slots(body: Graph, caller: Node) -> set[int]:
    """Return the input slots of a loop that its body gives back as it got them."""
    slots = set()
    for position, out in enumerate(body.outputs):
        source: NodeOut | None = out
        while source is not None and source.node.type == "Identity":
            source = source.node.input(0)
        if source is not None and source.node.type == "Data" and parent_slot(source.node, caller) == position:
            slots.add(position)
    return slots


def callers(root: Graph) -> dict[str, Node]:
    """Return the node that calls each body, by the body's name. Bodies that nobody calls are left out.

    Raises :class:`CallFault` unless the bodies form a tree of at most :data:`MAX_NESTING` levels.
    """
    found: dict[str, Node] = {}
    for part in root.all_graphs():
        for node in part:
            for _, name in node.subgraphs:
                if name not in root.subgraphs:
                    raise CallFault(f"node {node.name} calls graph {name}, which does not exist")
                if found.get(name, node) is not node:
                    raise CallFault(f"graph {name} is called twice: by {found[name].name} and by {node.name}")
                found[name] = node
    for name in found:
        depth, part = 0, root.subgraphs[name]
        while part is not root and part.name in found:
            depth, part = depth + 1, found[part.name].graph
            if depth > MAX_NESTING:
                raise CallFault(f"graph {name} calls itself, or is nested deeper than {MAX_NESTING} levels")
    return found


def bodies_first(root: Graph) -> list[Graph]:
    """Return all graphs, each behind those that its nodes call. Raises :class:`CallFault`."""
    return callers_first(root)[::-1]


def callers_first(root: Graph) -> list[Graph]:
    """Return all graphs, each behind the one whose node calls it. Raises :class:`CallFault`."""
    found = callers(root)

    def depth(part: Graph) -> int:
        levels = 0
        while part is not root and part.name in found:
            levels, part = levels + 1, found[part.name].graph
        return levels

    return sorted(root.all_graphs(), key=depth)
