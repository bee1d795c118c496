"""What a mapping function works with: one ONNX node, its inputs already in the GE graph, and ways to add GE nodes."""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import AttributeProto, NodeProto
from onnx.defs import OpSchema
from onnx.helper import make_attribute

from ge.errors import ReportedError
from ge.graph import DataType, Node, NodeOut, Shape
from ge.graph.types import numpy_dtype
from ge.ops import lookup
from parsers.onnx.onnx_graph import OnnxNode
from parsers.onnx.weights import data_type

if TYPE_CHECKING:
    from parsers.onnx.graph_builder import GraphBuilder, Scope

Array = np.ndarray[Any, np.dtype[Any]]
Source = Node | NodeOut | None
"""An input of a GE node; a node stands for its output 0, ``None`` for an absent optional input."""

_LISTS = (AttributeProto.FLOATS, AttributeProto.INTS, AttributeProto.STRINGS)


class NodeBuilder:
    """One ONNX node to be mapped.

    ``since_version`` is that of the schema that rules it, ``inputs`` are the producers (``None``: absent).
    """

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
    def input(self, index: int) -> NodeOut | None:
        """Return the producer of an input; ``None`` when it is absent or not given."""
        return self.inputs[index] if index < len(self.inputs) else None

    def need(self, index: int) -> NodeOut:
        """Return the producer of an input that must be there."""
        source = self.input(index)
        if source is None:
            raise self.fail(f"its input {index} is absent")
        return source

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

    def shape(self, source: Source) -> Shape:
        """Return the shape of a tensor; ``[-2]`` when not even its rank is known."""
        return self._out(source).desc.origin_shape

    def dtype(self, source: Source) -> DataType:
        """Return the element type of a tensor."""
        return self._out(source).desc.data_type

    def rank(self, index: int = 0) -> int:
        """Return the rank of an input. An unknown one is an error."""
        shape = self.shape(self.need(index))
        if shape.is_unknown_rank():
            raise self.fail(f"the rank of its input {index} ({self.node.inputs[index]}) is not known")
        return len(shape)

    def element_type(self, elem_type: int, name: str) -> DataType:
        """Return the GE type of an ONNX element type that attribute ``name`` holds."""
        return data_type(elem_type, f"attribute {name} of node {self.name}")

    def axis(self, value: int, rank: int, name: str = "axis") -> int:
        """Return an axis in 0..rank-1. One out of range is an error."""
        if not -rank <= value < rank:
            raise self.fail(f"{name} {value} is out of range for rank {rank}")
        return value % rank

    def value(self, source: Source) -> Array | None:
        """Return the value of a tensor if it is known now."""
        return None if source is None else self.builder.knowledge.value(self._out(source))

    def ints(self, source: Source) -> list[int] | None:
        """Return the known value of an integer tensor, flattened; ``None`` when absent or not known."""
        found = self.value(source)
        if found is None:
            return None
        if found.dtype.kind not in "iub":
            raise self.fail(f"{self._out(source)} should hold integers, but is {found.dtype}")
        return [int(v) for v in np.ravel(found)]

    @staticmethod
    def _out(source: Source) -> NodeOut:
        assert source is not None
        return source.output(0) if isinstance(source, Node) else source

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
    def add(self, type: str, /, *inputs: Source, role: str = "", n_outputs: int | None = None, **attrs: Any) -> Node:
        """Add a GE node and infer its outputs.

        The node that gives the result has no ``role`` and the ONNX node's own name, others are ``<name>_<role>``.
        ``n_outputs`` is needed for operators with a dynamic output only. Trailing absent inputs are left out.
        """
        sources = [None if source is None else self._out(source) for source in inputs]
        while sources and sources[-1] is None:
            sources.pop()
        definition = lookup(type)
        if n_outputs is None:
            is_fixed = definition is not None and not definition.signature.has_dynamic_output
            n_outputs = len(definition.signature.outputs) if definition is not None and is_fixed else 1
        node = self.builder.add_node(self, type, role, sources, attrs, n_outputs)
        self.builder.knowledge.infer(node)
        return node

    def add_call(self, type: str, /, *inputs: NodeOut, n_outputs: int) -> Node:
        """Add a node that calls graphs; the caller says what its outputs are."""
        return self.builder.add_node(self, type, "", inputs, {}, n_outputs)

    def inside(self, builder: GraphBuilder) -> NodeBuilder:
        """Return what adds nodes to a body of this node. Inputs and attributes stay those of the node."""
        inner = copy(self)
        inner.builder, inner.scope = builder, builder.scope
        inner.name = f"{builder.prefix}{self.node.name}"
        return inner

    def const(self, role: str, array: Any) -> NodeOut:
        """Add a Const ``<name>_<role>``."""
        return self.builder.add_const(self, role, np.asarray(array))

    def index(self, role: str, values: int | Iterable[int]) -> NodeOut:
        """Add an int32 Const: a scalar for one number, a vector for several. Numbers beyond int32 are clamped."""
        array = np.asarray(values if isinstance(values, int) else list(values), np.int64)
        return self.const(role, np.clip(array, -(2**31), 2**31 - 1).astype(np.int32))

    def int64(self, values: Iterable[int], role: str) -> NodeOut:
        """Add an int64 vector Const."""
        return self.const(role, np.asarray(list(values), np.int64))

    def scalar(self, role: str, value: float, dtype: DataType) -> NodeOut:
        """Add a scalar Const of an element type."""
        return self.const(role, np.asarray(value).astype(numpy_dtype(dtype)))

    def cast(self, source: Source, dtype: DataType, role: str = "Cast") -> NodeOut:
        """Return ``source`` in ``dtype``; adds a Cast only when the type differs."""
        found = self._out(source)
        if found.desc.data_type == dtype:
            return found
        return self.add("Cast", found, role=role, dst_type=int(dtype)).output()

    def fail(self, reason: str) -> ReportedError:
        """Return the error for a node that cannot be mapped: ``raise n.fail("...")``."""
        return ReportedError("E11010", opname=self.name, optype=self.op_type, reason=reason)
