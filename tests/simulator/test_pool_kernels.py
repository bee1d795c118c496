"""Pooling kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.ops.one_node import run_onnx
from tests.ops.test_pool import ROWS, ROWS_3D, channels_last, ge_pool
from tests.simulator.differential import FLOAT_TYPES, assert_equal_meaning, check_kernel
from tests.simulator.planned_model import run_model, single


def image(shape: tuple[int, ...], dtype: Any = np.float32) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(dtype)


@pytest.mark.parametrize(("shape", "attrs"), ROWS)
def test_max_pool_equals_onnxruntime(shape: tuple[int, ...], attrs: dict[str, Any]) -> None:
    x = image(shape)
    [expected] = run_onnx("MaxPool", [x], attrs)
    [found] = run_model(single("MaxPoolV3", [x], ge_pool(attrs)), [x])
    np.testing.assert_array_equal(found, expected)
    last = np.moveaxis(x, 1, -1)
    [found] = run_model(single("MaxPoolV3", [last], channels_last(ge_pool(attrs))), [last])
    np.testing.assert_array_equal(found, np.moveaxis(expected, 1, -1))


@pytest.mark.parametrize(("shape", "attrs"), ROWS)
@pytest.mark.parametrize("includes_padding", [False, True])
def test_average_pool_equals_onnxruntime(shape: tuple[int, ...], attrs: dict[str, Any], includes_padding: bool) -> None:
    x = image(shape)
    [expected] = run_onnx("AveragePool", [x], {**attrs, "count_include_pad": int(includes_padding)})
    ge_attrs = {**ge_pool(attrs), "exclusive": not includes_padding}
    [found] = run_model(single("AvgPoolV2", [x], ge_attrs), [x])
    assert_equal_meaning(found, expected.astype(np.float64))


@pytest.mark.parametrize(("shape", "attrs"), ROWS_3D)
def test_pools_of_volumes(shape: tuple[int, ...], attrs: dict[str, Any]) -> None:
    x = image(shape)
    [found] = run_model(single("MaxPool3D", [x], ge_pool(attrs, "padding")), [x])
    np.testing.assert_array_equal(found, run_onnx("MaxPool", [x], attrs)[0])
    ge_attrs = {**ge_pool(attrs, "padding"), "count_include_pad": False}
    check_kernel("AvgPool3D", [x], ge_attrs, kernel="average-pool")


@pytest.mark.parametrize("dtype", FLOAT_TYPES)
@pytest.mark.parametrize(("type", "kernel"), [("MaxPoolV3", "max-pool"), ("AvgPoolV2", "average-pool")])
@pytest.mark.parametrize("block_bytes", [1, 3000, 1 << 20])
def test_pools_of_all_types_in_blocks(
    monkeypatch: pytest.MonkeyPatch, dtype: Any, type: str, kernel: str, block_bytes: int
) -> None:
    monkeypatch.setattr("simulator.kernels.pool.BLOCK_BYTES", block_bytes)
    attrs = ge_pool({"kernel_shape": [3, 2], "strides": [2, 1], "pads": [1, 0, 1, 1]})
    check_kernel(type, [image((2, 5, 9, 8), dtype)], attrs, kernel=kernel)


@given(
    st.lists(st.integers(1, 4), min_size=2, max_size=2),
    st.lists(st.integers(1, 3), min_size=2, max_size=2),
    st.lists(st.integers(0, 7), min_size=2, max_size=2),
    st.lists(st.integers(0, 3), min_size=4, max_size=4),
    st.sampled_from(["MaxPoolV3", "AvgPoolV2"]),
    st.booleans(),
    st.booleans(),
)
@settings(max_examples=150)
def test_pools_of_any_geometry(
    taps: list[int], strides: list[int], more: list[int], pads: list[int], type: str, ceil: bool, exclusive: bool
) -> None:
    pads = [min(pad, taps[i % 2] - 1) for i, pad in enumerate(pads)]
    sizes = tuple(k + m for k, m in zip(taps, more, strict=True))
    attrs = {"kernel_shape": taps, "strides": strides, "pads": pads, "ceil_mode": int(ceil)}
    found = ge_pool(attrs) | ({"exclusive": exclusive} if type == "AvgPoolV2" else {})
    check_kernel(type, [image((1, 2, *sizes))], found, kernel=None)


@pytest.mark.parametrize(
    ("kernel_shape", "shape"), [([7, 7], (1, 3, 7, 7)), ([3, 5], (2, 3, 3, 5)), ([1, 1], (1, 2, 4, 5))]
)
@pytest.mark.parametrize("type", ["MaxPoolV3", "AvgPoolV2"])
def test_windows_as_large_as_the_image_or_one_element(
    kernel_shape: list[int], shape: tuple[int, ...], type: str
) -> None:
    check_kernel(type, [image(shape)], ge_pool({"kernel_shape": kernel_shape}), kernel=None)


def test_a_fixed_divisor_makes_a_sum() -> None:
    x = np.ones((1, 1, 4, 4), np.float32)
    attrs = {**ge_pool({"kernel_shape": [2, 2], "pads": [1, 1, 1, 1]}), "divisor_override": 2}
    plan = check_kernel("AvgPoolV2", [x], attrs, kernel="sum-pool")
    assert plan.outputs[0].array[0, 0, 0, 0] == 0.5
    assert plan.outputs[0].array[0, 0, 1, 1] == 2


@pytest.mark.parametrize("dtype", FLOAT_TYPES)
@pytest.mark.parametrize("form", ["NCHW", "NHWC"])
def test_global_average(dtype: Any, form: str) -> None:
    check_kernel("GlobalAveragePool", [image((2, 5, 6, 7), dtype)], {"_x_data_format": form}, kernel="global-average")


@pytest.mark.parametrize("type", ["MaxPoolV3", "AvgPoolV2"])
def test_nan_stays_in_its_windows(type: str) -> None:
    x = image((1, 1, 6, 6))
    x[0, 0, 2, 3] = np.nan
    [y] = run_model(single(type, [x], ge_pool({"kernel_shape": [2, 2], "strides": [2, 2]})), [x])
    np.testing.assert_array_equal(np.isnan(y[0, 0]), [[0, 0, 0], [0, 1, 0], [0, 0, 0]])


def test_max_pool_of_bytes() -> None:
    x = np.arange(-32, 32, dtype=np.int8).reshape(1, 1, 8, 8)
    check_kernel("MaxPoolV3", [x], ge_pool({"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}), kernel="max-pool")
