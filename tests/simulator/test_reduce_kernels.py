"""Reduction kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.simulator.differential import FLOAT_TYPES, check_kernel
from tests.simulator.planned_model import run_model, single

TYPES = ["ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd"]


def numbers(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    rng = np.random.default_rng(sum(shape))
    if np.dtype(dtype).kind in "iu":
        return rng.integers(0, 9, shape).astype(dtype)
    return rng.uniform(0.5, 1.5, shape).astype(dtype)


def axes_input(*axes: int) -> np.ndarray:
    return np.array(axes, np.int32)


@pytest.mark.parametrize("type", TYPES)
@pytest.mark.parametrize("dtype", [*FLOAT_TYPES, np.int8, np.int32, np.int64, np.uint8])
@pytest.mark.parametrize("keeps", [False, True])
def test_reductions(type: str, dtype: Any, keeps: bool) -> None:
    if type == "ReduceMean" and np.dtype(dtype).kind in "iu":
        return
    for axes in [(0,), (-1,), (1,), (0, 2), (2, 0, 1), (1, 2)]:
        inputs = [numbers(3, 4, 50, dtype=dtype), axes_input(*axes)]
        check_kernel(type, inputs, {"keep_dims": keeps}, kernel=None, constant=[1], tolerance=None)


@pytest.mark.parametrize("is_noop", [False, True])
def test_no_axes(is_noop: bool) -> None:
    inputs = [numbers(3, 4), axes_input()]
    plan = check_kernel("ReduceSum", inputs, {"noop_with_empty_axes": is_noop}, kernel="reduce-add", constant=[1])
    assert plan.outputs[0].array.shape == ((3, 4) if is_noop else ())


@pytest.mark.parametrize("type", ["ReduceAny", "ReduceAll"])
def test_logic(type: str) -> None:
    x = np.random.default_rng(0).random((5, 6, 3)) < 0.4
    check_kernel(type, [x, axes_input(1)], {"keep_dims": True}, kernel=None, constant=[1])


@pytest.mark.parametrize("type", ["ReduceSumD", "ReduceMeanD"])
def test_axes_as_attribute(type: str) -> None:
    check_kernel(type, [numbers(3, 4, 5)], {"axes": [0, 2], "keep_dims": True}, kernel="reduce-add")


def test_square_sum() -> None:
    check_kernel("SquareSumV1", [numbers(3, 4, 500)], {"axis": [1, 2]}, kernel="square-sum")


@pytest.mark.parametrize("type", ["ReduceMax", "ReduceMin", "ReduceSum", "ReduceMean"])
def test_nan_wins(type: str) -> None:
    x = numbers(4, 5)
    x[2, 1] = np.nan
    [y] = run_model(single(type, [x, axes_input(1)], constant=[1]), [x])
    np.testing.assert_array_equal(np.isnan(y), [False, False, True, False])


@pytest.mark.parametrize("shape", [(200_000, 3), (3, 200_000)])
def test_long_sums_stay_accurate(shape: tuple[int, int]) -> None:
    x = np.random.default_rng(0).uniform(0.5, 1.5, shape).astype(np.float32)
    axis = 0 if shape[0] > 3 else 1
    check_kernel("ReduceSum", [x, axes_input(axis)], kernel="reduce-add", constant=[1], tolerance=1e-6)
