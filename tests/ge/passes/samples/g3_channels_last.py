"""Convolutions are declared channels-last, and the Transposes there and back behind them are left out."""

from ge.graph import Graph, Node
from ge.passes import FusionBasePass, PassContext, PassStage, can_fuse, register_fusion_pass, report_fuse

CONVOLUTIONS = ("Conv2D", "Conv2DV2")
THERE, BACK = [0, 2, 3, 1], [0, 3, 1, 2]


def permutation(node: Node):
    """Return the node that gives a Transpose its permutation, and that, or None."""
    if node.type != "Transpose":
        return None
    perm, _ = node.get_in_data_nodes_and_port_indexes(1)
    if perm.type not in ("Const", "Constant"):
        return None
    return perm, [int(axis) for axis in perm.get_attr("value").data]


def behind(node: Node):
    """Iterate over what reads the results of a node, directly or through others, near ones first."""
    queue, seen = [node], {node}
    for current in queue:
        for index in range(current.get_outputs_size()):
            for reader, _ in current.get_out_data_nodes_and_port_indexes(index):
                if reader not in seen:
                    seen.add(reader)
                    queue.append(reader)
                    yield reader


def bypass(graph: Graph, node: Node, perm: Node) -> None:
    producer, output = node.get_in_data_nodes_and_port_indexes(0)
    graph.remove_edge(producer, output, node, 0)
    graph.remove_edge(perm, 0, node, 1)
    for reader, port in node.get_out_data_nodes_and_port_indexes(0):
        graph.remove_edge(node, 0, reader, port)
        graph.add_data_edge(producer, output, reader, port)


@register_fusion_pass(name="SampleChannelsLast", stage=PassStage.BEFORE_INFER_SHAPE)
class SampleChannelsLast(FusionBasePass):
    def run(self, graph: Graph, context: PassContext) -> bool:
        convolutions = [node for node in graph.get_direct_nodes() if node.type in CONVOLUTIONS]
        for node in convolutions:
            if node.get_attr("data_format") == "NCHW":
                node.set_attr("data_format", "NHWC")
                if not self.drop_pair(graph, node, context):
                    return False
        return True

    def drop_pair(self, graph: Graph, convolution: Node, context: PassContext) -> bool:
        wanted, found = [THERE, BACK], []
        for node in behind(convolution):
            given = permutation(node)
            if given is not None and len(found) < 2 and given[1] == wanted[len(found)]:
                found.append((node, given[0]))
        if len(found) < 2:
            return True
        for node, perm in found:
            check = can_fuse([node])
            if not check.ok:
                context.set_error_message(f"{node.name} cannot be left out: {check.reason}")
                return False
            bypass(graph, node, perm)
        report_fuse([node for node, _ in found], [], context)
        for node, perm in found:
            graph.remove_node(node)
            if not perm.get_out_data_nodes_and_port_indexes(0):
                graph.remove_node(perm)
        return True
