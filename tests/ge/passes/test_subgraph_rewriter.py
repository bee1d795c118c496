"""Graphs edited by hand: cases 20 to 25 of the reference, can_fuse, report_fuse, infer_shape."""

from __future__ import annotations

import logging

import pytest

from ge.es import GraphBuilder
from ge.es.all import Abs, Add, Exp, Relu, Reshape, Sub
from ge.graph import DataType, Graph
from ge.passes import (
    FuseCheckResult,
    PassContext,
    SubgraphBoundary,
    SubgraphInput,
    SubgraphOutput,
    SubgraphRewriter,
    can_fuse,
    infer_shape,
    report_fuse,
)
from ge.passes.origins import ORIGIN_NAMES, PASS_NAMES
from ge.passes.replacement import FAILED
from ge.text import parse_graph
from ge.verify import verify

DIAMOND = """graph g(%x: f32[4]@ND) {
  %a = Abs(%x) -> f32[4]@ND
  %e = Exp(%a) -> f32[4]@ND
  %r = Relu(%a) -> f32[4]@ND
  %sum = Add(%e, %r) -> f32[4]@ND
  %extra = Cast(%x) {dst_type=1} -> f16[4]@ND
  return %sum, %extra
}"""


def diamond() -> tuple[Graph, SubgraphBoundary]:
    """Abs feeding Exp and Relu, and the border around the three."""
    graph = parse_graph(DIAMOND)
    return graph, around(graph, [[("a", 0)]], [("e", 0), ("r", 0)])


def around(graph: Graph, inputs: list[list[tuple[str, int]]], outputs: list[tuple[str, int]]) -> SubgraphBoundary:
    boundary = SubgraphBoundary()
    for index, ports in enumerate(inputs):
        assert boundary.add_input(index, SubgraphInput([(graph.find(name), slot) for name, slot in ports])) == 0
    for index, (name, out) in enumerate(outputs):
        assert boundary.add_output(index, SubgraphOutput(graph.find(name), out)) == 0
    return boundary


def written(expression, name: str = "replacement") -> Graph:
    builder = GraphBuilder(name)
    inputs = [builder.create_input(0)]
    result = expression(*inputs)
    return builder.build_and_reset(list(result) if isinstance(result, tuple) else [result])


def types_read_by(graph: Graph, name: str) -> list[str]:
    return [source.node.type for source in graph.find(name).inputs]


def test_case_20_a_border_is_replaced() -> None:
    graph, boundary = diamond()
    assert SubgraphRewriter.replace(boundary, written(lambda x: (Relu(x), Abs(x)))) == 0
    verify(graph)
    assert types_read_by(graph, "sum") == ["Relu", "Abs"]
    assert [n for n in "aer" if n in graph] == []


def test_case_21_other_readers_of_the_inputs_stay() -> None:
    graph, boundary = diamond()
    SubgraphRewriter.replace(boundary, written(lambda x: (Relu(x), Abs(x))))
    assert graph.find("extra").input(0).node.name == "x"


def test_case_22_inputs_may_be_passed_through() -> None:
    graph, boundary = diamond()
    assert SubgraphRewriter.replace(boundary, written(lambda x: (x, Abs(x)))) == 0
    assert types_read_by(graph, "sum") == ["Data", "Abs"]
    graph, boundary = diamond()
    assert SubgraphRewriter.replace(boundary, written(lambda x: (x, x))) == 0
    assert types_read_by(graph, "sum") == ["Data", "Data"]
    verify(graph)


def test_the_replacement_is_copied() -> None:
    replacement = written(lambda x: (Relu(x), Abs(x)))
    for _ in range(2):
        graph, boundary = diamond()
        assert SubgraphRewriter.replace(boundary, replacement) == 0
    assert [n.name for n in replacement] == ["input_0", "Relu_0", "Abs_1", "NetOutput_replacement"]
    assert graph.find("Relu_0_a_e_r_0") is not None


def test_new_nodes_follow_the_node_of_output_0() -> None:
    graph, boundary = diamond()
    SubgraphRewriter.replace(boundary, written(lambda x: (Relu(x), Abs(x))))
    assert [n.type for n in graph] == ["Data", "Relu", "Abs", "Add", "Cast"]


def test_several_ports_may_read_one_tensor() -> None:
    graph = parse_graph("graph g(%x: f32[4]@ND) {\n  %e = Exp(%x)\n  %m = Mul(%x, %e)\n  return %m\n}")
    boundary = around(graph, [[("e", 0), ("m", 0)]], [("m", 0)])
    assert SubgraphRewriter.replace(boundary, written(Relu)) == 0
    assert [n.type for n in graph] == ["Data", "Relu"]


