"""Building GE graphs from frozen graphs: inputs, nodes in execution order, control edges, outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ge.call_tree import MAX_NESTING
from ge.errors import ReportedError
from ge.graph import Graph, Node, NodeOut, TensorDesc
from ge.session import CompileSession
from parsers.ge_nodes import GeNodes, Mapped, NodeCount, as_list
from parsers.mapped_node import MappedNode
from parsers.tensorflow.functions import Called, FunctionLibrary
from parsers.tensorflow.mapping import find_mapping
from parsers.tensorflow.node_builder import NodeBuilder
from parsers.tensorflow.tf_graph import Reference, TfBody, TfNode, execution_order
from parsers.wire import Pieces


@dataclass
class ModelContext:
    """What all graphs of one model share. ``functions`` are those that nodes may call."""

    session: CompileSession
    pieces: Pieces
    functions: FunctionLibrary
    count: NodeCount = field(default_factory=NodeCount)


class GraphBuilder(GeNodes):
    """Builds one GE graph. ``results`` are the outputs of each node by its name in the file.

    ``depth`` counts the bodies and calls around it, ``calls`` names the functions of the library among them.
    """

    def __init__(
        self, context: ModelContext, graph: Graph, prefix: str = "", depth: int = 0, calls: tuple[str, ...] = ()
    ) -> None:
        super().__init__(graph, context.count, prefix)
        self.context = context
        self.session = context.session
        self.depth = depth
        self.calls = calls
        self.results: dict[str, list[NodeOut | None]] = {}
        self.added: list[Node] = []
        """All GE nodes but constants that this has added."""
        self._before: dict[str, list[Node]] = {}
        """GE nodes that whoever waits for a node has to wait for."""
        self._made: list[Node] = []
        """The GE nodes, constants left out, that the node at hand has become so far."""

    def add_data(self, name: str, index: int, desc: TensorDesc) -> NodeOut:
        """Add the Data node for an input of the graph, which nodes can read as ``name``."""
        attrs = {"index": index, "data_type": int(desc.data_type)}
        node = self.graph.add_node("Data", self.prefix + name, attrs=attrs, output_descs=[desc])
        self.results[name] = [node.output()]
        return node.output()

    def add_nodes(self, nodes: Sequence[TfNode]) -> None:
        """Map ``nodes`` in execution order; those that have results already, as inputs do, are left out."""
        self.reserved.update(self.prefix + node.name for node in nodes)
        for node in execution_order(nodes):
            if node.name not in self.results:
                self._add_node(node)

    def add_body(self, n: NodeBuilder, body: TfBody, inputs: Sequence[NodeOut]) -> list[NodeOut]:
        """Map the nodes of a body of ``n``, which read ``inputs`` as its arguments, and return its results.

        Raises E11010 for a function that calls itself.
        """
        if body.function:
            if body.function in self.calls:
                raise n.fail(f"function {body.function} calls itself, which cannot be compiled")
            self.calls = (*self.calls, body.function)
        for references, source in zip(body.arguments, inputs, strict=True):
            for reference in references:
                known = self.results.setdefault(reference.node, [])
                known += [None] * (reference.output + 1 - len(known))
                known[reference.output] = source
        self.add_nodes(body.nodes)
        return [self.find(reference, n.name) for reference in body.results]

    def inline(self, n: NodeBuilder, body: TfBody, inputs: Sequence[NodeOut]) -> list[NodeOut]:
        """Map a body in place of the node that calls it; its nodes are named ``<call>/<inner node>``."""
        if self.depth >= MAX_NESTING:
            raise n.fail(f"its calls are nested deeper than {MAX_NESTING} levels")
        inner = self.inside(self.graph, f"{n.name}/")
        inner.knowledge, inner.reserved = self.knowledge, self.reserved
        results = inner.add_body(n, body, inputs)
        self._made += inner.added
        return results

    def inside(self, graph: Graph, prefix: str) -> GraphBuilder:
        """Return what builds a body of a node in a graph."""
        return GraphBuilder(self.context, graph, prefix, self.depth + 1, self.calls)

    def find(self, reference: Reference, reader: str) -> NodeOut:
        """Return the producer behind a reference. Raises E12009, which names ``reader``, when there is none."""
        results = self.results.get(reference.node, [])
        found = results[reference.output] if reference.output < len(results) else None
        if found is None:
            raise ReportedError("E12009", inputopname=reference, opname=reader)
        return found

    # -- nodes -------------------------------------------------------------------------------------------------------
    def _add_node(self, node: TfNode) -> None:
        name = self.prefix + node.name
        entry = find_mapping(node.op)
        if entry is None and node.op not in self.context.functions:
            raise ReportedError("E10501", opname=name, optype=node.op)
        function = _call_by_type if entry is None else entry.function
        self._made.clear()
        n = NodeBuilder(self, node, name, [self.find(reference, name) for reference in node.inputs])
        try:
            self.results[node.name] = as_list(function(n))
        except (ArithmeticError, LookupError, TypeError, ValueError, RuntimeError) as fault:
            # attribute values that no rule foresaw, such as an axis list of the wrong length
            raise n.fail(f"its attributes or inputs do not fit together ({fault})") from fault
        self._add_controls(node)

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
        self.added.append(node)
        return node

    def _add_controls(self, node: TfNode) -> None:
        """Let the new nodes wait for what ``node`` waits for. Constants wait for nobody, and nobody for them."""
        awaited = dict.fromkeys(before for name in node.controls for before in self._before.get(name, ()))
        for made in self._made:
            for before in awaited:
                self.graph.add_control(before, made)
        self._before[node.name] = self._made[-1:] or list(awaited)


def _call_by_type(n: NodeBuilder) -> Mapped:
    """Before: a node whose type is a function. After: what the function does."""
    body = n.builder.context.functions.body(Called(n.op_type, n.node.attributes))
    return n.builder.inline(n, n.checked(body, len(n.inputs)), n.sources())
