"""Kernels that share data become one, or stay apart for a reason that is told."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.passes.lowering.asc_numpy import run_graph
from tests.passes.lowering.lowered import CANN, HOST, Lowered, cann, graph_of, lowered
from tests.passes.lowering.test_meaning import values_for

BOTH = replace(HOST, disables_lifting=True)


def fused(text: str, strategy=BOTH) -> Lowered:
    """Lower, fuse kernels and lift; the results must stay what they were."""
    graph = graph_of(text)
    feeds = values_for(graph, np.random.default_rng(1))
    expected = run_graph(graph, feeds)
    result = lowered(graph, strategy, fuses_kernels=True)
    for a, b in zip(run_graph(graph, feeds), expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-6, atol=2e-6)
    return result


def types(result: Lowered) -> list[list[str]]:
    """What the kernels compute in the end."""
    return [kernel.graph.types() for kernel in result.kept]


def test_producer_and_consumer_become_one_kernel() -> None:
    text = "graph net(%x: f32[2,3]@ND) { %a = Abs(%x) %e = Exp(%a) %n = Neg(%e) return %n }"
    result = fused(text, CANN)
    assert result.after == ["autofuse_2_Abs_Exp_Neg = AscBackend(x)"]
    assert types(result) == [["Abs", "Exp", "Neg"]]


def test_a_tensor_that_others_need_is_stored_beside() -> None:
    text = "graph net(%x: f32[2,3]@ND) { %a = Abs(%x) %n = Neg(%a) %e = Erfc(%a) return %n, %e }"
    result = fused(text)
    assert result.after == ["autofuse_2_Abs_Neg = AscBackend(x)", "e = Erfc(autofuse_2_Abs_Neg)"]
    [kernel] = result.kept
    assert [tensor.node.name for tensor in kernel.results] == ["a", "n"]


def test_two_readers_of_a_tensor_become_one_kernel() -> None:
    text = """
    graph net(%x: f32[2,3]@ND, %y: f32[3]@ND) {
      %a = Add(%x, %y) %s = Sub(%x, %y) %e = Erfc(%a) %f = Erfc(%s) return %e, %f
    }"""
    result = fused(text)
    assert types(result) == [["Add", "Sub"]]
    assert len(result.kept[0].sources) == 2


def test_a_sum_of_the_residual_stream_goes_into_its_normalisation() -> None:
    """Both the sum and its norm are written, in one pass over memory."""
    text = """
    graph net(%x: f32[2,8]@ND, %y: f32[2,8]@ND, %g: f32[8]@ND) {
      %s = Add(%x, %y)
      %n:2 = RmsNorm(%s, %g)
      %r = Add(%s, %n)
      return %r, %s
    }"""
    result = fused(text)
    assert types(result) == [["Add", "Mul", "Mean", "Broadcast", "Add", "Sqrt", "TrueDiv", "Mul", "Add"]]


@pytest.mark.parametrize("keeps", ["true", "false"])
def test_what_follows_a_reduction_goes_into_it(keeps: str) -> None:
    body = f"%s = ReduceSumD(%x) {{axes=[1], keep_dims={keeps}}} %n = Neg(%s) return %n"
    text = f"graph net(%x: f32[2,3,16]@ND) {{ {body} }}"
    assert types(fused(text)) == [["Sum", "Neg"]]


def test_values_of_a_reduction_are_repeated_where_they_are_read() -> None:
    text = """
    graph net(%x: f32[2,3,16]@ND) {
      %m = ReduceMeanD(%x) {axes=[2], keep_dims=true} %c = Sub(%x, %m) return %c
    }"""
    assert types(fused(text)) == [["Mean", "Broadcast", "Sub"]]


@pytest.mark.parametrize(
    ("body", "strategy", "reason"),
    [
        ("%a = Exp(%x) %s = ReduceSumD(%a) {axes=[0]} %t = ReduceSumD(%s) {axes=[0]} return %t", BOTH,
         "[NF1031] autofuse_3_Exp_ReduceSumD -> autofuse_reduce_2_ReduceSumD"),
        ("%s = ReduceSumD(%x) {axes=[0]} %t = ReduceSumD(%x) {axes=[1]} return %s, %t", BOTH,
         "[NF1021] autofuse_reduce_0_ReduceSumD -> autofuse_reduce_1_ReduceSumD"),
        ("%a = Abs(%x) %c = ConcatD(%a, %a) {concat_dim=0, N=2} return %c", BOTH,
         "[NF1009] autofuse_pointwise_0_Abs -> autofuse_concat_1_ConcatD"),
        ("%a = Exp(%x) %n = Neg(%a) return %n", cann(max_fusion_size=11),
         "[NF1010] autofuse_pointwise_0_Exp -> autofuse_pointwise_1_Neg: 10 operators"),
        ('%a = Exp(%x) {_op_vectorcore_num="3"} %n = Neg(%a) return %n', cann(),
         "[NF1025] autofuse_pointwise_0_Exp -> autofuse_pointwise_1_Neg: 3 and 0 cores"),
        ('%a = Exp(%x) {_user_stream_label="p"} %n = Neg(%a) {_user_stream_label="q"} return %n', cann(),
         "[NF1005] autofuse_pointwise_0_Exp -> autofuse_pointwise_1_Neg: streams p and q"),
        ("%a = Exp(%x) %n = Neg(%a) ctrl(%a) return %n", cann(),
         "[NF1002] autofuse_pointwise_0_Exp -> autofuse_pointwise_1_Neg: one has to run"),
        ("%a = Exp(%x) %e = Erfc(%a) %n = Add(%a, %e) return %n", cann(),
         "[NF1002] autofuse_pointwise_0_Exp -> autofuse_pointwise_1_Add: another way"),
        ("%a = Exp(%x) %t = TransposeD(%a) {perm=[1,0]} return %t", BOTH,
         "[NF1006] autofuse_pointwise_0_Exp -> autofuse_pointwise_1_TransposeD: the result of one kernel is read"),
    ],
)  # fmt: skip
def test_kernels_stay_apart_for_a_reason(body: str, strategy, reason: str) -> None:
    strategy = replace(strategy, disables_lifting=True, heavy_types=frozenset({"Exp"}))
    if "NF1010" in reason:
        strategy = replace(strategy, max_fusion_size=9)
    result = fused(f"graph net(%x: f32[16,16]@ND) {{ {body} }}", strategy)
    assert [text for text in result.kernel_rules if text.startswith(reason)], result.kernel_rules


def test_inputs_are_limited() -> None:
    params = ", ".join(f"%x{k}: f32[2,3]@ND" for k in range(9))
    first, second = ", ".join(f"%x{k}" for k in range(4)), ", ".join(f"%x{k}" for k in range(4, 9))
    text = f"graph net({params}) {{ %a = AddN({first}) {{N=4}} %b = AddN(%a, {second}) {{N=6}} return %b }}"
    result = fused(text, cann(max_loop_loads=6))
    assert [rule.split("]")[0] for rule in result.kernel_rules] == ["[NF1007"]
    assert fused(text, cann(max_loop_loads=6, max_inputs_after_fusion=9)).kernel_rules == []


def test_equal_results_are_written_twice() -> None:
    text = "graph net(%x: f32[2,3]@ND) { %a = Abs(%x) %b = Abs(%x) return %a, %b }"
    result = fused(text)
    assert types(result) == [["Abs"]]
    assert len(result.kept[0].results) == 2


def test_rounds_go_on_until_nothing_changes() -> None:
    text = "\n".join(
        [
            "graph net(%x: f32[2,3]@ND) {",
            *[f"%n{k} = Exp(%{f'n{k - 1}' if k else 'x'})" for k in range(9)],
            "return %n8 }",
        ]
    )
    [kernel] = lowered(graph_of(text), CANN, fuses_kernels=True).kept
    assert kernel.graph.types() == ["Exp"] * 9
