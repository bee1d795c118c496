"""Running sums and products."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ge.errors import ReportedError
from tests.ops.one_node import assert_close, data, inferred, run_ge, run_onnx

FLAGS = [{"exclusive": e, "reverse": r} for e in (False, True) for r in (False, True)]


@pytest.mark.parametrize("flags", FLAGS)
@pytest.mark.parametrize(("shape", "axis"), [((5,), 0), ((3, 4), 1), ((2, 3, 4), -2), ((2, 1), 1)])
@pytest.mark.parametrize("dtype", [np.float32, np.int32])
def test_cumsum(flags: dict[str, bool], shape: tuple[int, ...], axis: int, dtype: Any) -> None:
    x = data(1, *shape, dtype=dtype, low=-9, high=9)
    [found] = run_ge("Cumsum", [x, np.array(axis, np.int32)], flags)
    onnx_flags = {name: int(value) for name, value in flags.items()}
    assert_close(found, run_onnx("CumSum", [x, np.array(axis, np.int32)], onnx_flags)[0])


@pytest.mark.parametrize("flags", FLAGS)
def test_cumprod(flags: dict[str, bool]) -> None:
    x = data(2, 3, 4)
    [found] = run_ge("Cumprod", [x, np.array(1)], flags)
    for row, result in zip(x.astype(np.float64), found, strict=True):
        values = row[::-1] if flags["reverse"] else row
        expected = [np.prod(values[: at if flags["exclusive"] else at + 1]) for at in range(4)]
        np.testing.assert_allclose(result[::-1] if flags["reverse"] else result, expected, rtol=1e-6)


@pytest.mark.parametrize("flags", FLAGS)
def test_nothing_to_sum(flags: dict[str, bool]) -> None:
    assert run_ge("Cumsum", [np.zeros((2, 0), np.float32), np.array(1)], flags)[0].shape == (2, 0)


def test_integers_wrap() -> None:
    assert run_ge("Cumsum", [np.array([100, 100], np.int8), np.array(0)])[0].tolist() == [100, 200 - 256]


def test_an_axis_that_does_not_exist() -> None:
    with pytest.raises(ReportedError, match="axis 2 is out of range for rank 2"):
        inferred("Cumsum", [np.zeros((2, 3)), np.array(2)], {})
