"""Softmax and its logarithm over neighbouring axes, a few rows at a time."""

from __future__ import annotations

from math import prod

import numpy as np

from ge.graph.types import numpy_dtype
from ge.ops.softmax import takes_masked_rows
from simulator.kernels.blocks import compute_dtype, row_sums
from simulator.kernels.halves import convert
from simulator.kernels.registry import FLOATS, Array, Inputs, Kernel, KernelRequest, Outputs, ScratchLayout, kernel

BLOCK_ELEMENTS = 32768
"""Most elements of a block of rows, unless one row alone has more."""


@kernel("SoftmaxV2", "LogSoftmaxV2", dtypes=FLOATS)
def build_softmax(request: KernelRequest) -> Kernel | None:
    """Bind a softmax over axes that lie side by side."""
    shape, y_type = request.shape(), numpy_dtype(request.outputs[0].data_type)
    axes = sorted(axis % len(shape) for axis in request.op.axes) if shape else []
    if axes and request.op.get("_x_flatten", False):
        axes = list(range(axes[0], len(shape)))
    if not axes or axes != list(range(axes[0], axes[-1] + 1)) or not prod(shape):
        return None
    outer, count, inner = prod(shape[: axes[0]]), prod(shape[axes[0] : axes[-1] + 1]), prod(shape[axes[-1] + 1 :])
    dtype, is_log = compute_dtype(request.dtype()), request.type == "LogSoftmaxV2"
    is_narrow = dtype != numpy_dtype(request.dtype())
    is_rounded = dtype != y_type
    is_stepwise = is_narrow and y_type == np.float16 and request.op.get("_x_half_steps", False)
    takes_masked = is_narrow and takes_masked_rows(request.op, request.outputs[0].data_type)
    lowest = np.finfo(dtype).min
    block = min(max(BLOCK_ELEMENTS // (count * inner), 1), outer)
    sum_rows = row_sums(count, dtype)
    layout = ScratchLayout()
    wide = layout.take([block, count, inner][: None if is_narrow else 0], dtype)
    results = layout.take([block, count, inner][: None if is_rounded else 0], dtype)
    powers = layout.take([block, count, inner][: None if is_log else 0], dtype)
    totals = layout.take([block, 1, inner], dtype)
    half_totals = layout.take([block, 1, inner][: None if is_stepwise else 0], y_type)

    def run(inputs: Inputs, outputs: Outputs, scratch: Array) -> None:
        x = inputs[0].reshape(outer, count, inner)
        y = outputs[0].reshape(outer, count, inner)
        for start in range(0, outer, block):
            rows = slice(start, min(start + block, outer))
            size = rows.stop - start
            source, target, total = x[rows], y[rows], totals(scratch)[:size]
            if is_narrow:
                source = wide(scratch)[:size]
                convert(source, x[rows])
            if takes_masked:
                np.maximum(source, lowest, out=source)
            result = results(scratch)[:size] if is_rounded else target
            np.maximum.reduce(source, axis=1, out=total, keepdims=True)
            np.subtract(source, total, out=result)
            power = powers(scratch)[:size] if is_log else result
            np.exp(result, out=power)
            if is_stepwise:
                convert(target, power)
                np.copyto(power, target)
            if inner == 1:
                sum_rows(power[..., 0], total[..., 0])
            else:
                np.add.reduce(power, axis=1, out=total, keepdims=True)
            if is_stepwise:
                _round_to_half(total, half_totals(scratch)[:size])
            if is_log:
                np.log(total, out=total)
                np.subtract(result, total, out=result)
            else:
                np.divide(result, total, out=result)
            if is_rounded:
                convert(target, result)

    return Kernel("log-softmax" if is_log else "softmax", run, layout.size, is_in_place_safe=True)


def _round_to_half(values: Array, halves: Array) -> None:
    """Round in place; what float16 cannot hold stays."""
    np.copyto(halves, values, casting="unsafe")
    np.copyto(values, halves, where=np.isfinite(halves))
