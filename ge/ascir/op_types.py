"""The operators of an AscGraph: arity, attributes, meaning.

Values are computed elementwise over the axes of the graph. float16 and bfloat16 are float32 between operators: a value
is rounded where it is stored and where a Cast says so. Booleans are uint8, 0 or 1; any other number than 0 is true.
Integers wrap, a Cast from floating point to an integer saturates (NaN gives 0).

Attribute kinds: ``i`` int, ``f`` float, ``s`` text, ``b`` bool, ``I`` ints, ``II`` lists of ints.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any

AttrValue = int | float | str | bool | tuple[int, ...] | tuple[tuple[int, ...], ...]

MAX_INPUTS = 1024
"""Inputs of one operator (a Concat, for one)."""


class ComputeType(Enum):
    """What kind of work an operator is; the values are those of CANN's AscIR."""

    LOAD = 0
    STORE = 1
    REDUCE_STORE = 2
    ELEWISE = 3
    BROADCAST = 4
    REDUCE = 5
    TRANSPOSE = 6
    CONCAT = 7
    GATHER = 8
    CUBE = 9
    SPLIT = 10
    INVALID = 11


@dataclass(frozen=True)
class Attr:
    """A formal attribute; ``default`` is ``None`` for those that must be given."""

    kind: str
    default: AttrValue | None = None


@dataclass(frozen=True)
class OpType:
    """One operator type. It takes ``least`` to ``most`` inputs; ``meaning`` is its result in terms of them (a, b, c).

    ``is_ours`` marks functors that CANN's AscIR does not emit: the ``cann`` profile refuses them.
    """

    name: str
    compute: ComputeType
    least: int
    most: int
    meaning: str
    attrs: dict[str, Attr] = field(default_factory=dict)
    has_output: bool = True
    is_ours: bool = False

    def default_of(self, attr: str) -> Any:
        """Return the default of an attribute."""
        return self.attrs[attr].default


_GUARDS = {"guards": Attr("II", ())}


def _boundary() -> list[OpType]:
    load, store = ComputeType.LOAD, ComputeType.STORE
    index = {"index": Attr("i")}
    return [
        OpType("Data", ComputeType.INVALID, 0, 0, "input `index` of the kernel, as the view that is read", index),
        OpType("Output", ComputeType.INVALID, 1, 1, "result `index` of the kernel: what Store a wrote", index, False),
        OpType("Load", load, 1, 1, "the view of Data a, `offset` elements behind its start, repeated to the output's "
               "repeats along axes where the view has 1", {"offset": Attr("i", 0)}),
        OpType("Store", store, 1, 1, "a in memory, rounded to the output's type; 0 where a guard fails", _GUARDS),
        OpType("Scalar", ComputeType.INVALID, 0, 0, "the number `value`, everywhere", {"value": Attr("s")}),
    ]  # fmt: skip


_UNARY = {
    "Abs": "|a|",
    "Acos": "arc cosine of a",
    "Asin": "arc sine of a",
    "Cast": "a in the type of the output",
    "Erf": "error function of a",
    "Exp": "e to the power of a",
    "Gelu": "a (1 + erf(a / sqrt 2)) / 2",
    "IsFinite": "1 where a is finite, else 0",
    "Isnan": "1 where a is NaN, else 0",
    "Ln": "natural logarithm of a",
    "LogicalNot": "1 where a is 0, else 0",
    "Neg": "-a",
    "Reciprocal": "1 / a",
    "Relu": "maximum of a and 0; NaN stays",
    "Rsqrt": "1 / square root of a",
    "Sigmoid": "1 / (1 + e to the power of -a)",
    "Sign": "-1, 0 or 1; NaN stays",
    "Sqrt": "square root of a",
    "Tanh": "hyperbolic tangent of a",
}
_UNARY_OURS = {
    "BitwiseNot": "each bit of a turned over",
    "Ceil": "least integer not below a",
    "Cos": "cosine of a",
    "Exp2": "2 to the power of a",
    "Expm1": "e to the power of a, minus 1",
    "Floor": "greatest integer not above a",
    "IsInf": "1 where a is infinite, else 0",
    "Log1p": "natural logarithm of 1 + a",
    "Round": "nearest integer, halves to the even one",
    "Sin": "sine of a",
    "Square": "a a",
    "Tan": "tangent of a",
}
_BINARY = {
    "Add": "a + b",
    "BitwiseAnd": "a and b, bit by bit",
    "Div": "a / b; integers truncate toward zero, and give 0 for a divisor of 0",
    "Eq": "1 where a = b, else 0",
    "FloorDiv": "greatest integer not above a / b; integers give 0 for a divisor of 0",
    "Ge": "1 where a >= b, else 0",
    "Gt": "1 where a > b, else 0",
    "Le": "1 where a <= b, else 0",
    "LogicalAnd": "1 where neither is 0, else 0",
    "LogicalOr": "0 where both are 0, else 1",
    "Lt": "1 where a < b, else 0",
    "Maximum": "the larger of a and b; NaN if one is",
    "Minimum": "the smaller of a and b; NaN if one is",
    "Mul": "a b",
    "Ne": "0 where a = b, else 1",
    "Pow": "a to the power of b",
    "Sub": "a - b",
    "TrueDiv": "a / b in floating point",
}
_BINARY_OURS = {"BitwiseOr": "a or b, bit by bit", "BitwiseXor": "bits that a and b do not share"}
_REDUCE = {
    "All": "1 if no element is 0",
    "Any": "1 if one element is not 0",
    "Max": "the largest element; NaN if one is; of none the lowest number of the type",
    "Mean": "the sum over the count; NaN of none",
    "Min": "the smallest element; NaN if one is; of none the highest number of the type",
    "Prod": "the product; 1 of none",
    "Sum": "the sum; 0 of none",
}