# -- borders that are none -----------------------------------------------------------------------------------------
def test_ports_of_one_input_read_one_tensor() -> None:
    graph = parse_graph(DIAMOND)
    ports = SubgraphInput()
    assert ports.add_input(graph.find("e"), 0) == 0
    assert ports.add_input(graph.find("r"), 0) == 0
    assert ports.add_input(graph.find("sum"), 0) != 0
    assert ports.add_input(graph.find("e"), 3) != 0
    boundary = SubgraphBoundary()
    boundary.add_input(0, SubgraphInput([(graph.find("e"), 0), (graph.find("sum"), 0)]))
    boundary.add_output(0, SubgraphOutput(graph.find("sum"), 0))
    assert SubgraphRewriter.replace(boundary, written(Relu)) == FAILED


def test_outputs_and_numbers_are_given_once() -> None:
    graph = parse_graph(DIAMOND)
    output = SubgraphOutput(graph.find("e"), 0)
    assert output.set_output(graph.find("r"), 0) != 0
    assert SubgraphOutput().set_output(graph.find("e"), 1) != 0
    boundary = SubgraphBoundary()
    for add, item in ((boundary.add_input, SubgraphInput()), (boundary.add_output, output)):
        assert [add(0, item), add(0, item) != 0, add(-1, item) != 0] == [0, True, True]


@pytest.mark.parametrize(
    ("inputs", "outputs", "reason"),
    [
        ([], [("a", 0)], "the graph's input x would lie inside"),
        ([[("a", 0)]], [], "the boundary has no output"),
        ([[("a", 0)]], [("e", 0)], "node a is not an output, but r reads it"),
        ([[("a", 0)], [("extra", 0)]], [("a", 0)], "input 0 of node extra is not on a way to the outputs"),
        ([[]], [("a", 0)], "there are none"),
    ],
)
def test_borders_that_enclose_nothing(inputs, outputs, reason, caplog) -> None:
    graph = parse_graph(DIAMOND)
    boundary = around(graph, inputs, outputs)
    with caplog.at_level(logging.ERROR, "atc"):
        assert SubgraphRewriter.replace(boundary, written(Abs)) == FAILED
    assert reason in caplog.text
    with pytest.raises(RuntimeError, match=reason):
        SubgraphRewriter.replace(boundary, written(Abs), context=PassContext("P"))


def test_numbers_have_no_gaps() -> None:
    graph = parse_graph(DIAMOND)
    boundary = SubgraphBoundary()
    boundary.add_input(0, SubgraphInput([(graph.find("a"), 0)]))
    boundary.add_output(1, SubgraphOutput(graph.find("a"), 0))
    with pytest.raises(RuntimeError, match="1 outputs but no output 0"):
        SubgraphRewriter.replace(boundary, written(Abs), context=PassContext("P"))


@pytest.mark.parametrize(
    "call",
    [
        lambda graph: SubgraphInput([("a", 0)]),
        lambda graph: SubgraphInput().add_input(graph.find("a"), "0"),
        lambda graph: SubgraphOutput("a", 0),
        lambda graph: SubgraphOutput(graph.find("a"), None),
        lambda graph: SubgraphBoundary().add_input(0, SubgraphOutput()),
        lambda graph: SubgraphBoundary().add_output("0", SubgraphOutput()),
        lambda graph: SubgraphRewriter.replace(SubgraphBoundary(), None),
        lambda graph: SubgraphRewriter.replace(None, graph),
        lambda graph: SubgraphRewriter.replace(diamond()[1], written(lambda x: (x, x)), context="P"),
    ],
)
def test_arguments_of_other_types(call) -> None:
    with pytest.raises(TypeError):
        call(parse_graph(DIAMOND))


def test_pairs_are_pairs() -> None:
    with pytest.raises(RuntimeError, match=r"takes pairs \(node, input port\)"):
        SubgraphInput([parse_graph(DIAMOND).find("a")])


def test_sizes_must_fit() -> None:
    graph, boundary = diamond()
    assert SubgraphRewriter.replace(boundary, written(Relu)) == FAILED
    with pytest.raises(RuntimeError, match="Replacement output size: 1 not equal with Boundary output size: 2"):
        SubgraphRewriter.replace(boundary, written(Relu), context=PassContext("P"))
    assert [n.name for n in graph] == ["x", "a", "e", "r", "sum", "extra"]


