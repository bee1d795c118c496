"""Running sums and products along an axis. Floats accumulate in float64 and round once; integers wrap."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ge.ops.inference import axis_in_rank
from ge.ops.registry import InferContext, OutputSpec, operator


def _along_axis(ctx: InferContext) -> Sequence[OutputSpec]:
    x, axes = ctx.shape("x"), ctx.ints("axis")
    if axes and not x.is_unknown_rank():
        axis_in_rank(axes[0], len(x))
    return [(x, ctx.dtype("x"))]


def _running(op: Any, x: Any, axis: Any, function: Any, start: int) -> Any:
    at = axis_in_rank(int(axis.item()), x.ndim)
    values = np.flip(x, at) if op.reverse else x
    result = function(values, axis=at, dtype=np.float64 if x.dtype.kind == "f" else x.dtype)
    if op.exclusive:
        first = np.full_like(np.take(result, [0] if x.shape[at] else [], at), start)
        result = np.concatenate([first, np.take(result, np.arange(x.shape[at] - 1), at)], at)
    return np.flip(result, at) if op.reverse else result


@operator("Cumsum(x, axis) [exclusive:b=F reverse:b=F]", infer=_along_axis)
def cumsum(op: Any, x: Any, axis: Any) -> Any:
    return _running(op, x, axis, np.cumsum, 0)


@operator("Cumprod(x, axis) [exclusive:b=F reverse:b=F]", infer=_along_axis)
def cumprod(op: Any, x: Any, axis: Any) -> Any:
    return _running(op, x, axis, np.cumprod, 1)
