"""Which node of one graph is which node of another.

Nodes of equal names belong together. For the others the structure speaks, in this order:

1. Inputs of the graph of equal index, and the NetOutputs.
2. What feeds the same slots of two nodes that belong together, if the types agree.
3. Nodes that are computed in the same way: equal types, attributes, results, constants, and so on back to nodes that
   belong together. Groups of several such nodes are matched in their order if they are equally large.
4. What feeds, or reads, the same slots of two nodes that belong together, if the types agree and, among several
   readers, only one is left or only one has the same attributes.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import chain

from atc.graph_view import GraphView, NodeView


def match_nodes(before: GraphView, after: GraphView) -> dict[str, str]:
    """Return the names of nodes of ``before`` with those of their counterparts in ``after``, in the order of both."""
    matching = _Matching(before, after)
    matching.by_name()
    matching.by_role()
    matching.by_neighbours(with_readers=False)
    matching.by_meaning()
    matching.by_neighbours(with_readers=True)
    return {name: matching.after_of[name] for name in before.nodes if name in matching.after_of}


class _Side:
    """One of the graphs with its edges in both directions."""

    def __init__(self, graph: GraphView) -> None:
        self.nodes = graph.nodes
        self.readers: dict[str, dict[str, list[tuple[NodeView, int]]]] = defaultdict(lambda: defaultdict(list))
        for node in graph.nodes.values():
            for slot, source in enumerate(node.inputs):
                name, index = _split(source)
                self.readers[name][index].append((node, slot))


class _Matching:
    def __init__(self, before: GraphView, after: GraphView) -> None:
        self._graphs = before, after
        self._before, self._after = _Side(before), _Side(after)
        self.after_of: dict[str, str] = {}
        self._before_of: dict[str, str] = {}

    def _pair(self, before: str, after: str) -> None:
        self.after_of[before] = after
        self._before_of[after] = before

    def _open_before(self) -> list[NodeView]:
        return [node for name, node in self._before.nodes.items() if name not in self.after_of]

    def _open_after(self) -> list[NodeView]:
        return [node for name, node in self._after.nodes.items() if name not in self._before_of]

    def by_name(self) -> None:
        for name in self._before.nodes:
            if name in self._after.nodes:
                self._pair(name, name)

    def by_role(self) -> None:
        for one, other in zip(*(graph.data_nodes for graph in self._graphs), strict=False):
            if one.name not in self.after_of and other.name not in self._before_of:
                self._pair(one.name, other.name)
        ends = [[n for n in nodes if n.type == "NetOutput"] for nodes in (self._open_before(), self._open_after())]
        if len(ends[0]) == len(ends[1]) == 1:
            self._pair(ends[0][0].name, ends[1][0].name)

    def by_meaning(self) -> None:
        numbers: dict[Hashable, int] = {}
        before = _meanings(self._before.nodes, {name: name for name in self.after_of}, numbers)
        after = _meanings(self._after.nodes, self._before_of, numbers)
        one, other = _grouped(self._open_before(), before), _grouped(self._open_after(), after)
        for meaning, names in one.items():
            counterparts = other.get(meaning, [])
            if len(names) == len(counterparts):
                for name, counterpart in zip(names, counterparts, strict=True):
                    self._pair(name, counterpart)

    def by_neighbours(self, *, with_readers: bool) -> None:
        waiting = deque(self.after_of.items())
        while waiting:
            one, other = waiting.popleft()
            for pair in chain(self._feeding(one, other), self._reading(one, other) if with_readers else ()):
                if pair[0] not in self.after_of and pair[1] not in self._before_of:
                    self._pair(*pair)
                    waiting.append(pair)

    def _feeding(self, one: str, other: str) -> Iterator[tuple[str, str]]:
        inputs = self._before.nodes[one].inputs, self._after.nodes[other].inputs
        for sources in zip(*inputs, strict=False):
            (name, index), (counterpart, index_after) = (_split(source) for source in sources)
            producers = self._before.nodes.get(name), self._after.nodes.get(counterpart)
            if index == index_after and producers[0] and producers[1] and producers[0].type == producers[1].type:
                yield name, counterpart

    def _reading(self, one: str, other: str) -> Iterator[tuple[str, str]]:
        """Yield readers to be paired; the loose turn sees what became of those of the strict one."""
        after = self._after.readers[other]
        for index, readers in self._before.readers[one].items():
            if index not in after:
                continue
            for is_strict in (True, False):
                open_before = _by_place(readers, self.after_of, is_strict)
                open_after = _by_place(after[index], self._before_of, is_strict)
                for place, names in open_before.items():
                    counterparts = open_after.get(place, [])
                    if len(names) == len(counterparts) == 1:
                        yield names[0], counterparts[0]


def _split(source: str) -> tuple[str, str]:
    name, _, index = source.rpartition(":")
    return name, index


def _by_place(
    readers: Sequence[tuple[NodeView, int]], matched: Mapping[str, str], is_strict: bool
) -> dict[Hashable, list[str]]:
    """Group the open readers by type and slot, if strict also by what they are told."""
    found: dict[Hashable, list[str]] = defaultdict(list)
    for node, slot in readers:
        if node.name not in matched:
            found[node.type, slot, _told(node) if is_strict else None].append(node.name)
    return found


def _told(node: NodeView) -> Hashable:
    """What a node is besides its edges; notes (names with an underscore) do not count."""
    attrs = tuple((name, text) for name, text in node.attrs.items() if not name.startswith("_"))
    return attrs, node.outputs, node.constant


def _grouped(nodes: Iterable[NodeView], meanings: Mapping[str, Hashable]) -> dict[Hashable, list[str]]:
    groups: dict[Hashable, list[str]] = defaultdict(list)
    for node in nodes:
        if node.name in meanings:
            groups[meanings[node.name]].append(node.name)
    return groups


def _meanings(
    nodes: Mapping[str, NodeView], matched: Mapping[str, str], numbers: dict[Hashable, int]
) -> dict[str, Hashable]:
    """Return for each open node what it computes in terms of the ``matched`` ones; nothing for nodes on cycles.

    ``numbers`` stand for meanings that were met before, in whichever graph.
    """
    meanings: dict[str, Hashable] = {}
    for node in _in_order(nodes, matched):
        feeds = []
        for source in node.inputs:
            name, index = _split(source)
            feeds.append((matched.get(name), meanings.get(name), index))
        meanings[node.name] = numbers.setdefault((node.type, _told(node), tuple(feeds)), len(numbers))
    return meanings


def _in_order(nodes: Mapping[str, NodeView], matched: Mapping[str, str]) -> list[NodeView]:
    """Return the open nodes, producers first, those on cycles left out."""
    producers = {
        node.name: {name for name, _ in map(_split, node.inputs) if name in nodes and name not in matched}
        for node in nodes.values()
        if node.name not in matched
    }
    readers: dict[str, list[str]] = defaultdict(list)
    for name, sources in producers.items():
        for source in sources:
            readers[source].append(name)
    missing = {name: len(sources) for name, sources in producers.items()}
    ready = deque(name for name, count in missing.items() if count == 0)
    order: list[NodeView] = []
    while ready:
        name = ready.popleft()
        order.append(nodes[name])
        for reader in readers[name]:
            missing[reader] -= 1
            if missing[reader] == 0:
                ready.append(reader)
    return order
