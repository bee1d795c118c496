"""Resampling: Resize (every mode of ONNX's), ResizeNearestNeighborV2, ResizeBilinearV2 (TensorFlow's).

Extra attributes of Resize, named and valued as in ONNX:
  ``_x_antialias``, ``_x_axes``, ``_x_keep_aspect_ratio_policy`` (stretch, not_larger, not_smaller)
An empty ``scales`` or ``sizes`` counts as absent. ResizeNearestNeighborV2 and ResizeBilinearV2 read ``_x_data_format``
(default NCHW).

Every axis is resampled by itself: interpolation in several dimensions is the product of one-dimensional ones.
Coordinates are float32, as everywhere else, so that ties fall the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ge.graph.types import FLOATING, DataType
from ge.ops.inference import distinct_axes
from ge.ops.layout import check_format, spatial_axes
from ge.ops.registry import Array, InferContext, Misfit, OutputSpec, operator

F32 = np.float32


@dataclass(frozen=True)
class AxisPlan:
    """One axis to resample: sizes, the scale from input to output, and the part of the input that is shown."""

    axis: int
    size: int
    out: int
    scale: float
    start: float = 0.0
    end: float = 1.0


@dataclass(frozen=True)
class Taps:
    """What each output position reads: ``indices`` [out, taps]; ``weights`` likewise, or ``None`` for a plain copy.

    ``is_outside`` marks positions that show nothing of the input.
    """

    indices: Array
    weights: Array | None = None
    is_outside: Array | None = None


# -- coordinates ---------------------------------------------------------------------------------------------------
def _half_pixel(plan: AxisPlan, x: Array) -> Array:
    return (x + F32(0.5)) / F32(plan.scale) - F32(0.5)


def _half_pixel_symmetric(plan: AxisPlan, x: Array) -> Array:
    adjustment = F32(plan.out) / (F32(plan.scale) * F32(plan.size))
    offset = F32(plan.size / 2) * (F32(1) - adjustment)
    return offset + (x + F32(0.5)) / F32(plan.scale) - F32(0.5)


def _align_corners(plan: AxisPlan, x: Array) -> Array:
    """The length is that which the scale asks for, whole or not: so ONNX's test data has it, unlike onnxruntime."""
    asked = plan.scale * plan.size
    last = (plan.out if abs(asked - plan.out) < 1e-5 * plan.out else asked) - 1
    return x * F32(plan.size - 1) / F32(last) if last > 0 else np.zeros_like(x)


def _crop(plan: AxisPlan, x: Array) -> Array:
    start, end, last = F32(plan.start), F32(plan.end), F32(plan.size - 1)
    if plan.out == 1:
        return F32(0.5) * (start + end) * last + x
    return start * last + x * (end - start) * last / F32(plan.out - 1)


_COORDINATES: dict[str, Callable[[AxisPlan, Array], Array]] = {
    "half_pixel": _half_pixel,
    "half_pixel_symmetric": _half_pixel_symmetric,
    "pytorch_half_pixel": lambda plan, x: _half_pixel(plan, x) if plan.out > 1 else x,
    "align_corners": _align_corners,
    "asymmetric": lambda plan, x: x / F32(plan.scale),
    "tf_half_pixel_for_nn": lambda plan, x: (x + F32(0.5)) / F32(plan.scale),
    "tf_crop_and_resize": _crop,
}
"""Where the output positions 0, 1, 2, ... (float32) lie on the input axis."""

_TIE = 1e-6
"""Coordinates this near to a half count as a half: float32 divisions miss it by less."""

_ROUNDING: dict[str, Callable[[Array], Array]] = {
    "round_prefer_floor": lambda x: np.ceil(x.astype(np.float64) - (0.5 + _TIE)),
    "round_prefer_ceil": lambda x: np.floor(x.astype(np.float64) + (0.5 + _TIE)),
    "floor": np.floor,
    "ceil": np.ceil,
}


# -- taps ----------------------------------------------------------------------------------------------------------
def _cubic(distance: Array, a: float) -> Array:
    """Return the cubic convolution kernel at ``distance``."""
    d = np.abs(distance)
    near = ((a + 2) * d - (a + 3)) * d * d + 1
    far = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
    return np.where(d <= 1, near, np.where(d < 2, far, 0))


def _triangle(distance: Array) -> Any:
    return np.maximum(1 - np.abs(distance), 0)


def nearest_taps(positions: Array, size: int) -> Taps:
    """Read one element at whole ``positions``, held to the axis."""
    return Taps(np.clip(positions.astype(np.int64), 0, size - 1)[:, None])


