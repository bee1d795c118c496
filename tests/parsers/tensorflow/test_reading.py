"""Reading files: binary and text form, constants in every encoding, and files that are something else."""

from __future__ import annotations

import contextlib
import struct
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from google.protobuf import text_format
from hypothesis import given
from hypothesis import strategies as st

from ge.errors import ReportedError
from ge.options import Framework
from ge.text import print_graph
from parsers import model_file
from parsers.onnx import parse as parse_onnx
from parsers.tensorflow import graph_def_pb2 as pb
from parsers.tensorflow import parse
from parsers.wire import MIN_PIECE
from tests.parsers.evaluation import session
from tests.parsers.tensorflow.tf_models import const, graph, node, parsed, placeholder, run, shape_proto, tensor_proto

SOUND = graph(placeholder("x", [2, 3]), const("w", np.float32([1, 2, 3])), node("AddV2", "y", "x w"))


def refused(source: Any, **options: Any) -> ReportedError:
    with pytest.raises(ReportedError) as caught:
        parse(source, session(framework=Framework.TENSORFLOW, **options))
    return caught.value


# -- forms -------------------------------------------------------------------------------------------------------------
def test_path_bytes_message_and_text_give_the_same_graph(tmp_path: Path) -> None:
    content = SOUND.SerializeToString()
    (tmp_path / "m.pb").write_bytes(content)
    text = text_format.MessageToString(SOUND)
    (tmp_path / "m.pbtxt").write_text(f"# a comment\n{text}")
    sources: list[Any] = [tmp_path / "m.pb", str(tmp_path / "m.pbtxt"), content, text.encode(), SOUND]
    texts = [print_graph(parse(source, session())) for source in sources]
    assert texts == texts[:1] * len(sources)
    assert "Add(%x, %w)" in texts[0]


def test_big_constants_are_views_of_the_content() -> None:
    big = np.arange(MIN_PIECE, dtype=np.float32)
    content = graph(const("w", big), node("Identity", "y", "w")).SerializeToString()
    array = parsed(content).find("w").attrs["value"].array  # type: ignore[union-attr]
    np.testing.assert_array_equal(array, big)
    assert np.shares_memory(array, np.frombuffer(content, np.uint8))


# -- constants ---------------------------------------------------------------------------------------------------------
def typed(dtype: int, dims: list[int], **values: Any) -> pb.TensorProto:
    return pb.TensorProto(dtype=dtype, tensor_shape=shape_proto(dims), **values)  # type: ignore[arg-type]


def value_of(tensor: pb.TensorProto) -> np.ndarray[Any, Any]:
    model = graph(node("Const", "c", dtype=pb.AttrValue(type=tensor.dtype), value=tensor), node("Identity", "y", "c"))
    return parsed(model).find("c").attrs["value"].array  # type: ignore[union-attr]


BF16 = ml_dtypes.bfloat16


