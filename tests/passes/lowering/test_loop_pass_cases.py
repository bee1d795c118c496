"""The cases of reductions, views and products (specification of lowering, section 8), profile `cann`."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ge.ascir import AscTensor
from ge.graph import DataType
from passes.lowering.lower_graph import lower_graph
from passes.lowering.strategy import LOOP_PASSES, profile
from tests.passes.lowering.lowered import CANN, Lowered, cann, graph_of, lowered

A5 = profile("cann", "Ascend950PR_9599")
SUM_AND_ABS = """
graph net(%x: f32[2,3,16]@ND, %axes: i32[1]@ND) {
  %s = ReduceSum(%x, %axes)
  %a = Abs(%s)
  return %a
}"""
AXIS_1 = {"axes": np.array([1], np.int32)}


def tensors(result: Lowered, *types: str, kernel: int = 0) -> list[AscTensor]:
    """The tensors of all operators of these types in a program."""
    return [op.tensor for op in result.program(kernel).ops if op.type in types]


def test_10_reductions_end_fusion() -> None:
    boxes = lower_graph(graph_of(SUM_AND_ABS, AXIS_1), cann("reduce"))
    result = lowered(SUM_AND_ABS, cann("reduce"), AXIS_1)
    node = boxes.graph.find("s")
    assert node is not None
    assert boxes.box(node.output()).is_realized
    assert result.before == [
        "autofuse_reduce_0_ReduceSum = AscBackend(x)",
        "autofuse_pointwise_1_Abs = AscBackend(autofuse_reduce_0_ReduceSum)",
    ]


def test_11_axes_must_be_constant() -> None:
    text = "graph net(%x: f32[2,3,16]@ND, %axes: i32[1]@ND) { %s = ReduceSum(%x, %axes) {keep_dims=true} return %s }"
    result = lowered(text, cann("reduce"))
    assert result.before == ["s = ReduceSum(x, axes)"]


ONE_OF_EACH = {
    "reduce": "%n = ReduceSumD(%x) {axes=[0]}",
    "concat": "%n = ConcatD(%x, %x) {concat_dim=1, N=2}",
    "slice": "%n = Slice(%x, %begin, %size)",
    "split": "%n:2 = SplitD(%x) {split_dim=0, num_split=2}",
    "transpose": "%n = TransposeD(%x) {perm=[1,0]}",
    "gather": "%n = GatherV2(%x, %i, %axis)",
    "matmul": "%n = MatMulV2(%x, %w)",
}
CONSTANTS = {
    "begin": np.array([0, 0], np.int32),
    "size": np.array([2, 2], np.int32),
    "i": np.array([1, 0, 1], np.int32),
    "axis": np.array([1], np.int32),
}


@pytest.mark.parametrize("name", sorted(ONE_OF_EACH))
@pytest.mark.parametrize("is_on", [True, False])
def test_12_every_loop_pass_is_switched(name: str, is_on: bool) -> None:
    text = f"""
    graph net(%x: f32[4,16]@ND, %w: f32[16,8]@ND, %begin: i32[2]@ND, %size: i32[2]@ND,
              %i: i32[3]@ND, %axis: i32[1]@ND) {{
      {ONE_OF_EACH[name]}
      %e = Erfc(%n)
      return %e
    }}"""
    on = cann(name, "slice") if name == "split" else cann(name)
    result = lowered(text, on if is_on else cann(*(LOOP_PASSES - {name})), CONSTANTS)
    assert bool(result.kernels) == is_on
    if not is_on:
        assert f"[pass-off] n: pass {name} is off" in result.rules


def test_15_one_reduction_is_given_back() -> None:
    result = lowered("graph net(%x: f32[2,3,16]@ND) { %s = ReduceSumD(%x) {axes=[1]} return %s }", cann("reduce"))
    assert result.before == ["autofuse_reduce_0_ReduceSumD = AscBackend(x)"]
    assert result.after == ["s = ReduceSumD(x)"]


def test_32_what_is_left_alone_by_lifting() -> None:
    text = """
    graph net(%x: f32[2,3,16]@ND) {
      %a = Abs(%x)
      %b = Abs(%a)
      %c = ReduceSumD(%b) {axes=[-1], keep_dims=true}
      %d = Abs(%c)
      %e = Squeeze(%d) {axis=[-1]}
      return %e
    }"""
    result = lowered(text, cann("reduce"))
    assert result.after == [
        "autofuse_reduce_0_2Abs_ReduceSumD = AscBackend(x)",
        "d = Abs(autofuse_reduce_0_2Abs_ReduceSumD)",
        "e = Squeeze(d)",
    ]


def test_33_half_precision_is_reduced_as_it_is() -> None:
    text = "graph net(%x: f16[2,3,64]@ND) { %a = Abs(%x) %s = ReduceSumD(%a) {axes=[1]} return %s }"
    result = lowered(text, cann("reduce"))
    assert result.programs() == ["reduce[Abs,Sum]"]
    assert {tensor.dtype for tensor in tensors(result, "Sum", "Store")} == {DataType.DT_FLOAT16}


SPLIT = """
graph net(%x: f32[4,16]@ND) {{
  %s:2 = SplitD(%x) {{split_dim=0, num_split=2}}
  %a = {first}
  %b = Erfc(%s:1)
  return %a, %b
}}"""


def test_34_results_of_one_operator_are_given_back_together() -> None:
    result = lowered(SPLIT.format(first="Erfc(%s:0)"), cann("split", "slice"))
    assert [k.fuse_type.name for k in result.kernels] == ["SLICE", "SLICE"]
    assert result.after == ["s = SplitD(x)", "a = Erfc(s)", "b = Erfc(s:1)"]


def test_34_or_not_at_all() -> None:
    result = lowered(SPLIT.format(first="Abs(%s:0)"), cann("split", "slice"))
    assert sorted(result.after) == [
        "autofuse_slice_0_SplitD = AscBackend(x)",
        "autofuse_slice_1_SplitD_Abs = AscBackend(x)",
        "b = Erfc(autofuse_slice_0_SplitD)",
    ]


def test_36_reductions_keep_their_axis_inside() -> None:
    text = "graph net(%x: f32[2,3,16]@ND) { %a = Abs(%x) %s = ReduceSumD(%a) {axes=[1], keep_dims=true} return %s }"
    result = lowered(text, cann("reduce"))
    expected = AscTensor(DataType.DT_FLOAT, (2, 1, 16), (16, 0, 1))
    assert tensors(result, "Sum", "Store") == [expected, expected]
    assert result.program().sizes == (2, 3, 16)


@pytest.mark.parametrize(("keeps", "sizes"), [("true", (2, 1, 16)), ("false", (2, 16))])
def test_37_dims_of_one_are_not_reduced(keeps: str, sizes: tuple[int, ...]) -> None:
    text = f"""
    graph net(%x: f32[2,1,16]@ND) {{
      %a = Abs(%x)
      %s = ReduceSumD(%a) {{axes=[1], keep_dims={keeps}}}
      return %s
    }}"""
    result = lowered(text, cann("reduce"))
    assert result.programs() == ["pointwise[Abs]"]
    assert result.program().sizes == sizes


def test_38_concat_loads_its_parts_as_they_are() -> None:
    text = """
    graph net(%a: f32[2,2,5]@ND, %b: f32[2,3,5]@ND) {
      %n = Abs(%a)
      %c = ConcatD(%n, %b) {concat_dim=1, N=2}
      %m = Abs(%c)
      return %m
    }"""
    result = lowered(text, cann("concat"))
    assert result.programs() == ["pointwise[Abs]", "concat[Concat]", "pointwise[Abs]"]
    assert result.text(1) == (
        'ascgraph 1 "autofuse_concat_1_ConcatD" [2,5,5] {\n'
        "  %0 = Data {index=0} -> f32[2,2,5]:[10,5,1]\n"
        "  %1 = Load(%0) -> f32[2,2,5]:[10,5,1]\n"
        "  %2 = Data {index=1} -> f32[2,3,5]:[15,5,1]\n"
        "  %3 = Load(%2) -> f32[2,3,5]:[15,5,1]\n"
        "  %4 = Concat(%1, %3) {axis=1} -> f32[2,5,5]:[25,5,1]\n"
        "  %5 = Store(%4) -> f32[2,5,5]:[25,5,1]\n"
        "  %6 = Output(%5) {index=0}\n"
        "}\n"
    )


@pytest.mark.parametrize(("k", "program"), [(4, "reduce[Mul,Sum]"), (32, "reduce[Mul,Sum]"), (1, "pointwise[Mul]")])
def test_39_short_products_are_sums(k: int, program: str) -> None:
    text = f"graph net(%a: f32[2,3,{k}]@ND, %b: f32[2,{k},1]@ND) {{ %n = BatchMatMulV2(%a, %b) return %n }}"
    result = lowered(text, cann("reduce"))
    assert result.programs() == [program]
    second = tensors(result, "Data")[1]
    if k > 1:
        assert (second.repeats, second.strides) == ((2, 1, k), (k, 0, 1))


def test_39_longer_products_are_products() -> None:
    text = "graph net(%a: f32[2,3,33]@ND, %b: f32[2,33,1]@ND) { %n = BatchMatMulV2(%a, %b) return %n }"
    assert lowered(text, cann("reduce")).before == ["n = BatchMatMulV2(a, b)"]


def test_40_products_as_kernels() -> None:
    text = """
    graph net(%x: f32[4,16]@ND, %w: f32[16,8]@ND) {
      %a = Abs(%x)
      %m = MatMulV2(%a, %w)
      %b = Abs(%m)
      return %b
    }"""
    result = lowered(text, replace(A5, passes=frozenset({"matmul"})))
    assert result.programs() == ["pointwise[Abs]", "cube[MatMul]", "pointwise[Abs]"]
    assert result.before[1] == "autofuse_cube_1_MatMulV2 = AscBackend(autofuse_pointwise_0_Abs, w)"
    assert result.after == ["a = Abs(x)", "m = MatMulV2(a, w)", "b = Abs(m)"]


def test_slices_end_before_reductions() -> None:
    text = """
    graph net(%x: f32[4,3,16]@ND, %begin: i32[3]@ND, %size: i32[3]@ND) {
      %n = Slice(%x, %begin, %size)
      %s = ReduceSumD(%n) {axes=[0]}
      return %s
    }"""
    constants = {"begin": np.array([1, 0, 0], np.int32), "size": np.array([2, 3, 16], np.int32)}
    result = lowered(text, cann("slice", "reduce"), constants)
    assert "[slice-before-reduce] n -> s" in result.rules
    assert result.programs() == ["slice[]", "reduce[Sum]"]


def test_splits_are_splits_on_950() -> None:
    result = lowered(SPLIT.format(first="Erfc(%s:0)"), replace(A5, passes=frozenset({"split"})))
    assert result.programs() == ["split[Split]", "split[Split]"]
    second = next(op for op in result.program(1).ops if op.type == "Split")
    assert {second.attr("index"), result.program(0).ops[2].attr("index")} == {0, 1}
    assert result.after == ["s = SplitD(x)", "a = Erfc(s)", "b = Erfc(s:1)"]


def test_the_default_of_cann_has_no_loop_pass_on() -> None:
    assert CANN.passes == frozenset()
    assert not CANN.is_enabled
