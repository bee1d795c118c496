"""Graphs as they are shown and compared: plain values, all attributes as text.

Left out is what follows from the rest or says only where things lie: ids, streams, places in memory, sizes, the names
and numbers that a signature gives.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from atc.graph_file import GraphFile, Kind, tensor_head, type_text
from ge.dump.proto_text import OPTION_SETS
from ge.dump.settings import Detail
from ge.errors import ReportedError
from ge.graph import Shape
from ge.graph.types import DATA_TYPE_BY_PROTO, DataType, bit_width, has_numpy_dtype
from ge.proto import ge_ir_pb2 as pb
from ge.proto.attr_def import InvalidGraphDef
from ge.proto.graph_def import DERIVED_ATTRS

CONSTANTS = ("Const", "Constant")
_OUTPUT_NAMES = "_output_names"
_ARENA_SIZES = ("_arena_size", "_arena_bound", "_arena_size_without_reuse")
_GRAPH_ATTRS_LEFT_OUT = frozenset({*_ARENA_SIZES, *OPTION_SETS, _OUTPUT_NAMES})
_DESC_ATTRS_LEFT_OUT = frozenset(
    {
        "format_for_int",
        "origin_data_type",
        "origin_format",
        "origin_format_for_int",
        "origin_shape",
        "origin_shape_initialized",
        "shape_range",
    }
)
_RANGE_ROW = "shape_range_"


@dataclass(frozen=True, slots=True)
class TensorView:
    """Type, storage shape and format, origin shape and format, further attributes of an output."""

    dtype: str
    shape: str
    format: str
    origin_shape: str
    origin_format: str
    attrs: tuple[tuple[str, str], ...] = ()

    @property
    def text(self) -> str:
        """As graph text has it, with the origin behind where it differs."""
        text = f"{self.dtype}{self.shape}@{self.format}"
        if (self.shape, self.format) == (self.origin_shape, self.origin_format):
            return text
        return f"{text} (origin {self.origin_shape}@{self.origin_format})"


@dataclass(frozen=True, slots=True)
class NodeView:
    """A node. ``inputs`` are ``producer:index`` or empty, ``controls`` the nodes that run before.

    ``constant`` is the text of a constant's data: empty where the file does not tell, ``None`` for other nodes.
    """

    name: str
    type: str
    inputs: tuple[str, ...]
    controls: tuple[str, ...]
    outputs: tuple[TensorView, ...]
    attrs: Mapping[str, str]
    bodies: tuple[str, ...] = ()
    constant: str | None = None
    constant_bytes: int = 0


@dataclass(frozen=True)
class GraphView:
    """A graph; ``results`` are ``producer:index``, ``result_names`` theirs in the user's model, if known."""

    name: str
    nodes: Mapping[str, NodeView]
    results: tuple[str, ...]
    result_names: tuple[str, ...]
    attrs: Mapping[str, str]

    @property
    def data_nodes(self) -> list[NodeView]:
        """The inputs of the graph by their index."""
        return sorted((node for node in self.nodes.values() if node.type == "Data"), key=_data_index)

    @property
    def has_net_output(self) -> bool:
        """Whether a node shows what the results are."""
        return any(node.type == "NetOutput" for node in self.nodes.values())

    def tensor(self, source: str) -> TensorView | None:
        """Return what is known of ``producer:index``."""
        name, _, index = source.rpartition(":")
        node = self.nodes.get(name)
        if node is None or not index.isdecimal() or int(index) >= len(node.outputs):
            return None
        return node.outputs[int(index)]


def _data_index(node: NodeView) -> int:
    text = node.attrs.get("index", "0")
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else 0


