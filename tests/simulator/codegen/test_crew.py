"""Jobs on several threads: one job after the other, all tasks done, and nobody waits for threads that are late."""

from __future__ import annotations

import threading
import time
from itertools import pairwise
from queue import SimpleQueue

import numpy as np
import pytest

from simulator.codegen.crew import Crew, Program
from simulator.codegen.elementwise import ElementwiseCode, Operand
from simulator.codegen.elementwise_kernels import Loops
from simulator.codegen.jobs import Job, address_of
from tests.simulator.codegen.compilers import compiler

SIZE = 1_000_000


def chain(arrays: list[np.ndarray], formula: str = "adds", number: float = 1) -> list[Job]:
    """Return jobs that each compute an array from the one before."""
    code = ElementwiseCode(formula, (Operand("f32", False),), "f32", 1)
    address = compiler().engine.address(code)
    loops = Loops.of(arrays[0].shape, [arrays[0].shape])
    assert loops is not None
    places = [address_of(array) for array in arrays]
    return [loops.job(address, list(pair), [4, 4], (number,)) for pair in pairwise(places)]


@pytest.mark.parametrize("threads", [1, 2, 3, 5])
def test_jobs_follow_each_other(threads: int) -> None:
    arrays = [np.zeros(SIZE, np.float32) for _ in range(6)]
    crew = Crew(compiler().engine, threads)
    call = crew.program(chain(arrays))
    for turn in range(20):
        arrays[0][:] = turn
        call()
        assert [(float(a.min()), float(a.max())) for a in arrays] == [(turn + i, turn + i) for i in range(6)]


def test_a_thread_that_never_comes_delays_nobody() -> None:
    arrays = [np.zeros(SIZE, np.float32) for _ in range(3)]
    crew = Crew(compiler().engine, 2)
    crew._queues.append(SimpleQueue())
    crew.program(chain(arrays))()
    assert (arrays[2] == 2).all()


def test_a_thread_that_comes_late_finds_nothing_to_do() -> None:
    arrays = [np.zeros(SIZE, np.float32) for _ in range(3)]
    crew = Crew(compiler().engine, 1)
    program = Program(chain(arrays))
    crew.run(program)
    arrays[1][:] = arrays[2][:] = -1
    crew._work(program.address, len(program.jobs), 0)
    assert (arrays[1] == -1).all()


def test_threads_end_with_their_crew() -> None:
    before = threading.active_count()
    crew = Crew(compiler().engine, 3)
    arrays = [np.zeros(SIZE, np.float32) for _ in range(2)]
    crew.program(chain(arrays))()
    assert threading.active_count() == before + 2
    del crew
    end = time.monotonic() + 10
    while threading.active_count() > before and time.monotonic() < end:
        time.sleep(0.01)
    assert threading.active_count() == before


def test_small_programs_stay_on_one_thread() -> None:
    arrays = [np.zeros(100, np.float32) for _ in range(2)]
    assert Program(chain(arrays)).width == 1
