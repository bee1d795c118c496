"""Choosing by condition, finding positions, ranking."""

from __future__ import annotations

import numpy as np

from ge.graph import DataType, NodeOut
from parsers.onnx.mapping import Mapped, maps, maps_rows
from parsers.onnx.node_builder import NodeBuilder

maps_rows({"Where": "SelectV2"})


@maps("ArgMax")
def arg_max(n: NodeBuilder) -> Mapped:
    """Before: ArgMax. After: Const(dimension) -> ArgMaxV2 [-> ExpandDims]."""
    return _arg(n, "ArgMaxV2")


@maps("ArgMin")
def arg_min(n: NodeBuilder) -> Mapped:
    """Before: ArgMin. After: Const(dimension) -> ArgMin [-> ExpandDims]."""
    return _arg(n, "ArgMin")


def _arg(n: NodeBuilder, type: str) -> Mapped:
    axis = n.index("Const", n.attr("axis"))
    extra = {"_x_select_last_index": 1} if n.attr("select_last_index", 0) else {}
    keeps = bool(n.attr("keepdims"))
    found = n.add(type, n.need(0), axis, role=type if keeps else "", dtype=DataType.DT_INT64, **extra)
    return n.add("ExpandDims", found, axis) if keeps else found


@maps("TopK")
def top_k(n: NodeBuilder) -> Mapped:
    """Before: TopK. After: TopK, its int32 indices cast to int64; k is a Const before opset 10."""
    count = n.index("K", n.attr("k")) if n.since_version < 10 else n.need(1)
    node = n.add(
        "TopK",
        n.need(0),
        count,
        sorted=bool(n.attr("sorted", 1)),
        largest=bool(n.attr("largest", 1)),
        dim=n.attr("axis"),
    )
    indices = n.add("Cast", node.output(1), role="Cast", dst_type=int(DataType.DT_INT64)) if n.wants(1) else node
    return [node.output(0), indices.output(0)]


@maps("NonZero")
def non_zero(n: NodeBuilder) -> Mapped:
    """Before: NonZero. After: NonZero(transpose true, int64)."""
    return n.add("NonZero", n.need(0), transpose=True, dtype=DataType.DT_INT64)


@maps("OneHot")
def one_hot(n: NodeBuilder) -> Mapped:
    """Before: OneHot(indices, depth, [off, on]). After: Split(values) -> OneHot with ``_x_wrap_negative``."""
    axis = n.index("Const", 0)
    off, on = n.add("Split", axis, n.need(2), role="Split", n_outputs=2, num_split=2).outputs()
    depth = n.cast(n.need(1), DataType.DT_INT64, role="Depth")
    return n.add("OneHot", n.need(0), depth, on, off, axis=n.attr("axis"), _x_wrap_negative=1)


@maps("Unique")
def unique(n: NodeBuilder) -> Mapped:
    """Before: Unique. After: XUnique with the same four outputs."""
    axis = n.attr("axis")
    extra = {} if axis is None else {"axis": axis}
    return n.add("XUnique", n.need(0), sorted=n.attr("sorted"), **extra)


@maps("EyeLike")
def eye_like(n: NodeBuilder) -> Mapped:
    """Before: EyeLike(x, k). After: Fill(ones) -> MatrixDiagV2; a diagonal outside of the matrix leaves Fill(zeros).

    Without a known size row and column numbers are compared.
    """
    x = n.need(0)
    wanted = n.attr("dtype")
    dtype = n.dtype(x) if wanted is None else n.element_type(wanted, "dtype")
    shape = n.shape(x)
    if len(shape) != 2:
        raise n.fail(f"its input has the shape {shape}; a matrix is needed")
    rows, columns = shape
    k = n.attr("k")
    if min(shape) < 0:
        return _diagonal_of_open_size(n, x, k, dtype)
    length = min(rows + min(k, 0), columns - max(k, 0))
    if length <= 0:
        return n.add("Fill", n.int64(shape, "Shape"), n.scalar("Zero", 0, dtype))
    ones = n.add("Fill", n.int64([length], "Length"), n.scalar("One", 1, dtype), role="Fill")
    numbers: list[NodeOut] = [n.index(role, v) for role, v in (("K", k), ("Rows", rows), ("Columns", columns))]
    return n.add("MatrixDiagV2", ones, *numbers, n.scalar("Padding", 0, dtype))


def _diagonal_of_open_size(n: NodeBuilder, x: NodeOut, k: int, dtype: DataType) -> Mapped:
    sizes = n.add("Shape", x, role="Shape", dtype=int(DataType.DT_INT64))
    ends = n.add("Unpack", sizes, role="Unpack", n_outputs=2, num=2).outputs()
    zero, one = (n.scalar(role, value, DataType.DT_INT64) for role, value in (("Zero", 0), ("One", 1)))
    rows, columns = (n.add("Range", zero, end, one, role="Range") for end in ends)
    shifted = n.add("Add", rows, n.scalar("K", k, DataType.DT_INT64), role="Add")
    on_diagonal = n.add("Equal", n.add("Unsqueeze", shifted, role="Unsqueeze", axes=[1]), columns, role="Equal")
    return n.add("Cast", on_diagonal, dst_type=int(dtype))


@maps("TensorScatter")
def tensor_scatter(n: NodeBuilder) -> Mapped:
    """Before: TensorScatter(cache, update, write_indices). After: index arithmetic -> ScatterElements."""
    cache, update = n.need(0), n.need(1)
    shape, rank = n.shape(update), n.rank(1)
    axis = n.axis(n.attr("axis"), rank)
    if shape.is_unknown_shape() or n.shape(cache)[axis] < 0:
        raise n.fail("the shapes of its cache and update must be known")
    steps = np.arange(shape[axis], dtype=np.int64).reshape([-1 if i == axis else 1 for i in range(rank)])
    places = n.const("Steps", steps)
    starts = n.input(2)
    if starts is not None:
        column = n.add("Reshape", starts, n.int64([-1, *[1] * (rank - 1)], "Column"), role="Reshape")
        places = n.add("Add", column, places, role="Add").output()
    if n.choice("mode", "linear", "circular") == "circular":
        size = n.const("Size", np.asarray(n.shape(cache)[axis], np.int64))
        places = n.add("Mod", places, size, role="Mod", _x_fmod=0).output()
    indices = n.add("BroadcastTo", places, n.int64(shape, "Shape"), role="BroadcastTo")
    return n.add("ScatterElements", cache, indices, update, axis=axis, reduction="none")
