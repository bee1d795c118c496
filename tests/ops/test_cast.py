"""Cast between all element types: exact oracles, onnx's own table for float8, onnxruntime for strings."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from ge.errors import ReportedError
from ge.graph.types import FLOATING, DataType, has_numpy_dtype, numpy_dtype
from ge.ops.cast import convert
from ge.ops.registry import Misfit
from tests.ops.one_node import data, inferred, run_ge, run_onnx

ALL_TYPES = [dtype for dtype in DataType if has_numpy_dtype(dtype)]
INTEGERS = [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]
SPECIAL = [0.0, -0.0, 1.0, -1.0, 1.5, -2.5, 255.9, -128.9, 3e9, -3e9, 1e20, -1e20, np.nan, np.inf, -np.inf]


def cast(x: np.ndarray, dtype: DataType, **attrs: Any) -> np.ndarray:
    return run_ge("Cast", [x], {"dst_type": int(dtype), **attrs})[0]


@pytest.mark.parametrize("source", ALL_TYPES)
@pytest.mark.parametrize("target", ALL_TYPES)
def test_one_is_one_in_every_type(source: DataType, target: DataType) -> None:
    one = np.array([["1"]], object) if source is DataType.DT_STRING else np.ones((1, 1), numpy_dtype(source))
    found = cast(one, target)
    assert found.shape == (1, 1)
    assert found[0, 0] == ("(1+0j)" if source.name.startswith("DT_COMPLEX") else "1") if found.dtype == object else 1


@pytest.mark.parametrize("source", [*INTEGERS, np.bool_])
@pytest.mark.parametrize("target", INTEGERS)
def test_integers_keep_their_low_bits(source: Any, target: Any) -> None:
    info = None if source is np.bool_ else np.iinfo(source)
    numbers = [0, 1] if info is None else [info.min, info.max, 0, 1, 100, *([-1, -100] if info.min else [])]
    found = cast(np.array(numbers, source), _ge_type(target))
    bits, low = np.iinfo(target).bits, int(np.iinfo(target).min)
    assert found.tolist() == [(int(number) - low) % 2**bits + low for number in numbers]


def _ge_type(numpy_type: Any) -> DataType:
    return next(dtype for dtype in ALL_TYPES if numpy_dtype(dtype) == numpy_type)


def _clipped(value: float, low: int, high: int) -> int:
    if np.isnan(value):
        return 0
    return low if value < low else high if value > high else int(value)


@pytest.mark.parametrize("source", [np.float16, np.float32, np.float64, ml_dtypes.bfloat16])
@pytest.mark.parametrize("target", INTEGERS)
def test_floats_saturate_to_integers(source: Any, target: Any) -> None:
    info = np.iinfo(target)
    with np.errstate(over="ignore"):
        x = np.array([*SPECIAL, float(info.max), float(info.min), float(info.max) * 2], np.float64).astype(source)
    found = cast(x, _ge_type(target))
    assert found.tolist() == [_clipped(float(value), int(info.min), int(info.max)) for value in x]


@pytest.mark.parametrize(
    ("target", "low", "high"),
    [
        (DataType.DT_INT4, -8, 7),
        (DataType.DT_UINT4, 0, 15),
        (DataType.DT_INT2, -2, 1),
        (DataType.DT_UINT2, 0, 3),
    ],
)
def test_integers_of_less_than_a_byte(target: DataType, low: int, high: int) -> None:
    numbers = np.arange(-20, 21, dtype=np.int32)
    found = cast(numbers, target)
    assert [int(value) for value in found] == [(int(n) - low) % (high - low + 1) + low for n in numbers]
    x = numbers.astype(np.float32) + np.where(numbers < 0, -0.75, 0.75).astype(np.float32)
    assert [int(value) for value in cast(x, target)] == [int(value) for value in found]
    assert [int(value) for value in cast(np.array([np.nan, 0.5, -0.5], np.float32), target)] == [0, 0, 0]
    back = cast(found, DataType.DT_FLOAT)
    assert back.tolist() == [float(int(value)) for value in found]


# -- to narrow floats --------------------------------------------------------------------------------------------------
def nearest(values: np.ndarray, target: Any) -> np.ndarray:
    """Round float64 exactly, ties to the even bit pattern, by looking at every finite number of the type."""
    bits = ml_dtypes.finfo(target).bits
    patterns = np.arange(1 << (bits - 1), dtype=np.uint32).astype(f"u{max(bits, 8) // 8}")  # non-negative numbers
    with np.errstate(invalid="ignore"):  # some of the patterns are NaN
        table = patterns.view(target).astype(np.float64)
    is_finite = np.isfinite(table)
    table, patterns = table[is_finite], patterns[is_finite]
    magnitude = np.abs(values)
    above = np.clip(np.searchsorted(table, magnitude), 1, len(table) - 1)
    below = above - 1
    up, down = table[above] - magnitude, magnitude - table[below]
    takes_upper = (up < down) | ((up == down) & (patterns[above] % 2 == 0))
    return np.copysign(np.where(takes_upper, table[above], table[below]), values)


NARROW = [
    (DataType.DT_FLOAT16, 65504.0), (DataType.DT_BF16, 3.38e38), (DataType.DT_FLOAT8_E5M2, 57344.0),
    (DataType.DT_FLOAT8_E4M3FN, 448.0), (DataType.DT_FLOAT8_E4M3FNUZ, 240.0), (DataType.DT_FLOAT8_E5M2FNUZ, 57344.0),
    (DataType.DT_FLOAT6_E3M2, 28.0), (DataType.DT_FLOAT6_E2M3, 7.5), (DataType.DT_FLOAT4_E2M1, 6.0),
]  # fmt: skip


@pytest.mark.parametrize(("target", "largest"), NARROW)
@pytest.mark.parametrize("source", [np.float32, np.float64])
def test_floats_round_once_to_nearest_even(target: DataType, largest: float, source: Any) -> None:
    rng = np.random.default_rng(1)
    scales = np.exp2(rng.integers(-30, int(np.log2(largest)), 2000))
    x = (rng.uniform(-1, 1, 2000) * scales).astype(source)
    if source is np.float64:  # just above and below the middle of two neighbours, where two roundings go wrong
        close = nearest(x[:500], numpy_dtype(target))
        middle = (close + nearest(close * (1 + 2.0**-3), numpy_dtype(target))) / 2
        x[:500] = middle * (1 + rng.choice([-1, 1], 500) * 2.0**-50)
    found = cast(x, target).astype(np.float64)
    np.testing.assert_array_equal(found, nearest(x.astype(np.float64), numpy_dtype(target)))


@pytest.mark.parametrize("saturates", [0, 1])
@pytest.mark.parametrize(
    ("target", "onnx_type"),
    [
        (DataType.DT_FLOAT8_E4M3FN, TensorProto.FLOAT8E4M3FN),
        (DataType.DT_FLOAT8_E4M3FNUZ, TensorProto.FLOAT8E4M3FNUZ),
        (DataType.DT_FLOAT8_E5M2, TensorProto.FLOAT8E5M2),
        (DataType.DT_FLOAT8_E5M2FNUZ, TensorProto.FLOAT8E5M2FNUZ),
    ],
)
def test_float8_out_of_range(target: DataType, onnx_type: int, saturates: int) -> None:
    x = np.array([*SPECIAL, 448, 463.9, 464, 465, -500, 57344, 61439, 70000, -1e30], np.float32)
    nodes = [
        helper.make_node("Cast", ["x"], ["narrow"], to=onnx_type, saturate=saturates),
        helper.make_node("Cast", ["narrow"], ["y"], to=TensorProto.FLOAT),
    ]
    graph = helper.make_graph(
        nodes,
        "cast",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, x.shape)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    [expected] = session.run(None, {"x": x})
    np.testing.assert_array_equal(cast(x, target, _x_saturate=saturates).astype(np.float32), expected)


def test_float8_e5m2_goes_to_infinity_where_rounding_leaves_its_range() -> None:
    """By ONNX's table; onnxruntime answers NaN between 61440 and 65536."""
    x = np.array([61440, 61441, 65535, -61440], np.float32)
    found = cast(x, DataType.DT_FLOAT8_E5M2, _x_saturate=0).astype(np.float32)
    np.testing.assert_array_equal(found, [np.inf, np.inf, np.inf, -np.inf])


