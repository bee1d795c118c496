"""Triangles, bands and diagonals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ge.errors import ReportedError
from tests.ops.one_node import data, inferred, run_ge, run_onnx


@pytest.mark.parametrize("shape", [(4, 4), (3, 5), (2, 5, 3), (2, 0, 3)])
@pytest.mark.parametrize("upper", [0, 1])
@pytest.mark.parametrize("k", [None, 0, 1, -2, 9])
def test_trilu(shape: tuple[int, ...], upper: int, k: int | None) -> None:
    inputs = [data(1, *shape), None if k is None else np.array(k)]
    expected = run_onnx("Trilu", inputs, {"upper": upper})[0]
    np.testing.assert_array_equal(run_ge("Trilu", inputs, {"upper": upper})[0], expected)


@pytest.mark.parametrize(("lower", "upper"), [(0, 0), (1, 2), (-1, 1), (2, -1), (-1, -1)])
def test_band(lower: int, upper: int) -> None:
    x = data(2, 2, 4, 5)
    expected = np.array(
        [[[v if (lower < 0 or i - j <= lower) and (upper < 0 or j - i <= upper) else 0 for j, v in enumerate(row)]
          for i, row in enumerate(matrix)] for matrix in x]
    )  # fmt: skip
    np.testing.assert_array_equal(run_ge("MatrixBandPart", [x, np.array(lower), np.array(upper)])[0], expected)


def test_diagonals() -> None:
    x = data(3, 2, 3)
    np.testing.assert_array_equal(run_ge("MatrixDiag", [x])[0], np.stack([np.diag(row) for row in x]))
    [square] = run_ge("Diag", [x])
    assert square.shape == (2, 3, 2, 3)
    for place in np.ndindex(2, 3, 2, 3):
        assert square[place] == (x[place[:2]] if place[:2] == place[2:] else 0)
    np.testing.assert_array_equal(run_ge("DiagPart", [square])[0], x)


@pytest.mark.parametrize(
    ("diagonal", "k", "rows", "columns", "expected"),
    [
        ([1, 2, 3], [0], -1, -1, [[1, 0, 0], [0, 2, 0], [0, 0, 3]]),
        ([1, 2], [1], -1, -1, [[0, 1, 0], [0, 0, 2], [0, 0, 0]]),
        ([1, 2], [-1], 3, 2, [[0, 0], [1, 0], [0, 2]]),
        ([1, 2], [0], 2, 4, [[1, 0, 0, 0], [0, 2, 0, 0]]),
        ([[4, 5, 0], [1, 2, 3], [6, 7, 0]], [-1, 1], -1, -1, [[1, 4, 0], [6, 2, 5], [0, 7, 3]]),
        ([[8, 9], [1, 2]], [0, 1], 2, 3, [[1, 8, 0], [0, 2, 9]]),
    ],
)
def test_matrix_diag_v2(diagonal: Any, k: list[int], rows: int, columns: int, expected: list[list[int]]) -> None:
    """The cases are those of TensorFlow's documentation: diagonals from the uppermost down, aligned left."""
    values = np.array(diagonal, np.float32)
    rest = [np.array(k, np.int32), np.array(rows, np.int32), np.array(columns, np.int32), np.array(0, np.float32)]
    assert run_ge("MatrixDiagV2", [values, *rest])[0].tolist() == expected
    twice = run_ge("MatrixDiagV2", [np.stack([values, 10 * values]), *rest])[0]
    np.testing.assert_array_equal(twice, [expected, 10 * np.array(expected)])


def test_padding_value() -> None:
    rest = [np.array(0), np.array(2), np.array(3), np.array(-1)]
    assert run_ge("MatrixDiagV2", [np.array([5, 6]), *rest])[0].tolist() == [[5, -1, -1], [-1, 6, -1]]


@pytest.mark.parametrize(
    ("type", "inputs", "message"),
    [
        ("Trilu", [np.zeros(3)], r"shape \[3\] holds no matrices"),
        ("DiagPart", [np.zeros((2, 3))], r"the halves of shape \[2,3\] differ"),
        ("MatrixDiagV2", [np.zeros(3), np.array(0), np.array(2), np.array(2), np.array(0.0)], "do not fit 2 x 2"),
        (
            "MatrixDiagV2",
            [np.zeros(3), np.array([1, 0]), np.array(3), np.array(3), np.array(0.0)],
            "names no diagonals",
        ),
        ("MatrixDiagV2", [np.zeros(3), np.array([0, 1]), np.array(3), np.array(3), np.array(0.0)], "does not hold"),
    ],
)
def test_misfits_are_reported(type: str, inputs: list[np.ndarray], message: str) -> None:
    with pytest.raises(ReportedError, match=message):
        inferred(type, inputs, {})
