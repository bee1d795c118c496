"""Regions of interest."""

from __future__ import annotations

from ge.graph import DataType
from parsers.onnx.mapping import Mapped, maps
from parsers.onnx.node_builder import NodeBuilder


@maps("MaxRoiPool")
def max_roi_pool(n: NodeBuilder) -> Mapped:
    """Before: MaxRoiPool(x, rois). After: ROIPooling."""
    pooled, scale = n.attr("pooled_shape"), n.attr("spatial_scale")
    if len(pooled) != 2:
        raise n.fail(f"attribute pooled_shape is {list(pooled)}, but must be height and width")
    return n.add(
        "ROIPooling",
        n.need(0),
        n.need(1),
        pooled_h=pooled[0],
        pooled_w=pooled[1],
        spatial_scale_h=scale,
        spatial_scale_w=scale,
    )


@maps("RoiAlign")
def roi_align(n: NodeBuilder) -> Mapped:
    """Before: RoiAlign(x, rois, batch_indices). After: Cast -> Unsqueeze -> ConcatD with rois -> ROIAlign."""
    rois = n.need(1)
    index = n.cast(n.need(2), n.dtype(rois))
    column = n.add("Unsqueeze", index, role="Unsqueeze", axes=[1])
    rows = n.add("ConcatD", column, rois, role="ConcatD", concat_dim=1, N=2)
    moves_by_half = n.since_version >= 16 and (
        n.choice("coordinate_transformation_mode", "half_pixel", "output_half_pixel") == "half_pixel"
    )
    return n.add(
        "ROIAlign",
        n.need(0),
        rows,
        spatial_scale=n.attr("spatial_scale"),
        pooled_height=n.attr("output_height"),
        pooled_width=n.attr("output_width"),
        sample_num=n.attr("sampling_ratio"),
        roi_end_mode=2 if moves_by_half else 0,
        pool_mode=n.choice("mode", "avg", "max"),
    )


@maps("NonMaxSuppression")
def non_max_suppression(n: NodeBuilder) -> Mapped:
    """Before: NonMaxSuppression. After: NonMaxSuppressionV6 -> Cast(int64)."""
    found = n.add(
        "NonMaxSuppressionV6", *n.inputs, role="NonMaxSuppressionV6", center_point_box=n.attr("center_point_box")
    )
    return n.add("Cast", found, dst_type=int(DataType.DT_INT64))
