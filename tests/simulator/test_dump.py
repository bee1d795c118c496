"""The data dump of a session: which files come to be, and that they hold what operators read and made."""

from __future__ import annotations

import errno
import json
import shutil
import time
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from ge.errors import ReportedError
from ge.formats import LayoutError, storage_shape
from ge.graph import DataType, Format, Graph, TensorDesc
from ge.graph.types import DATA_TYPE_BY_PROTO, FORMAT_TEXT
from simulator import DumpMode, DumpSettings, InferSession, dump_data
from simulator import dump as dump_module
from simulator.dump_data import DumpFile, read
from tests.ge.formats.index_formulas import lay_out
from tests.simulator.planned_model import PlannedModel, data, plan_model, planned
from tests.simulator.test_control import LOOP

Array = np.ndarray


@dataclass
class Dump:
    """The dump of one run, read by the file names and by the manifest."""

    folder: Path

    @property
    def manifest(self) -> dict[str, Any]:
        return json.loads((self.folder / "manifest.json").read_text())

    def names(self) -> list[str]:
        return sorted(path.name for path in self.folder.iterdir() if path.name not in ("npy", "manifest.json"))

    def ops(self) -> list[str]:
        """Names of operators in the order in which they were dumped."""
        return [entry["op"] for entry in self.manifest["files"]]

    def entries(self, op: str) -> list[dict[str, Any]]:
        return [entry for entry in self.manifest["files"] if entry["op"] == op]

    def file(self, op: str, turn: int = 0) -> DumpFile:
        return read(self.folder / self.entries(op)[turn]["file"])

    def tensor(self, op: str, kind: str, index: int = 0, turn: int = 0) -> Array:
        """The .npy of a tensor; its bytes as stored and their sum are checked on the way."""
        entry = self.entries(op)[turn]
        [described] = [t for t in entry["tensors"] if (t["kind"], t["index"]) == (kind, index)]
        same = [t for t in entry["tensors"] if t["kind"] == kind]
        payload = getattr(self.file(op, turn), f"{kind}s")[same.index(described)]
        assert described["size"] == len(payload)
        assert described["crc32"] == f"{zlib.crc32(payload):08x}"
        return np.load(self.folder / described["npy"], allow_pickle=False)


def dumps(session: InferSession) -> list[Dump]:
    assert session.dump_folder is not None
    return [Dump(path) for path in sorted(Path(session.dump_folder).iterdir(), key=lambda path: int(path.name))]


def run_dumped(model: PlannedModel, feeds: Sequence[Array], path: Path, **settings: Any) -> Dump:
    session = InferSession(0, model, dump=DumpSettings(path, **settings))
    session.infer(feeds)
    [found] = dumps(session)
    return found


X = np.float32([1.0, -2.0, 3.0])
CHAIN = """graph chain(%x: f32[3]@ND) {
  %two = Const {value=f32[3]{2.0, 2.0, 2.0}} -> f32[3]@ND
  %m = Mul(%x, %two) -> f32[3]@ND
  %n = Neg(%m) -> f32[3]@ND
  %e = Exp(%n) -> f32[3]@ND
  %v = Reshape(%e, %two_dims) -> f32[3,1]@ND
  %two_dims = Const {value=i64[2]{3, 1}} -> i64[2]@ND
  %s = Square(%v) -> f32[3,1]@ND
  return %s
}"""


# -- files -------------------------------------------------------------------------------------------------------------
def test_where_files_lie(tmp_path: Path) -> None:
    session = InferSession(3, planned(CHAIN), dump=tmp_path)
    assert session.dump_folder is None
    assert list(tmp_path.iterdir()) == [], "nothing is made before there is something to write"
    session.infer([X])
    session.infer([X])
    [stamp] = tmp_path.iterdir()
    assert len(stamp.name) == 14
    assert stamp.name.isdecimal()
    assert Path(session.dump_folder or "") == stamp / "3" / "chain" / "1"
    first, second = dumps(session)
    assert (first.folder.name, second.folder.name) == ("0", "1")
    for found in (first, second):
        assert found.ops() == ["m", "n", "e", "s"]
        parts = [name.split(".") for name in found.names()]
        assert sorted(part[:4] for part in parts) == sorted(
            [["Mul", "m", "0", "0"], ["Neg", "n", "1", "0"], ["Exp", "e", "2", "0"], ["Square", "s", "3", "0"]]
        )
        assert all(len(part[4]) == 16 for part in parts)
    stamps = [entry["timestamp"] for found in (first, second) for entry in found.manifest["files"]]
    assert stamps == sorted(set(stamps))


