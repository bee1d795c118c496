"""Loops, branches and lists of TensorFlow: compiled, saved, loaded and run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import atc
from simulator import InferSession
from tests.conftest import SampleModel
from tests.end_to_end.agreement import Arrays, assert_agrees, compile_to, run
from tests.parsers.tensorflow.list_models import dynamic_rnn, keras_rnn, rnn
from tests.parsers.tensorflow.programs import execute, new_graph, old_graph, stateless_graph
from tests.parsers.tensorflow.test_programs import PROGRAMS, VALUES

SAMPLES = ["control_flow_v1", "text_lstm"]
WRITERS = {"old": old_graph, "new": new_graph, "stateless": stateless_graph}


def feeds(sample: SampleModel) -> Arrays:
    return {name.removesuffix(":0"): value for name, value in sample.inputs.items()}


@pytest.mark.parametrize("name", SAMPLES)
def test_sample_models_give_the_outputs_of_tensorflow(name: str, sample_model: Callable, tmp_path: Path) -> None:
    sample = sample_model(f"tf/{name}.pb")
    inputs = feeds(sample)
    results = run(compile_to(tmp_path, sample.path, inputs, framework=3), inputs)
    assert list(results) == list(sample.outputs)
    for output, expected in sample.outputs.items():
        assert_agrees(results[output], expected)


@pytest.mark.parametrize("name", SAMPLES)
def test_sample_models_in_half_precision(name: str, sample_model: Callable, tmp_path: Path) -> None:
    sample = sample_model(f"tf/{name}.pb")
    inputs = feeds(sample)
    results = run(compile_to(tmp_path, sample.path, inputs, framework=3, precision_mode_v2="fp16"), inputs)
    for output, expected in sample.outputs.items():
        found, wanted = results[output].astype(float), expected.astype(float)
        assert np.linalg.norm(found - wanted) <= 2e-2 * np.linalg.norm(wanted)
        centred, other = (values.ravel() - values.mean() for values in (found, wanted))
        assert centred @ other >= 0.999 * np.linalg.norm(centred) * np.linalg.norm(other)


def session_of(content: bytes, folder: Path, **options: Any) -> InferSession:
    path = folder / "model.pb"
    path.write_bytes(content)
    made = atc.compile_model(path, framework=3, soc_version="Ascend310P3", precision_mode_v2="origin", **options)
    made.save(folder / "model.om")
    return InferSession(0, str(folder / "model.om"))


def results_of(session: InferSession, arrays: Arrays) -> dict[str, np.ndarray]:
    outputs = session.infer([arrays[port.name] for port in session.get_inputs()])
    return dict(zip([port.name for port in session.get_outputs()], outputs, strict=True))


@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
@pytest.mark.parametrize("name", ["branches_in_branch", "loop", "loops_three_deep", "all_in_all"])
def test_programs_are_planned_and_run(name: str, write: Callable, tmp_path: Path) -> None:
    session = session_of(write(PROGRAMS[name], 3).SerializeToString(), tmp_path)
    for values in VALUES:
        found = results_of(session, {f"v{k}": np.array(value, np.int32) for k, value in enumerate(values)})
        expected = execute(PROGRAMS[name], values)
        assert [int(found[f"y{k}:0"]) for k in range(3)] == expected


@pytest.mark.parametrize("write", [dynamic_rnn, keras_rnn])
def test_recurrent_models(write: Callable, tmp_path: Path, rng: np.random.Generator) -> None:
    w, u = (rng.standard_normal(shape).astype(np.float32) for shape in [(3, 4), (4, 4)])
    x = rng.standard_normal((5, 2, 3)).astype(np.float32)
    found = results_of(session_of(write(x.shape, w, u).SerializeToString(), tmp_path), {"x": x})
    for one, expected in zip(found.values(), rnn(x, w, u), strict=True):
        np.testing.assert_allclose(one, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("is_dynamic", [False, True])
def test_one_file_runs_sequences_of_any_length(is_dynamic: bool, tmp_path: Path, rng: np.random.Generator) -> None:
    w, u = (rng.standard_normal(shape).astype(np.float32) for shape in [(3, 4), (4, 4)])
    model = dynamic_rnn([None, 2, 3], w, u, is_dynamic=is_dynamic)
    session = session_of(model.SerializeToString(), tmp_path, input_shape={"x": (-1, 2, 3)})
    lengths: Sequence[int] = (1, 7, 3)
    for length in lengths:
        x = rng.standard_normal((length, 2, 3)).astype(np.float32)
        for one, expected in zip(results_of(session, {"x": x}).values(), rnn(x, w, u), strict=True):
            np.testing.assert_allclose(one, expected, rtol=1e-4, atol=1e-5)
