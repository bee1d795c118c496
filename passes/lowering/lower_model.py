"""Lowering of a model: its root graph, then its bodies; kernels are numbered through."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace

from ge.ascir import AscGraphFault, print_asc_graph
from ge.graph import Graph, Node
from ge.ops.fused import FUSED_TYPES
from passes.lowering.can_fuse import fuse_kernels
from passes.lowering.fused_nodes import ASC_GRAPH, FusedGraph, Kernel, Numbers, build_fused_nodes
from passes.lowering.lifting import lift
from passes.lowering.lower_graph import lower_graph
from passes.lowering.refusal import Refusal
from passes.lowering.registry import find_lowering
from passes.lowering.schedule import scheduled
from passes.lowering.strategy import LoweringStrategy

logger = logging.getLogger(__name__)

_FOLDED = "_is_from_constant_folding"


def lower_model(
    graph: Graph,
    strategy: LoweringStrategy,
    *,
    fuses_kernels: bool = True,
    after_stage: Callable[[str, FusedGraph], None] = lambda stage, fused: None,
) -> list[FusedGraph]:
    """Put fused nodes in the place of loops, one result per graph of the model.

    1. Operators are lowered, and realized results become kernels.
    2. Kernels that share data become one (unless ``fuses_kernels`` is False).
    3. Kernels of a single operator are given back.
    4. What is left gets a schedule, and the text that an .om carries.

    A graph that has fused nodes already is left alone. ``after_stage`` is told of AutoFuser_AfterLowering,
    AutoFuser_AfterFusionStrategySolve, AutoFuser_AfterLifting and AutoFuser_AfterAllFuse, as dumps call them.
    """
    numbers = Numbers()
    results = []
    for part in graph.all_graphs():
        if part.nodes_of_type(*FUSED_TYPES):
            continue
        edges = _take_edges_to_constants(part)
        fused = build_fused_nodes(lower_graph(part, strategy), strategy, numbers)
        after_stage("AutoFuser_AfterLowering", fused)
        if fuses_kernels:
            fused.kernel_stops = fuse_kernels(fused, strategy, numbers)
        after_stage("AutoFuser_AfterFusionStrategySolve", fused)
        lift(fused, strategy)
        after_stage("AutoFuser_AfterLifting", fused)
        for kernel in fused.kernels.values():
            _settle(kernel)
        after_stage("AutoFuser_AfterAllFuse", fused)
        for before, after in edges:
            if not before.is_removed and not after.is_removed:
                part.add_control(before, after)
        results.append(fused)
    return results


def _settle(kernel: Kernel) -> None:
    """Give a kernel its schedule and its text; what has no schedule is run loop by loop."""
    kernel.graph = replace(kernel.graph, name=kernel.node.name)
    try:
        kernel.graph = scheduled(kernel.graph)
    except Refusal as refusal:
        logger.info("no schedule for %s: %s", kernel.node.name, refusal)
    try:
        text = print_asc_graph(kernel.graph)
    except AscGraphFault:  # too long: names of operators take most of the room
        kernel.graph = replace(kernel.graph, ops=tuple(replace(op, origins=()) for op in kernel.graph.ops))
        text = print_asc_graph(kernel.graph)
    kernel.node.attrs[ASC_GRAPH] = text


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
