"""Models whose shapes a run decides: kernels by shape, control flow, texts and handles, memory, faults."""

from __future__ import annotations

import tracemalloc
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from ge.errors import ReportedError
from ge.graph import Graph
from ge.options import CompileOptions, Environment
from ge.plan import Plan
from ge.session import CompileSession
from ge.text import parse_graph
from passes.driver import Driver
from passes.pipeline import compile_passes
from simulator import InferSession, operator_call
from simulator.dynamic import DynamicExecutor


@dataclass
class Compiled:
    """What the simulator needs of an offline model."""

    graph: Graph
    plan: Plan


def compiled(text: str) -> Compiled:
    """Run the whole pipeline on graph text."""
    graph = parse_graph(text)
    session = CompileSession(CompileOptions(), Environment())
    Driver(session).run(graph, compile_passes())
    assert not session.plan.is_static
    return Compiled(graph, session.plan)


def executor(text: str) -> DynamicExecutor:
    return DynamicExecutor(compiled(text), threads=1)


def f32(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


MLP = """graph g(%x: f32[-1,4]@ND) {
  %w = Const {value=f32[4,2]{1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0}}
  %h = MatMulV2(%x, %w)
  %y = Relu(%h)
  return %y
}"""
W = np.arange(1, 9, dtype=np.float32).reshape(4, 2)


# -- shapes ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("batch", [1, 5, 0])
def test_every_size_of_the_batch(batch: int) -> None:
    x = f32(batch, 4)
    [y] = executor(MLP).run([x])
    assert (y.shape, y.dtype) == ((batch, 2), np.float32)
    np.testing.assert_allclose(y, np.maximum(x @ W, 0), rtol=1e-6, atol=1e-6)


def test_kernels_are_chosen_once_per_shape_and_forgotten_late(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen: list[tuple[str, tuple[int, ...]]] = []
    choose = operator_call.choose_kernel

    def counting(node: Any, constants: Any) -> Any:
        chosen.append((node.type, tuple(node.inputs[0].desc.shape)))
        return choose(node, constants)

    monkeypatch.setattr(operator_call, "choose_kernel", counting)
    model = executor(MLP)
    for batch in (1, 2, 1, 2, 2):
        model.run([f32(batch, 4)])
    assert chosen == [("MatMulV2", (1, 4)), ("Relu", (1, 2)), ("MatMulV2", (2, 4)), ("Relu", (2, 2))]
    for batch in range(3, 3 + operator_call.KEPT_DECISIONS):
        model.run([f32(batch, 4)])
    chosen.clear()
    model.run([f32(1, 4)])
    assert chosen == [("MatMulV2", (1, 4)), ("Relu", (1, 2))], "the oldest shape was forgotten"


def test_real_kernels_run_where_shapes_are_known() -> None:
    model = executor(MLP)
    assert [kernel for _, _, kernel in model.kernels()] == ["", ""]
    model.run([f32(3, 4)])
    assert "reference" not in [kernel for _, _, kernel in model.kernels()]


def test_values_that_decide_shapes_decide_kernels_too() -> None:
    model = executor("""graph g(%x: f32[-1]@ND, %n: i64[2]@ND) {
  %r = Reshape(%x, %n)
  %p = Const {value=i32[2]{1,0}}
  %y = Transpose(%r, %p)
  return %y
}""")
    x = f32(6)
    for dims in ((2, 3), (3, 2), (1, 6), (2, 3)):
        [y] = model.run([x, np.array(dims)])
        np.testing.assert_array_equal(y, x.reshape(dims).T)


@pytest.mark.parametrize("shape", [(2, 3), (1, 1), (0, 4), (5, 2)])
def test_shapes_that_follow_from_data(shape: tuple[int, int]) -> None:
    x = (f32(*shape) > 0).astype(np.float32)
    [places, sums] = executor("""graph g(%x: f32[-1,-1]@ND) {
  %p = NonZero(%x) {transpose=true}
  %axes = Const {value=i64[1]{1}}
  %s = ReduceSum(%p, %axes)
  return %p, %s
}""").run([x])
    np.testing.assert_array_equal(places, np.stack(np.nonzero(x)))
    np.testing.assert_array_equal(sums, places.sum(1))


EMPTY = [
    ("Neg(%x)", lambda x: -x),
    ("Add(%x, %x)", lambda x: x + x),
    ("SoftmaxV2(%x) {axes=[-1]}", lambda x: np.zeros_like(x)),
    ("ReduceSum(%x, %axis)", lambda x: x.sum(1)),
    ("ReduceMax(%t, %axis)", lambda x: np.concatenate([x, np.zeros((len(x), 1), np.float32)], 1).max(1)),
    ("MatMulV2(%x, %x) {transpose_x2=true}", lambda x: x @ x.T),
    ("ConcatD(%x, %x) {concat_dim=1}", lambda x: np.concatenate([x, x], 1)),
    ("TransposeD(%x) {perm=[1,0]}", lambda x: x.T),
    ("Cast(%x) {dst_type=9}", lambda x: x.astype(np.int64)),
    ("GatherV2(%x, %none, %axis0)", lambda x: x[[]]),
]


@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (3, 0)])
@pytest.mark.parametrize(("text", "expected"), EMPTY, ids=[row[0].split("(")[0] for row in EMPTY])
def test_empty_tensors(text: str, expected: Any, shape: tuple[int, int]) -> None:
    x = np.zeros(shape, np.float32)
    [y] = executor(f"""graph g(%x: f32[-1,-1]@ND) {{
  %axis = Const {{value=i64[1]{{1}}}} %axis0 = Const {{value=i32[]{{0}}}}
  %none = Const {{value=i64[0]{{}}}}
  %p = Const {{value=i32[2,2]{{0,0,0,1}}}} %t = Pad(%x, %p)
  %y = {text}
  return %y
}}""").run([x])
    np.testing.assert_array_equal(y, expected(x))


