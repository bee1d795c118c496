"""Putting a replacement graph into the place of a part of a graph."""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ge.graph.attributes import shown
from ge.graph.graph import CycleError, Graph
from ge.graph.node import Node, NodeIn, NodeOut
from ge.passes import origins
from ge.passes.boundary import Boundary
from ge.passes.pattern import PLACEHOLDER_TYPES

MAX_STEM = 200
"""Longest part of a new name that the names of the replaced nodes make up."""

_counters: weakref.WeakKeyDictionary[Graph, Iterator[int]] = weakref.WeakKeyDictionary()


class ReplacementFault(ValueError):
    """A replacement that does not fit into the place; the message says why."""


@dataclass(frozen=True)
class Replacement:
    """A checked replacement graph. ``nodes`` are those to be copied, producers first."""

    graph: Graph
    nodes: tuple[Node, ...]
    inputs: dict[Node, int]
    outputs: tuple[NodeOut, ...]

    @classmethod
    def fitting(cls, graph: Graph, boundary: Boundary) -> Replacement:
        """Check ``graph`` against the place. Raises :class:`ReplacementFault`."""
        inputs = {node: int(node.attrs.get("index", 0)) for node in graph if node.type in PLACEHOLDER_TYPES}
        wanted = len(boundary.inputs)
        if len(inputs) != wanted:
            raise ReplacementFault(
                f"Replacement input size: {len(inputs)} not equal with Boundary input size: {wanted}"
            )
        if sorted(inputs.values()) != list(range(wanted)):
            raise ReplacementFault(f"the inputs of graph {graph.name} have the indexes {sorted(inputs.values())}")
        outputs = tuple(graph.outputs)
        if len(outputs) != len(boundary.outputs):
            raise ReplacementFault(
                f"Replacement output size: {len(outputs)} not equal with Boundary output size: {len(boundary.outputs)}"
            )
        try:
            order = graph.topological_order()
        except CycleError as cycle:
            raise ReplacementFault(f"There may exist cycle on replacement graph {graph.name}: {cycle}") from cycle
        nodes = tuple(node for node in order if node not in inputs and node.type != "NetOutput")
        for node in (node for part in (graph, *graph.root.subgraphs.values()) for node in part):
            missing = next((name for _, name in node.subgraphs if name not in graph.root.subgraphs), None)
            if missing is not None:
                raise ReplacementFault(f"node {node.name} of graph {graph.name} calls {missing}, which is not there")
        return cls(graph, nodes, inputs, outputs)


def rewrite(boundary: Boundary, replacement: Replacement, pass_name: str = "") -> list[Node]:
    """Replace what lies inside ``boundary`` by a copy of the replacement and return the new nodes, producers first.

    Readers outside read the new outputs. Of the old nodes those that nobody reads any more are removed. Control edges
    from and to the outside go through a NoOp each; without new nodes they are lost, as in GE.
    """
    graph, old = boundary.graph, boundary.nodes
    inside = set(old)
    readers = [[r for r in out.node.consumers(out.index) if r.node not in inside] for out in boundary.outputs]
    copies = _copy_nodes(boundary, replacement)
    new = list(copies.values())
    origins.inherit(old, new)
    origins.record_origins(old, [*new, *_inner_nodes(new)])
    if pass_name:
        origins.record_pass(old, new, pass_name)
    targets = [_mapped(target, boundary, replacement, copies) for target in replacement.outputs]
    origins.record_outputs(new, zip(boundary.outputs, targets, strict=True))
    _hand_over(graph, dict(zip(boundary.outputs, targets, strict=True)), readers)
    ordered = _inherit_order(graph, inside, old, new) if new else []
    _remove_unread(graph, old)
    return ordered


def _mapped(source: NodeOut, boundary: Boundary, replacement: Replacement, copies: dict[Node, Node]) -> NodeOut:
    """Return what stands for an output of a replacement's node in the graph."""
    place = replacement.inputs.get(source.node)
    return NodeOut(copies[source.node], source.index) if place is None else boundary.inputs[place]


def _copy_nodes(boundary: Boundary, replacement: Replacement) -> dict[Node, Node]:
    graph = boundary.graph
    stem = _stem(boundary)
    copies: dict[Node, Node] = {}
    for node in replacement.nodes:
        copy = graph.add_node(
            node.type,
            _new_name(graph, node, stem),
            [None] * len(node.inputs),
            {name: shown(value) for name, value in node.attrs.items()},
            output_descs=[desc.copy() for desc in node.output_descs],
        )
        copies[node] = copy
        for slot, source in enumerate(node.inputs):
            if source is not None:
                graph.set_input(copy, slot, _mapped(source, boundary, replacement, copies))
                _copy_desc_attrs(node, copy, slot)
        for before in node.control_inputs:
            place = replacement.inputs.get(before)
            graph.add_control(copies[before] if place is None else boundary.inputs[place].node, copy)
        _copy_bodies(replacement.graph, node, copy)
    return copies


def _copy_desc_attrs(node: Node, copy: Node, slot: int) -> None:
    given, desc = node.input_descs[slot], copy.input_descs[slot]
    if given is not None and desc is not None and given.attrs:
        desc.attrs = desc.attrs | given.attrs


def _stem(boundary: Boundary) -> str:
    prefix = _prefix(boundary.graph)
    names = "_".join(node.name.removeprefix(prefix) for node in boundary.nodes)
    return names if len(names) <= MAX_STEM else f"{names[:MAX_STEM]}_and_more"


