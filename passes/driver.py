"""Runs passes over a graph: verifies, times and shows around them; passes know nothing of it."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import ClassVar, Protocol

from ge.errors import ReportedError
from ge.graph import Graph
from ge.session import CompileSession
from ge.verify import verify_after

logger = logging.getLogger(__name__)


class Pass(Protocol):
    """A graph transformation: a small class in its own file. ``name`` is its verb-object name in kebab case.

    ``run`` changes the graph in place (bodies of control flow included) and tells whether it changed anything.
    """

    name: ClassVar[str]

    def run(self, graph: Graph, session: CompileSession) -> bool: ...


Step = Pass | str
"""A pass, or the name of a stage: a point at which the graph may be dumped."""


@dataclass
class PassRecord:
    """What one run of a pass did."""

    name: str
    seconds: float
    changed: bool


@dataclass
class Driver:
    """Runs a list of passes in order. ``after_pass`` sees the graph after each; the session may want it verified."""

    session: CompileSession
    after_pass: Callable[[str, Graph], None] | None = None
    records: list[PassRecord] = field(default_factory=list)

    def run(self, graph: Graph, steps: Iterable[Step]) -> None:
        """Run all passes. A fault inside a pass is reported as E19999 with the pass's name."""
        for step in steps:
            if isinstance(step, str):
                self.session.dump(graph, step)
                continue
            start = time.perf_counter()
            try:
                changed = step.run(graph, self.session)
                if self.session.is_verifying:
                    verify_after(f"pass {step.name}", graph)
            except ReportedError:
                raise
            except Exception as fault:
                raise ReportedError("E19999", reason=f"pass {step.name}: {type(fault).__name__}: {fault}") from fault
            record = PassRecord(step.name, time.perf_counter() - start, changed)
            self.records.append(record)
            change = f"changed, {len(graph)} nodes now" if changed else "unchanged"
            logger.debug("pass %s: %.2f ms, %s", record.name, record.seconds * 1e3, change)
            if self.after_pass is not None:
                self.after_pass(step.name, graph)
