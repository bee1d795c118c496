"""Resampling."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ge.errors import ReportedError
from ge.graph.types import DataType
from tests.ops.one_node import assert_close, data, inferred, run_ge, run_onnx

EXTRA = ("antialias", "axes", "keep_aspect_ratio_policy")
TRANSFORMATIONS = ["half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric"]
SIZES = [(7, 9, 10, 5), (4, 11, 13, 1), (6, 6, 5, 20), (8, 3, 3, 7)]
SCALES = [(0.6, 1.9), (0.91, 1.63), (1.27, 2.0), (1.53, 0.7)]


def ge_attrs(attrs: dict[str, Any]) -> dict[str, Any]:
    """Rename ONNX's attributes that GE's Resize lacks."""
    return {f"_x_{name}" if name in EXTRA else name: value for name, value in attrs.items()}


def check(x: np.ndarray, attrs: dict[str, Any], *, roi: Any = None, scales: Any = None, sizes: Any = None) -> None:
    """Compare Resize with onnxruntime's, which copies wherever sizes stay the same (so none does here).

    Corners aligned at a scale are compared with onnx's evaluator: onnxruntime rounds the length before.
    """
    inputs = [
        x,
        None if roi is None else np.array(roi, np.float32),
        None if scales is None else np.array(scales, np.float32),
        None if sizes is None else np.array(sizes, np.int64),
    ]
    is_apart = attrs.get("coordinate_transformation_mode") == "align_corners" and scales is not None
    [expected] = run_onnx("Resize", inputs, attrs, opset=19, reference=is_apart)
    assert_close(run_ge("Resize", inputs, ge_attrs(attrs))[0], expected, rtol=1e-4, atol=2e-5)


# half_pixel_symmetric puts centres on whole positions, where floor and ceil would show rounding noise
NEAREST = [
    (transformation, nearest_mode)
    for transformation in TRANSFORMATIONS
    for nearest_mode in ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
    if transformation != "half_pixel_symmetric" or nearest_mode.startswith("round")
]


@pytest.mark.parametrize(("transformation", "nearest_mode"), NEAREST)
def test_nearest(transformation: str, nearest_mode: str) -> None:
    attrs = {"mode": "nearest", "coordinate_transformation_mode": transformation, "nearest_mode": nearest_mode}
    for seed, ((h, w, out_h, out_w), scales) in enumerate(zip(SIZES, SCALES, strict=True)):
        check(data(seed, 1, 2, h, w), attrs, sizes=[1, 2, out_h, out_w])
        check(data(seed, 1, 2, h, w), attrs, scales=[1, 1, *scales])


@pytest.mark.parametrize("transformation", TRANSFORMATIONS)
@pytest.mark.parametrize("mode", [("linear", 0), ("cubic", 0), ("cubic", 1)])
@pytest.mark.parametrize("antialias", [0, 1])
def test_interpolation(transformation: str, mode: tuple[str, int], antialias: int) -> None:
    attrs = {
        "mode": mode[0],
        "exclude_outside": mode[1],
        "antialias": antialias,
        "coordinate_transformation_mode": transformation,
        "cubic_coeff_a": -0.6,
    }
    for seed, ((h, w, out_h, out_w), scales) in enumerate(zip(SIZES, SCALES, strict=True)):
        check(data(seed, 1, 2, h, w), attrs, sizes=[1, 2, out_h, out_w])
        check(data(seed, 1, 2, h, w), attrs, scales=[1, 1, *scales])


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_crop(mode: str) -> None:
    attrs = {"mode": mode, "coordinate_transformation_mode": "tf_crop_and_resize", "extrapolation_value": 7.0}
    roi = [0, 0, 0.2, -0.3, 1, 1, 0.7, 1.4]
    for seed, (h, w, out_h, out_w) in enumerate(SIZES):
        check(data(seed, 1, 2, h, w), attrs, roi=roi, sizes=[1, 2, out_h, out_w])


@pytest.mark.parametrize("policy", ["stretch", "not_larger", "not_smaller"])
@pytest.mark.parametrize("axes", [[2, 3], [3, 2], [-1, -2]])
def test_axes_and_aspect_ratio(policy: str, axes: list[int]) -> None:
    x, attrs = data(1, 2, 3, 6, 8), {"mode": "linear", "keep_aspect_ratio_policy": policy}
    inputs: list[tuple[Any, ...]] = [(None, None, np.array([9, 7]))]
    if policy == "stretch":
        inputs.append((None, np.float32([1.5, 0.7]), None))
    for rest in inputs:
        [expected] = run_onnx("Resize", [x, *rest], {**attrs, "axes": [axis % 4 for axis in axes]}, opset=19)
        assert_close(run_ge("Resize", [x, *rest], ge_attrs({**attrs, "axes": axes}))[0], expected, atol=2e-5)


@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_three_spatial_axes(mode: str) -> None:
    check(data(1, 1, 2, 4, 5, 6), {"mode": mode}, sizes=[1, 2, 6, 3, 9])


@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_bytes_truncate(mode: str) -> None:
    x = data(1, 1, 1, 6, 5, dtype=np.uint8, low=0, high=255)
    [expected] = run_onnx("Resize", [x, None, np.float32([1, 1, 2.5, 1.5])], {"mode": mode}, opset=19)
    [found] = run_ge("Resize", [x, None, np.float32([1, 1, 2.5, 1.5])], {"mode": mode})
    # rounding noise may cross a whole number: neighbours count as equal
    assert np.abs(found.astype(int) - expected.astype(int)).max() <= 1
    assert np.mean(found == expected) > 0.9


@pytest.mark.parametrize(("mode", "expected"), [("round_prefer_floor", 3), ("round_prefer_ceil", 4)])
@pytest.mark.parametrize("sizes", [(7, 2), (70, 20), (35, 10)])
def test_halves_are_halves_in_spite_of_rounding(mode: str, expected: int, sizes: tuple[int, int]) -> None:
    """Position 1 of 2 over 7 elements is 3.5, which 1 / float32(2 / 7) misses by a hair."""
    x = np.arange(sizes[0], dtype=np.float32).reshape(1, 1, 1, -1)
    attrs = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": mode}
    [found] = run_ge("Resize", [x, None, None, np.array([1, 1, 1, sizes[1]])], attrs)
    assert found.ravel()[1] == expected


def test_empty_scales_count_as_absent() -> None:
    x = data(1, 1, 1, 4, 4)
    [with_empty] = run_ge("Resize", [x, np.float32([]), np.float32([]), np.array([1, 1, 8, 8])])
    [without] = run_ge("Resize", [x, None, None, np.array([1, 1, 8, 8])])
    np.testing.assert_array_equal(with_empty, without)


def test_half_pixel_for_nearest_neighbours() -> None:
    """Opset 11's tf_half_pixel_for_nn: the centre of the output element, not moved back by half."""
    x = np.arange(5, dtype=np.float32).reshape(1, 1, 1, 5)
    attrs = {"coordinate_transformation_mode": "tf_half_pixel_for_nn", "nearest_mode": "floor"}
    inputs = [x, np.float32([]), np.float32([1, 1, 1, 1.8])]
    expected = [float(int((i + 0.5) / 1.8)) for i in range(9)]
    assert run_ge("Resize", inputs, attrs)[0].ravel().tolist() == expected


