"""Function bodies: model-local functions, and operators that ONNX itself defines by smaller ones. Both are inlined."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import onnx
from onnx import AttributeProto, FunctionProto, ModelProto, TypeProto

from ge.errors import ReportedError
from ge.graph import NodeOut
from parsers.onnx.onnx_graph import OnnxGraph, OnnxNode, read_function, text
from parsers.onnx.opset import Opsets, normal_domain
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
    def read(cls, function: FunctionProto, fallback: Opsets | None = None) -> FunctionBody:
        """Read a FunctionProto. Without imports of its own it uses those of ``fallback``."""
        graph = read_function(function)
        for i, node in enumerate(graph.nodes):
            node.name = node.name or f"{node.op_type}_{i}"
        owner = f"function {graph.name}"
        opsets = (
            fallback if fallback is not None and not function.opset_import else Opsets(function.opset_import, owner)
        )
        defaults = {text(attribute.name): attribute for attribute in function.attribute_proto}
        return cls(graph.name, graph, opsets, defaults)


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


def has_schema_body(schema: Any) -> bool:
    """True when ONNX defines the operator of an ``OpSchema`` by a function body."""
    return schema is not None and (schema.has_function or schema.has_context_dependent_function)


def schema_body(schema: Any, node: OnnxNode, inputs: list[NodeOut | None], opsets: Opsets) -> FunctionBody | None:
    """Return the function body by which ONNX defines an operator; it may depend on the input types and attributes.

    ``schema`` is an ``OpSchema``, whose type stubs lack its functions.
    """
    version = opsets.version(node.domain, node.op_type)
    function = FunctionProto()
    if schema.has_context_dependent_function:
        types = [_type_of(source).SerializeToString() for source in inputs]
        versions = [v for v in schema.context_dependent_function_opset_versions if v <= version]
        body = schema.get_context_dependent_function_with_opset_version(
            max(versions, default=schema.since_version), node.proto.SerializeToString(), types
        )
    else:
        versions = [v for v in schema.function_opset_versions if v <= version]
        body = schema.get_function_with_opset_version(max(versions, default=schema.since_version))
    if not body:
        return None
    function.ParseFromString(body if isinstance(body, bytes) else body.SerializeToString())
    return FunctionBody.read(function, opsets)


def _type_of(source: NodeOut | None) -> TypeProto:
    if source is None:
        return TypeProto()
    elem_type = _ELEM_TYPES.get(source.desc.data_type, 0)
    shape = source.desc.origin_shape
    dims = None if shape.is_unknown_rank() else [None if d < 0 else d for d in shape]
    return onnx.helper.make_tensor_type_proto(elem_type, dims)
