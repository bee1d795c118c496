"""Which operators of a model are dumped, and what their files say of them."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ge.graph import Graph, Node, NodeOut
from ge.graph.types import FORMAT_BY_TEXT, DataType, Format
from ge.passes.origins import (
    IS_MULTI_OP,
    ORIGIN_NAMES,
    ORIGIN_TYPES,
    OUTPUT_FORMAT,
    OUTPUT_INDEX,
    OUTPUT_NAME,
    OUTPUT_TYPE,
)
from ge.plan import Plan, TaskType
from ge.tensor_memory import LOAD_TIME_CONST
from simulator.dump_data import Origin
from simulator.dump_settings import DumpSettings

NO_TASK = 0xFFFFFFFF
"""Task number of what has no task."""


@dataclass(frozen=True)
class DumpedOp:
    """An operator that is dumped. ``original_names`` are the nodes of the user's model that it stands for."""

    node: Node
    task: int
    stream: int
    original_names: tuple[str, ...]
    original_types: tuple[str, ...]

    @property
    def has_task(self) -> bool:
        """False for what only ``--dump_extra`` dumps: inputs, constants, views."""
        return self.task != NO_TASK


@dataclass(frozen=True)
class Selection:
    """``ops`` by node name; ``warnings`` say which of the names given select nothing."""

    ops: Mapping[str, DumpedOp]
    warnings: tuple[str, ...] = ()


def select(graph: Graph, plan: Plan, settings: DumpSettings) -> Selection:
    """Return what is dumped of a model: all operators with a task, or those that layers and ranges name.

    A layer is the name of a compiled operator or of a node of the user's model that went into it.
    """
    everything = dict(_dumpable(graph, plan))
    able = {name: op for name, op in everything.items() if op.has_task or settings.extra}
    if not settings.layers and not settings.ranges:
        return Selection(able)
    wanted = set(settings.layers)
    chosen = {name: op for name, op in able.items() if not wanted.isdisjoint(names_of(op))}
    found = {name for op in chosen.values() for name in names_of(op)}
    missing = [layer for layer in settings.layers if layer not in found]
    for begin, end in settings.ranges:
        first, last = (_tasks(able, name) for name in (begin, end))
        if first and last:
            low, high = min(first), max(last)
            chosen |= {name: op for name, op in able.items() if op.has_task and low <= op.task <= high}
        missing += [name for name, tasks in ((begin, first), (end, last)) if not tasks]
    return Selection(chosen, tuple(_why_missing(list(dict.fromkeys(missing)), graph, everything, able)))


def names_of(op: DumpedOp) -> set[str]:
    """Return the names by which an operator is chosen: its own, and those of what it stands for."""
    return {op.node.name, *_origins(op)}


def _tasks(ops: Mapping[str, DumpedOp], name: str) -> list[int]:
    return [op.task for op in ops.values() if op.has_task and name in names_of(op)]


def _origins(op: DumpedOp) -> set[str]:
    outs = op.node.outputs() if op.original_names else ()
    return {str(out.desc.attrs[OUTPUT_NAME]) for out in outs if OUTPUT_NAME in out.desc.attrs} | set(op.original_names)


def _dumpable(graph: Graph, plan: Plan) -> Iterator[tuple[str, DumpedOp]]:
    """Yield all nodes that make something, those of bodies too; tasks are numbered as in the .om."""
    count = 0
    for part in graph.all_graphs():
        part_plan = plan.graphs.get(part.name)
        tasks: dict[str, tuple[int, int]] = {}
        for task in () if part_plan is None else part_plan.tasks:
            if task.type is TaskType.KERNEL:
                tasks[task.node] = count, task.stream
            count += 1
        for node in part:
            is_inner_input = node.type == "Data" and part is not graph  # memory of the caller, which dumps it
            if node.output_descs and node.type != "NetOutput" and not is_inner_input:
                number, stream = tasks.get(node.name, (NO_TASK, 0))
                yield node.name, DumpedOp(node, number, stream, *original_nodes(node))


