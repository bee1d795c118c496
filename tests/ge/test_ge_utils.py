"""GeUtils: inference on demand, and whether a node can run."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ge.es import GraphBuilder
from ge.es.all import Conv2D, Reshape, Split
from ge.graph import DataType, Graph, Tensor
from ge.graph.compare import first_difference
from ge.text import parse_graph
from ge.utils import GeUtils

NET = """graph net(%b: f32[]@ND {index=1}, %a: f32[]@ND {index=0}) {
  %m = MatMul(%a, %b) -> f32[-2]@ND
  %r = Reshape(%m, %s) -> f32[-2]@ND
  %s = Const {value=i64[2]{-1, 2}} -> i64[2]@ND
  return %r
}"""


def shape_of(graph: Graph, name: str) -> list[int]:
    return list(graph.find_node_by_name(name).get_output_desc(0).get_shape())


@pytest.mark.parametrize(
    ("a", "b", "product", "reshaped"),
    [([3, 4], [4, 6], [3, 6], [9, 2]), ([-1, 4], [4, 6], [-1, 6], [-1, 2]), ([2, 1], [1, 1], [2, 1], [1, 2])],
)
def test_shapes_follow_from_those_of_the_inputs(
    a: list[int], b: list[int], product: list[int], reshaped: list[int]
) -> None:
    """Shapes belong to the inputs in the order of their indexes; constants are looked into."""
    graph = parse_graph(NET)
    assert GeUtils.infer_shape(graph, [a, b]) is None
    assert (shape_of(graph, "m"), shape_of(graph, "r")) == (product, reshaped)
    assert graph.find_node_by_name("m").get_input_desc(1).get_shape() == b
    assert graph.find_node_by_name("m").get_output_desc(0).get_origin_shape() == product


def test_nothing_but_descriptors_changes() -> None:
    graph, before = parse_graph(NET), parse_graph(NET)
    GeUtils.infer_shape(graph, [[3, 4], [4, 6]])
    GeUtils.infer_shape(before, [[3, 4], [4, 6]])
    assert [n.type for n in graph.get_direct_nodes()] == ["Data", "Data", "MatMul", "Reshape", "Const"]
    assert first_difference(graph, before) is None


def test_shapes_of_descriptors_are_taken() -> None:
    builder = GraphBuilder()
    x = builder.create_input(0, shape=[1, 4])
    graph = builder.build_and_reset(Split(1, x, 2, num_split=2))
    GeUtils.infer_shape(graph, [x._get_node_snapshot().get_output_desc(0).get_shape()])
    assert shape_of(graph, "Split_1") == [1, 2]


@pytest.mark.parametrize(
    ("shapes", "reason"),
    [
        ([[3, 4]], "graph net has 2 inputs, 1 shapes are given"),
        ([[3, 4], [5, 6]], "E14001: .*inner sizes 4 and 5"),
        ([[3, 4], [4, -3]], r"\[4,-3\] is not a shape"),
        ([[1, 3], [3, 3]], "E14001"),
    ],
)
def test_failures_are_runtime_errors(shapes: list[list[int]], reason: str) -> None:
    with pytest.raises(RuntimeError, match=f"Failed to infer shape: {reason}"):
        GeUtils.infer_shape(parse_graph(NET), shapes)


def test_an_empty_graph_takes_no_shapes() -> None:
    GeUtils.infer_shape(Graph("empty"), [])
    with pytest.raises(RuntimeError, match="Failed to infer shape"):
        GeUtils.infer_shape(Graph("empty"), [[1]])


BAD_ARGUMENTS: dict[str, Callable[[Graph], Any]] = {
    "graph": lambda g: GeUtils.infer_shape("g", []),  # type: ignore[arg-type]
    "shapes": lambda g: GeUtils.infer_shape(g, "ab"),  # type: ignore[arg-type]
    "flat": lambda g: GeUtils.infer_shape(g, [1, 2]),  # type: ignore[list-item]
    "dims": lambda g: GeUtils.infer_shape(g, [[1, "2"], [2]]),  # type: ignore[list-item]
    "node": lambda g: GeUtils.check_node_support_on_aicore("m"),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("use", BAD_ARGUMENTS.values(), ids=BAD_ARGUMENTS)
def test_arguments_of_other_types_are_type_errors(use: Callable[[Graph], Any]) -> None:
    with pytest.raises(TypeError, match="must be"):
        use(parse_graph(NET))


# -- support -----------------------------------------------------------------------------------------------------------
def test_inferred_nodes_are_supported() -> None:
    graph = parse_graph(NET)
    GeUtils.infer_shape(graph, [[3, 4], [4, 6]])
    for node in graph.get_all_nodes():
        assert GeUtils.check_node_support_on_aicore(node) == (True, "")


def only_node(text: str) -> Any:
    return parse_graph(f"graph g(%x: f32[2,2]@ND, %q: qint8[2]@ND) {{ %n = {text} return %n }}").find_node_by_name("n")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("NoSuchThing(%x) -> f32[2]@ND", "operator type NoSuchThing of node n is not registered"),
        ('TransData(%x) {src_format="ND", dst_format="FRACTAL_NZ"} -> f32[2]@ND', "no kernel for .* TransData"),
        ("Relu(%q) -> f32[2]@ND", "input 0 of node n is DT_QINT8"),
        ("Relu(%x) -> qint8[2]@ND", "output 0 of node n is DT_QINT8"),
        ("MatMul(%x, %s) %s = Const {value=f32[3,2]{1,2,3,4,5,6}} -> f32[3,2]@ND", "inner sizes 2 and 3"),
        ("SplitD(%x) {split_dim=0} -> f32[2,2]@ND", r"node n \(SplitD\) lacks the attribute num_split"),
    ],
)  # fmt: skip
def test_unsupported_nodes_say_why(text: str, reason: str) -> None:
    supported, found = GeUtils.check_node_support_on_aicore(only_node(text))
    assert not supported
    assert re.search(reason, found)


def test_asking_changes_nothing() -> None:
    builder = GraphBuilder()
    x = builder.create_input(0, shape=[1, 4, 5, 5])
    w = builder.create_const_float([0.0] * 8, [2, 4, 1, 1])
    y = Conv2D(x, w, strides=[1, 1, 1, 1], pads=[0] * 4, data_format="NCHW")
    graph = builder.build_and_reset([Reshape(y, [50])])
    node = graph.find_node_by_name("Conv2D_1")
    assert GeUtils.check_node_support_on_aicore(node) == (True, "")
    assert node.get_output_desc(0).get_shape() == [-2]


def test_a_removed_node_cannot_be_asked_for() -> None:
    graph = parse_graph(NET)
    node = graph.find_node_by_name("m")
    graph.remove_node(node)
    with pytest.raises(RuntimeError, match="node m was removed"):
        GeUtils.check_node_support_on_aicore(node)


def test_types_without_kernels_are_told_by_constants_too() -> None:
    graph = Graph()
    node = graph.add_const("c", Tensor.of(np.int8([1]))).node
    assert GeUtils.check_node_support_on_aicore(node) == (True, "")
    node.output_descs[0].data_type = DataType.DT_HIFLOAT8
    assert GeUtils.check_node_support_on_aicore(node)[1].endswith("DT_HIFLOAT8, for which there is no kernel")
