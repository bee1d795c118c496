"""Several threads that run programs of jobs.

A program lies in memory that threads share: its jobs in order, each with a count of chunks that were taken and of those
that are done. Whoever enters takes chunks, and passes to the next job when all chunks of this one are done; so a thread
that comes late, or never, delays nobody. The thread that started the program leaves last.

The loop is compiled as well: between two jobs no thread waits for Python.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from queue import SimpleQueue

import numpy as np
from llvmlite import ir

from simulator.codegen.emission import I32, I64, POINTER, WORD, Emitter, Value
from simulator.codegen.engine import Engine
from simulator.codegen.jobs import FUNCTION, Job, address_of

LINE = 8
"""Words of a cache line. Line 0 is the program's, the others are jobs."""
_OPEN, _INSIDE = 0, 1
_ADDRESS, _BLOCK, _TASKS, _CHUNK, _TAKEN, _DONE = range(6)
SPINS = 2000
"""Turns of waiting before other threads of the machine are let in."""


def _set(e: Emitter, place: Value, value: int) -> None:
    """Store a number, seen by all threads in one order."""
    e.build.atomic_rmw("xchg", place, e.constant(value), "seq_cst")


@dataclass(frozen=True)
class _OpeningCode:
    """Make a program ready: no chunk is taken, and threads may enter. ``begin`` is the number of jobs."""

    def emit(self, e: Emitter) -> None:
        def reset(index: Value, _: list[Value]) -> None:
            line = e.at(e.block, e.times(e.sum(index, 1), LINE * WORD))
            for word in (_TAKEN, _DONE):
                _set(e, e.at(line, e.constant(word * WORD)), 0)

        e.loop(0, e.begin, reset)
        _set(e, e.at(e.block, e.constant(_OPEN * WORD)), 1)


@dataclass(frozen=True)
class _WorkingCode:
    """Enter a program and work until it is done. ``begin`` is the number of jobs, ``end`` whether this thread leads."""

    can_yield: bool

    def emit(self, e: Emitter) -> None:
        build = e.build
        leads = build.icmp_signed("!=", e.end, e.constant(0))
        inside = e.at(e.block, e.constant(_INSIDE * WORD))
        opened = e.at(e.block, e.constant(_OPEN * WORD))
        build.atomic_rmw("add", inside, e.constant(1), "seq_cst")
        is_open = build.icmp_signed("!=", build.load_atomic(opened, "seq_cst", WORD, typ=I64), e.constant(0))
        jobs = build.select(is_open, e.begin, e.constant(0))
        e.loop(0, jobs, lambda index, _: self._job(e, index))
        build.atomic_rmw("sub", inside, e.constant(1), "seq_cst")
        with build.if_then(leads):
            _set(e, opened, 0)
            self._wait(
                e, lambda: build.icmp_signed("==", build.load_atomic(inside, "seq_cst", WORD, typ=I64), e.constant(0))
            )

    def _job(self, e: Emitter, index: Value) -> None:
        build = e.build
        line = e.at(e.block, e.times(e.sum(index, 1), LINE * WORD))
        word = [e.at(line, e.constant(number * WORD)) for number in range(6)]
        function = build.load(word[_ADDRESS], align=WORD, typ=POINTER)
        block = build.load(word[_BLOCK], align=WORD, typ=POINTER)
        tasks, chunk = (build.load(word[i], align=WORD, typ=I64) for i in (_TASKS, _CHUNK))
        chunks = e.divide(e.sum(tasks, e.sum(chunk, -1)), chunk)[0]
        take, work, wait = (build.append_basic_block(name) for name in ("take", "work", "wait"))
        build.branch(take)
        build.position_at_end(take)
        taken = build.atomic_rmw("add", word[_TAKEN], e.constant(1), "monotonic")
        build.cbranch(build.icmp_signed("<", taken, chunks), work, wait)
        build.position_at_end(work)
        first = e.times(taken, chunk)
        e.call_function(function, block, first, e.least(e.sum(first, chunk), tasks))
        build.atomic_rmw("add", word[_DONE], e.constant(1), "release")
        build.branch(take)
        build.position_at_end(wait)
        done = word[_DONE]
        self._wait(e, lambda: build.icmp_signed(">=", build.load_atomic(done, "acquire", WORD, typ=I64), chunks))

    def _wait(self, e: Emitter, is_over: object) -> None:
        build = e.build
        check, rest, behind = (build.append_basic_block(name) for name in ("check", "rest", "behind"))
        before = build.block
        build.branch(check)
        build.position_at_end(check)
        turns = build.phi(I64)
        turns.add_incoming(e.constant(0), before)
        build.cbranch(is_over(), behind, rest)  # type: ignore[operator]
        build.position_at_end(rest)
        if e.host.is_x86:
            build.call(e.declare("llvm.x86.sse2.pause", ir.VoidType(), []), [])
        if self.can_yield:
            with build.if_then(build.icmp_signed(">", turns, e.constant(SPINS))):
                build.call(e.declare("sched_yield", I32, []), [])
        turns.add_incoming(e.sum(turns, 1), build.block)
        build.branch(check)
        build.position_at_end(behind)


class Program:
    """Jobs in order, ready for several threads."""

    def __init__(self, jobs: Sequence[Job]) -> None:
        self.jobs = [job for job in jobs if job.tasks]
        memory = np.zeros((len(self.jobs) + 2) * LINE, np.int64)
        start = -address_of(memory) % (LINE * WORD) // WORD
        lines = memory[start : start + (len(self.jobs) + 1) * LINE].reshape(-1, LINE)
        for line, job in zip(lines[1:], self.jobs, strict=True):
            line[: _CHUNK + 1] = job.address, address_of(job.block), job.tasks, job.chunk
        self._memory = memory
        self.address = address_of(lines)
        self.width = max((-(-job.tasks // job.chunk) for job in self.jobs), default=1)
        """Most threads that find something to do at the same time."""


class Crew:
    """The thread that calls ``run`` and ``threads - 1`` others, which wait for it as daemons."""

    def __init__(self, engine: Engine, threads: int) -> None:
        can_yield = hasattr(os, "sched_yield")
        self._open = FUNCTION(engine.address(_OpeningCode()))
        self._work = FUNCTION(engine.address(_WorkingCode(can_yield)))
        self._queues: list[SimpleQueue[Program | None]] = []
        self._helpers = threads - 1
        self._finalizer = weakref.finalize(self, _dismiss, self._queues)

    def program(self, jobs: Sequence[Job]) -> Callable[[], None]:
        """Return the call that runs jobs, in order, on all threads."""
        return partial(self.run, Program(jobs))

    def run(self, program: Program) -> None:
        """Run the jobs of a program; returns when all are done and nobody reads it any more."""
        count = len(program.jobs)
        self._open(program.address, count, 0)
        if program.width > 1 and self._helpers:
            if not self._queues:
                self._start()
            for queue in self._queues[: program.width - 1]:
                queue.put(program)
        self._work(program.address, count, 1)

    def _start(self) -> None:
        for number in range(self._helpers):
            queue: SimpleQueue[Program | None] = SimpleQueue()
            self._queues.append(queue)
            threading.Thread(target=_help, args=(queue, self._work), name=f"kernels-{number}", daemon=True).start()


def _help(queue: SimpleQueue[Program | None], work: object) -> None:
    while (program := queue.get()) is not None:
        work(program.address, len(program.jobs), 0)  # type: ignore[operator]


def _dismiss(queues: Sequence[SimpleQueue[Program | None]]) -> None:
    for queue in queues:
        queue.put(None)
