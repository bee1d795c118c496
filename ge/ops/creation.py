"""Tensors from nothing but a shape or bounds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ge.graph.tensor_desc import OpenDim
from ge.graph.types import DataType, numpy_dtype
from ge.ops.inference import common_type, dims_of, vector_parts
from ge.ops.registry import InferContext, Misfit, OutputSpec, operator


def wanted_shape(ctx: InferContext, name: str) -> list[int]:
    """Return the shape that an input holds; -1 per dim, or ``[-2]``, when it is not known."""
    parts = vector_parts(ctx, name)
    return [-2] if parts is None else list(dims_of(ctx, name, parts))


def _fill(ctx: InferContext) -> Sequence[OutputSpec]:
    if ctx.shape("value").elements not in (1, -1):
        raise ctx.fail(f"input value of shape {ctx.shape('value')} must hold one element")
    return [(wanted_shape(ctx, "dims"), ctx.dtype("value"))]


@operator("Fill(dims, value)", infer=_fill, exact_types=True)
def fill(op: Any, dims: Any, value: Any) -> Any:
    return np.full(np.ravel(dims), np.ravel(value)[0], value.dtype)


def _empty(ctx: InferContext) -> Sequence[OutputSpec]:
    return [(wanted_shape(ctx, "shape"), DataType(ctx.op.dtype))]


@operator("Empty(shape) [dtype:i=3 init:b=F]", infer=_empty, exact_types=True)
def empty(op: Any, shape: Any) -> Any:
    """A tensor of zeros, asked for or not: results must not depend on what memory held before."""
    return np.zeros(np.ravel(shape), numpy_dtype(op.output_types[0]))


# -- sequences of numbers ----------------------------------------------------------------------------------------------
def range_length(start: Any, limit: Any, delta: Any, is_closed: bool = False) -> int:
    """Return how many numbers Range makes. Raises ``Misfit`` when there is no end to them."""
    first, last, step = start.item(), limit.item(), delta.item()
    if step == 0 or not all(map(math.isfinite, (first, last, step))):
        raise Misfit(f"there is no range from {first} to {last} by {step}")
    if isinstance(step, int):
        return int(max((last - first) // step + 1 if is_closed else -((first - last) // step), 0))
    return int(max(math.floor((last - first) / step) + 1 if is_closed else math.ceil((last - first) / step), 0))


def _range(ctx: InferContext) -> Sequence[OutputSpec]:
    names = ("start", "limit", "delta")
    dtype = common_type(ctx, [ctx.desc(name) for name in names])
    values = [ctx.value(name) for name in names]
    start, limit, delta = values
    if start is None or limit is None or delta is None:
        counts_up = start is not None and delta is not None and (start.item(), delta.item()) == (0, 1)
        last = (vector_parts(ctx, "limit") or [None])[0]
        is_length = counts_up and not ctx.op.is_closed and isinstance(last, OpenDim)
        return [([last if is_length and last is not None else -1], dtype)]
    return [([range_length(start, limit, delta, ctx.op.is_closed)], dtype)]


@operator("Range(start, limit, delta) [is_closed:b=F]", infer=_range)
def number_range(op: Any, start: Any, limit: Any, delta: Any) -> Any:
    count = range_length(start, limit, delta, op.is_closed)
    steps = np.arange(count)
    if start.dtype.kind == "f":
        return steps * np.float64(delta.item()) + np.float64(start.item())
    return steps.astype(start.dtype) * delta.reshape(()) + start.reshape(())


def _lin_space(ctx: InferContext) -> Sequence[OutputSpec]:
    count = ctx.ints("num")
    return [([count[0] if count else -1], ctx.dtype("start"))]


@operator("LinSpace(start, stop, num) -> output", infer=_lin_space)
def lin_space(op: Any, start: Any, stop: Any, num: Any) -> Any:
    return np.linspace(start.item(), stop.item(), int(num.item()))
