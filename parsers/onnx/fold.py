"""Summing sliding blocks back into an image."""

from __future__ import annotations

from ge.graph import DataType
from parsers.onnx.conv import paired, spatial_attr
from parsers.onnx.mapping import Mapped, maps
from parsers.onnx.node_builder import NodeBuilder


@maps("Col2Im")
def col2im(n: NodeBuilder) -> Mapped:
    """Before: Col2Im(x, image_shape, block_shape). After: Cast x 2 -> Col2ImV2."""
    rank = n.shape(n.need(1)).elements
    if not 1 <= rank <= 8:
        raise n.fail(f"it has {'an unknown number of' if rank < 0 else rank} spatial axes; 1 to 8 are supported")
    if n.shape(n.need(2)).elements != rank:
        raise n.fail(f"its image_shape has {rank} dimensions, its block_shape {n.shape(n.need(2)).elements}")
    sizes = n.cast(n.need(1), DataType.DT_INT32, role="OutputSize")
    kernel = n.cast(n.need(2), DataType.DT_INT32, role="KernelSize")
    return n.add(
        "Col2ImV2",
        n.need(0),
        sizes,
        kernel,
        dilation=spatial_attr(n, "dilations", rank, 1),
        padding=paired(spatial_attr(n, "pads", rank, 0, per_axis=2)),
        stride=spatial_attr(n, "strides", rank, 1),
    )
