"""Passes on graphs with bodies: a small model in, the expected model out."""

from __future__ import annotations

import pytest

from ge.graph import Graph
from ge.options import CompileOptions, Environment
from ge.session import CompileSession
from ge.text import parse_graph, print_graph
from ge.verify import verify
from passes.infer.fold_constants import FoldConstants
from passes.infer.infer_shapes import InferShapes
from passes.infer.take_known_branches import TakeKnownBranches
from passes.prepare.add_net_output import AddNetOutput
from passes.prepare.remove_dead_captures import RemoveDeadCaptures
from passes.prepare.remove_dead_nodes import RemoveDeadNodes
from passes.prepare.sink_constants import SinkConstants


def transform(text: str, *steps) -> Graph:
    graph = parse_graph(text)
    session = CompileSession(CompileOptions(), Environment())
    for step in (AddNetOutput(), *steps):
        step.run(graph, session)
        verify(graph)
    return graph


def shown(graph: Graph) -> str:
    """The graph text without NetOutput nodes and names of results, which every graph has."""
    return "\n".join(line for line in print_graph(graph).split("\n") if "NetOutput" not in line)


BRANCHES = """graph g(%c: bool[]@ND, %x: f32[2]@ND) {
  %k = Const {value=f32[2]{1.0, 2.0}} -> f32[2]@ND
  %i = If(%c, %x, %k) {then_branch=@t, else_branch=@e} -> f32[2]@ND
  return %i
}
graph t(%t/x: f32[2]@ND {_parent_node_index=1}, %t/k: f32[2]@ND {_parent_node_index=2}) {
  %t/y = Add(%t/x, %t/k) -> f32[2]@ND
  return %t/y
}
graph e(%e/x: f32[2]@ND {_parent_node_index=1}, %e/k: f32[2]@ND {_parent_node_index=2}) {
  return %e/k
}"""


def test_constants_sink_into_the_bodies_that_read_them() -> None:
    graph = transform(BRANCHES, SinkConstants(), RemoveDeadCaptures(), RemoveDeadNodes())
    assert (
        shown(graph)
        == """graph g(%c: bool[]@ND, %x: f32[2]@ND) {
  %i = If(%c, %x) {then_branch=@t, else_branch=@e} -> f32[2]@ND
  return %i
}
graph t(%t/x: f32[2]@ND {_parent_node_index=1}) {
  %t/y = Add(%t/x, %t/k_1) -> f32[2]@ND
  %t/k_1 = Const {value=f32[2]{1.0, 2.0}, _datadump_original_op_names=[]} -> f32[2]@ND
  return %t/y
}
graph e(%e/x: f32[2]@ND {_parent_node_index=1}) {
  %e/k_1 = Const {value=f32[2]{1.0, 2.0}, _datadump_original_op_names=[]} -> f32[2]@ND
  return %e/k_1
}"""
    )
    values = [graph.subgraphs[name].find(f"{name}/k_1").attrs["value"].array for name in "te"]
    assert values[0] is values[1], "the file and the memory of a run hold it once"


