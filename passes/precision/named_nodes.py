"""Nodes that files of the precision options name: by their names, by those they had in the model, by type."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator

from ge.graph import Graph, Node
from ge.ops.registry import lookup, registered_types
from ge.precision_files import Customized, CustomTypes, KeptNodes, MixListChanges
from ge.session import CompileSession

MAX_WARNINGS = 10
"""Most unknown names that are mentioned per option."""


def _names_of(node: Node) -> Iterator[str]:
    yield node.name
    yield from node.attrs.get("_datadump_original_op_names") or ()


class KeptByName:
    """The nodes of ``--keep_dtype``."""

    def __init__(self, wanted: KeptNodes, session: CompileSession) -> None:
        self._names, self._types = frozenset(wanted.names), frozenset(wanted.types)
        self._wanted, self._session = wanted, session

    def has(self, node: Node) -> bool:
        """Tell whether ``node`` keeps its types."""
        if not (self._names or self._types):
            return False
        return node.type in self._types or any(name in self._names for name in _names_of(node))

    def warn_unknown(self, root: Graph) -> None:
        """Warn about names and types that the model does not have."""
        _warn_unknown("--keep_dtype", self._wanted.names, self._wanted.types, root, self._session)


class CustomizedNodes:
    """The nodes of ``--customize_dtypes``."""

    def __init__(self, wanted: Customized, session: CompileSession) -> None:
        self._wanted, self._session = wanted, session

    def of(self, node: Node) -> CustomTypes | None:
        """Return the types wanted for ``node``: by its name, else by its type."""
        if not (self._wanted.by_name or self._wanted.by_type):
            return None
        found = next((self._wanted.by_name[name] for name in _names_of(node) if name in self._wanted.by_name), None)
        return self._wanted.by_type.get(node.type) if found is None else found

    def warn_unknown(self, root: Graph) -> None:
        """Warn about names and types that the model does not have."""
        _warn_unknown("--customize_dtypes", self._wanted.by_name, self._wanted.by_type, root, self._session)


def _warn_unknown(
    option: str, names: Iterable[str], types: Iterable[str], root: Graph, session: CompileSession
) -> None:
    wanted = [*names, *types]
    if not wanted:
        return
    nodes = [node for part in root.all_graphs() for node in part]
    known_names = dict.fromkeys(name for node in nodes for name in _names_of(node))
    known_types = dict.fromkeys(node.type for node in nodes)
    unknown = [(f"node {name}", name, known_names) for name in names if name not in known_names]
    unknown += [(f"operator type {name}", name, known_types) for name in types if name not in known_types]
    _warn(option, "the model has no", unknown, session)


def warn_unregistered(changes: MixListChanges, session: CompileSession) -> None:
    """Warn about types in the file of ``--modify_mixlist`` that no operator has. One file may serve many models, so a
    type may well be none of this model's."""
    named = changes.white_added | changes.white_removed | changes.black_added | changes.black_removed
    known = dict.fromkeys(registered_types())
    unknown = [(f"operator type {name}", name, known) for name in sorted(named) if lookup(name) is None]
    _warn("--modify_mixlist", "there is no", unknown, session)


def _warn(option: str, lacking: str, unknown: list[tuple[str, str, dict[str, None]]], session: CompileSession) -> None:
    for what, text, known in unknown[:MAX_WARNINGS]:
        near = difflib.get_close_matches(text, known, n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        session.warn(f"{option}: {lacking} {what}{hint}")
    if len(unknown) > MAX_WARNINGS:
        session.warn(f"{option}: {len(unknown) - MAX_WARNINGS} more names are unknown")
