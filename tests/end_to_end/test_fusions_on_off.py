"""The sample models give the same numbers with the built-in fusions and without them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray

from tests.conftest import SAMPLE_MODELS, SampleModel
from tests.end_to_end.agreement import assert_agrees, compile_to, run

QUICK = ("bert_tiny_legacy_dyn", "ch_ppocr_mobile_v2.0_cls_infer", "gpt2_tiny")
SLOW = ("ch_PP-OCRv4_det_infer", "conv_zoo", "rnn_zoo", "silero_vad", "silero_vad_16k_op15", "vit_tiny")
WITH_OPEN_DIMS = (*QUICK[:2], "ch_PP-OCRv4_det_infer", "silero_vad", "silero_vad_16k_op15")
WITHOUT_FUSIONS = ("rnn_zoo",)
"""Recurrent layers and what lies between them: nothing to be fused."""


@pytest.fixture
def check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator) -> Callable[..., None]:
    """`check(sample, **options)`: both ways give what the framework computed, and the same for another input."""
    switches = tmp_path / "switches.json"
    switches.write_text('{"Switch": {"GraphFusion": {"ALL": "off"}}}')

    def check(sample: SampleModel, **options: object) -> None:
        other_inputs = {key: shuffled(value, rng) for key, value in sample.inputs.items()}
        results, other_results, effects = {}, {}, {}
        for way, choice in {"on": {}, "off": {"fusion_switch_file": switches}}.items():
            folder = tmp_path / way
            folder.mkdir()
            monkeypatch.chdir(folder)  # fusion_result.json is written there
            om = compile_to(folder, sample.path, sample.inputs, export_compile_stat=1, **choice, **options)
            results[way], other_results[way] = run(om, sample.inputs), run(om, other_inputs)
            effects[way] = effects_in(folder / "fusion_result.json")

        assert not effects["off"]
        assert bool(effects["on"]) is (sample.path.stem not in WITHOUT_FUSIONS)
        for output, expected in sample.outputs.items():
            assert_agrees(results["on"][output], expected)
            assert_agrees(results["off"][output], expected)
            assert_agrees(results["on"][output], results["off"][output])
            assert_agrees(other_results["on"][output], other_results["off"][output])
            assert not np.array_equal(other_results["on"][output], expected)

    return check


def shuffled(values: NDArray[np.generic], rng: np.random.Generator) -> NDArray[np.generic]:
    """The same numbers in another order: another input that is as likely as the first."""
    return rng.permutation(values.ravel()).reshape(values.shape)


def effects_in(path: Path) -> dict[str, int]:
    """How often each fusion took effect; without any match there is no file."""
    if not path.exists():
        return {}
    [counts] = json.loads(path.read_text()).values()
    effects = {name: int(times["effect_times"]) for name, times in counts["graph_fusion"].items()}
    return {name: times for name, times in effects.items() if times}


@pytest.mark.parametrize("name", [*QUICK, *(pytest.param(name, marks=pytest.mark.slow) for name in SLOW)])
def test_sample_models(name: str, sample_model: Callable, check: Callable[..., None]) -> None:
    check(sample_model(f"onnx/{name}.onnx"))


@pytest.mark.slow
@pytest.mark.parametrize("name", WITH_OPEN_DIMS)
def test_sample_models_with_open_dimensions(name: str, sample_model: Callable, check: Callable[..., None]) -> None:
    sample = sample_model(f"onnx/{name}.onnx")
    ports = onnx.load(sample.path, load_external_data=False).graph.input
    dims = {port.name: port.type.tensor_type.shape.dim for port in ports}
    shapes = {key: tuple(dim.dim_value or -1 for dim in dims[key]) for key in sample.inputs if dims[key]}
    assert any(-1 in shape for shape in shapes.values())
    check(sample, input_shape=shapes)


def test_all_sample_models_are_listed() -> None:
    if not SAMPLE_MODELS.is_dir():
        pytest.skip("the sample models are not beside this checkout")
    assert {path.stem for path in (SAMPLE_MODELS / "onnx").glob("*.onnx")} == {*QUICK, *SLOW}
