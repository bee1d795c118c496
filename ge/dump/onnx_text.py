"""``ge_onnx_*.pbtxt``: the graph in the shape of an ONNX model, which Netron opens.

Node types carry the prefix ``ge:``, so that no reader applies ONNX rules to them. Descriptors become attributes:
``input_desc_shape:0``, ``output_desc_layout:1`` and so on; a side of 20 or more tensors is one JSON text per tensor.
A tensor ``value`` becomes ``value_desc_shape`` and so on, and ``value_data``; nested lists ``name_0``, ``name_1``, ...
What ONNX attributes cannot say (graphs, functions, data types, bytes, lists of tensors, nested floats) is left out.

Detail 2 leaves out texts and tensor bytes, detail 3 all attributes. ``ge/dump/onnx_reading.py`` is the way back.
"""

from __future__ import annotations

import json
from typing import Any

import onnx
from google.protobuf import text_format

from ge.dump.settings import Detail
from ge.proto import ge_ir_pb2 as pb

MANY = 20
"""A side of a node with so many tensors is written as JSON."""
TYPE_PREFIX = "ge:"
SUBGRAPH_TYPE = "subgraph"
DESC_ATTR_PREFIX = "attr_"
DESC_NUMBERS = (
    "size",
    "weight_size",
    "reuse_input",
    "output_tensor",
    "input_tensor",
    "real_dim_cnt",
    "data_offset",
    "cmps_size",
    "cmps_tab_offset",
)
OP_NAMES = ("input_name", "src_name", "dst_name")
OP_INTS = ("src_index", "dst_index", "input_i", "output_i", "workspace", "workspace_bytes")

_ELEMENT_TYPE: dict[int, int] = {
    pb.DT_FLOAT: onnx.TensorProto.FLOAT,
    pb.DT_FLOAT16: onnx.TensorProto.FLOAT16,
    pb.DT_DOUBLE: onnx.TensorProto.DOUBLE,
    pb.DT_INT8: onnx.TensorProto.INT8,
    pb.DT_INT16: onnx.TensorProto.INT16,
    pb.DT_INT32: onnx.TensorProto.INT32,
    pb.DT_INT64: onnx.TensorProto.INT64,
    pb.DT_UINT8: onnx.TensorProto.UINT8,
    pb.DT_UINT16: onnx.TensorProto.UINT16,
    pb.DT_UINT32: onnx.TensorProto.UINT32,
    pb.DT_UINT64: onnx.TensorProto.UINT64,
    pb.DT_BOOL: onnx.TensorProto.BOOL,
    pb.DT_FLOAT8_E5M2: onnx.TensorProto.FLOAT8E5M2,
    pb.DT_FLOAT8_E4M3FN: onnx.TensorProto.FLOAT8E4M3FN,
}


def onnx_text(model: pb.ModelDef, detail: Detail) -> str:
    """Return the dump of a model message."""
    return text_format.MessageToString(onnx_model(model, detail))


def onnx_model(model: pb.ModelDef, detail: Detail) -> onnx.ModelProto:
    """Return ``model`` in ONNX shape; its bodies follow the root's nodes as ``subgraph`` nodes."""
    result = onnx.ModelProto(ir_version=6, producer_name="GE", model_version=model.version)
    root, *bodies = model.graph
    _write_graph(root, result.graph, detail)
    del result.graph.input[:]
    for body in bodies:
        node = result.graph.node.add(name=body.name, op_type=SUBGRAPH_TYPE)
        attribute = node.attribute.add(name="graph", type=onnx.AttributeProto.GRAPH)
        _write_graph(body, attribute.g, detail)
    return result


def _write_graph(stored: pb.GraphDef, target: onnx.GraphProto, detail: Detail) -> None:
    target.name = stored.name
    read: dict[str, None] = {}
    for op in stored.op:
        read.update(dict.fromkeys(op.input))
    for op in stored.op:
        _write_node(op, target.node.add(), read, detail)
        if op.type == "NetOutput":
            _write_value(op.name, op.input_desc, target.output.add())
        elif op.type == "Data":
            _write_value(op.name, op.output_desc, target.input.add())
    if not target.output:
        ops = {op.name: op for op in stored.op}
        for name in dict.fromkeys(source.rpartition(":")[0] for source in stored.output):
            if name in ops:
                _write_value(name, ops[name].output_desc, target.output.add())


def _write_value(name: str, descs: Any, value: onnx.ValueInfoProto) -> None:
    """Describe a node; the dims of several tensors run together, as in GE."""
    value.name = name
    tensor = value.type.tensor_type
    if descs:
        tensor.elem_type = _ELEMENT_TYPE.get(descs[0].dtype, onnx.TensorProto.UNDEFINED)
    tensor.shape.SetInParent()
    for desc in descs:
        for dim in desc.shape.dim:
            tensor.shape.dim.add(dim_value=dim)


def _write_node(op: pb.OpDef, node: onnx.NodeProto, read: dict[str, None], detail: Detail) -> None:
    node.name = op.name
    node.op_type = f"{TYPE_PREFIX}{op.type}"
    node.input.extend(op.input)
    node.output.extend(f"{op.name}:{i}" for i in range(len(op.output_desc)) if f"{op.name}:{i}" in read)
    if f"{op.name}:-1" in read:
        node.output.append(f"{op.name}:-1")
    if detail is Detail.LINKS_ONLY:
        return
    values: dict[str, Any] = {}
    for name, attr in op.attr.items():
        _collect_attr(name, attr, values, detail)
    _collect_fields(op, values)
    if detail is not Detail.FULL:
        values = {name: value for name, value in values.items() if not isinstance(value, _OperatorText | _Strings)}
    for side, descs in (("input", op.input_desc), ("output", op.output_desc)):
        _collect_descs(side, descs, values)
    for name in sorted(values):
        _write_attribute(name, values[name], node)


