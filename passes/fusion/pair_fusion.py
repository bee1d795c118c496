"""Fusion of an operator and its only reader."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import ClassVar

from ge.graph import Graph, Node, NodeOut, TensorDesc
from ge.ops import lookup
from ge.passes import MatchResult, Pattern
from passes.fusion.graph_fusion import PatternFusion
from passes.fusion.sketch import Sketch

PRODUCER, READER = 0, 1
"""Numbers of the captured tensors."""

Slots = Mapping[str, tuple[int, ...]]


@dataclass(frozen=True)
class Pair:
    """A match: ``reader`` reads the first output of ``producer`` in its input ``slot``; nobody else reads it."""

    producer: Node
    reader: Node
    slot: int

    @classmethod
    def of(cls, match_result: MatchResult) -> Pair:
        """Return what was matched."""
        producer, reader = (match_result.get_captured_tensor(i).node for i in (PRODUCER, READER))
        return cls(producer, reader, reader.inputs.index(producer.output()))

    @property
    def other_inputs(self) -> list[NodeOut]:
        """What the reader reads besides."""
        return [s for slot, s in enumerate(self.reader.inputs) if slot != self.slot and s is not None]

    def sketch(self) -> Sketch:
        """Begin a replacement, which reads what both read."""
        return Sketch([*(source for source in self.producer.inputs if source is not None), *self.other_inputs])


class PairFusion(PatternFusion):
    """``reader(producer(...), ...)`` becomes one operator.

    ``producers`` are the types of producers with the numbers of inputs that they may have connected, ``readers`` the
    types of readers with the inputs that may read the producer: operands may stand in any order, while a pattern has
    one. ``reader_inputs`` are the numbers of inputs that a reader may have connected, two unless it is said here.
    """

    producers: ClassVar[Slots]
    readers: ClassVar[Slots]
    reader_inputs: ClassVar[Slots] = {}

    @classmethod
    def anchor_types(cls) -> Collection[str]:
        """Return the types of producers."""
        return cls.producers

    def patterns_for(self, graph: Graph) -> list[Pattern]:
        """Return a pattern per producer, reader and order, of the types that the graph has."""
        found = {node.type for node in graph}
        return [
            _pattern(producer, count, reader, slot, others)
            for producer, counts in self.producers.items()
            if producer in found
            for reader, slots in self.readers.items()
            if reader in found
            for count in counts
            for others in self.reader_inputs.get(reader, (2,))
            for slot in slots
            if slot < others
        ]

    def refusal(self, match_result: MatchResult) -> str:
        """Return why a pair must be left alone; empty if it may be fused."""
        pair = Pair.of(match_result)
        if pair.producer.output() in pair.other_inputs:
            return f"{pair.reader.name} reads {pair.producer.name} more than once"
        return self.obstacle(pair)

    def replacement(self, match_result: MatchResult) -> Graph:
        """Draw what takes the place of the pair."""
        pair = Pair.of(match_result)
        sketch = pair.sketch()
        return sketch.finish(self.fused(pair, sketch))

    @abstractmethod
    def obstacle(self, pair: Pair) -> str:
        """Return why a pair must be left alone; empty if it may be fused."""

    @abstractmethod
    def fused(self, pair: Pair, sketch: Sketch) -> NodeOut:
        """Draw what takes the place of the pair and return its result."""


def _pattern(producer: str, count: int, reader: str, slot: int, others: int) -> Pattern:
    graph = Graph(f"{reader}_{slot}_of_{producer}_{count}")
    inputs = [
        graph.add_node("Data", f"input_{i}", attrs={"index": i}, output_descs=[TensorDesc([-2])]).output()
        for i in range(count + others - 1)
    ]
    made = graph.add_node(producer, "producer", inputs[:count], n_outputs=_outputs(producer))
    given = inputs[count:]
    given.insert(slot, made.output())
    result = graph.add_node(reader, "reader", given, n_outputs=_outputs(reader))
    graph.outputs = [result.output()]
    return Pattern(graph).capture_tensor(made).capture_tensor(result)


def _outputs(type: str) -> int:
    definition = lookup(type)
    assert definition is not None
    return len(definition.signature.outputs)
