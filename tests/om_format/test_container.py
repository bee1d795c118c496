"""Header, partition tables and the input/output description: layout by hand-made bytes, and hostile input."""

from __future__ import annotations

import struct
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ge.errors import ReportedError
from ge.graph.tensor_desc import Shape, TensorDesc
from ge.graph.types import DataType, Format
from om_format.header import HEADER_BYTES, ModelFileHeader, ModelType
from om_format.model_io import ModelIO, TensorInfo
from om_format.partitions import PartitionType, pack_table, read_blocks, table_bytes

P = PartitionType


def model_file(
    entries: list[tuple[PartitionType, bytes]], wide: bool = True, blocks: int = 1, **fields: int
) -> bytearray:
    """A file of ``blocks`` equal blocks with the given partitions."""
    block = pack_table([(kind, len(data)) for kind, data in entries], wide) + b"".join(data for _, data in entries)
    payload = block * blocks
    length = {"model_length": len(payload)} if wide else {"length": len(payload)}
    header = ModelFileHeader(**({"model_num": blocks} | length | fields))
    return bytearray(header.pack() + payload)


def blocks_of(data: bytes | bytearray):
    return read_blocks(bytes(data), ModelFileHeader.unpack(bytes(data), len(data), "net.om"), "net.om")


def refused(call, *args) -> str:
    """The reason of the E10041 that ``call`` raises."""
    with pytest.raises(ReportedError) as caught:
        call(*args)
    assert caught.value.code == "E10041"
    assert "net.om" in caught.value.message
    return str(caught.value.fields["reason"])


class TestHeader:
    def test_fields_lie_where_the_format_puts_them(self):
        header = ModelFileHeader(
            model_length=0x1122334455,
            name="resnet",
            modeltype=ModelType.STANDARD,
            ops=7,
            model_num=3,
            platform_version="8.1",
            platform_type=1,
            is_unknow_model=1,
        )
        data = header.pack()
        assert len(data) == 256
        assert data[:4] == b"IMOD"
        assert struct.unpack_from("<II", data, 4) == (256, 0x20000000)
        assert data[82] == 1
        assert data[84:116] == b"resnet".ljust(32, b"\0")
        assert struct.unpack_from("<I", data, 116) == (7,)
        assert struct.unpack_from("<II", data, 152) == (2, 3)
        assert data[160:180] == b"8.1".ljust(20, b"\0")
        assert data[180] == 1
        assert struct.unpack_from("<Q", data, 184) == (0x1122334455,)
        assert data[192:194] == b"\0\1"
        assert ModelFileHeader.unpack(data, 256 + 0x1122334455, "net.om") == header

    @pytest.mark.parametrize(
        ("name", "stored"),
        [("", ""), ("n" * 31, "n" * 31), ("n" * 40, "n" * 31), ("é" * 20, "é" * 15), ("图" * 11, "图" * 10)],
    )
    def test_long_names_are_cut_between_characters(self, name, stored):
        data = ModelFileHeader(name=name).pack()
        assert data[84:116].rstrip(b"\0").decode() == stored
        assert data[115] == 0

    def test_the_32_bit_length_counts_when_the_64_bit_one_is_zero(self):
        header = ModelFileHeader(length=10)
        assert header.payload_length == 10
        assert not header.has_wide_table
        assert replace(header, modeltype=ModelType.FLOW).has_wide_table
        assert replace(header, model_length=11).payload_length == 11

    @pytest.mark.parametrize(
        ("version", "model_num", "is_unknow_model", "is_dynamic"),
        [
            (0x20000000, 1, 0, False),
            (0x20000000, 2, 0, True),
            (0x20000000, 1, 1, True),
            (0x10000000, 2, 1, False),
        ],
    )
    def test_dynamic(self, version, model_num, is_unknow_model, is_dynamic):
        header = ModelFileHeader(version=version, model_num=model_num, is_unknow_model=is_unknow_model)
        assert header.is_dynamic is is_dynamic

    @pytest.mark.parametrize(
        ("offset", "data", "reason"),
        [
            (0, b"PICO", "must start with the bytes 'IMOD', it starts with b'PICO'"),
            (4, struct.pack("<I", 512), "header size must be 256, the file says 512"),
            (80, b"\1", "encrypted"),
            (80, b"\7", "must be 0 or 1, the file says 7"),
            (156, struct.pack("<I", 0), "number of models must be at least 1, the file says 0"),
            (184, struct.pack("<Q", 101), "announces 101 bytes, 100 are present (the file was cut short)"),
            (184, struct.pack("<Q", 99), "announces 99 bytes, 100 are present"),
        ],
    )
    def test_faults_are_named(self, offset, data, reason):
        header = bytearray(ModelFileHeader(model_length=100).pack())
        header[offset : offset + len(data)] = data
        assert reason in refused(ModelFileHeader.unpack, bytes(header), HEADER_BYTES + 100, "net.om")

    def test_short_file(self):
        data = ModelFileHeader().pack()[:255]
        assert refused(ModelFileHeader.unpack, data, 255, "net.om").endswith("has at least 256 bytes, the file has 255")


