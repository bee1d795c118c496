"""Oracles for memory plans that know nothing of lifetimes or symbols: they look at plan and graph alone.

:func:`run_symbolically` executes a plan on a memory whose cells remember which tensor was written there last.
:func:`most_bytes_in_use` counts, step by step, the bytes that somebody still needs.
"""

from __future__ import annotations

from ge.graph import Graph, Node, NodeOut
from ge.options import CompileOptions, Environment
from ge.plan import Block, GraphPlan, align
from ge.session import CompileSession

CELL = 512

ELEMENTWISE = {"Relu", "Sigmoid", "Add", "Mul"}
"""Operator types of the test graphs that may write over an input of the same shape."""


def build_session() -> CompileSession:
    """Return a fresh session with default options."""
    return CompileSession(CompileOptions(), Environment())


def shown_by(plan: GraphPlan, out: NodeOut) -> NodeOut:
    """Follow nodes without a task back to the tensor that was computed, given or constant."""
    running = {task.node for task in plan.tasks}
    while out.node.name not in running and out.node.inputs:
        out = out.node.inputs[0]
    return out


def run_symbolically(graph: Graph, plan: GraphPlan) -> None:
    """Run the tasks: assert that every task, and the caller in the end, reads what the graph says it reads."""
    memory: dict[int, NodeOut] = {}
    for node in graph.data_nodes() if graph.parent is None else ():
        _write(memory, plan, node.output())
    for task in plan.tasks:
        node = graph.find(task.node)
        assert node is not None
        for source in node.inputs:
            if source is not None:
                _assert_holds(memory, plan, source, f"input of {node.name}")
        _assert_may_write(plan, node)
        for workspace in plan.workspaces.get(node.name, []):
            for cell in _cells(workspace):
                memory[cell] = NodeOut(node, -1)
        for source in node.inputs:
            if source is not None and node.name in plan.workspaces:
                _assert_holds(memory, plan, source, f"input of {node.name} while its body runs")
        for out in node.outputs():
            _write(memory, plan, out)
        for out in node.outputs():
            _assert_holds(memory, plan, out, f"output of {node.name}")
    for out in graph.outputs:
        _assert_holds(memory, plan, out, "result")


def _cells(block: Block) -> range:
    return range(block.offset // CELL, (block.offset + align(block.size)) // CELL)


def _write(memory: dict[int, NodeOut], plan: GraphPlan, out: NodeOut) -> None:
    for cell in _cells(plan.blocks[out.node.name, out.index]):
        memory[cell] = out


def _assert_holds(memory: dict[int, NodeOut], plan: GraphPlan, out: NodeOut, what: str) -> None:
    root = shown_by(plan, out)
    is_given = root.node.type == "Data" and root.node.graph.parent is not None
    if is_given or root.node.type == "Const" or root.node.attrs.get("_load_time_const"):
        assert (out.node.name, out.index) not in plan.blocks
        return
    block = plan.blocks[out.node.name, out.index]
    assert block == plan.blocks[root.node.name, root.index]
    for cell in _cells(block):
        assert memory[cell] == root, f"{what}: {root} was overwritten by {memory[cell]}"


def _assert_may_write(plan: GraphPlan, node: Node) -> None:
    """A task writes outside its inputs; an elementwise one may write exactly over one input of its shape."""
    read = [plan.blocks[s.node.name, s.index] for s in node.inputs if s and (s.node.name, s.index) in plan.blocks]
    for out in node.outputs():
        block = plan.blocks[out.node.name, out.index]
        touched = [other for other in read if set(_cells(other)) & set(_cells(block))]
        assert len(touched) <= 1
        if touched:
            assert touched == [block]
            assert node.type in ELEMENTWISE
            source = next(s for s in node.inputs if s and plan.blocks.get((s.node.name, s.index)) == block)
            assert source.desc.data_type == out.desc.data_type
            assert shown_by(plan, source).node.type != "Data"


def most_bytes_in_use(graph: Graph, plan: GraphPlan) -> int:
    """Return the most bytes that are needed at one step, shared bytes counted once: O(steps * tensors)."""
    step_of = {task.node: i for i, task in enumerate(plan.tasks)}
    end = len(plan.tasks)
    uses: dict[NodeOut, list[int]] = {}
    for node in graph:
        at = end if node.type == "NetOutput" else step_of.get(node.name, -1)
        for out in node.outputs():
            uses.setdefault(shown_by(plan, out), []).append(at)
        for source in node.inputs:
            if source is not None:
                uses.setdefault(shown_by(plan, source), []).append(at)
    for out in graph.outputs:
        uses[shown_by(plan, out)].append(end)
    peak = 0
    for step in range(-1, end + 1):
        in_use: dict[int, int] = {}
        for root, steps in uses.items():
            block = plan.blocks.get((root.node.name, root.index))
            if block is not None and step_of.get(root.node.name, -1) <= step <= max(steps):
                in_use[block.offset] = max(in_use.get(block.offset, 0), align(block.size))
        for name, blocks in plan.workspaces.items():
            for block in blocks if step_of[name] == step else []:
                in_use[block.offset] = max(in_use.get(block.offset, 0), align(block.size))
        peak = max(peak, sum(in_use.values()))
    return peak
