"""Jobs: compiled functions bound to memory, and kernels made of them."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from simulator.kernels.registry import Array, Inputs, Kernel, Outputs

FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
MIN_CHUNK = 20_000
"""Vector operations that are worth handing to another thread: some 10 microseconds."""
MAX_CHUNKS = 32


@dataclass(frozen=True)
class Job:
    """Tasks ``0`` to ``tasks`` of the function at ``address``. ``block`` holds its parameters.

    ``work`` is about the number of vector operations of all tasks. Tasks may run at the same time, in any order;
    their results do not depend on it.
    """

    address: int
    block: Array
    tasks: int
    work: int

    @property
    def chunk(self) -> int:
        """Tasks that a thread takes at a time."""
        chunks = min(max(self.work // MIN_CHUNK, 1), MAX_CHUNKS, max(self.tasks, 1))
        return -(-self.tasks // chunks)


def address_of(array: Array) -> int:
    """Return where an array begins."""
    return int(array.__array_interface__["data"][0])


def job(address: int, words: Sequence[int], tasks: int, work: int) -> Job:
    """Bind a function to the words of its block."""
    return Job(address, np.array(words, np.int64), tasks, work)


Bind = Callable[[Inputs, Outputs, Array], Sequence[Job]]
"""Returns the jobs, in order, that a kernel is made of, for arrays that stay where they are."""


def run_jobs(jobs: Sequence[Job]) -> None:
    """Run jobs on this thread."""
    for found in jobs:
        FUNCTION(found.address)(address_of(found.block), 0, found.tasks)


def compiled_kernel(name: str, bind: Bind, scratch_bytes: int = 0, *, is_in_place_safe: bool = False) -> Kernel:
    """Return a kernel of jobs."""

    def run(inputs: Inputs, outputs: Outputs, scratch: Array) -> None:
        run_jobs(bind(inputs, outputs, scratch))

    return Kernel(f"llvm-{name}", run, scratch_bytes, is_in_place_safe=is_in_place_safe, bind=bind)
