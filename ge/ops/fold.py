"""Col2ImV2: sum sliding blocks back into an image."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from ge.ops.conv import taps
from ge.ops.registry import Array, InferContext, Misfit, OutputSpec, operator
from ge.ops.window import Window, slide_all


def _windows(op: Any, sizes: Sequence[int], kernel: Sequence[int]) -> list[Window]:
    n = len(sizes)
    dilation, stride, padding = (list(v) * (n if len(v) == 1 else 1) for v in (op.dilation, op.stride, op.padding))
    pads = [p for value in padding for p in (value, value)] if len(padding) == n else padding
    if any(len(v) != n for v in (dilation, stride, kernel)) or len(pads) != 2 * n:
        raise Misfit(f"kernel_size {list(kernel)}, dilation, stride and padding do not fit output_size {list(sizes)}")
    return slide_all(sizes, kernel, stride, dilation, pads, "EXPLICIT")


def _infer_col2im(ctx: InferContext) -> Sequence[OutputSpec]:
    x, dtype = ctx.shape("x"), ctx.dtype("x")
    sizes, kernel = ctx.ints("output_size"), ctx.ints("kernel_size")
    if not x.is_unknown_rank() and len(x) != 3:
        raise ctx.fail(f"x has shape {x}, but needs rank 3", value="x")
    n, depth, blocks = [-1] * 3 if x.is_unknown_rank() else x
    if sizes is None or kernel is None:
        length = max(ctx.shape(name).elements for name in ("output_size", "kernel_size"))
        return [([-2] if length < 1 else [n, -1, *[-1] * length], dtype)]
    count = prod(w.count for w in _windows(ctx.op, sizes, kernel))
    if (depth != -1 and depth % prod(kernel)) or blocks not in (count, -1):
        raise ctx.fail(
            f"x has shape {x}, but its rows must be a multiple of {prod(kernel)}, its columns {count}", value="x"
        )
    return [([n, -1 if depth == -1 else depth // prod(kernel), *sizes], dtype)]


@operator("Col2ImV2(x, output_size, kernel_size) [dilation:I! padding:I! stride:I!]", infer=_infer_col2im)
def col2im_v2(op: Any, x: Array, output_size: Array, kernel_size: Array) -> Array:
    """x is [N, C * taps, blocks]. ``padding`` has one value per axis, or begin and end per axis."""
    sizes, kernel = np.ravel(output_size).tolist(), np.ravel(kernel_size).tolist()
    windows = _windows(op, sizes, kernel)
    blocks = x.reshape(len(x), -1, *kernel, *(w.count for w in windows))
    y = np.zeros((*blocks.shape[:2], *(w.size + w.before + w.after for w in windows)), x.dtype)
    every: tuple[Any, ...] = (slice(None), slice(None))
    for index, positions in taps(windows):
        y[every + positions] += blocks[every + index]
    return y[every + tuple(slice(w.before, w.before + w.size) for w in windows)]
