"""Regions of interest: ROIAlign, ROIPooling, CropAndResize.

``rois`` are rows [batch index, x1, y1, x2, y2] in image coordinates. CropAndResize reads ``_x_data_format`` (default
NCHW) for x and its result.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ge.graph.tensor_desc import Shape
from ge.graph.types import FLOATING, DataType
from ge.ops.layout import channels_first, check_format, from_channels_first, shape_channels_first, shape_in_format
from ge.ops.registry import Array, InferContext, Misfit, OutputSpec, operator


def _batch_index(rois: Array, batch: int) -> Array:
    """Return the sample of each region. Raises ``Misfit`` when one does not exist."""
    index = rois.astype(np.int64)
    if index.size and not (index.min() >= 0 and index.max() < batch):
        raise Misfit(f"batch indices reach from {index.min()} to {index.max()}, but there are {batch} samples")
    return index


def _infer_regions(ctx: InferContext, name: str, height: int, width: int) -> Sequence[OutputSpec]:
    x, rois = ctx.shape(name), ctx.shape("rois")
    if min(height, width) < 1:
        raise ctx.fail(f"the pooled size {height} x {width} must be positive")
    if not x.is_unknown_rank() and len(x) != 4:
        raise ctx.fail(f"{name} has shape {x}, but needs rank 4", value=name)
    if not rois.is_unknown_rank() and (len(rois) != 2 or rois[1] not in (5, -1)):
        raise ctx.fail(f"rois have shape {rois}, but rows of five values are needed", value="rois")
    count = -1 if rois.is_unknown_rank() else rois[0]
    return [([count, -1 if x.is_unknown_rank() else x[1], height, width], ctx.dtype(name))]


# -- ROIAlign ------------------------------------------------------------------------------------------------------
def _bilinear(plane: Array, ys: Array, xs: Array) -> list[Array]:
    """Return the four weighted neighbours [C, len(ys), len(xs)] of grid points; points far outside give 0."""
    axes = []
    for places, size in ((ys, plane.shape[1]), (xs, plane.shape[2])):
        is_near = (places >= -1) & (places <= size)
        held = np.clip(places, 0, size - 1)
        low = np.floor(held).astype(np.int64)
        part = held - low
        axes.append([(low, (1 - part) * is_near), (np.minimum(low + 1, size - 1), part * is_near)])
    return [
        plane[:, y[:, None], x[None, :]] * (v[:, None] * w[None, :]).astype(plane.dtype)
        for y, v in axes[0]
        for x, w in axes[1]
    ]


def _align(op: Any, plane: Array, box: Array) -> Any:
    """Pool one region of ``plane`` [C, H, W]; ``box`` is x1, y1, x2, y2."""
    shift = 0.5 if op.roi_end_mode == 2 else 0.0
    end = box[2:] + 1 if op.roi_end_mode == 1 else box[2:]
    first, last = box[:2] * op.spatial_scale - shift, end * op.spatial_scale - shift
    size = last - first
    if op.roi_end_mode == 0:
        size = np.maximum(size, 1)
    lines, counts = [], []
    for axis, bins in ((1, op.pooled_height), (0, op.pooled_width)):
        step = size[axis] / bins
        count = op.sample_num if op.sample_num > 0 else int(np.ceil(step))
        offsets = (np.arange(max(count, 0)) + 0.5) * step / max(count, 1)
        lines.append((first[axis] + np.arange(bins)[:, None] * step + offsets).ravel())
        counts.append(max(count, 0))
    shape = (len(plane), op.pooled_height, counts[0], op.pooled_width, counts[1])
    if 0 in counts:
        return np.zeros((len(plane), op.pooled_height, op.pooled_width), plane.dtype)
    corners = [c.reshape(shape) for c in _bilinear(plane, *lines)]
    if op.pool_mode == "max":
        return np.max(corners, axis=0).max(axis=(2, 4))
    return np.sum(corners, axis=0).mean(axis=(2, 4))


def _infer_align(ctx: InferContext) -> Sequence[OutputSpec]:
    op = ctx.op
    if op.roi_end_mode not in (0, 1, 2) or op.pool_mode not in ("avg", "max"):
        raise ctx.fail(f"roi_end_mode {op.roi_end_mode} must be 0, 1 or 2, pool_mode {op.pool_mode} avg or max")
    return _infer_regions(ctx, "features", op.pooled_height, op.pooled_width)


@operator(
    "ROIAlign(features, rois, rois_n?) [spatial_scale:f! pooled_height:i! pooled_width:i! sample_num:i=2 "
    "roi_end_mode:i=1 pool_mode:s=avg]",
    infer=_infer_align,
)
def roi_align(op: Any, features: Array, rois: Array, rois_n: Array | None) -> Array:
    """Average (or take the maximum of) bilinear samples in each bin; ``sample_num`` 0 adapts their number to the bin.

    ``roi_end_mode``: 0 takes the corners as they are and regions as one element wide at least, 1 adds 1 to the end,
    2 moves both corners by half an element. The maximum is taken over the weighted neighbours of the samples.
    """
    index = _batch_index(rois[:, 0], len(features))
    y = np.zeros((len(rois), features.shape[1], op.pooled_height, op.pooled_width), features.dtype)
    for i, sample in enumerate(index):
        y[i] = _align(op, features[sample], rois[i, 1:].astype(features.dtype))
    return y


# -- ROIPooling ----------------------------------------------------------------------------------------------------
def _bins(start: float, end: float, count: int, size: int) -> list[tuple[int, int]]:
    length = max(end - start + 1, 1)
    edges = np.arange(count + 1, dtype=np.float32) * np.float32(length / count)
    low = np.clip(np.floor(edges[:-1]) + start, 0, size).astype(int)
    high = np.clip(np.ceil(edges[1:]) + start, 0, size).astype(int)
    return list(zip(low.tolist(), high.tolist(), strict=True))


@operator(
    "ROIPooling(x, rois, roi_actual_num?) [pooled_h:i! pooled_w:i! spatial_scale_h:f! spatial_scale_w:f!]",
    infer=lambda ctx: _infer_regions(ctx, "x", ctx.op.pooled_h, ctx.op.pooled_w),
)
def roi_pooling(op: Any, x: Array, rois: Array, roi_actual_num: Array | None) -> Array:
    """Maximum of the elements in each bin of the rounded region; 0 for an empty bin."""
    index = _batch_index(rois[:, 0], len(x))
    y = np.zeros((len(rois), x.shape[1], op.pooled_h, op.pooled_w), x.dtype)
    scale = np.array([op.spatial_scale_w, op.spatial_scale_h] * 2, rois.dtype)
    corners = np.floor(np.abs(rois[:, 1:] * scale) + 0.5) * np.sign(rois[:, 1:])
    for i, (x1, y1, x2, y2) in enumerate(corners):
        columns = _bins(x1, x2, op.pooled_w, x.shape[3])
        for row, (top, bottom) in enumerate(_bins(y1, y2, op.pooled_h, x.shape[2])):
            for column, (left, right) in enumerate(columns):
                if top < bottom and left < right:
                    y[i, :, row, column] = x[index[i], :, top:bottom, left:right].max(axis=(1, 2))
    return y


# -- CropAndResize -------------------------------------------------------------------------------------------------
def _infer_crop(ctx: InferContext) -> Sequence[OutputSpec]:
    op, x, boxes = ctx.op, ctx.shape("x"), ctx.shape("boxes")
    form = check_format(ctx, op.get("_x_data_format", "NCHW"), "NCHW")
    if op.method not in ("bilinear", "nearest"):
        raise ctx.fail(f"method must be bilinear or nearest, not {op.method}", value="method")
    x, boxes = (Shape([-1] * rank) if s.is_unknown_rank() else s for s, rank in ((x, 4), (boxes, 2)))
    if len(x) != 4 or len(boxes) != 2 or boxes[1] not in (4, -1):
        raise ctx.fail(f"x {x} must have rank 4, boxes {boxes} rows of four values")
    size = ctx.ints("crop_size")
    if size is not None and (len(size) != 2 or min(size) < 1):
        raise ctx.fail(f"crop_size must be height and width, not {size}", value="crop_size")
    dims = [boxes[0], shape_channels_first(x, form)[1], *([-1, -1] if size is None else size)]
    dtype = ctx.dtype("x") if ctx.dtype("x") in FLOATING else DataType.DT_FLOAT
    return [(shape_in_format(dims, form), dtype)]


def _crop_lines(start: Array, end: Array, size: int, count: int) -> Array:
    """Return [boxes, count] coordinates of the sampling lines along one axis."""
    steps = np.arange(count, dtype=np.float32)
    last = np.float32(size - 1)
    if count == 1:
        return (np.float32(0.5) * (start + end) * last)[:, None]
    return start[:, None] * last + steps * ((end - start) * last / np.float32(count - 1))[:, None]


@operator(
    "CropAndResize(x, boxes, box_index, crop_size) [extrapolation_value:f=0 method:s=bilinear]", infer=_infer_crop
)
def crop_and_resize(op: Any, x: Array, boxes: Array, box_index: Array, crop_size: Array) -> Array:
    """Boxes are rows y1, x1, y2, x2, relative to the image; points outside give ``extrapolation_value``."""
    form = op.get("_x_data_format", "NCHW")
    first = channels_first(x, form)
    images = (first if x.dtype.kind == "f" else first.astype(np.float32))[_batch_index(box_index, len(first))]
    is_outside = np.zeros((len(boxes), 1, 1, 1), bool)
    for axis, count in enumerate(np.ravel(crop_size).tolist(), start=2):
        size = images.shape[axis]
        lines = _crop_lines(boxes[:, axis - 2], boxes[:, axis], size, count)
        shape = [len(boxes), 1, 1, 1]
        shape[axis] = count
        is_outside = is_outside | ((lines < 0) | (lines > size - 1)).reshape(shape)
        held = np.clip(lines, 0, size - 1)
        if op.method == "nearest":
            images = _take(images, axis, np.floor(held + np.float32(0.5)).astype(np.int64))
            continue
        low = np.floor(held)
        part = (held - low).astype(images.dtype).reshape(shape)
        low = low.astype(np.int64)
        images = _take(images, axis, low) * (1 - part) + _take(images, axis, np.minimum(low + 1, size - 1)) * part
    return from_channels_first(np.where(is_outside, images.dtype.type(op.extrapolation_value), images), form)


def _take(images: Array, axis: int, places: Array) -> Array:
    """Read ``places`` [N, count] of each image along ``axis``."""
    shape = [len(places), 1, 1, 1]
    shape[axis] = places.shape[1]
    return np.take_along_axis(images, places.reshape(shape), axis)
