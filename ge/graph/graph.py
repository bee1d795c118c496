"""The graph: owner of nodes and edges. Every change of structure goes through its methods.

Rewriting costs what it touches: consumers are indexed, nodes are found by name, removal is O(edges of the node).
Iteration follows insertion order, so results never depend on hash seeds.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from typing import Any

from ge.error import GeError, GraphEditError
from ge.graph.attributes import checked_key, found, settable
from ge.graph.node import AttrValue, Node, NodeIn, NodeOut
from ge.graph.tensor import Tensor
from ge.graph.tensor_desc import TensorDesc
from ge.made_arrays import kept


class DumpFormat(Enum):
    """Forms in which a graph can be written out for people and tools."""

    kOnnx = 0
    kTxt = 1
    kReadable = 2


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
        self.name = checked_key(name, "graph name")
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
            raise GraphEditError(f"graph {self.name} already has a node named {name}")
        descs = [TensorDesc([-2]) for _ in range(n_outputs)] if output_descs is None else list(output_descs)
        node = Node(self, name, type, len(inputs), descs)
        if attrs:
            node.attrs.update(attrs)
        self._nodes[name] = node
        if type == "NetOutput":
            self._net_output = node
            self._outputs = []
        for slot, source in enumerate(inputs):
            if source is not None:
                self.set_input(node, slot, source)
        return node

    def add_const(self, name: str, tensor: Tensor) -> NodeOut:
        """Add a Const node that holds ``tensor`` and return its output; a large new array may move to a file."""
        tensor.array = kept(tensor.array)
        node = self.add_node("Const", name, attrs={"value": tensor}, output_descs=[tensor.desc.copy()])
        return node.output(0)

    def add_subgraph(self, graph: Graph) -> None:
        """Hand ``graph`` and the bodies that it has to the root. Their names must be free."""
        _checked(graph, Graph, "subgraph")
        root = self.root
        if graph.name in root.subgraphs or graph.name == root.name:
            raise GraphEditError(f"graph {root.name} already has a subgraph named {graph.name}")
        if graph is root or (graph.parent is not None and graph.parent.subgraphs.get(graph.name) is graph):
            raise GraphEditError(f"graph {graph.name} is part of a model already")
        own = list(graph.subgraphs.values())
        for body in own:
            if body.name in root.subgraphs or body.name in (root.name, graph.name):
                raise GraphEditError(f"graph {root.name} already has a subgraph named {body.name}")
        for part in [graph, *own]:
            part.parent = root
            root.subgraphs[part.name] = part
        graph.subgraphs = {}

    def remove_subgraph(self, name: str) -> None:
        """Forget the subgraph ``name``."""
        removed = self.root.subgraphs.pop(checked_key(name, "name"), None)
        if removed is None:
            raise GraphEditError(f"graph {self.root.name} has no subgraph named {name}")
        removed.parent = None

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
        self.remove_inputs(node, [slot])

    def remove_inputs(self, node: Node, slots: Collection[int]) -> None:
        """Delete input slots; later ones move down."""
        dropped = set(slots)
        kept = [k for k in range(len(node._inputs)) if k not in dropped]
        sources, descs = [node._inputs[k] for k in kept], [node.input_descs[k] for k in kept]
        for k in range(len(node._inputs)):
            self.set_input(node, k, None)
        node._inputs[:], node.input_descs[:] = [None] * len(kept), [None] * len(kept)
        for k, (source, desc) in enumerate(zip(sources, descs, strict=True)):
            self.set_input(node, k, source)
            node.input_descs[k] = desc

    def set_input(self, node: Node, slot: int, source: NodeOut | None) -> None:
        """Connect ``source`` to an input slot, replacing what was there; ``None`` disconnects.

        The input descriptor becomes a copy of the source's descriptor.
        """
        if source is not None and source.node._graph is not self:
            raise GraphEditError(f"{source} is not in graph {self.name}, {node.name} is")
        old = node._inputs[slot]
        if old is None and source is None:
            node.input_descs[slot] = None
            return
        port = NodeIn(node, slot)
        if old is not None:
            del old.node._consumers[old.index][port]
        node._inputs[slot] = source
        if source is not None:
            source.node._consumers[source.index][port] = None
        node.take_desc(slot)

    def set_type(self, node: Node, type: str) -> None:
        """Change the operator type of ``node``."""
        node._type = type

    def rename(self, node: Node, name: str) -> None:
        """Give ``node`` a new, free name (its place in the iteration order moves to the end)."""
        if name in self._nodes:
            raise GraphEditError(f"graph {self.name} already has a node named {name}")
        del self._nodes[node._name]
        node._name = name
        self._nodes[name] = node

    def add_output_slots(self, node: Node, descs: Iterable[TensorDesc]) -> None:
        """Append outputs to ``node``."""
        for desc in descs:
            node.output_descs.append(desc)
            node._consumers.append({})

    def remove_outputs(self, node: Node, indices: Collection[int]) -> None:
        """Delete outputs that nobody reads; later ones move down."""
        dropped = set(indices)
        results = {out.index for out in self._outputs if out.node is node}
        for index in sorted(dropped):
            if node._consumers[index] or index in results:
                raise GraphEditError(f"output {index} of node {node.name} still has readers")
        kept = [k for k in range(len(node.output_descs)) if k not in dropped]
        readers = [node.consumers(k) for k in kept]
        for reader in [reader for own in readers for reader in own]:
            self.set_input(reader.node, reader.index, None)
        node.output_descs[:] = [node.output_descs[k] for k in kept]
        node._consumers[:] = [{} for _ in kept]
        for k, own in enumerate(readers):
            for reader in own:
                self.set_input(reader.node, reader.index, node.output(k))
        moved = {old: new for new, old in enumerate(kept)}
        self._outputs = [node.output(moved[out.index]) if out.node is node else out for out in self._outputs]

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

    def remove_unread(self, node: Node) -> None:
        """Remove a node that nobody reads; a node with readers is a fault of the caller."""
        if self.is_read(node):
            raise GraphEditError(f"node {node.name} still has readers")
        self.remove_node(node)

    def remove_node(self, node: Node) -> None:
        """Remove a node and its edges, as GE does: ports that read it are left unconnected.

        Control edges are passed on from its predecessors to its successors. What a NetOutput read stays a result.
        """
        self._check_mine(node, "node")
        if node is self._net_output:
            self._outputs = self.outputs
            self._net_output = None
        for slot, source in enumerate(node._inputs):
            if source is not None:
                self.set_input(node, slot, None)
        for readers in node._consumers:
            for reader in list(readers):
                self.set_input(reader.node, reader.index, None)
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
            for source in node._inputs:
                if source is not None and source.node not in done:
                    return False
            if node._control_in and not done.issuperset(node._control_in):
                return False
            done.add(node)
        return True

    # -- CANN's interface ------------------------------------------------------------------------------------------
    # add_subgraph, remove_subgraph and remove_node above are part of it. Failures are RuntimeErrors, arguments of other
    # types TypeErrors.
    def __copy__(self) -> Graph:
        raise GeError("a Graph cannot be copied")

    def __deepcopy__(self, memo: dict[int, Any]) -> Graph:
        raise GeError("a Graph cannot be copied")

    def __str__(self) -> str:
        """The readable dump."""
        return self.dump_to_stream()

    def __repr__(self) -> str:
        return f"<Graph {self.name}: {len(self)} nodes>"

    def get_direct_nodes(self) -> list[Node]:
        """Return the nodes of this graph without those of its bodies, in node-list order."""
        return list(self._nodes.values())

    def get_all_nodes(self) -> list[Node]:
        """Return the nodes of this graph, then those of its bodies."""
        return [node for part in self._with_bodies() for node in part._nodes.values()]

    def _with_bodies(self) -> list[Graph]:
        if self.parent is None:
            return self.all_graphs()
        parts, owned = [self], self.root.subgraphs
        for part in parts:
            names = [name for node in part._nodes.values() for _, name in node.subgraphs]
            parts += [owned[name] for name in dict.fromkeys(names) if name in owned and owned[name] not in parts]
        return parts

    def get_all_subgraphs(self) -> list[Graph]:
        """Return the bodies that belong to this graph, those of bodies included."""
        return self._with_bodies()[1:]

    def get_subgraph(self, name: str) -> Graph | None:
        """Return the body of that name; ``None`` if there is none."""
        return self.root.subgraphs.get(checked_key(name, "name"))

    def find_node_by_name(self, name: str) -> Node:
        """Return the node of that name in this graph. Raises ``RuntimeError`` when there is none."""
        node = self._nodes.get(checked_key(name, "name"))
        if node is None:
            raise GeError(f"graph {self.name} has no node named {name}")
        return node

    def get_attr(self, key: str) -> Any:
        """Return the value of a graph attribute."""
        return found(self.attrs, key, f"graph {self.name}")

    def set_attr(self, key: str, value: Any) -> None:
        """Set a graph attribute; values as in :meth:`Node.set_attr`."""
        checked_key(key)
        self.attrs[key] = settable(value)

    def add_data_edge(self, src_node: Node, src_port_index: int, dst_node: Node, dst_port_index: int) -> None:
        """Connect an output to an input port that has no producer.

        Optional ports that were left out at the end of the node come to be; a further element of a dynamic input does
        not (see :meth:`append_input`).
        """
        self._check_ends(src_node, src_port_index, dst_node, dst_port_index)
        if not 0 <= src_port_index < len(src_node.output_descs):
            raise GraphEditError(f"node {src_node.name} has {len(src_node.output_descs)} outputs, no {src_port_index}")
        if not 0 <= dst_port_index < _widest(dst_node):
            raise GraphEditError(f"node {dst_node.name} ({dst_node.type}) has no input {dst_port_index}")
        old = dst_node.input(dst_port_index)
        if old is not None:
            raise GraphEditError(f"input {dst_port_index} of node {dst_node.name} reads {old}: remove that edge first")
        while len(dst_node._inputs) <= dst_port_index:
            self.append_input(dst_node, None)
        self.set_input(dst_node, dst_port_index, NodeOut(src_node, src_port_index))

    def add_control_edge(self, src_node: Node, dst_node: Node) -> None:
        """Let ``dst_node`` run after ``src_node``."""
        self._check_mine(src_node, "src_node")
        self._check_mine(dst_node, "dst_node")
        if src_node is dst_node:
            raise GraphEditError(f"node {src_node.name} cannot run after itself")
        self.add_control(src_node, dst_node)

    def remove_edge(self, src_node: Node, src_port_index: int, dst_node: Node, dst_port_index: int) -> None:
        """Remove a data edge, or with both ports -1 a control edge. An edge that is not there is a failure."""
        self._check_ends(src_node, src_port_index, dst_node, dst_port_index)
        if src_port_index == dst_port_index == -1:
            if dst_node not in src_node._control_out:
                raise GraphEditError(f"there is no control edge from node {src_node.name} to node {dst_node.name}")
            self.remove_control(src_node, dst_node)
            return
        if dst_node.input(dst_port_index) != (src_node, src_port_index):
            raise GraphEditError(
                f"there is no edge from output {src_port_index} of node {src_node.name} "
                f"to input {dst_port_index} of node {dst_node.name}"
            )
        self.set_input(dst_node, dst_port_index, None)

    def _check_ends(self, src_node: Node, src_port: int, dst_node: Node, dst_port: int) -> None:
        self._check_mine(src_node, "src_node")
        _checked(src_port, int, "src_port_index")
        self._check_mine(dst_node, "dst_node")
        _checked(dst_port, int, "dst_port_index")

    def _check_mine(self, node: Node, what: str) -> None:
        _checked(node, Node, what)
        if node.graph is not self:
            raise GraphEditError(f"node {node.name} is in graph {node.graph.name}, not in {self.name}")

    def dump_to_stream(self, format: DumpFormat = DumpFormat.kReadable) -> str:
        """Return the graph and its bodies as text: readable listing, ONNX-shaped text, or text of a ModelDef."""
        from ge.dump.on_demand import graph_text  # ge.dump imports this module

        return graph_text(self, _checked(format, DumpFormat, "format"))

    def dump_to_file(self, format: DumpFormat = DumpFormat.kReadable, suffix: str = "") -> None:
        """Write :meth:`dump_to_stream` into a new file, named as GE names its stage dumps; ``suffix`` is the stage."""
        from ge.dump.on_demand import write_graph_text

        write_graph_text(self, _checked(format, DumpFormat, "format"), checked_key(suffix, "suffix"))

    def save_to_air(self, file_path: str) -> None:
        """Write the graph and its bodies to a file that :meth:`load_from_air` reads.

        It is one serialised ``ge.proto.ModelDef`` with all constants inside. Floating point attributes are 32 bits wide
        there.
        """
        from ge.proto.air import write_air

        write_air(self, checked_key(file_path, "file_path"))

    def load_from_air(self, file_path: str) -> None:
        """Replace this graph, name included, by that of a file of :meth:`save_to_air`. The old nodes are removed."""
        from ge.proto.air import read_air

        self._become(read_air(checked_key(file_path, "file_path")))

    def _become(self, other: Graph) -> None:
        if self.parent is not None:
            raise GraphEditError(f"graph {self.name} is part of a model: only a whole model can be loaded")
        for part in self.all_graphs():
            for node in part:
                part.remove_node(node)
            part.parent = None
        for node in other:
            node._graph = self
        for body in other.subgraphs.values():
            body.parent = self
        self.__dict__.update(other.__dict__)


def _checked(value: Any, expected: type[Any], what: str) -> Any:
    if not isinstance(value, expected):
        raise TypeError(f"{what} must be {expected.__name__}, not {type(value).__name__}")
    return value


def _widest(node: Node) -> int:
    """Return how many input ports a node can have: what it has, or what its signature fixes."""
    from ge.ops import lookup  # ge.ops imports this module

    definition = lookup(node.type)
    most = None if definition is None else definition.signature.max_inputs
    return len(node._inputs) if most is None else max(most, len(node._inputs))


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
