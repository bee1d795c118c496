"""The digits classifier: hand-written gradients, the export, and the committed files."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

from models.train_digits import BatchNormalization, Convolution, Dense, Layer, MaxPool, Network, Relu, softmax, to_onnx

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "models" / "digits"


def directional_derivative(layer: Layer, x: np.ndarray, target: np.ndarray, weights: np.ndarray) -> float:
    """Central difference of sum(weights * layer(x)) when the array `target` (x or a parameter) moves along itself."""
    step = 1e-6
    values = []
    original = target.copy()
    for sign in (1, -1):
        target[...] = original * (1 + sign * step)
        values.append(float((weights * layer.forward(x, training=True)).sum()))
    target[...] = original
    return (values[0] - values[1]) / (2 * step)


@pytest.mark.parametrize(
    ("make", "shape"),
    [
        (lambda rng: Convolution(3, 4, rng), (2, 3, 6, 6)),
        (lambda rng: BatchNormalization(3), (4, 3, 5, 5)),
        (lambda rng: Relu(), (2, 3, 4, 4)),
        (lambda rng: MaxPool(), (2, 3, 4, 6)),
        (lambda rng: Dense(12, 5, rng), (2, 3, 2, 2)),
    ],
    ids=["convolution", "batch-normalization", "relu", "max-pool", "dense"],
)
def test_gradients_agree_with_differences(make, shape, rng) -> None:
    layer = make(rng)
    x = rng.normal(0.3, 1.0, shape)
    for name, value in layer.parameters.items():
        layer.parameters[name] = value + rng.normal(0.0, 0.5, value.shape)
    weights = rng.normal(size=layer.forward(x, training=True).shape)
    gradient = layer.backward(weights)
    expected = directional_derivative(layer, x, x, weights)
    np.testing.assert_allclose((gradient * x).sum(), expected, rtol=1e-5, atol=1e-6)
    for name, value in layer.parameters.items():
        layer.forward(x, training=True)
        layer.backward(weights)
        expected = directional_derivative(layer, x, value, weights)
        np.testing.assert_allclose((layer.gradients[name] * value).sum(), expected, rtol=1e-5, atol=1e-6)


def test_export_computes_what_the_network_does(rng) -> None:
    network = Network(rng)
    network.fix_statistics(rng.uniform(0, 1, (20, 1, 8, 8)))
    images = rng.uniform(0, 1, (5, 1, 8, 8))
    session = onnxruntime.InferenceSession(to_onnx(network).SerializeToString())
    for image in images:
        (probability,) = session.run(None, {"image": image[None].astype(np.float32)})
        np.testing.assert_allclose(probability, softmax(network.logits(image[None])), rtol=1e-4, atol=1e-6)


def test_committed_model_has_the_stated_interface(digits_model) -> None:
    model = onnx.load(digits_model)
    onnx.checker.check_model(model, full_check=True)
    (image,), (probability,) = model.graph.input, model.graph.output
    assert (image.name, probability.name) == ("image", "probability")
    assert [dim.dim_value for dim in image.type.tensor_type.shape.dim] == [1, 1, 8, 8]
    assert [dim.dim_value for dim in probability.type.tensor_type.shape.dim] == [1, 10]
    assert digits_model.stat().st_size < 1_000_000


def test_samples_are_read_rightly_and_not_all_easily(digits_model, digits_samples) -> None:
    session = onnxruntime.InferenceSession(digits_model)
    best = []
    for name, image in digits_samples.items():
        assert image.shape == (1, 1, 8, 8)
        assert image.dtype == np.float32
        (probability,) = session.run(None, {"image": image})
        assert probability.argmax() == int(name.split("_")[1])
        best.append(float(probability.max()))
    assert {name.split("_")[1] for name in digits_samples} == set("0123456789")
    assert min(best) < 0.6


@pytest.mark.slow
def test_training_gives_the_committed_files(tmp_path) -> None:
    pytest.importorskip("sklearn", reason="training needs the `train` extra")
    script = ROOT / "models" / "train_digits.py"
    run = subprocess.run(
        [sys.executable, script, "--output", tmp_path], capture_output=True, text=True, check=True, timeout=300
    )
    accuracy = re.search(r"held-out accuracy 0\.(\d\d)(\d\d) \(450 digits\)", run.stdout)
    assert accuracy is not None
    assert f"({accuracy[1]}.{accuracy[2]} %)" in (FOLDER / "README.md").read_text(encoding="utf-8")
    for path in (FOLDER / "digits.onnx", *(FOLDER / "samples").glob("*.npy")):
        assert (tmp_path / path.relative_to(FOLDER)).read_bytes() == path.read_bytes(), path.name
