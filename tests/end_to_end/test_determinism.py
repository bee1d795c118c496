"""The same model, options and stem give the same bytes: in one process, across processes, hash seeds and folders."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def _compile(model: Path, output: Path, seed: int, shapes: str = "") -> bytes:
    code = "import sys; from atc.command import main; sys.exit(main(sys.argv[1:]))"
    arguments = [f"--model={model}", "--framework=5", f"--output={output}", "--soc_version=Ascend310P3"]
    arguments += ["--precision_mode_v2=origin", *([f"--input_shape={shapes}"] if shapes else [])]
    environment = {**os.environ, "PYTHONHASHSEED": str(seed), "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], env=environment, capture_output=True, text=True, cwd=output.parent
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return output.with_suffix(".om").read_bytes()


def test_digits_compile_to_the_same_bytes_everywhere(digits_model: Path, tmp_path: Path) -> None:
    made = []
    for seed in (0, 1, 4242):
        folder = tmp_path / str(seed)
        folder.mkdir()
        made.append(_compile(digits_model, folder / "digits", seed))
    assert len(set(made)) == 1


@pytest.mark.parametrize("name", ["conv_zoo", "bert_tiny_legacy_dyn"])
def test_sample_models_compile_to_the_same_bytes(name: str, sample_model: Callable, tmp_path: Path) -> None:
    sample = sample_model(f"onnx/{name}.onnx")
    first, second = (_compile(sample.path, tmp_path / name, seed, sample.input_shape) for seed in (1, 77))
    assert first == second
