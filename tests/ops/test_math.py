"""Elementwise operators against onnxruntime and float64 numpy, integers exactly."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ge.errors import ReportedError
from ge.graph.types import DataType
from tests.ops.one_node import assert_close, data, inferred, run_ge, run_onnx

SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 1.5, 2.5, np.nan, np.inf, -np.inf, 1e-40, 3e38, -3e38]


def floats(seed: int, low: float = -3.0, high: float = 3.0) -> np.ndarray:
    """Random numbers and all special ones, [6, 5]."""
    values = data(seed, 30, low=low, high=high)
    values[: len(SPECIAL)] = SPECIAL
    return values.reshape(6, 5)


# -- one operand -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("type", "onnx_type"),
    [
        ("Abs", "Abs"), ("Acos", "Acos"), ("Acosh", "Acosh"), ("Asin", "Asin"), ("Asinh", "Asinh"), ("Atan", "Atan"),
        ("Atanh", "Atanh"), ("Ceil", "Ceil"), ("Cos", "Cos"), ("Cosh", "Cosh"), ("Exp", "Exp"), ("Floor", "Floor"),
        ("IsInf", "IsInf"), ("IsNan", "IsNaN"), ("Log", "Log"), ("Neg", "Neg"), ("Reciprocal", "Reciprocal"),
        ("Round", "Round"), ("Sinh", "Sinh"), ("Sqrt", "Sqrt"), ("Sin", "Sin"), ("Tan", "Tan"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("shape", [(6, 5), (), (0, 3)])
def test_unary_operators_agree_with_onnxruntime(type: str, onnx_type: str, shape: tuple[int, ...]) -> None:
    x = np.resize(floats(len(type)), shape)
    if type in ("Sin", "Cos", "Tan"):
        x = np.where(np.abs(x) > 1e30, np.float32(0.7), x)  # onnxruntime reduces huge arguments coarsely
    [found] = run_ge(type, [x])
    [expected] = run_onnx(onnx_type, [x])
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, rtol=2e-6, atol=1e-7)


@pytest.mark.parametrize(
    ("type", "definition"),
    [
        ("Expm1", math.expm1), ("Log1p", math.log1p), ("Erfc", math.erfc), ("Square", lambda v: v * v),
        ("Rsqrt", lambda v: 1 / math.sqrt(v)), ("Rint", round), ("Power", lambda v: v),
    ],
)  # fmt: skip
def test_operators_that_onnx_lacks_agree_with_their_definition(type: str, definition: object) -> None:
    x = data(3, 4, 7, low=0.01, high=4.0)
    [found] = run_ge(type, [x])
    expected = [definition(float(v)) for v in x.ravel()]  # type: ignore[operator]
    np.testing.assert_allclose(found.ravel(), expected, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.int64])
def test_integers_wrap(dtype: type) -> None:
    lowest = np.iinfo(dtype).min
    x = np.array([lowest, -1, 0, 5], dtype)
    assert run_ge("Neg", [x])[0].tolist() == [lowest, 1, 0, -5]
    assert run_ge("Abs", [x])[0].tolist() == [lowest, 1, 0, 5]
    assert run_ge("Sub", [x, np.array(1, dtype)])[0].tolist() == [np.iinfo(dtype).max, -2, -1, 4]
    assert run_ge("Invert", [x])[0].tolist() == [np.iinfo(dtype).max, 0, -1, -6]
    assert run_ge("Sign", [x])[0].tolist() == [-1, -1, 0, 1]


def test_sign_keeps_zero_and_nan() -> None:
    [found] = run_ge("Sign", [np.array([-2.5, 0.0, 7.0, np.nan, -np.inf], np.float32)])
    np.testing.assert_array_equal(found, [-1, 0, 1, np.nan, -1])


@pytest.mark.parametrize(
    ("attrs", "onnx_attrs"),
    [
        ({"_x_detect_negative": 0}, {"detect_negative": 0}),
        ({"_x_detect_positive": 0}, {"detect_positive": 0}),
        ({"_x_detect_negative": 0, "_x_detect_positive": 0}, {"detect_negative": 0, "detect_positive": 0}),
    ],
)
def test_is_inf_may_look_for_one_sign(attrs: dict[str, int], onnx_attrs: dict[str, int]) -> None:
    x = floats(1)
    np.testing.assert_array_equal(run_ge("IsInf", [x], attrs)[0], run_onnx("IsInf", [x], onnx_attrs)[0])


def test_round_to_decimals() -> None:
    [found] = run_ge("Round", [np.array([1.2345, -2.678, 0.125], np.float64)], {"decimals": 2})
    np.testing.assert_allclose(found, [1.23, -2.68, 0.12], atol=1e-12)


def test_scaled_exp_log_power_follow_their_formula() -> None:
    x = data(5, 3, 4, low=0.1, high=2.0)
    wide = x.astype(np.float64)
    attrs = {"base": 2.0, "scale": 0.5, "shift": 1.5}
    assert_close(run_ge("Exp", [x], attrs)[0], 2.0 ** (0.5 * wide + 1.5))
    assert_close(run_ge("Log", [x], attrs)[0], np.log2(0.5 * wide + 1.5))
    assert_close(run_ge("Power", [x], {"power": 3.0, "scale": 2.0, "shift": -0.5})[0], (2 * wide - 0.5) ** 3)
    assert_close(run_ge("Muls", [x], {"value": -1.25})[0], -1.25 * wide)
    assert_close(run_ge("Adds", [x], {"value": -1.25})[0], wide - 1.25)


def test_half_precision_computes_in_single_and_rounds_once() -> None:
    x = data(9, 200, dtype=np.float16, low=0.1, high=9.0)
    expected = (1 / np.sqrt(x.astype(np.float64))).astype(np.float16)
    found = run_ge("Rsqrt", [x])[0]
    assert found.dtype == np.float16
    assert np.mean(found == expected) > 0.99


def test_filled_copies() -> None:
    x = data(2, 2, 3, dtype=np.float16)
    assert run_ge("ZerosLike", [x])[0].tolist() == [[0] * 3] * 2
    assert run_ge("OnesLike", [x])[0].tolist() == [[1] * 3] * 2
    np.testing.assert_array_equal(run_ge("TensorMove", [x])[0], x)


@pytest.mark.parametrize("shape", [(3, 3), (2, 5, 4, 4), (0, 2, 2)])
def test_determinant(shape: tuple[int, ...]) -> None:
    x = data(4, *shape)
    assert_close(run_ge("MatrixDeterminant", [x])[0], run_onnx("Det", [x])[0] if x.size else np.zeros(0, np.float32))


# -- two operands ------------------------------------------------------------------------------------------------------
BROADCASTS = [
    ((4, 5), (4, 5)),
    ((4, 5), (5,)),
    ((4, 1), (1, 5)),
    ((), (2, 3)),
    ((2, 0, 3), (1, 3)),
    ((3, 1, 2), (4, 1)),
]


@pytest.mark.parametrize(("left", "right"), BROADCASTS)
@pytest.mark.parametrize(
    ("type", "onnx_type"),
    [
        ("Add", "Add"), ("AddV2", "Add"), ("Sub", "Sub"),
        ("Mul", "Mul"), ("RealDiv", "Div"), ("Div", "Div"), ("Maximum", "Max"),
        ("Minimum", "Min"), ("Equal", "Equal"), ("Greater", "Greater"), ("GreaterEqual", "GreaterOrEqual"),
        ("Less", "Less"), ("LessEqual", "LessOrEqual"), ("Pow", "Pow"),
    ],
)  # fmt: skip
def test_binary_operators_broadcast_as_onnxruntime(
    type: str, onnx_type: str, left: tuple[int, ...], right: tuple[int, ...]
) -> None:
    low = 0.1 if type == "Pow" else -2.0
    x1, x2 = data(1, *left, low=low), data(2, *right, low=low)
    x1.reshape(-1)[::3] = np.resize(x2, 1)[0] if x2.size and x1.size else 0  # some equal pairs
    found, expected = run_ge(type, [x1, x2])[0], run_onnx(onnx_type, [x1, x2])[0]
    assert found.dtype == expected.dtype
    assert_close(found, expected)


SIGNED = [(7, 2), (-7, 2), (7, -2), (-7, -2), (6, 3), (-6, 3), (0, -4), (1, 100), (-1, 100), (-100, 7)]


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64])
def test_integer_division_and_remainders(dtype: type) -> None:
    x1, x2 = (np.array(side, dtype) for side in zip(*SIGNED, strict=True))
    trunc = [int(a / b) for a, b in SIGNED]
    floor = [math.floor(a / b) for a, b in SIGNED]
    for name in ("RealDiv", "Div", "TruncateDiv"):
        assert run_ge(name, [x1, x2])[0].tolist() == trunc
    assert run_ge("FloorDiv", [x1, x2])[0].tolist() == floor
    assert run_ge("TruncateMod", [x1, x2])[0].tolist() == [int(math.fmod(a, b)) for a, b in SIGNED]
    assert run_ge("FloorMod", [x1, x2])[0].tolist() == [a - b * q for (a, b), q in zip(SIGNED, floor, strict=True)]


def test_integer_division_at_the_edges() -> None:
    """Dividing the lowest integer by -1 wraps, a zero divisor gives 0; large 64 bit quotients stay exact."""
    lowest = np.iinfo(np.int64).min
    x1 = np.array([lowest, 5, -5, 2**62 + 1, -(2**62) - 1, 0], np.int64)
    x2 = np.array([-1, 0, 0, 3, 3, 0], np.int64)
    assert run_ge("RealDiv", [x1, x2])[0].tolist() == [lowest, 0, 0, (2**62 + 1) // 3, -((2**62 + 1) // 3), 0]
    unsigned = np.array([2**64 - 1], np.uint64)
    assert run_ge("RealDiv", [unsigned, np.array([2], np.uint64)])[0].tolist() == [2**63 - 1]


@pytest.mark.parametrize(
    ("dtype", "fmod"), [(np.int8, 0), (np.int8, 1), (np.int32, 0), (np.int64, 0), (np.int64, 1), (np.float32, 1)]
)
def test_mod_takes_its_sign_as_fmod_says(dtype: type, fmod: int) -> None:
    x1, x2 = (np.array(side, dtype) for side in zip(*SIGNED, strict=True))
    found = run_ge("Mod", [x1, x2], {"_x_fmod": fmod})[0]
    np.testing.assert_array_equal(found, run_onnx("Mod", [x1, x2], {"fmod": fmod})[0])


def test_mod_without_the_extra_attribute_is_that_of_c() -> None:
    x1, x2 = (np.array(side, np.int32) for side in zip(*SIGNED, strict=True))
    assert run_ge("Mod", [x1, x2])[0].tolist() == [int(math.fmod(a, b)) for a, b in SIGNED]


@pytest.mark.parametrize(
    ("base", "exponent"),
    [
        (np.float32, np.int32),
        (np.float32, np.int64),
        (np.int32, np.int32),
        (np.int64, np.int64),
        (np.float32, np.float64),
    ],
)
def test_power_of_mixed_types_has_the_type_of_the_base(base: type, exponent: type) -> None:
    x1, x2 = np.array([[2, 3, -2], [5, 1, 0]], base), np.array([3, 2, 5], exponent)
    found, expected = run_ge("Pow", [x1, x2])[0], run_onnx("Pow", [x1, x2])[0]
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)


def test_integer_power_is_exact_wraps_and_truncates() -> None:
    assert run_ge("Pow", [np.array([3], np.int64), np.array([39], np.int64)])[0].tolist() == [3**39]
    assert run_ge("Pow", [np.array([-3], np.int32), np.array([21], np.int32)])[0].tolist() == [
        (-(3**21) + 2**31) % 2**32 - 2**31
    ]
    negative = run_ge("Pow", [np.array([1, -1, 2, 0], np.int32), np.array([-2, -3, -1, -1], np.int32)])[0]
    assert negative.tolist() == [1, -1, 0, 2**31 - 1]
    assert run_ge("Pow", [np.array([10, 2], np.int32), np.array([0.5, -1.0], np.float32)])[0].tolist() == [3, 0]


def test_logic_and_bits() -> None:
    a, b = np.array([True, True, False, False]), np.array([True, False, True, False])
    assert run_ge("LogicalAnd", [a, b])[0].tolist() == [True, False, False, False]
    assert run_ge("LogicalOr", [a, b])[0].tolist() == [True, True, True, False]
    assert run_ge("LogicalNot", [a])[0].tolist() == [False, False, True, True]
    assert run_ge("NotEqual", [a, b])[0].tolist() == [False, True, True, False]
    x, y = np.array([12, -7, 255], np.int32), np.array([10, 5, -1], np.int32)
    assert run_ge("BitwiseAnd", [x, y])[0].tolist() == [12 & 10, -7 & 5, 255]
    assert run_ge("BitwiseOr", [x, y])[0].tolist() == [12 | 10, -7 | 5, -1]
    assert run_ge("BitwiseXor", [x, y])[0].tolist() == [12 ^ 10, -7 ^ 5, -256]


@pytest.mark.parametrize(("type", "direction"), [("LeftShift", "LEFT"), ("RightShift", "RIGHT")])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint32, np.uint64])
def test_shifts(type: str, direction: str, dtype: type) -> None:
    x, y = np.array([[16, 4, 1], [255, 128, 3]], dtype), np.array([1, 2, 7], dtype)
    np.testing.assert_array_equal(run_ge(type, [x, y])[0], run_onnx("BitShift", [x, y], {"direction": direction})[0])


def test_shifts_by_the_width_leave_nothing() -> None:
    x, y = np.array([200, 1], np.uint8), np.array([8, 100], np.uint8)
    assert run_ge("LeftShift", [x, y])[0].tolist() == [0, 0]
    assert run_ge("RightShift", [x, y])[0].tolist() == [0, 0]


def test_strings_compare() -> None:
    x, y = np.array(["a", "b", ""], object), np.array(["a", "c", ""], object)
    assert run_ge("Equal", [x, y])[0].tolist() == [True, False, True]
    assert run_ge("NotEqual", [x, y])[0].tolist() == [False, True, False]


def test_quotients_that_avoid_zero() -> None:
    x1, x2 = np.array([1.0, 0.0, -3.0, 5.0], np.float32), np.array([0.0, 0.0, 2.0, -2.0], np.float32)
    assert run_ge("DivNoNan", [x1, x2])[0].tolist() == [0, 0, -1.5, -2.5]
    assert run_ge("FloorDiv", [x1[2:], x2[2:]])[0].tolist() == [-2, -3]
    assert run_ge("SquaredDifference", [x1, x2])[0].tolist() == [1, 0, 25, 49]
    assert_close(run_ge("Atan2", [x1, x2])[0], np.array([math.atan2(a, b) for a, b in zip(x1, x2, strict=True)]))


# -- several operands --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("type", ["AccumulateNV2", "AddN"])
@pytest.mark.parametrize("shapes", [[(2, 3)], [(2, 3), (3,), (2, 1)], [(), (4,)]])
def test_sums_of_inputs_broadcast(type: str, shapes: list[tuple[int, ...]]) -> None:
    inputs = [data(seed, *shape) for seed, shape in enumerate(shapes)]
    assert_close(run_ge(type, inputs, {"N": len(inputs)})[0], run_onnx("Sum", inputs)[0])


@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.uint8])
@pytest.mark.parametrize(("low", "high"), [(-1, 2), (0, 5), (3, 1)])
def test_clip(dtype: type, low: int, high: int) -> None:
    if dtype is np.uint8:
        low = max(low, 0)
    x = data(8, 5, 7, dtype=dtype, low=0 if dtype is np.uint8 else -6, high=6)
    bounds = [np.array(low, dtype), np.array(high, dtype)]
    np.testing.assert_array_equal(run_ge("ClipByValue", [x, *bounds])[0], run_onnx("Clip", [x, *bounds])[0])


# -- what does not fit -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("type", "inputs", "attrs", "message"),
    [
        ("Add", [np.zeros((2, 3)), np.zeros((4,))], {}, r"shapes \[2,3\] and \[4\] cannot be broadcast"),
        ("Mul", [np.zeros(3), np.zeros(3, np.float32)], {}, "element types differ: x1 DT_DOUBLE, x2 DT_FLOAT"),
        ("ClipByValue", [np.zeros(3), np.zeros((), np.int32), np.zeros(())], {}, "element types differ"),
        ("MatrixDeterminant", [np.zeros((2, 3))], {}, r"shape \[2,3\] holds no square matrices"),
        ("Muls", [np.zeros(3)], {}, "attribute value is missing"),
    ],
)
def test_misfits_are_reported(type: str, inputs: list[np.ndarray], attrs: dict[str, object], message: str) -> None:
    with pytest.raises(ReportedError, match=message) as error:
        inferred(type, inputs, attrs)
    assert error.value.code == "E14001"
    assert "node" in error.value.message


def test_unknown_dims_take_what_the_other_operand_knows() -> None:
    [desc] = inferred("Add", [np.zeros((2, 3, 4)), np.zeros((3, 1))], {}, constant=False)
    assert (desc.shape, desc.data_type) == ((2, 3, 4), DataType.DT_DOUBLE)
    [desc] = inferred("Less", [np.zeros((2, 3)), np.zeros((3,))], {}, constant=False, unknown=True)
    assert (desc.shape, desc.data_type) == ((-1, -1), DataType.DT_BOOL)
