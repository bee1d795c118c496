"""Graphs <-> ``ModelDef``.

The root graph comes first, all bodies follow in the order in which the root owns them; ``OpDef.subgraph_name`` links
them. An input is ``producer:index``, the empty string where an optional input is absent; control edges follow the data
inputs as ``producer:-1``. ``OpDef.id`` counts the nodes of all graphs in that order.

Attributes that GE derives from the operator's signature (``_input_name_key`` and the like) are written for operators
that are registered and dropped on reading: they can be derived again.
"""

from __future__ import annotations

from collections.abc import Sequence

from ge.graph.graph import Graph
from ge.graph.node import Node, NodeOut
from ge.graph.tensor import Tensor
from ge.graph.tensor_desc import TensorDesc
from ge.ops import lookup
from ge.ops.signature import Arity, Port, Signature
from ge.proto import ge_ir_pb2 as pb
from ge.proto.attr_def import (
    InvalidGraphDef,
    Place,
    read_attrs,
    read_desc,
    read_tensor,
    write_attr,
    write_desc,
    write_tensor,
)
from ge.proto.tensor_bytes import Array
from ge.tensor_memory import LOAD_TIME_CONST

MODEL_VERSION = 2
"""``ModelDef.version``."""

_BODY_NAMES = "_subgraph_ir_names"
_OUTPUT_NAMES = "_output_names"
DERIVED_ATTRS = frozenset(
    {
        "_input_name_key",
        "_input_name_value",
        "_output_name_key",
        "_output_name_value",
        "_opt_input",
        "_ir_attr_names",
        "_ir_inputs_key",
        "_ir_inputs_value",
        "_ir_outputs_key",
        "_ir_outputs_value",
        _BODY_NAMES,
    }
)
"""Attributes of a node that follow from its signature, or are fields of the node itself."""


# -- writing -------------------------------------------------------------------------------------------------------
def model_def(graph: Graph, place: Place | None = None) -> pb.ModelDef:
    """Return ``graph`` and its bodies as a model.

    ``place`` gives each constant its offset in the weights pool; without it all bytes stay in the message.
    Serialise the result with ``SerializeToString(deterministic=True)`` to get equal bytes for equal graphs.
    """
    model = pb.ModelDef(name=graph.name, version=MODEL_VERSION)
    writer = _Writer(place)
    for part in graph.all_graphs():
        writer.write(part, model.graph.add())
    return model


class _Writer:
    """Writes the graphs of one model; repeated descriptors and signatures are built once and copied."""

    def __init__(self, place: Place | None) -> None:
        self._place = place
        self._next_id = 0
        self._descs: dict[tuple[object, ...], pb.TensorDescriptor] = {}
        self._signatures: dict[tuple[str, int, int], pb.OpDef] = {}

    def write(self, graph: Graph, target: pb.GraphDef) -> None:
        target.name = graph.name
        target.input.extend(f"{node.name}:0" for node in graph.data_nodes())
        target.output.extend(f"{out.node.name}:{out.index}" for out in graph.outputs)
        for name, value in graph.attrs.items():
            write_attr(target.attr[name], value)
        if graph.output_names:
            write_attr(target.attr[_OUTPUT_NAMES], graph.output_names, "S")
        for node in graph:
            self._write_node(node, target.op.add())

    def _write_node(self, node: Node, op: pb.OpDef) -> None:
        op.name, op.type, op.id = node.name, node.type, self._next_id
        self._next_id += 1
        is_brief = _is_for_loading(node)
        for source, desc in zip(node.inputs, node.input_descs, strict=True):
            op.is_input_const.append(source is not None and source.node.type == "Const")
            if source is None:
                op.input.append("")
                op.input_desc.add()
            else:
                op.input.append(f"{source.node.name}:{source.index}")
                op.input_desc.append(self._desc(source.desc if desc is None else desc, is_brief=is_brief))
        op.input.extend(f"{before.name}:-1" for before in node.control_inputs)
        for desc in node.output_descs:
            op.output_desc.append(self._desc(desc, is_brief=is_brief))
        if node.type == "NetOutput":
            op.src_name.extend(source.node.name for source in node.inputs if source is not None)
            op.src_index.extend(source.index for source in node.inputs if source is not None)
        self._write_attrs(node, op)

    def _desc(self, desc: TensorDesc, *, is_brief: bool) -> pb.TensorDescriptor:
        if desc.attrs:
            fresh = pb.TensorDescriptor()
            write_desc(fresh, desc, is_brief=is_brief)
            return fresh
        key = (
            is_brief,
            desc.shape,
            desc.format,
            desc.sub_format,
            desc.data_type,
            desc.origin_shape,
            desc.origin_format,
            tuple(desc.shape_range),
            desc.name,
        )
        known = self._descs.get(key)
        if known is None:
            known = self._descs[key] = pb.TensorDescriptor()
            write_desc(known, desc, is_brief=is_brief)
        return known

    def _write_attrs(self, node: Node, op: pb.OpDef) -> None:
        definition = lookup(node.type)
        kinds = {} if definition is None else definition.signature.attrs
        for name, value in node.attrs.items():
            try:
                if isinstance(value, Tensor):
                    write_tensor(op.attr[name].t, value, self._place if node.type == "Const" else None)
                else:
                    write_attr(op.attr[name], value, kinds[name].kind if name in kinds else "")
            except (TypeError, ValueError) as fault:
                raise type(fault)(f"node {node.name} ({node.type}), attribute {name}: {fault}") from fault
        if node.subgraphs:
            op.subgraph_name.extend(name for _, name in node.subgraphs)
            write_attr(op.attr[_BODY_NAMES], [formal for formal, _ in node.subgraphs], "S")
        if definition is not None:
            key = (node.type, len(node.inputs), len(node.output_descs))
            if key not in self._signatures:
                self._signatures[key] = _signature_attrs(definition.signature, *key[1:])
            op.MergeFrom(self._signatures[key])


