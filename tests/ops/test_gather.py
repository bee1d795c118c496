"""Gather, GatherV2, GatherElements and GatherNd."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ge.errors import ReportedError
from ge.ops import lookup
from ge.ops.registry import Misfit
from tests.ops.one_node import data, inferred, run_ge, run_onnx


def indices(seed: int, dim: int, *shape: int, dtype: Any = np.int64) -> np.ndarray:
    """Seeded indices, negative ones among them."""
    return np.random.default_rng(seed).integers(-dim, dim, shape).astype(dtype)


@pytest.mark.parametrize(("shape", "axis"), [((5,), 0), ((3, 5, 4), 1), ((3, 5, 4), -1), ((2, 3), 0)])
@pytest.mark.parametrize("places", [(), (3,), (2, 3), (0,)])
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_gather_v2(shape: tuple[int, ...], axis: int, places: tuple[int, ...], dtype: Any) -> None:
    x, at = data(1, *shape), indices(2, shape[axis], *places, dtype=dtype)
    [found] = run_ge("GatherV2", [x, at, np.array(axis, np.int32)], {"negative_index_support": True})
    np.testing.assert_array_equal(found, run_onnx("Gather", [x, at], {"axis": axis})[0])
    if axis == 0:
        np.testing.assert_array_equal(run_ge("Gather", [x, at])[0], found)


@pytest.mark.parametrize(("batch", "axis"), [(1, 1), (1, 2), (2, 2), (-1, 3), (1, -1)])
def test_gather_within_batches(batch: int, axis: int) -> None:
    x, at = data(3, 2, 3, 4, 5), indices(4, 3, 2, 3, 6)
    [found] = run_ge("GatherV2", [x, at, np.array(axis)], {"batch_dims": batch})
    shared = batch % at.ndim
    expected = [np.take(x[place], at[place], (axis % x.ndim) - shared) for place in np.ndindex(*x.shape[:shared])]
    np.testing.assert_array_equal(found.reshape(-1), np.stack(expected).reshape(-1))
    assert found.shape == (*x.shape[:shared], *expected[0].shape)
    if axis == batch:
        np.testing.assert_array_equal(run_ge("Gather", [x, at], {"batch_dims": batch})[0], found)


def test_gather_keeps_bits_and_strings() -> None:
    x = np.array([1.0, np.nan], np.float16)
    x.view(np.uint16)[1] = 0x7E55
    assert run_ge("GatherV2", [x, np.array([1]), np.array(0)])[0].view(np.uint16)[0] == 0x7E55
    words = np.array(["a", "b"], object)
    assert run_ge("GatherV2", [words, np.array([[1, -2]]), np.array(0)])[0].tolist() == [["b", "a"]]


@pytest.mark.parametrize(
    ("shape", "places", "axis"), [((3, 4), (2, 4), 0), ((3, 4), (3, 2), 1), ((2, 3, 4), (1, 2, 9), -1)]
)
def test_gather_elements(shape: tuple[int, ...], places: tuple[int, ...], axis: int) -> None:
    x, at = data(5, *shape), indices(6, shape[axis], *places)
    [found] = run_ge("GatherElements", [x, at], {"dim": axis})
    np.testing.assert_array_equal(found, run_onnx("GatherElements", [x, at], {"axis": axis})[0])


@pytest.mark.parametrize(
    ("shape", "places", "batch"),
    [((3, 4, 5), (2, 2), 0), ((3, 4, 5), (3,), 0), ((3, 4, 5), (2, 6, 1), 0), ((3, 4, 5), (3, 2, 1), 1),
     ((3, 4, 5), (3, 4, 1), 2), ((3, 4), (3, 1), 1), ((3, 4), (0, 2), 0)],
)  # fmt: skip
def test_gather_nd(shape: tuple[int, ...], places: tuple[int, ...], batch: int) -> None:
    x, at = data(7, *shape), indices(8, 3, *places)
    [found] = run_ge("GatherNd", [x, at], {"_x_batch_dims": batch})
    np.testing.assert_array_equal(found, run_onnx("GatherND", [x, at], {"batch_dims": batch})[0])


@pytest.mark.parametrize(
    ("type", "inputs", "attrs", "message"),
    [
        ("GatherV2", [np.zeros((2, 3)), np.zeros(2, int), np.array(2)], {}, "axis 2 is out of range for rank 2"),
        ("GatherV2", [np.zeros((2, 3)), np.zeros((3, 1), int), np.array(1)], {"batch_dims": 1},
         r"the first 1 dims of shapes \[2,3\] and \[3,1\] differ"),
        ("GatherV2", [np.zeros((2, 3)), np.zeros((2, 1), int), np.array(0)], {"batch_dims": 1}, "axis 0 is one of"),
        ("GatherElements", [np.zeros((2, 3)), np.zeros((2, 4), int)], {"dim": 0}, "indices of shape .* do not fit"),
        ("GatherNd", [np.zeros((2, 3)), np.zeros((2, 3), int)], {}, r"do not fit shape \[2,3\]"),
    ],
)  # fmt: skip
def test_shapes_that_do_not_fit(type: str, inputs: list[np.ndarray], attrs: dict[str, Any], message: str) -> None:
    with pytest.raises(ReportedError, match=message):
        inferred(type, inputs, attrs)


@pytest.mark.parametrize(
    ("type", "others", "index"),
    [("GatherV2", [np.array(0)], [3]), ("GatherElements", [], [-4]), ("GatherNd", [], [[3]])],
)
def test_indices_outside_are_refused(type: str, others: list[np.ndarray], index: list[Any]) -> None:
    definition = lookup(type)
    assert definition is not None
    with pytest.raises(Misfit, match=r"index (3|-4) is outside a dim of 3"):
        definition.evaluate({}, [np.zeros(3), np.array(index), *others], [])


def test_an_axis_known_only_while_running() -> None:
    inputs = [np.zeros((2, 3)), np.zeros((4, 5), int), np.array(0)]
    assert inferred("GatherV2", inputs, {}, constant=False)[0].shape == (-1, -1, -1)
