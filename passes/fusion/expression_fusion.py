"""Fusion of arithmetic around an operator that gives it away: Erf, a mean, a maximum."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from ge.graph import Node, NodeOut
from ge.ops.registry import Array
from passes.fusion.constants import TOLERANCES, is_fixed
from passes.fusion.graph_fusion import WalkingFusion
from passes.fusion.polynomial import ARITHMETIC
from passes.fusion.rewriting import Rewriting, obstacle, producers_first
from passes.fusion.sketch import Sketch


@dataclass
class Expression:
    """What was found: ``nodes`` compute ``output``, and so would one node ``type`` of ``inputs`` with ``attrs``.

    An input is a tensor of the graph, a new constant, or ``None``. With a ``refusal`` it is left alone.
    """

    output: NodeOut
    nodes: list[Node]
    type: str
    inputs: tuple[NodeOut | Array | None, ...]
    attrs: dict[str, Any] = field(default_factory=dict)
    refusal: str = ""

    def sketch(self) -> Sketch:
        """Draw the one node."""
        feeding = [source for source in self.inputs if isinstance(source, NodeOut)]
        sketch = Sketch(feeding)
        outside = iter(sketch.inputs)
        inputs = [
            next(outside) if isinstance(source, NodeOut) else None if source is None else sketch.const(source)
            for source in self.inputs
        ]
        while inputs and inputs[-1] is None:
            inputs.pop()
        sketch.finish(sketch.add(self.type, *inputs, **self.attrs))
        return sketch


class ExpressionFusion(WalkingFusion):
    """Around every operator of the types in ``anchors`` an expression is looked for."""

    anchors: ClassVar[tuple[str, ...]]

    @classmethod
    def anchor_types(cls) -> Collection[str]:
        """Return the anchors."""
        return cls.anchors

    def walk(self, rewriting: Rewriting) -> None:
        """Look around every anchor that is still there."""
        for anchor in rewriting.graph.nodes_of_type(*self.anchors):
            if anchor.is_removed or is_fixed(anchor.output()):
                continue
            found = self.find(anchor)
            if found is None:
                continue
            nodes = producers_first(found.nodes)
            if found.refusal:
                rewriting.refuse(nodes, found.refusal)
            else:
                rewriting.replace(nodes, found.output, found.sketch())

    @abstractmethod
    def find(self, anchor: Node) -> Expression | None:
        """Return the expression that ``anchor`` is part of."""


def furthest(candidates: Sequence[Expression]) -> Expression | None:
    """Return the last of ``candidates`` that may be replaced, or, if none may, the last."""
    for candidate in reversed(candidates):
        if not candidate.refusal and not obstacle(candidate.nodes, candidate.output.node):
            return candidate
    return candidates[-1] if candidates else None


# -- reading ---------------------------------------------------------------------------------------------------------
def tolerance_of(source: NodeOut) -> float:
    """Return how far a coefficient may be from the right one, in proportion."""
    return TOLERANCES.get(source.desc.data_type, 0.0)


def operands(source: NodeOut, count: int) -> Iterator[NodeOut]:
    """Iterate over the first ``count`` tensors from which ``source`` is computed by arithmetic, itself first."""
    waiting, seen = [source], {source}
    while waiting and count:
        at = waiting.pop(0)
        count -= 1
        yield at
        if at.node.type not in ARITHMETIC:
            continue
        for before in at.node.inputs:
            if before is not None and before not in seen and not is_fixed(before):
                seen.add(before)
                waiting.append(before)


def results(source: NodeOut, count: int) -> Iterator[NodeOut]:
    """Iterate over the first ``count`` tensors that arithmetic makes of ``source``, those of fewer steps first."""
    waiting, seen = [source], {source.node}
    while waiting and count:
        at = waiting.pop(0)
        for reader in at.node.consumers(at.index):
            node = reader.node
            if node in seen or node.type not in ARITHMETIC or not count:
                continue
            seen.add(node)
            count -= 1
            waiting.append(node.output())
            yield node.output()