# -- ownership and memory ----------------------------------------------------------------------------------------------
def test_results_belong_to_the_caller() -> None:
    model = executor("""graph g(%x: f32[-1,2]@ND) {
  %c = Const {value=f32[2]{1.0, 2.0}}
  %n = Const {value=i64[1]{-1}}
  %v = Reshape(%x, %n)
  %a = Abs(%x)
  return %x, %v, %c, %a, %a
}""")
    x = np.array([[1, 2], [3, 4]], np.float32)
    first = model.run([x])
    for y in first:
        assert y.flags.writeable
        y += 100
    np.testing.assert_array_equal(x, [[1, 2], [3, 4]])
    second = model.run([x])
    for y, expected in zip(second, [x, x.reshape(-1), np.array([1, 2]), x, x], strict=True):
        np.testing.assert_array_equal(y, expected)


def test_feeds_may_lie_anyhow_in_memory() -> None:
    x = f32(4, 6)
    unaligned = np.frombuffer(b"\0" + x.T.tobytes(), np.uint8)[1:].view(np.float32).reshape(6, 4)
    for feed in (x.T, x[:, ::-1][:, :4], unaligned):
        [y] = executor(MLP.replace("%h = MatMulV2(%x, %w)", "%h = Add(%x, %x)").replace("Relu", "Neg")).run([feed])
        np.testing.assert_array_equal(y, -2 * feed)


def test_memory_is_given_back_after_the_last_reader() -> None:
    steps = 40
    chain = "\n".join(f"%v{i + 1} = Neg(%v{i})" for i in range(steps))
    model = executor(f"graph g(%v0: f32[-1]@ND) {{\n{chain}\nreturn %v{steps}\n}}")
    x = f32(1 << 18)
    model.run([x])
    tracemalloc.start()
    model.run([x])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 3.5 * x.nbytes


