"""What a mapping function works with: one ONNX node, its inputs already in the GE graph, and ways to add GE nodes."""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Any

from onnx import AttributeProto, NodeProto
from onnx.defs import OpSchema
from onnx.helper import make_attribute

from ge.graph import DataType
from parsers.knowledge import Array
from parsers.mapped_node import MappedNode, Source
from parsers.onnx.onnx_graph import OnnxNode
from parsers.onnx.weights import data_type

if TYPE_CHECKING:
    from parsers.onnx.graph_builder import GraphBuilder, Scope

__all__ = ["Array", "NodeBuilder", "Source"]

_LISTS = (AttributeProto.FLOATS, AttributeProto.INTS, AttributeProto.STRINGS)


class NodeBuilder(MappedNode):
    """One ONNX node to be mapped; ``since_version`` is that of the schema that rules it."""

    builder: GraphBuilder

    def __init__(
        self,
        builder: GraphBuilder,
        node: OnnxNode,
        name: str,
        schema: OpSchema | None,
        scope: Scope,
    ) -> None:
        self.builder = builder
        self.node = node
        self.name = name
        self.scope = scope
        self.op_type = node.op_type
        self.since_version = 1 if schema is None else schema.since_version
        self.inputs = [scope.find(tensor, node) for tensor in node.inputs]
        self.outputs = node.outputs
        self._schema = schema
        self._attributes = scope.resolve_attributes(node)
        if schema is not None:
            self._check(schema)

    def _check(self, schema: OpSchema) -> None:
        n_inputs = len(self.inputs)
        while n_inputs > schema.min_input and self.inputs[n_inputs - 1] is None:
            n_inputs -= 1
        if not schema.min_input <= n_inputs <= schema.max_input:
            least, most = schema.min_input, schema.max_input
            takes = f"{least}" if least == most else f"at least {least}" if most > 1 << 30 else f"{least} to {most}"
            raise self.fail(f"it has {n_inputs} inputs, but takes {takes}")
        variadic = OpSchema.FormalParameterOption.Variadic
        for i, formal in enumerate(schema.inputs):
            if formal.option == OpSchema.FormalParameterOption.Single and self.input(i) is None:
                raise self.fail(f"its input {i} ({formal.name}) is absent")
        if schema.inputs and schema.inputs[-1].option == variadic and None in self.inputs[len(schema.inputs) - 1 :]:
            raise self.fail("one of its inputs is absent")
        for i, source in enumerate(self.inputs):
            # other types than those that ONNX allows are as good as they; texts cannot be computed with
            if source is not None and source.desc.data_type is DataType.DT_STRING:
                formal = schema.inputs[min(i, len(schema.inputs) - 1)]
                if not any("string" in allowed for allowed in formal.types):
                    raise self.fail(f"its input {i} ({formal.name}) holds texts, which the operator does not take")
        for name, attribute in self._attributes.items():
            formal_attribute = schema.attributes.get(name)
            if formal_attribute is None:
                self.builder.session.warn(f"node {self.name} ({self.op_type}): attribute {name} is unknown and ignored")
                continue
            wanted: Any = formal_attribute.type
            if wanted.value != attribute.type:
                found = AttributeProto.AttributeType.Name(attribute.type)
                raise self.fail(f"attribute {name} is of type {found}, but must be {wanted.name}")
        missing = [name for name, a in schema.attributes.items() if a.required and name not in self._attributes]
        if missing:
            raise self.fail(f"attribute {missing[0]} is missing")

    # -- reading -----------------------------------------------------------------------------------------------------
    def input_name(self, index: int) -> str:
        """Return the name of the tensor that the node reads."""
        return self.node.inputs[index]

    def wants(self, output: int) -> bool:
        """True when the node has this output and gives it a name."""
        return output < len(self.outputs) and bool(self.outputs[output])

    def attr(self, name: str, default: Any = None) -> Any:
        """Return an attribute: the node's, else the schema's default, else ``default``.

        Strings are str, tensors arrays, lists are lists.
        """
        attribute = self._attributes.get(name)
        if attribute is None and self._schema is not None and name in self._schema.attributes:
            attribute = self._schema.attributes[name].default_value
        if attribute is None or attribute.type == AttributeProto.UNDEFINED:
            return default
        return self._plain(name, attribute)

    def set_attr(self, name: str, value: Any) -> None:
        """Give the node an attribute, in place of its own."""
        self._attributes[name] = make_attribute(name, value)

    def choice(self, name: str, *allowed: str) -> str:
        """Return a string attribute that must be one of ``allowed``."""
        value: str = self.attr(name)
        if value not in allowed:
            raise self.fail(f"attribute {name} is {value}, but must be one of {', '.join(allowed)}")
        return value

    def attribute_names(self) -> list[str]:
        """Return the names of the attributes that the node itself gives."""
        return list(self._attributes)

    def has_attr(self, name: str) -> bool:
        """True when the node itself gives the attribute."""
        return name in self._attributes

    def _plain(self, name: str, attribute: AttributeProto) -> Any:
        owner = f"attribute {name} of node {self.name}"
        kind = attribute.type
        if kind == AttributeProto.INT:
            return attribute.i
        if kind == AttributeProto.FLOAT:
            return attribute.f
        if kind == AttributeProto.STRING:
            return self._decode(attribute.s, name)
        if kind == AttributeProto.TENSOR:
            return self.builder.reader.read(attribute.t, owner)
        if kind == AttributeProto.SPARSE_TENSOR:
            return self.builder.reader.read_sparse(attribute.sparse_tensor, owner)
        if kind in _LISTS:
            values = list(attribute.ints) + list(attribute.floats)
            return values + [self._decode(s, name) for s in attribute.strings]
        raise self.fail(f"attribute {name} has a type that cannot be used here")

    def _decode(self, value: bytes, name: str) -> str:
        try:
            return value.decode()
        except UnicodeDecodeError as fault:
            raise self.fail(f"attribute {name} is no UTF-8 text") from fault

    def element_type(self, elem_type: int, name: str) -> DataType:
        """Return the GE type of an ONNX element type that attribute ``name`` holds."""
        return data_type(elem_type, f"attribute {name} of node {self.name}")

    def resolved(self) -> NodeProto:
        """Return the node as a NodeProto whose attributes refer to no enclosing function."""
        proto = NodeProto()
        proto.CopyFrom(self.node.proto)
        del proto.attribute[:]
        for name, attribute in self._attributes.items():
            proto.attribute.add().CopyFrom(attribute)
            proto.attribute[-1].name = name
        return proto

    # -- building ----------------------------------------------------------------------------------------------------
    def inside(self, builder: GraphBuilder) -> NodeBuilder:
        """Return what adds nodes to a body of this node. Inputs and attributes stay those of the node."""
        inner = copy(self)
        inner.builder, inner.scope = builder, builder.scope
        inner.name = f"{builder.prefix}{self.node.name}"
        return inner
