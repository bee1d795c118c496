"""What dumps are told about rewritten nodes: which nodes and tensors of the model they stand for."""

from __future__ import annotations

from typing import Any

import pytest

from ge.es import GraphBuilder
from ge.es.all import Abs, Exp, If, Mul, Neg, Relu, RmsNorm, SelectV2
from ge.graph import Graph, Node
from ge.passes.origins import (
    IS_MULTI_OP,
    ORIGIN_NAMES,
    ORIGIN_TYPES,
    OUTPUT_ATTRS,
    OUTPUT_FORMAT,
    OUTPUT_INDEX,
    OUTPUT_NAME,
    OUTPUT_TYPE,
)
from ge.text import parse_graph
from tests.ge.passes.pass_run import fusion, run

CHAIN = """graph g(%x: f32[4]@NCHW) {
  %a = Abs(%x) -> f32[4]@NCHW
  %r = Relu(%a) -> f32[4]@NCHW
  %e = Exp(%r) -> f32[4]@NCHW
  return %e
}"""
ABS_RELU = fusion(lambda i: Relu(Abs(i[0])), into=lambda i: Neg(i[0]))[0]
NEG_EXP = fusion(lambda i: Exp(Neg(i[0])), into=lambda i: Mul(i[0], i[0]))[0]


def node(graph: Graph, type: str) -> Node:
    [found] = graph.nodes_of_type(type)
    return found


def origin(found: Node, output: int = 0) -> dict[str, Any]:
    """The attributes of an output that say what it stands for."""
    return {name: value for name, value in found.output_descs[output].attrs.items() if name in OUTPUT_ATTRS}


def test_a_fused_output_is_that_of_the_last_node() -> None:
    graph = run(ABS_RELU, CHAIN).graph
    fused = node(graph, "Neg")
    assert (fused.attrs[ORIGIN_NAMES], fused.attrs[ORIGIN_TYPES]) == (["a", "r"], ["Abs", "Relu"])
    assert origin(fused) == {OUTPUT_NAME: "r", OUTPUT_INDEX: 0, OUTPUT_FORMAT: "NCHW", OUTPUT_TYPE: "DT_FLOAT"}
    assert IS_MULTI_OP not in fused.attrs
    assert origin(node(graph, "Exp")) == {}, "a node that nobody touched stands for itself"


def test_fusions_of_fusions_go_back_to_the_model() -> None:
    graph = run(NEG_EXP, run(ABS_RELU, CHAIN).graph).graph
    fused = node(graph, "Mul")
    assert (fused.attrs[ORIGIN_NAMES], fused.attrs[ORIGIN_TYPES]) == (["a", "r", "e"], ["Abs", "Relu", "Exp"])
    assert origin(fused)[OUTPUT_NAME] == "e"


def test_what_an_output_says_of_itself_is_handed_on() -> None:
    graph = parse_graph(CHAIN)
    relu = node(graph, "Relu")
    relu.attrs[ORIGIN_NAMES] = ["conv", "relu6"]
    relu.output_descs[0].attrs.update({OUTPUT_NAME: "conv", OUTPUT_INDEX: 2, OUTPUT_TYPE: "DT_FLOAT16"})
    fused = node(run(ABS_RELU, graph).graph, "Neg")
    assert fused.attrs[ORIGIN_NAMES] == ["a", "conv", "relu6"]
    assert origin(fused) == {OUTPUT_NAME: "conv", OUTPUT_INDEX: 2, OUTPUT_FORMAT: "NCHW", OUTPUT_TYPE: "DT_FLOAT16"}


def test_an_inner_output_of_several_nodes_stands_for_nothing() -> None:
    graph = parse_graph(CHAIN)
    relu = node(graph, "Relu")
    relu.attrs.update({ORIGIN_NAMES: ["e"], IS_MULTI_OP: True})
    fused = node(run(ABS_RELU, graph).graph, "Neg")
    assert fused.attrs[ORIGIN_NAMES] == ["a", "e"]
    assert fused.attrs[IS_MULTI_OP] is True
    assert origin(fused) == {}


