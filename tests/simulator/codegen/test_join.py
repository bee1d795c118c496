"""Compiled concatenations and splits against numpy's."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.simulator.codegen.compilers import compiler
from tests.simulator.differential import check_kernel
from tests.simulator.storage_model import check_stored, uniform

TYPES = [np.float32, np.float16, ml_dtypes.bfloat16, np.int32]


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(
    ("shape", "axis", "counts"),
    [((3, 1, 9), 1, [2, 1, 5]), ((1, 40), 1, [40, 9, 100]), ((1, 30, 40), 0, [1, 4]), ((2, 1, 30, 31), -3, [3, 1])],
)
def test_plain(shape: tuple[int, ...], axis: int, counts: list[int], dtype: Any) -> None:
    parts = []
    for number, count in enumerate(counts):
        own = list(shape)
        own[axis] = count
        parts.append(uniform(*own, dtype=np.float32, low=-99, high=99, seed=number).astype(dtype))
    attrs = {"concat_dim": axis, "N": len(parts)}
    check_kernel("ConcatD", parts, attrs, kernel="llvm-concat", compiler=compiler())
    whole = np.concatenate(parts, axis)
    sizes = np.array(counts, np.int64)
    check_kernel(
        "SplitV", [whole, sizes, np.array(axis, np.int32)], {"num_split": len(counts)}, constant=(1, 2),
        n_outputs=len(counts), kernel="llvm-split", compiler=compiler(),
    )  # fmt: skip


@pytest.mark.parametrize("last", [16, 32])
@pytest.mark.parametrize("n", [1, 2])
def test_blocks_of_channels(n: int, last: int) -> None:
    parts = [uniform(n, 16, 5, 7), uniform(n, 48, 5, 7, seed=1), uniform(n, last, 5, 7, seed=2)]
    check_stored("ConcatD", parts, {"concat_dim": 1, "N": 3}, kernel="llvm-concat", compiler=compiler())
    whole = np.concatenate(parts[:2], axis=1)
    check_stored(
        "SplitD", [whole], {"split_dim": 1, "num_split": 2}, n_outputs=2, kernel="llvm-split", compiler=compiler()
    )


@pytest.mark.parametrize("c", [3, 17])
def test_rows_of_blocks(c: int) -> None:
    parts = [uniform(2, c, 5, 7), uniform(2, c, 3, 7, seed=1)]
    check_stored("ConcatD", parts, {"concat_dim": 2, "N": 2}, kernel="llvm-concat", compiler=compiler())
