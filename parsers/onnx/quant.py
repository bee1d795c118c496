"""Linear quantisation, in elementary operators: what ONNX's QuantizeLinear and DequantizeLinear are defined by.

Integer products are computed in int32, exactly.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from ge.graph import DataType, NodeOut
from ge.graph.types import FLOATING, numpy_dtype
from parsers.onnx.conv import convolve
from parsers.onnx.mapping import Mapped, maps
from parsers.onnx.matmul import multiply
from parsers.onnx.node_builder import NodeBuilder, Source

INT32, FLOAT = DataType.DT_INT32, DataType.DT_FLOAT


@maps("DequantizeLinear")
def dequantize(n: NodeBuilder) -> Mapped:
    """Before: DequantizeLinear(x, scale, zero_point). After: [Cast -> Sub] -> Cast -> Mul."""
    x, scale = n.need(0), n.need(1)
    wanted = n.attr("output_dtype", 0)
    dtype = n.element_type(wanted, "output_dtype") if wanted else n.dtype(scale)
    centred = difference(n, x, n.input(2), "X", lambda offset, role: _along(n, offset, role))
    factor = n.cast(_along(n, scale, "Scale"), FLOAT, role="Scale_Cast")
    product = n.add("Mul", n.cast(centred, FLOAT, role="Cast"), factor, role="" if dtype is FLOAT else "Mul")
    return product if dtype is FLOAT else n.add("Cast", product, dst_type=int(dtype))


@maps("QuantizeLinear")
def quantize(n: NodeBuilder) -> Mapped:
    """Before: QuantizeLinear(x, scale, zero_point). After: RealDiv -> Round -> Add -> ClipByValue -> Cast."""
    scale, zero = n.need(1), n.input(2)
    wanted = n.attr("output_dtype", 0)
    if wanted:
        dtype = n.element_type(wanted, "output_dtype")
    else:
        dtype = DataType.DT_UINT8 if zero is None else n.dtype(zero)
    precise = n.attr("precision", 0)
    width = n.element_type(precise, "precision") if precise else n.dtype(scale)
    x = n.cast(n.need(0), width, role="X_Cast")
    divisor = n.cast(_along(n, scale, "Scale"), width, role="Scale_Cast")
    ratio = n.cast(n.add("RealDiv", x, divisor, role="RealDiv"), FLOAT, role="Ratio")
    return requantize(n, ratio, None if zero is None else _along(n, zero, "Zero"), dtype)


def requantize(n: NodeBuilder, ratio: NodeOut, zero: Source, dtype: DataType) -> Mapped:
    """Round float32 values, shift them by the zero point and hold them to the range of ``dtype``."""
    if dtype in FLOATING:
        if zero is not None:
            ratio = n.add("Add", ratio, n.cast(zero, FLOAT, role="Zero_Cast"), role="Add").output()
        extra: dict[str, Any] = {} if n.attr("saturate", 1) else {"_x_saturate": 0}
        return n.add("Cast", ratio, dst_type=int(dtype), **extra)
    shifted: Source = n.add("Round", ratio, role="Round")
    if zero is not None:
        shifted = n.add("Add", shifted, n.cast(zero, FLOAT, role="Zero_Cast"), role="Add")
    info = ml_dtypes.iinfo(numpy_dtype(dtype))
    low, high = n.scalar("Low", float(info.min), FLOAT), n.scalar("High", float(info.max), FLOAT)
    return n.add("Cast", n.add("ClipByValue", shifted, low, high, role="ClipByValue"), dst_type=int(dtype))


def _along(n: NodeBuilder, parameter: NodeOut, role: str) -> NodeOut:
    """Shape a scale or zero point so that it broadcasts: per axis (a vector) or per block of an axis."""
    shape = n.shape(parameter)
    if len(shape) == 0 or shape.elements == 1:
        return parameter
    x = n.shape(n.need(0))
    if x.is_unknown_rank():
        n.rank()
    axis = n.axis(n.attr("axis", 1), len(x))
    block = n.attr("block_size", 0)
    if len(shape) == 1 and not block:
        dims = [-1 if i == axis else 1 for i in range(len(x))]
        return n.add("Reshape", parameter, n.int64(dims, f"{role}_Shape"), role=f"{role}_Reshape").output()
    if not block or len(shape) != len(x) or x[axis] < 0:
        raise n.fail(f"a scale or zero point of shape {shape} does not fit its input of shape {x}")
    blocks = n.index(f"{role}_Blocks", np.arange(x[axis]) // block)
    at = n.index(f"{role}_Axis", axis)
    return n.add("GatherV2", parameter, blocks, at, role=f"{role}_Repeat").output()


def difference(
    n: NodeBuilder, data: NodeOut, zero: Source, role: str, shaped: Callable[[NodeOut, str], NodeOut] | None = None
) -> NodeOut:
    """Return quantised data minus its zero point: int32, or float32 for float8. ``shaped`` lets zero broadcast."""
    width = FLOAT if n.dtype(data) in FLOATING else INT32
    wide = n.cast(data, width, role=f"{role}_Cast")
    if zero is None:
        return wide
    wide_zero = n.cast(zero, width, role=f"{role}_Zero_Cast")
    if shaped is not None:
        wide_zero = shaped(wide_zero, f"{role}_Zero")
    return n.add("Sub", wide, wide_zero, role=f"{role}_Sub").output()


def _per_row(n: NodeBuilder, parameter: NodeOut, role: str) -> NodeOut:
    if len(n.shape(parameter)) != 1 or n.shape(parameter).elements == 1:
        return parameter
    return n.add("Unsqueeze", parameter, role=f"{role}_Unsqueeze", axes=[1]).output()


def _per_output(n: NodeBuilder, parameter: NodeOut, role: str, rank: int, axis: int) -> NodeOut:
    """Shape a vector per output channel so that it broadcasts over a filter (axis 0) or a result (axis 1)."""
    if n.shape(parameter).elements == 1:
        return parameter
    dims = [-1 if i == axis else 1 for i in range(rank)]
    return n.add("Reshape", parameter, n.int64(dims, f"{role}_Shape"), role=f"{role}_Reshape").output()


@maps("MatMulInteger")
def matmul_integer(n: NodeBuilder) -> Mapped:
    """Before: MatMulInteger(A, B, a_zero_point, b_zero_point). After: Cast(int32) -> Sub x 2 -> BatchMatMulV2."""
    return multiply(n, *_centred_factors(n, (0, 2), (1, 3)))


def _centred_factors(n: NodeBuilder, a: tuple[int, int], b: tuple[int, int]) -> tuple[NodeOut, NodeOut, int, int]:
    """Return both factors of a product minus their zero points, and their ranks; pairs are input numbers."""
    left = difference(n, n.need(a[0]), n.input(a[1]), "A", lambda zero, role: _per_row(n, zero, role))
    right = difference(n, n.need(b[0]), n.input(b[1]), "B")
    return left, right, n.rank(a[0]), n.rank(b[0])


@maps("QLinearMatMul")
def qlinear_matmul(n: NodeBuilder) -> Mapped:
    """Before: QLinearMatMul. After: MatMulInteger's form -> Cast -> Mul(a_scale * b_scale / y_scale) -> quantised."""
    product = multiply(n, *_centred_factors(n, (0, 2), (3, 5)), role="Product")
    a_scale = _per_row(n, n.cast(n.need(1), FLOAT, role="A_Scale_Cast"), "A_Scale")
    return _rescaled(n, product, a_scale, n.need(4), 6)


