"""Control flow, compiled, saved, loaded and run: in planned memory and without, and compared with onnxruntime."""

from __future__ import annotations

import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto

import atc
from ge.errors import ReportedError
from ge.plan import GraphPlan
from ge.plan_check import check_plan
from om_format import OfflineModel
from om_format import load as load_file
from simulator import InferSession
from tests.control_case import Case, numbers
from tests.control_models import CASES, LOOPS
from tests.end_to_end.agreement import Arrays, assert_agrees, assert_can_tell, compile_to, run, run_onnxruntime
from tests.om_format.netron_reader import netron_view
from tests.parsers.onnx_models import graph, model, node, value

PLANNED = [
    "loop_swaps",
    "loop_rotates_its_state",
    "loop_views_of_its_state",
    "loop_number_and_condition_as_vectors",
    "loop_reads_only_constants",
    "loop_in_if",
    "ifs_nested",
    "if_gives_captured_values",
    "if_of_constants",
    "if_of_one_element",
]
"""Cases without handles and open dimensions."""


def compiled(source: ModelProto) -> OfflineModel:
    return atc.compile_model(source, soc_version="Ascend310P3", precision_mode_v2="origin")


def without_memory_plan(source: OfflineModel) -> OfflineModel:
    """The same model as if nothing were known of its memory."""
    graphs = {name: GraphPlan(list(plan.tasks)) for name, plan in source.plan.graphs.items()}
    return replace(source, plan=replace(source.plan, graphs=graphs, is_static=False))


def feed(session: InferSession, feeds: dict[str, Any]) -> list[np.ndarray]:
    return session.infer([feeds[port.name] for port in session.get_inputs()])


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_files_agree_with_onnxruntime(case: Case, tmp_path: Path) -> None:
    made = compiled(case.model)
    check_plan(made.graph, made.plan)
    made.save(tmp_path / "m.om")
    session = InferSession(0, tmp_path / "m.om")
    for feeds, expected in zip(case.feeds, case.expected(), strict=True):
        for actual, wanted in zip(feed(session, feeds), expected, strict=True):
            assert (actual.shape, actual.dtype) == (wanted.shape, wanted.dtype)
            np.testing.assert_allclose(actual, wanted, rtol=1e-6)


