"""Tensors from nothing but a shape or bounds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ge.ops.inference import vector_length
from ge.ops.registry import InferContext, OutputSpec, operator


def wanted_shape(ctx: InferContext, name: str) -> list[int]:
    """Return the shape that an input holds; -1 per dim, or ``[-2]``, when it is not known."""
    dims = ctx.ints(name)
    if dims is None:
        count = vector_length(ctx, name)
        return [-2] if count == -1 else [-1] * count
    if any(dim < 0 for dim in dims):
        raise ctx.fail(f"input {name} holds {dims}, which is no shape")
    return dims


def _fill(ctx: InferContext) -> Sequence[OutputSpec]:
    if ctx.shape("value").elements not in (1, -1):
        raise ctx.fail(f"input value of shape {ctx.shape('value')} must hold one element")
    return [(wanted_shape(ctx, "dims"), ctx.dtype("value"))]


@operator("Fill(dims, value)", infer=_fill, exact_types=True)
def fill(op: Any, dims: Any, value: Any) -> Any:
    return np.full(np.ravel(dims), np.ravel(value)[0], value.dtype)