def _rescaled(n: NodeBuilder, product: NodeOut, scale: NodeOut, other: NodeOut, y: int) -> Mapped:
    """Turn an int32 product into the output type; ``y`` is the input number of the output's scale."""
    other = n.cast(other, FLOAT, role="Other_Scale_Cast")
    y_scale, zero = n.cast(n.need(y), FLOAT, role="Y_Scale_Cast"), n.need(y + 1)
    factor = n.add("RealDiv", n.add("Mul", scale, other, role="Scales"), y_scale, role="Factor")
    scaled = n.add("Mul", n.cast(product, FLOAT, role="Product_Cast"), factor, role="Scaled")
    return requantize(n, scaled.output(), zero, n.dtype(zero))


@maps("ConvInteger")
def conv_integer(n: NodeBuilder) -> Mapped:
    """Before: ConvInteger(x, w, x_zero_point, w_zero_point). After: Cast(int32) -> Sub x 2 -> Conv2D."""
    rank = n.rank(1)
    x = difference(n, n.need(0), n.input(2), "X")
    weights = difference(n, n.need(1), n.input(3), "W", lambda z, role: _per_output(n, z, role, rank, 0))
    return convolve(n, x, weights, None)


@maps("QLinearConv")
def qlinear_conv(n: NodeBuilder) -> Mapped:
    """Before: QLinearConv. After: ConvInteger's form with bias -> Mul(x_scale * w_scale / y_scale) -> quantised."""
    rank = n.rank(3)
    x = difference(n, n.need(0), n.need(2), "X")
    weights = difference(n, n.need(3), n.need(5), "W", lambda z, role: _per_output(n, z, role, rank, 0))
    product = convolve(n, x, weights, n.input(8), weights_input=3, role="Product")
    w_scale = _per_output(n, n.cast(n.need(4), FLOAT, role="W_Scale_Cast"), "W_Scale", rank, 1)
    return _rescaled(n, product, w_scale, n.need(1), 6)
