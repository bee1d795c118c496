"""Pooling: maximum, average, global, adaptive, with indices, and unpooling."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ge.errors import ReportedError
from tests.ops.one_node import assert_close, data, inferred, run_ge, run_onnx

ROWS = [
    ((2, 3, 8, 9), {"kernel_shape": [3, 2]}),
    ((2, 3, 8, 9), {"kernel_shape": [3, 2], "strides": [2, 3], "pads": [1, 0, 2, 1]}),
    ((1, 2, 9, 10), {"kernel_shape": [3, 2], "strides": [2, 3], "pads": [1, 0, 1, 1], "ceil_mode": 1}),
    ((1, 2, 9, 10), {"kernel_shape": [2, 3], "strides": [3, 2], "dilations": [2, 3], "ceil_mode": 1}),
    ((1, 2, 5, 5), {"kernel_shape": [2, 2], "strides": [3, 4], "pads": [0, 1, 0, 1], "ceil_mode": 1}),
    ((1, 2, 9, 10), {"kernel_shape": [3, 4], "strides": [2, 3], "auto_pad": "SAME_UPPER"}),
    ((1, 2, 9, 10), {"kernel_shape": [3, 4], "strides": [2, 3], "auto_pad": "SAME_LOWER"}),
    ((1, 2, 9, 10), {"kernel_shape": [3, 4], "strides": [2, 3], "auto_pad": "VALID"}),
]
ROWS_3D = [
    ((1, 2, 5, 6, 7), {"kernel_shape": [2, 3, 2], "strides": [2, 1, 3], "pads": [0, 1, 1, 1, 0, 1]}),
    ((2, 1, 5, 6, 7), {"kernel_shape": [2, 2, 3], "strides": [2, 3, 2], "ceil_mode": 1}),
    ((2, 1, 5, 6, 7), {"kernel_shape": [2, 3, 3], "strides": [2, 3, 2], "auto_pad": "SAME_UPPER"}),
]
_MODES = {"NOTSET": "CALCULATED", "VALID": "VALID", "SAME_UPPER": "SAME", "SAME_LOWER": "SAME"}


def in_pairs(pads: list[int]) -> list[int]:
    """Turn all begins, all ends into begin and end per axis."""
    n = len(pads) // 2
    return [value for i in range(n) for value in (pads[i], pads[i + n])]


def ge_pool(attrs: dict[str, Any], mode_name: str = "padding_mode") -> dict[str, Any]:
    """Turn ONNX pooling attributes into GE's."""
    n = len(attrs["kernel_shape"])
    found = {
        "ksize": [1, 1, *attrs["kernel_shape"]],
        "strides": [1, 1, *attrs.get("strides", [1] * n)],
        "pads": in_pairs(attrs.get("pads", [0] * 2 * n)),
        "ceil_mode": bool(attrs.get("ceil_mode", 0)),
        "data_format": "NCHW" if n == 2 else "NCDHW",
        mode_name: _MODES[attrs.get("auto_pad", "NOTSET")],
    }
    if "dilations" in attrs:
        found["_x_dilations"] = attrs["dilations"]
    if attrs.get("auto_pad") == "SAME_LOWER":
        found["_x_auto_pad"] = "SAME_LOWER"
    return found


def channels_last(attrs: dict[str, Any]) -> dict[str, Any]:
    """Reorder the full-rank lists of GE attributes for NHWC."""
    return {
        **attrs,
        "ksize": [1, *attrs["ksize"][2:], 1],
        "strides": [1, *attrs["strides"][2:], 1],
        "data_format": "NHWC" if len(attrs["ksize"]) == 4 else "NDHWC",
    }


