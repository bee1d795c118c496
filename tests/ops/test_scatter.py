"""Scatters and segment sums."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from ge.errors import ReportedError
from ge.ops import lookup
from ge.ops.registry import Misfit
from tests.ops.one_node import data, inferred, run_ge, run_onnx

REDUCTIONS = ["none", "add", "mul", "max", "min"]


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize(
    ("shape", "places", "axis"), [((3, 4), (2, 4), 0), ((3, 4), (3, 3), -1), ((2, 5, 3), (1, 4, 2), 1)]
)
def test_scatter_elements(reduction: str, shape: tuple[int, ...], places: tuple[int, ...], axis: int) -> None:
    x, updates = data(1, *shape), data(2, *places)
    rng = np.random.default_rng(3)
    at = rng.integers(-shape[axis], shape[axis], places)
    if reduction == "none":  # which of equal places wins is open: give each its own
        at = np.argsort(rng.random(shape), axis)[tuple(slice(0, count) for count in places)]
    [found] = run_ge("ScatterElements", [x, at, updates], {"axis": axis, "reduction": reduction})
    expected = run_onnx("ScatterElements", [x, at, updates], {"axis": axis, "reduction": reduction}, opset=18)[0]
    np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("type", "reduction"),
    [
        ("ScatterNdUpdate", "none"), ("TensorScatterUpdate", "none"), ("ScatterNdAdd", "add"), ("ScatterNdMax", "max"),
        ("ScatterNdMin", "min"), ("XScatterNdMul", "mul"),
    ],
)  # fmt: skip
@pytest.mark.parametrize(
    ("shape", "at"),
    [
        ((5, 3), [[4], [-4], [0]]),
        ((3, 4), [[0, 1], [2, -1]]),
        ((2, 3, 4), [[[0, 0]], [[1, 2]]]),
        ((3,), np.zeros((0, 1))),
    ],
)
def test_scatter_nd(type: str, reduction: str, shape: tuple[int, ...], at: Any) -> None:
    where = np.array(at, np.int64)
    x, updates = data(4, *shape), data(5, *where.shape[:-1], *shape[where.shape[-1] :])
    [found] = run_ge(type, [x, where, updates])
    expected = run_onnx("ScatterND", [x, where, updates], {"reduction": reduction}, opset=18)[0]
    np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("type", "expected"),
    [
        ("ScatterNdAdd", [1, 14, 3]),
        ("ScatterNdSub", [1, -10, 3]),
        ("XScatterNdMul", [1, 70, 3]),
        ("ScatterNdMax", [1, 7, 3]),
    ],
)
def test_all_updates_of_one_place_count(type: str, expected: list[int]) -> None:
    x = np.array([1, 2, 3], np.int32)
    assert run_ge(type, [x, np.array([[1], [1]]), np.array([5, 7], np.int32)])[0].tolist() == expected


def test_the_input_stays_as_it_is() -> None:
    x = np.zeros((2, 2), np.float32)
    run_ge("ScatterNdUpdate", [x, np.array([[0]]), np.ones((1, 2), np.float32)])
    assert not x.any()


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.bool_, np.uint8])
def test_element_types(dtype: Any) -> None:
    x = data(6, 4, dtype=dtype, low=0)
    found = run_ge("ScatterElements", [x, np.array([2]), np.ones(1, dtype)])[0]
    assert found.dtype == dtype
    assert found.tolist() == [*x[:2].tolist(), 1, *x[3:].tolist()]


def test_strings() -> None:
    x, updates = np.array(["a", "b"], object), np.array(["c"], object)
    assert run_ge("ScatterElements", [x, np.array([1]), updates])[0].tolist() == ["a", "c"]


def test_scatter_into_zeros_adds() -> None:
    at, updates = np.array([[1], [3], [1]]), np.array([1.5, 2, 3], np.float32)
    assert run_ge("ScatterNd", [at, updates, np.array([5])])[0].tolist() == [0, 4.5, 0, 2, 0]


def test_segment_sums() -> None:
    x, ids = np.array([[1, 2], [3, 4], [5, 6]], np.float32), np.array([0, 0, 2], np.int32)
    assert run_ge("SegmentSum", [x, ids])[0].tolist() == [[4, 6], [0, 0], [5, 6]]
    ids = np.array([2, -1, 2], np.int32)
    assert run_ge("UnsortedSegmentSum", [x, ids, np.array(4)])[0].tolist() == [[0, 0], [0, 0], [6, 8], [0, 0]]
    grid = np.array([[0, 1], [1, 1], [0, 0]], np.int32)
    assert run_ge("UnsortedSegmentSum", [x, grid, np.array(2)])[0].tolist() == [12, 9]


@pytest.mark.parametrize(
    ("type", "inputs", "attrs", "message"),
    [
        ("ScatterElements", [np.zeros((2, 3)), np.zeros((2, 4), int), np.zeros((2, 4))], {}, "do not fit into shape"),
        ("ScatterElements", [np.zeros(3), np.zeros(2, int), np.zeros(3)], {}, r"shapes \[2\] and \[3\] do not fit"),
        (
            "ScatterElements",
            [np.zeros(3), np.zeros(3, int), np.zeros(3)],
            {"reduction": "avg"},
            "reduction avg is none of",
        ),
        ("ScatterNdUpdate", [np.zeros(3), np.zeros((2, 2), int), np.zeros(2)], {}, r"\[2,2\] do not fit shape \[3\]"),
        (
            "ScatterNdAdd",
            [np.zeros((3, 4)), np.zeros((2, 1), int), np.zeros((2, 3))],
            {},
            r"the shape \[2, 4\] is wanted",
        ),
    ],
)
def test_misfits_are_reported(type: str, inputs: list[np.ndarray], attrs: dict[str, Any], message: str) -> None:
    with pytest.raises(ReportedError, match=message):
        inferred(type, inputs, attrs)


def test_indices_outside_are_refused() -> None:
    definition = lookup("ScatterNdUpdate")
    assert definition is not None
    with pytest.raises(Misfit, match="index 3 is outside a dim of 3"):
        definition.evaluate({}, [np.zeros(3), np.array([[3]]), np.zeros(1)], [])
