"""Dropout that keeps everything."""

from __future__ import annotations

import pytest

from passes.fusion.drop_idle_dropout import DropIdleDropout
from tests.passes.fusion.fused import fused, graph_of, left_alone

FORMS = {
    "floor": "%a = Add(%r, %c)\n  %m = Floor(%a)\n  %y = Mul(%x, %m)",
    "floor, turned over": "%a = Add(%c, %r)\n  %m = Floor(%a)\n  %y = Mul(%m, %x)",
    "cast": "%a = GreaterEqual(%r, %c)\n  %m = Cast(%a) {dst_type=0}\n  %y = Mul(%x, %m)",
    "select": "%a = GreaterEqual(%r, %c)\n  %y = SelectV2(%a, %x, %other)",
}


def text(lines: str, number: float, x: str = "2,3") -> str:
    return f"""graph g(%x: f32[{x}]@ND, %other: f32[2,3]@ND) {{
  %shape = Const {{value=i32[2]{{2,3}}}} -> i32[2]@ND
  %r = RandomUniform(%shape) {{dtype=0, seed=1, seed2=2}}
  %c = Const {{value=f32[]{{{number}}}}} -> f32[]@ND
  %z = Neg(%x)
  {lines.replace("%x", "%z")}
  return %y
}}"""


def idle(form: str) -> float:
    return 1.0 if form.startswith("floor") else 0.0


@pytest.mark.parametrize("form", FORMS)
def test_it_goes(form: str) -> None:
    result = fused(DropIdleDropout, graph_of(text(FORMS[form], idle(form))))
    kinds = {"RandomUniform", "Floor", "GreaterEqual", "Mul", "SelectV2"}
    assert not kinds & set(result.types())
    assert [out.node.name for out in result.graph.outputs] == ["z"]


@pytest.mark.parametrize("form", FORMS)
def test_dropout_that_drops_something_stays(form: str) -> None:
    [reason] = left_alone(DropIdleDropout, graph_of(text(FORMS[form], 0.5)))
    assert "dropped at random" in reason


@pytest.mark.parametrize("form", FORMS)
def test_a_smaller_tensor_stays(form: str) -> None:
    [reason] = left_alone(DropIdleDropout, graph_of(text(FORMS[form], idle(form), "1,3")))
    assert "larger" in reason


@pytest.mark.parametrize(
    "lines",
    [
        "%a = Add(%r, %c)\n  %m = Floor(%a)\n  %p = Mul(%x, %m)\n  %y = Add(%p, %m)",
        "%a = Greater(%c, %r)\n  %m = Cast(%a) {dst_type=0}\n  %y = Mul(%x, %m)",
        "%a = Add(%r, %c)\n  %m = Ceil(%a)\n  %y = Mul(%x, %m)",
        "%y = Mul(%x, %r)",
    ],
)
def test_other_uses_of_random_numbers_are_no_dropout(lines: str) -> None:
    assert left_alone(DropIdleDropout, graph_of(text(lines, 1.0))) == []