def _signature_attrs(signature: Signature, n_inputs: int, n_outputs: int) -> pb.OpDef:
    """Return a message with the attributes that follow from signature and port counts alone."""
    input_names = _slot_names(signature.inputs, n_inputs)
    output_names = _slot_names(signature.outputs, n_outputs)
    values: dict[str, list[str] | list[int]] = {
        "_input_name_key": input_names,
        "_input_name_value": list(range(len(input_names))),
        "_output_name_key": output_names,
        "_output_name_value": list(range(len(output_names))),
        "_opt_input": [p.name for p in signature.inputs if p.arity is Arity.OPTIONAL],
        "_ir_attr_names": list(signature.attrs),
        "_ir_inputs_key": [p.name for p in signature.inputs],
        "_ir_inputs_value": [p.arity.value for p in signature.inputs],
        "_ir_outputs_key": [p.name for p in signature.outputs],
        "_ir_outputs_value": [int(p.arity is Arity.DYNAMIC) for p in signature.outputs],
    }
    derived = pb.OpDef()
    for name, value in values.items():
        if value:
            write_attr(derived.attr[name], value)
    return derived


def _slot_names(ports: Sequence[Port], count: int) -> list[str]:
    """Name the flat slots; those of a dynamic port are numbered. Slots beyond the signature get no name."""
    spare = count - sum(p.arity is not Arity.DYNAMIC for p in ports)
    names: list[str] = []
    for port in ports:
        if port.arity is Arity.DYNAMIC:
            names += [f"{port.name}{i}" for i in range(spare)]
        else:
            names.append(port.name)
    return names[:count]


# -- reading -------------------------------------------------------------------------------------------------------
def graph_of(model: pb.ModelDef, pool: Array | None = None) -> Graph:
    """Return the root graph of ``model`` with all its bodies.

    ``pool`` is the weights partition as a uint8 array; constants placed there become views of it. Raises
    :class:`InvalidGraphDef` for anything that is not a legal set of graphs: unknown producers, names used twice, ports
    that do not exist, bytes outside the pool. Cycles and the operators' own rules are not looked at.
    """
    if not model.graph:
        raise InvalidGraphDef("the model holds no graph")
    root = _graph(model.graph[0], pool)
    for definition in model.graph[1:]:
        body = _graph(definition, pool)
        try:
            root.add_subgraph(body)
        except ValueError as fault:
            raise InvalidGraphDef(str(fault)) from None
    for part in root.all_graphs():
        for node in part:
            for _, name in node.subgraphs:
                if name not in root.subgraphs:
                    raise InvalidGraphDef(f"graph {part.name}, node {node.name}: subgraph {name!r} does not exist")
    return root


def _graph(stored: pb.GraphDef, pool: Array | None) -> Graph:
    graph = Graph(stored.name)
    where = f"graph {stored.name}"
    graph.attrs = read_attrs(stored.attr, where)
    names = graph.attrs.pop(_OUTPUT_NAMES, [])
    if not isinstance(names, list) or not all(isinstance(n, str) for n in names):
        raise InvalidGraphDef(f"{where}, attribute {_OUTPUT_NAMES} must be a list of names")
    graph.output_names = names
    reader = _NodeReader(graph, pool)
    nodes = [reader.node(op) for op in stored.op]
    for node, op in zip(nodes, stored.op, strict=True):
        reader.connect(node, op)
    if graph.net_output() is None:
        graph.outputs = [reader.output(text, f"{where}, output") for text in stored.output]
    if len(names) not in (0, len(graph.outputs)):
        raise InvalidGraphDef(f"{where} has {len(graph.outputs)} outputs but {len(names)} names for them")
    return graph