def test_in_place_operators_are_dumped_with_what_they_read(tmp_path: Path) -> None:
    """The plan lets the whole chain work in one block, so every input is gone when its reader is done."""
    model = planned(CHAIN)
    offsets = {model.plan.graphs["chain"].blocks[name, 0].offset for name in "mne"}
    assert len(offsets) == 1
    found = run_dumped(model, [X], tmp_path)
    m, n = X * 2, -X * 2
    expected = {"m": ([X, np.full(3, 2)], m), "n": ([m], n), "e": ([n], np.exp(n)), "s": ([np.exp(n)[:, None]], None)}
    for op, (inputs, output) in expected.items():
        for index, value in enumerate(inputs):
            np.testing.assert_allclose(found.tensor(op, "input", index), value, rtol=2e-7)
        if output is not None:
            np.testing.assert_allclose(found.tensor(op, "output"), output, rtol=2e-7)
    np.testing.assert_allclose(found.tensor("s", "output"), np.exp(2 * n)[:, None], rtol=1e-6)


def test_reused_memory_is_dumped_before_it_is_reused(tmp_path: Path) -> None:
    """A long run of products over a small arena: every tensor is the oracle's."""
    lines = "\n".join(f"  %p{i} = MatMulV2(%{'x' if i == 0 else f'p{i - 1}'}, %w) -> f32[2,2]@ND" for i in range(9))
    model = planned(f"""graph g(%x: f32[2,2]@ND) {{
  %w = Const {{value=f32[2,2]{{0.5, 1.0, -1.0, 0.25}}}} -> f32[2,2]@ND
{lines}
  return %p8
}}""")
    assert len({block.offset for block in model.plan.graphs["g"].blocks.values()}) < 5
    x, w = np.float32([[1, 2], [3, 4]]), np.float32([[0.5, 1], [-1, 0.25]])
    found = run_dumped(model, [x], tmp_path)
    value = x.astype(np.float64)
    for i in range(9):
        np.testing.assert_allclose(found.tensor(f"p{i}", "input"), value, rtol=1e-6)
        value = value @ w
        np.testing.assert_allclose(found.tensor(f"p{i}", "output"), value, rtol=1e-6)


@pytest.mark.parametrize(
    ("mode", "counts"), [(DumpMode.INPUT, (2, 0)), (DumpMode.OUTPUT, (0, 1)), (DumpMode.ALL, (2, 1))]
)
def test_modes(mode: DumpMode, counts: tuple[int, int], tmp_path: Path) -> None:
    found = run_dumped(planned(CHAIN), [X], tmp_path, mode=mode)
    file, path = found.file("m"), found.folder / found.entries("m")[0]["file"]
    assert (len(file.inputs), len(file.outputs)) == counts
    assert path.stat().st_size == 8 + file.data.ByteSize() + sum(map(len, (*file.inputs, *file.outputs)))
    assert found.manifest["dump_mode"] == mode.value
    assert len(list((found.folder / "npy").glob("Mul.m.*"))) == sum(counts)


def test_absent_inputs_keep_their_numbers(tmp_path: Path) -> None:
    model = planned("""graph g(%a: u8[1,2]@ND, %b: u8[2,1]@ND, %zero: u8[]@ND) {
  %y = XMatMulInteger(%a, %b, _, %zero) -> i32[1,1]@ND
  return %y
}""")
    found = run_dumped(model, [np.uint8([[5, 6]]), np.uint8([[7], [8]]), np.uint8(3)], tmp_path)
    kinds = [(tensor["kind"], tensor["index"]) for tensor in found.entries("y")[0]["tensors"]]
    assert kinds == [("input", 0), ("input", 1), ("input", 3), ("output", 0)]
    assert [one.arg_index for one in found.file("y").data.input] == [0, 1, 3]
    np.testing.assert_array_equal(found.tensor("y", "input", 3), np.uint8(3))
    np.testing.assert_array_equal(found.tensor("y", "output"), [[5 * 4 + 6 * 5]])


