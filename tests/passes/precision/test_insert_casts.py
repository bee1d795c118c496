"""Constants in narrower types, load-time constants, what stays as it was."""

from __future__ import annotations

import numpy as np
import pytest

from ge.graph import Graph, Tensor, TensorDesc
from ge.ops import definition
from ge.text import parse_graph
from passes.precision.casts import ConvertedConstants
from passes.precision.rules import BF16, FP16
from tests.passes.precision.lowered import lower

BIG = np.array([1.0, -1e5, 1e5, -3.4028235e38, np.inf, 65519.0, 1e-9, np.nan], np.float32)


def converted(is_weight_clip: bool, mode: str = "fp16") -> np.ndarray:
    graph = Graph()
    weight = graph.add_const("w", Tensor.of(BIG))
    x = graph.add_node("Data", "x", attrs={"index": 0}, output_descs=[TensorDesc([8])]).output()
    graph.outputs = [graph.add_node("Mul", "y", [x, weight]).output()]
    session = lower(graph, mode, is_weight_clip=is_weight_clip)
    assert session.warnings == []
    return graph.find("w_Cast").attrs["value"].array  # type: ignore[union-attr]


def test_finite_weights_are_clamped_to_the_finite_range() -> None:
    """An infinity is what the model says: masks are compared with it."""
    expected = np.array([1, -65504, 65504, -65504, np.inf, 65504, 0, np.nan], np.float16)
    np.testing.assert_array_equal(converted(True), expected)


def test_without_clamping_they_overflow() -> None:
    expected = np.array([1, -np.inf, np.inf, -np.inf, np.inf, 65504, 0, np.nan], np.float16)
    np.testing.assert_array_equal(converted(False), expected)


@pytest.mark.parametrize(("dtype", "largest"), [(FP16, 65504.0), (BF16, float.fromhex("0x1.fep+127"))])
def test_the_lowest_number_becomes_the_lowest_of_the_new_type(dtype: object, largest: float) -> None:
    graph = Graph()
    source = graph.add_const("w", Tensor.of(np.array([np.finfo(np.float32).min], np.float32)))
    made = ConvertedConstants(clips=True).add(graph, source, dtype)  # type: ignore[arg-type]
    assert float(made.node.attrs["value"].array[0]) == -largest


@pytest.mark.parametrize(
    ("value", "clips", "expected"),
    [(1e-12, True, 2.0**-24), (-1e-12, True, -(2.0**-24)), (1e-12, False, 0.0), (0.0, True, 0.0), (1e-4, True, 1e-4)],
)
@pytest.mark.parametrize("shape", [(), (1, 1)])
def test_a_number_that_keeps_a_divisor_from_0_does_not_become_0(
    value: float, clips: bool, expected: float, shape: tuple[int, ...]
) -> None:
    graph = Graph()
    source = graph.add_const("eps", Tensor.of(np.full(shape, value, np.float32)))
    made = ConvertedConstants(clips=clips).add(graph, source, FP16).node.attrs["value"].array
    assert made.shape == shape
    assert made.item() == np.float16(expected)


@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0, 3), (3, 1 << 19), (1 << 19, 3)])
@pytest.mark.parametrize("is_transposed", [False, True])
def test_constants_of_any_shape_are_converted_in_blocks(shape: tuple[int, ...], is_transposed: bool) -> None:
    array = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    array = array.T if is_transposed else array
    graph = Graph()
    made = ConvertedConstants(clips=True).add(graph, graph.add_const("w", Tensor.of(array)), FP16)
    np.testing.assert_array_equal(made.node.attrs["value"].array, array.astype(np.float16))


def test_one_array_of_several_constants_is_converted_once() -> None:
    graph, constants = Graph(), ConvertedConstants(clips=True)
    array = np.arange(5, dtype=np.float32)
    made = [constants.add(graph, graph.add_const(name, Tensor.of(array)), FP16) for name in ("a", "b")]
    assert made[0].node.attrs["value"].array is made[1].node.attrs["value"].array


LOADED = """graph g(%x: f32[4]@ND) {
  %c = Const {value=f32[1]{-3.4028234e38}}
  %n = Const {value=i64[1]{4}}
  %m = BroadcastTo(%c, %n) {_load_time_const=true}
  %y = Add(%x, %m)
  return %y
}"""


@pytest.mark.parametrize(("is_weight_clip", "expected"), [(True, -65504.0), (False, -np.inf)])
def test_load_time_constants_are_converted_at_load(is_weight_clip: bool, expected: float) -> None:
    graph = parse_graph(LOADED)
    lower(graph, is_weight_clip=is_weight_clip)
    cast = graph.find("m_0_Cast")
    assert cast is not None
    assert cast.attrs["_load_time_const"] is True
    assert graph.find("m").output_descs[0].data_type.name == "DT_FLOAT"  # type: ignore[union-attr]
    value = np.array([-3.4028234e38, 1, -np.inf], np.float32)
    [found] = definition(cast).evaluate(cast.attrs, [value], [FP16])
    np.testing.assert_array_equal(found, np.array([expected, 1, -np.inf], np.float16))


def test_a_constant_that_both_precisions_need_is_kept_in_both() -> None:
    text = """graph g(%x: f32[2]@ND, %l: f32[]@ND) {
  %c = Const {value=f32[]{0.1}}
  %r = Range(%l, %c, %c)
  %y = Mul(%x, %c)
  return %y, %r
}"""
    graph = parse_graph(text)
    lower(graph)
    assert graph.find("c") is not None
    assert graph.find("c_Cast") is not None


def test_new_nodes_stand_for_nothing_in_the_model() -> None:
    graph = parse_graph(LOADED)
    lower(graph)
    casts = [node for node in graph if node.type == "Cast"]
    assert len(casts) == 3
    assert all(node.attrs["_datadump_original_op_names"] == [] for node in casts)
