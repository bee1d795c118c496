"""Random sequences of edits through the pass API: edges, consumers and descriptors never get out of step."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ge.graph import DataType, Graph, NodeIn, TensorDesc
from ge.text import parse_graph, print_graph
from ge.verify import verify

# type, input ports, outputs; a node may read those before it, so no cycle can come to be
NODES = [
    ("Data", 0, 1),
    ("Data", 0, 1),
    ("Relu", 1, 1),
    ("Add", 2, 1),
    ("SplitD", 1, 2),
    ("Mul", 2, 1),
    ("MatMul", 3, 1),
    ("ConcatD", 3, 1),
    ("NetOutput", 2, 0),
]
OPTIONAL = {("MatMul", 2)}


class Model:
    """What the graph should be: connected ports, control edges, descriptors, which nodes there are."""

    def __init__(self) -> None:
        self.graph = Graph("edited")
        self.nodes = []
        for place, (type_, inputs, outputs) in enumerate(NODES):
            # MatMul's optional port is left out at first: an edge makes it
            slots = inputs - 1 if type_ == "MatMul" else inputs
            attrs = {"index": place} if type_ == "Data" else {}
            descs = [TensorDesc([place + 1]) for _ in range(outputs)]
            self.nodes.append(self.graph.add_node(type_, f"n{place}", [None] * slots, attrs, output_descs=descs))
        self.alive = set(range(len(NODES)))
        self.edges: dict[tuple[int, int], tuple[int, int]] = {}
        self.controls: set[tuple[int, int]] = set()
        self.descs = {(n, o): (n + 1, DataType.DT_FLOAT) for n, (_, _, outs) in enumerate(NODES) for o in range(outs)}

    def connect(self, source: int, output: int, target: int, port: int) -> None:
        legal = source in self.alive and target in self.alive and source < target
        if not legal or output >= NODES[source][2] or port >= NODES[target][1]:
            return
        if (target, port) in self.edges:
            with pytest.raises(RuntimeError, match="remove that edge first"):
                self.graph.add_data_edge(self.nodes[source], output, self.nodes[target], port)
            return
        self.graph.add_data_edge(self.nodes[source], output, self.nodes[target], port)
        self.edges[target, port] = (source, output)

    def disconnect(self, target: int, port: int) -> None:
        if (target, port) in self.edges:
            source, output = self.edges.pop((target, port))
            self.graph.remove_edge(self.nodes[source], output, self.nodes[target], port)

    def order(self, first: int, second: int) -> None:
        if first < second and {first, second} <= self.alive:
            self.graph.add_control_edge(self.nodes[first], self.nodes[second])
            self.controls.add((first, second))

    def forget_order(self, first: int, second: int) -> None:
        if (first, second) in self.controls:
            self.controls.remove((first, second))
            self.graph.remove_edge(self.nodes[first], -1, self.nodes[second], -1)

    def remove(self, place: int) -> None:
        if place not in self.alive:
            with pytest.raises(RuntimeError, match="was removed"):
                self.graph.remove_node(self.nodes[place])
            return
        self.graph.remove_node(self.nodes[place])
        self.alive.remove(place)
        self.edges = {t: s for t, s in self.edges.items() if t[0] != place and s[0] != place}
        before = {a for a, b in self.controls if b == place}
        after = {b for a, b in self.controls if a == place}
        self.controls = {c for c in self.controls if place not in c} | {(a, b) for a in before for b in after}

    def describe(self, place: int, output: int, size: int) -> None:
        if place in self.alive and output < NODES[place][2]:
            self.nodes[place].update_output_desc(output, TensorDesc([size], data_type=DataType.DT_INT8))
            self.descs[place, output] = (size, DataType.DT_INT8)

    def contradict(self, target: int, port: int, size: int) -> None:
        if (target, port) in self.edges:
            self.nodes[target].update_input_desc(port, TensorDesc([size], data_type=DataType.DT_BOOL))

    def check(self) -> None:
        assert [n.name for n in self.graph.get_direct_nodes()] == [f"n{place}" for place in sorted(self.alive)]
        for place in self.alive:
            self._check_inputs(place)
            node = self.nodes[place]
            for output in range(NODES[place][2]):
                readers = {(r, p) for (r, p), source in self.edges.items() if source == (place, output)}
                found = node.get_out_data_nodes_and_port_indexes(output)
                assert {(self.nodes.index(r), p) for r, p in found} == readers
                assert node.consumers(output) == [NodeIn(r, p) for r, p in found]
            assert {self.nodes.index(n) for n in node.get_out_control_nodes()} == {
                b for a, b in self.controls if a == place
            }
            assert {self.nodes.index(n) for n in node.get_in_control_nodes()} == {
                a for a, b in self.controls if b == place
            }

    def _check_inputs(self, place: int) -> None:
        node = self.nodes[place]
        connected = [port for port in range(NODES[place][1]) if (place, port) in self.edges]
        assert node.get_inputs_size() == max(connected, default=-1) + 1
        for port in range(NODES[place][1]):
            if port not in connected:
                with pytest.raises(RuntimeError, match="is not connected"):
                    node.get_in_data_nodes_and_port_indexes(port)
                continue
            source, output = self.edges[place, port]
            assert node.get_in_data_nodes_and_port_indexes(port) == (self.nodes[source], output)
            desc = node.get_input_desc(port)
            size, data_type = self.descs[source, output]
            assert (desc.shape, desc.data_type) == ([size], data_type)

    def complete(self) -> None:
        """Connect what must be connected, so that the verifier has nothing to say."""
        for place in sorted(self.alive):
            for port in range(NODES[place][1]):
                if (place, port) not in self.edges and (NODES[place][0], port) not in OPTIONAL:
                    self.connect(min(self.alive), 0, place, port)


place = st.integers(0, len(NODES) - 1)
port = st.integers(0, 2)
size = st.integers(1, 9)
EDITS = st.one_of(
    st.tuples(st.just("connect"), place, port, place, port),
    st.tuples(st.just("disconnect"), place, port),
    st.tuples(st.just("order"), place, place),
    st.tuples(st.just("forget_order"), place, place),
    st.tuples(st.just("remove"), place),
    st.tuples(st.just("describe"), place, port, size),
    st.tuples(st.just("contradict"), place, port, size),
)


@given(st.lists(EDITS, max_size=40))
def test_edits_keep_everything_in_step(edits: list[tuple[str, ...]]) -> None:
    model = Model()
    for name, *arguments in edits:
        getattr(model, name)(*arguments)
        model.check()
    text = print_graph(model.graph)
    assert print_graph(parse_graph(text)) == text


@given(st.lists(EDITS.filter(lambda edit: edit[0] != "remove" or int(edit[1]) > 1), max_size=30))
def test_a_completed_graph_is_legal(edits: list[tuple[str, ...]]) -> None:
    model = Model()
    for name, *arguments in edits:
        getattr(model, name)(*arguments)
    model.complete()
    model.check()
    verify(model.graph)
