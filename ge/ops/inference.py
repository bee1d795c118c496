"""Inference rules that many operators share."""

from __future__ import annotations

from collections.abc import Sequence

from ge.graph.tensor_desc import OpenDim, Shape, TensorDesc, same_dim
from ge.graph.types import DataType
from ge.ops.registry import READS, InferContext, InferFunction, Misfit, OutputSpec
from ge.tensor_memory import MAX_RANK


def _describing_one(infer: InferFunction, *names: str) -> InferFunction:
    """Say of a made rule which inputs it reads; declarations of users are checked against that."""
    setattr(infer, READS, names)
    return infer


def same_as(name: str, dtype: DataType | None = None) -> InferFunction:
    """One output of the shape of input ``name``; of its type too, unless ``dtype`` is given."""

    def infer(ctx: InferContext) -> Sequence[OutputSpec]:
        desc = ctx.desc(name)
        return [(desc.origin_shape, desc.data_type if dtype is None else dtype)]

    return _describing_one(infer, name)


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
            if dim == -1 == have:
                result[axis] = dim if same_dim(dim, have) else -1  # either may be 1
            elif dim not in (have, 1):
                if have not in (1, -1) and dim != -1:
                    raise ctx.fail(f"shapes {' and '.join(map(str, shapes))} cannot be broadcast")
                result[axis] = dim if have in (1, -1) else have
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

    return _describing_one(infer, *names)


def axis_in_rank(axis: int, rank: int) -> int:
    """Return ``axis`` in 0..rank-1. Raises ``Misfit`` when it is out of range."""
    if not -rank <= axis < rank:
        raise Misfit(f"axis {axis} is out of range for rank {rank}")
    return axis % rank


def common_type(ctx: InferContext, descs: Sequence[TensorDesc]) -> DataType:
    """Return the element type that all of ``descs`` have. Raises the node's E14001 when they differ or are none."""
    if not descs:
        raise ctx.fail("no input is connected")
    types = list(dict.fromkeys(desc.data_type for desc in descs))
    if len(types) > 1:
        raise ctx.fail(f"element types differ: {', '.join(t.name for t in types)}")
    return types[0]


def unify(ctx: InferContext, shapes: Sequence[Shape], ignore_axis: int | None = None) -> Shape:
    """Return the one shape that all of ``shapes`` describe, unknown dims filled from the others.

    ``ignore_axis`` (0..rank-1) may differ; it becomes -1. Raises the node's E14001 when another dim differs.
    """
    ranked = [shape for shape in shapes if not shape.is_unknown_rank()]
    if not ranked:
        return Shape([-2])
    result = list(ranked[0])
    for shape in ranked[1:]:
        fits = len(shape) == len(result)
        for axis, dim in enumerate(shape if fits else ()):
            if axis == ignore_axis or dim == -1:
                continue
            fits = fits and result[axis] in (-1, dim)
            result[axis] = dim
        if not fits:
            raise ctx.fail(f"shapes {' and '.join(map(str, ranked))} do not fit")
    if ignore_axis is not None:
        result[ignore_axis] = -1
    return Shape(result)


def dims_agree(first: int, second: int) -> bool:
    """Tell whether two dims may be the same one: equal, or unknown."""
    return first == second or -1 in (first, second)


def vector_length(ctx: InferContext, name: str) -> int:
    """Return the element count of a shape-like input (a vector, or a scalar taken as one); -1 when not known.

    Raises ``Misfit`` for more elements than a tensor has axes: nothing may be made from a length that a file claims.
    """
    shape = ctx.shape(name)
    if not shape.is_unknown_rank() and shape.elements > MAX_RANK:
        raise Misfit(f"input {name} has {shape.elements} elements, one per axis; a tensor has at most {MAX_RANK} axes")
    return -1 if shape.is_unknown_rank() else shape.elements


def vector_parts(ctx: InferContext, name: str) -> list[int | None] | None:
    """Return the elements of a shape-like input: a number, an ``OpenDim``, or ``None`` where nothing is known.

    ``None`` when not even their count is known. Raises as ``vector_length`` does.
    """
    length, known = vector_length(ctx, name), ctx.known(name)
    if known is not None:
        return known.elements()
    return None if length < 0 else [None] * length


def plain_number(part: int | None) -> int | None:
    """Return an element of ``vector_parts`` if it is a number."""
    return None if isinstance(part, OpenDim) else part


def dims_of(ctx: InferContext, name: str, parts: Sequence[int | None]) -> Shape:
    """Return the shape that ``parts`` of the input ``name`` make. A negative number is the node's E14001."""
    if any(part is not None and part < 0 and not isinstance(part, OpenDim) for part in parts):
        raise ctx.fail(f"input {name} holds {list(parts)}, which is no shape")
    return Shape(-1 if part is None else part for part in parts)


def distinct_axes(axes: Sequence[int], rank: int) -> list[int]:
    """Return ``axes`` in 0..rank-1, order kept. Raises ``Misfit`` when one is out of range or given twice."""
    found = [axis_in_rank(int(axis), rank) for axis in axes]
    if len(set(found)) != len(found):
        raise Misfit(f"axes {list(map(int, axes))} name an axis twice")
    return found