def graphs_of(file: GraphFile, detail: Detail | None = None, *, with_constants: bool = True) -> list[GraphView]:
    """Return the graphs of ``file``, the root first.

    With a ``detail`` they show only what a ge_onnx dump of that detail tells; without constants their data is left
    aside, which saves the time to look through it. Raises E13005 for a file whose graphs or nodes have one name twice,
    or that lacks data which it refers to.
    """
    model = file.model
    is_told_so = file.kind is Kind.GE_ONNX and file.detail is detail
    if detail is not None and not is_told_so:
        from ge.dump.onnx_reading import model_of
        from ge.dump.onnx_text import onnx_model

        model = model_of(onnx_model(file.model, detail))
    reads_data = with_constants and detail in (None, Detail.FULL) and file.detail is Detail.FULL
    try:
        graphs = [
            _Reader(file, shown, reads_data).graph(original)
            for shown, original in zip(model.graph, file.model.graph, strict=True)
        ]
    except InvalidGraphDef as fault:
        raise ReportedError("E13005", file=file.path, reason=str(fault)) from None
    _check_names((graph.name for graph in graphs), "graphs", file)
    return graphs


def _check_names(names: Iterable[str], what: str, file: GraphFile) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise ReportedError("E13005", file=file.path, reason=f"two {what} have the name {name!r}")
        seen.add(name)


class _Reader:
    """Reads one graph: ``shown`` has what is to be told, the graph of the file itself the data of constants."""

    def __init__(self, file: GraphFile, shown: pb.GraphDef, reads_data: bool) -> None:
        self._file = file
        self._shown = shown
        self._reads_data = reads_data
        self._tensors: dict[bytes, TensorView] = {}

    def graph(self, original: pb.GraphDef) -> GraphView:
        shown = self._shown
        _check_names((op.name for op in shown.op), f"nodes of graph {shown.name}", self._file)
        nodes = {op.name: self._node(op, stored) for op, stored in zip(shown.op, original.op, strict=True)}
        ends = [op for op in shown.op if op.type == "NetOutput"]
        results = _data_inputs(ends[0].input) if ends else tuple(shown.output)
        names = original.attr[_OUTPUT_NAMES].list.s if _OUTPUT_NAMES in original.attr else ()
        return GraphView(
            shown.name,
            nodes,
            results,
            tuple(name.decode(errors="replace") for name in names) if len(names) == len(results) else (),
            self._attrs(shown.attr, _GRAPH_ATTRS_LEFT_OUT),
        )

    def _node(self, op: pb.OpDef, stored: pb.OpDef) -> NodeView:
        constant, size = None, 0
        left_out = DERIVED_ATTRS
        if op.type in CONSTANTS:
            value = stored.attr["value"].t if "value" in stored.attr else pb.TensorDef()
            constant = self._file.constant_text(value) if self._reads_data and "value" in stored.attr else ""
            size = _stored_size(value, stored.output_desc)
            left_out = DERIVED_ATTRS | {"value"}
        return NodeView(
            op.name,
            op.type,
            _data_inputs(op.input),
            tuple(text[:-3] for text in op.input if text.endswith(":-1")),
            tuple(map(self._tensor, op.output_desc)),
            self._attrs(op.attr, left_out),
            tuple(op.subgraph_name),
            constant,
            size,
        )

    def _tensor(self, desc: pb.TensorDescriptor) -> TensorView:
        key = desc.SerializeToString(deterministic=True)
        known = self._tensors.get(key)
        if known is None:
            known = self._tensors[key] = self._new_tensor(desc)
        return known

    def _new_tensor(self, desc: pb.TensorDescriptor) -> TensorView:
        attr, layout = desc.attr, desc.layout if desc.layout else "ND"
        shape = _shape_text(desc.shape.dim, _ranges(attr))
        has_origin = "origin_shape" in attr and (len(attr["origin_shape"].list.i) or not len(desc.shape.dim))
        origin = _shape_text(attr["origin_shape"].list.i, _ranges(attr)) if has_origin else shape
        origin_format = attr["origin_format"].s.decode(errors="replace") if "origin_format" in attr else layout
        further = self._attrs(attr, _DESC_ATTRS_LEFT_OUT)
        return TensorView(
            type_text(desc.dtype),
            shape,
            layout,
            origin,
            origin_format,
            tuple((name, text) for name, text in further.items() if not name.startswith(_RANGE_ROW)),
        )

    def _attrs(self, attrs: Mapping[str, pb.AttrDef], left_out: frozenset[str]) -> dict[str, str]:
        return {name: self._text(attrs[name]) for name in sorted(attrs) if name not in left_out}

    def _text(self, attr: pb.AttrDef) -> str:
        kind = attr.WhichOneof("value")
        if kind == "list":
            fields = [value for field, value in attr.list.ListFields() if field.name != "val_type"]
            kinds = [field.name for field, _ in attr.list.ListFields() if field.name != "val_type"]
            return _list_text(self._item(kind, v) for kind, values in zip(kinds, fields, strict=True) for v in values)
        if kind == "list_list_int":
            return _list_text(_list_text(map(str, row.list_i)) for row in attr.list_list_int.list_list_i)
        if kind == "list_list_float":
            return _list_text(_list_text(map(_float_text, row.list_f)) for row in attr.list_list_float.list_list_f)
        return "" if kind is None else self._item(kind, getattr(attr, kind))

    def _item(self, kind: str, value: Any) -> str:
        if kind in ("s", "expression"):
            return json.dumps(value.decode(errors="replace"), ensure_ascii=False)
        if kind == "f":
            return _float_text(value)
        if kind == "b":
            return str(value).lower()
        if kind == "bt":
            return f"bytes {value.hex()}"
        if kind == "dt":
            return DataType(value).name if value in set(DataType) else f"data type {value}"
        if kind == "t":
            text = self._file.constant_text(value)
            return text if text else tensor_head(value.desc)
        if kind == "td":
            return f"desc {self._tensor(value).text}"
        if kind in ("func", "na"):
            return f"{value.name}{{{', '.join(f'{k}: {self._text(value.attr[k])}' for k in sorted(value.attr))}}}"
        if kind == "g":
            return f"graph {value.name} of {len(value.op)} nodes"
        return str(value)


