"""Several readers of one tensor that turn it into the same form."""

from __future__ import annotations

import pytest

from passes.format.trans_ops.breadth_fusion import TransOpBreadthFusion
from tests.passes.format.trans_ops.notation import BLOCKS, IMAGE, LAST, back, cast, trans, transpose
from tests.passes.format.trans_ops.rewritten import after, graph_of, run, shown

X = f"%x: f32{IMAGE}"
DIMS = "%{} = Const {{value=i64[2]{{{}}}}} -> i64[2]@ND"


def test_one_stays_for_the_readers_of_all() -> None:
    nodes = [f"%{name} = {trans('%x', f'f32{BLOCKS}')}" for name in "abc"]
    nodes += [f"%{name}_y = Relu(%{name}) -> f32{BLOCKS}" for name in "abc"]
    assert after(TransOpBreadthFusion(), *nodes, params=X, results="%a_y, %b_y, %c_y, %b") == [
        "a = TransData(x) -> f32[1,2,4,4,16]@NC1HWC0",
        "a_y = Relu(a) -> f32[1,2,4,4,16]@NC1HWC0",
        "b_y = Relu(a) -> f32[1,2,4,4,16]@NC1HWC0",
        "c_y = Relu(a) -> f32[1,2,4,4,16]@NC1HWC0",
        "NetOutput(a_y, b_y, c_y, a)",
    ]


def test_whole_runs_are_fused() -> None:
    nodes = []
    for name in "ab":
        nodes += [f"%{name}1 = {cast('%x', f'f16{IMAGE}')}", f"%{name}2 = {trans(f'%{name}1', f'f16{BLOCKS}')}"]
        nodes += [f"%{name}3 = {back(f'%{name}2', f'f16{IMAGE}')}"]
    assert len(after(TransOpBreadthFusion(), *nodes, params=X, results="%a3, %b3")) == 4


def test_constants_are_compared_by_value() -> None:
    nodes = [DIMS.format("s", "32,16"), DIMS.format("t", "32,16"), DIMS.format("u", "16,32")]
    nodes += [f"%{n} = Reshape(%x, %{s}) -> f32[32,16]@ND" for n, s in (("a", "s"), ("b", "t"))]
    nodes += ["%c = Reshape(%x, %u) -> f32[16,32]@ND"]
    graph = graph_of(*nodes, params=X, results="%a, %b, %c")
    assert run(TransOpBreadthFusion(), graph)
    assert shown(graph) == [
        "a = Reshape(x, s) -> f32[32,16]@ND",
        "c = Reshape(x, u) -> f32[16,32]@ND",
        "NetOutput(a, a, c)",
    ]
    assert [node.name for node in graph.nodes_of_type("Const")] == ["s", "u"]


def test_what_waited_for_one_waits_for_the_other() -> None:
    nodes = [f"%w = Exp(%x) -> f32{IMAGE}"]
    nodes += [f"%a = {cast('%x', f'f16{IMAGE}', ctrl='%w')}", f"%b = {cast('%x', f'f16{IMAGE}', ctrl='%w')}"]
    nodes += [f"%z = Neg(%x) ctrl(%b) -> f32{IMAGE}"]
    found = after(TransOpBreadthFusion(), *nodes, params=X, results="%a, %b, %z")
    assert set(found[-2].partition(" after ")[2].split(", ")) == {"a", "w"}
    assert found[-1] == "NetOutput(a, a, z)"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (cast("%x", f"f16{IMAGE}"), cast("%x", f"bf16{IMAGE}")),
        (trans("%x", f"f32{BLOCKS}"), trans("%x", "f32[1,32,4,4]@NCHW | [2,2,2,16,16]@FRACTAL_NZ", "NCHW FRACTAL_NZ")),
        (trans("%x", f"f32{BLOCKS}", label="1"), trans("%x", f"f32{BLOCKS}", label="2")),
        (trans("%x", f"f32{BLOCKS}"), trans("%x", f"f32{BLOCKS}", ctrl="%w")),
        (transpose("%x", "0,2,3,1", f"f32{LAST}"), transpose("%x", "0,2,3,1", f"f32{LAST}".replace("NHWC", "ND"))),
        ("Unsqueeze(%x) {axes=[0]} -> f32[1,1,32,4,4]@ND", "Unsqueeze(%x) {axes=[2]} -> f32[1,32,1,4,4]@ND"),
        (f"Relu(%x) -> f32{IMAGE}", f"Relu(%x) -> f32{IMAGE}"),
    ],
    ids=["types", "formats", "streams", "waiting", "meaning of axes", "shapes", "no trans-op"],
)
def test_left_alone(one: str, other: str) -> None:
    nodes = [f"%w = Exp(%x) -> f32{IMAGE}", f"%a = {one}", f"%b = {other}"]
    assert len(after(TransOpBreadthFusion(), *nodes, params=X, results="%a, %b, %w")) == 4
