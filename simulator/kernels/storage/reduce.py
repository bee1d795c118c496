"""Reductions of tensors in storage layouts.

An axis that is divided into blocks is two axes of the storage. Where it ends within a block, whole blocks and the rest
are reduced apart and combined, so that padding never counts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from ge.formats import is_private
from ge.graph import TensorDesc
from ge.graph.types import numpy_dtype
from ge.ops.format_columns_selectors import SPREADING
from ge.ops.inference import distinct_axes
from simulator.kernels.blocks import compute_dtype
from simulator.kernels.math import BOOLS, NUMBERS
from simulator.kernels.reduce import LONG_SUM
from simulator.kernels.registry import FLOATS, Array, Inputs, Kernel, KernelRequest, Outputs, ScratchLayout
from simulator.kernels.storage.layout import clearing, places, storage_kernel

_UFUNCS: dict[str, np.ufunc] = {
    **dict.fromkeys(("ReduceSum", "ReduceSumD", "ReduceMean", "ReduceMeanD", "SquareSumV1"), np.add),
    "ReduceMax": np.maximum,
    "ReduceMin": np.minimum,
    "ReduceProd": np.multiply,
    "ReduceAny": np.logical_or,
    "ReduceAll": np.logical_and,
}
_MEANS = ("ReduceMean", "ReduceMeanD")


@dataclass(frozen=True)
class _Reduction:
    """Which axes of the storage are reduced, and how what is left becomes the output.

    ``regions`` are the boxes of the storage without padding along the reduced axes; ``count`` the elements that one
    result is made of; ``kept`` the storage shape with 1 for reduced axes; ``order`` the axes of ``kept`` in the order
    in which the output has them (``None``: as they are).
    """

    axes: tuple[int, ...]
    regions: tuple[tuple[slice, ...], ...]
    count: int
    kept: tuple[int, ...]
    order: tuple[int, ...] | None

    def target(self, out: Array) -> Array:
        """Show the output in the shape ``kept``."""
        if self.order is None:
            return out.reshape(self.kept)
        turned = out.reshape([self.kept[axis] for axis in self.order])
        return turned.transpose(np.argsort(self.order))


def _reduced_axes(request: KernelRequest, rank: int) -> list[int] | None:
    """Return the axes of the origin that are reduced, ``None`` when they are not constant."""
    op = request.op
    if request.type == "SquareSumV1":
        given: list[int] | None = list(op.axis)
    else:
        given = list(op.axes) if request.type.endswith("D") else request.ints(1)
    if given is not None and not given and not getattr(op, "noop_with_empty_axes", True):
        given = list(range(rank))
    return None if not given else distinct_axes(given, rank)


def _plan(request: KernelRequest) -> _Reduction | None:
    x, y = request.inputs[0], request.outputs[0]
    where = None if x is None else places(x)
    gone = None if where is None or x is None else _reduced_axes(request, len(where))
    if x is None or where is None or gone is None:
        return None
    axes = tuple(sorted(place for axis in gone for place in where[axis]))
    regions: list[tuple[slice, ...]] = [(slice(None),) * len(x.shape)]
    for axis in gone:
        if len(where[axis]) > 1:
            regions = [box for region in regions for box in _unpadded(region, x, where[axis], x.origin_shape[axis])]
    kept = tuple(1 if axis in axes else dim for axis, dim in enumerate(x.shape))
    count = prod(x.origin_shape[axis] for axis in gone)
    if is_private(y.format):
        fits = y.format is x.format and prod(y.shape) == prod(kept) and not any(len(where[axis]) > 1 for axis in gone)
        return _Reduction(axes, tuple(regions), count, kept, None) if fits else None
    order = [place for axis in range(len(where)) for place in where[axis]]
    return _Reduction(axes, tuple(regions), count, kept, tuple(order)) if prod(y.shape) == prod(kept) else None


def _unpadded(
    region: tuple[slice, ...], desc: TensorDesc, split: Sequence[int], extent: int
) -> list[tuple[slice, ...]]:
    """Divide a box into whole blocks of an axis and the lanes of the block begun last."""
    blocks, lanes = split
    whole, rest = divmod(extent, desc.shape[lanes])
    found = []
    for block, lane in ((slice(0, whole), slice(None)), (slice(whole, whole + 1), slice(0, rest))):
        if (whole if lane == slice(None) else rest) > 0:
            box = list(region)
            box[blocks], box[lanes] = block, lane
            found.append(tuple(box))
    return found


@storage_kernel("ReduceSum", "ReduceSumD", "ReduceMax", "ReduceMin", "ReduceProd", formats=SPREADING, dtypes=NUMBERS)
def build_reduction(request: KernelRequest) -> Kernel | None:
    """Bind a reduction by one ufunc."""
    return _reduction(request)


@storage_kernel("ReduceAny", "ReduceAll", formats=SPREADING, dtypes=BOOLS)
def build_logical(request: KernelRequest) -> Kernel | None:
    """Bind a reduction of truth values."""
    return _reduction(request)


@storage_kernel("ReduceMean", "ReduceMeanD", formats=SPREADING, dtypes=NUMBERS)
def build_mean(request: KernelRequest) -> Kernel | None:
    """Bind a mean; one of whole numbers is truncated."""
    return _reduction(request)


@storage_kernel("SquareSumV1", formats=SPREADING, dtypes=FLOATS)
def build_square_sum(request: KernelRequest) -> Kernel | None:
    """Bind a sum of squares."""
    return _reduction(request, prepare=np.square)


def _reduction(request: KernelRequest, prepare: Callable[..., Any] | None = None) -> Kernel | None:
    how = _plan(request)
    if how is None:
        return None
    ufunc, is_mean = _UFUNCS[request.type], request.type in _MEANS
    dtype = compute_dtype(request.dtype())
    if ufunc is np.add and dtype == np.float32 and how.count >= LONG_SUM:
        dtype = np.dtype(np.float64)
    is_whole = dtype.kind in "iu"
    is_rounded = dtype != numpy_dtype(request.outputs[0].data_type) or prepare is not None
    layout = ScratchLayout()
    take = [layout.take(how.kept, dtype) for _ in range(2)]
    prepared = layout.take(request.shape() if prepare is not None else [0], dtype)
    quotients = layout.take(how.kept if is_mean and is_whole else [0], np.float64)

    def run(inputs: Inputs, outputs: Outputs, scratch: Array) -> None:
        x, target = inputs[0], how.target(outputs[0])
        if prepare is not None:
            x = prepared(scratch)
            np.copyto(x, inputs[0], casting="unsafe")
            prepare(x, out=x)
        result, other = (place(scratch) for place in take)
        if not is_rounded:
            result = target
        _reduce(ufunc, x, how, dtype, result, other)
        if is_mean and is_whole:
            quotient = quotients(scratch)
            np.divide(result, how.count, out=quotient)
            np.trunc(quotient, out=quotient)
            np.copyto(target, quotient, casting="unsafe")
            return
        if is_mean:
            np.divide(result, how.count, out=result)
        if is_rounded:
            np.copyto(target, result, casting="unsafe")

    return Kernel(f"reduce-{ufunc.__name__}", run, layout.size)


def _reduce(ufunc: np.ufunc, x: Array, how: _Reduction, dtype: np.dtype[Any], result: Array, other: Array) -> None:
    for number, region in enumerate(how.regions):
        target = other if number else result
        ufunc.reduce(x[region], axis=how.axes, dtype=dtype, out=target, keepdims=True)
        if number:
            ufunc(result, other, out=result)


@storage_kernel("ReduceLogSumExp", formats=SPREADING, dtypes=FLOATS)
def build_log_sum_exp(request: KernelRequest) -> Kernel | None:
    """Bind the logarithm of a sum of exponentials, taken relative to the largest element."""
    how, shape, dtype = _plan(request), request.shape(), compute_dtype(request.dtype())
    if how is None:
        return None
    layout = ScratchLayout()
    powers = layout.take(shape, dtype)
    peaks, totals, others = (layout.take(how.kept, dtype) for _ in range(3))
    flags = layout.take(how.kept, np.bool_)

    def run(inputs: Inputs, outputs: Outputs, scratch: Array) -> None:
        power, peak, total, other = (take(scratch) for take in (powers, peaks, totals, others))
        is_finite = flags(scratch)
        np.copyto(power, inputs[0], casting="unsafe")
        _reduce(np.maximum, power, how, dtype, peak, other)
        np.isfinite(peak, out=is_finite)
        np.logical_not(is_finite, out=is_finite)
        np.copyto(peak, 0, where=is_finite)
        np.subtract(power, peak, out=power)
        np.exp(power, out=power)
        _reduce(np.add, power, how, dtype, total, other)
        np.log(total, out=total)
        np.add(total, peak, out=total)
        np.copyto(how.target(outputs[0]), total, casting="unsafe")

    return clearing(Kernel("reduce-log-sum-exp", run, layout.size), request.outputs)
