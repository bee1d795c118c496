"""Which files `atc graph` reads, how it tells them apart, and what it says of others."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper

import atc
from atc.graph_changes import compare
from atc.graph_file import Kind, load
from atc.graph_view import graphs_of
from ge.dump.onnx_text import onnx_text
from ge.dump.proto_text import model_message, proto_text
from ge.dump.settings import Detail
from ge.errors import ReportedError
from ge.graph import DataType, Graph, Tensor
from ge.graph.types import numpy_dtype
from ge.text import parse_graph, print_graph

NET = """
graph net(%x: f16[1,2,4,4]@NCHW | [1,1,4,4,16]@NC1HWC0, %go: bool[]@ND) {
  %w = Const {value=f32[2,1]{0.5, -1.0}} -> f32[2,1]@ND
  %mix:2 = MixForTest(%x, _, %w) {alpha=0.5, bits=bytes "00ff", flag=true, flags=[true, false], kind="sum",
    names=["a", "ü"], nested=[[1, 2], [3]], pads=[0, -1], table=i64[2]{1, 2}, to=dtype bf16}
    ctrl(%go) -> f32[-1(1~8),4]@ND, i64[]@ND{label="a"}
  %if = If(%go, %mix) {then_branch=@then, else_branch=@else} -> f32[4]@ND
  %Node_Output:0 = NetOutput(%if, %mix:1)
  return %if as "y", %mix:1 as "count"
}
graph then(%then/x: f32[-1,4]@ND) { %then/neg = Neg(%then/x) -> f32[4]@ND return %then/neg }
graph else(%else/x: f32[-1,4]@ND) { return %else/x }
"""
WRITERS: dict[str, Callable[[Graph], str]] = {
    **{f"ge_onnx {d}": lambda graph, d=d: onnx_text(model_message(graph, d), d) for d in Detail},
    **{f"ge_proto {d}": lambda graph, d=d: proto_text(model_message(graph, d), d, {"a": "b"}) for d in Detail},
    "text": print_graph,
}


@pytest.fixture(autouse=True)
def work_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(text: str, name: str = "file") -> str:
    Path(name).write_text(text)
    return name


@pytest.mark.parametrize("one", WRITERS)
@pytest.mark.parametrize("other", WRITERS)
def test_a_graph_is_the_same_in_every_form(one: str, other: str) -> None:
    files = [load(write(WRITERS[form](parse_graph(NET)), f"file{i}")) for i, form in enumerate((one, other))]
    comparison = compare(*files)
    assert [d for pair in comparison.graphs for node in pair.nodes for d in node.differences] == []
    assert comparison.is_equal
    assert [len(pair.nodes) for pair in comparison.graphs] == [6, 2, 1]


def test_a_model_is_the_same_in_every_form(digits_model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DUMP_GE_GRAPH", "1")
    model = atc.compile_model(digits_model, framework=5, soc_version="Ascend310P3", precision_mode_v2="origin")
    model.save("digits.om")
    write(print_graph(model.graph), "digits.text")
    files = [*sorted(Path().glob("*_Build.*")), Path("digits.om"), Path("digits.text")]
    loaded = [load(str(path)) for path in files]
    assert [file.kind for file in loaded] == [Kind.GE_ONNX, Kind.GE_PROTO, Kind.OFFLINE_MODEL, Kind.GRAPH_TEXT]
    for file in loaded:
        assert compare(loaded[2], file).is_equal
        assert compare(loaded[2], file).unknown_constants == 0


def test_an_onnx_model_is_the_graph_that_the_pipeline_begins_with(
    digits_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DUMP_GE_GRAPH", "1")
    monkeypatch.setenv("DUMP_GRAPH_LEVEL", "4")
    atc.compile_model(digits_model, framework=5, soc_version="Ascend310P3", precision_mode_v2="origin")
    source = load(str(digits_model))
    assert source.kind is Kind.ONNX
    for path in Path().glob("*_PreRunBegin.*"):
        assert compare(source, load(str(path))).is_equal


def test_open_dims_of_an_onnx_model_are_given() -> None:
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 3]) for name in "xy")
    graph = helper.make_graph([helper.make_node("Neg", ["x"], ["y"], "neg")], "g", [x], [y])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), "open.onnx")
    root = load("open.onnx", "x:4,3").model.graph[0]
    assert [list(op.output_desc[0].shape.dim) for op in root.op if op.name == "neg"] == [[4, 3]]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("graph g() { return }", Kind.GRAPH_TEXT),
        ("# a comment\n\n graph\tg (%x: f32[1]@ND) { return %x }", Kind.GRAPH_TEXT),
        ('graph "odd {name" () { return }', Kind.GRAPH_TEXT),
        ("ir_version: 6 graph { }", Kind.GE_ONNX),
        ('producer_name: "GE" graph { }', Kind.GE_ONNX),
        ('graph { node { name: "n" op_type: "ge:A" } }', Kind.GE_ONNX),
        ('graph: { node { name: "op {" op_type : "ge:A" } }', Kind.GE_ONNX),
        ('graph { op { name: "n" type: "A" } }', Kind.GE_PROTO),
        ('# GE\nversion: 2 graph { name: "g" op { name: "op_type" type: "A" } }', Kind.GE_PROTO),
        ('graph < op: < name: "n" type: "A" > >', Kind.GE_PROTO),
        ('graph { name: "empty" }', Kind.GE_PROTO),
    ],
)
def test_kinds_of_texts(text: str, kind: Kind) -> None:
    assert load(write(text)).kind is kind


@pytest.mark.parametrize(
    ("content", "code", "reason"),
    [
        (b"", "E13015", "0 bytes"),
        (b"hello", "E13005", "it looks like plain text"),
        (b"\xff\xfe", "E13005", "starts no protobuf field"),
        (b"IMOD", "E10041", "at least 256 bytes"),
        (b'graph("net"):\n', "E13005", "it is a readable listing"),
        (b"graph g(", "E13005", "it is not a graph text: line 1"),
        (b"graph g() { %n = A {a=[" + b"[" * 5000, "E13005", "nested too deeply"),
        (b"graph g() { %n = A {a=" + b"9" * 5000 + b"} return }", "E13005", "it is not a graph text"),
        (b"graph g() { %n = A {v=f32[4,4]{1}} return }", "E13005", "a tensor of shape [4,4] needs 16 elements"),
        (b"graph g() { %n = A {v=f32[9999999999999999999] sha256:" + b"0" * 64 + b"} return }", "E13005", "dimension"),
        (b"graph g() { %n = A {v=f32[99999,99999] sha256:" + b"0" * 64 + b"} return }", "E13005", "39999200004 bytes"),
        ("graph g() { %n = A {v=\"ü\"} return }".encode("latin-1"), "E13005", "not in UTF-8"),
        (b"ir_version: 6", "E13005", "the model holds no graph"),
        (b"ir_version: six", "E13005", "not the text form of an ONNX model: 1:13"),
        (b'ir_version: 8 graph { node { op_type: "Conv" } }', "E13005", "types of a dump begin with 'ge:'"),
        (b"version: 2 graph", "E13005", "not the text form of ge.proto.ModelDef"),
        (b'version: 2 attr { key: "graph" }', "E13005", "it holds no graph"),
    ],
    ids=lambda value: str(value)[:30],
)  # fmt: skip
def test_faults_of_content(content: bytes, code: str, reason: str) -> None:
    Path("file").write_bytes(content)
    with pytest.raises(ReportedError) as fault:
        load("file")
    assert (fault.value.code, reason in fault.value.message, "file" in fault.value.message) == (code, True, True)
    assert "--framework" not in fault.value.solution


@pytest.mark.parametrize(
    ("path", "code", "reason"),
    [
        ("none", "E13026", "No such file"),
        (".", "E13026", "it is a directory"),
        ("zero\0", "E13026", "null"),
        ("fifo", "E13026", "it is not a regular file"),
    ],
)
def test_faults_of_paths(path: str, code: str, reason: str) -> None:
    os.mkfifo("fifo")
    with pytest.raises(ReportedError) as fault:
        load(path)
    assert (fault.value.code, reason in fault.value.message) == (code, True)


def test_files_larger_than_the_limit_are_not_read() -> None:
    with open("large", "wb") as file:
        file.truncate(2**31)
    with pytest.raises(ReportedError) as fault:
        load("large")
    assert fault.value.code == "E13015"


# -- constants ---------------------------------------------------------------------------------------------------------
def constant_texts(graph: Graph, form: str) -> list[str]:
    file = load(write(WRITERS[form](graph)))
    return [file.constant_text(op.attr["value"].t) for op in file.model.graph[0].op if op.type == "Const"]


@pytest.mark.parametrize("form", ["ge_onnx 1", "ge_proto 1", "text"])
@pytest.mark.parametrize(
    ("array", "text"),
    [
        (np.array([[1, -2]], np.int64), "i64[1,2]{1, -2}"),
        (np.array(0.5, np.float32), "f32[]{0.5}"),
        (np.array([0.1], np.float32), "f32[1]{0.1}"),
        (np.array([True, False]), "bool[2]{true, false}"),
        (np.array(["a", 'ü"'], object), 'str[2]{"a", "ü\\""}'),
        (np.zeros((0, 3), np.float16), "f16[0,3]{}"),
        (np.array([1, -2, 3], numpy_dtype(DataType.DT_INT4)), "i4[3]{1, -2, 3}"),
        (np.arange(9, dtype=np.uint8), f"u8[9] sha256:{hashlib.sha256(bytes(range(9))).hexdigest()[:16]}"),
    ],
    ids=str,
)
def test_short_constants_are_values_and_long_ones_digests(array: np.ndarray, text: str, form: str) -> None:
    graph = Graph("g")
    graph.add_const("c", Tensor.of(array))
    (found,) = constant_texts(graph, form)
    assert found == text


@pytest.mark.parametrize("dtype", [np.float32, np.uint8, numpy_dtype(DataType.DT_BF16)], ids=str)
def test_digests_of_large_constants_agree(dtype: np.dtype, rng: np.random.Generator) -> None:
    graph = Graph("g")
    graph.add_const("c", Tensor.of(rng.integers(0, 9, (70, 5000)).astype(dtype)))
    assert len({constant_texts(graph, form)[0] for form in ("ge_onnx 1", "ge_proto 1", "text")}) == 1


@pytest.mark.parametrize("form", ["ge_onnx 2", "ge_onnx 3", "ge_proto 2", "ge_proto 3"])
def test_constants_without_data_have_no_text(form: str) -> None:
    graph = Graph("g")
    graph.add_const("c", Tensor.of(np.ones(3)))
    assert constant_texts(graph, form) == [""]


def test_weights_outside_the_pool_are_refused(digits_model: Path) -> None:
    model = atc.compile_model(digits_model, framework=5, soc_version="Ascend310P3", precision_mode_v2="origin")
    model.save("digits.om")
    file = load("digits.om")
    tensor = next(op for op in file.model.graph[0].op if op.type == "Const").attr["value"].t
    tensor.desc.data_offset = 2**40
    with pytest.raises(ReportedError) as fault:
        graphs_of(file)
    assert fault.value.code == "E13005"
    assert "a constant takes the bytes 1099511627776 to" in fault.value.message


@given(data=st.data())
def test_damaged_texts_are_read_or_refused(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    text = WRITERS[data.draw(st.sampled_from(sorted(WRITERS)))](parse_graph(NET))
    start = data.draw(st.integers(0, len(text)))
    stop = data.draw(st.integers(start, min(start + 40, len(text))))
    path = tmp_path_factory.getbasetemp() / "damaged"
    path.write_text(text[:start] + data.draw(st.text('{}[]()":,%@ax01\n', max_size=3)) + text[stop:])
    try:
        file = load(str(path))
        compare(file, file)
    except ReportedError:
        return
