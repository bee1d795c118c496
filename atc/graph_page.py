"""One page for the browser: all nodes, a search, what they hold before and after. It needs nothing but itself."""

from __future__ import annotations

import html
import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

from atc.graph_changes import Change, Comparison, GraphPair, NodePair
from atc.graph_file import GraphFile
from atc.graph_report import not_compared, summary_lines
from atc.graph_view import GraphView, NodeView

TEMPLATE = Path(__file__).with_name("graph_page.html")
_Key = tuple[Change, str]
LONGEST_VALUE = 2000
"""Characters of a value that the page holds."""

Row = list[Any]
"""Label, value, and of a pair the value before and 1 where they differ."""
Fact = tuple[Change, str, str]
"""What a node holds: the kind of change that it would be, label, text."""


def show_page(file: GraphFile, graphs: Sequence[GraphView]) -> str:
    """Return the page of one graph."""
    summary = [line.text for line in summary_lines(file, graphs)]
    shown = [
        {
            "name": graph.name,
            "facts": summary if graph is graphs[0] else [],
            "nodes": [
                [node.name, node.name, node.type, [], [[label, text] for _, label, text in _facts(node)]]
                for node in graph.nodes.values()
            ],
        }
        for graph in graphs
    ]
    return _page(file.path, {"kinds": [], "files": [file.kind.value], "graphs": shown})


def comparison_page(comparison: Comparison) -> str:
    """Return the page of two graphs and what has changed."""
    before, after = comparison.before, comparison.after
    files = [f"before: {before.path} ({before.kind.value})", f"after: {after.path} ({after.kind.value})"]
    files += not_compared(comparison)
    content = {
        "kinds": [change.value for change in Change],
        "files": files,
        "graphs": [_graph(pair) for pair in comparison.graphs],
    }
    return _page(f"{Path(before.path).name} → {Path(after.path).name}", content)


def _page(title: str, content: Any) -> str:
    # in a script element only "<" could end the data
    data = json.dumps(content, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    page = TEMPLATE.read_text(encoding="utf-8").replace("<!--title-->", html.escape(title))
    start, end = page.split("<!--data-->")
    return f"{start}{data}{end}".encode(errors="backslashreplace").decode()


def _graph(pair: GraphPair) -> dict[str, Any]:
    return {
        "name": pair.name,
        "facts": [[d.what, _cut(d.before), _cut(d.after)] for d in pair.differences],
        "nodes": [_pair(node) for node in pair.nodes],
    }


def _pair(pair: NodePair) -> list[Any]:
    before, after, node = pair.before, pair.after, pair.node
    if before is None:
        rows: list[Row] = [[label, text, ""] for _, label, text in _facts(node)]
    elif after is None:
        rows = [[label, "", text] for _, label, text in _facts(node)]
    else:
        rows = list(_pair_rows(pair, before, after))
    changes = [change.value for change in pair.changes]
    return [node.name, node.name if before is None else before.name, node.type, changes, rows]


def _pair_rows(pair: NodePair, before: NodeView, after: NodeView) -> Iterator[Row]:
    """Yield the rows of a node with both values; which of them differ was decided in the comparison."""
    old, new = ({(change, label): text for change, label, text in _facts(node)} for node in (before, after))
    for change, label in _merged(list(old), list(new)):
        was, is_now = old.get((change, label), ""), new.get((change, label), "")
        places = [d.what for d in pair.differences if d.change is change]
        if any(place == label or place.startswith(f"{label} ") for place in places):
            yield [label, is_now, was, 1]
        elif was == is_now:
            yield [label, is_now]
        else:  # the same under new names
            yield [label, is_now, was]


def _merged(one: Sequence[_Key], other: Sequence[_Key]) -> list[_Key]:
    """Return both sequences as one, each key once, near its place in both."""
    pairs = zip_longest(one, other)
    return list(dict.fromkeys(key for pair in pairs for key in pair if key is not None))


def _facts(node: NodeView) -> Iterator[Fact]:
    yield Change.RENAMED, "name", node.name
    yield Change.RETYPED, "type", node.type
    for slot, source in enumerate(node.inputs):
        yield Change.REWIRED, f"input {slot}", source
    if node.controls:
        yield Change.REWIRED, "runs after", ", ".join(node.controls)
    for index, tensor in enumerate(node.outputs):
        further = "".join(f"\n{name}: {text}" for name, text in tensor.attrs)
        yield Change.TENSORS, f"output {index}", _cut(tensor.text + further)
    for index, body in enumerate(node.bodies):
        yield Change.ATTRIBUTES, f"body {index}", body
    if node.constant:
        yield Change.ATTRIBUTES, "value", _cut(node.constant)
    for name, text in _sorted(node.attrs.items()):
        yield Change.ATTRIBUTES, name, _cut(text)


def _sorted(attrs: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return attributes by name, notes (with an underscore in front) last."""
    return sorted(attrs, key=lambda item: (item[0].startswith("_"), item[0]))


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]}... ({len(text):,} characters)"