def test_an_output_of_the_compiler_stands_for_nothing() -> None:
    graph = parse_graph(CHAIN)
    node(graph, "Relu").attrs[ORIGIN_NAMES] = []
    fused = node(run(ABS_RELU, graph).graph, "Neg")
    assert fused.attrs[ORIGIN_NAMES] == ["a"]
    assert origin(fused) == {}


def test_of_several_new_nodes_the_inner_tensors_stand_for_nothing() -> None:
    cls, _ = fusion(lambda i: Relu(Abs(i[0])), into=lambda i: Neg(Exp(i[0])))
    graph = run(cls, CHAIN.replace("Exp", "Sqrt")).graph
    inner, last = node(graph, "Exp"), node(graph, "Neg")
    for new in (inner, last):
        assert new.attrs[ORIGIN_NAMES] == ["a", "r"]
        assert new.attrs[IS_MULTI_OP] is True
    assert origin(inner) == {}
    assert origin(last)[OUTPUT_NAME] == "r"


def test_constants_of_a_replacement_are_the_compilers() -> None:
    cls, _ = fusion(lambda i: Relu(Abs(i[0])), into=lambda i: Mul(i[0], 2.0))
    graph = run(cls, CHAIN).graph
    assert node(graph, "Mul").attrs[ORIGIN_NAMES] == ["a", "r"]
    assert IS_MULTI_OP not in node(graph, "Mul").attrs
    constant = node(graph, "Const")
    assert (constant.attrs[ORIGIN_NAMES], origin(constant)) == ([], {})


@pytest.mark.parametrize("swaps", [False, True])
def test_several_outputs_keep_apart(swaps: bool) -> None:
    text = """graph g(%x: f32[2,4]@ND, %w: f32[4]@ND) {
  %norm:2 = RmsNorm(%x, %w) -> f32[2,4]@ND, f32[2,1]@ND
  return %norm:0, %norm:1
}"""

    def both(i: Any) -> Any:
        found = RmsNorm(i[0], i[1])
        return found.y, found.rstd

    def others(i: Any) -> Any:
        first, second = Mul(i[0], i[1]), Exp(i[0])
        return (second, first) if swaps else (first, second)

    cls, _ = fusion(both, into=others)
    graph = run(cls, text).graph
    indexes = {name: origin(node(graph, name))[OUTPUT_INDEX] for name in ("Mul", "Exp")}
    assert indexes == ({"Mul": 1, "Exp": 0} if swaps else {"Mul": 0, "Exp": 1})
    assert {origin(node(graph, name))[OUTPUT_NAME] for name in indexes} == {"norm"}


def test_an_output_that_becomes_an_input_is_left_alone() -> None:
    """The first one counts where two old outputs become one; what is not new keeps what it says."""
    cls, _ = fusion(lambda i: Relu(Abs(i[0])), into=lambda i: i[0])
    graph = run(cls, CHAIN).graph
    assert [n.type for n in graph if n.type not in ("Data", "NetOutput")] == ["Exp"]
    assert all(not desc.attrs.keys() & set(OUTPUT_ATTRS) for n in graph for desc in n.output_descs)


def test_bodies_of_a_replacement_go_back_to_what_they_replace() -> None:
    def conditional(i: Any) -> Any:
        bodies = []
        for name in ("then", "else"):
            body = GraphBuilder(name)
            bodies.append(body.build_and_reset([Mul(body.create_input(0), 2.0)]))
        return If(i[1], [i[0]], 1, *bodies)[0]

    text = """graph g(%x: f32[4]@ND, %c: bool[]@ND) {
  %s1 = SelectV2(%c, %x, %x) -> f32[4]@ND
  %s2 = SelectV2(%c, %s1, %s1) -> f32[4]@ND
  return %s2
}"""
    cls, _ = fusion(lambda i: SelectV2(i[1], i[0], i[0]), into=conditional)
    graph = run(cls, text).graph
    assert len(graph.subgraphs) == 4
    for body in graph.subgraphs.values():
        caller = next(n for n in graph if body.name in (name for _, name in n.subgraphs))
        assert node(body, "Mul").attrs[ORIGIN_NAMES] == caller.attrs[ORIGIN_NAMES] != []
        assert node(body, "Const").attrs[ORIGIN_NAMES] == []
