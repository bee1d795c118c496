"""Data types, tensor formats and placements, with GE's C++ numbering.

Two numberings of data types exist in an .om file; :data:`PROTO_DATA_TYPE` maps the C++ one (used everywhere in this
project) to the one of ``TensorDescriptor.dtype``.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any

import ml_dtypes
import numpy as np


class DataType(IntEnum):
    """Element types; the value is the C++ ``ge::DataType``, above 1000 it is ours."""

    DT_FLOAT = 0
    DT_FLOAT16 = 1
    DT_INT8 = 2
    DT_INT32 = 3
    DT_UINT8 = 4
    DT_INT16 = 6
    DT_UINT16 = 7
    DT_UINT32 = 8
    DT_INT64 = 9
    DT_UINT64 = 10
    DT_DOUBLE = 11
    DT_BOOL = 12
    DT_STRING = 13
    DT_DUAL_SUB_INT8 = 14
    DT_DUAL_SUB_UINT8 = 15
    DT_COMPLEX64 = 16
    DT_COMPLEX128 = 17
    DT_QINT8 = 18
    DT_QINT16 = 19
    DT_QINT32 = 20
    DT_QUINT8 = 21
    DT_QUINT16 = 22
    DT_RESOURCE = 23
    DT_STRING_REF = 24
    DT_DUAL = 25
    DT_VARIANT = 26
    DT_BF16 = 27
    DT_UNDEFINED = 28
    DT_INT4 = 29
    DT_UINT1 = 30
    DT_INT2 = 31
    DT_UINT2 = 32
    DT_COMPLEX32 = 33
    DT_HIFLOAT8 = 34
    DT_FLOAT8_E5M2 = 35
    DT_FLOAT8_E4M3FN = 36
    DT_FLOAT8_E8M0 = 37
    DT_FLOAT6_E3M2 = 38
    DT_FLOAT6_E2M3 = 39
    DT_FLOAT4_E2M1 = 40
    DT_FLOAT4_E1M2 = 41
    DT_HIFLOAT4 = 42
    DT_MAX = 43
    # element types of ONNX for which GE has no number
    DT_UINT4 = 1001
    DT_FLOAT8_E4M3FNUZ = 1002
    DT_FLOAT8_E5M2FNUZ = 1003


class Format(IntEnum):
    """Tensor layouts; the value is the C++ ``ge::Format`` without C0 and sub-format bits."""

    FORMAT_NCHW = 0
    FORMAT_NHWC = 1
    FORMAT_ND = 2
    FORMAT_NC1HWC0 = 3
    FORMAT_FRACTAL_Z = 4
    FORMAT_NC1C0HWPAD = 5
    FORMAT_NHWC1C0 = 6
    FORMAT_FSR_NCHW = 7
    FORMAT_FRACTAL_DECONV = 8
    FORMAT_C1HWNC0 = 9
    FORMAT_FRACTAL_DECONV_TRANSPOSE = 10
    FORMAT_FRACTAL_DECONV_SP_STRIDE_TRANS = 11
    FORMAT_NC1HWC0_C04 = 12
    FORMAT_FRACTAL_Z_C04 = 13
    FORMAT_CHWN = 14
    FORMAT_FRACTAL_DECONV_SP_STRIDE8_TRANS = 15
    FORMAT_HWCN = 16
    FORMAT_NC1KHKWHWC0 = 17
    FORMAT_BN_WEIGHT = 18
    FORMAT_FILTER_HWCK = 19
    FORMAT_HASHTABLE_LOOKUP_LOOKUPS = 20
    FORMAT_HASHTABLE_LOOKUP_KEYS = 21
    FORMAT_HASHTABLE_LOOKUP_VALUE = 22
    FORMAT_HASHTABLE_LOOKUP_OUTPUT = 23
    FORMAT_HASHTABLE_LOOKUP_HITS = 24
    FORMAT_C1HWNCoC0 = 25
    FORMAT_MD = 26
    FORMAT_NDHWC = 27
    FORMAT_FRACTAL_ZZ = 28
    FORMAT_FRACTAL_NZ = 29
    FORMAT_NCDHW = 30
    FORMAT_DHWCN = 31
    FORMAT_NDC1HWC0 = 32
    FORMAT_FRACTAL_Z_3D = 33
    FORMAT_CN = 34
    FORMAT_NC = 35
    FORMAT_DHWNC = 36
    FORMAT_FRACTAL_Z_3D_TRANSPOSE = 37
    FORMAT_FRACTAL_ZN_LSTM = 38
    FORMAT_FRACTAL_Z_G = 39
    FORMAT_RESERVED = 40
    FORMAT_ALL = 41
    FORMAT_NULL = 42
    FORMAT_ND_RNN_BIAS = 43
    FORMAT_FRACTAL_ZN_RNN = 44
    FORMAT_NYUV = 45
    FORMAT_NYUV_A = 46
    FORMAT_NCL = 47
    FORMAT_FRACTAL_Z_WINO = 48
    FORMAT_C1HWC0 = 49
    FORMAT_FRACTAL_NZ_C0_16 = 50
    FORMAT_FRACTAL_NZ_C0_32 = 51
    FORMAT_END = 52
    FORMAT_MAX = 53


class Placement(IntEnum):
    """Where a tensor's bytes live."""

    PLACEMENT_HOST = 0
    PLACEMENT_DEVICE = 1


