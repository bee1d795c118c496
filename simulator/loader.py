"""From an offline model to an execution plan: every task bound to a kernel and to views of one arena.

Plans come from files, so nothing in them is believed: blocks must lie in the arena, be large enough and aligned for
their tensors; tasks must name nodes whose inputs exist by then. A plan that overlaps tensors wrongly can make wrong
numbers, but reads and writes nothing outside the arena.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

import numpy as np

from ge.call_tree import CallFault, callers, parent_slot, unchanged_slots
from ge.collector import collector_at_rest
from ge.errors import ReportedError
from ge.formats import LayoutError
from ge.graph import Graph, Node, NodeOut, TensorDesc
from ge.graph.types import DataType, has_numpy_dtype, numpy_dtype
from ge.plan import ALIGNMENT, Block, GraphPlan, Plan, TaskType
from ge.tensor_memory import LOAD_TIME_CONST
from simulator.binding import allocate, cannot_run, choose_kernel, constant_array, damaged, definition_of, stopped
from simulator.control import Body, BoundCall, Control, control_of
from simulator.kernels import Kernel
from simulator.kernels.registry import Array, KernelCompiler
from simulator.kernels.storage.layout import padding_clearer
from simulator.overflow import unread_outputs
from simulator.steps import Step, run_plainly

_BOUNDARY = frozenset({"Data", "Const", "NetOutput", "NoOp"})


class RunnableModel(Protocol):
    """What the simulator needs of an offline model. Its ``io``, if it has one, names the outputs."""

    @property
    def graph(self) -> Graph: ...

    @property
    def plan(self) -> Plan: ...


@dataclass(frozen=True)
class IoBinding:
    """A model input or output: its name, its descriptor and the memory it lies in.

    ``clear`` writes zeros into the padding of an input in a layout that has some: users may give anything there.
    """

    name: str
    desc: TensorDesc
    array: Array
    clear: Callable[[Array], None] | None = None


@dataclass
class ExecutionPlan:
    """What the executor runs: inputs to fill, steps in order, outputs to read. All memory is allocated."""

    inputs: list[IoBinding]
    outputs: list[IoBinding]
    steps: list[Step]
    arena: Array
    scratch: Array
    constant_bytes: int = 0
    """Bytes of load-time constants, which lie outside the arena."""
    values: Mapping[tuple[str, int], Array] = field(default_factory=dict)
    """Memory of all tensors that something reads or makes, by node name and output index."""


def output_names(model: RunnableModel) -> list[str]:
    """Return the names of the outputs: those of the user's model, else those that the .om lists."""
    if model.graph.output_names:
        return list(model.graph.output_names)
    io = getattr(model, "io", None)
    return [] if io is None else [info.name for info in io.outputs]


@collector_at_rest()
def load(model: RunnableModel, compiler: KernelCompiler | None = None) -> ExecutionPlan:
    """Build the execution plan of a static model; ``compiler`` makes kernels for this machine where it can.

    Raises R1010 for a damaged plan, R1051 for nodes that cannot be run, R1061 for a model without a static plan and
    R1062 when its memory cannot be had.
    """
    if not model.plan.is_static:
        raise ReportedError("R1061", mode="static", support="dynshape")
    graph_plan = model.plan.graphs.get(model.graph.name)
    if graph_plan is None:
        raise damaged(model.graph, f"it has no plan for the graph {model.graph.name}")
    try:
        callers(model.graph)
    except CallFault as fault:
        raise damaged(model.graph, str(fault)) from fault
    arena = allocate(graph_plan.arena_size, "tensors")
    binder = _Binder(model.plan, model.graph, graph_plan, arena, compiler)
    inputs = [binder.bind_input(node) for node in model.graph.data_nodes()]
    bound = binder.bind_tasks()
    scratch = allocate(max((task.scratch_bytes for task in bound), default=0), "scratch")
    steps = [task.ready(scratch) for task in bound]
    outputs = binder.bind_outputs(output_names(model))
    return ExecutionPlan(inputs, outputs, steps, arena, scratch, binder.constant_bytes, binder.all_values())


