"""Reductions over constant axes: one ufunc reduction straight into the output."""

from __future__ import annotations

from math import prod

import numpy as np

from ge.graph.types import DataType, numpy_dtype
from ge.ops.inference import distinct_axes
from simulator.kernels.blocks import compute_dtype
from simulator.kernels.math import BOOLS, NUMBERS
from simulator.kernels.registry import FLOATS, Array, Inputs, Kernel, KernelRequest, Outputs, ScratchLayout, kernel

LONG_SUM = 1024
"""Sums over outer axes add one row after the other; from this many on they do it in double precision."""


@kernel("ReduceSum", "ReduceSumD", dtypes=NUMBERS)
def build_sum(request: KernelRequest) -> Kernel | None:
    """Bind a sum."""
    return _reduction(request, np.add)


@kernel("ReduceMean", "ReduceMeanD", dtypes=FLOATS)
def build_mean(request: KernelRequest) -> Kernel | None:
    """Bind a mean of floats."""
    return _reduction(request, np.add, is_mean=True)


@kernel("ReduceMax", dtypes=NUMBERS)
def build_max(request: KernelRequest) -> Kernel | None:
    """Bind a maximum; NaN wins."""
    return _reduction(request, np.maximum)


@kernel("ReduceMin", dtypes=NUMBERS)
def build_min(request: KernelRequest) -> Kernel | None:
    """Bind a minimum; NaN wins."""
    return _reduction(request, np.minimum)


@kernel("ReduceProd", dtypes=NUMBERS)
def build_product(request: KernelRequest) -> Kernel | None:
    """Bind a product."""
    return _reduction(request, np.multiply)


@kernel("ReduceAny", dtypes=BOOLS)
def build_any(request: KernelRequest) -> Kernel | None:
    """Bind a logical or."""
    return _reduction(request, np.logical_or)


@kernel("ReduceAll", dtypes=BOOLS)
def build_all(request: KernelRequest) -> Kernel | None:
    """Bind a logical and."""
    return _reduction(request, np.logical_and)


def _axes(request: KernelRequest) -> tuple[int, ...] | None:
    """Return the axes to reduce, ``None`` when they are not constant."""
    rank, op = len(request.shape()), request.op
    given = list(op.axes) if request.type.endswith("D") else request.ints(1)
    if given is None:
        return None
    if not given and not getattr(op, "noop_with_empty_axes", True):
        given = list(range(rank))
    return tuple(distinct_axes(given, rank))


def _reduction(request: KernelRequest, ufunc: np.ufunc, *, is_mean: bool = False) -> Kernel | None:
    shape, axes = request.shape(), _axes(request)
    if axes is None or not prod(shape):
        return None
    kept = tuple(1 if axis in axes else dim for axis, dim in enumerate(shape))
    count = prod(shape[axis] for axis in axes)
    dtype = compute_dtype(request.dtype())
    is_outer = len(shape) - 1 not in axes
    if ufunc is np.add and dtype == np.float32 and is_outer and count >= LONG_SUM:
        dtype = np.dtype(np.float64)
    is_rounded = dtype != numpy_dtype(request.outputs[0].data_type)
    layout = ScratchLayout()
    results = layout.take(kept if is_rounded else [0], dtype)

    def run(inputs: Inputs, outputs: Outputs, scratch: Array) -> None:
        target = outputs[0].reshape(kept)
        result = results(scratch) if is_rounded else target
        if axes:
            ufunc.reduce(inputs[0], axis=axes, dtype=dtype, out=result, keepdims=True)
        else:
            np.copyto(result, inputs[0], casting="unsafe")
        if is_mean:
            np.divide(result, count, out=result)
        if is_rounded:
            np.copyto(target, result, casting="unsafe")

    return Kernel(f"reduce-{ufunc.__name__}", run, layout.size)


@kernel("SquareSumV1", dtypes=frozenset({DataType.DT_FLOAT, DataType.DT_DOUBLE}))
def build_square_sum(request: KernelRequest) -> Kernel | None:
    """Bind a sum of squares over the last axes."""
    shape = request.shape()
    axes = sorted(distinct_axes(list(request.op.axis), len(shape)))
    if not prod(shape) or not axes or axes != list(range(axes[0], len(shape))):
        return None
    rows = (prod(shape[: axes[0]]), prod(shape[axes[0] :]))

    def run(inputs: Inputs, outputs: Outputs, scratch: Array) -> None:
        x = inputs[0].reshape(rows)
        np.vecdot(x, x, out=outputs[0].reshape(rows[0]))

    return Kernel("square-sum", run)
