"""Built-in fusions are switched on and off by a file, a list and a level, and counted in fusion_result.json."""

from __future__ import annotations

import json
import os
import shlex
from collections import Counter
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper, parser

import atc
from atc.command import FAILURE, SUCCESS, main
from ge.errors import ReportedError
from ge.fusion_switches import MAX_BYTES
from ge.graph import Graph
from om_format import load
from passes.fusion import fuse_graph
from passes.fusion.fuse_swish import FuseSwish

RUN = (
    "--model=m.onnx --framework=5 --output=m --soc_version=Ascend310P3 --precision_mode_v2=origin --format_refinement=0"
)
SETTINGS = {"soc_version": "Ascend310P3", "precision_mode_v2": "origin", "format_refinement": 0}
NORM, BIAS, SWISH = "ConvBatchnormFusionPass", "ConvBiasaddFusionPass", "SwishFusionPass"
EVERYTHING = {NORM, BIAS, SWISH}

# two convolutions with a norm; two with an addend, of which one is no constant: one of two matches has an effect
MODEL = """net (float[1,2,4,4] x) => (float[1,2,4,4] y)
{
    a = Conv<kernel_shape=[1,1]>(x, w1)
    b = BatchNormalization(a, scale, offset, mean, variance)
    c = Conv<kernel_shape=[1,1]>(b, w2)
    d = BatchNormalization(c, scale, offset, mean, variance)
    e = Relu(d)
    f = Conv<kernel_shape=[1,1]>(e, w3)
    g = Add(f, addend)
    h = Sigmoid(g)
    i = Mul(g, h)
    j = Conv<kernel_shape=[1,1]>(i, w4)
    y = Add(j, x)
}"""
COUNTS = {NORM: (2, 2), BIAS: (2, 1), SWISH: (1, 1)}
"""Matches and effects."""


@pytest.fixture(autouse=True)
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ASCEND_WORK_PATH", raising=False)
    made = parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]>\n{MODEL}')
    shapes = dict.fromkeys(("w1", "w2", "w3", "w4"), (2, 2, 1, 1)) | {"addend": (1, 2, 1, 1)}
    for name, shape in (shapes | dict.fromkeys(("scale", "offset", "mean", "variance"), (2,))).items():
        made.graph.initializer.append(numpy_helper.from_array(rng.uniform(0.5, 1.5, shape).astype(np.float32), name))
    onnx.save(made, "m.onnx")
    return tmp_path / "m.onnx"


def counts() -> dict[str, tuple[int, int]]:
    """Matches and effects that fusion_result.json tells of; without any there is no file."""
    if not Path("fusion_result.json").exists():
        return {}
    groups = json.loads(Path("fusion_result.json").read_text())["session_and_graph_id_0_0"]
    assert groups.keys() == {"graph_fusion"}
    return {name: (int(t["match_times"]), int(t["effect_times"])) for name, t in groups["graph_fusion"].items()}


def types(graph: Graph) -> Counter[str]:
    return Counter(node.type for node in graph if node.type not in ("Data", "Const", "NetOutput"))