@dataclass(frozen=True)
class _Bound:
    """A task and its memory; a step as soon as there is scratch."""

    node: Node
    kernel: Kernel
    inputs: tuple[Array | None, ...]
    outputs: tuple[Array | None, ...]
    control: Control | None = None
    bodies: tuple[tuple[Body, list[_Bound]], ...] = ()

    @property
    def scratch_bytes(self) -> int:
        """What the task, or a task of its bodies, needs of scratch."""
        return max([self.kernel.scratch_bytes, *(task.scratch_bytes for _, tasks in self.bodies for task in tasks)])

    def ready(self, scratch: Array) -> Step:
        """Return the step, those of bodies ready too."""
        call = partial(self.kernel.run, self.inputs, self.outputs, scratch)
        descs = tuple(self.node.output_descs)
        jobs = () if self.kernel.bind is None else tuple(self.kernel.bind(self.inputs, self.outputs, scratch))
        if self.control is None:
            name, optype, unread = self.node.name, self.node.type, unread_outputs(self.node)
            return Step(
                name, optype, self.kernel, self.inputs, self.outputs, call, descs=descs, jobs=jobs, unread=unread
            )
        for body, tasks in self.bodies:
            body.steps.extend(task.ready(scratch) for task in tasks)
        control, bodies = partial(self.control.run, scratch), tuple(body.steps for body, _ in self.bodies)
        name, optype = self.node.name, self.node.type
        return Step(name, optype, self.kernel, self.inputs, self.outputs, call, control, bodies, descs)


