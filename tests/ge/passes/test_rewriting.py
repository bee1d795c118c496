"""What a rewrite makes of a graph: cases 17 to 19 and 23 of the reference, and its section on rewriting."""

from __future__ import annotations

import pytest

from ge.es import GraphBuilder
from ge.es.all import Abs, Add, Exp, Mul, Relu, SelectV2, Sub
from ge.es.all import If as IfOperator
from ge.passes import PatternFusionPass
from ge.passes.engine import PassFailure
from ge.passes.origins import AGREEING_ATTRS, ORIGIN_NAMES, ORIGIN_TYPES, PASS_NAMES
from ge.passes.rewriter import MAX_STEM
from ge.text import parse_graph
from tests.ge.passes.pass_run import Run, fusion, run


def add(net_output: str = "") -> str:
    return f"""graph g(%x: f32[4]@ND, %y: f32[4]@ND) {{
  %sum = Add(%x, %y) -> f32[4]@ND
  {net_output}
  return %sum
}}"""


def test_case_17_every_placeholder_needs_an_input_in_the_replacement() -> None:
    only_one, _ = fusion(lambda i: i[0] + i[1], into=lambda i: i[0])
    reason = r"Replacement input size: 1 not equal with Boundary input size: 2 \(in place of sum\)"
    with pytest.raises(PassFailure, match=reason):
        run(only_one, add())
    both, _ = fusion(lambda i: i[0] + i[1], into=lambda i: i[:2][0])
    assert run(both, add()).text == "graph g(%x: f32[4]@ND, %y: f32[4]@ND) {\n  return %x\n}"


def test_unused_placeholders_of_the_pattern_renumber_the_inputs() -> None:
    cls, _ = fusion(lambda i: i[2] + i[1], into=lambda i: Sub(i[0], i[1]))
    [sub] = run(cls, add()).graph.nodes_of_type("Sub")
    assert [source.node.name for source in sub.inputs] == ["y", "x"]


def test_case_18_one_output_too_many() -> None:
    cls, _ = fusion(lambda i: i[0] + i[1], into=lambda i: (Sub(i[0], i[1]), i[0]))
    with pytest.raises(PassFailure, match="Replacement output size: 2 not equal with Boundary output size: 1"):
        run(cls, add())


def test_a_placeholder_as_output_of_the_pattern_is_no_output() -> None:
    cls, _ = fusion(lambda i: (i[0] + i[1], i[0]), into=lambda i: (Sub(i[0], i[1]), i[0]))
    with pytest.raises(PassFailure, match="Replacement output size: 2 not equal with Boundary output size: 1"):
        run(cls, add())


def test_case_19_a_cycle_in_the_replacement() -> None:
    def mutual(i):
        a, b = Abs(i[0]), Exp(i[1])
        builder = a.get_owner_builder()
        builder.add_control_dependency(a, [b])
        builder.add_control_dependency(b, [a])
        return a + b

    cls, _ = fusion(lambda i: i[0] + i[1], into=mutual)
    with pytest.raises(PassFailure, match="There may exist cycle on replacement graph"):
        run(cls, add())


def test_case_23_results_of_the_model_follow() -> None:
    cls, _ = fusion(lambda i: i[0] + i[1], into=lambda i: Sub(i[0], i[1]))
    for text in (add(), add("%out:0 = NetOutput(%sum)")):
        result = run(cls, text).graph.outputs[0].node
        assert result.type == "Sub"


def test_case_23_a_target_follows_through_control_edges() -> None:
    """A node that must run though nobody reads it: NetOutput waits for it."""
    text = """graph g(%x: f32[4]@ND, %y: f32[4]@ND) {
  %sum = Add(%x, %y) -> f32[4]@ND
  %abs = Abs(%x) -> f32[4]@ND
  %out:0 = NetOutput(%abs) ctrl(%sum)
  return %abs
}"""
    cls, _ = fusion(lambda i: i[0] + i[1], into=lambda i: Sub(i[0], i[1]))
    graph = run(cls, text).graph
    [gate] = graph.net_output().control_inputs
    [sub] = gate.control_inputs
    assert (gate.type, gate.name) == ("NoOp", f"noop_out_{sub.name}")
    assert sub.type == "Sub"
    assert graph.find("sum") is None


