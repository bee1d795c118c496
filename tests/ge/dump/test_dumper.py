"""The files of stage dumps: names, numbers, folders, modes."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from ge.dump.dumper import GraphDumper, dumper_for
from ge.graph import Graph
from ge.options import Environment

FOLDER = f"pid_{os.getpid()}_deviceid_0"
LINKS = {"DUMP_GE_GRAPH": "3", "DUMP_GRAPH_LEVEL": "1"}


def dumper(**variables: str) -> GraphDumper:
    found = dumper_for(Environment.read(variables), {})
    assert found is not None
    return found


@pytest.fixture(autouse=True)
def work_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_names_and_dense_numbers(net: Graph) -> None:
    writer = dumper(DUMP_GE_GRAPH="3", DUMP_GRAPH_FORMAT="onnx|ge_proto|readable")
    for stage in ("PreRunBegin", "AfterFirstInferformat", "AfterInfershape", "Build"):
        writer.dump(net, stage)
    assert sorted(os.listdir()) == [
        "ge_onnx_00000000_graph_0_PreRunBegin.pbtxt",
        "ge_onnx_00000001_graph_0_AfterInfershape.pbtxt",
        "ge_onnx_00000002_graph_0_Build.pbtxt",
        "ge_proto_00000000_graph_0_PreRunBegin.txt",
        "ge_proto_00000001_graph_0_AfterInfershape.txt",
        "ge_proto_00000002_graph_0_Build.txt",
        "ge_readable_00000000_graph_0_PreRunBegin.txt",
        "ge_readable_00000001_graph_0_AfterInfershape.txt",
        "ge_readable_00000002_graph_0_Build.txt",
    ]
    assert writer.warnings == []


@pytest.mark.parametrize(
    ("formats", "stems"),
    [("", {"ge_proto", "ge_onnx"}), ("onnx", {"ge_onnx"}), ("readable", {"ge_readable"}), ("ge_proto", {"ge_proto"})],
)
def test_formats(formats: str, stems: set[str], net: Graph) -> None:
    dumper(**LINKS, DUMP_GRAPH_FORMAT=formats).dump(net, "Build")
    assert {name.partition("_0000")[0] for name in os.listdir()} == stems


@pytest.mark.parametrize(
    ("stage", "shown"),
    [
        ('a/b\\c:d*e?f"g<h>i|j', "a_b_c_d_e_f_g_h_i_j"),
        ("zero\0byte", "zero_byte"),
        ("../up", ".._up"),
        ("grün", "grün"),
        ("x" * 300, "x" * 224),
        ("ü" * 150, "ü" * 112),
    ],
)
def test_stage_names_become_file_names(stage: str, shown: str, net: Graph) -> None:
    dumper(**LINKS, DUMP_GRAPH_FORMAT="onnx").dump(net, stage)
    (name,) = os.listdir()
    assert name == f"ge_onnx_00000000_graph_0_{shown}.pbtxt"
    assert len(name.encode()) <= 255


def test_a_name_of_255_characters_is_not_cut_further(net: Graph) -> None:
    stage = "x" * (255 - len("ge_onnx_00000000_graph_0_") - len(".pbtxt"))
    dumper(**LINKS, DUMP_GRAPH_FORMAT="onnx").dump(net, stage)
    assert os.listdir() == [f"ge_onnx_00000000_graph_0_{stage}.pbtxt"]


def test_files_are_for_their_owner_only(net: Graph) -> None:
    old = Path("ge_onnx_00000000_graph_0_Build.pbtxt")
    old.write_text("x" * 100_000)
    old.chmod(0o644)
    dumper(**LINKS).dump(net, "Build")
    assert {stat.S_IMODE(os.stat(name).st_mode) for name in os.listdir()} == {0o600}
    assert "xxx" not in old.read_text()


@pytest.mark.parametrize(
    ("variables", "folder"),
    [
        pytest.param({}, ".", id="nothing set"),
        pytest.param({"DUMP_GRAPH_PATH": "a/b"}, f"a/b/{FOLDER}", id="dump path"),
        pytest.param({"ASCEND_WORK_PATH": "w"}, "w", id="work path"),
        pytest.param(
            {"NPU_COLLECT_PATH": "n", "DUMP_GRAPH_PATH": "a"}, f"n/extra-info/graph/{os.getpid()}_0", id="collect path"
        ),
    ],
)
def test_folders_are_made(variables: dict[str, str], folder: str, net: Graph) -> None:
    writer = dumper(**LINKS, **variables)
    assert os.listdir() == []
    writer.dump(net, "Build")
    assert len(list(Path(folder).glob("ge_*"))) == 2


def test_a_folder_that_cannot_be_made_is_replaced_by_the_working_directory(net: Graph) -> None:
    Path("file").write_text("")
    writer = dumper(**LINKS, DUMP_GRAPH_PATH="file/below")
    for stage in ("PreRunBegin", "Build"):
        writer.dump(net, stage)
    assert len(list(Path().glob("ge_*"))) == 4
    (warning,) = writer.warnings
    assert f"file/below/{FOLDER} cannot be used (Not a directory)" in warning


def test_a_folder_that_may_not_be_written_is_replaced_too(net: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: path != Path("w"))  # whoever runs the tests may be root
    writer = dumper(**LINKS, ASCEND_WORK_PATH="w")
    writer.dump(net, "Build")
    assert len(list(Path().glob("ge_*"))) == 2
    assert writer.warnings == ["graph dumps go to the working directory: w cannot be used (it may not be written)"]


def test_after_a_file_that_cannot_be_written_there_is_one_warning(net: Graph) -> None:
    Path("ge_onnx_00000000_graph_0_PreRunBegin.pbtxt").mkdir()
    writer = dumper(**LINKS)
    for stage in ("PreRunBegin", "Build"):
        writer.dump(net, stage)
    (warning,) = writer.warnings
    assert "ge_onnx_00000000_graph_0_PreRunBegin.pbtxt could not be written (Is a directory)" in warning


def test_formats_that_do_not_exist_are_told(net: Graph) -> None:
    writer = dumper(**LINKS, DUMP_GRAPH_FORMAT="json")
    writer.dump(net, "Build")
    assert os.listdir() == []
    assert "ge_proto, onnx, readable" in writer.warnings[0]


def test_equal_graphs_give_equal_files(net: Graph) -> None:
    def contents() -> dict[str, str]:
        writer = dumper(DUMP_GE_GRAPH="1", DUMP_GRAPH_FORMAT="onnx|ge_proto|readable")
        writer.dump(net, "Build")
        return {name: Path(name).read_text() for name in os.listdir()}

    assert contents() == contents()


def test_no_dumper_without_the_switch() -> None:
    assert dumper_for(Environment.read({"DUMP_GRAPH_LEVEL": "1", "DUMP_GRAPH_PATH": "a"}), {}) is None