def linear_taps(coordinates: Array, size: int) -> Taps:
    """Mix the two elements around each coordinate, held to the axis."""
    held = np.clip(coordinates, 0, size - 1)
    low = np.floor(held)
    part = (held - low).astype(F32)
    first = low.astype(np.int64)
    return Taps(np.stack([first, np.minimum(first + 1, size - 1)], 1), np.stack([1 - part, part], 1))


def _filter_taps(plan: AxisPlan, coordinates: Array, op: Any) -> Taps:
    """Return the taps of a linear or cubic filter, widened by the scale when antialiasing."""
    shrink = min(plan.scale, 1.0) if op.get("_x_antialias", 0) else 1.0
    radius = (1 if op.mode == "linear" else 2) / shrink
    low = np.floor(coordinates).astype(np.int64)
    offsets = np.arange(int(np.floor(-radius)) + 1, int(np.ceil(radius)) + 1)
    indices = low[:, None] + offsets
    distances = (indices - coordinates[:, None].astype(np.float64)) * shrink
    weights = _triangle(distances) if op.mode == "linear" else _cubic(distances, op.cubic_coeff_a)
    if op.exclude_outside:
        weights = np.where((indices >= 0) & (indices < plan.size), weights, 0)
    weights = weights / weights.sum(axis=1, keepdims=True)
    return Taps(np.clip(indices, 0, plan.size - 1), weights.astype(F32))


def _taps(op: Any, plan: AxisPlan) -> Taps:
    transformation = op.coordinate_transformation_mode
    coordinates = _COORDINATES[transformation](plan, np.arange(plan.out, dtype=F32))
    if op.mode == "nearest":
        taps = nearest_taps(_ROUNDING[op.nearest_mode](coordinates), plan.size)
    elif op.mode == "linear" and not op.get("_x_antialias", 0):
        taps = linear_taps(coordinates, plan.size)
    else:
        taps = _filter_taps(plan, coordinates, op)
    if transformation == "tf_crop_and_resize":
        return Taps(taps.indices, taps.weights, (coordinates < 0) | (coordinates > plan.size - 1))
    return taps


def resample(x: Array, axis: int, taps: Taps) -> Array:
    """Return ``x`` with ``axis`` read through ``taps``."""
    if taps.weights is None:
        return np.take(x, taps.indices[:, 0], axis)
    shape = [-1 if i == axis else 1 for i in range(x.ndim)]
    result = np.take(x, taps.indices[:, 0], axis) * taps.weights[:, 0].reshape(shape)
    for index in range(1, taps.indices.shape[1]):
        result += np.take(x, taps.indices[:, index], axis) * taps.weights[:, index].reshape(shape)
    return result


# -- Resize --------------------------------------------------------------------------------------------------------
def _plans(
    op: Any, shape: Sequence[int], roi: Sequence[float], scales: Sequence[float], sizes: Sequence[int]
) -> list[AxisPlan]:
    """Return the axes to resample. Raises ``Misfit``."""
    rank = len(shape)
    axes = [axis % rank for axis in op.get("_x_axes", None) or range(rank)]
    given = scales if len(scales) else sizes
    if len(given) != len(axes):
        raise Misfit(f"{'scales' if len(scales) else 'sizes'} has {len(given)} elements for {len(axes)} axes")
    if len(scales):
        if any(s <= 0 for s in scales):
            raise Misfit(f"scales {list(scales)} must be positive")
        rows = [
            (a, -1 if shape[a] < 0 else int(np.floor(F32(shape[a]) * F32(s))), float(s))
            for a, s in zip(axes, scales, strict=True)
        ]
    else:
        rows = _from_sizes(op, shape, axes, sizes)
    crop = (
        list(roi)
        if op.coordinate_transformation_mode == "tf_crop_and_resize"
        else [0.0] * len(axes) + [1.0] * len(axes)
    )
    if len(crop) != 2 * len(axes):
        raise Misfit(f"roi has {len(crop)} elements, but two for each of {len(axes)} axes are needed")
    return [
        AxisPlan(axis, shape[axis], out, scale, crop[i], crop[i + len(axes)])
        for i, (axis, out, scale) in enumerate(rows)
    ]


def _from_sizes(
    op: Any, shape: Sequence[int], axes: Sequence[int], sizes: Sequence[int]
) -> list[tuple[int, int, float]]:
    policy = op.get("_x_keep_aspect_ratio_policy", "stretch")
    if policy not in ("stretch", "not_larger", "not_smaller"):
        raise Misfit(f"keep_aspect_ratio_policy {policy} is unknown")
    if any(s < 0 for s in sizes):
        raise Misfit(f"sizes {list(sizes)} must not be negative")
    ratios = [size / shape[axis] if shape[axis] > 0 else 1.0 for axis, size in zip(axes, sizes, strict=True)]
    if policy == "stretch":
        return list(zip(axes, map(int, sizes), ratios, strict=True))
    if any(shape[axis] < 0 for axis in axes):
        return [(axis, -1, 1.0) for axis in axes]
    ratio = min(ratios) if policy == "not_larger" else max(ratios)
    return [(axis, int(np.floor(ratio * shape[axis] + 0.5)), ratio) for axis in axes]


