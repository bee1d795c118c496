"""Results that are computed in float64 reach narrow types by one rounding."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.ops.one_node import run_ge


@pytest.mark.parametrize(("dtype", "unit"), [(ml_dtypes.bfloat16, 2.0**-7), (np.float16, 2.0**-10)])
@pytest.mark.parametrize(("excess", "rounds_up"), [(2.0**-40, True), (0.0, False), (-(2.0**-40), False)])
def test_sums_near_the_middle_of_two_numbers(dtype: Any, unit: float, excess: float, rounds_up: bool) -> None:
    """1 + unit/2 + excess is next to a tie that float32 cannot tell from it."""
    x = np.array([1, unit / 2, excess], np.float32).astype(dtype)
    if not excess or np.float64(x[2]) == excess:  # float16 has no number as small as 2^-40
        [found] = run_ge("ReduceSum", [x, np.array([0])])
        assert float(found) == (1 + unit if rounds_up else 1)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e5m2, ml_dtypes.float8_e4m3fn])
def test_narrow_floats_are_computed_in_single(dtype: Any) -> None:
    """Sums stay exact until the end: 2^-4 alone is lost beside 16 in float8, 64 of them are not."""
    x = [np.array([16.0], dtype), *[np.array([2.0**-4], dtype)] * 64]
    [found] = run_ge("AddN", x, {"N": len(x)})
    assert found.dtype == dtype
    assert float(found[0]) == 20.0
