"""InferSession: what its users see."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from ge.errors import ReportedError
from ge.graph import DataType, Format, Graph, TensorDesc
from ge.plan import GraphPlan, Plan, Task
from simulator import InferSession
from tests.simulator.planned_model import PlannedModel, data, plan_model

A = np.array([[1, 2], [3, 4]], np.float32)
B = np.array([[10, 20], [30, 40]], np.float32)


def difference() -> PlannedModel:
    """y0 = a - b; y1 = b < a"""
    graph = Graph("difference")
    a, b = data(graph, "a", A, Format.FORMAT_NCHW), data(graph, "b", B)
    sub = graph.add_node("Sub", "sub", [a, b], output_descs=[TensorDesc([2, 2])])
    less_desc = TensorDesc([2, 2], data_type=DataType.DT_BOOL)
    less = graph.add_node("Less", "less", [b, a], output_descs=[less_desc])
    return plan_model(graph, [sub.output(), less.output()])


@pytest.fixture
def session() -> InferSession:
    return InferSession(0, difference())


def test_descriptors(session: InferSession) -> None:
    a, b = session.get_inputs()
    assert (a.name, a.shape, a.datatype, a.size, a.realsize, a.format) == ("a", [2, 2], np.float32, 16, 16, "NCHW")
    assert (b.name, b.format) == ("b", "ND")
    assert [(y.name, y.datatype, y.size) for y in session.get_outputs()] == [("y0", np.float32, 16), ("y1", bool, 4)]


def test_infer_returns_copies_that_stay(session: InferSession) -> None:
    first = session.infer([A, B])
    np.testing.assert_array_equal(first[0], A - B)
    np.testing.assert_array_equal(first[1], B < A)
    session.infer([B, A])
    np.testing.assert_array_equal(first[0], A - B)


def test_non_contiguous_and_foreign_endian_feeds(session: InferSession) -> None:
    feeds = [A.T.astype(">f4"), B[:, ::-1]]
    np.testing.assert_array_equal(session.infer(feeds)[0], A.T - B[:, ::-1])


@pytest.mark.parametrize(
    ("feeds", "code", "parts"),
    [
        ([A], "R1030", ["arrays is 1", "inputs 2: a, b"]),
        ([A, B, B], "R1030", ["arrays is 3"]),
        ([A, B.astype(np.float64)], "R1031", ["[b]", "float32[2, 2] (16 bytes)", "float64[2, 2] (32 bytes)"]),
        ([A.astype(np.int32), B], "R1031", ["[a]", "float32[2, 2]", "int32[2, 2]"]),
        ([A.reshape(4), B], "R1031", ["[a]", "float32[4]"]),
        ([A[:1], B], "R1031", ["[a]", "float32[1, 2] (8 bytes)"]),
        ([A, 3.0], "R1031", ["[b]", "float64[]"]),
    ],
)
def test_feeds_that_do_not_fit(session: InferSession, feeds: list, code: str, parts: list[str]) -> None:
    with pytest.raises(ReportedError) as caught:
        session.infer(feeds)
    assert caught.value.code == code
    assert [part for part in parts if part not in caught.value.message] == []


def test_reinterpreted_feeds(session: InferSession) -> None:
    feeds = [A.view(np.int32).reshape(4), B.view(np.uint8)]
    np.testing.assert_array_equal(session.infer(feeds, allow_reinterpret=True)[0], A - B)
    with pytest.raises(ReportedError, match="R1031"):
        session.infer([A[:1], B], allow_reinterpret=True)


@pytest.mark.parametrize("mode", ["dynbatch", "dynhw", "dyndims", "dynshape", "dymdims", "fast"])
def test_modes_that_were_not_compiled(session: InferSession, mode: str) -> None:
    with pytest.raises(ReportedError, match=f"R1061.*{mode}.*static"):
        session.infer([A, B], mode)


def test_pipeline(session: InferSession) -> None:
    results = session.infer_pipeline([[A, B], [B, A]])
    np.testing.assert_array_equal(results[0][0], A - B)
    np.testing.assert_array_equal(results[1][0], B - A)


def test_iteration_feeds_outputs_back(session: InferSession) -> None:
    result = session.infer_iteration([A, B], [0, -1], 3)
    np.testing.assert_array_equal(result[0], A - 3 * B)
    np.testing.assert_array_equal(session.infer_iteration([A, B], None, 3)[0], A - B)


@pytest.mark.parametrize("in_out_list", [[0], [0, 2], [-2, 0]])
def test_iteration_lists_that_do_not_fit(session: InferSession, in_out_list: list[int]) -> None:
    with pytest.raises(ReportedError, match="R1063"):
        session.infer_iteration([A, B], in_out_list, 2)


def test_runs_leave_the_settings_of_numpy_as_they_were(session: InferSession) -> None:
    with np.errstate(over="raise"):
        previous = np.setbufsize(4096)
        session.infer([A, B])
        assert (np.getbufsize(), np.geterr()["over"]) == (4096, "raise")
        np.setbufsize(previous)


def test_summary_counts_every_run() -> None:
    session = InferSession(model_path=difference(), loop=3)
    session.infer([A, B])
    session.infer([A, B])
    times = session.summary().exec_time_list
    assert len(times) == 6
    assert all(t > 0 for t in times)
    session.reset_summaryinfo()
    assert session.summary().exec_time_list == []


def test_nothing_runs_after_free_resource(session: InferSession) -> None:
    session.infer([A, B])
    session.free_resource()
    session.free_resource()
    with pytest.raises(ReportedError, match=r"R1060.*freed"):
        session.infer([A, B])
    assert len(session.summary().exec_time_list) == 1


def test_one_arena_runs_once_at_a_time(session: InferSession) -> None:
    inside, leave = threading.Event(), threading.Event()

    def hold(step: object) -> None:
        inside.set()
        leave.wait(10)

    session._live().after_step = hold
    runner = threading.Thread(target=session.infer, args=([A, B],))
    runner.start()
    assert inside.wait(10)
    with pytest.raises(ReportedError, match=r"R1060.*running"):
        session.infer([A, B])
    leave.set()
    runner.join(10)
    session._live().after_step = None
    np.testing.assert_array_equal(session.infer([B, A])[0], B - A)


@pytest.mark.parametrize("model", [5, b"m.om", [], True])
def test_what_is_no_model(model: Any) -> None:
    with pytest.raises(TypeError, match=f"a path or an OfflineModel, not {type(model).__name__}"):
        InferSession(0, model)


@pytest.mark.parametrize(
    ("field", "value"),
    [("loop", 0), ("loop", 1.5), ("threads", 0), ("threads", -1), ("threads", "2"), ("threads", 10**30)],
)
def test_counts_that_are_none(field: str, value: Any) -> None:
    with pytest.raises(ReportedError, match=f"R1001.*{field}"):
        InferSession(model_path=difference(), **{field: value})


def test_a_failing_kernel_names_its_node(session: InferSession) -> None:
    step = session.plan.steps[1]

    def fail() -> None:
        raise ValueError("boom")

    session.plan.steps[1] = type(step)(step.node, step.type, step.kernel, step.inputs, step.outputs, fail)
    with pytest.raises(ReportedError, match=r"R1050.*less.*boom"):
        session.infer([A, B])
    session.plan.steps[1] = step
    np.testing.assert_array_equal(session.infer([A, B])[0], A - B)


def test_only_large_products_use_several_threads() -> None:
    session = InferSession(model_path=difference(), threads=2)
    executor = session._live()
    used: list[int] = []

    def look(step: object) -> None:
        used.append(executor._blas.lib_controllers[0].num_threads)

    executor.after_step = look
    before = executor._blas.lib_controllers[0].num_threads
    session.infer([A, B])
    large = [replace(step, kernel=replace(step.kernel, product_size=10**9)) for step in session.plan.steps]
    session.plan.steps[:] = large
    session.infer([A, B])
    assert used == [1, 1, 2, 2]
    assert executor._blas.lib_controllers[0].num_threads == before


def texts() -> InferSession:
    """y = x, three texts"""
    graph = Graph("texts")
    desc = TensorDesc([3], data_type=DataType.DT_STRING)
    x = graph.add_node("Data", "x", attrs={"index": 0}, output_descs=[desc])
    y = graph.add_node("Identity", "same", [x.output()], output_descs=[desc.copy()])
    graph.outputs, graph.output_names = [y.output()], ["y"]
    graph.add_node("NetOutput", "NetOutput", [y.output()], output_descs=[])
    return InferSession(0, PlannedModel(graph, Plan({graph.name: GraphPlan([Task("same")])}, is_static=False)))


@pytest.mark.parametrize(
    "feed", [np.array(["a", "\u00e9\U0001f600", ""]), np.array([b"a", b"\xc3\xa9", b""]), ["x", "y", "z"]]
)
def test_texts(feed: Any) -> None:
    [found] = texts().infer([feed])
    assert found.tolist() == [text.decode() if isinstance(text, bytes) else text for text in np.asarray(feed).tolist()]


def test_characters_that_do_not_exist() -> None:
    with pytest.raises(ReportedError, match=r"R1033.*\[x\].*characters that do not exist"):
        texts().infer([np.frombuffer(b"\xff" * 12, "<U1")])
