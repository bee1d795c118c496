"""Einsum against onnxruntime."""

from __future__ import annotations

import numpy as np
import pytest

from ge.errors import ReportedError
from ge.graph.tensor_desc import Shape
from ge.ops.einsum import summed_shape
from tests.ops.one_node import assert_close, data, inferred, run_ge, run_onnx


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("ij,jk->ik", [(3, 4), (4, 5)]), ("bij,bjk->bik", [(2, 3, 4), (2, 4, 5)]), ("ij->ji", [(3, 4)]),
        ("ij->", [(3, 4)]), ("ii->i", [(4, 4)]), ("ii", [(4, 4)]), ("i,j->ij", [(3,), (4,)]),
        ("ij,ij->i", [(3, 4), (3, 4)]),
        ("...ij,...jk->...ik", [(2, 5, 3, 4), (2, 5, 4, 2)]), ("b...->...b", [(2, 3, 4)]), ("ba,cb", [(3, 4), (5, 3)]),
        ("bhwc,hkc->bhwk", [(2, 3, 4, 5), (3, 6, 5)]), ("i,i,i->", [(4,), (4,), (4,)]),
        (" i j , j -> i ", [(3, 4), (4,)]),
        ("ij,jk->ik", [(3, 0), (0, 5)]),
    ],
)  # fmt: skip
def test_equations(equation: str, shapes: list[tuple[int, ...]]) -> None:
    inputs = [data(seed, *shape) for seed, shape in enumerate(shapes)]
    [found] = run_ge("Einsum", inputs, {"equation": equation, "N": len(inputs)})
    is_empty = any(0 in shape for shape in shapes)
    expected = np.zeros((3, 5), np.float32) if is_empty else run_onnx("Einsum", inputs, {"equation": equation})[0]
    assert_close(found, expected)


def test_what_the_ellipsis_stands_for_is_broadcast() -> None:
    x, y = data(1, 2, 1, 3, 4), data(2, 5, 4, 2)
    [found] = run_ge("Einsum", [x, y], {"equation": "...ij,...jk->...ik", "N": 2})
    assert_close(found, np.matmul(x.astype(np.float64), y.astype(np.float64)))


def test_integers_are_exact() -> None:
    x = np.array([[2**40, 1], [3, 4]], np.int64)
    assert run_ge("Einsum", [x, x], {"equation": "ij,ij->j", "N": 2})[0].tolist() == [2**80 % 2**64 + 9, 17]


@pytest.mark.parametrize(
    ("equation", "dims", "result"),
    [
        ("ij,jk->ik", [[-1, 4], [4, 5]], [-1, 5]), ("ij,ij->ij", [[-1, 4], [3, -1]], [3, 4]),
        ("...i->i...", [[-1, 2, 3]], [3, -1, 2]), ("...i,i->...", [[-2], [3]], [-2]),
        ("ij,jk->ik", [[-2], [4, 5]], [-1, 5]),
    ],
)  # fmt: skip
def test_unknown_dims(equation: str, dims: list[list[int]], result: list[int]) -> None:
    assert summed_shape(equation, [Shape(shape) for shape in dims]) == result


@pytest.mark.parametrize(
    ("equation", "shapes", "message"),
    [
        ("ij,jk->ik", [(2, 3), (4, 5)], "label j stands for dims 3 and 4"),
        ("ij->i", [(2, 3, 4)], r"operand 'ij' of equation 'ij->i' does not fit shape \[2,3,4\]"),
        ("ij,jk->ik", [(2, 3)], "has 2 operands, the node has 1"),
        ("i1->i", [(2, 3)], "is malformed at 'i1'"),
        ("ij->ik", [(2, 3)], "label k of the result"),
        ("ij->ii", [(2, 3)], "label i of the result"),
    ],
)
def test_misfits_are_reported(equation: str, shapes: list[tuple[int, ...]], message: str) -> None:
    with pytest.raises(ReportedError, match=message):
        inferred("Einsum", [np.zeros(shape) for shape in shapes], {"equation": equation, "N": len(shapes)})
