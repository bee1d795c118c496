"""Activations, softmax and cross entropy."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from ge.errors import ReportedError
from tests.ops.one_node import assert_close, data, inferred, run_ge, run_onnx

SHAPE = (3, 4, 5)

# type, attributes, ONNX type, its attributes
ROWS: list[tuple[str, dict[str, Any], str, dict[str, Any]]] = [
    ("Relu", {}, "Relu", {}),
    ("Relu6", {}, "Clip", {}),
    ("Sigmoid", {}, "Sigmoid", {}),
    ("Tanh", {}, "Tanh", {}),
    ("Erf", {}, "Erf", {}),
    ("Softplus", {}, "Softplus", {}),
    ("Softsign", {}, "Softsign", {}),
    ("Mish", {}, "Mish", {}),
    ("HardSwish", {}, "HardSwish", {}),
    ("Gelu", {}, "Gelu", {}),
    ("GeluV2", {}, "Gelu", {}),
    ("GeluV2", {"approximate": "tanh"}, "Gelu", {"approximate": "tanh"}),
    ("LeakyRelu", {"negative_slope": 0.3}, "LeakyRelu", {"alpha": 0.3}),
    ("Elu", {"alpha": 0.7}, "Elu", {"alpha": 0.7}),
    ("Celu", {"alpha1": 1.7, "alpha2": 1.7}, "Celu", {"alpha": 1.7}),
    ("Selu", {}, "Selu", {}),
    ("Selu", {"_x_alpha": 1.2, "_x_gamma": 0.8}, "Selu", {"alpha": 1.2, "gamma": 0.8}),
    ("HardSigmoid", {"alpha": 0.3, "beta": 0.4}, "HardSigmoid", {"alpha": 0.3, "beta": 0.4}),
    ("Shrink", {"lambd": 0.9, "bias": 0.2}, "Shrink", {"lambd": 0.9, "bias": 0.2}),
    ("Dropout", {"dropout_ratio": 0.3}, "Dropout", {}),
]


@pytest.mark.parametrize(("type", "attrs", "onnx_type", "onnx_attrs"), ROWS)
def test_activation(type: str, attrs: dict[str, Any], onnx_type: str, onnx_attrs: dict[str, Any]) -> None:
    x = data(1, *SHAPE, low=-9, high=9)
    limits = [np.float32(0), np.float32(6)] if type == "Relu6" else []
    [expected] = run_onnx(onnx_type, [x, *limits], onnx_attrs)
    assert_close(run_ge(type, [x], attrs)[0], expected)
    half = x.astype(np.float16)
    [wide] = run_onnx(onnx_type, [half.astype(np.float32), *limits], onnx_attrs)
    [narrow] = run_ge(type, [half], attrs)
    np.testing.assert_allclose(narrow.astype(np.float32), wide.astype(np.float16), rtol=2e-3, atol=1e-4)


@pytest.mark.parametrize(
    ("type", "attrs", "expected"),
    [
        ("Swish", {"scale": 1.5}, lambda x: x / (1 + np.exp(-1.5 * x))),
        ("FastGelu", {}, lambda x: x / (1 + np.exp(-1.702 * x))),
        ("Threshold", {"threshold": 0.4}, lambda x: np.where(x > 0.4, 1.0, 0.0)),
        ("HardSigmoid", {}, lambda x: np.clip(x / 6 + 0.5, 0, 1)),
        (
            "Elu",
            {"alpha": 0.7, "scale": 1.5, "input_scale": 0.5},
            lambda x: 1.5 * np.where(x > 0, x, 0.7 * (np.exp(x * 0.5) - 1)),
        ),
        (
            "Celu",
            {"alpha1": 0.6, "alpha2": 1.4, "alpha3": 2.0},
            lambda x: np.maximum(2 * x, 0) + np.minimum(0.6 * (np.exp(x / 1.4) - 1), 0),
        ),
    ],
)
def test_activation_that_onnx_lacks(type: str, attrs: dict[str, Any], expected: Any) -> None:
    x = data(1, *SHAPE, low=-6, high=6)
    assert_close(run_ge(type, [x], attrs)[0], expected(x.astype(np.float64)))


@pytest.mark.parametrize("type", ["Sigmoid", "Softplus", "Mish", "Tanh", "Erf", "Gelu", "HardSwish", "Elu", "Selu"])
def test_far_out_values_stay_finite_and_exact(type: str) -> None:
    x = np.array([-1e4, -120, -90, 90, 120, 1e4], np.float32)
    right = {"Sigmoid": 1, "Tanh": 1, "Erf": 1}
    left = {"Tanh": -1, "Erf": -1, "Elu": -1, "Selu": -1.0507009873554805 * 1.6732632423543772}
    scale = 1.0507009873554805 if type == "Selu" else 1
    expected = np.array([left.get(type, 0.0)] * 3 + [right.get(type, v * scale) for v in x[3:].astype(float)])
    np.testing.assert_allclose(run_ge(type, [x])[0], expected, rtol=1e-6, atol=1e-30)


def test_nan_passes_through() -> None:
    x = np.array([np.nan, 1], np.float32)
    for name in ("Relu", "Relu6", "Sigmoid", "Erf", "Gelu", "Elu", "LeakyRelu", "HardSigmoid", "Softplus"):
        assert np.isnan(run_ge(name, [x])[0][0]), name


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_erf_is_as_exact_as_its_type(dtype: Any) -> None:
    x = np.concatenate([np.linspace(-6, 6, 1001), [0.0, 1e-30, -1e-8]]).astype(dtype)
    expected = np.array([math.erf(float(v)) for v in x])
    np.testing.assert_allclose(run_ge("Erf", [x])[0], expected, rtol=3 * np.finfo(dtype).eps, atol=1e-37)


@pytest.mark.parametrize("shape", [(), (5,), (4, 1), (3, 4, 5)])
def test_prelu_broadcasts_like_onnx(shape: tuple[int, ...]) -> None:
    x, weight = data(1, *SHAPE), data(2, *shape)
    [expected] = run_onnx("PRelu", [x, weight])
    assert_close(run_ge("PRelu", [x, weight], {"_x_unidirectional": True})[0], expected)


@pytest.mark.parametrize("shape", [(3, 4), (3, 4, 5), (2, 4, 3, 4)])
def test_prelu_weights_count_channels(shape: tuple[int, ...]) -> None:
    x, weight = data(1, *shape), data(2, 4)
    slopes = weight.reshape(4, *[1] * (len(shape) - 2))
    assert_close(run_ge("PRelu", [x, weight])[0], np.where(x < 0, x * slopes, x).astype(np.float64))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_gelu_far_below_zero(dtype: Any) -> None:
    x = np.array([-1, -5.5, -9, -12, -40, -1e30], dtype)
    expected = [v * math.erfc(-v * math.sqrt(0.5)) / 2 for v in x.tolist()]
    np.testing.assert_allclose(run_ge("Gelu", [x])[0], expected, rtol=1e-6, atol=0)
    tanh = [v * (1 + math.tanh(math.sqrt(2 / math.pi) * (v + 0.044715 * v**3))) / 2 for v in x.tolist()]
    np.testing.assert_allclose(run_ge("GeluV2", [x], {"approximate": "tanh"})[0], tanh, rtol=1e-5, atol=1e-15)


# -- softmax -------------------------------------------------------------------------------------------------------
SOFTMAXES = [("SoftmaxV2", "Softmax"), ("LogSoftmaxV2", "LogSoftmax"), ("HardMax", "Hardmax")]


@pytest.mark.parametrize(("type", "onnx_type"), SOFTMAXES)
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("is_flat", [False, True])
def test_softmax(type: str, onnx_type: str, axis: int, is_flat: bool) -> None:
    x = data(1, *SHAPE, low=-5, high=5)
    attrs = {"axis": axis} if type == "HardMax" else {"axes": [axis]}
    [expected] = run_onnx(onnx_type, [x], {"axis": axis}, opset=11 if is_flat else 13)
    assert_close(run_ge(type, [x], {**attrs, "_x_flatten": is_flat})[0], expected)


def test_softmax_over_several_axes() -> None:
    x = data(1, *SHAPE).astype(np.float64)
    exponentials = np.exp(x)
    expected = exponentials / exponentials.sum((0, 2), keepdims=True)
    assert_close(run_ge("SoftmaxV2", [x], {"axes": [0, -1]})[0], expected)
    assert_close(run_ge("LogSoftmaxV2", [x], {"axes": [0, -1]})[0], np.log(expected))


@pytest.mark.parametrize("shift", [-1e4, 1e4])
def test_softmax_of_large_values(shift: float) -> None:
    x = data(1, 4, 6).astype(np.float64)
    expected = np.exp(x) / np.exp(x).sum(-1, keepdims=True)
    assert_close(run_ge("SoftmaxV2", [x + shift])[0], expected)


def test_softmax_of_half_precision_may_widen() -> None:
    x = data(1, 4, 6, dtype=np.float16)
    [wide] = run_ge("SoftmaxV2", [x], {"half_to_float": True})
    [narrow] = run_ge("SoftmaxV2", [x])
    assert (wide.dtype, narrow.dtype) == (np.float32, np.float16)
    np.testing.assert_array_equal(wide.astype(np.float16), narrow)


@pytest.mark.parametrize("shape", [(4, 6), (3, 200), (2, 3, 1)])
def test_softmax_in_half_steps_is_that_of_the_function_body(shape: tuple[int, ...]) -> None:
    x = np.round(data(1, *shape, low=-5, high=5) * 64).astype(np.float16) / 64  # so differences need no rounding
    [expected] = run_onnx("Softmax", [x], reference=True)
    [found] = run_ge("SoftmaxV2", [x], {"_x_half_steps": True})
    np.testing.assert_array_equal(found, expected)


def test_half_steps_survive_totals_beyond_float16() -> None:
    x = np.zeros((1, 100_000), np.float16)
    [found] = run_ge("SoftmaxV2", [x], {"_x_half_steps": True})
    np.testing.assert_array_equal(found, np.full(x.shape, 1e-5, np.float16))


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32])
@pytest.mark.parametrize(("type", "meaning"), [("SoftmaxV2", lambda p: p), ("LogSoftmaxV2", np.log)])
def test_a_row_that_is_masked_throughout_is_uniform_in_half_precision_only(
    type: str, meaning: Callable[[np.ndarray], np.ndarray], dtype: Any
) -> None:
    x = np.array([[-np.inf] * 4, [-np.inf, 1, 1, -np.inf], [np.nan, 0, 0, 0]], dtype)
    masked = np.full(4, np.nan if dtype is np.float32 else 0.25)
    with np.errstate(divide="ignore"):
        expected = meaning(np.array([masked, [0, 0.5, 0.5, 0], [np.nan] * 4]))
    [found] = run_ge(type, [x])
    assert found.dtype == dtype
    np.testing.assert_array_equal(found.astype(np.float64), expected.astype(dtype).astype(np.float64))


def test_hard_max_takes_the_first_of_equals() -> None:
    x = np.array([[1, 3, 3], [2, 2, 2]], np.float32)
    assert run_ge("HardMax", [x])[0].tolist() == [[0, 1, 0], [1, 0, 0]]


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("ignored", [{}, {"ignore_index": 2}, {"ignore_index": -1}])
@pytest.mark.parametrize("has_weights", [False, True])
def test_cross_entropy(reduction: str, ignored: dict[str, int], has_weights: bool) -> None:
    scores = data(1, 3, 5, 4)
    labels = np.random.default_rng(2).integers(0, 5, (3, 4))
    labels[0, 0] = ignored.get("ignore_index", 0)
    inputs = [scores, labels, data(3, 5, low=0.1) if has_weights else None]
    attrs = {"reduction": reduction, **ignored}
    expected = run_onnx("SoftmaxCrossEntropyLoss", inputs, attrs, 2, opset=13)
    for found, wanted in zip(run_ge("SoftmaxCrossEntropyLoss", inputs, attrs, 2), expected, strict=True):
        assert_close(found, np.asarray(wanted))


@pytest.mark.parametrize(
    ("type", "shapes", "attrs", "message"),
    [
        ("SoftmaxV2", [(2, 3)], {"axes": [2]}, "axis 2 is out of range for rank 2"),
        ("HardMax", [(2, 3)], {"axis": -3}, "axis -3 is out of range for rank 2"),
        ("PRelu", [(2, 3), (4,)], {}, r"weight \[4\] cannot be broadcast to x \[2,3\]"),
        ("SoftmaxCrossEntropyLoss", [(2, 3, 4), (2, 3)], {}, r"labels \[2,3\] do not fit scores \[2,3,4\]"),
        ("SoftmaxCrossEntropyLoss", [(2, 3), (2,)], {"reduction": "max"}, "must be none, mean or sum, not max"),
    ],
)
def test_activations_refuse(type: str, shapes: list[tuple[int, ...]], attrs: dict[str, Any], message: str) -> None:
    with pytest.raises(ReportedError, match=message) as caught:
        inferred(type, [data(i, *shape) for i, shape in enumerate(shapes)], attrs)
    assert caught.value.code == "E14001"
