"""Cutting regions out of tensors: Slice, StridedSlice and its ONNX-shaped sister.

Begin and end may be negative (counted from the end) and are clamped to the dim. Stepping backwards, an end below
``-dim`` (ONNX writes the smallest integer) means "including the first element".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ge.graph.tensor_desc import OpenDim, same_dim
from ge.ops.inference import distinct_axes, plain_number, vector_length, vector_parts
from ge.ops.registry import InferContext, Misfit, OutputSpec, operator

Index = slice | int | None
"""One element of a numpy index: a region, one position (the axis goes), a new axis."""

_TO_THE_END = 2**31 - 1
"""Ends from here on mean "all of the axis": exporters write the largest integer."""

_MASKS = "[begin_mask:i=0 end_mask:i=0 ellipsis_mask:i=0 new_axis_mask:i=0 shrink_axis_mask:i=0]"


def index_of(
    op: Any,
    rank: int,
    begin: Sequence[int | None],
    end: Sequence[int | None],
    strides: Sequence[int | None] | None,
    axes: Sequence[int] | None,
) -> list[Index]:
    """Return what is to be taken, one element per axis of the input (and per new axis).

    What is ``None`` or an ``OpenDim`` in ``begin``, ``end`` and ``strides`` is not known.
    """
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
            items.append(OpenDim("position") if first is None else first)
        else:
            items.append(_extent(first, last, step, op.begin_mask >> bit & 1, op.end_mask >> bit & 1))
    if axes is not None:
        if len(axes) != len(items):
            raise Misfit(f"axes {list(axes)} and begin {list(begin)} differ in length")
        by_axis = dict(zip(distinct_axes(axes, rank), items, strict=True))
        return [by_axis.get(axis, slice(None)) for axis in range(rank)]
    return _spread(items, rank)


_UNKNOWN_EXTENT = slice(OpenDim("begin"), OpenDim("end"), 1)


def _extent(first: int | None, last: int | None, step: int | None, is_from_start: int, is_to_end: int) -> slice:
    """Return one region. Only its end may stay an ``OpenDim``: it can be the length of the axis."""
    if plain_number(step) is None or (not is_from_start and plain_number(first) is None):
        return _UNKNOWN_EXTENT
    if not is_to_end and last is None:
        return _UNKNOWN_EXTENT
    return slice(None if is_from_start else first, None if is_to_end else last, step)


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
            if dim != -1 and not isinstance(item, OpenDim) and not -dim <= item < dim:
                raise Misfit(f"position {item} is outside a dim of {dim}")
        elif dim == -1 or isinstance(item.stop, OpenDim):
            dims.append(_partly_known(item, dim))
        else:
            dims.append(len(range(*item.indices(dim))))
    return dims


def _partly_known(item: slice, dim: int) -> int:
    """Return how much a region takes where the dim or the end of the region is not known.

    That is known when the region is the whole axis, or empty whatever the dim is.
    """
    first, last, step = item.start, item.stop, 1 if item.step is None else item.step
    if isinstance(last, OpenDim):
        return (
            dim if same_dim(last, dim) and first in (0, None) and not isinstance(first, OpenDim) and step == 1 else -1
        )
    if first in (0, None) and (last is None or last >= _TO_THE_END) and step == 1:
        return dim
    is_same_sign = first is not None and last is not None and (first < 0) == (last < 0)
    return 0 if is_same_sign and (first >= last if step > 0 else first <= last) else -1


def _region(ctx: InferContext, axes: Sequence[int] | None, has_axes: bool) -> Sequence[OutputSpec]:
    x, dtype = ctx.shape("x"), ctx.dtype("x")
    if x.is_unknown_rank():
        return [(x, dtype)]
    if has_axes and axes is None:
        return [([-1] * len(x), dtype)]
    begin, end = vector_parts(ctx, "begin"), vector_parts(ctx, "end")
    strides = vector_parts(ctx, "strides") if ctx.has("strides") else None
    length = max(len(parts) if parts is not None else -1 for parts in (begin, end, strides))
    if length == -1:
        masks = ctx.op.new_axis_mask or ctx.op.shrink_axis_mask
        return [([-2] if masks else [-1] * len(x), dtype)]
    unknown: list[int | None] = [None] * length
    if ctx.has("strides") and strides is None:
        strides = unknown
    index = index_of(
        ctx.op, len(x), unknown if begin is None else begin, unknown if end is None else end, strides, axes
    )
    return [(_taken_dims(x, index), dtype)]


def _strided_slice(ctx: InferContext) -> Sequence[OutputSpec]:
    return _region(ctx, None, has_axes=False)


def _strided_slice_v2(ctx: InferContext) -> Sequence[OutputSpec]:
    return _region(ctx, ctx.ints("axes"), has_axes=ctx.has("axes"))


def _numbers(array: Any) -> list[int]:
    return [int(value) for value in np.ravel(array)]


def _optional(array: Any) -> list[int] | None:
    return None if array is None else _numbers(array)


def _take(op: Any, x: Any, begin: Any, end: Any, axes: Any, strides: Any) -> Any:
    index = index_of(op, x.ndim, _numbers(begin), _numbers(end), _optional(strides), _optional(axes))
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
        rest = dim if offset == 0 else -1 if dim == -1 else dim - offset
        taken = rest if size == -1 else size
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
