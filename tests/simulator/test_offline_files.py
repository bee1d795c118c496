"""The whole way: a graph becomes a file, the file a session, the session results."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import atc
from ge.errors import ReportedError
from ge.graph import Format, Graph, Tensor
from ge.ops import infer_node
from om_format import OfflineModel, load
from om_format.offline_model import describe_io
from simulator import InferSession
from tests.simulator.planned_model import data, plan_model


@pytest.fixture
def offline_model() -> tuple[OfflineModel, np.ndarray, np.ndarray]:
    """x -> Conv2D -> Relu -> y, the model, its input and what numpy makes of it."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((1, 2, 5, 6)).astype(np.float32)
    w = rng.standard_normal((3, 2, 1, 1)).astype(np.float32)
    graph = Graph("small")
    source = data(graph, "x", x, Format.FORMAT_NCHW)
    weights = graph.add_const("w", Tensor.of(w, Format.FORMAT_NCHW))
    attrs = {"strides": [1] * 4, "pads": [0] * 4, "data_format": "NCHW"}
    conv = graph.add_node("Conv2D", "conv", [source, weights], attrs)
    relu = graph.add_node("Relu", "relu", [conv.output()])
    infer_node(conv)
    infer_node(relu)
    planned = plan_model(graph, [relu.output()])
    expected = np.maximum(np.einsum("oc,nchw->nohw", w[:, :, 0, 0].astype(np.float64), x.astype(np.float64)), 0)
    return OfflineModel(graph, {}, planned.plan, describe_io(graph)), x, expected


def test_a_model_gives_the_same_from_memory_and_from_a_file(
    offline_model: tuple[OfflineModel, np.ndarray, np.ndarray], tmp_path: Path
) -> None:
    model, x, expected = offline_model
    path = tmp_path / "small.om"
    model.save(path)
    direct = InferSession(model_path=model).infer([x])[0]
    np.testing.assert_allclose(direct, expected, rtol=1e-5, atol=1e-6)
    for source in (path, str(path), load(path)):
        session = InferSession(model_path=source)
        assert [i.name for i in session.get_inputs()] == ["x"]
        assert [o.name for o in session.get_outputs()] == ["y0"]
        assert session.infer([x])[0].tobytes() == direct.tobytes()


def test_weights_stay_in_the_mapped_file(
    offline_model: tuple[OfflineModel, np.ndarray, np.ndarray], tmp_path: Path
) -> None:
    model, _, _ = offline_model
    path = tmp_path / "small.om"
    model.save(path)
    weights = InferSession(model_path=path).plan.steps[0].inputs[1]
    assert not weights.flags.writeable
    assert not weights.flags.owndata


@pytest.mark.parametrize("content", [b"", b"IMOD", b"\x00" * 5000])
def test_files_that_are_no_models(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "broken.om"
    path.write_bytes(content)
    with pytest.raises(ReportedError) as caught:
        InferSession(model_path=path)
    assert str(path) in caught.value.message


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(ReportedError, match="none"):
        InferSession(model_path=tmp_path / "none.om")


def test_digits_are_recognised(digits_model: Path, digits_samples: dict[str, np.ndarray], tmp_path: Path) -> None:
    path = tmp_path / "digits.om"
    atc.compile_model(digits_model, soc_version="Ascend310P3", precision_mode_v2="origin").save(path)
    session = InferSession(0, path)
    found = {stem: int(session.infer([image])[0].argmax()) for stem, image in digits_samples.items()}
    assert found == {stem: int(stem.split("_")[1]) for stem in digits_samples}


def test_same_threads_same_bits(digits_model: Path, digits_samples: dict[str, np.ndarray]) -> None:
    model = atc.compile_model(digits_model, soc_version="Ascend310P3", precision_mode_v2="origin")
    image = next(iter(digits_samples.values()))
    for threads in (1, 2):
        results = [InferSession(model_path=model, threads=threads).infer([image])[0].tobytes() for _ in range(3)]
        assert len(set(results)) == 1
