"""Refusing a model: all faults of its nodes at once, unsupported operators in a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ge.errors import ReportedError

UNSUPPORTED = frozenset({"E13010", "E10501"})
"""Codes that say an operator has no mapping: of ONNX, of TensorFlow."""


class CheckedNode(NamedTuple):
    """One node of a model as a check report lists it; ``causes`` is empty when it passed."""

    name: str
    type: str
    causes: tuple[ReportedError, ...]


def refuse(nodes: Sequence[CheckedNode]) -> None:
    """Raise the first cause, all others in ``also``; unsupported operators come with a table by type."""
    causes = [cause for node in nodes for cause in node.causes]
    if not causes:
        return
    table = _table([cause for cause in causes if cause.code in UNSUPPORTED])
    if table:
        last = max(i for i, cause in enumerate(causes) if cause.code in UNSUPPORTED)
        for i, cause in enumerate(causes):
            if cause.code in UNSUPPORTED:
                cause.solution = f"{cause.solution}\n{table}" if i == last else ""
    first, *others = causes
    first.also = tuple(others)
    raise first


def _table(unsupported: Sequence[ReportedError]) -> str:
    groups: dict[str, list[str]] = {}
    for cause in unsupported:
        groups.setdefault(str(cause.fields["optype"]), []).append(str(cause.fields["opname"]))
    if not groups:
        return ""
    width = max(map(len, groups))
    rows = [f"{optype:<{width}}  {len(names):>5}  {names[0]}" for optype, names in groups.items()]
    head = f"{'unsupported type':<{width}}  count  first node"
    return "\n".join(f"        {line}" for line in [head, *rows])
