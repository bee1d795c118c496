"""Whole models: compiled, saved, loaded, run, and compared with what others compute."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest

from tests.end_to_end.agreement import assert_agrees, assert_can_tell, compile_to, run, run_onnxruntime

SAMPLES = [
    "ch_PP-OCRv4_det_infer",
    "ch_ppocr_mobile_v2.0_cls_infer",
    "conv_zoo",
    "vit_tiny",
    "gpt2_tiny",
    "bert_tiny_legacy_dyn",
    "rnn_zoo",
]

LIGHT = [
    *("densenet121", "inception_v1", "inception_v2", "resnet50", "shufflenet", "squeezenet"),
    *(pytest.param(name, marks=pytest.mark.slow) for name in ("bvlc_alexnet", "vgg19", "zfnet512")),
]


@pytest.mark.parametrize("name", SAMPLES)
def test_sample_models_give_the_outputs_of_their_framework(name: str, sample_model: Callable, tmp_path: Path) -> None:
    sample = sample_model(f"onnx/{name}.onnx")
    results = run(compile_to(tmp_path, sample.path, sample.inputs), sample.inputs)
    assert list(results) == list(sample.outputs)
    for output, expected in sample.outputs.items():
        assert_agrees(results[output], expected)


@pytest.mark.parametrize("name", LIGHT)
def test_light_models_with_random_weights_agree_with_onnxruntime(
    name: str, light_path: Callable, rng: np.random.Generator, tmp_path: Path
) -> None:
    path = light_path(f"light_{name}")
    graph_input = onnx.load(path, load_external_data=False).graph.input[0].name
    first, second = ({graph_input: rng.standard_normal((1, 3, 224, 224), dtype=np.float32)} for _ in range(2))
    om = compile_to(tmp_path, path, first)
    for inputs in (first, second):
        expected = run_onnxruntime(path, inputs)
        results = run(om, inputs)
        assert list(results) == list(expected)
        for output, values in expected.items():
            assert_agrees(results[output], values)
    (ours,), (other,) = expected.values(), run_onnxruntime(path, first).values()
    assert_can_tell(ours, other)


def test_an_om_of_a_model_whose_weights_are_computed_stays_small_and_runs(
    tmp_path: Path, rng: np.random.Generator
) -> None:
    model = Path(onnx.__file__).parent / "backend/test/data/light/light_resnet50.onnx"
    inputs = {"gpu_0/data_0": rng.standard_normal((1, 3, 224, 224), dtype=np.float32)}
    om = compile_to(tmp_path, model, inputs)
    assert om.stat().st_size < 1_000_000  # of weights of 100 MB
    (result,) = run(om, inputs).values()
    # all weights are equal, so all 1000 classes are equally likely: only the plumbing is shown, not the numbers
    np.testing.assert_allclose(result, np.full((1, 1000), 1e-3), rtol=1e-4)