@pytest.mark.parametrize(("shape", "attrs"), ROWS)
@pytest.mark.parametrize("dtype", [np.float32, np.int8])
def test_max_pool(shape: tuple[int, ...], attrs: dict[str, Any], dtype: Any) -> None:
    x = data(1, *shape, dtype=dtype, low=-90, high=-1)
    [expected] = run_onnx("MaxPool", [x], attrs)
    np.testing.assert_array_equal(run_ge("MaxPoolV3", [x], ge_pool(attrs))[0], expected)
    last = np.moveaxis(x, 1, -1)
    [found] = run_ge("MaxPoolV3", [last], channels_last(ge_pool(attrs)))
    np.testing.assert_array_equal(found, np.moveaxis(expected, 1, -1))


@pytest.mark.parametrize(("shape", "attrs"), ROWS)
@pytest.mark.parametrize("counts_padding", [False, True])
def test_average_pool(shape: tuple[int, ...], attrs: dict[str, Any], counts_padding: bool) -> None:
    x = data(1, *shape)
    [expected] = run_onnx("AveragePool", [x], {**attrs, "count_include_pad": int(counts_padding)})
    whole = {**ge_pool(attrs), "exclusive": not counts_padding}
    assert_close(run_ge("AvgPoolV2", [x], whole)[0], expected)
    [found] = run_ge("AvgPoolV2", [np.moveaxis(x, 1, -1)], channels_last(whole))
    assert_close(found, np.moveaxis(expected, 1, -1))


@pytest.mark.parametrize(("shape", "attrs"), ROWS_3D)
@pytest.mark.parametrize("is_short", [False, True])
def test_pooling_over_three_axes(shape: tuple[int, ...], attrs: dict[str, Any], is_short: bool) -> None:
    x = data(1, *shape)
    whole = ge_pool(attrs, "padding")
    if is_short:  # one value per spatial axis
        whole["ksize"], whole["strides"] = whole["ksize"][2:], whole["strides"][2:]
    assert_close(run_ge("MaxPool3D", [x], whole)[0], run_onnx("MaxPool", [x], attrs)[0])
    for counts_padding in (False, True):
        [expected] = run_onnx("AveragePool", [x], {**attrs, "count_include_pad": int(counts_padding)})
        assert_close(run_ge("AvgPool3D", [x], {**whole, "count_include_pad": counts_padding})[0], expected)


def test_max_pool_3d_has_its_own_dilation() -> None:
    x, attrs = data(1, 1, 2, 7, 6, 7), {"kernel_shape": [2, 3, 2], "dilations": [2, 1, 3]}
    whole = ge_pool({"kernel_shape": [2, 3, 2]}, "padding") | {"dilation": [1, 1, 2, 1, 3]}
    assert_close(run_ge("MaxPool3D", [x], whole)[0], run_onnx("MaxPool", [x], attrs)[0])


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize(("type", "onnx_type"), [("MaxPool", "MaxPool"), ("AvgPool", "AveragePool")])
def test_tensorflow_pooling(type: str, onnx_type: str, padding: str) -> None:
    x = data(1, 2, 7, 8, 3)
    attrs = {"ksize": [1, 3, 2, 1], "strides": [1, 2, 3, 1], "padding": padding, "data_format": "NHWC"}
    onnx_attrs = {"kernel_shape": [3, 2], "strides": [2, 3], "auto_pad": padding.replace("SAME", "SAME_UPPER")}
    [expected] = run_onnx(onnx_type, [np.moveaxis(x, -1, 1)], onnx_attrs)
    assert_close(run_ge(type, [x], attrs)[0], np.moveaxis(expected, 1, -1))


@pytest.mark.parametrize("p", [1, 2, 3])
def test_a_divisor_of_one_makes_the_sums_of_lp_pool(p: int) -> None:
    x, attrs = data(1, 1, 2, 6, 7), {"kernel_shape": [3, 2], "strides": [2, 1], "pads": [1, 0, 1, 1]}
    [expected] = run_onnx("LpPool", [x], {**attrs, "p": p})
    [sums] = run_ge("AvgPoolV2", [np.abs(x) ** p], {**ge_pool(attrs), "divisor_override": 1})
    assert_close(sums ** (1 / p), expected)


