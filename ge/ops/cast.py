"""Conversion of element types.

Float to integer truncates toward zero; out of range saturates, NaN becomes 0 (ONNX leaves both open). Integer to a
narrower integer keeps the low bits, and so does float to an integer of less than a byte (as in ONNX's own test data).
Anything to bool asks "is it not 0". Float to float rounds once, to nearest even. Numbers become strings as onnxruntime
writes them (8 significant digits; NaN, INF, -INF); strings that are no number cannot be converted.

Extra attributes, for meaning that the GE operator lacks:
  Cast, CastLike  ``_x_saturate`` (default 1): float8 results out of range become the largest finite number; with 0
                  they become infinity, or NaN where the type has none. Other types do not depend on it.
                  ``_x_round_mode`` (``up``, ``down``, ``nearest``; default ``up``): rounding to float8_e8m0
  Cast            ``_x_clip``: numbers are brought into the range of a float16 or bfloat16 result first (``in_range``)
  Bitcast         ``type`` is TensorFlow's own attribute
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ge.graph.types import FLOATING, DataType, bit_width, has_numpy_dtype, numpy_dtype
from ge.ops.registry import InferContext, Misfit, OutputSpec, operator
from ge.ops.rounding import round_to_odd

_NUMPY_FLOATS = (DataType.DT_FLOAT, DataType.DT_FLOAT16, DataType.DT_DOUBLE)
_COMPLEX = (DataType.DT_COMPLEX64, DataType.DT_COMPLEX128)
_SMALL_INTEGERS = {
    DataType.DT_INT4: (4, True),
    DataType.DT_UINT4: (4, False),
    DataType.DT_INT2: (2, True),
    DataType.DT_UINT2: (2, False),
}
_SMALL_DTYPES = tuple(numpy_dtype(t) for t in _SMALL_INTEGERS)
CLIP = "_x_clip"
NARROW_LIMITS = {DataType.DT_FLOAT16: 65504.0, DataType.DT_BF16: 3.3895313892515355e38}
"""Largest finite numbers of the types to which precision modes convert."""
_LEAST = {DataType.DT_FLOAT16: 2.0**-24, DataType.DT_BF16: 2.0**-133}
_LARGEST = {
    DataType.DT_FLOAT8_E5M2: 57344.0,
    DataType.DT_FLOAT8_E5M2FNUZ: 57344.0,
    DataType.DT_FLOAT8_E4M3FN: 448.0,
    DataType.DT_FLOAT8_E4M3FNUZ: 240.0,
    DataType.DT_FLOAT6_E3M2: 28.0,
    DataType.DT_FLOAT6_E2M3: 7.5,
    DataType.DT_FLOAT4_E2M1: 6.0,
}


def convert(array: Any, dtype: DataType, *, is_saturating: bool = True, round_mode: str = "up") -> Any:
    """Return ``array`` with elements of ``dtype``. Raises ``Misfit`` for strings that are no number."""
    target = numpy_dtype(dtype)
    if array.dtype == target:
        return array
    if dtype is DataType.DT_STRING:
        return _to_strings(_plain(array))
    if array.dtype.kind in "OUST":
        array = _from_strings(array, dtype)
    array = _plain(array)
    if dtype is DataType.DT_BOOL:
        return array != 0
    if dtype in _COMPLEX:
        return array.astype(target)
    if array.dtype.kind == "c":
        array = array.real
    return _to_float(array, dtype, is_saturating, round_mode) if dtype in FLOATING else _to_integer(array, dtype)


def _plain(array: Any) -> Any:
    """Widen elements of the types that numpy does not know; no value changes."""
    if array.dtype.isbuiltin == 1:
        return array
    return array.astype(np.int8 if array.dtype in _SMALL_DTYPES else np.float32)


def saturate(values: Any, dtype: Any) -> Any:
    """Turn floats into integers of the numpy ``dtype``: truncated, clipped to its range, NaN becomes 0."""
    info = np.iinfo(dtype)
    wide = values.astype(np.float32) if values.dtype == np.float16 else values
    low, high = wide.dtype.type(info.min), wide.dtype.type(info.max)  # may round up: hence the strict bounds
    whole = np.where((wide > low) & (wide < high), wide, 0).astype(dtype)
    whole = np.where(wide >= high, np.asarray(info.max, dtype), whole)
    return np.where(wide <= low, np.asarray(info.min, dtype), whole)


def _to_integer(array: Any, dtype: DataType) -> Any:
    target = numpy_dtype(dtype)
    if dtype not in _SMALL_INTEGERS:
        return saturate(array, target) if array.dtype.kind == "f" else array.astype(target)
    bits, is_signed = _SMALL_INTEGERS[dtype]
    low = -(1 << bits - 1) if is_signed else 0
    high = low + (1 << bits) - 1
    whole = saturate(array, np.int64) if array.dtype.kind == "f" else array.astype(np.int64)
    kept = (whole & ((1 << bits) - 1)).astype(np.int8)
    return np.where(kept > high, kept - np.int8(1 << bits), kept).astype(target)


def _to_float(array: Any, dtype: DataType, is_saturating: bool, round_mode: str) -> Any:
    target = numpy_dtype(dtype)
    if dtype in _NUMPY_FLOATS:
        return array.astype(target)
    single = array.astype(np.float32) if array.dtype == np.float16 else round_to_odd(array)
    if dtype is DataType.DT_FLOAT8_E8M0:
        return _to_power_of_two(single, is_saturating, round_mode)
    result = single.astype(target)
    if dtype in _LARGEST and is_saturating:
        largest = np.float32(_LARGEST[dtype])
        result = np.where(np.isnan(single), result, np.clip(single, -largest, largest).astype(target))
    return result


def _to_power_of_two(single: Any, is_saturating: bool, round_mode: str) -> Any:
    """Round magnitudes to float8_e8m0: a biased exponent, 0 to 254, and 255 for NaN."""
    fraction, exponent = np.frexp(np.abs(single).astype(np.float64))
    threshold = {"up": 0.5, "nearest": 0.75, "down": 2.0}[round_mode]
    rises = fraction > threshold if round_mode == "up" else fraction >= threshold
    biased = np.where(single == 0, -1, exponent - 1 + 127 + rises)
    biased = np.where(np.isinf(single), 255, biased)
    if is_saturating:
        biased = np.clip(biased, 0, 254)
    is_lost = np.isnan(single) | (biased < 0) | (biased > 254)
    return np.where(is_lost, 255, biased).astype(np.uint8).view(numpy_dtype(DataType.DT_FLOAT8_E8M0))


def _to_strings(array: Any) -> Any:
    result = np.empty(array.shape, object)
    result.ravel()[:] = [_literal(value) for value in array.ravel().tolist()]
    return result


def _literal(value: Any) -> str:
    if isinstance(value, float):
        if value != value:
            return "NaN"
        return f"{value:.8g}" if abs(value) != float("inf") else "INF" if value > 0 else "-INF"
    return str(int(value)) if isinstance(value, bool) else str(value)


def _from_strings(array: Any, dtype: DataType) -> Any:
    if dtype in _COMPLEX:
        values = np.array([_number(text, complex) for text in array.ravel()], np.complex128)
    elif dtype in FLOATING:
        values = np.array([_number(text, float) for text in array.ravel()], np.float64)
    else:
        numbers = [_number(text, int) for text in array.ravel()]
        values = np.array([number & 0xFFFF_FFFF_FFFF_FFFF for number in numbers], np.uint64)
    return values.reshape(array.shape)


def _number(text: Any, kind: Any) -> Any:
    text = text.decode(errors="replace") if isinstance(text, bytes) else text
    try:
        return int(float(text)) if kind is int and not _is_whole(text) else kind(text)
    except (ValueError, OverflowError):
        raise Misfit(f"the string {text[:80]!r} is no number of the wanted type") from None


def _is_whole(text: str) -> bool:
    return text.strip().lstrip("+-").isdecimal()


def _named_type(ctx: InferContext, value: int) -> DataType:
    if value not in DataType.__members__.values() or not has_numpy_dtype(DataType(value)):
        raise ctx.fail(f"element type number {value} is not supported", value=value)
    return DataType(value)


def _cast(ctx: InferContext) -> Sequence[OutputSpec]:
    return [(ctx.shape("x"), _named_type(ctx, ctx.op.dst_type))]


def _cast_like(ctx: InferContext) -> Sequence[OutputSpec]:
    return [(ctx.shape("x"), ctx.dtype("target"))]


def _bitcast(ctx: InferContext) -> Sequence[OutputSpec]:
    dtype, shape = _named_type(ctx, ctx.op.type), ctx.shape("x")
    old, new = bit_width(ctx.dtype("x")), bit_width(dtype)
    if old == 0 or new == 0 or old % 8 or new % 8:
        raise ctx.fail(f"the bits of {ctx.dtype('x').name} cannot be read as {dtype.name}")
    if old == new or shape.is_unknown_rank():
        return [(shape, dtype)]
    if old > new:
        return [((*shape, old // new), dtype)]
    if not shape or shape[-1] not in (-1, new // old):
        raise ctx.fail(f"the last dim of shape {shape} must be {new // old} to become {dtype.name}")
    return [(shape[:-1], dtype)]


def in_range(values: Any, dtype: DataType) -> Any:
    """Return ``values`` within what ``dtype``, one of ``NARROW_LIMITS``, can hold.

    Finite numbers are clamped to the largest finite one. A single number that is not 0 does not become 0: such numbers
    keep divisors away from it. Infinities are what the model says, and stay.
    """
    values = _plain(values)
    limit = NARROW_LIMITS[dtype]
    if values.size == 1 and 0 < abs(values.item()) < _LEAST[dtype]:
        return np.copysign(_LEAST[dtype], values).astype(values.dtype)
    return np.where(np.isinf(values), values, np.clip(values, -limit, limit))


def _converted(op: Any, x: Any) -> Any:
    saturates = bool(op.get("_x_saturate", 1))
    if op.get(CLIP, False) and op.output_types[0] in NARROW_LIMITS:
        x = in_range(x, op.output_types[0])
    return convert(x, op.output_types[0], is_saturating=saturates, round_mode=op.get("_x_round_mode", "up"))


@operator("Cast(x) [dst_type:i!]", infer=_cast, exact_types=True)
def cast(op: Any, x: Any) -> Any:
    return _converted(op, x)


@operator("CastLike(x, target)", infer=_cast_like, exact_types=True)
def cast_like(op: Any, x: Any, target: Any) -> Any:
    return _converted(op, x)


@operator("Bitcast(x) [type:t!]", infer=_bitcast, exact_types=True)
def bitcast(op: Any, x: Any) -> Any:
    target = numpy_dtype(op.output_types[0])
    x = np.ascontiguousarray(x)
    if x.dtype.itemsize == target.itemsize:
        return x.view(target)
    if x.dtype.itemsize > target.itemsize:
        return x[..., np.newaxis].view(target)
    return x.view(target)[..., 0]
