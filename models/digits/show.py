"""Compile the digits model, run it on the sample digits, print what it reads in them: `make demo`.

It is there twice with the same weights, as ONNX model and as frozen TensorFlow graph; both must read the same.

    python models/digits/show.py [FOLDER]

Calls `atc` and `om-run` as a user would; everything they write goes to FOLDER, by default `build/demo`. Exits with
status 1 if a digit is read wrongly.
"""

from __future__ import annotations

import argparse
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
MODELS = {Path("models/digits/digits.onnx"): "5", Path("models/digits/digits.pb"): "3"}
"""The models, with the values of --framework."""
SAMPLES = Path("models/digits/samples")


@dataclass(frozen=True)
class Answer:
    """What the model read in one sample."""

    sample: str
    digit: int
    prediction: int
    probability: float

    @property
    def is_right(self) -> bool:
        return self.digit == self.prediction


def run(command: str, *arguments: str | Path) -> None:
    """Run a command of this environment in the repository, show it and its output; leave with its status on failure."""
    words = [command, *map(str, arguments)]
    print("$", shlex.join(words), flush=True)
    status = subprocess.run([Path(sys.executable).parent / command, *words[1:]], cwd=ROOT, check=False).returncode
    if status != 0:
        sys.exit(status)
    print()


def read_answers(folder: Path) -> list[Answer]:
    """One answer per sample, from the `<sample>_0.npy` that om-run wrote for output 0."""
    answers = []
    for sample in sorted((ROOT / SAMPLES).glob("*.npy")):
        probability = np.load(folder / f"{sample.stem}_0.npy", allow_pickle=False).reshape(-1)
        best = int(probability.argmax())
        answers.append(Answer(sample.stem, int(sample.stem.split("_")[1]), best, float(probability[best])))
    return answers


def answers_of(model: Path, framework: str, folder: Path) -> list[Answer]:
    """Compile a model and run it. TensorFlow's images are [1,8,8,1]; with one channel the pixels lie the same."""
    kind = model.suffix.removeprefix(".")
    target = (f"--framework={framework}", "--soc_version=Ascend310P3", "--precision_mode_v2=origin")
    run("atc", f"--model={model}", f"--output={folder / f'digits_{kind}'}", *target)
    files = ("--input", SAMPLES, "--output", folder, "--output_dirname", f"answers_{kind}", "--outfmt", "NPY")
    shapes = ("--allow-reinterpret",) if kind == "pb" else ()
    run("om-run", "--model", folder / f"digits_{kind}.om", *files, *shapes)
    return read_answers(ROOT / folder / f"answers_{kind}")


def show(answers: list[Answer]) -> bool:
    """Print what was read and tell whether all of it is right."""
    print(f"{'sample':<12} {'digit':>5} {'prediction':>10} {'probability':>11}")
    for answer in answers:
        remark = "" if answer.is_right else "  wrong"
        print(f"{answer.sample:<12} {answer.digit:>5} {answer.prediction:>10} {answer.probability:>11.4f}{remark}")
    right = sum(answer.is_right for answer in answers)
    print(f"{right} of {len(answers)} digits read rightly\n")
    return right == len(answers)


def main() -> None:
    parser = argparse.ArgumentParser(description="Compile the digits model and run it on the sample digits.")
    parser.add_argument("folder", nargs="?", type=Path, default=Path("build/demo"), help="where results go")
    folder: Path = parser.parse_args().folder
    found = {model: answers_of(model, framework, folder) for model, framework in MODELS.items()}
    are_right = []
    for model, answers in found.items():
        print(model)
        are_right.append(show(answers))
    sys.exit(0 if all(are_right) else 1)


if __name__ == "__main__":
    main()
