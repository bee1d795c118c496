"""Which nodes become tasks."""

import pytest

from ge.plan import Task
from ge.text import parse_graph
from passes.build.task_list import BuildTasks
from tests.passes.build.memory_machine import build_session


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "graph g(%x: f32[8]@ND) { %n = NonZero(%x) -> i64[1,-1]@ND %a = Abs(%n) -> i64[1,-1]@ND return %a }",
            "output 0 of node n (NonZero) has the shape [1,-1], which is known at run time only",
        ),
        (
            "graph g(%x: f32[8]@ND, %k: f32[-1,8]@ND) { %y = Add(%x, %k) -> f32[-1,8]@ND return %y }",
            "input k has the shape [-1,8], which is known at run time only",
        ),
        (
            "graph g(%x: str[8]@ND) { return %x }",
            "input x is of type DT_STRING, which has no fixed size",
        ),
        (
            "graph g(%x: f32[8]@ND) { %h = SequenceConstruct(%x) -> resource[]@ND %n = SequenceLength(%h) -> i64[]@ND "
            "return %n }",
            "output 0 of node h (SequenceConstruct) is of type DT_RESOURCE, which has no fixed size",
        ),
        (
            "graph g(%x: f32[8]@ND) { %y = PartitionedCall(%x) {f=@t} -> f32[8]@ND return %y } "
            "graph t(%x: f32[8]@ND) { %n = NonZero(%x) -> i64[1,-1]@ND %y = Abs(%x) -> f32[8]@ND return %y }",
            "output 0 of node n (NonZero) has the shape [1,-1], which is known at run time only",
        ),
    ],
    ids=["data", "input", "texts", "handle", "body"],
)
def test_what_makes_a_model_dynamic_is_named(text: str, message: str) -> None:
    session = build_session()
    BuildTasks().run(parse_graph(text), session)
    assert not session.plan.is_static
    assert session.warnings == [f"the model is dynamic: {message}"]


def test_tasks_are_the_nodes_that_compute_in_graph_order() -> None:
    graph = parse_graph("""graph g(%x: f32[8]@ND) {
  %c = Const {value=f32[2]{1.0, 2.0}} -> f32[2]@ND
  %low = Fill(%c) {_load_time_const=true} -> f32[8]@ND
  %v = Reshape(%x) -> f32[2,4]@ND
  %a = Neg(%v) -> f32[2,4]@ND
  %wait:0 = NoOp() ctrl(%a)
  %copy = Identity(%a) {_must_copy=true} -> f32[2,4]@ND
  %i = If(%x, %low) {then_branch=@t, else_branch=@t} -> f32[8]@ND
  %out:0 = NetOutput(%i, %copy)
  return %i, %copy
}
graph t(%x: f32[8]@ND) { %y = Abs(%x) -> f32[8]@ND return %y }""")
    session = build_session()
    assert not BuildTasks().run(graph, session), "the graph stays as it is"
    assert session.plan.is_static
    assert session.plan.graphs["g"].tasks == [Task("a"), Task("copy"), Task("i")]
    assert [task.node for task in session.plan.graphs["t"].tasks] == [
        node.name for node in graph.subgraphs["t"] if node.type == "Abs"
    ]
