"""Two Reshapes in a row become one."""

from __future__ import annotations

import numpy as np
import pytest

from ge.fusion_switches import FusionSwitches
from ge.options import CompileOptions, Environment
from ge.session import CompileSession
from ge.text import parse_graph
from passes.fusion.reshape_reshape import ReshapeReshape
from tests.passes.fusion.fused import fused, run_model

CHAIN = """graph g(%x: f32[2,6]@ND) {
  %s = Const {value=i64[2]{3, 4}} -> i64[2]@ND
  %t = Const {value=i64[2]{4, -1}} -> i64[2]@ND
  %r = Reshape(%x, %s) -> f32[3,4]@ND
  %q = Reshape(%r, %t) -> f32[4,3]@ND
  %y = Neg(%q) -> f32[4,3]@ND
  return %y
}"""


def test_the_outer_one_is_enough() -> None:
    graph, session = fused(ReshapeReshape, CHAIN)
    [reshape] = graph.nodes_of_type("Reshape")
    assert [source.node.name for source in reshape.inputs] == ["x", "t"]
    assert reshape.output_descs[0].shape == [4, 3]
    assert reshape.attrs["_datadump_original_op_names"] == ["r", "q"]
    times = session.fusion.graph_fusion["ReshapeReshapeFusionPass"]
    assert (times.match, times.effect) == (1, 1)


def test_three_in_a_row_become_one() -> None:
    text = CHAIN.replace("%y = Neg(%q) -> f32[4,3]@ND", "%y = Reshape(%q, %s) -> f32[3,4]@ND")
    text = text.replace("%s = Const", "%s2 = Const {value=i64[2]{3, 4}} -> i64[2]@ND\n  %s = Const")
    graph, _ = fused(ReshapeReshape, text.replace("Reshape(%x, %s)", "Reshape(%x, %s2)"))
    assert len(graph.nodes_of_type("Reshape")) == 1


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("Reshape(%r, %t)", "Reshape(%r, %t) {axis=1}", "the outer Reshape replaces some axes only"),
        ("{4, -1}", "{0, -1}", "the shape of the outer Reshape keeps a dim of the inner result"),
        ("(%x: f32[2,6]@ND)", "(%x: f32[2,6]@ND, %t: i64[2]@ND)", "the shape of the outer Reshape is not a constant"),
    ],
    ids=["some axes", "zero", "computed"],
)
def test_must_not_fire(old, new, reason) -> None:
    text = CHAIN.replace(old, new)
    if "%t: i64" in new:
        text = text.replace("  %t = Const {value=i64[2]{4, -1}} -> i64[2]@ND\n", "")
    graph, session = fused(ReshapeReshape, text)
    assert len(graph.nodes_of_type("Reshape")) == 2
    assert [refusal.reason for refusal in session.fusion.refusals] == [reason]


def test_an_inner_result_that_others_read_is_no_match() -> None:
    graph, session = fused(ReshapeReshape, CHAIN.replace("return %y", "%z = Abs(%r) -> f32[3,4]@ND\n  return %y, %z"))
    assert len(graph.nodes_of_type("Reshape")) == 2
    assert session.fusion.graph_fusion == {}


@pytest.mark.parametrize(
    "switches", [FusionSwitches(graph={"ReshapeReshapeFusionPass": False}), FusionSwitches(is_level_one=True)]
)
def test_it_can_be_turned_off(switches) -> None:
    graph, _ = fused(ReshapeReshape, CHAIN, switches)
    assert len(graph.nodes_of_type("Reshape")) == 2


def test_numbers_are_the_same(rng) -> None:
    x = rng.standard_normal((2, 6)).astype(np.float32)
    expected = -x.reshape(4, 3)
    for switches in (FusionSwitches(), FusionSwitches(graph={"ALL": False})):
        session = CompileSession(CompileOptions(fusion_switches=switches), Environment())
        [found] = run_model(parse_graph(CHAIN), session, [x])
        np.testing.assert_array_equal(found, expected)
        assert len(session.fusion.graph_fusion) == (0 if switches.graph else 1)
