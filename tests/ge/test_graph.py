"""The IR keeps edges, consumers, names and order in step."""

import pytest

from ge.graph import CycleError, Graph, NodeIn, TensorDesc
from ge.text import parse_graph, print_graph

DIAMOND = """graph g(%x: f32[2]@ND) {
  %a = Relu(%x) -> f32[2]@ND
  %b = Add(%a, %x) -> f32[2]@ND
  %c = Mul(%a, %b) -> f32[2]@ND
  return %c
}"""


def _names(nodes) -> list[str]:
    return [n.name for n in nodes]


def test_consumers_follow_the_edges() -> None:
    graph = parse_graph(DIAMOND)
    a, b, c, x = (graph.find(n) for n in "abcx")
    assert a.consumers() == [NodeIn(b, 0), NodeIn(c, 0)]
    graph.set_input(b, 0, x.output())
    assert a.consumers() == [NodeIn(c, 0)]
    assert x.consumers() == [NodeIn(a, 0), NodeIn(b, 1), NodeIn(b, 0)]
    graph.set_input(b, 0, None)
    assert b.inputs[0] is None
    assert b.input_descs[0] is None


def test_replace_uses_moves_readers_and_results() -> None:
    graph = parse_graph(DIAMOND)
    graph.replace_uses(graph.find("c").output(), graph.find("a").output())
    assert _names(out.node for out in graph.outputs) == ["a"]
    graph.replace_uses(graph.find("a").output(), graph.find("x").output())
    assert _names(r.node for r in graph.find("x").consumers()) == ["a", "b", "b", "c"]


def test_net_output_is_the_list_of_results() -> None:
    graph = parse_graph(DIAMOND)
    node = graph.add_node("NetOutput", "out", graph.outputs, output_descs=[])
    graph.replace_uses(graph.find("c").output(), graph.find("b").output())
    assert _names(out.node for out in graph.outputs) == ["b"]
    with pytest.raises(ValueError, match="NetOutput"):
        graph.outputs = []
    graph.remove_node(node)
    assert graph.net_output() is None


def test_removal_needs_no_readers_and_hands_control_edges_on() -> None:
    graph = parse_graph(DIAMOND)
    a, b, c = (graph.find(n) for n in "abc")
    with pytest.raises(ValueError, match="still has readers"):
        graph.remove_unread(b)
    extra = graph.add_node("Relu", "extra", [a.output()])
    after = graph.add_node("Relu", "after", [a.output()])
    graph.add_control(c, extra)
    graph.add_control(extra, after)
    graph.remove_unread(extra)
    assert after.control_inputs == (c,)
    assert c.control_outputs == (after,)
    assert extra.is_removed
    with pytest.raises(RuntimeError, match="was removed"):
        _ = extra.graph


def test_removing_one_input_slot_moves_the_later_ones() -> None:
    graph = parse_graph("graph g(%x: f32[1]@ND, %y: f32[2]@ND) { %a = ConcatD(%x, %y, %x, %y) return %a }")
    a = graph.find("a")
    graph.remove_input(a, 1)
    assert [s.node.name for s in a.inputs] == ["x", "x", "y"]
    assert [list(d.shape) for d in a.input_descs] == [[1], [1], [2]]
    assert graph.find("y").consumers() == [NodeIn(a, 2)]


def test_edges_across_graphs_are_refused() -> None:
    one, two = parse_graph(DIAMOND), parse_graph(DIAMOND)
    with pytest.raises(ValueError, match="is not in graph"):
        two.set_input(two.find("a"), 0, one.find("x").output())


def test_names_are_unique_and_new_ones_deterministic() -> None:
    graph = parse_graph(DIAMOND)
    with pytest.raises(ValueError, match="already has a node named a"):
        graph.add_node("Relu", "a")
    assert graph.unique_name("new") == "new"
    made = []
    for _ in range(3):
        made.append(graph.unique_name("a"))
        graph.add_node("Relu", made[-1], output_descs=[TensorDesc([1])])
    assert made == ["a_1", "a_2", "a_3"]


def test_topological_order_is_stable_and_respects_control_edges() -> None:
    graph = parse_graph(
        "graph g(%x: f32[1]@ND) { %c = Relu(%b) ctrl(%d) %b = Relu(%x) %d = Relu(%x) %e = Relu(%x) return %c, %d, %e }"
    )
    assert _names(graph.topological_order()) == ["x", "b", "d", "c", "e"]


def test_a_cycle_is_named() -> None:
    graph = parse_graph(
        "graph g(%x: f32[1]@ND) { %a = Add(%x, %c) %b = Relu(%a) %c = Relu(%b) %d = Relu(%c) return %d }"
    )
    with pytest.raises(CycleError) as caught:
        graph.topological_order()
    cycle = _names(caught.value.nodes)
    assert sorted(cycle) == ["a", "b", "c"]
    assert cycle in (["a", "b", "c"], ["b", "c", "a"], ["c", "a", "b"])


def test_a_chain_of_20000_nodes_needs_no_recursion() -> None:
    graph = Graph("chain")
    last = graph.add_node("Data", "x", output_descs=[TensorDesc([1])]).output()
    for i in range(20_000):
        last = graph.add_node("Relu", f"r{i}", [last], output_descs=[TensorDesc([1])]).output()
    graph.outputs = [last]
    assert len(graph.topological_order()) == 20_001
    assert len(parse_graph(print_graph(graph))) == 20_001


def test_removed_outputs_let_later_ones_move_down() -> None:
    graph = parse_graph("""graph g(%x: f32[2]@ND) {
  %s:5 = Split(%x, %x) -> f32[1]@ND, f32[2]@ND, f32[3]@ND, f32[4]@ND, f32[5]@ND
  %a = Add(%s:0, %s:2) -> f32[3]@ND
  return %s:4, %a
}""")
    split, a = graph.find("s"), graph.find("a")
    with pytest.raises(ValueError, match="output 4 of node s still has readers"):
        graph.remove_outputs(split, [1, 4])
    graph.remove_outputs(split, [3, 1])
    assert [desc.shape for desc in split.output_descs] == [(1,), (3,), (5,)]
    assert a.inputs == (split.output(0), split.output(1))
    assert a.input_descs[1].shape == (3,)
    assert graph.outputs == [split.output(2), a.output()]
    assert [split.consumers(i) for i in range(3)] == [[NodeIn(a, 0)], [NodeIn(a, 1)], []]


def test_removed_inputs_let_later_ones_move_down() -> None:
    graph = parse_graph("""graph g(%x: f32[2]@ND, %y: f32[3]@ND) {
  %c = ConcatD(%x, %y, %x, _, %y) -> f32[8]@ND
  return %c
}""")
    concat, x, y = (graph.find(name) for name in "cxy")
    concat.input_descs[4].attrs["kept"] = 1
    graph.remove_inputs(concat, {0, 2})
    assert concat.inputs == (y.output(), None, y.output())
    assert [None if desc is None else desc.shape for desc in concat.input_descs] == [(3,), None, (3,)]
    assert concat.input_descs[2].attrs == {"kept": 1}
    assert (x.consumers(), y.consumers()) == ([], [NodeIn(concat, 0), NodeIn(concat, 2)])
