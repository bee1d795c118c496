"""Values for the tests of operators, and what it means that two of them are the same."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]

GENERATOR = np.random.default_rng(7)


def f(*shape: int, low: float = -2, high: float = 2) -> Array:
    """Return floats."""
    return GENERATOR.uniform(low, high, shape).astype(np.float32)


def i(*values: Any, dtype: Any = np.int32) -> Array:
    """Return integers; a single number gives a scalar."""
    return np.array(values[0] if len(values) == 1 else values, dtype)


def same(found: Array, expected: Any, rtol: float = 1e-5) -> None:
    """Check type, shape and values: floats to ``rtol``, others exactly."""
    expected = np.asarray(expected)
    assert found.shape == expected.shape
    assert found.dtype.kind == expected.dtype.kind
    if expected.dtype.kind in "fc":
        scale = float(np.max(np.abs(expected), initial=0, where=np.isfinite(expected)))
        np.testing.assert_allclose(found, expected, rtol=rtol, atol=rtol * max(scale, 1e-3))
    else:
        np.testing.assert_array_equal(found, expected)
