"""Matrix products.

int8 and uint8 operands give int32, other integers wrap. ``offset_x`` is subtracted from an integer first operand.
With the attribute ``_x_output_type`` = 0 the result of float operands is float32, the sums without a rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ge.graph.tensor_desc import Shape
from ge.graph.types import DataType
from ge.ops.inference import broadcast_shapes
from ge.ops.registry import Array, InferContext, OutputSpec, operator

BYTES = (DataType.DT_INT8, DataType.DT_UINT8)


def matrix_product(a: Array, b: Array) -> Any:
    """Multiply as ``np.matmul``. Integers go through float64, which BLAS multiplies, where that is exact."""
    if a.dtype.kind not in "iu" or b.dtype.kind not in "iu":
        return np.matmul(a, b)
    wide_a, wide_b = a.astype(np.float64), b.astype(np.float64)
    bound = np.abs(wide_a).max(initial=0) * np.abs(wide_b).max(initial=0) * a.shape[-1]
    if bound < 2**53:
        return np.matmul(wide_a, wide_b).astype(np.int64)
    return np.matmul(a, b)


def _swapped(x: Array, is_swapped: bool) -> Array:
    return np.swapaxes(x, -1, -2) if is_swapped else x


def _product(x1: Array, x2: Array, bias: Array | None, offset: int) -> Any:
    if offset and x1.dtype.kind in "iu":
        x1 = x1.astype(np.int32) - offset
    y = matrix_product(x1, x2)
    return y if bias is None else y + bias.astype(y.dtype, copy=False)


def product_shape(ctx: InferContext, a: Shape, b: Shape) -> list[int]:
    """Return the shape of a (batched) product by numpy's rule. Raises the node's E14001 when the operands misfit."""
    if a.is_unknown_rank() or b.is_unknown_rank():
        return [-2]
    if not a or not b:
        raise ctx.fail(f"operands {a} and {b}: a scalar cannot be multiplied as a matrix")
    left, right = ([1, *a] if len(a) == 1 else list(a)), ([*b, 1] if len(b) == 1 else list(b))
    if left[-1] != right[-2] and -1 not in (left[-1], right[-2]):
        raise ctx.fail(f"operands {a} and {b} have inner sizes {left[-1]} and {right[-2]}, which must be equal")
    batch = broadcast_shapes(ctx, [Shape(left[:-2]), Shape(right[:-2])])
    rows = [] if len(a) == 1 else [left[-2]]
    columns = [] if len(b) == 1 else [right[-1]]
    return [*batch, *rows, *columns]


def _operand(ctx: InferContext, name: str, is_swapped: bool, rank: int | None) -> Shape:
    shape = ctx.shape(name)
    if shape.is_unknown_rank():
        return shape
    if rank is not None and len(shape) != rank:
        raise ctx.fail(f"{name} has shape {shape}, but a matrix of rank {rank} is needed", value=name)
    if is_swapped and len(shape) < 2:
        raise ctx.fail(f"{name} has shape {shape}, which cannot be transposed", value=name)
    return Shape([*shape[:-2], shape[-1], shape[-2]]) if is_swapped else shape


def _check_addend(ctx: InferContext, name: str, product: Shape) -> None:
    """Raise the node's E14001 unless the input can be broadcast to the product."""
    addend = ctx.shape(name)
    if addend.is_unknown_rank() or product.is_unknown_rank():
        return
    pairs = zip(reversed(addend), reversed(product), strict=False)
    if len(addend) > len(product) or any(a not in (1, -1, p) and p != -1 for a, p in pairs):
        raise ctx.fail(f"{name} {addend} cannot be broadcast to the product {product}", value=name)


def product_type(ctx: InferContext, a: str, b: str) -> DataType:
    """Return the result type: int32 for bytes, otherwise that of both. Raises the node's E14001 when they differ."""
    left, right = ctx.dtype(a), ctx.dtype(b)
    if left in BYTES and right in BYTES:
        return DataType.DT_INT32
    if left != right:
        raise ctx.fail(f"element types differ: {a} {left.name}, {b} {right.name}")
    return DataType.DT_FLOAT if ctx.op.get("_x_output_type") == DataType.DT_FLOAT else left


def _infer_product(
    prefix: str, rank: int | None, optional: tuple[str, ...] = ("bias", "offset_w")
) -> Callable[[InferContext], Sequence[OutputSpec]]:
    def infer(ctx: InferContext) -> Sequence[OutputSpec]:
        op = ctx.op
        a = _operand(ctx, "x1", getattr(op, f"{prefix}_x1"), rank)
        b = _operand(ctx, "x2", getattr(op, f"{prefix}_x2"), rank)
        if rank is not None:
            a, b = (Shape([-1] * rank) if s.is_unknown_rank() else s for s in (a, b))
        shape = product_shape(ctx, a, b)
        if "offset_w" in optional and ctx.has("offset_w"):
            raise ctx.fail("input offset_w is reserved and must not be connected", value="offset_w")
        if "bias" in optional and ctx.has("bias"):
            _check_addend(ctx, "bias", Shape(shape))
        return [(shape, product_type(ctx, "x1", "x2"))]

    return infer