def test_a_long_chain_needs_no_recursion() -> None:
    steps = 5000
    chain = "\n".join(f"%v{i + 1} = {'Neg' if i == 0 else 'Squeeze'}(%v{i}) -> f32[4]@ND" for i in range(steps))
    text = f"graph g(%v0: f32[4]@ND, %k: f32[-1]@ND) {{\n{chain}\n%y = Add(%v{steps}, %k)\nreturn %y\n}}"
    [y] = executor(text).run([np.ones(4, np.float32), np.ones(1, np.float32)])
    np.testing.assert_array_equal(y, np.zeros(4))


def test_constants_too_large_for_the_file_are_computed_once() -> None:
    compiled_model = compiled("""graph g(%x: f32[-1]@ND) {
  %s = Const {value=i64[1]{200000}} %v = Const {value=f32[]{0.5}}
  %c = Fill(%s, %v)
  %axis = Const {value=i64[1]{0}}
  %m = ReduceSum(%c, %axis) %k = Abs(%c)
  %t = ReduceMax(%k, %axis)
  %a = Add(%x, %k) %b = Add(%a, %t)
  return %b
}""")
    assert any(node.attrs.get("_load_time_const") for node in compiled_model.graph)
    model = DynamicExecutor(compiled_model)
    [y] = model.run([np.ones(1, np.float32)])
    np.testing.assert_array_equal(y, np.full(200000, 2.0))
    assert "Fill" not in [kind for _, kind, _ in model.kernels()]


# -- control flow ------------------------------------------------------------------------------------------------------
LOOP = """graph g(%n: i64[]@ND, %x: f32[-1]@ND, %k: f32[-1]@ND) {
  %w:3 = While(%n, %x, %k) {cond=@c, body=@b}
  return %w:1
}
graph c(%n: i64[]@ND, %x: f32[-1]@ND, %k: f32[-1]@ND) {
  %zero = Const {value=i64[]{0}} %q = Greater(%n, %zero) return %q
}
graph b(%n: i64[]@ND, %x: f32[-1]@ND, %k: f32[-1]@ND) {
  %one = Const {value=i64[]{1}} %m = Sub(%n, %one)
  %y = ConcatD(%x, %k) {concat_dim=0}
  return %m, %y, %k
}"""


@pytest.mark.parametrize("turns", [0, 1, 7])
def test_a_loop_whose_state_grows(turns: int) -> None:
    x, k = f32(2), f32(3, seed=1)
    [y] = executor(LOOP).run([np.array(turns), x, k])
    np.testing.assert_array_equal(y, np.concatenate([x, *[k] * turns]))


BRANCH = """graph g(%c: bool[]@ND, %x: f32[-1,2]@ND) {
  %i = If(%c, %x) {then_branch=@t, else_branch=@e}
  %y = Neg(%i)
  return %y
}
graph t(%x: f32[-1,2]@ND) { %n = Const {value=i64[1]{-1}} %y = Reshape(%x, %n) return %y }
graph e(%x: f32[-1,2]@ND) { return %x }"""


@pytest.mark.parametrize("condition", [True, False])
def test_branches_of_different_rank(condition: bool) -> None:
    x = f32(3, 2)
    [y] = executor(BRANCH).run([np.array(condition), x])
    np.testing.assert_array_equal(y, -x.reshape(-1) if condition else -x)


@pytest.mark.parametrize(("index", "factor"), [(0, 1), (1, 2), (2, 3), (3, 3), (-1, 3)])
def test_case_takes_the_last_branch_for_what_is_out_of_range(index: int, factor: int) -> None:
    [y] = executor("""graph g(%c: i32[]@ND, %x: f32[-1]@ND) {
  %y = Case(%c, %x) {branches0=@a, branches1=@b, branches2=@d}
  return %y
}
graph a(%x: f32[-1]@ND) { %y = Abs(%x) return %y }
graph b(%x: f32[-1]@ND) { %y = Add(%x, %x) return %y }
graph d(%x: f32[-1]@ND) { %s = Add(%x, %x) %y = Add(%s, %x) return %y }""").run(
        [np.array(index, np.int32), np.ones(2, np.float32)]
    )
    np.testing.assert_array_equal(y, [factor, factor])


