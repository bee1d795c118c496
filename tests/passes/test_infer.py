"""Shape inference and constant folding: a small graph in, the expected graph out."""

import numpy as np
import pytest

from ge import constant_values
from ge.constant_values import ConstantValues
from ge.errors import ReportedError
from ge.graph import Graph, Tensor
from ge.options import CompileOptions, Environment
from ge.session import CompileSession
from ge.text import parse_graph, print_graph
from ge.verify import verify
from passes.infer.fold_constants import FoldConstants
from passes.infer.infer_shapes import InferShapes


def run(text: str, *steps) -> str:
    graph = parse_graph(text)
    for step in steps:
        step.run(graph, CompileSession(CompileOptions(), Environment()))
        verify(graph)
    return print_graph(graph)


def test_shapes_flow_and_values_decide_shapes() -> None:
    before = """graph g(%x: f32[2,3,4]@ND) {
  %s = Shape(%x) {dtype=9}
  %i = Const {value=i32[1]{0}}
  %axis = Const {value=i32[]{0}}
  %batch = GatherV2(%s, %i, %axis)
  %rest = Const {value=i64[1]{-1}}
  %target = ConcatD(%batch, %rest) {concat_dim=0, N=2}
  %y = Reshape(%x, %target)
  return %y
}"""
    text = run(before, InferShapes())
    assert "%batch = GatherV2(%s, %i, %axis) -> i64[1]@ND" in text
    assert "%target = ConcatD(%batch, %rest) {concat_dim=0, N=2} -> i64[2]@ND" in text
    assert "%y = Reshape(%x, %target) -> f32[2,12]@ND" in text


def test_unknown_shapes_stay_unknown() -> None:
    before = """graph g(%x: f32[-1,3]@ND, %n: i64[2]@ND) {
  %a = Neg(%x)
  %y = Reshape(%a, %n)
  return %y
}"""
    text = run(before, InferShapes())
    assert "%a = Neg(%x) -> f32[-1,3]@ND" in text
    assert "%y = Reshape(%a, %n) -> f32[-1,-1]@ND" in text


def test_the_first_conflict_is_named_with_both_shapes() -> None:
    with pytest.raises(ReportedError, match=r"E14001.*\[sum\].*\[2,3\].*\[2,4\]"):
        run("graph g(%x: f32[2,3]@ND, %y: f32[2,4]@ND) { %sum = Add(%x, %y) return %sum }", InferShapes())


def test_a_cycle_is_reported() -> None:
    with pytest.raises(ReportedError, match=r"E19999.*\n?.*cycle: a -> b|cycle: b -> a"):
        run("graph g(%x: f32[2]@ND) { %a = Add(%x, %b) %b = Neg(%a) return %b }", InferShapes())


ARITHMETIC = """graph g(%x: f32[2]@ND) {
  %a = Const {value=f32[2]{1.0, 2.0}} -> f32[2]@ND
  %b = Const {value=f32[2]{10.0, 20.0}} -> f32[2]@ND
  %sum = Add(%a, %b) -> f32[2]@ND
  %neg = Neg(%sum) -> f32[2]@ND
  %y = Mul(%x, %neg) -> f32[2]@ND
  return %y
}"""


def test_constant_arithmetic_becomes_one_constant() -> None:
    after = """graph g(%x: f32[2]@ND) {
  %neg_folded = Const {value=f32[2]{-11.0, -22.0}, _datadump_original_op_names=[]} -> f32[2]@ND
  %y = Mul(%x, %neg_folded) -> f32[2]@ND
  return %y
}"""
    assert sorted(run(ARITHMETIC, FoldConstants()).splitlines()) == sorted(after.splitlines())


def test_shared_constants_survive_for_their_other_readers() -> None:
    text = run(ARITHMETIC.replace("return %y", "return %y, %a"), FoldConstants())
    assert "%a = Const" in text
    assert "%b = Const" not in text


def test_shape_of_a_static_tensor_is_a_constant_without_constant_inputs() -> None:
    text = run("graph g(%x: f32[2,3]@ND) { %s = Shape(%x) {dtype=9} return %s }", InferShapes(), FoldConstants())
    assert "value=i64[2]{2, 3}" in text


FILLS = """graph g(%x: f32[1000]@ND) {{
  %v = Const {{value=f32[]{{0.5}}}}
  %d = Const {{value=i64[1]{{1000}}}}
{fills}
  return {results}
}}"""


def _fills(count: int) -> str:
    lines = [f"  %f{i} = Fill(%d, %v)\n  %y{i} = Add(%x, %f{i})" for i in range(count)]
    return FILLS.format(fills="\n".join(lines), results=", ".join(f"%y{i}" for i in range(count)))


def test_folding_stops_where_the_file_would_grow_too_much() -> None:
    text = run(_fills(5), InferShapes(), FoldConstants(limit=10_000, small=100))
    assert text.count("_folded") == 2 * 2
    assert text.count("_load_time_const=true") == 3
    assert text.count("Fill(") == 3


def test_small_results_are_folded_even_without_budget() -> None:
    text = run(ARITHMETIC, FoldConstants(limit=0))
    assert "_load_time_const" not in text


def test_large_values_that_were_forgotten_are_computed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constant_values, "MAX_HELD_BYTES", 20_000)
    graph, results = Graph("g"), []
    for i in range(5):
        weight = graph.add_const(f"w{i}", Tensor.of(np.arange(i, i + 4096, dtype=np.float32)))
        results.append(graph.add_node("Square", f"s{i}", [graph.add_node("Neg", f"n{i}", [weight]).output()]).output())
    for node in graph:
        node.output_descs[0].set_shape([4096]).set_origin_shape([4096])
    values = ConstantValues()
    for i, out in [*enumerate(results), *enumerate(results)]:
        np.testing.assert_array_equal(values.of(out), np.arange(i, i + 4096, dtype=np.float32) ** 2)


def test_random_numbers_are_never_constants() -> None:
    text = run(
        "graph g() { %d = Const {value=i64[1]{3}} %r = RandomUniform(%d) {dtype=dtype f32} return %r }",
        InferShapes(),
        FoldConstants(),
    )
    assert "RandomUniform" in text
    assert "_load_time_const" not in text


def test_long_constant_chains_need_no_recursion() -> None:
    nodes = "\n".join(f"%n{i} = Neg(%n{i - 1}) -> f32[1]@ND" for i in range(1, 5001))
    graph = parse_graph(f"graph g() {{ %n0 = Const {{value=f32[1]{{2.0}}}} -> f32[1]@ND\n{nodes}\nreturn %n5000 }}")
    np.testing.assert_array_equal(ConstantValues().of(graph.outputs[0]), [2.0])
