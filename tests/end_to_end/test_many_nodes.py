"""Graphs of up to 20,000 nodes: right numbers, no limit of depth, and time that grows with the nodes only."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest
from onnx.reference import ReferenceEvaluator

import atc
from models.synthetic_graphs import FORMS, WIDTH, make
from simulator import InferSession
from tests.end_to_end.agreement import assert_agrees

# many Python objects, little arithmetic: two forms tell whether depth and width hold, all of them take a minute
QUICK = ("chain", "fan_out")
EVERY_FORM = [pytest.param(form, marks=() if form in QUICK else pytest.mark.slow) for form in FORMS]


def compile_and_save(source: bytes, om: Path) -> None:
    atc.compile_model(source, soc_version="Ascend310P3", precision_mode_v2="origin").save(om)


@pytest.mark.parametrize("form", EVERY_FORM)
def test_twenty_thousand_nodes_compile_and_run(form: str, tmp_path: Path, rng: np.random.Generator) -> None:
    model = make(form, 20_000)
    om = tmp_path / "m.om"
    compile_and_save(model.SerializeToString(), om)
    session, reference = InferSession(0, om), ReferenceEvaluator(model)
    results = []
    for _ in range(2):
        x = rng.uniform(0.5, 1.5, (1, WIDTH)).astype(np.float32)
        results.append(session.infer([x]))
        for actual, expected in zip(results[-1], reference.run(None, {"x": x}), strict=True):
            assert_agrees(actual, expected)
    assert not np.allclose(results[0][-1], results[1][-1], rtol=1e-2)


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_a_node_costs_as_much_in_a_large_graph_as_in_a_small_one(form: str, tmp_path: Path) -> None:
    """Processor time, the better of two runs. A pass that looks at each node for each node would cost 16 times more."""

    def cost(nodes: int) -> float:
        source = make(form, nodes).SerializeToString()
        seconds = []
        for _ in range(2):
            start = time.process_time()
            compile_and_save(source, tmp_path / "m.om")
            InferSession(0, tmp_path / "m.om")
            seconds.append(time.process_time() - start)
        return min(seconds) / nodes

    compile_and_save(make(form, 100).SerializeToString(), tmp_path / "m.om")  # imports
    small, large = cost(1_250), cost(20_000)
    assert large < 2.5 * small
