"""Tile, Expand, BroadcastTo, BroadcastArgs."""

from __future__ import annotations

import numpy as np
import pytest

from ge.errors import ReportedError
from tests.ops.one_node import data, inferred, run_ge, run_onnx


@pytest.mark.parametrize(
    ("shape", "multiples"), [((2, 3), (1, 2)), ((2, 3), (3, 0)), ((4,), (5,)), ((1, 0, 2), (2, 2, 1))]
)
def test_tile(shape: tuple[int, ...], multiples: tuple[int, ...]) -> None:
    x = data(1, *shape)
    expected = run_onnx("Tile", [x, np.array(multiples)])[0]
    np.testing.assert_array_equal(run_ge("Tile", [x, np.array(multiples)])[0], expected)
    np.testing.assert_array_equal(run_ge("TileD", [x], {"multiples": list(multiples)})[0], expected)


@pytest.mark.parametrize(
    ("shape", "wanted"),
    [((3, 1), (2, 1, 6)), ((3, 1), (3, 1)), ((2, 3), (3,)), ((), (2, 2)), ((1,), (0,)), ((5, 1), ())],
)
def test_expand(shape: tuple[int, ...], wanted: tuple[int, ...]) -> None:
    x = data(2, *shape)
    inputs = [x, np.array(wanted, np.int64)]
    expected = run_onnx("Expand", inputs)[0]
    for name in ("Expand", "BroadcastTo"):
        [found] = run_ge(name, inputs)
        np.testing.assert_array_equal(found, expected)
        assert found.flags.writeable


def test_broadcast_args() -> None:
    assert run_ge("BroadcastArgs", [np.array([2, 1, 5]), np.array([3, 1])])[0].tolist() == [2, 3, 5]


@pytest.mark.parametrize(
    ("type", "shape", "vector", "message"),
    [
        ("Tile", (2, 3), (2,), r"multiples \[2\] do not fit shape \[2, 3\]"),
        ("Tile", (2,), (-1,), r"multiples \[-1\] do not fit"),
        ("Expand", (2, 3), (2, 2), r"shapes \[2,3\] and \[2,2\] cannot be broadcast"),
        ("BroadcastTo", (3,), (-1,), r"input shape holds \[-1\], which is no shape"),
    ],
)
def test_misfits_are_reported(type: str, shape: tuple[int, ...], vector: tuple[int, ...], message: str) -> None:
    with pytest.raises(ReportedError, match=message):
        inferred(type, [np.zeros(shape), np.array(vector)], {})


def test_shapes_known_only_while_running() -> None:
    wanted = np.array([7, 1, 3])
    assert inferred("Expand", [np.zeros((1, 3)), wanted], {}, constant=False)[0].shape == (-1, -1, 3)
    assert inferred("Expand", [np.zeros((1, 4, 1, 3)), wanted], {}, constant=False)[0].shape == (1, 4, -1, 3)
    assert inferred("Tile", [np.zeros((2, 3)), np.array([1, 1])], {}, constant=False)[0].shape == (-1, -1)
