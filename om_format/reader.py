"""File -> offline model. Files come from anywhere: whatever is wrong with one becomes E10041."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from google.protobuf.message import DecodeError

from ge.call_tree import CallFault, callers
from ge.collector import collector_at_rest
from ge.errors import ReportedError
from ge.graph import CycleError, Graph, Node, Tensor
from ge.graph.types import DataType
from ge.host import this_host
from ge.mapped_file import MappedFile
from ge.ops import current_operators, lookup
from ge.plan_check import PlanFault, check_plan
from ge.proto import ge_ir_pb2 as pb
from ge.proto import task_pb2 as tasks
from ge.proto.attr_def import InvalidGraphDef, read_attrs
from ge.proto.graph_def import graph_of
from ge.proto.plan_def import read_plan
from ge.proto.tensor_bytes import Array
from ge.verify import verify
from om_format.header import ModelFileHeader, ModelType, broken_model
from om_format.model_io import ModelIO
from om_format.offline_model import OfflineModel
from om_format.partitions import Block, PartitionType, read_blocks
from om_format.writer import WEIGHTS_PADDING


@dataclass(frozen=True)
class ModelFile:
    """A mapped file, its header, and the table of its first model."""

    path: str
    data: Array
    header: ModelFileHeader
    block: Block

    def partition(self, kind: PartitionType) -> Array:
        """Return the bytes of a partition, read-only and not copied; empty when there is none."""
        found = self.block.find(kind)
        return self.data[:0] if found is None else self.data[found.start : found.end]

    def model_def(self) -> pb.ModelDef:
        """Parse the partition MODEL_DEF."""
        if self.block.find(PartitionType.MODEL_DEF) is None:
            raise broken_model(self.path, "the file has no partition MODEL_DEF")
        try:
            return pb.ModelDef.FromString(self.partition(PartitionType.MODEL_DEF).tobytes())
        except DecodeError:
            raise broken_model(self.path, "the partition MODEL_DEF is not a ge.proto.ModelDef message") from None

    def task_list(self) -> tasks.ModelTaskDef:
        """Parse the partition TASK_INFO."""
        try:
            return tasks.ModelTaskDef.FromString(self.partition(PartitionType.TASK_INFO).tobytes())
        except DecodeError:
            raise broken_model(self.path, "the partition TASK_INFO is not a domi.ModelTaskDef message") from None


def open_model(path: str | Path) -> ModelFile:
    """Map the file and check header and partition tables. Raises E10041."""
    name = os.fspath(path)
    try:
        mapped = MappedFile.open(path)
    except (OSError, ValueError) as fault:
        reason = (fault.strerror if isinstance(fault, OSError) else None) or str(fault)
        raise broken_model(name, f"the file cannot be read ({reason})") from None
    if mapped is None:
        raise broken_model(name, "the file is empty")
    data = np.frombuffer(mapped, np.uint8)
    header = ModelFileHeader.unpack(data.data, data.size, name)
    return ModelFile(name, data, header, read_blocks(data.data, header, name)[0])


@collector_at_rest()
def load(path: str | Path) -> OfflineModel:
    """Load an offline model; its constants are read-only views of the mapped file.

    Checks everything that can be known without running it: structure, operators (as far as they are registered),
    attributes, constants, plan. Raises E10041, and E19999 for a dynamic model that is for another kind of machine.
    """
    file = open_model(path)
    if file.header.modeltype in (ModelType.FLOW, ModelType.BUNDLE):
        kind = ModelType(file.header.modeltype).name.lower()
        raise broken_model(file.path, f"it is a {kind} of models; only a single model can be loaded")
    if file.header.model_num > 1:
        raise broken_model(file.path, f"it holds {file.header.model_num} models in one; only one can be loaded")
    definition, task_list = file.model_def(), file.task_list()
    io = ModelIO.unpack(file.partition(PartitionType.MODEL_INOUT_INFO).data, file.path)
    try:
        graph = graph_of(definition, file.partition(PartitionType.WEIGHTS_DATA))
        attrs = read_attrs(definition.attr, "the model", skip=frozenset({WEIGHTS_PADDING}))
        plan = read_plan(graph, definition, task_list, is_static=not file.header.is_dynamic)
        _check_graph(graph)
        check_plan(graph, plan)
        _check_io(io, graph)
    except (InvalidGraphDef, PlanFault) as fault:
        raise broken_model(file.path, str(fault)) from None
    model = OfflineModel(graph, attrs, plan, io, definition.name, current_operators())
    _check_host(model, file.path)
    return model


def _check_host(model: OfflineModel, path: str) -> None:
    """Refuse a dynamic model that was compiled for another operating system or processor."""
    wanted, found = model.host, this_host()
    if wanted is not None and not wanted.is_like(found):
        raise ReportedError(
            "E19999",
            reason=f"The model {path} is dynamic and was compiled for {wanted}; this machine is {found}.",
            solution=f"Run it on such a machine, or compile it with --host_env_os={found.os} "
            f"--host_env_cpu={found.cpu}.",
        )


def _check_graph(graph: Graph) -> None:
    nodes = [(part, node) for part in graph.all_graphs() for node in part]
    is_known = True
    for part, node in nodes:
        definition = lookup(node.type)
        if definition is None:
            is_known = False  # found again, and reported, when the operator is bound to a kernel
            continue
        for spec in definition.signature.attrs.values():
            value = node.attrs.get(spec.name)
            if value is None and not spec.is_required:
                continue
            if not _fits(spec.kind, value):
                raise InvalidGraphDef(
                    f"graph {part.name}, node {node.name} ({node.type}): attribute {spec.name} must be of the kind "
                    f"'{spec.kind}', it is {_shown(value)}"
                )
        _check_data(part, node)
    try:
        if is_known:
            verify(graph)
        else:
            callers(graph)
            for part in graph.all_graphs():
                part.topological_order()
    except ReportedError as fault:
        raise InvalidGraphDef(str(fault.fields.get("reason", fault.message))) from None
    except CallFault as fault:
        raise InvalidGraphDef(str(fault)) from None
    except CycleError as cycle:
        raise InvalidGraphDef(f"the graph has a {cycle}") from None


def _check_data(part: Graph, node: Node) -> None:
    if node.type == "Data" and len(node.output_descs) != 1:
        raise InvalidGraphDef(f"graph {part.name}, node {node.name}: an input has one output")
    value = node.attrs.get("value")
    if node.type == "Const" and isinstance(value, Tensor):
        found = [(desc.shape, desc.data_type) for desc in node.output_descs]
        if found != [(value.desc.shape, value.data_type)]:
            raise InvalidGraphDef(
                f"graph {part.name}, node {node.name}: outputs {node.output_descs} do not describe {value}"
            )


_LIST_ITEMS: dict[str, type | tuple[type, ...]] = {"I": int, "F": (int, float), "B": int, "S": str}
_ITEMS: dict[str, type | tuple[type, ...]] = {
    "i": int,
    "f": (int, float),
    "b": int,
    "s": str,
    "tensor": Tensor,
}


def _fits(kind: str, value: Any) -> bool:
    """Tell whether ``value`` can stand for an attribute of that kind in a signature."""
    if kind == "t":
        return isinstance(value, DataType) or (type(value) is int and value in set(DataType))
    if kind in _LIST_ITEMS:
        return isinstance(value, list) and all(isinstance(v, _LIST_ITEMS[kind]) for v in value)
    if kind == "II":
        return isinstance(value, list) and all(isinstance(v, list) and _fits("I", v) for v in value)
    return kind not in _ITEMS or isinstance(value, _ITEMS[kind])


def _shown(value: Any) -> str:
    return "missing" if value is None else f"{type(value).__name__} {value!r}"[:80]


def _check_io(io: ModelIO, graph: Graph) -> None:
    for what, described, found in (
        ("inputs", io.inputs, [node.output_descs[0] for node in graph.data_nodes()]),
        ("outputs", io.outputs, [out.desc for out in graph.outputs]),
    ):
        if len(described) != len(found):
            raise InvalidGraphDef(f"MODEL_INOUT_INFO describes {len(described)} {what}, the graph has {len(found)}")
        for info, desc in zip(described, found, strict=True):
            if (info.dims, info.data_type) != (desc.shape, desc.data_type):
                raise InvalidGraphDef(
                    f"MODEL_INOUT_INFO describes {info.name} as {info.data_type.name}{info.dims}, "
                    f"the graph has {desc.data_type.name}{desc.shape}"
                )