def test_new_nodes_wait_for_what_the_old_ones_waited_for() -> None:
    text = """graph g(%x: f32[4]@ND) {
  %before = Neg(%x) -> f32[4]@ND
  %a = Abs(%x) ctrl(%before) -> f32[4]@ND
  %r = Relu(%a) -> f32[4]@ND
  %behind = Neg(%x) ctrl(%a) -> f32[4]@ND
  return %r, %behind, %before
}"""
    cls, _ = fusion(lambda i: Relu(Abs(i[0])), into=lambda i: Exp(Sub(i[0], 1.0)))
    graph = run(cls, text).graph
    new = [n for n in graph if n.type in ("Exp", "Sub") or n.attrs.get(PASS_NAMES)]
    assert {n.type for n in new} == {"Exp", "Sub", "Const"}
    [gate_in] = {gate for n in new for gate in n.control_inputs}
    [gate_out] = {gate for n in new for gate in n.control_outputs}
    assert gate_in.name == f"noop_in_{new[0].name}"
    assert gate_out.name == f"noop_out_{new[-1].name}"
    assert [n.name for n in gate_in.control_inputs] == ["before"]
    assert [n.name for n in gate_out.control_outputs] == ["behind"]
    assert all(n.control_inputs == (gate_in,) and n.control_outputs == (gate_out,) for n in new)


def test_control_edges_are_lost_without_new_nodes() -> None:
    text = """graph g(%x: f32[4]@ND) {
  %before = Neg(%x) -> f32[4]@ND
  %a = Abs(%x) ctrl(%before) -> f32[4]@ND
  %behind = Neg(%a) ctrl(%a) -> f32[4]@ND
  return %behind, %before
}"""
    cls, _ = fusion(lambda i: Abs(i[0]), into=lambda i: i[0])
    assert (
        run(cls, text).text
        == """graph g(%x: f32[4]@ND) {
  %before = Neg(%x) -> f32[4]@ND
  %behind = Neg(%x) -> f32[4]@ND
  return %behind, %before
}"""
    )


DIAMOND = """graph g(%x: f32[4]@ND) {
  %a = Abs(%x) -> f32[4]@ND
  %e = Exp(%a) -> f32[4]@ND
  %r = Relu(%a) -> f32[4]@ND
  %sum = Add(%e, %r) -> f32[4]@ND
  return %sum
}"""


def test_several_outputs_are_handed_over_in_order() -> None:
    def pattern(i):
        shared = Abs(i[0])
        return Exp(shared), Relu(shared)

    cls, _ = fusion(pattern, into=lambda i: (Relu(i[0]), Abs(i[0])))
    [total] = run(cls, DIAMOND).graph.nodes_of_type("Add")
    assert [source.node.type for source in total.inputs] == ["Relu", "Abs"]


def test_outputs_may_be_one_tensor() -> None:
    cls, _ = fusion(lambda i: (Exp(i[0]), Relu(i[0])), into=lambda i: (i[0], i[0]))
    assert (
        run(cls, DIAMOND).text
        == """graph g(%x: f32[4]@ND) {
  %a = Abs(%x) -> f32[4]@ND
  %sum = Add(%a, %a) -> f32[4]@ND
  return %sum
}"""
    )


def test_producers_of_inputs_may_have_other_readers() -> None:
    text = DIAMOND.replace("return %sum", "%other = Neg(%a) -> f32[4]@ND\n  return %sum, %other")
    cls, _ = fusion(lambda i: (Exp(i[0]), Relu(i[0])), into=lambda i: (Sub(i[0], i[0]), i[0]))
    assert run(cls, text).types() == ["Abs", "Add", "Neg", "Sub"]


# -- names and order -----------------------------------------------------------------------------------------------
def test_names_tell_where_new_nodes_come_from() -> None:
    cls, _ = fusion(lambda i: Relu(Abs(i[0])), into=lambda i: Exp(Sub(i[0], i[0])))
    text = "graph g(%x: f32[4]@ND) {\n  %a = Abs(%x)\n  %b = Relu(%a)\n  return %b\n}"
    assert [n.name for n in run(cls, text).graph if n.type != "Data"] == ["Sub_0_a_b_0", "Exp_1_a_b_1"]


