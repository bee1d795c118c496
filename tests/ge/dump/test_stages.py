"""Dumps of whole compiles: which stages, in which order, and that nothing is done without the switch."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import onnx
import pytest
from google.protobuf import text_format

import atc
from ge.options import CompileOptions, Environment
from ge.proto import ge_ir_pb2 as pb
from ge.session import CompileSession
from passes.pipeline import compile_passes

# GE's names, in the order of its pipeline, of the stages that a compiler such as ours may have
GE_STAGES = [
    "PreRunBegin",
    "RunCustomPassBeforeInfershape",
    "PreRunAfterNormalizeGraph",
    "AfterFirstInferformat",
    "AfterInfershape",
    "RunCustomPass_AfterInferShape",
    "AfterSecondInferformat",
    "PreRunAfterPrepare",
    "OptimizeQuantGraph_FeGraphFusionAfter",
    "OptimizeOriginalGraph_FeGraphFusionAfter",
    "OptimizeOriginalGraph_FeTopoSortingAfter",
    "RunCustomPassAfterBuiltinFusionPass",
    "PreRunAfterOptimizeOriginalGraph",
    "PrepareAfterUpdateInputOutputByUserOptions",
    "OptimizeOriginalGraph_FeOpDtypeJudgeAfter",
    "PreRunAfterRefineRunningPrecision",
    "OptimizeOriginalGraph_FeOpFormatJudgeAfter",
    "OptimizeOriginalGraph_FeDistHeavyFormatAfter",
    "OptimizeOriginalGraph_FeInsertTransNodeAfter",
    "PreRunAfterRefineRunningFormat",
    "OptimizeStage1_1",
    "OptimizeStage1_2",
    "PreRunAfterOptimize1",
    "PreRunAfterOptimizeAfterStage1",
    "RunCustomPassAfterOriginGraphOptimize",
    "AfterEnginePlacer",
    "PreRunAfterOptimizeSubgraph",
    "PreRunAfterOptimizeGraphBeforeBuild",
    "AfterAssignResource",
    "Build",
    "PreRunAfterBuild",
]
WHITELIST = {
    "PreRunBegin",
    "PreRunAfterNormalizeGraph",
    "AfterInfershape",
    "PreRunAfterPrepare",
    "PreRunAfterOptimizeOriginalGraph",
    "PreRunAfterOptimizeAfterStage1",
    "PreRunAfterOptimizeSubgraph",
    "PreRunAfterOptimizeGraphBeforeBuild",
    "Build",
}


@pytest.fixture(autouse=True)
def work_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("DUMP_GRAPH_LEVEL", "DUMP_GRAPH_FORMAT", "DUMP_GRAPH_PATH", "ASCEND_WORK_PATH", "NPU_COLLECT_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("DUMP_GE_GRAPH", "3")
    return tmp_path


def compile_it(model: Path) -> None:
    atc.compile_model(model, framework=5, soc_version="Ascend310P3", precision_mode_v2="origin")


def stages(kind: str, folder: str = ".") -> list[str]:
    """The stages of the files of one kind in the order of their numbers, which must be dense."""
    found = [re.fullmatch(rf"{kind}_(\d{{8}})_graph_0_(.*)\.\w+", name) for name in sorted(os.listdir(folder))]
    matches = [match for match in found if match]
    assert [int(match[1]) for match in matches] == list(range(len(matches)))
    return [match[2] for match in matches]


def pipeline_stages() -> list[str]:
    return [step for step in compile_passes() if isinstance(step, str)]


def test_the_pipeline_has_stages_of_ge_in_their_order() -> None:
    assert [stage for stage in GE_STAGES if stage in pipeline_stages()] == pipeline_stages()
    assert pipeline_stages()[0] == "PreRunBegin"
    assert {"PreRunAfterNormalizeGraph", "AfterInfershape", "PreRunAfterPrepare"} < set(pipeline_stages())
    assert pipeline_stages()[-3:] == ["PreRunAfterOptimizeGraphBeforeBuild", "AfterAssignResource", "Build"]


def test_level_1_shows_all_of_them(digits_model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DUMP_GRAPH_LEVEL", "1")
    compile_it(digits_model)
    found = stages("ge_onnx")
    assert [stage for stage in GE_STAGES if stage in found] == found
    assert set(pipeline_stages()) <= set(found)
    assert stages("ge_proto") == found


def test_both_views_of_every_tensor_are_shown(digits_model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By ONNX's own reader: what lies in NC1HWC0 says so, and what it stands for in the model."""
    monkeypatch.setenv("DUMP_GRAPH_LEVEL", "3")
    monkeypatch.setenv("DUMP_GE_GRAPH", "2")
    atc.compile_model(
        digits_model, framework=5, soc_version="Ascend310P3", precision_mode_v2="origin",
        input_fp16_nodes="image", is_input_adjust_hw_layout="true", format_refinement=0,
    )  # fmt: skip
    model = text_format.Parse(Path("ge_onnx_00000000_graph_0_Build.pbtxt").read_text(), onnx.ModelProto())
    found = {}
    for node in model.graph.node:
        attrs = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
        ends = [(side, k) for side in ("input", "output") for k in range(attrs[f"{side}_desc_nums"])]
        for end, k in ends:
            view = [attrs[f"{end}_desc_{field}:{k}"] for field in ("shape", "layout", "origin_shape", "origin_layout")]
            found[node.name, end, k] = tuple(part.decode() if isinstance(part, bytes) else list(part) for part in view)
    blocks = ([1, 1, 8, 8, 16], "NC1HWC0", [1, 1, 8, 8], "NCHW")
    assert found["image", "output", 0] == blocks
    [reader] = [n for n in model.graph.node if "image:0" in n.input]
    assert found[reader.name, "input", list(reader.input).index("image:0")] == blocks
    assert ([1, 1, 8, 8], "NCHW", [1, 1, 8, 8], "NCHW") in found.values()

    binary = text_format.Parse(Path("ge_proto_00000000_graph_0_Build.txt").read_text(), pb.ModelDef())
    [desc] = next(op for op in binary.graph[0].op if op.name == "image").output_desc
    assert (list(desc.shape.dim), desc.layout) == blocks[:2]
    assert (list(desc.attr["origin_shape"].list.i), desc.attr["origin_format"].s) == ([1, 1, 8, 8], b"NCHW")


