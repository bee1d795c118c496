"""The digits classifier as a frozen TensorFlow graph: what the script makes, and that it reads the same."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper

from models.freeze_digits import DIGITS, freeze
from tests.end_to_end.agreement import compile_to, run


def test_the_file_is_what_the_script_makes(digits_model: Path) -> None:
    initializers = onnx.load(digits_model).graph.initializer
    made = freeze({tensor.name: numpy_helper.to_array(tensor) for tensor in initializers})
    assert (DIGITS / "digits.pb").read_bytes() == made.SerializeToString(deterministic=True)


def test_both_models_give_the_same_probabilities(
    digits_model: Path, digits_samples: dict[str, np.ndarray], tmp_path: Path
) -> None:
    session = onnxruntime.InferenceSession(digits_model)
    image = np.zeros((1, 8, 8, 1), np.float32)
    om = compile_to(tmp_path, DIGITS / "digits.pb", {"image": image}, framework=3)
    for name, sample in digits_samples.items():
        (expected,) = session.run(None, {"image": sample})
        found = run(om, {"image": sample.reshape(1, 8, 8, 1)})["probability:0"]
        assert found.argmax() == expected.argmax() == int(name.split("_")[1])
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)
