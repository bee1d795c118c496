"""Which element types an operator of a kernel takes on which platform, and what it gives back.

BOOL is a type of its own here: a kernel holds it as uint8, but arithmetic on it is left to the operators of the model.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from ge.ascir.check import ELEMENT_TYPES
from ge.ascir.op_types import OP_TYPES
from ge.graph import DataType
from ge.graph.types import data_type_by_short_name, short_name
from passes.lowering.refusal import Refusal, Rule

BOOL, UINT8, FLOAT = DataType.DT_BOOL, DataType.DT_UINT8, DataType.DT_FLOAT
FLOATS = frozenset({DataType.DT_FLOAT, DataType.DT_FLOAT16, DataType.DT_BF16, DataType.DT_DOUBLE})
INTEGERS = ELEMENT_TYPES - FLOATS
TRUTHS = frozenset(
    {"Eq", "Ge", "Gt", "IsFinite", "IsInf", "Isnan", "Le", "LogicalAnd", "LogicalNot", "LogicalOr", "Lt", "Ne"}
)
_ON_BOOL = frozenset({"Eq", "LogicalAnd", "LogicalNot", "LogicalOr", "Ne", "Where"})
"""Operators that take BOOL where the platform takes uint8."""

_FLOAT_2201, _FLOAT_3510 = "f32 f16", "f32 f16 bf16"
_INTS = "i8 u8 i16 u16 i32 u32 i64 u64"
_ALL = f"{_FLOAT_3510} {_INTS}"
_ARITHMETIC = "f32 f16 i16 i32"
_MOVED_2201 = "f32 f16 bf16 i8 u8 i16 u16 i32 u32 i64"
_GATHERED = "f32 f16 bf16 i16 u16 i32 u32"

# operators, what platform 2201 takes, what 3510 takes
_ROWS: list[tuple[str, str, str]] = [
    ("Load Store", _MOVED_2201, f"{_MOVED_2201} u64"),
    ("Broadcast", "f32 f16 i8 u8 i16 u16 i32 u32 u64", "f32 f16 i8 u8 i16 u16 i32 u32 u64 i64"),
    ("Exp Ln Sqrt Rsqrt Erf Tanh Sigmoid IsFinite Isnan", _FLOAT_2201, _FLOAT_3510),
    ("Reciprocal Axpy", "f32 f16", "f32 f16 i64 u64 bf16"),
    ("Div Gelu LeakyRelu", "f32 f16", "f32 f16"),
    ("Abs", "f32 f16 i32", "f32 f16 bf16 i8 u8 i16 i32 i64"),
    ("Relu", "f32 f16 i32", "f32 f16 i32 u8 i64"),
    ("Sign", "f32 f16 i32", "f32 f16 i32 u8 i64 bf16"),
    ("Neg", "f32 f16 i16 i32", "f32 f16 i16 i32 i8 i64 bf16"),
    ("Add Sub Minimum Maximum", _ARITHMETIC, _ALL),
    ("Mul", _ARITHMETIC, _ALL.replace(" u16", "")),
    ("Ge Gt Le Eq Ne", "f32 f16 i32 i64", _ALL),
    ("Lt", "f32 f16 i32", _ALL),
    ("LogicalAnd LogicalOr LogicalNot", "f32 f16 u8 i16 i32", _ALL),
    ("Where", "f32 f16 i16 i32 i64", _ALL),
    ("ClipByValue", _ARITHMETIC, _ALL),
    ("TrueDiv", "f32 f16 i32", _FLOAT_3510),
    ("FloorDiv", "f32 f16", f"f32 f16 {_INTS}"),
    ("Pow", "f32 f16 i32", "f32 f16 bf16 i8 u8 i16 u16 i32 u32"),
    ("BitwiseAnd", "u8 i16 u16 i32", _INTS),
    ("Acos Asin", "", _FLOAT_3510),
    # half precision reaches these unchecked and is summed in float
    ("Sum", "f32 i32 f16 bf16", "f32 f16 bf16 i8 i16 i32 i64"),
    ("Max Min", "f32 f16 bf16", "f32 f16 bf16 i8 u8 i16 i32 i64"),
    ("Mean Prod", "f32 f16 bf16", "f32 f16 bf16"),
    ("Any All", "f32", "f32"),
    ("Concat Split", "f32 f16 bf16 i8 u8 i16 u16 i32 u32 u64", "f32 f16 bf16 i8 u8 i16 u16 i32 u32 u64 i64"),
    ("Gather Transpose", _GATHERED, _GATHERED),
    ("MatMul MatMulBias BatchMatMul BatchMatMulBias Conv2D Conv2DBias", "f32 f16 bf16", "f32 f16 bf16"),
]  # fmt: skip
_CASTS_2201 = (
    "f32: f32 f16 i16 i32 i64 bf16; f16: f32 i8 u8 i16 i32 i64; i8: f16 u8; u8: f32 f16 i8 i16 i32; i16: f32 f16 u16; "
    "i32: f32 f16 i16 u32 i64; i64: i32; bf16: f32 i32; u16: i16; u32: i32; u64: i64"
)
_CASTS_3510 = "f32: i8; i8: f32 i16; u8: i64; i16: i8 u8; i64: f32 f16 u8 u64"
"""What 3510 takes besides."""

_INTEGRAL_ON_HOST = frozenset({"BitwiseAnd", "BitwiseNot", "BitwiseOr", "BitwiseXor"})
_FRACTIONAL_ON_HOST = frozenset(
    {
        "Acos", "Asin", "Axpy", "Ceil", "Cos", "Erf", "Exp", "Exp2", "Expm1", "Floor", "Gelu", "IsFinite", "IsInf",
        "Isnan", "LeakyRelu", "Ln", "Log1p", "Mean", "Pow", "Reciprocal", "Round", "Rsqrt", "Sigmoid", "Sin", "Sqrt",
        "Tan", "Tanh", "TrueDiv",
    }
)  # fmt: skip


@cache
def _types(names: str) -> frozenset[DataType]:
    return frozenset(data_type_by_short_name(name) for name in names.split())


@cache
def _table(platform: str) -> dict[str, frozenset[DataType]]:
    column = 1 if platform == "2201" else 2
    return {name: _types(row[column]) for row in _ROWS for name in row[0].split()}


@cache
def _casts(platform: str) -> frozenset[tuple[DataType, DataType]]:
    text = _CASTS_2201 if platform == "2201" else f"{_CASTS_2201}; {_CASTS_3510}"
    pairs = (part.split(":") for part in text.split(";"))
    return frozenset((source, target) for name, to in pairs for source in _types(name) for target in _types(to))


def takes(platform: str, functor: str, dtype: DataType) -> bool:
    """Tell whether a functor takes an element type on a platform (``host``, ``2201``, ``3510``)."""
    if dtype is BOOL:
        return functor in _ON_BOOL or _is_movement(functor)
    if platform != "host":
        return dtype in _table(platform).get(functor, frozenset())
    if functor in _INTEGRAL_ON_HOST:
        return dtype in INTEGERS
    return dtype in (FLOATS if functor in _FRACTIONAL_ON_HOST else ELEMENT_TYPES)


def _is_movement(functor: str) -> bool:
    return functor in ("Load", "Store", "Broadcast", "Concat", "Split", "Transpose", "Gather")


def castable(platform: str, source: DataType, target: DataType) -> bool:
    """Tell whether a kernel converts one element type to another."""
    if platform == "host":
        return source in ELEMENT_TYPES | {BOOL} and target in ELEMENT_TYPES
    return (kernel_type(source), target) in _casts(platform)


def kernel_type(dtype: DataType) -> DataType:
    """Return the element type that a kernel holds a tensor in."""
    return UINT8 if dtype is BOOL else dtype


def result_type(platform: str, functor: str, inputs: Sequence[DataType]) -> DataType:
    """Return the type that a functor gives for its inputs. Raises :class:`Refusal` for types that it does not take."""
    if platform != "host" and OP_TYPES[functor].is_ours:
        raise Refusal(Rule.EXTENSION, f"{functor} is not an operator of CANN's kernels")
    values = inputs
    if functor == "Where":
        if kernel_type(inputs[0]) is not UINT8:
            raise Refusal(Rule.ELEMENT_TYPE, f"the condition of Where is {short_name(inputs[0])}")
        values = inputs[1:]
    first = values[0]
    if any(dtype is not first for dtype in values):
        raise Refusal(Rule.ELEMENT_TYPE, f"{functor} of {' and '.join(map(short_name, values))}")
    if not takes(platform, functor, first):
        raise Refusal(Rule.ELEMENT_TYPE, f"{functor} does not take {short_name(first)} on {platform}")
    if functor == "LogicalNot" and platform == "2201" and first is not BOOL:
        return first
    if functor in TRUTHS:
        return BOOL
    return FLOAT if functor == "TrueDiv" and first not in FLOATS else first
