"""Windows of an image side by side: ExtractImagePatches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ge.ops.registry import Array, InferContext, Misfit, OutputSpec, operator
from ge.ops.window import Window, padding_mode, slide_all


def _windows(op: Any, height: int, width: int) -> list[Window]:
    lists = (op.ksizes, op.strides, op.rates)
    if any(len(values) != 4 or values[0] != 1 or values[3] != 1 for values in lists):
        raise Misfit(f"ksizes, strides and rates must be [1, rows, columns, 1], not {list(map(list, lists))}")
    kernel, strides, rates = (list(values[1:3]) for values in lists)
    return slide_all([height, width], kernel, strides, rates, [0] * 4, padding_mode(op, "padding"))


def _infer_patches(ctx: InferContext) -> Sequence[OutputSpec]:
    x = ctx.shape("x")
    if x.is_unknown_rank():
        return [([-1] * 4, ctx.dtype("x"))]
    if len(x) != 4:
        raise ctx.fail(f"x has shape {x}, but needs rank 4", value="x")
    rows, columns = _windows(ctx.op, x[1], x[2])
    depth = -1 if x[3] == -1 else x[3] * rows.kernel * columns.kernel
    return [([x[0], rows.count, columns.count, depth], ctx.dtype("x"))]


@operator("ExtractImagePatches(x) [ksizes:I! strides:I! rates:I! padding:s!]", infer=_infer_patches, exact_types=True)
def extract_image_patches(op: Any, x: Array) -> Array:
    """Images are channels last. A patch lies along the channels: rows, columns, then channels of the window."""
    windows = _windows(op, x.shape[1], x.shape[2])
    space = [max(w.size + w.before + w.after, w.reach) for w in windows]
    padded = np.zeros((x.shape[0], *space, x.shape[3]), x.dtype)
    inside = tuple(slice(w.before, w.before + w.size) for w in windows)
    padded[(slice(None), *inside)] = x
    rows, columns = windows
    taps = [padded[:, rows.taps(i), columns.taps(j)] for i in range(rows.kernel) for j in range(columns.kernel)]
    return np.concatenate(taps, axis=-1)
