"""Choosing by condition, positions, ranking, distinct elements."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ge.errors import ReportedError
from ge.graph.types import DataType
from tests.ops.one_node import data, inferred, run_ge, run_onnx


def truths(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).random(shape) < 0.5


# -- by condition ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "shapes", [((3, 4), (3, 4), (3, 4)), ((4,), (3, 1), ()), ((2, 1, 3), (1,), (4, 1)), ((0, 2), (2,), ())]
)
@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int64, np.bool_])
def test_select_v2_is_onnx_where(shapes: tuple[tuple[int, ...], ...], dtype: Any) -> None:
    condition, first, second = truths(1, *shapes[0]), data(2, *shapes[1], dtype=dtype), data(3, *shapes[2], dtype=dtype)
    [found] = run_ge("SelectV2", [condition, first, second])
    np.testing.assert_array_equal(found, np.where(condition, first, second))
    assert found.dtype == dtype


def test_select_chooses_rows_by_a_vector() -> None:
    x1, x2 = data(4, 3, 2), data(5, 3, 2)
    found = run_ge("Select", [np.array([True, False, True]), x1, x2])[0]
    np.testing.assert_array_equal(found, [x1[0], x2[1], x1[2]])
    condition = truths(6, 3, 2)
    np.testing.assert_array_equal(run_ge("Select", [condition, x1, x2])[0], np.where(condition, x1, x2))
    np.testing.assert_array_equal(run_ge("Select", [np.array(False), x1, x2])[0], x2)


@pytest.mark.parametrize("shape", [(4, 5), (7,), (2, 3, 2), (0, 3)])
@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.bool_])
def test_non_zero(shape: tuple[int, ...], dtype: Any) -> None:
    x = np.where(truths(7, *shape), data(8, *shape, dtype=dtype), np.zeros((), dtype))
    [found] = run_ge("NonZero", [x], {"transpose": True})
    np.testing.assert_array_equal(found, run_onnx("NonZero", [x])[0])
    np.testing.assert_array_equal(run_ge("NonZero", [x], {"dtype": DataType.DT_INT32})[0], found.T)
    np.testing.assert_array_equal(run_ge("Where", [x])[0], found.T)


@pytest.mark.parametrize(("value", "shape"), [(3.0, (0, 1)), (0.0, (0, 0))])
def test_non_zero_of_a_scalar_has_no_coordinates(value: float, shape: tuple[int, int]) -> None:
    assert run_ge("NonZero", [np.array(value, np.float32)], {"transpose": True})[0].shape == shape


# -- by index ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("axis", [-1, 0, 1, -2])
@pytest.mark.parametrize("dtype", [np.float32, np.int64])
def test_one_hot_is_that_of_onnx(axis: int, dtype: Any) -> None:
    x = np.array([[0, 4, -1], [-5, 5, -6]], np.int64)
    values = np.array([-1, 7], dtype)
    inputs = [x, np.array(5), values[1:], values[:1]]
    [found] = run_ge("OneHot", inputs, {"axis": axis, "_x_wrap_negative": 1})
    np.testing.assert_array_equal(found, run_onnx("OneHot", [x, np.array(5), values], {"axis": axis})[0])


def test_one_hot_ignores_negative_indices_by_default() -> None:
    inputs = [np.array([1, -1, 3], np.int32), np.array(3), np.array(1.0), np.array(0.0)]
    assert run_ge("OneHot", inputs)[0].tolist() == [[0, 1, 0], [0, 0, 0], [0, 0, 0]]


def test_in_top_k_counts_ties() -> None:
    x1 = np.array([[0.1, 0.5, 0.5, 0.2], [0.1, 0.2, 0.3, 0.4], [1, 2, 3, np.inf]], np.float32)
    found = [run_ge("InTopK", [x1, np.array(at, np.int32)], {"k": 1})[0].tolist() for at in ([1, 2, 3], [2, 3, 7])]
    assert found == [[True, False, False], [True, True, False]]


# -- ranking -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize(
    ("shape", "axis", "k"), [((4, 6), -1, 3), ((4, 6), 0, 4), ((5,), 0, 1), ((2, 3, 4), 1, 2), ((3, 2), 1, 0)]
)
@pytest.mark.parametrize("dtype", [np.float32, np.int64])
def test_top_k(largest: bool, shape: tuple[int, ...], axis: int, k: int, dtype: Any) -> None:
    x = data(9, *shape, dtype=dtype, low=-3, high=3)  # integers: many are equal
    values, indices = run_ge("TopK", [x, np.array([k])], {"dim": axis, "largest": largest}, n_outputs=2)
    expected = run_onnx("TopK", [x, np.array([k])], {"axis": axis, "largest": int(largest)}, n_outputs=2)
    np.testing.assert_array_equal(values, expected[0])
    np.testing.assert_array_equal(indices, expected[1])
    assert indices.dtype == np.int32


def test_top_k_of_extreme_integers() -> None:
    x = np.array([-128, 127, 0, -128], np.int8)
    values, indices = run_ge("TopK", [x, np.array(4)], n_outputs=2)
    assert (values.tolist(), indices.tolist()) == ([127, 0, -128, -128], [1, 2, 0, 3])
    values, _ = run_ge("TopK", [np.array([3, 200, 7], np.uint8), np.array(2)], n_outputs=2)
    assert values.tolist() == [200, 7]


@pytest.mark.parametrize(("type", "onnx_type"), [("ArgMaxV2", "ArgMax"), ("ArgMin", "ArgMin")])
@pytest.mark.parametrize("last", [0, 1])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_arg_max_and_min(type: str, onnx_type: str, last: int, axis: int) -> None:
    x = data(10, 5, 6, dtype=np.int32, low=-2, high=3)
    [found] = run_ge(type, [x, np.array(axis, np.int32)], {"_x_select_last_index": last})
    [expected] = run_onnx(onnx_type, [x], {"axis": axis, "keepdims": 0, "select_last_index": last})
    np.testing.assert_array_equal(found, expected)
    assert found.dtype == np.int64
    if type == "ArgMaxV2":
        attrs = {"dimension": axis, "dtype": DataType.DT_INT32, "_x_select_last_index": last}
        np.testing.assert_array_equal(run_ge("ArgMaxD", [x], attrs)[0], expected)


# -- distinct elements -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("axis", [None, 0, 1, -1])
@pytest.mark.parametrize("is_sorted", [0, 1])
@pytest.mark.parametrize("dtype", [np.float32, np.int64])
def test_unique_of_onnx(axis: int | None, is_sorted: int, dtype: Any) -> None:
    x = data(11, 6, 3, dtype=np.int64, low=0, high=2).astype(dtype)
    attrs: dict[str, Any] = {"sorted": is_sorted, **({} if axis is None else {"axis": axis})}
    found = run_ge("XUnique", [x], attrs, n_outputs=4)
    expected = run_onnx("Unique", [x], attrs, n_outputs=4)
    for mine, theirs in zip(found, expected, strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_unique_of_strings() -> None:
    y, first, inverse, counts = run_ge("XUnique", [np.array(["b", "a", "b"], object)], {"sorted": 0}, n_outputs=4)
    assert (y.tolist(), first.tolist(), inverse.tolist(), counts.tolist()) == (["b", "a"], [0, 1], [0, 1, 0], [2, 1])


def test_unique_with_counts() -> None:
    x = np.array([[3, 1], [3, 2]], np.int32)
    attrs = {"sorted": True, "return_inverse": True, "return_counts": True}
    y, inverse, counts = run_ge("UniqueWithCountsAndSorting", [x], attrs, n_outputs=3)
    assert (y.tolist(), inverse.tolist(), counts.tolist()) == ([1, 2, 3], [[2, 0], [2, 1]], [1, 1, 2])
    y, inverse, counts = run_ge("UniqueWithCountsAndSorting", [x], {"sorted": False}, n_outputs=3)
    assert (y.tolist(), inverse.size, counts.size) == ([3, 1, 2], 0, 0)
    y, idx = run_ge("Unique", [np.array([5, 2, 5, 9])], n_outputs=2)
    assert (y.tolist(), idx.tolist(), idx.dtype) == ([5, 2, 9], [0, 1, 0, 2], np.int32)


# -- what does not fit -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("type", "inputs", "attrs", "message"),
    [
        ("SelectV2", [np.zeros(2, bool), np.zeros(2), np.zeros(3)], {}, "cannot be broadcast"),
        ("SelectV2", [np.zeros(2, bool), np.zeros(2), np.zeros(2, int)], {}, "element types differ"),
        ("OneHot", [np.zeros(2, int), np.array(-1), np.array(1), np.array(0)], {}, "depth -1 is negative"),
        ("OneHot", [np.zeros(2, int), np.array(3), np.array(1), np.array(0)], {"axis": 2}, "axis 2 is out of range"),
        ("TopK", [np.zeros((2, 3)), np.array(4)], {}, r"k 4 is outside 0..3, the dim 1 of shape \[2,3\]"),
        ("ArgMaxV2", [np.zeros((2, 0)), np.array(1)], {}, r"dim 1 of shape \[2,0\] is empty"),
        ("ArgMin", [np.zeros((2, 3)), np.array(2)], {}, "axis 2 is out of range for rank 2"),
    ],
)
def test_misfits_are_reported(type: str, inputs: list[np.ndarray], attrs: dict[str, Any], message: str) -> None:
    with pytest.raises(ReportedError, match=message):
        inferred(type, inputs, attrs, 2 if type == "TopK" else 1)
