"""Quantisation that is only pretended: values take the steps of a quantized type and stay floats."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ge.ops.inference import dims_agree
from ge.ops.registry import Array, InferContext, Misfit, OutputSpec, operator

_OPTIONS = "num_bits:i=8 narrow_range:b=F"


def _nudged(op: Any, low: Array, high: Array) -> tuple[Array, Array, Array]:
    """Return (lowest, highest, step) of the range, moved so that 0 is one of its steps."""
    if not 2 <= op.num_bits <= 16:
        raise Misfit(f"num_bits must be between 2 and 16, not {op.num_bits}")
    first, last = float(op.narrow_range), float((1 << op.num_bits) - 1)
    step = (high - low) / np.float32(last - first)
    with np.errstate(divide="ignore", invalid="ignore"):
        zero = np.float32(first) - low / step
    zero = np.where(zero < first, first, np.where(zero > last, last, np.floor(zero + np.float32(0.5))))
    return ((first - zero) * step).astype(low.dtype), ((last - zero) * step).astype(low.dtype), step


def _pretended(op: Any, x: Array, low: Array, high: Array) -> Any:
    lowest, highest, step = _nudged(op, np.asarray(low, np.float32), np.asarray(high, np.float32))
    with np.errstate(divide="ignore", invalid="ignore"):
        steps = np.floor((np.clip(x, lowest, highest) - lowest) / step + np.float32(0.5))
    is_empty = (np.asarray(low) == 0) & (np.asarray(high) == 0)  # both 0: everything is 0
    return np.where(is_empty, np.float32(0), steps * step + lowest)


def _infer_vars(ctx: InferContext) -> Sequence[OutputSpec]:
    if any(ctx.shape(name).elements not in (1, -1) for name in ("min", "max")):
        raise ctx.fail("min and max must be single numbers", value="min")
    return [(ctx.shape("x"), ctx.dtype("x"))]


@operator(f"FakeQuantWithMinMaxVars(x, min, max) [{_OPTIONS}]", infer=_infer_vars)
def fake_quant_with_min_max_vars(op: Any, x: Array, low: Array, high: Array) -> Any:
    return _pretended(op, x, low.reshape(()), high.reshape(()))


def _infer_per_channel(ctx: InferContext) -> Sequence[OutputSpec]:
    x = ctx.shape("x")
    for name in ("min", "max"):
        if not x.is_unknown_rank() and (not x or not dims_agree(ctx.shape(name).elements, x[-1])):
            raise ctx.fail(f"{name} has shape {ctx.shape(name)}, but x {x} needs one number per last dim", value=name)
    return [(x, ctx.dtype("x"))]


@operator(f"FakeQuantWithMinMaxVarsPerChannel(x, min, max) [{_OPTIONS}]", infer=_infer_per_channel)
def fake_quant_with_min_max_vars_per_channel(op: Any, x: Array, low: Array, high: Array) -> Any:
    """The range is that of the last axis."""
    return _pretended(op, x, low, high)
