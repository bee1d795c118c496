"""Bodies of call nodes made from nested ONNX graphs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from ge.graph import NodeOut
from parsers import call_bodies
from parsers.call_bodies import Argument, LoopBuilder, new_graph
from parsers.onnx.graph_builder import GraphBuilder
from parsers.onnx.node_builder import NodeBuilder
from parsers.onnx.onnx_graph import OnnxGraph
from parsers.onnx.scope import Scope

__all__ = ["Argument", "Body", "Turn", "add_while", "captures"]


def captures(n: NodeBuilder, bodies: Sequence[OnnxGraph]) -> list[Argument]:
    """Return what the bodies read from outside, sorted by name. Absent arguments of a function stay absent inside."""
    names = sorted({name for body in bodies for name in body.captures})
    found = [(name, n.scope.find(name, n.node)) for name in names]
    return [Argument(name, source) for name, source in found if source is not None]


class Body(call_bodies.Body[NodeBuilder]):
    """A body under construction. ``n`` adds nodes to it on behalf of the call's ONNX node."""

    def __init__(self, caller: NodeBuilder, name: str) -> None:
        outer = caller.builder
        graph = new_graph(caller, name, caller.scope.depth)
        scope = Scope(caller.scope.opsets, bindings=caller.scope.bindings, depth=caller.scope.depth + 1)
        super().__init__(caller.inside(GraphBuilder(outer.context, graph, scope, f"{name}/")), outer)

    def add_graph(self, content: OnnxGraph, given: dict[str, NodeOut]) -> list[NodeOut]:
        """Add initializers and nodes of ``content``, which can read ``given`` by name; return its outputs."""
        builder = self.n.builder
        scope = builder.scope
        for name, source in given.items():
            scope.define(name, source, f"graph input {name}")
        for name in content.captures:
            if name not in given:
                scope.define(name, None, "the outer graph")
        builder.add_initializers(content, scope)
        builder.add_nodes(content.nodes, scope)
        return builder.outputs(content.outputs)[0]


Turn = call_bodies.Turn[Body]


def add_while(
    n: NodeBuilder,
    fixed: Sequence[Argument],
    carried: Sequence[Argument],
    turn: Callable[[Turn], Sequence[NodeOut]],
    goes_on: Callable[[Turn], NodeOut],
) -> list[NodeOut]:
    """Add a While and return what became of ``carried``; see :class:`LoopBuilder`."""
    return LoopBuilder(n, partial(Body, n), fixed, carried).add(turn, goes_on)
