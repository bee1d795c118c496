"""Building GE graphs from ONNX graphs: inputs, constants, nodes in execution order, outputs, nested graphs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from onnx import SparseTensorProto

from ge.call_tree import MAX_NESTING
from ge.errors import ReportedError
from ge.graph import Graph, Node, NodeOut, Tensor, TensorDesc
from ge.option_grammar import Dim
from ge.session import CompileSession
from parsers.ge_nodes import ORIGINAL_NAMES, GeNodes, NodeCount, as_list, note_parts
from parsers.mapped_node import MappedNode
from parsers.model_inputs import fed_desc
from parsers.onnx.functions import FunctionBody, Functions, schema_body
from parsers.onnx.mapping import find_mapping
from parsers.onnx.node_builder import NodeBuilder
from parsers.onnx.old_opsets import renew
from parsers.onnx.onnx_graph import OnnxGraph, OnnxNode, OnnxValue, execution_order
from parsers.onnx.opset import schema_of, type_string
from parsers.onnx.scope import Scope
from parsers.onnx.weights import TensorReader, data_type


@dataclass
class ModelContext:
    """What all graphs of one model share."""

    session: CompileSession
    reader: TensorReader
    functions: Functions
    count: NodeCount = field(default_factory=NodeCount)


class GraphBuilder(GeNodes):
    """Builds one GE graph. ``prefix`` starts the name of every node (bodies: ``<subgraph>/``).

    ``results`` are the outputs of each ONNX node by its name.
    """

    def __init__(self, context: ModelContext, graph: Graph, scope: Scope, prefix: str = "") -> None:
        super().__init__(graph, context.count, prefix)
        self._made: list[Node] = []
        self.context = context
        self.session = context.session
        self.reader = context.reader
        self.scope = scope
        self.results: dict[str, list[NodeOut | None]] = {}

    # -- the parts of a graph ----------------------------------------------------------------------------------------
    def add_inputs(self, values: Sequence[OnnxValue], shapes: Mapping[str, tuple[Dim, ...]]) -> None:
        """Add a Data node per graph input, in order; ``shapes`` are those that the options give.

        What their axes mean is inferred later, from the operators that read them.
        """
        for index, value in enumerate(values):
            if value.kind != "tensor_type":
                reason = f"model input [{value.name}] has {value.describe()}; only tensors can be fed"
                raise ReportedError("E13025", reason=reason)
            dtype = data_type(value.elem_type, f"model input [{value.name}]")
            self.add_data(value.name, index, fed_desc(value, shapes.get(value.name), dtype))

    def add_data(self, tensor: str, index: int, desc: TensorDesc) -> Node:
        """Add one Data node that stands for ``tensor``. Raises E13025 unless its name is a new one."""
        if not tensor or self.prefix + tensor in self.graph:
            which = f"[{tensor}] is given twice" if tensor else f"{index} has no name"
            raise ReportedError("E13025", reason=f"the graph input {which}")
        attrs = {"index": index, "data_type": int(desc.data_type)}
        node = self.graph.add_node("Data", self.prefix + tensor, attrs=attrs, output_descs=[desc])
        self.scope.define(tensor, node.output(), f"graph input {tensor}")
        return node

    def add_initializers(self, source: OnnxGraph, scope: Scope) -> None:
        """Add a Const per initializer, sorted by tensor name."""
        for k, name in enumerate(sorted(source.initializers)):
            tensor = source.initializers[name]
            owner = f"initializer [{name}]"
            read = self.reader.read_sparse if isinstance(tensor, SparseTensorProto) else self.reader.read
            array = read(tensor, owner)  # type: ignore[arg-type]
            const = self.free_name(f"{self.prefix}{scope.path}{name}_Initializer_{k}")
            scope.define(name, self.graph.add_const(const, Tensor.of(array)), owner)

    def add_nodes(self, nodes: Sequence[OnnxNode], scope: Scope) -> None:
        """Map ``nodes`` in execution order."""
        self.reserved.update(self.prefix + scope.path + node.name for node in nodes)
        for node in execution_order(nodes):
            self._add_node(node, scope)

    def outputs(self, values: Sequence[OnnxValue]) -> tuple[list[NodeOut], list[str]]:
        """Return the producers and names of graph outputs. Raises E13031 for one that nothing produces."""
        found = []
        for value in values:
            source = self.scope.values.get(value.name)
            if source is None:
                raise ReportedError("E13031", reason=f"graph output [{value.name}] is produced by nothing")
            found.append(source)
        return found, [value.name for value in values]

    # -- nodes -------------------------------------------------------------------------------------------------------
    def add_node(
        self,
        n: MappedNode,
        type: str,
        role: str,
        inputs: Sequence[NodeOut | None],
        attrs: Mapping[str, Any],
        n_outputs: int,
    ) -> Node:
        """Add a GE node for the node behind ``n``."""
        node = super().add_node(n, type, role, inputs, attrs, n_outputs)
        self._made.append(node)
        return node

    def _add_node(self, node: OnnxNode, scope: Scope) -> None:
        name = self.prefix + scope.path + node.name
        results = self._results(node, name, scope)
        if not scope.path:
            self.results[node.name] = results
        for j, tensor in enumerate(node.outputs):
            source = results[j] if j < len(results) else None
            if tensor and source is None:
                reason = f"its output {j} ({tensor}) is not supported"
                raise ReportedError("E11010", opname=name, optype=node.op_type, reason=reason)
            scope.define(tensor, source, f"node {scope.path}{node.name}")

    def _results(self, node: OnnxNode, name: str, scope: Scope) -> list[NodeOut | None]:
        called = self.context.functions.find(node)
        if called is not None:
            inputs = [scope.find(tensor, node) for tensor in node.inputs]
            return self._call(node, called, inputs, scope)
        version = scope.opsets.version(node.domain, f"node {name} ({node.op_type})")
        schema = schema_of(node.domain, node.op_type, version)
        mapping = find_mapping(node.domain, node.op_type)
        n, before = NodeBuilder(self, node, name, schema, scope), len(self._made)
        try:
            if schema is not None:
                renew(n)
            mapped = None if mapping is None else mapping(n)
            if mapped is not None:
                results = as_list(mapped)
                # functions that a mapping takes in have nodes of their own
                parts = [made for made in self._made[before:] if made.attrs.get(ORIGINAL_NAMES) == [name]]
                note_parts(name, parts, results)
                return results
            body = None if schema is None else schema_body(schema, n.resolved(), n.inputs, version)
        except (ArithmeticError, LookupError, TypeError, ValueError, RuntimeError) as fault:
            # attribute values that no rule foresaw, such as an axis list of the wrong length
            raise n.fail(f"its attributes or inputs do not fit together ({fault})") from fault
        if body is None:
            raise ReportedError("E13010", opname=name, optype=type_string(node.domain, version, node.op_type))
        return self._call(node, body, n.inputs, scope)

    def _call(
        self, node: OnnxNode, body: FunctionBody, inputs: Sequence[NodeOut | None], scope: Scope
    ) -> list[NodeOut | None]:
        """Inline a function body; its nodes are named ``<call>/<node>``."""
        formals = [value.name for value in body.graph.inputs]
        if scope.depth >= MAX_NESTING or len(inputs) > len(formals):
            reason = "its function calls nest too deeply" if scope.depth >= MAX_NESTING else "it has too many inputs"
            raise ReportedError("E11010", opname=scope.path + node.name, optype=node.op_type, reason=reason)
        bindings = {**body.defaults, **scope.resolve_attributes(node)}
        inner = Scope(body.opsets, f"{scope.path}{node.name}/", bindings, scope.depth + 1)
        for i, formal in enumerate(formals):
            inner.define(formal, inputs[i] if i < len(inputs) else None, f"an argument of {node.name}")
        for tensor in sorted({name for graph in node.graphs.values() for name in graph.captures}):
            inner.define(tensor, scope.find(tensor, node), "the outer graph")  # a graph that the body takes over
        self.add_nodes(body.graph.nodes, inner)
        return [inner.values.get(value.name) for value in body.graph.outputs]

    def inline(self, n: NodeBuilder, body: OnnxGraph) -> list[NodeOut | None]:
        """Build a nested graph of the node in place; its nodes are named ``<node>/<inner node>``."""
        outer = n.scope
        if outer.depth >= MAX_NESTING:
            raise n.fail(f"its graph is nested deeper than {MAX_NESTING} levels")
        inner = Scope(outer.opsets, f"{outer.path}{n.node.name}/", outer.bindings, outer.depth + 1)
        for tensor in body.captures:
            inner.define(tensor, outer.find(tensor, n.node), "the outer graph")
        self.add_initializers(body, inner)
        self.add_nodes(body.nodes, inner)
        return [inner.values.get(value.name) for value in body.outputs]