def test_constants_sink_through_bodies_of_bodies_and_fold_there() -> None:
    graph = transform(
        """graph g(%c: bool[]@ND, %x: f32[2]@ND) {
  %k = Const {value=f32[2]{1.0, 2.0}} -> f32[2]@ND
  %n = Neg(%k) -> f32[2]@ND
  %i = If(%c, %x, %n) {then_branch=@t, else_branch=@e} -> f32[2]@ND
  return %i
}
graph t(%t/x: f32[2]@ND {_parent_node_index=1}, %t/k: f32[2]@ND {_parent_node_index=2}) {
  %t/y = PartitionedCall(%t/x, %t/k) {f=@f} -> f32[2]@ND
  return %t/y
}
graph e(%e/x: f32[2]@ND {_parent_node_index=1}) { return %e/x }
graph f(%f/x: f32[2]@ND {_parent_node_index=0}, %f/k: f32[2]@ND {_parent_node_index=1}) {
  %f/s = Square(%f/k) -> f32[2]@ND
  %f/y = Add(%f/x, %f/s) -> f32[2]@ND
  return %f/y
}""",
        FoldConstants(),
        RemoveDeadCaptures(),
        RemoveDeadNodes(),
    )
    assert (
        shown(graph)
        == """graph g(%c: bool[]@ND, %x: f32[2]@ND) {
  %i = If(%c, %x) {then_branch=@t, else_branch=@e} -> f32[2]@ND
  return %i
}
graph t(%t/x: f32[2]@ND {_parent_node_index=1}) {
  %t/y = PartitionedCall(%t/x) {f=@f} -> f32[2]@ND
  return %t/y
}
graph e(%e/x: f32[2]@ND {_parent_node_index=1}) {
  return %e/x
}
graph f(%f/x: f32[2]@ND {_parent_node_index=0}) {
  %f/y = Add(%f/x, %f/s_folded) -> f32[2]@ND
  %f/s_folded = Const {value=f32[2]{1.0, 4.0}, _datadump_original_op_names=[]} -> f32[2]@ND
  return %f/y
}"""
    )


LOOP = """graph g(%i: i64[]@ND, %x: f32[2]@ND, %z: f32[2]@ND) {{
  %k = Const {{value=f32[2]{{1.0, 2.0}}}} -> f32[2]@ND
  %w:5 = While(%i, %x, %k, %z, %x) {{cond=@c, body=@b}} -> i64[]@ND, f32[2]@ND, f32[2]@ND, f32[2]@ND, f32[2]@ND
  {after}
}}
graph c(%c/i: i64[]@ND {{_parent_node_index=0}}, %c/x: f32[2]@ND {{_parent_node_index=1}}) {{
  %c/ten = Const {{value=i64[]{{10}}}} -> i64[]@ND
  %c/y = Less(%c/i, %c/ten) -> bool[]@ND
  return %c/y
}}
graph b(%b/i: i64[]@ND {{_parent_node_index=0}}, %b/x: f32[2]@ND {{_parent_node_index=1}}, \
%b/k: f32[2]@ND {{_parent_node_index=2}}, %b/z: f32[2]@ND {{_parent_node_index=3}}, \
%b/v: f32[2]@ND {{_parent_node_index=4}}) {{
  %b/one = Const {{value=i64[]{{1}}}} -> i64[]@ND
  %b/j = Add(%b/i, %b/one) -> i64[]@ND
  %b/u = Mul(%b/x, %b/k) -> f32[2]@ND
  %b/t = Neg(%b/v) -> f32[2]@ND
  return %b/j, %b/u, %b/k, %b/z, %b/t
}}"""


def test_a_loop_keeps_the_state_that_its_results_and_its_condition_need() -> None:
    graph = transform(LOOP.format(after="return %w:1, %w:3"), SinkConstants(), RemoveDeadCaptures(), RemoveDeadNodes())
    assert (
        shown(graph)
        == """graph g(%i: i64[]@ND, %x: f32[2]@ND, %z: f32[2]@ND) {
  %w:2 = While(%i, %x) {cond=@c, body=@b} -> i64[]@ND, f32[2]@ND
  return %w:1, %z
}
graph c(%c/i: i64[]@ND {_parent_node_index=0}, %c/x: f32[2]@ND {_parent_node_index=1}) {
  %c/ten = Const {value=i64[]{10}} -> i64[]@ND
  %c/y = Less(%c/i, %c/ten) -> bool[]@ND
  return %c/y
}
graph b(%b/i: i64[]@ND {_parent_node_index=0}, %b/x: f32[2]@ND {_parent_node_index=1}) {
  %b/one = Const {value=i64[]{1}} -> i64[]@ND
  %b/j = Add(%b/i, %b/one) -> i64[]@ND
  %b/u = Mul(%b/x, %b/k_1) -> f32[2]@ND
  %b/k_1 = Const {value=f32[2]{1.0, 2.0}, _datadump_original_op_names=[]} -> f32[2]@ND
  return %b/j, %b/u
}"""
    )


