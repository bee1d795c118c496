"""One compile: options, environment, messages and counters that must not leak into the next one."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ge.ops import OperatorSet
from ge.passes.registry import PassRegistry
from ge.passes.statistics import FusionStatistics
from ge.plan import Plan

if TYPE_CHECKING:
    from ge.dump.dumper import GraphDumper
    from ge.graph import Graph
    from ge.options import CompileOptions, Environment

logger = logging.getLogger("atc")


@dataclass
class CompileSession:
    """State of one compile. ``emit`` shows a line to the user at once (the command line prints it).

    ``plan`` is what the build passes made of the graph; empty before them. ``passes`` are the custom passes of this
    compile, ``fusion`` counts what they and the built-in ones do, ``is_rewritten`` says that they did something.
    ``operators`` are its custom operators, known to everything that runs inside ``using(session.operators)``.
    With ``is_verifying`` each pass, custom pass and built-in fusion must leave a legal graph: a fault of the compiler
    then has the name of its pass.
    ``watch`` is put around everything that a user's file does, with an error code and the name of the pass or the
    file; the command line watches the clock there.
    """

    options: CompileOptions
    environment: Environment
    emit: Callable[[str], None] = lambda line: None
    warnings: list[str] = field(default_factory=list)
    plan: Plan = field(default_factory=Plan)
    dumper: GraphDumper | None = None
    passes: PassRegistry = field(default_factory=PassRegistry)
    operators: OperatorSet = field(default_factory=OperatorSet)
    fusion: FusionStatistics = field(default_factory=FusionStatistics)
    is_rewritten: bool = False
    is_verifying: bool = False
    watch: Callable[[str, str], AbstractContextManager[object]] = lambda code, name: nullcontext()
    _warned: set[str] = field(default_factory=set)
    _counters: dict[str, int] = field(default_factory=dict)

    def warn(self, text: str) -> None:
        """Record a warning and show it as one ``WARNING`` line (each text once)."""
        if text not in self._warned:
            self._warned.add(text)
            self.warnings.append(text)
            self.emit(f"WARNING: {text}")

    def dump(self, graph: Graph, stage: str) -> None:
        """Dump ``graph`` as it is at ``stage``, if the environment asks for it."""
        if self.dumper is None:
            return
        self.dumper.dump(graph, stage, self.plan if self.plan.graphs else None)
        for text in self.dumper.warnings:
            self.warn(text)

    def info(self, text: str) -> None:
        """Log at info level."""
        logger.info(text)

    def count(self, name: str) -> int:
        """Return 0, 1, 2, ... per counter name."""
        value = self._counters.get(name, 0)
        self._counters[name] = value + 1
        return value
