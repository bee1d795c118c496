"""Light models with random weights: same graph, reproducible, able to tell a right output from a wrong one."""

from __future__ import annotations

from collections import Counter

import numpy as np
import onnx
import onnxruntime
import pytest

from models.materialise_light import (
    LIGHT_NAMES,
    assert_tells,
    before_softmax,
    example_input,
    graph_inputs,
    light_model,
    materialise,
)

LARGE = {"light_bvlc_alexnet", "light_vgg19", "light_zfnet512"}
NAMES = [pytest.param(name, marks=pytest.mark.slow if name in LARGE else ()) for name in LIGHT_NAMES]


def layers(model: onnx.ModelProto) -> Counter[str]:
    return Counter(node.op_type for node in model.graph.node if node.op_type != "ConstantOfShape")


def run(model: onnx.ModelProto, feeds: dict[str, np.ndarray]) -> np.ndarray:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    (result,) = onnxruntime.InferenceSession(model.SerializeToString(), options).run(None, feeds)
    return result


@pytest.mark.parametrize("name", NAMES)
def test_same_graph_with_telling_weights(name: str) -> None:
    original = light_model(name)
    model = materialise(original)
    onnx.checker.check_model(model)
    assert layers(model) == layers(original)
    assert "ConstantOfShape" not in {node.op_type for node in model.graph.node}
    assert [value.name for value in graph_inputs(model)] == [value.name for value in graph_inputs(original)]
    logits = before_softmax(model)
    first, second = (run(logits, example_input(model, seed)) for seed in (2, 3))
    assert_tells(first, second, name)
    assert 0.1 < first.std() < 10.0


def test_variances_are_positive_and_differ_between_channels() -> None:
    model = materialise(light_model("light_shufflenet"))
    weights = {item.name: onnx.numpy_helper.to_array(item) for item in model.graph.initializer}
    norms = [node for node in model.graph.node if node.op_type == "BatchNormalization"]
    assert len(norms) == 49
    for node in norms:
        for name in node.input[1:]:
            assert len(np.unique(weights[name])) > 1
        assert weights[node.input[4]].min() > 0


def test_weights_follow_the_seed_and_nothing_else() -> None:
    original = light_model("light_squeezenet")
    before = original.SerializeToString(deterministic=True)
    first, again, other = (materialise(original, seed).SerializeToString(deterministic=True) for seed in (5, 5, 6))
    assert first == again
    assert first != other
    assert original.SerializeToString(deterministic=True) == before


def test_before_softmax_leaves_a_model_without_softmax_alone() -> None:
    densenet = light_model("light_densenet121")
    assert before_softmax(densenet) is densenet
    squeezenet = before_softmax(light_model("light_squeezenet"))
    assert squeezenet.graph.node[-1].op_type == "GlobalAveragePool"
    assert squeezenet.graph.output[0].name == squeezenet.graph.node[-1].output[0]


@pytest.mark.parametrize(
    ("logits", "other"),
    [
        (np.full(10, 3.0), np.linspace(0, 1, 10)),
        (np.linspace(-1, 1, 10), np.linspace(-1, 1, 10)),
        (np.array([np.nan, 1.0]), np.array([0.0, 1.0])),
    ],
    ids=["constant", "indifferent", "not-a-number"],
)
def test_outputs_that_tell_nothing_are_refused(logits, other) -> None:
    with pytest.raises(ValueError, match="model: "):
        assert_tells(logits, other, "model")
