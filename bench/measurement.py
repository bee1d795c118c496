"""What every benchmark needs: alternating runs, a summary of times, a description of the machine."""

from __future__ import annotations

import json
import os
import platform
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path

BUILD = Path(__file__).resolve().parent.parent / "build" / "bench"


@dataclass(frozen=True)
class Times:
    """Seconds per run of one candidate."""

    minimum: float
    median: float
    maximum: float
    runs: int

    @classmethod
    def of(cls, seconds: Sequence[float]) -> Times:
        return cls(min(seconds), statistics.median(seconds), max(seconds), len(seconds))

    def __str__(self) -> str:
        low, middle, high = (f"{1000 * value:9.2f}" for value in (self.minimum, self.median, self.maximum))
        return f"min {low}  median {middle}  max {high} ms  ({self.runs} runs)"


def alternate(
    candidates: Mapping[str, Callable[[], object]], runs: int, fewer: Mapping[str, int] | None = None
) -> dict[str, Times]:
    """Run the candidates in turn, `runs` rounds; `fewer` names those that rest after that many rounds.

    A noisy neighbour then hits all candidates alike. The first round is not counted: it warms caches and pools.
    """
    rounds = {name: (fewer or {}).get(name, runs) for name in candidates}
    seconds: dict[str, list[float]] = {name: [] for name in candidates}
    for round_number in range(runs + 1):
        for name, run in candidates.items():
            if round_number > rounds[name]:
                continue
            start = time.perf_counter()
            run()
            if round_number > 0:
                seconds[name].append(time.perf_counter() - start)
    return {name: Times.of(values) for name, values in seconds.items()}


def usable_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def machine(*packages: str) -> str:
    """One line: processor, usable cores, Python and the versions of `packages`."""
    versions = ", ".join(f"{name} {version(name)}" for name in packages)
    return f"{_processor()}, {usable_cores()} cores, Python {platform.python_version()}, {versions}"


def write_json(path: Path | None, record: Mapping[str, object]) -> None:
    """Write `record`, where Times become objects, to `path` unless it is None."""
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(record, indent=2, default=_as_json) + "\n", encoding="utf-8")


def _as_json(value: object) -> object:
    if isinstance(value, Times):
        return asdict(value)
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    flags = next((line for line in lines if line.startswith("flags")), "").split()
    vector = next((name for name in ("avx512f", "avx2") if name in flags), "no AVX2")
    return f"{names[0] if names else platform.machine()} ({vector})"
