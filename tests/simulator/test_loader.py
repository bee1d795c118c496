"""From model to execution plan: views, constants, untrusted plans."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ge.errors import ReportedError
from ge.graph import DataType, Format, Graph, Tensor, TensorDesc
from ge.plan import Block, Task, TaskType
from simulator.binding import allocate
from simulator.loader import load
from tests.simulator.planned_model import PlannedModel, data, plan_model, run_model, single


def chain() -> tuple[PlannedModel, np.ndarray]:
    """x[2,3] -> Abs a -> Reshape r[3,2] -> Neg n -> y"""
    x = np.array([[1, -2, 3], [-4, 5, -6]], np.float32)
    graph = Graph("chain")
    a = graph.add_node("Abs", "a", [data(graph, "x", x)], output_descs=[TensorDesc([2, 3])])
    shape = graph.add_const("shape", Tensor.of(np.array([3, 2], np.int64)))
    r = graph.add_node("Reshape", "r", [a.output(), shape], output_descs=[TensorDesc([3, 2])])
    n = graph.add_node("Neg", "n", [r.output()], output_descs=[TensorDesc([3, 2])])
    return plan_model(graph, [n.output()]), x


def test_a_view_without_task_shows_its_input() -> None:
    model, x = chain()
    plan = load(model)
    assert [step.node for step in plan.steps] == ["a", "n"]
    assert plan.steps[1].inputs[0].base is not None
    assert np.shares_memory(plan.steps[0].outputs[0], plan.steps[1].inputs[0])
    np.testing.assert_array_equal(run_model(model, [x])[0], -np.abs(x).reshape(3, 2))


def test_a_view_with_the_block_of_its_input() -> None:
    model, x = chain()
    blocks = model.plan.graphs["chain"].blocks
    blocks["r", 0] = blocks["a", 0]
    np.testing.assert_array_equal(run_model(model, [x])[0], -np.abs(x).reshape(3, 2))


@pytest.mark.parametrize("poison", [0x00, 0xFF, 0x7F])
def test_old_contents_of_the_arena_do_not_matter(poison: int) -> None:
    model, x = chain()
    np.testing.assert_array_equal(run_model(model, [x], poison)[0], -np.abs(x).reshape(3, 2))


def test_everything_lies_in_one_arena() -> None:
    plan = load(chain()[0])
    arrays = [plan.inputs[0].array, plan.outputs[0].array, *(step.outputs[0] for step in plan.steps)]
    assert all(np.may_share_memory(plan.arena, array) for array in arrays)
    assert plan.arena.ctypes.data % 4096 == 0


def test_constants_stay_where_the_weights_are_and_cannot_be_written() -> None:
    weights = np.arange(3, dtype=np.float32)
    x = np.ones((2, 3), np.float32)
    graph = Graph("g")
    const = graph.add_const("w", Tensor.of(weights))
    add = graph.add_node("Add", "add", [data(graph, "x", x), const], output_descs=[TensorDesc([2, 3])])
    model = plan_model(graph, [add.output(), const])
    bound = load(model).steps[0].inputs[1]
    assert np.shares_memory(bound, weights)
    assert not bound.flags.writeable
    sums, constant = run_model(model, [x])
    np.testing.assert_array_equal(sums, x + weights)
    np.testing.assert_array_equal(constant, weights)


def test_load_time_constants_are_evaluated_once_outside_the_arena() -> None:
    x = np.ones(4, np.float32)
    graph = Graph("g")
    low = graph.add_const("low", Tensor.of(np.array([1, 2, 3, 4], np.float32)))
    desc = TensorDesc([4])
    square = graph.add_node("Mul", "square", [low, low], {"_load_time_const": True}, output_descs=[desc])
    negative = graph.add_node("Neg", "neg", [square.output()], {"_load_time_const": True}, output_descs=[desc.copy()])
    add = graph.add_node("Add", "add", [data(graph, "x", x), negative.output()], output_descs=[desc.copy()])
    plan = load(plan_model(graph, [add.output()]))
    assert [step.node for step in plan.steps] == ["add"]
    constant = plan.steps[0].inputs[1]
    np.testing.assert_array_equal(constant, [-1, -4, -9, -16])
    assert not np.may_share_memory(plan.arena, constant)
    assert not constant.flags.writeable
    assert plan.constant_bytes >= 16


def test_long_chains_of_views_need_no_recursion() -> None:
    x = np.arange(6, dtype=np.float32)
    graph = Graph("g")
    out = data(graph, "x", x)
    for i in range(3000):
        out = graph.add_node("Identity", f"i{i}", [out], output_descs=[TensorDesc([6])]).output()
    y = graph.add_node("Neg", "y", [out], output_descs=[TensorDesc([6])])
    np.testing.assert_array_equal(run_model(plan_model(graph, [y.output()]), [x])[0], -x)


def test_an_output_that_takes_over_its_inputs_memory() -> None:
    model, x = chain()
    blocks = model.plan.graphs["chain"].blocks
    blocks["n", 0] = blocks["a", 0]
    np.testing.assert_array_equal(run_model(model, [x])[0], -np.abs(x).reshape(3, 2))


def test_a_kernel_that_cannot_work_in_place_gets_copies() -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    graph = Graph("g")
    copy = graph.add_node("Abs", "copy", [data(graph, "x", x)], output_descs=[TensorDesc([2, 3])])
    perm = graph.add_const("perm", Tensor.of(np.array([1, 0], np.int32)))
    turn = graph.add_node("Transpose", "turn", [copy.output(), perm], output_descs=[TensorDesc([3, 2])])
    model = plan_model(graph, [turn.output()])
    blocks = model.plan.graphs["g"].blocks
    blocks["turn", 0] = blocks["copy", 0]
    np.testing.assert_array_equal(run_model(model, [x])[0], x.T)


@pytest.mark.parametrize(
    ("block", "reason"),
    [
        (Block(-512, 24), "bytes -512"),
        (Block(1024, 24), "of an arena of 1024"),
        (Block(1 << 62, 24), "of an arena of 1024"),
        (Block(512, -1), "of an arena of 1024"),
        (Block(0, 12), "needs 24 bytes, its block has 12"),
        (Block(2, 24), "not a multiple of 4"),
    ],
)
def test_blocks_that_do_not_fit(block: Block, reason: str) -> None:
    model, _ = chain()
    graph_plan = model.plan.graphs["chain"]
    graph_plan.arena_size = 1024
    graph_plan.blocks = {key: Block(0, 24) for key in graph_plan.blocks} | {("a", 0): block}
    with pytest.raises(ReportedError) as caught:
        load(model)
    assert caught.value.code == "R1010"
    assert reason in caught.value.message


@pytest.mark.parametrize(
    ("tasks", "reason"),
    [
        ([Task("n"), Task("a")], "node n reads a:0, which no earlier task has made"),
        ([Task("a"), Task("ghost")], "node ghost does not exist"),
        ([Task("a"), Task("a"), Task("n")], "node a has two tasks"),
        ([Task("n")], "shares no memory"),
        ([Task("a"), Task("n"), Task("shape")], None),
        ([Task("a"), Task("n"), Task("e", TaskType.MODEL_END_GRAPH)], None),
    ],
)
def test_task_lists(tasks: list[Task], reason: str | None) -> None:
    model, x = chain()
    model.plan.graphs["chain"].tasks = tasks
    if reason is None:
        np.testing.assert_array_equal(run_model(model, [x])[0], -np.abs(x).reshape(3, 2))
        return
    with pytest.raises(ReportedError) as caught:
        load(model)
    assert caught.value.code == "R1010"
    assert reason in caught.value.message


def test_a_tensor_without_a_block() -> None:
    model, _ = chain()
    del model.plan.graphs["chain"].blocks["x", 0]
    with pytest.raises(ReportedError, match=r"R1010.*input x has no block"):
        load(model)


def test_an_arena_larger_than_the_machine() -> None:
    model, _ = chain()
    model.plan.graphs["chain"].arena_size = 1 << 60
    with pytest.raises(ReportedError, match="R1062"):
        load(model)


def test_shapes_that_are_not_known() -> None:
    model, _ = chain()
    model.graph.find("a").output_descs[0].shape = TensorDesc([-1, 3]).shape
    with pytest.raises(ReportedError, match="unknown shape"):
        load(model)


def test_types_that_cannot_be_held() -> None:
    model, _ = chain()
    model.graph.find("a").output_descs[0].data_type = DataType.DT_QINT8
    with pytest.raises(ReportedError, match=r"R1051.*DT_QINT8"):
        load(model)


def test_an_unregistered_operator() -> None:
    model, _ = chain()
    model.graph.set_type(model.graph.find("n"), "NoSuchOperator")
    with pytest.raises(ReportedError, match=r"R1052.*NoSuchOperator"):
        load(model)


def test_attributes_that_do_not_fit() -> None:
    attrs = {"ksize": [1, 1, 2, 2], "strides": [1, 1, 1, 1], "padding_mode": "CALCULATED", "pads": [0, 0, 0, 0]}
    x = np.ones((1, 1, 3, 3), np.float32)
    model = single("AvgPoolV2", [x], {**attrs, "data_format": "NCHW"}, format=Format.FORMAT_NCHW)
    load(model)
    model.graph.find("node").attrs["pads"] = [0, 0, 0, 0, 0]
    with pytest.raises(ReportedError, match=r"R1051.*AvgPoolV2.*its attributes do not fit \(pads \[0, 0, 0, 0, 0\]"):
        load(model)


def test_a_constant_that_differs_from_its_description() -> None:
    model, _ = chain()
    model.graph.find("shape").output_descs[0].shape = TensorDesc([3]).shape
    with pytest.raises(ReportedError, match=r"R1010.*shape.*int64\[3\].*int64\[2\]"):
        load(model)


def test_a_plan_for_dynamic_shapes() -> None:
    model, _ = chain()
    model.plan = replace(model.plan, is_static=False)
    with pytest.raises(ReportedError, match="R1061"):
        load(model)


@pytest.mark.parametrize("size", [0, 1, 4096, 10_000])
def test_allocation_is_page_aligned_and_clear(size: int) -> None:
    block = allocate(size, "test")
    assert block.nbytes == size
    assert size == 0 or block.ctypes.data % 4096 == 0
    assert not block.any()
