"""Normalisation and softmax kernels."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from simulator.kernels.blocks import LONGEST_ROW, row_sums
from tests.ops.one_node import run_onnx
from tests.simulator.differential import FLOAT_TYPES, assert_equal_meaning, check_kernel
from tests.simulator.planned_model import run_model, single


def tensor(*shape: int, dtype: Any = np.float32, shift: float = 0.0) -> np.ndarray:
    return (np.random.default_rng(sum(shape)).standard_normal(shape) * 2 + shift).astype(dtype)


def channel_parameters(channels: int, dtype: Any = np.float32) -> list[np.ndarray]:
    """Return scale, offset, mean and variance."""
    rng = np.random.default_rng(channels)
    return [rng.uniform(low, high, channels).astype(dtype) for low, high in [(0.5, 2), (-1, 1), (-1, 1), (0.5, 3)]]


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize(
    ("shape", "form", "channels"),
    [((2, 5, 6, 7), "NCHW", 5), ((2, 6, 7, 5), "NHWC", 5), ((9, 5), "NCHW", 5), ((3, 70, 900), "NCHW", 70)],
)
@pytest.mark.parametrize("constant", [[], [1, 2, 3, 4]])
def test_batch_norm(dtype: Any, shape: tuple[int, ...], form: str, channels: int, constant: list[int]) -> None:
    inputs = [tensor(*shape, dtype=dtype), *channel_parameters(channels)]
    attrs = {"epsilon": 1e-3, "data_format": form, "is_training": False}
    check_kernel("BatchNorm", inputs, attrs, kernel="batch-norm", constant=constant, n_outputs=6)
    check_kernel("BatchNorm", inputs, attrs, kernel="batch-norm", constant=constant)
    attrs = {"epsilon": 1e-3, "_x_data_format": form}
    check_kernel("BNInfer", inputs, attrs, kernel="batch-norm", constant=constant)


@pytest.mark.parametrize("dtype", [*FLOAT_TYPES, np.int32])
@pytest.mark.parametrize(
    ("shape", "form", "channels"), [((2, 5, 6, 7), "NCHW", 5), ((2, 6, 7, 5), "NHWC", 5), ((9, 5), "NHWC", 5)]
)
@pytest.mark.parametrize("constant", [[], [1]])
def test_bias(dtype: Any, shape: tuple[int, ...], form: str, channels: int, constant: list[int]) -> None:
    inputs = [tensor(*shape, dtype=dtype), tensor(channels, dtype=dtype)]
    check_kernel("BiasAdd", inputs, {"data_format": form}, kernel="bias-add", constant=constant)


def test_batch_norm_equals_onnxruntime() -> None:
    inputs = [tensor(2, 5, 6, 7), *channel_parameters(5)]
    attrs = {"epsilon": 1e-3, "data_format": "NCHW", "is_training": False}
    [found] = run_model(single("BatchNorm", inputs, attrs, constant=[1, 2, 3, 4]), inputs[:1])
    [expected] = run_onnx("BatchNormalization", inputs, {"epsilon": 1e-3}, opset=15)
    assert_equal_meaning(found, expected.astype(np.float64))


@pytest.mark.parametrize("dtype", FLOAT_TYPES)
@pytest.mark.parametrize("begin", [0, 1, 2, -1])
@pytest.mark.parametrize("type", ["LayerNorm", "LayerNormV3"])
def test_layer_norm(dtype: Any, begin: int, type: str) -> None:
    x = tensor(3, 5, 40, dtype=dtype)
    parameters = [tensor(*x.shape[begin:], dtype=dtype), tensor(*x.shape[begin:], dtype=dtype)]
    attrs = {"begin_norm_axis": begin, "begin_params_axis": begin, "epsilon": 1e-3}
    check_kernel(type, [x, *parameters], attrs, kernel="layer-norm", n_outputs=3)


@pytest.mark.parametrize("dtype", FLOAT_TYPES)
@pytest.mark.parametrize("n_parameters", [0, 1, 2])
def test_layer_norm_v4(dtype: Any, n_parameters: int) -> None:
    inputs = [tensor(3, 5, 40, dtype=dtype), np.array([40], np.int64)]
    inputs += [tensor(40, dtype=dtype) for _ in range(n_parameters)]
    check_kernel("LayerNormV4", inputs, {"epsilon": 1e-3}, kernel="layer-norm", constant=[1], n_outputs=3)


def test_layer_norm_equals_onnxruntime() -> None:
    inputs = [tensor(3, 5, 40, shift=10), tensor(40), tensor(40)]
    attrs = {"begin_norm_axis": -1, "begin_params_axis": -1, "epsilon": 1e-5}
    found = run_model(single("LayerNorm", inputs, attrs, n_outputs=3), inputs)[0]
    [expected] = run_onnx("LayerNormalization", inputs, {"epsilon": 1e-5})
    assert_equal_meaning(found, expected.astype(np.float64), 1e-5)


@pytest.mark.parametrize("dtype", FLOAT_TYPES)
def test_rms_norm(dtype: Any) -> None:
    check_kernel(
        "RmsNorm", [tensor(3, 5, 40, dtype=dtype), tensor(40, dtype=dtype)], {}, kernel="rms-norm", n_outputs=2
    )


@pytest.mark.parametrize("dtype", FLOAT_TYPES)
@pytest.mark.parametrize("block", [1, 200, 1 << 15])
@pytest.mark.parametrize("groups", [1, 3, 6, None])
def test_norms_of_channels_and_groups(
    monkeypatch: pytest.MonkeyPatch, dtype: Any, block: int, groups: int | None
) -> None:
    monkeypatch.setattr("simulator.kernels.norm.BLOCK_ELEMENTS", block)
    inputs = [tensor(4, 6, 5, 7, dtype=dtype), tensor(6, dtype=dtype), tensor(6, dtype=dtype, shift=1)]
    if groups is None:
        attrs: dict[str, Any] = {"epsilon": 1e-3, "data_format": "NCHW"}
        check_kernel("InstanceNorm", inputs, attrs, kernel="instance-norm", n_outputs=3)
    else:
        attrs = {"eps": 1e-3, "num_groups": groups}
        check_kernel("GroupNorm", inputs, attrs, kernel="group-norm", n_outputs=3)


def test_norms_of_rows_far_from_zero() -> None:
    """The variance is taken around the mean, not as a difference of large squares."""
    x = tensor(4, 1000, shift=1000)
    check_kernel(
        "LayerNorm",
        [x, np.ones(1000, np.float32), np.zeros(1000, np.float32)],
        {"begin_norm_axis": 1, "begin_params_axis": 1},
        kernel="layer-norm",
        n_outputs=3,
        tolerance=1e-4,
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("length", [1, 7, 768, LONGEST_ROW, LONGEST_ROW + 1, 500_000])
def test_row_sums_keep_their_digits(length: int, dtype: Any) -> None:
    rows, totals = tensor(2, length, dtype=dtype, shift=1000), np.empty((2, 1), dtype)
    row_sums(length, np.dtype(dtype))(rows, totals)
    exact = [math.fsum(row.tolist()) for row in rows]
    np.testing.assert_allclose(totals[:, 0], exact, rtol=4 * np.finfo(dtype).eps)


@pytest.mark.parametrize("dtype", FLOAT_TYPES)
@pytest.mark.parametrize("axes", [[-1], [0], [1], [1, 2], [2, 1], [0, 1, 2]])
@pytest.mark.parametrize(("type", "kernel"), [("SoftmaxV2", "softmax"), ("LogSoftmaxV2", "log-softmax")])
def test_softmax(dtype: Any, axes: list[int], type: str, kernel: str) -> None:
    for shape in [(3, 5, 40), (2, 300, 90)]:
        check_kernel(type, [tensor(*shape, dtype=dtype)], {"axes": axes}, kernel=kernel)


def test_softmax_over_flattened_axes() -> None:
    x = tensor(3, 4, 5)
    plan = check_kernel("SoftmaxV2", [x], {"axes": [1], "_x_flatten": True}, kernel="softmax")
    np.testing.assert_allclose(plan.outputs[0].array.reshape(3, -1).sum(axis=1), 1, rtol=1e-6)


def test_softmax_of_half_precision_may_give_single() -> None:
    check_kernel("SoftmaxV2", [tensor(3, 40, dtype=np.float16)], {"half_to_float": True}, kernel="softmax")


@pytest.mark.parametrize("dtype", FLOAT_TYPES)
@pytest.mark.parametrize("shape", [(3, 40), (300, 200), (1, 100_000)])
def test_softmax_in_half_steps(dtype: Any, shape: tuple[int, ...]) -> None:
    x = tensor(*shape, dtype=dtype)
    [found] = check_kernel("SoftmaxV2", [x], {"_x_half_steps": True}, kernel="softmax").outputs
    [whole] = check_kernel("SoftmaxV2", [x], kernel="softmax").outputs
    assert np.array_equal(found.array, whole.array) == (dtype is not np.float16)


@pytest.mark.parametrize("type", ["SoftmaxV2", "LogSoftmaxV2"])
def test_softmax_of_large_and_special_values(type: str) -> None:
    x = np.array([[1e4, 0, -1e4], [-np.inf, 1, 2], [np.nan, 1, 2], [3, 3, 3]], np.float32)
    check_kernel(type, [x], kernel=None)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("attrs", [{}, {"_x_half_steps": True}])
def test_softmax_of_rows_that_are_masked_throughout(dtype: Any, attrs: dict[str, Any]) -> None:
    x = tensor(300, 200, dtype=dtype)
    x[7], x[8, 3:] = -np.inf, -np.inf
    [found] = run_model(single("SoftmaxV2", [x], attrs), [x], poison=0xFF)
    np.testing.assert_allclose(found[7].astype(np.float64), 1 / 200, rtol=1e-2)
    assert not found[8, 3:].any()
    np.testing.assert_allclose(found.astype(np.float64).sum(axis=1), 1, rtol=1e-2)


@pytest.mark.parametrize("dtype", FLOAT_TYPES)
@pytest.mark.parametrize("beta", [0.75, 0.5, 0.9])
@pytest.mark.parametrize(
    ("size", "shape"), [(5, (2, 9, 4, 5)), (4, (1, 3, 300, 70)), (9, (1, 2, 3, 3)), (1, (1, 2, 3, 3))]
)
def test_response_normalisation(dtype: Any, beta: float, size: int, shape: tuple[int, ...]) -> None:
    attrs = {"depth_radius": (size - 1) // 2, "_x_size": size, "alpha": 0.1, "beta": beta, "bias": 1.5}
    check_kernel("LRN", [tensor(*shape, dtype=dtype)], attrs, kernel="lrn")


def test_response_normalisation_equals_onnxruntime() -> None:
    x = tensor(2, 9, 4, 5)
    [expected] = run_onnx("LRN", [x], {"size": 5, "alpha": 0.5, "beta": 0.75, "bias": 2.0})
    attrs = {"depth_radius": 2, "alpha": 0.1, "beta": 0.75, "bias": 2.0}
    [found] = run_model(single("LRN", [x], attrs), [x])
    assert_equal_meaning(found, expected.astype(np.float64))
