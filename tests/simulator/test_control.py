"""Bodies in planned memory: how state is copied, what is chosen, and plans that cannot be believed."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ge.errors import ReportedError
from ge.graph import Graph, Shape
from ge.options import CompileOptions, Environment
from ge.plan import Block, Plan
from ge.session import CompileSession
from ge.text import parse_graph
from passes.prepare.add_net_output import AddNetOutput
from simulator import InferSession
from simulator.control import Copies
from simulator.loader import load
from tests.simulator.planned_model import planned, run_model


# -- copies ------------------------------------------------------------------------------------------------------------
@given(st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), max_size=8, unique_by=lambda pair: pair[1]))
def test_copies_behave_as_if_all_were_read_first(pairs: list[tuple[int, int]]) -> None:
    memory = np.arange(40, dtype=np.float32).reshape(8, 5)
    expected = memory.copy()
    for source, target in pairs:
        expected[target] = memory[source]
    copies = Copies([memory[source] for source, _ in pairs], [memory[target] for _, target in pairs])
    copies.run(np.empty(copies.scratch_bytes, np.uint8))
    np.testing.assert_array_equal(memory, expected)


def test_only_what_would_be_overwritten_goes_through_scratch() -> None:
    state, made = np.zeros((3, 16), np.float32), np.ones((3, 16), np.float32)
    assert Copies(list(made), list(state)).scratch_bytes == 0
    assert Copies([state[0], made[1], made[2]], list(state)).scratch_bytes == 0, "what stays in place is not copied"
    assert Copies([state[1], state[0], made[2]], list(state)).scratch_bytes == 2 * 64


# -- what is run -------------------------------------------------------------------------------------------------------
CASE = """graph g(%n: i32[]@ND, %x: f32[3]@ND) {
  %y = Case(%n, %x) {branches0=@a, branches1=@b, branches2=@c} -> f32[3]@ND
  return %y
}
graph a(%a/x: f32[3]@ND {_parent_node_index=1}) { %a/y = Neg(%a/x) -> f32[3]@ND return %a/y }
graph b(%b/x: f32[3]@ND {_parent_node_index=1}) { %b/y = Square(%b/x) -> f32[3]@ND return %b/y }
graph c(%c/x: f32[3]@ND {_parent_node_index=1}) { return %c/x }"""
X = np.float32([1, -2, 3])


@pytest.mark.parametrize(("index", "expected"), [(0, -X), (1, X * X), (2, X), (3, X), (-1, X)])
def test_case(index: int, expected: np.ndarray) -> None:
    np.testing.assert_array_equal(run_model(planned(CASE), [np.int32(index), X])[0], expected)


def test_calls_within_calls() -> None:
    model = planned("""graph g(%x: f32[3]@ND) {
  %y = PartitionedCall(%x) {f=@f} -> f32[3]@ND
  %z = Add(%y, %x) -> f32[3]@ND
  return %z
}
graph f(%f/x: f32[3]@ND {_parent_node_index=0}) {
  %f/n = Neg(%f/x) -> f32[3]@ND
  %f/y = PartitionedCall(%f/n) {f=@h} -> f32[3]@ND
  %f/z = Mul(%f/y, %f/n) -> f32[3]@ND
  return %f/z
}
graph h(%h/x: f32[3]@ND {_parent_node_index=0}) { %h/y = Exp(%h/x) -> f32[3]@ND return %h/y }""")
    np.testing.assert_allclose(run_model(model, [X])[0], np.exp(-X) * -X + X, rtol=1e-6)
    plan = load(model)
    inner = plan.steps[0].bodies[0]
    assert [step.node for step in inner] == ["f/n", "f/y", "f/z"]
    assert inner[0].inputs[0].ctypes.data == plan.inputs[0].array.ctypes.data, "a body reads where its caller reads"


LOOP = """graph g(%n: i64[]@ND, %x: f32[3]@ND, %s: f32[3]@ND) {
  %w:3 = While(%n, %x, %s) {cond=@c, body=@b} -> i64[]@ND, f32[3]@ND, f32[3]@ND
  return %w:1, %w:2
}
graph c(%c/n: i64[]@ND {_parent_node_index=0}) {
  %c/zero = Const {value=i64[]{0}} -> i64[]@ND
  %c/y = Greater(%c/n, %c/zero) -> bool[]@ND
  return %c/y
}
graph b(%b/n: i64[]@ND {_parent_node_index=0}, %b/x: f32[3]@ND {_parent_node_index=1}, \
%b/s: f32[3]@ND {_parent_node_index=2}) {
  %b/one = Const {value=i64[]{1}} -> i64[]@ND
  %b/m = Sub(%b/n, %b/one) -> i64[]@ND
  %b/k = Const {value=f32[3]{0.5, 2.0, -1.0}} -> f32[3]@ND
  %b/q = Square(%b/k) {_load_time_const=true} -> f32[3]@ND
  %b/t = Mul(%b/x, %b/s) -> f32[3]@ND
  %b/u = Add(%b/t, %b/q) -> f32[3]@ND
  return %b/m, %b/u, %b/s
}"""


@pytest.mark.parametrize("turns", [0, 1, 5])
def test_a_loop_with_a_fixed_value_and_a_constant_made_at_load(turns: int) -> None:
    scale, expected = np.float32([0.5, -1, 2]), X
    for _ in range(turns):
        expected = expected * scale + np.float32([0.25, 4, 1])
    found, passed = run_model(planned(LOOP), [np.int64(turns), X, scale])
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(passed, scale)


def test_who_looks_on_sees_the_steps_of_every_turn() -> None:
    session = InferSession(0, planned(LOOP))
    assert [(name, kind) for name, _, kind in session.kernels()][-1] == ("w", "loop")
    assert [name for name, _, _ in session.kernels()] == ["c/y", "b/m", "b/t", "b/u", "w"]
    seen: list[str] = []
    session._live().after_step = lambda step: seen.append(step.node)
    session.infer([np.array(2), X, X])
    assert seen == ["c/y", *["b/m", "b/t", "b/u", "c/y"] * 2, "w"]


def test_a_fault_inside_names_the_node() -> None:
    model = planned(CASE.replace("%a/y = Neg(%a/x) -> f32[3]@ND return %a/y", '%a/f = XFail() {reason="too loud", '
                                 "dtypes=[0], shapes=[[3]]} -> f32[3]@ND return %a/f"))  # fmt: skip
    session = InferSession(0, model)
    with pytest.raises(ReportedError, match=r"R1050[^$]*a/f \(XFail[^$]*too loud"):
        session.infer([np.array(0, np.int32), X])
    np.testing.assert_array_equal(session.infer([np.array(1, np.int32), X])[0], X * X)


# -- plans that cannot be believed -------------------------------------------------------------------------------------
def _graph(name: str, text: str) -> Callable[[Graph, Plan], None]:
    def change(graph: Graph, plan: Plan) -> None:
        other = parse_graph(text)
        AddNetOutput().run(other, CompileSession(CompileOptions(), Environment()))
        graph.remove_subgraph(name)
        graph.add_subgraph(other)

    return change


def _set(path: str, value: object) -> Callable[[Graph, Plan], None]:
    """Set an attribute of a node: ``graph node attribute``."""

    def change(graph: Graph, plan: Plan) -> None:
        part, name, key = path.split()
        graph.subgraphs[part].find(name).attrs[key] = value

    return change


DAMAGES: dict[str, tuple[Callable[[Graph, Plan], object], str]] = {
    "a body that is missing": (lambda g, p: g.remove_subgraph("b"), "calls graph b, which does not exist"),
    "a formal that is missing": (
        lambda g, p: setattr(g.find("w"), "subgraphs", [("cond", "c"), ("corpus", "b")]),
        r"node w \(While\): it has no graph body",
    ),
    "no plan": (lambda g, p: p.graphs.pop("b"), "it has no plan"),
    "a body of itself": (
        lambda g, p: setattr(g.subgraphs["b"].find("b/t"), "subgraphs", [("f", "b")]),
        "graph b is called twice",
    ),
    "a graph called by two nodes": (
        lambda g, p: setattr(g.subgraphs["b"].find("b/t"), "subgraphs", [("f", "c")]),
        "graph c is called twice",
    ),
    "no workspace": (lambda g, p: p.graphs["g"].workspaces.clear(), "its place has 0"),
    "a small workspace": (lambda g, p: p.graphs["g"].workspaces.update(w=[Block(0, 512)]), "its place has 512"),
    "a workspace outside": (
        lambda g, p: p.graphs["g"].workspaces.update(w=[Block(1 << 40, 4096)]),
        "the workspace of w takes the bytes 1099511627776",
    ),
    "a crooked workspace": (
        lambda g, p: p.graphs["g"].workspaces.update(w=[Block(1, p.graphs["b"].arena_size)]),
        "the workspace of w lies at byte 1",
    ),
    "a block outside the body": (
        lambda g, p: p.graphs["b"].blocks.update({("b/u", 0): Block(1 << 20, 12)}),
        "b/u:0 takes the bytes 1048576",
    ),
    "an input that the caller lacks": (_set("b b/s _parent_node_index", 9), "b/s is input 9 of w, which has 3"),
    "an input before the first": (_set("b b/s _parent_node_index", -1), "b/s is input -1 of w"),
    "an input of another shape": (
        lambda g, p: setattr(g.subgraphs["b"].find("b/x").output_descs[0], "shape", Shape([6])),
        r"b/x is float32\[6\], the caller gives float32\[3\]",
    ),
    "too few results": (
        lambda g, p: g.subgraphs["b"].remove_input(g.subgraphs["b"].net_output(), 1),
        "the results of its graph body do not fit its outputs",
    ),
    "a decision of many values": (
        _graph("c", "graph c(%c/y: f32[3]@ND {_parent_node_index=1}) { return %c/y }"),
        "its graph cond must give one value",
    ),
    "an output without memory": (lambda g, p: p.graphs["g"].blocks.pop(("w", 0)), "an input or output without memory"),
    "another type of node": (lambda g, p: g.set_type(g.find("w"), "Enter"), "R1051[^$]*graphs of an operator of this"),
}


@pytest.mark.parametrize(("damage", "reason"), DAMAGES.values(), ids=DAMAGES)
def test_damaged_bodies_are_refused(damage: Callable[[Graph, Plan], object], reason: str) -> None:
    model = planned(LOOP)
    damage(model.graph, model.plan)
    with pytest.raises(ReportedError, match=reason) as caught:
        load(model)
    assert caught.value.code in ("R1010", "R1051")