@pytest.mark.parametrize(
    ("old", "new", "kept"),
    [
        ("%b/u = Mul(%b/x, %b/k)", "%b/u = Mul(%b/x, %b/v)", [0, 1, 4]),
        ("%c/y = Less(%c/i, %c/ten)", "%c/y = IsFinite(%c/x)", [1]),
        ("%b/t = Neg(%b/v)", "%b/t = Dropout(%b/v)", [0, 1]),
    ],
    ids=["a result depends on another value", "the condition depends on another value", "nothing depends on it"],
)
def test_state_that_something_depends_on_stays(old: str, new: str, kept: list[int]) -> None:
    text = LOOP.format(after="return %w:1")
    assert old in text
    graph = transform(text.replace(old, new), SinkConstants(), RemoveDeadCaptures())
    loop = graph.find("w")
    names = [source.node.name for source in loop.inputs]
    assert names == [["i", "x", "k", "z", "x"][slot] for slot in kept]
    assert len(loop.output_descs) == len(graph.subgraphs["b"].outputs) == len(kept)
    slots = [data.attrs["_parent_node_index"] for data in graph.subgraphs["b"].data_nodes()]
    assert slots == [data.attrs["index"] for data in graph.subgraphs["b"].data_nodes()] == list(range(len(kept)))


def test_a_constant_that_a_loop_changes_stays_outside() -> None:
    text = LOOP.format(after="return %w:1").replace("%b/u, %b/k, %b/z", "%b/u, %b/x, %b/z")
    graph = transform(text, SinkConstants(), RemoveDeadCaptures())
    assert [source.node.name for source in graph.find("w").inputs] == ["i", "x", "k"]


def test_outputs_that_nobody_reads_go_with_what_only_they_need() -> None:
    graph = transform(
        """graph g(%c: bool[]@ND, %x: f32[2]@ND, %z: f32[2]@ND) {
  %i:3 = If(%c, %x, %z) {then_branch=@t, else_branch=@e} -> f32[2]@ND, f32[2]@ND, f32[2]@ND
  %y = Neg(%i:2) -> f32[2]@ND
  return %y
}
graph t(%t/x: f32[2]@ND {_parent_node_index=1}, %t/z: f32[2]@ND {_parent_node_index=2}) {
  %t/a = Abs(%t/x) -> f32[2]@ND
  return %t/a, %t/x, %t/z
}
graph e(%e/x: f32[2]@ND {_parent_node_index=1}, %e/z: f32[2]@ND {_parent_node_index=2}) {
  %e/a = Neg(%e/z) -> f32[2]@ND
  return %e/x, %e/x, %e/a
}""",
        RemoveDeadCaptures(),
    )
    assert (
        shown(graph)
        == """graph g(%c: bool[]@ND, %x: f32[2]@ND, %z: f32[2]@ND) {
  %i = If(%c, %z) {then_branch=@t, else_branch=@e} -> f32[2]@ND
  %y = Neg(%i) -> f32[2]@ND
  return %y
}
graph t(%t/z: f32[2]@ND {_parent_node_index=1}) {
  return %t/z
}
graph e(%e/z: f32[2]@ND {_parent_node_index=1}) {
  %e/a = Neg(%e/z) -> f32[2]@ND
  return %e/a
}"""
    )


