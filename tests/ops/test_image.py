"""Image operators: blocks, sampling grids, regions of interest, suppression, folding."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ge.errors import ReportedError
from ge.ops.registry import Misfit
from tests.ops.one_node import assert_close, data, inferred, run_ge, run_onnx


def to_last(x: np.ndarray) -> np.ndarray:
    """Move the channels behind."""
    return np.moveaxis(x, 1, -1)


# -- blocks --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("mode", ["DCR", "CRD"])
@pytest.mark.parametrize("dtype", [np.float32, np.int64])
def test_depth_to_space(mode: str, dtype: Any) -> None:
    x = data(1, 2, 12, 3, 4, low=-99, high=99).astype(dtype)
    [expected] = run_onnx("DepthToSpace", [x.astype(np.float32)], {"blocksize": 2, "mode": mode})
    attrs = {"block_size": 2, "mode": mode}
    np.testing.assert_array_equal(run_ge("DepthToSpace", [x], {**attrs, "data_format": "NCHW"})[0], expected)
    np.testing.assert_array_equal(run_ge("DepthToSpace", [to_last(x)], attrs)[0], to_last(expected))


def test_space_to_depth() -> None:
    x = data(1, 2, 3, 4, 6)
    [expected] = run_onnx("SpaceToDepth", [x], {"blocksize": 2})
    np.testing.assert_array_equal(run_ge("SpaceToDepth", [x], {"block_size": 2, "data_format": "NCHW"})[0], expected)
    np.testing.assert_array_equal(run_ge("SpaceToDepth", [to_last(x)], {"block_size": 2})[0], to_last(expected))


# -- sampling ------------------------------------------------------------------------------------------------------
# onnxruntime has no cubic sampling in three dimensions
@pytest.mark.parametrize(
    ("n_axes", "mode"), [(2, "nearest"), (2, "linear"), (2, "cubic"), (3, "nearest"), (3, "linear")]
)
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("aligned", [False, True])
def test_grid_sampler(n_axes: int, mode: str, padding: str, aligned: bool) -> None:
    x = data(1, 2, 3, *(5, 6, 4)[:n_axes])
    grid = data(2, 2, *(4, 3, 5)[:n_axes], n_axes, low=-1.6, high=1.6)
    onnx_attrs = {"mode": mode, "padding_mode": padding, "align_corners": int(aligned)}
    [expected] = run_onnx("GridSample", [x, grid], onnx_attrs, opset=20)
    attrs = {"interpolation_mode": mode, "padding_mode": padding, "align_corners": aligned}
    assert_close(run_ge(f"GridSampler{n_axes}D", [x, grid], attrs)[0], expected, rtol=1e-4, atol=2e-5)


@pytest.mark.parametrize("size", [[2, 3, 4, 5], [2, 3, 4, 5, 3]])
@pytest.mark.parametrize("aligned", [False, True])
def test_affine_grid(size: list[int], aligned: bool) -> None:
    n = len(size) - 2
    inputs = [data(1, 2, n, n + 1), np.array(size)]
    [expected] = run_onnx("AffineGrid", inputs, {"align_corners": int(aligned)}, opset=20)
    assert_close(run_ge("AffineGrid", inputs, {"align_corners": aligned})[0], expected)


# -- regions of interest -------------------------------------------------------------------------------------------
def regions(count: int, extent: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return boxes x1, y1, x2, y2, their samples, and both as rows."""
    rng = np.random.default_rng(3)
    boxes = np.sort(rng.uniform(0, extent, (count, 2, 2)), axis=1).reshape(count, 4).astype(np.float32)
    samples = rng.integers(0, 2, count)
    return boxes, samples, np.concatenate([samples[:, None], boxes], 1).astype(np.float32)


@pytest.mark.parametrize("mode", ["avg", "max"])
@pytest.mark.parametrize("ratio", [0, 2, 3])
@pytest.mark.parametrize(("transformation", "end_mode"), [("half_pixel", 2), ("output_half_pixel", 0)])
def test_roi_align(mode: str, ratio: int, transformation: str, end_mode: int) -> None:
    x = data(1, 2, 3, 10, 12)
    boxes, samples, rois = regions(6, 24)
    onnx_attrs = {"output_height": 3, "output_width": 4, "sampling_ratio": ratio, "spatial_scale": 0.5, "mode": mode}
    [expected] = run_onnx(
        "RoiAlign", [x, boxes, samples], {**onnx_attrs, "coordinate_transformation_mode": transformation}
    )
    attrs = {"pooled_height": 3, "pooled_width": 4, "sample_num": ratio, "spatial_scale": 0.5, "pool_mode": mode}
    assert_close(run_ge("ROIAlign", [x, rois], {**attrs, "roi_end_mode": end_mode})[0], expected, rtol=1e-4)


