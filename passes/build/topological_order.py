"""Pass sort-topologically."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import ClassVar

from ge.errors import ReportedError
from ge.graph import CycleError, Graph, Node
from ge.session import CompileSession
from ge.tensor_memory import is_computing, is_constant, view_roots
from passes.build.liveness import analyse
from passes.build.placement import bound


class SortingMode(IntEnum):
    """Values of ``--topo_sorting_mode``."""

    BFS = 0
    DFS = 1
    RDFS = 2
    STABLE_RDFS = 3


@dataclass
class SortTopologically:
    """Before: any node order. After: producers and control predecessors first, NetOutput last.

    Execution follows this order, so it decides how many tensors are alive at once.

    1. BFS: a node runs once everything before it is done, first come, first served.
    2. DFS (default): what became ready last runs first, so that a branch is finished before the next one begins and
       its tensors die early. Of readers that become ready together the first goes first, or, all over the graph, the
       last if fewer bytes are alive at once then.
    3. RDFS: walks back from the results; a node runs just before the first node that needs it.
    4. Stable RDFS: as RDFS, but follows the former order wherever that leaves a choice.
    """

    name: ClassVar[str] = "sort-topologically"
    mode: int = SortingMode.DFS

    def run(self, graph: Graph, session: CompileSession) -> bool:
        """Reorder the graph and its bodies."""
        results = [_reorder(part, SortingMode(self.mode)) for part in graph.all_graphs()]
        return any(results)


def _reorder(graph: Graph, mode: SortingMode) -> bool:
    before = list(graph)
    try:
        stable = graph.topological_order()
    except CycleError as cycle:
        raise ReportedError("E19999", reason=f"graph {graph.name} has a {cycle}") from cycle
    if mode is SortingMode.BFS:
        order = _forward(before, _fixed_at_load(stable), _Next.OLDEST)
    elif mode is SortingMode.DFS:
        constants = _fixed_at_load(stable)
        orders = [_forward(before, constants, pick) for pick in (_Next.FIRST_READER, _Next.LAST_READER)]
        order = orders[0] if orders[0] == orders[1] else _lowest(graph, orders)
    else:
        order = _backward(before, is_stable=mode is SortingMode.STABLE_RDFS)
    last = {node for node in order if node.type == "NetOutput" and not node.control_outputs}
    order = [node for node in order if node not in last] + [node for node in order if node in last]
    graph.reorder(order)
    return order != before


def _fixed_at_load(stable: list[Node]) -> set[Node]:
    found: set[Node] = set()
    for node in stable:
        if is_constant(node) and found.issuperset(node.predecessors()):
            found.add(node)
    return found


def _lowest(graph: Graph, orders: list[list[Node]]) -> list[Node]:
    """Return the order in which the fewest bytes are alive at the worst step."""
    computing = set(filter(is_computing, graph))
    roots = view_roots(graph)

    def peak(order: list[Node]) -> int:
        symbols = analyse(graph, [node for node in order if node in computing], roots=roots).symbols
        return bound([(symbol.size, symbol.first, symbol.last) for symbol in symbols])

    return min(orders, key=peak)


class _Next(Enum):
    """Which of the nodes that are ready runs next: the one that waits longest, or one that became ready last."""

    OLDEST = 0
    FIRST_READER = 1
    LAST_READER = 2


def _forward(nodes: list[Node], constants: set[Node], pick: _Next) -> list[Node]:
    """Order by readiness. Constants never hold a node up: they come just before their first reader."""
    waiting = {node: sum(n not in constants for n in node.predecessors()) for node in nodes}
    order: list[Node] = []
    is_placed: set[Node] = set()
    for unread in (node for node in nodes if node in constants and not node.successors()):
        order.extend(_missing_constants(unread, constants, is_placed))
        order.append(unread)
    ready = deque(node for node in nodes if waiting[node] == 0 and node not in constants)
    if pick is not _Next.OLDEST:
        ready.reverse()
    while ready:
        node = ready.popleft() if pick is _Next.OLDEST else ready.pop()
        order.extend(_missing_constants(node, constants, is_placed))
        order.append(node)
        released = []
        for successor in node.successors():
            waiting[successor] -= 1
            if waiting[successor] == 0:
                released.append(successor)
        ready.extend(reversed(released) if pick is _Next.FIRST_READER else released)
    return order


def _missing_constants(node: Node, constants: set[Node], is_placed: set[Node]) -> list[Node]:
    found: list[Node] = []
    stack = [n for n in reversed(node.predecessors()) if n in constants and n not in is_placed]
    while stack:
        missing = [n for n in stack[-1].predecessors() if n not in is_placed]
        if missing:
            stack.extend(reversed(missing))
            continue
        constant = stack.pop()
        if constant not in is_placed:
            is_placed.add(constant)
            found.append(constant)
    return found


def _backward(nodes: list[Node], is_stable: bool) -> list[Node]:
    position = {node: i for i, node in enumerate(nodes)}
    sinks = [node for node in nodes if not node.successors()]
    sinks.sort(key=lambda node: (node.type == "NetOutput") is is_stable)
    order: list[Node] = []
    is_done: dict[Node, bool] = {}
    stack = sinks[::-1]
    while stack:
        node = stack[-1]
        if node in is_done:
            stack.pop()
            if not is_done[node]:
                is_done[node] = True
                order.append(node)
            continue
        is_done[node] = False
        needed = node.predecessors()
        if is_stable:
            needed.sort(key=position.__getitem__)
        stack.extend(n for n in reversed(needed) if n not in is_done)
    return order
