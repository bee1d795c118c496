"""Whether a stored plan can be executed: places inside the arena, tasks after what they read, no live overlap."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from dataclasses import dataclass, field

from ge.graph import Graph, Node, NodeOut
from ge.plan import Block, GraphPlan, Plan, TaskType, align
from ge.proto.attr_def import InvalidGraphDef
from ge.tensor_memory import is_constant, memory_size


def check_plan(plan: Plan, graph: Graph) -> None:
    """Check the plans of ``graph`` and its bodies. Raises :class:`InvalidGraphDef`."""
    for part in graph.all_graphs():
        checker = _Checker(part, plan.graphs[part.name])
        checker.check_tasks()
        if plan.is_static:
            checker.check_places()
            if plan.streams <= 1:
                checker.check_overlap()


@dataclass
class _Lifetime:
    """A tensor with memory of its own, the steps between which it is needed, and who writes it."""

    block: Block
    name: str
    first: int
    last: int


@dataclass
class _LiveBlocks:
    """Disjoint blocks, sorted by offset."""

    _offsets: list[int] = field(default_factory=list)
    _lifetimes: list[_Lifetime] = field(default_factory=list)

    def add(self, new: _Lifetime) -> _Lifetime | None:
        """Add ``new``; return a live block that it overlaps instead, if there is one."""
        place = bisect_left(self._offsets, new.block.offset)
        for other in self._lifetimes[max(place - 1, 0) : place + 1]:
            if other.block.offset < new.block.end and new.block.offset < other.block.end:
                return other
        self._offsets.insert(place, new.block.offset)
        self._lifetimes.insert(place, new)
        return None

    def remove(self, old: _Lifetime) -> None:
        """Remove ``old`` if it is there."""
        place = bisect_left(self._offsets, old.block.offset)
        if place < len(self._lifetimes) and self._lifetimes[place] is old:
            del self._offsets[place], self._lifetimes[place]


class _Checker:
    """The checks of one graph. A step is a position in the task list; graph inputs are there from step -1."""

    def __init__(self, graph: Graph, plan: GraphPlan) -> None:
        self._graph = graph
        self._plan = plan
        self._steps: dict[str, int] = {}
        self._roots: dict[NodeOut, NodeOut] = {}

    def _fault(self, reason: str) -> InvalidGraphDef:
        return InvalidGraphDef(f"graph {self._graph.name}: {reason}")

    def check_tasks(self) -> None:
        """Each node runs at most once, after the nodes that it reads from."""
        nodes: list[Node] = []
        for step, task in enumerate(self._plan.tasks):
            node = self._graph.find(task.node)
            if node is None:
                raise self._fault(f"task {step} is for the unknown node {task.node}")
            nodes.append(node)
            if task.type is TaskType.KERNEL:
                if task.node in self._steps:
                    raise self._fault(f"node {task.node} has two tasks")
                self._steps[task.node] = step
        for node in nodes:
            for source in node.inputs:
                if source is None:
                    continue
                before = self._root(source).node.name
                if self._steps.get(before, -1) >= self._steps.get(node.name, len(nodes)):
                    raise self._fault(f"node {node.name} runs before {before}, which it reads")

    def check_places(self) -> None:
        """Each block holds its tensor and lies inside an arena that is not larger than its blocks ask for."""
        end = 0
        for (name, index), block in self._plan.blocks.items():
            node = self._graph.find(name)
            needed = None if node is None else memory_size(node.output_descs[index])
            if needed is not None and block.size < needed:
                raise self._fault(f"output {index} of {name} takes {needed} bytes, its block has {block.size}")
            end = max(end, block.end)
        for blocks in self._plan.workspaces.values():
            end = max(end, *(block.end for block in blocks))
        if not end <= self._plan.arena_size <= align(end):
            raise self._fault(f"the arena has {self._plan.arena_size} bytes, its blocks end at byte {end}")

    def check_overlap(self) -> None:
        """No two tensors that are needed at the same step share bytes, in-place operators and views aside."""
        lifetimes = self._lifetimes()
        births: dict[int, list[tuple[NodeOut, _Lifetime]]] = defaultdict(list)
        deaths: dict[int, list[_Lifetime]] = defaultdict(list)
        for out, lifetime in lifetimes.items():
            births[lifetime.first].append((out, lifetime))
            deaths[lifetime.last].append(lifetime)
        live = _LiveBlocks()
        for step in range(-1, len(self._plan.tasks)):
            workspaces = self._workspaces(step)
            for workspace in workspaces:
                self._bear(live, workspace)
            for out, lifetime in births[step]:
                self._give_way(live, lifetimes, out, lifetime)
                self._bear(live, lifetime)
            for dead in [*deaths[step], *workspaces]:
                live.remove(dead)

    def _bear(self, live: _LiveBlocks, new: _Lifetime) -> None:
        other = live.add(new) if new.block.size else None
        if other is not None:
            raise self._fault(
                f"{new.name} lies at bytes {new.block.offset} to {new.block.end}, where {other.name} is still needed"
            )

    def _give_way(self, live: _LiveBlocks, lifetimes: dict[NodeOut, _Lifetime], out: NodeOut, new: _Lifetime) -> None:
        """An input that is read for the last time may be written over, from its first byte on."""
        for source in out.node.inputs:
            old = None if source is None else lifetimes.get(self._root(source))
            if old is not None and old.last == new.first and old.block.offset == new.block.offset:
                live.remove(old)

    def _lifetimes(self) -> dict[NodeOut, _Lifetime]:
        found: dict[NodeOut, _Lifetime] = {}
        for (name, index), block in self._plan.blocks.items():
            node = self._graph.find(name)
            if node is None:
                continue
            out = node.output(index)
            root = self._root(out)
            if root == out:
                step = self._steps.get(name, -1)
                found[out] = _Lifetime(block, repr(out), step, step)
                continue
            holder = self._plan.blocks.get((root.node.name, root.index))
            if holder is not None and not holder.offset <= block.offset <= block.end <= holder.end:
                raise self._fault(f"{out} has no task, but its block is not inside that of {root}")
        for node in self._graph:
            is_result = node.type == "NetOutput"
            step = len(self._plan.tasks) if is_result else self._steps.get(node.name, -1)
            for source in node.inputs:
                lifetime = None if source is None else found.get(self._root(source))
                if lifetime is not None:
                    lifetime.last = max(lifetime.last, step)
        for out in self._graph.outputs:
            if (lifetime := found.get(self._root(out))) is not None:
                lifetime.last = len(self._plan.tasks)
        return found

    def _workspaces(self, step: int) -> list[_Lifetime]:
        if step < 0 or self._plan.tasks[step].type is not TaskType.KERNEL:
            return []
        name = self._plan.tasks[step].node
        blocks = self._plan.workspaces.get(name, ())
        return [_Lifetime(block, f"workspace {i} of {name}", step, step) for i, block in enumerate(blocks)]

    def _root(self, out: NodeOut) -> NodeOut:
        """Follow nodes without a task from ``out`` to the tensor whose memory it shows."""
        path: list[NodeOut] = []
        while out not in self._roots:
            node = out.node
            source = None
            if node.name not in self._steps and node.type not in ("Data", "Const") and not is_constant(node):
                source = node.input(out.index if node.type == "IdentityN" else 0)
            if source is None:
                self._roots[out] = out
                break
            path.append(out)
            out = source
        root = self._roots[out]
        for passed in path:
            self._roots[passed] = root
        return root
