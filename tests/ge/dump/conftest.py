"""Graphs to be dumped."""

from __future__ import annotations

import pytest

from ge.graph import Graph
from ge.text import parse_graph

NET = """
graph net(%x: f16[1,2,4,4]@NCHW | [1,1,4,4,16]@NC1HWC0, %go: bool[]@ND) {
  %w = Const {value=f32[2,1]{0.5, -1.0}} -> f32[2,1]@ND
  %mix:2 = MixForTest(%x, _, %w) {alpha=0.5, bits=bytes "00ff", flag=true, flags=[true, false], kind="sum",
    names=["a", "ü"], nested=[[1, 2], [3]], pads=[0, -1], to=dtype bf16, weights=[0.25, 1.5]}
    ctrl(%go) -> f32[-1(1~8),4]@ND, i64[]@ND
  %if = If(%go, %mix) {then_branch=@then, else_branch=@else} -> f32[4]@ND
  %Node_Output:0 = NetOutput(%if, %mix:1)
  return %if as "y", %mix:1 as "count"
}
graph then(%then/x: f32[-1,4]@ND) { %then/neg = Neg(%then/x) -> f32[4]@ND return %then/neg }
graph else(%else/x: f32[-1,4]@ND) { return %else/x }
"""
"""Two formats, an absent input, control edges, attributes of every kind, an unknown dim, two outputs, bodies."""


@pytest.fixture
def net() -> Graph:
    return parse_graph(NET)
