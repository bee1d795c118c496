"""Fixtures that all tests share: the models of the repository, light models with random weights, sample models."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partialmethod
from pathlib import Path

import hypothesis
import numpy as np
import onnx
import pytest
from numpy.typing import NDArray

from ge.session import CompileSession
from models.materialise_light import before_softmax, light_model, materialise

ROOT = Path(__file__).resolve().parent.parent
# models too large for this repository lie beside the checkout: <name>.onnx, and <name>.npz with `in:` and `out:` arrays
SAMPLE_MODELS = ROOT.parent / "shared" / "models"

hypothesis.settings.register_profile("project", derandomize=True, deadline=None, print_blob=True)
hypothesis.settings.load_profile("project")


@dataclass(frozen=True)
class SampleModel:
    """A model file with one set of inputs and the outputs that its own framework computed for them."""

    path: Path
    inputs: dict[str, NDArray[np.generic]]
    outputs: dict[str, NDArray[np.generic]]

    @property
    def input_shape(self) -> str:
        """The input shapes in the form of `--input_shape`."""
        return ";".join(f"{name}:{','.join(map(str, value.shape))}" for name, value in self.inputs.items())


@pytest.fixture(scope="session", autouse=True)
def verified_passes() -> Iterator[None]:
    """In all tests the graph is verified after each pass, each custom pass and each built-in fusion."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(CompileSession, "__init__", partialmethod(CompileSession.__init__, is_verifying=True))
        yield


@pytest.fixture(scope="session")
def digits_model() -> Path:
    """The trained digits classifier: input `image` [1,1,8,8], output `probability` [1,10]."""
    return ROOT / "models" / "digits" / "digits.onnx"


@pytest.fixture(scope="session")
def digits_samples() -> dict[str, NDArray[np.float32]]:
    """Held-out digits, [1,1,8,8] each, by file stem; `digit_<label>_<k>` starts with the right answer."""
    folder = ROOT / "models" / "digits" / "samples"
    return {path.stem: np.load(path, allow_pickle=False) for path in sorted(folder.glob("*.npy"))}


@pytest.fixture(scope="session")
def light_path(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """`light_path(name, seed=0)`: a `light_*` model with random weights, cut before its softmax, as a file.

    Each file is made once per session. Tests of alexnet, vgg19 and zfnet512 (above 120 MB) must be marked slow.
    """
    folder = tmp_path_factory.mktemp("light")

    def make(name: str, seed: int = 0) -> Path:
        path = folder / f"{name}_{seed}.onnx"
        if not path.exists():
            onnx.save(before_softmax(materialise(light_model(name), seed)), path)
        return path

    return make


@pytest.fixture(scope="session")
def sample_model() -> Callable[[str], SampleModel]:
    """`sample_model("onnx/vit_tiny.onnx")`: a model from beside the checkout; skips the test where it is not there."""

    def load(name: str) -> SampleModel:
        path = SAMPLE_MODELS / name
        if not path.exists():
            pytest.skip(f"the sample model {name} is not beside this checkout")
        with np.load(path.with_suffix(".npz"), allow_pickle=False) as arrays:
            inputs = {key.removeprefix("in:"): arrays[key] for key in arrays.files if key.startswith("in:")}
            outputs = {key.removeprefix("out:"): arrays[key] for key in arrays.files if key.startswith("out:")}
        return SampleModel(path, inputs, outputs)

    return load


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> np.random.Generator:
    """A generator of its own for each test and parameter set, the same on every run."""
    return np.random.default_rng(zlib.crc32(request.node.nodeid.encode()))
