"""Reading a list of passes, ``infer-shape,fold-constants{limit=8192},MyPass``, for the developer tool."""

from __future__ import annotations

import dataclasses
import difflib
import inspect
import re
from typing import Any, ClassVar

from ge.errors import ReportedError
from ge.graph import Graph
from ge.passes.base import DecomposePass, FusionBasePass, PatternFusionPass
from ge.passes.engine import PassFailure, patterns_of
from ge.passes.registry import PassDescriptor, PassRegistry
from ge.session import CompileSession
from ge.text import print_graph
from passes.custom.stage import run_custom_pass
from passes.driver import Pass
from passes.pipeline import named_passes
from passes.prepare.add_net_output import AddNetOutput

SOLUTION = "'ge-opt --list' lists the passes, 'ge-opt --explain NAME' tells what one does."
_ITEM = re.compile(r"\s*([^\s,{}]+)\s*(?:\{([^{}]*)\})?\s*(?:,|$)")


def custom_pass(descriptor: PassDescriptor) -> Pass:
    """Return a custom pass under its own name, whatever stage it is registered for. It is checked as there.

    A graph without NetOutput gets one first: passes follow results through it.
    """

    class CustomPass:
        name: ClassVar[str] = descriptor.pass_name

        def run(self, graph: Graph, session: CompileSession) -> bool:
            AddNetOutput().run(graph, session)
            return run_custom_pass(descriptor, graph, session)

    return CustomPass()


def explanation_of(descriptor: PassDescriptor) -> list[str]:
    """Return paragraphs about a custom pass: kind and stage, what its author says, and what it looks for."""
    cls = descriptor.cls
    base = next(base for base in (PatternFusionPass, DecomposePass, FusionBasePass) if issubclass(cls, base))
    told = [f"custom pass {descriptor.pass_name}: a {base.__name__}, stage {descriptor.stage.value}"]
    told += [inspect.cleandoc(doc) for doc in (cls.__dict__.get("__doc__"),) if isinstance(doc, str) and doc.strip()]
    if issubclass(cls, DecomposePass):
        told.append(f"It looks for nodes of the types {', '.join(cls.op_types or ())}.")
    elif issubclass(cls, PatternFusionPass):
        try:
            patterns = patterns_of(cls)
        except PassFailure as failure:
            raise ReportedError(
                "E13028", passname=descriptor.pass_name, retcode=failure.retcode, reason=failure.reason
            ) from failure
        told += [f"It looks for:\n{print_graph(pattern.graph)}" for pattern in patterns if pattern.is_valid()]
    return told


def select_passes(text: str, custom: PassRegistry | None = None) -> list[Pass]:
    """Build the passes named in ``text``; options in braces are fields of the pass. Raises E10001.

    ``custom`` are loaded passes of users, which are named as registered; without ``text`` all of them are selected.
    """
    registry = PassRegistry() if custom is None else custom
    if not text.strip():
        return [custom_pass(descriptor) for descriptor in registry]
    selected: list[Pass] = []
    at = 0
    while at < len(text):
        item = _ITEM.match(text, at)
        if item is None:
            raise _bad(text[at:], "it is not of the form name or name{option=value,...}")
        descriptor = registry.by_name(item[1])
        selected.append(_build(item[1], item[2] or "", registry) if descriptor is None else custom_pass(descriptor))
        at = item.end()
    return selected


def _build(name: str, options: str, custom: PassRegistry) -> Pass:
    known = named_passes()
    if name not in known:
        names = [*known, *(descriptor.pass_name for descriptor in custom)]
        near = difflib.get_close_matches(name, names, 3) or sorted(names)
        raise _bad(name, f"there is no pass of that name; near or known: {', '.join(near)}")
    kind = known[name]
    fields = {f.name: f for f in dataclasses.fields(kind)} if dataclasses.is_dataclass(kind) else {}
    values: dict[str, Any] = {}
    for part in filter(None, (p.strip() for p in options.split(","))):
        key, _, value = part.partition("=")
        if key not in fields or not re.fullmatch(r"\d{1,18}", value):
            raise _bad(part, f"pass {name} takes whole numbers for {', '.join(fields) or 'no options'}")
        values[key] = int(value)
    built: Pass = kind(**values)
    return built


def _bad(value: str, reason: str) -> ReportedError:
    return ReportedError("E10001", value=value, parameter="--passes", reason=reason, solution=SOLUTION)