class TestPartitionTable:
    def test_wide_table_bytes(self):
        table = pack_table([(P.MODEL_INOUT_INFO, 10), (P.MODEL_DEF, 0x1_0000_0001)])
        assert table == struct.pack("<II IIQQ IIQQ", 2, 0, 8, 0, 0, 10, 0, 0, 10, 0x1_0000_0001)
        assert len(table) == table_bytes(2)

    def test_narrow_table_bytes(self):
        table = pack_table([(P.MODEL_DEF, 10), (P.WEIGHTS_DATA, 20)], wide=False)
        assert table == struct.pack("<I III III", 2, 0, 0, 10, 1, 10, 20)
        assert len(table) == table_bytes(2, wide=False)

    @pytest.mark.parametrize(
        "entries", [[], [(P.MODEL_DEF, 0)], [(P.MODEL_DEF, 1), (P.MODEL_DEF, 1)], [(P(i), 1) for i in range(9)]]
    )
    def test_illegal_tables_are_not_written(self, entries):
        with pytest.raises(ValueError, match="not a legal list"):
            pack_table(entries)

    @pytest.mark.parametrize("wide", [True, False])
    @pytest.mark.parametrize("blocks", [1, 2, 5])
    def test_partitions_are_found_again(self, wide, blocks):
        data = model_file([(P.MODEL_INOUT_INFO, b"io"), (P.MODEL_DEF, b"model"), (P.TASK_INFO, b"t")], wide, blocks)
        found = blocks_of(data)
        assert len(found) == blocks
        for block in found:
            contents = [(p.type, bytes(data[p.start : p.end])) for p in block.partitions]
            assert contents == [(P.MODEL_INOUT_INFO, b"io"), (P.MODEL_DEF, b"model"), (P.TASK_INFO, b"t")]
            assert block.find(P.WEIGHTS_DATA) is None
            assert block.size_of(P.WEIGHTS_DATA) == 0
            assert block.size_of(P.MODEL_DEF) == 5

    def test_a_bundle_counts_from_the_end_of_the_header(self):
        parts = [b"12345678", b"inner one", b"inner two!"]
        table = struct.pack("<II", 3, 0)
        offset = table_bytes(3)
        for kind, part in zip((25, 24, 24), parts, strict=True):
            table += struct.pack("<IIQQ", kind, 0, offset, len(part))
            offset += len(part)
        header = ModelFileHeader(modeltype=ModelType.BUNDLE, model_length=HEADER_BYTES + offset)
        data = header.pack() + table + b"".join(parts)
        (block,) = blocks_of(data)
        assert [bytes(data[p.start : p.end]) for p in block.partitions] == parts

    @pytest.mark.parametrize(
        ("offset", "value", "reason"),
        [
            (0, 0, "must have 1 to 8 entries, it says 0"),
            (0, 9, "must have 1 to 8 entries, it says 9"),
            (0, 8, "has 8 entries up to byte 456, the file has 319 bytes"),
            (8, 13, "unknown type 13"),
            (32, 8, "lists MODEL_INOUT_INFO twice"),
            (16, 1, "MODEL_INOUT_INFO must start at byte 312, the table puts it at byte 313"),
            (40, 3, "MODEL_DEF must start at byte 314, the table puts it at byte 315"),
            (48, 6, "MODEL_DEF has 6 bytes, 5 are left in the file"),
            (52, 1, "MODEL_DEF has 4294967301 bytes, 5 are left in the file"),
            (48, 4, "the partitions end at byte 318, the file ends at byte 319"),
        ],
    )
    def test_faults_are_named(self, offset, value, reason):
        data = model_file([(P.MODEL_INOUT_INFO, b"io"), (P.MODEL_DEF, b"model")])
        struct.pack_into("<I", data, HEADER_BYTES + offset, value)
        assert reason in refused(blocks_of, data)

    def test_a_missing_second_table_is_named(self):
        data = model_file([(P.MODEL_DEF, b"model")], model_num=2)
        assert "partition table 1 should start at byte 293, the file has 293 bytes" in refused(blocks_of, data)

    def test_too_many_models(self):
        assert "at most 4096 models" in refused(blocks_of, model_file([(P.MODEL_DEF, b"model")], model_num=5000))


