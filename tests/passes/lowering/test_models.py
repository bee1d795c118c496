"""Whole models compute the same with their loops fused, and no two kernels stay apart without a reason."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from atc.library import options_from
from ge.graph import Graph
from ge.options import Environment
from ge.session import CompileSession
from ge.verify import verify
from parsers.front_ends import parse_model
from passes import pipeline
from passes.driver import Driver
from passes.lowering.fused_nodes import FusedGraph
from passes.lowering.lower_model import lower_model
from tests.conftest import SampleModel
from tests.passes.lowering.asc_numpy import Array, run_graph
from tests.passes.lowering.lowered import HOST


def before_build(path: Path, precision: str) -> Graph:
    """A model as the pipeline has it in front of its build passes, in layouts of the chip."""
    environment = Environment()
    options = options_from({"soc_version": "Ascend910B1", "precision_mode_v2": precision}, environment, str(path))
    session = CompileSession(options, environment)
    graph = parse_model(path, session)
    steps = [
        *pipeline.prepare(), *pipeline.infer(), *pipeline.optimize(), *pipeline.refine_precision(),
        *pipeline.refine_formats(), *pipeline.finish(),
    ]  # fmt: skip
    Driver(session).run(graph, steps)
    return graph


def check_fusion(path: Path, precision: str, feeds: dict[str, Array], kernels: int) -> None:
    graph = before_build(path, precision)
    with np.errstate(all="ignore"):
        expected = run_graph(graph, feeds)
        results = lower_model(graph, HOST)
        verify(graph)
        found = run_graph(graph, feeds)
    for a, b in zip(found, expected, strict=True):
        wide = b.astype(np.float64)
        assert wide.std() > 0.05 * np.abs(wide).max()
        # sums of float32, or one rounding to float16 that falls the other way, of the largest number
        tolerance = (2e-3 if precision == "fp16" else 4e-6) * np.abs(wide).max()
        np.testing.assert_allclose(a.astype(np.float64), wide, rtol=0, atol=tolerance)
    assert sum(len(fused.kernels) for fused in results) == kernels
    for fused in results:
        check_neighbours(fused)


def check_neighbours(fused: FusedGraph) -> None:
    """Two kernels of which one reads the other stand in the list of those that stay apart, with a code."""
    told = {(stop.first, stop.second) for stop in fused.kernel_stops if stop.code.startswith("NF")}
    old_names = {kernel.number: kernel.node.name for kernel in fused.kernels.values()}
    assert len(old_names) == len(fused.kernels)
    for node in fused.kernels:
        for tensor in node.outputs():
            for reader in node.consumers(tensor.index):
                if reader.node in fused.kernels:
                    pairs = {(numbered(first), numbered(second)) for first, second in told}
                    assert (numbered(node.name), numbered(reader.node.name)) in pairs


def numbered(name: str) -> str:
    """The number in the name of a kernel: lifting may have written its operators in another way."""
    return next(part for part in name.split("_") if part.isdecimal())


@pytest.mark.parametrize("precision", ["origin", "fp16"])
def test_digits(digits_model: Path, digits_samples: dict[str, Array], precision: str) -> None:
    image = next(iter(digits_samples.values()))
    graph = before_build(digits_model, precision)
    feeds = {"image": image}
    with np.errstate(all="ignore"):
        [expected] = run_graph(graph, feeds)
        lower_model(graph, HOST)
        [found] = run_graph(graph, feeds)
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-5)
    assert found.argmax() == expected.argmax()


@pytest.mark.parametrize("precision", ["origin", "fp16"])
@pytest.mark.parametrize(("name", "kernels"), [("vit_tiny", 7), ("gpt2_tiny", 7), ("conv_zoo", 3)])
def test_sample_models(sample_model: Callable[[str], SampleModel], name: str, kernels: int, precision: str) -> None:
    model = sample_model(f"onnx/{name}.onnx")
    check_fusion(model.path, precision, model.inputs, kernels)
