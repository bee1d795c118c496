"""Matrix products: plain, batched, transposed; narrow floats in float32, a few rows at a time."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from ge.graph.types import numpy_dtype
from simulator.kernels.blocks import compute_dtype
from simulator.kernels.halves import convert
from simulator.kernels.registry import FLOATS, Array, Inputs, Kernel, KernelRequest, Outputs, ScratchLayout, kernel

BLOCK_ELEMENTS = 1 << 18
"""Most elements of widened rows of the first operand, unless one row alone has more."""


@kernel("MatMul", "MatMulV2", "MatMulV3", "BatchMatMul", "BatchMatMulV2", "BatchMatMulV3", dtypes=FLOATS)
def build_matmul(request: KernelRequest) -> Kernel | None:
    """Bind ``x1 @ x2 + bias``, either operand transposed if wanted, batch axes broadcast."""
    op = request.op
    prefix = "adj" if request.type.startswith("Batch") else "transpose"
    swaps = tuple(bool(getattr(op, f"{prefix}_{name}")) for name in ("x1", "x2"))
    first, second, y = request.shape(0), request.shape(1), tuple(request.outputs[0].shape)
    if request.dtype(0) != request.dtype(1) or not prod(first) or not prod(second):
        return None
    has_vector = len(first) < 2 or len(second) < 2
    if compute_dtype(request.dtype(0)) != numpy_dtype(request.dtype(0)):
        return None if has_vector else _narrow(request, swaps)
    if has_vector or swaps[0] or prod(second[:-2]) != 1 or len(second) > len(first):
        shapes = (first, second, y)
    else:  # one matrix for the whole batch: the rows of all samples make one product
        shapes = ((prod(first[:-1]), first[-1]), second[-2:], (prod(first[:-1]), y[-1]))
    return _direct(shapes, swaps)


def _direct(shapes: tuple[tuple[int, ...], ...], swaps: tuple[bool, ...]) -> Kernel:
    def run(inputs: Inputs, outputs: Outputs, scratch: Array) -> None:
        x1, x2 = (
            x.reshape(shape).swapaxes(-1, -2) if is_swapped else x.reshape(shape)
            for x, shape, is_swapped in zip(inputs[:2], shapes[:2], swaps, strict=True)
        )
        y = outputs[0]
        np.matmul(x1, x2, out=y.reshape(shapes[2]))
        bias = inputs[2] if len(inputs) > 2 else None
        if bias is not None:
            np.add(y, bias, out=y)

    depth = shapes[0][-2 if swaps[0] and len(shapes[0]) > 1 else -1]
    return Kernel("matmul", run, product_size=prod(shapes[2][-2:]) * depth)


def _narrow(request: KernelRequest, swaps: tuple[bool, ...]) -> Kernel:
    dtype = compute_dtype(request.dtype(0))
    shapes = [
        (*shape[:-2], shape[-1], shape[-2]) if is_swapped else shape
        for shape, is_swapped in zip((request.shape(0), request.shape(1)), swaps, strict=True)
    ]
    y_shape = tuple(request.outputs[0].shape)
    (rows, depth), columns = shapes[0][-2:], shapes[1][-1]
    batches = list(np.ndindex(*y_shape[:-2]))
    picks = [_batch_index(shape[:-2]) for shape in shapes]
    block = min(max(BLOCK_ELEMENTS // depth, 1), rows)
    layout = ScratchLayout()
    first_block = layout.take([block, depth], dtype)
    constant = request.constants.get(1)
    known = None if constant is None else constant.astype(dtype)
    second_matrix = layout.take([depth, columns][: None if known is None else 0], dtype)
    result_block = layout.take([block, columns], dtype)

    def run(inputs: Inputs, outputs: Outputs, scratch: Array) -> None:
        x1 = inputs[0].swapaxes(-1, -2) if swaps[0] else inputs[0]
        x2 = inputs[1] if known is None else known
        x2 = x2.swapaxes(-1, -2) if swaps[1] else x2
        bias = inputs[2] if len(inputs) > 2 else None
        if bias is not None:
            bias = np.broadcast_to(bias, y_shape)
        for batch in batches:
            left, right = x1[picks[0](batch)], x2[picks[1](batch)]
            if known is None:
                wide = second_matrix(scratch)
                convert(wide, right)
                right = wide
            for start in range(0, rows, block):
                stop = min(start + block, rows)
                part, result = first_block(scratch)[: stop - start], result_block(scratch)[: stop - start]
                convert(part, left[start:stop])
                np.matmul(part, right, out=result)
                if bias is not None:
                    # the rows of the first operand are no longer needed; a bias of `columns` may be wider than they
                    for row, addend in zip(result, bias[batch][start:stop], strict=True):
                        np.add(row, addend, out=row)
                convert(outputs[0][batch][start:stop], result)

    return Kernel("matmul-widened", run, layout.size, product_size=block * depth * columns)


def _batch_index(shape: tuple[int, ...]) -> Callable[[tuple[int, ...]], tuple[Any, ...]]:
    """Return how an operand with these batch axes is indexed by an index of the result."""
    if not shape:
        return lambda batch: ()
    return lambda batch: tuple(0 if dim == 1 else i for dim, i in zip(shape, batch[-len(shape) :], strict=True))
