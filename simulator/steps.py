"""Steps: what an execution plan runs, one ready call after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ge.graph import TensorDesc
from simulator.kernels.registry import Array, Kernel

RunSteps = Callable[[Sequence["Step"]], None]
"""Runs steps in order: the executor's way to do it, which control flow uses for its bodies."""


@dataclass(frozen=True)
class Step:
    """One ready call. ``inputs`` and ``outputs`` are the views that ``call`` reads and writes; ``descs`` of outputs.

    Steps of call nodes have ``bodies``, and ``control`` to run them with; ``call`` runs them plainly. Steps of compiled
    kernels have ``jobs``, which several threads can share; ``call`` runs them on one.
    """

    node: str
    type: str
    kernel: Kernel
    inputs: tuple[Array | None, ...]
    outputs: tuple[Array | None, ...]
    call: Callable[[], None]
    control: Callable[[RunSteps], None] | None = None
    bodies: tuple[Sequence[Step], ...] = ()
    descs: tuple[TensorDesc, ...] = ()
    jobs: tuple[Any, ...] = ()
    unread: frozenset[int] = frozenset()
    """Numbers of the outputs that nobody reads."""


def run_plainly(steps: Sequence[Step]) -> None:
    """Run steps and those of their bodies without looking on."""
    for step in steps:
        step.call()


def all_steps(steps: Sequence[Step]) -> Iterator[Step]:
    """Iterate over steps; those of bodies come before the step that runs them."""
    for step in steps:
        for body in step.bodies:
            yield from all_steps(body)
        yield step
