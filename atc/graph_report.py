"""What ``atc graph`` says on the screen: lines of text, each with the colour that it has on a terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from atc.graph_changes import Basis, Change, Comparison, Difference, GraphPair, NodePair
from atc.graph_file import GraphFile, Kind
from atc.graph_view import GraphView, NodeView
from ge.dump.settings import Detail

LISTED_TYPES = 10
"""Operator types of one section that are shown without ``--all``."""
LISTED_NODES = 3
"""Nodes of one type in a section that are shown without ``--all``."""
LISTED_DIFFERENCES = 6
"""Differences of one node that are shown without ``--all``."""
SHOWN_TEXT = 60
"""Longest value that is shown whole."""


@dataclass(frozen=True)
class Line:
    """A line and its colour (a style of rich)."""

    text: str
    style: str = ""


HEADING = "bold"
_STYLES = {Change.REMOVED: "red", Change.ADDED: "green"}


# -- one graph -----------------------------------------------------------------------------------------------------
def summary_lines(file: GraphFile, graphs: Sequence[GraphView]) -> list[Line]:
    """Say what a file holds: inputs, outputs, operators, element types, formats, constants, bodies."""
    root, *bodies = graphs
    nodes = [node for graph in graphs for node in graph.nodes.values()]
    lines = [Line(f"{file.path}: {_described(file)}", HEADING)]
    lines.append(Line(f"graph {root.name}: {_counted(len(root.nodes), 'node')}" + _bodies_counted(bodies)))
    lines += _table("inputs", [(node.name, _first_tensor(node)) for node in root.data_nodes])
    lines += _table("outputs", list(_results(root, file.kind)))
    lines += _histogram("operators", Counter(node.type for node in nodes))
    tensors = [tensor for node in nodes for tensor in node.outputs]
    lines += _histogram("element types", Counter(tensor.dtype for tensor in tensors))
    lines += _histogram("formats", Counter(tensor.format for tensor in tensors))
    stored_otherwise = Counter(
        f"{t.origin_format} as {t.format}" for t in tensors if (t.shape, t.format) != (t.origin_shape, t.origin_format)
    )
    lines += _histogram("stored in another form than the model's", stored_otherwise)
    sizes = [node.constant_bytes for node in nodes if node.constant is not None]
    if sizes:
        total = "size unknown" if file.detail is Detail.LINKS_ONLY else f"{sum(sizes):,} bytes{_in_units(sum(sizes))}"
        lines += _table("constants", [(str(len(sizes)), total)])
    callers = {body: node for node in nodes for body in node.bodies}
    lines += _table("bodies", [(body.name, _body_text(body, callers.get(body.name))) for body in bodies])
    return lines


def _described(file: GraphFile) -> str:
    missing = {
        Detail.FULL: "",
        Detail.WITHOUT_WEIGHTS: ", without texts and constants",
        Detail.LINKS_ONLY: ", links only",
    }
    return f"{file.kind.value}{missing[file.detail]}"


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _bodies_counted(bodies: Sequence[GraphView]) -> str:
    if not bodies:
        return ""
    return f", {_counted(sum(len(body.nodes) for body in bodies), 'node')} in {len(bodies)} bodies"


def _first_tensor(node: NodeView) -> str:
    return node.outputs[0].text if node.outputs else "?"


def _results(graph: GraphView, kind: Kind) -> Iterator[tuple[str, str]]:
    for index, source in enumerate(graph.results):
        tensor, producer = graph.tensor(source), graph.nodes.get(source.rpartition(":")[0])
        if kind is Kind.GE_ONNX and not graph.has_net_output and producer is not None and len(producer.outputs) > 1:
            yield f"{producer.name}:?", "?"  # such a dump tells the node only
            continue
        name = graph.result_names[index] if graph.result_names else ""
        yield source, ("?" if tensor is None else tensor.text) + (f"  {name}" if name else "")


def _body_text(body: GraphView, caller: NodeView | None) -> str:
    called = "" if caller is None else f", called by {caller.name} ({caller.type})"
    return _counted(len(body.nodes), "node") + called


def _in_units(size: int) -> str:
    for unit, scale in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size >= scale:
            return f" ({size / scale:.1f} {unit})"
    return ""


def _table(title: str, rows: Sequence[tuple[str, str]]) -> list[Line]:
    if not rows:
        return []
    width = min(max(len(name) for name, _ in rows), SHOWN_TEXT)
    return [Line(title, HEADING), *(Line(f"  {_printable(name):{width}}  {text}".rstrip()) for name, text in rows)]


def _histogram(title: str, counts: Counter[str]) -> list[Line]:
    if not counts:
        return []
    width = len(f"{max(counts.values()):,}")
    rows = [Line(f"  {count:{width},}  {_printable(name)}") for name, count in _by_count(counts)]
    return [Line(title, HEADING), *rows]


def _by_count(counts: Counter[str]) -> list[tuple[str, int]]:
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


# -- two graphs ----------------------------------------------------------------------------------------------------
def comparison_lines(comparison: Comparison, *, show_all: bool = False) -> list[Line]:
    """Say what has changed: first how much of what, then the nodes by kind of change and type."""
    lines = [
        Line(f"--- {comparison.before.path}: {_described(comparison.before)}", "red"),
        Line(f"+++ {comparison.after.path}: {_described(comparison.after)}", "green"),
    ]
    lines += [Line(text, "yellow") for text in not_compared(comparison)]
    if comparison.is_equal:
        count = sum(len(pair.nodes) for pair in comparison.graphs)
        return [*lines, Line(f"no difference in {_counted(count, 'node')}")]
    lines += _overview(comparison)
    several = len(comparison.graphs) > 1
    for pair in comparison.graphs:
        sections = list(_sections(pair, show_all))
        if sections:
            lines += [Line(""), Line(f"graph {pair.name}", HEADING)] if several else []
            lines += sections
    return lines


def not_compared(comparison: Comparison) -> list[str]:
    """Say what could not be compared."""
    texts = [comparison.basis.value] if comparison.basis.value else []
    count = comparison.unknown_constants
    if count and comparison.basis in (Basis.EVERYTHING, Basis.NO_BODIES):
        texts.append(f"not compared: the data of {_counted(count, 'constant')}, which one of the files does not hold")
    return texts


def _overview(comparison: Comparison) -> list[Line]:
    nodes = [node for pair in comparison.graphs for node in pair.nodes]
    lines = [Line(""), Line("summary", HEADING)]
    rows = [("same", sum(not node.changes for node in nodes), "", "")]
    for change in Change:
        found = [node for node in nodes if change in node.changes]
        if found:
            rows.append((change.value, len(found), _kinds_of(change, found), _STYLES.get(change, "")))
    changed_graphs = [difference for pair in comparison.graphs for difference in pair.differences]
    if changed_graphs:
        rows.append(("of the graphs", len(changed_graphs), "", ""))
    width = max(len(name) for name, *_ in rows)
    digits = max(len(f"{count:,}") for _, count, *_ in rows)
    return lines + [Line(f"  {n:{width}}  {c:{digits},}  {kinds}".rstrip(), style) for n, c, kinds, style in rows]


def _kinds_of(change: Change, nodes: Sequence[NodePair]) -> str:
    """Say which types were concerned, or, of tensors and attributes, what changed into what."""
    if change is Change.TENSORS:
        counts = Counter(_kind_of_tensor_change(d) for node in nodes for d in _of(node, change))
    elif change is Change.RETYPED:
        counts = Counter(f"{d.before} -> {d.after}" for node in nodes for d in _of(node, change))
    elif change is Change.ATTRIBUTES:
        counts = Counter(d.what for node in nodes for d in _of(node, change))
    else:
        counts = Counter(node.node.type for node in nodes)
    shown = _by_count(counts)
    texts = [_printable(f"{name} {count:,}" if count > 1 else name) for name, count in shown[:LISTED_TYPES]]
    return ", ".join(texts) + (f", {len(shown) - LISTED_TYPES} more kinds" if len(shown) > LISTED_TYPES else "")


def _kind_of_tensor_change(difference: Difference) -> str:
    what = difference.what.removeprefix("output ").partition(" ")[2]
    if what in ("dtype", "format"):
        return f"{what} {difference.before} -> {difference.after}"
    return what if what else "number of outputs"


def _of(node: NodePair, change: Change) -> Iterator[Difference]:
    return (difference for difference in node.differences if difference.change is change)


def _sections(pair: GraphPair, show_all: bool) -> Iterator[Line]:
    if pair.differences:
        yield Line("")
        yield Line("the graph itself", HEADING)
        yield from (Line(f"  {_difference_text(difference, show_all)}") for difference in pair.differences)
    for change in Change:
        found = [node for node in pair.nodes if change in node.changes]
        if found:
            yield Line("")
            yield Line(f"{change.value} ({len(found):,})", HEADING)
            yield from _section(change, found, show_all)


def _section(change: Change, nodes: Sequence[NodePair], show_all: bool) -> Iterator[Line]:
    by_type: dict[str, list[NodePair]] = {}
    for node in nodes:
        by_type.setdefault(node.node.type, []).append(node)
    types = sorted(by_type, key=lambda name: (-len(by_type[name]), name))
    for name in types if show_all else types[:LISTED_TYPES]:
        yield Line(f"  {_printable(name)} ({len(by_type[name]):,})")
        listed = by_type[name] if show_all else by_type[name][:LISTED_NODES]
        for node in listed:
            yield from _node_lines(change, node, show_all)
        yield from _more(len(by_type[name]) - len(listed), "    ", "node")
    if not show_all:
        yield from _more(len(types) - LISTED_TYPES, "  ", "type")


def _node_lines(change: Change, node: NodePair, show_all: bool) -> Iterator[Line]:
    style = _STYLES.get(change, "")
    if change in (Change.REMOVED, Change.ADDED):
        sign = "-" if change is Change.REMOVED else "+"
        yield Line(f"    {sign} {_printable(node.node.name)}", style)
        return
    differences = list(_of(node, change))
    if change is Change.RENAMED:
        yield Line(f"    {_change_text(differences[0], show_all)}")
    elif len(differences) == 1:
        yield Line(f"    {_printable(node.node.name)}  {_difference_text(differences[0], show_all)}")
    else:
        yield Line(f"    {_printable(node.node.name)}")
        listed = differences if show_all else differences[:LISTED_DIFFERENCES]
        yield from (Line(f"      {_difference_text(difference, show_all)}") for difference in listed)
        yield from _more(len(differences) - len(listed), "      ", "difference")


def _more(count: int, indent: str, noun: str) -> Iterable[Line]:
    return [Line(f"{indent}... {count:,} more {noun}{'' if count == 1 else 's'} (--all)", "dim")] if count > 0 else []


def _difference_text(difference: Difference, show_all: bool) -> str:
    return f"{_printable(difference.what)}: {_change_text(difference, show_all)}"


def _change_text(difference: Difference, show_all: bool) -> str:
    before, after = (shown_pair if show_all else shortened)(difference.before, difference.after)
    return f"{before} -> {after}"


def shown_pair(before: str, after: str) -> tuple[str, str]:
    """Return both texts, each as ``(none)`` where there is nothing."""
    return _printable(before) or "(none)", _printable(after) or "(none)"


def shortened(before: str, after: str) -> tuple[str, str]:
    """Return both texts, long ones from shortly before the place where they part."""
    start = 0
    if len(before) > SHOWN_TEXT or len(after) > SHOWN_TEXT:
        common = next(
            (i for i, (a, b) in enumerate(zip(before, after, strict=False)) if a != b), len(min(before, after, key=len))
        )
        start = max(0, common - SHOWN_TEXT // 3) if before and after else 0
    return shown_pair(_cut(before, start), _cut(after, start))


def _cut(text: str, start: int) -> str:
    end = start + SHOWN_TEXT
    return ("..." if start else "") + text[start:end] + ("..." if len(text) > end else "")


def _printable(text: str) -> str:
    """Return one line without control characters, whatever the file says."""
    return "".join(c if c.isprintable() else "?" for c in text)
