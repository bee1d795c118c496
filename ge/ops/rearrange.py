"""Operators that move elements: transposition, blocks between axes, reversal, rotation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ge.ops.inference import distinct_axes, vector_length
from ge.ops.registry import InferContext, Misfit, OutputSpec, operator


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
