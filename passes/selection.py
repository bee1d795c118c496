"""Reading a list of passes, ``infer-shape,fold-constants{limit=8192}``, for the developer tool."""

from __future__ import annotations

import dataclasses
import difflib
import re
from typing import Any

from ge.errors import ReportedError
from passes.driver import Pass
from passes.pipeline import named_passes

_ITEM = re.compile(r"\s*([a-z][a-z0-9-]*)\s*(?:\{([^{}]*)\})?\s*(?:,|$)")


def select_passes(text: str) -> list[Pass]:
    """Build the passes named in ``text``; options in braces are fields of the pass. Raises E10001."""
    selected: list[Pass] = []
    at = 0
    while at < len(text):
        item = _ITEM.match(text, at)
        if item is None:
            raise _bad(text[at:], "it is not of the form name or name{option=value,...}")
        selected.append(_build(item[1], item[2] or ""))
        at = item.end()
    return selected


def _build(name: str, options: str) -> Pass:
    known = named_passes()
    if name not in known:
        near = difflib.get_close_matches(name, known, 3) or sorted(known)
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
    return ReportedError("E10001", value=value, parameter="--passes", reason=reason)
