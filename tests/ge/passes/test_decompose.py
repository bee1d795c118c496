"""Passes that replace single nodes: cases 26 and 27 of the reference."""

from __future__ import annotations

import pytest

from ge.es import GraphBuilder
from ge.es.all import Abs, Add, Relu, Sub
from ge.passes import DecomposePass, PassContext
from ge.passes.engine import PassFailure
from tests.ge.passes.pass_run import decompose, run

TWO = """graph g(%x: f32[4]@ND) {
  %a = TransData(%x) {src_format="ND", dst_format="ND"} -> f32[4]@ND
  %b = Neg(%a) -> f32[4]@ND
  %c = TransData(%b) {src_format="ND", dst_format="ND"} -> f32[4]@ND
  return %c
}"""


def graph_of(count: int, expression):
    builder = GraphBuilder("r")
    result = expression(*builder.create_inputs(count))
    return builder.build_and_reset(result if isinstance(result, list) else [result])


def test_case_26_all_nodes_of_the_type_are_replaced() -> None:
    result = run(decompose("TransData", into=lambda node: graph_of(1, Relu)), TWO)
    assert result.changed
    assert result.types() == ["Neg", "Relu", "Relu"]
    assert result.times == (2, 2)
    assert [n.attrs["pass_name"] for n in result.graph.nodes_of_type("Relu")] == [["P"], ["P"]]


def test_case_26_only_those_that_meet_the_requirements() -> None:
    result = run(decompose("TransData", into=lambda node: graph_of(1, Relu), meets=lambda node: False), TWO)
    assert not result.changed
    assert result.times == (2, 0)
    result = run(decompose("TransData", into=lambda n: graph_of(1, Relu), meets=lambda n: n.name == "c"), TWO)
    assert result.types() == ["Neg", "Relu", "TransData"]


def test_case_26_a_replacement_of_another_arity() -> None:
    with pytest.raises(PassFailure, match="Replacement input size: 2 not equal with Boundary input size: 1"):
        run(decompose("TransData", into=lambda node: graph_of(2, Add)), TWO)
    with pytest.raises(PassFailure, match="Replacement output size: 2 not equal with Boundary output size: 1"):
        run(decompose("TransData", into=lambda node: graph_of(1, lambda x: [Relu(x), Abs(x)])), TWO)


def test_case_27_one_tensor_on_two_ports_is_one_input() -> None:
    text = "graph g(%x: f32[4]@ND) {\n  %sum = Add(%x, %x)\n  return %sum\n}"
    with pytest.raises(PassFailure, match="Replacement input size: 2 not equal with Boundary input size: 1"):
        run(decompose("Add", into=lambda node: graph_of(2, Sub)), text)
    assert run(decompose("Add", into=lambda node: graph_of(1, lambda x: Sub(x, x))), text).types() == ["Sub"]


def test_absent_inputs_are_no_inputs() -> None:
    text = """graph g(%x: f32[2,2]@ND, %w: f32[2,2]@ND) {
  %m = MatMulV2(%x, %w, _, _) -> f32[2,2]@ND
  return %m
}"""
    assert run(decompose("MatMulV2", into=lambda node: graph_of(2, Add)), text).types() == ["Add"]


def test_every_output_is_one() -> None:
    text = """graph g(%x: f32[4]@ND) {
  %s:2 = SplitD(%x) {split_dim=0, num_split=2} -> f32[2]@ND, f32[2]@ND
  %n = Neg(%s:1) -> f32[2]@ND
  return %s:0, %n
}"""
    result = run(decompose("SplitD", into=lambda node: graph_of(1, lambda x: [Relu(x), Abs(x)])), text)
    assert [out.node.type for out in result.graph.outputs] == ["Relu", "Neg"]
    assert result.graph.find("n").input(0).node.type == "Abs"


def test_new_nodes_are_left_alone() -> None:
    """The nodes are listed once, so a replacement may hold the type that is replaced."""
    result = run(
        decompose("Abs", into=lambda node: graph_of(1, lambda x: Abs(Relu(x)))),
        "graph g(%x: f32[4]@ND) {\n  %a = Abs(%x)\n  return %a\n}",
    )
    assert result.types() == ["Abs", "Relu"]


def test_several_types() -> None:
    result = run(decompose("Neg", "TransData", into=lambda node: graph_of(1, Relu)), TWO)
    assert result.types() == ["Relu", "Relu", "Relu"]