@pytest.mark.parametrize(
    ("tensor", "expected"),
    [
        (typed(pb.DT_FLOAT, [2, 2], float_val=[1, 2, 3, 4]), np.float32([[1, 2], [3, 4]])),
        (typed(pb.DT_FLOAT, [2, 2], float_val=[1.5]), np.full((2, 2), 1.5, np.float32)),
        (typed(pb.DT_INT32, [5], int_val=[1, 2, 3]), np.int32([1, 2, 3, 3, 3])),
        (typed(pb.DT_INT32, [3]), np.int32([0, 0, 0])),
        (typed(pb.DT_INT64, [], int64_val=[-(2**60)]), np.int64(-(2**60))),
        (typed(pb.DT_UINT64, [1], uint64_val=[2**64 - 1]), np.uint64([2**64 - 1])),
        (typed(pb.DT_UINT32, [2], uint32_val=[2**32 - 1]), np.uint32([2**32 - 1] * 2)),
        (typed(pb.DT_UINT8, [2], int_val=[7, 255]), np.uint8([7, 255])),
        (typed(pb.DT_INT16, [2], int_val=[-7, 9]), np.int16([-7, 9])),
        (typed(pb.DT_DOUBLE, [1], double_val=[0.1]), np.float64([0.1])),
        (typed(pb.DT_HALF, [2], half_val=[0x3C00, 0xC000]), np.float16([1, -2])),
        (typed(pb.DT_BFLOAT16, [2], half_val=[0x3F80, 0xC000]), np.array([1, -2], BF16)),
        (typed(pb.DT_BOOL, [3], bool_val=[True, False]), np.array([True, False, False])),
        (typed(pb.DT_STRING, [2], string_val=[b"a", b"\xff"]), np.array([b"a", b"\xff"], object)),
        (typed(pb.DT_COMPLEX64, [2], scomplex_val=[1, 2, 3, -4]), np.complex64([1 + 2j, 3 - 4j])),
        (typed(pb.DT_COMPLEX128, [1], dcomplex_val=[1, 2]), np.complex128([1 + 2j])),
        (typed(pb.DT_QINT8, [1], int_val=[-3]), np.int8([-3])),
        (typed(pb.DT_FLOAT8_E5M2, [2], float8_val=b"\x3c\xc0"), np.array([1, -2], ml_dtypes.float8_e5m2)),
        (typed(pb.DT_FLOAT, [0, 3]), np.zeros((0, 3), np.float32)),
        (typed(pb.DT_HALF, [2], tensor_content=struct.pack("<2e", 1, -2)), np.float16([1, -2])),
        (typed(pb.DT_BOOL, [2], tensor_content=b"\x01\x00"), np.array([True, False])),
        (typed(pb.DT_COMPLEX64, [1], tensor_content=struct.pack("<2f", 1, 2)), np.complex64([1 + 2j])),
    ],
)
def test_every_encoding_of_a_constant(tensor: pb.TensorProto, expected: np.ndarray[Any, Any]) -> None:
    found = value_of(tensor)
    assert found.dtype == expected.dtype
    assert found.shape == expected.shape
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("tensor", "reason"),
    [
        (typed(pb.DT_FLOAT, [2], tensor_content=b"1234"), "needs 8 bytes, but 4 are there"),
        (typed(pb.DT_FLOAT, [-1], float_val=[1]), "negative dimension"),
        (typed(pb.DT_FLOAT, [2**40, 2**40], float_val=[1]), "too large"),
        (typed(pb.DT_FLOAT, [2**33], float_val=[1]), "has 1 values only"),
        (typed(pb.DT_COMPLEX64, [2], scomplex_val=[1, 2, 3]), "no pairs"),
        (typed(pb.DT_RESOURCE, []), "handle"),
        (pb.TensorProto(dtype=pb.DT_FLOAT, tensor_shape=shape_proto(None)), "has no shape"),
        (typed(99, [1]), "which GE does not have"),
    ],
)
def test_constants_that_cannot_be(tensor: pb.TensorProto, reason: str) -> None:
    with pytest.raises(ReportedError) as caught:
        value_of(tensor)
    assert reason in caught.value.message
    assert "[c]" in caught.value.message or "node c" in caught.value.message


def test_the_type_of_a_constant_is_said_twice() -> None:
    model = graph(node("Const", "c", dtype=pb.AttrValue(type=pb.DT_INT32), value=np.float32(1)), node("Abs", "y", "c"))
    fault = refused(model)
    assert (fault.code, "attribute dtype is DT_INT32" in fault.message) == ("E11010", True)


# -- paths and sizes ---------------------------------------------------------------------------------------------------
def test_paths_that_are_no_file(tmp_path: Path) -> None:
    assert refused(tmp_path / "absent.pb").code == "E13026"
    assert refused(tmp_path).code == "E13026"
    assert refused("").code == "E13000"


def test_sizes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "empty.pb").write_bytes(b"")
    assert refused(tmp_path / "empty.pb").code == "E13015"
    monkeypatch.setattr(model_file, "MAX_MODEL_BYTES", 10)
    assert refused(SOUND.SerializeToString()).code == "E13015"


