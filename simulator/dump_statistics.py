"""Numbers that say what a tensor holds, in place of the tensor."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from simulator.dump_settings import STATISTICS

Array = np.ndarray[Any, np.dtype[Any]]

COLUMNS = ("op", "type", "task", "stream", "timestamp", "kind", "index", "shape", "dtype")


def statistics(array: Array) -> dict[str, float | int | str]:
    """Return :data:`STATISTICS` of a tensor in origin format; empty texts where there are no numbers to look at.

    Max, Min, Mean and L2norm are of the finite values, computed in double precision.
    """
    if array.dtype.kind not in "fiub":
        return dict.fromkeys(STATISTICS, "")
    values = array.astype(np.float64).reshape(-1)
    finite = values[np.isfinite(values)]
    with np.errstate(over="ignore"):
        numbers = (finite.max(), finite.min(), finite.mean(), np.sqrt(finite @ finite)) if finite.size else ()
    high, low, mean, norm = map(float, numbers) if numbers else ("", "", "", "")
    counts = (np.isnan(values).sum(), np.isposinf(values).sum(), np.isneginf(values).sum())
    return dict(zip(STATISTICS, (high, low, mean, *map(int, counts), norm), strict=True))


def table(rows: Iterable[dict[str, object]], names: Sequence[str]) -> str:
    """Return the rows as CSV with :data:`COLUMNS` and the statistics ``names``."""
    text = io.StringIO()
    writer = csv.DictWriter(text, [*COLUMNS, *names], extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()
