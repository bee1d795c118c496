"""An oracle for the number of TransData: the fewest that any choice of columns can do with, heavy operators fixed.

It shares nothing with the passes but the columns. Between an origin view and the layout of images (a tensor has one at
most: NC1HWC0 for four dims, NDC1HWC0 for five) every node takes a side, and a tensor costs one transfer if anybody
reads it on the other side than it is made on. The cheapest sides are a minimum cut.
"""

from __future__ import annotations

from collections import deque
from itertools import count

from ge.graph import Format, Graph, Node
from ge.ops.format_columns import FormatColumn, format_columns, is_heavy
from ge.tensor_memory import is_constant

_IMAGES = (Format.FORMAT_NC1HWC0, Format.FORMAT_NDC1HWC0)
_KNOWN = (*_IMAGES, Format.FORMAT_ND, None)
Vertex = int
PRIVATE, ORIGIN = 0, 1
"""Vertices of the network: the side of the layouts of images, the side of origin views."""
_ENDLESS = 1 << 30


class Network:
    """A network of directed edges with capacities."""

    def __init__(self) -> None:
        self._ends: list[list[int]] = [[], []]
        self._targets: list[int] = []
        self._spare: list[int] = []

    def vertex(self) -> Vertex:
        self._ends.append([])
        return len(self._ends) - 1

    def join(self, source: Vertex, target: Vertex, capacity: int) -> None:
        for start, end, spare in ((source, target, capacity), (target, source, 0)):
            self._ends[start].append(len(self._targets))
            self._targets.append(end)
            self._spare.append(spare)

    def min_cut(self) -> int:
        """The capacity of a minimum cut between PRIVATE and ORIGIN, by the shortest ways that have some left."""
        for flow in count():
            way = self._way()
            if not way:
                return flow
            for edge in way:
                self._spare[edge] -= 1
                self._spare[edge ^ 1] += 1
        raise AssertionError

    def _way(self) -> list[int]:
        came_by: dict[Vertex, int] = {PRIVATE: -1}
        queue = deque([PRIVATE])
        while queue and ORIGIN not in came_by:
            at = queue.popleft()
            for edge in self._ends[at]:
                end = self._targets[edge]
                if self._spare[edge] and end not in came_by:
                    came_by[end] = edge
                    queue.append(end)
        if ORIGIN not in came_by:
            return []
        way, at = [], ORIGIN
        while at != PRIVATE:
            way.append(came_by[at])
            at = self._targets[came_by[at] ^ 1]
        return way


def fewest_transfers(graph: Graph) -> int:
    """The least number of TransData on activations of a graph whose descriptors are all in their origin view."""
    return sum(_fewest_of(part) for part in graph.all_graphs())


def _fewest_of(graph: Graph) -> int:
    network = Network()
    columns = {node: _columns(node) for node in graph}
    side = {node: _side(network, node, columns[node]) for node in graph}
    fixed = 0
    for node in graph:
        if is_constant(node):
            continue
        for out in node.outputs():
            made = side[node] if _has_images(columns[node], out.index, is_output=True) else ORIGIN
            readers = [_wanted(side, columns, reader.node, reader.index) for reader in node.consumers(out.index)]
            fixed += None in readers  # a filter that is no constant is always turned into its layout
            _charge(network, made, [wanted for wanted in readers if wanted is not None])
    return network.min_cut() + fixed


def _columns(node: Node) -> list[FormatColumn]:
    """The columns in question: of the heavy node its first private one, of others what concerns images."""
    if node.subgraphs or is_constant(node):
        return format_columns(node)[:1]
    found = [column for column in format_columns(node) if Format.FORMAT_NC1HWC0_C04 not in column.inputs]
    if is_heavy(node):
        return [column for column in found if not column.is_origin][:1] or found
    return [c for c in found if all(layout in _KNOWN for layout in (*c.inputs, *c.outputs))]


def _side(network: Network, node: Node, columns: list[FormatColumn]) -> Vertex:
    private = [column for column in columns if not column.is_origin]
    if not private:
        return ORIGIN
    can_stay = any(column.is_origin and not column.is_origin_only for column in columns)
    return network.vertex() if can_stay else PRIVATE


def _has_images(columns: list[FormatColumn], place: int, *, is_output: bool) -> bool:
    return any((column.outputs if is_output else column.inputs)[place] in _IMAGES for column in columns)


def _wanted(side: dict[Node, Vertex], columns: dict[Node, list[FormatColumn]], node: Node, slot: int) -> Vertex | None:
    """The vertex of a reader's side; ``None`` where it wants a filter's layout, which no operator makes."""
    if node.type == "NetOutput":
        return ORIGIN
    if _has_images(columns[node], slot, is_output=False):
        return side[node]
    is_filter = side[node] == PRIVATE and any(c.inputs[slot] not in _KNOWN for c in columns[node])
    return None if is_filter else ORIGIN


def _charge(network: Network, made: Vertex, readers: list[Vertex]) -> None:
    """Let a tensor cost one as soon as any reader is on the other side."""
    others = [reader for reader in dict.fromkeys(readers) if reader != made]
    if not others:
        return
    ahead, behind = network.vertex(), network.vertex()
    network.join(ahead, made, 1)
    network.join(made, behind, 1)
    for reader in others:
        network.join(reader, ahead, _ENDLESS)
        network.join(behind, reader, _ENDLESS)