def test_captures_of_the_innermost_body_go_at_all_levels() -> None:
    graph = transform(
        """graph g(%c: bool[]@ND, %x: f32[2]@ND, %z: f32[2]@ND) {
  %n = Abs(%z) -> f32[2]@ND
  %i = If(%c, %x, %n) {then_branch=@t, else_branch=@e} -> f32[2]@ND
  return %i
}
graph t(%t/x: f32[2]@ND {_parent_node_index=1}, %t/z: f32[2]@ND {_parent_node_index=2}) {
  %t/n = Neg(%t/z) -> f32[2]@ND
  %t/y = PartitionedCall(%t/n, %t/x) {f=@f} -> f32[2]@ND
  return %t/y
}
graph e(%e/x: f32[2]@ND {_parent_node_index=1}) { return %e/x }
graph f(%f/z: f32[2]@ND {_parent_node_index=0}, %f/x: f32[2]@ND {_parent_node_index=1}) {
  %f/dead = Neg(%f/z) -> f32[2]@ND
  return %f/x
}""",
        RemoveDeadCaptures(),
        RemoveDeadNodes(),
    )
    assert [source.node.name for source in graph.find("i").inputs] == ["c", "x"]
    assert graph.find("n") is None
    assert [source.node.name for source in graph.subgraphs["t"].find("t/y").inputs] == ["t/x"]


KNOWN = """graph g(%x: f32[2]@ND, %z: f32[2]@ND) {{
  %c = {condition}
  %i = If(%c, %x, %z) {{then_branch=@t, else_branch=@e}} -> f32[-1]@ND
  %y = Abs(%i) -> f32[-1]@ND
  return %y
}}
graph t(%t/x: f32[2]@ND {{_parent_node_index=1}}) {{
  %t/k = Const {{value=i64[1]{{2}}}} -> i64[1]@ND
  %t/r = Tile(%t/x, %t/k) -> f32[4]@ND
  return %t/r
}}
graph e(%e/c: f32[2]@ND {{_parent_node_index=2}}) {{
  %e/inner = PartitionedCall(%e/c) {{f=@f}} -> f32[2]@ND
  return %e/inner
}}
graph f(%f/x: f32[2]@ND {{_parent_node_index=0}}) {{ return %f/x }}"""


def test_the_branch_that_a_constant_takes_stands_in_place_of_the_call() -> None:
    graph = transform(
        KNOWN.format(condition="Const {value=bool[]{true}} -> bool[]@ND"), TakeKnownBranches(), RemoveDeadNodes()
    )
    assert (
        shown(graph)
        == """graph g(%x: f32[2]@ND, %z: f32[2]@ND) {
  %y = Abs(%t/r) -> f32[4]@ND
  %t/k = Const {value=i64[1]{2}} -> i64[1]@ND
  %t/r = Tile(%x, %t/k) -> f32[4]@ND
  return %y
}"""
    )


def test_bodies_of_the_branch_taken_stay() -> None:
    graph = transform(
        KNOWN.format(condition="Const {value=bool[]{false}} -> bool[]@ND"), TakeKnownBranches(), RemoveDeadNodes()
    )
    assert [node.type for node in graph if node.type not in ("Data", "NetOutput")] == ["Abs", "PartitionedCall"]
    assert list(graph.subgraphs) == ["f"]
    assert graph.find("e/inner").inputs[0].node.name == "z"


def test_a_condition_that_is_not_known_decides_nothing() -> None:
    graph = transform(KNOWN.format(condition="IsFinite(%x) -> bool[2]@ND"), TakeKnownBranches())
    assert [name for _, name in graph.find("i").subgraphs] == ["t", "e"]


@pytest.mark.parametrize(("index", "taken"), [(0, "a"), (1, "b"), (2, "c"), (9, "c"), (-1, "c")])
def test_a_known_case(index: int, taken: str) -> None:
    bodies = "".join(
        f"graph {name}(%{name}/x: f32[2]@ND {{_parent_node_index=1}}) "
        f"{{ %{name}/y = Neg(%{name}/x) -> f32[2]@ND return %{name}/y }}\n"
        for name in "abc"
    )
    graph = transform(
        f"""graph g(%x: f32[2]@ND) {{
  %n = Const {{value=i32[]{{{index}}}}} -> i32[]@ND
  %i = Case(%n, %x) {{branches0=@a, branches1=@b, branches2=@c}} -> f32[2]@ND
  return %i
}}
{bodies}""",
        TakeKnownBranches(),
    )
    assert not graph.subgraphs
    assert [node.name for node in graph if node.type == "Neg"] == [f"{taken}/y"]


