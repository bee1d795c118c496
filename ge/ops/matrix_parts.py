"""Triangles, bands and diagonals of matrices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ge.ops.inference import dims_agree
from ge.ops.registry import InferContext, Misfit, OutputSpec, operator


def _distance(rows: int, columns: int) -> Any:
    """Return column minus row, [rows, columns]."""
    return np.arange(columns) - np.arange(rows)[:, None]


def _matrices(ctx: InferContext) -> Sequence[OutputSpec]:
    x = ctx.shape("x")
    if len(x) < 2 and not x.is_unknown_rank():
        raise ctx.fail(f"input x of shape {x} holds no matrices")
    return [(x, ctx.dtype("x"))]


@operator("Trilu(x, k?) [upper:i=0]", infer=_matrices, exact_types=True)
def trilu(op: Any, x: Any, k: Any) -> Any:
    at = 0 if k is None else int(k.item())
    distance = _distance(*x.shape[-2:])
    return np.where(distance >= at if op.upper else distance <= at, x, np.zeros((), x.dtype))


@operator("MatrixBandPart(x, num_lower, num_upper)", infer=_matrices, exact_types=True)
def matrix_band_part(op: Any, x: Any, num_lower: Any, num_upper: Any) -> Any:
    """Keep ``num_lower`` diagonals below the main one and ``num_upper`` above it; negative: all of them."""
    distance, lower, upper = _distance(*x.shape[-2:]), int(num_lower.item()), int(num_upper.item())
    is_kept = ((lower < 0) | (-distance <= lower)) & ((upper < 0) | (distance <= upper))
    return np.where(is_kept, x, np.zeros((), x.dtype))


def _diagonal_matrices(ctx: InferContext) -> Sequence[OutputSpec]:
    x = ctx.shape("x")
    if x.is_unknown_rank():
        return [(x, ctx.dtype("x"))]
    if not x:
        raise ctx.fail("input x is a scalar")
    return [((*x, x[-1]), ctx.dtype("x"))]


@operator("MatrixDiag(x)", infer=_diagonal_matrices, exact_types=True)
def matrix_diag(op: Any, x: Any) -> Any:
    size = x.shape[-1]
    return np.where(_distance(size, size) == 0, x[..., np.newaxis], np.zeros((), x.dtype))


@operator(
    "Diag(x)",
    infer=lambda ctx: [(ctx.shape("x") * (1 if ctx.shape("x").is_unknown_rank() else 2), ctx.dtype("x"))],
    exact_types=True,
)
def diag(op: Any, x: Any) -> Any:
    return np.diagflat(x).reshape(x.shape * 2)


def _half(ctx: InferContext) -> Sequence[OutputSpec]:
    x = ctx.shape("x")
    if x.is_unknown_rank():
        return [(x, ctx.dtype("x"))]
    rank = len(x) // 2
    if len(x) % 2 or not all(map(dims_agree, x[:rank], x[rank:])):
        raise ctx.fail(f"the halves of shape {x} differ")
    return [(x[:rank], ctx.dtype("x"))]


@operator("DiagPart(x)", infer=_half, exact_types=True)
def diag_part(op: Any, x: Any) -> Any:
    dims = x.shape[: x.ndim // 2]
    size = int(np.prod(dims, dtype=np.int64))
    return np.diagonal(x.reshape(size, size)).reshape(dims)


# -- MatrixDiagV2 ------------------------------------------------------------------------------------------------------
def _band(k: Sequence[int]) -> tuple[int, int]:
    if len(k) not in (1, 2) or k[0] > k[-1]:
        raise Misfit(f"k {list(k)} names no diagonals")
    return k[0], k[-1]


def _built(diagonal: Sequence[int], k: Sequence[int], rows: int, columns: int) -> list[int]:
    """Return the shape of the matrices; ``rows`` or ``columns`` of -1 are as small as the diagonals allow."""
    low, high = _band(k)
    is_stacked = high > low
    if len(diagonal) < 1 + is_stacked or (is_stacked and diagonal[-2] not in (-1, high - low + 1)):
        raise Misfit(f"diagonal of shape {list(diagonal)} does not hold the diagonals {low} to {high}")
    longest, batch = diagonal[-1], diagonal[: -2 if is_stacked else -1]
    if longest == -1:
        return [*batch, rows, columns]
    least_rows, least_columns = longest - min(high, 0), longest + max(low, 0)
    if rows == -1 and columns == -1:
        rows = columns = max(least_rows, least_columns)
    rows, columns = least_rows if rows == -1 else rows, least_columns if columns == -1 else columns
    if rows < least_rows or columns < least_columns or longest != min(rows + min(high, 0), columns - max(low, 0)):
        raise Misfit(f"diagonals of {longest} elements at {low} to {high} do not fit {rows} x {columns}")
    return [*batch, rows, columns]


def _matrix_diag_v2(ctx: InferContext) -> Sequence[OutputSpec]:
    diagonal, k = ctx.shape("diagonal"), ctx.ints("k")
    rows, columns = ctx.ints("num_rows"), ctx.ints("num_cols")
    if diagonal.is_unknown_rank() or k is None:
        return [([-2], ctx.dtype("diagonal"))]
    if rows is None or columns is None:
        batch = diagonal[: -2 if len(k) == 2 and k[0] < k[1] else -1]
        return [([*batch, -1, -1], ctx.dtype("diagonal"))]
    return [(_built(diagonal, k, rows[0], columns[0]), ctx.dtype("diagonal"))]


@operator(
    "MatrixDiagV2(diagonal, k, num_rows, num_cols, padding_value) -> output", infer=_matrix_diag_v2, exact_types=True
)
def matrix_diag_v2(op: Any, diagonal: Any, k: Any, num_rows: Any, num_cols: Any, padding_value: Any) -> Any:
    numbers = [int(number) for number in np.ravel(k)]
    dims = _built(diagonal.shape, numbers, int(num_rows.item()), int(num_cols.item()))
    low, high = _band(numbers)
    stacked = diagonal if high > low else diagonal[..., np.newaxis, :]
    distance = _distance(*dims[-2:])
    is_inside = (distance >= low) & (distance <= high)
    along = np.arange(dims[-1]) - np.maximum(distance, 0)  # place on the diagonal; both ends count from the left
    picked = stacked[..., np.clip(high - distance, 0, high - low), np.clip(along, 0, max(stacked.shape[-1] - 1, 0))]
    return np.where(is_inside, picked, padding_value.reshape(()))


def _square_matrices(ctx: InferContext) -> Sequence[OutputSpec]:
    x = ctx.shape("x")
    if not x.is_unknown_rank() and (len(x) < 2 or not dims_agree(x[-1], x[-2])):
        raise ctx.fail(f"input x of shape {x} holds no square matrices")
    return [(x, ctx.dtype("x"))]


@operator("Cholesky(x)", infer=_square_matrices)
def cholesky(op: Any, x: Any) -> Any:
    """Lower triangles whose squares are the matrices, of which only the lower triangles are read."""
    lower = np.tril(x).astype(np.float64)
    whole = lower + np.swapaxes(np.tril(lower, -1), -1, -2)
    try:
        return np.linalg.cholesky(whole)
    except np.linalg.LinAlgError as fault:
        raise Misfit("a matrix is not positive definite") from fault
