"""Nodes: operators of a graph with their descriptors, attributes and edges."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from ge.graph.tensor_desc import TensorDesc

if TYPE_CHECKING:
    from ge.graph.graph import Graph

AttrValue = Any
"""str, bytes, int, float, bool, DataType, Tensor, TensorDesc, or a list (of lists of int or float) of these."""


class NodeOut(NamedTuple):
    """One output of a node: the source end of a data edge."""

    node: Node
    index: int  # type: ignore[assignment]  # CANN's name; hides tuple.index, which nobody needs here

    @property
    def desc(self) -> TensorDesc:
        """The descriptor of this output."""
        return self.node.output_descs[self.index]

    def __repr__(self) -> str:
        return f"{self.node.name}:{self.index}"


class NodeIn(NamedTuple):
    """One input port of a node: the target end of a data edge."""

    node: Node
    index: int  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"{self.node.name}<-{self.index}"


class Node:
    """An operator instance.

    ``inputs`` are flat, in signature order: one slot per required or optional input (``None``: absent), one slot per
    element of a dynamic input. ``subgraphs`` lists ``(IR name, graph name)`` of the bodies, owned by the root graph.
    Edges, names and types are changed through the owning :class:`Graph` only, which keeps consumers in step.
    """

    __slots__ = (
        "_consumers",
        "_control_in",
        "_control_out",
        "_graph",
        "_inputs",
        "_name",
        "_type",
        "attrs",
        "input_descs",
        "output_descs",
        "subgraphs",
    )

    def __init__(self, graph: Graph, name: str, type: str, n_inputs: int, output_descs: list[TensorDesc]) -> None:
        self._graph: Graph | None = graph
        self._name = name
        self._type = type
        self._inputs: list[NodeOut | None] = [None] * n_inputs
        self.input_descs: list[TensorDesc | None] = [None] * n_inputs
        self.output_descs = output_descs
        self.attrs: dict[str, AttrValue] = {}
        self.subgraphs: list[tuple[str, str]] = []
        self._consumers: list[dict[NodeIn, None]] = [{} for _ in output_descs]
        self._control_in: dict[Node, None] = {}
        self._control_out: dict[Node, None] = {}

    @property
    def name(self) -> str:
        """Unique within its graph."""
        return self._name

    @property
    def type(self) -> str:
        """Operator type, as registered in ge.ops."""
        return self._type

    @property
    def graph(self) -> Graph:
        """The owning graph. Raises ``RuntimeError`` for a removed node."""
        if self._graph is None:
            raise RuntimeError(f"node {self._name} was removed from its graph")
        return self._graph

    @property
    def is_removed(self) -> bool:
        """True once the node no longer belongs to a graph."""
        return self._graph is None

    @property
    def inputs(self) -> tuple[NodeOut | None, ...]:
        """Producers by input slot."""
        return tuple(self._inputs)

    @property
    def control_inputs(self) -> tuple[Node, ...]:
        """Nodes that must run before this one."""
        return tuple(self._control_in)

    @property
    def control_outputs(self) -> tuple[Node, ...]:
        """Nodes that must run after this one."""
        return tuple(self._control_out)

    def input(self, index: int) -> NodeOut | None:
        """Return the producer of one input slot; ``None`` when absent or beyond the last slot."""
        return self._inputs[index] if 0 <= index < len(self._inputs) else None

    def output(self, index: int = 0) -> NodeOut:
        """Return one output as an edge source."""
        if not 0 <= index < len(self.output_descs):
            raise IndexError(f"node {self._name} ({self._type}) has {len(self.output_descs)} outputs, not {index + 1}")
        return NodeOut(self, index)

    def outputs(self) -> Iterator[NodeOut]:
        """Iterate over all outputs."""
        return (NodeOut(self, i) for i in range(len(self.output_descs)))

    def consumers(self, index: int = 0) -> list[NodeIn]:
        """Return the readers of one output, in the order in which the edges were made."""
        return list(self._consumers[index])

    def n_consumers(self) -> int:
        """Return the number of data edges that leave this node."""
        return sum(map(len, self._consumers))

    def predecessors(self) -> list[Node]:
        """Return the nodes from which data and control edges come, each once, in the order of the edges."""
        found = [source.node for source in self._inputs if source is not None]
        found += self._control_in
        return found if len(found) < 2 else list(dict.fromkeys(found))

    def successors(self) -> list[Node]:
        """Return the nodes to which data and control edges go, each once, in the order in which they were made."""
        found = [reader.node for readers in self._consumers for reader in readers]
        found += self._control_out
        return found if len(found) < 2 else list(dict.fromkeys(found))

    def __repr__(self) -> str:
        return f"<{self._type} {self._name}>"
