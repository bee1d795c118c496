"""Max pooling that tells where each maximum came from, and its inverse.

XMaxPoolWithIndices and XMaxUnpool are ours: GE has no operator for ONNX's MaxPool with Indices (1 to 3 spatial axes,
channels first) and its inverse. Their indices are int64 and count over the whole tensor, batch and channels included;
``storage_order`` 1 counts the spatial axes column by column. Padding attributes: see ge/ops/window.py; ``pads`` is
[begin, end] per axis; ksize, strides, dilations have one entry per spatial axis.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from ge.graph.types import DataType
from ge.ops.layout import (
    channels_first,
    check_format,
    from_channels_first,
    shape_channels_first,
    shape_in_format,
)
from ge.ops.pool import lowest, pool_windows
from ge.ops.registry import Array, InferContext, Misfit, OutputSpec, operator
from ge.ops.window import Window, pad_for, padding_mode, slide_all


def max_pool_with_index(x: Array, windows: Sequence[Window]) -> tuple[Array, list[Array]]:
    """Return the maximum of every window and, per spatial axis, where in ``x`` (unpadded) its first one lies."""
    padded = pad_for(x, windows, lowest(x.dtype))
    counts = tuple(w.count for w in windows)
    best = np.full((*x.shape[:2], *counts), lowest(x.dtype), x.dtype)
    where = [np.full(best.shape, -1, np.int64) for _ in windows]
    for index in np.ndindex(*(w.kernel for w in windows)):
        places = [
            np.arange(w.count) * w.stride + i * w.dilation - w.before for w, i in zip(windows, index, strict=True)
        ]
        grids = np.meshgrid(*places, indexing="ij")
        is_inside = np.logical_and.reduce([(g >= 0) & (g < w.size) for g, w in zip(grids, windows, strict=True)])
        tap = padded[(slice(None), slice(None), *(w.taps(i) for w, i in zip(windows, index, strict=True)))]
        is_better = is_inside & ((tap > best) | (where[0] < 0))
        best = np.where(is_better, tap, best)
        where = [np.where(is_better, grid, old) for grid, old in zip(grids, where, strict=True)]
    return best, where


def flat_index(where: Sequence[Array], sizes: Sequence[int]) -> Array:
    """Return row-major positions from coordinates."""
    flat = np.zeros_like(where[0])
    for coordinate, size in zip(where, sizes, strict=True):
        flat = flat * size + coordinate
    return flat


def _plane_offsets(x: Array, plane: int) -> Array:
    n, c = x.shape[:2]
    return (np.arange(n * c, dtype=np.int64) * plane).reshape(n, c, *[1] * (x.ndim - 2))


# -- TensorFlow's --------------------------------------------------------------------------------------------------
def _infer_argmax(ctx: InferContext) -> Sequence[OutputSpec]:
    form, shape = check_format(ctx, ctx.op.data_format, "NCHW"), ctx.shape("x")
    if ctx.op.Targmax not in (DataType.DT_INT32, DataType.DT_INT64):
        raise ctx.fail(f"Targmax must be int32 (3) or int64 (9), not {ctx.op.Targmax}", value="Targmax")
    if shape.is_unknown_rank():
        dims = [-1] * 4
    elif len(shape) != 4:
        raise ctx.fail(f"x has shape {shape}, but needs rank 4", value="x")
    else:
        n, c, *sizes = shape_channels_first(shape, form)
        windows = pool_windows(ctx.op, sizes, attribute="padding")
        dims = shape_in_format([n, c, *(w.count for w in windows)], form)
    return [(dims, ctx.dtype("x")), (dims, DataType(ctx.op.Targmax))]


@operator(
    "MaxPoolWithArgmax(x) -> y, argmax [ksize:I! strides:I! padding:s! Targmax:i=9 include_batch_in_index:b=F "
    "data_format:s=NHWC nan_prop:b=F]",
    infer=_infer_argmax,
)
def max_pool_with_argmax(op: Any, x: Array) -> tuple[Array, Array]:
    """``argmax`` counts the elements of one sample in the order of data_format, of the whole batch on demand.

    A NaN loses against every number unless ``nan_prop``, where it wins.
    """
    form = op.data_format
    x = channels_first(x, form)
    ranked = x if x.dtype.kind != "f" else np.where(np.isnan(x), np.inf if op.nan_prop else -np.inf, x)
    _, (rows, columns) = max_pool_with_index(ranked, pool_windows(op, x.shape[2:], attribute="padding"))
    n, c, height, width = x.shape
    sample = np.arange(n).reshape(n, 1, 1, 1)
    channel = np.arange(c).reshape(1, c, 1, 1)
    y = x[sample, channel, rows, columns]
    coordinates = {"N": sample * (1 if op.include_batch_in_index else 0), "C": channel, "H": rows, "W": columns}
    sizes = {"N": n, "C": c, "H": height, "W": width}
    grids = np.broadcast_arrays(*(coordinates[letter] for letter in form))
    flat = flat_index(grids, [sizes[letter] for letter in form])
    return from_channels_first(y, form), from_channels_first(flat, form)


# -- ONNX's --------------------------------------------------------------------------------------------------------
def _windows(op: Any, sizes: Sequence[int]) -> list[Window]:
    n = len(sizes)
    ksize, strides, dilations = (list(v) * (n if len(v) == 1 else 1) for v in (op.ksize, op.strides, op.dilations))
    pads = list(op.pads) if op.pads else [0] * 2 * n
    if any(len(values) != n for values in (ksize, strides, dilations)):
        raise Misfit(f"ksize {op.ksize}, strides {op.strides} and dilations {op.dilations} need {n} entries each")
    return slide_all(sizes, ksize, strides, dilations, pads, padding_mode(op, "padding_mode"), bool(op.ceil_mode))


def _infer_with_indices(ctx: InferContext) -> Sequence[OutputSpec]:
    shape = ctx.shape("x")
    if shape.is_unknown_rank():
        return [(shape, ctx.dtype("x")), (shape, DataType.DT_INT64)]
    if len(shape) < 3:
        raise ctx.fail(f"x has shape {shape}, but needs a batch, a channel and a spatial axis", value="x")
    dims = [*shape[:2], *(w.count for w in _windows(ctx.op, shape[2:]))]
    return [(dims, ctx.dtype("x")), (dims, DataType.DT_INT64)]


@operator(
    "XMaxPoolWithIndices(x) -> y, indices [ksize:I! strides:I=[1] dilations:I=[1] pads:I=[] padding_mode:s=CALCULATED "
    "ceil_mode:b=F storage_order:i=0]",
    infer=_infer_with_indices,
)
def max_pool_with_indices(op: Any, x: Array) -> tuple[Array, Array]:
    y, where = max_pool_with_index(x, _windows(op, x.shape[2:]))
    sizes = x.shape[2:]
    by_column = op.storage_order == 1
    plane = flat_index(where[::-1], sizes[::-1]) if by_column else flat_index(where, sizes)
    return y, plane + _plane_offsets(x, prod(sizes))


def _unpooled(op: Any, sizes: Sequence[int]) -> list[int]:
    n = len(sizes)
    ksize, strides = (list(v) * (n if len(v) == 1 else 1) for v in (op.ksize, op.strides))
    pads = list(op.pads) if op.pads else [0] * 2 * n
    if len(ksize) != n or len(strides) != n or len(pads) != 2 * n:
        raise Misfit(f"ksize {op.ksize} and strides {op.strides} need {n} entries each, pads {op.pads} twice as many")
    return [
        -1 if size < 0 else (size - 1) * strides[i] + ksize[i] - pads[2 * i] - pads[2 * i + 1]
        for i, size in enumerate(sizes)
    ]


def _infer_unpool(ctx: InferContext) -> Sequence[OutputSpec]:
    shape, dtype = ctx.shape("x"), ctx.dtype("x")
    if ctx.has("output_shape"):
        wanted = ctx.ints("output_shape")
        if wanted is None:
            return [([-2] if shape.is_unknown_rank() else [-1] * len(shape), dtype)]
        if min(wanted) < 0 or (not shape.is_unknown_rank() and len(wanted) != len(shape)):
            raise ctx.fail(f"output_shape {wanted} does not fit x {shape}", value="output_shape")
        return [(wanted, dtype)]
    if shape.is_unknown_rank():
        return [(shape, dtype)]
    return [([*shape[:2], *_unpooled(ctx.op, shape[2:])], dtype)]


@operator(
    "XMaxUnpool(x, indices, output_shape?) [ksize:I! strides:I=[1] pads:I=[]]",
    infer=_infer_unpool,
)
def max_unpool(op: Any, x: Array, indices: Array, output_shape: Array | None) -> Array:
    """Put each value at its index; zeros elsewhere. Raises ``Misfit`` for an index outside the result."""
    default = [*x.shape[:2], *_unpooled(op, x.shape[2:])]
    shape = default if output_shape is None else np.ravel(output_shape).tolist()
    y = np.zeros(prod(shape), x.dtype)
    places = np.ravel(indices)
    if places.size and not (places.min() >= 0 and places.max() < y.size):
        raise Misfit(f"indices reach from {places.min()} to {places.max()}, but the result has {y.size} elements")
    y[places] = np.ravel(x)
    return y.reshape(shape)