@dataclass
class _Binder:
    """Gives the tensors of one graph their memory; ``values`` by ``(node name, output index)``."""

    whole: Plan
    graph: Graph
    plan: GraphPlan
    arena: Array
    compiler: KernelCompiler | None = None
    values: dict[tuple[str, int], Array] = field(default_factory=dict)
    constants: set[tuple[str, int]] = field(default_factory=set)
    constant_bytes: int = 0
    inner_values: list[Mapping[tuple[str, int], Array]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.tasked = {task.node for task in self.plan.tasks if task.type is TaskType.KERNEL}
        for (name, index), block in self.plan.blocks.items():
            self._check_range(f"tensor {name}:{index}", block)

    # -- memory ----------------------------------------------------------------------------------------------------
    def _check_range(self, owner: str, block: Block) -> None:
        if block.offset < 0 or block.size < 0 or block.end > self.arena.nbytes:
            raise damaged(
                self.graph, f"{owner} takes the bytes {block.offset} to {block.end} of an arena of {self.arena.nbytes}"
            )

    def _place(self, out: NodeOut) -> Array | None:
        """Return the view that the plan gives to a tensor, ``None`` if it gives none."""
        block = self.plan.blocks.get((out.node.name, out.index))
        if block is None:
            return None
        shape, dtype = self._storage(out)
        size = math.prod(shape) * dtype.itemsize
        if size > block.size:
            raise damaged(self.graph, f"tensor {out} needs {size} bytes, its block has {block.size}")
        if block.offset % dtype.itemsize:
            raise damaged(self.graph, f"tensor {out} lies at byte {block.offset}, not a multiple of {dtype.itemsize}")
        return self.arena[block.offset : block.offset + size].view(dtype).reshape(shape)

    def _storage(self, out: NodeOut) -> tuple[tuple[int, ...], np.dtype[Any]]:
        desc = out.desc
        if desc.shape.is_unknown_shape():
            raise damaged(self.graph, f"tensor {out} has the unknown shape {desc.shape}")
        if desc.data_type is DataType.DT_STRING or not has_numpy_dtype(desc.data_type):
            raise cannot_run(out.node, f"its output {out.index} is of type {desc.data_type.name}")
        return tuple(desc.shape), numpy_dtype(desc.data_type)

    # -- values ----------------------------------------------------------------------------------------------------
    def _value(self, source: NodeOut, reader: Node) -> Array:
        """Return the memory of a tensor that ``reader`` reads; constants and views come to be on first use."""
        key = (source.node.name, source.index)
        if key not in self.values:
            self._resolve(source, reader)
        return self.values[key]

    def _resolve(self, source: NodeOut, reader: Node) -> None:
        """Follow views and load-time constants back to what is known, without recursion (chains may be long)."""
        pending = [source]
        while pending:
            out = pending[-1]
            node, key = out.node, (out.node.name, out.index)
            if key in self.values:
                pending.pop()
                continue
            if len(pending) > len(self.graph):
                raise damaged(self.graph, f"node {node.name} depends on itself")
            if node.type == "Const":
                self._storage(out)
                self._settle(out, constant_array(self.graph, node), is_constant=True)
                continue
            if node.name in self.tasked or node.type in _BOUNDARY:
                raise damaged(self.graph, f"node {reader.name} reads {out}, which no earlier task has made")
            missing = [s for s in node.inputs if s is not None and (s.node.name, s.index) not in self.values]
            if missing:
                pending.extend(missing)
            elif node.attrs.get(LOAD_TIME_CONST):
                self._evaluate_constant(node)
            else:
                self._settle_view(out)

    def _settle(self, out: NodeOut, array: Array, *, is_constant: bool) -> None:
        key = (out.node.name, out.index)
        self.values[key] = array
        if is_constant:
            self.constants.add(key)

    def _evaluate_constant(self, node: Node) -> None:
        """Run a load-time constant into memory of its own."""
        inputs = tuple(None if s is None else self.values[s.node.name, s.index] for s in node.inputs)
        kernel = self._choose_kernel(node)
        outputs = []
        for out in node.outputs():
            shape, dtype = self._storage(out)
            size = math.prod(shape) * dtype.itemsize
            outputs.append(allocate(size, f"constant {node.name}").view(dtype).reshape(shape))
            self.constant_bytes += size
        scratch = allocate(kernel.scratch_bytes, "scratch")
        try:
            with np.errstate(all="ignore"):
                kernel.run(inputs, tuple(outputs), scratch)
        except (ReportedError, MemoryError):
            raise
        except Exception as fault:
            raise stopped(f"{node.name} ({node.type}, kernel {kernel.name})", fault) from fault
        for out, array in zip(node.outputs(), outputs, strict=True):
            array.flags.writeable = False
            self._settle(out, array, is_constant=True)

    def _settle_view(self, out: NodeOut) -> None:
        """Settle a tensor that no task makes: it is (part of) its input's memory under another shape."""
        node = out.node
        source = node.input(out.index) if node.type == "IdentityN" else node.input(0)
        if source is None:
            raise damaged(self.graph, f"node {node.name} ({node.type}) has neither a task nor an input to be a view of")
        base = self.values[source.node.name, source.index]
        placed = self._place(out)
        if placed is None:
            shape, dtype = self._storage(out)
            if base.size * base.itemsize != math.prod(shape) * dtype.itemsize:
                raise damaged(self.graph, f"tensor {out} has no block and cannot be a view of {source}: sizes differ")
            self._settle(
                out,
                base.view(dtype).reshape(shape),
                is_constant=(source.node.name, source.index) in self.constants,
            )
            return
        others = [self.values[s.node.name, s.index] for s in node.inputs if s is not None]
        if placed.size and not any(np.may_share_memory(placed, other) for other in others):
            raise damaged(self.graph, f"node {node.name} has no task, and its output {out} shares no memory with it")
        self._settle(out, placed, is_constant=False)

    def all_values(self) -> Mapping[tuple[str, int], Array]:
        """Return the memory of all tensors of the graph and its bodies, as far as it has been asked for."""
        found = dict(self.values)
        for inner in self.inner_values:
            found.update(inner)
        return found

    # -- binding ---------------------------------------------------------------------------------------------------
    def bind_input(self, node: Node) -> IoBinding:
        """Give a model input its place."""
        out = node.output(0)
        array = self._place(out)
        if array is None:
            raise damaged(self.graph, f"input {node.name} has no block")
        self._settle(out, array, is_constant=False)
        try:
            return IoBinding(node.name, out.desc, array, padding_clearer(out.desc))
        except LayoutError as fault:
            raise damaged(self.graph, f"input {node.name} is in a layout that it cannot have ({fault})") from fault

    def bind_tasks(self) -> list[_Bound]:
        """Bind all tasks, in order, to memory and kernels."""
        nodes: dict[str, Node] = {}
        for task in self.plan.tasks:
            if task.type is not TaskType.KERNEL:
                continue
            node = self.graph.find(task.node)
            if node is None or task.node in nodes:
                reason = "does not exist" if node is None else "has two tasks"
                raise damaged(self.graph, f"node {task.node} {reason}")
            nodes[task.node] = node
        return [self._bind_task(node) for node in nodes.values() if node.type not in _BOUNDARY]

    def _bind_task(self, node: Node) -> _Bound:
        inputs = tuple(None if source is None else self._value(source, node) for source in node.inputs)
        outputs = tuple(self._place(out) for out in node.outputs())
        for out, array in zip(node.outputs(), outputs, strict=True):
            if array is not None:
                self._settle(out, array, is_constant=False)
        if node.subgraphs:
            return self._bind_call(node, inputs, outputs)
        kernel = self._choose_kernel(node, self.compiler)
        if _needs_staging(kernel, inputs, outputs):
            kernel = _staged(kernel, inputs)
        return _Bound(node, kernel, inputs, outputs)

    def _choose_kernel(self, node: Node, compiler: KernelCompiler | None = None) -> Kernel:
        definition_of(node)
        for out in node.outputs():
            self._storage(out)
        constants = {
            slot: self.values[source.node.name, source.index]
            for slot, source in enumerate(node.inputs)
            if source is not None and (source.node.name, source.index) in self.constants
        }
        try:
            return choose_kernel(node, constants, compiler)
        except (ArithmeticError, LookupError, TypeError, ValueError) as fault:
            # a file may hold attributes that fit neither each other nor the shapes
            raise cannot_run(node, f"its attributes do not fit ({fault})") from fault

    def bind_outputs(self, names: Sequence[str]) -> list[IoBinding]:
        """Find the results of the model."""
        net_output = self.graph.net_output()
        bindings = []
        for index, source in enumerate(self.graph.outputs):
            name = names[index] if index < len(names) else f"{source.node.name}:{source.index}"
            reader = source.node if net_output is None else net_output
            bindings.append(IoBinding(name, source.desc, self._value(source, reader)))
        return bindings

    # -- bodies ----------------------------------------------------------------------------------------------------
    def _bind_call(self, node: Node, inputs: tuple[Array | None, ...], outputs: tuple[Array | None, ...]) -> _Bound:
        given, results = [x for x in inputs if x is not None], [y for y in outputs if y is not None]
        if len(given) != len(inputs) or len(results) != len(outputs):
            raise damaged(self.graph, f"node {node.name} has graphs, and an input or output without memory")
        workspace = self._workspace(node)
        states = self._states(node, given, results)
        bound = {
            name: self._bind_body(node, name, workspace, states) for name in dict.fromkeys(n for _, n in node.subgraphs)
        }
        bodies = {formal: bound[name][0] for formal, name in node.subgraphs}
        control = control_of(BoundCall(node, given, results, bodies))

        def run(inputs: Sequence[Array | None], outputs: Sequence[Array | None], scratch: Array) -> None:
            control.run(scratch, run_plainly)

        kernel = Kernel(control.name, run, control.scratch_bytes)
        return _Bound(node, kernel, inputs, outputs, control, tuple(bound.values()))

    def _workspace(self, node: Node) -> Array:
        blocks = self.plan.workspaces.get(node.name, [])[:1]
        for block in blocks:
            self._check_range(f"the workspace of {node.name}", block)
            if block.offset % ALIGNMENT:
                raise damaged(self.graph, f"the workspace of {node.name} lies at byte {block.offset}")
        return self.arena[blocks[0].offset : blocks[0].end] if blocks else self.arena[:0]

    def _states(self, node: Node, inputs: list[Array], outputs: list[Array]) -> list[tuple[Array, bool]]:
        """Return the memory that the Data nodes of bodies show, by input slot, and whether it never changes.

        A loop keeps in its outputs what changes from turn to turn.
        """
        sources = [source for source in node.inputs if source is not None]
        shown = [(x, (s.node.name, s.index) in self.constants) for x, s in zip(inputs, sources, strict=True)]
        for name in [name for formal, name in node.subgraphs if formal == "body"]:
            unchanged = unchanged_slots(self.graph.root.subgraphs[name], node)
            shown = [
                (outputs[slot], False) if slot not in unchanged and slot < len(outputs) else known
                for slot, known in enumerate(shown)
            ]
        return shown

    def _bind_body(
        self, caller: Node, name: str, workspace: Array, states: Sequence[tuple[Array, bool]]
    ) -> tuple[Body, list[_Bound]]:
        graph, plan = self.graph.root.subgraphs[name], self.whole.graphs.get(name)
        if plan is None or plan.arena_size > workspace.nbytes:
            lack = "has no plan" if plan is None else f"needs {plan.arena_size} bytes, its place has {workspace.nbytes}"
            raise damaged(graph, f"it {lack}")
        inner = _Binder(self.whole, graph, plan, workspace[: plan.arena_size], self.compiler)
        for data in graph.data_nodes():
            slot = parent_slot(data, caller)
            if not 0 <= slot < len(states):
                raise damaged(graph, f"its input {data.name} is input {slot} of {caller.name}, which has {len(states)}")
            inner.show(data, *states[slot])
        tasks = inner.bind_tasks()
        results = [inner._value(out, out.node) for out in graph.outputs]
        self.constant_bytes += inner.constant_bytes
        self.inner_values.append(inner.all_values())
        return Body(results), tasks

    def show(self, data: Node, array: Array, is_constant: bool) -> None:
        """Let an input of a body be memory of the caller."""
        out = data.output(0)
        shape, dtype = self._storage(out)
        if (array.shape, array.dtype) != (shape, dtype):
            found = f"{array.dtype}{list(array.shape)}"
            raise damaged(self.graph, f"its input {data.name} is {dtype}{list(shape)}, the caller gives {found}")
        self._settle(out, array, is_constant=is_constant)


def _needs_staging(kernel: Kernel, inputs: Sequence[Array | None], outputs: Sequence[Array | None]) -> bool:
    for y in outputs:
        for x in inputs:
            if x is None or y is None or not np.may_share_memory(x, y):
                continue
            is_same = x.ctypes.data == y.ctypes.data and x.nbytes == y.nbytes
            if not (is_same and kernel.is_in_place_safe):
                return True
    return False


def _staged(kernel: Kernel, inputs: Sequence[Array | None]) -> Kernel:
    """Let a kernel that cannot work in place read copies of its inputs, made in scratch behind its own."""
    starts, end = [], -(-kernel.scratch_bytes // 64) * 64
    for x in inputs:
        starts.append(end)
        end += 0 if x is None else -(-x.nbytes // 64) * 64

    def run(inputs: Sequence[Array | None], outputs: Sequence[Array | None], scratch: Array) -> None:
        copies: list[Array | None] = []
        for x, start in zip(inputs, starts, strict=True):
            if x is None:
                copies.append(None)
                continue
            copy = scratch[start : start + x.nbytes].view(x.dtype).reshape(x.shape)
            np.copyto(copy, x)
            copies.append(copy)
        kernel.run(tuple(copies), outputs, scratch)

    name = f"{kernel.name}+staging"
    return kernel.within(run, name=name, scratch_bytes=end, is_in_place_safe=True)
