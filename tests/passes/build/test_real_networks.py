"""Plans of real networks: close to the bound, and the same results as without any reuse."""

from __future__ import annotations

import numpy as np
import pytest

from ge.graph import Graph
from ge.options import CompileOptions, Environment, parse_input_shape
from ge.plan import GraphPlan
from ge.plan_check import check_plan
from ge.session import CompileSession
from models.materialise_light import LIGHT_NAMES, light_model
from parsers.onnx import parse
from passes.build.memory_plan import PlanMemory
from passes.driver import Driver
from passes.pipeline import compile_passes
from simulator.loader import load
from tests.passes.build.memory_machine import most_bytes_in_use
from tests.simulator.planned_model import PlannedModel, run_plan

MIB = 1 << 20


def compiled(source, input_shape: str = "", is_reusing: bool = True) -> tuple[Graph, CompileSession, GraphPlan]:
    shapes = parse_input_shape(input_shape) if input_shape else {}
    session = CompileSession(CompileOptions(input_shape=shapes), Environment())
    graph = parse(source, session)
    steps = [PlanMemory(is_reusing) if isinstance(step, PlanMemory) else step for step in compile_passes()]
    Driver(session).run(graph, steps)
    check_plan(graph, session.plan)
    return graph, session, session.plan.graphs[graph.name]


@pytest.mark.parametrize("name", LIGHT_NAMES)
def test_light_models_stay_within_five_percent_of_the_bound(name) -> None:
    graph, session, part = compiled(light_model(name).SerializeToString())
    assert session.plan.is_static
    assert part.naive_size > 5 * MIB
    assert part.bound == most_bytes_in_use(graph, part)
    assert part.bound <= part.arena_size <= 1.05 * part.bound


@pytest.mark.parametrize(
    "name", ["ch_PP-OCRv4_det_infer", "ch_ppocr_mobile_v2.0_cls_infer", "conv_zoo", "vit_tiny", "gpt2_tiny", "rnn_zoo"]
)
def test_reuse_changes_no_bit_of_the_results(name, sample_model) -> None:
    sample = sample_model(f"onnx/{name}.onnx")
    results = []
    for is_reusing in (True, False):
        graph, session, part = compiled(sample.path, sample.input_shape, is_reusing)
        # what nobody has written yet reads as NaN
        found = run_plan(load(PlannedModel(graph, session.plan)), list(sample.inputs.values()), poison=0xFF)
        results.append((found, part.arena_size))
    (reused, arena), (separate, naive) = results
    assert naive > 2 * arena
    for one, other, expected in zip(reused, separate, sample.outputs.values(), strict=True):
        np.testing.assert_array_equal(one, other)
        np.testing.assert_allclose(one, expected, rtol=1e-3, atol=1e-4 * np.abs(expected).max())
