"""Building GE graphs from frozen graphs: inputs, nodes in execution order, control edges, outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ge.errors import ReportedError
from ge.graph import Graph, Node, NodeOut, TensorDesc
from ge.session import CompileSession
from parsers.ge_nodes import GeNodes, NodeCount, as_list
from parsers.mapped_node import MappedNode
from parsers.tensorflow import graph_def_pb2 as pb
from parsers.tensorflow.mapping import find_mapping
from parsers.tensorflow.node_builder import NodeBuilder
from parsers.tensorflow.tf_graph import Reference, TfNode, execution_order
from parsers.wire import Pieces


@dataclass
class ModelContext:
    """What all graphs of one model share. ``functions`` are those that nodes may call, by name."""

    session: CompileSession
    pieces: Pieces
    functions: Mapping[str, pb.FunctionDef]
    count: NodeCount = field(default_factory=NodeCount)


class GraphBuilder(GeNodes):
    """Builds one GE graph. ``results`` are the outputs of each node by its name in the file."""

    def __init__(self, context: ModelContext, graph: Graph, prefix: str = "") -> None:
        super().__init__(graph, context.count, prefix)
        self.context = context
        self.session = context.session
        self.results: dict[str, list[NodeOut | None]] = {}
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
        if entry is None:
            raise ReportedError("E10501", opname=name, optype=node.op)
        self._made.clear()
        n = NodeBuilder(self, node, name, [self.find(reference, name) for reference in node.inputs])
        try:
            self.results[node.name] = as_list(entry.function(n))
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
        return node

    def _add_controls(self, node: TfNode) -> None:
        """Let the new nodes wait for what ``node`` waits for. Constants wait for nobody, and nobody for them."""
        awaited = dict.fromkeys(before for name in node.controls for before in self._before.get(name, ()))
        for made in self._made:
            for before in awaited:
                self.graph.add_control(before, made)
        self._before[node.name] = self._made[-1:] or list(awaited)
