"""What has changed from one graph to another, node by node.

Edges are compared by what they mean: an input that reads a renamed node is not rewired. Descriptors are compared at the
outputs, where they arise. What one of the files does not tell (see :class:`Basis`) is not compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from itertools import zip_longest

from atc.graph_file import GraphFile, Kind
from atc.graph_matching import match_nodes
from atc.graph_view import GraphView, NodeView, TensorView, graphs_of
from ge.dump.settings import Detail
from ge.passes.origins import ORIGIN_NAMES, OUTPUT_NAME


class Change(Enum):
    """Kinds of change, in the order in which they are shown."""

    REMOVED = "removed"
    ADDED = "added"
    RENAMED = "renamed"
    RETYPED = "retyped"
    REWIRED = "rewired"
    ATTRIBUTES = "attributes"
    TENSORS = "tensors"


@dataclass(frozen=True)
class Difference:
    """One change of a node: ``what`` it concerns (``input 1``, ``pads``, ``output 0 dtype``), old and new text.

    Texts are empty for what is not there.
    """

    change: Change
    what: str
    before: str
    after: str


@dataclass(frozen=True)
class NodePair:
    """A node before and after; one of them is missing where it was added or removed."""

    before: NodeView | None
    after: NodeView | None
    differences: tuple[Difference, ...]

    @property
    def changes(self) -> tuple[Change, ...]:
        """The kinds of change, each once, in their order; none for a node that stayed as it was."""
        if self.after is None:
            return (Change.REMOVED,)
        if self.before is None:
            return (Change.ADDED,)
        found = {difference.change for difference in self.differences}
        return tuple(change for change in Change if change in found)

    @property
    def node(self) -> NodeView:
        """The node, as it is after if it is there."""
        found = self.before if self.after is None else self.after
        assert found is not None
        return found


@dataclass(frozen=True)
class GraphPair:
    """A graph before and after with all its nodes; ``differences`` are those of the graph itself."""

    before: GraphView | None
    after: GraphView | None
    nodes: tuple[NodePair, ...]
    differences: tuple[Difference, ...]

    @property
    def name(self) -> str:
        """The name of the graph, as it is after if it is there."""
        found = self.before if self.after is None else self.after
        assert found is not None
        return found.name


class Basis(Enum):
    """What both files tell, and is compared."""

    EVERYTHING = ""
    NO_BODIES = "compared: what a ge_onnx dump tells (not the bodies of nodes, data types and nested numbers)"
    NO_TEXTS = "compared: names, types, edges, numbers and descriptors; one file has no texts and no constants"
    LINKS = "compared: names, types and edges; one file has no attributes"


@dataclass(frozen=True)
class Comparison:
    """Two files and all that has changed; the first graph is the root."""

    before: GraphFile
    after: GraphFile
    basis: Basis
    graphs: tuple[GraphPair, ...]

    @property
    def unknown_constants(self) -> int:
        """How many constants could not be compared: one of the files does not hold their data."""
        pairs = [(node.before, node.after) for graph in self.graphs for node in graph.nodes]
        return sum(
            one is not None and other is not None and "" in (one.constant, other.constant) for one, other in pairs
        )

    @property
    def is_equal(self) -> bool:
        """Whether nothing has changed."""
        return not any(pair.differences or any(node.changes for node in pair.nodes) for pair in self.graphs)


def compare(before: GraphFile, after: GraphFile) -> Comparison:
    """Compare two files. Raises E13005 as :func:`atc.graph_view.graphs_of`."""
    detail, basis = _common_detail(before, after)
    pairs = _compare_graphs(graphs_of(before, detail), graphs_of(after, detail), basis)
    return Comparison(before, after, basis, tuple(pairs))


def _common_detail(before: GraphFile, after: GraphFile) -> tuple[Detail | None, Basis]:
    if Kind.GE_ONNX not in (before.kind, after.kind):
        return None, Basis.EVERYTHING
    detail = max(before.detail, after.detail)
    return detail, {1: Basis.NO_BODIES, 2: Basis.NO_TEXTS, 3: Basis.LINKS}[detail]


def _compare_graphs(before: list[GraphView], after: list[GraphView], basis: Basis) -> Iterator[GraphPair]:
    """Pair the roots, bodies of equal names, and bodies that are called in the same places."""
    counterparts = {graph.name: graph for graph in after[1:]}
    open_before = {graph.name: graph for graph in before[1:]}
    waiting: list[tuple[GraphView, GraphView]] = [(before[0], after[0])]
    common = [name for name in open_before if name in counterparts]
    waiting += [(open_before.pop(name), counterparts.pop(name)) for name in common]
    while waiting:
        one, other = waiting.pop(0)
        matching = match_nodes(one, other)
        renamed: dict[str, str] = {}
        for name, counterpart in matching.items():
            for body, body_after in zip(one.nodes[name].bodies, other.nodes[counterpart].bodies, strict=False):
                if body in open_before and body_after in counterparts:
                    renamed[body] = body_after
                    waiting.append((open_before.pop(body), counterparts.pop(body_after)))
        nodes = _compare_nodes(one, other, matching, renamed)
        yield GraphPair(one, other, tuple(nodes), tuple(_graph_differences(one, other, matching, basis)))
    for graph in open_before.values():
        gone = tuple(NodePair(node, None, ()) for node in graph.nodes.values())
        yield GraphPair(graph, None, gone, (Difference(Change.REMOVED, "body", graph.name, ""),))
    for graph in counterparts.values():
        new = tuple(NodePair(None, node, ()) for node in graph.nodes.values())
        yield GraphPair(None, graph, new, (Difference(Change.ADDED, "body", "", graph.name),))


def _compare_nodes(
    before: GraphView, after: GraphView, matching: Mapping[str, str], renamed_bodies: Mapping[str, str]
) -> Iterator[NodePair]:
    pairs = [
        NodePair(node, counterpart, tuple(_node_differences(node, counterpart, matching, renamed_bodies)))
        for node, counterpart in ((before.nodes[name], after.nodes[other]) for name, other in matching.items())
    ]
    return _in_order(before, after, {pair.node.name: pair for pair in pairs}, matching)


def _in_order(
    before: GraphView, after: GraphView, pairs: Mapping[str, NodePair], matching: Mapping[str, str]
) -> Iterator[NodePair]:
    """Yield all nodes in the order of ``after``, removed ones behind the node that they followed."""
    removed: dict[str, list[NodeView]] = {"": []}
    previous = ""
    for name, node in before.nodes.items():
        if name in matching:
            previous = matching[name]
        else:
            removed.setdefault(previous, []).append(node)
    yield from (NodePair(node, None, ()) for node in removed[""])
    for name, node in after.nodes.items():
        yield pairs.get(name, NodePair(None, node, ()))
        yield from (NodePair(gone, None, ()) for gone in removed.get(name, ()))


def _graph_differences(
    before: GraphView, after: GraphView, matching: Mapping[str, str], basis: Basis
) -> Iterator[Difference]:
    if before.name != after.name:
        yield Difference(Change.RENAMED, "name", before.name, after.name)
    if not (before.has_net_output and after.has_net_output):  # whose inputs say the same
        results = [graph.results if basis is Basis.EVERYTHING else _producers(graph) for graph in (before, after)]
        for index, (one, other) in enumerate(zip_longest(*results, fillvalue="")):
            if _counterpart(one, matching) != other:
                yield Difference(Change.REWIRED, f"result {index}", one.removesuffix(":"), other.removesuffix(":"))
    if before.result_names and after.result_names and before.result_names != after.result_names:
        yield Difference(
            Change.ATTRIBUTES, "names of results", ", ".join(before.result_names), ", ".join(after.result_names)
        )
    yield from _attr_differences(before.attrs, after.attrs)


def _producers(graph: GraphView) -> tuple[str, ...]:
    """Return the nodes that give results, each once: all that a ge_onnx dump without NetOutput tells of them."""
    return tuple(dict.fromkeys(f"{source.rpartition(':')[0]}:" for source in graph.results))


def _node_differences(
    before: NodeView, after: NodeView, matching: Mapping[str, str], renamed_bodies: Mapping[str, str]
) -> Iterator[Difference]:
    if before.name != after.name:
        yield Difference(Change.RENAMED, "name", before.name, after.name)
    if before.type != after.type:
        yield Difference(Change.RETYPED, "type", before.type, after.type)
    for slot, (one, other) in enumerate(zip_longest(before.inputs, after.inputs, fillvalue="")):
        if _counterpart(one, matching) != other:
            yield Difference(Change.REWIRED, f"input {slot}", one, other)
    expected = {matching.get(name, name): name for name in before.controls}
    for counterpart, name in expected.items():
        if counterpart not in after.controls:
            yield Difference(Change.REWIRED, "runs after", name, "")
    for name in after.controls:
        if name not in expected:
            yield Difference(Change.REWIRED, "runs after", "", name)
    for index, (body, body_after) in enumerate(zip_longest(before.bodies, after.bodies, fillvalue="")):
        if renamed_bodies.get(body, body) != body_after:
            yield Difference(Change.ATTRIBUTES, f"body {index}", body, body_after)
    is_renamed = before.name != after.name
    for difference in _attr_differences(before.attrs, after.attrs):
        if not (is_renamed and difference.what in _NAMES_OF_ORIGIN):  # the new name, once more
            yield difference
    if before.constant and after.constant and before.constant != after.constant:
        yield Difference(Change.ATTRIBUTES, "value", before.constant, after.constant)
    for difference in _tensor_differences(before.outputs, after.outputs):
        if not (is_renamed and difference.what.rpartition(" ")[2] in _NAMES_OF_ORIGIN):
            yield difference


_NAMES_OF_ORIGIN = frozenset({ORIGIN_NAMES, OUTPUT_NAME})
"""Attributes that hold names of the user's model: of a node, those of its origins."""


