"""`make demo`: the digits model through `atc` and `om-run`, as commands."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import onnxruntime
import pytest

SHOW = Path(__file__).resolve().parents[2] / "models" / "digits" / "show.py"
ROW = re.compile(r"^(digit_\d_\d) +(\d) +(\d) +(0\.\d{4})$", re.MULTILINE)


def test_demo_prints_digit_prediction_and_probability(tmp_path, digits_model, digits_samples) -> None:
    if not (Path(sys.executable).parent / "atc").exists():
        pytest.skip("the command atc is not installed beside this interpreter")
    run = subprocess.run(
        [sys.executable, SHOW, tmp_path / "demo"], capture_output=True, text=True, check=False, timeout=120
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert "ATC run success, welcome to the next use." in run.stdout
    session = onnxruntime.InferenceSession(digits_model)
    rows = {sample: numbers for sample, *numbers in ROW.findall(run.stdout)}
    assert set(rows) == set(digits_samples)
    for sample, (digit, prediction, probability) in rows.items():
        (expected,) = session.run(None, {"image": digits_samples[sample]})
        assert digit == sample.split("_")[1]
        assert int(prediction) == expected.argmax()
        assert float(probability) == pytest.approx(float(expected.max()), abs=1e-4)