def test_names_stay_short_when_rewrites_pile_up() -> None:
    chain = "\n".join(f"  %n{i}{'x' * 40} = Abs(%n{i - 1}{'x' * 40})" for i in range(1, 9))
    text = f"graph g(%x: f32[4]@ND) {{\n  %n0{'x' * 40} = Abs(%x)\n{chain}\n  return %n8{'x' * 40}\n}}"

    def pattern(i):
        value = i[0]
        for _ in range(9):
            value = Abs(value)
        return value

    cls, _ = fusion(pattern, into=lambda i: Exp(i[0]))
    [exp] = run(cls, text).graph.nodes_of_type("Exp")
    assert len(exp.name) < MAX_STEM + 30
    assert exp.attrs[ORIGIN_NAMES] == [f"n{i}{'x' * 40}" for i in range(9)]


def test_new_nodes_follow_the_node_of_output_0() -> None:
    text = """graph g(%x: f32[4]@ND) {
  %first = Abs(%x) -> f32[4]@ND
  %second = Neg(%x) -> f32[4]@ND
  %third = Abs(%first) -> f32[4]@ND
  %last = Add(%second, %third) -> f32[4]@ND
  return %last
}"""
    cls, _ = fusion(lambda i: Abs(i[0]), into=lambda i: Exp(Relu(i[0])))
    assert [n.type for n in run(cls, text).graph] == ["Data", "Relu", "Exp", "Neg", "Relu", "Exp", "Add"]


# -- what is handed on ---------------------------------------------------------------------------------------------
def labelled(attrs: dict[str, dict[str, object]]) -> Run:
    """Fuse Abs `a` and Relu `r`, which have these attributes, into an Exp."""
    graph = parse_graph("graph g(%x: f32[4]@ND) {\n  %a = Abs(%x)\n  %r = Relu(%a)\n  return %r\n}")
    for name, values in attrs.items():
        graph.find(name).attrs.update(values)
    cls, _ = fusion(lambda i: Relu(Abs(i[0])), into=lambda i: Exp(i[0]))
    return run(cls, graph, "Later")


@pytest.mark.parametrize("name", AGREEING_ATTRS)
def test_quirk_contradicting_attributes_leave_the_match_alone(name) -> None:
    """GE fails the compile there."""
    result = labelled({"a": {name: "one"}, "r": {name: "two"}})
    assert not result.changed
    assert result.times == (1, 0)
    [refusal] = result.context.statistics.refusals
    assert refusal.nodes == ("a", "r")
    assert all(part in refusal.reason for part in (name, "[one] on node a", "[two] on node r"))


@pytest.mark.parametrize(
    "name", [*AGREEING_ATTRS, "_op_compile_strategy", "_keep_dtype", "_op_debug_compile", "_parallel_group_id"]
)
def test_scheduling_attributes_are_inherited(name) -> None:
    [exp] = labelled({"r": {name: 7}}).graph.nodes_of_type("Exp")
    assert exp.attrs[name] == 7


@pytest.mark.parametrize("name", ["_recompute", "_optimizer", "_backward"])
def test_flags_are_inherited_if_any_node_has_them(name) -> None:
    [exp] = labelled({"a": {name: False}, "r": {name: True}}).graph.nodes_of_type("Exp")
    assert exp.attrs[name] is True


def test_descriptors_and_operator_attributes_are_not_inherited() -> None:
    [exp] = labelled({"a": {"private": 1}}).graph.nodes_of_type("Exp")
    assert "private" not in exp.attrs
    assert exp.output_descs[0].shape == [-2]


def test_values_that_a_new_node_has_stay() -> None:
    def into(i):
        y = Exp(i[0])
        y.get_owner_builder().set_node_attr_string(y, "_user_stream_label", "own")
        return y

    graph = parse_graph("graph g(%x: f32[4]@ND) {\n  %a = Abs(%x)\n  return %a\n}")
    graph.find("a").attrs["_user_stream_label"] = "old"
    cls, _ = fusion(lambda i: Abs(i[0]), into=into)
    [exp] = run(cls, graph).graph.nodes_of_type("Exp")
    assert exp.attrs["_user_stream_label"] == "own"


def test_origins_and_passes_are_recorded() -> None:
    result = labelled(
        {
            "a": {ORIGIN_NAMES: ["conv", "bn"], ORIGIN_TYPES: ["Conv2D", "BNInfer"], PASS_NAMES: ["Earlier"]},
            "r": {PASS_NAMES: ["Other", "Later"]},
        }
    )
    [exp] = result.graph.nodes_of_type("Exp")
    assert exp.attrs[ORIGIN_NAMES] == ["conv", "bn", "r"]
    assert exp.attrs[ORIGIN_TYPES] == ["Conv2D", "BNInfer", "Relu"]
    assert exp.attrs[PASS_NAMES] == ["Earlier", "Other", "Later"]


