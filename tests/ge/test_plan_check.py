"""Every way in which a plan can be wrong is noticed; what is wrong is named."""

import dataclasses

import pytest

from ge.graph import Graph
from ge.plan import Block, GraphPlan, Plan, Task
from ge.plan_check import PlanFault, check_plan
from ge.text import parse_graph

KIB = 1024


MODEL = """graph g(%x: f32[256]@ND, %p: bool[]@ND) {
  %c = Const {value=f32[1]{2.0}} -> f32[1]@ND
  %a = MatMulV2(%x) -> f32[256]@ND
  %v = Reshape(%a) -> f32[16,16]@ND
  %r = Mul(%v, %c) -> f32[16,16]@ND
  %i = If(%p, %r) {then_branch=@t, else_branch=@t} -> f32[256]@ND
  return %i
}
graph t(%in: f32[256]@ND) { %out = MatMulV2(%in) -> f32[256]@ND return %out }"""


def model(text: str = MODEL) -> tuple[Graph, Plan]:
    """Return a graph with a view, an in-place operator, a constant and a call, and a hand-made plan for it."""
    root = GraphPlan(
        tasks=[Task("a"), Task("r"), Task("i")],
        blocks={
            ("x", 0): Block(0, KIB),
            ("p", 0): Block(2 * KIB, 1),
            ("a", 0): Block(KIB, KIB),
            ("v", 0): Block(KIB, KIB),
            ("r", 0): Block(KIB, KIB),
            ("i", 0): Block(0, KIB),
        },
        workspaces={"i": [Block(3 * KIB, 2 * KIB)]},
        arena_size=5 * KIB,
    )
    body = GraphPlan(
        tasks=[Task("out")],
        blocks={("out", 0): Block(KIB, KIB)},
        arena_size=2 * KIB,
    )
    return parse_graph(text), Plan({"g": root, "t": body})


def test_a_right_plan_passes() -> None:
    check_plan(*model())


def move(name: str, offset: int):
    def change(plan: Plan) -> None:
        root = plan.graphs["g"]
        root.blocks[name, 0] = dataclasses.replace(root.blocks[name, 0], offset=offset)

    return change


def set_tasks(*names: str):
    return lambda plan: plan.graphs["g"].tasks.__setitem__(slice(None), [Task(name) for name in names])


def set_block(key: tuple[str, int], block: Block | None):
    def change(plan: Plan) -> None:
        if block is None:
            del plan.graphs["g"].blocks[key]
        else:
            plan.graphs["g"].blocks[key] = block

    return change


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        pytest.param(set_tasks("a", "i"), r"node r \(Mul\) of graph g has no task", id="a task is missing"),
        pytest.param(set_tasks("r", "a", "i"), "task 0 .*runs r before a", id="wrong order, through a view"),
        pytest.param(set_tasks("a", "r", "r", "i"), "runs already", id="a task twice"),
        pytest.param(set_tasks("a", "v", "r", "i"), r"runs v \(Reshape\), which has nothing to run", id="a view runs"),
        pytest.param(set_tasks("a", "r", "i", "z"), "runs z, which is not a node", id="an unknown task"),
        pytest.param(set_block(("a", 0), None), "a:0 has no block", id="no place for a tensor"),
        pytest.param(set_block(("c", 0), Block(0, 4)), "c:0 has a needless block", id="a place for a constant"),
        pytest.param(set_block(("z", 0), Block(0, 4)), "output 0 of z, which does not exist", id="an unknown node"),
        pytest.param(set_block(("a", 1), Block(0, 4)), "output 1 of a, which does not exist", id="an unknown output"),
        pytest.param(set_block(("a", 0), Block(KIB, 512)), "a has a block of 512 bytes for", id="too small"),
        pytest.param(move("x", -512), "lies at -512", id="before the arena"),
        pytest.param(move("x", 100), "lies at 100", id="not aligned"),
        pytest.param(move("x", 9 * KIB // 2), r"the arena has 5120", id="past the end"),
        pytest.param(move("v", 0), "v:0 is a view of a:0 but lies elsewhere", id="a view somewhere else"),
        pytest.param(move("a", 512), "v:0 is a view", id="what a view shows moved away"),
        pytest.param(move("p", 0), "x:0 and p:0 are in use at step -1", id="two inputs on top of each other"),
        pytest.param(move("p", 512), "x:0 and p:0 are in use", id="inside another tensor"),
        pytest.param(move("r", 1536), "a:0 and r:0 are in use at step 1 and overlap", id="half over its input"),
        pytest.param(move("i", KIB), "a:0 and i:0 are in use at step 2", id="over what is still read"),
        pytest.param(move("i", 3 * KIB), "i:0 and workspace of i are in use at step 2", id="over the workspace"),
        pytest.param(lambda p: p.graphs["g"].workspaces.clear(), "graph t needs 2048 bytes", id="no workspace"),
        pytest.param(
            lambda p: p.graphs["g"].workspaces.update(i=[Block(3 * KIB, KIB)]), "graph t needs 2048", id="small one"
        ),
        pytest.param(
            lambda p: p.graphs["g"].workspaces.update(x=[Block(0, 1)]), "something that has no task", id="idle one"
        ),
        pytest.param(lambda p: p.graphs.pop("t"), "calls graph t, which has no plan", id="a body without a plan"),
        pytest.param(
            lambda p: p.graphs["t"].blocks.update({("in", 0): Block(0, KIB)}),
            "in:0 has a needless",
            id="a body's input",
        ),
        pytest.param(lambda p: setattr(p, "is_static", False), "although its plan is not static", id="not static"),
    ],
)
def test_a_wrong_plan_is_refused(change, reason) -> None:
    graph, plan = model()
    change(plan)
    with pytest.raises(PlanFault, match=reason):
        check_plan(graph, plan)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param("Mul(%v, %c)", "Tile(%v, %c)", id="not elementwise"),
        pytest.param("If(%p, %r)", "If(%p, %r, %v)", id="the input is read again later"),
        pytest.param("return %i", "return %i, %a", id="the input is a result"),
        pytest.param("Mul(%v, %c)", "Mul(%v, %a)", id="the input is read twice"),
    ],
)
def test_writing_in_place_is_refused_where_it_would_do_harm(old, new) -> None:
    assert old in MODEL
    with pytest.raises(PlanFault, match="a:0 and r:0 are in use at step 1 and overlap"):
        check_plan(*model(MODEL.replace(old, new)))


def test_model_inputs_are_never_written_over() -> None:
    graph = parse_graph("graph g(%x: f32[128]@ND) { %y = Relu(%x) -> f32[128]@ND return %y }")
    blocks = {("x", 0): Block(0, 512), ("y", 0): Block(0, 512)}
    with pytest.raises(PlanFault, match="x:0 and y:0"):
        check_plan(graph, Plan({"g": GraphPlan([Task("y")], blocks, arena_size=512)}))


def test_views_in_a_circle_are_noticed() -> None:
    graph = parse_graph(
        "graph g(%x: f32[2]@ND) { %a = Reshape(%b) -> f32[2]@ND %b = Reshape(%a) -> f32[2]@ND return %x }"
    )
    with pytest.raises(PlanFault, match="cycle"):
        check_plan(graph, Plan({"g": GraphPlan()}))