def test_names_that_files_cannot_have(tmp_path: Path) -> None:
    long, odd = "n" * 300, "a/b.c d"
    graph = Graph("g")
    first = graph.add_node("Neg", odd, [data(graph, "x", X)], output_descs=[TensorDesc([3])])
    second = graph.add_node("Exp", long, [first.output()], output_descs=[TensorDesc([3])])
    found = run_dumped(plan_model(graph, [second.output()]), [X], tmp_path)
    assert any(name.startswith("Neg.a_b_c_d.0.0.") for name in found.names())
    short = found.entries(long)[0]["file"]
    assert len(short) == 32
    mapping = dict(line.split(",") for line in (found.folder / "mapping.csv").read_text().splitlines())
    assert mapping[short].startswith(f"Exp.{long}.1.0.")
    assert read(found.folder / short).data.op_name == long
    np.testing.assert_allclose(found.tensor(long, "output"), np.exp(-X), rtol=1e-6)


# -- layouts and types -------------------------------------------------------------------------------------------------
def through_layout(shape: Sequence[int], layout: Format, origin_format: Format, groups: int = 0) -> PlannedModel:
    """into: x in a private layout; back: that in the format of x again."""
    plain = TensorDesc(shape, origin_format, DataType.DT_FLOAT16)
    stored = storage_shape(shape, origin_format, layout, DataType.DT_FLOAT16, groups)
    private = TensorDesc(stored, layout, DataType.DT_FLOAT16, shape, origin_format)
    private.sub_format = groups
    ends = {"src_format": FORMAT_TEXT[origin_format], "dst_format": FORMAT_TEXT[layout]}
    graph = Graph("g")
    x = graph.add_node("Data", "x", attrs={"index": 0}, output_descs=[plain]).output()
    there = {**ends, "groups": max(groups, 1), "dst_subformat": groups}
    back = {"src_format": ends["dst_format"], "dst_format": ends["src_format"], "groups": max(groups, 1)}
    into = graph.add_node("TransData", "into", [x], there, output_descs=[private])
    result = graph.add_node("TransData", "back", [into.output()], back, output_descs=[plain.copy()])
    return plan_model(graph, [result.output()])


@pytest.mark.parametrize("channels", [1, 15, 16, 17, 33])
@pytest.mark.parametrize(
    ("layout", "origin_format"),
    [
        (Format.FORMAT_NC1HWC0, Format.FORMAT_NCHW),
        (Format.FORMAT_NC1HWC0, Format.FORMAT_NHWC),
        (Format.FORMAT_FRACTAL_Z, Format.FORMAT_NCHW),
        (Format.FORMAT_FRACTAL_Z, Format.FORMAT_HWCN),
        (Format.FORMAT_FRACTAL_NZ, Format.FORMAT_NCHW),
    ],
    ids=FORMAT_TEXT.get,
)
def test_private_layouts_as_stored_and_as_meant(
    layout: Format, origin_format: Format, channels: int, rng: np.random.Generator, tmp_path: Path
) -> None:
    extents = {"N": 2, "C": channels, "H": 3, "W": 5}
    x = rng.standard_normal([extents[axis] for axis in FORMAT_TEXT[origin_format]]).astype(np.float16)
    check_private(x, layout, origin_format, 0, tmp_path)


@pytest.mark.parametrize("groups", [2, 4])
def test_filters_of_groups(groups: int, rng: np.random.Generator, tmp_path: Path) -> None:
    x = rng.standard_normal((8, 3, 2, 2)).astype(np.float16)
    check_private(x, Format.FORMAT_FRACTAL_Z, Format.FORMAT_NCHW, groups, tmp_path)


