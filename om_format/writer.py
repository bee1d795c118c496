"""Offline model -> file, streamed: all sizes are known before the first byte, weights come straight from the arrays."""

from __future__ import annotations

from pathlib import Path

from ge.atomic_file import atomic_file
from ge.collector import collector_at_rest
from ge.graph.node import AttrValue
from ge.plan import ALIGNMENT, GraphPlan
from ge.proto import ge_ir_pb2 as pb
from ge.proto.attr_def import write_attr
from ge.proto.graph_def import model_def
from ge.proto.plan_def import write_plan
from om_format.header import HEADER_BYTES, ModelFileHeader
from om_format.offline_model import OfflineModel
from om_format.partitions import PartitionType, pack_table, table_bytes
from om_format.weights import WeightsPool

WEIGHTS_PADDING = "_weights_padding"
"""Model attribute of as many bytes as put WEIGHTS_DATA on a multiple of 512, so that a mapped file serves as memory."""

DERIVED_ATTRS = frozenset(
    {
        "attr_model_out_nodes_name",
        "event_num",
        "label_num",
        "memory_size",
        "notify_num",
        "om_info_list",
        "p2p_memory_size",
        "session_scope_memory_size",
        "stream_num",
        "weight_size",
        "zero_copy_memory_size",
        WEIGHTS_PADDING,
    }
)
"""Model attributes that :func:`save` makes itself."""


@collector_at_rest()
def save(model: OfflineModel, path: str | Path) -> None:
    """Write ``model`` to ``path``. Equal models give equal bytes. Raises E13004 where the file cannot be written."""
    pool = WeightsPool()
    definition = model_def(model.graph, pool.place)
    task_list = write_plan(model.plan, model.graph, definition)
    task_list.weight_size = pool.size
    task_info = task_list.SerializeToString(deterministic=True)
    _write_model_attrs(model, definition, pool.size, len(task_info))
    model_bytes = definition.SerializeToString(deterministic=True)
    io = model.io.pack()
    if pool.size:
        count = 3 + bool(io)
        model_bytes += _padding(HEADER_BYTES + table_bytes(count) + len(io) + len(model_bytes))
    entries = [
        (PartitionType.MODEL_INOUT_INFO, len(io)),
        (PartitionType.MODEL_DEF, len(model_bytes)),
        (PartitionType.WEIGHTS_DATA, pool.size),
        (PartitionType.TASK_INFO, len(task_info)),
    ]
    table = pack_table([entry for entry in entries if entry[1]])
    version = str(model.attrs.get("atc_version", ""))
    header = ModelFileHeader(
        model_length=len(table) + sum(size for _, size in entries),
        name=model.name,
        platform_version=version,
        is_unknow_model=int(not model.plan.is_static),
    )
    with atomic_file(path) as file:
        file.write(header.pack() + table + io + model_bytes)
        if pool.size:
            pool.write(file)
        file.write(task_info)


def _write_model_attrs(model: OfflineModel, definition: pb.ModelDef, weight_size: int, task_bytes: int) -> None:
    definition.name = model.name
    definition.custom_version = str(model.attrs.get("atc_version", ""))
    root = model.plan.graphs.get(model.graph.name, GraphPlan())
    attrs: dict[str, AttrValue] = {k: v for k, v in model.attrs.items() if k not in DERIVED_ATTRS}
    attrs |= {
        "event_num": model.plan.events,
        "label_num": 0,
        "memory_size": root.arena_size,
        "notify_num": 0,
        "om_info_list": [weight_size, 0, 0, task_bytes, 0],
        "p2p_memory_size": 0,
        "session_scope_memory_size": 0,
        "stream_num": model.plan.streams,
        "weight_size": weight_size,
        "zero_copy_memory_size": _io_bytes(model, root),
    }
    if model.graph.output_names:
        attrs["attr_model_out_nodes_name"] = model.graph.output_names
    for name, value in attrs.items():
        write_attr(definition.attr[name], value)


def _io_bytes(model: OfflineModel, plan: GraphPlan) -> int:
    """Bytes of the arena that hold the model's inputs and outputs."""
    tensors = [node.output() for node in model.graph.data_nodes()] + model.graph.outputs
    blocks = {plan.blocks.get((out.node.name, out.index)) for out in tensors}
    return sum(block.size for block in blocks if block is not None)


def _padding(end: int) -> bytes:
    """Return a piece of ``ModelDef`` that can follow a model ending at ``end`` and ends at a multiple of 512.

    Messages may be written one behind the other. Lengths grow in jumps where their own length does, hence the search.
    """
    for count in range(3 * ALIGNMENT):
        piece = pb.ModelDef()
        piece.attr[WEIGHTS_PADDING].bt = bytes(count)
        data = piece.SerializeToString(deterministic=True)
        if (end + len(data)) % ALIGNMENT == 0:
            return data
    raise AssertionError("some padding always fits")