def test_other_narrow_floats_out_of_range() -> None:
    x = np.array([1e6, -1e6, np.inf, -np.inf], np.float32)
    np.testing.assert_array_equal(cast(x, DataType.DT_FLOAT16).astype(np.float32), [np.inf, -np.inf] * 2)
    np.testing.assert_array_equal(cast(x, DataType.DT_BF16).astype(np.float32)[2:], [np.inf, -np.inf])
    np.testing.assert_array_equal(cast(x, DataType.DT_FLOAT4_E2M1).astype(np.float32), [6, -6, 6, -6])


@pytest.mark.parametrize(
    ("saturates", "round_mode"), [(1, "up"), (1, "down"), (1, "nearest"), (0, "nearest"), (0, "up")]
)
def test_powers_of_two(saturates: int, round_mode: str) -> None:
    x = np.array([1, 2, 3, 1.4, 1.5, 1.6, 0.75, 0.1, 2.0**-126, 2.0**127, 1.2e-38, np.nan], np.float32)
    found = cast(x, DataType.DT_FLOAT8_E8M0, _x_saturate=saturates, _x_round_mode=round_mode)
    expected = numpy_helper.to_float8e8m0(x, bool(saturates), round_mode)
    np.testing.assert_array_equal(found.astype(np.float32), expected.astype(np.float32))


