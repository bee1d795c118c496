"""Execution plans in messages: memory offsets in ``OpDef``, tasks in ``ModelTaskDef``.

``OpDef.output_i`` and ``input_i`` hold arena offsets, -1 for tensors that have none; the bytes of a block stand in the
``size`` of its output descriptor. ``OpDef.id`` is unique in the model, so one task list serves all graphs.
"""

from __future__ import annotations

from collections.abc import Sequence

from ge.graph import Graph, Node
from ge.plan import Block, GraphPlan, Plan, Task, TaskType
from ge.proto import ge_ir_pb2 as pb
from ge.proto import task_pb2 as tasks
from ge.proto.attr_def import InvalidGraphDef

NOWHERE = -1
KERNEL_TYPE = 2
"""``KernelContext.kernel_type`` of an operator kernel."""

_ARENA = "_arena_size"
_BOUND = "_arena_bound"
_NAIVE = "_arena_size_without_reuse"


# -- writing -------------------------------------------------------------------------------------------------------
def write_plan(plan: Plan, graph: Graph, model: pb.ModelDef) -> tasks.ModelTaskDef:
    """Add the memory plan to ``model``, the message of ``graph``, and return the task list."""
    result = tasks.ModelTaskDef(stream_num=plan.streams, event_num=plan.events)
    for part, stored in zip(graph.all_graphs(), model.graph, strict=True):
        part_plan = plan.graphs.get(part.name)
        if part_plan is None:
            continue
        stored.attr[_ARENA].i = part_plan.arena_size
        stored.attr[_BOUND].i = part_plan.bound
        stored.attr[_NAIVE].i = part_plan.naive_size
        ops: dict[str, pb.OpDef] = {}
        for node, op in zip(part, stored.op, strict=True):
            ops[node.name] = op
            _write_blocks(part_plan, node, op)
        for task in part_plan.tasks:
            _write_task(task, ops, result)
    root = plan.graphs.get(graph.name)
    result.memory_size = 0 if root is None else root.arena_size
    return result


def _write_blocks(plan: GraphPlan, node: Node, op: pb.OpDef) -> None:
    outputs = [plan.blocks.get((node.name, i)) for i in range(len(node.output_descs))]
    inputs = [None if s is None else plan.blocks.get((s.node.name, s.index)) for s in node.inputs]
    if any(outputs):
        op.output_i.extend(NOWHERE if block is None else block.offset for block in outputs)
        for desc, block in zip(op.output_desc, outputs, strict=True):
            if block is not None:
                desc.size = block.size
    if any(inputs):
        op.input_i.extend(NOWHERE if block is None else block.offset for block in inputs)
    for block in plan.workspaces.get(node.name, ()):
        op.workspace.append(block.offset)
        op.workspace_bytes.append(block.size)


def _write_task(task: Task, ops: dict[str, pb.OpDef], result: tasks.ModelTaskDef) -> None:
    stored = result.task.add(id=len(result.task), type=int(task.type), stream_id=task.stream)
    op = ops[task.node]
    op.stream_id = task.stream
    if task.type is TaskType.KERNEL:
        stored.kernel.block_dim = 1
        stored.kernel.kernel_name = op.type
        context = stored.kernel.context
        context.kernel_type = KERNEL_TYPE
        context.op_id = context.op_index = op.id
        context.args_count = len(op.input_desc) + len(op.output_desc)
    elif task.type is TaskType.MEMCPY_ASYNC:
        stored.memcpy_async.op_index = op.id
    else:
        stored.event_ex.op_index = op.id


# -- reading -------------------------------------------------------------------------------------------------------
def read_plan(graph: Graph, model: pb.ModelDef, stored: tasks.ModelTaskDef, is_static: bool) -> Plan:
    """Return the plan of ``graph``, which was made from ``model``. Raises :class:`InvalidGraphDef`.

    Looks at each number by itself; whether the plan can be executed is the business of ``ge.plan_check``.
    """
    plan = Plan(streams=stored.stream_num, events=stored.event_num, is_static=is_static)
    owners: list[tuple[GraphPlan, str]] = []
    for part, definition in zip(graph.all_graphs(), model.graph, strict=True):
        part_plan = GraphPlan()
        sizes = [_size(part, key) for key in (_ARENA, _BOUND, _NAIVE)]
        part_plan.arena_size, part_plan.bound, part_plan.naive_size = sizes
        plan.graphs[part.name] = part_plan
        for node, op in zip(part, definition.op, strict=True):
            if op.id != len(owners):
                raise InvalidGraphDef(f"graph {part.name}, node {node.name} must have id {len(owners)}, has {op.id}")
            owners.append((part_plan, node.name))
            _read_blocks(part_plan, node, op, f"graph {part.name}, node {node.name}")
    for place, task in enumerate(stored.task):
        index, kind = _op_index(task, place)
        if index >= len(owners):
            raise InvalidGraphDef(f"task {place} is for node {index}, the model has {len(owners)} nodes")
        owner, name = owners[index]
        if task.stream_id >= max(plan.streams, 1):
            raise InvalidGraphDef(f"task {place} runs on stream {task.stream_id}, the model has {plan.streams}")
        owner.tasks.append(Task(name, kind, task.stream_id))
    return plan


def _size(part: Graph, key: str) -> int:
    value = part.attrs.pop(key, 0)
    if type(value) is not int or value < 0:
        raise InvalidGraphDef(f"graph {part.name}, attribute {key} must be a size in bytes, it is {value!r}")
    return value


def _read_blocks(plan: GraphPlan, node: Node, op: pb.OpDef, where: str) -> None:
    _check_length(op.output_i, len(op.output_desc), "memory offsets of outputs", where)
    for index, offset in enumerate(op.output_i):
        if offset != NOWHERE:
            plan.blocks[node.name, index] = _block(offset, op.output_desc[index].size, f"{where}, output {index}")
    _check_length(op.workspace, len(op.workspace_bytes), "workspaces", where, may_miss=False)
    if len(op.workspace):
        plan.workspaces[node.name] = [
            _block(offset, size, f"{where}, workspace {i}")
            for i, (offset, size) in enumerate(zip(op.workspace, op.workspace_bytes, strict=True))
        ]


def _check_length(found: Sequence[int], expected: int, what: str, where: str, may_miss: bool = True) -> None:
    if len(found) != expected and not (may_miss and not found):
        raise InvalidGraphDef(f"{where} has {len(found)} {what}, {expected} are expected")


def _block(offset: int, size: int, where: str) -> Block:
    if offset < 0 or size < 0:
        raise InvalidGraphDef(f"{where} has the impossible place {offset} or size {size}")
    return Block(offset, size)


def _op_index(task: tasks.TaskDef, place: int) -> tuple[int, TaskType]:
    try:
        kind = TaskType(task.type)
    except ValueError:
        raise InvalidGraphDef(f"task {place} is of the kind {task.type}, which cannot be run here") from None
    if kind is TaskType.KERNEL:
        return task.kernel.context.op_index, kind
    if kind is TaskType.MEMCPY_ASYNC:
        return task.memcpy_async.op_index, kind
    return task.event_ex.op_index, kind
