"""Fill, Range, LinSpace, Empty."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from ge.errors import ReportedError
from ge.graph.types import DataType
from tests.ops.one_node import inferred, run_ge, run_onnx


@pytest.mark.parametrize("dims", [(), (3,), (2, 0, 4), (2, 3)])
@pytest.mark.parametrize("value", [np.array(1.5, np.float32), np.array([7], np.int64), np.array(True)])
def test_fill(dims: tuple[int, ...], value: np.ndarray) -> None:
    [found] = run_ge("Fill", [np.array(dims, np.int64), value])
    np.testing.assert_array_equal(found, np.full(dims, value.item(), value.dtype))


def test_fill_keeps_bits_and_strings() -> None:
    value = np.array([0x7FD5], np.uint16).view(ml_dtypes.bfloat16)
    assert run_ge("Fill", [np.array([2]), value])[0].view(np.uint16).tolist() == [0x7FD5] * 2
    assert run_ge("Fill", [np.array([2]), np.array("ab", object)])[0].tolist() == ["ab", "ab"]


@pytest.mark.parametrize(
    ("start", "limit", "delta"), [(0, 10, 3), (5, -5, -2), (3, 3, 1), (4, 1, 1), (-2, 4, 2), (0, 1, 5)]
)
@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.int64, np.int16, np.float64])
def test_range(start: int, limit: int, delta: int, dtype: Any) -> None:
    inputs = [np.array(number, dtype) for number in (start, limit, delta)]
    [found] = run_ge("Range", inputs)
    np.testing.assert_array_equal(found, run_onnx("Range", inputs)[0])


@pytest.mark.parametrize(
    ("bounds", "expected"),
    [
        ((0, 6, 3), [0, 3, 6]),
        ((0, 7, 3), [0, 3, 6]),
        ((5, 1, -2), [5, 3, 1]),
        ((1, 0, 1), []),
        ((0.0, 1.0, 0.25), [0, 0.25, 0.5, 0.75, 1]),
    ],
)
def test_closed_range(bounds: tuple[float, float, float], expected: list[float]) -> None:
    inputs = [np.array(number) for number in bounds]
    assert run_ge("Range", inputs, {"is_closed": True})[0].tolist() == expected


def test_long_ranges_do_not_drift() -> None:
    inputs = [np.array(number, np.float32) for number in (0.0, 100.0, 0.1)]
    [found] = run_ge("Range", inputs)
    step = float(np.float32(0.1))
    np.testing.assert_array_equal(found, np.array([at * step for at in range(1000)], np.float32))


def test_range_of_64_bit_integers_is_exact() -> None:
    inputs = [np.array(number) for number in (2**62, 2**62 + 3, 1)]
    assert run_ge("Range", inputs)[0].tolist() == [2**62, 2**62 + 1, 2**62 + 2]


def test_lin_space_and_empty() -> None:
    inputs = [np.array(1.0, np.float32), np.array(2.0, np.float32), np.array(5)]
    assert run_ge("LinSpace", inputs)[0].tolist() == [1, 1.25, 1.5, 1.75, 2]
    [found] = run_ge("Empty", [np.array([2, 2])], {"dtype": DataType.DT_FLOAT16})
    assert (found.dtype, found.tolist()) == (np.float16, [[0, 0], [0, 0]])


@pytest.mark.parametrize(
    ("type", "inputs", "message"),
    [
        ("Fill", [np.array([-1, 2]), np.array(0)], r"input dims holds \[-1, 2\], which is no shape"),
        ("Fill", [np.array([2]), np.array([0, 1])], r"input value of shape \[2\] must hold one element"),
        ("Range", [np.array(0), np.array(5), np.array(0)], "there is no range from 0 to 5 by 0"),
        ("Range", [np.array(0.0), np.array(np.inf), np.array(1.0)], "no range from 0.0 to inf by 1.0"),
        ("Range", [np.array(0), np.array(5.0), np.array(1)], "element types differ"),
    ],
)
def test_misfits_are_reported(type: str, inputs: list[np.ndarray], message: str) -> None:
    with pytest.raises(ReportedError, match=message):
        inferred(type, inputs, {})
