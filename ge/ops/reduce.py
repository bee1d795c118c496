"""Reductions over axes.

Sums, means and products accumulate in float64 and round once; integers accumulate in their own type and wrap, a mean of
integers truncates. Over no elements a sum is 0, a product 1, a maximum the lowest and a minimum the highest number of
the type, a mean NaN.

Empty axes: with ``noop_with_empty_axes`` the reduction is over nothing, otherwise over all axes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ge.graph.types import DataType
from ge.ops.inference import distinct_axes, vector_length
from ge.ops.math import truncated_quotient
from ge.ops.registry import InferContext, OutputSpec, operator


def reduced_dims(x: Sequence[int], axes: Sequence[int], keeps_dims: bool) -> list[int]:
    """Return the shape that is left of ``x``. Raises ``Misfit`` for axes out of range or given twice."""
    gone = distinct_axes(axes, len(x))
    if keeps_dims:
        return [1 if axis in gone else dim for axis, dim in enumerate(x)]
    return [dim for axis, dim in enumerate(x) if axis not in gone]


def _effective_axes(axes: Sequence[int], rank: int, is_noop: bool) -> list[int]:
    return list(range(rank)) if not axes and not is_noop else list(axes)


def _reduced(ctx: InferContext, axes: Sequence[int] | None, dtype: DataType) -> list[OutputSpec]:
    x, keeps = ctx.shape("x"), ctx.op.keep_dims
    is_noop = _is_noop(ctx.op)
    if axes is not None and not axes and not is_noop and not keeps:
        return [((), dtype)]
    if x.is_unknown_rank():
        return [(x, dtype)]
    if axes is not None:
        return [(reduced_dims(x, _effective_axes(axes, len(x), is_noop), keeps), dtype)]
    if keeps:
        return [([1 if dim == 1 else -1 for dim in x], dtype)]
    count = vector_length(ctx, "axes")
    return [([-2] if count <= 0 else [-1] * (len(x) - count), dtype)]


def _is_noop(op: Any) -> bool:
    return bool(getattr(op, "noop_with_empty_axes", True))


def _by_input(ctx: InferContext) -> Sequence[OutputSpec]:
    return _reduced(ctx, ctx.ints("axes"), ctx.dtype("x"))


def _by_attribute(name: str) -> Callable[[InferContext], Sequence[OutputSpec]]:
    return lambda ctx: _reduced(ctx, getattr(ctx.op, name), ctx.dtype("x"))


def _axes(op: Any, x: Any, axes: Any) -> tuple[int, ...]:
    given = [int(axis) for axis in np.ravel(axes)]
    return tuple(distinct_axes(_effective_axes(given, x.ndim, _is_noop(op)), x.ndim))


def _total(x: Any, axes: tuple[int, ...], keeps: bool) -> Any:
    return np.sum(x, axis=axes, keepdims=keeps, dtype=_accumulator(x))


def _product(x: Any, axes: tuple[int, ...], keeps: bool) -> Any:
    return np.prod(x, axis=axes, keepdims=keeps, dtype=_accumulator(x))


def _accumulator(x: Any) -> Any:
    return np.float64 if x.dtype.kind == "f" else x.dtype


def _mean(x: Any, axes: tuple[int, ...], keeps: bool) -> Any:
    count = math.prod(x.shape[axis] for axis in axes)
    if x.dtype.kind == "f":
        return _total(x, axes, keeps) / np.float64(count)
    return truncated_quotient(_total(x, axes, keeps), x.dtype.type(count))


def _largest(x: Any, axes: tuple[int, ...], keeps: bool) -> Any:
    return np.max(x, axis=axes, keepdims=keeps, initial=_bound(x.dtype, is_lowest=True))


def _smallest(x: Any, axes: tuple[int, ...], keeps: bool) -> Any:
    return np.min(x, axis=axes, keepdims=keeps, initial=_bound(x.dtype, is_lowest=False))


def _bound(dtype: Any, *, is_lowest: bool) -> Any:
    if dtype.kind == "f":
        return -np.inf if is_lowest else np.inf
    if dtype.kind == "b":
        return not is_lowest
    return np.iinfo(dtype).min if is_lowest else np.iinfo(dtype).max


def _log_sum_exp(x: Any, axes: tuple[int, ...], keeps: bool) -> Any:
    peak = np.max(x, axis=axes, keepdims=True, initial=-np.inf).astype(np.float64)
    peak = np.where(np.isfinite(peak), peak, 0)
    total = np.log(np.sum(np.exp(x - peak), axis=axes, keepdims=True)) + peak
    return total if keeps else np.squeeze(total, axes)


def _square_sum(x: Any, axes: tuple[int, ...], keeps: bool) -> Any:
    return _total(np.square(x.astype(_accumulator(x))), axes, keeps)


def _reduction(signature: str, function: Callable[[Any, tuple[int, ...], bool], Any]) -> None:
    operator(signature, infer=_by_input)(lambda op, x, axes: function(x, _axes(op, x, axes), op.keep_dims))


def _reduction_by_attribute(signature: str, function: Callable[[Any, tuple[int, ...], bool], Any], name: str) -> None:
    operator(signature, infer=_by_attribute(name))(
        lambda op, x: function(x, _axes(op, x, getattr(op, name)), op.keep_dims)
    )


_reduction("ReduceSum(x, axes) [keep_dims:b=F noop_with_empty_axes:b=T]", _total)
_reduction("ReduceMean(x, axes) [keep_dims:b=F noop_with_empty_axes:b=T]", _mean)
_reduction("ReduceMax(x, axes) [keep_dims:b=F noop_with_empty_axes:b=T]", _largest)
_reduction("ReduceMin(x, axes) [keep_dims:b=F noop_with_empty_axes:b=T]", _smallest)
_reduction("ReduceProd(x, axes) [keep_dims:b=F noop_with_empty_axes:b=T]", _product)
_reduction("ReduceAll(x, axes) [keep_dims:b=F]", lambda x, axes, keeps: np.all(x, axis=axes, keepdims=keeps))
_reduction("ReduceAny(x, axes) [keep_dims:b=F]", lambda x, axes, keeps: np.any(x, axis=axes, keepdims=keeps))
_reduction("ReduceLogSumExp(x, axes) [keep_dims:b=F noop_with_empty_axes:b=F]", _log_sum_exp)

_reduction_by_attribute("ReduceSumD(x) [axes:I! keep_dims:b=F]", _total, "axes")
_reduction_by_attribute("ReduceMeanD(x) [axes:I! keep_dims:b=F noop_with_empty_axes:b=F]", _mean, "axes")
_reduction_by_attribute("SquareSumV1(x) [axis:I! keep_dims:b=F noop_with_empty_axes:b=F]", _square_sum, "axis")
