"""Preparation passes: a small graph in, the expected graph out."""

import pytest

from ge.errors import ReportedError
from ge.graph import DataType
from ge.option_grammar import OutNode, OutputType
from ge.options import CompileOptions, Environment
from ge.session import CompileSession
from ge.text import parse_graph, print_graph
from ge.verify import verify
from passes.prepare.add_net_output import AddNetOutput
from passes.prepare.remove_dead_nodes import RemoveDeadNodes
from passes.prepare.remove_identity import RemoveIdentity
from passes.prepare.set_output_type import SetOutputType


def run(step, text: str, **options) -> str:
    graph = parse_graph(text)
    step.run(graph, CompileSession(CompileOptions(**options), Environment()))
    verify(graph)
    return print_graph(graph)


def test_add_net_output_reads_the_results_in_order() -> None:
    before = """graph g(%x: f32[2]@ND) {
  %a = Neg(%x) -> f32[2]@ND
  return %a as "first", %x as "second"
}"""
    after = """graph g(%x: f32[2]@ND) {
  %a = Neg(%x) -> f32[2]@ND
  %Node_Output:0 = NetOutput(%a, %x)
  return %a as "first", %x as "second"
}"""
    assert run(AddNetOutput(), before) == after
    assert run(AddNetOutput(), after) == after


def test_remove_dead_nodes_keeps_the_interface_and_what_results_need() -> None:
    before = """graph g(%x: f32[2]@ND, %unread: f32[2]@ND) {
  %a = Neg(%x) -> f32[2]@ND
  %dead = Abs(%a) -> f32[2]@ND
  %deader = Abs(%dead) -> f32[2]@ND
  %first = Neg(%unread) -> f32[2]@ND
  %b = Abs(%a) ctrl(%first) -> f32[2]@ND
  return %b
}"""
    after = """graph g(%x: f32[2]@ND, %unread: f32[2]@ND) {
  %a = Neg(%x) -> f32[2]@ND
  %first = Neg(%unread) -> f32[2]@ND
  %b = Abs(%a) ctrl(%first) -> f32[2]@ND
  return %b
}"""
    assert run(RemoveDeadNodes(), before) == after


def test_remove_identity_bypasses_chains_and_keeps_control_edges() -> None:
    before = """graph g(%x: f32[2]@ND) {
  %n = Neg(%x) -> f32[2]@ND
  %i = Identity(%x) ctrl(%n) -> f32[2]@ND
  %j = Identity(%i) -> f32[2]@ND
  %c = Cast(%j) {dst_type=0} -> f32[2]@ND
  %d = Cast(%c) {dst_type=3} -> i32[2]@ND
  %a = Abs(%d) ctrl(%j) -> i32[2]@ND
  return %a, %i
}"""
    after = """graph g(%x: f32[2]@ND) {
  %n = Neg(%x) -> f32[2]@ND
  %d = Cast(%x) {dst_type=3} ctrl(%n) -> i32[2]@ND
  %a = Abs(%d) ctrl(%n) -> i32[2]@ND
  return %a, %x
}"""
    assert run(RemoveIdentity(), before) == after


RESULTS = """graph g(%x: f32[2]@ND, %s: str[1]@ND) {
  %a = Neg(%x) -> f32[2]@ND
  %Node_Output:0 = NetOutput(%a, %x)
  return %a, %x
}"""


def test_set_output_type_casts_the_whole_interface() -> None:
    after = run(SetOutputType(), RESULTS, output_type=OutputType(whole=DataType.DT_FLOAT16))
    assert after.splitlines()[2:5] == [
        "  %a_0_output_cast = Cast(%a) {dst_type=1, _datadump_original_op_names=[]} -> f16[2]@ND",
        "  %x_0_output_cast = Cast(%x) {dst_type=1, _datadump_original_op_names=[]} -> f16[2]@ND",
        "  %Node_Output:0 = NetOutput(%a_0_output_cast, %x_0_output_cast)",
    ]


def test_set_output_type_finds_requested_outputs_by_place() -> None:
    options = {
        "out_nodes": (OutNode("gone", 0), OutNode("x", 0)),
        "output_type": OutputType(per_output={("gone", 0): DataType.DT_FLOAT16}),
    }
    assert "NetOutput(%a_0_output_cast, %x)" in run(SetOutputType(), RESULTS, **options)


def test_set_output_type_leaves_equal_types_alone_and_refuses_strings() -> None:
    assert run(SetOutputType(), RESULTS, output_type=OutputType(whole=DataType.DT_FLOAT)) == RESULTS
    strings = RESULTS.replace("NetOutput(%a, %x)", "NetOutput(%a, %s)")
    with pytest.raises(ReportedError, match=r"E10001.*s:0 is DT_STRING"):
        run(SetOutputType(), strings, output_type=OutputType(whole=DataType.DT_FLOAT))