def _prefix(graph: Graph) -> str:
    """Nodes of a body begin with its name: names are unique in the whole model."""
    return "" if graph.parent is None else f"{graph.name}/"


def _new_name(graph: Graph, node: Node, stem: str) -> str:
    counter = _counters.setdefault(graph.root, itertools.count())
    return graph.unique_name(f"{_prefix(graph)}{node.name}_{stem}_{next(counter)}")


# -- bodies of call nodes ----------------------------------------------------------------------------------------------
def _copy_bodies(source: Graph, node: Node, copy: Node) -> None:
    """Give the new node copies of the bodies that the replacement's node calls."""
    for formal, name in node.subgraphs:
        body = source.root.subgraphs[name]
        copied = _copy_body(source, body, _free_graph_name(copy.graph.root, f"{copy.name}_{name}"), copy.graph.root)
        copy.subgraphs.append((formal, copied.name))


def _free_graph_name(root: Graph, stem: str) -> str:
    taken = {root.name, *root.subgraphs}
    return next(name for name in _numbered(stem) if name not in taken)


def _numbered(stem: str) -> Iterator[str]:
    yield stem
    yield from (f"{stem}_{number}" for number in itertools.count(1))


def _inner_nodes(nodes: Iterable[Node]) -> Iterator[Node]:
    """Iterate over the nodes that make something in the bodies of ``nodes``, and in theirs."""
    waiting = list(nodes)
    while waiting:
        caller = waiting.pop()
        for name in dict.fromkeys(name for _, name in caller.subgraphs):
            made = [node for node in caller.graph.root.subgraphs[name] if node.type not in ("Data", "NetOutput")]
            yield from made
            waiting += made


def _copy_body(source: Graph, body: Graph, name: str, root: Graph) -> Graph:
    copy = Graph(name)
    copy.attrs = {key: shown(value) for key, value in body.attrs.items()}
    copy.output_names = list(body.output_names)
    root.add_subgraph(copy)
    copies: dict[Node, Node] = {}
    for node in body.topological_order():
        inputs = [None if s is None else NodeOut(copies[s.node], s.index) for s in node.inputs]
        own_name = f"{name}/{node.name.removeprefix(f'{body.name}/')}"
        attrs = {key: shown(value) for key, value in node.attrs.items()}
        descs = [desc.copy() for desc in node.output_descs]
        copies[node] = copy.add_node(node.type, copy.unique_name(own_name), inputs, attrs, output_descs=descs)
        for before in node.control_inputs:
            copy.add_control(copies[before], copies[node])
        _copy_bodies(source, node, copies[node])
    if body.net_output() is None:
        copy.outputs = [NodeOut(copies[out.node], out.index) for out in body.outputs]
    return copy


# -- connecting --------------------------------------------------------------------------------------------------------
def _hand_over(graph: Graph, targets: dict[NodeOut, NodeOut], readers: list[list[NodeIn]]) -> None:
    """Let the readers outside, and the graph's results, read the new outputs."""
    for new, ports in zip(targets.values(), readers, strict=True):
        for reader in ports:
            graph.set_input(reader.node, reader.index, new)
    if graph.net_output() is None:
        graph.outputs = [targets.get(out, out) for out in graph.outputs]


def _inherit_order(graph: Graph, inside: set[Node], old: tuple[Node, ...], new: list[Node]) -> list[Node]:
    """Let the new nodes wait, and be waited for, as the old ones; return them with the NoOps that this takes."""
    before = dict.fromkeys(b for node in old for b in node.control_inputs if b not in inside)
    behind = dict.fromkeys(a for node in old for a in node.control_outputs if a not in inside)
    ordered = list(new)
    if before:
        gate = _no_op(graph, f"noop_in_{new[0].name.removeprefix(_prefix(graph))}")
        for node in before:
            graph.add_control(node, gate)
        for node in new:
            graph.add_control(gate, node)
        ordered.insert(0, gate)
    if behind:
        gate = _no_op(graph, f"noop_out_{new[-1].name.removeprefix(_prefix(graph))}")
        for node in new:
            graph.add_control(node, gate)
        for node in behind:
            graph.add_control(gate, node)
        ordered.append(gate)
    return ordered


def _no_op(graph: Graph, name: str) -> Node:
    node = graph.add_node("NoOp", graph.unique_name(_prefix(graph) + name), output_descs=[])
    node.attrs[origins.ORIGIN_NAMES] = []
    return node


def _remove_unread(graph: Graph, old: tuple[Node, ...]) -> None:
    for node in reversed(old):
        if graph.is_read(node):
            continue
        for before in node.control_inputs:
            graph.remove_control(before, node)
        for after in node.control_outputs:
            graph.remove_control(node, after)
        bodies = [name for _, name in node.subgraphs]
        graph.remove_node(node)
        _remove_uncalled(graph.root, bodies)


def _remove_uncalled(root: Graph, names: list[str]) -> None:
    """Remove those of the bodies that no node calls any more, and what only they call."""
    waiting = list(names)
    while waiting:
        body = root.subgraphs.get(waiting.pop())
        if body is None or any(
            body.name == name for part in root.all_graphs() for n in part for _, name in n.subgraphs
        ):
            continue
        waiting += [name for node in body for _, name in node.subgraphs]
        root.remove_subgraph(body.name)
