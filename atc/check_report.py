"""``check_result.json``: what the check of a model found, node by node."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum

from ge.atomic_file import write_atomically
from ge.errors import ReportedError


class Cause(IntEnum):
    """Why a node fails, with the numbers that readers of the report know."""

    UNSUPPORTED_TYPE = 1
    BAD_PARAMETER = 2
    AMBIGUOUS_TYPE = 8
    DUPLICATE_NAME = 9


_CAUSES = {
    "E13010": Cause.UNSUPPORTED_TYPE,
    "E16002": Cause.UNSUPPORTED_TYPE,
    "E10501": Cause.UNSUPPORTED_TYPE,
    "E13009": Cause.DUPLICATE_NAME,
}


@dataclass(frozen=True)
class Finding:
    """One fault of one node."""

    name: str
    type: str
    cause: Cause
    message: str


def findings(error: ReportedError) -> list[Finding]:
    """Return the faults of nodes among ``error`` and those that follow it; none if it is not about nodes."""
    found = []
    for one in (error, *error.also):
        name, optype = (str(one.fields.get(field, "")) for field in ("opname", "optype"))
        is_about_option = str(one.fields.get("parameter", "")).startswith("--")
        if name and not is_about_option:
            found.append(Finding(name, optype, _CAUSES.get(one.code, Cause.BAD_PARAMETER), one.message))
    return found


def report_text(
    model: str, nodes: Iterable[tuple[str, str]], faults: Sequence[Finding], *, is_failed: bool = False
) -> str:
    """Return the report as JSON text; ``nodes`` are (name, type) of all nodes of ``model``.

    A fault belongs to every node of its name; faults of no node get entries of their own. ``is_failed`` says that
    the model fails even if no node does.
    """
    known = set()
    entries = []
    for name, optype in nodes:
        known.add(name)
        entries.append(_entry(name, optype, [fault for fault in faults if fault.name == name]))
    entries += [_entry(fault.name, fault.type, [fault]) for fault in faults if fault.name not in known]
    failed = sum(entry["result"] == "failed" for entry in entries)
    report = {
        "name": model,
        "result": "failed" if faults or is_failed else "success",
        "total": len(entries),
        "pass": len(entries) - failed,
        "fail": failed,
        "op": entries,
    }
    return json.dumps(report, indent=4, ensure_ascii=False) + "\n"


def write_report(
    path: str, model: str, nodes: Iterable[tuple[str, str]], faults: Sequence[Finding], *, is_failed: bool = False
) -> None:
    """Write the report to ``path``, whole or not at all; E13004 if that is impossible."""
    write_atomically(path, report_text(model, nodes, faults, is_failed=is_failed))


def _entry(name: str, optype: str, faults: Sequence[Finding]) -> dict[str, object]:
    entry: dict[str, object] = {"name": name, "type": optype, "result": "failed" if faults else "success"}
    if faults:
        entry["cause"] = [{"code": int(fault.cause), "message": fault.message} for fault in faults]
    return entry