class _NodeReader:
    """Reads the nodes of one graph; equal descriptors are decoded once and copied."""

    def __init__(self, graph: Graph, pool: Array | None) -> None:
        self._graph = graph
        self._pool = pool
        self._descs: dict[bytes, TensorDesc] = {}

    def node(self, op: pb.OpDef) -> Node:
        """Add the node without its edges."""
        where = f"graph {self._graph.name}, node {op.name or '(without name)'}"
        if not op.name or not op.type:
            raise InvalidGraphDef(f"{where}: a node has a name and a type")
        if op.name in self._graph:
            raise InvalidGraphDef(f"{where}: the name is used twice")
        if op.type == "NetOutput" and self._graph.net_output() is not None:
            raise InvalidGraphDef(f"{where}: a graph has one NetOutput")
        op_type = "Const" if op.type == "Constant" else op.type
        descs = [self._desc(d, f"{where}, output {i}") for i, d in enumerate(op.output_desc)]
        node = self._graph.add_node(op_type, op.name, output_descs=descs)
        skip = DERIVED_ATTRS | {"value"} if op_type == "Const" else DERIVED_ATTRS
        node.attrs = read_attrs(op.attr, where, skip)
        if op_type == "Const":
            if "value" not in op.attr or op.attr["value"].WhichOneof("value") != "t":
                raise InvalidGraphDef(f"{where}: a constant has an attribute value that holds a tensor")
            node.attrs["value"] = read_tensor(op.attr["value"].t, f"{where}, attribute value", self._pool)
        node.subgraphs = _bodies(op, where)
        return node

    def connect(self, node: Node, op: pb.OpDef) -> None:
        """Add the edges that enter ``node``."""
        where = f"graph {self._graph.name}, node {node.name}"
        controls = 0
        for text in op.input:
            if text.endswith(":-1"):
                controls += 1
                self._graph.add_control(self._producer(text[:-3], where), node)
                continue
            if controls:
                raise InvalidGraphDef(f"{where}: data input {text!r} follows a control input")
            slot = self._graph.append_input(node, self.output(text, where) if text else None)
            if text and slot < len(op.input_desc):
                node.input_descs[slot] = self._desc(op.input_desc[slot], f"{where}, input {slot}")

    def output(self, text: str, where: str) -> NodeOut:
        """Return the edge source ``producer:index``."""
        name, colon, digits = text.rpartition(":")
        if not colon or not (digits.isascii() and digits.isdigit()):
            raise InvalidGraphDef(f"{where}: {text!r} is not of the form producer:index")
        producer = self._producer(name, where)
        if len(digits) > 9 or int(digits) >= len(producer.output_descs):
            raise InvalidGraphDef(f"{where} reads {text!r}, but {name} has {len(producer.output_descs)} outputs")
        return producer.output(int(digits))

    def _producer(self, name: str, where: str) -> Node:
        found = self._graph.find(name)
        if found is None:
            raise InvalidGraphDef(f"{where} reads {name!r}, which is not a node of the graph")
        return found

    def _desc(self, stored: pb.TensorDescriptor, where: str) -> TensorDesc:
        key = stored.SerializeToString(deterministic=True)
        known = self._descs.get(key)
        if known is None:
            known = self._descs[key] = read_desc(stored, where)
        return known.copy()


def _is_for_loading(node: Node) -> bool:
    """Tell whether a node only serves weights that are computed at load: a model may have thousands of them."""
    if node.type != "Const":
        return bool(node.attrs.get(LOAD_TIME_CONST))
    readers = node.consumers(0)
    return bool(readers) and all(reader.node.attrs.get(LOAD_TIME_CONST) for reader in readers)


def _bodies(op: pb.OpDef, where: str) -> list[tuple[str, str]]:
    """Pair the bodies with their names in the signature; files of other writers may lack those names."""
    if not op.subgraph_name:
        return []
    formal = read_attrs({_BODY_NAMES: op.attr[_BODY_NAMES]}, where)[_BODY_NAMES] if _BODY_NAMES in op.attr else None
    if formal is None:
        definition = lookup(op.type)
        ports = () if definition is None else definition.signature.subgraphs
        formal = _slot_names(ports, len(op.subgraph_name))
        formal += [f"subgraph{i}" for i in range(len(formal), len(op.subgraph_name))]
    if not isinstance(formal, list) or len(formal) != len(op.subgraph_name) or not all(type(f) is str for f in formal):
        raise InvalidGraphDef(f"{where}, attribute {_BODY_NAMES} must hold {len(op.subgraph_name)} names")
    return list(zip(formal, op.subgraph_name, strict=True))