def test_powers_of_two_out_of_range() -> None:
    """The rows of ONNX's table: saturating upwards, and not saturating."""
    x = np.array([0.0, np.inf, 3.4e38, np.nan], np.float32)
    up = cast(x, DataType.DT_FLOAT8_E8M0).astype(np.float32)
    np.testing.assert_array_equal(up, [2.0**-127, 2.0**127, 2.0**127, np.nan])
    strict = cast(x, DataType.DT_FLOAT8_E8M0, _x_saturate=0, _x_round_mode="nearest").astype(np.float32)
    np.testing.assert_array_equal(strict, [np.nan] * 4)


@pytest.mark.parametrize("source", sorted(FLOATING))
def test_widening_is_exact(source: DataType) -> None:
    x = np.arange(16, dtype=np.uint8).view(numpy_dtype(source))
    found = cast(x, DataType.DT_DOUBLE)
    np.testing.assert_array_equal(found, x.astype(np.float64))


def test_integers_to_floats_round_once() -> None:
    x = np.array([2**24 + 1, 2**31 - 1, -(2**31) + 3, 257], np.int32)
    assert cast(x, DataType.DT_FLOAT).tolist() == [16777216.0, 2147483648.0, -2147483648.0, 257.0]
    bf16 = nearest(x.astype(np.float64), ml_dtypes.bfloat16)
    np.testing.assert_array_equal(cast(x, DataType.DT_BF16).astype(np.float64), bf16)
    assert cast(np.array([65520, 65519], np.int32), DataType.DT_FLOAT16).tolist() == [np.inf, 65504.0]


@pytest.mark.parametrize("source", [np.float16, np.float32, np.float64, np.int8, np.uint64, ml_dtypes.bfloat16])
def test_to_bool(source: Any) -> None:
    x = np.array([0, 1, 2, 100], np.float32).astype(source)
    assert cast(x, DataType.DT_BOOL).tolist() == [False, True, True, True]


def test_to_bool_of_special_floats() -> None:
    x = np.array([0.0, -0.0, 1e-45, np.nan, np.inf], np.float32)
    assert cast(x, DataType.DT_BOOL).tolist() == [False, False, True, True, True]


def test_complex() -> None:
    x = np.array([1 + 2j, -3.7j], np.complex64)
    assert cast(x, DataType.DT_FLOAT).tolist() == [1, 0]
    assert cast(x, DataType.DT_COMPLEX128).tolist() == x.astype(np.complex128).tolist()
    assert cast(np.array([2.5], np.float32), DataType.DT_COMPLEX64).tolist() == [2.5 + 0j]


