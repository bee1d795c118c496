"""Padding.

Modes: ``constant`` (negative widths cut), ``reflect`` (the border element is not repeated), ``symmetric`` (it is),
``edge`` and ``wrap``. PadV3 lays its widths out as pairs per axis, or as all begins before all ends when
``paddings_contiguous`` is false (ONNX's layout). A reflection wider than the tensor bounces to and fro.

Extra attributes, for meaning that the GE operator lacks:
  PadV3  ``_x_axes``: list of the axes that the widths are for (ONNX's input axes); all by default

``XPad`` is ours: ONNX's Pad with all its inputs, for axes that are computed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ge.ops.inference import distinct_axes
from ge.ops.registry import InferContext, Misfit, OutputSpec, operator

Widths = list[tuple[int, int]]


def _widths(numbers: Sequence[int], rank: int, is_paired: bool = True, axes: Sequence[int] | None = None) -> Widths:
    """Return (before, after) per axis."""
    count = rank if axes is None else len(axes)
    if len(numbers) != 2 * count:
        raise Misfit(f"{len(numbers)} padding widths are given for {count} axes")
    befores, afters = (numbers[::2], numbers[1::2]) if is_paired else (numbers[:count], numbers[count:])
    pairs = list(zip(befores, afters, strict=True))
    if axes is None:
        return pairs
    by_axis = dict(zip(distinct_axes(axes, rank), pairs, strict=True))
    return [by_axis.get(axis, (0, 0)) for axis in range(rank)]


def _padded_dims(x: Sequence[int], widths: Widths, mode: str) -> list[int]:
    dims = []
    for dim, (before, after) in zip(x, widths, strict=True):
        new = dim if before + after == 0 else -1 if dim == -1 else dim + before + after
        if dim != -1 and (new < 0 or (before < 0 and -before > dim) or (after < 0 and -after > dim)):
            raise Misfit(f"padding {before} and {after} cuts more than a dim of {dim} has")
        if dim != -1 and mode != "constant" and new > 0 and dim + min(before, 0) + min(after, 0) <= 0:
            raise Misfit(f"mode {mode} cannot pad an empty dim")
        dims.append(new)
    return dims


_MODES = ("constant", "reflect", "symmetric", "edge", "wrap")


def _pad(x: Any, widths: Widths, mode: str, value: Any = None) -> Any:
    """Cut where widths are negative, then extend."""
    dims = _padded_dims(x.shape, widths, mode)
    grown = [(max(0, before), max(0, after)) for before, after in widths]
    cuts = [slice(max(0, -before), dim - max(0, -after)) for dim, (before, after) in zip(x.shape, widths, strict=True)]
    kept = x[tuple(cuts)]
    if mode == "constant":
        result = np.full(dims, _fill_value(x) if value is None else np.ravel(value)[0], x.dtype)
        result[tuple(slice(before, before + dim) for dim, (before, _) in zip(kept.shape, grown, strict=True))] = kept
        return result
    for axis, (before, after) in enumerate(grown):
        if before or after:
            kept = np.take(kept, _source_positions(kept.shape[axis], before, after, mode), axis)
    return kept


def _fill_value(x: Any) -> Any:
    return "" if x.dtype.kind == "O" else np.zeros((), x.dtype)


def _source_positions(dim: int, before: int, after: int, mode: str) -> Any:
    """Return the element of an axis of ``dim`` elements behind every element of the padded axis."""
    at = np.arange(-before, dim + after)
    if mode == "edge":
        return np.clip(at, 0, dim - 1)
    if mode == "wrap":
        return at % dim
    period = 2 * dim if mode == "symmetric" else max(2 * dim - 2, 1)
    folded = at % period
    return np.minimum(folded, period - (mode == "symmetric") - folded) if dim > 1 or mode == "symmetric" else folded * 0


def _mode(name: str) -> str:
    mode = name.lower()
    if mode not in _MODES:
        raise Misfit(f"mode {name} is none of {', '.join(_MODES)}")
    return mode


def _padded(
    ctx: InferContext, mode: str, is_paired: bool = True, axes: Sequence[int] | None = None
) -> list[OutputSpec]:
    x, dtype = ctx.shape("x"), ctx.dtype("x")
    numbers = ctx.ints("paddings")
    if x.is_unknown_rank():
        return [(x, dtype)]
    if numbers is None:
        touched = range(len(x)) if axes is None else distinct_axes(axes, len(x))
        return [([-1 if axis in touched else dim for axis, dim in enumerate(x)], dtype)]
    return [(_padded_dims(x, _widths(numbers, len(x), is_paired, axes), mode), dtype)]


def _pad_v3(ctx: InferContext) -> Sequence[OutputSpec]:
    return _padded(ctx, _mode(ctx.op.mode), ctx.op.paddings_contiguous, ctx.op.get("_x_axes"))


def _zero_padded(ctx: InferContext) -> Sequence[OutputSpec]:
    return _padded(ctx, "constant")


def _mirror_padded(ctx: InferContext) -> Sequence[OutputSpec]:
    return _padded(ctx, _mode(ctx.op.mode))


def _pad_d(ctx: InferContext) -> Sequence[OutputSpec]:
    x = ctx.shape("x")
    numbers = [width for pair in ctx.op.paddings for width in pair]
    return [(x if x.is_unknown_rank() else _padded_dims(x, _widths(numbers, len(x)), "constant"), ctx.dtype("x"))]


def _numbers(paddings: Any) -> list[int]:
    return [int(width) for width in np.ravel(paddings)]


_PAD_V3 = "PadV3(x, paddings, constant_values?) [mode:s=constant paddings_contiguous:b=T]"


@operator(_PAD_V3, infer=_pad_v3, exact_types=True)
def pad_v3(op: Any, x: Any, paddings: Any, constant_values: Any) -> Any:
    widths = _widths(_numbers(paddings), x.ndim, op.paddings_contiguous, op.get("_x_axes"))
    return _pad(x, widths, _mode(op.mode), constant_values)


def _x_pad(ctx: InferContext) -> Sequence[OutputSpec]:
    x, mode = ctx.shape("x"), _mode(ctx.op.mode)
    axes = ctx.ints("axes") if ctx.has("axes") else list(range(len(x)))
    if axes is None or x.is_unknown_rank():
        return [(x if x.is_unknown_rank() else [-1] * len(x), ctx.dtype("x"))]
    return _padded(ctx, mode, is_paired=False, axes=axes)


@operator("XPad(x, paddings, constant_values?, axes?) [mode:s=constant]", infer=_x_pad, exact_types=True)
def x_pad(op: Any, x: Any, paddings: Any, constant_values: Any, axes: Any) -> Any:
    touched = None if axes is None else _numbers(axes)
    return _pad(x, _widths(_numbers(paddings), x.ndim, False, touched), _mode(op.mode), constant_values)


@operator("Pad(x, paddings)", infer=_zero_padded, exact_types=True)
def pad(op: Any, x: Any, paddings: Any) -> Any:
    return _pad(x, _widths(_numbers(paddings), x.ndim), "constant")


@operator("PadD(x) [paddings:II!]", infer=_pad_d, exact_types=True)
def pad_d(op: Any, x: Any) -> Any:
    return _pad(x, _widths(_numbers(op.paddings), x.ndim), "constant")


@operator("PadV2(x, paddings, constant_values)", infer=_zero_padded, exact_types=True)
def pad_v2(op: Any, x: Any, paddings: Any, constant_values: Any) -> Any:
    return _pad(x, _widths(_numbers(paddings), x.ndim), "constant", constant_values)


@operator("MirrorPad(x, paddings) [mode:s!]", infer=_mirror_padded, exact_types=True)
def mirror_pad(op: Any, x: Any, paddings: Any) -> Any:
    return _pad(x, _widths(_numbers(paddings), x.ndim), _mode(op.mode))
