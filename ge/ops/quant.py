"""Quantisation, element by element: Ascend's operators, and ours for ONNX's (names begin with X).

  XQuantizeLinear         inputs of ONNX's; result type: ``dtype``, else that of y_zero_point, else uint8
  XDequantizeLinear       inputs of ONNX's; result type: ``dtype``, else that of x_scale
  XDynamicQuantizeLinear  ONNX's, uint8

``axis`` is that of one-dimensional scales; ``block_size`` above 0 lets each scale serve that many elements along it.
AscendDequant's deq_scale may be uint64, the bits of a float32 below; it runs along axis 1, for up to three axes along
the last one (``_x_data_format`` NHWC: always the last). Halves round to even.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ge.graph.tensor_desc import Shape
from ge.graph.types import FLOATING, DataType, numpy_dtype
from ge.ops.inference import axis_in_rank
from ge.ops.layout import channel_axis
from ge.ops.registry import Array, InferContext, Misfit, OutputSpec, operator

_ROUNDING: dict[str, Callable[[Array], Array]] = {
    "Round": np.rint,
    "Floor": np.floor,
    "Ceil": np.ceil,
    "Trunc": np.trunc,
}
_RANGES: dict[DataType, tuple[int, int]] = {
    DataType.DT_INT8: (-128, 127),
    DataType.DT_UINT8: (0, 255),
    DataType.DT_INT16: (-32768, 32767),
    DataType.DT_UINT16: (0, 65535),
    DataType.DT_INT32: (-(2**31), 2**31 - 1),
    DataType.DT_INT4: (-8, 7),
    DataType.DT_UINT4: (0, 15),
    DataType.DT_INT2: (-2, 1),
    DataType.DT_UINT2: (0, 3),
}
_NARROW_LIMITS = {
    DataType.DT_FLOAT8_E4M3FN: 448.0,
    DataType.DT_FLOAT8_E4M3FNUZ: 240.0,
    DataType.DT_FLOAT8_E5M2: 57344.0,
    DataType.DT_FLOAT8_E5M2FNUZ: 57344.0,
    DataType.DT_FLOAT6_E3M2: 28.0,
    DataType.DT_FLOAT6_E2M3: 7.5,
    DataType.DT_FLOAT4_E2M1: 6.0,
}
QUANTIZED = frozenset(_RANGES) | frozenset(_NARROW_LIMITS)


def saturated(values: Array, dtype: DataType) -> Array:
    """Turn whole floats into an integer type; out of range becomes the nearest bound, NaN becomes 0."""
    low, high = _RANGES[dtype]
    return np.clip(np.nan_to_num(values.astype(np.float64), nan=0.0), low, high).astype(numpy_dtype(dtype))


# -- Ascend --------------------------------------------------------------------------------------------------------
def _infer_ascend_quant(ctx: InferContext) -> Sequence[OutputSpec]:
    dtype = ctx.op.dst_type
    if dtype not in (DataType.DT_INT8, DataType.DT_INT4):
        raise ctx.fail(f"dst_type must be int8 (2) or int4 (29), not {dtype}", value="dst_type")
    if ctx.op.round_mode not in _ROUNDING:
        raise ctx.fail(f"round_mode must be one of {', '.join(_ROUNDING)}, not {ctx.op.round_mode}", value="round_mode")
    return [(ctx.shape("x"), DataType(dtype))]


@operator(
    "AscendQuant(x) [scale:f! offset:f! sqrt_mode:b=F round_mode:s=Round dst_type:i=2]", infer=_infer_ascend_quant
)
def ascend_quant(op: Any, x: Array) -> Array:
    """``round(x * scale + offset)``; ``sqrt_mode`` multiplies by scale twice."""
    scaled = x * x.dtype.type(op.scale)
    if op.sqrt_mode:
        scaled = scaled * x.dtype.type(op.scale)
    return saturated(_ROUNDING[op.round_mode](scaled + x.dtype.type(op.offset)), DataType(op.dst_type))


def _infer_float(ctx: InferContext) -> Sequence[OutputSpec]:
    if ctx.op.dtype not in (DataType.DT_FLOAT, DataType.DT_FLOAT16, DataType.DT_BF16):
        raise ctx.fail(f"dtype must be float32 (0), float16 (1) or bfloat16 (27), not {ctx.op.dtype}", value="dtype")
    return [(ctx.shape("x"), DataType(ctx.op.dtype))]


@operator("AscendDequant(x, deq_scale) [sqrt_mode:b=F relu_flag:b=F dtype:i=0]", infer=_infer_float)
def ascend_dequant(op: Any, x: Array, deq_scale: Array) -> Array:
    """``x * deq_scale``, times it again in ``sqrt_mode``, without negative results with ``relu_flag``."""
    scale = deq_scale
    if scale.dtype.kind in "iu":
        scale = (scale.astype(np.uint64) & np.uint64(0xFFFFFFFF)).astype(np.uint32).view(np.float32)
    if scale.size == 1:
        scale = scale.reshape(())
    elif scale.ndim == 1:
        axis = channel_axis(op.get("_x_data_format", "NCHW"), x.ndim) if x.ndim > 3 else x.ndim - 1
        scale = scale.reshape([-1 if i == axis else 1 for i in range(x.ndim)])
    y = x.astype(np.float32) * scale
    if op.sqrt_mode:
        y = y * scale
    return np.maximum(y, 0) if op.relu_flag else y


@operator("AscendAntiQuant(x) [scale:f! offset:f! dtype:i=0 sqrt_mode:b=F]", infer=_infer_float)
def ascend_anti_quant(op: Any, x: Array) -> Array:
    """``(x + offset) * scale``, times scale again in ``sqrt_mode``."""
    y = (x.astype(np.float32) + np.float32(op.offset)) * np.float32(op.scale)
    return y * np.float32(op.scale) if op.sqrt_mode else y


_TORCH_TYPES = {
    "torch.qint8": DataType.DT_INT8,
    "torch.quint8": DataType.DT_UINT8,
    "torch.qint32": DataType.DT_INT32,
}


def _infer_quantize(ctx: InferContext) -> Sequence[OutputSpec]:
    dtype = _TORCH_TYPES.get(ctx.op.dtype)
    if dtype is None:
        raise ctx.fail(f"dtype must be one of {', '.join(_TORCH_TYPES)}, not {ctx.op.dtype}", value="dtype")
    _check_scales(ctx, ctx.shape("x"), ctx.shape("scales"), 0)
    return [(ctx.shape("x"), dtype)]


@operator("Quantize(x, scales, zero_points?) [dtype:s! axis:i=1]", infer=_infer_quantize)
def quantize(op: Any, x: Array, scales: Array, zero_points: Array | None) -> Array:
    """``round(x / scale) + zero_point``, one scale for all or one per slice along ``axis``."""
    return _quantized(x, scales, zero_points, _TORCH_TYPES[op.dtype], op.axis, 0)


# -- ONNX ----------------------------------------------------------------------------------------------------------
def _check_scales(ctx: InferContext, x: Shape, scale: Shape, block: int) -> None:
    if x.is_unknown_rank() or scale.is_unknown_rank() or scale.elements == 1:
        return
    axis = axis_in_rank(ctx.op.axis, len(x))
    if block > 0:
        wanted = [-1 if d == -1 else -(-d // block) if i == axis else d for i, d in enumerate(x)]
    else:
        wanted = [x[axis]]
    if len(scale) != len(wanted) or any(-1 not in (a, b) and a != b for a, b in zip(scale, wanted, strict=True)):
        raise ctx.fail(f"scales have shape {scale}, but {Shape(wanted)} is needed for x {x}")


def along(values: Array, x: Array, axis: int, block: int) -> Array:
    """Shape scales or zero points so that they broadcast to ``x``."""
    if values.size == 1:
        return values.reshape(())
    if block > 0:
        index = np.arange(x.shape[axis % x.ndim]) // block
        return np.take(values, index, axis % x.ndim)
    return values.reshape([-1 if i == axis % x.ndim else 1 for i in range(x.ndim)])


def _quantized(
    x: Array, scale: Array, zero: Array | None, dtype: DataType, axis: int, block: int, saturate: bool = True
) -> Array:
    scaled = x / along(scale, x, axis, block).astype(np.float32)
    if dtype in _NARROW_LIMITS:
        limit = _NARROW_LIMITS[dtype]
        return (np.clip(scaled, -limit, limit) if saturate else scaled).astype(numpy_dtype(dtype))
    shift = 0 if zero is None else along(zero.astype(np.int64), x, axis, block)
    return saturated(np.rint(scaled) + shift, dtype)


def _quantized_type(ctx: InferContext) -> DataType:
    if ctx.op.dtype is not DataType.DT_UNDEFINED:
        return DataType(ctx.op.dtype)
    return ctx.dtype("y_zero_point") if ctx.has("y_zero_point") else DataType.DT_UINT8


def _infer_quantize_linear(ctx: InferContext) -> Sequence[OutputSpec]:
    dtype = _quantized_type(ctx)
    if dtype not in QUANTIZED:
        raise ctx.fail(f"{dtype.name} is no type to quantise to", value="dtype")
    _check_scales(ctx, ctx.shape("x"), ctx.shape("y_scale"), ctx.op.block_size)
    return [(ctx.shape("x"), dtype)]


@operator(
    "XQuantizeLinear(x, y_scale, y_zero_point?) [axis:i=1 block_size:i=0 dtype:t=UNDEFINED saturate:b=T]",
    infer=_infer_quantize_linear,
)
def quantize_linear(op: Any, x: Array, y_scale: Array, y_zero_point: Array | None) -> Array:
    return _quantized(
        x.astype(np.float32), y_scale, y_zero_point, op.output_types[0], op.axis, op.block_size, op.saturate
    )


def _infer_dequantize_linear(ctx: InferContext) -> Sequence[OutputSpec]:
    _check_scales(ctx, ctx.shape("x"), ctx.shape("x_scale"), ctx.op.block_size)
    dtype = DataType(ctx.op.dtype)
    dtype = ctx.dtype("x_scale") if dtype is DataType.DT_UNDEFINED else dtype
    if dtype not in FLOATING:
        raise ctx.fail(f"{dtype.name} is no floating type", value="dtype")
    return [(ctx.shape("x"), dtype)]


@operator(
    "XDequantizeLinear(x, x_scale, x_zero_point?) [axis:i=1 block_size:i=0 dtype:t=UNDEFINED]",
    infer=_infer_dequantize_linear,
)
def dequantize_linear(op: Any, x: Array, x_scale: Array, x_zero_point: Array | None) -> Array:
    """``(x - zero_point) * scale``."""
    values = x if x.dtype.kind == "f" else x.astype(np.int64)
    if x_zero_point is not None:
        values = values - along(x_zero_point.astype(values.dtype), x, op.axis, op.block_size)
    return values.astype(np.float32) * along(x_scale, x, op.axis, op.block_size)


@operator(
    "XDynamicQuantizeLinear(x) -> y, y_scale, y_zero_point []",
    infer=lambda ctx: [
        (ctx.shape("x"), DataType.DT_UINT8),
        ((), ctx.dtype("x")),
        ((), DataType.DT_UINT8),
    ],
)
def dynamic_quantize_linear(op: Any, x: Array) -> tuple[Array, ...]:
    """Choose scale and zero point so that the range of x, widened to hold 0, becomes 0..255."""
    low, high = x.min(initial=0), x.max(initial=0)
    scale = (high - low) / x.dtype.type(255) if high > low else x.dtype.type(1)
    zero = saturated(np.rint(-low / scale), DataType.DT_UINT8)
    y = saturated(np.rint(x / scale) + zero, DataType.DT_UINT8)
    return y, np.asarray(scale, x.dtype), zero


def require_bytes(ctx: InferContext, *names: str) -> None:
    """Raise the node's E14001 unless the inputs are int8 or uint8."""
    for name in names:
        if ctx.dtype(name) not in (DataType.DT_INT8, DataType.DT_UINT8):
            raise ctx.fail(f"{name} is {ctx.dtype(name).name}, but int8 or uint8 is needed", value=name)


def scale_of(array: Array) -> Any:
    """Return a scalar for one element. Raises ``Misfit`` for several."""
    if array.size != 1:
        raise Misfit(f"one scale or zero point is needed, found {array.size}")
    return array.reshape(())
