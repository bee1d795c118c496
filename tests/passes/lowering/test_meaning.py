"""Kernels compute what the operators did: one row per operator, random values, evaluated by two programs."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

from ge.ascir import parse_asc_graph
from ge.formats import lay_out, stored_array
from ge.graph import Format, Graph
from ge.graph.types import FORMAT_BY_TEXT, numpy_dtype
from ge.text import print_graph
from ge.verify import verify
from passes.lowering.fused_nodes import VIEW_TYPES
from passes.lowering.lower_model import lower_model
from passes.lowering.registry import lowered_types
from passes.lowering.strategy import LOOP_PASSES, LoweringStrategy, profile
from tests.passes.lowering.asc_numpy import Array, run_graph, run_kernel
from tests.passes.lowering.lowered import HOST, graph_of

KEPT = replace(HOST, disables_lifting=True, passes=LOOP_PASSES)


@dataclass(frozen=True)
class Row:
    """`call` is an operator over inputs named as in `inputs` ("x: f32[2,3]"); `constants` fixes some of them."""

    call: str
    inputs: str = "x: f32[2,3,5]"
    constants: dict[str, Any] = field(default_factory=dict)
    low: float = -3
    high: float = 3
    outputs: int = 1
    unread: int = 0
    strategy: LoweringStrategy = KEPT

    @property
    def type(self) -> str:
        return self.call.split("(")[0]


def ints(*values: int) -> Array:
    return np.array(values, np.int32)


TWO = "x: f32[2,3,5], y: f32[3,1]"
A5 = replace(profile("cann", "Ascend950PR_9599"), passes=LOOP_PASSES, disables_lifting=True)
ROWS = [
    *[Row(f"{t}(%x)") for t in ("Abs", "Ceil", "Cos", "Erf", "Exp", "Expm1", "FastGelu", "Floor", "Gelu", "GeluV2")],
    *[Row(f"{t}(%x)") for t in ("HardSigmoid", "HardSwish", "IsFinite", "IsInf", "IsNan", "Mish", "Neg", "Reciprocal")],
    *[Row(f"{t}(%x)") for t in ("Relu", "Relu6", "Rint", "Selu", "Sigmoid", "Sign", "Sin", "Softplus", "Softsign")],
    *[Row(f"{t}(%x)") for t in ("Square", "Swish", "Tan", "Tanh", "Round")],
    *[Row(f"{t}(%x)", low=-1, high=1) for t in ("Acos", "Asin")],
    *[Row(f"{t}(%x)", low=0.1) for t in ("Log", "Log1p", "Rsqrt", "Sqrt")],
    *[Row(f"{t}(%x, %y)", TWO) for t in ("Add", "AddV2", "Div", "DivNoNan", "FloorDiv", "Maximum", "Minimum", "Mul")],
    *[Row(f"{t}(%x, %y)", TWO) for t in ("RealDiv", "SquaredDifference", "Sub")],
    *[Row(f"{t}(%x, %y)", TWO) for t in ("Equal", "Greater", "GreaterEqual", "Less", "LessEqual", "NotEqual")],
    *[Row(f"{t}(%x, %y)", "x: i32[2,3,5], y: i32[3,1]") for t in ("BitwiseAnd", "BitwiseOr", "BitwiseXor", "Div")],
    *[Row(f"{t}(%x, %y)", "x: i32[2,3,5], y: i32[3,1]") for t in ("Equal", "FloorDiv", "RealDiv")],
    *[Row(f"{t}(%x, %y)", "x: bool[2,3], y: bool[3]") for t in ("LogicalAnd", "LogicalOr", "Equal")],
    Row("LogicalNot(%x)", "x: bool[2,3]"),
    Row("Invert(%x)", "x: i32[2,3]"),
    Row("Pow(%x, %y)", TWO, low=0.1),
    Row("Exp(%x) {scale=0.5, shift=1.0}"),
    Row("Log(%x) {base=2.0, scale=3.0, shift=1.0}", low=0.1),
    Row("Muls(%x) {value=2.5}"),
    Row("Adds(%x) {value=2.5}"),
    Row("AddN(%x, %y, %x) {N=3}", "x: f32[2,3], y: f32[2,3]"),
    Row("AccumulateNV2(%x, %y) {N=2}", "x: f32[2,3], y: f32[2,3]"),
    Row("ClipByValue(%x, %l, %h)", "x: f32[2,3], l: f32[], h: f32[]", {"l": np.float32(-1), "h": np.float32(1)}),
    Row("ZerosLike(%x)"),
    Row("LeakyRelu(%x) {negative_slope=0.25}"),
    Row("Elu(%x) {alpha=1.5, scale=2.0, input_scale=0.5}"),
    Row('GeluV2(%x) {approximate="tanh"}'),
    Row("Swish(%x) {scale=1.7}"),
    Row("Cast(%x) {dst_type=3}"),
    Row("Cast(%x) {dst_type=1}"),
    Row("Cast(%x) {dst_type=0}", "x: bool[2,3]"),
    *[Row(f"{t}(%x, %axes)", "x: f32[2,3,5], axes: i32[2]", {"axes": ints(0, -1)})
      for t in ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd")],
    Row("ReduceMeanD(%x) {axes=[], noop_with_empty_axes=false}"),
    Row("ReduceSum(%x, %axes) {keep_dims=true}", "x: i32[2,3,5], axes: i32[1]", {"axes": ints(1)}),
    Row("ReduceSumD(%x) {axes=[1]}"),
    Row("ReduceMeanD(%x) {axes=[2], keep_dims=true}"),
    Row("SquareSumV1(%x) {axis=[0, 2]}"),
    Row("Reshape(%x, %shape)", "x: f32[2,1,5], shape: i32[4]", {"shape": ints(1, 2, 5, 1)}),
    Row("Squeeze(%x) {axis=[1]}", "x: f32[2,1,5]"),
    Row("Unsqueeze(%x) {axes=[0, 2]}"),
    Row("ExpandDims(%x, %axis)", "x: f32[2,3], axis: i32[1]", {"axis": ints(1)}),
    Row("SqueezeV3(%x, %axes)", "x: f32[2,1,5], axes: i32[1]", {"axes": ints(1)}),
    Row("UnsqueezeV3(%x, %axes)", "x: f32[2,3], axes: i32[1]", {"axes": ints(-1)}),
    Row("BroadcastTo(%x, %shape)", "x: f32[3,1], shape: i32[3]", {"shape": ints(2, 3, 5)}),
    Row("Expand(%x, %shape)", "x: f32[3,1], shape: i32[3]", {"shape": ints(2, 3, 5)}),
    Row("Tile(%x, %times)", "x: f32[2,1,5], times: i32[3]", {"times": ints(1, 4, 1)}),
    Row("TileD(%x) {multiples=[3, 1]}", "x: f32[1,5]"),
    Row("Transpose(%x, %perm)", "x: f32[2,3,5], perm: i32[3]", {"perm": ints(2, 0, 1)}),
    Row("TransposeD(%x) {perm=[1, 2, 0]}"),
    Row("TransposeD(%x) {perm=[1, 0, 2]}", "x: f32[2,1,5]"),
    Row("Slice(%x, %b, %s)", "x: f32[4,5], b: i32[2], s: i32[2]", {"b": ints(1, 2), "s": ints(3, 2)}),
    Row("StridedSlice(%x, %b, %e, %s) {end_mask=1, shrink_axis_mask=4}",
        "x: f32[7,4,3], b: i32[3], e: i32[3], s: i32[3]", {"b": ints(1, 0, 1), "e": ints(0, 4, 2), "s": ints(2, 3, 1)}),
    Row("StridedSlice(%x, %b, %e, %s) {new_axis_mask=1}",
        "x: f32[7,4], b: i32[2], e: i32[2], s: i32[2]", {"b": ints(0, 2), "e": ints(0, -1), "s": ints(1, 1)}),
    Row("StridedSliceV2(%x, %b, %e, %a, %s)", "x: f32[7,4], b: i32[1], e: i32[1], a: i32[1], s: i32[1]",
        {"b": ints(-3), "e": ints(99), "a": ints(0), "s": ints(2)}),
    Row("Split(%axis, %x) {num_split=3}", "x: f32[2,6], axis: i32[1]", {"axis": ints(1)}, outputs=3),
    Row("SplitD(%x) {split_dim=-1, num_split=2}", "x: f32[2,6]", outputs=2),
    Row("SplitD(%x) {split_dim=0, num_split=2}", "x: f32[2,16]", outputs=2, strategy=A5),
    Row("SplitV(%x, %sizes, %axis) {num_split=2}", "x: f32[2,6], sizes: i32[2], axis: i32[1]",
        {"sizes": ints(4, 2), "axis": ints(1)}, outputs=2),
    Row("SplitVD(%x) {size_splits=[1, 5], split_dim=1, num_split=2}", "x: f32[2,6]", outputs=2),
    Row("ConcatD(%x, %y, %x) {concat_dim=-1, N=3}", "x: f32[2,3], y: f32[2,4]"),
    Row("Concat(%axis, %x, %y) {N=2}", "x: f32[2,3], y: f32[4,3], axis: i32[1]", {"axis": ints(0)}),
    Row("ConcatV2(%x, %y, %axis) {N=2}", "x: f32[2,3], y: f32[4,3], axis: i32[1]", {"axis": ints(0)}),
    Row("ConcatD(%x) {concat_dim=0, N=1}"),
    Row("ConcatD(%x, %x, %x, %x, %x, %x) {concat_dim=0, N=6}", "x: f32[1,3]", strategy=A5),
    Row("Pack(%x, %y) {axis=1, N=2}", "x: f32[2,3], y: f32[2,3]"),
    Row("Gather(%x, %i)", "x: f32[4,3], i: i32[2,2]", {"i": np.array([[3, 0], [-1, 2]], np.int32)}),
    Row("GatherV2(%x, %i, %axis)", "x: f32[4,3,2], i: i64[2], axis: i32[1]", {"i": np.array([2, 0]), "axis": ints(1)}),
    Row("SelectV2(%c, %x, %y)", "c: bool[3,1], x: f32[2,3,5], y: f32[5]"),
    Row("Select(%c, %x, %y)", "c: bool[3,2], x: f32[3,2], y: f32[3,2]"),
    Row("Fill(%dims, %v)", "dims: i32[2], v: f32[]", {"dims": ints(2, 3), "v": np.float32(2.5)}),
    Row("MatMul(%x, %y)", "x: f32[3,4], y: f32[4,2]"),
    Row("MatMulV2(%x, %y, %b) {transpose_x1=true}", "x: f32[4,3], y: f32[4,2], b: f32[2]"),
    Row("BatchMatMul(%x, %y) {adj_x2=true}", "x: f32[2,3,4], y: f32[2,5,4]"),
    Row("BatchMatMulV2(%x, %y)", "x: f32[2,3,4], y: f32[2,4,1]"),
    Row("BatchMatMulV2(%x, %y) {adj_x2=true}", "x: f32[2,3,4], y: f32[2,1,4]"),
    Row("SoftmaxV2(%x)"),
    Row("SoftmaxV2(%x) {axes=[1]}", "x: f16[2,3,5]"),
    Row("LogSoftmaxV2(%x) {axes=[0]}"),
    Row('BiasAdd(%x, %b) {data_format="NCHW"}', "x: f32[2,3,4,5], b: f32[3]"),
    Row("BiasAdd(%x, %b)", "x: f32[2,3,4,5], b: f32[5]"),
    Row("BNInfer(%x, %s, %o, %m, %v) {epsilon=0.001}",
        "x: f32[2,3,4,5], s: f32[3], o: f32[3], m: f32[3], v: f32[3]", low=0.5),
    Row("BNInfer(%x, %s, %o, %m, %v) {epsilon=0.001, _x_data_format=\"NHWC\"}",
        "x: f32[2,4,5,3], s: f32[3], o: f32[3], m: f32[3], v: f32[3]", low=0.5),
    Row('BatchNorm(%x, %s, %o, %m, %v) {is_training=false, data_format="NCHW"}',
        "x: f32[2,3,4,5], s: f32[3], o: f32[3], m: f32[3], v: f32[3]", low=0.5, unread=5),
    Row("LayerNorm(%x, %g, %b) {begin_norm_axis=-1, begin_params_axis=-1}",
        "x: f32[2,3,5], g: f32[5], b: f32[5]", unread=2),
    Row("LayerNormV3(%x, %g, %b) {begin_norm_axis=2, begin_params_axis=2}",
        "x: f16[2,3,5], g: f16[5], b: f16[5]", unread=2),
    Row("LayerNormV4(%x, %s, %g)", "x: f32[2,3,5], s: i32[1], g: f32[5]", {"s": ints(5)}, unread=2),
    Row("RmsNorm(%x, %g)", "x: f32[2,3,5], g: f32[5]", unread=1),
]  # fmt: skip


def graph_of_row(row: Row) -> Graph:
    """The operator of a row; a Neg behind those that make no kernel of their own."""
    params = ", ".join(f"%{part.strip()}@ND" for part in row.inputs.replace("], ", "]; ").split(";"))
    count = row.outputs + row.unread
    mark = f":{count}" if count > 1 else ""
    reader = "%e = Neg(%n)" if row.type in VIEW_TYPES | {"ZerosLike"} else ""
    results = "%e" if reader else ", ".join(f"%n:{k}" for k in range(row.outputs))
    return graph_of(f"graph net({params}) {{ %n{mark} = {row.call} {reader} return {results} }}", row.constants)


def values_for(graph: Graph, rng: np.random.Generator, low: float = -3, high: float = 3) -> dict[str, Array]:
    """Random values for the inputs of a graph."""
    feeds = {}
    for data in graph.data_nodes():
        desc = data.output_descs[0]
        drawn = rng.uniform(low, high, tuple(desc.origin_shape))
        dtype = np.dtype(numpy_dtype(desc.data_type))
        whole = drawn > 0 if dtype.kind == "b" else np.rint(drawn * 4)
        feeds[data.name] = (whole if dtype.kind in "bi" else drawn).astype(dtype)
    return feeds


def assert_same(found: list[Array], expected: list[Array]) -> None:
    """Integers and truths must be equal; floating numbers agree to a few units of their type."""
    for a, b in zip(found, expected, strict=True):
        assert a.dtype == b.dtype
        assert a.shape == b.shape
        if a.dtype.kind != "f":
            np.testing.assert_array_equal(a, b)
        else:
            tolerance = 2e-3 if a.dtype == np.float16 else 2e-6
            np.testing.assert_allclose(a.astype(np.float64), b.astype(np.float64), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.call)
def test_kernels_compute_what_operators_did(row: Row, rng: np.random.Generator) -> None:
    graph = graph_of_row(row)
    feeds = values_for(graph, rng, row.low, row.high)
    with np.errstate(all="ignore"):
        expected = run_graph(graph, feeds)
        lower_model(graph, row.strategy)
        verify(graph)
        assert row.type not in [node.type for node in graph], print_graph(graph)
        assert_same(run_graph(graph, feeds), expected)


def test_every_lowering_has_a_row() -> None:
    """Conv2D aside: it has no meaning here beside the operator itself."""
    assert sorted({row.type for row in ROWS} | {"Conv2D"}) == lowered_types()


# -- layouts with padding ----------------------------------------------------------------------------------------------
LAYOUTS = [
    (Format.FORMAT_NC1HWC0, "NCHW", "2,19,3,4", "2,19,3,4"),
    (Format.FORMAT_NC1HWC0, "NCHW", "2,19,3,4", "1,19,1,4"),
    (Format.FORMAT_NC1HWC0, "NHWC", "2,3,4,16", "2,3,4,16"),
    (Format.FORMAT_NDC1HWC0, "NCDHW", "2,5,2,3,4", "2,5,2,3,4"),
    (Format.FORMAT_FRACTAL_NZ, "ND", "3,17,19", "3,17,19"),
    (Format.FORMAT_FRACTAL_NZ, "ND", "3,17,32", "1,17,32"),
]


def laid_out(text: str, origin: str, format: Format) -> Graph:
    """The graph with all tensors in a layout."""
    graph = graph_of(text)
    for node in graph:
        desc = node.output_descs[0]
        desc.origin_format = FORMAT_BY_TEXT[origin]
        node.update_output_desc(0, lay_out(desc, format))
    return graph


@pytest.mark.parametrize(("format", "origin", "x", "y"), LAYOUTS)
def test_padding_stays_zero(format: Format, origin: str, x: str, y: str, rng: np.random.Generator) -> None:
    """Exp of padding is 1: the store writes zeros there."""
    text = f"graph net(%x: f32[{x}]@{origin}, %y: f32[{y}]@{origin}) {{ %a = Add(%x, %y) %e = Exp(%a) return %e }}"
    graph = laid_out(text, origin, format)
    feeds = values_for(graph, rng)
    expected = run_graph(graph, feeds)
    lower_model(graph, HOST)
    verify(graph)
    [kernel] = [node for node in graph if node.type != "Data"]
    assert kernel.type == "AscBackend"
    assert_same(run_graph(graph, feeds), expected)
    given = [stored_array(feeds[data.name], data.output_descs[0]) for data in graph.data_nodes()]
    [stored] = run_kernel(parse_asc_graph(kernel.attrs["asc_graph"]), given)
    assert_same([stored], [stored_array(expected[0], kernel.output_descs[0])])


def test_numbers_per_channel_in_blocks(rng: np.random.Generator) -> None:
    """A BatchNorm and a Relu in NC1HWC0: the vectors are read by block and lane."""
    vectors = ", ".join(f"%{name}: f32[32]@ND" for name in "somv")
    text = f"""
    graph net(%x: f32[2,32,3,4]@NCHW, {vectors}) {{
      %n:6 = BatchNorm(%x, %s, %o, %m, %v) {{is_training=false, data_format="NCHW"}}
      %r = Relu(%n)
      return %r
    }}"""
    graph = graph_of(text)
    for name in ("x", "n", "r"):
        node = graph.find(name)
        assert node is not None
        node.output_descs[0].origin_format = Format.FORMAT_NCHW
        node.update_output_desc(0, lay_out(node.output_descs[0], Format.FORMAT_NC1HWC0))
    feeds = values_for(graph, rng, low=0.5)
    expected = run_graph(graph, feeds)
    lower_model(graph, HOST)
    verify(graph)
    [kernel] = graph.nodes_of_type("AscBackend")
    views = [op.tensor.strides for op in parse_asc_graph(kernel.attrs["asc_graph"]).ops if op.type == "Data"]
    assert views.count((0, 16, 0, 0, 1)) == 4
    assert_same(run_graph(graph, feeds), expected)


def test_an_axis_that_is_divided_is_not_repeated() -> None:
    text = "graph net(%x: f32[2,19,3,4]@NCHW, %y: f32[2,1,3,4]@NCHW) { %a = Add(%x, %y) %e = Exp(%a) return %e }"
    [fused] = lower_model(laid_out(text, "NCHW", Format.FORMAT_NC1HWC0), HOST)
    reasons = [str(stop) for stop in fused.stops]
    assert "[layout] a: FORMAT_NC1HWC0 divides an axis into blocks that is repeated" in reasons
