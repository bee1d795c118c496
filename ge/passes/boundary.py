"""The border of the part of a graph that is about to be replaced."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

from ge.graph.graph import Graph
from ge.graph.node import Node, NodeOut


class BoundaryFault(ValueError):
    """A border that encloses nothing that could be replaced; the message says why."""


@dataclass(frozen=True)
class Boundary:
    """What is replaced: ``nodes`` (producers first), fed by ``inputs``, read by others at ``outputs``.

    ``anchor`` is the node that new nodes follow in the node list.
    """

    graph: Graph
    nodes: tuple[Node, ...]
    inputs: tuple[NodeOut, ...]
    outputs: tuple[NodeOut, ...]
    anchor: Node

    @classmethod
    def around(cls, node: Node) -> Boundary:
        """Return the border of a single node: each tensor that it reads counts once, each of its outputs is one."""
        inputs = dict.fromkeys(source for source in node.inputs if source is not None)
        return cls(node.graph, (node,), tuple(inputs), tuple(node.outputs()), node)

    @classmethod
    def enclosing(cls, graph: Graph, inputs: Sequence[Collection[NodeInPort]], outputs: Sequence[NodeOut]) -> Boundary:
        """Return the border between input ports and outputs, given by their numbers.

        Everything on the way from the outputs back to the ports lies inside. Raises :class:`BoundaryFault` when a port
        is not on the way, when the way leads to an input of the graph, or when others read what lies inside.
        """
        twice = next((out for place, out in enumerate(outputs) if out in outputs[:place]), None)
        if twice is not None:
            raise BoundaryFault(f"two outputs of the boundary are one tensor, {twice}")
        sources = tuple(_producer_of(ports) for ports in inputs)
        stops = {port for ports in inputs for port in ports}
        inside = _walk_back([out.node for out in outputs], stops)
        for node, slot in stops:
            if node not in inside:
                raise BoundaryFault(f"input {slot} of node {node.name} is not on a way to the outputs")
        ends = {out.node for out in outputs}
        for node in inside:
            reader = "" if node in ends else outside_reader(node, inside)
            if reader:
                raise BoundaryFault(f"node {node.name} is not an output, but {reader} reads it")
        return cls(graph, tuple(in_order(inside)), sources, tuple(outputs), outputs[0].node)


NodeInPort = tuple[Node, int]
"""A node and one of its input ports."""


def _producer_of(ports: Collection[NodeInPort]) -> NodeOut:
    producers = {node.input(slot) for node, slot in ports}
    found = next(iter(producers), None)
    if found is None or len(producers) > 1:
        names = ", ".join(f"{node.name}:{slot}" for node, slot in ports)
        raise BoundaryFault(f"the ports of one boundary input must read one tensor: {names or 'there are none'}")
    return found


def _walk_back(starts: Iterable[Node], stops: set[NodeInPort]) -> dict[Node, None]:
    inside: dict[Node, None] = dict.fromkeys(starts)
    stack = list(inside)
    while stack:
        node = stack.pop()
        if node.type == "Data":
            raise BoundaryFault(f"the graph's input {node.name} would lie inside: a boundary input is missing")
        for slot, source in enumerate(node.inputs):
            if source is not None and (node, slot) not in stops and source.node not in inside:
                inside[source.node] = None
                stack.append(source.node)
    return inside


def outside_reader(node: Node, inside: Collection[Node]) -> str:
    """Return the name of somebody outside who reads an output of ``node``; empty if nobody does."""
    for index in range(len(node.output_descs)):
        for reader in node.consumers(index):
            if reader.node not in inside:
                return reader.node.name
    if node.graph.net_output() is None and any(out.node is node for out in node.graph.outputs):
        return "the graph's result"
    return ""


def in_order(nodes: Iterable[Node], rank: Callable[[Node], int] | None = None) -> list[Node]:
    """Return ``nodes`` with producers first; where that leaves a choice, those of lower rank come first."""
    starts = list(nodes) if rank is None else sorted(nodes, key=rank)
    if len(starts) < 2:
        return starts
    members, entered = set(starts), set[Node]()
    if _is_in_order(starts, members):
        return starts
    order: list[Node] = []
    for start in starts:
        stack = [(start, False)]
        while stack:
            node, is_done = stack.pop()
            if is_done:
                order.append(node)
            elif node not in entered:
                entered.add(node)
                stack.append((node, True))
                sources = [source.node for source in node.inputs if source is not None and source.node in members]
                stack.extend((source, False) for source in reversed(sources))
    return order


def _is_in_order(nodes: Iterable[Node], waiting: Collection[Node]) -> bool:
    """Tell whether producers come first already, as they do in most node lists."""
    left = set(waiting)
    for node in nodes:
        left.discard(node)
        for source in node.inputs:
            if source is not None and source.node in left:
                return False
    return True