# -- with a context --------------------------------------------------------------------------------------------------
def labelled() -> Graph:
    graph = parse_graph(DIAMOND)
    graph.find("a").attrs["_user_stream_label"] = "stream_a"
    graph.find("e").attrs["_user_stream_label"] = "stream_b"
    return graph


def test_case_24_contradicting_labels() -> None:
    graph = labelled()
    boundary = around(graph, [[("a", 0)]], [("e", 0), ("r", 0)])
    replacement = written(lambda x: (Relu(x), Abs(x)))
    with pytest.raises(RuntimeError, match="_user_stream_label"):
        SubgraphRewriter.replace(boundary, replacement, context=PassContext("P"))
    assert SubgraphRewriter.replace(boundary, replacement) == FAILED
    found = can_fuse([graph.find("a"), graph.find("e")])
    assert not found.ok
    assert "stream_a" in found.reason
    assert "stream_b" in found.reason


def test_case_25_the_pass_needs_a_name() -> None:
    graph, boundary = diamond()
    replacement = written(lambda x: (Relu(x), Abs(x)))
    with pytest.raises(RuntimeError, match="the context has no pass name"):
        SubgraphRewriter.replace(boundary, replacement, context=PassContext())
    assert "a" in graph
    context = PassContext("Mine")
    assert SubgraphRewriter.replace(boundary, replacement, context=context) is None
    new = [n for n in graph if PASS_NAMES in n.attrs]
    assert sorted(n.type for n in new) == ["Abs", "Relu"]
    assert all(n.attrs[PASS_NAMES] == ["Mine"] and n.attrs[ORIGIN_NAMES] == ["a", "e", "r"] for n in new)
    times = context.statistics.graph_fusion["Mine"]
    assert (times.match, times.effect) == (1, 1)


def test_without_a_context_no_pass_is_noted() -> None:
    graph, boundary = diamond()
    SubgraphRewriter.replace(boundary, written(lambda x: (Relu(x), Abs(x))))
    [relu] = graph.nodes_of_type("Relu")
    assert PASS_NAMES not in relu.attrs
    assert relu.attrs[ORIGIN_NAMES] == ["a", "e", "r"]


# -- can_fuse and report_fuse ----------------------------------------------------------------------------------------
def test_nodes_that_can_be_fused() -> None:
    graph = parse_graph(DIAMOND)
    assert can_fuse([graph.find("e"), graph.find("sum")]) == FuseCheckResult(True, "")


def test_can_fuse_gives_the_first_reason() -> None:
    graph, other = labelled(), parse_graph(DIAMOND)
    removed = other.find("extra")
    other.remove_node(removed)
    assert can_fuse([]).reason == "nodes_before_fuse is empty"
    assert can_fuse([removed]).reason == "owner graph is null"
    assert can_fuse([graph.find("a"), other.find("e")]).reason == "nodes belong to different graphs, node: e"
    assert can_fuse([graph.find("a"), removed]).reason == "nodes belong to different graphs, node: extra"
    assert "_user_stream_label" in can_fuse([graph.find("a"), graph.find("e")]).reason
    assert can_fuse([graph.find("a"), graph.find("sum")]).reason == "it will create cycle after fuse"
    with pytest.raises(TypeError):
        can_fuse(["a"])


def test_report_fuse_notes_and_counts() -> None:
    graph = parse_graph(DIAMOND)
    old = [graph.find("a"), graph.find("e")]
    new = graph.add_node("Tanh", "new", [graph.find("x").output()])
    context = PassContext("Mine")
    report_fuse(old, [new], context)
    report_fuse(old, [], context)
    assert new.attrs[ORIGIN_NAMES] == ["a", "e"]
    assert new.attrs[PASS_NAMES] == ["Mine"]
    times = context.statistics.graph_fusion["Mine"]
    assert (times.match, times.effect) == (2, 2)


@pytest.mark.parametrize(
    ("before", "after", "name", "reason"),
    [
        ("", "", "P", "nodes_before_fuse is empty"),
        ("a", "", "", "the context has no pass name"),
        ("a", "other", "P", "nodes belong to different graphs, node: x"),
    ],
)
def test_report_fuse_refuses(before, after, name, reason) -> None:
    graph = parse_graph(DIAMOND)
    old = [graph.find(before)] if before else []
    new = [parse_graph(DIAMOND).find("x")] if after else []
    with pytest.raises(RuntimeError, match=reason):
        report_fuse(old, new, PassContext(name))