ints = st.integers(-1, 1 << 40)
shapes = st.lists(ints, max_size=6).map(Shape)
tensors = st.builds(
    TensorInfo,
    name=st.text(max_size=12),
    data_type=st.sampled_from([t for t in DataType if t is not DataType.DT_MAX]),
    format=st.sampled_from(list(Format)),
    dims=shapes,
    size=st.integers(0, (1 << 64) - 1),
    dims_v2=shapes,
    ranges=st.lists(st.tuples(ints, ints), max_size=4).map(tuple),
)
lists_of_ints = st.lists(st.lists(ints, max_size=3).map(tuple), max_size=3).map(tuple)
texts = st.lists(st.text(max_size=8), max_size=3).map(tuple)
descriptions = st.builds(
    ModelIO,
    inputs=st.lists(tensors, max_size=3).map(tuple),
    outputs=st.lists(tensors, max_size=3).map(tuple),
    dynamic_batch=st.lists(ints, max_size=3).map(tuple),
    dynamic_hw=lists_of_ints,
    dynamic_dims=lists_of_ints,
    dynamic_output_shape=texts,
    data_name_order=texts,
)


class TestModelIO:
    def test_bytes_of_one_input(self):
        info = TensorInfo(
            "x", DataType.DT_FLOAT16, Format.FORMAT_NCHW, Shape([-1, 3]), 0, Shape([-1, 3]), ((1, 8), (3, 3))
        )
        value = struct.pack("<I QiiIIII", 1, 0, 0, 1, 1, 16, 16, 32) + b"x"
        value += struct.pack("<2q 2q 4q", -1, 3, -1, 3, 1, 8, 3, 3)
        assert ModelIO(inputs=(info,)).pack() == struct.pack("<II", 0, len(value)) + value

    def test_bytes_of_gears(self):
        io = ModelIO(dynamic_batch=(1, 8), dynamic_hw=((2, 3), (4, 5)), data_name_order=("a", "bc"))
        assert io.pack() == (
            struct.pack("<II I2q", 2, 20, 2, 1, 8)
            + struct.pack("<II III 4q", 3, 44, 2, 2, 2, 2, 3, 4, 5)
            + struct.pack("<II III", 6, 15, 2, 1, 2)
            + b"abc"
        )

    @pytest.mark.parametrize(
        ("dtype", "shape", "size"),
        [
            (DataType.DT_FLOAT, [2, 3], 24),
            (DataType.DT_INT4, [3], 2),
            (DataType.DT_BOOL, [], 1),
            (DataType.DT_FLOAT, [-1, 3], 0),
            (DataType.DT_STRING, [2], 0),
            (DataType.DT_FLOAT, [0, 3], 0),
        ],
    )
    def test_size_in_bytes(self, dtype, shape, size):
        assert TensorInfo.of("x", TensorDesc(shape, data_type=dtype)).size == size

    @given(descriptions)
    def test_round_trip(self, io):
        assert ModelIO.unpack(io.pack(), "net.om") == io

    def test_unknown_rows_are_skipped(self):
        io = ModelIO(dynamic_batch=(4,))
        assert ModelIO.unpack(struct.pack("<II", 77, 3) + b"abc" + io.pack(), "net.om") == io

    @pytest.mark.parametrize(
        ("data", "reason"),
        [
            (struct.pack("<II", 2, 5) + b"1234", "5 bytes expected at offset 8, 4 are left"),
            (struct.pack("<II I", 2, 4, 0xFFFFFFFF), "4294967295 items do not fit into the 0 bytes that are left"),
            (struct.pack("<II I", 0, 4, 1), "1 items do not fit"),
            (struct.pack("<II IIq", 3, 16, 1, 2, 9), "16 bytes expected at offset 8, 8 are left"),
            (struct.pack("<II II", 5, 9, 1, 1) + b"\xff", "is not UTF-8"),
            (struct.pack("<II Iqq", 2, 20, 1, 5, 6), "8 bytes follow the last item"),
            (struct.pack("<II Iq", 2, 12, 1, 5) * 2, "lists DYNAMIC_BATCH twice"),
            (struct.pack("<II I QiiIIII", 0, 36, 1, 0, 0, 99, 0, 0, 0, 0), "unknown data type 99"),
            (struct.pack("<II I QiiIIII", 0, 36, 1, 0, 99, 0, 0, 0, 0, 0), "format 99"),
            (struct.pack("<II I QiiIIII 4s", 0, 40, 1, 0, 0, 0, 0, 4, 0, 0, b""), "4 bytes are not a list"),
            (struct.pack("<II I QiiIIII q", 0, 44, 1, 0, 0, 0, 0, 8, 0, 0, -3), "[-3] is not a shape"),
            (struct.pack("<II I QiiIIII q", 0, 44, 1, 0, 0, 0, 0, 0, 0, 8, 1), "8 bytes are not a list"),
        ],
    )
    def test_faults_are_named(self, data, reason):
        assert reason in refused(ModelIO.unpack, data, "net.om")


