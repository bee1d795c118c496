"""Fusion of runs of operators, each the only reader of the one before."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Iterator
from typing import ClassVar

from ge.graph import Node, NodeOut
from ge.tensor_memory import is_constant
from passes.fusion.graph_fusion import WalkingFusion
from passes.fusion.rewriting import Rewriting


class ChainFusion(WalkingFusion):
    """Runs of links are replaced at once, however long they are. ``links`` are the types that links may have."""

    links: ClassVar[Collection[str]]

    @classmethod
    def anchor_types(cls) -> Collection[str]:
        """Return the types of links."""
        return cls.links

    @abstractmethod
    def slot(self, node: Node) -> int | None:
        """Return the input with which a run comes into ``node``; ``None`` if it can be no link."""

    @abstractmethod
    def fuse(self, chain: list[Node], source: NodeOut, rewriting: Rewriting) -> None:
        """Replace a run, or a part of it, or refuse. ``source`` is what its first node reads."""

    def walk(self, rewriting: Rewriting) -> None:
        """Fuse all runs."""
        for chain in list(self._chains(rewriting)):
            slot = self.slot(chain[0])
            source = None if slot is None else chain[0].input(slot)
            assert source is not None
            self.fuse(chain, source, rewriting)

    def _chains(self, rewriting: Rewriting) -> Iterator[list[Node]]:
        slots = {}
        for node in rewriting.graph:
            slot = None if is_constant(node) else self.slot(node)
            if slot is not None:
                slots[node] = slot
        for node, slot in slots.items():
            source = node.input(slot)
            if source is not None and source.node in slots and self._next(source.node, slots) is node:
                continue  # somewhere inside a run
            chain = [node]
            while (follower := self._next(chain[-1], slots)) is not None:
                chain.append(follower)
            yield chain

    @staticmethod
    def _next(node: Node, slots: dict[Node, int]) -> Node | None:
        """Return the link that goes on with ``node``'s only read output, if it is its only reader."""
        readers = [reader for index in range(len(node.output_descs)) for reader in node.consumers(index)]
        if len(readers) != 1 or _is_result(node):
            return None
        [reader] = readers
        is_link = slots.get(reader.node) == reader.index and not (node.control_outputs or reader.node.control_inputs)
        return reader.node if is_link else None


def _is_result(node: Node) -> bool:
    """Tell whether a graph that has no NetOutput yet gives a tensor of ``node`` out."""
    return node.graph.net_output() is None and any(out.node is node for out in node.graph.outputs)
