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
from ge.graph import DataType, TensorDesc
from ge.graph.types import numpy_dtype
from ge.ops.format_columns_selectors import SPREADING
from ge.ops.inference import distinct_axes
from simulator.kernels.blocks import compute_dtype
from simulator.kernels.halves import convert
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
    dtype = _accumulator(ufunc, request.dtype(), how.count)
    is_whole = dtype.kind in "iu"
    is_rounded = dtype != numpy_dtype(request.outputs[0].data_type) or prepare is not None
    layout = ScratchLayout()
    stages = _Stages(ufunc, how, request.shape(), dtype, layout)
    results = layout.take(how.kept, dtype)
    prepared = layout.take(request.shape() if prepare is not None else [0], compute_dtype(request.dtype()))
    quotients = layout.take(how.kept if is_mean and is_whole else [0], np.float64)

    def run(inputs: Inputs, outputs: Outputs, scratch: Array) -> None:
        x, target = inputs[0], how.target(outputs[0])
        if prepare is not None:
            x = prepared(scratch)
            convert(x, inputs[0])
            prepare(x, out=x)
        result = results(scratch) if is_rounded else target
        stages.run(x, result, scratch)
        if is_mean and is_whole:
            quotient = quotients(scratch)
            np.divide(result, how.count, out=quotient)
            np.trunc(quotient, out=quotient)
            np.copyto(target, quotient, casting="unsafe")
            return
        if is_mean:
            np.divide(result, how.count, out=result)
        if is_rounded:
            convert(target, result)

    return Kernel(f"reduce-{ufunc.__name__}", run, layout.size)


def _accumulator(ufunc: np.ufunc, dtype: DataType, count: int) -> np.dtype[Any]:
    computed = compute_dtype(dtype)
    return np.dtype(np.float64) if ufunc is np.add and computed == np.float32 and count >= LONG_SUM else computed


class _Stages:
    """Reduces one axis after the other, the outermost first: so numpy combines long rows, lanes come last.

    A stage over few elements may add in single precision even where the whole sum does not.
    """

    def __init__(
        self, ufunc: np.ufunc, how: _Reduction, shape: Sequence[int], dtype: np.dtype[Any], layout: ScratchLayout
    ) -> None:
        self.ufunc, self.how, self.dtype = ufunc, how, dtype
        self.plans = [self._plan(region, shape) for region in how.regions]
        largest = max((prod(stage) for plan in self.plans for _, stage, _ in plan[:-1]), default=0)
        self._buffers = [layout.take([largest], dtype) for _ in range(2)]
        self._other = layout.take(how.kept if len(how.regions) > 1 else [0], dtype)

    def _plan(self, region: tuple[slice, ...], shape: Sequence[int]) -> list[tuple[int, tuple[int, ...], Any]]:
        """Return, stage by stage, the axis, the shape of the result, and the type of its elements."""
        dims = [len(range(*part.indices(dim))) for part, dim in zip(region, shape, strict=True)]
        axes = [axis for axis in self.how.axes if dims[axis] > 1] or list(self.how.axes[:1])
        stages = []
        for number, axis in enumerate(axes):
            is_short = dims[axis] < LONG_SUM and self.dtype == np.float64 and number < len(axes) - 1
            dims[axis] = 1
            stages.append((axis, tuple(dims), np.dtype(np.float32) if is_short else self.dtype))
        return stages

    def run(self, x: Array, result: Array, scratch: Array) -> None:
        """Reduce ``x`` to ``result``, of shape ``kept``."""
        buffers = [take(scratch) for take in self._buffers]
        for number, (region, plan) in enumerate(zip(self.how.regions, self.plans, strict=True)):
            source, target = x[region], self._other(scratch) if number else result
            for stage, (axis, shape, dtype) in enumerate(plan):
                out = target
                if stage < len(plan) - 1:
                    out = buffers[stage % 2].view(dtype)[: prod(shape)].reshape(shape)
                self.ufunc.reduce(source, axis=axis, dtype=dtype, out=out, keepdims=True)
                source = out
            if number:
                self.ufunc(result, target, out=result)


@storage_kernel("ReduceLogSumExp", formats=SPREADING, dtypes=FLOATS)
def build_log_sum_exp(request: KernelRequest) -> Kernel | None:
    """Bind the logarithm of a sum of exponentials, taken relative to the largest element."""
    how, shape, dtype = _plan(request), request.shape(), compute_dtype(request.dtype())
    if how is None:
        return None
    layout = ScratchLayout()
    powers = layout.take(shape, dtype)
    peaks, totals = (layout.take(how.kept, dtype) for _ in range(2))
    largest, total_of = (_Stages(ufunc, how, shape, dtype, layout) for ufunc in (np.maximum, np.add))
    flags = layout.take(how.kept, np.bool_)

    def run(inputs: Inputs, outputs: Outputs, scratch: Array) -> None:
        power, peak, total = (take(scratch) for take in (powers, peaks, totals))
        is_finite = flags(scratch)
        convert(power, inputs[0])
        largest.run(power, peak, scratch)
        np.isfinite(peak, out=is_finite)
        np.logical_not(is_finite, out=is_finite)
        np.copyto(peak, 0, where=is_finite)
        np.subtract(power, peak, out=power)
        np.exp(power, out=power)
        total_of.run(power, total, scratch)
        np.log(total, out=total)
        np.add(total, peak, out=total)
        convert(how.target(outputs[0]), total)

    return clearing(Kernel("reduce-log-sum-exp", run, layout.size), request.outputs)
