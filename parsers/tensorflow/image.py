"""Images: resizing, cutting out, choosing among boxes."""

from __future__ import annotations

from typing import Any

from ge.graph import DataType
from parsers.ge_nodes import Mapped
from parsers.tensorflow.mapping import Row, maps, maps_rows
from parsers.tensorflow.node_builder import NodeBuilder, Source


def _resized(n: NodeBuilder, type: str, **attrs: Any) -> Mapped:
    return n.add(
        type,
        *n.inputs,
        align_corners=n.attr("align_corners", False),
        half_pixel_centers=n.attr("half_pixel_centers", False),
        _x_data_format="NHWC",
        **attrs,
    )


@maps("ResizeBilinear", inputs=2)
def resize_bilinear(n: NodeBuilder) -> Mapped:
    """Before: ResizeBilinear. After: ResizeBilinearV2, which gives float32 whatever the image is."""
    return _resized(n, "ResizeBilinearV2", dtype=DataType.DT_FLOAT)


@maps("ResizeNearestNeighbor", inputs=2)
def resize_nearest_neighbor(n: NodeBuilder) -> Mapped:
    """Before: ResizeNearestNeighbor. After: ResizeNearestNeighborV2."""
    return _resized(n, "ResizeNearestNeighborV2")


@maps("CropAndResize", inputs=4)
def crop_and_resize(n: NodeBuilder) -> Mapped:
    """Before: CropAndResize. After: CropAndResize."""
    return n.add(
        "CropAndResize",
        *n.inputs,
        extrapolation_value=n.attr("extrapolation_value", 0.0),
        method=n.choice("method", "bilinear", "nearest"),
        _x_data_format="NHWC",
    )


@maps("ResizeBicubic", inputs=2)
def resize_bicubic(n: NodeBuilder) -> Mapped:
    """Before: ResizeBicubic. After: ResizeBicubic, which gives float32 whatever the image is."""
    return _resized(n, "ResizeBicubic")


@maps("ExtractImagePatches", inputs=1)
def extract_image_patches(n: NodeBuilder) -> Mapped:
    """Before: ExtractImagePatches. After: ExtractImagePatches."""
    sizes: dict[str, Any] = {name: n.numbers(name) for name in ("ksizes", "strides", "rates")}
    return n.add("ExtractImagePatches", n.need(0), padding=n.choice("padding", "VALID", "SAME"), **sizes)


# -- boxes -------------------------------------------------------------------------------------------------------------
@maps("NonMaxSuppression", inputs=3)
def suppress_by_attribute(n: NodeBuilder) -> Mapped:
    """Before: NonMaxSuppression with attribute iou_threshold. After: NonMaxSuppressionV3 that takes any score."""
    return _suppressed(n, n.scalar("IouThreshold", n.attr("iou_threshold", 0.5), n.dtype(n.need(1))))


@maps("NonMaxSuppressionV2", inputs=4)
def suppress_by_input(n: NodeBuilder) -> Mapped:
    """Before: NonMaxSuppressionV2. After: NonMaxSuppressionV3 that takes any score."""
    return _suppressed(n, n.need(3))


def _suppressed(n: NodeBuilder, iou: Source) -> Mapped:
    lowest = n.scalar("ScoreThreshold", float("-inf"), n.dtype(n.need(1)))
    return n.add("NonMaxSuppressionV3", *n.inputs[:3], iou, lowest)


maps_rows(
    {
        "CombinedNonMaxSuppression": Row("CombinedNonMaxSuppression", pad_per_class=False, clip_boxes=True),
        "NonMaxSuppressionV3": "NonMaxSuppressionV3",
        "NonMaxSuppressionV4": Row("NonMaxSuppressionV4", pad_to_max_output_size=False),
        "NonMaxSuppressionV5": Row("NonMaxSuppressionV5", pad_to_max_output_size=False),
    }
)