def test_roi_align_with_one_added_to_the_end() -> None:
    """End mode 1 equals mode 0 on regions whose end lies one further, as long as they are not narrow."""
    x = data(1, 2, 3, 10, 12)
    rois = np.float32([[0, 1, 2, 6, 7], [1, 0, 3, 9, 5]])
    longer = rois + np.float32([0, 0, 0, 1, 1])
    attrs = {"pooled_height": 2, "pooled_width": 3, "spatial_scale": 1.0}
    [found] = run_ge("ROIAlign", [x, rois], {**attrs, "roi_end_mode": 1})
    assert_close(found, run_ge("ROIAlign", [x, longer], {**attrs, "roi_end_mode": 0})[0])


def test_roi_pooling() -> None:
    x = data(1, 2, 3, 10, 12)
    _, _, rois = regions(8, 24)
    [expected] = run_onnx("MaxRoiPool", [x, rois], {"pooled_shape": [3, 4], "spatial_scale": 0.5})
    attrs = {"pooled_h": 3, "pooled_w": 4, "spatial_scale_h": 0.5, "spatial_scale_w": 0.5}
    np.testing.assert_array_equal(run_ge("ROIPooling", [x, rois], attrs)[0], expected)


@pytest.mark.parametrize("method", ["bilinear", "nearest"])
@pytest.mark.parametrize("size", [(4, 5), (1, 3)])
def test_crop_and_resize(method: str, size: tuple[int, int]) -> None:
    x = data(1, 2, 3, 6, 7)
    boxes = np.float32([[0.1, 0.2, 0.8, 0.9], [-0.3, 0, 1.4, 1], [0.9, 0.7, 0.2, 0.1]])
    index = np.int32([1, 0, 1])
    attrs = {"method": method, "extrapolation_value": 7.0}
    [found] = run_ge("CropAndResize", [x, boxes, index, np.int32(size)], attrs)
    [last] = run_ge("CropAndResize", [to_last(x), boxes, index, np.int32(size)], {**attrs, "_x_data_format": "NHWC"})
    np.testing.assert_array_equal(last, to_last(found))
    onnx_attrs = {
        "mode": method.replace("bilinear", "linear"),
        "coordinate_transformation_mode": "tf_crop_and_resize",
        "extrapolation_value": 7.0,
        "nearest_mode": "round_prefer_ceil",
    }
    for i, (y1, x1, y2, x2) in enumerate(boxes):
        roi = np.float32([0, 0, y1, x1, 1, 1, y2, x2])
        image = x[index[i] : index[i] + 1]
        [expected] = run_onnx("Resize", [image, roi, None, np.array([1, 3, *size])], onnx_attrs, opset=19)
        assert_close(found[i : i + 1], expected, rtol=1e-4)


def test_regions_of_samples_that_do_not_exist() -> None:
    attrs = {"pooled_height": 2, "pooled_width": 2, "spatial_scale": 1.0}
    with pytest.raises(Misfit, match="batch indices reach from 2 to 2, but there are 2 samples"):
        run_ge("ROIAlign", [data(1, 2, 3, 4, 4), np.float32([[2, 0, 0, 1, 1]])], attrs)


# -- suppression ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("centred", [0, 1])
@pytest.mark.parametrize(("limit", "iou", "lowest"), [(5, 0.3, 0.2), (50, 0.5, None), (50, 0.0, 0.6), (0, 0.5, 0.5)])
def test_suppression_by_class(centred: int, limit: int, iou: float, lowest: float | None) -> None:
    rng = np.random.default_rng(1)
    boxes, scores = rng.uniform(0, 4, (2, 40, 4)).astype(np.float32), rng.uniform(0, 1, (2, 3, 40)).astype(np.float32)
    threshold = None if lowest is None else np.float32([lowest])
    inputs = [boxes, scores, np.array([limit]), np.float32([iou]), threshold]
    [expected] = run_onnx("NonMaxSuppression", inputs, {"center_point_box": centred})
    [found] = run_ge("NonMaxSuppressionV6", inputs, {"center_point_box": centred})
    np.testing.assert_array_equal(found, expected)


def test_suppression_without_limit_selects_nothing() -> None:
    assert run_ge("NonMaxSuppressionV6", [data(1, 1, 4, 4), data(2, 1, 1, 4)])[0].shape == (0, 3)


