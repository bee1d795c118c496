"""Reductions against onnxruntime, and against numpy where onnxruntime has no such type."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ge.errors import ReportedError
from ge.graph.types import DataType
from tests.ops.one_node import assert_close, data, inferred, run_ge, run_onnx

ALIKE = ["ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceLogSumExp"]


def axes_of(*axes: int) -> np.ndarray:
    return np.array(axes, np.int64)


@pytest.mark.parametrize("type", ALIKE)
@pytest.mark.parametrize(
    ("shape", "axes"),
    [((2, 3, 4), (1,)), ((2, 3, 4), (-1, 0)), ((2, 3, 4), (0, 1, 2)), ((5,), (0,)), ((2, 3, 1, 2), (2,)), ((2, 3), ())],
)
@pytest.mark.parametrize("keeps", [True, False])
def test_reductions_agree_with_onnxruntime(
    type: str, shape: tuple[int, ...], axes: tuple[int, ...], keeps: bool
) -> None:
    x = data(len(shape), *shape)
    [found] = run_ge(type, [x, axes_of(*axes)], {"keep_dims": keeps, "noop_with_empty_axes": False})
    [expected] = run_onnx(type, [x, axes_of(*axes)], {"keepdims": int(keeps)}, opset=18)
    assert_close(found, expected)


@pytest.mark.parametrize("type", ALIKE)
def test_empty_axes_may_mean_nothing_to_do(type: str) -> None:
    x = data(1, 2, 3)
    for keeps in (True, False):
        assert_close(run_ge(type, [x, axes_of()], {"keep_dims": keeps, "noop_with_empty_axes": True})[0], x)


@pytest.mark.parametrize("type", ["ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd"])
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_integer_reductions(type: str, dtype: Any) -> None:
    x = data(7, 3, 4, dtype=dtype, low=-9, high=9)
    [found] = run_ge(type, [x, axes_of(1)], {"keep_dims": True})
    np.testing.assert_array_equal(found, run_onnx(type, [x, axes_of(1)], opset=18)[0])


def test_integer_sums_wrap_and_means_truncate() -> None:
    x = np.array([[100, 100, 27], [-3, -2, -2]], np.int8)
    assert run_ge("ReduceSum", [x, axes_of(1)])[0].tolist() == [227 - 256, -7]
    assert run_ge("ReduceMean", [x[1:].astype(np.int32), axes_of(1)])[0].tolist() == [-2]
    large = np.array([2**62, 1, 2], np.int64)
    assert run_ge("ReduceMax", [large + 1, axes_of(0)])[0] == 2**62 + 1
    assert run_ge("ReduceMean", [large, axes_of(0)])[0] == (2**62 + 3) // 3


@pytest.mark.parametrize(
    ("type", "dtype", "expected"),
    [
        ("ReduceSum", np.float32, 0.0), ("ReduceProd", np.float32, 1.0), ("ReduceMax", np.float32, -np.inf),
        ("ReduceMin", np.float32, np.inf), ("ReduceMean", np.float32, np.nan), ("ReduceMax", np.int32, -(2**31)),
        ("ReduceMin", np.uint8, 255), ("ReduceLogSumExp", np.float32, -np.inf), ("ReduceSum", np.int64, 0),
        ("ReduceMax", np.bool_, False), ("ReduceMin", np.bool_, True), ("ReduceAll", np.bool_, True),
        ("ReduceAny", np.bool_, False),
    ],
)  # fmt: skip
def test_reductions_over_nothing(type: str, dtype: Any, expected: float) -> None:
    [found] = run_ge(type, [np.zeros((2, 0, 3), dtype), axes_of(1)])
    np.testing.assert_array_equal(found, np.full((2, 3), expected, dtype))


def test_booleans() -> None:
    x = np.array([[True, False, True], [True, True, True]])
    assert run_ge("ReduceAll", [x, axes_of(1)])[0].tolist() == [False, True]
    assert run_ge("ReduceAny", [x, axes_of(0)], {"keep_dims": True})[0].tolist() == [[True, True, True]]
    assert run_ge("ReduceAll", [x, axes_of()])[0].tolist() == x.tolist()
    assert run_ge("ReduceMax", [x, axes_of(0)])[0].tolist() == [True, True, True]


def test_nan_and_infinity_pass_through() -> None:
    x = np.array([[1.0, np.nan, 2.0], [np.inf, 1.0, 0.0], [-np.inf, -np.inf, -np.inf]], np.float32)
    np.testing.assert_array_equal(run_ge("ReduceMax", [x, axes_of(1)])[0], [np.nan, np.inf, -np.inf])
    np.testing.assert_array_equal(run_ge("ReduceSum", [x, axes_of(1)])[0], [np.nan, np.inf, -np.inf])
    np.testing.assert_array_equal(run_ge("ReduceLogSumExp", [x, axes_of(1)])[0], [np.nan, np.inf, -np.inf])


def test_log_sum_exp_does_not_overflow() -> None:
    x = np.array([[1000.0, 1000.0], [-1000.0, -1001.0]], np.float32)
    expected = [1000 + np.log(2), -1000 + np.log1p(np.exp(-1))]
    np.testing.assert_allclose(run_ge("ReduceLogSumExp", [x, axes_of(1)])[0], expected, rtol=1e-6)


def test_long_sums_of_narrow_floats_stay_accurate() -> None:
    x = data(3, 40_000, dtype=np.float16, low=0.0, high=1.0)
    exact = x.astype(np.float64)
    assert run_ge("ReduceMean", [x, axes_of(0)])[0] == np.float16(exact.mean())
    single = x.astype(np.float32)
    np.testing.assert_allclose(run_ge("ReduceSum", [single, axes_of(0)])[0], exact.sum(), rtol=1e-7)


@pytest.mark.parametrize("keeps", [True, False])
def test_forms_with_axes_as_attribute(keeps: bool) -> None:
    x = data(2, 3, 4, 5)
    wide = x.astype(np.float64)
    axes, attrs = (0, 2), {"keep_dims": keeps}
    assert_close(run_ge("ReduceSumD", [x], {"axes": [0, -1], **attrs})[0], wide.sum(axes, keepdims=keeps))
    assert_close(run_ge("ReduceMeanD", [x], {"axes": [0, 2], **attrs})[0], wide.mean(axes, keepdims=keeps))
    assert_close(run_ge("SquareSumV1", [x], {"axis": [2, 0], **attrs})[0], (wide**2).sum(axes, keepdims=keeps))
    assert_close(run_ge("SquareSumV1", [x], {"axis": [], **attrs})[0], (wide**2).sum(keepdims=keeps))
    assert_close(run_ge("SquareSumV1", [x], {"axis": [], "noop_with_empty_axes": True})[0], wide**2)


@pytest.mark.parametrize(
    ("axes", "message"),
    [([2], "axis 2 is out of range for rank 2"), ([-3], "axis -3 is out"), ([1, -1], "name an axis twice")],
)
def test_wrong_axes_are_reported(axes: list[int], message: str) -> None:
    with pytest.raises(ReportedError, match=message):
        inferred("ReduceSum", [np.zeros((2, 3)), axes_of(*axes)], {})


@pytest.mark.parametrize(
    ("attrs", "axes", "shape"),
    [
        ({"keep_dims": True}, (0, 2), [-1, 1, -1, -1]),
        ({"keep_dims": False}, (0, 2), [-1, -1]),
        ({"keep_dims": False}, (), [-2]),
    ],
)
def test_axes_known_only_while_running(attrs: dict[str, Any], axes: tuple[int, ...], shape: list[int]) -> None:
    [desc] = inferred("ReduceMax", [np.zeros((4, 1, 5, 6)), axes_of(*axes)], attrs, constant=False)
    assert desc.shape == tuple(shape)
    assert desc.data_type is DataType.DT_DOUBLE