@pytest.mark.parametrize("name", PLANNED)
def test_planned_memory_changes_no_bit(name: str) -> None:
    case, made = CASES[name], compiled(CASES[name].model)
    assert made.plan.is_static
    planned, free = InferSession(0, made), InferSession(0, without_memory_plan(made))
    for feeds in case.feeds:
        planned.plan.arena.fill(0xFF)  # what nobody has written yet reads as NaN
        for one, other in zip(feed(planned, feeds), feed(free, feeds), strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("name", ["ifs_nested", "loop_in_if", "loops_nested", "scan_in_batches"])
def test_bodies_survive_the_file(name: str, tmp_path: Path) -> None:
    made = compiled(CASES[name].model)
    made.save(tmp_path / "m.om")
    loaded = load_file(tmp_path / "m.om")
    assert [part.name for part in loaded.graph.all_graphs()] == [part.name for part in made.graph.all_graphs()]
    assert loaded.plan == made.plan
    loaded.save(tmp_path / "again.om")
    assert (tmp_path / "again.om").read_bytes() == (tmp_path / "m.om").read_bytes()


@pytest.mark.parametrize("name", ["ifs_nested", "loops_nested"])
def test_netron_opens_bodies(name: str, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    made = compiled(CASES[name].model)
    made.save(tmp_path / "m.om")
    view = netron_view(tmp_path / "m.om", tmp_path_factory.mktemp("netron") / "modules")
    graphs = [made.graph, *made.graph.subgraphs.values()]
    assert [found["name"] for found in view["graphs"]] == [part.name for part in graphs]
    for found, part in zip(view["graphs"], graphs, strict=True):
        assert {n["name"] for n in found["nodes"]} == {n.name for n in part if n.type != "Const"}


# -- real models -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["silero_vad", "silero_vad_16k_op15"])
def test_silero_gives_the_outputs_of_its_framework(name: str, sample_model: Callable, tmp_path: Path) -> None:
    sample = sample_model(f"onnx/{name}.onnx")
    results = run(compile_to(tmp_path, sample.path, sample.inputs), sample.inputs)
    for found, expected in zip(results.values(), sample.outputs.values(), strict=True):
        assert_agrees(found, expected)


@pytest.mark.parametrize(("rate", "window"), [(16000, 512), (8000, 256)])
def test_silero_at_both_sample_rates(
    rate: int, window: int, sample_model: Callable, rng: np.random.Generator, tmp_path: Path
) -> None:
    """Each rate has a branch of its own."""
    path = sample_model("onnx/silero_vad.onnx").path
    state = rng.standard_normal((2, 1, 128)).astype(np.float32)
    first, second = (
        {"input": rng.standard_normal((1, window)).astype(np.float32), "state": state, "sr": np.array(rate)}
        for _ in range(2)
    )
    om = compile_to(tmp_path, path, first)
    results, others = run(om, first), run_onnxruntime(path, second)
    for found, expected, other in zip(
        results.values(), run_onnxruntime(path, first).values(), others.values(), strict=True
    ):
        assert_agrees(found, expected)
        assert found.size == 1 or assert_can_tell(expected, other) is None


def test_silero_stops_in_the_branch_that_does_not_fit_the_window(sample_model: Callable, tmp_path: Path) -> None:
    path = sample_model("onnx/silero_vad.onnx").path
    inputs: Arrays = {
        "input": np.zeros((1, 512), np.float32),
        "state": np.zeros((2, 1, 128), np.float32),
        "sr": np.array(8000),
    }
    om = compile_to(tmp_path, path, inputs)
    with pytest.raises(ReportedError, match=r"R1050[^$]*If_0_1_else_branch/If_0_Fail[^$]*must have rank 3"):
        run(om, inputs)
    with pytest.raises(Exception, match="LSTM"):
        run_onnxruntime(path, inputs)


# -- loops that never end, and deep ones -------------------------------------------------------------------------------
def endless(*, collects: bool) -> ModelProto:
    content = graph(
        [node("Neg", "v", "w", "neg")],
        [value("i", [], TensorProto.INT64), value("c", [], TensorProto.BOOL), value("v", [3])],
        [value("c", [], TensorProto.BOOL), value("w", [3]), *([value("i", [], TensorProto.INT64)] * collects)],
    )
    made = node("Loop", "_ c x", "y all" if collects else "y", "loop", body=content)
    outputs = [value("y", [3]), *([value("all", ["n"], TensorProto.INT64)] * collects)]
    return model([made], [value("c", [], TensorProto.BOOL), value("x", [3])], outputs)


@pytest.mark.parametrize("collects", [False, True], ids=["planned", "without plan"])
def test_an_endless_loop_can_be_interrupted(collects: bool) -> None:
    session = InferSession(0, compiled(endless(collects=collects)))
    old = signal.signal(signal.SIGALRM, lambda *_: (_ for _ in ()).throw(KeyboardInterrupt()))
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        with pytest.raises(KeyboardInterrupt):
            session.infer([np.array(True), np.ones(3, np.float32)])
    finally:
        signal.signal(signal.SIGALRM, old)
    np.testing.assert_array_equal(session.infer([np.array(False), np.ones(3, np.float32)])[0], np.ones(3))


def nested(depth: int) -> ModelProto:
    """``depth`` Ifs within each other; built in memory, for protobuf reads no file of more than about 30."""
    made = model([node("Relu", "x")], [value("c", [], TensorProto.BOOL), value("x", [3])], [value("y", [3])])
    inner, result = made.graph, "y"
    del inner.node[:]
    for level in range(depth):
        other = graph([node("Abs", "x", "a", "abs")], [], [value("a", [3])])
        choice = node("If", "c", result, f"if{level}", then_branch=graph([], [], []), else_branch=other)
        inner.node.append(choice)
        [inner] = [a.g for a in inner.node[0].attribute if a.name == "then_branch"]
        result = f"t{level}"
        inner.output.append(value(result, [3]))
    inner.node.append(node("Neg", "x", result, "neg"))
    return made


def test_sixty_branches_within_each_other() -> None:
    session = InferSession(0, compiled(nested(60)))
    x = np.float32([1, -2, 3])
    np.testing.assert_array_equal(session.infer([np.array(True), x])[0], -x)
    np.testing.assert_array_equal(session.infer([np.array(False), x])[0], np.abs(x))


@pytest.mark.parametrize("as_bytes", [False, True])
def test_two_hundred_branches_within_each_other_are_refused(as_bytes: bool) -> None:
    source = nested(200)
    with pytest.raises(ReportedError, match=r"E13005.*nested deeper than"):
        compiled(source.SerializeToString() if as_bytes else source)


def test_a_long_loop_takes_no_more_memory_than_a_short_one() -> None:
    """50,000 turns; the state lies in one place."""
    case = LOOPS["loop_rotates_its_state"]
    [feeds] = numbers(50_000, **{k: v for k, v in case.feeds[0].items() if k != "m"})
    session = InferSession(0, compiled(case.model))
    expected = [feeds[name] for name in ("d0", "a0", "b0")]  # 50,000 = 3 * 16,666 + 2 turns
    for found, wanted in zip(feed(session, feeds), expected, strict=True):
        np.testing.assert_array_equal(found, wanted)


# -- files that cannot be believed -------------------------------------------------------------------------------------
def _call_itself(made: OfflineModel) -> None:
    body = made.graph.subgraphs["if_y_0_then_branch"]
    body.find("if_y_0_then_branch/if_y2").subgraphs[0] = ("then_branch", body.name)


def _call_twice(made: OfflineModel) -> None:
    body = made.graph.subgraphs["if_y_0_then_branch"]
    body.find("if_y_0_then_branch/if_y2").subgraphs[0] = ("then_branch", "if_y_1_else_branch")


def _lose_results(made: OfflineModel) -> None:
    body = made.graph.subgraphs["if_y_1_else_branch"]
    body.remove_inputs(body.net_output(), [0])
    body.output_names = []


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda made: made.graph.remove_subgraph("if_y_1_else_branch"), "'if_y_1_else_branch' does not exist"),
        (_call_itself, "graph if_y_0_then_branch is called twice"),
        (_call_twice, "graph if_y_1_else_branch is called twice"),
        (_lose_results, "its graph else_branch do not fit its outputs"),
    ],
    ids=["a body is missing", "a body calls itself", "a body is called twice", "a body gives nothing"],
)
def test_files_with_broken_bodies(damage: Callable[[OfflineModel], Any], reason: str, tmp_path: Path) -> None:
    made = compiled(CASES["ifs_nested"].model)
    damage(made)
    made.save(tmp_path / "m.om")
    with pytest.raises(ReportedError, match=reason) as caught:
        InferSession(0, tmp_path / "m.om")
    assert caught.value.code in ("E10041", "R1010")
