"""Choosing by condition or by index, writing by index, ranking, distinct elements."""

from __future__ import annotations

from typing import Any

from ge.graph import DataType
from parsers.ge_nodes import Mapped
from parsers.tensorflow.mapping import Row, maps, maps_rows
from parsers.tensorflow.node_builder import NodeBuilder

maps_rows(
    {
        "Gather": Row("Gather", validate_indices=True),
        "GatherNd": "GatherNd",
        "GatherV2": Row("GatherV2", batch_dims=0),
        "InTopK": Row("InTopK", k=int),
        "OneHot": Row("OneHot", axis=-1),
        "ScatterNd": "ScatterNd",
        "SegmentSum": "SegmentSum",
        "Select": "Select",
        "SelectV2": "SelectV2",
        "TensorScatterAdd": "ScatterNdAdd",
        "TensorScatterMax": "ScatterNdMax",
        "TensorScatterMin": "ScatterNdMin",
        "TensorScatterSub": "ScatterNdSub",
        "TensorScatterUpdate": "TensorScatterUpdate",
        "UnsortedSegmentSum": "UnsortedSegmentSum",
        "Where": "Where",
    }
)


@maps("ArgMax", "ArgMin", inputs=2)
def position_of_extreme(n: NodeBuilder) -> Mapped:
    """Before: ArgMax, ArgMin with output_type. After: ArgMaxV2, ArgMin with dtype."""
    dtype = n.attr("output_type", DataType.DT_INT64)
    return n.add("ArgMaxV2" if n.op_type == "ArgMax" else "ArgMin", *n.inputs, dtype=dtype)


@maps("TopK", "TopKV2", inputs=(1, 2))
def top_k(n: NodeBuilder) -> Mapped:
    """Before: TopKV2(x, k), TopK with attribute k. After: TopK over the last axis; a Cast for other index types."""
    k = n.input(1) if n.op_type == "TopKV2" else n.index("K", n.attr("k", int))
    if k is None:
        raise n.fail("its input k is missing")
    node = n.add("TopK", n.need(0), k, sorted=n.attr("sorted", True), largest=True, dim=-1)
    return [node.output(0), n.cast(node.output(1), n.attr("index_type", DataType.DT_INT32))]


@maps("InTopKV2", inputs=3)
def in_top_k(n: NodeBuilder) -> Mapped:
    """Before: InTopKV2(predictions, targets, k), k a constant. After: InTopK."""
    k = n.ints(n.need(2))
    if k is None or len(k) != 1:
        raise n.fail("its input k must be a constant number")
    return n.add("InTopK", n.need(0), n.need(1), k=k[0])


@maps("Unique", inputs=1)
def unique(n: NodeBuilder) -> Mapped:
    """Before: Unique. After: Unique."""
    return n.add("Unique", n.need(0), out_idx=n.attr("out_idx", DataType.DT_INT32))


@maps("UniqueWithCounts", inputs=1)
def unique_with_counts(n: NodeBuilder) -> Mapped:
    """Before: UniqueWithCounts. After: XUnique in order of first occurrence; Casts to out_idx."""
    return _distinct(n, None)


@maps("UniqueV2", "UniqueWithCountsV2", inputs=2)
def unique_along_axis(n: NodeBuilder) -> Mapped:
    """Before: UniqueV2(x, axis), the axis a constant. After: XUnique in order of first occurrence."""
    axis = n.ints(n.need(1))
    if axis is None or len(axis) > 1:
        raise n.fail("its axis must be a constant number")
    return _distinct(n, axis[0] if axis else None)


def _distinct(n: NodeBuilder, axis: int | None) -> Mapped:
    dtype = n.attr("out_idx", DataType.DT_INT32)
    attrs: dict[str, Any] = {} if axis is None else {"axis": axis}
    node = n.add("XUnique", n.need(0), sorted=0, **attrs)
    results = [node.output(0), n.cast(node.output(2), dtype, "CastIndices")]
    if "WithCounts" in n.op_type:
        results.append(n.cast(node.output(3), dtype, "CastCounts"))
    return results


# -- making tensors ----------------------------------------------------------------------------------------------------
maps_rows({"Fill": "Fill", "LinSpace": "LinSpace", "Range": "Range"})


@maps("Empty", inputs=1)
def empty(n: NodeBuilder) -> Mapped:
    """Before: Empty. After: Empty, which is zero whether asked for or not."""
    return n.add("Empty", n.need(0), dtype=int(n.attr("dtype", DataType)), init=n.attr("init", False))
