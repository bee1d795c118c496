"""Structural comparison of graphs: what a round trip must preserve."""

from __future__ import annotations

from typing import Any

import numpy as np

from ge.graph.graph import Graph
from ge.graph.node import Node, NodeOut
from ge.graph.tensor import Tensor


def first_difference(one: Graph, two: Graph) -> str | None:
    """Return the first thing in which two graphs differ, or ``None``."""
    if list(one.subgraphs) != list(two.subgraphs):
        return f"subgraphs: {list(one.subgraphs)} and {list(two.subgraphs)}"
    for a, b in zip(one.all_graphs(), two.all_graphs(), strict=True):
        found = _graph_difference(a, b)
        if found is not None:
            return f"graph {a.name}: {found}"
    return None


def _graph_difference(a: Graph, b: Graph) -> str | None:
    names = [n.name for n in a], [n.name for n in b]
    if names[0] != names[1]:
        return f"nodes: {names[0]} and {names[1]}"
    for field in ("name", "output_names"):
        if getattr(a, field) != getattr(b, field):
            return f"{field}: {getattr(a, field)} and {getattr(b, field)}"
    if [_end(o) for o in a.outputs] != [_end(o) for o in b.outputs]:
        return f"outputs: {a.outputs} and {b.outputs}"
    for one, two in zip(a, b, strict=True):
        found = _node_difference(one, two)
        if found is not None:
            return f"node {one.name}: {found}"
    return _attr_difference(a.attrs, b.attrs)


def _end(out: NodeOut | None) -> tuple[str, int] | None:
    return None if out is None else (out.node.name, out.index)


def _node_difference(a: Node, b: Node) -> str | None:
    views = [
        (
            node.type,
            [_end(s) for s in node.inputs],
            [n.name for n in node.control_inputs],
            node.subgraphs,
            node.output_descs,
            node.input_descs,
        )
        for node in (a, b)
    ]
    for field, x, y in zip(("type", "inputs", "control", "subgraphs", "outputs", "input descs"), *views, strict=True):
        if x != y:
            return f"{field}: {x} and {y}"
    return _attr_difference(a.attrs, b.attrs)


def _attr_difference(a: dict[str, Any], b: dict[str, Any]) -> str | None:
    if sorted(a) != sorted(b):
        return f"attributes: {sorted(a)} and {sorted(b)}"
    for name in a:
        if not _same_value(a[name], b[name]):
            return f"attribute {name}: {a[name]!r} and {b[name]!r}"
    return None


def _same_value(x: Any, y: Any) -> bool:
    if isinstance(x, Tensor) and isinstance(y, Tensor):
        return x.desc == y.desc and x.array.dtype == y.array.dtype and x.array.tobytes() == y.array.tobytes()
    if isinstance(x, list) and isinstance(y, list):
        return len(x) == len(y) and all(map(_same_value, x, y))
    if isinstance(x, float) and isinstance(y, float):
        return np.float64(x).tobytes() == np.float64(y).tobytes()
    return type(x) is type(y) and bool(x == y)
