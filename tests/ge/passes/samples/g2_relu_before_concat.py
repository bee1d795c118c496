"""Relu of a ConcatV2 becomes ConcatV2 of Relus."""

from ge.es import GraphBuilder
from ge.graph import Graph, Node
from ge.passes import (
    FusionBasePass,
    PassContext,
    PassStage,
    SubgraphBoundary,
    SubgraphInput,
    SubgraphOutput,
    SubgraphRewriter,
    register_fusion_pass,
)

try:
    from ge.es.math import ConcatV2
except ImportError:
    from ge.es.all import ConcatV2
try:
    from ge.es.nn import Relu
except ImportError:
    from ge.es.all import Relu


def relu_behind(node: Node) -> Node | None:
    if node.type != "ConcatV2" or node.get_outputs_size() != 1:
        return None
    readers = node.get_out_data_nodes_and_port_indexes(0)
    return readers[0][0] if len(readers) == 1 and readers[0][0].type == "Relu" else None


def exchanged(count: int) -> Graph:
    builder = GraphBuilder("exchanged")
    *parts, axis = builder.create_inputs(count)
    return builder.build_and_reset([ConcatV2([Relu(part) for part in parts], axis, N=len(parts))])


def around(concat: Node, relu: Node) -> SubgraphBoundary:
    boundary = SubgraphBoundary()
    for port in range(concat.get_inputs_size()):
        given = SubgraphInput()
        given.add_input(concat, port)
        boundary.add_input(port, given)
    boundary.add_output(0, SubgraphOutput(relu, 0))
    return boundary


@register_fusion_pass(name="SampleReluBeforeConcat", stage=PassStage.BEFORE_INFER_SHAPE)
class SampleReluBeforeConcat(FusionBasePass):
    def run(self, graph: Graph, context: PassContext) -> bool:
        for node in graph.get_direct_nodes():
            relu = relu_behind(node)
            if relu is not None:
                replacement = exchanged(node.get_inputs_size())
                SubgraphRewriter.replace(around(node, relu), replacement, context=context)
        return True
