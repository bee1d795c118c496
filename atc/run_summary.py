"""Times of a run: statistics, the lines on the screen, and ``<dir>_summary.json``."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np


@dataclass(frozen=True)
class Statistics:
    """Of times in milliseconds; all zero without any."""

    least: float = 0.0
    most: float = 0.0
    mean: float = 0.0
    median: float = 0.0
    percentile_99: float = 0.0
    count: int = 0

    @classmethod
    def of(cls, times: Sequence[float]) -> Statistics:
        """Return the statistics of ``times``; the percentile interpolates linearly."""
        if not times:
            return cls()
        values = np.asarray(times, np.float64)
        return cls(
            float(values.min()),
            float(values.max()),
            float(values.mean()),
            float(np.median(values)),
            float(np.percentile(values, 99)),
            len(times),
        )

    def named(self) -> dict[str, float | int]:
        """Return the numbers under the names that readers of the summary know."""
        return {
            "min": self.least,
            "max": self.most,
            "mean": self.mean,
            "median": self.median,
            "percentile(99%)": self.percentile_99,
            "count": self.count,
        }


@dataclass(frozen=True)
class Sample:
    """Files that one sample was read from, and those with its results."""

    infiles: Sequence[str]
    outfiles: Sequence[str]


MAX_OVERFLOWS = 10
"""Most nodes with overflows that are shown on the screen."""


class Overflow(Protocol):
    """What went beyond the range of a type at one node: a :class:`simulator.Overflow`."""

    @property
    def node(self) -> str: ...
    @property
    def type(self) -> str: ...
    @property
    def infinite(self) -> int: ...
    @property
    def saturated(self) -> int: ...


def _counted(overflow: Overflow) -> str:
    counts = []
    if overflow.infinite:
        counts.append(f"{overflow.infinite} finite elements became infinite")
    if overflow.saturated:
        counts.append(f"{overflow.saturated} elements had no place among the integers")
    return f"overflow in {overflow.node} ({overflow.type}): {', '.join(counts)}"


@dataclass(frozen=True)
class Summary:
    """What a run of ``om-run`` measured. ``times`` are milliseconds per run, ``batchsize`` samples per run.

    ``overflows`` are those of all runs, the warm-up included.
    """

    times: Sequence[float]
    batchsize: int
    samples: Sequence[Sample] = field(default_factory=tuple)
    overflows: Sequence[Overflow] = field(default_factory=tuple)

    @property
    def statistics(self) -> Statistics:
        """Statistics of ``times``."""
        return Statistics.of(self.times)

    @property
    def throughput(self) -> float:
        """Samples per second; 0 if nothing was measured."""
        mean = self.statistics.mean
        return 1000 * self.batchsize / mean if mean > 0 else 0.0

    def lines(self) -> list[str]:
        """Return the lines for the screen; the last field of the throughput row is the number."""
        numbers = self.statistics.named()
        numbers.pop("count")
        row = ", ".join(f"{name} = {round(value, 5)}" for name, value in numbers.items())
        mean = round(self.statistics.mean, 5)
        formula = f"1000*batchsize.mean({self.batchsize})/NPU_compute_time.mean({mean})"
        return [
            "-----------------Performance Summary (CPU simulation)-----------------",
            f"NPU_compute_time (ms): {row}",
            f"throughput {formula}: {round(self.throughput, 5)}",
            "-" * 70,
            *self._overflow_lines(),
        ]

    def _overflow_lines(self) -> list[str]:
        lines = [_counted(overflow) for overflow in self.overflows[:MAX_OVERFLOWS]]
        if len(self.overflows) > MAX_OVERFLOWS:
            lines.append(f"overflow in {len(self.overflows) - MAX_OVERFLOWS} more nodes")
        return lines

    def text(self, arguments: Mapping[str, str]) -> str:
        """Return the summary as JSON text."""
        nothing = Statistics().named()
        content = {
            "filesinfo": {
                str(i): {"infiles": list(sample.infiles), "outfiles": list(sample.outfiles)}
                for i, sample in enumerate(self.samples)
            },
            "args": dict(arguments),
            "device": "CPU simulation",
            "NPU_compute_time": self.statistics.named(),
            "H2D_latency": nothing,
            "D2H_latency": nothing,
            "throughput": self.throughput,
            "npu_compute_time_list": list(self.times),
            "overflow": {
                one.node: {"type": one.type, "infinite": one.infinite, "saturated": one.saturated}
                for one in self.overflows
            },
            "pid": os.getpid(),
        }
        return json.dumps(content, indent=4, ensure_ascii=False) + "\n"
