"""External data: memory-mapped, and never from outside of the model's folder."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, numpy_helper

from ge.errors import ReportedError, printable
from ge.graph import Graph
from parsers.onnx import parse
from tests.parsers.evaluation import evaluate, session
from tests.parsers.onnx_models import model, node, value

WEIGHTS = np.arange(64, dtype=np.float32)


def external(location: str, **entries: object) -> ModelProto:
    """Return y = x + w with w [8,8] stored outside."""
    source = model([node("Add", "x w", "y")], [value("x", [8, 8])], [value("y", [8, 8])], {"w": np.zeros((8, 8))})
    tensor = source.graph.initializer[0]
    tensor.CopyFrom(TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[8, 8]))
    tensor.data_location = TensorProto.EXTERNAL
    for key, entry in {"location": location, **entries}.items():
        tensor.external_data.add(key=key, value=str(entry))
    return source


def saved(folder: Path, source: ModelProto) -> Path:
    path = folder / "m.onnx"
    path.write_bytes(source.SerializeToString())
    return path


def weights(graph: Graph) -> np.ndarray[Any, Any]:
    found: np.ndarray[Any, Any] = graph.find("w_Initializer_0").attrs["value"].array
    return found


def refused(folder: Path, source: ModelProto, code: str) -> ReportedError:
    with pytest.raises(ReportedError) as caught:
        parse(saved(folder, source), session())
    assert caught.value.code == code
    assert "initializer [w]" in caught.value.message
    (location,) = [e.value for e in source.graph.initializer[0].external_data if e.key == "location"]
    assert printable(location) in caught.value.message
    return caught.value


@pytest.mark.parametrize("entries", [{"offset": 64, "length": 256}, {"offset": 64}], ids=str)
def test_mapped_with_offset_and_length(tmp_path: Path, entries: dict[str, int]) -> None:
    (tmp_path / "w.bin").write_bytes(bytes(64) + WEIGHTS.tobytes() + b"more")
    found = weights(parse(saved(tmp_path, external("w.bin", **entries)), session()))
    np.testing.assert_array_equal(found, WEIGHTS.reshape(8, 8))
    assert not found.flags.writeable
    assert not found.flags.owndata


def test_whole_file_without_offset(tmp_path: Path) -> None:
    (tmp_path / "w.bin").write_bytes(WEIGHTS.tobytes())
    graph = parse(saved(tmp_path, external("w.bin")), session())
    x = np.ones((8, 8), np.float32)
    np.testing.assert_array_equal(evaluate(graph, [x])[0], x + WEIGHTS.reshape(8, 8))


def test_offset_that_is_not_aligned(tmp_path: Path) -> None:
    (tmp_path / "w.bin").write_bytes(bytes(3) + WEIGHTS.tobytes())
    found = weights(parse(saved(tmp_path, external("w.bin", offset=3)), session()))
    np.testing.assert_array_equal(found, WEIGHTS.reshape(8, 8))


def test_file_in_a_folder_below(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "w.bin").write_bytes(WEIGHTS.tobytes())
    weights(parse(saved(tmp_path, external("data/w.bin")), session()))


def test_checksum_is_ignored(tmp_path: Path) -> None:
    (tmp_path / "w.bin").write_bytes(WEIGHTS.tobytes())
    weights(parse(saved(tmp_path, external("w.bin", checksum="da39a3ee5e6b4b0d3255bfef95601890afd80709")), session()))


def test_model_reached_through_a_link_finds_its_data(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "w.bin").write_bytes(WEIGHTS.tobytes())
    target = saved(tmp_path / "real", external("w.bin"))
    link = tmp_path / "link.onnx"
    link.symlink_to(target)
    weights(parse(link, session()))


def test_tensor_of_a_constant_node(tmp_path: Path) -> None:
    tensor = external("w.bin").graph.initializer[0]
    (tmp_path / "w.bin").write_bytes(WEIGHTS.tobytes())
    graph = parse(saved(tmp_path, model([node("Constant", "", "y", "c", value=tensor)], [])), session())
    np.testing.assert_array_equal(graph.find("c").attrs["value"].array, WEIGHTS.reshape(8, 8))


@pytest.mark.parametrize(
    "location",
    ["../w.bin", "data/../../w.bin", "data/..", "/etc/passwd", "C:\\w.bin", "\\\\host\\w.bin", "..\\w.bin", "", "a\0b"],
)
def test_locations_outside_of_the_folder(tmp_path: Path, location: str) -> None:
    (tmp_path / "w.bin").write_bytes(WEIGHTS.tobytes())
    (tmp_path / "inner" / "data").mkdir(parents=True)
    refused(tmp_path / "inner", external(location), "E13026")


def test_link_to_a_file_outside(tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(WEIGHTS.tobytes())
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "w.bin").symlink_to(tmp_path / "secret")
    assert "link" in refused(tmp_path / "inner", external("w.bin"), "E13026").message


def test_link_to_a_folder_outside(tmp_path: Path) -> None:
    (tmp_path / "w.bin").write_bytes(WEIGHTS.tobytes())
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "out").symlink_to(tmp_path)
    refused(tmp_path / "inner", external("out/w.bin"), "E13026")


def test_folder_beside_with_the_same_beginning(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner2").mkdir()
    (tmp_path / "inner2" / "w.bin").write_bytes(WEIGHTS.tobytes())
    (tmp_path / "inner" / "w.bin").symlink_to(tmp_path / "inner2" / "w.bin")
    refused(tmp_path / "inner", external("w.bin"), "E13026")


def test_missing_file(tmp_path: Path) -> None:
    assert "[w.bin]" in refused(tmp_path, external("w.bin"), "E13026").message


def test_directory_as_data(tmp_path: Path) -> None:
    (tmp_path / "w.bin").mkdir()
    refused(tmp_path, external("w.bin"), "E13026")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_named_pipe_as_data_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "w.bin")
    refused(tmp_path, external("w.bin"), "E13026")


@pytest.mark.parametrize(
    "entries",
    [
        {"offset": 4},
        {"offset": 2**62},
        {"length": 255},
        {"length": 260},
        {"offset": -4},
        {"offset": "abc"},
        {"length": "1e3"},
        {"offset": "9" * 40},
    ],
    ids=str,
)
def test_offset_and_length_that_do_not_fit(tmp_path: Path, entries: dict[str, object]) -> None:
    (tmp_path / "w.bin").write_bytes(WEIGHTS.tobytes())
    fault = refused(tmp_path, external("w.bin", **entries), "E10001")
    (key,) = entries
    assert f"[{key}]" in fault.message


def test_strings_cannot_be_external(tmp_path: Path) -> None:
    (tmp_path / "w.bin").write_bytes(b"")
    source = external("w.bin")
    source.graph.initializer[0].data_type = TensorProto.STRING
    with pytest.raises(ReportedError, match=r"initializer \[w\] holds strings") as caught:
        parse(saved(tmp_path, source), session())
    assert caught.value.code == "E19999"


@pytest.mark.parametrize("codes", [b"\0\1" * 32, b"\0\1\2\xff" * 16], ids=["as they are", "any other is true"])
def test_booleans(tmp_path: Path, codes: bytes) -> None:
    (tmp_path / "w.bin").write_bytes(codes)
    source = external("w.bin")
    source.graph.initializer[0].data_type = TensorProto.BOOL
    source.graph.node[0].CopyFrom(node("Identity", "w", "y"))
    source.graph.output[0].type.tensor_type.elem_type = TensorProto.BOOL
    found = weights(parse(saved(tmp_path, source), session()))
    assert found.dtype == np.bool_
    np.testing.assert_array_equal(found, np.frombuffer(codes, np.uint8).reshape(8, 8) != 0)


def test_empty_file(tmp_path: Path) -> None:
    (tmp_path / "w.bin").write_bytes(b"")
    refused(tmp_path, external("w.bin"), "E10001")


def test_model_in_memory_has_no_folder() -> None:
    for source in (external("w.bin"), external("w.bin").SerializeToString()):
        with pytest.raises(ReportedError) as caught:
            parse(source, session())
        assert caught.value.code == "E13026"


def test_loaded_external_data_needs_no_folder() -> None:
    source = external("w.bin")
    source.graph.initializer[0].CopyFrom(numpy_helper.from_array(WEIGHTS.reshape(8, 8), "w"))
    np.testing.assert_array_equal(weights(parse(source, session())), WEIGHTS.reshape(8, 8))