# -- TensorFlow's --------------------------------------------------------------------------------------------------
def tf_positions(size: int, out: int, aligned: bool, centred: bool, nearest: bool) -> np.ndarray:
    """Return TensorFlow's sampling positions."""
    i = np.arange(out, dtype=np.float64)
    if aligned:
        return i * ((size - 1) / (out - 1) if out > 1 else 0)
    if centred:
        return (i + 0.5) * size / out - (0 if nearest else 0.5)
    return i * size / out


@pytest.mark.parametrize(("aligned", "centred"), [(False, False), (True, False), (False, True)])
@pytest.mark.parametrize("size", [(8, 3), (2, 12), (5, 1)])
def test_tensorflow_resize(aligned: bool, centred: bool, size: tuple[int, int]) -> None:
    x = data(1, 2, 5, 6, 3)
    attrs = {"align_corners": aligned, "half_pixel_centers": centred, "_x_data_format": "NHWC"}
    positions = [tf_positions(x.shape[1 + k], size[k], aligned, centred, True) for k in range(2)]
    rows, columns = (
        np.clip(np.floor(p + (0.5 if aligned else 1e-9)).astype(int), 0, x.shape[1 + k] - 1)
        for k, p in enumerate(positions)
    )
    [found] = run_ge("ResizeNearestNeighborV2", [x, np.int32(size)], attrs)
    np.testing.assert_array_equal(found, x[:, rows[:, None], columns[None]])

    expected = x.astype(np.float64)
    for k in range(2):
        p = np.clip(tf_positions(x.shape[1 + k], size[k], aligned, centred, False), 0, x.shape[1 + k] - 1)
        low = np.floor(p).astype(int)
        weights = np.zeros((size[k], x.shape[1 + k]))
        np.add.at(weights, (np.arange(size[k]), low), 1 - (p - low))
        np.add.at(weights, (np.arange(size[k]), np.minimum(low + 1, x.shape[1 + k] - 1)), p - low)
        expected = np.moveaxis(np.tensordot(weights, expected, (1, 1 + k)), 0, 1 + k)
    assert_close(run_ge("ResizeBilinearV2", [x, np.int32(size)], attrs)[0], expected)