_MATRIX = _infer_product("transpose", 2)
_BATCH = _infer_product("adj", None)


@operator("MatMul(x1, x2, bias?) [transpose_x1:b=F transpose_x2:b=F]", infer=_infer_product("transpose", 2, ("bias",)))
def mat_mul(op: Any, x1: Array, x2: Array, bias: Array | None) -> Any:
    return _product(_swapped(x1, op.transpose_x1), _swapped(x2, op.transpose_x2), bias, 0)


def _mat_mul(op: Any, x1: Array, x2: Array, bias: Array | None, offset_w: None) -> Any:
    return _product(_swapped(x1, op.transpose_x1), _swapped(x2, op.transpose_x2), bias, op.offset_x)


def _batch_mat_mul(op: Any, x1: Array, x2: Array, bias: Array | None = None, offset_w: None = None) -> Any:
    return _product(_adjoint(x1, op.adj_x1), _adjoint(x2, op.adj_x2), bias, getattr(op, "offset_x", 0))


def _adjoint(x: Array, is_adjoint: bool) -> Array:
    return np.conj(_swapped(x, True)) if is_adjoint and x.dtype.kind == "c" else _swapped(x, is_adjoint)


_MATRIX_ATTRS = "transpose_x1:b=F transpose_x2:b=F offset_x:i=0"
_BATCH_ATTRS = "adj_x1:b=F adj_x2:b=F offset_x:i=0"
operator(f"MatMulV2(x1, x2, bias?, offset_w?) [{_MATRIX_ATTRS}]", infer=_MATRIX)(_mat_mul)
operator(f"MatMulV3(x1, x2, bias?, offset_w?) [{_MATRIX_ATTRS} enable_hf32:b=F]", infer=_MATRIX)(_mat_mul)
operator("BatchMatMul(x1, x2) [adj_x1:b=F adj_x2:b=F]", infer=_infer_product("adj", None, ()))(_batch_mat_mul)
operator(f"BatchMatMulV2(x1, x2, bias?, offset_w?) [{_BATCH_ATTRS}]", infer=_BATCH)(_batch_mat_mul)
operator(f"BatchMatMulV3(x1, x2, bias?, offset_w?) [{_BATCH_ATTRS} enable_hf32:b=F]", infer=_BATCH)(_batch_mat_mul)


def _infer_gemm(ctx: InferContext) -> Sequence[OutputSpec]:
    a, b = (_operand(ctx, name, getattr(ctx.op, f"transpose_{name}"), 2) for name in ("a", "b"))
    shape = Shape(product_shape(ctx, *(Shape([-1, -1]) if s.is_unknown_rank() else s for s in (a, b))))
    _check_addend(ctx, "c", shape)
    return [(shape, product_type(ctx, "a", "b"))]


@operator("GEMM(a, b, c, alpha, beta) [transpose_a:b=F transpose_b:b=F]", infer=_infer_gemm)
def gemm(op: Any, a: Array, b: Array, c: Array, alpha: Array, beta: Array) -> Any:
    """``alpha * a b + beta * c``; alpha and beta hold one element each."""
    product = matrix_product(_swapped(a, op.transpose_a), _swapped(b, op.transpose_b))
    return product * alpha.reshape(()) + c * beta.reshape(())


def _infer_fully_connection(ctx: InferContext) -> Sequence[OutputSpec]:
    x, w, axis, outputs = ctx.shape("x"), ctx.shape("w"), ctx.op.axis, ctx.op.num_output
    if ctx.has("offset_w"):
        raise ctx.fail("input offset_w is reserved and must not be connected", value="offset_w")
    if axis not in (1, 2):
        raise ctx.fail(f"axis must be 1 or 2, not {axis}", value="axis")
    dtype = product_type(ctx, "x", "w")
    if x.is_unknown_rank():
        return [([-1] * axis + [outputs], dtype)]
    if len(x) <= axis:
        raise ctx.fail(f"x has shape {x}, but axis {axis} needs a higher rank", value="x")
    depth = Shape(x[axis:]).elements
    if not w.is_unknown_shape() and depth != -1 and w.elements != depth * outputs:
        raise ctx.fail(f"w has shape {w}, but num_output {outputs} and x {x} need {outputs} times {depth} elements")
    return [([*x[:axis], outputs], dtype)]


@operator(
    "FullyConnection(x, w, b?, offset_w?) [num_output:i! transpose:b=F axis:i=1 offset_x:i=0]",
    infer=_infer_fully_connection,
)
def fully_connection(op: Any, x: Array, w: Array, b: Array | None, offset_w: None) -> Any:
    """Multiply x, flattened from ``axis`` on, by ``w`` [num_output, depth] (``transpose``: [depth, num_output])."""
    flat = x.reshape(*x.shape[: op.axis], -1)
    weights = w.reshape(-1, op.num_output) if op.transpose else w.reshape(op.num_output, -1).T
    return _product(flat, weights, None if b is None else b.reshape(-1), op.offset_x)