# -- wrong kinds -------------------------------------------------------------------------------------------------------
def saved_model() -> bytes:
    """Return a SavedModel: schema version 1, one MetaGraphDef with meta information and a graph."""
    content = SOUND.SerializeToString()
    meta = b"\x0a\x03\x2a\x01a" + b"\x12" + bytes([len(content) & 0x7F | 0x80, len(content) >> 7]) + content
    return b"\x08\x01\x12" + bytes([len(meta) & 0x7F | 0x80, len(meta) >> 7]) + meta


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (saved_model(), "SavedModel"),
        (b"saved_model_schema_version: 1\nmeta_graphs {\n  meta_info_def { }\n}\n", "SavedModel"),
        (b"\x89HDF\r\n\x1a\n" + bytes(40), "Keras"),
        (b"PK\x03\x04" + bytes(40), ".keras"),
        (b"\x1c\x00\x00\x00TFL3" + bytes(40), "TensorFlow Lite"),
        (bytes(40) + b"\x57\xfb\x80\x8b\x24\x75\x47\xdb", "checkpoint"),
        (b'model_checkpoint_path: "model.ckpt-7"\n', "checkpoint"),
        (b"version https://git-lfs.github.com/spec/v1\n", "Git LFS"),
        (b"<html><body>404</body></html>", "HTML"),
    ],
)
def test_other_files_are_recognised_by_their_content(content: bytes, told: str) -> None:
    fault = refused(content)
    assert fault.code == "E13005"
    assert told in fault.message
    assert ("freeze" in str(fault.solution).lower()) == (told not in ("Git LFS", "HTML", "TensorFlow Lite"))


def test_an_onnx_model_is_sent_to_its_own_framework() -> None:
    from tests.parsers import onnx_models

    content = onnx_models.model([onnx_models.node("Relu", "x")]).SerializeToString()
    assert "--framework=5" in refused(content).message


@pytest.mark.parametrize("content", [SOUND.SerializeToString(), text_format.MessageToString(SOUND).encode()])
def test_a_frozen_graph_given_as_onnx_is_sent_to_its_own_framework(content: bytes) -> None:
    with pytest.raises(ReportedError) as caught:
        parse_onnx(content, session())
    assert caught.value.code == "E13005"
    assert "--framework=3" in caught.value.message


@pytest.mark.parametrize(
    ("file", "told"), [("saved_model.pb", "SavedModel"), ("checkpoint", "checkpoint"), ("other.txt", "a directory")]
)
def test_directories(tmp_path: Path, file: str, told: str) -> None:
    (tmp_path / file).write_bytes(b"x")
    fault = refused(tmp_path)
    assert fault.code == "E13026"
    assert told in fault.message
    assert ("freeze" in str(fault.solution).lower()) == (told != "a directory")


def test_damage_says_where() -> None:
    content = SOUND.SerializeToString()
    fault = refused(content[:-3])
    assert fault.code == "E13005"
    assert "cut short" in fault.message
    assert refused(b"\x0a\x02\x0a\xff").code == "E13005"
    assert refused(b'node { name: "x" op: ').code == "E13005"


# -- hostile content ---------------------------------------------------------------------------------------------------
def content_with_everything() -> bytes:
    nodes = [
        placeholder("x", [2, 4, 4, 3]),
        const("w", np.ones((3, 3, 3, 2), np.float32)),
        node("Conv2D", "conv", "x w", strides=[1, 1, 1, 1], padding="SAME"),
        const("shape", np.int32([2, -1])),
        node("Reshape", "flat", "conv shape ^w"),
        node("Split", "parts", "axis flat", num_split=2),
        const("axis", np.int32(1)),
        node("Identity", "out", "parts:1"),
    ]
    return graph(*nodes).SerializeToString(deterministic=True)


EVERYTHING = content_with_everything()


@given(st.lists(st.tuples(st.integers(0, len(EVERYTHING) - 1), st.integers(0, 255)), max_size=6), st.integers(0, 40))
def test_damaged_files_never_surprise(changes: list[tuple[int, int]], cut: int) -> None:
    content = bytearray(EVERYTHING)
    for at, value in changes:
        content[at] = value
    with contextlib.suppress(ReportedError):
        parse(bytes(content[: len(content) - cut]), session(framework=Framework.TENSORFLOW))


@given(st.binary(max_size=60))
def test_any_bytes_are_a_model_or_a_reported_error(content: bytes) -> None:
    for start in (b"", b"\x0a\x20\x0a\x01x\x12\x05Const", b"node {"):
        with pytest.raises(ReportedError):
            parse(start + content, session(framework=Framework.TENSORFLOW))


def test_a_cycle_is_named() -> None:
    fault = refused(graph(node("Add", "a", "b b"), node("Abs", "b", "a"), node("Abs", "y", "a")))
    assert fault.code == "E13025"
    assert "a -> b -> a" in fault.message or "b -> a -> b" in fault.message


def test_the_reference_semantics_run() -> None:
    x = np.float32([[1, 2, 3], [4, 5, 6]])
    np.testing.assert_array_equal(run(SOUND, {"x": x})[0], x + np.float32([1, 2, 3]))
    assert tensor_proto(x).tensor_content == x.tobytes()
