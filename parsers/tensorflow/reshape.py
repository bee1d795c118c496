"""Shapes: asking for them, changing them without moving elements, joining and cutting tensors."""

from __future__ import annotations

from ge.graph import DataType
from parsers.ge_nodes import Mapped
from parsers.tensorflow.mapping import Row, maps, maps_rows
from parsers.tensorflow.node_builder import NodeBuilder

_MASKS = {f"{name}_mask": 0 for name in ("begin", "end", "ellipsis", "new_axis", "shrink_axis")}

maps_rows(
    {
        "BroadcastArgs": "BroadcastArgs",
        "BroadcastTo": "BroadcastTo",
        "ExpandDims": "ExpandDims",
        "Rank": "Rank",
        "Slice": "Slice",
        "StridedSlice": Row("StridedSlice", **_MASKS),
        "Tile": "Tile",
    }
)


@maps("Shape", inputs=1)
def shape(n: NodeBuilder) -> Mapped:
    """Before: Shape. After: Shape with the type of out_type."""
    return n.add("Shape", n.need(0), dtype=int(n.attr("out_type", DataType.DT_INT32)))


@maps("ShapeN", inputs=(1, None))
def shapes(n: NodeBuilder) -> Mapped:
    """Before: ShapeN. After: ShapeN."""
    dtype = int(n.attr("out_type", DataType.DT_INT32))
    return n.add("ShapeN", *n.inputs, n_outputs=len(n.inputs), dtype=dtype)


@maps("Size", inputs=1)
def size(n: NodeBuilder) -> Mapped:
    """Before: Size. After: Size with the type of out_type."""
    return n.add("Size", n.need(0), dtype=int(n.attr("out_type", DataType.DT_INT32)))


@maps("Reshape", inputs=2)
def reshape(n: NodeBuilder) -> Mapped:
    """Before: Reshape. After: Reshape; a 0 is a dim without elements here."""
    return n.add("Reshape", *n.inputs, _x_allowzero=1)


@maps("Squeeze", inputs=1)
def squeeze(n: NodeBuilder) -> Mapped:
    """Before: Squeeze with squeeze_dims or axis. After: Squeeze."""
    if n.has_attr("axis") and n.has_attr("squeeze_dims"):
        raise n.fail("attributes axis and squeeze_dims are two names for the same, and both are given")
    return n.add("Squeeze", n.need(0), axis=n.numbers("axis" if n.has_attr("axis") else "squeeze_dims", []))


# -- joining -----------------------------------------------------------------------------------------------------------
@maps("Pack", inputs=(1, None))
def pack(n: NodeBuilder) -> Mapped:
    """Before: Pack. After: Pack."""
    return n.add("Pack", *n.inputs, axis=n.attr("axis", 0), N=len(n.inputs))


@maps("Concat", inputs=(2, None))
def concat(n: NodeBuilder) -> Mapped:
    """Before: Concat(axis, x, ...). After: Concat, the axis first."""
    return n.add("Concat", *n.inputs, N=len(n.inputs) - 1)


@maps("ConcatV2", inputs=(2, None))
def concat_v2(n: NodeBuilder) -> Mapped:
    """Before: ConcatV2(x, ..., axis). After: ConcatV2, the axis last."""
    return n.add("ConcatV2", *n.inputs, N=len(n.inputs) - 1)


@maps("ParallelConcat", inputs=(1, None))
def parallel_concat(n: NodeBuilder) -> Mapped:
    """Before: ParallelConcat along axis 0. After: ConcatD."""
    return n.add("ConcatD", *n.inputs, concat_dim=0, N=len(n.inputs))


# -- cutting -----------------------------------------------------------------------------------------------------------
MAX_PARTS = 1 << 16
"""More outputs no node has; a bound for what files claim."""


def _count(n: NodeBuilder, name: str) -> int:
    count: int = n.attr(name, int)
    if not 0 <= count <= MAX_PARTS:
        raise n.fail(f"attribute {name} is {count}, but must be between 0 and {MAX_PARTS}")
    return count


@maps("Unpack", inputs=1)
def unpack(n: NodeBuilder) -> Mapped:
    """Before: Unpack. After: Unpack."""
    count = _count(n, "num")
    return n.add("Unpack", n.need(0), n_outputs=count, num=count, axis=n.attr("axis", 0))


@maps("Split", inputs=2)
def split(n: NodeBuilder) -> Mapped:
    """Before: Split(axis, x). After: Split, the axis first."""
    count = _count(n, "num_split")
    return n.add("Split", *n.inputs, n_outputs=count, num_split=count)


@maps("SplitV", inputs=3)
def split_by_sizes(n: NodeBuilder) -> Mapped:
    """Before: SplitV(x, sizes, axis). After: SplitV."""
    count = _count(n, "num_split")
    return n.add("SplitV", *n.inputs, n_outputs=count, num_split=count)