def test_bodies_are_looked_at() -> None:
    text = """graph g(%c: bool[]@ND, %x: f32[4]@ND) {
  %y = If(%c, %x) {then_branch=@t, else_branch=@e} -> f32[4]@ND
  return %y
}
graph t(%t/in: f32[4]@ND) {
  %t/a = Abs(%t/in) -> f32[4]@ND
  return %t/a
}
graph e(%e/in: f32[4]@ND) {
  %e/a = Neg(%e/in) -> f32[4]@ND
  return %e/a
}"""
    result = run(decompose("Abs", "Neg", into=lambda node: graph_of(1, Relu)), text)
    assert [n.type for body in result.graph.subgraphs.values() for n in body if n.type != "Data"] == ["Relu", "Relu"]


def test_hooks_may_take_the_context_and_look_at_the_node() -> None:
    class Permuting(DecomposePass):
        op_types = ["Transpose"]  # noqa: RUF012 - set by the registration otherwise

        def meet_requirements(self, node, context: PassContext):
            perm, _ = node.get_in_data_nodes_and_port_indexes(1)
            return perm.get_attr("value").data == [0, 1] and context.get_pass_name() == "P"

        def replacement(self, node, context: PassContext):
            return graph_of(2, lambda x, perm: x)

    text = """graph g(%x: f32[2,3]@ND) {
  %p = Const {value=i64[2]{0, 1}} -> i64[2]@ND
  %q = Const {value=i64[2]{1, 0}} -> i64[2]@ND
  %t = Transpose(%x, %p) -> f32[2,3]@ND
  %u = Transpose(%t, %q) -> f32[3,2]@ND
  return %u
}"""
    assert run(Permuting, text).types() == ["Transpose"]


@pytest.mark.parametrize("hook", ["meet_requirements", "replacement"])
def test_faults_of_hooks(hook) -> None:
    def boom(self, node):
        raise ValueError("boom")

    base = decompose("TransData", into=lambda node: graph_of(1, Relu))
    cls = type("Odd", (base,), {hook: boom})
    if hook == "replacement":
        with pytest.raises(PassFailure, match=r"replacement\(\) raised ValueError: boom"):
            run(cls, TWO)
        return
    result = run(cls, TWO)
    assert not result.changed
    assert "leaves node a alone: meet_requirements() failed: ValueError: boom" in result.warnings[0]


def test_a_replacement_is_a_graph() -> None:
    with pytest.raises(PassFailure, match=r"DecomposePass\.replacement must return ge\.graph\.Graph, not NoneType"):
        run(decompose("TransData", into=lambda node: None), TWO)


def test_types_are_needed() -> None:
    class Bare(DecomposePass):
        def replacement(self, node):
            raise AssertionError

    with pytest.raises(PassFailure, match="op_types is not set"):
        run(Bare, TWO)


@pytest.mark.parametrize("is_nested", [False, True])
def test_the_bodies_of_a_replaced_node_go_with_it(is_nested: bool) -> None:
    inner = "%b = Abs(%x) -> f32[4]@ND"
    if is_nested:
        inner = "%b = If(%c, %x) {then_branch=@deep, else_branch=@deeper} -> f32[4]@ND"
    text = """graph g(%c: bool[]@ND, %x: f32[4]@ND) {
  %y = If(%c, %c, %x) {then_branch=@t, else_branch=@e} -> f32[4]@ND
  %z = If(%c, %c, %x) {then_branch=@u, else_branch=@v} -> f32[4]@ND
  return %y, %z
}"""
    for name in "teuv":
        body = inner if name == "t" else "%b = Abs(%x) -> f32[4]@ND"
        text += f"\ngraph {name}(%c: bool[]@ND, %x: f32[4]@ND) {{\n  {body}\n  return %b\n}}"
    for name in ("deep", "deeper") if is_nested else ():
        text += f"\ngraph {name}(%x: f32[4]@ND) {{\n  %b = Neg(%x) -> f32[4]@ND\n  return %b\n}}"
    result = run(
        decompose("If", into=lambda node: graph_of(2, lambda c, x: Relu(x)), meets=lambda n: n.name == "y"), text
    )
    assert sorted(result.graph.subgraphs) == ["u", "v"]