def test_calls_within_calls_keep_their_values_apart() -> None:
    depth = 30
    calls = "\n".join(
        f"""graph f{i}(%x: f32[-1]@ND, %k: f32[-1]@ND) {{
  %a = Add(%x, %k) %c = PartitionedCall(%a, %k) {{f=@f{i + 1}}} %y = Mul(%c, %k) return %y
}}"""
        for i in range(depth)
    )
    [y] = executor(f"""graph g(%x: f32[-1]@ND, %k: f32[-1]@ND) {{
  %y = PartitionedCall(%x, %k) {{f=@f0}} return %y
}}
{calls}
graph f{depth}(%x: f32[-1]@ND, %k: f32[-1]@ND) {{ %y = Sub(%x, %k) return %y }}""").run(
        [np.array([1, 2], np.float32), np.array([1, -1], np.float32)]
    )
    np.testing.assert_array_equal(y, [(1 + depth - 1) * 1, (2 - depth + 1) * (-1) ** depth])


def test_after_step_sees_bodies_too() -> None:
    model = executor(BRANCH)
    seen: list[str] = []
    model.after_step = lambda node, results: seen.append(node.type)
    model.run([np.array(True), f32(1, 2)])
    assert seen == ["Reshape", "If", "Neg"]


# -- texts and handles -------------------------------------------------------------------------------------------------
def test_texts() -> None:
    model = executor("""graph g(%t: str[3]@ND, %i: i64[-1]@ND) {
  %axis = Const {value=i32[]{0}}
  %y = GatherV2(%t, %i, %axis)
  return %y
}""")
    texts = np.array(["a", "grün", ""], object)
    [y] = model.run([texts, np.array([1, 1, 0])])
    assert y.tolist() == ["grün", "grün", "a"]


def test_sequences_are_handles() -> None:
    model = executor("""graph g(%x: f32[-1,2]@ND, %i: i64[]@ND) {
  %s = SplitToSequence(%x) {keepdims=false}
  %n = SequenceLength(%s)
  %e = SequenceAt(%s, %i)
  %t = SequenceInsert(%s, %e)
  %y = ConcatFromSequence(%t) {axis=0, new_axis=1}
  return %n, %e, %y
}""")
    for rows in (2, 5):
        x = f32(rows, 2)
        n, e, y = model.run([x, np.array(-2)])
        assert n == rows
        np.testing.assert_array_equal(e, x[-2])
        np.testing.assert_array_equal(y, [*x, x[-2]])


# -- faults ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("text", "feeds", "parts"),
    [
        (
            "%s = Add(%x, %k) %y = Neg(%s)",
            [f32(2), f32(3)],
            ["s (Add)", "shapes [2] and [3] cannot be broadcast"],
        ),
        (
            "%n = Cast(%k) {dst_type=9} %y = Reshape(%x, %n)",
            [f32(6), np.array([4, 2], np.float32)],
            ["y (Reshape)", "[6] cannot become [4, 2]"],
        ),
        (
            "%n = Cast(%k) {dst_type=9} %a = Const {value=i32[]{0}} %y = GatherV2(%x, %n, %a)",
            [f32(6), np.array([7], np.float32)],
            ["y (GatherV2", "index 7 is outside a dim of 6"],
        ),
    ],
    ids=["broadcast", "reshape", "gather"],
)
def test_values_that_do_not_fit_name_the_node(text: str, feeds: list[np.ndarray], parts: Sequence[str]) -> None:
    model = executor(f"graph g(%x: f32[-1]@ND, %k: f32[-1]@ND) {{ {text} return %y }}")
    with pytest.raises(ReportedError) as error:
        model.run(feeds)
    assert error.value.code == "R1050"
    for part in parts:
        assert part in error.value.message
    assert np.isfinite(executor(MLP).run([f32(1, 4)])[0]).all()


