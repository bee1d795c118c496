"""Matrix products."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.simulator.differential import FLOAT_TYPES, assert_equal_meaning, check_kernel
from tests.simulator.planned_model import run_model, single


def matrix(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(dtype)


def swapped(x: np.ndarray, is_swapped: bool) -> np.ndarray:
    return np.ascontiguousarray(np.swapaxes(x, -1, -2)) if is_swapped else x


@pytest.mark.parametrize("dtype", FLOAT_TYPES)
@pytest.mark.parametrize("transposes", [(False, False), (True, False), (False, True), (True, True)])
@pytest.mark.parametrize("bias", [None, (9,), (1, 9), (70, 9)])
@pytest.mark.parametrize("constant", [[], [1], [1, 2]])
def test_products_of_matrices(dtype: Any, transposes: tuple[bool, bool], bias: Any, constant: list[int]) -> None:
    x1, x2 = swapped(matrix(70, 33, dtype=dtype), transposes[0]), swapped(matrix(33, 9, dtype=dtype), transposes[1])
    rest = [] if bias is None else [matrix(*bias, dtype=dtype)]
    attrs = {"transpose_x1": transposes[0], "transpose_x2": transposes[1]}
    check_kernel("MatMulV2", [x1, x2, *rest], attrs, kernel=None, constant=constant)


BATCHES = [
    ((), ()),
    ((3,), ()),
    ((), (3,)),
    ((2, 3), (3,)),
    ((2, 1), (1, 3)),
    ((2, 3), (2, 1)),
    ((4,), (1,)),
    ((1,), (2, 3)),
]


@pytest.mark.parametrize("dtype", FLOAT_TYPES)
@pytest.mark.parametrize(("left", "right"), BATCHES)
@pytest.mark.parametrize("adjoints", [(False, False), (True, False), (False, True)])
def test_batches_broadcast(
    dtype: Any, left: tuple[int, ...], right: tuple[int, ...], adjoints: tuple[bool, bool]
) -> None:
    x1 = swapped(matrix(*left, 5, 8, dtype=dtype), adjoints[0])
    x2 = swapped(matrix(*right, 8, 7, dtype=dtype), adjoints[1])
    attrs = {"adj_x1": adjoints[0], "adj_x2": adjoints[1]}
    check_kernel("BatchMatMulV2", [x1, x2], attrs, kernel=None)
    check_kernel("BatchMatMulV2", [x1, x2, matrix(7, dtype=dtype)], attrs, kernel=None, constant=[1, 2])


@pytest.mark.parametrize(
    ("left", "right"), [((8,), (8, 7)), ((5, 8), (8,)), ((8,), (8,)), ((2, 5, 8), (8,)), ((8,), (2, 8, 7))]
)
def test_vectors(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    x1, x2 = matrix(*left), matrix(*right)
    [found] = run_model(single("BatchMatMulV2", [x1, x2]), [x1, x2])
    assert_equal_meaning(found, np.asarray(x1.astype(np.float64) @ x2.astype(np.float64)))


@given(st.integers(1, 40), st.integers(1, 40), st.integers(1, 40), st.sampled_from([np.float32, np.float16]))
@settings(max_examples=60)
def test_products_of_any_size(rows: int, depth: int, columns: int, dtype: Any) -> None:
    check_kernel("MatMul", [matrix(rows, depth, dtype=dtype), matrix(depth, columns, dtype=dtype)], kernel=None)


def test_narrow_products_are_summed_in_single_precision_and_rounded_once() -> None:
    # 2048 + 1 needs 12 bits: a half-precision sum of 2048 ones would stop at 2048
    x1, x2 = np.ones((1, 4096), np.float16), np.ones((4096, 1), np.float16)
    [y] = run_model(single("MatMul", [x1, x2]), [x1, x2])
    assert y == 4096


def test_narrow_products_in_blocks_of_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("simulator.kernels.matmul.BLOCK_ELEMENTS", 100)
    inputs = [matrix(2, 17, 30, dtype=np.float16), matrix(30, 8, dtype=np.float16), matrix(17, 8, dtype=np.float16)]
    check_kernel("BatchMatMulV2", inputs, kernel="matmul-widened")
