"""Compiled pooling of feature maps in NC1HWC0 against its meaning in double precision."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.simulator.codegen.compilers import LEVELS, compiler
from tests.simulator.storage_model import check_stored, uniform

TYPES = [np.float32, np.float16, ml_dtypes.bfloat16]
WINDOWS = [
    {"ksize": [1, 1, 2, 2], "strides": [1, 1, 2, 2], "pads": [0, 0, 0, 0]},
    {"ksize": [1, 1, 3, 3], "strides": [1, 1, 2, 2], "pads": [1, 1, 1, 1]},
    {"ksize": [1, 1, 3, 2], "strides": [1, 1, 1, 3], "pads": [0, 2, 1, 0]},
    {"ksize": [1, 1, 5, 4], "strides": [1, 1, 3, 1], "pads": [2, 2, 3, 0]},
    {"ksize": [1, 1, 9, 11], "strides": [1, 1, 1, 1], "pads": [0, 0, 0, 0]},
]


def check(type: str, x: np.ndarray, attrs: dict[str, Any] | None, name: str, level: str = "native") -> None:
    check_stored(type, [x], attrs, kernel=f"llvm-{name}", compiler=compiler(level))


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("c", [1, 15, 16, 17, 33])
@pytest.mark.parametrize("how", WINDOWS, ids=str)
def test_windows(how: dict[str, Any], c: int, dtype: Any) -> None:
    x = uniform(2, c, 9, 11, dtype=dtype)
    explicit = {**how, "padding_mode": "CALCULATED", "data_format": "NCHW"}
    for ceil in (False, True):
        check("MaxPoolV3", x, {**explicit, "ceil_mode": ceil}, "max-pool")
        for exclusive in (True, False):
            check("AvgPoolV2", x, {**explicit, "ceil_mode": ceil, "exclusive": exclusive}, "mean-pool")


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("c", [3, 16, 40])
def test_everything(c: int, level: str) -> None:
    check("GlobalAveragePool", uniform(2, c, 9, 11), None, "mean-pool", level)


@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf])
def test_special_numbers(special: float) -> None:
    x = uniform(1, 3, 9, 11)
    x[0, 1, 2, 3] = x[0, 2, 8, 10] = special
    for how in WINDOWS:
        explicit = {**how, "padding_mode": "CALCULATED", "data_format": "NCHW"}
        check("MaxPoolV3", x, explicit, "max-pool")
        check("AvgPoolV2", x, explicit, "mean-pool")
