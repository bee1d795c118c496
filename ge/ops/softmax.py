"""Softmax and its relatives.

Extra attributes, for meaning that the GE operator lacks:
  ``_x_flatten``      true: the axes from the given one to the last count as one (ONNX before opset 13)
  ``_x_half_steps``   of SoftmaxV2, true: if x and y are float16, so are the exponentials and their total, as in ONNX's
                      function body; the difference to the maximum and the summing itself are float32

In half precision a mask of lowest numbers may become -inf, and all of a row with it. A row of SoftmaxV2 or LogSoftmaxV2
that is -inf throughout is uniform then, as it would be with the lowest number; in float32 it is NaN, as in ONNX.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ge.graph.types import NARROW_FLOATS, DataType
from ge.ops.inference import axis_in_rank
from ge.ops.registry import Array, InferContext, OutputSpec, operator


def _axes(op: Any, axes: Sequence[int], rank: int) -> tuple[int, ...]:
    found = sorted(axis % rank for axis in axes) if rank else []
    if op.get("_x_flatten", False) and found:
        return tuple(range(found[0], rank))
    return tuple(found)


def _infer_axes(ctx: InferContext, name: str, axes: Sequence[int]) -> Sequence[OutputSpec]:
    shape = ctx.shape(name)
    if not shape.is_unknown_rank():
        for axis in axes:
            axis_in_rank(axis, max(len(shape), 1))
    return [(shape, ctx.dtype(name))]


def _infer_softmax(ctx: InferContext) -> Sequence[OutputSpec]:
    [(shape, dtype)] = _infer_axes(ctx, "x", ctx.op.axes)
    widens = ctx.op.half_to_float and dtype is DataType.DT_FLOAT16
    return [(shape, DataType.DT_FLOAT if widens else dtype)]


def takes_masked_rows(op: Any, y_type: DataType) -> bool:
    """Tell whether a softmax with the result type ``y_type`` gives uniform rows where all of x is -inf."""
    return y_type in NARROW_FLOATS or bool(op.get("half_to_float", False))


def _unmasked(op: Any, x: Array) -> Array:
    return np.maximum(x, np.finfo(x.dtype).min) if takes_masked_rows(op, op.output_types[0]) else x


@operator("SoftmaxV2(x) [axes:I=[-1] half_to_float:b=F]", infer=_infer_softmax)
def softmax(op: Any, x: Array) -> Any:
    axes, x = _axes(op, op.axes, x.ndim), _unmasked(op, x)
    y = np.exp(x - np.max(x, axis=axes, keepdims=True, initial=-np.inf))
    is_stepwise = op.get("_x_half_steps", False) and op.output_types == (DataType.DT_FLOAT16,)
    if is_stepwise:
        y = y.astype(np.float16).astype(x.dtype)
    total = np.sum(y, axis=axes, keepdims=True)
    if is_stepwise:
        half_total = total.astype(np.float16)
        total = np.where(np.isinf(half_total), total, half_total.astype(x.dtype))  # what float16 cannot hold stays
    y /= total
    return y


@operator("LogSoftmaxV2(logits) -> logsoftmax [axes:I=[-1]]", infer=lambda ctx: _infer_axes(ctx, "logits", ctx.op.axes))
def log_softmax(op: Any, logits: Array) -> Any:
    return log_softmax_along(_unmasked(op, logits), _axes(op, op.axes, logits.ndim))


def log_softmax_along(x: Array, axes: tuple[int, ...]) -> Any:
    """Return the logarithm of the softmax over ``axes``."""
    shifted = x - np.max(x, axis=axes, keepdims=True, initial=-np.inf)
    shifted -= np.log(np.sum(np.exp(shifted), axis=axes, keepdims=True))
    return shifted


@operator("HardMax(x) [axis:i=-1]", infer=lambda ctx: _infer_axes(ctx, "x", [ctx.op.axis]))
def hard_max(op: Any, x: Array) -> Array:
    """1 at the first maximum along the axis, 0 elsewhere."""
    first, *others = _axes(op, [op.axis], x.ndim) or (0,)
    rows = x.reshape(*x.shape[:first], -1) if others else np.moveaxis(np.atleast_1d(x), first, -1)
    y = np.zeros(rows.shape, x.dtype)
    np.put_along_axis(y, np.argmax(rows, axis=-1)[..., None], 1, axis=-1)
    return y.reshape(x.shape) if others else np.moveaxis(y, -1, first).reshape(x.shape)
