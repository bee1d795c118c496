"""Debug runs look at the padding after every step; inputs are cleaned before the first."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ge.errors import ReportedError
from ge.graph import Graph, TensorDesc
from ge.graph.types import DataType, Format
from simulator.executor import Executor
from simulator.loader import load
from simulator.padding_check import check_step
from simulator.session import InferSession
from tests.ge.formats.index_formulas import lay_out
from tests.simulator.planned_model import PlannedModel, plan_model

ORIGIN = (1, 17, 2, 3)


def desc() -> TensorDesc:
    return TensorDesc((1, 2, 2, 3, 16), Format.FORMAT_NC1HWC0, DataType.DT_FLOAT, ORIGIN, Format.FORMAT_NCHW)


def chain(*types: str) -> PlannedModel:
    graph = Graph("chain")
    out = graph.add_node("Data", "x", attrs={"index": 0}, output_descs=[desc()]).output()
    for number, type_ in enumerate(types):
        attrs = {"value": 1.0} if type_ == "Adds" else {}
        out = graph.add_node(type_, f"{type_}_{number}", [out], attrs, output_descs=[desc()]).output()
    return plan_model(graph, [out])


def stored(value: float = 0.5) -> np.ndarray:
    return lay_out(np.full(ORIGIN, value, np.float32), "NCHW", "NC1HWC0", 16)


def test_clean_steps_pass() -> None:
    """Exp, Sigmoid and Adds are not 0 at 0."""
    with InferSession(model_path=chain("Exp", "Sigmoid", "Adds", "Relu"), debug=True) as session:
        [y] = session.infer([stored()])
    expected = stored(1 / (1 + np.exp(-np.exp(0.5))) + 1)
    np.testing.assert_allclose(y, expected, rtol=1e-6)


@pytest.mark.parametrize("value", [1.0, np.nan, -0.5])
def test_a_step_that_leaves_something_is_named(value: float) -> None:
    plan = load(chain("Exp", "Relu"))
    first = plan.steps[0]

    def call() -> None:
        first.call()
        first.outputs[0][0, 1, 1, 2, 5] = value

    plan.steps[0] = replace(first, call=call)
    executor = Executor(plan)
    executor.after_step = check_step
    with pytest.raises(ReportedError) as caught:
        executor.run([stored()])
    assert caught.value.code == "R1053"
    assert "Exp_0" in str(caught.value)
    assert "[0, 1, 1, 2, 5]" in str(caught.value)


def test_what_users_leave_in_the_padding_does_not_count() -> None:
    garbage = np.where(stored(1) == 1, np.float32(0.5), np.float32(np.nan))
    with InferSession(model_path=chain("Relu"), debug=True) as session:
        [y] = session.infer([garbage])
    np.testing.assert_array_equal(y, stored())


def test_layouts_without_a_kernel_are_refused() -> None:
    graph = Graph("refused")
    out = graph.add_node("Data", "x", attrs={"index": 0}, output_descs=[desc()]).output()
    node = graph.add_node("Cumsum", "sum", [out, out], output_descs=[desc()])
    with pytest.raises(ReportedError) as caught:
        load(plan_model(graph, [node.output()]))
    assert caught.value.code == "R1051"
    assert "NC1HWC0" in str(caught.value)