def test_given_scales_replace_the_ratio_of_sizes() -> None:
    x = data(1, 1, 1, 4, 4)
    attrs = {"half_pixel_centers": True, "scales": [2.3, 1.7]}
    [found] = run_ge("ResizeBilinearV2", [x, np.int32([9, 6])], attrs)
    onnx_attrs = {"mode": "linear", "coordinate_transformation_mode": "half_pixel"}
    assert_close(found, run_onnx("Resize", [x, None, np.float32([1, 1, 2.3, 1.7])], onnx_attrs, opset=19)[0])


@pytest.mark.parametrize(
    ("dtype", "attrs", "expected"),
    [
        (np.float16, {}, np.float16),
        (np.float16, {"dtype": DataType.DT_FLOAT}, np.float32),
        (np.uint8, {}, np.float32),
        (np.float32, {}, np.float32),
    ],
)
def test_type_of_bilinear(dtype: Any, attrs: dict[str, Any], expected: Any) -> None:
    x = data(1, 1, 2, 3, 4, dtype=dtype, low=0, high=9)
    assert run_ge("ResizeBilinearV2", [x, np.int32([5, 5])], attrs)[0].dtype == expected


@pytest.mark.parametrize(
    ("inputs", "attrs", "message"),
    [
        ([None, None, None], {}, "exactly one of scales and sizes must be given"),
        ([None, np.float32([1, 1, 2, 2]), np.array([1, 1, 8, 8])], {}, "exactly one of scales and sizes"),
        ([None, np.float32([2, 2]), None], {}, "scales has 2 elements for 4 axes"),
        ([None, np.float32([1, 1, 2, 0]), None], {}, "must be positive"),
        ([None, np.float32([1, 1, 2, 2]), None], {"mode": "area"}, "mode must be one of nearest, linear, cubic, not"),
        ([None, np.float32([1, 1, 2, 2]), None], {"nearest_mode": "up"}, "nearest_mode must be one of"),
        ([None, np.float32([2, 2]), None], {"_x_axes": [2, 4]}, "axis 4 is out of range for rank 4"),
        (
            [np.float32([0, 1]), np.float32([1, 1, 2, 2]), None],
            {"coordinate_transformation_mode": "tf_crop_and_resize"},
            "roi has 2 elements",
        ),
        ([None, None, np.array([8, 8])], {"_x_axes": [2, 3], "_x_keep_aspect_ratio_policy": "x"}, "x is unknown"),
    ],
)
def test_resize_refuses(inputs: list[Any], attrs: dict[str, Any], message: str) -> None:
    with pytest.raises(ReportedError, match=message) as caught:
        inferred("Resize", [data(1, 1, 1, 4, 4), *inputs], attrs)
    assert caught.value.code == "E14001"


@pytest.mark.parametrize("type", ["ResizeNearestNeighborV2", "ResizeBilinearV2"])
def test_tensorflow_resize_refuses(type: str) -> None:
    x = data(1, 1, 1, 4, 4)
    with pytest.raises(ReportedError, match=r"size must be height and width, not \[8\]"):
        inferred(type, [x, np.int32([8])], {})
    with pytest.raises(ReportedError, match="exclude each other"):
        inferred(type, [x, np.int32([8, 8])], {"align_corners": True, "half_pixel_centers": True})
