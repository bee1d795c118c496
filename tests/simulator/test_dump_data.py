"""Dump files, byte by byte, and what is refused when they are read."""

from __future__ import annotations

import io
import struct
import zlib
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from ge.errors import ReportedError
from ge.graph import DataType, Format, TensorDesc
from simulator.dump_data import DumpedTensor, Origin, read, write
from simulator.dump_names import MAX_NAME, Clock, ShortNames, file_name, sanitised

NOWHERE = Origin("", 0, DataType.DT_FLOAT, Format.FORMAT_ND)


def tensor(kind: str, index: int, array: np.ndarray, data_type: DataType, origin: Origin = NOWHERE) -> DumpedTensor:
    return DumpedTensor(kind, index, TensorDesc(array.shape, Format.FORMAT_ND, data_type), array, origin)


def written(*tensors: DumpedTensor) -> bytes:
    file = io.BytesIO()
    write(file, "node", 5, tensors)
    return file.getvalue()


# -- the form ----------------------------------------------------------------------------------------------------------
def field(number: int, content: bytes | int) -> bytes:
    """A protobuf field, numbers below 128."""
    if isinstance(content, int):
        return bytes([number << 3, content])
    return bytes([number << 3 | 2, len(content)]) + content


def by_hand(*fields: bytes, payload: bytes) -> bytes:
    described = b"".join(fields)
    return struct.pack("<Q", len(described)) + described + payload


A, B, Y = np.float16([[1.5, -2.0]]), np.array([True, False, True]), np.int32([7])


def test_the_bytes_of_a_file() -> None:
    origin = Origin("relu", 1, DataType.DT_INT64, Format.FORMAT_NCHW)
    found = written(
        tensor("input", 0, A, DataType.DT_FLOAT16),
        tensor("input", 2, B, DataType.DT_BOOL),
        tensor("output", 0, Y, DataType.DT_INT32, origin),
    )
    original = field(1, b"relu") + field(2, 1) + field(3, 8)
    assert found == by_hand(
        field(1, b"2.0"),
        field(2, 5),
        field(3, field(1, 7) + field(2, 2) + field(3, field(1, b"\1")) + field(4, original) + field(6, 4)
              + field(7, field(1, b"\1")) + field(8, 1)),
        field(4, field(1, 2) + field(2, 2) + field(3, field(1, b"\1\2")) + field(5, 4) + field(6, field(1, b"\1\2"))
              + field(7, 1)),
        field(4, field(1, 11) + field(2, 2) + field(3, field(1, b"\3")) + field(5, 3) + field(6, field(1, b"\3"))
              + field(7, 1) + field(10, 2)),
        field(6, b"node"),
        payload=A.tobytes() + B.tobytes() + Y.tobytes(),
    )  # fmt: skip


def test_inputs_lie_before_outputs_buffers_and_workspaces(tmp_path: Path) -> None:
    """The fields of the message have another order."""
    path = tmp_path / "hand"
    path.write_bytes(by_hand(
        field(3, field(1, 4) + field(6, 1)),
        field(4, field(1, 4) + field(5, 2)),
        field(4, field(1, 4) + field(5, 3)),
        field(5, field(3, 1)),
        field(8, field(3, 2)),
        payload=b"aabbbyLww",
    ))  # fmt: skip
    found = read(path)
    assert (found.inputs, found.outputs) == ((b"aa", b"bbb"), (b"y",))
    assert (found.buffers, found.workspaces) == ((b"L",), (b"ww",))


# numbers as the readers of device dumps have them
DUMP_NUMBERS = {
    "FLOAT": 1, "FLOAT16": 2, "INT8": 3, "UINT8": 4, "INT16": 5, "UINT16": 6, "INT32": 7, "INT64": 8, "UINT32": 9,
    "UINT64": 10, "BOOL": 11, "DOUBLE": 12, "COMPLEX64": 16, "COMPLEX128": 17, "BF16": 27, "INT4": 28,
}  # fmt: skip
IN_MEMORY = {"FLOAT": np.float32, "DOUBLE": np.float64, "BF16": ml_dtypes.bfloat16, "INT4": ml_dtypes.int4}


