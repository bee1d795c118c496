"""A grouped convolution becomes a convolution per group, between a Split and a Concat."""

from ge.es import GraphBuilder, TensorHolder
from ge.graph import DataType, Format, Graph, Node, TensorDesc
from ge.passes import DecomposePass, PassStage, infer_shape, register_decompose_pass

try:
    from ge.es.math import Split
except ImportError:
    from ge.es.all import Split
try:
    from ge.es.math import Concat
except ImportError:
    Concat = None
try:
    from ge.es.math import ConcatV2
except ImportError:
    ConcatV2 = None
try:
    from ge.es.nn import Conv2D
except ImportError:
    from ge.es.all import Conv2D


def joined(tensors: list[TensorHolder]) -> TensorHolder:
    if Concat is not None:
        return Concat(1, tensors, N=len(tensors))
    return ConcatV2(tensors, 1, N=len(tensors))


def describe(convolution: TensorHolder) -> None:
    node = convolution._get_node_snapshot()
    desc = TensorDesc([], Format.FORMAT_NCHW, DataType.DT_FLOAT).set_origin_format(Format.FORMAT_NCHW)
    for index in range(2):
        node.update_input_desc(index, desc)
    node.update_output_desc(0, desc)


@register_decompose_pass(name="SampleGroups", stage=PassStage.AFTER_INFER_SHAPE, op_types=["Conv2D"])
class SampleGroups(DecomposePass):
    def meet_requirements(self, node: Node) -> bool:
        return node.get_attr("groups") != 1 and node.get_attr("data_format") == "NCHW"

    def replacement(self, node: Node) -> Graph:
        groups = node.get_attr("groups")
        places = {name: node.get_attr(name) for name in ("strides", "pads", "dilations")}
        builder = GraphBuilder("groups")
        x, w = builder.create_inputs(2)
        parts = zip(Split(1, x, groups, num_split=groups), Split(0, w, groups, num_split=groups), strict=True)
        results = [Conv2D(part, filters, None, None, groups=1, data_format="NCHW", **places) for part, filters in parts]
        for result in results:
            describe(result)
        graph = builder.build_and_reset([joined(results)])
        infer_shape(graph, node)
        return graph
