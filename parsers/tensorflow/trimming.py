"""What of a file is the model: nodes whose results nobody reads are its outputs, what they need is compiled.

Files hold more than that: savers, summaries, assertions and groups of initializers are left over from training. They
compute nothing that an output needs, and are ignored with one warning.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Collection, Iterable, Iterator, Sequence

from parsers.tensorflow.tf_graph import TfGraph, TfNode

_LEFTOVERS = frozenset(
    {
        *("NoOp", "ControlTrigger", "Assert", "Print", "PrintV2", "Abort"),
        *("Save", "SaveV2", "SaveSlices", "Restore", "RestoreV2", "RestoreSlice", "MergeV2Checkpoints"),
        *("ShardedFilename", "ShardedFilespec", "WriteFile", "IsVariableInitialized", "VarIsInitializedOp"),
        *("ScalarSummary", "HistogramSummary", "ImageSummary", "AudioSummary", "AudioSummaryV2", "MergeSummary"),
        *("TensorSummary", "TensorSummaryV2", "WriteSummary", "WriteScalarSummary", "WriteHistogramSummary"),
        *("Assign", "AssignAdd", "AssignSub", "AssignVariableOp", "AssignAddVariableOp", "AssignSubVariableOp"),
        *("InitializeTable", "InitializeTableV2", "InitializeTableFromTextFile", "InitializeTableFromTextFileV2"),
        *("LookupTableImport", "LookupTableImportV2", "QueueCloseV2", "QueueEnqueueV2", "QueueEnqueueManyV2"),
    }
)
"""Types that have no part in what a model computes, unless somebody reads their result."""
_TRAINING_PREFIXES = ("Apply", "ResourceApply", "SparseApply", "ResourceSparseApply")
_SOURCES = frozenset({"Const", "Placeholder", "PlaceholderV2", "Variable", "VariableV2", "VarHandleOp"})
"""Types that are no outputs just because nobody reads them."""
_UNUSED_INPUT = "unused_control_flow_input"
"""How TensorFlow names the inputs that freezing a loop or a branch leaves behind."""


def is_leftover(op: str) -> bool:
    """True for types that only matter if an output reads their result."""
    return op in _LEFTOVERS or op.startswith(_TRAINING_PREFIXES)


class Readers:
    """Who reads the nodes of a graph, by name: through data edges, and through control edges."""

    def __init__(self, nodes: Iterable[TfNode]) -> None:
        self.data: dict[str, list[TfNode]] = {}
        self.control: dict[str, list[TfNode]] = {}
        for node in nodes:
            for name in dict.fromkeys(reference.node for reference in node.inputs):
                self.data.setdefault(name, []).append(node)
            for name in node.controls:
                self.control.setdefault(name, []).append(node)

    def all_of(self, name: str) -> list[TfNode]:
        """Return all readers of a node."""
        return [*self.data.get(name, ()), *self.control.get(name, ())]


def _idle(nodes: Sequence[TfNode], readers: Readers) -> set[str]:
    """Return the leftovers that nobody reads but other such leftovers."""
    waiting = {node.name: len(readers.all_of(node.name)) for node in nodes if is_leftover(node.op)}
    by_name = {node.name: node for node in nodes if node.name in waiting}
    ready = deque(name for name, count in waiting.items() if count == 0)
    found: set[str] = set()
    while ready:
        name = ready.popleft()
        found.add(name)
        for producer in [*dict.fromkeys(r.node for r in by_name[name].inputs), *by_name[name].controls]:
            if producer in waiting:
                waiting[producer] -= 1
                if waiting[producer] == 0:
                    ready.append(producer)
    return found


def default_outputs(nodes: Sequence[TfNode]) -> list[TfNode]:
    """Return the nodes whose results nobody reads, in the order of the file.

    Reading by leftovers alone does not count for control edges, and counts for data only while there are other outputs.
    """
    readers = Readers(nodes)
    idle = _idle(nodes, readers)

    def is_free(name: str, given: dict[str, list[TfNode]]) -> bool:
        return all(reader.name in idle for reader in given.get(name, ()))

    candidates = [
        node
        for node in nodes
        if not is_leftover(node.op) and node.op not in _SOURCES and is_free(node.name, readers.control)
    ]
    unread = [node for node in candidates if node.name not in readers.data]
    return unread or [node for node in candidates if is_free(node.name, readers.data)]


def needed_nodes(nodes: Sequence[TfNode], outputs: Collection[str]) -> list[TfNode]:
    """Return what the outputs need, in the order of the file; control edges from leftovers lead nowhere."""
    by_name: dict[str, TfNode] = {}
    for node in nodes:
        by_name.setdefault(node.name, node)
    seen = {name for name in outputs if name in by_name}
    waiting = list(seen)
    while waiting:
        for name in _kept_producers(by_name[waiting.pop()], by_name):
            if name not in seen:
                seen.add(name)
                waiting.append(name)
    return [node for node in nodes if node.name in seen]


_ORDER_ONLY = frozenset({"NoOp", "ControlTrigger"})


def _kept_producers(node: TfNode, by_name: dict[str, TfNode]) -> Iterator[str]:
    yield from (reference.node for reference in node.inputs if reference.node in by_name)
    for name in node.controls:
        before = by_name.get(name)
        if before is not None and (before.op in _ORDER_ONLY or not is_leftover(before.op)):
            yield name


def unread_inputs(graph: TfGraph, nodes: Sequence[TfNode]) -> list[TfNode]:
    """Return the Placeholders that nobody reads but that are the model's interface all the same."""
    readers = Readers(nodes)
    return [
        node
        for node in graph.nodes
        if node.op in ("Placeholder", "PlaceholderV2")
        and not readers.all_of(node.name)
        and not node.name.rpartition("/")[2].startswith(_UNUSED_INPUT)
    ]


def leftovers_in_words(nodes: Iterable[TfNode], kept: Collection[str]) -> str:
    """Return which types of leftovers are not compiled, with their counts; empty when there are none to speak of."""
    counts = Counter(node.op for node in nodes if node.name not in kept and is_leftover(node.op))
    for op in _ORDER_ONLY:
        counts.pop(op, None)
    return ", ".join(f"{count} {op}" for op, count in sorted(counts.items()))
