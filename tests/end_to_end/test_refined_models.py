"""Whole models with their tensors in layouts of the chip, compared with what others compute."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest

import atc
import om_format
from ge.errors import ReportedError
from tests.end_to_end.agreement import assert_agrees, compile_to, run, run_onnxruntime


@pytest.mark.parametrize(
    ("name", "transfers"),
    [
        # an image in, averages out
        ("resnet50", 2),
        ("squeezenet", 2),
        # 16 shuffles and 3 joins of unequal parts stand between convolutions
        ("shufflenet", 40),
        *(pytest.param(name, None, marks=pytest.mark.slow) for name in ("densenet121", "inception_v1", "inception_v2")),
    ],
)
def test_light_models_in_layouts_of_the_chip_agree_with_onnxruntime(
    name: str, transfers: int | None, light_path: Callable, rng: np.random.Generator, tmp_path: Path
) -> None:
    path = light_path(f"light_{name}")
    graph_input = onnx.load(path, load_external_data=False).graph.input[0].name
    inputs = {graph_input: rng.standard_normal((1, 3, 224, 224), dtype=np.float32)}
    om = compile_to(tmp_path, path, inputs, format_refinement=1)
    for output, expected in run_onnxruntime(path, inputs).items():
        assert_agrees(run(om, inputs)[output], expected)
    attrs = om_format.load(om).attrs
    assert transfers is None or attrs["_trans_data_count"] <= transfers
    assert attrs["_trans_data_weight_count"] == 0  # constants have been converted
    assert attrs["_trans_data_bytes"] > 0


@pytest.mark.parametrize("name", ["conv_zoo", "ch_PP-OCRv4_det_infer", "ch_ppocr_mobile_v2.0_cls_infer", "vit_tiny"])
def test_sample_models_in_layouts_of_the_chip_give_the_outputs_of_their_framework(
    name: str, sample_model: Callable, tmp_path: Path
) -> None:
    sample = sample_model(f"onnx/{name}.onnx")
    results = run(compile_to(tmp_path, sample.path, sample.inputs, format_refinement=1), sample.inputs)
    for output, expected in sample.outputs.items():
        assert_agrees(results[output], expected)


def test_dynamic_models_are_not_refined(tmp_path: Path, digits_model: Path) -> None:
    settings = {"soc_version": "Ascend310P3", "precision_mode_v2": "origin", "input_shape": "image:1~8,1,8,8"}
    plain, refined = (atc.compile_model(digits_model, **settings, format_refinement=flag) for flag in (0, 1))
    layouts = [[d.format for node in model.graph for d in node.output_descs] for model in (plain, refined)]
    assert layouts[0] == layouts[1]


@pytest.mark.parametrize("option", ["format_refinement", "enable_small_channel"])
def test_options_take_0_and_1(option: str, digits_model: Path) -> None:
    with pytest.raises(ReportedError, match=option):
        atc.compile_model(digits_model, soc_version="Ascend310P3", precision_mode_v2="origin", **{option: "2"})


def test_few_channels_have_layouts_of_their_own_on_demand(light_path: Callable, tmp_path: Path) -> None:
    path = light_path("light_squeezenet")
    graph_input = onnx.load(path, load_external_data=False).graph.input[0].name
    inputs = {graph_input: np.random.default_rng(3).standard_normal((1, 3, 224, 224), dtype=np.float32)}
    om = compile_to(tmp_path, path, inputs, format_refinement=1, enable_small_channel=1)
    formats = {desc.format.name for node in om_format.load(om).graph for desc in node.output_descs}
    assert {"FORMAT_NC1HWC0_C04", "FORMAT_FRACTAL_Z_C04"} <= formats
    for output, expected in run_onnxruntime(path, inputs).items():
        assert_agrees(run(om, inputs)[output], expected)
