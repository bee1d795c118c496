"""GE nodes that stand for nodes of a model: how they are named, counted, and traced back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ge.graph import Graph, Node, NodeOut, Tensor
from ge.passes.origins import IS_MULTI_OP, OUTPUT_INDEX, OUTPUT_NAME
from parsers.knowledge import Array, Knowledge

if TYPE_CHECKING:
    from parsers.mapped_node import MappedNode

MAX_NODES = 1_000_000
"""GE nodes of one model; a bound for functions that call each other many times."""

ORIGINAL_NAMES = "_datadump_original_op_names"

Mapped = Node | NodeOut | Sequence[NodeOut | None]
"""Results in the order of the model's outputs: those of a node, one, or several (``None``: cannot be given)."""


@dataclass
class NodeCount:
    """How many GE nodes all graphs of a model have."""

    nodes: int = 0


class GeNodes:
    """Adds nodes to one GE graph. ``prefix`` starts the name of every node (bodies: ``<subgraph>/``).

    ``reserved`` are names that nodes of the model have; no node that comes with another takes one of them.
    """

    def __init__(self, graph: Graph, count: NodeCount, prefix: str = "") -> None:
        self.graph = graph
        self.prefix = prefix
        self.knowledge = Knowledge()
        self.reserved: set[str] = set()
        self._count = count

    def add_node(
        self,
        n: MappedNode,
        type: str,
        role: str,
        inputs: Sequence[NodeOut | None],
        attrs: Mapping[str, Any],
        n_outputs: int,
    ) -> Node:
        """Add a GE node for the node behind ``n``; called by :meth:`MappedNode.add`."""
        self._count_node(n)
        own = {**attrs, ORIGINAL_NAMES: [n.name]}
        return self.graph.add_node(type, self._node_name(n, role), inputs, own, n_outputs)

    def add_const(self, n: MappedNode, role: str, array: Array) -> NodeOut:
        """Add a Const for the node behind ``n``."""
        self._count_node(n)
        source = self.graph.add_const(self._node_name(n, role), Tensor.of(array))
        source.node.attrs[ORIGINAL_NAMES] = [n.name]
        return source

    def _count_node(self, n: MappedNode) -> None:
        self._count.nodes += 1
        if self._count.nodes > MAX_NODES:
            raise n.fail(f"the model has more than {MAX_NODES} nodes once its functions are expanded")

    def _node_name(self, n: MappedNode, role: str) -> str:
        return self.free_name(f"{n.name}_{role}") if role else self.graph.unique_name(n.name)

    def free_name(self, stem: str) -> str:
        """Return ``stem`` or ``stem_1``, ...: no node has the name, and no later node of the model will claim it."""
        name, count = stem, 0
        while name in self.reserved or name in self.graph:
            count += 1
            name = f"{stem}_{count}"
        return name


def note_parts(name: str, parts: Iterable[Node], results: Sequence[NodeOut | None]) -> None:
    """Note on the nodes that together do what node ``name`` of the model does which of their outputs are its own."""
    computing = {part for part in parts if part.type != "Const"}
    if len(computing) < 2:
        return
    for part in computing:
        part.attrs[IS_MULTI_OP] = True
    for index, out in enumerate(results):
        if out is not None and out.node in computing and OUTPUT_NAME not in out.desc.attrs:
            out.desc.attrs.update({OUTPUT_NAME: name, OUTPUT_INDEX: index})


def as_list(mapped: Mapped) -> list[NodeOut | None]:
    """Return the results of a mapping one by one."""
    if isinstance(mapped, Node):
        return list(mapped.outputs())
    return [mapped] if isinstance(mapped, NodeOut) else list(mapped)
