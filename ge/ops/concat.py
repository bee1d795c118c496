"""Joining tensors along an axis and splitting them.

Extra attributes, for meaning that the GE operator lacks:
  Split, SplitD  ``_x_num_outputs``: given (any value), a dim that does not divide evenly leaves a smaller last part, as
                 ONNX says for its attribute num_outputs; otherwise that is an error
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ge.ops.inference import axis_in_rank, common_type, unify
from ge.ops.registry import InferContext, Misfit, OutputSpec, operator


# -- Concat ------------------------------------------------------------------------------------------------------------
def _joined(ctx: InferContext, axis: int | None) -> Sequence[OutputSpec]:
    descs = ctx.descs("x")
    dtype = common_type(ctx, descs)
    shapes = [desc.origin_shape for desc in descs]
    ranked = [shape for shape in shapes if not shape.is_unknown_rank()]
    if not ranked:
        return [([-2], dtype)]
    if axis is None:
        return [([-1] * len(ranked[0]), dtype)]
    axis = axis_in_rank(axis, len(ranked[0]))
    dims = list(unify(ctx, shapes, ignore_axis=axis))
    parts = [shape[axis] for shape in ranked]
    dims[axis] = -1 if -1 in parts or len(ranked) < len(shapes) else sum(parts)
    return [(dims, dtype)]


def _concat_by_attribute(ctx: InferContext) -> Sequence[OutputSpec]:
    return _joined(ctx, ctx.op.concat_dim)


def _concat_by_input(ctx: InferContext) -> Sequence[OutputSpec]:
    axes = ctx.ints("concat_dim")
    return _joined(ctx, axes[0] if axes else None)


@operator("ConcatD(x*) [concat_dim:i! N:i=1]", infer=_concat_by_attribute, exact_types=True)
def concat_d(op: Any, x: list[Any]) -> Any:
    return np.concatenate(x, op.concat_dim)


@operator("Concat(concat_dim, x*) [N:i=1]", infer=_concat_by_input, exact_types=True)
def concat(op: Any, concat_dim: Any, x: list[Any]) -> Any:
    return np.concatenate(x, int(concat_dim.item()))


@operator("ConcatV2(x*, concat_dim) [N:i=1]", infer=_concat_by_input, exact_types=True)
def concat_v2(op: Any, x: list[Any], concat_dim: Any) -> Any:
    return np.concatenate(x, int(concat_dim.item()))


def _pack(ctx: InferContext) -> Sequence[OutputSpec]:
    descs = ctx.descs("x")
    dtype = common_type(ctx, descs)
    dims = unify(ctx, [desc.origin_shape for desc in descs])
    if dims.is_unknown_rank():
        return [(dims, dtype)]
    axis = axis_in_rank(ctx.op.axis, len(dims) + 1)
    return [((*dims[:axis], len(descs), *dims[axis:]), dtype)]


@operator("Pack(x*) [axis:i=0 N:i=1]", infer=_pack, exact_types=True)
def pack(op: Any, x: list[Any]) -> Any:
    return np.stack(x, op.axis)


def _unpack(ctx: InferContext) -> Sequence[OutputSpec]:
    x, dtype = ctx.shape("x"), ctx.dtype("x")
    if x.is_unknown_rank():
        return [(x, dtype)] * ctx.n_outputs
    axis = axis_in_rank(ctx.op.axis, len(x))
    if x[axis] not in (-1, ctx.n_outputs):
        raise ctx.fail(f"axis {axis} of shape {x} is unpacked into {ctx.n_outputs} outputs")
    return [((*x[:axis], *x[axis + 1 :]), dtype)] * ctx.n_outputs


@operator("Unpack(x) -> y* [num:i! axis:i=0]", infer=_unpack, exact_types=True)
def unpack(op: Any, x: Any) -> Any:
    return tuple(np.moveaxis(x, op.axis, 0))


# -- Split -------------------------------------------------------------------------------------------------------------
def _even_parts(dim: int, count: int, allows_rest: bool) -> list[int]:
    if count == 0:
        raise Misfit("a split needs an output")
    if dim == -1:
        return [-1] * count
    if dim % count and not allows_rest:
        raise Misfit(f"a dim of {dim} cannot be split into {count} equal parts")
    part = -(-dim // count)
    return [max(0, min(part, dim - part * index)) for index in range(count)]


def _given_parts(dim: int, sizes: Sequence[int], count: int) -> list[int]:
    if len(sizes) != count or any(size < -1 for size in sizes) or list(sizes).count(-1) > 1:
        raise Misfit(f"sizes {list(sizes)} do not describe {count} parts")
    if dim == -1:
        return list(sizes)
    rest = dim - sum(size for size in sizes if size != -1)
    if rest < 0 or (rest and -1 not in sizes):
        raise Misfit(f"sizes {list(sizes)} do not add up to a dim of {dim}")
    return [rest if size == -1 else size for size in sizes]


def _split_along(ctx: InferContext, axis: int | None, sizes: Sequence[int] | None, is_even: bool) -> list[OutputSpec]:
    x, dtype, count = ctx.desc("x").origin_shape, ctx.dtype("x"), ctx.n_outputs
    if x.is_unknown_rank():
        return [(x, dtype)] * count
    if axis is None:
        return [([-1] * len(x), dtype)] * count
    axis = axis_in_rank(axis, len(x))
    if is_even:
        parts = _even_parts(x[axis], count, "_x_num_outputs" in ctx.node.attrs)
    else:
        parts = [-1] * count if sizes is None else _given_parts(x[axis], sizes, count)
    return [((*x[:axis], part, *x[axis + 1 :]), dtype) for part in parts]


def _first(values: Sequence[int] | None) -> int | None:
    return values[0] if values else None


def _split(ctx: InferContext) -> Sequence[OutputSpec]:
    return _split_along(ctx, _first(ctx.ints("split_dim")), None, is_even=True)


def _split_d(ctx: InferContext) -> Sequence[OutputSpec]:
    return _split_along(ctx, ctx.op.split_dim, None, is_even=True)


def _split_v(ctx: InferContext) -> Sequence[OutputSpec]:
    return _split_along(ctx, _first(ctx.ints("split_dim")), ctx.ints("size_splits"), is_even=False)


def _split_v_d(ctx: InferContext) -> Sequence[OutputSpec]:
    return _split_along(ctx, ctx.op.split_dim, ctx.op.size_splits, is_even=False)


def _cut(x: Any, axis: int, parts: Sequence[int]) -> Any:
    return tuple(np.split(x, np.cumsum(parts)[:-1], axis))


def _cut_evenly(op: Any, x: Any, axis: int) -> Any:
    axis = axis_in_rank(axis, x.ndim)
    return _cut(x, axis, _even_parts(x.shape[axis], op.n_outputs, op.get("_x_num_outputs") is not None))


@operator("Split(split_dim, x) -> y* [num_split:i!]", infer=_split, exact_types=True)
def split(op: Any, split_dim: Any, x: Any) -> Any:
    return _cut_evenly(op, x, int(split_dim.item()))


@operator("SplitD(x) -> y* [split_dim:i! num_split:i!]", infer=_split_d, exact_types=True)
def split_d(op: Any, x: Any) -> Any:
    return _cut_evenly(op, x, op.split_dim)


@operator("SplitV(x, size_splits, split_dim) -> y* [num_split:i!]", infer=_split_v, exact_types=True)
def split_v(op: Any, x: Any, size_splits: Any, split_dim: Any) -> Any:
    axis = axis_in_rank(int(split_dim.item()), x.ndim)
    return _cut(x, axis, _given_parts(x.shape[axis], np.ravel(size_splits).tolist(), op.n_outputs))


@operator("SplitVD(x) -> y* [size_splits:I! split_dim:i! num_split:i!]", infer=_split_v_d, exact_types=True)
def split_v_d(op: Any, x: Any) -> Any:
    axis = axis_in_rank(op.split_dim, x.ndim)
    return _cut(x, axis, _given_parts(x.shape[axis], op.size_splits, op.n_outputs))
