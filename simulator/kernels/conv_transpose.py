"""Transposed convolution on channels-first data: a matrix product spreads some input rows, shifted sums gather them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod
from typing import Any

import numpy as np

from ge.graph.types import DataType, numpy_dtype
from ge.ops.conv_transpose import requested_sizes, transposed_windows
from simulator.kernels.blocks import compute_dtype
from simulator.kernels.halves import convert
from simulator.kernels.registry import Array, Inputs, Kernel, KernelRequest, Outputs, ScratchLayout, kernel
from simulator.kernels.taps import Tap, clipped_taps

SPREAD_BYTES = 4 << 20
"""Most bytes of spread rows, unless a single one has more."""
_TYPES = (DataType.DT_FLOAT, DataType.DT_FLOAT16, DataType.DT_BF16, DataType.DT_DOUBLE)
_INTEGERS = (DataType.DT_INT32, DataType.DT_INT64)


@kernel("Conv2DTranspose", "Conv3DTranspose", dtypes=_INTEGERS)
def build_conv_transpose(request: KernelRequest) -> Kernel | None:
    """Bind the transpose of a convolution; input 0 is ``input_size``."""
    return _build(request, x=1, filter=2, bias=3)


@kernel("Conv2DBackpropInput", dtypes=_INTEGERS)
def build_backprop_input(request: KernelRequest) -> Kernel | None:
    """Bind the gradient of a convolution with respect to its input, which is the same thing."""
    return _build(request, x=2, filter=1, bias=None)


def _build(request: KernelRequest, x: int, filter: int, bias: int | None) -> Kernel | None:
    op, form, size = request.op, request.op.data_format, request.ints(0)
    if not form.startswith("NC") or op.get("_x_filter_format", form) != form or size is None:
        return None
    if request.dtype(x) not in _TYPES or request.dtype(x) != request.dtype(filter):
        return None
    x_shape, weights_shape, y_shape = request.shape(x), request.shape(filter), tuple(request.outputs[0].shape)
    if not prod(x_shape) or not prod(y_shape):
        return None
    windows = transposed_windows(op, x_shape[2:], weights_shape[2:], requested_sizes(op, size))
    groups, inputs = op.groups, x_shape[1] // op.groups
    outputs = weights_shape[1]
    kernel_shape, counts = weights_shape[2:], x_shape[2:]
    dtype = compute_dtype(request.dtype(x))
    is_narrow = dtype != numpy_dtype(request.dtype(x))
    inner = prod(counts[1:])
    row_bytes = groups * outputs * prod(kernel_shape) * inner * dtype.itemsize
    block = min(max(SPREAD_BYTES // row_bytes, 1), counts[0])
    layout = ScratchLayout()
    spread_rows = layout.take([groups * outputs * prod(kernel_shape) * block * inner], dtype)
    wide_rows = layout.take([x_shape[1] * block * inner * is_narrow], dtype)
    sums = layout.take([prod(y_shape[1:]) * is_narrow], dtype)
    taps = list(product(*map(clipped_taps, windows)))

    def run(arrays: Inputs, results: Outputs, scratch: Array) -> None:
        weights = arrays[filter].astype(dtype, copy=False).reshape(groups, inputs, -1).swapaxes(1, 2)
        addend = arrays[bias] if bias is not None and len(arrays) > bias else None
        for sample, target in zip(arrays[x], results[0], strict=True):
            total = sums(scratch).reshape(y_shape[1:]) if is_narrow else target
            total.fill(0)
            if addend is not None:
                np.copyto(total, addend.reshape(-1, *[1] * len(counts)), casting="unsafe")
            for start in range(0, counts[0], block):
                rows = slice(start, min(start + block, counts[0]))
                operand = sample[:, rows].reshape(groups, inputs, -1)
                if is_narrow:
                    wide = wide_rows(scratch)[: operand.size].reshape(operand.shape)
                    convert(wide, operand)
                    operand = wide
                size = groups * outputs * prod(kernel_shape) * operand.shape[2]
                spread = spread_rows(scratch)[:size].reshape(groups, -1, operand.shape[2])
                np.matmul(weights, operand, out=spread)
                parts = spread.reshape(groups * outputs, *kernel_shape, rows.stop - rows.start, *counts[1:])
                for combination in taps:
                    _gather(parts, combination, rows, total)
            if is_narrow:
                convert(target, total)

    size = inputs * outputs * prod(kernel_shape) * block * inner
    return Kernel("conv-transposed", run, layout.size, product_size=size)


def _gather(parts: Array, taps: Sequence[Tap], rows: slice, total: Array) -> None:
    """Add what one tap spread from the input rows ``rows`` to the elements that it meets."""
    first, *others = taps
    start, stop = max(first.windows.start, rows.start), min(first.windows.stop, rows.stop)
    if start >= stop:
        return
    step = first.elements.step
    begin = first.elements.start + (start - first.windows.start) * step
    elements = slice(begin, begin + (stop - start - 1) * step + 1, step)
    source: tuple[Any, ...] = (slice(None), first.index, *(t.index for t in others))
    source += (slice(start - rows.start, stop - rows.start), *(t.windows for t in others))
    target = total[(slice(None), elements, *(t.elements for t in others))]
    np.add(target, parts[source], out=target)
