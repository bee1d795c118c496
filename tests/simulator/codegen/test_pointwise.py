"""Scalar functions of compiled loops against double precision, over all magnitudes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from simulator.codegen.elementwise import ElementwiseCode, Operand
from simulator.codegen.elementwise_kernels import Loops
from simulator.codegen.jobs import address_of, run_jobs
from tests.simulator.codegen.compilers import LEVELS, compiler

Array = np.ndarray[Any, np.dtype[Any]]


def compute(formula: str, *operands: Array, level: str = "native", parameters: tuple[float, ...] = ()) -> Array:
    """Run a formula over flat float32 arrays."""
    out = np.full_like(operands[0], np.nan)
    code = ElementwiseCode(formula, (Operand("f32", False),) * len(operands), "f32", len(parameters))
    loops = Loops.of(out.shape, [x.shape for x in operands])
    assert loops is not None
    places = [address_of(x) for x in (*operands, out)]
    address = compiler(level).engine.address(code)
    run_jobs([loops.job(address, places, [4] * len(places), parameters)])
    return out


def everywhere(step: int = 4001) -> Array:
    """Return float32 numbers of all signs and magnitudes, subnormal ones, infinities and NaN among them."""
    return np.append(
        np.arange(0, 2**32, step, dtype=np.uint64).astype(np.uint32).view(np.float32),
        np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 88.72283, -88.72283, -103.97, 2**-126], np.float32),
    )


def ulps(found: Array, exact: Array) -> Array:
    """Return errors in units of the last place of the exact results; all others must be of the same kind."""
    with np.errstate(all="ignore"):
        rounded = exact.astype(np.float32)
        np.testing.assert_array_equal(np.isnan(found), np.isnan(exact))
        unit = np.spacing(np.abs(rounded)).astype(np.float64)
        off = np.abs(found.astype(np.float64) - exact) / unit
    off[(found == rounded) | np.isnan(exact)] = 0
    return off


def _erf(x: Array) -> Array:
    return np.frompyfunc(lambda v: math.nan if math.isnan(v) else math.erf(v), 1, 1)(x).astype(np.float64)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(
    ("formula", "exact", "limit"),
    [
        ("exp", np.exp, 1),
        ("expm1", np.expm1, 2),
        ("log", np.log, 1),
        ("tanh", np.tanh, 2),
        ("sigmoid", lambda x: 1 / (1 + np.exp(-x)), 3),
        ("erf", _erf, 5),
        ("softplus", lambda x: np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x))), 3),
    ],
)
def test_accuracy(formula: str, exact: Callable[[Array], Array], limit: float, level: str) -> None:
    x = everywhere()
    found = compute(formula, x, level=level)
    with np.errstate(all="ignore"):
        expected = exact(x.astype(np.float64))
    off = ulps(found, expected)
    if formula == "sigmoid":  # the exponential of the negative is infinite
        off[x < -88.72] = 0
    worst = np.nanargmax(off)
    assert off[worst] <= limit + (level == "plain"), (x[worst], found[worst], expected[worst])