def check_private(x: Array, layout: Format, origin_format: Format, groups: int, path: Path) -> None:
    """The bytes are those of the index formulas, the .npy is the tensor of the model."""
    found = run_dumped(through_layout(x.shape, layout, origin_format, groups), [x], path)
    memory = lay_out(x, FORMAT_TEXT[origin_format], FORMAT_TEXT[layout], 16, groups=max(groups, 1))
    shape = list(storage_shape(x.shape, origin_format, layout, DataType.DT_FLOAT16, groups))
    made, read_back = found.file("into"), found.file("back")
    assert made.outputs[0] == read_back.inputs[0] == memory.tobytes()
    assert made.inputs[0] == read_back.outputs[0] == x.tobytes()
    for described in (made.data.output[0], read_back.data.input[0]):
        assert (described.format, list(described.shape.dim)) == (layout, shape)
        assert (list(described.original_shape.dim), described.sub_format) == (list(x.shape), max(groups, 1))
    assert made.data.output[0].original_op.format == origin_format
    for op, kind in (("into", "input"), ("into", "output"), ("back", "input"), ("back", "output")):
        np.testing.assert_array_equal(found.tensor(op, kind), x)
    [tensor] = [t for t in found.entries("into")[0]["tensors"] if t["kind"] == "output"]
    form = {"format": FORMAT_TEXT[layout], "shape": shape, "dtype": "DT_FLOAT16", "groups": max(groups, 1)}
    assert tensor["storage"] == form
    assert tensor["origin"] == {"format": FORMAT_TEXT[origin_format], "shape": list(x.shape), "dtype": "DT_FLOAT16"}


def test_a_layout_that_nobody_can_read_is_dumped_as_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(array: Array, desc: TensorDesc, rnn: object) -> Array:
        raise LayoutError(f"{desc.format.name} is not known")

    monkeypatch.setattr(dump_data, "in_origin", unknown)
    found = run_dumped(planned(CHAIN), [X], tmp_path)
    assert found.file("m").outputs[0] == (2 * X).tobytes()
    for tensor in found.entries("m")[0]["tensors"]:
        assert (tensor["npy"], tensor["reason"]) == (None, "FORMAT_ND is not known")
    assert list((found.folder / "npy").iterdir()) == []


def test_bfloat16_is_widened_beside_its_bytes(tmp_path: Path) -> None:
    x = np.array([1.5, -2.25, 3e38], ml_dtypes.bfloat16)
    model = planned("graph g(%x: bf16[3]@ND) {\n  %y = Neg(%x) -> bf16[3]@ND\n  return %y\n}")
    found = run_dumped(model, [x], tmp_path)
    assert found.file("y").outputs[0] == (-x).tobytes()
    assert DATA_TYPE_BY_PROTO[found.file("y").data.output[0].data_type] is DataType.DT_BF16
    saved = found.tensor("y", "output")
    assert saved.dtype == np.float32
    np.testing.assert_array_equal(saved, -x.astype(np.float32))


def test_origins_of_outputs(tmp_path: Path) -> None:
    """The attributes of a tensor say what it was in the model; its precision is taken back in the .npy."""
    model = planned("""graph g(%x: f16[3]@ND) {
  %y = Neg(%x) {_datadump_original_op_names=["conv","relu"], _datadump_original_op_types=["Conv2D","Relu"]} -> \
f16[3]@ND{_datadump_origin_name="relu", _datadump_origin_output_index=1, _datadump_origin_format="NHWC", \
_datadump_origin_data_type="DT_FLOAT"}
  %z = Exp(%y) {_datadump_original_op_names=[]} -> f16[3]@ND{_datadump_origin_name="relu"}
  return %z
}""")
    found = run_dumped(model, [X.astype(np.float16)], tmp_path)
    [entry] = found.entries("y")
    assert (entry["original_names"], entry["original_types"]) == (["conv", "relu"], ["Conv2D", "Relu"])
    original = found.file("y").data.output[0].original_op
    assert (original.name, original.output_index, original.data_type, original.format) == ("relu", 1, 1, 1)
    assert found.tensor("y", "output").dtype == np.float32
    assert found.tensor("z", "input").dtype == np.float32, "an input is its producer's"
    assert found.tensor("z", "output").dtype == np.float16
    [described] = [t for t in found.entries("z")[0]["tensors"] if t["kind"] == "input"]
    assert described["original"] == {"name": "relu", "index": 1}
    assert found.entries("z")[0]["original_names"] == []
    assert found.file("z").data.output[0].original_op.name == "", "copied from what it has converted"


