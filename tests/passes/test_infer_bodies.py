"""Pass infer-shape on graphs with bodies: constants, constant expressions among them, are known inside."""

from __future__ import annotations

import pytest

from ge.graph import DataType, Graph, TensorDesc
from ge.options import CompileOptions, Environment
from ge.session import CompileSession
from passes.infer.infer_shapes import InferShapes


@pytest.fixture
def branching() -> Graph:
    """If(c, x, Shape(y)) whose branches reshape x, in one branch after another call."""
    root = Graph("root")
    condition = root.add_node("Data", "c", output_descs=[TensorDesc([], data_type=DataType.DT_BOOL)]).output(0)
    x = root.add_node("Data", "x", attrs={"index": 1}, output_descs=[TensorDesc([6])]).output(0)
    y = root.add_node("Data", "y", attrs={"index": 2}, output_descs=[TensorDesc([3, 2])]).output(0)
    wanted = root.add_node("Shape", "wanted", [y], {"dtype": 9}).output(0)
    node = root.add_node("If", "if", [condition, x, wanted])
    root.outputs, root.output_names = [node.output(0)], ["y"]
    then = _reshaping(root, "then", 1)
    otherwise = Graph("else")
    inputs = [
        otherwise.add_node("Data", f"else/{k}", attrs={"index": k, "_parent_node_index": k + 1}).output(0)
        for k in range(2)
    ]
    root.add_subgraph(otherwise)
    call = otherwise.add_node("PartitionedCall", "else/call", inputs)
    call.subgraphs = [("f", _reshaping(root, "f", 0).name)]
    otherwise.outputs = [call.output(0)]
    node.subgraphs = [("then_branch", then.name), ("else_branch", otherwise.name)]
    return root


def _reshaping(root: Graph, name: str, first_slot: int) -> Graph:
    graph = Graph(name)
    inputs = [
        graph.add_node("Data", f"{name}/{k}", attrs={"index": k, "_parent_node_index": k + first_slot}).output(0)
        for k in range(2)
    ]
    graph.outputs = [graph.add_node("Reshape", f"{name}/reshape", inputs).output(0)]
    root.add_subgraph(graph)
    return graph


def test_constant_expressions_are_known_in_bodies_of_bodies(branching: Graph) -> None:
    session = CompileSession(CompileOptions(), Environment())
    assert InferShapes().run(branching, session)
    for graph, name in (("root", "if"), ("then", "then/reshape"), ("else", "else/call"), ("f", "f/reshape")):
        part = branching if graph == "root" else branching.subgraphs[graph]
        node = part.find(name)
        assert node is not None
        assert node.output_descs[0].shape == (3, 2)
    assert not InferShapes().run(branching, session)


def test_a_change_inside_a_body_is_a_change(branching: Graph) -> None:
    session = CompileSession(CompileOptions(), Environment())
    InferShapes().run(branching, session)
    inner = branching.subgraphs["f"]
    reshape = inner.find("f/reshape")
    assert reshape is not None
    inner.add_node("Neg", "f/neg", [reshape.output(0)])
    assert InferShapes().run(branching, session)