_IRREGULAR_FORMAT_TEXT = {
    Format.FORMAT_FRACTAL_DECONV_SP_STRIDE8_TRANS: "DECONV_SP_STRIDE8_TRANS",
    Format.FORMAT_HASHTABLE_LOOKUP_LOOKUPS: "LOOKUP_LOOKUPS",
    Format.FORMAT_HASHTABLE_LOOKUP_KEYS: "LOOKUP_KEYS",
    Format.FORMAT_HASHTABLE_LOOKUP_VALUE: "LOOKUP_VALUE",
    Format.FORMAT_HASHTABLE_LOOKUP_OUTPUT: "LOOKUP_OUTPUT",
    Format.FORMAT_HASHTABLE_LOOKUP_HITS: "LOOKUP_HITS",
    Format.FORMAT_RESERVED: "FORMAT_RESERVED",
}
FORMAT_TEXT: dict[Format, str] = {f: _IRREGULAR_FORMAT_TEXT.get(f, f.name.removeprefix("FORMAT_")) for f in Format}
FORMAT_BY_TEXT: dict[str, Format] = {text: f for f, text in FORMAT_TEXT.items()}

PROTO_DATA_TYPE: dict[DataType, int] = {
    DataType.DT_UNDEFINED: 0,
    DataType.DT_FLOAT: 1,
    DataType.DT_FLOAT16: 2,
    DataType.DT_INT8: 3,
    DataType.DT_UINT8: 4,
    DataType.DT_INT16: 5,
    DataType.DT_UINT16: 6,
    DataType.DT_INT32: 7,
    DataType.DT_INT64: 8,
    DataType.DT_UINT32: 9,
    DataType.DT_UINT64: 10,
    DataType.DT_BOOL: 11,
    DataType.DT_DOUBLE: 12,
    DataType.DT_STRING: 13,
    DataType.DT_DUAL_SUB_INT8: 14,
    DataType.DT_DUAL_SUB_UINT8: 15,
    DataType.DT_COMPLEX64: 16,
    DataType.DT_COMPLEX128: 17,
    DataType.DT_QINT8: 18,
    DataType.DT_QINT16: 19,
    DataType.DT_QINT32: 20,
    DataType.DT_QUINT8: 21,
    DataType.DT_QUINT16: 22,
    DataType.DT_RESOURCE: 23,
    DataType.DT_STRING_REF: 24,
    DataType.DT_DUAL: 25,
    DataType.DT_VARIANT: 26,
    DataType.DT_BF16: 27,
    DataType.DT_INT4: 28,
    DataType.DT_UINT1: 29,
    DataType.DT_INT2: 30,
    DataType.DT_UINT2: 31,
    DataType.DT_COMPLEX32: 32,
    DataType.DT_HIFLOAT8: 33,
    DataType.DT_FLOAT8_E5M2: 34,
    DataType.DT_FLOAT8_E4M3FN: 35,
    DataType.DT_FLOAT8_E8M0: 36,
    DataType.DT_FLOAT6_E3M2: 37,
    DataType.DT_FLOAT6_E2M3: 38,
    DataType.DT_FLOAT4_E2M1: 39,
    DataType.DT_FLOAT4_E1M2: 40,
    DataType.DT_HIFLOAT4: 41,
    DataType.DT_UINT4: 1001,
    DataType.DT_FLOAT8_E4M3FNUZ: 1002,
    DataType.DT_FLOAT8_E5M2FNUZ: 1003,
}
DATA_TYPE_BY_PROTO: dict[int, DataType] = {number: dtype for dtype, number in PROTO_DATA_TYPE.items()}

