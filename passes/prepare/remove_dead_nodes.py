"""Pass remove-dead-nodes."""

from __future__ import annotations

from typing import ClassVar

from ge.graph import Graph, Node
from ge.ops import lookup
from ge.session import CompileSession


class RemoveDeadNodes:
    """Before: nodes that no result needs. After: only what results, stateful operators and the interface need.

    Data nodes stay even when nobody reads them: they are the model's interface. Bodies that no node calls any more
    are dropped.
    """

    name: ClassVar[str] = "remove-dead-nodes"

    def run(self, graph: Graph, session: CompileSession) -> bool:
        """Remove them in all graphs of the model."""
        results = [sweep(part) for part in graph.all_graphs()]
        return _drop_uncalled(graph) or any(results)


def sweep(graph: Graph) -> bool:
    """Remove the dead nodes of one graph."""
    roots = [n for n in graph if n.type == "Data" or _is_stateful(n)]
    alive = set(roots)
    stack = roots + [out.node for out in graph.outputs]
    alive.update(stack)
    while stack:
        node = stack.pop()
        needed = [source.node for source in node.inputs if source is not None]
        for producer in (*needed, *node.control_inputs):
            if producer not in alive:
                alive.add(producer)
                stack.append(producer)
    if len(alive) == len(graph):
        return False
    for node in reversed(graph.topological_order()):
        if node not in alive:
            graph.remove_unread(node)
    return True


def _is_stateful(node: Node) -> bool:
    found = lookup(node.type)
    return found is not None and found.is_stateful


def _drop_uncalled(graph: Graph) -> bool:
    called: set[str] = set()
    stack = [graph]
    while stack:
        for node in stack.pop():
            for _, name in node.subgraphs:
                if name not in called:
                    called.add(name)
                    stack.append(graph.subgraphs[name])
    uncalled = [name for name in graph.subgraphs if name not in called]
    for name in uncalled:
        graph.remove_subgraph(name)
    return bool(uncalled)
