"""The cheapest way to divide a small network in two."""

from __future__ import annotations

from collections import deque
from itertools import count

SOURCE, SINK = 0, 1
"""The vertices that a cut parts; every network has them."""
ENDLESS = 1 << 30
"""A capacity that no cut pays."""


class Network:
    """Directed edges with capacities between numbered vertices."""

    def __init__(self) -> None:
        self._edges: list[list[int]] = [[], []]
        self._targets: list[int] = []
        self._spare: list[int] = []

    def vertex(self) -> int:
        """Add a vertex."""
        self._edges.append([])
        return len(self._edges) - 1

    def join(self, source: int, target: int, capacity: int) -> None:
        """Add an edge: a cut with ``source`` on the source's side and ``target`` on the other pays ``capacity``."""
        for start, end, spare in ((source, target, capacity), (target, source, 0)):
            self._edges[start].append(len(self._targets))
            self._targets.append(end)
            self._spare.append(spare)

    def cut(self) -> tuple[int, set[int]]:
        """Return the price of a cheapest cut, and the vertices on the sink's side.

        Of several cheapest cuts it is the one with the fewest vertices on that side. Time is that of as many walks
        through the network as the cut costs.
        """
        for price in count():
            way = self._way()
            if not way:
                return price, self._reaching_sink()
            for edge in way:
                self._spare[edge] -= 1
                self._spare[edge ^ 1] += 1
        raise AssertionError

    def _way(self) -> list[int]:
        """Return the edges of a shortest way from source to sink on which something can flow; none if there is none."""
        came_by = {SOURCE: -1}
        queue = deque([SOURCE])
        while queue and SINK not in came_by:
            at = queue.popleft()
            for edge in self._edges[at]:
                end = self._targets[edge]
                if self._spare[edge] and end not in came_by:
                    came_by[end] = edge
                    queue.append(end)
        way: list[int] = []
        at = SINK
        while SINK in came_by and at != SOURCE:
            way.append(came_by[at])
            at = self._targets[came_by[at] ^ 1]
        return way

    def _reaching_sink(self) -> set[int]:
        found = {SINK}
        stack = [SINK]
        while stack:
            for edge in self._edges[stack.pop()]:
                start = self._targets[edge]
                if self._spare[edge ^ 1] and start not in found:
                    found.add(start)
                    stack.append(start)
        return found
