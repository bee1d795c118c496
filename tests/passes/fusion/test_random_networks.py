"""Networks at random give the same numbers with the built-in fusions and without, and those of onnxruntime."""

from __future__ import annotations

from collections import Counter

import numpy as np
import onnxruntime
import pytest
from numpy.typing import NDArray
from onnx import ModelProto

from atc.compiler import compile_source
from ge.fusion_switches import FusionSwitches
from ge.options import CompileOptions, Environment
from ge.session import CompileSession
from passes.fusion.drop_idle_dropout import DropIdleDropout
from passes.fusion.fuse_graph import BUILTIN_FUSIONS
from simulator import InferSession
from tests.end_to_end.agreement import assert_agrees
from tests.passes.fusion.fused import ALL_OFF
from tests.passes.fusion.random_network import INPUTS, random_network

Arrays = dict[str, NDArray[np.generic]]
ROUNDINGS = 1e-6
"""A result without larger numbers is what roundings left of a difference of equals."""


def run(model: ModelProto, inputs: Arrays, switches: FusionSwitches) -> tuple[list[NDArray[np.generic]], Counter[str]]:
    """Compile and run; return the results and how often each fusion took effect."""
    session = CompileSession(CompileOptions(fusion_switches=switches), Environment())
    simulator = InferSession(0, compile_source(model.SerializeToString(), session))
    results = simulator.infer([inputs[port.name] for port in simulator.get_inputs()])
    return results, Counter({name: times.effect for name, times in session.fusion.graph_fusion.items()})


def run_unoptimized(model: ModelProto, inputs: Arrays) -> list[NDArray[np.generic]]:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    found: list[NDArray[np.generic]] = session.run(None, inputs)
    return found


def check(seeds: range) -> Counter[str]:
    """Check the networks of these seeds; return the effects in all of them."""
    total: Counter[str] = Counter()
    for seed in seeds:
        model = random_network(seed)
        rng = np.random.default_rng(seed)
        inputs: Arrays = {name: rng.standard_normal(shape, dtype=np.float32) for name, shape in INPUTS.items()}
        expected = run_unoptimized(model, inputs)
        with_fusions, effects = run(model, inputs, FusionSwitches())
        without, none = run(model, inputs, FusionSwitches(graph=ALL_OFF))
        assert not none
        for found, other, value in zip(with_fusions, without, expected, strict=True):
            if max(float(np.abs(result).max(initial=0)) for result in (found, other, value)) < ROUNDINGS:
                continue
            try:
                assert_agrees(found, other)
                assert_agrees(found, value)
            except AssertionError as fault:
                fault.add_note(f"seed {seed}, effects {dict(effects)}")
                raise
        total += effects
    return total


def test_random_networks() -> None:
    assert check(range(60)).total() > 100


@pytest.mark.slow
def test_many_random_networks() -> None:
    # random numbers are left out: they might be among the results, which are compared
    expected = {fusion.name for fusion in BUILTIN_FUSIONS} - {DropIdleDropout.name}
    assert check(range(1_000, 1_600)).keys() == expected
