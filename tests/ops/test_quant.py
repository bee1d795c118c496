"""Quantisation and products of quantised operands."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from ge.errors import ReportedError
from ge.graph.types import DataType
from tests.ops.one_node import assert_close, data, inferred, run_ge, run_onnx

TYPES = [np.int8, np.uint8, np.int16, np.uint16]


def integers(seed: int, *shape: int, dtype: Any = np.uint8) -> np.ndarray:
    """Return seeded integers over the whole range of the type."""
    info = np.iinfo(dtype)
    return np.random.default_rng(seed).integers(info.min, info.max, shape, endpoint=True).astype(dtype)


# -- ONNX ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("dtype", TYPES)
def test_quantize_and_dequantize(dtype: Any) -> None:
    x, scale, zero = data(1, 3, 4, 6, low=-40, high=40), np.float32(0.13), np.array(7, dtype)
    [expected] = run_onnx("QuantizeLinear", [x, scale, zero])
    [found] = run_ge("XQuantizeLinear", [x, scale, zero])
    np.testing.assert_array_equal(found, expected)
    assert found.dtype == dtype
    [back] = run_onnx("DequantizeLinear", [expected, scale, zero])
    assert_close(run_ge("XDequantizeLinear", [found, scale, zero])[0], back)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_scales_along_an_axis(axis: int) -> None:
    x = data(1, 3, 4, 6, low=-40, high=40)
    scale, zero = data(2, x.shape[axis], low=0.1), integers(3, x.shape[axis], dtype=np.int8)
    quantized = run_onnx("QuantizeLinear", [x, scale, zero], {"axis": axis})
    np.testing.assert_array_equal(run_ge("XQuantizeLinear", [x, scale, zero], {"axis": axis}), quantized)
    [back] = run_onnx("DequantizeLinear", [*quantized, scale, zero], {"axis": axis})
    assert_close(run_ge("XDequantizeLinear", [*quantized, scale, zero], {"axis": axis})[0], back)


def test_scales_of_blocks() -> None:
    x = data(1, 3, 4, 6, low=-40, high=40)
    scale, zero, attrs = data(2, 3, 2, 6, low=0.1), integers(3, 3, 2, 6, dtype=np.int8), {"axis": 1, "block_size": 2}
    quantized = run_onnx("QuantizeLinear", [x, scale, zero], attrs)
    np.testing.assert_array_equal(run_ge("XQuantizeLinear", [x, scale, zero], attrs), quantized)
    [back] = run_onnx("DequantizeLinear", [*quantized, scale, zero], attrs)
    assert_close(run_ge("XDequantizeLinear", [*quantized, scale, zero], attrs)[0], back)


@pytest.mark.parametrize("dtype", [ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2])
@pytest.mark.parametrize("saturate", [False, True])
def test_quantize_to_float8(dtype: Any, saturate: bool) -> None:
    inputs = [data(1, 5, 60, low=-9e3, high=9e3), np.float32(0.13), np.zeros((), dtype)]
    [expected] = run_onnx("QuantizeLinear", inputs, {"saturate": int(saturate)}, reference=True)
    [found] = run_ge("XQuantizeLinear", inputs, {"saturate": saturate})
    assert found.dtype == dtype
    np.testing.assert_array_equal(found.astype(np.float32), expected.astype(np.float32))


def test_quantize_to_int4() -> None:
    x, scale = data(1, 5, 6, low=-4, high=4), np.float32(0.4)
    [found] = run_ge("XQuantizeLinear", [x, scale], {"dtype": DataType.DT_INT4})
    np.testing.assert_array_equal(found.astype(int), np.clip(np.rint(x / scale), -8, 7).astype(int))
    [back] = run_ge("XDequantizeLinear", [found, scale], {"dtype": DataType.DT_FLOAT16})
    np.testing.assert_allclose(back, found.astype(np.float32) * scale, rtol=1e-3)
    assert back.dtype == np.float16


def test_quantize_halves_to_even_and_defaults_to_bytes() -> None:
    [found] = run_ge("XQuantizeLinear", [np.float32([0.5, 1.5, 2.5, -1, 300]), np.float32(1)])
    assert (found.dtype, found.tolist()) == (np.uint8, [0, 2, 2, 0, 255])


@pytest.mark.parametrize(("low", "high"), [(-3, 8), (2, 9), (-7, -1), (0, 0)])
def test_dynamic_quantize(low: float, high: float) -> None:
    x = data(1, 4, 6, low=low, high=high)
    expected = run_onnx("DynamicQuantizeLinear", [x], {}, 3)
    for found, wanted in zip(run_ge("XDynamicQuantizeLinear", [x], {}, 3), expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-6)


BYTES = [np.uint8, np.int8]
# onnxruntime lacks some combinations of signed and unsigned operands
MIXED = [(a, b) for a in BYTES for b in BYTES]


@pytest.mark.parametrize(("left", "right"), MIXED)
def test_matmul_integer(left: Any, right: Any) -> None:
    a, b = integers(1, 2, 5, 7, dtype=left), integers(2, 7, 6, dtype=right)
    inputs = [a, b, integers(3, dtype=left), integers(4, 6, dtype=right)]
    [expected] = run_onnx("MatMulInteger", inputs, reference=left is np.int8)
    np.testing.assert_array_equal(run_ge("XMatMulInteger", inputs)[0], expected)


def test_matmul_integer_with_zero_points_by_row() -> None:
    a, b, zero = integers(1, 5, 7), integers(2, 7, 6), integers(3, 5)
    expected = (a.astype(int) - zero[:, None].astype(int)) @ b.astype(int)
    np.testing.assert_array_equal(run_ge("XMatMulInteger", [a, b, zero])[0], expected)


@pytest.mark.parametrize(("left", "right"), MIXED)
def test_conv_integer(left: Any, right: Any) -> None:
    x, w = integers(1, 2, 4, 6, 7, dtype=left), integers(2, 6, 2, 3, 2, dtype=right)
    inputs = [x, w, integers(3, dtype=left), integers(4, dtype=right)]
    [expected] = run_onnx("ConvInteger", inputs, {"strides": [2, 1], "pads": [1, 1, 0, 2], "group": 2}, reference=True)
    attrs = {"strides": [1, 1, 2, 1], "pads": [1, 0, 1, 2], "groups": 2}
    np.testing.assert_array_equal(run_ge("XConvInteger", inputs, attrs)[0], expected)


@pytest.mark.parametrize(("left", "right"), MIXED)
def test_qlinear_matmul(left: Any, right: Any) -> None:
    a, b = integers(1, 2, 5, 7, dtype=left), integers(2, 7, 6, dtype=right)
    columns = data(3, 6, low=0.01, high=0.03)
    zeros = np.full(6, 3, right)
    inputs = [a, np.float32(0.02), integers(4, dtype=left), b, columns, zeros, np.float32(0.9), integers(5, dtype=left)]
    [expected] = run_onnx("QLinearMatMul", inputs, reference=(left, right) == (np.int8, np.uint8))
    np.testing.assert_array_equal(run_ge("XQLinearMatMul", inputs)[0], expected)


@pytest.mark.parametrize(("left", "right"), MIXED)
@pytest.mark.parametrize("has_bias", [False, True])
def test_qlinear_conv(left: Any, right: Any, has_bias: bool) -> None:
    bias = np.random.default_rng(6).integers(-999, 999, 6).astype(np.int32)
    inputs = [
        integers(1, 2, 4, 6, 7, dtype=left),
        np.float32(0.02),
        integers(3, dtype=left),
        integers(2, 6, 2, 3, 2, dtype=right),
        data(4, 6, low=0.01, high=0.03),
        np.full(6, 3, right),
        np.float32(0.7),
        integers(5, dtype=left),
        bias if has_bias else None,
    ]
    onnx_attrs = {"strides": [2, 1], "pads": [1, 1, 0, 2], "group": 2}
    [expected] = run_onnx("QLinearConv", inputs, onnx_attrs, reference=(left, right) == (np.int8, np.uint8))
    attrs = {"strides": [1, 1, 2, 1], "pads": [1, 0, 1, 2], "groups": 2}
    np.testing.assert_array_equal(run_ge("XQLinearConv", inputs, attrs)[0], expected)


# -- Ascend --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("root", [False, True])
@pytest.mark.parametrize(
    ("mode", "rounding"), [("Round", np.rint), ("Floor", np.floor), ("Ceil", np.ceil), ("Trunc", np.trunc)]
)
@pytest.mark.parametrize(("dst_type", "low", "high"), [(2, -128, 127), (29, -8, 7)])
def test_ascend_quant(mode: str, rounding: Any, dst_type: int, low: int, high: int, root: bool) -> None:
    x = data(1, 4, 50, low=-90, high=90)
    attrs = {"scale": 0.5, "offset": 3.0, "round_mode": mode, "dst_type": dst_type, "sqrt_mode": root}
    [found] = run_ge("AscendQuant", [x], attrs)
    expected = np.clip(rounding(x.astype(np.float64) * (0.25 if root else 0.5) + 3), low, high)
    np.testing.assert_array_equal(found.astype(int), expected.astype(int))


@pytest.mark.parametrize("root", [False, True])
@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize(("shape", "axis"), [((2, 4, 3, 5), 1), ((6, 4), 1), ((2, 3, 4), 2)])
def test_ascend_dequant(shape: tuple[int, ...], axis: int, relu: bool, root: bool) -> None:
    x = integers(1, *shape, dtype=np.int16).astype(np.int32)
    scale = np.float32([0.5, 0.25, 2, 3])
    bits = scale.view(np.uint32).astype(np.uint64) | np.uint64(0xABC << 32)
    along = scale.reshape([-1 if i == axis else 1 for i in range(x.ndim)]).astype(np.float64)
    expected = x * along * (along if root else 1)
    expected = np.maximum(expected, 0) if relu else expected
    attrs = {"sqrt_mode": root, "relu_flag": relu}
    for given in (scale, bits):
        [found] = run_ge("AscendDequant", [x, given], attrs)
        np.testing.assert_array_equal(found, expected)
    assert run_ge("AscendDequant", [x // 64, bits[:1]], {"dtype": int(DataType.DT_FLOAT16)})[0].dtype == np.float16


def test_ascend_dequant_of_channels_last() -> None:
    x, scale = integers(1, 2, 3, 5, 4, dtype=np.int16).astype(np.int32), np.float32([0.5, 0.25, 2, 3])
    np.testing.assert_array_equal(
        run_ge("AscendDequant", [x, scale], {"_x_data_format": "NHWC"})[0], x * scale.astype(np.float64)
    )


@pytest.mark.parametrize("root", [False, True])
def test_ascend_anti_quant(root: bool) -> None:
    x = integers(1, 4, 50, dtype=np.int8)
    [found] = run_ge("AscendAntiQuant", [x], {"scale": 0.5, "offset": 3.0, "sqrt_mode": root})
    np.testing.assert_array_equal(found, (x.astype(np.float64) + 3) * (0.25 if root else 0.5))


@pytest.mark.parametrize(
    ("name", "dtype"), [("torch.qint8", np.int8), ("torch.quint8", np.uint8), ("torch.qint32", np.int32)]
)
@pytest.mark.parametrize("has_zero", [False, True])
def test_quantize_by_torch_names(name: str, dtype: Any, has_zero: bool) -> None:
    x, scales = data(1, 2, 3, 5, low=-90, high=90), np.float32([0.5, 0.25, 2])
    zeros = np.int32([1, -2, 3]) if has_zero else None
    [found] = run_ge("Quantize", [x, scales, zeros], {"dtype": name, "axis": 1})
    shift = 0 if zeros is None else zeros[:, None]
    info = np.iinfo(dtype)
    expected = np.clip(np.rint(x.astype(np.float64) / scales[:, None]) + shift, info.min, info.max)
    np.testing.assert_array_equal(found, expected)
    assert found.dtype == dtype


@pytest.mark.parametrize(
    ("type", "inputs", "attrs", "message"),
    [
        ("AscendQuant", [data(1, 3)], {"scale": 1.0, "offset": 0.0, "dst_type": 3}, "dst_type must be int8"),
        ("AscendQuant", [data(1, 3)], {"scale": 1.0, "offset": 0.0, "round_mode": "Up"}, "round_mode must be one of"),
        ("AscendQuant", [data(1, 3)], {"scale": 1.0}, "attribute offset is missing"),
        ("AscendDequant", [np.int32([1]), np.float32([1])], {"dtype": 3}, "dtype must be float32"),
        ("Quantize", [data(1, 3), np.float32([1])], {"dtype": "int8"}, "dtype must be one of torch.qint8"),
        ("XQuantizeLinear", [data(1, 2, 3), data(2, 2)], {}, r"scales have shape \[2\], but \[3\] is needed"),
        ("XQuantizeLinear", [data(1, 2), np.float32(1), np.zeros((), np.int64)], {}, "DT_INT64 is no type to quantise"),
        (
            "XDequantizeLinear",
            [integers(1, 2, 4), data(2, 2, 3)],
            {"block_size": 2},
            r"scales have shape \[2,3\], but \[2,2\]",
        ),
        ("XMatMulInteger", [np.int32([[1]]), integers(1, 1, 1)], {}, "a is DT_INT32, but int8 or uint8 is needed"),
        (
            "XConvInteger",
            [integers(1, 1, 3, 4, 4), integers(2, 2, 2, 3, 3)],
            {"strides": [1], "pads": [0] * 4},
            r"x \[1,3,4,4\] and w \[2,2,3,3\] do not fit for 1 groups",
        ),
    ],
)
def test_quantisation_refuses(type: str, inputs: list[np.ndarray], attrs: dict[str, Any], message: str) -> None:
    with pytest.raises(ReportedError, match=message) as caught:
        inferred(type, inputs, attrs)
    assert caught.value.code == "E14001"
