"""Function bodies: model-local functions, and operators that ONNX itself defines by smaller ones. Both are inlined."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import onnx
from onnx import AttributeProto, FunctionProto, ModelProto, NodeProto, TypeProto

from ge.errors import ReportedError
from ge.graph import DataType, NodeOut, Shape
from ge.ops.sequence import element_of
from parsers.onnx.onnx_graph import OnnxGraph, OnnxNode, read_function, text
from parsers.onnx.opset import DEFAULT_DOMAIN, NEWEST_OPSET, Opsets, normal_domain
from parsers.onnx.weights import DATA_TYPES

_ELEM_TYPES = {dtype: elem_type for elem_type, dtype in DATA_TYPES.items()}


@dataclass(eq=False)
class FunctionBody:
    """A function: its body with formal inputs and outputs, its opsets, its attributes with their defaults."""

    name: str
    graph: OnnxGraph
    opsets: Opsets
    defaults: dict[str, AttributeProto] = field(default_factory=dict)

    @classmethod
    def read(cls, function: FunctionProto, versions: Mapping[str, int] | None = None) -> FunctionBody:
        """Read a FunctionProto. ``versions`` are those of domains that it does not import itself."""
        graph = read_function(function)
        _give_names(graph)
        opsets = Opsets(function.opset_import, f"function {graph.name}", versions)
        defaults = {text(attribute.name): attribute for attribute in function.attribute_proto}
        return cls(graph.name, graph, opsets, defaults)


def _give_names(graph: OnnxGraph) -> None:
    """Name the unnamed nodes of a function ``<OpType>_<place in its graph>``, those of nested graphs too."""
    for i, node in enumerate(graph.nodes):
        node.name = node.name or f"{node.op_type}_{i}"
        for nested in node.graphs.values():
            _give_names(nested)


class Functions:
    """The local functions of a model by (domain, name, overload)."""

    def __init__(self, model: ModelProto) -> None:
        self._bodies: dict[tuple[str, str, str], FunctionBody] = {}
        for function in model.functions:
            key = (normal_domain(text(function.domain)), text(function.name), text(function.overload))
            if key in self._bodies:
                raise ReportedError("E13009", opname=f"{key[0]}.{key[1]}")
            self._bodies[key] = FunctionBody.read(function)

    def find(self, node: OnnxNode) -> FunctionBody | None:
        """Return the local function that ``node`` calls, if it calls one."""
        return self._bodies.get((node.domain, node.op_type, node.overload))


def schema_body(schema: Any, node: NodeProto, inputs: list[NodeOut | None], version: int) -> FunctionBody | None:
    """Return the function body by which ONNX defines an operator; ``None`` when there is none.

    It may depend on the input types and attributes. ``schema`` is an ``OpSchema`` (its type stubs lack functions),
    ``version`` that of the operator's domain.
    """
    if not schema.has_context_dependent_function:
        return _fixed_body(schema, version)
    types = [_type_of(source).SerializeToString() for source in inputs]
    versions = [v for v in schema.context_dependent_function_opset_versions if v <= version]
    content = schema.get_context_dependent_function_with_opset_version(
        max(versions, default=schema.since_version), node.SerializeToString(), types
    )
    return _read(schema, content, version) if content else None


def operators_of_body(schema: Any, version: int) -> list[tuple[str, str, int]] | None:
    """Return (domain, type, version) of the operators by which ONNX defines one; ``None`` when it does not.

    Empty where they depend on the node.
    """
    if schema.has_context_dependent_function:
        return []
    body = _fixed_body(schema, version)
    if body is None:
        return None
    nodes = list(body.graph.nodes)
    for node in nodes:  # grows while it is walked
        for graph in node.graphs.values():
            nodes.extend(graph.nodes)
    return [(node.domain, node.op_type, body.opsets.version(node.domain, node.op_type)) for node in nodes]


def _fixed_body(schema: Any, version: int) -> FunctionBody | None:
    if not schema.has_function:
        return None
    versions = [v for v in schema.function_opset_versions if v <= version]
    content = schema.get_function_with_opset_version(max(versions, default=schema.since_version))
    return _read(schema, content, version) if content else None


def _read(schema: Any, content: bytes, version: int) -> FunctionBody:
    found = FunctionBody.read(
        FunctionProto.FromString(content), {DEFAULT_DOMAIN: NEWEST_OPSET, normal_domain(schema.domain): version}
    )
    for name, attribute in schema.attributes.items():
        if attribute.default_value.type != AttributeProto.UNDEFINED:
            found.defaults[name] = attribute.default_value
    return found


def _type_of(source: NodeOut | None) -> TypeProto:
    if source is None:
        return TypeProto()
    if source.desc.data_type is DataType.DT_RESOURCE:
        return onnx.helper.make_sequence_type_proto(_tensor_type(*element_of(source)))
    return _tensor_type(source.desc.origin_shape, source.desc.data_type)


def _tensor_type(shape: Shape, dtype: DataType) -> TypeProto:
    elem_type = _ELEM_TYPES.get(dtype, 0)
    dims = None if shape.is_unknown_rank() else [None if d < 0 else d for d in shape]
    return onnx.helper.make_tensor_type_proto(elem_type, dims)
