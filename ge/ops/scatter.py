"""Writing elements by index: the result is a copy of the first input with updates in it.

Indices may be negative (counted from the end); outside the dim they are an error. Where an element is named more than
once, the last update wins, or all are combined by the reduction, in order, in float32 for narrower floats.

``XScatterNdMul`` is ours: GE has no operator for ONNX's ScatterND with reduction mul.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ge.graph.tensor_desc import Shape
from ge.ops.creation import wanted_shape
from ge.ops.gather import check_element_indices, element_index, row_numbers
from ge.ops.inference import dims_agree, unify
from ge.ops.registry import InferContext, InferFunction, Misfit, OutputSpec, operator

_COMBINE = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "max": np.maximum, "min": np.minimum}


def _write(target: Any, index: Any, updates: Any, reduction: str) -> None:
    if reduction == "none":
        target[index] = updates
    else:
        _COMBINE[reduction].at(target, index, updates)


# -- ScatterElements ---------------------------------------------------------------------------------------------------
def _scatter_elements(ctx: InferContext) -> Sequence[OutputSpec]:
    data, indices = ctx.shape("data"), unify(ctx, [ctx.shape("indices"), ctx.shape("updates")])
    if ctx.op.reduction not in ("none", *_COMBINE):
        raise ctx.fail(f"reduction {ctx.op.reduction} is none of none, {', '.join(_COMBINE)}", value=ctx.op.reduction)
    if not data.is_unknown_rank() and not indices.is_unknown_rank():
        check_element_indices(data, indices, ctx.op.axis)
    return [(data, ctx.dtype("data"))]


@operator("ScatterElements(data, indices, updates) [axis:i=0 reduction:s=none]", infer=_scatter_elements)
def scatter_elements(op: Any, data: Any, indices: Any, updates: Any) -> Any:
    axis = check_element_indices(data.shape, indices.shape, op.axis)
    result = data.copy()
    _write(result, element_index(indices, axis, data.shape[axis]), updates, op.reduction)
    return result


# -- ScatterNd ---------------------------------------------------------------------------------------------------------
def _check_nd(data: Shape, indices: Shape, updates: Shape) -> None:
    if data.is_unknown_rank() or indices.is_unknown_rank() or (indices and indices[-1] == -1):
        return
    if not indices or indices[-1] > len(data):
        raise Misfit(f"indices of shape {indices} do not fit shape {data}")
    wanted = [*indices[:-1], *data[indices[-1] :]]
    fits = len(updates) == len(wanted) and all(map(dims_agree, updates, wanted))
    if not fits and not updates.is_unknown_rank():
        raise Misfit(f"updates of shape {updates} do not fit: the shape {wanted} is wanted")


def _into(name: str) -> InferFunction:
    def infer(ctx: InferContext) -> Sequence[OutputSpec]:
        _check_nd(ctx.shape(name), ctx.shape("indices"), ctx.shape("updates"))
        return [(ctx.shape(name), ctx.dtype(name))]

    return infer


def _scatter_nd(data: Any, indices: Any, updates: Any, reduction: str) -> Any:
    _check_nd(Shape(data.shape), Shape(indices.shape), Shape(updates.shape))
    depth = indices.shape[-1]
    result = data.copy()
    inner = data.shape[depth:]
    table = result.reshape(math.prod(data.shape[:depth]), *inner)  # a view: the copy is contiguous
    rows = row_numbers(data.shape[:depth], indices).reshape(math.prod(indices.shape[:-1]))
    _write(table, rows, updates.reshape(len(rows), *inner), reduction)
    return result


def _scatter_into_var(type: str, reduction: str) -> None:
    @operator(f"{type}(var, indices, updates) -> var [use_locking:b=F]", infer=_into("var"))
    def scatter(op: Any, var: Any, indices: Any, updates: Any) -> Any:
        return _scatter_nd(var, indices, updates, reduction)


_scatter_into_var("ScatterNdUpdate", "none")
_scatter_into_var("ScatterNdAdd", "add")
_scatter_into_var("ScatterNdSub", "sub")
_scatter_into_var("ScatterNdMax", "max")
_scatter_into_var("ScatterNdMin", "min")
_scatter_into_var("XScatterNdMul", "mul")


@operator("TensorScatterUpdate(x, indices, updates)", infer=_into("x"))
def tensor_scatter_update(op: Any, x: Any, indices: Any, updates: Any) -> Any:
    return _scatter_nd(x, indices, updates, "none")


def _new_tensor(ctx: InferContext) -> Sequence[OutputSpec]:
    dims = Shape(wanted_shape(ctx, "shape"))
    _check_nd(dims, ctx.shape("indices"), ctx.shape("x"))
    return [(dims, ctx.dtype("x"))]


@operator("ScatterNd(indices, x, shape)", infer=_new_tensor)
def scatter_nd(op: Any, indices: Any, x: Any, shape: Any) -> Any:
    return _scatter_nd(np.zeros(np.ravel(shape), x.dtype), indices, x, "add")


# -- sums of segments --------------------------------------------------------------------------------------------------
def _segments(ctx: InferContext, count: int, ids: Shape) -> Sequence[OutputSpec]:
    x = ctx.shape("x")
    if x.is_unknown_rank() or ids.is_unknown_rank():
        return [([-2], ctx.dtype("x"))]
    unify(ctx, [ids, Shape(x[: len(ids)])])
    return [((count, *x[len(ids) :]), ctx.dtype("x"))]


def _segment_sum(ctx: InferContext) -> Sequence[OutputSpec]:
    ids = ctx.ints("segment_ids")
    count = -1 if ids is None else ids[-1] + 1 if ids else 0
    return _segments(ctx, count, ctx.shape("segment_ids"))


def _unsorted_segment_sum(ctx: InferContext) -> Sequence[OutputSpec]:
    count = ctx.ints("num_segments")
    return _segments(ctx, count[0] if count else -1, ctx.shape("segment_ids"))


def _sum_segments(x: Any, ids: Any, count: int) -> Any:
    rows = ids.reshape(ids.size).astype(np.int64)
    if rows.size and rows.max() >= count:
        raise Misfit(f"segment {rows.max()} is outside 0..{count - 1}")
    values = x.reshape(rows.size, *x.shape[ids.ndim :])
    result = np.zeros((count, *values.shape[1:]), np.float64 if x.dtype.kind == "f" else x.dtype)
    np.add.at(result, rows[rows >= 0], values[rows >= 0])
    return result


@operator("SegmentSum(x, segment_ids)", infer=_segment_sum)
def segment_sum(op: Any, x: Any, segment_ids: Any) -> Any:
    if segment_ids.size and (np.any(np.diff(segment_ids) < 0) or segment_ids[0] < 0):
        raise Misfit("segment_ids are not sorted")
    return _sum_segments(x, segment_ids, int(segment_ids[-1]) + 1 if segment_ids.size else 0)


@operator("UnsortedSegmentSum(x, segment_ids, num_segments)", infer=_unsorted_segment_sum)
def unsorted_segment_sum(op: Any, x: Any, segment_ids: Any, num_segments: Any) -> Any:
    return _sum_segments(x, segment_ids, int(num_segments.item()))
