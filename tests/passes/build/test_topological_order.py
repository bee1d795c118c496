"""Execution orders: legal in every mode, and each with its character."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ge.errors import ReportedError
from ge.text import parse_graph
from passes.build.topological_order import SortingMode, SortTopologically
from tests.passes.build.memory_machine import build_session
from tests.passes.build.random_graph import random_graph

# two branches of two nodes each, listed from their ends
DIAMOND = """graph g(%x: f32[8]@ND) {
  %sum = Add(%a2, %b2)
  %b2 = Relu(%b1)
  %a2 = Relu(%a1)
  %b1 = Neg(%x)
  %a1 = Abs(%x)
  return %sum
}"""


def names_in_order(graph, mode) -> list[str]:
    SortTopologically(mode).run(graph, build_session())
    return [node.name for node in graph]


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        pytest.param(SortingMode.BFS, "x b1 a1 b2 a2 sum", id="breadth: level by level"),
        pytest.param(SortingMode.DFS, "x b1 b2 a1 a2 sum", id="depth: a branch is finished first, readers in order"),
        pytest.param(SortingMode.RDFS, "x a1 a2 b1 b2 sum", id="backwards: in the order of the sum's inputs"),
        pytest.param(SortingMode.STABLE_RDFS, "x b1 b2 a1 a2 sum", id="backwards: in the order of the listing"),
    ],
)
def test_each_mode_walks_its_way(mode, expected) -> None:
    graph = parse_graph(DIAMOND)
    # the reader b1 stands before a1 in the listing; edges are made in that order
    assert names_in_order(graph, mode) == expected.split()


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        pytest.param(8, 8, "x a1 a2 b1 b2 sum", id="no difference: readers in order"),
        pytest.param(8, 4096, "x b1 b2 a1 a2 sum", id="the second branch is wide in the middle, the first is not"),
        pytest.param(4096, 8, "x a1 a2 b1 b2 sum", id="the first branch is wide in the middle"),
    ],
)
def test_depth_first_begins_with_the_branch_that_keeps_less_alive(a, b, expected) -> None:
    graph = parse_graph(f"""graph g(%x: f32[8]@ND) {{
  %a1 = MatMulV2(%x) -> f32[{a}]@ND
  %b1 = MatMulV2(%x) -> f32[{b}]@ND
  %a2 = MatMulV2(%a1) -> f32[1024]@ND
  %b2 = MatMulV2(%b1) -> f32[1024]@ND
  %sum = Add(%a2, %b2) -> f32[1024]@ND
  return %sum
}}""")
    assert names_in_order(graph, SortingMode.DFS) == expected.split()


def test_depth_first_is_the_default() -> None:
    assert SortTopologically().mode == SortingMode.DFS


@given(st.integers(0, 2**32), st.integers(0, 30), st.sampled_from(SortingMode))
def test_every_producer_comes_first_and_nothing_is_lost(seed, n_nodes, mode) -> None:
    graph = random_graph(seed, n_nodes)
    nodes = list(graph)
    shuffled = nodes[1::2][::-1] + nodes[::2]
    graph.reorder(shuffled)
    names = names_in_order(graph, mode)
    assert sorted(names) == sorted(node.name for node in nodes)
    position = {name: i for i, name in enumerate(names)}
    for node in graph:
        for source in node.inputs:
            assert position[source.node.name] < position[node.name]
    assert names[-1] == "NetOutput"
    assert names_in_order(graph, mode) == names, "a second run changes nothing"


@pytest.mark.parametrize("mode", SortingMode)
def test_control_edges_count(mode) -> None:
    text = "graph g(%x: f32[8]@ND) { %a = Abs(%x) ctrl(%b) %b = Neg(%x) %c = Add(%a, %b) return %c }"
    names = names_in_order(parse_graph(text), mode)
    assert names.index("b") < names.index("a")


@pytest.mark.parametrize("mode", [SortingMode.BFS, SortingMode.DFS])
def test_constants_stand_before_their_first_reader_and_decide_nothing(mode) -> None:
    text = """graph g(%x: f32[1]@ND) {
  %late = Const {value=f32[1]{1.0}}
  %early = Const {value=f32[1]{2.0}}
  %low = Neg(%early) {_load_time_const=true}
  %unread = Const {value=f32[1]{3.0}}
  %a = Mul(%x, %low)
  %b = Mul(%a, %late)
  %c = Add(%b, %early)
  return %c
}"""
    assert " ".join(names_in_order(parse_graph(text), mode)) == "unread x early low a late b c"


@pytest.mark.parametrize("mode", SortingMode)
def test_results_are_last_even_when_nodes_without_readers_remain(mode) -> None:
    graph = parse_graph("graph g(%x: f32[8]@ND) { %y = Abs(%x) %unread = Neg(%y) return %y }")
    graph.add_node("NetOutput", "NetOutput", graph.outputs, output_descs=[])
    assert names_in_order(graph, mode)[-1] == "NetOutput"


@pytest.mark.parametrize("mode", SortingMode)
def test_a_cycle_is_reported_with_its_nodes(mode) -> None:
    graph = parse_graph("graph g(%x: f32[8]@ND) { %a = Add(%x, %b) %b = Neg(%a) %c = Abs(%b) return %c }")
    with pytest.raises(ReportedError, match=r"E19999[^$]*graph g has a cycle: b -> a"):
        SortTopologically(mode).run(graph, build_session())


def test_bodies_are_sorted_too() -> None:
    text = """graph g(%p: bool[]@ND, %x: f32[8]@ND) {
  %y = If(%p, %x) {then_branch=@t, else_branch=@e} -> f32[8]@ND
  return %y
}
graph t(%x: f32[8]@ND) { %b = Neg(%a) %a = Abs(%x) return %b }
graph e(%x: f32[8]@ND) { %b = Abs(%x) return %b }"""
    graph = parse_graph(text)
    assert SortTopologically().run(graph, build_session())
    assert [node.name.split("/")[-1] for node in graph.subgraphs["t"]] == ["x", "a", "b"]


def test_deep_graphs_need_no_recursion() -> None:
    graph = parse_graph("graph g(%x: f32[8]@ND) { return %x }")
    out = graph.outputs[0]
    for i in range(5000):
        out = graph.add_node("Relu", f"n{i}", [out]).output()
    graph.reorder(list(graph)[::-1])
    for mode in SortingMode:
        assert names_in_order(graph, mode) == ["x", *(f"n{i}" for i in range(5000))]
