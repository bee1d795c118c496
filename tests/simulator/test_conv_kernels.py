"""Convolution kernels, forward and transposed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.ops.one_node import run_onnx
from tests.ops.test_conv import ge_window
from tests.simulator.differential import FLOAT_TYPES, assert_equal_meaning, check_kernel
from tests.simulator.planned_model import run_model, single


def operands(
    x_shape: tuple[int, ...], w_shape: tuple[int, ...], dtype: Any = np.float32, seed: int = 0
) -> list[np.ndarray]:
    """Return x, a filter that keeps the scale of x, and a bias."""
    rng = np.random.default_rng(seed)
    depth = np.prod(w_shape[1:])
    x, bias = rng.standard_normal(x_shape), rng.standard_normal(w_shape[0])
    return [a.astype(dtype) for a in (x, rng.standard_normal(w_shape) / np.sqrt(depth), bias)]


# x, filter, ONNX attributes, kernel with a constant filter
ROWS = [
    ((2, 5, 6, 7), (7, 5, 1, 1), {}, "conv-pointwise"),
    ((2, 6, 6, 7), (4, 3, 1, 1), {"group": 2}, "conv-pointwise"),
    ((1, 5, 6, 7), (7, 5, 1, 1), {"strides": [2, 3]}, "conv-unfolded"),
    ((2, 5, 2, 7), (7, 5, 1, 1), {"strides": [2, 1]}, "conv-unfolded"),
    ((2, 6, 2, 3), (4, 3, 1, 1), {"strides": [2, 3], "group": 2}, "conv-unfolded"),
    ((2, 6, 2, 7), (6, 1, 1, 1), {"strides": [2, 1], "group": 6}, "conv-depthwise"),
    ((2, 3, 9, 8), (4, 3, 3, 3), {"pads": [1, 1, 1, 1]}, "conv-unfolded"),
    ((1, 3, 21, 22), (8, 3, 7, 7), {"pads": [3, 3, 3, 3], "strides": [2, 2]}, "conv-unfolded"),
    ((2, 24, 9, 8), (10, 24, 3, 3), {"pads": [1, 0, 2, 1]}, "conv-unfolded-rows"),
    ((1, 24, 13, 12), (10, 24, 3, 3), {"strides": [2, 3], "pads": [1, 1, 0, 1]}, "conv-unfolded-rows"),
    ((1, 24, 13, 12), (10, 24, 4, 2), {"strides": [3, 1], "dilations": [2, 3]}, "conv-unfolded-rows"),
    ((1, 48, 9, 8), (10, 24, 3, 3), {"group": 2, "auto_pad": "SAME_UPPER", "strides": [2, 2]}, "conv-unfolded-rows"),
    ((1, 20, 1, 30), (6, 20, 1, 5), {"pads": [0, 2, 0, 2]}, "conv-unfolded"),
    ((1, 64, 1, 30), (6, 64, 1, 5), {"pads": [0, 2, 0, 2], "strides": [1, 2]}, "conv-unfolded-rows"),
    ((2, 6, 7, 9), (6, 1, 3, 3), {"group": 6, "pads": [1, 1, 1, 1]}, "conv-depthwise"),
    ((1, 6, 11, 9), (6, 1, 5, 3), {"group": 6, "pads": [2, 1, 2, 1], "strides": [2, 2]}, "conv-depthwise"),
    ((1, 6, 11, 9), (6, 1, 1, 3), {"group": 6, "strides": [3, 2], "dilations": [1, 2]}, "conv-depthwise"),
    ((1, 3, 6, 7), (6, 1, 3, 3), {"group": 3}, "conv-unfolded"),
    ((1, 4, 5, 6, 7), (4, 4, 2, 3, 2), {"pads": [0, 1, 1, 1, 0, 1], "strides": [2, 1, 2]}, "conv-unfolded"),
    ((1, 16, 5, 6, 7), (4, 16, 2, 3, 2), {"pads": [1] * 6, "dilations": [2, 1, 2]}, "conv-unfolded-rows"),
    ((1, 4, 5, 6, 7), (4, 1, 2, 3, 2), {"group": 4, "strides": [2, 1, 2]}, "conv-depthwise"),
]


@pytest.mark.parametrize(("x_shape", "w_shape", "attrs", "kernel"), ROWS)
@pytest.mark.parametrize("has_bias", [False, True])
def test_conv_equals_onnxruntime(
    x_shape: tuple[int, ...], w_shape: tuple[int, ...], attrs: dict[str, Any], kernel: str, has_bias: bool
) -> None:
    inputs = operands(x_shape, w_shape)[: 2 + has_bias]
    op_type = "Conv2D" if len(x_shape) == 4 else "Conv3D"
    model = single(op_type, inputs, ge_window(attrs, len(x_shape)), constant=[1, 2])
    [found] = run_model(model, inputs[:1])
    [expected] = run_onnx("Conv", inputs, attrs)
    assert_equal_meaning(found, expected.astype(np.float64))
    check_kernel(op_type, inputs, ge_window(attrs, len(x_shape)), constant=[1, 2], kernel=kernel)


@pytest.mark.parametrize("row", ROWS)
@pytest.mark.parametrize("dtype", FLOAT_TYPES[1:])
def test_conv_of_other_types(row: tuple[Any, ...], dtype: Any) -> None:
    x_shape, w_shape, attrs, _ = row
    op_type = "Conv2D" if len(x_shape) == 4 else "Conv3D"
    inputs = operands(x_shape, w_shape, dtype)
    check_kernel(op_type, inputs, ge_window(attrs, len(x_shape)), constant=[1, 2], kernel=None)


@pytest.mark.parametrize("row", ROWS)
def test_conv_with_a_filter_that_is_computed(row: tuple[Any, ...]) -> None:
    x_shape, w_shape, attrs, _ = row
    op_type = "Conv2D" if len(x_shape) == 4 else "Conv3D"
    check_kernel(op_type, operands(x_shape, w_shape), ge_window(attrs, len(x_shape)), kernel=None)


@st.composite
def convolutions(draw: st.DrawFn, n: int = 2) -> tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]:
    """Draw shapes and attributes whose windows fit."""
    groups = draw(st.sampled_from([1, 1, 2, 3]))
    depth, per_group = draw(st.sampled_from([1, 2, 20])), draw(st.integers(1, 3))
    taps = [draw(st.integers(1, 4)) for _ in range(n)]
    dilations = [draw(st.integers(1, 2)) for _ in range(n)]
    sizes = [(k - 1) * d + 1 + draw(st.integers(0, 6)) for k, d in zip(taps, dilations, strict=True)]
    attrs = {
        "group": groups,
        "dilations": dilations,
        "strides": [draw(st.integers(1, 3)) for _ in range(n)],
        "pads": [draw(st.integers(0, 2)) for _ in range(2 * n)],
    }
    x_shape = (draw(st.integers(1, 2)), groups * depth, *sizes)
    return x_shape, (groups * per_group, depth, *taps), attrs


@given(convolutions(), st.sampled_from([np.float32, np.float16]), st.booleans())
@settings(max_examples=150)
def test_conv_of_any_geometry(case: Any, dtype: Any, is_constant: bool) -> None:
    x_shape, w_shape, attrs = case
    constant = [1, 2] if is_constant else []
    check_kernel("Conv2D", operands(x_shape, w_shape, dtype), ge_window(attrs, 4), constant=constant, kernel=None)


@pytest.mark.parametrize("kernel", ["conv-unfolded", "conv-unfolded-rows"])
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("rows", [1, 2, 3, 5])
def test_conv_in_blocks_of_rows(monkeypatch: pytest.MonkeyPatch, kernel: str, dtype: Any, rows: int) -> None:
    channels = 3 if kernel == "conv-unfolded" else 16
    attrs = {"strides": [2, 1], "pads": [2, 1, 1, 1]}
    inputs = operands((2, channels, 13, 8), (4, channels, 5, 3), dtype)
    taps = 15 if kernel == "conv-unfolded" else 3
    lines = rows if kernel == "conv-unfolded" else 2 * rows + 3
    monkeypatch.setattr("simulator.kernels.conv.COLUMN_BYTES", channels * taps * lines * 8 * 4)
    check_kernel("Conv2D", inputs, ge_window(attrs, 4), constant=[1, 2], kernel=kernel)


@pytest.mark.parametrize("groups", [1, 3])
def test_strides_of_one_position_and_dilations_of_one_tap_cost_nothing(groups: int) -> None:
    attrs = {"strides": [2**62, 2**62], "dilations": [1, 2**62], "group": groups}
    x_shape, w_shape = (1, 3, 3, 1), (3, 3 // groups, 3, 1)
    plan = check_kernel("Conv2D", operands(x_shape, w_shape), ge_window(attrs, 4), constant=[1, 2], kernel=None)
    assert plan.scratch.nbytes < 4096


@pytest.mark.parametrize("plane_bytes", [1, 1000, 3000])
def test_depthwise_in_blocks_of_channels(monkeypatch: pytest.MonkeyPatch, plane_bytes: int) -> None:
    monkeypatch.setattr("simulator.kernels.conv.PLANE_BYTES", plane_bytes)
    attrs = {"strides": [2, 2], "pads": [1, 1, 1, 1], "group": 7}
    check_kernel("Conv2D", operands((2, 7, 9, 8), (7, 1, 3, 3)), ge_window(attrs, 4), kernel="conv-depthwise")


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_only_the_windows_that_see_it_become_nan(value: float) -> None:
    x, w, _ = operands((1, 16, 8, 8), (4, 16, 3, 3))
    x[0, 3, 4, 4] = value
    model = single("Conv2D", [x, w], ge_window({"pads": [1, 1, 1, 1]}, 4), constant=[1])
    [y] = run_model(model, [x])
    spoilt = np.zeros((8, 8), bool)
    spoilt[3:6, 3:6] = True
    np.testing.assert_array_equal(~np.isfinite(y[0]).all(axis=0), spoilt)


TRANSPOSED_ROWS = [
    ((2, 3, 5, 6), (3, 4, 2, 2), {"strides": [2, 2]}),
    ((1, 3, 5, 6), (3, 4, 3, 3), {}),
    ((1, 6, 5, 6), (6, 2, 3, 4), {"group": 3, "strides": [2, 3], "pads": [1, 0, 1, 2]}),
    ((1, 3, 5, 6), (3, 4, 3, 3), {"strides": [2, 2], "output_padding": [1, 1], "pads": [1, 1, 1, 1]}),
    ((1, 3, 5, 6), (3, 4, 3, 2), {"dilations": [2, 3], "strides": [1, 2]}),
    ((1, 3, 3, 4, 5), (3, 2, 2, 3, 2), {"strides": [2, 1, 2], "pads": [0, 1, 0, 1, 1, 1]}),
]


def transposed_attrs(attrs: dict[str, Any], rank: int) -> dict[str, Any]:
    """Return the attributes of GE's operator."""
    found = ge_window(attrs, rank)
    found["output_padding"] = [0, 0, *attrs.get("output_padding", [0] * (rank - 2))]
    return found