# -- infer_shape -----------------------------------------------------------------------------------------------------
def open_graph() -> Graph:
    return parse_graph("""graph g(%x: f16[-1,8]@NCHW, %y: f16[1,8]@ND) {
  %s = Const {value=i64[2]{4, -1}} -> i64[2]@ND
  %sum = Add(%x, %y) -> f16[-1,8]@ND
  %flat = Reshape(%sum, %s) -> f16[4,-1]@ND
  return %flat
}""")


def test_shapes_and_types_follow_the_producers() -> None:
    builder = GraphBuilder("r")
    a, b = builder.create_inputs(2)
    replacement = builder.build_and_reset([Sub(a, b)])
    infer_shape(replacement, open_graph().find("sum"))
    [sub] = replacement.nodes_of_type("Sub")
    assert (sub.output_descs[0].shape, sub.output_descs[0].data_type) == ([-1, 8], DataType.DT_FLOAT16)
    data = replacement.data_nodes()[0].output_descs[0]
    assert (data.origin_format.name, data.data_type.name) == ("FORMAT_NCHW", "DT_FLOAT16")


def test_constants_are_known_inside() -> None:
    builder = GraphBuilder("r")
    x, shape = builder.create_inputs(2)
    replacement = builder.build_and_reset([Reshape(Exp(x), shape)])
    graph = open_graph()
    infer_shape(replacement, around(graph, [[("flat", 0)], [("flat", 1)]], [("flat", 0)]))
    assert replacement.nodes_of_type("Reshape")[0].output_descs[0].shape == [4, -1]


def test_one_tensor_on_two_ports_is_one_input_of_a_node() -> None:
    graph = parse_graph("graph g(%x: f32[4]@ND) {\n  %sum = Add(%x, %x)\n  return %sum\n}")
    one, two = written(lambda x: Add(x, x)), GraphBuilder("two")
    infer_shape(one, graph.find("sum"))
    a, b = two.create_inputs(2)
    with pytest.raises(RuntimeError, match=r"infer_shape failed, replacement_graph=two, source_type=Node: input 1 is"):
        infer_shape(two.build_and_reset([a + b]), graph.find("sum"))


def test_what_cannot_be_inferred_is_said() -> None:
    graph = parse_graph("graph g(%x: f32[4]@ND, %y: f32[3]@ND) {\n  %sum = Concat(%x, %x, %y)\n  return %sum\n}")
    builder = GraphBuilder("r")
    a, b = builder.create_inputs(2)
    replacement = builder.build_and_reset([a + b])
    with pytest.raises(RuntimeError, match=r"infer_shape failed, replacement_graph=r, source_type=Node: E14001: .*Add"):
        infer_shape(replacement, graph.find("sum"))


def test_infer_shape_checks_its_arguments() -> None:
    graph = open_graph()
    with pytest.raises(RuntimeError, match=r"^replacement graph is empty$"):
        infer_shape(Graph("r"), graph.find("sum"))
    for arguments in ((None, graph.find("sum")), (graph, None), (graph, "sum")):
        with pytest.raises(TypeError):
            infer_shape(*arguments)


@pytest.mark.parametrize("is_set_late", [False, True])
def test_one_tensor_is_not_two_outputs(is_set_late: bool) -> None:
    graph = parse_graph(DIAMOND)
    before, abs_ = str(graph), graph.find("a")
    boundary = SubgraphBoundary()
    assert boundary.add_input(0, SubgraphInput([(abs_, 0)])) == 0
    assert boundary.add_output(0, SubgraphOutput(abs_, 0)) == 0
    second = SubgraphOutput() if is_set_late else SubgraphOutput(abs_, 0)
    assert (boundary.add_output(1, second) == 0) is is_set_late
    if is_set_late:
        assert second.set_output(abs_, 0) == 0
    replacement = written(lambda x: (Exp(x), Relu(x)))
    assert SubgraphRewriter.replace(boundary, replacement) == FAILED
    with pytest.raises(RuntimeError, match=r"two outputs|output size"):
        SubgraphRewriter.replace(boundary, replacement, context=PassContext("P"))
    assert str(graph) == before


def test_a_replacement_that_calls_a_graph_that_is_not_there_changes_nothing() -> None:
    graph, boundary = diamond()
    before = str(graph)
    replacement = written(lambda x: (Exp(x), Relu(x)))
    next(node for node in replacement if node.type == "Exp").subgraphs.append(("then_branch", "nowhere"))
    assert SubgraphRewriter.replace(boundary, replacement) == FAILED
    assert str(graph) == before
