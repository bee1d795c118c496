"""Pass plan-memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ge.call_tree import CallFault, bodies_first
from ge.errors import ReportedError
from ge.graph import Graph, Node
from ge.plan import Block, GraphPlan, Plan, align
from ge.session import CompileSession
from ge.tensor_memory import MAX_BYTES, memory_size
from passes.build.liveness import Liveness, analyse
from passes.build.placement import bound, height, place


@dataclass
class PlanMemory:
    """Before: a task list per graph. After: every tensor of a static model has its place in the arena of its graph.

    1. Tensors that may share memory do (see ``liveness``); pieces of memory that are never alive at the same step
       may lie on top of each other (see ``placement``).
    2. Bodies of control flow are planned first. The arena of a body lies in the workspace of the node that calls it;
       bodies of one node never run together, so they share one workspace as large as the largest arena.
    3. With ``is_reusing`` False (``--disable_reuse_memory=1``) nothing but views shares memory.
    4. Models with an unknown dimension are left alone: their tensors are allocated at run time.
    """

    name: ClassVar[str] = "plan-memory"
    is_reusing: bool = True

    def run(self, graph: Graph, session: CompileSession) -> bool:
        """Plan the graph and its bodies; the graph stays as it is."""
        if session.plan.is_static:
            try:
                order = bodies_first(graph)
            except CallFault as fault:
                raise ReportedError("E19999", reason=str(fault)) from fault
            for part in order:
                self._plan(part, session.plan)
        return False

    def _plan(self, part: Graph, plan: Plan) -> None:
        found = plan.graphs.get(part.name)
        if found is None:
            raise ReportedError("E19999", reason=f"graph {part.name} has no task list: build-tasks comes first")
        tasks = [_task_node(part, task.node) for task in found.tasks]
        liveness = analyse(part, tasks, is_sharing=self.is_reusing)
        callers = [(step, node, _arena_below(node, plan)) for step, node in enumerate(tasks) if node.subgraphs]
        pieces = [(symbol.size, symbol.first, symbol.last) for symbol in liveness.symbols]
        pieces += [(size, step, step) for step, _, size in callers]
        found.naive_size = liveness.separate_size + sum(size for _, _, size in callers)
        if found.naive_size > MAX_BYTES:
            raise _too_large(part, found.naive_size, liveness)
        found.bound = bound(pieces)
        offsets = place(pieces if self.is_reusing else [(size, 0, 0) for size, _, _ in pieces])
        found.arena_size = height(pieces, offsets)
        _record(found, liveness, [node for _, node, _ in callers], pieces, offsets)


def _record(
    found: GraphPlan,
    liveness: Liveness,
    callers: list[Node],
    pieces: list[tuple[int, int, int]],
    offsets: list[int],
) -> None:
    found.blocks.clear()
    found.workspaces.clear()
    count = len(liveness.symbols)
    for symbol, offset in zip(liveness.symbols, offsets[:count], strict=True):
        for out in symbol.tensors:
            size = memory_size(out.desc)
            assert size is not None
            found.blocks[out.node.name, out.index] = Block(offset, size)
    for node, (size, _, _), offset in zip(callers, pieces[count:], offsets[count:], strict=True):
        found.workspaces[node.name] = [Block(offset, size)]


def _task_node(graph: Graph, name: str) -> Node:
    node = graph.find(name)
    if node is None:
        raise ReportedError("E19999", reason=f"graph {graph.name} has a task for {name}, which is not a node of it")
    return node


def _arena_below(node: Node, plan: Plan) -> int:
    return align(max(plan.graphs[name].arena_size for _, name in node.subgraphs))


def _too_large(graph: Graph, total: int, liveness: Liveness) -> ReportedError:
    largest = max(liveness.symbols, key=lambda symbol: symbol.size)
    out = largest.tensors[0]
    return ReportedError(
        "E10055",
        reason=f"the tensors of graph {graph.name} take {total} bytes together; "
        f"the largest is output {out.index} of {out.node.name} with shape {out.desc.shape}",
        solution="Check the shapes of the inputs, in --input_shape above all.",
    )
