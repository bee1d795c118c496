"""Cutting regions out of tensors."""

from __future__ import annotations

import numpy as np

from parsers.onnx.mapping import Mapped, maps
from parsers.onnx.node_builder import NodeBuilder, Source


@maps("Slice")
def slice_(n: NodeBuilder) -> Mapped:
    """Before: Slice, its ranges as attributes before opset 10, as inputs since. After: StridedSliceV2."""
    if n.since_version >= 10:
        return n.add("StridedSliceV2", *n.inputs)
    starts, ends, axes = n.attr("starts"), n.attr("ends"), n.attr("axes")
    if len(starts) != len(ends) or (axes is not None and len(axes) != len(starts)):
        raise n.fail("attributes starts, ends and axes differ in length")
    bounds: list[Source] = [n.int64(starts, "Begin"), n.int64(ends, "End")]
    return n.add("StridedSliceV2", n.need(0), *bounds, None if axes is None else n.int64(axes, "Axes"))


@maps("Compress")
def compress(n: NodeBuilder) -> Mapped:
    """Before: Compress(x, condition). After: Where -> Squeeze -> GatherV2; without axis of the flattened x."""
    x: Source = n.need(0)
    axis = n.attr("axis")
    if axis is None:
        x = n.add("Reshape", x, n.int64([-1], "Shape"), role="Reshape")
    places = n.add("Where", n.need(1), role="Where")
    positions = n.add("Squeeze", places, role="Squeeze", axis=[1])
    at = n.const("Axis", np.asarray(0 if axis is None else axis, np.int32))
    return n.add("GatherV2", x, positions, at, negative_index_support=True)
