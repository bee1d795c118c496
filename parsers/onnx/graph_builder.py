"""Building GE graphs from ONNX graphs: inputs, constants, nodes in execution order, outputs, nested graphs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from onnx import SparseTensorProto

from ge.call_tree import MAX_NESTING
from ge.errors import ReportedError
from ge.graph import DataType, Graph, Node, NodeOut, Tensor, TensorDesc
from ge.option_grammar import Dim, DimRange, dim_bounds, open_dims
from ge.session import CompileSession
from parsers.onnx.functions import FunctionBody, Functions, schema_body
from parsers.onnx.knowledge import Array, Knowledge
from parsers.onnx.mapping import Mapped, find_mapping
from parsers.onnx.node_builder import NodeBuilder
from parsers.onnx.old_opsets import renew
from parsers.onnx.onnx_graph import OnnxGraph, OnnxNode, OnnxValue, execution_order
from parsers.onnx.opset import schema_of, type_string
from parsers.onnx.scope import Scope
from parsers.onnx.weights import TensorReader, data_type

MAX_NODES = 1_000_000
"""GE nodes of one model; a bound for functions that call each other many times."""

ORIGINAL_NAMES = "_datadump_original_op_names"


@dataclass
class ModelContext:
    """What all graphs of one model share."""

    session: CompileSession
    reader: TensorReader
    functions: Functions
    n_nodes: int = 0


class GraphBuilder:
    """Builds one GE graph. ``prefix`` starts the name of every node (bodies: ``<subgraph>/``).

    ``results`` are the outputs of each ONNX node by its name.
    """

    def __init__(self, context: ModelContext, graph: Graph, scope: Scope, prefix: str = "") -> None:
        self.context = context
        self.session = context.session
        self.reader = context.reader
        self.graph = graph
        self.scope = scope
        self.prefix = prefix
        self.knowledge = Knowledge()
        self.results: dict[str, list[NodeOut | None]] = {}
        self._reserved: set[str] = set()

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
            self.add_data(value.name, index, _fed_desc(value, shapes.get(value.name), dtype))

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
            const = self._free_name(f"{self.prefix}{scope.path}{name}_Initializer_{k}")
            scope.define(name, self.graph.add_const(const, Tensor.of(array)), owner)

    def add_nodes(self, nodes: Sequence[OnnxNode], scope: Scope) -> None:
        """Map ``nodes`` in execution order."""
        self._reserved.update(self.prefix + scope.path + node.name for node in nodes)
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
        n = NodeBuilder(self, node, name, schema, scope)
        try:
            if schema is not None:
                renew(n)
            mapped = None if mapping is None else mapping(n)
            if mapped is not None:
                return _as_list(mapped)
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

    # -- GE nodes ----------------------------------------------------------------------------------------------------
    def add_node(
        self,
        n: NodeBuilder,
        type: str,
        role: str,
        inputs: Sequence[NodeOut | None],
        attrs: Mapping[str, Any],
        n_outputs: int,
    ) -> Node:
        """Add a GE node for the ONNX node behind ``n``; called by :meth:`NodeBuilder.add`."""
        self._count_node(n)
        own = {**attrs, ORIGINAL_NAMES: [n.name]}
        return self.graph.add_node(type, self._node_name(n, role), inputs, own, n_outputs)

    def add_const(self, n: NodeBuilder, role: str, array: Array) -> NodeOut:
        """Add a Const for the ONNX node behind ``n``."""
        self._count_node(n)
        source = self.graph.add_const(self._node_name(n, role), Tensor.of(array))
        source.node.attrs[ORIGINAL_NAMES] = [n.name]
        return source

    def _count_node(self, n: NodeBuilder) -> None:
        self.context.n_nodes += 1
        if self.context.n_nodes > MAX_NODES:
            raise n.fail(f"the model has more than {MAX_NODES} nodes once its functions are expanded")

    def _node_name(self, n: NodeBuilder, role: str) -> str:
        return self._free_name(f"{n.name}_{role}") if role else self.graph.unique_name(n.name)

    def _free_name(self, stem: str) -> str:
        """Return ``stem`` or ``stem_1``, ...: no node has the name, and no later ONNX node will claim it."""
        name, count = stem, 0
        while name in self._reserved or name in self.graph:
            count += 1
            name = f"{stem}_{count}"
        return name


def _fed_desc(value: OnnxValue, asked: tuple[Dim, ...] | None, dtype: DataType) -> TensorDesc:
    """Describe a model input: ``--input_shape`` decides, with ranges for what is known at run time only."""
    if asked is None:
        return TensorDesc([-2] if value.dims is None else value.dims, data_type=dtype)
    _check_asked(value, asked)
    desc = TensorDesc(open_dims(asked), data_type=dtype)
    if desc.shape.is_unknown_shape():
        desc.shape_range = dim_bounds(asked)
    return desc


def _check_asked(value: OnnxValue, asked: Sequence[Dim]) -> None:
    known = value.dims
    if known is None:
        return
    if len(known) != len(asked) and -1 in open_dims(asked):
        size = f"{len(known)}: {known}"
        raise ReportedError("E10049", opname=value.name, shape_range_size=len(asked), cur_dim_size=size)
    if known and len(known) != len(asked):
        raise ReportedError(
            "E10001",
            value=f"{value.name}:{','.join(map(str, asked))}",
            parameter="--input_shape",
            reason=f"it has {len(asked)} dimensions, but input [{value.name}] of the model has {len(known)}: {known}",
        )
    for dim, wanted in zip(known, asked, strict=False):
        if dim >= 0 and isinstance(wanted, DimRange) and not wanted.holds(dim):
            low, high = wanted.low, wanted.high
            raise ReportedError("E10050", opname=value.name, cur_dim=dim, shape_range_left=low, shape_range_right=high)


def _as_list(mapped: Mapped) -> list[NodeOut | None]:
    if isinstance(mapped, Node):
        return list(mapped.outputs())
    return [mapped] if isinstance(mapped, NodeOut) else list(mapped)
