"""Is a plan right for its graph? Decided from the two alone, for tests and for plans read from files."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass

from ge.graph.graph import CycleError, Graph
from ge.graph.node import Node, NodeOut
from ge.plan import ALIGNMENT, Block, GraphPlan, Plan, align
from ge.tensor_memory import in_place_slots, is_computing, is_constant, memory_size, view_roots


class PlanFault(ValueError):
    """The plan would compute something else than its graph, or touch memory that is not its own."""


@dataclass
class _Piece:
    """A range of the arena that is in use from step ``first`` to step ``last``, both included."""

    owner: str
    block: Block
    first: int
    last: int


def check_plan(graph: Graph, plan: Plan) -> None:
    """Check the plans of ``graph`` and all its bodies. Raises :class:`PlanFault`.

    Every node that computes has one task, behind all it needs. In a static plan every tensor has a block of its size
    inside the arena (except constants and, in bodies, Data nodes); no two that are in use at one step overlap, except
    views and elementwise operators that may write over their input; the workspace of a call node takes the arena of
    each of its bodies.
    """
    for part in graph.all_graphs():
        found = plan.graphs.get(part.name)
        if found is None:
            raise PlanFault(f"graph {part.name} has no plan")
        try:
            roots = view_roots(part)
        except CycleError as cycle:
            raise PlanFault(f"graph {part.name} has a {cycle}") from cycle
        steps = _check_tasks(part, found, roots)
        if plan.is_static:
            _check_memory(_Checked(part, found, roots, steps), plan)
        elif found.blocks or found.workspaces:
            raise PlanFault(f"graph {part.name} has blocks although its plan is not static")


@dataclass(frozen=True)
class _Checked:
    """A graph and its plan with what is known of them: the tensor behind each view, the step of each node."""

    graph: Graph
    plan: GraphPlan
    roots: dict[NodeOut, NodeOut]
    steps: dict[Node, int]


def _check_tasks(graph: Graph, plan: GraphPlan, roots: dict[NodeOut, NodeOut]) -> dict[Node, int]:
    steps: dict[Node, int] = {}
    for step, task in enumerate(plan.tasks):
        node = graph.find(task.node)
        if node is None:
            raise PlanFault(f"task {step} of graph {graph.name} runs {task.node}, which is not a node of it")
        if node in steps or not is_computing(node):
            reason = "runs already" if node in steps else "has nothing to run"
            raise PlanFault(f"task {step} of graph {graph.name} runs {task.node} ({node.type}), which {reason}")
        steps[node] = step
    for node in graph:
        if is_computing(node) and node not in steps:
            raise PlanFault(f"node {node.name} ({node.type}) of graph {graph.name} has no task")
    for node, step in steps.items():
        needed = [roots[source].node for source in node.inputs if source is not None]
        for before in (*needed, *node.control_inputs):
            if steps.get(before, -1) >= step:
                raise PlanFault(f"task {step} of graph {graph.name} runs {node.name} before {before.name}")
    return steps


def _check_memory(checked: _Checked, plan: Plan) -> None:
    for (name, index), block in checked.plan.blocks.items():
        _check_block(checked, name, index, block)
    pieces = _written_pieces(checked)
    _extend_to_readers(checked, pieces)
    _merge_in_place(checked, pieces)
    in_use = list({id(piece): piece for piece in pieces.values()}.values())
    _check_no_overlap(checked.graph, in_use + _workspace_pieces(checked, plan))


def _check_block(checked: _Checked, name: str, index: int, block: Block) -> None:
    node = checked.graph.find(name)
    if node is None or not 0 <= index < len(node.output_descs):
        raise PlanFault(f"graph {checked.graph.name} has a block for output {index} of {name}, which does not exist")
    if block.size != memory_size(node.output_descs[index]):
        raise PlanFault(f"output {index} of {name} has a block of {block.size} bytes for {node.output_descs[index]!r}")
    _check_range(f"output {index} of {name}", block, checked.plan.arena_size)


def _check_range(owner: str, block: Block, arena_size: int) -> None:
    if block.offset < 0 or block.size < 0 or block.offset % ALIGNMENT or block.offset + align(block.size) > arena_size:
        raise PlanFault(f"{owner} lies at {block.offset} with {block.size} bytes, the arena has {arena_size}")


def _written_pieces(checked: _Checked) -> dict[NodeOut, _Piece]:
    pieces: dict[NodeOut, _Piece] = {}
    blocks = checked.plan.blocks
    for out, root in checked.roots.items():
        block = blocks.get((out.node.name, out.index))
        is_given = root.node.type == "Data" and checked.graph.parent is not None  # memory of the calling node
        must_have = not is_given and not is_constant(root.node) and memory_size(out.desc) is not None
        if must_have != (block is not None):
            raise PlanFault(f"graph {checked.graph.name}: {out} has {'no' if must_have else 'a needless'} block")
        if block is None:
            continue
        if out == root:
            step = checked.steps.get(out.node, -1)
            pieces[out] = _Piece(repr(out), block, step, step)
        elif blocks.get((root.node.name, root.index)) != block:
            raise PlanFault(f"graph {checked.graph.name}: {out} is a view of {root} but lies elsewhere")
    return pieces


def _extend_to_readers(checked: _Checked, pieces: dict[NodeOut, _Piece]) -> None:
    for node, step in checked.steps.items():
        for source in node.inputs:
            if source is not None and (piece := pieces.get(checked.roots[source])) is not None:
                piece.last = max(piece.last, step)
    for out in checked.graph.outputs:
        if (piece := pieces.get(checked.roots[out])) is not None:
            piece.last = len(checked.plan.tasks)


def _merge_in_place(checked: _Checked, pieces: dict[NodeOut, _Piece]) -> None:
    for node, step in checked.steps.items():
        read = [None if s is None else pieces.get(checked.roots[s]) for s in node.inputs]
        for slot in in_place_slots(node):
            source, old, new = node.inputs[slot], read[slot], pieces.get(node.output(0))
            if source is None or old is None or new is None or checked.roots[source].node.type == "Data":
                continue
            if old.block == new.block and old.last == step and sum(piece is old for piece in read) == 1:
                old.last = new.last
                pieces[node.output(0)] = old
                break


def _workspace_pieces(checked: _Checked, plan: Plan) -> list[_Piece]:
    pieces = []
    workspaces = checked.plan.workspaces
    for node, step in checked.steps.items():
        for _, name in node.subgraphs:
            if name not in plan.graphs:
                raise PlanFault(f"{node.name} calls graph {name}, which has no plan")
            needed = plan.graphs[name].arena_size
            if needed > max((block.size for block in workspaces.get(node.name, [])), default=0):
                raise PlanFault(f"graph {name} needs {needed} bytes, the workspace of {node.name} is smaller")
        for block in workspaces.get(node.name, []):
            _check_range(f"workspace of {node.name}", block, checked.plan.arena_size)
            pieces.append(_Piece(f"workspace of {node.name}", block, step, step))
    if any(checked.graph.find(name) not in checked.steps for name in workspaces):
        raise PlanFault(f"graph {checked.graph.name} has a workspace for something that has no task")
    return pieces


def _check_no_overlap(graph: Graph, pieces: list[_Piece]) -> None:
    """Sweep over the steps; what is alive stays sorted by offset, so that only neighbours can overlap."""
    pieces = [piece for piece in pieces if piece.block.size > 0]
    starts = sorted(range(len(pieces)), key=lambda i: pieces[i].first)
    ends = sorted(range(len(pieces)), key=lambda i: pieces[i].last)
    alive: list[tuple[int, int]] = []
    done = 0
    for i in starts:
        piece = pieces[i]
        while pieces[ends[done]].last < piece.first:
            gone = ends[done]
            del alive[bisect_left(alive, (pieces[gone].block.offset, gone))]
            done += 1
        at = bisect_left(alive, (piece.block.offset, i))
        for _, other in alive[max(at - 1, 0) : at + 1]:
            if _overlap(pieces[other].block, piece.block):
                raise PlanFault(
                    f"graph {graph.name}: {pieces[other].owner} and {piece.owner} are in use at step {piece.first} "
                    f"and overlap: {pieces[other].block}, {piece.block}"
                )
        alive.insert(at, (piece.block.offset, i))


def _overlap(one: Block, other: Block) -> bool:
    return one.offset < other.offset + align(other.size) and other.offset < one.offset + align(one.size)
