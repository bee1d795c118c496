"""Repeating elements: Tile, Expand, BroadcastTo."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ge.ops.inference import broadcast_shapes, dims_of, plain_number, vector_length, vector_parts
from ge.ops.registry import Array, InferContext, Misfit, OutputSpec, operator


def _tiled(x: Sequence[int], multiples: Sequence[int]) -> list[int]:
    """Return the shape of ``x`` repeated; both may hold unknown dims."""
    if len(x) != len(multiples):
        raise Misfit(f"multiples {list(multiples)} do not fit shape {list(x)}")
    return [_product(dim, count) for dim, count in zip(x, multiples, strict=True)]


def _product(dim: int, count: int) -> int:
    if 1 in (dim, count):
        return count if dim == 1 else dim
    return 0 if 0 in (dim, count) else -1 if -1 in (dim, count) else dim * count


def _counts(multiples: Sequence[int]) -> Sequence[int]:
    if any(count < 0 for count in multiples):
        raise Misfit(f"multiples {list(multiples)} do not fit: one is negative")
    return multiples


def _tile(ctx: InferContext) -> Sequence[OutputSpec]:
    x, multiples, dtype = ctx.shape("x"), vector_parts(ctx, "multiples"), ctx.dtype("x")
    if x.is_unknown_rank():
        return [(x if multiples is None else [-1] * len(multiples), dtype)]
    if multiples is None:
        return [([-1] * len(x), dtype)]
    _counts([number for number in map(plain_number, multiples) if number is not None])
    return [(_tiled(x, dims_of(ctx, "multiples", multiples)), dtype)]


def _tile_d(ctx: InferContext) -> Sequence[OutputSpec]:
    x = ctx.shape("x")
    return [
        ([-1] * len(ctx.op.multiples) if x.is_unknown_rank() else _tiled(x, _counts(ctx.op.multiples)), ctx.dtype("x"))
    ]


def _repeat(x: Array, multiples: Sequence[int]) -> Array:
    _tiled(x.shape, _counts(multiples))
    return np.tile(x, multiples)


@operator("Tile(x, multiples)", infer=_tile, exact_types=True)
def tile(op: Any, x: Any, multiples: Any) -> Any:
    return _repeat(x, np.ravel(multiples).tolist())


@operator("TileD(x) [multiples:I!]", infer=_tile_d, exact_types=True)
def tile_d(op: Any, x: Any) -> Any:
    return _repeat(x, op.multiples)


def _expanded(ctx: InferContext) -> Sequence[OutputSpec]:
    x, wanted = ctx.shape("x"), vector_parts(ctx, "shape")
    if wanted is None:
        return [([-2], ctx.dtype("x"))]
    return [(broadcast_shapes(ctx, [x, dims_of(ctx, "shape", wanted)]), ctx.dtype("x"))]


def _expand(x: Any, shape: Any) -> Any:
    try:
        dims = np.broadcast_shapes(x.shape, tuple(np.ravel(shape).tolist()))
    except ValueError:
        raise Misfit(f"shape {list(x.shape)} cannot be expanded to {np.ravel(shape).tolist()}") from None
    return np.broadcast_to(x, dims).copy()


@operator("Expand(x, shape)", infer=_expanded, exact_types=True)
def expand(op: Any, x: Any, shape: Any) -> Any:
    return _expand(x, shape)


@operator("BroadcastTo(x, shape)", infer=_expanded, exact_types=True)
def broadcast_to(op: Any, x: Any, shape: Any) -> Any:
    return _expand(x, shape)


def _joint_shape(ctx: InferContext) -> Sequence[OutputSpec]:
    first, second = vector_length(ctx, "x1"), vector_length(ctx, "x2")
    return [([-1 if -1 in (first, second) else max(first, second)], ctx.dtype("x1"))]


@operator("BroadcastArgs(x1, x2)", infer=_joint_shape, exact_types=True)
def broadcast_args(op: Any, x1: Array, x2: Array) -> Any:
    try:
        return np.array(np.broadcast_shapes(tuple(x1.tolist()), tuple(x2.tolist())), x1.dtype)
    except ValueError:
        raise Misfit(f"shapes {x1.tolist()} and {x2.tolist()} cannot be broadcast") from None
