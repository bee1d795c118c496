"""What operators compute, against TensorFlow's documentation in numpy: a table, and the families with oracles."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

from ge.errors import ReportedError
from parsers.tensorflow import graph_def_pb2 as pb
from tests.parsers.tensorflow.tf_models import Type, op_model, run_compiled, run_op, type_of
from tests.parsers.tensorflow.values import Array, f, i, same


@dataclass(frozen=True)
class Case:
    """A node and what it gives; numbers in ``constant`` name inputs that are constants."""

    op: str
    inputs: Sequence[Any]
    expected: Any
    attrs: dict[str, Any] = field(default_factory=dict)
    constant: Sequence[int] = ()


X, P, U = f(2, 3, 4), f(2, 3, 4, low=0.1, high=3), f(2, 3, 4, low=-0.95, high=0.95)
ROW = f(3, 1, low=0.5, high=2)
W = X.astype(np.float64)
N, D = i(-7, 7, -7, 7, -6, 0, 5), i(2, 2, -2, -2, 3, 4, -5)
TRUNCATED = i(-3, 3, 3, -3, -2, 0, -1)
REMAINDERS = i(-1, 1, -1, 1, 0, 0, 0)
ERF = np.vectorize(math.erf)
INT64, FLOAT, HALF, UINT8 = (Type(t) for t in (pb.DT_INT64, pb.DT_FLOAT, pb.DT_HALF, pb.DT_UINT8))
B1, B2 = f(2, 3) > 0, f(3) > 0
IDS = i([2, 0, 3, -1])

UNARY: list[tuple[str, Array, Callable[[Any], Any]]] = [
    *[
        (name.title(), X, getattr(np, name))
        for name in [
            "abs",
            "sin",
            "cos",
            "tan",
            "sinh",
            "cosh",
            "tanh",
            "exp",
            "expm1",
            "square",
            "sign",
            "ceil",
            "floor",
            "rint",
        ]
    ],
    *[(name.title(), U, getattr(np, f"arc{name[1:]}")) for name in ["asin", "acos", "atan", "atanh"]],
    ("Asinh", X, np.arcsinh),
    ("Acosh", P + 1, np.arccosh),
    ("Log", P, np.log),
    ("Log1p", P, np.log1p),
    ("Sqrt", P, np.sqrt),
    ("Rsqrt", P, lambda x: 1 / np.sqrt(x)),
    ("Reciprocal", P, lambda x: 1 / x),
    ("Inv", P, lambda x: 1 / x),
    ("Neg", X, np.negative),
    ("Round", np.float32([0.5, 1.5, 2.5, -0.5, -1.5, 0.4]), np.round),
    ("Erf", X, ERF),
    ("Erfc", X, lambda x: 1 - ERF(x)),
    ("Relu", X, lambda x: np.maximum(x, 0)),
    ("Relu6", 5 * X, lambda x: np.clip(x, 0, 6)),
    ("Elu", X, lambda x: np.where(x > 0, x, np.expm1(x))),
    ("Selu", X, lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(x))),
    ("Sigmoid", X, lambda x: 1 / (1 + np.exp(-x))),
    ("Softplus", X, lambda x: np.log1p(np.exp(x))),
    ("Softsign", X, lambda x: x / (1 + np.abs(x))),
    ("L2Loss", X, lambda x: np.sum(x * x) / 2),
]


@pytest.mark.parametrize(("op", "x", "function"), [pytest.param(*row, id=row[0]) for row in UNARY])
def test_functions_of_one_operand(op: str, x: Array, function: Callable[[Any], Any]) -> None:
    same(run_op(op, [x])[0], function(x.astype(np.float64)))


IDLE = "Identity StopGradient PreventGradient Snapshot GuaranteeConst CheckNumerics EnsureShape"


@pytest.mark.parametrize("op", IDLE.split())
def test_nodes_that_change_nothing(op: str) -> None:
    same(run_op(op, [X])[0], X, rtol=0)


CASES = [
    # elementwise, broadcast
    Case("Add", [X, ROW], W + ROW),
    Case("AddV2", [X, ROW], W + ROW),
    Case("Sub", [X, ROW], W - ROW),
    Case("Mul", [X, ROW], W * ROW),
    Case("RealDiv", [X, ROW], W / ROW),
    Case("Maximum", [X, ROW], np.maximum(X, ROW)),
    Case("Minimum", [X, ROW], np.minimum(X, ROW)),
    Case("SquaredDifference", [X, ROW], (W - ROW) ** 2),
    Case("Pow", [P, ROW], P.astype(float) ** ROW),
    Case("Pow", [i(2, 3), i(10, 3)], i(1024, 27)),
    Case("Atan2", [X, ROW], np.arctan2(W, ROW)),
    Case("DivNoNan", [np.float32([3, 3, 3]), np.float32([0, 1, 2])], np.float32([0, 3, 1.5])),
    Case("Xlogy", [np.float32([0, 2]), np.float32([0, 3])], np.float64([0, 2 * math.log(3)])),
    Case("Xdivy", [np.float32([0, 2]), np.float32([0, 4])], np.float32([0, 0.5])),
    Case("Xlog1py", [np.float32([0, 2]), np.float32([-1, 3])], np.float64([0, 2 * math.log(4)])),
    Case("MulNoNan", [np.float32([np.inf, 2]), np.float32([0, 4])], np.float32([0, 8])),
    Case(
        "ApproximateEqual", [np.float32([1, 1]), np.float32([1.05, 1.2])], np.array([True, False]), {"tolerance": 0.1}
    ),
    # integer division: Div, TruncateDiv towards zero as in C, FloorDiv down as in Python
    Case("Div", [N, D], TRUNCATED),
    Case("TruncateDiv", [N, D], TRUNCATED),
    Case("FloorDiv", [N, D], N // D),
    Case("Mod", [N, D], REMAINDERS),
    Case("TruncateMod", [N, D], REMAINDERS),
    Case("FloorMod", [N, D], N % D),
    Case("FloorDiv", [np.float32([-7, 7]), np.float32([2, -2])], np.float32([-4, -4])),
    Case("FloorMod", [np.float32([-7, 7]), np.float32([2.5, -2.5])], np.float32([0.5, -0.5])),
    Case("Div", [np.float32([-7]), np.float32([2])], np.float32([-3.5])),
    # comparisons, logic, bits
    *[
        Case(op, [X, np.round(X[:1])], function(X, np.round(X[:1])))
        for op, function in {
            "Equal": np.equal,
            "NotEqual": np.not_equal,
            "Less": np.less,
            "LessEqual": np.less_equal,
            "Greater": np.greater,
            "GreaterEqual": np.greater_equal,
        }.items()
    ],
    Case("LogicalAnd", [B1, B2], B1 & B2),
    Case("LogicalOr", [B1, B2], B1 | B2),
    Case("LogicalXor", [B1, B2], B1 ^ B2),
    Case("LogicalNot", [B1], ~B1),
    Case("BitwiseAnd", [i(12, 10), i(10, 6)], i(8, 2)),
    Case("BitwiseOr", [i(12, 10), i(10, 6)], i(14, 14)),
    Case("BitwiseXor", [i(12, 10), i(10, 6)], i(6, 12)),
    Case("Invert", [i(0, 5)], i(-1, -6)),
    Case("LeftShift", [i(1, 3), i(4, 1)], i(16, 6)),
    Case("RightShift", [i(-16, 7), i(2, 1)], i(-4, 3)),
    Case("IsFinite", [np.float32([1, np.inf, np.nan])], np.array([True, False, False])),
    Case("IsInf", [np.float32([1, -np.inf, np.nan])], np.array([False, True, False])),
    Case("IsNan", [np.float32([1, np.inf, np.nan])], np.array([False, False, True])),
    Case("ClipByValue", [X, np.float32(-1), np.float32(0.5)], np.clip(X, -1, 0.5)),
    Case("AddN", [X, X, -3 * X], -W, {"N": 3}),
    Case("AccumulateNV2", [X, X], 2 * W, {"N": 2}),
    Case("LeakyRelu", [X], np.where(X > 0, X, 0.2 * X)),
    Case("LeakyRelu", [X], np.where(X > 0, X, 0.5 * X), {"alpha": 0.5}),
    Case("LeakyRelu", [X], np.where(X > 0, X, 0), {"alpha": 0.0}),
    # types
    Case("Cast", [np.float32([1.9, -1.9, 0])], i(1, -1, 0), {"DstT": Type(pb.DT_INT32)}),
    Case("Cast", [np.float32([1.9, 0])], np.array([True, False]), {"DstT": Type(pb.DT_BOOL)}),
    Case("Cast", [i(1, 300)], np.float16([1, 300]), {"DstT": HALF}),
    Case("Bitcast", [np.float32([1])], i([0x3F800000]), {"type": Type(pb.DT_INT32)}),
    # reductions
    Case("Sum", [X, i(0, 2)], W.sum((0, 2)), {}, [1]),
    Case("Sum", [X, i(-1)], W.sum(-1, keepdims=True), {"keep_dims": True}, [1]),
    Case("Sum", [X, np.zeros(0, np.int32)], W, {}, [1]),
    Case("Mean", [X, i(1)], W.mean(1), {}, [1]),
    Case("Mean", [i(1, 2, 4), i(0)], i(2), {}, [1]),
    Case("Mean", [i(-1, -2, -4), i(0)], i(-2), {}, [1]),
    Case("Max", [X, i(1, 2)], X.max((1, 2)), {}, [1]),
    Case("Min", [X, i(1, 2)], X.min((1, 2)), {}, [1]),
    Case("Prod", [X, i([2], dtype=np.int64)], W.prod(2), {}, [1]),
    Case("All", [B1, i(1)], B1.all(1), {}, [1]),
    Case("Any", [B1, i(0)], B1.any(0), {}, [1]),
    Case("EuclideanNorm", [X, i(2)], np.sqrt((W * W).sum(2)), {}, [1]),
    Case("Cumsum", [X, i(1)], np.cumsum(W, 1), {}, [1]),
    Case("Cumsum", [i(1, 2, 3), i(0)], i(0, 1, 3), {"exclusive": True}, [1]),
    Case("Cumsum", [i(1, 2, 3), i(0)], i(6, 5, 3), {"reverse": True}, [1]),
    Case("Cumprod", [i(1, 2, 3), i(0)], i(6, 3, 1), {"exclusive": True, "reverse": True}, [1]),
    # shapes
    Case("Shape", [X], i(2, 3, 4)),
    Case("Shape", [X], i(2, 3, 4, dtype=np.int64), {"out_type": INT64}),
    Case("Size", [X], i(24)),
    Case("Rank", [X], i(3)),
    Case("Reshape", [X, i(4, -1)], X.reshape(4, -1), {}, [1]),
    Case("Reshape", [np.zeros((2, 0), np.float32), i(0, 5)], np.zeros((0, 5), np.float32), {}, [1]),
    Case("Squeeze", [X[None, :, None]], X),
    Case("Squeeze", [X[None, :, None]], X[:, None], {"squeeze_dims": [0]}),
    Case("Squeeze", [X[None, :, None]], X[None], {"axis": [2]}),
    Case("ExpandDims", [X, i(-1)], X[..., None], {}, [1]),
    Case("BroadcastTo", [ROW, i(2, 3, 4)], np.broadcast_to(ROW, (2, 3, 4)), {}, [1]),
    Case("BroadcastArgs", [i(2, 1), i(1, 3)], i(2, 3)),
    Case("Tile", [X, i(1, 2, 3)], np.tile(X, (1, 2, 3)), {}, [1]),
    Case("Transpose", [X, i(2, 0, 1)], X.transpose(2, 0, 1), {}, [1]),
    Case("Slice", [X, i(0, 1, 2), i(2, -1, 1)], X[:, 1:, 2:3], {}, [1, 2]),
    Case("Pack", [X, -X], np.stack([X, -X], 1), {"axis": 1, "N": 2}),
    Case("Concat", [i(2), X, X], np.concatenate([X, X], 2), {"N": 2}, [0]),
    Case("ConcatV2", [X, X, i(-2)], np.concatenate([X, X], -2), {"N": 2}, [2]),
    Case("Fill", [i(2, 3), np.float32(7)], np.full((2, 3), 7, np.float32), {}, [0]),
    Case("ZerosLike", [X], np.zeros_like(X)),
    Case("OnesLike", [i(3, 4)], i(1, 1)),
    Case("Range", [i(2), i(9), i(3)], i(2, 5, 8), {}, [0, 1, 2]),
    Case("Range", [np.float32(0), np.float32(1), np.float32(0.25)], np.float32([0, 0.25, 0.5, 0.75]), {}, [0, 1, 2]),
    Case("LinSpace", [np.float32(0), np.float32(1), i(5)], np.float32([0, 0.25, 0.5, 0.75, 1]), {}, [2]),
    Case("Empty", [i(2, 2)], np.zeros((2, 2), np.float32), {"dtype": FLOAT, "init": True}, [0]),
    # padding and blocks
    Case("Pad", [X[0], i([[1, 0], [0, 2]])], np.pad(X[0], [(1, 0), (0, 2)]), {}, [1]),
    Case(
        "PadV2",
        [X[0], i([[1, 0], [0, 2]]), np.float32(9)],
        np.pad(X[0], [(1, 0), (0, 2)], constant_values=9),
        {},
        [1, 2],
    ),
    Case("MirrorPad", [X[0], i([[1, 2], [2, 0]])], np.pad(X[0], [(1, 2), (2, 0)], "reflect"), {"mode": "REFLECT"}, [1]),
    Case(
        "MirrorPad",
        [X[0], i([[1, 3], [2, 0]])],
        np.pad(X[0], [(1, 3), (2, 0)], "symmetric"),
        {"mode": "SYMMETRIC"},
        [1],
    ),
    Case(
        "SpaceToBatchND",
        [i(1, 2, 3, 4).reshape(1, 2, 2, 1), i(2, 2), i([[0, 0], [0, 0]])],
        i(1, 2, 3, 4).reshape(4, 1, 1, 1),
        {},
        [1, 2],
    ),
    Case(
        "BatchToSpaceND",
        [i(1, 2, 3, 4).reshape(4, 1, 1, 1), i(2, 2), i([[0, 0], [0, 0]])],
        i(1, 2, 3, 4).reshape(1, 2, 2, 1),
        {},
        [1, 2],
    ),
    Case(
        "SpaceToBatch",
        [i(1, 2, 3, 4).reshape(1, 2, 2, 1), i([[0, 0], [0, 0]])],
        i(1, 2, 3, 4).reshape(4, 1, 1, 1),
        {"block_size": 2},
        [1],
    ),
    Case("SpaceToDepth", [i(1, 2, 3, 4).reshape(1, 2, 2, 1)], i(1, 2, 3, 4).reshape(1, 1, 1, 4), {"block_size": 2}),
    Case(
        "DepthToSpace",
        [i(*range(1, 13)).reshape(1, 1, 1, 12)],
        i(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12).reshape(1, 2, 2, 3),
        {"block_size": 2},
    ),
    # order
    Case("ReverseV2", [X, i(0, -1)], X[::-1, :, ::-1], {}, [1]),
    Case(
        "ReverseSequence", [i([1, 2, 3], [4, 5, 6]), i(2, 3)], i([2, 1, 3], [6, 5, 4]), {"seq_dim": 1, "batch_dim": 0}
    ),
    Case("InvertPermutation", [i(2, 0, 1)], i(1, 2, 0)),
    Case("Roll", [X, i(1, -2), i(0, 2)], np.roll(X, (1, -2), (0, 2)), {}, [1, 2]),
    Case("Diag", [i(1, 2)], i([1, 0], [0, 2])),
    Case("DiagPart", [i([1, 5], [6, 2])], i(1, 2)),
    Case("MatrixDiag", [i([1, 2], [3, 4])], i([[1, 0], [0, 2]], [[3, 0], [0, 4]])),
    Case("MatrixBandPart", [X[0], i(1, dtype=np.int64), i(0, dtype=np.int64)], np.tril(np.triu(X[0], -1)), {}, [1, 2]),
    Case("Cholesky", [np.float32([[4, 2], [2, 5]])], np.float32([[2, 0], [1, 2]])),
    # by index
    Case("Gather", [X, i(1, 0)], X[[1, 0]], {}, [1]),
    Case("GatherV2", [X, i([[0, 2]]), i(1)], X[:, [[0, 2]]], {}, [2]),
    Case("GatherV2", [X, i([0, 2], [1, 1]), i(1)], np.stack([X[0, [0, 2]], X[1, [1, 1]]]), {"batch_dims": 1}, [2]),
    Case("GatherNd", [X, i([[1, 2], [0, 0]])], X[[1, 0], [2, 0]]),
    Case(
        "ScatterNd",
        [i([[1], [3], [1]]), f(3, 2) * 0 + 2, i(4, 2)],
        np.float32([[0, 0], [4, 4], [0, 0], [2, 2]]),
        {},
        [2],
    ),
    Case("TensorScatterUpdate", [i(1, 2, 3), i([[1], [0]]), i(7, 8)], i(8, 7, 3)),
    Case("TensorScatterAdd", [i(1, 2, 3), i([[1], [1]]), i(7, 8)], i(1, 17, 3)),
    Case("TensorScatterSub", [i(1, 2, 3), i([[1], [1]]), i(7, 8)], i(1, -13, 3)),
    Case("TensorScatterMax", [i(1, 2, 3), i([[1], [2]]), i(7, 1)], i(1, 7, 3)),
    Case("TensorScatterMin", [i(1, 2, 3), i([[1], [2]]), i(7, 1)], i(1, 2, 1)),
    Case(
        "OneHot",
        [IDS, i(3), np.float32(5), np.float32(-1)],
        np.where(IDS[:, None] == np.arange(3), 5, -1).astype(np.float32),
        {},
        [1, 2, 3],
    ),
    Case(
        "OneHot",
        [IDS, i(3), np.float32(1), np.float32(0)],
        (np.arange(3)[:, None] == IDS).astype(np.float32),
        {"axis": 0},
        [1, 2, 3],
    ),
    Case("Select", [np.array([True, False]), X, -X], np.stack([X[0], -X[1]])),
    Case("Select", [X > 0, X, -X], np.abs(X)),
    Case("SelectV2", [ROW > 1, X, np.float32(0)], np.where(ROW > 1, X, 0)),
    Case("Where", [B1], np.argwhere(B1)),
    Case("ArgMax", [X, i(1)], X.argmax(1), {}, [1]),
    Case("ArgMin", [X, i(-1)], X.argmin(-1).astype(np.int32), {"output_type": Type(pb.DT_INT32)}, [1]),
    Case("ArgMax", [i([1, 3, 3], [2, 2, 0]), i(1)], i(1, 0, dtype=np.int64), {}, [1]),
    Case("InTopK", [np.float32([[1, 3, 2], [1, 3, 2]]), i(2, 0)], np.array([True, False]), {"k": 2}),
    Case("InTopKV2", [np.float32([[1, 3, 2], [1, 3, 2]]), i(2, 0), i(2)], np.array([True, False]), {}, [2]),
    Case("SegmentSum", [i([1, 2], [3, 4], [5, 6]), i(0, 0, 2)], i([4, 6], [0, 0], [5, 6]), {}, [1]),
    Case("UnsortedSegmentSum", [i(1, 2, 3), i(2, 0, 2), i(4)], i(2, 0, 4, 0), {}, [2]),
    # products
    Case("MatMul", [X[0], X[1]], W[0] @ W[1].T, {"transpose_b": True}),
    Case("MatMul", [X[0], X[1]], W[0].T @ W[1], {"transpose_a": True}),
    Case("BatchMatMul", [X, X], W @ W.swapaxes(1, 2), {"adj_y": True}),
    Case("BatchMatMulV2", [X, X[:1]], W.swapaxes(1, 2) @ W[:1], {"adj_x": True}),
    Case(
        "BatchMatMulV3",
        [i(1, 2, 3, 4).reshape(2, 2).astype(np.int8), i(1, 0, 0, 1).reshape(2, 2).astype(np.int8)],
        i([1, 2], [3, 4]),
        {"Tout": Type(pb.DT_INT32)},
    ),
    Case("Einsum", [X, f(4, 5)], np.zeros(0), {"equation": "abc,cd->adb"}),
    Case("Einsum", [X, X], np.einsum("...ij,...kj->...ik", W, W), {"equation": "...ij,...kj->...ik"}),
    Case("BiasAdd", [X, f(4)], np.zeros(0)),
    # softmax and losses
    Case("Softmax", [X], np.exp(W) / np.exp(W).sum(-1, keepdims=True)),
    Case("LogSoftmax", [X], W - np.log(np.exp(W).sum(-1, keepdims=True))),
]


def complete(case: Case) -> Case:
    """Fill in expected values that need the random inputs of the case itself."""
    if case.op == "Einsum" and case.attrs["equation"] == "abc,cd->adb":
        return replace(case, expected=np.einsum("abc,cd->adb", W, case.inputs[1].astype(float)))
    if case.op == "BiasAdd":
        return replace(case, expected=W + case.inputs[1])
    return case


@pytest.mark.parametrize("case", [pytest.param(complete(case), id=f"{case.op}-{k}") for k, case in enumerate(CASES)])
def test_operators(case: Case) -> None:
    same(run_op(case.op, case.inputs, case.constant, **case.attrs)[0], case.expected)


@pytest.mark.parametrize("case", [pytest.param(complete(case), id=f"{case.op}-{k}") for k, case in enumerate(CASES)])
@pytest.mark.parametrize("refinement", ["0", "1"])
def test_compiled_operators(case: Case, refinement: str) -> None:
    model, feeds = op_model(case.op, case.inputs, case.constant, **case.attrs)
    same(run_compiled(model, feeds, format_refinement=refinement)[0], case.expected)


# -- several results ---------------------------------------------------------------------------------------------------
def test_cutting() -> None:
    for found, expected in zip(run_op("Split", [i(2), X], [0], num_split=2), np.split(X, 2, 2), strict=True):
        same(found, expected)
    parts = run_op("SplitV", [X, i(1, -1, 2), i(2)], [1, 2], num_split=3)
    for found, expected in zip(parts, np.split(X, [1, 2], 2), strict=True):
        same(found, expected)
    for found, expected in zip(run_op("Unpack", [X], num=3, axis=1), X.swapaxes(0, 1), strict=True):
        same(found, expected)


def test_lists_of_tensors() -> None:
    first, second = run_op("ShapeN", [X, ROW], N=2)
    same(first, i(2, 3, 4))
    same(second, i(3, 1))
    first, second = run_op("IdentityN", [X, ROW])
    same(second, ROW, rtol=0)


def test_top_k() -> None:
    values, indices = run_op("TopKV2", [np.float32([[1, 5, 5, 2]]), i(3)], [1])
    same(values, np.float32([[5, 5, 2]]))
    same(indices, i([[1, 2, 3]]))
    values, indices = run_op("TopK", [X], k=2)
    same(values, np.sort(X)[..., :-3:-1])
    _, indices = run_op("TopKV2", [X, i(1)], [1], index_type=INT64)
    same(indices, X.argmax(-1)[..., None])


def test_distinct_elements() -> None:
    x = i(4, 1, 4, 2, 1)
    for op, inputs, constant in (("Unique", [x], []), ("UniqueV2", [x, i(0)], [1]), ("UniqueWithCounts", [x], [])):
        found = run_op(op, inputs, constant, out_idx=INT64)
        same(found[0], i(4, 1, 2))
        same(found[1], i(0, 1, 0, 2, 1, dtype=np.int64))
        if op == "UniqueWithCounts":
            same(found[2], i(2, 2, 1, dtype=np.int64))
    rows, places = run_op("UniqueV2", [i([1, 2], [3, 4], [1, 2]), i([0])], [1])
    same(rows, i([1, 2], [3, 4]))
    same(places, i(0, 1, 0))


def test_cross_entropy() -> None:
    logits, labels = f(3, 5), f(3, 5, low=0, high=1)
    logits64 = logits.astype(float)
    log = logits64 - np.log(np.exp(logits64).sum(-1, keepdims=True))
    loss, gradient = run_op("SoftmaxCrossEntropyWithLogits", [logits, labels])
    same(loss, -(labels * log).sum(-1))
    same(gradient, np.exp(log) - labels)
    loss, gradient = run_op("SparseSoftmaxCrossEntropyWithLogits", [logits, i(4, 0, 2)])
    same(loss, -log[[0, 1, 2], [4, 0, 2]])
    same(gradient, np.exp(log) - np.eye(5)[[4, 0, 2]])


# -- StridedSlice ------------------------------------------------------------------------------------------------------
Y = f(4, 5, 6)


@pytest.mark.parametrize(
    ("begin", "end", "strides", "masks", "expected"),
    [
        ([1, 0, 2], [3, 5, 6], [1, 2, 3], {}, Y[1:3, 0:5:2, 2:6:3]),
        ([-1, 3], [0, 0], [-1, -2], {}, Y[-1:0:-1, 3:0:-2]),
        ([9, 9], [9, 9], [-1, 1], {"begin_mask": 3, "end_mask": 3}, Y[::-1, :]),
        ([1, 1], [2, 3], [1, 1], {"ellipsis_mask": 1}, Y[..., 1:3]),
        ([0, 1, 2], [1, 2, 4], [1, 1, 1], {"ellipsis_mask": 2}, Y[0:1, ..., 2:4]),
        ([0, 0, 1], [0, 0, 3], [1, 1, 1], {"new_axis_mask": 1, "ellipsis_mask": 2}, Y[None, ..., 1:3]),
        ([2, 0], [0, 0], [1, 1], {"shrink_axis_mask": 1, "end_mask": 2}, Y[2, 0:]),
        ([-1, 1], [0, 2], [1, 1], {"shrink_axis_mask": 3}, Y[-1, 1]),
        ([2, 1, 0], [3, 9, 1], [1, 1, 1], {"shrink_axis_mask": 1, "new_axis_mask": 4}, Y[2, 1:9, None]),
        ([1], [100], [2], {}, Y[1:100:2]),
        ([3], [1], [1], {}, Y[3:1]),
    ],
)
def test_strided_slices(
    begin: list[int], end: list[int], strides: list[int], masks: dict[str, int], expected: Array
) -> None:
    same(run_op("StridedSlice", [Y, i(begin), i(end), i(strides)], [1, 2, 3], **masks)[0], expected, rtol=0)


@pytest.mark.parametrize(
    ("op", "inputs", "attrs", "bounds"),
    [
        ("RandomUniform", [i(4, 500)], {"dtype": FLOAT, "T": type_of(i(0))}, (0, 1)),
        ("RandomStandardNormal", [i(4, 500)], {"dtype": FLOAT}, (-7, 7)),
        ("TruncatedNormal", [i(4, 500)], {"dtype": FLOAT}, (-2, 2)),
        ("RandomUniformInt", [i(4, 500), i(3), i(9)], {}, (3, 8)),
    ],
)
def test_random_numbers(op: str, inputs: list[Array], attrs: dict[str, Any], bounds: tuple[float, float]) -> None:
    found = run_op(op, inputs, [0], seed=3, **attrs)[0]
    assert found.shape == (4, 500)
    assert bounds[0] <= found.min() < found.max() <= bounds[1]
    assert np.std(found) > 0.2


@pytest.mark.parametrize(
    ("op", "inputs", "attrs", "told"),
    [
        ("MaxPool", [f(1, 4, 4, 4)], {"ksize": [1, 1, 1, 2], "strides": [1, 1, 1, 2], "padding": "SAME"}, "over batch"),
        ("Split", [i(0), X], {"num_split": 10**9}, "between 0 and"),
        ("BatchMatMulV2", [X.astype(np.complex64), X.astype(np.complex64)], {"adj_y": True}, "complex"),
        ("Reshape", [X, i(7, -1)], {}, "cannot become"),
        ("Transpose", [X, i(0, 0, 1)], {}, "twice"),
        ("ConcatV2", [X, f(3), i(0)], {"N": 2}, "y"),
    ],
)
def test_what_cannot_be(op: str, inputs: list[Array], attrs: dict[str, Any], told: str) -> None:
    with pytest.raises(ReportedError) as caught:
        run_op(op, inputs, range(len(inputs)), **attrs)
    assert told in caught.value.message
    assert "[y]" in caught.value.message