# (short name in graph text, numpy dtype, bits per element as stored)
_ELEMENT: dict[DataType, tuple[str, Any, int]] = {
    DataType.DT_FLOAT: ("f32", np.float32, 32),
    DataType.DT_FLOAT16: ("f16", np.float16, 16),
    DataType.DT_BF16: ("bf16", ml_dtypes.bfloat16, 16),
    DataType.DT_DOUBLE: ("f64", np.float64, 64),
    DataType.DT_INT8: ("i8", np.int8, 8),
    DataType.DT_INT16: ("i16", np.int16, 16),
    DataType.DT_INT32: ("i32", np.int32, 32),
    DataType.DT_INT64: ("i64", np.int64, 64),
    DataType.DT_UINT8: ("u8", np.uint8, 8),
    DataType.DT_UINT16: ("u16", np.uint16, 16),
    DataType.DT_UINT32: ("u32", np.uint32, 32),
    DataType.DT_UINT64: ("u64", np.uint64, 64),
    DataType.DT_BOOL: ("bool", np.bool_, 8),
    DataType.DT_STRING: ("str", np.object_, 0),
    DataType.DT_COMPLEX64: ("c64", np.complex64, 64),
    DataType.DT_COMPLEX128: ("c128", np.complex128, 128),
    DataType.DT_INT4: ("i4", ml_dtypes.int4, 4),
    DataType.DT_UINT4: ("u4", ml_dtypes.uint4, 4),
    DataType.DT_INT2: ("i2", ml_dtypes.int2, 2),
    DataType.DT_UINT2: ("u2", ml_dtypes.uint2, 2),
    DataType.DT_FLOAT8_E5M2: ("f8e5m2", ml_dtypes.float8_e5m2, 8),
    DataType.DT_FLOAT8_E4M3FN: ("f8e4m3fn", ml_dtypes.float8_e4m3fn, 8),
    DataType.DT_FLOAT8_E5M2FNUZ: ("f8e5m2fnuz", ml_dtypes.float8_e5m2fnuz, 8),
    DataType.DT_FLOAT8_E4M3FNUZ: ("f8e4m3fnuz", ml_dtypes.float8_e4m3fnuz, 8),
    DataType.DT_FLOAT8_E8M0: ("f8e8m0", ml_dtypes.float8_e8m0fnu, 8),
    DataType.DT_FLOAT6_E3M2: ("f6e3m2", ml_dtypes.float6_e3m2fn, 6),
    DataType.DT_FLOAT6_E2M3: ("f6e2m3", ml_dtypes.float6_e2m3fn, 6),
    DataType.DT_FLOAT4_E2M1: ("f4e2m1", ml_dtypes.float4_e2m1fn, 4),
}
_SHORT_NAME = {dtype: row[0] for dtype, row in _ELEMENT.items()}
_BY_SHORT_NAME = {name: dtype for dtype, name in _SHORT_NAME.items()}
_NUMPY = {dtype: np.dtype(row[1]) for dtype, row in _ELEMENT.items()}
_BY_NUMPY = {npdtype: dtype for dtype, npdtype in _NUMPY.items()}

FLOATING = frozenset(
    {
        DataType.DT_FLOAT,
        DataType.DT_FLOAT16,
        DataType.DT_BF16,
        DataType.DT_DOUBLE,
        DataType.DT_FLOAT8_E5M2,
        DataType.DT_FLOAT8_E4M3FN,
        DataType.DT_FLOAT8_E5M2FNUZ,
        DataType.DT_FLOAT8_E4M3FNUZ,
        DataType.DT_FLOAT8_E8M0,
        DataType.DT_FLOAT6_E3M2,
        DataType.DT_FLOAT6_E2M3,
        DataType.DT_FLOAT4_E2M1,
    }
)
"""Real floating point types."""

NARROW_FLOATS = FLOATING - {DataType.DT_FLOAT, DataType.DT_DOUBLE}
"""Floats below 32 bits; reference semantics compute them in float32 and round once."""


def numpy_dtype(dtype: DataType) -> np.dtype[Any]:
    """Return the numpy dtype that holds ``dtype`` in memory (sub-byte types: one element per byte).

    Raises ``KeyError`` for types without a numpy or ml_dtypes counterpart.
    """
    found: np.dtype[Any] = _NUMPY[dtype]
    return found


def has_numpy_dtype(dtype: DataType) -> bool:
    """Tell whether tensors of ``dtype`` can be held, computed and stored here."""
    return dtype in _NUMPY


def data_type_of(dtype: Any) -> DataType:
    """Return the DataType of a numpy dtype. Raises ``KeyError`` when there is none."""
    npdtype = np.dtype(dtype)
    if npdtype.kind in "OUST":
        return DataType.DT_STRING
    return _BY_NUMPY[npdtype.newbyteorder("=")]


def bit_width(dtype: DataType) -> int:
    """Return the bits of one element as stored in a file; 0 for strings."""
    return _ELEMENT[dtype][2]


def byte_size(dtype: DataType, elements: int) -> int:
    """Return the bytes of ``elements`` packed elements, rounded up to whole bytes."""
    return (elements * bit_width(dtype) + 7) // 8


def short_name(dtype: DataType) -> str:
    """Return the name used in graph text: ``f32``, ``i64``, ``bool``; otherwise the lower-case enum name."""
    return _SHORT_NAME.get(dtype, dtype.name.removeprefix("DT_").lower())


def data_type_by_short_name(name: str) -> DataType:
    """Inverse of :func:`short_name`. Raises ``KeyError`` for unknown names."""
    found = _BY_SHORT_NAME.get(name)
    return DataType[f"DT_{name.upper()}"] if found is None else found