def test_a_node_that_stands_for_nothing_in_the_model_adds_no_origin() -> None:
    [exp] = labelled({"a": {ORIGIN_NAMES: []}}).graph.nodes_of_type("Exp")
    assert exp.attrs[ORIGIN_NAMES] == ["r"]


# -- bodies --------------------------------------------------------------------------------------------------------
def test_a_replacement_may_bring_bodies() -> None:
    def conditional(i):
        bodies = []
        for name, operator in (("then", Abs), ("else", Exp)):
            body = GraphBuilder(name)
            bodies.append(body.build_and_reset([operator(body.create_input(0))]))
        return IfOperator(i[1], [i[0]], 1, *bodies)[0]

    text = """graph g(%x: f32[4]@ND, %y: bool[]@ND) {
  %s1 = SelectV2(%y, %x, %x) -> f32[4]@ND
  %s2 = SelectV2(%y, %s1, %s1) -> f32[4]@ND
  return %s2
}"""
    cls, _ = fusion(lambda i: SelectV2(i[1], i[0], i[0]), into=conditional)
    graph = run(cls, text).graph
    assert len(graph.subgraphs) == 4
    assert {n.type for body in graph.subgraphs.values() for n in body} == {"Data", "Abs", "Exp", "NetOutput"}
    for body in graph.subgraphs.values():
        assert all(n.name.startswith(f"{body.name}/") for n in body)


IN_BODIES = """graph g(%c: bool[]@ND, %x: f32[4]@ND) {
  %a = Abs(%x) -> f32[4]@ND
  %y = If(%c, %a) {then_branch=@t, else_branch=@e} -> f32[4]@ND
  return %y
}
graph t(%t/in: f32[4]@ND) {
  %t/a = Abs(%t/in) -> f32[4]@ND
  return %t/a
}
graph e(%e/in: f32[4]@ND) {
  %e/a = Neg(%e/in) -> f32[4]@ND
  %e/b = Abs(%e/a) -> f32[4]@ND
  return %e/b
}"""


def test_case_28_bodies_are_rewritten_after_the_root() -> None:
    cls, seen = fusion(lambda i: Abs(i[0]), into=lambda i: Exp(i[0]))
    graph = run(cls, IN_BODIES).graph
    assert seen == [["a"], ["t/a"], ["e/b"]]
    assert [n.name for part in graph.all_graphs() for n in part if n.type == "Exp"] == [
        "Exp_0_a_0",
        "t/Exp_0_a_1",
        "e/Exp_0_b_2",
    ]


def test_case_28_patterns_are_asked_for_once_per_graph() -> None:
    asked = []

    class Asking(PatternFusionPass):
        def patterns(self):
            asked.append(1)

        def replacement(self, inputs):
            return inputs[0]

    assert not run(Asking, IN_BODIES).changed
    assert len(asked) == 3


def test_case_28_a_failure_in_a_body_fails_the_pass() -> None:
    cls, _ = fusion(lambda i: Abs(Mul(i[0], i[1])), into=lambda i: i[0])
    text = IN_BODIES.replace("%e/a = Neg(%e/in)", "%e/a = Mul(%e/in, %e/in)")
    with pytest.raises(PassFailure, match="Replacement input size: 1 not equal with Boundary input size: 2"):
        run(cls, text)


def test_case_28_bodies_whose_caller_is_gone_are_skipped() -> None:
    graph = parse_graph(IN_BODIES)
    node = graph.find("y")
    graph.outputs = [graph.find("a").output()]
    graph.remove_node(node)
    cls, seen = fusion(lambda i: Abs(i[0]))
    run(cls, graph)
    assert seen == [["a"]]
    assert list(graph.subgraphs) == ["t", "e"]


def test_constants_of_a_replacement_are_copied_not_shared() -> None:
    cls, _ = fusion(lambda i: Abs(i[0]), into=lambda i: Add(i[0], 1.5))
    text = "graph g(%x: f32[4]@ND) {\n  %a = Abs(%x)\n  %b = Abs(%a)\n  return %b\n}"
    values = [n.attrs["value"] for n in run(cls, text).graph.nodes_of_type("Const")]
    assert [v.data for v in values] == [1.5, 1.5]
    assert values[0] is not values[1]
