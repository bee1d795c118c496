"""The tree of bodies: who calls whom."""

from __future__ import annotations

import pytest

from ge.call_tree import (
    MAX_NESTING,
    CallFault,
    bodies,
    bodies_first,
    callers,
    callers_first,
    parent_slot,
    unchanged_slots,
)
from ge.errors import ReportedError
from ge.graph import Graph
from ge.text import parse_graph
from ge.verify import verify


def chain(depth: int) -> Graph:
    """A graph whose node calls a body whose node calls a body, and so on."""
    root = Graph("root")
    part = root
    for level in range(depth):
        body = Graph(f"body{level}")
        node = part.add_node("PartitionedCall", f"call{level}", n_outputs=0)
        node.subgraphs = [("f", body.name)]
        root.add_subgraph(body)
        part = body
    return root


def test_callers_and_orders() -> None:
    graph = parse_graph("""graph g(%c: bool[]@ND) {
  %i = If(%c) {then_branch=@t, else_branch=@e} -> f32[]@ND
  %p = PartitionedCall() {f=@f} -> f32[]@ND
  return %i, %p
}
graph inner() { %a = Const {value=f32[]{1.0}} -> f32[]@ND return %a }
graph t() { %t/p = PartitionedCall() {f=@inner} -> f32[]@ND return %t/p }
graph e() { %b = Const {value=f32[]{1.0}} -> f32[]@ND return %b }
graph f() { %d = Const {value=f32[]{1.0}} -> f32[]@ND return %d }
graph unused() { %u = Const {value=f32[]{1.0}} -> f32[]@ND return %u }""")
    assert {name: node.name for name, node in callers(graph).items()} == {"t": "i", "e": "i", "f": "p", "inner": "t/p"}
    order = [part.name for part in callers_first(graph)]
    assert order.index("inner") > order.index("t") > order.index("g")
    assert [part.name for part in bodies_first(graph)] == order[::-1]
    assert list(bodies(graph.find("i"))) == ["then_branch", "else_branch"]


def test_one_node_may_call_a_body_in_two_places() -> None:
    graph = parse_graph("""graph g(%c: bool[]@ND) {
  %i = If(%c) {then_branch=@t, else_branch=@t} -> f32[]@ND
  return %i
}
graph t() { %a = Const {value=f32[]{1.0}} -> f32[]@ND return %a }""")
    assert list(callers(graph)) == ["t"]


def test_slots() -> None:
    graph = parse_graph("""graph g(%c: bool[]@ND, %x: f32[]@ND) {
  %i = If(%c, %x, %x) {then_branch=@t, else_branch=@e} -> f32[]@ND
  %w:3 = While(%x, %x, %x) {cond=@n, body=@b} -> f32[]@ND, f32[]@ND, f32[]@ND
  return %i
}
graph t(%t/a: f32[]@ND {_parent_node_index=2}) { return %t/a }
graph e(%e/a: f32[]@ND, %e/b: f32[]@ND) { return %e/b }
graph n(%n/a: f32[]@ND) { return %n/a }
graph b(%b/a: f32[]@ND, %b/b: f32[]@ND, %b/d: f32[]@ND) {
  %b/i = Identity(%b/d) -> f32[]@ND
  return %b/b, %b/b, %b/i
}""")
    choice, loop = graph.find("i"), graph.find("w")
    slots = [parent_slot(data, choice) for name in "te" for data in graph.subgraphs[name].data_nodes()]
    assert slots == [2, 1, 2], "the condition stands in front where no slot is given"
    assert [parent_slot(data, loop) for data in graph.subgraphs["b"].data_nodes()] == [0, 1, 2]
    assert unchanged_slots(graph.subgraphs["b"], loop) == {1, 2}


@pytest.mark.parametrize("depth", [1, MAX_NESTING])
def test_as_many_levels_as_there_may_be(depth: int) -> None:
    assert len(callers(chain(depth))) == depth


@pytest.mark.parametrize(
    ("graph", "reason"),
    [
        (chain(MAX_NESTING + 1), f"nested deeper than {MAX_NESTING} levels"),
        (
            parse_graph("graph g() { %a:0 = PartitionedCall() {f=@t} return } graph t() { return } "),
            None,
        ),
        (
            parse_graph("graph g() { %a:0 = PartitionedCall() {f=@t} %b:0 = PartitionedCall() {f=@t} return }"
                        "graph t() { return }"),
            "graph t is called twice: by a and by b",
        ),
        (
            parse_graph("graph g() { return } graph t() { %a:0 = PartitionedCall() {f=@u} return }"
                        "graph u() { %b:0 = PartitionedCall() {f=@t} return }"),
            "calls itself",
        ),
        (
            parse_graph("graph g() { %a:0 = PartitionedCall() {f=@ghost} return }"),
            "node a calls graph ghost, which does not exist",
        ),
    ],
    ids=["too deep", "fine", "called twice", "a circle", "missing"],
)  # fmt: skip
def test_what_is_no_tree(graph: Graph, reason: str | None) -> None:
    if reason is None:
        verify(graph)
        return
    with pytest.raises(CallFault, match=reason):
        callers(graph)
    with pytest.raises(ReportedError, match=f"E19999[^$]*{reason}"):
        verify(graph)
