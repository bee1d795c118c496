"""Frozen TensorFlow graphs: compiled, saved, loaded, run, and compared with what TensorFlow computed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import atc
from atc.graph_command import main as graph_main
from atc.opt import main as opt_main
from simulator import InferSession
from tests.conftest import SampleModel
from tests.end_to_end.agreement import Arrays, assert_agrees, compile_to, run
from tests.parsers.tensorflow.tf_models import const, graph, node, placeholder

SAMPLES = ["mobilenet_v2_035", "transformer_block", "misc_ops", "image_ops"]


def feeds(sample: SampleModel) -> Arrays:
    """Return the inputs by the names of the nodes: TensorFlow's are those of their output 0."""
    return {name.removesuffix(":0"): value for name, value in sample.inputs.items()}


@pytest.mark.parametrize("name", SAMPLES)
def test_sample_models_give_the_outputs_of_tensorflow(name: str, sample_model: Callable, tmp_path: Path) -> None:
    sample = sample_model(f"tf/{name}.pb")
    inputs = feeds(sample)
    results = run(compile_to(tmp_path, sample.path, inputs, framework=3), inputs)
    assert list(results) == list(sample.outputs)
    for output, expected in sample.outputs.items():
        assert_agrees(results[output], expected)


@pytest.mark.parametrize(
    ("name", "limit", "cosine"),
    [
        ("transformer_block", 2e-2, 0.999),
        ("misc_ops", 2e-2, 0.999),
        ("image_ops", 2e-2, 0.999),
        # random weights: the network enlarges any noise on them up to 190 times (docs/architecture.md, precision)
        ("mobilenet_v2_035", 6e-2, 0.997),
    ],
)
def test_sample_models_in_half_precision(
    name: str, limit: float, cosine: float, sample_model: Callable, tmp_path: Path
) -> None:
    sample = sample_model(f"tf/{name}.pb")
    inputs = feeds(sample)
    results = run(compile_to(tmp_path, sample.path, inputs, framework=3, precision_mode_v2="fp16"), inputs)
    for output, expected in sample.outputs.items():
        found, wanted = results[output].astype(float), expected.astype(float)
        assert np.linalg.norm(found - wanted) <= limit * np.linalg.norm(wanted)
        centred, other = (values.ravel() - values.mean() for values in (found, wanted))
        assert centred @ other >= cosine * np.linalg.norm(centred) * np.linalg.norm(other)


def test_all_batch_norms_of_mobilenet_are_folded_and_nothing_is_transposed(sample_model: Callable) -> None:
    sample = sample_model("tf/mobilenet_v2_035.pb")
    model = atc.compile_model(sample.path, framework=3, soc_version="Ascend310P3", precision_mode_v2="origin")
    types = [n.type for n in model.graph]
    assert types.count("Conv2D") + types.count("DepthwiseConv2D") == 52
    assert types.count("Relu6") == 35
    assert types.count("Add") == 10  # the residuals
    left_over = {"Mul", "Sub", "Rsqrt", "Pad", "BiasAdd", "Transpose", "TransposeD", "Identity", "NoOp"}
    assert not left_over & set(types)


def digits_like(folder: Path) -> Path:
    """Write a small model whose batch size is open."""
    rng = np.random.default_rng(3)
    model = graph(
        placeholder("x", [-1, 6, 6, 2]),
        const("w", rng.standard_normal((3, 3, 2, 4)).astype(np.float32)),
        node("Conv2D", "conv", "x w", strides=[1, 2, 2, 1], padding="SAME"),
        node("Relu", "relu", "conv"),
        const("axes", np.int32([1, 2])),
        node("Mean", "y", "relu axes"),
    )
    path = folder / "small.pb"
    path.write_bytes(model.SerializeToString())
    return path


def test_an_open_batch_is_left_to_run_time(tmp_path: Path, rng: np.random.Generator) -> None:
    path = digits_like(tmp_path)
    shape = {"input_shape": {"x": (-1, 6, 6, 2)}}
    compiled = atc.compile_model(path, framework=3, soc_version="Ascend310P3", precision_mode_v2="origin", **shape)
    compiled.save(tmp_path / "open.om")
    x = rng.standard_normal((3, 6, 6, 2)).astype(np.float32)
    (found,) = InferSession(0, str(tmp_path / "open.om")).infer([x])
    fixed = run(compile_to(tmp_path, path, {"x": x}, framework=3), {"x": x})
    np.testing.assert_allclose(found, fixed["y:0"], rtol=1e-5, atol=1e-6)


def test_the_developer_tools_read_frozen_graphs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = digits_like(tmp_path)
    assert opt_main([str(path), "--input-shape", "x:1,6,6,2"]) == 0
    assert "%conv = Conv2D(%x, %w" in capsys.readouterr().out
    assert graph_main(["show", str(path), "--input-shape", "x:1,6,6,2"]) == 0
    shown = capsys.readouterr().out
    assert "TensorFlow graph" in shown
    assert "ReduceMean" in shown
