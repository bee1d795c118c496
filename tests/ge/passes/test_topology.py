"""Cycles that fusing would close, asked again and again while a graph is rewritten."""

from __future__ import annotations

import numpy as np
import pytest

from ge.graph import CycleError, Graph, Node
from ge.passes.topology import Topology, successors


def closes_cycle_by_search(fused: set[Node]) -> bool:
    """Follow every path that leaves the set, without any numbers."""
    stack = [s for node in fused for s in successors(node) if s not in fused]
    seen = set(stack)
    while stack:
        for node in successors(stack.pop()):
            if node in fused:
                return True
            if node not in seen:
                seen.add(node)
                stack.append(node)
    return False


def random_graph(rng: np.random.Generator, count: int) -> Graph:
    """A graph whose nodes read up to two earlier ones, and wait for one now and then, listed in random order."""
    graph = Graph("g")
    outs = [graph.add_node("Data", "x").output()]
    for i in range(count):
        reads = [outs[j] for j in rng.integers(max(0, len(outs) - 12), len(outs), rng.integers(1, 3))]
        node = graph.add_node("Op", f"n{i}", reads)
        if rng.random() < 0.1:
            graph.add_control(outs[rng.integers(len(outs))].node, node)
        outs.append(node.output())
    graph.reorder([list(graph)[i] for i in rng.permutation(len(graph))])
    return graph


def fuse(graph: Graph, fused: list[Node], name: str) -> Node:
    """Replace nodes by one that reads what they read and is read by their readers."""
    inside = set(fused)
    sources = dict.fromkeys(s for n in fused for s in n.inputs if s is not None and s.node not in inside)
    new = graph.add_node("Fused", name, list(sources), n_outputs=1)
    for node in fused:
        for reader in node.consumers():
            if reader.node not in inside:
                graph.set_input(reader.node, reader.index, new.output())
        for before in node.control_inputs:
            if before not in inside:
                graph.add_control(before, new)
        for after in node.control_outputs:
            if after not in inside:
                graph.add_control(new, after)
    for node in fused:
        for other in (*node.control_inputs, *node.control_outputs):
            graph.remove_control(other, node)
            graph.remove_control(node, other)
        graph.remove_node(node)
    return new


@pytest.mark.parametrize("seed", range(12))
def test_answers_stay_right_while_nodes_are_fused(seed) -> None:
    rng = np.random.default_rng(seed)
    graph = random_graph(rng, 80)
    topology = Topology(graph)
    answers = []
    for turn in range(60):
        nodes = [n for n in graph if n.type != "Data"]
        if len(nodes) < 4:
            break
        picked = [nodes[i] for i in rng.choice(len(nodes), rng.integers(2, 4), replace=False)]
        expected = closes_cycle_by_search(set(picked))
        assert topology.closes_cycle(picked) == expected
        answers.append(expected)
        if not expected:
            topology.insert([fuse(graph, picked, f"fused{turn}")])
            graph.topological_order()
    assert 5 < sum(answers) < len(answers) - 5, "the picks must be able to tell"


def test_a_single_node_closes_no_cycle() -> None:
    graph = random_graph(np.random.default_rng(0), 10)
    assert not Topology(graph).closes_cycle([graph.find("n5")])


def test_a_cycle_that_is_there_already_is_said() -> None:
    graph = Graph("g")
    a = graph.add_node("Op", "a", [None])
    b = graph.add_node("Op", "b", [a.output()])
    c = graph.add_node("Op", "c", [b.output()])
    graph.set_input(a, 0, b.output())
    with pytest.raises(CycleError):
        Topology(graph).closes_cycle([b, c])


def test_numbers_run_out_between_two_neighbours() -> None:
    """Each turn puts a node between the same two; when no number is left in between, all are numbered anew."""
    graph = Graph("g")
    first = graph.add_node("Op", "first", [])
    last = graph.add_node("Op", "last", [first.output()])
    topology = Topology(graph)
    topology.closes_cycle([first, last])
    before = first
    for i in range(120):
        new = graph.add_node("Op", f"n{i}", [before.output()])
        graph.set_input(last, 0, new.output())
        topology.insert([new])
        assert topology.closes_cycle([first, last])
        assert not topology.closes_cycle([before, new])
        before = new