def _counterpart(source: str, matching: Mapping[str, str]) -> str:
    name, colon, index = source.rpartition(":")
    return f"{matching.get(name, name)}{colon}{index}"


def _attr_differences(before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[Difference]:
    for name in sorted(before.keys() | after.keys()):
        if before.get(name) != after.get(name):
            yield Difference(Change.ATTRIBUTES, name, before.get(name, ""), after.get(name, ""))


_TENSOR_FIELDS = {
    "dtype": "dtype",
    "shape": "shape",
    "format": "format",
    "origin_shape": "origin shape",
    "origin_format": "origin format",
}


def _tensor_differences(before: tuple[TensorView, ...], after: tuple[TensorView, ...]) -> Iterator[Difference]:
    for index, (one, other) in enumerate(zip_longest(before, after)):
        if one is None or other is None:
            texts = ["" if tensor is None else tensor.text for tensor in (one, other)]
            yield Difference(Change.TENSORS, f"output {index}", *texts)
            continue
        yield from _field_differences(one, other, f"output {index}")
        for difference in _attr_differences(dict(one.attrs), dict(other.attrs)):
            yield Difference(Change.TENSORS, f"output {index} {difference.what}", difference.before, difference.after)


def _field_differences(one: TensorView, other: TensorView, where: str) -> Iterator[Difference]:
    """Yield changes of fields; an origin that is what is stored, before and after, is not told twice."""
    follows = (one.shape, one.format) == (one.origin_shape, one.origin_format) and (other.shape, other.format) == (
        other.origin_shape,
        other.origin_format,
    )
    for field, shown in _TENSOR_FIELDS.items():
        before, after = getattr(one, field), getattr(other, field)
        if before != after and not (follows and field.startswith("origin")):
            yield Difference(Change.TENSORS, f"{where} {shown}", before, after)