@pytest.mark.parametrize(
    ("helper", "result", "expected"),
    [
        ("", "", ("a", "b")),
        ('_datadump_original_op_names=["conv"]', "", ("conv", "b")),
        ('_datadump_original_op_names=["b"]', "", ("", "b")),
        ('_datadump_original_op_names=["b", "c"], _datadump_is_multiop=true', "", ("", "b")),
        ('_datadump_original_op_names=["b", "c"]', "", ("c", "b")),
        ("_datadump_original_op_names=[]", "_datadump_original_op_names=[]", ("", "")),
    ],
)
def test_only_one_node_gives_a_tensor_of_the_model(
    helper: str, result: str, expected: tuple[str, str], tmp_path: Path
) -> None:
    """Operators that help to make what another one gives stand for no tensor themselves."""
    model = planned(f"""graph g(%x: f32[3]@ND) {{
  %a = Neg(%x) {{{helper}}} -> f32[3]@ND
  %b = Exp(%a) {{{result}}} -> f32[3]@ND
  return %b
}}""")
    found = run_dumped(model, [X], tmp_path, mode=DumpMode.OUTPUT)
    assert tuple(found.file(op).data.output[0].original_op.name for op in "ab") == expected


# -- control flow and open shapes --------------------------------------------------------------------------------------
def test_every_turn_of_a_loop_has_files_of_its_own(tmp_path: Path) -> None:
    scale = np.float32([0.5, -1, 2])
    found = run_dumped(planned(LOOP), [np.int64(3), X, scale], tmp_path)
    assert found.ops() == ["c/y", *["b/m", "b/t", "b/u", "c/y"] * 3, "w"]
    value = X
    for turn in range(3):
        assert found.entries("b/t")[turn]["turn"] == turn
        np.testing.assert_array_equal(found.tensor("b/t", "input", 0, turn), value)
        value = value * scale + np.float32([0.25, 4, 1])
        np.testing.assert_array_equal(found.tensor("b/u", "output", 0, turn), value)
    assert [bool(found.tensor("c/y", "output", 0, turn)) for turn in range(4)] == [True, True, True, False]
    np.testing.assert_array_equal(found.tensor("w", "input", 1), X)
    np.testing.assert_array_equal(found.tensor("w", "output", 1), value)
    tasks = {entry["op"]: entry["task"] for entry in found.manifest["files"]}
    assert len(set(tasks.values())) == len(tasks), "tasks of bodies have numbers of their own"


DYNAMIC = """graph g(%x: f32[-1,2]@NCHW, %c: bool[]@ND) {
  %n = Neg(%x) -> f32[-1,2]@NCHW
  %y = If(%c, %n) {then_branch=@t, else_branch=@e} -> f32[-1,2]@ND
  return %y
}
graph t(%t/x: f32[-1,2]@ND {_parent_node_index=1}) { %t/y = Exp(%t/x) -> f32[-1,2]@ND return %t/y }
graph e(%e/x: f32[-1,2]@ND {_parent_node_index=1}) { %e/y = Square(%e/x) -> f32[-1,2]@ND return %e/y }"""


@pytest.mark.parametrize("batch", [1, 3, 0])
def test_open_dimensions_are_those_of_the_run(batch: int, rng: np.random.Generator, tmp_path: Path) -> None:
    x = rng.standard_normal((batch, 2)).astype(np.float32)
    found = run_dumped(planned(DYNAMIC), [x, np.array(False)], tmp_path)
    assert found.ops() == ["n", "e/y", "y"]
    np.testing.assert_array_equal(found.tensor("n", "input"), x)
    np.testing.assert_array_equal(found.tensor("e/y", "input"), -x)
    np.testing.assert_array_equal(found.tensor("y", "output"), x * x)
    assert list(found.file("n").data.output[0].original_shape.dim) == [batch, 2]


def test_texts_are_dumped_and_handles_are_not(tmp_path: Path) -> None:
    model = planned("""graph g(%t: str[2]@ND, %x: f32[3]@ND) {
  %s = Identity(%t) -> str[2]@ND
  %b = XScanBuffer() -> variant[]@ND
  %a = XScanAppend(%b, %x) -> variant[]@ND
  %y = XScanStack(%a) {dtype=dtype f32, shape=[3], count=1} -> f32[1,3]@ND
  return %s, %y
}""")
    found = run_dumped(model, [np.array(["a", "grün"], object), X], tmp_path)
    assert found.tensor("s", "output").tolist() == ["a", "grün"]
    tensors = found.entries("a")[0]["tensors"]
    assert [tensor["kind"] for tensor in tensors if "reason" not in tensor] == ["input"]
    assert [(t["kind"], t["index"]) for t in tensors if "variant" in t.get("reason", "").lower()] == [
        ("input", 0),
        ("output", 0),
    ]
    np.testing.assert_array_equal(found.tensor("y", "output"), X[None])


