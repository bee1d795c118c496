"""Reading model files: paths, sizes, and files that are something else."""

from __future__ import annotations

import gzip
import io
import os
import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto

from ge.errors import ReportedError
from parsers import model_file
from parsers.onnx import parse
from tests.parsers.evaluation import session
from tests.parsers.onnx_models import model, node

SOUND = model([node("Relu", "x")])


def refused(source: object) -> ReportedError:
    with pytest.raises(ReportedError) as caught:
        parse(source, session())  # type: ignore[arg-type]
    return caught.value


def test_path_text_bytes_and_proto_give_the_same_graph(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(SOUND.SerializeToString())
    graphs = [parse(source, session()) for source in (path, str(path), SOUND.SerializeToString(), SOUND)]
    assert [[n.name for n in graph] for graph in graphs] == [["x", "n"]] * 4


def test_missing_file(tmp_path: Path) -> None:
    fault = refused(tmp_path / "absent.onnx")
    assert fault.code == "E13026"
    assert "absent.onnx" in fault.message


def test_no_file_name() -> None:
    assert refused("").code == "E13000"


def test_name_that_no_file_can_have() -> None:
    assert refused("a\0b").code == "E13026"


def test_directory(tmp_path: Path) -> None:
    fault = refused(tmp_path)
    assert fault.code == "E13026"
    assert "directory" in fault.message


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_named_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.onnx")
    assert refused(tmp_path / "pipe.onnx").code == "E13026"


def test_empty_file(tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(b"")
    fault = refused(tmp_path / "m.onnx")
    assert fault.code == "E13015"
    assert "0 bytes" in fault.message


def test_file_beyond_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(SOUND.SerializeToString())
    monkeypatch.setattr(model_file, "MAX_MODEL_BYTES", 10)
    fault = refused(path)
    assert fault.code == "E13015"
    assert "between 1 and 10" in fault.message


def _zip() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("data.pkl", "x")
    return buffer.getvalue()


def _npy() -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, np.zeros(3))
    return buffer.getvalue()


# a TensorFlow GraphDef of one Placeholder: node { name: "x" op: "Placeholder" } versions { producer: 27 }
GRAPH_DEF = b"\x0a\x10\x0a\x01x\x12\x0bPlaceholder" + b"\x22\x02\x08\x1b"


@pytest.mark.parametrize(
    ("content", "likeness"),
    [
        (GRAPH_DEF, "TensorFlow GraphDef"),
        (_zip(), "zip archive"),
        (pickle.dumps({"a": 1}, protocol=2), "pickle"),
        (gzip.compress(b"x", mtime=0), "gzip"),
        (_npy(), "numpy array"),
        (b"IMOD" + bytes(300), "offline model"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 3\n", "Git LFS"),
        (b"<!DOCTYPE html><html><body>404</body></html>", "HTML"),
        (b"ir_version: 8\ngraph {\n}\n", "ONNX model in text form"),
        (b'node {\n  name: "x"\n  op: "Placeholder"\n}\n', "text form"),
        (b'{"a": 1}', "JSON"),
        (b"hello world, this is a text\n", "plain text"),
        (b"\x00\x00\x00\x00TFL3" + bytes(20), "TensorFlow Lite"),
    ],
)
def test_other_content_is_recognised(content: bytes, likeness: str) -> None:
    fault = refused(content)
    assert fault.code == "E13005"
    assert likeness in fault.message


def test_truncated_file_says_how_much_is_missing() -> None:
    content = ModelProto(ir_version=8, graph=SOUND.graph).SerializeToString()
    fault = refused(content[:-7])
    assert fault.code == "E13005"
    assert "cut short: field 7, which starts at byte 2, needs 7 bytes more" in fault.message


def test_random_bytes(rng: np.random.Generator) -> None:
    for _ in range(50):
        assert refused(rng.integers(0, 256, 200, np.uint8).tobytes()).code in ("E13005", "E16004")


def test_model_without_graph() -> None:
    assert refused(ModelProto(ir_version=8)).code == "E16004"
    assert refused(ModelProto(ir_version=8, producer_name="me").SerializeToString()).code == "E16004"


def test_names_that_are_no_text() -> None:
    content = model([node("Relu", "abcd", "y")], ["abcd"]).SerializeToString().replace(b"abcd", b"ab\xffd")
    fault = refused(content)
    assert fault.code == "E13005"
    assert "UTF-8" in fault.message
