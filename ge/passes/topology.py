"""Would fusing some nodes into one close a cycle? Answered by looking at the neighbourhood only.

Nodes get numbers that grow along every edge. A path that leaves a set of nodes and comes back can only pass nodes
whose numbers lie below the largest of the set, so the search for it ends there. Rewriting keeps the numbers right by
renumbering what lies between the new nodes' sources and readers, if these are in the wrong order (the algorithm of
Pearce and Kelly).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

from ge.graph.graph import Graph
from ge.graph.node import Node


def successors(node: Node) -> Iterator[Node]:
    """Iterate over the readers of all outputs and the nodes that wait for ``node``; some may come twice."""
    for index in range(len(node.output_descs)):
        for reader in node.consumers(index):
            yield reader.node
    yield from node.control_outputs


def predecessors(node: Node) -> Iterator[Node]:
    """Iterate over the producers of all inputs and the nodes that ``node`` waits for; some may come twice."""
    for source in node.inputs:
        if source is not None:
            yield source.node
    yield from node.control_inputs


class Topology:
    """Numbers of the nodes of one graph, made when they are first needed."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._numbers: dict[Node, float] | None = None

    def closes_cycle(self, fused: Collection[Node]) -> bool:
        """Tell whether a path leaves ``fused`` and comes back to it.

        Raises :class:`ge.graph.CycleError` when the graph has a cycle already.
        """
        inside = set(fused)
        if len(inside) < 2:
            return False
        outside = {node for member in inside for node in successors(member) if node not in inside}
        if not outside:
            return False
        numbers = self._numbering()
        # nodes without a number were added by a hook: they may be anywhere
        limit = max(numbers.get(node, math.inf) for node in inside)
        stack = [node for node in outside if numbers.get(node, -math.inf) < limit]
        seen = set(stack)
        while stack:
            for node in successors(stack.pop()):
                if node in inside:
                    return True
                if node not in seen and numbers.get(node, -math.inf) < limit:
                    seen.add(node)
                    stack.append(node)
        return False

    def _numbering(self) -> dict[Node, float]:
        if self._numbers is None:
            order = self._graph.topological_order()
            self._numbers = {node: float(number) for number, node in enumerate(order)}
        return self._numbers

    def forget(self) -> None:
        """Take the numbers for wrong: somebody else changed the graph."""
        self._numbers = None

    def insert(self, added: Sequence[Node]) -> None:
        """Number the new nodes ``added``, which are connected already and stand in topological order."""
        numbers = self._numbers
        if numbers is None or not added:
            return
        new = set(added)
        sources = {node for member in added for node in predecessors(member) if node not in new}
        readers = {node for member in added for node in successors(member) if node not in new}
        if not (sources <= numbers.keys() and readers <= numbers.keys()):
            self.forget()
            return
        low = max((numbers[node] for node in sources), default=-math.inf)
        high = min((numbers[node] for node in readers), default=math.inf)
        if low >= high:
            bounds = self._make_room(numbers, sources, readers, low, high)
            if bounds is None:
                self.forget()
                return
            low, high = bounds
        if not _spread(numbers, added, low, high):
            self.forget()

    @staticmethod
    def _make_room(
        numbers: dict[Node, float], sources: set[Node], readers: set[Node], low: float, high: float
    ) -> tuple[float, float] | None:
        """Renumber so that all ``sources`` come before all ``readers``; return the bounds between them."""
        before = _reached(sources, predecessors, lambda node: numbers.get(node, -math.inf) >= high)
        behind = _reached(readers, successors, lambda node: numbers.get(node, math.inf) <= low)
        if before & behind:
            return None  # a cycle: whoever verifies the graph will say so
        free = sorted(numbers[node] for node in before | behind)
        order = sorted(before, key=numbers.__getitem__) + sorted(behind, key=numbers.__getitem__)
        numbers.update(zip(order, free, strict=True))
        return free[len(before) - 1], free[len(before)]


def _reached(
    starts: Iterable[Node], neighbours: Callable[[Node], Iterator[Node]], is_affected: Callable[[Node], bool]
) -> set[Node]:
    stack = [node for node in starts if is_affected(node)]
    seen = set(stack)
    while stack:
        for node in neighbours(stack.pop()):
            if node not in seen and is_affected(node):
                seen.add(node)
                stack.append(node)
    return seen


def _spread(numbers: dict[Node, float], added: Sequence[Node], low: float, high: float) -> bool:
    """Give ``added`` numbers between ``low`` and ``high``; False when there is no room left between them."""
    if math.isinf(low):
        low = 0.0 if math.isinf(high) else high - len(added) - 1
    if math.isinf(high):
        high = low + len(added) + 1
    step = (high - low) / (len(added) + 1)
    found = [low + step * (place + 1) for place in range(len(added))]
    ascending = [low, *found, high]
    if any(a >= b for a, b in itertools.pairwise(ascending)):
        return False
    numbers.update(zip(added, found, strict=True))
    return True