def test_what_bodies_are_given_decides_their_branches_and_shapes_decide_more() -> None:
    graph = transform(
        """graph g(%c: bool[]@ND, %x: f32[2]@ND, %y: f32[3]@ND) {
  %s = Shape(%y) {dtype=9} -> i64[1]@ND
  %i = If(%c, %x, %s) {then_branch=@t, else_branch=@e} -> f32[-1]@ND
  return %i
}
graph t(%t/x: f32[2]@ND {_parent_node_index=1}, %t/s: i64[1]@ND {_parent_node_index=2}) {
  %t/three = Const {value=i64[1]{3}} -> i64[1]@ND
  %t/is = Equal(%t/s, %t/three) -> bool[1]@ND
  %t/r = If(%t/is, %t/x) {then_branch=@a, else_branch=@b} -> f32[-1]@ND
  %t/n = Shape(%t/r) {dtype=9} -> i64[1]@ND
  %t/four = Const {value=i64[1]{4}} -> i64[1]@ND
  %t/has = Equal(%t/n, %t/four) -> bool[1]@ND
  %t/z = If(%t/has, %t/r) {then_branch=@p, else_branch=@q} -> f32[-1]@ND
  return %t/z
}
graph e(%e/x: f32[2]@ND {_parent_node_index=1}) { return %e/x }
graph a(%a/x: f32[2]@ND {_parent_node_index=1}) {
  %a/k = Const {value=i64[1]{2}} -> i64[1]@ND
  %a/y = Tile(%a/x, %a/k) -> f32[4]@ND
  return %a/y
}
graph b(%b/x: f32[2]@ND {_parent_node_index=1}) { return %b/x }
graph p(%p/x: f32[-1]@ND {_parent_node_index=1}) { %p/y = Neg(%p/x) -> f32[-1]@ND return %p/y }
graph q(%q/x: f32[-1]@ND {_parent_node_index=1}) { %q/y = Abs(%q/x) -> f32[-1]@ND return %q/y }""",
        InferShapes(),
        TakeKnownBranches(),
        FoldConstants(),
        RemoveDeadCaptures(),
        RemoveDeadNodes(),
    )
    assert list(graph.subgraphs) == ["t", "e"]
    kept = [node for node in graph.subgraphs["t"] if node.type not in ("Data", "Const", "NetOutput")]
    assert [(node.type, node.output_descs[0].shape) for node in kept] == [("Tile", (4,)), ("Neg", (4,))]


@pytest.mark.parametrize("reads_twice", [True, False])
def test_folding_counts_what_other_bodies_still_hold(reads_twice: bool) -> None:
    values = ", ".join(["0.5"] * 64)
    others = {True: "Square(%e/k)", False: "Square(%e/x)"}
    graph = transform(
        f"""graph g(%c: bool[]@ND, %x: f32[64]@ND) {{
  %k = Const {{value=f32[64]{{{values}}}}} -> f32[64]@ND
  %i = If(%c, %x, %k) {{then_branch=@t, else_branch=@e}} -> f32[64]@ND
  return %i
}}
graph t(%t/x: f32[64]@ND {{_parent_node_index=1}}, %t/k: f32[64]@ND {{_parent_node_index=2}}) {{
  %t/m = Neg(%t/k) -> f32[64]@ND
  %t/y = Add(%t/x, %t/m) -> f32[64]@ND
  return %t/y
}}
graph e(%e/x: f32[64]@ND {{_parent_node_index=1}}, %e/k: f32[64]@ND {{_parent_node_index=2}}) {{
  %e/m = {others[reads_twice]} -> f32[64]@ND
  return %e/m
}}""",
        SinkConstants(),
        RemoveDeadCaptures(),
        RemoveDeadNodes(),
        FoldConstants(limit=0, small=0),
    )
    is_folded = graph.subgraphs["t"].find("t/m_folded") is not None
    assert is_folded is not reads_twice, "a constant that takes the place of its only source does not grow the file"
