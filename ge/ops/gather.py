"""Reading elements by index.

Indices may be negative (counted from the end), whatever ``negative_index_support`` says; outside the dim they are an
error.

Extra attributes, for meaning that the GE operator lacks:
  GatherNd  ``_x_batch_dims`` (default 0): leading dims that data and indices share (ONNX's batch_dims)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ge.graph.tensor_desc import Shape
from ge.ops.inference import axis_in_rank, dims_agree
from ge.ops.registry import InferContext, Misfit, OutputSpec, operator


def checked_indices(indices: Any, dim: int) -> Any:
    """Return ``indices`` in 0..dim-1 as int64. Raises ``Misfit`` for one outside."""
    wide = np.asarray(indices).astype(np.int64)
    if wide.size and (wide.min() < -dim or wide.max() >= dim):
        raise Misfit(f"index {wide.min() if wide.min() < -dim else wide.max()} is outside a dim of {dim}")
    return np.where(wide < 0, wide + dim, wide)


def _gathered(x: Shape, indices: Shape, axis: int | None, batch_dims: int) -> list[int]:
    if x.is_unknown_rank() or indices.is_unknown_rank():
        return [-2]
    batch = batch_dims + len(indices) if batch_dims < 0 else batch_dims
    if not 0 <= batch <= min(len(x), len(indices)):
        raise Misfit(f"batch_dims {batch_dims} do not fit shapes {x} and {indices}")
    for mine, other in zip(x[:batch], indices[:batch], strict=True):
        if not dims_agree(mine, other):
            raise Misfit(f"the first {batch} dims of shapes {x} and {indices} differ")
    if axis is None:
        return [-1] * (len(x) + len(indices) - 1 - batch)
    axis = axis_in_rank(axis, len(x))
    if axis < batch:
        raise Misfit(f"axis {axis} is one of the {batch} batch dims")
    shared = [max(mine, other) for mine, other in zip(x[:batch], indices[:batch], strict=True)]
    return [*shared, *x[batch:axis], *indices[batch:], *x[axis + 1 :]]


def _gather_v2(ctx: InferContext) -> Sequence[OutputSpec]:
    axes = ctx.ints("axis")
    dims = _gathered(ctx.shape("x"), ctx.shape("indices"), axes[0] if axes else None, ctx.op.batch_dims)
    return [(dims, ctx.dtype("x"))]


def _gather(ctx: InferContext) -> Sequence[OutputSpec]:
    batch = ctx.op.batch_dims
    axis = batch + len(ctx.shape("indices")) if batch < 0 else batch
    return [(_gathered(ctx.shape("x"), ctx.shape("indices"), axis, batch), ctx.dtype("x"))]


def _take(x: Any, indices: Any, axis: int, batch_dims: int) -> Any:
    axis = axis_in_rank(axis, x.ndim)
    batch = batch_dims + indices.ndim if batch_dims < 0 else batch_dims
    dims = _gathered(Shape(x.shape), Shape(indices.shape), axis, batch)
    found = checked_indices(indices, x.shape[axis])
    if batch == 0:
        return np.take(x, found, axis)
    count = math.prod(x.shape[:batch])
    before, after = math.prod(x.shape[batch:axis]), math.prod(x.shape[axis + 1 :])
    rows = x.reshape(count, before, x.shape[axis], after)
    picked = rows[np.arange(count)[:, None], :, found.reshape(count, math.prod(indices.shape[batch:])), :]
    return picked.transpose(0, 2, 1, 3).reshape(dims)


_OPTIONS = "batch_dims:i=0 is_preprocessed:b=F negative_index_support:b=F"


@operator(f"GatherV2(x, indices, axis) [{_OPTIONS}]", infer=_gather_v2, exact_types=True)
def gather_v2(op: Any, x: Any, indices: Any, axis: Any) -> Any:
    return _take(x, indices, int(axis.item()), op.batch_dims)


@operator(f"Gather(x, indices) [validate_indices:b=T {_OPTIONS}]", infer=_gather, exact_types=True)
def gather(op: Any, x: Any, indices: Any) -> Any:
    batch = op.batch_dims + indices.ndim if op.batch_dims < 0 else op.batch_dims
    return _take(x, indices, batch, batch)


# -- GatherElements ----------------------------------------------------------------------------------------------------
def check_element_indices(x: Sequence[int], indices: Sequence[int], axis: int) -> int:
    """Return ``axis`` in 0..rank-1. Raises ``Misfit`` unless ``indices`` fit into ``x`` beside that axis."""
    axis = axis_in_rank(axis, len(x))
    fits = len(x) == len(indices)
    for at, (dim, count) in enumerate(zip(x, indices, strict=False)):
        fits = fits and (at == axis or -1 in (dim, count) or count <= dim)
    if not fits:
        raise Misfit(f"indices of shape {list(indices)} do not fit into shape {list(x)} beside axis {axis}")
    return axis


def element_index(indices: Any, axis: int, dim: int) -> tuple[Any, ...]:
    """Return the numpy index that addresses elements along ``axis``, each at its own place beside it."""
    places = list(np.ogrid[tuple(slice(0, count) for count in indices.shape)])
    places[axis] = checked_indices(indices, dim)
    return tuple(places)


def _gather_elements(ctx: InferContext) -> Sequence[OutputSpec]:
    x, indices = ctx.shape("x"), ctx.shape("index")
    if not x.is_unknown_rank() and not indices.is_unknown_rank():
        check_element_indices(x, indices, ctx.op.dim)
    return [(indices, ctx.dtype("x"))]


@operator("GatherElements(x, index) [dim:i=0]", infer=_gather_elements, exact_types=True)
def gather_elements(op: Any, x: Any, index: Any) -> Any:
    axis = check_element_indices(x.shape, index.shape, op.dim)
    return x[element_index(index, axis, x.shape[axis])]


# -- GatherNd ----------------------------------------------------------------------------------------------------------
def row_numbers(dims: Sequence[int], indices: Any) -> Any:
    """Return the flat row that each coordinate (last axis of ``indices``) names in leading dims ``dims``."""
    rows = np.zeros(indices.shape[:-1], np.int64)
    for axis, dim in enumerate(dims):
        rows = rows * dim + checked_indices(indices[..., axis], dim)
    return rows


def _gathered_nd(x: Shape, indices: Shape, batch: int) -> list[int]:
    if x.is_unknown_rank() or indices.is_unknown_rank() or (len(indices) and indices[-1] == -1):
        return [-2]
    if not indices or not 0 <= batch < len(indices) or batch + indices[-1] > len(x):
        raise Misfit(f"indices of shape {indices} with {batch} batch dims do not fit shape {x}")
    for mine, other in zip(x[:batch], indices[:batch], strict=True):
        if not dims_agree(mine, other):
            raise Misfit(f"the first {batch} dims of shapes {x} and {indices} differ")
    shared = [max(mine, other) for mine, other in zip(x[:batch], indices[:batch], strict=True)]
    return [*shared, *indices[batch:-1], *x[batch + indices[-1] :]]


@operator(
    "GatherNd(x, indices) [negative_index_support:b=F]",
    infer=lambda ctx: [
        (_gathered_nd(ctx.shape("x"), ctx.shape("indices"), ctx.op.get("_x_batch_dims", 0)), ctx.dtype("x"))
    ],
    exact_types=True,
)
def gather_nd(op: Any, x: Any, indices: Any) -> Any:
    batch = op.get("_x_batch_dims", 0)
    dims = _gathered_nd(Shape(x.shape), Shape(indices.shape), batch)
    depth = batch + indices.shape[-1]
    rows = row_numbers(x.shape[batch:depth], indices)
    count, per_batch = math.prod(x.shape[:batch]), math.prod(x.shape[batch:depth])
    rows = rows.reshape(count, math.prod(indices.shape[batch:-1])) + np.arange(count)[:, None] * per_batch
    table = x.reshape(count * per_batch, *x.shape[depth:])
    return table[rows].reshape(dims)
