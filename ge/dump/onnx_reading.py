"""``ge_onnx_*.pbtxt`` -> ``ModelDef``, as far as such a file tells.

What an ONNX attribute cannot say (see ``onnx_text``) stays unknown, and so do the bodies that a node calls; booleans
come back as numbers, nested lists as one list per row. Detail 3 has no descriptors, detail 2 no texts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from typing import Any

import onnx

from ge.dump import onnx_text
from ge.dump.protobuf_text import parse_message
from ge.dump.settings import Detail
from ge.proto import ge_ir_pb2 as pb
from ge.proto.attr_def import InvalidGraphDef

MAX_TENSORS = 100_000
"""Most tensors on one side of a node that is read."""

_DESC = re.compile(r"(input|output)_desc_([^:]+):([0-9]{1,9})\Z")
_DESC_AS_JSON = re.compile(r"(input|output)_desc_([0-9]{1,9})\Z")
_TENSOR_DESC = re.compile(r"(.+)_desc_dtype\Z", re.S)

Values = dict[str, Any]
"""Attributes by name: int, float, bytes, or a list of one of these."""


def read_onnx_text(text: str) -> tuple[pb.ModelDef, Detail]:
    """Return the model of a dump and the detail that it was written with.

    Raises :class:`ge.dump.protobuf_text.TextFormError` for a text that is not the text form of an ONNX model, and
    :class:`InvalidGraphDef` for one that is not such a dump.
    """
    stored = parse_message(text, onnx.ModelProto)
    if not stored.HasField("graph"):
        raise InvalidGraphDef("the model holds no graph")
    return model_of(stored), detail_of(stored)


def detail_of(stored: onnx.ModelProto) -> Detail:
    """Tell the detail from what is there: attributes at all, texts that are not of descriptors."""
    nodes = [node for node in _all_nodes(stored) if node.op_type != onnx_text.SUBGRAPH_TYPE]
    if not any(node.attribute for node in nodes):
        return Detail.LINKS_ONLY
    if any(attribute.type == onnx.AttributeProto.STRINGS for node in nodes for attribute in node.attribute):
        return Detail.FULL
    return Detail.WITHOUT_WEIGHTS


def _all_nodes(stored: onnx.ModelProto) -> Iterable[onnx.NodeProto]:
    for node in stored.graph.node:
        yield node
        if node.op_type == onnx_text.SUBGRAPH_TYPE:
            for attribute in node.attribute:
                yield from attribute.g.node


def model_of(stored: onnx.ModelProto) -> pb.ModelDef:
    """Return the model that a dump shows. Raises :class:`InvalidGraphDef`."""
    model = pb.ModelDef(version=stored.model_version & 0xFFFFFFFF)
    root = model.graph.add()
    bodies: list[onnx.GraphProto] = []
    _read_graph(stored.graph, root, bodies)
    for body in bodies:
        _read_graph(body, model.graph.add(), [])
    return model


def _read_graph(stored: onnx.GraphProto, graph: pb.GraphDef, bodies: list[onnx.GraphProto]) -> None:
    graph.name = stored.name
    graph.input.extend(f"{value.name}:0" for value in stored.input)
    for node in stored.node:
        if node.op_type == onnx_text.SUBGRAPH_TYPE:
            bodies += [attribute.g for attribute in node.attribute if attribute.name == "graph"]
        elif node.op_type.startswith(onnx_text.TYPE_PREFIX):
            _read_node(node, graph.op.add(), f"graph {graph.name}, node {node.name}")
        else:
            raise InvalidGraphDef(
                f"graph {graph.name}, node {node.name}: types of a dump begin with 'ge:', this is {node.op_type!r}"
            )
    if not any(op.type == "NetOutput" for op in graph.op):
        graph.output.extend(f"{value.name}:0" for value in stored.output)


def _read_node(node: onnx.NodeProto, op: pb.OpDef, where: str) -> None:
    op.name, op.type = node.name, node.op_type.removeprefix(onnx_text.TYPE_PREFIX)
    op.input.extend(node.input)
    values = {a.name: _KINDS[a.type](a) for a in node.attribute if a.type in _KINDS}
    try:
        _read_fields(values, op)
        for side, descs in (("input", op.input_desc), ("output", op.output_desc)):
            _read_descs(_descs_of(side, values, where), descs)
        for name in [match[1] for match in map(_TENSOR_DESC.match, values) if match is not None]:
            _read_tensor(name, values, op.attr[name].t)
        for name, value in values.items():
            _write_value(op.attr[name], value)
    except (AttributeError, TypeError, ValueError, RecursionError) as fault:
        raise InvalidGraphDef(f"{where}: its attributes are not those of a dump ({fault})") from None


class _Strings(list[bytes]):
    """Says of an empty list that it is one of strings."""


class _Floats(list[float]):
    """Says of an empty list that it is one of floats."""


_KINDS: dict[int, Callable[[onnx.AttributeProto], Any]] = {
    onnx.AttributeProto.INT: lambda a: a.i,
    onnx.AttributeProto.FLOAT: lambda a: a.f,
    onnx.AttributeProto.STRING: lambda a: a.s,
    onnx.AttributeProto.INTS: lambda a: list(a.ints),
    onnx.AttributeProto.FLOATS: lambda a: _Floats(a.floats),
    onnx.AttributeProto.STRINGS: lambda a: _Strings(a.strings),
}


def _read_fields(values: Values, op: pb.OpDef) -> None:
    """Take what stands in fields of its own out of ``values``."""
    op.id, op.stream_id = values.pop("id", 0), values.pop("stream_id", 0)
    for name in onnx_text.OP_NAMES:
        getattr(op, name).extend(text.decode(errors="replace") for text in values.pop(name, ()))
    for name in onnx_text.OP_INTS:
        getattr(op, name).extend(values.pop(name, ()))
    op.is_input_const.extend(bool(flag) for flag in values.pop("is_input_const", ()))
    for name in ("input_desc_nums", "output_desc_nums"):
        values.pop(name, None)


def _descs_of(side: str, values: Values, where: str) -> list[Values]:
    """Take the descriptors of one side out of ``values``: their fields by name."""
    found: dict[int, Values] = {}
    for name in list(values):
        match, as_json = _DESC.match(name), _DESC_AS_JSON.match(name)
        if match is not None and match[1] == side:
            found.setdefault(int(match[3]), {})[match[2]] = values.pop(name)
        elif as_json is not None and as_json[1] == side and isinstance(values[name], bytes):
            found[int(as_json[2])] = _from_json(values.pop(name))
    if found and max(found) >= MAX_TENSORS:
        raise InvalidGraphDef(f"{where} has a tensor number {max(found)}; at most {MAX_TENSORS} are read")
    return [found.get(index, {}) for index in range(max(found, default=-1) + 1)]


def _from_json(text: bytes) -> Values:
    fields = json.loads(text)
    if not isinstance(fields, dict):
        raise TypeError("a descriptor is not a JSON object")
    return {name: _encoded(value) for name, value in fields.items()}


def _encoded(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode(errors="replace")
    if isinstance(value, list) and value and all(isinstance(item, str) for item in value):
        return _Strings(item.encode(errors="replace") for item in value)
    if isinstance(value, list) and any(isinstance(item, float) for item in value):
        return _Floats(value)
    return value


def _read_descs(found: list[Values], descs: Any) -> None:
    for fields in found:
        desc = descs.add()
        desc.dtype = _data_type(fields.pop("dtype", b""))
        desc.shape.dim.extend(fields.pop("shape", ()))
        desc.layout = fields.pop("layout", b"").decode(errors="replace")
        desc.device_type = fields.pop("device_type", b"").decode(errors="replace")
        desc.cmps_tab = fields.pop("cmps_tab", b"").decode(errors="replace")
        _read_origin(fields, desc)
        for name in onnx_text.DESC_NUMBERS:
            number = fields.pop(name, 0)
            setattr(desc, name, bool(number) if isinstance(getattr(desc, name), bool) else number)
        for name, value in fields.items():
            _write_value(desc.attr[name.removeprefix(onnx_text.DESC_ATTR_PREFIX)], value)


def _read_origin(fields: Values, desc: pb.TensorDescriptor) -> None:
    data_type, layout = fields.pop("origin_dtype", b"DT_UNDEFINED"), fields.pop("origin_layout", None)
    if data_type != b"DT_UNDEFINED":
        desc.attr["origin_data_type"].s = data_type
    if layout is not None:
        desc.attr["origin_format"].s = layout
    shape = fields.pop("origin_shape", None)
    if shape is not None:
        _write_value(desc.attr["origin_shape"], shape)


def _data_type(name: bytes) -> Any:
    known = pb.DataType.DESCRIPTOR.values_by_name.get(name.decode(errors="replace"))
    if known is not None:
        return known.number
    return int(name) if name.isdigit() else pb.DT_UNDEFINED


def _read_tensor(name: str, values: Values, tensor: pb.TensorDef) -> None:
    tensor.desc.dtype = _data_type(values.pop(f"{name}_desc_dtype"))
    tensor.desc.shape.dim.extend(values.pop(f"{name}_desc_shape", ()))
    tensor.desc.layout = values.pop(f"{name}_desc_layout", b"").decode(errors="replace")
    tensor.desc.device_type = values.pop(f"{name}_desc_device_type", b"").decode(errors="replace")
    tensor.data = values.pop(f"{name}_data", b"")
    tensor.desc.weight_size = len(tensor.data)


def _write_value(target: pb.AttrDef, value: Any) -> None:
    stored = target.list
    if isinstance(value, bool | int):
        target.i = int(value)
    elif isinstance(value, float):
        target.f = value
    elif isinstance(value, bytes):
        target.s = value
    elif isinstance(value, _Strings):
        stored.s.extend(value)
        stored.val_type = stored.VT_LIST_STRING
    elif isinstance(value, _Floats):
        stored.f.extend(value)
        stored.val_type = stored.VT_LIST_FLOAT
    elif isinstance(value, list):
        stored.i.extend(value)
        stored.val_type = stored.VT_LIST_INT