def test_the_default_is_the_whitelist(digits_model: Path) -> None:
    compile_it(digits_model)
    found = stages("ge_onnx")
    assert [stage for stage in found if "RunCustomPass" not in stage] == [
        stage for stage in pipeline_stages() if stage in WHITELIST
    ]
    assert stages("ge_proto") == found


@pytest.mark.parametrize(
    ("level", "shown"),
    [("3", ["Build"]), ("4", ["PreRunBegin"]), ("Assign|Begin", ["PreRunBegin", "AfterAssignResource"])],
)
def test_filters(level: str, shown: list[str], digits_model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DUMP_GRAPH_LEVEL", level)
    compile_it(digits_model)
    assert stages("ge_onnx") == shown


def test_every_compile_of_a_process_counts_from_zero(digits_model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    contents = []
    for folder in ("first", "second"):
        monkeypatch.setenv("DUMP_GRAPH_PATH", folder)
        monkeypatch.setenv("DUMP_GE_GRAPH", "1")
        compile_it(digits_model)
        (below,) = Path(folder).iterdir()
        assert stages("ge_proto", str(below))[0] == "PreRunBegin"
        contents.append({path.name: path.read_bytes() for path in below.iterdir()})
    assert contents[0] == contents[1]


def test_dumps_do_not_depend_on_hashes(digits_model: Path) -> None:
    root = Path(__file__).resolve().parents[3]
    options = ["--framework=5", "--soc_version=Ascend310P3", "--precision_mode_v2=origin", "--output=digits"]
    contents = []
    for seed in "12":
        given = {"DUMP_GE_GRAPH": "1", "DUMP_GRAPH_FORMAT": "onnx|ge_proto|readable", "PYTHONHASHSEED": seed}
        command = [sys.executable, "-m", "atc.command", f"--model={digits_model}", *options]
        subprocess.run(command, env={**os.environ, **given, "PYTHONPATH": str(root)}, check=True, capture_output=True)
        contents.append({path.name: path.read_bytes() for path in Path().glob("ge_*")})
        for path in Path().glob("ge_*"):
            path.unlink()
    assert len(contents[0]) > 10
    assert contents[0] == contents[1]


def test_the_options_of_the_compile_are_shown(digits_model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DUMP_GE_GRAPH", "2")
    compile_it(digits_model)
    text = next(Path().glob("ge_proto_*_Build.txt")).read_text()
    options = text[text.index('key: "GraphOptions"') :]
    assert re.search(r'key: "ge\.\w*soc\w*"\s+value \{\s+s: "Ascend310P3"', options, re.IGNORECASE)


def test_warnings_reach_the_session(digits_model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("file").write_text("")
    environment = Environment(dump_ge_graph="3", dump_graph_path="file")
    shown: list[str] = []
    session = CompileSession(CompileOptions(precision_mode_v2="origin"), environment, shown.append)
    atc.compiler.compile_source(digits_model, session)
    (warning,) = session.warnings
    assert warning.startswith("graph dumps go to the working directory: file/pid_")
    assert shown == [f"WARNING: {warning}"]


OFF = """
import sys
from ge.dump.dumper import dumper_for
from ge.options import CompileOptions, Environment
from ge.proto import ge_ir_pb2 as pb
from ge.session import CompileSession
from ge.text import parse_graph
from passes.driver import Driver
from passes.pipeline import compile_passes
session = CompileSession(CompileOptions(), Environment())
session.dumper = dumper_for(session.environment, {})
graph = parse_graph("graph g(%x: f32[4]@ND) { %y = Neg(%x) return %y }")
Driver(session).run(graph, compile_passes())
assert session.dumper is None
print({"onnx", "ge.dump.onnx_text", "ge.dump.proto_text", "ge.dump.readable"} & set(sys.modules))
"""


def test_nothing_is_loaded_without_the_switch() -> None:
    root = Path(__file__).resolve().parents[3]
    done = subprocess.run([sys.executable, "-c", OFF], cwd=root, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "set()\n", "")


def test_a_session_without_dumper_looks_at_no_graph() -> None:
    session = CompileSession(CompileOptions(), Environment())
    session.dump(None, "Build")  # type: ignore[arg-type]
