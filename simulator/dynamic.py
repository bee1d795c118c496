"""Models with shapes, strings or handles that only a run knows: values are made as they are needed.

Every graph becomes a program: steps in the order of its plan that read and write numbered values. A value is let go
after its last reader. Programs of bodies are run by the step of the node that calls them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from ge.call_tree import CallFault, bodies_first, callers, parent_slot
from ge.errors import ReportedError
from ge.graph import Graph, Node, NodeOut, TensorDesc
from ge.plan import GraphPlan, TaskType
from ge.tensor_memory import LOAD_TIME_CONST, VIEW_OPS
from simulator.binding import allocate, cannot_run, constant_array, damaged
from simulator.executor import RunLoop
from simulator.kernels import Kernel
from simulator.kernels.registry import Array
from simulator.loader import RunnableModel, output_names
from simulator.operator_call import OperatorCall, Prepare, Value
from simulator.overflow import OverflowCounter, is_narrow, unread_outputs

ABSENT = -1
"""Number of the value behind an input that is not connected, or an output that nobody reads."""

Call = Callable[[Sequence[Value]], Sequence[Value]]
AfterStep = Callable[[Node, Sequence[Value]], None]
Seen = Callable[[Node, Sequence[Value], Sequence[Value]], None]
"""Sees a node, the values that it has read and those that it has made."""


@dataclass(frozen=True)
class Port:
    """A model input or output: its name, and its descriptor with what is known of the shape."""

    name: str
    desc: TensorDesc


@dataclass(frozen=True)
class _Step:
    """Run ``call`` on the values ``inputs``, keep its results as the values ``outputs``, let go of ``last_read``."""

    node: Node
    call: Call
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    last_read: tuple[int, ...]


@dataclass(frozen=True)
class _Program:
    """A graph made ready to run. ``initial`` holds the constants; ``arguments`` and ``results`` are value numbers.

    ``parent_slots`` are the inputs of the calling node that the arguments come from.
    """

    initial: list[Value]
    arguments: tuple[int, ...]
    parent_slots: tuple[int, ...]
    steps: list[_Step]
    results: tuple[int, ...]

    def run(self, arguments: Sequence[Value], seen: Seen | None) -> list[Value]:
        """Return the results for ``arguments``, one per Data node."""
        values = list(self.initial)
        for number, value in zip(self.arguments, arguments, strict=True):
            values[number] = value
        for step in self.steps:
            given = [None if number == ABSENT else values[number] for number in step.inputs]
            made = step.call(given)
            for number, value in zip(step.outputs, made, strict=False):
                if number != ABSENT:
                    values[number] = value
            if seen is not None:
                seen(step.node, given, made)
            del given  # what this step is the last to read goes now
            for number in step.last_read:
                values[number] = None
        return [values[number] for number in self.results]


class DynamicExecutor(RunLoop):
    """Runs a model without a static plan, one run at a time.

    Feeds must fit the input descriptors; they are not copied. ``after_step``, if set, sees every node and its results.
    Raises R1010 for a damaged plan and R1051 for nodes that cannot be run.
    """

    def __init__(self, model: RunnableModel, threads: int | None = None, name: str = "model") -> None:
        super().__init__(threads, name)
        self.after_step: AfterStep | None = None
        self._scratch = allocate(0, "scratch")
        self._feeds: Sequence[Value] = ()
        self._made: list[Value] = []
        graph = model.graph
        programs: dict[str, _Program] = {}
        try:
            order, calling = bodies_first(graph), callers(graph)
        except CallFault as fault:
            raise damaged(graph, str(fault)) from fault
        for part in order:
            plan = model.plan.graphs.get(part.name)
            if plan is None:
                raise damaged(graph, f"it has no plan for the graph {part.name}")
            builder = _Builder(part, plan, calling.get(part.name), programs, self._prepare, self._run_body)
            programs[part.name] = builder.build()
        if any(is_narrow(desc) for part in order for node in part for desc in node.output_descs):
            self.overflow = OverflowCounter()
        self._programs = programs
        self._root = programs[graph.name]
        self.inputs = [Port(node.name, node.output_descs[0]) for node in graph.data_nodes()]
        names = output_names(model)
        self.outputs = [
            Port(names[i] if i < len(names) else f"{out.node.name}:{out.index}", out.desc)
            for i, out in enumerate(graph.outputs)
        ]

    def kernels(self) -> list[tuple[str, str, str]]:
        """Return ``(node, operator type, kernel name)`` per step; the kernel is that of the last run."""
        steps = [step for program in self._programs.values() for step in program.steps]
        return [
            (step.node.name, step.node.type, step.call.kernel_name if isinstance(step.call, OperatorCall) else "call")
            for step in steps
        ]

    def _prepare(self, kernel: Kernel) -> Array:
        self.share(kernel)
        if kernel.scratch_bytes > self._scratch.size:
            self._scratch = allocate(kernel.scratch_bytes, "scratch")
        return self._scratch

    def _run_body(self, program: _Program, inputs: Sequence[Value]) -> list[Value]:
        return program.run([inputs[slot] for slot in program.parent_slots], self._watching())

    def _watching(self) -> Seen | None:
        watching = (self.observer, self.overflow, self.after_step)
        return None if all(one is None for one in watching) else self._see

    def _see(self, node: Node, inputs: Sequence[Value], made: Sequence[Value]) -> None:
        if self.observer is not None:
            self.observer.after(node.name, inputs, made)
        if self.overflow is not None:
            is_call, unread = bool(node.subgraphs), unread_outputs(node)
            self.overflow.after(node.name, node.type, inputs, made, is_call=is_call, unread=unread)
        if self.after_step is not None:
            self.after_step(node, made)

    def _take(self, feeds: Sequence[Array]) -> None:
        self._feeds = [feed if feed.flags.c_contiguous and feed.flags.aligned else feed.copy() for feed in feeds]

    def _compute(self) -> None:
        self._made = self._root.run(self._feeds, self._watching())

    def _give(self) -> list[Array]:
        """Hand the results over: what is memory of somebody else is copied."""
        taken = {id(feed) for feed in self._feeds}
        given = []
        for value in self._made:
            is_own = isinstance(value, np.ndarray) and value.base is None and value.flags.writeable
            given.append(value if is_own and id(value) not in taken else _copied(value))
            taken.add(id(value))
        self._feeds, self._made = (), []
        return given


def _copied(value: Value) -> Value:
    return value.copy() if isinstance(value, np.ndarray) else [np.array(tensor) for tensor in value]


# -- control flow ------------------------------------------------------------------------------------------------------
RunBody = Callable[[_Program, Sequence[Value]], list[Value]]


def _truth(node: Node, value: Value) -> bool:
    if value.size != 1:
        reason = f"its condition has the shape {list(value.shape)}, it must be one value"
        raise ReportedError("R1050", node=f"{node.name} ({node.type})", reason=reason)
    return bool(value.reshape(-1)[0])


def _call_of(node: Node, bodies: Mapping[str, _Program], run_body: RunBody) -> Call:
    """Return what a call node does. ``bodies`` are its programs by the name that the operator gives them."""

    def choose(inputs: Sequence[Value]) -> Sequence[Value]:
        return run_body(bodies["then_branch" if _truth(node, inputs[0]) else "else_branch"], inputs)

    def select(inputs: Sequence[Value]) -> Sequence[Value]:
        branches = [body for name, body in bodies.items() if name.startswith("branches")]
        index = int(inputs[0].reshape(-1)[0])
        return run_body(branches[index if 0 <= index < len(branches) else -1], inputs)

    def loop(inputs: Sequence[Value]) -> Sequence[Value]:
        state = list(inputs)
        while _truth(node, run_body(bodies["cond"], state)[0]):
            state = run_body(bodies["body"], state)
        return state

    def call(inputs: Sequence[Value]) -> Sequence[Value]:
        return run_body(bodies["f"], inputs)

    kind = node.type.removeprefix("Stateless").removeprefix("Stateful")
    found = {"If": choose, "Case": select, "While": loop, "PartitionedCall": call}.get(kind)
    if found is None:
        raise cannot_run(node, "it calls graphs, and it is not known when")
    return found


def _check_bodies(node: Node, bodies: Mapping[str, _Program]) -> None:
    """Refuse call nodes whose bodies are not there or give something else than the node."""
    needed = {"If": ("then_branch", "else_branch"), "While": ("cond", "body"), "PartitionedCall": ("f",)}
    kind = node.type.removeprefix("Stateless").removeprefix("Stateful")
    for name in needed.get(kind, ()):
        if name not in bodies:
            raise damaged(node.graph, f"node {node.name} calls no graph {name}")
    for name, body in bodies.items():
        expected = 1 if name == "cond" else len(node.output_descs)
        if len(body.results) != expected:
            reason = f"graph {name} of node {node.name} gives {len(body.results)} results, {expected} are expected"
            raise damaged(node.graph, reason)
        if any(not 0 <= slot < len(node.inputs) or node.input(slot) is None for slot in body.parent_slots):
            raise damaged(node.graph, f"graph {name} of node {node.name} reads an input that the node does not have")
    if kind == "While" and len(node.inputs) != len(node.output_descs):
        raise damaged(node.graph, f"node {node.name} gives {len(node.output_descs)} of {len(node.inputs)} values")
    if kind in ("If", "Case") and (node.input(0) is None or not bodies):
        raise damaged(node.graph, f"node {node.name} has no condition or nothing to choose from")


# -- building ----------------------------------------------------------------------------------------------------------
@dataclass
class _Builder:
    """State of making one program. Programs of bodies are there already."""

    graph: Graph
    plan: GraphPlan
    caller: Node | None
    programs: Mapping[str, _Program]
    prepare: Prepare
    run_body: RunBody
    numbers: dict[NodeOut, int] = field(default_factory=dict)
    initial: list[Value] = field(default_factory=list)
    constants: set[int] = field(default_factory=set)
    steps: list[_Step] = field(default_factory=list)

    def build(self) -> _Program:
        data = self.graph.data_nodes()
        arguments = tuple(self._number(node.output()) for node in data)
        nodes = self._task_nodes()
        self._tasked = set(nodes)
        for node in nodes:
            self._add(node)
        results = []
        for out in self.graph.outputs:
            self._provide(out, "the results")
            results.append(self.numbers[out])
        slots = () if self.caller is None else tuple(parent_slot(node, self.caller) for node in data)
        return _Program(self.initial, arguments, slots, self._with_lifetimes(set(results)), tuple(results))

    def _number(self, out: NodeOut) -> int:
        self.numbers[out] = len(self.initial)
        self.initial.append(None)
        return self.numbers[out]

    def _task_nodes(self) -> dict[Node, None]:
        nodes: dict[Node, None] = {}
        for task in self.plan.tasks:
            if task.type is not TaskType.KERNEL:
                continue
            node = self.graph.find(task.node)
            if node is None or node in nodes:
                raise damaged(self.graph, f"node {task.node} {'does not exist' if node is None else 'has two tasks'}")
            nodes[node] = None
        return nodes

    def _add(self, node: Node) -> None:
        """Add the step of a node, behind those of the views that it reads."""
        for source in node.inputs:
            if source is not None:
                self._provide(source, f"node {node.name}")
        numbers = tuple(ABSENT if source is None else self.numbers[source] for source in node.inputs)
        call = self._call(node, numbers)
        outputs = tuple(self._number(out) for out in node.outputs())
        self.steps.append(_Step(node, call, numbers, outputs, ()))

    def _call(self, node: Node, numbers: Sequence[int]) -> Call:
        if not node.subgraphs:
            constants = {i: self.initial[n] for i, n in enumerate(numbers) if n in self.constants}
            return OperatorCall(node, constants, self.prepare)
        bodies = {name: self.programs[graph] for name, graph in node.subgraphs}
        _check_bodies(node, bodies)
        return _call_of(node, bodies, self.run_body)

    def _provide(self, source: NodeOut, reader: str) -> None:
        """Make sure that a tensor has a number: constants and views come to be on first use, without recursion."""
        pending = [source]
        while pending:
            out = pending[-1]
            node = out.node
            if out in self.numbers:
                pending.pop()
                continue
            if len(pending) > len(self.graph):
                raise damaged(self.graph, f"node {node.name} depends on itself")
            if node.type == "Const":
                self._keep(out, constant_array(self.graph, node))
                continue
            is_constant = bool(node.attrs.get(LOAD_TIME_CONST))
            if node in self._tasked or not (is_constant or node.type in VIEW_OPS or node.type == "IdentityN"):
                raise damaged(self.graph, f"{reader} needs {out}, which no earlier task has made")
            missing = [s for s in node.inputs if s is not None and s not in self.numbers]
            if missing:
                pending.extend(missing)
            else:
                self._settle(node, is_constant)

    def _settle(self, node: Node, is_constant: bool) -> None:
        """Number the outputs of a node without a task: now, when its inputs are constants, else in a step."""
        numbers = [None if source is None else self.numbers[source] for source in node.inputs]
        if not all(number is None or number in self.constants for number in numbers):
            if is_constant:
                raise damaged(self.graph, f"constant {node.name} depends on what is no constant")
            self._add(node)
            return
        call = self._call(node, [ABSENT if number is None else number for number in numbers])
        with np.errstate(all="ignore"):
            results = call([None if number is None else self.initial[number] for number in numbers])
        for out, value in zip(node.outputs(), results, strict=False):
            value.flags.writeable = False
            self._keep(out, value)

    def _keep(self, out: NodeOut, array: Array) -> None:
        number = self._number(out)
        self.initial[number] = array
        self.constants.add(number)

    def _with_lifetimes(self, results: set[int]) -> list[_Step]:
        """Return the steps with what each is the last to read, and without numbers for what nobody reads."""
        read: set[int] = set()
        finished = []
        for step in reversed(self.steps):
            last = tuple(
                number for number in dict.fromkeys(step.inputs) if number not in read | results | self.constants
            )
            outputs = tuple(number if number in read or number in results else ABSENT for number in step.outputs)
            read.update(step.inputs)
            finished.append(_Step(step.node, step.call, step.inputs, outputs, tuple(n for n in last if n != ABSENT)))
        return finished[::-1]
