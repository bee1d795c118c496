"""Which stages, formats and folders the environment asks for."""

from __future__ import annotations

from pathlib import Path

import pytest

from ge.dump.settings import Detail, faults_of, read_settings
from ge.options import Environment

# stage -> the levels 1 to 4 that show it
STAGES = {
    "PreRunBegin": "124",
    "PreRunAfterNormalizeGraph": "12",
    "AfterFirstInferformat": "1",
    "AfterInfershape": "12",
    "afterinfershape": "1",
    "RunCustomPassBeforeInfershape": "12",
    "RunCustomPass_AfterInferShape": "12",
    "RunCustomPass_BeforeAssignLogicStreamMyPass": "12",
    "AutofuseOptimize_Entry": "1",
    "AutoFuseBeforeOptimize_graph_0": "12",
    "PreRunAfterPrepare": "12",
    "PreRunAfterOptimize1": "1",
    "PreRunAfterOptimizeAfterStage1": "12",
    "partition0_rank1_new_sub_graph1_AtomicEnginePartitioning": "",
    "AIcoreEngine_OptimizeSubGraphBefore": "",
    "OptimizeSubgraphPreProc": "1",
    "AfterAicpuFuseHostInputs": "",
    "RunCustomPass_in_sub_graph": "",
    "AfterAssignResource": "1",
    "Build": "123",
    "PreRunAfterBuild": "1",
    "": "",
    "12": "",
}


def wants(level: str, stage: str) -> bool:
    settings = read_settings(Environment(dump_ge_graph="2", dump_graph_level=level), 1)
    assert settings is not None
    return settings.wants(stage)


@pytest.mark.parametrize("stage", STAGES)
def test_numbered_levels(stage: str) -> None:
    assert "".join(level for level in "1234" if wants(level, stage)) == STAGES[stage]
    assert wants("", stage) == wants("2", stage) == wants("02", stage)
    assert not any(wants(level, stage) for level in ("0", "5", "12"))


@pytest.mark.parametrize(
    ("level", "stage", "shown"),
    [
        ("Build", "Build", True),
        ("Build", "PreRunAfterBuild", True),
        ("build", "Build", False),
        ("Infershape|Begin", "AfterInfershape", True),
        ("Infershape|Begin", "PreRunBegin", True),
        ("Infershape|Begin", "RunCustomPass_AfterInferShape", False),
        ("OptimizeSubGraph", "AIcoreEngine_OptimizeSubGraphAfter", True),
        ("sub_graph", "partition0_rank1_new_sub_graph1_AtomicEnginePartitioning", True),
        ("1|2", "PreRunAfterOptimize1", True),
        ("1|2", "PreRunBegin", False),
        ("1|2", "12", False),
        ("|", "Build", False),
        ("|Build", "PreRunBegin", False),
        ("-1", "Build", False),
    ],
)
def test_text_filters(level: str, stage: str, shown: bool) -> None:
    assert wants(level, stage) == shown


@pytest.mark.parametrize(
    ("text", "detail"),
    [
        ("", None),
        ("0", None),
        ("1", Detail.FULL),
        ("2", Detail.WITHOUT_WEIGHTS),
        (" 3 ", Detail.LINKS_ONLY),
        ("02", Detail.WITHOUT_WEIGHTS),
        ("4", None),
        ("-1", None),
        ("1.0", None),
        ("yes", None),
        ("²", None),
        ("9" * 5000, None),
    ],
)
def test_detail(text: str, detail: Detail | None) -> None:
    settings = read_settings(Environment(dump_ge_graph=text), 1)
    assert (None if settings is None else settings.detail) == detail


@pytest.mark.parametrize(
    ("text", "formats"),
    [
        ("", ("ge_proto", "onnx")),
        (" | ", ("ge_proto", "onnx")),
        ("onnx", ("onnx",)),
        ("readable", ("readable",)),
        (" GE_Proto |ONNX ", ("ge_proto", "onnx")),
        ("ge_onnx", ("onnx",)),
        ("onnx|readable|ge_proto", ("ge_proto", "onnx", "readable")),
        ("text", ()),
    ],
)
def test_formats(text: str, formats: tuple[str, ...]) -> None:
    settings = read_settings(Environment(dump_ge_graph="1", dump_graph_format=text), 1)
    assert settings is not None
    assert settings.formats == formats


@pytest.mark.parametrize(
    ("variables", "folder"),
    [
        ({}, "."),
        ({"ASCEND_WORK_PATH": "work"}, "work"),
        ({"ASCEND_WORK_PATH": "work", "DUMP_GRAPH_PATH": "a/b"}, "a/b/pid_7_deviceid_0"),
        ({"DUMP_GRAPH_PATH": "/abs"}, "/abs/pid_7_deviceid_0"),
        ({"DUMP_GRAPH_PATH": "a", "ASCEND_DUMP_PATH": "dump"}, "dump/pid_7_deviceid_0"),
        ({"DUMP_GRAPH_PATH": "a", "NPU_COLLECT_PATH": "npu", "ASCEND_DUMP_PATH": "d"}, "npu/extra-info/graph/7_0"),
    ],
)
def test_folder(variables: dict[str, str], folder: str) -> None:
    settings = read_settings(Environment.read({"DUMP_GE_GRAPH": "1", **variables}), pid=7)
    assert settings is not None
    assert settings.folder == Path(folder)


@pytest.mark.parametrize(
    ("detail", "level", "part"),
    [
        ("", "", ""),
        ("0", "9", ""),
        ("-1", "", ""),
        ("2", "", ""),
        ("02", "03", ""),
        ("2", "Build|PreRun", ""),
        ("full", "", "DUMP_GE_GRAPH is 'full', not 1"),
        ("1.0", "", "DUMP_GE_GRAPH is '1.0'"),
        ("4", "", "DUMP_GE_GRAPH is 4, not 1, 2 or 3"),
        ("1", "5", "DUMP_GRAPH_LEVEL is '5', neither 1 to 4"),
        ("1", "0", "DUMP_GRAPH_LEVEL is '0'"),
        ("1", "-2", "DUMP_GRAPH_LEVEL is '-2'"),
        ("1", "|", "DUMP_GRAPH_LEVEL is '|'"),
    ],
)
def test_values_that_quietly_mean_no_dumps_are_told(detail: str, level: str, part: str) -> None:
    faults = faults_of(Environment(dump_ge_graph=detail, dump_graph_level=level))
    assert len(faults) == bool(part)
    assert all(fault.startswith("no graph is dumped") and part in fault for fault in faults)