# -- what is dumped ----------------------------------------------------------------------------------------------------
def warned(model: PlannedModel, path: Path, *layers: str, extra: bool = False) -> tuple[list[str], list[str]]:
    """Dump some layers and return the operators dumped and the warnings."""
    session = InferSession(0, model)
    lines: list[str] = []
    session.start_dump(DumpSettings(path, layers=layers, extra=extra), lines.append)
    session.infer([X])
    return (dumps(session)[0].ops() if session.dump_folder else []), lines


def test_layers_by_compiled_and_by_original_name(tmp_path: Path) -> None:
    model = planned(CHAIN)
    node = model.graph.find("n")
    assert node is not None
    node.attrs["_datadump_original_op_names"] = ["conv1", "relu1"]
    assert warned(model, tmp_path, "relu1", "e") == (["n", "e"], [])
    assert warned(model, tmp_path, "n") == (["n"], [])


@pytest.mark.parametrize(
    ("layer", "parts"),
    [
        ("relu2", ["'relu2'", "near: relu1"]),
        ("completely_other", ["'completely_other'", "no operator of the .om is called so"]),
        ("two", ["'two'", "a constant", "--dump_extra"]),
        ("v", ["'v'", "a Reshape without a task", "--dump_extra"]),
        ("x", ["'x'", "an input of the model", "--dump_extra"]),
        ("Node_Output", ["'Node_Output'", "no outputs"]),
    ],
)
def test_names_that_select_nothing_are_explained(layer: str, parts: list[str], tmp_path: Path) -> None:
    model = planned(CHAIN)
    node = model.graph.find("n")
    assert node is not None
    node.attrs["_datadump_original_op_names"] = ["relu1"]
    ops, lines = warned(model, tmp_path, layer, "m")
    assert ops == ["m"]
    [line] = lines
    assert [part for part in parts if part not in line] == []


def test_nothing_selected_is_no_dump(tmp_path: Path) -> None:
    ops, lines = warned(planned(CHAIN), tmp_path, "nobody")
    assert (ops, len(lines)) == ([], 1)
    assert list(tmp_path.iterdir()) == []


def test_extra_dumps_inputs_constants_and_views(tmp_path: Path) -> None:
    found = run_dumped(planned(CHAIN), [X], tmp_path, extra=True)
    assert sorted(found.ops()) == sorted(["x", "two", "two_dims", "m", "n", "e", "v", "s"])
    np.testing.assert_array_equal(found.tensor("x", "output"), X)
    np.testing.assert_array_equal(found.tensor("two", "output"), np.full(3, 2, np.float32))
    np.testing.assert_allclose(found.tensor("v", "output"), np.exp(-2 * X)[:, None], rtol=1e-6)
    assert found.entries("v")[0]["task"] is None
    assert warned(planned(CHAIN), tmp_path, "v", "x", extra=True) == (["x", "v"], [])


def test_extra_in_a_dynamic_model(tmp_path: Path) -> None:
    x = np.float32([[1, 2]])
    found = run_dumped(planned(DYNAMIC), [x, np.array(True)], tmp_path, extra=True)
    assert found.ops() == ["x", "c", "n", "t/y", "y"]
    np.testing.assert_array_equal(found.tensor("x", "output"), x)


def test_steps(tmp_path: Path) -> None:
    session = InferSession(0, planned(CHAIN), loop=5, dump=DumpSettings(tmp_path, steps=((0, 0), (2, 3))))
    session.infer([X])
    assert [found.folder.name for found in dumps(session)] == ["0", "2", "3"]


def test_runs_without_dump_are_not_counted(tmp_path: Path) -> None:
    session = InferSession(0, planned(CHAIN), dump=tmp_path)
    with session.without_dump():
        session.infer([X])
    session.infer([X])
    session.stop_dump()
    session.infer([X])
    [stamp] = tmp_path.iterdir()
    assert [path.name for path in (stamp / "0/chain/1").iterdir()] == ["0"]


def test_a_second_dump_goes_elsewhere(tmp_path: Path) -> None:
    folders = []
    for _ in range(3):
        session = InferSession(0, planned(CHAIN), dump=tmp_path)
        session.infer([X])
        folders.append(session.dump_folder)
    assert len(set(folders)) == 3


