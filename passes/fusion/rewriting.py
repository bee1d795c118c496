"""Replacing parts of one graph, and the account of it: counts, reasons, places in the node list."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence

from ge.graph import Graph, Node, NodeOut
from ge.passes import PassContext
from ge.passes.boundary import Boundary, in_order, outside_reader
from ge.passes.node_index import NodeIndex
from ge.passes.origins import conflict
from ge.passes.rewriter import Replacement, rewrite
from passes.fusion.sketch import Sketch

logger = logging.getLogger("atc")


class Rewriting:
    """One run of a fusion over one graph.

    What is offered counts as a match, unless somebody else reads what lies inside: then it is none, as for patterns.
    """

    def __init__(self, graph: Graph, context: PassContext) -> None:
        self.graph = graph
        self.is_changed = False
        self._context = context
        self._name = context.get_pass_name()
        self._index: NodeIndex | None = None

    def refuse(self, nodes: Iterable[Node], reason: str) -> None:
        """Leave ``nodes`` alone and remember why."""
        self._context.statistics.count(self._name, matched=1)
        self._leave(nodes, reason)

    def _leave(self, nodes: Iterable[Node], reason: str) -> None:
        names = tuple(node.name for node in nodes)
        logger.info("%s", self._context.statistics.refuse(self._name, names, reason))

    def replace(self, nodes: Sequence[Node], output: NodeOut, sketch: Sketch) -> bool:
        """Let ``sketch`` take the place of ``nodes`` (producers first), of which others read ``output`` only.

        Leaves them alone if somebody outside reads what lies inside, or waits for it. Returns whether it replaced.
        """
        reason = obstacle(nodes, output.node)
        if reason:
            self._leave(nodes, reason)
            return False
        reason = conflict(nodes) or sketch.infer(output.desc)
        if reason:
            self.refuse(nodes, reason)
            return False
        if self._index is None:
            self._index = NodeIndex(self.graph)
        boundary = Boundary(self.graph, tuple(nodes), tuple(sketch.feeding), (output,), output.node)
        new = rewrite(boundary, Replacement.fitting(sketch.graph, boundary), self._name)
        self._context.statistics.count(self._name, matched=1, effected=1)
        self._index.insert_after(output.node, new)
        self.is_changed = True
        return True

    def bypass(self, nodes: Sequence[Node], output: NodeOut, source: NodeOut) -> bool:
        """Let the readers of ``output`` read ``source``; ``nodes`` go."""
        sketch = Sketch([source])
        sketch.finish(sketch.inputs[0])
        return self.replace(nodes, output, sketch)

    def settle(self) -> None:
        """Give the node list its order, when everything is replaced."""
        if self._index is not None:
            self._index.apply()


def obstacle(nodes: Sequence[Node], end: Node) -> str:
    """Return why ``nodes``, of which ``end`` makes the result, cannot be fused; empty if they can.

    Without control edges, and read outside at one end only, they cannot close a cycle.
    """
    inside = set(nodes)
    for node in nodes:
        reader = "" if node is end else outside_reader(node, inside)
        if reader:
            return f"{reader} reads {node.name} too"
        if node.control_inputs or node.control_outputs:
            return f"{node.name} has control edges"
    return ""


def producers_first(nodes: Iterable[Node]) -> list[Node]:
    """Return ``nodes`` in an order in which they can run."""
    return in_order(nodes)