class _OperatorText(str):
    """A STRING attribute that is not of a descriptor."""


class _Ints(list[int]):
    """An INTS attribute, also when empty."""


class _Floats(list[float]):
    """A FLOATS attribute, also when empty."""


class _Strings(list[str]):
    """A STRINGS attribute, also when empty."""


def _collect_fields(op: pb.OpDef, values: dict[str, Any]) -> None:
    values["id"], values["stream_id"] = op.id, op.stream_id
    for name in OP_NAMES:
        values[name] = _Strings(getattr(op, name))
    for name in OP_INTS:
        values[name] = _Ints(getattr(op, name))
    values["is_input_const"] = _Ints(int(flag) for flag in op.is_input_const)
    values["input_desc_nums"] = len(op.input_desc)
    values["output_desc_nums"] = len(op.output_desc)


def _collect_descs(side: str, descs: Any, values: dict[str, Any]) -> None:
    for index, desc in enumerate(descs):
        fields = _desc_fields(desc)
        if len(descs) >= MANY:
            values[f"{side}_desc_{index}"] = json.dumps(fields)
        else:
            values.update({f"{side}_desc_{name}:{index}": value for name, value in fields.items()})


def _desc_fields(desc: pb.TensorDescriptor) -> dict[str, Any]:
    attr = desc.attr
    fields: dict[str, Any] = {
        "dtype": _type_name(desc.dtype),
        "origin_dtype": _text(attr["origin_data_type"].s) if "origin_data_type" in attr else "DT_UNDEFINED",
        "shape": _Ints(desc.shape.dim),
        "origin_shape": _Ints(attr["origin_shape"].list.i if "origin_shape" in attr else ()),
        "layout": desc.layout,
        "origin_layout": _text(attr["origin_format"].s) if "origin_format" in attr else "ND",
        "device_type": desc.device_type,
        "cmps_tab": desc.cmps_tab,
    }
    for name in DESC_NUMBERS:
        fields[name] = int(getattr(desc, name))
    for name in sorted(attr):
        if name not in ("origin_shape", "origin_format", "origin_data_type"):
            _collect_attr(f"{DESC_ATTR_PREFIX}{name}", attr[name], fields, Detail.WITHOUT_WEIGHTS)
    return fields


def _collect_attr(name: str, attr: pb.AttrDef, values: dict[str, Any], detail: Detail) -> None:
    kind = attr.WhichOneof("value")
    if kind == "s":
        values[name] = _OperatorText(_text(attr.s))
    elif kind in ("i", "f"):
        values[name] = getattr(attr, kind)
    elif kind == "b":
        values[name] = int(attr.b)
    elif kind == "t":
        desc = attr.t.desc
        values[f"{name}_desc_dtype"] = _type_name(desc.dtype)
        values[f"{name}_desc_shape"] = _Ints(desc.shape.dim)
        values[f"{name}_desc_layout"] = desc.layout
        values[f"{name}_desc_device_type"] = desc.device_type
        if detail is Detail.FULL:
            values[f"{name}_data"] = attr.t.data
    elif kind == "list_list_int":
        for index, row in enumerate(attr.list_list_int.list_list_i):
            values[f"{name}_{index}"] = _Ints(row.list_i)
    elif kind == "list":
        _collect_list(name, attr.list, values)


def _collect_list(name: str, stored: pb.AttrDef.ListValue, values: dict[str, Any]) -> None:
    kind = stored.val_type
    if kind == stored.VT_LIST_STRING:
        values[name] = _Strings(map(_text, stored.s))
    elif kind == stored.VT_LIST_FLOAT:
        values[name] = _Floats(stored.f)
    elif kind == stored.VT_LIST_BOOL:
        values[name] = _Ints(map(int, stored.b))
    elif kind == stored.VT_LIST_INT:
        values[name] = _Ints(stored.i)


def _type_name(number: int) -> str:
    """Return the name of an element type; files of newer writers may have numbers without one."""
    known = pb.DataType.DESCRIPTOR.values_by_number.get(number)
    return str(number) if known is None else known.name


def _text(data: bytes) -> str:
    return data.decode(errors="replace")


def _write_attribute(name: str, value: Any, node: onnx.NodeProto) -> None:
    attribute = node.attribute.add(name=name)
    kinds = onnx.AttributeProto
    if isinstance(value, _Ints):
        attribute.type = kinds.INTS
        attribute.ints.extend(value)
    elif isinstance(value, _Floats):
        attribute.type = kinds.FLOATS
        attribute.floats.extend(value)
    elif isinstance(value, _Strings):
        attribute.type = kinds.STRINGS
        attribute.strings.extend(text.encode() for text in value)
    elif isinstance(value, float):
        attribute.type = kinds.FLOAT
        attribute.f = value
    elif isinstance(value, int):
        attribute.type = kinds.INT
        attribute.i = value
    else:
        attribute.type = kinds.STRING
        attribute.s = value if isinstance(value, bytes) else value.encode()
