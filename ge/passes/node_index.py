"""The nodes of a graph by type and place in the node list, kept in step while the graph is rewritten."""

from __future__ import annotations

from collections.abc import Sequence

from ge.graph.graph import Graph
from ge.graph.node import Node

_SPACING = 1 << 32


def type_of(node: Node) -> str:
    """Return the operator type; GE's two names of constants count as one."""
    return "Const" if node.type == "Constant" else node.type


class NodeIndex:
    """Ranks of the nodes of one graph.

    A rank is the place in the node list times a spacing; nodes that came later rank behind the node that they follow.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._ranks: dict[Node, int] = {}
        self._by_type: dict[str, list[Node]] = {}
        self._unsorted: set[str] = set()
        self._added = 0
        for place, node in enumerate(graph):
            self._ranks[node] = place * _SPACING
            self._by_type.setdefault(type_of(node), []).append(node)

    def rank(self, node: Node) -> int:
        """Return the rank of a node; nodes that nobody announced come last."""
        found = self._ranks.get(node)
        return len(self._ranks) * _SPACING if found is None else found

    def of_type(self, type: str) -> list[Node]:
        """Return the nodes of a type in node-list order."""
        nodes = self._by_type.get(type, [])
        if type in self._unsorted:
            nodes = [node for node in nodes if not node.is_removed]
            nodes.sort(key=self.rank)
            self._by_type[type] = nodes
            self._unsorted.discard(type)
        return [node for node in nodes if not node.is_removed]

    def insert_after(self, node: Node, added: Sequence[Node]) -> None:
        """Let ``added`` follow ``node`` in the node list."""
        base = self.rank(node) // _SPACING * _SPACING
        for new in added:
            self._added += 1
            self._ranks[new] = base + self._added
            self._by_type.setdefault(type_of(new), []).append(new)
            self._unsorted.add(type_of(new))

    def apply(self) -> None:
        """Give the graph's node list the order of the ranks."""
        if self._added:
            self.graph.reorder(sorted(self.graph, key=self.rank))