_CHOICES = {
    "mode": ("nearest", "linear", "cubic"),
    "nearest_mode": tuple(_ROUNDING),
    "coordinate_transformation_mode": tuple(_COORDINATES),
}


def _infer_resize(ctx: InferContext) -> Sequence[OutputSpec]:
    op, shape, dtype = ctx.op, ctx.shape("x"), ctx.dtype("x")
    for name, known in _CHOICES.items():
        if getattr(op, name) not in known:
            raise ctx.fail(f"{name} must be one of {', '.join(known)}, not {getattr(op, name)}", value=name)
    if shape.is_unknown_rank():
        return [(shape, dtype)]
    axes = distinct_axes(op.get("_x_axes", None) or range(len(shape)), len(shape))
    scales, sizes = (_value_or_empty(ctx, name) for name in ("scales", "sizes"))
    if scales is None or sizes is None:
        return [([-1 if i in axes else d for i, d in enumerate(shape)], dtype)]
    if bool(len(scales)) == bool(len(sizes)):
        raise ctx.fail("exactly one of scales and sizes must be given", value="scales")
    roi = _value_or_empty(ctx, "roi")
    plans = _plans(op, shape, [0.0] * 2 * len(axes) if roi is None else roi.tolist(), scales.tolist(), sizes.tolist())
    dims = list(shape)
    for plan in plans:
        dims[plan.axis] = plan.out
    return [(dims, dtype)]


def _value_or_empty(ctx: InferContext, name: str) -> Array | None:
    """Return the constant vector behind an input, empty when it is absent; ``None`` when it is not known."""
    if not ctx.has(name) or ctx.shape(name).elements == 0:
        return np.zeros(0)
    value = ctx.value(name)
    return None if value is None else np.ravel(value)


@operator(
    "Resize(x, roi?, scales?, sizes?) [coordinate_transformation_mode:s=half_pixel cubic_coeff_a:f=-0.75 "
    "exclude_outside:i=0 extrapolation_value:f=0 mode:s=nearest nearest_mode:s=round_prefer_floor]",
    infer=_infer_resize,
)
def resize(op: Any, x: Array, roi: Array | None, scales: Array | None, sizes: Array | None) -> Array:
    y = x if op.mode == "nearest" or x.dtype.kind == "f" else x.astype(F32)
    is_outside = np.zeros([1] * x.ndim, bool)
    for axis, taps in resize_taps(op, x.shape, roi, scales, sizes):
        y = resample(y, axis, taps)
        if taps.is_outside is not None:
            is_outside = is_outside | taps.is_outside.reshape([-1 if i == axis else 1 for i in range(x.ndim)])
    if is_outside.any():
        y = np.where(is_outside, y.dtype.type(op.extrapolation_value), y)
    return _within(y, x.dtype)


def resize_taps(
    op: Any, shape: Sequence[int], roi: Array | None, scales: Array | None, sizes: Array | None
) -> list[tuple[int, Taps]]:
    """Return the axes that a Resize of ``shape`` resamples, and how. Raises ``Misfit``."""
    given = [[] if v is None else np.ravel(v).tolist() for v in (roi, scales, sizes)]
    return [
        (plan.axis, _taps(op, plan))
        for plan in _plans(op, shape, *given)
        if plan.out != plan.size or plan.scale != 1 or (plan.start, plan.end) != (0, 1)
    ]


def _within(y: Array, dtype: np.dtype[Any]) -> Array:
    """Hold floats to the range of an integer type before they are truncated to it."""
    if dtype.kind not in "iu" or y.dtype.kind != "f":
        return y
    return np.clip(y, np.iinfo(dtype).min, np.iinfo(dtype).max)


# -- TensorFlow's --------------------------------------------------------------------------------------------------
def _image_axes(op: Any) -> list[int]:
    return spatial_axes(op.get("_x_data_format", "NCHW"))


def _infer_image(ctx: InferContext, dtype: DataType, name: str = "x") -> Sequence[OutputSpec]:
    form = check_format(ctx, ctx.op.get("_x_data_format", "NCHW"), "NCHW")
    if ctx.op.align_corners and ctx.op.half_pixel_centers:
        raise ctx.fail("align_corners and half_pixel_centers exclude each other", value="align_corners")
    shape = ctx.shape(name)
    if not shape.is_unknown_rank() and len(shape) != 4:
        raise ctx.fail(f"{name} has shape {shape}, but needs rank 4", value=name)
    dims = [-1] * 4 if shape.is_unknown_rank() else list(shape)
    size = ctx.ints("size")
    if size is not None and (len(size) != 2 or min(size) < 1):
        raise ctx.fail(f"size must be height and width, not {size}", value="size")
    for axis, value in zip(spatial_axes(form), [-1, -1] if size is None else size, strict=True):
        dims[axis] = value
    return [(dims, dtype)]


