"""Lowering of a model: its root graph, then its bodies; kernels are numbered through."""

from __future__ import annotations

from collections.abc import Callable

from ge.graph import Graph, Node
from passes.lowering.fused_nodes import FusedGraph, Numbers, build_fused_nodes
from passes.lowering.lifting import lift
from passes.lowering.lower_graph import FUSED_TYPES, lower_graph
from passes.lowering.registry import find_lowering
from passes.lowering.strategy import LoweringStrategy

_FOLDED = "_is_from_constant_folding"


def lower_model(
    graph: Graph, strategy: LoweringStrategy, before_lifting: Callable[[FusedGraph], None] = lambda fused: None
) -> list[FusedGraph]:
    """Put fused nodes in the place of loops, one result per graph of the model.

    A graph that has fused nodes already is left alone, and so is one of a single operator. ``before_lifting`` sees (and
    may fuse further) what lowering has made of a graph before kernels of one operator are taken back.
    """
    numbers = Numbers()
    results = []
    for part in graph.all_graphs():
        if part.nodes_of_type(*FUSED_TYPES):
            continue
        edges = _take_edges_to_constants(part)
        fused = build_fused_nodes(lower_graph(part, strategy), strategy, numbers)
        before_lifting(fused)
        lift(fused, strategy)
        for before, after in edges:
            if not before.is_removed and not after.is_removed:
                part.add_control(before, after)
        results.append(fused)
    return results


def _take_edges_to_constants(graph: Graph) -> list[tuple[Node, Node]]:
    """Remove control edges between operators with a lowering and constants that folding has made; return them."""
    taken = []
    for node in graph.nodes_of_type("Const"):
        if not node.attrs.get(_FOLDED):
            continue
        taken += [(before, node) for before in node.control_inputs if find_lowering(before.type)]
        taken += [(node, after) for after in node.control_outputs if find_lowering(after.type)]
    for before, after in taken:
        graph.remove_control(before, after)
    return taken
