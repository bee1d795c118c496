"""The graph: owner of nodes and edges. Every change of structure goes through its methods.

Rewriting costs what it touches: consumers are indexed, nodes are found by name, removal is O(edges of the node).
Iteration follows insertion order, so results never depend on hash seeds.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence

from ge.graph.node import AttrValue, Node, NodeIn, NodeOut
from ge.graph.tensor import Tensor
from ge.graph.tensor_desc import TensorDesc


class CycleError(ValueError):
    """The graph has a cycle; ``nodes`` are members of one, in edge order."""

    def __init__(self, nodes: list[Node]) -> None:
        self.nodes = nodes
        super().__init__("cycle: " + " -> ".join(n.name for n in nodes[:8]))


class Graph:
    """A data flow graph. A root graph owns all its subgraphs, flat, by name.

    ``output_names`` are the names of the results in the user's model.
    """

    def __init__(self, name: str = "graph", parent: Graph | None = None) -> None:
        self.name = name
        self.parent = parent
        self.attrs: dict[str, AttrValue] = {}
        self.subgraphs: dict[str, Graph] = {}
        self._outputs: list[NodeOut] = []
        self._net_output: Node | None = None
        self.output_names: list[str] = []
        self._nodes: dict[str, Node] = {}
        self._name_counters: dict[str, int] = {}

    # -- reading ---------------------------------------------------------------------------------------------------
    def __iter__(self) -> Iterator[Node]:
        """Iterate over a snapshot of the nodes in insertion order, skipping those removed meanwhile."""
        return (n for n in list(self._nodes.values()) if n._graph is not None)

    def __len__(self) -> int:
        return len(self._nodes)

    def __contains__(self, name: object) -> bool:
        return name in self._nodes

    def find(self, name: str) -> Node | None:
        """Return the node of that name, or ``None``."""
        return self._nodes.get(name)

    def nodes_of_type(self, *types: str) -> list[Node]:
        """Return the nodes of these types in insertion order."""
        return [n for n in self._nodes.values() if n._type in types]

    @property
    def root(self) -> Graph:
        """The graph that owns the subgraphs."""
        graph = self
        while graph.parent is not None:
            graph = graph.parent
        return graph

    def all_graphs(self) -> list[Graph]:
        """Return this graph, then its subgraphs in the order in which they were added."""
        return [self, *self.subgraphs.values()]

    def data_nodes(self) -> list[Node]:
        """Return the Data nodes ordered by their ``index`` attribute."""
        return sorted(self.nodes_of_type("Data"), key=lambda n: int(n.attrs.get("index", 0)))

    def net_output(self) -> Node | None:
        """Return the NetOutput node, if the graph has one."""
        return self._net_output

    @property
    def outputs(self) -> list[NodeOut]:
        """The graph's results in order: what NetOutput reads once it exists, before that what was assigned."""
        if self._net_output is None:
            return list(self._outputs)
        return [source for source in self._net_output.inputs if source is not None]

    @outputs.setter
    def outputs(self, outputs: Sequence[NodeOut]) -> None:
        if self._net_output is not None:
            raise ValueError(f"graph {self.name} has a NetOutput: change its inputs instead")
        self._outputs = list(outputs)

    def is_read(self, node: Node) -> bool:
        """Tell whether an output of ``node`` has readers or is a result."""
        return node.n_consumers() > 0 or any(out.node is node for out in self._outputs)

    def unique_name(self, stem: str) -> str:
        """Return ``stem`` if it is free, else ``stem_1``, ``stem_2``, ... (deterministic per graph)."""
        if stem not in self._nodes:
            return stem
        count = self._name_counters.get(stem, 0)
        while True:
            count += 1
            name = f"{stem}_{count}"
            if name not in self._nodes:
                self._name_counters[stem] = count
                return name

    # -- building --------------------------------------------------------------------------------------------------
    def add_node(
        self,
        type: str,
        name: str,
        inputs: Sequence[NodeOut | None] = (),
        attrs: Mapping[str, AttrValue] | None = None,
        n_outputs: int = 1,
        output_descs: Iterable[TensorDesc] | None = None,
    ) -> Node:
        """Add a node. ``name`` must be free. Without ``output_descs`` the outputs are float32 of unknown rank."""
        if name in self._nodes:
            raise ValueError(f"graph {self.name} already has a node named {name}")
        descs = [TensorDesc([-2]) for _ in range(n_outputs)] if output_descs is None else list(output_descs)
        node = Node(self, name, type, len(inputs), descs)
        if attrs:
            node.attrs.update(attrs)
        self._nodes[name] = node
        if type == "NetOutput":
            self._net_output = node
        for slot, source in enumerate(inputs):
            if source is not None:
                self.set_input(node, slot, source)
        return node

    def add_const(self, name: str, tensor: Tensor) -> NodeOut:
        """Add a Const node that holds ``tensor`` and return its output."""
        node = self.add_node("Const", name, attrs={"value": tensor}, output_descs=[tensor.desc.copy()])
        return node.output(0)

    def add_subgraph(self, graph: Graph) -> None:
        """Hand ``graph`` to the root. Its name must be free."""
        root = self.root
        if graph.name in root.subgraphs or graph.name == root.name:
            raise ValueError(f"graph {root.name} already has a subgraph named {graph.name}")
        graph.parent = root
        root.subgraphs[graph.name] = graph

    def remove_subgraph(self, name: str) -> None:
        """Forget the subgraph ``name``."""
        self.root.subgraphs.pop(name).parent = None

    def append_input(self, node: Node, source: NodeOut | None) -> int:
        """Add one input slot at the end of ``node`` and return its index."""
        node._inputs.append(None)
        node.input_descs.append(None)
        slot = len(node._inputs) - 1
        if source is not None:
            self.set_input(node, slot, source)
        return slot

    def remove_input(self, node: Node, slot: int) -> None:
        """Delete one input slot; later slots move down by one."""
        sources = node.inputs
        descs = node.input_descs[slot + 1 :]
        for i in range(slot, len(sources)):
            self.set_input(node, i, None)
        del node._inputs[-1], node.input_descs[-1]
        for i, source in enumerate(sources[slot + 1 :], start=slot):
            self.set_input(node, i, source)
            node.input_descs[i] = descs[i - slot]

    def set_input(self, node: Node, slot: int, source: NodeOut | None) -> None:
        """Connect ``source`` to an input slot, replacing what was there; ``None`` disconnects.

        The input descriptor becomes a copy of the source's descriptor.
        """
        old = node._inputs[slot]
        if old is not None:
            del old.node._consumers[old.index][NodeIn(node, slot)]
        node._inputs[slot] = source
        if source is None:
            node.input_descs[slot] = None
            return
        if source.node._graph is not self:
            raise ValueError(f"{source} is not in graph {self.name}, {node.name} is")
        source.node._consumers[source.index][NodeIn(node, slot)] = None
        node.input_descs[slot] = source.desc.copy()

    def set_type(self, node: Node, type: str) -> None:
        """Change the operator type of ``node``."""
        node._type = type

    def rename(self, node: Node, name: str) -> None:
        """Give ``node`` a new, free name (its place in the iteration order moves to the end)."""
        if name in self._nodes:
            raise ValueError(f"graph {self.name} already has a node named {name}")
        del self._nodes[node._name]
        node._name = name
        self._nodes[name] = node

    def add_output_slots(self, node: Node, descs: Iterable[TensorDesc]) -> None:
        """Append outputs to ``node``."""
        for desc in descs:
            node.output_descs.append(desc)
            node._consumers.append({})

    def add_control(self, before: Node, after: Node) -> None:
        """Add a control edge (once)."""
        before._control_out[after] = None
        after._control_in[before] = None

    def remove_control(self, before: Node, after: Node) -> None:
        """Remove a control edge, if there."""
        before._control_out.pop(after, None)
        after._control_in.pop(before, None)

    # -- rewriting -------------------------------------------------------------------------------------------------
    def replace_uses(self, old: NodeOut, new: NodeOut) -> None:
        """Let every reader of ``old`` (graph outputs included) read ``new`` instead."""
        for reader in old.node.consumers(old.index):
            self.set_input(reader.node, reader.index, new)
        self._outputs = [new if out == old else out for out in self._outputs]

    def remove_node(self, node: Node) -> None:
        """Remove a node that nobody reads. Control edges are passed on from its predecessors to its successors."""
        if self.is_read(node):
            raise ValueError(f"node {node.name} still has readers")
        for slot in range(len(node._inputs)):
            self.set_input(node, slot, None)
        before, after = node.control_inputs, node.control_outputs
        for b in before:
            self.remove_control(b, node)
        for a in after:
            self.remove_control(node, a)
        for b in before:
            for a in after:
                self.add_control(b, a)
        del self._nodes[node.name]
        node._graph = None
        if node is self._net_output:
            self._net_output = None

    def reorder(self, order: Sequence[Node]) -> None:
        """Make ``order`` (all nodes, each once) the iteration order."""
        if len(order) != len(self._nodes) or {id(n) for n in order} != {id(n) for n in self._nodes.values()}:
            raise ValueError("reorder needs every node exactly once")
        self._nodes = {n.name: n for n in order}

    def topological_order(self) -> list[Node]:
        """Return the nodes so that producers and control predecessors come first; ties keep insertion order.

        Raises :class:`CycleError`.
        """
        if self._is_ordered():
            return list(self._nodes.values())
        position = {n: i for i, n in enumerate(self._nodes.values())}
        waiting = {n: len(n.predecessors()) for n in position}
        ready = [i for n, i in position.items() if waiting[n] == 0]
        heapq.heapify(ready)
        nodes = list(position)
        order: list[Node] = []
        while ready:
            node = nodes[heapq.heappop(ready)]
            order.append(node)
            for successor in node.successors():
                waiting[successor] -= 1
                if waiting[successor] == 0:
                    heapq.heappush(ready, position[successor])
        if len(order) != len(nodes):
            raise CycleError(_find_cycle([n for n in nodes if waiting[n] > 0]))
        return order

    def _is_ordered(self) -> bool:
        """Tell whether the insertion order is topological; most graphs have it from their file or a former sort."""
        done: set[Node] = set()
        for node in self._nodes.values():
            if not all(source is None or source.node in done for source in node._inputs):
                return False
            if not done.issuperset(node._control_in):
                return False
            done.add(node)
        return True


def _find_cycle(stuck: list[Node]) -> list[Node]:
    members = set(stuck)
    node = stuck[0]
    path: list[Node] = []
    seen: dict[Node, int] = {}
    while node not in seen:
        seen[node] = len(path)
        path.append(node)
        node = next(p for p in node.predecessors() if p in members)
    return [*reversed(path[seen[node] :]), path[-1]][:-1] or [node]
