"""Inference rules that many operators share."""

from __future__ import annotations

from collections.abc import Sequence

from ge.graph.tensor_desc import Shape
from ge.graph.types import DataType
from ge.ops.registry import InferContext, InferFunction, OutputSpec


def same_as(name: str, dtype: DataType | None = None) -> InferFunction:
    """One output of the shape of input ``name``; of its type too, unless ``dtype`` is given."""

    def infer(ctx: InferContext) -> Sequence[OutputSpec]:
        desc = ctx.desc(name)
        return [(desc.origin_shape, desc.data_type if dtype is None else dtype)]

    return infer


def broadcast_shapes(ctx: InferContext, shapes: Sequence[Shape]) -> Shape:
    """Broadcast by numpy's rule; unknown dims stay unknown unless another operand fixes them.

    Raises the node's E14001 with both shapes when they do not fit.
    """
    if any(s.is_unknown_rank() for s in shapes):
        return Shape([-2])
    rank = max((len(s) for s in shapes), default=0)
    result = [1] * rank
    for shape in shapes:
        for axis, dim in enumerate(shape, start=rank - len(shape)):
            have = result[axis]
            if dim == have or dim == 1:
                continue
            if have in (1, -1):
                result[axis] = dim
            elif dim != -1:
                raise ctx.fail(f"shapes {' and '.join(map(str, shapes))} cannot be broadcast")
    return Shape(result)


def broadcast(*names: str, dtype: DataType | None = None) -> InferFunction:
    """One output of the broadcast shape of the inputs; type of the first input unless ``dtype`` is given.

    Floating operands of different types are a reported error, not a silent promotion.
    """

    def infer(ctx: InferContext) -> Sequence[OutputSpec]:
        types = {ctx.dtype(n) for n in names}
        if len(types) > 1:
            raise ctx.fail(f"element types differ: {', '.join(f'{n} {ctx.dtype(n).name}' for n in names)}")
        shape = broadcast_shapes(ctx, [ctx.shape(n) for n in names])
        return [(shape, ctx.dtype(names[0]) if dtype is None else dtype)]

    return infer


def normalize_axis(ctx: InferContext, axis: int, rank: int) -> int:
    """Return ``axis`` in 0..rank-1. Raises the node's E14001 when it is out of range."""
    if not -rank <= axis < rank:
        raise ctx.fail(f"axis {axis} is out of range for rank {rank}")
    return axis % rank