def read_all(data: bytes) -> None:
    """Read everything that the container holds; only E10041 may come out."""
    try:
        blocks = blocks_of(data)
        for block in blocks:
            found = block.find(P.MODEL_INOUT_INFO)
            if found is not None:
                ModelIO.unpack(data[found.start : found.end], "net.om")
    except ReportedError as error:
        if error.code != "E10041":
            raise


@st.composite
def damaged_files(draw):
    """A legal file with bytes overwritten, cut out or cut off."""
    io = draw(descriptions).pack() or b"\0" * 8
    wide = draw(st.booleans())
    data = model_file([(P.MODEL_INOUT_INFO, io), (P.MODEL_DEF, b"model")], wide, draw(st.integers(1, 3)))
    for _ in range(draw(st.integers(0, 6))):
        at = draw(st.integers(0, max(len(data) - 1, 0)))
        new = draw(st.one_of(st.binary(max_size=8), st.sampled_from([b"\xff" * 4, b"\0" * 8, b"\xff" * 8])))
        data[at : at + len(new)] = new
    if draw(st.booleans()):
        del data[draw(st.integers(0, len(data))) :]
    if draw(st.booleans()) and len(data) >= HEADER_BYTES:
        # the length check would hide what lies behind it
        struct.pack_into("<Q", data, 184, len(data) - HEADER_BYTES)
    return bytes(data)


class TestHostileInput:
    @given(st.binary(max_size=600))
    def test_random_bytes(self, data):
        read_all(data)

    @given(st.binary(max_size=600))
    def test_random_payload_behind_a_good_header(self, data):
        read_all(ModelFileHeader(model_length=len(data)).pack() + data)

    @given(damaged_files())
    def test_damaged_files(self, data):
        read_all(data)

    @given(st.binary(max_size=300))
    def test_random_descriptions(self, data):
        try:
            ModelIO.unpack(data, "net.om")
        except ReportedError as error:
            if error.code != "E10041":
                raise