def original_nodes(node: Node) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return names and types of the nodes of the user's model behind a node; without a note of it, it is one itself."""
    names, types = node.attrs.get(ORIGIN_NAMES), node.attrs.get(ORIGIN_TYPES)
    if not isinstance(names, list):
        return (node.name,), (node.type,)
    if not isinstance(types, list) or len(types) != len(names):
        types = [node.type] * len(names)
    return tuple(map(str, names)), tuple(map(str, types))


def original_tensor(out: NodeOut) -> Origin:
    """Return the tensor of the user's model that an output stands for.

    An output that says nothing of it stands for the one of the same number of the last node behind it, unless it is
    that of somebody else: of a node called so, or of another output. One of the compiler's own (TransData, Cast) stands
    for none, though its descriptor may be a copy of another's.
    """
    desc, (names, _) = out.desc, original_nodes(out.node)
    name, index = desc.attrs.get(OUTPUT_NAME), desc.attrs.get(OUTPUT_INDEX)
    if not names:
        name = ""
    elif not isinstance(name, str):
        name = "" if _is_inner(out.node, names[-1]) else names[-1]
    return Origin(
        name,
        index if isinstance(index, int) and 0 <= index < 1 << 31 else out.index,
        _data_type(desc.attrs.get(OUTPUT_TYPE), desc.data_type),
        _format(desc.attrs.get(OUTPUT_FORMAT), desc.origin_format),
    )


def _is_inner(node: Node, last: str) -> bool:
    """Tell whether a node only helps to make what ``last``, a node of the model, gives: another one gives it."""
    if node.attrs.get(IS_MULTI_OP) or any(OUTPUT_NAME in desc.attrs for desc in node.output_descs):
        return True
    return node.name != last and node.graph.find(last) is not None


def _data_type(name: object, default: DataType) -> DataType:
    return DataType[name] if isinstance(name, str) and name in DataType.__members__ else default


def _format(name: object, default: Format) -> Format:
    if name == "RESERVED":
        return Format.FORMAT_RESERVED
    return FORMAT_BY_TEXT.get(name, default) if isinstance(name, str) else default


# -- names that select nothing -----------------------------------------------------------------------------------------
_NEAR = 3


def _why_missing(
    missing: Sequence[str], graph: Graph, everything: Mapping[str, DumpedOp], able: Mapping[str, DumpedOp]
) -> Iterator[str]:
    """Say of each name why nothing is dumped for it: it has no task, or nothing has the name."""
    if not missing:
        return
    without: dict[str, DumpedOp] = {}
    for op in everything.values():
        if op.node.name not in able:
            for name in names_of(op):
                without.setdefault(name, op)
    known = _names(able.values())
    for layer in missing:
        found = without.get(layer)
        if found is not None:
            yield f"nothing is dumped for '{layer}': {found.node.name} is {_kind(found.node)}; --dump_extra dumps it"
        elif any(part.find(layer) is not None for part in graph.all_graphs()):
            yield f"nothing is dumped for '{layer}': it has no outputs of its own"
        else:
            near = difflib.get_close_matches(layer, known, n=_NEAR)
            hint = f"; near: {', '.join(near)}" if near else ""
            yield f"nothing is dumped for '{layer}': no operator of the .om is called so or stands for it{hint}"


def _names(ops: Collection[DumpedOp]) -> list[str]:
    return list(dict.fromkeys(name for op in ops for name in (op.node.name, *sorted(_origins(op)))))


def _kind(node: Node) -> str:
    if node.type == "Data":
        return "an input of the model, which its readers dump"
    if node.type == "Const" or node.attrs.get(LOAD_TIME_CONST):
        return "a constant, which its readers dump"
    return f"a {node.type} without a task: it shows the memory of its input"