@pytest.mark.parametrize(("x_shape", "w_shape", "attrs"), TRANSPOSED_ROWS)
@pytest.mark.parametrize("has_bias", [False, True])
def test_conv_transpose_equals_onnxruntime(
    x_shape: tuple[int, ...], w_shape: tuple[int, ...], attrs: dict[str, Any], has_bias: bool
) -> None:
    x, w, _ = operands(x_shape, w_shape)
    bias = np.arange(w_shape[1] * attrs.get("group", 1), dtype=np.float32)
    rest = [bias] if has_bias else []
    size = np.zeros(len(x_shape), np.int64)
    op_type = "Conv2DTranspose" if len(x_shape) == 4 else "Conv3DTranspose"
    model = single(op_type, [size, x, w, *rest], transposed_attrs(attrs, len(x_shape)), constant=[0, 2, 3])
    [found] = run_model(model, [x])
    [expected] = run_onnx("ConvTranspose", [x, w, *rest], attrs)
    assert_equal_meaning(found, expected.astype(np.float64))


@pytest.mark.parametrize(("x_shape", "w_shape", "attrs"), TRANSPOSED_ROWS)
@pytest.mark.parametrize("dtype", FLOAT_TYPES)
@pytest.mark.parametrize("spread_bytes", [1, 1 << 22])
def test_conv_transpose_of_all_types(
    monkeypatch: pytest.MonkeyPatch,
    x_shape: tuple[int, ...],
    w_shape: tuple[int, ...],
    attrs: dict[str, Any],
    dtype: Any,
    spread_bytes: int,
) -> None:
    monkeypatch.setattr("simulator.kernels.conv_transpose.SPREAD_BYTES", spread_bytes)
    x, w, _ = operands(x_shape, w_shape, dtype)
    size = np.zeros(len(x_shape), np.int64)
    op_type = "Conv2DTranspose" if len(x_shape) == 4 else "Conv3DTranspose"
    check_kernel(
        op_type, [size, x, w], transposed_attrs(attrs, len(x_shape)), constant=[0, 2], kernel="conv-transposed"
    )