def test_global_pooling_by_attribute() -> None:
    x, attrs = data(1, 2, 3, 4, 5), {**ge_pool({"kernel_shape": [1, 1]}), "global_pooling": True}
    np.testing.assert_array_equal(run_ge("MaxPoolV3", [x], attrs)[0], x.max(axis=(2, 3), keepdims=True))
    assert_close(run_ge("AvgPoolV2", [x], attrs)[0], x.mean(axis=(2, 3), keepdims=True, dtype=np.float64))


@pytest.mark.parametrize("shape", [(2, 3, 4, 5), (2, 3, 7), (1, 2, 3, 4, 5)])
def test_global_pools(shape: tuple[int, ...]) -> None:
    x = data(1, *shape)
    [expected] = run_onnx("GlobalAveragePool", [x])
    assert_close(run_ge("GlobalAveragePool", [x])[0], expected)
    [last] = run_ge("GlobalAveragePool", [np.moveaxis(x, 1, -1)], {"_x_data_format": "NHWC"})
    assert_close(last, np.moveaxis(expected, 1, -1))
    for p in (1, 2, 3):
        assert_close(run_ge("GlobalLpPool", [x], {"p": float(p)})[0], run_onnx("GlobalLpPool", [x], {"p": p})[0])


@pytest.mark.parametrize(("shape", "size"), [((2, 3, 7, 8), [3, 5]), ((3, 5, 4), [5, 2]), ((1, 2, 6, 4), [9, 4])])
def test_adaptive_average(shape: tuple[int, ...], size: list[int]) -> None:
    """Bins run from floor(i * size / count) to ceil((i + 1) * size / count)."""
    x = data(1, *shape, dtype=np.float64)
    expected = np.empty((*shape[:-2], *size))
    for row, column in np.ndindex(*size):
        high, wide = shape[-2:]
        top, bottom = row * high // size[0], -(-(row + 1) * high // size[0])
        left, right = column * wide // size[1], -(-(column + 1) * wide // size[1])
        expected[..., row, column] = x[..., top:bottom, left:right].mean(axis=(-1, -2))
    assert_close(run_ge("AdaptiveAvgPool2d", [x], {"output_size": size})[0], expected)


# -- with indices --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("storage_order", [0, 1])
@pytest.mark.parametrize(("shape", "kernel"), [((2, 3, 9), [3]), ((2, 3, 9, 8), [3, 2]), ((1, 2, 5, 6, 7), [2, 3, 2])])
def test_max_pool_with_indices(shape: tuple[int, ...], kernel: list[int], storage_order: int) -> None:
    n = len(kernel)
    x = np.round(data(1, *shape) * 2)  # many ties: the first maximum counts
    attrs = {"ksize": kernel, "strides": [2], "pads": [1] * 2 * n, "dilations": [2] + [1] * (n - 1), "ceil_mode": True}
    onnx_attrs = {"kernel_shape": kernel, "strides": [2] * n, "pads": [1] * 2 * n, "dilations": attrs["dilations"]}
    expected = run_onnx("MaxPool", [x], {**onnx_attrs, "ceil_mode": 1, "storage_order": storage_order}, 2)
    found = run_ge("XMaxPoolWithIndices", [x], {**attrs, "storage_order": storage_order}, 2)
    np.testing.assert_array_equal(found[0], expected[0])
    np.testing.assert_array_equal(found[1], expected[1])


def test_max_pool_with_indices_never_points_into_the_padding() -> None:
    x = np.full((1, 1, 3, 3), -np.inf, np.float32)
    _, indices = run_ge("XMaxPoolWithIndices", [x], {"ksize": [2, 2], "strides": [2], "pads": [1, 1, 1, 1]}, 2)
    assert indices.ravel().tolist() == [0, 1, 3, 4]