# -- strings -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("source", [np.float32, np.float64, np.float16, np.int8, np.int64, np.uint8, np.bool_])
def test_numbers_to_strings_as_onnxruntime_writes_them(source: Any) -> None:
    x = data(1, 4, 5, low=0, high=100).astype(source)
    if np.dtype(source).kind == "f":
        x[0] = [np.nan, np.inf, -np.inf, -0.0, 3.14159265]
        x[1, :2] = [1e-5, 6e4]
    [expected] = run_onnx("Cast", [x], {"to": TensorProto.STRING})
    np.testing.assert_array_equal(cast(x, DataType.DT_STRING), expected)


@pytest.mark.parametrize(
    ("target", "onnx_type"),
    [
        (DataType.DT_FLOAT, TensorProto.FLOAT),
        (DataType.DT_DOUBLE, TensorProto.DOUBLE),
        (DataType.DT_FLOAT16, TensorProto.FLOAT16),
    ],
)
def test_strings_to_floats(target: DataType, onnx_type: int) -> None:
    x = np.array([["3.14", "1000", "1e-5"], ["-1E3", "INF", "-inf"], ["+INF", "nan", "0"]], object)
    [expected] = run_onnx("Cast", [x], {"to": onnx_type})
    np.testing.assert_array_equal(cast(x, target), expected)


def test_strings_to_integers() -> None:
    x = np.array(["12", "-3", "9007199254740993"], object)
    assert cast(x, DataType.DT_INT64).tolist() == [12, -3, 9007199254740993]
    assert cast(np.array(["18446744073709551615"], object), DataType.DT_UINT64).tolist() == [2**64 - 1]
    assert cast(np.array(["300", "2.718"], object), DataType.DT_INT8).tolist() == [44, 2]


@pytest.mark.parametrize("text", ["Hello World!", "", "1,5", "x" * 1000])
@pytest.mark.parametrize("target", [DataType.DT_FLOAT, DataType.DT_INT32, DataType.DT_COMPLEX64])
def test_strings_that_are_no_number(text: str, target: DataType) -> None:
    with pytest.raises(Misfit, match="is no number of the wanted type"):
        convert(np.array([text], object), target)


# -- kin ---------------------------------------------------------------------------------------------------------------
def test_cast_like() -> None:
    x, target = np.array([1.7, -300.0], np.float32), np.zeros((3, 1), np.int8)
    found = run_ge("CastLike", [x, target])[0]
    assert (found.dtype, found.tolist()) == (np.int8, [1, -128])


@pytest.mark.parametrize(
    ("source", "target", "shape"),
    [
        (np.float32, DataType.DT_INT32, (3, 4)),
        (np.float64, DataType.DT_UINT16, (3, 4, 4)),
        (np.uint8, DataType.DT_FLOAT, (3,)),
    ],
)
def test_bitcast_reads_the_same_bytes(source: Any, target: DataType, shape: tuple[int, ...]) -> None:
    x = data(2, 3, 4, low=0, high=100).astype(source)
    found = run_ge("Bitcast", [x], {"type": target})[0]
    assert found.shape == shape
    assert found.tobytes() == x.tobytes()


def test_misfits_are_reported() -> None:
    with pytest.raises(ReportedError, match="element type number 99 is not supported"):
        inferred("Cast", [np.zeros(2)], {"dst_type": 99})
    with pytest.raises(ReportedError, match=r"the last dim of shape \[3\] must be 4 to become DT_FLOAT"):
        inferred("Bitcast", [np.zeros(3, np.uint8)], {"type": DataType.DT_FLOAT})
    with pytest.raises(ReportedError, match="the bits of DT_STRING cannot be read as DT_FLOAT"):
        inferred("Bitcast", [np.array(["a"], object)], {"type": DataType.DT_FLOAT})


def test_empty_tensors_and_scalars() -> None:
    for target in ALL_TYPES:
        assert cast(np.zeros((0, 3), np.float32), target).shape == (0, 3)
        assert cast(np.array(1.0), target).shape == ()
