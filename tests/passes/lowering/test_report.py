"""What the pass says about its work: the report, the rules, the dumps; and that numbers add up."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path

import pytest

from ge.ascir import parse_asc_graph, print_asc_graph
from ge.options import CompileOptions, Environment
from ge.session import CompileSession
from passes.lowering.fuse_loops import FuseLoops
from passes.lowering.kernel_rules import NotFused
from passes.lowering.lower_model import lower_model
from passes.lowering.refusal import Rule
from passes.lowering.report import fusion_report, kernel_report, report_text
from tests.passes.lowering.lowered import HOST, chain, graph_of, wiring

TEXT = """
graph net(%x: f32[2,8]@ND, %y: f32[8]@ND) {
  %a = Add(%x, %y)
  %b = Relu(%a)
  %c = Erfc(%b)
  %d = Neg(%c)
  return %d
}"""


def run(text: str, profile: str = "host", **environment: str) -> tuple[FuseLoops, CompileSession, list[str]]:
    graph = graph_of(text)
    session = CompileSession(CompileOptions(soc_version="Ascend910B1"), Environment(**environment))
    step = FuseLoops(profile)
    step.run(graph, session)
    return step, session, wiring(graph)


def test_the_report_tells_what_each_kernel_saves() -> None:
    step, _, _ = run(TEXT)
    [graph] = fusion_report(step.results)["graphs"]
    [kernel] = graph["kernels"]
    assert kernel["operators"] == ["a (Add)", "b (Relu)"]
    assert kernel["program"] == ["Add", "Relu"]
    assert (kernel["loads"], kernel["stores"]) == (2, 1)
    x, y = 2 * 8 * 4, 8 * 4
    assert (kernel["bytes_read"], kernel["bytes_written"]) == (x + y, x)
    assert kernel["bytes_saved"] == 2 * x  # the sum is neither written nor read
    assert graph["bytes_saved"] == 2 * x


def test_the_report_names_the_rule_and_both_operators_where_fusion_ended() -> None:
    step, _, _ = run(TEXT)
    [graph] = fusion_report(step.results)["graphs"]
    assert {"rule": "read-by-operator", "node": "b", "reader": "c", "detail": "Erfc"} in graph["operators_left"]
    assert {"rule": "no-lowering", "node": "c", "reader": "", "detail": "Erfc"} in graph["operators_left"]


def test_the_report_is_json_and_text() -> None:
    report = fusion_report(run(TEXT)[0].results)
    assert json.loads(json.dumps(report)) == report
    text = report_text(report)
    assert "  autofuse_pointwise_0_Add_Relu: a (Add), b (Relu)" in text
    assert "    [read-by-operator] b -> c: Erfc" in text


@pytest.mark.parametrize(
    ("profile", "flags", "is_fused"),
    [
        ("host", "", True),
        ("host", "--enable_autofuse=false", False),
        ("cann", "", False),
        ("cann", "--enable_autofuse=true", True),
    ],
)
def test_flags_beat_the_profile(profile: str, flags: str, is_fused: bool) -> None:
    _, _, lines = run(TEXT, profile, autofuse_flags=flags)
    assert any("AscBackend" in line for line in lines) == is_fused


def test_open_shapes_are_left_alone() -> None:
    _, _, lines = run("graph net(%x: f32[-1,8]@ND) { %a = Abs(%x) %b = Neg(%a) return %b }")
    assert lines == ["a = Abs(x)", "b = Neg(a)"]


def test_stages_have_the_names_that_dumps_have(monkeypatch: pytest.MonkeyPatch) -> None:
    stages: list[str] = []
    monkeypatch.setattr(CompileSession, "dump", lambda self, graph, stage: stages.append(stage))
    run(TEXT)
    assert stages == [
        "AutoFuser_BeforeAutoFuse",
        "AutoFuser_AfterLowering",
        "AutoFuser_AfterFusionStrategySolve",
        "AutoFuser_AfterLifting",
        "AutoFuser_AfterAllFuse",
    ]


def test_bodies_are_fused_too() -> None:
    text = """
    graph net(%c: bool[]@ND, %x: f32[2,8]@ND) {
      %i = If(%c, %x) {then_branch=@t, else_branch=@e} -> f32[2,8]@ND
      return %i
    }
    graph t(%tx: f32[2,8]@ND {_parent_node_index=1}) { %t1 = Abs(%tx) %t2 = Neg(%t1) return %t2 }
    graph e(%ex: f32[2,8]@ND {_parent_node_index=1}) { %e1 = Neg(%ex) %e2 = Abs(%e1) return %e2 }"""
    graph = graph_of(text)
    step = FuseLoops()
    assert step.run(graph, CompileSession(CompileOptions(), Environment()))
    bodies = [wiring(body) for body in graph.subgraphs.values()]
    assert bodies == [
        ["autofuse_pointwise_0_Abs_Neg = AscBackend(tx)"],
        ["autofuse_pointwise_1_Neg_Abs = AscBackend(ex)"],
    ]


def test_the_page_names_every_rule() -> None:
    page = (Path(__file__).parents[3] / "docs" / "lowering.md").read_text(encoding="utf-8")
    for rule in Rule:
        assert rule.value in page or rule is Rule.LIFTED, rule
    for code in NotFused:
        assert code.value in page


def test_the_program_on_the_page_is_canonical() -> None:
    page = (Path(__file__).parents[3] / "docs" / "lowering.md").read_text(encoding="utf-8")
    shown = textwrap.dedent(page[page.index("    ascgraph 1") : page.index("\n\nWhat CANN does")] + "\n")
    assert print_asc_graph(parse_asc_graph(shown)) == shown


def test_a_chain_of_cheap_operators_moves_a_fifth_at_most() -> None:
    graph = graph_of(
        chain("Abs", "Neg", "Relu", "Sqrt", "Square", "Abs", "Neg", "Relu", "Sqrt", "Square", "Abs", "Neg")
    )
    [fused] = lower_model(graph, HOST)
    [kernel] = [kernel_report(fused, kernel) for kernel in fused.kernels.values()]
    assert len(kernel.operators) == 12
    assert (kernel.read + kernel.written) * 5 <= kernel.unfused
