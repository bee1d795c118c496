"""Control flow: If. Its branches become graphs of the model, what they read from outside becomes inputs."""

from __future__ import annotations

from ge.graph import DataType, Graph, NodeOut
from ge.ops.control import agreed
from ge.ops.registry import Misfit
from parsers.onnx.graph_builder import GraphBuilder
from parsers.onnx.mapping import Mapped, maps
from parsers.onnx.node_builder import NodeBuilder
from parsers.onnx.onnx_graph import OnnxGraph
from parsers.onnx.scope import Scope

BRANCHES = ("then_branch", "else_branch")


@maps("If")
def if_(n: NodeBuilder) -> Mapped:
    """Before: If(cond) {then_branch, else_branch}. After: If(cond, captures...); captures are sorted by name.

    The branches are the graphs ``<If>_0_then_branch`` and ``<If>_1_else_branch``; each has a Data node per capture,
    whose ``_parent_node_index`` is the input slot of the If.

    A condition that follows from shapes (exporters write "if this dim is 1, squeeze it") decides here: the branch taken
    stands in place of the If. The other one need not even fit the shapes.
    """
    condition = n.need(0)
    elements = n.shape(condition).elements
    if n.dtype(condition) is not DataType.DT_BOOL or elements not in (1, -1):
        raise n.fail(f"its condition is {condition.desc!r}, but must be one boolean")
    bodies = [n.node.graphs[name] for name in BRANCHES]
    for body in bodies:
        if body.inputs or len(body.outputs) != len(n.outputs):
            raise n.fail(
                f"its branch [{body.name}] has {len(body.inputs)} inputs and {len(body.outputs)} outputs, "
                f"but must have 0 and {len(n.outputs)}"
            )
    decision = n.value(condition)
    if decision is not None and condition.node.type != "Const":
        taken = 0 if decision.reshape(-1)[0] else 1
        n.builder.session.info(f"node {n.name} (If) always takes its {BRANCHES[taken]}")
        return n.builder.inline(n, bodies[taken])
    captured = sorted({name for body in bodies for name in body.captures})
    sources = [n.outer(name) for name in captured]
    graphs = [
        build_body(n, body, f"{n.name}_{i}_{name}", captured, sources, first_slot=1)
        for i, (name, body) in enumerate(zip(BRANCHES, bodies, strict=True))
    ]
    node = n.add_call("If", condition, *sources, n_outputs=len(n.outputs))
    node.subgraphs = [(name, graph.name) for name, graph in zip(BRANCHES, graphs, strict=True)]
    for j, outputs in enumerate(zip(*(graph.outputs for graph in graphs), strict=True)):
        one, other = (out.desc for out in outputs)
        try:
            shape, dtype = agreed((one.origin_shape, one.data_type), (other.origin_shape, other.data_type))
        except Misfit as fault:
            raise n.fail(f"its branches give different results for output {j}: {fault}") from fault
        desc = node.output_descs[j]
        desc.data_type = dtype
        desc.shape = desc.origin_shape = shape
    return node


def build_body(
    n: NodeBuilder, body: OnnxGraph, name: str, tensors: list[str], sources: list[NodeOut], first_slot: int
) -> Graph:
    """Build a nested graph and hand it to the model. ``tensors`` are what it is given, ``sources`` where from."""
    outer = n.builder
    graph = Graph(name, parent=outer.graph.root)
    outer.graph.add_subgraph(graph)
    scope = Scope(n.scope.opsets, bindings=n.scope.bindings, depth=n.scope.depth)
    builder = GraphBuilder(outer.context, graph, scope, prefix=f"{name}/")
    for index, (tensor, source) in enumerate(zip(tensors, sources, strict=True)):
        desc = source.desc.copy()
        desc.attrs = {}
        data = builder.add_data(tensor, index, desc)
        data.attrs["_parent_node_index"] = first_slot + index
        builder.knowledge.tell(data.output(), outer.knowledge.value(source))
    builder.add_initializers(body, scope)
    builder.add_nodes(body.nodes, scope)
    graph.outputs, graph.output_names = builder.outputs(body.outputs)
    for position, out in enumerate(graph.outputs):
        out.desc.attrs["_parent_node_index"] = position
    return graph
