"""The run loop: ready calls, one after the other."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from operator import is_
from typing import Any, Protocol

import numpy as np
from threadpoolctl import ThreadpoolController

from ge.errors import ReportedError
from simulator.binding import stopped
from simulator.feeds import padding_of
from simulator.kernels.registry import Array, Kernel
from simulator.loader import ExecutionPlan
from simulator.overflow import OverflowCounter, has_narrow_floats
from simulator.steps import Step, all_steps


def usable_cores() -> int:
    """Return the number of cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return max(os.cpu_count() or 1, 1)


BUFFERED_ELEMENTS = 1024
"""numpy copies operands that repeat in rows shorter than this, which takes longer than to read them where they are."""


@contextmanager
def kernel_arithmetic() -> Iterator[None]:
    """While kernels run, numpy warns of nothing and buffers little."""
    with np.errstate(all="ignore"):
        previous = np.setbufsize(BUFFERED_ELEMENTS)
        try:
            yield
        finally:
            np.setbufsize(previous)


MIN_SHARED_PRODUCT = 4_000_000
"""Multiply-adds from which a matrix product is worth several threads: some 50 microseconds on one."""


class Observer(Protocol):
    """Sees the nodes of a run, those of bodies too, with one value per input and output (``None``: absent).

    ``seconds`` is the time that it has taken between nodes in this run.
    """

    seconds: float

    def run(self, feeds: Sequence[Any]) -> AbstractContextManager[None]:
        """Return what stands around one run."""

    def before(self, name: str, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        """See a node that is about to write into planned memory ``outputs``."""

    def after(self, name: str, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        """See a node that has run."""


class SharedRun(Protocol):
    """Threads that run the jobs of compiled kernels (:class:`simulator.codegen.crew.Crew`)."""

    def program(self, jobs: Sequence[Any]) -> Callable[[], None]:
        """Return the call that runs jobs, in order."""


class RunLoop:
    """What runs of all models have in common: one at a time, so many threads, times.

    ``threads`` is the number of threads that compiled kernels and matrix products may use; ``None`` means all usable
    cores. ``times`` are the milliseconds of all runs, without copying in and out, without dumping, and without counting
    overflows, which models with float16 or bfloat16 results do. Subclasses say how feeds are taken, what is computed
    and what is given back.
    """

    def __init__(self, threads: int | None = None, name: str = "model") -> None:
        self.threads = usable_cores() if threads is None else threads
        self.name = name
        self.times: list[float] = []
        self.observer: Observer | None = None
        self.overflow: OverflowCounter | None = None
        self._lock = threading.Lock()
        self._blas = ThreadpoolController().select(user_api="blas")
        self._threads_in_use = 0

    def run(self, feeds: Sequence[Array]) -> list[Array]:
        """Run the model on one array per input and return arrays that are the caller's.

        Raises R1060 when a run is under way and R1050 with the node's name when a kernel fails.
        """
        if not self._lock.acquire(blocking=False):
            raise ReportedError("R1060", model=self.name, reason="it is running already, on its only arena")
        try:
            self._take(feeds)
            watched = nullcontext() if self.observer is None else self.observer.run(feeds)
            with watched, self._blas.limit(limits=self.threads), kernel_arithmetic():
                self._threads_in_use = self.threads
                if self.overflow is not None:
                    self.overflow.start()
                start = time.perf_counter()
                self._compute()
                self._note_time(time.perf_counter() - start)
            return self._give()
        finally:
            self._lock.release()

    def _note_time(self, seconds: float) -> None:
        if self.overflow is not None:
            self.overflow.finish()
            seconds -= self.overflow.seconds
        if self.observer is not None:
            seconds -= self.observer.seconds
        self.times.append(seconds * 1e3)

    def share(self, kernel: Kernel) -> None:
        """Let the matrix products of ``kernel`` use several threads if they are large enough.

        Threads that meet for a few microseconds of work wait longer for each other than they gain, above all when
        other programs keep the cores busy.
        """
        count = self.threads if kernel.product_size >= MIN_SHARED_PRODUCT else 1
        if count != self._threads_in_use:
            for library in self._blas.lib_controllers:
                library.set_num_threads(count)
            self._threads_in_use = count

    def _take(self, feeds: Sequence[Array]) -> None:
        raise NotImplementedError

    def _compute(self) -> None:
        raise NotImplementedError

    def _give(self) -> list[Array]:
        raise NotImplementedError


class Executor(RunLoop):
    """Runs an execution plan. There is one arena, so one run at a time.

    Feeds must have the inputs' shapes and dtypes; they are copied, but for what lies in padding lanes of a storage
    layout: kernels rely on zeros there. ``after_step``, if set, sees every step when it is done, those of bodies too.
    """

    def __init__(
        self,
        plan: ExecutionPlan,
        threads: int | None = None,
        name: str = "model",
        hire: Callable[[int], SharedRun | None] | None = None,
    ) -> None:
        super().__init__(threads, name)
        self.plan = plan
        self._crew = None if hire is None else hire(self.threads)
        self._sequences: dict[int, tuple[list[Step], list[Step | Callable[[], None]]]] = {}
        self._single: dict[int, tuple[Step, Callable[[], None]]] = {}
        self.after_step: Callable[[Step], None] | None = None
        self.inputs, self.outputs = plan.inputs, plan.outputs
        if has_narrow_floats(array for step in all_steps(plan.steps) for array in step.outputs):
            self.overflow = OverflowCounter()
        self._padded = [(port.array, places) for port in plan.inputs if (places := padding_of(port)) is not None]

    def kernels(self) -> list[tuple[str, str, str]]:
        """Return ``(node, operator type, kernel name)`` per step, those of bodies too."""
        return [(step.node, step.type, step.kernel.name) for step in all_steps(self.plan.steps)]

    def _take(self, feeds: Sequence[Array]) -> None:
        for binding, feed in zip(self.plan.inputs, feeds, strict=True):
            np.copyto(binding.array, feed)
            if binding.clear is not None:
                binding.clear(binding.array)
        for array, places in self._padded:
            places.clear_padding(array)

    def _compute(self) -> None:
        self._run_steps(self.plan.steps)

    def _run_steps(self, steps: Sequence[Step]) -> None:
        if self.observer is None and self.overflow is None and self.after_step is None and self._crew is not None:
            self._run_unseen(steps, self._crew)
        else:
            self._run_watched(steps)

    def _run_unseen(self, steps: Sequence[Step], crew: SharedRun) -> None:
        """Run steps; compiled ones that follow each other become one program, which runs without Python."""
        known, parts = self._sequences.get(id(steps), ([], []))
        if len(known) != len(steps) or not all(map(is_, known, steps)):
            parts = _sequence(steps, crew)
            self._sequences[id(steps)] = (list(steps), parts)
        step = None
        try:
            for part in parts:
                if not isinstance(part, Step):
                    part()
                    continue
                step = part
                if step.control is not None:
                    step.control(self._run_steps)
                else:
                    self.share(step.kernel)
                    step.call()
        except ReportedError:
            raise
        except Exception as fault:
            raise _stopped_at(step, fault) from fault

    def _run_watched(self, steps: Sequence[Step]) -> None:
        step = None
        try:
            observer, overflow = self.observer, self.overflow
            for step in steps:
                if observer is not None:
                    observer.before(step.node, step.inputs, step.outputs)
                if step.control is not None:
                    step.control(self._run_steps)
                else:
                    self.share(step.kernel)
                    self._call_of(step)()
                if observer is not None:
                    observer.after(step.node, step.inputs, step.outputs)
                if overflow is not None:
                    is_call = step.control is not None
                    overflow.after(step.node, step.type, step.inputs, step.outputs, is_call=is_call, unread=step.unread)
                if self.after_step is not None:
                    self.after_step(step)
        except ReportedError:
            raise
        except Exception as fault:
            raise _stopped_at(step, fault) from fault

    def _call_of(self, step: Step) -> Callable[[], None]:
        """Return what runs a step, on several threads if it can."""
        if self._crew is None or not step.jobs:
            return step.call
        known, call = self._single.get(id(step), (None, step.call))
        if known is not step:
            call = self._crew.program(step.jobs)
            self._single[id(step)] = (step, call)
        return call

    def _give(self) -> list[Array]:
        return [binding.array.copy() for binding in self.plan.outputs]


def _sequence(steps: Sequence[Step], crew: SharedRun) -> list[Step | Callable[[], None]]:
    """Return steps in order, those with jobs that follow each other as one call."""
    found: list[Step | Callable[[], None]] = []
    jobs: list[Any] = []
    for step in steps:
        if step.jobs:
            jobs.extend(step.jobs)
            continue
        if jobs:
            found.append(crew.program(jobs))
            jobs = []
        found.append(step)
    if jobs:
        found.append(crew.program(jobs))
    return found


def _stopped_at(step: Step | None, fault: Exception) -> ReportedError:
    return stopped("" if step is None else f"{step.node} ({step.type}, kernel {step.kernel.name})", fault)
