"""Operators that change the shape or read it, and keep the order of elements.

Extra attributes, for meaning that the GE operator lacks:
  Reshape  ``_x_allowzero``: 1 takes a 0 in the wanted shape literally (TensorFlow always does). By default it keeps
           the dim of the input (ONNX's default)
  Shape    ``_x_start``, ``_x_end``: the dims to answer, as a Python slice (ONNX)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ge.graph.tensor_desc import OpenDim, Shape, same_dim
from ge.graph.types import DataType, numpy_dtype
from ge.ops.inference import distinct_axes, plain_number, vector_length, vector_parts
from ge.ops.registry import Array, InferContext, Misfit, OutputSpec, operator

UNKNOWN_RANK = Shape([-2])


# -- Reshape -----------------------------------------------------------------------------------------------------------
def reshaped(dims: Sequence[int], wanted: Sequence[int | None], *, keeps_zero: bool) -> list[int]:
    """Return the result of reshaping ``dims`` to ``wanted``, where -1 means "what is left".

    ``dims`` may hold -1 for unknown dims (``[-2]`` for all of them). ``wanted`` may hold ``OpenDim`` and ``None`` for
    numbers that are not known. With ``keeps_zero`` a 0 copies the dim at its place. Raises ``Misfit`` when the element
    counts cannot agree.
    """
    is_ranked = list(dims) != [-2]
    copied = [axis for axis, dim in enumerate(wanted) if dim == 0] if keeps_zero else []
    if is_ranked and any(axis >= len(dims) for axis in copied):
        raise Misfit(f"a shape {list(wanted)} cannot keep dims of the shape {list(dims)}")
    numbers = [dim for dim in map(plain_number, wanted) if dim is not None]
    if any(dim < -1 for dim in numbers) or numbers.count(-1) > 1:
        raise Misfit(f"{list(wanted)} is no shape to reshape to")
    result = [-1 if dim is None else dim for dim in wanted]
    for axis in copied:
        result[axis] = dims[axis] if is_ranked else -1
    return _balanced(dims, wanted, copied, result) if is_ranked else result


def _balanced(dims: Sequence[int], wanted: Sequence[int | None], copied: Sequence[int], result: list[int]) -> list[int]:
    """Fill in the one dim of ``result`` that follows from the element count.

    Dims that stand on both sides, copied or under one name, cancel out: that they are unknown does not matter.
    """
    old = [dim for axis, dim in enumerate(dims) if axis not in copied]
    new = [axis for axis in range(len(wanted)) if axis not in copied]
    cancelled = []
    for axis in new:
        twin = next((i for i, dim in enumerate(old) if dim < 0 and same_dim(dim, result[axis])), None)
        if twin is not None:
            del old[twin]
            cancelled.append(axis)
    missing = [axis for axis in new if result[axis] < 0 and axis not in cancelled]
    before = math.prod(dim for dim in old if dim >= 0)
    after = math.prod(result[axis] for axis in new if result[axis] >= 0)
    unknown = [dim for dim in old if dim < 0]
    if len(missing) == 1 and not unknown:
        if after and before % after == 0:
            result[missing[0]] = before // after
        elif not cancelled:
            raise Misfit(f"a tensor of shape {list(dims)} cannot become {list(wanted)}")
    elif len(missing) == len(unknown) == 1 and before == after and not isinstance(wanted[missing[0]], OpenDim):
        result[missing[0]] = unknown[0]
    elif not missing and not unknown and before != after and not cancelled and 0 not in [dims[a] for a in copied]:
        raise Misfit(f"a tensor of shape {list(dims)} cannot become {list(wanted)}")
    return result


def _reshape_bounds(op: Any, rank: int) -> tuple[int, int]:
    """Return the range of axes that Reshape replaces; all of them by default."""
    start = op.axis + rank + 1 if op.axis < 0 else op.axis
    end = rank if op.num_axes == -1 else start + op.num_axes
    if not 0 <= start <= end <= rank:
        raise Misfit(f"axis {op.axis} and num_axes {op.num_axes} do not fit rank {rank}")
    return start, end


def _reshape(ctx: InferContext) -> Sequence[OutputSpec]:
    x, dtype = ctx.shape("x"), ctx.dtype("x")
    wanted = vector_parts(ctx, "shape")
    if wanted is None or (x.is_unknown_rank() and (ctx.op.axis, ctx.op.num_axes) != (0, -1)):
        return [(UNKNOWN_RANK, dtype)]
    keeps_zero = not ctx.op.get("_x_allowzero", 0)
    if x.is_unknown_rank():
        return [(reshaped([-2], wanted, keeps_zero=keeps_zero), dtype)]
    start, end = _reshape_bounds(ctx.op, len(x))
    return [((*x[:start], *reshaped(x[start:end], wanted, keeps_zero=keeps_zero), *x[end:]), dtype)]


@operator("Reshape(x, shape) [axis:i=0 num_axes:i=-1]", infer=_reshape, exact_types=True)
def reshape(op: Any, x: Any, shape: Any) -> Any:
    start, end = _reshape_bounds(op, x.ndim)
    wanted = np.ravel(shape).tolist()
    dims = reshaped(x.shape[start:end], wanted, keeps_zero=not op.get("_x_allowzero", 0))
    return x.reshape((*x.shape[:start], *dims, *x.shape[end:]))


def _flattened(x: Sequence[int], axis: int) -> tuple[int, int]:
    if not -len(x) <= axis <= len(x):
        raise Misfit(f"axis {axis} is out of range for rank {len(x)}")
    axis = axis + len(x) if axis < 0 else axis
    return Shape(x[:axis]).elements, Shape(x[axis:]).elements


def _flatten(ctx: InferContext) -> Sequence[OutputSpec]:
    x = ctx.shape("x")
    return [((-1, -1) if x.is_unknown_rank() else _flattened(x, ctx.op.axis), ctx.dtype("x"))]


@operator("Flatten(x) [axis:i=1]", infer=_flatten, exact_types=True)
def flatten(op: Any, x: Any) -> Any:
    return x.reshape(_flattened(x.shape, op.axis))


# -- Squeeze and Unsqueeze ---------------------------------------------------------------------------------------------
def _squeezed(x: Sequence[int], axes: Sequence[int]) -> list[int] | Shape:
    """Return ``x`` without ``axes``, or without all dims of 1 when there are none."""
    if not axes:
        return UNKNOWN_RANK if -1 in x else [dim for dim in x if dim != 1]
    gone = distinct_axes(axes, len(x))
    for axis in gone:
        if x[axis] not in (1, -1):
            raise Misfit(f"axis {axis} of shape {list(x)} cannot be removed: it is not 1")
    return [dim for axis, dim in enumerate(x) if axis not in gone]


def _unsqueezed(x: Sequence[int], axes: Sequence[int]) -> list[int]:
    added = set(distinct_axes(axes, len(x) + len(axes)))
    rest = iter(x)
    return [1 if axis in added else next(rest) for axis in range(len(x) + len(axes))]


def _squeeze(ctx: InferContext) -> Sequence[OutputSpec]:
    x = ctx.shape("x")
    return [(x if x.is_unknown_rank() else _squeezed(x, ctx.op.axis), ctx.dtype("x"))]


@operator("Squeeze(x) [axis:I=[]]", infer=_squeeze, exact_types=True)
def squeeze(op: Any, x: Any) -> Any:
    return x.reshape(_squeezed(x.shape, op.axis))


def _squeeze_v3(ctx: InferContext) -> Sequence[OutputSpec]:
    x, dtype = ctx.shape("x"), ctx.dtype("x")
    if x.is_unknown_rank():
        return [(x, dtype)]
    axes = ctx.ints("axes") if ctx.has("axes") else []
    if axes is not None:
        return [(_squeezed(x, axes), dtype)]
    count = vector_length(ctx, "axes")
    return [(UNKNOWN_RANK if count <= 0 else [-1] * (len(x) - count), dtype)]


@operator("SqueezeV3(x, axes?)", infer=_squeeze_v3, exact_types=True)
def squeeze_v3(op: Any, x: Any, axes: Any) -> Any:
    return x.reshape(_squeezed(x.shape, [] if axes is None else np.ravel(axes).tolist()))


def _unsqueeze(ctx: InferContext) -> Sequence[OutputSpec]:
    x = ctx.shape("x")
    return [(x if x.is_unknown_rank() else _unsqueezed(x, ctx.op.axes), ctx.dtype("x"))]


@operator("Unsqueeze(x) [axes:I=[]]", infer=_unsqueeze, exact_types=True)
def unsqueeze(op: Any, x: Any) -> Any:
    return x.reshape(_unsqueezed(x.shape, op.axes))


def _unsqueeze_by_input(name: str) -> Any:
    def infer(ctx: InferContext) -> Sequence[OutputSpec]:
        x, axes, dtype = ctx.shape("x"), ctx.ints(name), ctx.dtype("x")
        if axes is not None and not x.is_unknown_rank():
            return [(_unsqueezed(x, axes), dtype)]
        count = vector_length(ctx, name)
        return [(UNKNOWN_RANK if count == -1 or x.is_unknown_rank() else [-1] * (len(x) + count), dtype)]

    return infer


@operator("UnsqueezeV3(x, axes)", infer=_unsqueeze_by_input("axes"), exact_types=True)
def unsqueeze_v3(op: Any, x: Any, axes: Any) -> Any:
    return x.reshape(_unsqueezed(x.shape, np.ravel(axes).tolist()))


@operator("ExpandDims(x, axis)", infer=_unsqueeze_by_input("axis"), exact_types=True)
def expand_dims(op: Any, x: Any, axis: Any) -> Any:
    return x.reshape(_unsqueezed(x.shape, np.ravel(axis).tolist()))


# -- Shape, Size, Rank -------------------------------------------------------------------------------------------------
def _answered(op: Any, x: Sequence[int]) -> Sequence[int]:
    return x[slice(op.get("_x_start", 0), op.get("_x_end"))]


def _shape(ctx: InferContext) -> Sequence[OutputSpec]:
    x = ctx.shape("x")
    return [([-1] if x.is_unknown_rank() else [len(_answered(ctx.op, x))], DataType(ctx.op.dtype))]


def _shape_value(ctx: InferContext) -> Array | None:
    x = ctx.shape("x")
    dims = _answered(ctx.op, x)
    return None if x.is_unknown_rank() or -1 in dims else np.array(dims, numpy_dtype(DataType(ctx.op.dtype)))


@operator("Shape(x) [dtype:i=3]", infer=_shape, exact_types=True, value_infer=_shape_value)
def shape(op: Any, x: Any) -> Any:
    return np.array(_answered(op, x.shape), np.int64)


def _shapes(ctx: InferContext) -> Sequence[OutputSpec]:
    shapes = [desc.origin_shape for desc in ctx.descs("x")]
    return [([-1] if x.is_unknown_rank() else [len(x)], DataType(ctx.op.dtype)) for x in shapes]


@operator("ShapeN(x*) -> y* [dtype:i=3]", infer=_shapes, exact_types=True)
def shape_n(op: Any, x: list[Any]) -> Any:
    return tuple(np.array(tensor.shape, np.int64) for tensor in x)


def _size(ctx: InferContext) -> Sequence[OutputSpec]:
    return [((), DataType(ctx.op.dtype))]


def _size_value(ctx: InferContext) -> Array | None:
    x = ctx.shape("x")
    return None if x.is_unknown_shape() and 0 not in x else np.array(math.prod(x), numpy_dtype(DataType(ctx.op.dtype)))


@operator("Size(x) [dtype:i=3]", infer=_size, exact_types=True, value_infer=_size_value)
def size(op: Any, x: Any) -> Any:
    return np.array(x.size, np.int64)


def _rank_value(ctx: InferContext) -> Array | None:
    x = ctx.shape("x")
    return None if x.is_unknown_rank() else np.array(len(x), np.int32)


@operator("Rank(x)", infer=lambda ctx: [((), DataType.DT_INT32)], exact_types=True, value_infer=_rank_value)
def rank(op: Any, x: Any) -> Any:
    return np.array(x.ndim, np.int32)