@pytest.mark.parametrize("name", DUMP_NUMBERS)
def test_types_have_the_numbers_of_dumps(name: str, tmp_path: Path) -> None:
    array = np.array([0, 1, 1, 0, 1]).astype(IN_MEMORY.get(name, name.lower()))
    path = tmp_path / "file"
    path.write_bytes(written(tensor("output", 0, array, DataType[f"DT_{name}"])))
    found = read(path)
    assert found.data.output[0].data_type == DUMP_NUMBERS[name]
    packed = bytes([0x10, 0x01, 0x01])  # two elements to a byte, the first one low
    assert found.outputs[0] == (packed if name == "INT4" else array.tobytes())
    assert len(path.read_bytes()) == 8 + found.data.ByteSize() + found.data.output[0].size


def test_texts_and_empty_tensors(tmp_path: Path) -> None:
    path = tmp_path / "file"
    texts = np.array(["a", "bc"], object)
    none = np.zeros((0, 3), np.float32)
    path.write_bytes(
        written(tensor("input", 0, texts, DataType.DT_STRING), tensor("output", 0, none, DataType.DT_FLOAT))
    )
    found = read(path)
    assert found.inputs[0] == struct.pack("<4q", 32, 1, 34, 2) + b"a\0bc\0"
    assert (found.outputs[0], list(found.data.output[0].shape.dim)) == (b"", [0, 3])


def test_names_that_utf8_cannot_say() -> None:
    file = io.BytesIO()
    write(file, "a\udc80b", 5, [tensor("output", 0, Y, DataType.DT_INT32)])
    assert rb"a\udc80b" in file.getvalue()


def test_sums_are_those_of_the_payloads() -> None:
    large = np.arange(600_000, dtype=np.float32)
    sums = write(io.BytesIO(), "n", 5, [tensor("input", 0, A, DataType.DT_FLOAT16),
                                        tensor("output", 0, large, DataType.DT_FLOAT)])  # fmt: skip
    assert sums == [zlib.crc32(A.tobytes()), zlib.crc32(large.tobytes())]


# -- damaged files -----------------------------------------------------------------------------------------------------
WHOLE = written(tensor("input", 0, A, DataType.DT_FLOAT16), tensor("output", 0, Y, DataType.DT_INT32))


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "0 bytes"),
        (WHOLE[:8], "8 bytes"),
        (WHOLE[:20], "of its 20 bytes"),
        (WHOLE[:-1], r"payloads take 8 bytes, 7 are there"),
        (WHOLE + b"x", "8 bytes, 9 are there"),
        (struct.pack("<Q", 2**63) + WHOLE[8:], "description would take 9223372036854775808"),
        (struct.pack("<Q", 3) + b"\xff\xff\xff", "no message"),
        (by_hand(field(3, field(6, 100)), payload=b""), "payloads take 100 bytes, 0 are there"),
    ],
)
def test_damaged_files(content: bytes, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "cut"
    path.write_bytes(content)
    with pytest.raises(ReportedError, match=f"R1045.*cut.*{reason}"):
        read(path)


def test_files_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(ReportedError, match=r"R1045.*none.*No such file"):
        read(tmp_path / "none")


# -- names -------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("name", "expected"),
    [("a/b.c d", "a_b_c_d"), (r"x\y:0", "x_y_0"), ("grün", "gr_n"), ("A-Za_9", "A-Za_9"), ("../..", "_____")],
)
def test_sanitised(name: str, expected: str) -> None:
    assert sanitised(name) == expected


def test_file_names() -> None:
    assert file_name("Conv2D", "a/b.c d", 3, 0, 1234567) == "Conv2D.a_b_c_d.3.0.0000000001234567"


def test_long_names_are_found_in_the_mapping() -> None:
    names = ShortNames()
    long = [file_name("Add", f"{'n' * 300}{i}", i, 0, 1) for i in range(2)]
    short = [names.fitting(name) for name in long]
    assert [len(name) for name in short] == [32, 32]
    assert names.fitting("x" * MAX_NAME) == "x" * MAX_NAME
    assert names.fitting("x" * 250, ".output.0.npy").endswith(".output.0.npy")
    lines = dict(line.split(",") for line in names.mapping().splitlines())
    assert [lines[name] for name in short] == long
    assert len(lines) == 3


def test_time_stamps_grow_strictly() -> None:
    clock = Clock()
    stamps = [clock.stamp() for _ in range(5000)]
    assert stamps == sorted(set(stamps))
    assert len(str(stamps[0])) == 16