def run(arguments: str, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """Compile with the command line; return what it prints."""
    assert main(shlex.split(f"{RUN} {arguments}")) == 0
    lines = capsys.readouterr().out.splitlines()
    assert SUCCESS in lines
    return lines


def as_json(**switches: str) -> str:
    return json.dumps({"Switch": {"GraphFusion": switches}})


def as_lines(**switches: str) -> str:
    return "".join(f"{name}:{value}\n" for name, value in switches.items())


# -- what runs ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("form", [as_json, as_lines])
@pytest.mark.parametrize(
    ("switches", "on"),
    [
        ({}, EVERYTHING),
        ({NORM: "off"}, {BIAS, SWISH}),
        ({NORM: "off", SWISH: "off"}, {BIAS}),
        ({"ALL": "off"}, set()),
        ({"ALL": "off", SWISH: "on"}, {SWISH}),
        ({SWISH: "on", "ALL": "off"}, {SWISH}),
        ({"ALL": "on", SWISH: "off"}, {NORM, BIAS}),
        ({"NobodysFusionPass": "off"}, EVERYTHING),
        ({SWISH.lower(): "off", "all": "off"}, EVERYTHING),
        ({"NobodysFusionPass": "on", "ALL": "off"}, set()),
    ],
)
def test_the_file(form, switches, on, capsys) -> None:
    Path("switches.cfg").write_text(form(**switches) or "\n" + as_lines(NobodysFusionPass="on"))
    run("--fusion_switch_file=switches.cfg", capsys)
    assert counts() == {name: COUNTS[name] for name in on}


@pytest.mark.parametrize(
    "content",
    [
        {"Switch": {"UBFusion": {"ALL": "off", SWISH: "off"}}},
        {"Switch": {"UBFusion": {"ALL": "off"}, "GraphFusion": {"ALL": "on"}}},
        {"Priority": {"Custom": {SWISH: 1}}},
        {},
    ],
)
def test_parts_of_the_file_that_are_not_about_graph_fusions(content, capsys) -> None:
    Path("switches.json").write_text(json.dumps(content))
    run("--fusion_switch_file=switches.json", capsys)
    assert counts() == COUNTS


@pytest.mark.parametrize(
    ("file", "listed", "on"),
    [
        ("", f"{SWISH}:off", {NORM, BIAS}),
        ("", f"{SWISH}:off;{NORM}:off", {BIAS}),
        ("", f" {SWISH} : off ; ; {SWISH}:on", EVERYTHING),
        ("", f"{SWISH.upper()}:off", EVERYTHING),
        (as_lines(**{SWISH: "off"}), f"{SWISH}:on", EVERYTHING),
        (as_json(**{SWISH: "on"}), f"{SWISH}:off", {NORM, BIAS}),
        (as_json(ALL="off"), f"{SWISH}:on", {SWISH}),
        (as_json(ALL="off", **{NORM: "on"}), f"{SWISH}:on;{NORM}:off", {SWISH}),
        # ALL is a word of the file; in the list it is a name like any other, which no pass has
        ("", "ALL:off", EVERYTHING),
    ],
)
def test_the_list_beats_the_file(file, listed, on, capsys) -> None:
    if file:
        Path("switches.cfg").write_text(file)
    run(f"--optimization_switch='{listed}' {'--fusion_switch_file=switches.cfg' if file else ''}", capsys)
    assert counts() == {name: COUNTS[name] for name in on}


@pytest.mark.parametrize("item", ["SwishFusionPass", "SwishFusionPass:OFF", ":off", "SwishFusionPass:off:", "=off"])
def test_odd_items_of_the_list_are_left_out_with_a_warning(item, capsys) -> None:
    lines = run(f"--optimization_switch='{NORM}:off;{item}'", capsys)
    assert f"WARNING: --optimization_switch: '{item}' is left out; expected Name:on or Name:off" in lines
    assert counts().keys() == {BIAS, SWISH}


@pytest.mark.parametrize(
    ("file", "arguments", "on"),
    [
        ("", "--oo_level=O3", EVERYTHING),
        ("", "--oo_level=O1", set()),
        ("", f"--oo_level=O1 --optimization_switch={SWISH}:on", {SWISH}),
        (as_json(**{SWISH: "on"}), "--oo_level=O1", {SWISH}),
        (as_json(**{SWISH: "on"}), f"--oo_level=O1 --optimization_switch={SWISH}:off", set()),
        (as_lines(ALL="on"), "--oo_level=O1", set()),
    ],
)
def test_level_one_leaves_those_that_are_named(file, arguments, on, capsys) -> None:
    if file:
        Path("switches.cfg").write_text(file)
    run(f"{arguments} {'--fusion_switch_file=switches.cfg' if file else ''}", capsys)
    assert counts() == {name: COUNTS[name] for name in on}


def test_what_is_off_leaves_the_graph_as_it_was(capsys) -> None:
    run("", capsys)
    assert types(load("m.om").graph) == {"Conv2D": 4, "Relu": 1, "Swish": 1, "Add": 1}
    as_written = {"Conv2D": 4, "BatchNorm": 2, "Relu": 1, "Add": 2, "Sigmoid": 1, "Mul": 1}
    Path("switches.cfg").write_text("ALL:off")
    for arguments in ("--oo_level=O1", "--fusion_switch_file=switches.cfg"):
        run(arguments, capsys)
        assert types(load("m.om").graph) == as_written


def test_a_fusion_that_is_needed_goes_by_its_own_name_only(capsys, monkeypatch) -> None:
    class Needed(FuseSwish):
        name = "NeededFusionPass"
        is_closable = False

    monkeypatch.setattr(fuse_graph, "BUILTIN_FUSIONS", (Needed,))
    Path("all.json").write_text(as_json(ALL="off"))
    Path("own.json").write_text(as_json(NeededFusionPass="off"))
    for arguments, times in [
        ("--oo_level=O1", 1),
        ("--fusion_switch_file=all.json", 1),
        ("--fusion_switch_file=own.json", 0),
        ("--optimization_switch=NeededFusionPass:off", 0),
    ]:
        Path("fusion_result.json").unlink(missing_ok=True)
        run(arguments, capsys)
        assert counts() == ({"NeededFusionPass": (1, 1)} if times else {}), arguments


def test_a_program_gives_switches_as_it_likes(model) -> None:
    Path("switches.json").write_text(as_json(ALL="off"))
    listed = [{SWISH: "on"}, [f"{SWISH}:on"], f"{SWISH}:on"]
    for switches in listed:
        made = atc.compile_model(
            model, fusion_switch_file=Path("switches.json"), optimization_switch=switches, **SETTINGS
        )
        assert types(made.graph) == {"Conv2D": 4, "BatchNorm": 2, "Relu": 1, "Add": 2, "Swish": 1}
    assert not Path("fusion_result.json").exists()


# -- counts ------------------------------------------------------------------------------------------------------------
def test_the_file_of_counts(capsys) -> None:
    """Keys in order, numbers as texts, and no fusion that found nothing."""
    run("", capsys)
    assert (
        Path("fusion_result.json").read_text()
        == """{
    "session_and_graph_id_0_0": {
        "graph_fusion": {
            "ConvBatchnormFusionPass": {
                "effect_times": "2",
                "match_times": "2"
            },
            "ConvBiasaddFusionPass": {
                "effect_times": "1",
                "match_times": "2"
            },
            "SwishFusionPass": {
                "effect_times": "1",
                "match_times": "1"
            }
        }
    }
}
"""
    )


def test_counts_are_those_of_the_last_compile(capsys) -> None:
    for _ in range(2):
        run("", capsys)
        assert counts() == COUNTS
    run("--oo_level=O1", capsys)
    assert json.loads(Path("fusion_result.json").read_text()) == {}


# -- files that cannot be used -----------------------------------------------------------------------------------------
NO_FILE = {"none": "the file does not exist", "folder": "it is a directory, not a file", "empty": "the file is empty"}
NO_SWITCHES = {
    f"{SWISH} off\n": f"line 1 is '{SWISH} off'; expected Name:on or Name:off",
    f"\n\n{SWISH}:no\n": f"line 3 is '{SWISH}:no'; expected Name:on or Name:off",
    '{"Switch": {"GraphFusion": {"ALL": "off"}}': "it is not JSON: Expecting ',' delimiter: line 1 column 43",
    '{"GraphFusion": {"ALL": "off"}}': "the file has the key 'GraphFusion'; expected Switch or Priority",
    '{"Switch": {"Graph": {}}}': "Switch has the key 'Graph'; expected GraphFusion or UBFusion",
    '{"Switch": {"GraphFusion": {"ALL": false}}}': "GraphFusion: ALL is False; expected 'on' or 'off'",
    '{"Switch": {"GraphFusion": ["ALL"]}}': "GraphFusion must map names of passes to 'on' or 'off', not be list",
    '["ALL"]': "the file must hold an object with the keys Switch and Priority, not list",
    "x" * (MAX_BYTES + 1): f"it is larger than {MAX_BYTES} bytes",
}


@pytest.mark.parametrize("name", NO_FILE)
def test_files_that_cannot_be_read(name, capsys) -> None:
    Path("folder").mkdir()
    Path("empty").touch()
    error = failure(f"--fusion_switch_file={name}", capsys)
    assert error.startswith("E21001: ")
    assert f"[{name}]" in error
    assert NO_FILE[name] in error


@pytest.mark.parametrize(("content", "reason"), NO_SWITCHES.items(), ids=range(len(NO_SWITCHES)))
def test_files_that_say_something_else(content, reason, capsys) -> None:
    Path("switches.cfg").write_text(content)
    error = failure("--fusion_switch_file=switches.cfg", capsys)
    assert error.startswith("E20003: ")
    assert "[switches.cfg]" in error
    assert reason in error
    with pytest.raises(ReportedError, match="E20003"):
        atc.compile_model("m.onnx", fusion_switch_file="switches.cfg", **SETTINGS)


@pytest.mark.parametrize("level", ["O0", "O2", "o1", "1"])
def test_levels_that_there_are_not(level, capsys) -> None:
    error = failure(f"--oo_level={level}", capsys)
    assert error.startswith(f"E10001: Value [{level}] for parameter [--oo_level]")
    assert "O1" in error
    assert "O3" in error


def failure(arguments: str, capsys: pytest.CaptureFixture[str]) -> str:
    """Compile what cannot be compiled; nothing is written, and older files stay."""
    Path("fusion_result.json").write_text("old")
    before = sorted(os.listdir())
    assert main(shlex.split(f"{RUN} {arguments}")) == 255
    output = capsys.readouterr()
    lines = output.out.splitlines()
    assert SUCCESS not in lines
    assert "Traceback" not in output.out + output.err
    assert sorted(os.listdir()) == before
    assert Path("fusion_result.json").read_text() == "old"
    return "\n".join(lines[lines.index(FAILURE) + 1 :])