def _pointwise() -> list[OpType]:
    elewise = ComputeType.ELEWISE
    return [
        *(OpType(name, elewise, 1, 1, meaning) for name, meaning in _UNARY.items()),
        *(OpType(name, elewise, 1, 1, meaning, is_ours=True) for name, meaning in _UNARY_OURS.items()),
        *(OpType(name, elewise, 2, 2, meaning) for name, meaning in _BINARY.items()),
        *(OpType(name, elewise, 2, 2, meaning, is_ours=True) for name, meaning in _BINARY_OURS.items()),
        OpType("Axpy", elewise, 2, 2, "a + `alpha` b", {"alpha": Attr("f")}),
        OpType("ClipByValue", elewise, 3, 3, "the larger of a and b, but at most c; NaN if one is"),
        OpType("LeakyRelu", elewise, 1, 1, "a where a >= 0, else `negative_slope` a", {"negative_slope": Attr("f")}),
        OpType("Where", elewise, 3, 3, "b where a is not 0, else c"),
    ]


def _cube() -> list[OpType]:
    cube = ComputeType.CUBE
    flags = {"transpose_x1": Attr("b", False), "transpose_x2": Attr("b", False)}
    conv = {
        "strides": Attr("I"),
        "pads": Attr("I"),
        "dilations": Attr("I"),
        "groups": Attr("i", 1),
        "data_format": Attr("s", "NCHW"),
    }
    return [
        OpType("MatMul", cube, 2, 2, "a times b", flags),
        OpType("MatMulBias", cube, 3, 3, "a times b, plus c along the last axis", flags),
        OpType("BatchMatMul", cube, 2, 2, "a times b for each batch", flags),
        OpType("BatchMatMulBias", cube, 3, 3, "a times b for each batch, plus c along the last axis", flags),
        OpType("Conv2D", cube, 2, 2, "a convolved with filters b", conv),
        OpType("Conv2DBias", cube, 3, 3, "a convolved with filters b, plus c per output channel", conv),
    ]


def _structural() -> list[OpType]:
    split = {"index": Attr("i"), "gid": Attr("i"), "axis": Attr("i"), "start": Attr("i")}
    return [
        OpType("Broadcast", ComputeType.BROADCAST, 1, 1, "a, repeated along axes where it has 1"),
        OpType("Transpose", ComputeType.TRANSPOSE, 1, 1, "output dim i is dim `order[i]` of a", {"order": Attr("I")}),
        *(
            OpType(name, ComputeType.REDUCE, 1, 1, f"{meaning}; over the axes where a has more than 1 and the output "
                   "1, without elements for which a guard fails", _GUARDS)
            for name, meaning in _REDUCE.items()
        ),
        OpType("Concat", ComputeType.CONCAT, 1, MAX_INPUTS, "the inputs, one behind the other along `axis`",
               {"axis": Attr("i")}),
        OpType("Split", ComputeType.SPLIT, 1, 1, "part `index` of group `gid`: a from `start` on along `axis`", split),
        OpType("Gather", ComputeType.GATHER, 2, 2, "elements of Data a along `axis` at the places in Data b; negative "
               "places count from the end if supported, places outside give 0",
               {"axis": Attr("i"), "negative_index_support": Attr("b", True)}),
    ]  # fmt: skip


OP_TYPES: dict[str, OpType] = {op.name: op for op in (*_boundary(), *_pointwise(), *_structural(), *_cube())}
"""All operator types by name."""