def test_suppression_of_one_class() -> None:
    rng = np.random.default_rng(2)
    boxes, scores = rng.uniform(0, 4, (30, 4)).astype(np.float32), rng.uniform(0, 1, 30).astype(np.float32)
    limits = [np.array(6), np.float32(0.4), np.float32(0.1)]
    [expected] = run_onnx("NonMaxSuppression", [boxes[None], scores[None, None], *(np.atleast_1d(v) for v in limits)])
    [found] = run_ge("NonMaxSuppressionV3", [boxes, scores, *limits])
    np.testing.assert_array_equal(found, expected[:, 2])


@pytest.mark.parametrize(("offset", "kept"), [(0, [0, 1]), (1, [0])])
def test_suppression_offset_counts_both_borders(offset: int, kept: list[int]) -> None:
    """Overlap 1 * 3 of 3 * 3 twice: 3 / 15; with both borders 2 * 4 of 4 * 4 twice: 8 / 24."""
    boxes = np.float32([[0, 0, 3, 3], [2, 0, 5, 3]])
    inputs = [boxes, np.float32([0.9, 0.8]), np.int32(2), np.float32(0.3), np.float32(0)]
    assert run_ge("NonMaxSuppressionV3", inputs, {"offset": offset})[0].tolist() == kept


# -- folding -------------------------------------------------------------------------------------------------------
def test_col2im() -> None:
    x = data(2, 2, 3 * 6, 5 * 6)
    inputs = [x, np.array([8, 9]), np.array([3, 2])]
    [expected] = run_onnx("Col2Im", inputs, {"dilations": [2, 1], "strides": [1, 2], "pads": [0, 1, 1, 2]})
    attrs = {"dilation": [2, 1], "stride": [1, 2], "padding": [0, 1, 1, 2]}
    assert_close(run_ge("Col2ImV2", inputs, attrs)[0], expected)


def test_col2im_with_one_padding_per_axis() -> None:
    inputs = [data(2, 1, 2 * 4, 6 * 5), np.array([5, 4]), np.array([2, 2])]
    [expected] = run_onnx("Col2Im", inputs, {"pads": [1, 1, 1, 1]})
    assert_close(run_ge("Col2ImV2", inputs, {"dilation": [1], "stride": [1], "padding": [1, 1]})[0], expected)


@pytest.mark.parametrize(
    ("type", "inputs", "attrs", "message"),
    [
        (
            "DepthToSpace",
            [data(1, 1, 2, 3, 6)],
            {"block_size": 2},
            "6 channels are no multiple of block_size 2",
        ),
        ("DepthToSpace", [data(1, 1, 2, 3, 4)], {"block_size": 2, "mode": "RCD"}, "mode must be DCR or CRD, not RCD"),
        ("SpaceToDepth", [data(1, 1, 2, 3, 4)], {"block_size": 2}, "height 2 and width 3 must be multiples"),
        ("SpaceToDepth", [data(1, 1, 2, 3, 4)], {"block_size": 0}, "block_size 0 must be positive"),
        ("GridSampler2D", [data(1, 1, 2, 3, 4), data(2, 1, 3, 3, 3)], {}, "the grid 2 coordinates per point"),
        ("GridSampler2D", [data(1, 1, 2, 3, 4), data(2, 2, 3, 3, 2)], {}, "differ in the batch"),
        ("GridSampler2D", [data(1, 1, 2, 3, 4), data(2, 1, 3, 3, 2)], {"padding_mode": "wrap"}, "padding_mode wrap"),
        ("AffineGrid", [data(1, 2, 2, 2), np.array([2, 1, 3, 3])], {}, r"theta has shape \[2,2,2\], but \[2,2,3\]"),
        (
            "ROIAlign",
            [data(1, 1, 2, 3, 4), data(2, 3, 4)],
            {"spatial_scale": 1.0, "pooled_height": 2, "pooled_width": 2},
            r"rois have shape \[3,4\]",
        ),
        ("NonMaxSuppressionV6", [data(1, 1, 5, 4), data(2, 1, 2, 6)], {}, r"boxes \[1,5,4\] and scores \[1,2,6\]"),
        (
            "Col2ImV2",
            [data(1, 1, 8, 29), np.array([5, 4]), np.array([2, 2])],
            {"dilation": [1], "stride": [1], "padding": [1]},
            "its columns 30",
        ),
    ],
)
def test_image_operators_refuse(type: str, inputs: list[np.ndarray], attrs: dict[str, Any], message: str) -> None:
    with pytest.raises(ReportedError, match=message) as caught:
        inferred(type, inputs, attrs)
    assert caught.value.code == "E14001"
