"""Cutting regions out of tensors: Slice, StridedSlice and its ONNX-shaped sister.

Begin and end may be negative (counted from the end) and are clamped to the dim. Stepping backwards, an end below
``-dim`` (ONNX writes the smallest integer) means "including the first element".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ge.ops.inference import distinct_axes, vector_length
from ge.ops.registry import InferContext, Misfit, OutputSpec, operator

Index = slice | int | None
"""One element of a numpy index: a region, one position (the axis goes), a new axis."""

_MASKS = "[begin_mask:i=0 end_mask:i=0 ellipsis_mask:i=0 new_axis_mask:i=0 shrink_axis_mask:i=0]"


def _index(
    op: Any,
    rank: int,
    begin: Sequence[int],
    end: Sequence[int],
    strides: Sequence[int] | None,
    axes: Sequence[int] | None,
) -> list[Index]:
    """Return what is to be taken, one element per axis of the input (and per new axis)."""
    strides = [1] * len(begin) if strides is None else strides
    if not len(begin) == len(end) == len(strides):
        raise Misfit(f"begin {list(begin)}, end {list(end)} and strides {list(strides)} differ in length")
    if 0 in strides:
        raise Misfit("a stride is 0")
    items: list[Any] = []
    for bit, (first, last, step) in enumerate(zip(begin, end, strides, strict=True)):
        if op.ellipsis_mask >> bit & 1:
            items.append(Ellipsis)
        elif op.new_axis_mask >> bit & 1:
            items.append(None)
        elif op.shrink_axis_mask >> bit & 1:
            items.append(first)
        else:
            items.append(
                slice(None if op.begin_mask >> bit & 1 else first, None if op.end_mask >> bit & 1 else last, step)
            )
    if axes is not None:
        if len(axes) != len(items):
            raise Misfit(f"axes {list(axes)} and begin {list(begin)} differ in length")
        by_axis = dict(zip(distinct_axes(axes, rank), items, strict=True))
        return [by_axis.get(axis, slice(None)) for axis in range(rank)]
    return _spread(items, rank)


def _spread(items: list[Any], rank: int) -> list[Index]:
    """Replace the ellipsis (by default at the end) by whole axes, so that every axis of the input has an element."""
    if items.count(Ellipsis) > 1:
        raise Misfit("more than one ellipsis")
    taken = sum(item is not None and item is not Ellipsis for item in items)
    if taken > rank:
        raise Misfit(f"{taken} regions are given for rank {rank}")
    at = items.index(Ellipsis) if Ellipsis in items else len(items)
    return [*items[:at], *[slice(None)] * (rank - taken), *items[at + 1 :]]


def _taken_dims(x: Sequence[int], index: Sequence[Index]) -> list[int]:
    """Return the shape of ``x[index]`` where ``x`` may hold unknown dims."""
    dims: list[int] = []
    source = iter(x)
    for item in index:
        if item is None:
            dims.append(1)
            continue
        dim = next(source)
        if isinstance(item, int):
            if dim != -1 and not -dim <= item < dim:
                raise Misfit(f"position {item} is outside a dim of {dim}")
        elif dim == -1:
            dims.append(_unknown_taken(item))
        else:
            dims.append(len(range(*item.indices(dim))))
    return dims


def _unknown_taken(item: slice) -> int:
    """Return how much a region takes of an unknown dim: known only when it is empty for every dim."""
    first, last = item.start, item.stop
    is_same_sign = first is not None and last is not None and (first < 0) == (last < 0)
    return 0 if is_same_sign and (first >= last if item.step > 0 else first <= last) else -1


def _region(ctx: InferContext, axes: Sequence[int] | None, has_axes: bool) -> Sequence[OutputSpec]:
    x, dtype = ctx.shape("x"), ctx.dtype("x")
    begin, end = ctx.ints("begin"), ctx.ints("end")
    strides = ctx.ints("strides")
    if x.is_unknown_rank():
        return [(x, dtype)]
    if has_axes and axes is None:
        return [([-1] * len(x), dtype)]
    given = ctx.has("strides")
    if begin is not None and end is not None and (strides is not None or not given):
        return [(_taken_dims(x, _index(ctx.op, len(x), begin, end, strides, axes)), dtype)]
    length = max(vector_length(ctx, "begin"), vector_length(ctx, "end"))
    if length == -1:
        masks = ctx.op.new_axis_mask or ctx.op.shrink_axis_mask
        return [([-2] if masks else [-1] * len(x), dtype)]
    # The regions are unknown: -1 for each, while whole, new and shrunk axes are what the masks and axes say.
    index = _index(ctx.op, len(x), [0] * length, [0] * length, None, axes)
    dims = [1 if item is None else -1 for item in index if not isinstance(item, int)]
    return [(_keep_whole(x, index, dims), dtype)]


def _keep_whole(x: Sequence[int], index: Sequence[Index], dims: list[int]) -> list[int]:
    source, target = 0, 0
    for item in index:
        if item == slice(None) and item is not None:
            dims[target] = x[source]
        source += item is not None
        target += not isinstance(item, int)
    return dims


def _strided_slice(ctx: InferContext) -> Sequence[OutputSpec]:
    return _region(ctx, None, has_axes=False)


def _strided_slice_v2(ctx: InferContext) -> Sequence[OutputSpec]:
    return _region(ctx, ctx.ints("axes"), has_axes=ctx.has("axes"))


def _numbers(array: Any) -> list[int]:
    return [int(value) for value in np.ravel(array)]


def _optional(array: Any) -> list[int] | None:
    return None if array is None else _numbers(array)


def _take(op: Any, x: Any, begin: Any, end: Any, axes: Any, strides: Any) -> Any:
    index = _index(op, x.ndim, _numbers(begin), _numbers(end), _optional(strides), _optional(axes))
    _taken_dims(x.shape, index)
    return x[tuple(index)]


@operator(f"StridedSlice(x, begin, end, strides) {_MASKS}", infer=_strided_slice, exact_types=True)
def strided_slice(op: Any, x: Any, begin: Any, end: Any, strides: Any) -> Any:
    return _take(op, x, begin, end, None, strides)


@operator(f"StridedSliceV2(x, begin, end, axes?, strides?) {_MASKS}", infer=_strided_slice_v2, exact_types=True)
def strided_slice_v2(op: Any, x: Any, begin: Any, end: Any, axes: Any, strides: Any) -> Any:
    return _take(op, x, begin, end, axes, strides)


def _sizes(x: Sequence[int], offsets: Sequence[int], sizes: Sequence[int]) -> list[int]:
    if not len(x) == len(offsets) == len(sizes):
        raise Misfit(f"offsets {list(offsets)} and sizes {list(sizes)} do not fit shape {list(x)}")
    result = []
    for dim, offset, size in zip(x, offsets, sizes, strict=True):
        taken = size if size != -1 else -1 if dim == -1 else dim - offset
        if offset < 0 or size < -1 or (dim != -1 and not 0 <= taken <= dim - offset):
            raise Misfit(f"offsets {list(offsets)} and sizes {list(sizes)} reach outside shape {list(x)}")
        result.append(taken)
    return result


def _slice(ctx: InferContext) -> Sequence[OutputSpec]:
    x, dtype = ctx.shape("x"), ctx.dtype("x")
    offsets, sizes = ctx.ints("offsets"), ctx.ints("size")
    if x.is_unknown_rank():
        count = vector_length(ctx, "offsets")
        return [([-2] if count == -1 else [-1] * count, dtype)]
    if offsets is None or sizes is None:
        return [([-1] * len(x) if sizes is None else sizes, dtype)]
    return [(_sizes(x, offsets, sizes), dtype)]


@operator("Slice(x, offsets, size)", infer=_slice, exact_types=True)
def slice_by_size(op: Any, x: Any, offsets: Any, size: Any) -> Any:
    first = np.ravel(offsets).tolist()
    dims = _sizes(x.shape, first, np.ravel(size).tolist())
    return x[tuple(slice(at, at + dim) for at, dim in zip(first, dims, strict=True))]
