"""Images: resizing, cutting out, choosing among boxes."""

from __future__ import annotations

from typing import Any

from ge.graph import DataType
from parsers.ge_nodes import Mapped
from parsers.tensorflow.mapping import maps
from parsers.tensorflow.node_builder import NodeBuilder


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
