"""Resampling: Resize, Upsample."""

from __future__ import annotations

from typing import Any

import numpy as np

from parsers.onnx.mapping import Mapped, maps
from parsers.onnx.node_builder import Array, NodeBuilder, Source

MODES = ("nearest", "linear", "cubic")
TRANSFORMATIONS = (
    "half_pixel",
    "half_pixel_symmetric",
    "pytorch_half_pixel",
    "align_corners",
    "asymmetric",
    "tf_half_pixel_for_nn",
    "tf_crop_and_resize",
)
ROUNDINGS = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")


@maps("Resize")
def resize(n: NodeBuilder) -> Mapped:
    """Before: Resize. After: Resize; a plain nearest one over H and W: Const(size) -> ResizeNearestNeighborV2."""
    if n.since_version < 11:
        return _by_scales(n, n.choice("mode", *MODES), n.need(1))
    mode = n.choice("mode", *MODES)
    transformation = n.choice("coordinate_transformation_mode", *TRANSFORMATIONS)
    rounding = n.choice("nearest_mode", *ROUNDINGS)
    simple = _as_nearest(n, mode, transformation, rounding)
    if simple is not None:
        return simple
    extra: dict[str, Any] = {}
    if n.attr("antialias", 0):
        extra["_x_antialias"] = 1
    if n.attr("axes") is not None:
        extra["_x_axes"] = [int(a) for a in n.attr("axes")]
    if n.attr("keep_aspect_ratio_policy", "stretch") != "stretch":
        extra["_x_keep_aspect_ratio_policy"] = n.choice("keep_aspect_ratio_policy", "not_larger", "not_smaller")
    return n.add(
        "Resize",
        *n.inputs,
        coordinate_transformation_mode=transformation,
        cubic_coeff_a=n.attr("cubic_coeff_a"),
        exclude_outside=n.attr("exclude_outside"),
        extrapolation_value=n.attr("extrapolation_value"),
        mode=mode,
        nearest_mode=rounding,
        resize_original_type="onnx_resize",
        **extra,
    )


@maps("Upsample")
def upsample(n: NodeBuilder) -> Mapped:
    """Before: Upsample, scales as an attribute before opset 9, as an input since. After: Resize."""
    scales = n.const("Scales", np.asarray(n.attr("scales"), np.float32)) if n.since_version < 9 else n.need(1)
    return _by_scales(n, n.choice("mode", "nearest", "linear"), scales)


def _by_scales(n: NodeBuilder, mode: str, scales: Source) -> Mapped:
    """Add the resampling of opset 10 and before: output position / scale, rounded down."""
    simple = _nearest_by(n, n.value(scales), None) if mode == "nearest" else None
    if simple is not None:
        return simple
    return n.add(
        "Resize",
        n.need(0),
        None,
        scales,
        coordinate_transformation_mode="asymmetric",
        mode=mode,
        nearest_mode="floor",
        resize_original_type="onnx_resize",
    )


def _as_nearest(n: NodeBuilder, mode: str, transformation: str, rounding: str) -> Mapped | None:
    """Return the simple form where it means exactly the same, else ``None``."""
    is_simple = mode == "nearest" and transformation == "asymmetric" and rounding == "floor"
    if not is_simple or n.attr("axes") is not None or n.attr("keep_aspect_ratio_policy", "stretch") != "stretch":
        return None
    scales, sizes = (n.value(n.input(i)) for i in (2, 3))
    return _nearest_by(n, scales, sizes)


def _nearest_by(n: NodeBuilder, scales: Array | None, sizes: Array | None) -> Mapped | None:
    """Return ResizeNearestNeighborV2 when only H and W grow, by whole factors; ``None`` otherwise.

    Whole factors leave no rounding that GE and ONNX could do differently.
    """
    shape = n.shape(n.need(0))
    if len(shape) != 4 or min(shape) < 1:
        return None
    if scales is not None and scales.size == 4:
        factors = [float(s) for s in scales.reshape(-1)]
    elif sizes is not None and sizes.size == 4:
        factors = [int(size) / dim for size, dim in zip(sizes.reshape(-1), shape, strict=True)]
    else:
        return None
    if factors[:2] != [1, 1] or any(f < 1 or f != int(f) for f in factors[2:]):
        return None
    size = n.index("Size", [int(f) * dim for f, dim in zip(factors[2:], shape[2:], strict=True)])
    return n.add("ResizeNearestNeighborV2", n.need(0), size, align_corners=False, half_pixel_centers=False)
