"""The run loop: ready calls, one after the other."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence

import numpy as np
from threadpoolctl import ThreadpoolController

from ge.errors import ReportedError
from simulator.kernels.registry import Array
from simulator.loader import ExecutionPlan, Step


def usable_cores() -> int:
    """Return the number of cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return max(os.cpu_count() or 1, 1)


class Executor:
    """Runs an execution plan. There is one arena, so one run at a time.

    ``threads`` is the number of threads that matrix products may use; ``None`` means all usable cores. ``after_step``,
    if set, sees every step when it is done. ``times`` are the milliseconds of all runs, without copying in and out.
    """

    def __init__(self, plan: ExecutionPlan, threads: int | None = None, name: str = "model") -> None:
        self.plan = plan
        self.threads = usable_cores() if threads is None else threads
        self.name = name
        self.after_step: Callable[[Step], None] | None = None
        self.times: list[float] = []
        self._lock = threading.Lock()
        self._blas = ThreadpoolController()

    def run(self, feeds: Sequence[Array]) -> list[Array]:
        """Copy ``feeds`` (of the inputs' shapes and dtypes) in, run all steps, return copies of the outputs.

        Raises R1060 when a run is under way and R1050 with the node's name when a kernel fails.
        """
        if not self._lock.acquire(blocking=False):
            raise ReportedError("R1060", model=self.name, reason="it is running already, on its only arena")
        try:
            for binding, feed in zip(self.plan.inputs, feeds, strict=True):
                np.copyto(binding.array, feed)
            with self._blas.limit(limits=self.threads, user_api="blas"), np.errstate(all="ignore"):
                start = time.perf_counter()
                self._run_steps()
                self.times.append((time.perf_counter() - start) * 1e3)
            return [binding.array.copy() for binding in self.plan.outputs]
        finally:
            self._lock.release()

    def _run_steps(self) -> None:
        step = None
        try:
            for step in self.plan.steps:
                step.call()
                if self.after_step is not None:
                    self.after_step(step)
        except ReportedError:
            raise
        except Exception as fault:
            node = "" if step is None else f"{step.node} ({step.type}, kernel {step.kernel.name})"
            raise ReportedError("R1050", node=node, reason=f"{type(fault).__name__}: {fault}") from fault
