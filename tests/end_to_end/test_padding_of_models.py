"""Whole models leave zeros in the padding of every tensor: debug runs look after each operator."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest

from ge.formats import is_private
from ge.graph import Graph
from simulator.kernels.storage.layout import has_padding
from simulator.session import InferSession
from tests.end_to_end.agreement import Arrays, compile_to


def check_padding(om: Path, inputs: Arrays, least: int) -> None:
    """Run with checks; the model must have ``least`` tensors with padding at least."""
    import om_format

    graph: Graph = om_format.load(om).graph
    padded = [d for node in graph for d in node.output_descs if is_private(d.format) and has_padding(d)]
    assert len(padded) >= least
    with InferSession(model_path=om, debug=True) as session:
        session.infer([inputs[port.name] for port in session.get_inputs()])


@pytest.mark.parametrize("precision", ["origin", "fp16"])
@pytest.mark.parametrize(("name", "least"), [("conv_zoo", 5), ("ch_PP-OCRv4_det_infer", 20)])
def test_sample_models(name: str, least: int, precision: str, sample_model: Callable, tmp_path: Path) -> None:
    sample = sample_model(f"onnx/{name}.onnx")
    om = compile_to(tmp_path, sample.path, sample.inputs, format_refinement=1, precision_mode_v2=precision)
    check_padding(om, sample.inputs, least)


@pytest.mark.parametrize("precision", ["origin", "fp16"])
def test_shuffled_channels(precision: str, light_path: Callable, rng: np.random.Generator, tmp_path: Path) -> None:
    """Shufflenet has groups whose channels fill no blocks."""
    path = light_path("light_shufflenet")
    name = onnx.load(path, load_external_data=False).graph.input[0].name
    inputs = {name: rng.standard_normal((1, 3, 224, 224), dtype=np.float32)}
    om = compile_to(tmp_path, path, inputs, format_refinement=1, precision_mode_v2=precision)
    check_padding(om, inputs, 20)
