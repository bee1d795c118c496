"""Choosing by condition, finding positions, ranking.

Index outputs have the types that GE gives them (TopK's are int32, for one): where another is promised, a Cast follows.

Extra attributes, for meaning that the GE operator lacks:
  ArgMaxV2, ArgMin, ArgMaxD  ``_x_select_last_index``: 1 answers the last of equal elements (ONNX), otherwise the first
  OneHot                     ``_x_wrap_negative``: 1 counts indices -depth..-1 from the end (ONNX always does);
                             otherwise, as for other indices out of range, nothing is hot

``XUnique`` is ours: ONNX's Unique with its four outputs and its axis (attributes ``sorted``, ``axis``; without axis the
tensor is flattened). ``indices`` are first occurrences.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ge.graph.types import DataType
from ge.ops.inference import axis_in_rank, broadcast_shapes, common_type
from ge.ops.registry import InferContext, InferFunction, Misfit, OutputSpec, operator

INT64 = DataType.DT_INT64
INT32 = DataType.DT_INT32


# -- by condition ------------------------------------------------------------------------------------------------------
def _select_v2(ctx: InferContext) -> Sequence[OutputSpec]:
    dtype = common_type(ctx, [ctx.desc("then"), ctx.desc("else")])
    return [(broadcast_shapes(ctx, [ctx.shape(name) for name in ("condition", "then", "else")]), dtype)]


@operator("SelectV2(condition, then, else) -> result", infer=_select_v2, exact_types=True)
def select_v2(op: Any, condition: Any, then: Any, otherwise: Any) -> Any:
    return np.where(condition, then, otherwise)


def _select(ctx: InferContext) -> Sequence[OutputSpec]:
    dtype = common_type(ctx, [ctx.desc("x1"), ctx.desc("x2")])
    condition, shapes = ctx.shape("condition"), [ctx.shape("x1"), ctx.shape("x2")]
    is_per_row = len(condition) == 1 and not condition.is_unknown_rank() and len(shapes[0]) > 1
    return [(broadcast_shapes(ctx, shapes if is_per_row else [condition, *shapes]), dtype)]


@operator("Select(condition, x1, x2)", infer=_select, exact_types=True)
def select(op: Any, condition: Any, x1: Any, x2: Any) -> Any:
    """Choose elements, or whole rows when the condition is a vector (TensorFlow's first Select)."""
    if condition.ndim == 1 and x1.ndim > 1:
        condition = condition.reshape(-1, *[1] * (x1.ndim - 1))
    return np.where(condition, x1, x2)


def _positions(x: Any) -> Any:
    """Return the coordinates of non-zero elements, [count, rank]; [count, 0] for a scalar."""
    is_set = x.astype(bool)  # of strings: those that are not empty
    return np.argwhere(is_set) if x.ndim else np.zeros((int(is_set), 0), np.int64)


def _non_zero(ctx: InferContext) -> Sequence[OutputSpec]:
    x = ctx.shape("x")
    rank = -1 if x.is_unknown_rank() else len(x)
    return [([rank, -1] if ctx.op.transpose else [-1, rank], DataType(ctx.op.dtype))]


@operator("NonZero(x) [transpose:b=F dtype:t=INT64]", infer=_non_zero)
def non_zero(op: Any, x: Any) -> Any:
    found = _positions(x)
    return found.T if op.transpose else found


def _where(ctx: InferContext) -> Sequence[OutputSpec]:
    x = ctx.shape("x")
    return [([-1, -1 if x.is_unknown_rank() else len(x)], INT64)]


@operator("Where(x)", infer=_where)
def where(op: Any, x: Any) -> Any:
    return _positions(x)


# -- by index ----------------------------------------------------------------------------------------------------------
def _one_hot(ctx: InferContext) -> Sequence[OutputSpec]:
    x, depth = ctx.shape("x"), ctx.ints("depth")
    dtype = common_type(ctx, [ctx.desc("on_value"), ctx.desc("off_value")])
    if depth and depth[0] < 0:
        raise ctx.fail(f"depth {depth[0]} is negative", value=depth[0])
    if x.is_unknown_rank():
        return [(x, dtype)]
    axis = axis_in_rank(ctx.op.axis, len(x) + 1)
    return [((*x[:axis], depth[0] if depth else -1, *x[axis:]), dtype)]


@operator("OneHot(x, depth, on_value, off_value) [axis:i=-1]", infer=_one_hot, exact_types=True)
def one_hot(op: Any, x: Any, depth: Any, on_value: Any, off_value: Any) -> Any:
    count, axis = int(depth.item()), axis_in_rank(op.axis, x.ndim + 1)
    wanted = np.expand_dims(x.astype(np.int64), axis)
    if op.get("_x_wrap_negative", 0):
        wanted = np.where(wanted < 0, wanted + count, wanted)
    places = np.arange(count).reshape(-1, *[1] * (x.ndim - axis))
    return np.where(wanted == places, on_value.reshape(()), off_value.reshape(()))


def _in_top_k(ctx: InferContext) -> Sequence[OutputSpec]:
    return [(ctx.shape("x2"), DataType.DT_BOOL)]


@operator("InTopK(x1, x2) [k:i!]", infer=_in_top_k)
def in_top_k(op: Any, x1: Any, x2: Any) -> Any:
    """Tell per row of ``x1`` [n, classes] whether class ``x2`` [n] is among the ``k`` best, ties included."""
    targets = x2.astype(np.int64)
    is_class = (targets >= 0) & (targets < x1.shape[1])
    mine = x1[np.arange(len(x1)), np.where(is_class, targets, 0)]
    return is_class & np.isfinite(mine) & (np.sum(x1 > mine[:, None], axis=1) < op.k)


# -- ranking -----------------------------------------------------------------------------------------------------------
def _sortable(x: Any) -> Any:
    return x if x.dtype.isbuiltin == 1 else x.astype(np.float32)


def ranked(x: Any, axis: int, *, is_descending: bool) -> Any:
    """Return the positions that sort ``x`` along ``axis``; equal elements keep their order, NaN counts as largest."""
    keys = _sortable(x)
    if not is_descending:
        return np.argsort(keys, axis, kind="stable")
    backwards = np.flip(np.argsort(np.flip(keys, axis), axis, kind="stable"), axis)
    return keys.shape[axis] - 1 - backwards


def _top_k(ctx: InferContext) -> Sequence[OutputSpec]:
    x, count = ctx.shape("x"), ctx.ints("k")
    if x.is_unknown_rank():
        return [(x, ctx.dtype("x")), (x, INT32)]
    axis = axis_in_rank(ctx.op.dim, len(x))
    kept = count[0] if count else -1
    if count and (kept < 0 or (x[axis] != -1 and kept > x[axis])):
        raise ctx.fail(f"k {kept} is outside 0..{x[axis]}, the dim {axis} of shape {x}", value=kept)
    dims = (*x[:axis], kept, *x[axis + 1 :])
    return [(dims, ctx.dtype("x")), (dims, INT32)]


@operator(
    "TopK(x, k) -> values, indices [sorted:b=T largest:b=T dim:i=-1]",
    infer=_top_k,
    exact_types=True,
)
def top_k(op: Any, x: Any, k: Any) -> Any:
    """Return the best elements, best first (whether or not ``sorted`` asks for it); the earlier of equals first."""
    axis, count = axis_in_rank(op.dim, x.ndim), int(k.item())
    if not 0 <= count <= x.shape[axis]:
        raise Misfit(f"k {count} is outside 0..{x.shape[axis]}")
    best = np.take(ranked(x, axis, is_descending=op.largest), np.arange(count), axis)
    return np.take_along_axis(x, best, axis), best


def _arg(axis_of: Any) -> InferFunction:
    def infer(ctx: InferContext) -> Sequence[OutputSpec]:
        x, axes = ctx.shape("x"), axis_of(ctx)
        dtype = DataType(ctx.op.dtype)
        if x.is_unknown_rank():
            return [(x, dtype)]
        if not axes:
            return [([-1] * (len(x) - 1), dtype)]
        axis = axis_in_rank(axes[0], len(x))
        if x[axis] == 0:
            raise ctx.fail(f"dim {axis} of shape {x} is empty")
        return [((*x[:axis], *x[axis + 1 :]), dtype)]

    return infer


_by_dimension = _arg(lambda ctx: ctx.ints("dimension"))


def _best(op: Any, x: Any, axis: int, function: Any) -> Any:
    if not op.get("_x_select_last_index", 0):
        return function(x, axis)
    return x.shape[axis] - 1 - function(np.flip(x, axis), axis)


@operator("ArgMaxV2(x, dimension) [dtype:t=INT64]", infer=_by_dimension)
def arg_max_v2(op: Any, x: Any, dimension: Any) -> Any:
    return _best(op, x, int(dimension.item()), np.argmax)


@operator("ArgMin(x, dimension) [dtype:t=INT64]", infer=_by_dimension)
def arg_min(op: Any, x: Any, dimension: Any) -> Any:
    return _best(op, x, int(dimension.item()), np.argmin)


@operator("ArgMaxD(x) [dimension:i! dtype:t=INT64]", infer=_arg(lambda ctx: [ctx.op.dimension]))
def arg_max_d(op: Any, x: Any) -> Any:
    return _best(op, x, op.dimension, np.argmax)


# -- distinct elements -------------------------------------------------------------------------------------------------
def _distinct(x: Any, axis: int | None, is_sorted: bool) -> tuple[Any, Any, Any, Any]:
    """Return distinct elements (or slices along ``axis``), first places, place of each original among them, counts."""
    flat = np.reshape(x, x.size) if axis is None else x
    keys = flat if flat.dtype.kind == "O" else _sortable(flat)
    if keys.dtype.kind == "O":
        keys = keys.astype(str)
    _, first, inverse, counts = np.unique(keys, return_index=True, return_inverse=True, return_counts=True, axis=axis)
    inverse = inverse.reshape(keys.shape[0 if axis is None else axis])
    if not is_sorted:
        order = np.argsort(first, kind="stable")
        first, counts = first[order], counts[order]
        inverse = np.argsort(order, kind="stable")[inverse]
    return np.take(flat, first, 0 if axis is None else axis), first, inverse, counts


def _unique_with_counts(ctx: InferContext) -> Sequence[OutputSpec]:
    out_type = DataType(ctx.op.out_idx)
    inverse = ctx.shape("x") if ctx.op.return_inverse else [0]
    return [([-1], ctx.dtype("x")), (inverse, out_type), ([-1] if ctx.op.return_counts else [0], out_type)]


@operator(
    "UniqueWithCountsAndSorting(x) -> y, indices, counts "
    "[return_inverse:b=F return_counts:b=F sorted:b=T out_idx:t=INT64]",
    infer=_unique_with_counts,
    exact_types=True,
)
def unique_with_counts(op: Any, x: Any) -> Any:
    """``indices`` tells for every element of ``x`` where it is in ``y``. Outputs that are not asked for are empty."""
    y, _, inverse, counts = _distinct(x, None, op.sorted)
    nothing = np.zeros(0, np.int64)
    return y, inverse.reshape(x.shape) if op.return_inverse else nothing, counts if op.return_counts else nothing


def _x_unique(ctx: InferContext) -> Sequence[OutputSpec]:
    x, axis = ctx.shape("x"), ctx.op.get("axis")
    if axis is None:
        return [([-1], ctx.dtype("x")), ([-1], INT64), ([x.elements], INT64), ([-1], INT64)]
    if x.is_unknown_rank():
        return [(x, ctx.dtype("x")), ([-1], INT64), ([-1], INT64), ([-1], INT64)]
    axis = axis_in_rank(axis, len(x))
    return [((*x[:axis], -1, *x[axis + 1 :]), ctx.dtype("x")), ([-1], INT64), ([x[axis]], INT64), ([-1], INT64)]


@operator("XUnique(x) -> y, indices, inverse_indices, counts [sorted:i=1]", infer=_x_unique, exact_types=True)
def x_unique(op: Any, x: Any) -> Any:
    axis = op.get("axis")
    return _distinct(x, None if axis is None else axis_in_rank(axis, x.ndim), bool(op.sorted))


def _unique(ctx: InferContext) -> Sequence[OutputSpec]:
    return [([-1], ctx.dtype("x")), (ctx.shape("x"), DataType(ctx.op.out_idx))]


@operator("Unique(x) -> y, idx [out_idx:t=INT32]", infer=_unique, exact_types=True)
def unique(op: Any, x: Any) -> Any:
    """Distinct elements of a vector in order of first occurrence (TensorFlow)."""
    y, _, inverse, _ = _distinct(x, None, is_sorted=False)
    return y, inverse.reshape(x.shape)
