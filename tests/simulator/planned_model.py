"""Small models for tests of the simulator: a graph, and a plan that gives each tensor a block of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ge.graph import Graph, Node, NodeOut, Shape, Tensor, TensorDesc
from ge.graph.types import Format, data_type_of
from ge.ops import infer_node
from ge.options import CompileOptions, Environment
from ge.plan import Block, GraphPlan, Plan, Task, align
from ge.session import CompileSession
from ge.tensor_memory import is_computing, memory_size
from ge.text import parse_graph
from passes.build.memory_plan import PlanMemory
from passes.build.task_list import BuildTasks
from passes.infer.infer_shapes import InferShapes
from passes.prepare.add_net_output import AddNetOutput
from simulator.loader import ExecutionPlan, load


@dataclass
class PlannedModel:
    """What the loader needs of an offline model."""

    graph: Graph
    plan: Plan = field(default_factory=Plan)


def data(graph: Graph, name: str, array: np.ndarray, format: Format = Format.FORMAT_ND) -> NodeOut:
    """Add an input of the shape and type of ``array``."""
    desc = TensorDesc(Shape(array.shape), format, data_type_of(array.dtype))
    index = len(graph.data_nodes())
    return graph.add_node("Data", name, attrs={"index": index}, output_descs=[desc]).output()


def plan_model(graph: Graph, outputs: Sequence[NodeOut]) -> PlannedModel:
    """Finish ``graph`` with a NetOutput and plan it without any sharing except for views."""
    graph.outputs = list(outputs)
    graph.output_names = [f"y{i}" for i in range(len(outputs))]
    graph.add_node("NetOutput", "NetOutput", outputs, output_descs=[])
    plan = GraphPlan()
    for node in graph.topological_order():
        if node.type == "Data" or is_computing(node):
            for out in node.outputs():
                size = memory_size(out.desc)
                assert size is not None
                plan.blocks[node.name, out.index] = Block(plan.arena_size, size)
                plan.arena_size += align(max(size, 1))
        if is_computing(node):
            plan.tasks.append(Task(node.name))
    return PlannedModel(graph, Plan({graph.name: plan}))


def planned(text: str) -> PlannedModel:
    """Return the graph that a text stands for, with the memory plan of a compile and without its fusions."""
    graph, session = parse_graph(text), CompileSession(CompileOptions(), Environment())
    for step in (AddNetOutput(), InferShapes(), BuildTasks(), PlanMemory()):
        step.run(graph, session)
    return PlannedModel(graph, session.plan)


def single(
    type: str,
    inputs: Sequence[np.ndarray | None],
    attrs: Mapping[str, Any] | None = None,
    *,
    constant: Sequence[int] = (),
    n_outputs: int = 1,
    format: Format = Format.FORMAT_ND,
) -> PlannedModel:
    """Return a model of one node. Inputs whose slots stand in ``constant`` are constants, ``None`` are absent."""
    graph = Graph("single")
    sources: list[NodeOut | None] = []
    for slot, array in enumerate(inputs):
        if array is None:
            sources.append(None)
        elif slot in constant:
            sources.append(graph.add_const(f"x{slot}", Tensor.of(array, format)))
        else:
            sources.append(data(graph, f"x{slot}", array, format))
    node = graph.add_node(type, "node", sources, attrs, n_outputs)
    infer_node(node)
    for desc in node.output_descs:
        desc.format = desc.origin_format = format
    return plan_model(graph, list(node.outputs()))


def node_of(model: PlannedModel) -> Node:
    """Return the one node of a model made by :func:`single`."""
    node = model.graph.find("node")
    assert node is not None
    return node


def run_plan(plan: ExecutionPlan, feeds: Sequence[np.ndarray], poison: int = 0xFF) -> list[np.ndarray]:
    """Fill all memory with ``poison`` bytes, feed the inputs, run the steps and return copies of the outputs."""
    plan.arena.fill(poison)
    plan.scratch.fill(poison)
    for binding, feed in zip(plan.inputs, feeds, strict=True):
        np.copyto(binding.array, feed)
    with np.errstate(all="ignore"):
        for step in plan.steps:
            step.call()
    return [binding.array.copy() for binding in plan.outputs]


def run_model(model: PlannedModel, feeds: Sequence[np.ndarray], poison: int = 0xFF) -> list[np.ndarray]:
    """Load ``model`` and run it once on poisoned memory."""
    return run_plan(load(model), feeds, poison)
