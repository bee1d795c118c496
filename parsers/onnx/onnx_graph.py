"""ONNX graphs as plain objects: nodes, names, attributes, nested graphs, and what these capture from outside."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from onnx import AttributeProto, FunctionProto, GraphProto, NodeProto, SparseTensorProto, TensorProto, ValueInfoProto

from ge.call_tree import MAX_NESTING
from ge.errors import ReportedError
from parsers.execution_order import ordered
from parsers.onnx.opset import normal_domain
from parsers.onnx.weights import type_name


@dataclass(eq=False)
class OnnxNode:
    """A node. ``inputs`` and ``outputs`` are tensor names, ``""`` for an absent one; ``graphs`` its nested graphs."""

    domain: str
    op_type: str
    overload: str
    name: str
    inputs: list[str]
    outputs: list[str]
    attributes: dict[str, AttributeProto]
    graphs: dict[str, OnnxGraph]
    proto: NodeProto

    def reads(self) -> list[str]:
        """Names of the tensors that the node needs, those that its nested graphs capture included."""
        names = [name for name in self.inputs if name]
        for graph in self.graphs.values():
            names.extend(graph.captures)
        return names


@dataclass(eq=False)
class OnnxValue:
    """A graph input or output. ``dims`` is ``None`` without a shape, ``-1`` stands for a dim that is not fixed."""

    name: str
    elem_type: int
    dims: list[int] | None
    kind: str
    """``tensor_type``, ``sequence_type``, ...; empty when no type is given."""

    def describe(self) -> str:
        """Return what stands in messages: element type and shape."""
        if self.kind == "tensor_type":
            return f"{type_name(self.elem_type)} {self.dims}"
        return f"the type {self.kind.removesuffix('_type')}" if self.kind else "no type"


@dataclass(eq=False)
class OnnxGraph:
    """A graph, or the body of a function. ``captures``: tensors that it reads from outside, sorted."""

    name: str
    nodes: list[OnnxNode]
    inputs: list[OnnxValue]
    outputs: list[OnnxValue]
    initializers: dict[str, TensorProto | SparseTensorProto] = field(default_factory=dict)
    captures: list[str] = field(default_factory=list)

    def defined(self) -> set[str]:
        """Names of the tensors that the graph itself makes or is given."""
        names = {value.name for value in self.inputs} | set(self.initializers)
        names.update(name for node in self.nodes for name in node.outputs)
        return names


def read_graph(graph: GraphProto, depth: int = 0) -> OnnxGraph:
    """Turn a GraphProto into objects, nested graphs included; ``depth`` counts the graphs around it.

    Raises E13005 for names that are no text and for graphs nested too deeply.
    """
    if depth > MAX_NESTING:
        raise ReportedError("E13005", file="model", reason=f"graphs in it are nested deeper than {MAX_NESTING} levels")
    found = OnnxGraph(
        text(graph.name),
        [read_node(node, depth) for node in graph.node],
        [_read_value(value) for value in graph.input],
        [_read_value(value) for value in graph.output],
        _read_initializers(graph),
    )
    found.captures = _captures(found)
    return found


def read_function(function: FunctionProto) -> OnnxGraph:
    """Turn the body of a function into a graph whose inputs and outputs are the formal ones, without types."""
    inputs, outputs = (
        [OnnxValue(text(name), 0, None, "") for name in names] for names in (function.input, function.output)
    )
    return OnnxGraph(text(function.name), [read_node(node) for node in function.node], inputs, outputs)


def read_node(node: NodeProto, depth: int = 0) -> OnnxNode:
    """Turn a NodeProto into an object."""
    attributes = {text(attribute.name): attribute for attribute in node.attribute}
    graphs = {name: read_graph(a.g, depth + 1) for name, a in attributes.items() if a.type == AttributeProto.GRAPH}
    return OnnxNode(
        normal_domain(text(node.domain)),
        text(node.op_type),
        text(node.overload),
        text(node.name),
        [text(name) for name in node.input],
        [text(name) for name in node.output],
        attributes,
        graphs,
        node,
    )


def text(value: str | bytes) -> str:
    """Return a protobuf string. One that is not UTF-8 arrives as bytes: E13005."""
    if isinstance(value, bytes):
        raise ReportedError("E13005", file="model", reason=f"the name {value[:60]!r} in it is not UTF-8 text")
    return value


def _read_value(value: ValueInfoProto) -> OnnxValue:
    kind = value.type.WhichOneof("value")
    if kind != "tensor_type":
        return OnnxValue(text(value.name), 0, None, kind or "")
    tensor = value.type.tensor_type
    dims = None
    if tensor.HasField("shape"):
        dims = [max(d.dim_value, -1) if d.HasField("dim_value") else -1 for d in tensor.shape.dim]
    return OnnxValue(text(value.name), tensor.elem_type, dims, kind)


def _read_initializers(graph: GraphProto) -> dict[str, TensorProto | SparseTensorProto]:
    found: dict[str, TensorProto | SparseTensorProto] = {}
    pairs: list[tuple[str, TensorProto | SparseTensorProto]] = [(text(t.name), t) for t in graph.initializer]
    pairs += [(text(s.values.name), s) for s in graph.sparse_initializer]
    for name, tensor in pairs:
        if name in found:
            raise ReportedError("E13025", reason=f"the initializer [{name}] is given twice")
        if not name:
            raise ReportedError("E13025", reason=f"an initializer of the graph [{text(graph.name)}] has no name")
        found[name] = tensor
    return found


def _captures(graph: OnnxGraph) -> list[str]:
    own = graph.defined()
    read = {name for node in graph.nodes for name in node.reads()}
    read.update(value.name for value in graph.outputs)
    return sorted(read - own)


def give_names(graph: OnnxGraph) -> None:
    """Name the unnamed nodes ``<OpType>_<n>``; n counts the unnamed nodes of all graphs, breadth first."""
    count = 0
    waiting = deque([graph])
    while waiting:
        current = waiting.popleft()
        for node in current.nodes:
            if not node.name:
                node.name = f"{node.op_type}_{count}"
                count += 1
            waiting.extend(node.graphs.values())


def execution_order(nodes: Sequence[OnnxNode]) -> list[OnnxNode]:
    """Return the nodes so that producers come first; ties keep the file's order. Raises E13025 for a cycle."""
    producer = {name: i for i, node in enumerate(nodes) for name in node.outputs if name}
    before = [{producer[name] for name in node.reads() if name in producer} for node in nodes]
    return [nodes[i] for i in ordered(before, [node.name for node in nodes])]
