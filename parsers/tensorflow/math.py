"""Elementwise mathematics, running sums, sums of several tensors, Einsum: a table, and the few that are no rows."""

from __future__ import annotations

from ge.graph import DataType
from parsers.ge_nodes import Mapped
from parsers.tensorflow.mapping import Row, maps, maps_rows
from parsers.tensorflow.node_builder import NodeBuilder

_SAME = (
    "Abs Acos Acosh Asin Asinh Atan Atanh Atan2 BitwiseAnd BitwiseOr BitwiseXor Ceil ClipByValue Cos Cosh Div DivNoNan "
    "Equal Erf Erfc Exp Expm1 Floor FloorDiv FloorMod Greater GreaterEqual Invert InvertPermutation IsFinite IsInf "
    "IsNan LeftShift Less LessEqual Log Log1p LogicalAnd LogicalNot LogicalOr Maximum Minimum Mod Mul Neg NotEqual "
    "OnesLike Pow RealDiv Reciprocal RightShift Rint Round Rsqrt Sign Sin Sinh Sqrt Square SquaredDifference Sub Tan "
    "TruncateDiv TruncateMod ZerosLike"
)
maps_rows(
    {
        **{op: op for op in _SAME.split()},
        "Add": "Add",
        "AddV2": "Add",
        "Cholesky": "Cholesky",
        "Cumprod": Row("Cumprod", exclusive=False, reverse=False),
        "Cumsum": Row("Cumsum", exclusive=False, reverse=False),
        "Inv": "Reciprocal",
        "LogicalXor": "NotEqual",
    }
)


@maps("AddN", "AccumulateNV2", inputs=(1, None))
def total(n: NodeBuilder) -> Mapped:
    """Before: AddN, AccumulateNV2. After: AddN, AccumulateNV2."""
    return n.add(n.op_type, *n.inputs, N=len(n.inputs))


@maps("Einsum", "XlaEinsum", inputs=(1, None))
def einsum(n: NodeBuilder) -> Mapped:
    """Before: Einsum. After: Einsum."""
    return n.add("Einsum", *n.inputs, equation=n.attr("equation", str), N=len(n.inputs))


@maps("Xdivy", "Xlogy", "Xlog1py", inputs=2)
def guarded_product(n: NodeBuilder) -> Mapped:
    """Before: Xlogy(x, y), Xdivy, Xlog1py. After: SelectV2(x == 0, 0, x Log(y)), x / y, x Log1p(y)."""
    x, y = n.need(0), n.need(1)
    zero = n.scalar("Zero", 0, n.dtype(x))
    is_zero = n.add("Equal", x, zero, role="Equal")
    if n.op_type == "Xdivy":
        value = n.add("RealDiv", x, y, role="RealDiv")
    else:
        function = "Log" if n.op_type == "Xlogy" else "Log1p"
        value = n.add("Mul", x, n.add(function, y, role=function), role="Mul")
    return n.add("SelectV2", is_zero, zero, value)


@maps("MulNoNan", inputs=2)
def product_or_zero(n: NodeBuilder) -> Mapped:
    """Before: MulNoNan(x, y). After: SelectV2(y == 0, 0, x y). 0 wins over whatever x is."""
    x, y = n.need(0), n.need(1)
    zero = n.scalar("Zero", 0, n.dtype(x))
    is_zero = n.add("Equal", y, zero, role="Equal")
    return n.add("SelectV2", is_zero, zero, n.add("Mul", x, y, role="Mul"))


@maps("ApproximateEqual", inputs=2)
def nearly_equal(n: NodeBuilder) -> Mapped:
    """Before: ApproximateEqual. After: Abs(x - y) < tolerance."""
    difference = n.add("Abs", n.add("Sub", *n.inputs, role="Sub"), role="Abs")
    tolerance = n.scalar("Tolerance", n.attr("tolerance", 1e-5), n.dtype(n.need(0)))
    return n.add("Less", difference, tolerance)


@maps("Cast", inputs=1)
def cast(n: NodeBuilder) -> Mapped:
    """Before: Cast to DstT. After: Cast to dst_type."""
    return n.add("Cast", n.need(0), dst_type=int(n.attr("DstT", DataType)))


@maps("Bitcast", inputs=1)
def bitcast(n: NodeBuilder) -> Mapped:
    """Before: Bitcast. After: Bitcast."""
    return n.add("Bitcast", n.need(0), type=n.attr("type", DataType))
