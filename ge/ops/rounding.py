"""Rounding float64 to floats narrower than float32 in one go, although numpy's extension types go through float32."""

from __future__ import annotations

from typing import Any

import numpy as np


def round_to_odd(array: Any) -> Any:
    """Return float32 numbers whose further rounding equals rounding ``array`` (real numbers of any type) once.

    Inexact results get an odd last bit, so that none looks like a tie.
    """
    if array.dtype == np.float32:
        return array
    exact = array.astype(np.float64)
    single = np.asarray(exact.astype(np.float32))
    is_off = ((single.view(np.uint32) & 1) == 0) & np.isfinite(single) & (exact != single)
    toward = np.where(exact > single, np.float32(np.inf), np.float32(-np.inf))
    return np.where(is_off, np.nextafter(single, toward), single)
