"""Runs cases in processes of their own: a crash or a hang is a failure of that case and of nothing else."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Iterable
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait

from tests.conformance.cases import Case

LIMIT = 30.0
"""Seconds that a case may take; the slowest takes less than a tenth."""
START_LIMIT = 120.0
"""Seconds in which a process must be ready."""

Judge = Callable[[Case], str]
_SPAWN = get_context("spawn")


class _Worker:
    def __init__(self, judge: Judge) -> None:
        self.connection, inner = _SPAWN.Pipe()
        self.process = _SPAWN.Process(target=_serve, args=(inner, judge), daemon=True)
        self.process.start()
        inner.close()
        self.case: Case | None = None
        self.is_ready = False
        self.deadline = time.monotonic() + START_LIMIT

    def begin(self, case: Case, limit: float) -> None:
        self.case = case
        self.deadline = time.monotonic() + limit
        self.connection.send(case)

    def stop(self, patience: float = 0.0) -> int | None:
        """End the process, by force after ``patience`` seconds; return its exit status."""
        self.process.join(patience)
        self.process.kill()
        self.process.join()
        self.connection.close()
        return self.process.exitcode


def _serve(connection: Connection, judge: Judge) -> None:
    # a warning is no failure, and this process is the worker's own
    logging.getLogger("atc").setLevel(logging.ERROR)
    connection.send("")
    while True:
        try:
            case = connection.recv()
        except EOFError:
            return
        connection.send(judge(case))


def run(cases: Iterable[Case], judge: Judge, processes: int = 2, limit: float = LIMIT) -> dict[str, str]:
    """Return what ``judge`` (importable by name) says of each case: ``""`` for a pass, otherwise the failure."""
    waiting = deque(cases)
    verdicts: dict[str, str] = {}
    workers = [_Worker(judge) for _ in range(min(processes, max(len(waiting), 1)))]
    try:
        while waiting or any(worker.case for worker in workers):
            timeout = max(0.0, min(worker.deadline for worker in workers if _is_due(worker)) - time.monotonic())
            ready = wait([worker.connection for worker in workers], timeout)
            for i, worker in enumerate(workers):
                if worker.connection in ready or (_is_due(worker) and time.monotonic() > worker.deadline):
                    verdict = _hear(worker, worker.connection in ready, limit)
                    if worker.case is not None:
                        verdicts[worker.case.name] = verdict
                    worker.case = None
                    if worker.process.exitcode is not None:
                        workers[i] = worker = _Worker(judge)
                if worker.is_ready and worker.case is None and waiting:
                    worker.begin(waiting.popleft(), limit)
    finally:
        for worker in workers:
            worker.stop()
    return verdicts


def _is_due(worker: _Worker) -> bool:
    return worker.case is not None or not worker.is_ready


def _hear(worker: _Worker, is_talking: bool, limit: float) -> str:
    """Take what a worker says; end one that says nothing. A worker that never gets ready is a fault of the run."""
    if is_talking:
        try:
            verdict: str = worker.connection.recv()
        except (EOFError, ConnectionResetError):
            verdict = f"crash: the process ended with status {worker.stop(patience=5.0)}"
        else:
            worker.is_ready = True
            return verdict
    else:
        worker.stop()
        verdict = f"hang: no result after {limit:g} s"
    if not worker.is_ready:
        raise RuntimeError(f"a process for conformance cases did not start: {verdict}")
    return verdict
