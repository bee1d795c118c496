"""What new nodes take over from those that they replace: origins, names of passes, attributes of scheduling."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ge.graph.node import Node

ORIGIN_NAMES, ORIGIN_TYPES = "_datadump_original_op_names", "_datadump_original_op_types"
PASS_NAMES = "pass_name"

AGREEING_ATTRS = (
    "_user_stream_label",
    "_super_kernel_scope",
    "_super_kernel_options",
    "_op_aicore_num",
    "_op_vectorcore_num",
    "_deterministic",
    "_deterministic_level",
)
"""Attributes of which fused nodes must not have different values."""

_FIRST_FOUND = (
    *AGREEING_ATTRS,
    "_op_compile_strategy",
    "_keep_dtype",
    "_op_debug_compile",
    "_parallel_group_id",
    "_op_impl_mode_enum",
    "_op_custom_impl_mode_enum",
)
_ANY_TRUE = ("_recompute", "_optimizer", "_backward")
_AGREEING = frozenset(AGREEING_ATTRS)
_INHERITED = frozenset((*_FIRST_FOUND, *_ANY_TRUE))


def conflict(nodes: Sequence[Node]) -> str:
    """Return in which attribute ``nodes`` contradict each other, with both values; empty if they do not."""
    if all(_AGREEING.isdisjoint(node.attrs) for node in nodes):
        return ""
    for name in AGREEING_ATTRS:
        first: Node | None = None
        for node in nodes:
            value = node.attrs.get(name)
            if value is None:
                continue
            if first is None:
                first = node
            elif value != first.attrs[name]:
                values = f"[{first.attrs[name]}] on node {first.name} and [{value}] on node {node.name}"
                return f"Fusion is not supported because {name} differs: {values}"
    return ""


def inherit(old: Sequence[Node], new: Sequence[Node]) -> None:
    """Hand attributes of scheduling on; values that a new node has stay."""
    if all(_INHERITED.isdisjoint(node.attrs) for node in old):
        return
    found: dict[str, Any] = {}
    for name in _FIRST_FOUND:
        value = next((node.attrs[name] for node in old if node.attrs.get(name)), None)
        if value is not None:
            found[name] = value
    found.update({name: True for name in _ANY_TRUE if any(node.attrs.get(name) for node in old)})
    for node in new:
        for name, value in found.items():
            if node.attrs.get(name) is None:
                node.attrs[name] = value


def record_origins(old: Sequence[Node], new: Sequence[Node]) -> None:
    """Note on new nodes which nodes of the model they come from: the recorded origins of ``old``, or these."""
    names: dict[str, None] = {}
    types: list[str] = []
    for node in old:
        for name, type_ in _origins_of(node):
            if name not in names:
                names[name] = None
                types.append(type_)
    for node in new:
        node.attrs[ORIGIN_NAMES] = list(names)
        node.attrs[ORIGIN_TYPES] = list(types)


def _origins_of(node: Node) -> list[tuple[str, str]]:
    names, types = node.attrs.get(ORIGIN_NAMES), node.attrs.get(ORIGIN_TYPES)
    if names is None:
        return [(node.name, node.type)]
    if types is None or len(types) != len(names):
        return [(name, node.type) for name in names]
    return list(zip(names, types, strict=True))


def record_pass(old: Sequence[Node], new: Sequence[Node], pass_name: str) -> None:
    """Note on new nodes which passes made them: those that made ``old``, then this one."""
    earlier = dict.fromkeys(name for node in old for name in node.attrs.get(PASS_NAMES, []) if name != pass_name)
    for node in new:
        node.attrs[PASS_NAMES] = [*earlier, pass_name]