def _data_inputs(inputs: Sequence[str]) -> tuple[str, ...]:
    """Return the data inputs without absent ones at the end."""
    found = [text for text in inputs if not text.endswith(":-1")]
    while found and not found[-1]:
        found.pop()
    return tuple(found)


def _list_text(items: Iterable[str]) -> str:
    return f"[{', '.join(items)}]"


def _float_text(value: float) -> str:
    """Return the shortest text that gives the same 32 bits."""
    return str(np.float32(value))


def _ranges(attr: Mapping[str, pb.AttrDef]) -> list[Sequence[int]]:
    """Return the ranges of the dims; a ge_onnx dump has one attribute per dim."""
    if "shape_range" in attr:
        return [row.list_i for row in attr["shape_range"].list_list_int.list_list_i]
    rows = sum(name.startswith(_RANGE_ROW) for name in attr)
    return [attr[f"{_RANGE_ROW}{i}"].list.i for i in range(rows) if f"{_RANGE_ROW}{i}" in attr]


def _shape_text(dims: Sequence[int], ranges: Sequence[Sequence[int]]) -> str:
    texts = [str(dim) for dim in dims]
    if len(ranges) == len(texts):
        pairs = zip(texts, ranges, strict=True)
        texts = [text if not text.startswith("-") else f"{text}({'~'.join(map(str, row))})" for text, row in pairs]
    return f"[{','.join(texts)}]"


def _stored_size(value: pb.TensorDef, outputs: Sequence[pb.TensorDescriptor]) -> int:
    """Return the bytes of a constant: what its tensor takes, or what its descriptor says that it takes."""
    if value.data or value.desc.weight_size > 0:
        return max(len(value.data), value.desc.weight_size)
    desc = value.desc if value.HasField("desc") else (outputs[0] if outputs else value.desc)
    dtype = DATA_TYPE_BY_PROTO.get(desc.dtype, DataType.DT_UNDEFINED)
    elements = Shape(desc.shape.dim).elements
    if elements < 0 or not has_numpy_dtype(dtype):
        return 0
    return (elements * bit_width(dtype) + 7) // 8
