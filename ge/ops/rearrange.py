"""Operators that move elements: transposition, blocks between axes, reversal, rotation."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ge.ops.inference import axis_in_rank, dims_agree, distinct_axes, same_as, vector_length
from ge.ops.registry import InferContext, InferFunction, Misfit, OutputSpec, operator


# -- Transpose ---------------------------------------------------------------------------------------------------------
def _permuted(x: Sequence[int], perm: Sequence[int]) -> list[int]:
    if len(perm) != len(x) or len(distinct_axes(perm, len(x))) != len(x):
        raise Misfit(f"perm {list(perm)} does not fit shape {list(x)}")
    return [x[axis] for axis in perm]


def _transpose(ctx: InferContext) -> Sequence[OutputSpec]:
    x, perm, dtype = ctx.shape("x"), ctx.ints("perm"), ctx.dtype("x")
    if x.is_unknown_rank():
        count = vector_length(ctx, "perm")
        return [([-2] if count == -1 else [-1] * count, dtype)]
    return [([-1] * len(x) if perm is None else _permuted(x, perm), dtype)]


def _transpose_d(ctx: InferContext) -> Sequence[OutputSpec]:
    x, perm = ctx.shape("x"), ctx.op.perm
    return [([-1] * len(perm) if x.is_unknown_rank() else _permuted(x, perm), ctx.dtype("x"))]


@operator("Transpose(x, perm)", infer=_transpose, exact_types=True)
def transpose(op: Any, x: Any, perm: Any) -> Any:
    return np.transpose(x, np.ravel(perm))


@operator("TransposeD(x) [perm:I!]", infer=_transpose_d, exact_types=True)
def transpose_d(op: Any, x: Any) -> Any:
    return np.transpose(x, op.perm)


# -- blocks between space and batch -----------------------------------------------------------------------------------
def _blocks(numbers: Any, borders: Any) -> tuple[list[int], list[tuple[int, int]]]:
    block = [int(size) for size in np.ravel(numbers)]
    widths = [int(width) for width in np.ravel(borders)]
    if len(widths) != 2 * len(block) or any(size < 1 for size in block) or any(width < 0 for width in widths):
        raise Misfit(f"block_shape {block} and borders {widths} do not fit each other")
    return block, list(zip(widths[::2], widths[1::2], strict=True))


def _batch_divided(x: Sequence[int], block: Sequence[int], crops: Sequence[tuple[int, int]]) -> list[int]:
    """Return the result shape of BatchToSpaceND; ``x`` may hold unknown dims."""
    count = math.prod(block)
    if len(x) < len(block) + 1 or (x[0] != -1 and x[0] % count):
        raise Misfit(f"block_shape {list(block)} does not fit shape {list(x)}")
    dims = [x[0] if x[0] == -1 else x[0] // count, *x[1:]]
    for axis, (size, (before, after)) in enumerate(zip(block, crops, strict=True), start=1):
        dims[axis] = -1 if x[axis] == -1 else x[axis] * size - before - after
        if x[axis] != -1 and dims[axis] < 0:
            raise Misfit(f"crops {list(crops)} cut more than shape {list(x)} has")
    return dims


def _batch_multiplied(x: Sequence[int], block: Sequence[int], pads: Sequence[tuple[int, int]]) -> list[int]:
    """Return the result shape of SpaceToBatchND; ``x`` may hold unknown dims."""
    if len(x) < len(block) + 1:
        raise Misfit(f"block_shape {list(block)} does not fit shape {list(x)}")
    dims = [x[0] if x[0] == -1 else x[0] * math.prod(block), *x[1:]]
    for axis, (size, (before, after)) in enumerate(zip(block, pads, strict=True), start=1):
        if x[axis] != -1 and (x[axis] + before + after) % size:
            raise Misfit(f"dim {axis} of shape {list(x)}, padded by {before} and {after}, is not divisible by {size}")
        dims[axis] = -1 if x[axis] == -1 else (x[axis] + before + after) // size
    return dims


def _by_blocks(borders: str, rule: Callable[..., list[int]]) -> InferFunction:
    def infer(ctx: InferContext) -> Sequence[OutputSpec]:
        x, block, widths = ctx.shape("x"), ctx.value("block_shape"), ctx.value(borders)
        if x.is_unknown_rank():
            return [(x, ctx.dtype("x"))]
        if block is None or widths is None:
            count = vector_length(ctx, "block_shape")
            first_kept = len(x) if count == -1 else count + 1
            return [([-1] * min(first_kept, len(x)) + list(x[first_kept:]), ctx.dtype("x"))]
        return [(rule(x, *_blocks(block, widths)), ctx.dtype("x"))]

    return infer


@operator("BatchToSpaceND(x, block_shape, crops)", infer=_by_blocks("crops", _batch_divided), exact_types=True)
def batch_to_space_nd(op: Any, x: Any, block_shape: Any, crops: Any) -> Any:
    block, widths = _blocks(block_shape, crops)
    dims = _batch_divided(x.shape, block, widths)
    m, space, rest = len(block), x.shape[1 : len(block) + 1], x.shape[len(block) + 1 :]
    parts = x.reshape(*block, dims[0], *space, *rest)
    order = [m]
    for axis in range(m):
        order += [m + 1 + axis, axis]
    parts = parts.transpose(*order, *range(2 * m + 1, parts.ndim))
    whole = parts.reshape(dims[0], *[size * dim for size, dim in zip(block, space, strict=True)], *rest)
    cuts = [slice(before, before + dim) for (before, _), dim in zip(widths, dims[1:], strict=False)]
    return whole[(slice(None), *cuts)]


@operator("SpaceToBatchND(x, block_shape, paddings)", infer=_by_blocks("paddings", _batch_multiplied), exact_types=True)
def space_to_batch_nd(op: Any, x: Any, block_shape: Any, paddings: Any) -> Any:
    block, widths = _blocks(block_shape, paddings)
    dims = _batch_multiplied(x.shape, block, widths)
    m, rest = len(block), x.shape[len(block) + 1 :]
    padded_space = [size * dim for size, dim in zip(block, dims[1:], strict=False)]
    padded = np.zeros((x.shape[0], *padded_space, *rest), x.dtype)
    padded[(slice(None), *[slice(b, b + d) for (b, _), d in zip(widths, x.shape[1:], strict=False)])] = x
    split = [part for size, dim in zip(block, dims[1:], strict=False) for part in (dim, size)]
    parts = padded.reshape(x.shape[0], *split, *rest)
    order = [*range(2, 2 * m + 1, 2), 0, *range(1, 2 * m, 2), *range(2 * m + 1, parts.ndim)]
    return parts.transpose(order).reshape(dims)


# -- reversal ----------------------------------------------------------------------------------------------------------
@operator("ReverseV2(x, axis)", infer=same_as("x"), exact_types=True)
def reverse_v2(op: Any, x: Any, axis: Any) -> Any:
    return np.flip(x, tuple(distinct_axes(np.ravel(axis).tolist(), x.ndim)))


def _sequences(ctx: InferContext) -> Sequence[OutputSpec]:
    x, lengths = ctx.shape("x"), ctx.shape("seq_lengths")
    if not x.is_unknown_rank():
        axes = distinct_axes([ctx.op.seq_dim, ctx.op.batch_dim], len(x))
        batch = x[axes[1]]
        if not lengths.is_unknown_rank() and (len(lengths) != 1 or not dims_agree(lengths[0], batch)):
            raise ctx.fail(f"seq_lengths of shape {lengths} do not fit dim {axes[1]} of shape {x}")
    return [(x, ctx.dtype("x"))]


@operator("ReverseSequence(x, seq_lengths) [seq_dim:i! batch_dim:i=0]", infer=_sequences, exact_types=True)
def reverse_sequence(op: Any, x: Any, seq_lengths: Any) -> Any:
    seq, batch = distinct_axes([op.seq_dim, op.batch_dim], x.ndim)
    lengths = np.asarray(seq_lengths).astype(np.int64)
    if lengths.size and not 0 <= lengths.min() <= lengths.max() <= x.shape[seq]:
        raise Misfit(f"seq_lengths {lengths.tolist()} are outside 0..{x.shape[seq]}")
    rows = np.moveaxis(x, (batch, seq), (0, 1))
    at = np.arange(x.shape[seq])
    source = np.where(at < lengths[:, None], lengths[:, None] - 1 - at, at)
    return np.moveaxis(rows[np.arange(len(lengths))[:, None], source], (0, 1), (batch, seq))


@operator("InvertPermutation(x)", infer=same_as("x"), exact_types=True)
def invert_permutation(op: Any, x: Any) -> Any:
    if not np.array_equal(np.sort(x), np.arange(x.size)):
        raise Misfit("input x is no permutation")
    return np.argsort(x).astype(x.dtype)


@operator("RollV2(input, shift, axis) -> output", infer=same_as("input"), exact_types=True)
def roll(op: Any, input: Any, shift: Any, axis: Any) -> Any:
    """Shift elements towards larger positions, those pushed out come in at the front; an axis may be named twice."""
    steps, axes = np.ravel(shift).tolist(), np.ravel(axis).tolist()
    if len(steps) != len(axes):
        raise Misfit(f"shift {steps} and axis {axes} differ in length")
    return np.roll(input, steps, [axis_in_rank(int(at), input.ndim) for at in axes])