@pytest.mark.parametrize("output_shape", [None, [1, 2, 8, 9]])
def test_max_unpool(output_shape: list[int] | None) -> None:
    x = data(1, 1, 2, 6, 6)
    pooled, indices = run_onnx("MaxPool", [x], {"kernel_shape": [2, 2], "strides": [2, 2]}, 2)
    inputs = [pooled, indices, None if output_shape is None else np.array(output_shape)]
    [expected] = run_onnx("MaxUnpool", inputs, {"kernel_shape": [2, 2], "strides": [2, 2]})
    np.testing.assert_array_equal(run_ge("XMaxUnpool", inputs, {"ksize": [2, 2], "strides": [2]})[0], expected)


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize("counts_batch", [False, True])
def test_max_pool_with_argmax(padding: str, counts_batch: bool) -> None:
    x = data(1, 2, 7, 8, 3)
    attrs = {"ksize": [1, 3, 2, 1], "strides": [1, 2, 3, 1], "padding": padding, "include_batch_in_index": counts_batch}
    y, argmax = run_ge("MaxPoolWithArgmax", [x], attrs, 2)
    onnx_attrs = {"kernel_shape": [3, 2], "strides": [2, 3], "auto_pad": padding.replace("SAME", "SAME_UPPER")}
    [expected] = run_onnx("MaxPool", [np.moveaxis(x, -1, 1)], onnx_attrs)
    np.testing.assert_array_equal(y, np.moveaxis(expected, 1, -1))
    flat = x.reshape(1, -1) if counts_batch else x.reshape(2, -1)
    picked = np.take_along_axis(flat, argmax.reshape(len(flat), -1), 1)
    np.testing.assert_array_equal(picked.reshape(y.shape), y)


@pytest.mark.parametrize(("wins", "expected", "place"), [(False, 5.0, 3), (True, np.nan, 1)])
def test_argmax_of_nan(wins: bool, expected: float, place: int) -> None:
    x = np.array([1, np.nan, 2, 5], np.float32).reshape(1, 2, 2, 1)
    attrs = {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": "VALID", "nan_prop": wins, "Targmax": 3}
    y, argmax = run_ge("MaxPoolWithArgmax", [x], attrs, 2)
    np.testing.assert_array_equal(y.ravel(), [expected])
    assert argmax.ravel().tolist() == [place]
    assert argmax.dtype == np.int32


@pytest.mark.parametrize(
    ("type", "attrs", "message"),
    [
        ("MaxPoolV3", {"ksize": [1, 1, 9, 1]}, "a kernel of 9 with dilation 1 does not fit into 4 elements"),
        ("MaxPoolV3", {"strides": [1, 1, -1, 1]}, "stride -1"),
        ("AvgPoolV2", {"pads": [1, 2, 3]}, r"pads \[1, 2, 3\] must have two values for each of 2 spatial axes"),
        ("AvgPoolV2", {"data_format": "NC"}, "data_format must be an order of N, C, H, W, not NC"),
        ("AvgPoolV2", {"padding_mode": "ODD"}, "padding ODD is unknown"),
        ("AdaptiveAvgPool2d", {"output_size": [0, 2]}, "output_size must be one or two positive sizes"),
        ("XMaxPoolWithIndices", {"ksize": [2, 2, 2]}, r"ksize \[2, 2, 2\], strides .* need 2 entries each"),
        ("MaxPoolWithArgmax", {"Targmax": 0, "padding": "SAME"}, "Targmax must be int32"),
    ],
)
def test_pooling_refuses(type: str, attrs: dict[str, Any], message: str) -> None:
    whole = {**ge_pool({"kernel_shape": [2, 2]}), **attrs}
    with pytest.raises(ReportedError, match=message) as caught:
        inferred(type, [data(1, 1, 3, 4, 5)], whole, 2)
    assert caught.value.code == "E14001"


def test_pooling_refuses_other_ranks() -> None:
    with pytest.raises(ReportedError, match=r"x has shape \[3,4,5\], but data_format NCHW needs rank 4"):
        inferred("MaxPoolV3", [data(1, 3, 4, 5)], ge_pool({"kernel_shape": [2, 2]}))