def _tf_coordinates(op: Any, size: int, out: int, given: float, is_nearest: bool) -> Array:
    x = np.arange(out, dtype=F32)
    if op.align_corners:
        return x * F32((size - 1) / (out - 1) if out > 1 else 0)
    step = F32(1 / given) if given > 0 else F32(size) / F32(out)
    if op.half_pixel_centers:
        return (x + F32(0.5)) * step - F32(0 if is_nearest else 0.5)
    return x * step


@operator(
    "ResizeNearestNeighborV2(x, size) [align_corners:b=F half_pixel_centers:b=F scales:F=[0]*2]",
    infer=lambda ctx: _infer_image(ctx, ctx.dtype("x")),
    exact_types=True,
)
def resize_nearest_neighbor(op: Any, x: Array, size: Array) -> Array:
    for axis, taps in image_taps(op, x.shape, size, is_nearest=True):
        x = resample(x, axis, taps)
    return x


def image_taps(op: Any, shape: Sequence[int], size: Array, *, is_nearest: bool) -> list[tuple[int, Taps]]:
    """Return how TensorFlow's operators resample height and width of an image to ``size``."""
    found = []
    for axis, out, given in zip(_image_axes(op), np.ravel(size).tolist(), op.scales, strict=True):
        positions = _tf_coordinates(op, shape[axis], out, given, is_nearest)
        if is_nearest:
            rounded = np.floor(positions + F32(0.5)) if op.align_corners else np.floor(positions)
            found.append((axis, nearest_taps(rounded, shape[axis])))
        else:
            found.append((axis, linear_taps(positions, shape[axis])))
    return found


def _bilinear_type(ctx: InferContext) -> DataType:
    wanted = ctx.node.attrs.get("dtype")
    if wanted is not None:
        return DataType(wanted)
    return ctx.dtype("x") if ctx.dtype("x") in FLOATING else DataType.DT_FLOAT


@operator(
    "ResizeBilinearV2(x, size) [align_corners:b=F half_pixel_centers:b=F dtype:t=FLOAT scales:F=[0]*2]",
    infer=lambda ctx: _infer_image(ctx, _bilinear_type(ctx)),
)
def resize_bilinear(op: Any, x: Array, size: Array) -> Array:
    """The result has the type ``dtype`` where the node says it, otherwise that of a floating x, or float32."""
    y = x if x.dtype.kind == "f" else x.astype(F32)
    for axis, taps in image_taps(op, x.shape, size, is_nearest=False):
        y = resample(y, axis, taps)
    return y


_TABLE_SIZE = 1024


def _cubic_table(a: float) -> tuple[Array, Array]:
    """Return the cubic kernel at the distances 0..1 and 1..2, in steps of 1/1024."""
    steps = np.arange(_TABLE_SIZE + 1) / _TABLE_SIZE
    return _cubic(steps, a).astype(F32), _cubic(steps + 1, a).astype(F32)


def _bicubic_taps(positions: Array, size: int, is_half_pixel: bool) -> Taps:
    """TensorFlow reads its kernel from a table. With half pixel centers what is outside of the image counts nothing."""
    near, far = _cubic_table(-0.5 if is_half_pixel else -0.75)
    first = np.floor(positions).astype(np.int64)
    offset = np.rint((positions - first).astype(F32) * F32(_TABLE_SIZE)).astype(np.int64)
    weights = np.stack([far[offset], near[offset], near[_TABLE_SIZE - offset], far[_TABLE_SIZE - offset]], 1)
    places = first[:, None] + np.arange(-1, 3)
    held = np.clip(places, 0, size - 1)
    if is_half_pixel:
        weights = np.where(held == places, weights, F32(0))
        weights = weights / weights.sum(axis=1, keepdims=True)
    return Taps(held, weights)


@operator(
    "ResizeBicubic(images, size) [align_corners:b=F half_pixel_centers:b=F]",
    infer=lambda ctx: _infer_image(ctx, DataType.DT_FLOAT, "images"),
)
def resize_bicubic(op: Any, images: Array, size: Array) -> Array:
    """The result is float32 whatever the images are."""
    y = images if images.dtype.kind == "f" else images.astype(F32)
    for axis, out in zip(_image_axes(op), np.ravel(size).tolist(), strict=True):
        positions = _tf_coordinates(op, images.shape[axis], out, 0, is_nearest=False)
        y = resample(y, axis, _bicubic_taps(positions, images.shape[axis], op.half_pixel_centers))
    return y