def test_a_run_that_failed_does_not_spoil_the_next() -> None:
    model = executor("graph g(%x: f32[-1]@ND, %k: f32[-1]@ND) { %y = Add(%x, %k) return %y }")
    with pytest.raises(ReportedError, match="R1050"):
        model.run([f32(2), f32(3)])
    np.testing.assert_array_equal(model.run([np.ones(2, np.float32)] * 2)[0], [2, 2])


def test_a_condition_must_be_one_value() -> None:
    model = executor(BRANCH.replace("%c: bool[]", "%c: bool[-1]"))
    with pytest.raises(ReportedError, match=r"R1050.*i \(If\).*shape \[2\]"):
        model.run([np.array([True, False]), f32(1, 2)])


def test_more_memory_than_there_is() -> None:
    model = executor("""graph g(%n: i64[1]@ND, %x: f32[1]@ND) { %e = Expand(%x, %n) %y = Neg(%e) return %y }""")
    with pytest.raises(ReportedError, match="R1062"):
        model.run([np.array([1 << 45]), f32(1)])


@pytest.mark.parametrize("change", ["no task", "twice", "unknown node", "no plan"])
def test_damaged_plans(change: str) -> None:
    model = compiled(MLP)
    tasks = model.plan.graphs["g"].tasks
    if change == "no task":
        del tasks[0]
    elif change == "twice":
        tasks.append(tasks[0])
    elif change == "unknown node":
        tasks[0] = type(tasks[0])("nobody")
    else:
        model.plan.graphs.clear()
    with pytest.raises(ReportedError, match="R1010"):
        DynamicExecutor(model)


# -- sessions ----------------------------------------------------------------------------------------------------------
RANGED = "graph g(%x: f32[-1(1~4),3]@ND) { %y = Neg(%x) return %y }"


def test_session_descriptors() -> None:
    session = InferSession(0, compiled(RANGED))
    assert session.is_dynamic
    [x] = session.get_inputs()
    assert (x.name, x.shape, x.datatype, x.size, x.limits) == ("x", [-1, 3], np.float32, 0, [(1, 4), (3, 3)])
    assert session.get_outputs()[0].shape == [-1, 3]


@pytest.mark.parametrize("mode", ["static", "dynshape", "dymshape"])
@pytest.mark.parametrize("batch", [1, 4])
def test_shapes_inside_the_range(batch: int, mode: str) -> None:
    x = f32(batch, 3)
    np.testing.assert_array_equal(InferSession(0, compiled(RANGED)).infer([x], mode)[0], -x)


@pytest.mark.parametrize(
    ("feed", "parts"),
    [
        (f32(5, 3), ["[x]", "float32[1~4,3]", "float32[5, 3]", "dimension 0 is 5, 1 to 4 is expected"]),
        (f32(0, 3), ["dimension 0 is 0, 1 to 4"]),
        (f32(2, 4), ["dimension 1 is 4, 3 is expected"]),
        (f32(3), ["it has 1 dimensions, 2 are expected"]),
        (np.ones((2, 3)), ["float32[1~4,3]", "float64[2, 3]", "another type"]),
    ],
    ids=["above", "below", "fixed", "rank", "type"],
)
def test_arrays_outside_the_range(feed: np.ndarray, parts: list[str]) -> None:
    with pytest.raises(ReportedError) as error:
        InferSession(0, compiled(RANGED)).infer([feed])
    assert error.value.code == "R1033"
    for part in parts:
        assert part in error.value.message


def test_gears_are_another_mode() -> None:
    session = InferSession(0, compiled(RANGED))
    with pytest.raises(ReportedError, match=r"R1061.*dyndims.*static, dynshape"):
        session.infer([f32(1, 3)], "dyndims")
    with pytest.raises(ReportedError, match="R1061"):
        _ = session.plan


def test_feedback_may_change_the_shape() -> None:
    session = InferSession(0, compiled("graph g(%x: f32[-1]@ND) { %y = ConcatD(%x, %x) {concat_dim=0} return %y }"))
    [y] = session.infer_iteration([np.ones(1, np.float32)], [0], 5)
    assert y.shape == (32,)
