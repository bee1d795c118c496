"""Rearrangements between channels and space: DepthToSpace, SpaceToDepth."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ge.ops.layout import (
    channels_first,
    channels_first_name,
    check_format,
    from_channels_first,
    shape_channels_first,
    shape_in_format,
)
from ge.ops.registry import Array, InferContext, OutputSpec, operator


def _infer_block(ctx: InferContext) -> Sequence[OutputSpec]:
    form = check_format(ctx, ctx.op.data_format, channels_first_name(4))
    size = ctx.op.block_size
    if size < 1:
        raise ctx.fail(f"block_size {size} must be positive", value="block_size")
    if getattr(ctx.op, "mode", "DCR") not in ("DCR", "CRD"):
        raise ctx.fail(f"mode must be DCR or CRD, not {ctx.op.mode}", value="mode")
    shape = ctx.shape("x")
    if shape.is_unknown_rank():
        return [([-1] * 4, ctx.dtype("x"))]
    if len(shape) != 4:
        raise ctx.fail(f"x has shape {shape}, but needs rank 4", value="x")
    n, c, h, w = shape_channels_first(shape, form)
    if ctx.node.type == "DepthToSpace":
        if c != -1 and c % (size * size):
            raise ctx.fail(f"{c} channels are no multiple of block_size {size} squared", value="x")
        dims = [n, _over(c, size * size), _times(h, size), _times(w, size)]
    else:
        if any(d != -1 and d % size for d in (h, w)):
            raise ctx.fail(f"height {h} and width {w} must be multiples of block_size {size}", value="x")
        dims = [n, _times(c, size * size), _over(h, size), _over(w, size)]
    return [(shape_in_format(dims, form), ctx.dtype("x"))]


def _times(dim: int, factor: int) -> int:
    return -1 if dim == -1 else dim * factor


def _over(dim: int, divisor: int) -> int:
    return -1 if dim == -1 else dim // divisor


@operator("DepthToSpace(x) [block_size:i! mode:s=DCR data_format:s=NHWC]", infer=_infer_block, exact_types=True)
def depth_to_space(op: Any, x: Array) -> Array:
    """Mode DCR takes the block offsets from the outer part of the channels, CRD from the inner part."""
    n, c, h, w = channels_first(x, op.data_format).shape
    size = op.block_size
    depth = c // (size * size)
    split = channels_first(x, op.data_format)
    if op.mode == "CRD":
        split = split.reshape(n, depth, size, size, h, w).transpose(0, 1, 4, 2, 5, 3)
    else:
        split = split.reshape(n, size, size, depth, h, w).transpose(0, 3, 4, 1, 5, 2)
    return from_channels_first(split.reshape(n, depth, h * size, w * size), op.data_format)


@operator("SpaceToDepth(x) [block_size:i! data_format:s=NHWC]", infer=_infer_block, exact_types=True)
def space_to_depth(op: Any, x: Array) -> Array:
    x, size = channels_first(x, op.data_format), op.block_size
    n, c, h, w = x.shape
    split = x.reshape(n, c, h // size, size, w // size, size).transpose(0, 3, 5, 1, 2, 4)
    return from_channels_first(split.reshape(n, c * size * size, h // size, w // size), op.data_format)
