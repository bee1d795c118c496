"""When two sets of results agree: the tolerance that the project promises, and the test that an oracle can tell."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnxruntime
from numpy.typing import NDArray

import atc
from simulator import InferSession

Arrays = dict[str, NDArray[np.generic]]


def assert_agrees(actual: NDArray[np.generic], expected: NDArray[np.generic], rtol: float = 1e-3) -> None:
    """Within ``rtol``, and absolutely within 1e-4 of the largest expected value; integers and booleans exactly."""
    assert actual.shape == expected.shape
    assert actual.dtype == expected.dtype
    if expected.dtype.kind != "f":
        np.testing.assert_array_equal(actual, expected)
        return
    scale = float(np.abs(expected).max()) if expected.size else 0.0
    np.testing.assert_allclose(actual, expected, rtol=rtol, atol=1e-4 * scale)


def assert_can_tell(expected: NDArray[np.generic], other: NDArray[np.generic]) -> None:
    """The expected values vary, and another input gives other values."""
    assert float(np.std(expected)) > 0.05 * float(np.abs(expected).max())
    assert not np.allclose(expected, other, rtol=1e-2, atol=1e-3 * float(np.abs(expected).max()))


def compile_to(folder: Path, model: Path, inputs: Arrays, **options: object) -> Path:
    """Compile ``model`` for the shapes of ``inputs`` in the model's own precision and return the .om."""
    shapes = {name: value.shape for name, value in inputs.items()}
    path = folder / f"{model.stem}.om"
    settings = {"soc_version": "Ascend310P3", "precision_mode_v2": "origin", "input_shape": shapes, **options}
    atc.compile_model(model, **settings).save(path)
    return path


def run(om: Path, inputs: Arrays) -> Arrays:
    """Run a compiled model and return its results by name."""
    session = InferSession(0, str(om))
    results = session.infer([inputs[port.name] for port in session.get_inputs()])
    return {port.name: result for port, result in zip(session.get_outputs(), results, strict=True)}


def run_onnxruntime(model: Path, inputs: Arrays) -> Arrays:
    """Run the original model with onnxruntime."""
    session = onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"])
    names = [port.name for port in session.get_outputs()]
    return dict(zip(names, session.run(names, inputs), strict=True))