# -- faults ------------------------------------------------------------------------------------------------------------
def test_a_file_in_the_way(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ReportedError, match=r"R1044.*file/dump\].*[Nn]ot a directory"):
        InferSession(0, planned(CHAIN), dump=tmp_path / "file" / "dump")


def test_a_full_disk_leaves_no_part_of_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session = InferSession(0, planned(CHAIN), dump=tmp_path)
    session.infer([X])
    count = 0

    def full(*args: object) -> list[int]:
        nonlocal count
        count += 1
        if count == 3:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(*args)

    write = dump_module.write
    monkeypatch.setattr(dump_module, "write", full)
    with pytest.raises(ReportedError, match=r"R1044.*Exp.e.2.0.*No space left"):
        session.infer([X])
    assert session.dump_folder is not None
    assert [path.name for path in Path(session.dump_folder).iterdir()] == ["0"]
    monkeypatch.undo()
    np.testing.assert_allclose(session.infer([X])[0][:, 0], np.exp(-4 * X), rtol=1e-6)


@pytest.mark.parametrize("existing", [".", "a", "a/b"])
def test_only_folders_that_the_dump_made_are_removed(
    existing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / existing).mkdir(parents=True, exist_ok=True)
    session = InferSession(0, planned(CHAIN), dump=tmp_path / "a" / "b")
    before = sorted(tmp_path.rglob("*"))

    def full(*args: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(dump_module, "write", full)
    with pytest.raises(ReportedError, match="R1044"):
        session.infer([X])
    assert sorted(tmp_path.rglob("*")) == before
    monkeypatch.undo()
    session.infer([X])
    assert dumps(session)[0].ops() == ["m", "n", "e", "s"]


def test_a_run_that_stops_keeps_what_was_dumped(tmp_path: Path) -> None:
    model = planned("""graph g(%x: f32[3]@ND) {
  %n = Neg(%x) -> f32[3]@ND
  %f = XFail() {reason="too loud", dtypes=[0], shapes=[[3]]} ctrl(%n) -> f32[3]@ND
  %y = Add(%n, %f) -> f32[3]@ND
  return %y
}""")
    session = InferSession(0, model, dump=tmp_path)
    with pytest.raises(ReportedError, match="R1050"):
        session.infer([X])
    [found] = dumps(session)
    assert found.ops() == ["n"]
    assert found.manifest["stopped"].startswith("R1050")
    np.testing.assert_array_equal(found.tensor("n", "output"), -X)


def test_too_little_space_is_told_before_the_first_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage(tmp_path)._replace(free=100)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    session = InferSession(0, planned(CHAIN))
    lines: list[str] = []
    session.start_dump(tmp_path, lines.append)
    session.check_dump_space(10)
    session.infer([X])
    size = 12 * (3 + 2 + 2 + 2) * 2 * 10  # m has three tensors; each one as stored and as .npy, ten times
    assert lines == [f"the dump takes some {size} bytes for 10 runs, but only 100 are free in {tmp_path}"]


@pytest.mark.parametrize(("steps", "runs"), [([(0, 0), (5, 99)], 6), ([(2, 3)], 2), ([(50, 60)], 0)])
def test_space_is_needed_for_what_is_dumped(
    steps: list[tuple[int, int]], runs: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = shutil.disk_usage(tmp_path)._replace(free=0)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    session = InferSession(0, planned(CHAIN))
    lines: list[str] = []
    session.start_dump(DumpSettings(tmp_path, steps=steps), lines.append)
    session.check_dump_space(10)
    assert [f"some {12 * 9 * 2 * runs} bytes" in line for line in lines] == ([True] if runs else [])


def test_nothing_of_the_dump_is_loaded_or_called_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dump_module.Dumper, "__init__", None)
    session = InferSession(0, planned(CHAIN))
    assert session._live().observer is None
    session.infer([X])


def test_times_are_without_the_dump(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session = InferSession(0, planned(CHAIN), dump=tmp_path)
    write = dump_module.write

    def slow(*args: Any) -> list[int]:
        time.sleep(0.05)
        return write(*args)

    monkeypatch.setattr(dump_module, "write", slow)
    session.infer([X])
    assert session.summary().exec_time_list[0] < 50
