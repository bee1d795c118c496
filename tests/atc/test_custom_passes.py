"""Custom passes from the command line and from a program: where they come from, what is said, how they fail."""

from __future__ import annotations

import json
import logging
import os
import shlex
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import atc
from atc import plugins, run_command
from atc.command import FAILURE, SUCCESS, main
from ge.errors import ReportedError
from ge.passes import FusionBasePass, PassStage, PatternFusionPass, pattern, register_fusion_pass
from ge.passes.registry import PassRegistry, registering_in
from ge.plugin_files import MAX_BYTES
from om_format import load

# without built-in fusions
B = "--model=m.onnx --framework=5 --output=o/m --soc_version=Ascend310P3 --precision_mode_v2=origin --oo_level=O1"

# replaces one unary operator by another
SWAP = """
from ge.es.all import {old}, {new}
from ge.passes import PassStage, PatternFusionPass, pattern, register_fusion_pass

@register_fusion_pass(name="{name}", stage=PassStage.{stage})
class Swap(PatternFusionPass):
    @pattern
    def found(self, inputs):
        return {old}(inputs[0])

    def replacement(self, inputs):
        return {new}(inputs[0])
"""
# does whatever its body says
RUN = """
from ge.passes import FusionBasePass, PassStage, register_fusion_pass

@register_fusion_pass(name="Culprit", stage=PassStage.{stage})
class Culprit(FusionBasePass):
    def run(self, graph, context):
        {body}
"""


def swap(old: str, new: str, name: str = "Swap", stage: str = "BEFORE_INFER_SHAPE") -> str:
    return SWAP.format(old=old, new=new, name=name, stage=stage)


def body(text: str, stage: str = "BEFORE_INFER_SHAPE") -> str:
    return RUN.format(body=text, stage=stage)


@pytest.fixture(autouse=True)
def work_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("ASCEND_OPP_PATH", "ASCEND_GE_PY_PASS_PATH", "ASCEND_WORK_PATH"):
        monkeypatch.delenv(name, raising=False)
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 3]) for name in "xy")
    nodes = [helper.make_node("Neg", ["x"], ["t"], "neg"), helper.make_node("Relu", ["t"], ["y"], "relu")]
    graph = helper.make_graph(nodes, "net", [x], [y])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), "m.onnx")
    return tmp_path


def write(path: str, text: str) -> str:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(text)
    return path


def vendor(text: str, opp: str = "opp", name: str = "me", file: str = "p.py") -> str:
    return write(f"{opp}/vendors/{name}/custom_fusion_passes/{file}", text)


def run(arguments: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, list[str]]:
    status = main(shlex.split(arguments))
    output = capsys.readouterr()
    assert "Traceback" not in output.out + output.err
    return status, output.out.splitlines()


def types(path: str = "o/m.om") -> Counter[str]:
    return Counter(n.type for n in load(path).graph if n.type not in ("Data", "NetOutput"))


def error(lines: list[str]) -> str:
    """Return the errors that were printed; nothing may have been written."""
    assert SUCCESS not in lines
    assert not list(Path().rglob("*.om"))
    return "\n".join(lines[lines.index(FAILURE) + 1 :])


# -- where passes come from --------------------------------------------------------------------------------------------
def test_a_folder_named_by_the_option(capsys) -> None:
    path = vendor(swap("Neg", "Abs"), "mine")
    status, lines = run(f"{B} --opp=mine", capsys)
    assert status == 0
    assert lines[1] == f"Loaded {path}: custom passes Swap"
    assert types() == {"Abs": 1, "Relu": 1}


def test_a_folder_named_by_the_environment(capsys, monkeypatch) -> None:
    vendor(swap("Neg", "Abs"), "named")
    monkeypatch.setenv("ASCEND_OPP_PATH", "named")
    assert run(B, capsys)[0] == 0
    assert types()["Abs"] == 1


def test_the_option_beats_the_environment(capsys, monkeypatch) -> None:
    vendor(swap("Neg", "Abs"), "one")
    vendor(swap("Neg", "Exp"), "two")
    monkeypatch.setenv("ASCEND_OPP_PATH", "one")
    run(f"{B} --opp=two", capsys)
    assert types() == {"Exp": 1, "Relu": 1}


def test_the_installations_own_folder(capsys, monkeypatch, tmp_path) -> None:
    vendor(swap("Neg", "Abs"), "own")
    monkeypatch.setattr(plugins, "OWN_OPP", tmp_path / "own")
    run(B, capsys)
    assert types()["Abs"] == 1


def test_the_path_list_of_the_environment_comes_last(capsys, monkeypatch) -> None:
    vendor(swap("Neg", "Abs", "B"))
    path = write("list/q.py", swap("Abs", "Exp", "A"))
    monkeypatch.setenv("ASCEND_GE_PY_PASS_PATH", path)
    _, lines = run(f"{B} --opp=opp", capsys)
    assert [line.split(": ")[1] for line in lines[1:3]] == ["custom passes B", "custom passes A"]
    # A runs first, and there is no Abs yet
    assert types() == {"Abs": 1, "Relu": 1}


def test_nothing_is_loaded_from_the_working_directory_by_itself(capsys) -> None:
    vendor(body("raise AssertionError"))
    status, lines = run(B, capsys)
    assert status == 0
    assert "The folder ./opp is not used; --opp=opp would load its passes and operators" in lines
    assert not any("is not used" in line for line in run(f"{B} --opp=./opp", capsys)[1])


def test_files_without_passes_are_said_to_have_none(capsys) -> None:
    path = vendor("x = 1")
    assert f"Loaded {path}: no custom passes" in run(f"{B} --opp=opp", capsys)[1]


def test_a_folder_that_is_not_there(capsys, monkeypatch) -> None:
    status, lines = run(f"{B} --opp=none", capsys)
    assert status == 255
    assert "E10001: Value [none] for parameter [--opp]" in error(lines)
    monkeypatch.setenv("ASCEND_OPP_PATH", "none")
    assert run(B, capsys)[0] == 0


def test_native_passes_are_left_out_with_one_warning(capsys) -> None:
    for name in ("a.so", "b.so"):
        vendor("", file=name)
    vendor(swap("Neg", "Abs"))
    _, lines = run(f"{B} --opp=opp", capsys)
    folder = "opp/vendors/me/custom_fusion_passes"
    warning = f"WARNING: native passes need CANN and are left out: {folder}/a.so, {folder}/b.so"
    assert [line for line in lines if "native" in line] == [warning]
    assert types()["Abs"] == 1


def test_case_36_vendors_and_files_run_by_the_names_of_their_passes(capsys) -> None:
    for name in ("b", "a"):
        for file in ("z", "m"):
            vendor(body("pass").replace("Culprit", f"{name}{file}"), name=name, file=f"{file}.py")
    _, lines = run(f"{B} --opp=opp", capsys)
    assert [line.split()[-1] for line in lines if line.startswith("Loaded")] == ["am", "az", "bm", "bz"]


# -- switches and counts -----------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("content", "arguments", "neg"),
    [
        ('{"Switch": {"GraphFusion": {"Swap": "off"}}}', "", 1),
        ('{"Switch": {"GraphFusion": {"ALL": "off", "Swap": "on"}}}', "", 0),
        ("Swap:off\n", "", 1),
        ("Swap:off\n", "--optimization_switch=Swap:on", 0),
        ('{"Switch": {"UBFusion": {"ALL": "off"}}}', "", 0),
    ],
)
def test_case_29_switch_files(content, arguments, neg, capsys) -> None:
    vendor(swap("Neg", "Abs"))
    write("switches.cfg", content)
    assert run(f"{B} --opp=opp --fusion_switch_file=switches.cfg {arguments}", capsys)[0] == 0
    assert types()["Neg"] == neg
    assert Path("fusion_result.json").exists() is (neg == 0)


@pytest.mark.parametrize(("content", "code"), [("Swap:maybe", "E20003"), ("{", "E20003"), ("", "E21001")])
def test_switch_files_that_cannot_be_used_stop_before_any_work(content, code, capsys) -> None:
    vendor(body("raise AssertionError"))
    write("switches.cfg", content)
    status, lines = run(f"{B} --opp=opp --fusion_switch_file=switches.cfg", capsys)
    assert status == 255
    assert error(lines).startswith(code)
    assert not any(line.startswith("Loaded") for line in lines)


def test_odd_items_of_the_switch_list_are_left_out_with_a_warning(capsys) -> None:
    _, lines = run(f"{B} --optimization_switch='A:on;B'", capsys)
    assert "WARNING: --optimization_switch: 'B' is left out; expected Name:on or Name:off" in lines


@pytest.mark.parametrize("when", ["", "--export_compile_stat=1", "--export_compile_stat=2"])
def test_what_matched_is_counted(when, capsys) -> None:
    vendor(swap("Neg", "Abs"))
    run(f"{B} --opp=opp {when}", capsys)
    assert json.loads(Path("fusion_result.json").read_text()) == {
        "session_and_graph_id_0_0": {"graph_fusion": {"Swap": {"effect_times": "1", "match_times": "1"}}}
    }
    assert Path("fusion_result.json").read_text().splitlines()[1].startswith('    "session')


def test_counts_in_the_work_folder(capsys, monkeypatch) -> None:
    vendor(swap("Neg", "Abs"))
    monkeypatch.setenv("ASCEND_WORK_PATH", "work")
    run(f"{B} --opp=opp", capsys)
    assert Path(f"work/FE/{os.getpid()}/fusion_result.json").exists()
    assert not Path("fusion_result.json").exists()


def test_counts_are_written_only_if_there_are_any_and_asked_for(capsys) -> None:
    run(B, capsys)
    assert not Path("fusion_result.json").exists()
    vendor(swap("Neg", "Abs"))
    run(f"{B} --opp=opp --export_compile_stat=0", capsys)
    assert not Path("fusion_result.json").exists()
    run(f"{B} --opp=opp", capsys)
    run(B, capsys)
    assert json.loads(Path("fusion_result.json").read_text()) == {}


def test_counts_that_cannot_be_written_are_a_warning(capsys) -> None:
    vendor(swap("Neg", "Abs"))
    Path("fusion_result.json").mkdir()
    status, lines = run(f"{B} --opp=opp", capsys)
    assert status == 0
    assert any(line.startswith("WARNING: fusion_result.json is not written") for line in lines)


# -- passes that fail --------------------------------------------------------------------------------------------------
FAULTS = [
    ("raise ValueError('boom')", "run() raised ValueError: boom (opp/vendors/me/custom_fusion_passes/p.py, line 7)"),
    ("return False", "run() returned False"),
    ("context.set_error_message('no weights'); return False", "no weights (run() returned False)"),
    ("return 7", "The custom pass [Culprit] failed with 7."),
    ("return 'x'", "python pass returned unsupported type: str"),
    ("raise SystemExit(0)", "run() raised SystemExit: 0"),
    ("graph.remove_node(graph.find_node_by_name('relu'))", "node Node_Output (NetOutput): result 0 is not connected"),
    ("graph.find_node_by_name('x').set_attr('index', 1)", "it changes the interface"),
    (
        "a, b = graph.find_node_by_name('neg'), graph.find_node_by_name('relu'); graph.add_control_edge(b, a)",
        "cycle: relu -> neg",
    ),
    (
        "graph.remove_edge(graph.find_node_by_name('x'), 0, graph.find_node_by_name('neg'), 0)",
        "input x is not connected",
    ),
    ("graph.find_node_by_name('nobody')", "has no node named nobody"),
    ("raise GeneratorExit('enough')", "run() raised GeneratorExit: enough"),
    ("raise type('Own', (BaseException,), {})('mine')", "run() raised Own: mine"),
    (
        "raise type('Mute', (Exception,), {'__str__': lambda self: 1 / 0})()",
        "run() raised Mute: (its text cannot be made: ZeroDivisionError)",
    ),
    (
        "T = type('T', (str,), {'__format__': None, '__str__': lambda self: self}); "
        "raise type('E', (Exception,), {'__str__': lambda self: T('odd')})()",
        "run() raised E: odd",
    ),
    (
        "context.set_error_message(type('T', (str,), {'__format__': None, '__bool__': None})('odd')); return False",
        "odd (run() returned False)",
    ),
    ("return type('I', (int,), {'__bool__': None, '__eq__': None})(7)", "The custom pass [Culprit] failed with 7."),
    ("graph.remove_node(graph.find_node_by_name('Node_Output'))", "it changes the interface: the NetOutput of graph"),
    ("graph.find_node_by_name('relu').set_attr('note', chr(0xdc80))", "holds half a character"),
    ("graph.find_node_by_name('relu').set_attr(chr(0xdc80), 1)", "holds half a character"),
]


@pytest.mark.parametrize("stage", [stage.name for stage in PassStage])
@pytest.mark.parametrize(("text", "reason"), FAULTS)
def test_a_pass_that_fails_fails_the_compile(text, reason, stage, capsys) -> None:
    vendor(body(text, stage))
    status, lines = run(f"{B} --opp=opp", capsys)
    assert status == 255
    found = error(lines)
    assert found.startswith("E13028: The custom pass [Culprit] failed with")
    assert reason in found
    assert "Solution: Mend the pass" in found
    assert not Path("fusion_result.json").exists()


@pytest.mark.parametrize("stage", ["BEFORE_INFER_SHAPE", "AFTER_ORIGIN_GRAPH_OPTIMIZE"])
@pytest.mark.parametrize(
    "text",
    [
        "import os; os.chdir('/')",
        "import sys; sys.stdout = None",
        "import io, sys; sys.stdout = sys.stderr = io.StringIO()",
        "import sys; sys.setrecursionlimit(100_000)",
    ],
)
def test_what_a_pass_changes_for_the_whole_process_is_put_back(text, stage, capsys) -> None:
    vendor(body(text, stage))
    write("opp/vendors/me/custom_fusion_passes/q.py", text)
    limit, folder = sys.getrecursionlimit(), Path.cwd()
    status, lines = run(f"{B} --opp=opp", capsys)
    assert (status, lines[-1]) == (0, SUCCESS)
    assert Path("o/m.om").is_file()
    assert (sys.getrecursionlimit(), Path.cwd()) == (limit, folder)


def test_an_older_model_is_left_alone(capsys) -> None:
    write("o/m.om", "old")
    vendor(body("return False"))
    assert run(f"{B} --opp=opp", capsys)[0] == 255
    assert Path("o/m.om").read_text() == "old"


def test_a_pass_that_never_ends_its_rewriting(capsys) -> None:
    vendor(swap("Neg", "Neg"))
    found = error(run(f"{B} --opp=opp", capsys)[1])
    assert "The custom pass [Swap] failed" in found
    assert "does the replacement contain its own pattern?" in found


@pytest.mark.parametrize(
    ("text", "code", "reason"),
    [
        ("x = 1\ny = 1 +\n", "E13029", "line 2: SyntaxError: invalid syntax"),
        ("import nowhere_to_be_found", "E13029", "line 1: ModuleNotFoundError"),
        (swap("Neg", "Abs").replace("inputs[0])", "inputs[0]", 1), "E13029", "SyntaxError"),
        (swap("Neg", "Abs").replace("def found", "def run"), "E13029", "overrides run()"),
        (swap("Neg", "Abs", stage="AFTER_ALL"), "E13029", "AFTER_ALL"),
        (
            swap("Neg", "Abs").replace("PassStage.BEFORE_INFER_SHAPE", "'Sometime'"),
            "E13030",
            "[Swap] cannot be registered",
        ),
        (swap("Neg", "Abs", name=""), "E13030", "name must not be empty"),
        (swap("Neg", "Abs", name="\\udc80"), "E13030", "name must be text that a file can hold"),
        (f"raise ValueError('x' * {10**6})", "E13029", "xxx... (1000000 characters)"),
        ("raise GeneratorExit('enough')", "E13029", "line 1: GeneratorExit: enough"),
        ("raise type('Mute', (Exception,), {'__str__': lambda self: 1 / 0})()", "E13029", "line 1: Mute: (its text"),
        (swap("Neg", "Abs") + swap("Neg", "Exp"), "E13030", "python pass name already exists: Swap"),
    ],
)
def test_a_file_that_cannot_be_loaded(text, code, reason, capsys) -> None:
    path = vendor(text)
    status, lines = run(f"{B} --opp=opp", capsys)
    assert status == 255
    found = error(lines)
    assert found.startswith(f"{code}: ")
    assert path in found
    assert reason in found


def test_case_34_one_name_in_two_files(capsys) -> None:
    vendor(swap("Neg", "Abs"), name="a")
    path = vendor(swap("Neg", "Abs"), name="b")
    found = error(run(f"{B} --opp=opp", capsys)[1])
    assert found.startswith("E13030: The custom pass or operator [Swap] cannot be registered.")
    assert path in found


def test_a_file_that_cannot_be_read(capsys) -> None:
    path = Path(vendor(""))
    path.unlink()
    path.symlink_to("nowhere.py")
    found = error(run(f"{B} --opp=opp", capsys)[1])
    assert found.startswith(f"E13029: The plugin file [{path}] cannot be loaded. Reason: FileNotFoundError: ")


def test_what_is_no_file_with_an_end_is_not_read(capsys) -> None:
    path = Path(vendor(""))
    for target in (os.mkfifo, lambda place: place.symlink_to("/dev/zero")):
        path.unlink()
        target(path)
        found = error(run(f"{B} --opp=opp", capsys)[1])
        assert found.startswith(f"E13029: The plugin file [{path}] cannot be loaded. Reason: it is not a regular file")


def test_a_file_beyond_all_bounds(capsys) -> None:
    path = vendor("")
    os.truncate(path, MAX_BYTES + 1)
    found = error(run(f"{B} --opp=opp", capsys)[1])
    assert f"Reason: it has {MAX_BYTES + 1} bytes" in found


def test_a_file_whose_name_is_no_text(capsys) -> None:
    path = Path(vendor(swap("Neg", "Abs")))
    try:
        path.rename(path.with_name(os.fsdecode(b"\xff.py")))
    except OSError:
        pytest.skip("this file system takes text only")
    status, lines = run(f"{B} --opp=opp", capsys)
    assert status == 0
    assert any("\\udcff.py: custom passes Swap" in line for line in lines)


@pytest.mark.parametrize(
    ("name", "reason"),
    [("a.txt", "python pass file must end with .py: a.txt"), ("none.py", "python pass path does not exist: none.py")],
)
def test_case_34_paths_of_the_environment(name, reason, capsys, monkeypatch) -> None:
    write("a.txt", "")
    monkeypatch.setenv("ASCEND_GE_PY_PASS_PATH", name)
    found = error(run(B, capsys)[1])
    assert found.startswith("E13029")
    assert reason in found


def test_a_warning_for_patterns_that_fail(capsys) -> None:
    vendor(swap("Neg", "Abs").replace("return Neg(inputs[0])", "return Neg()"))
    status, lines = run(f"{B} --opp=opp", capsys)
    assert status == 0
    assert any("WARNING: custom pass Swap does nothing: patterns() failed: TypeError" in line for line in lines)
    assert types()["Neg"] == 1


# -- time --------------------------------------------------------------------------------------------------------------
def atc_process(arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "atc.command", *shlex.split(arguments)]
    root = Path(__file__).resolve().parents[2]
    environment = {**os.environ, "PYTHONPATH": str(root)}
    return subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment, check=False)


@pytest.mark.parametrize(
    ("text", "code", "name"),
    [
        (body("while True: graph.find_node_by_name('neg')"), "E13028", "Culprit"),
        ("while True: pass\n", "E13029", "opp/vendors/me/custom_fusion_passes/p.py"),
        # no other thread runs meanwhile
        (body("import re; re.match('(a+)+$', 'a' * 50 + 'b')"), "E13028", "Culprit"),
    ],
    ids=["pass", "file", "regular expression"],
)
def test_what_takes_too_long_is_stopped(text, code, name) -> None:
    vendor(text)
    start = time.monotonic()
    done = atc_process(f"{B} --opp=opp --pass_timeout=1")
    assert done.returncode == 255
    assert time.monotonic() - start < 30
    found = error(done.stdout.splitlines())
    assert found.startswith(f"{code}: ")
    assert f"[{name}]" in found
    assert "it did not end within 1 seconds. It was at" in found
    assert "custom_fusion_passes/p.py, line" in found
    assert "--pass_timeout" in found


def test_a_pass_that_closes_stdout() -> None:
    vendor(body("import sys; sys.stdout.close()"))
    done = atc_process(f"{B} --opp=opp")
    assert done.returncode == 255
    assert done.stderr.startswith("E13004: ")
    assert "a custom pass or operator has closed it" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_pass_that_ends_in_time(capsys) -> None:
    vendor(body("import time; time.sleep(0.2)"))
    assert run(f"{B} --opp=opp --pass_timeout=60", capsys)[0] == 0
    assert run(f"{B} --opp=opp --pass_timeout=0", capsys)[0] == 0


def test_the_limit_is_a_number(capsys) -> None:
    assert "E10003" in error(run(f"{B} --pass_timeout=soon", capsys)[1])
    assert "E10001" in error(run(f"{B} --pass_timeout=9999999999", capsys)[1])


# -- who sees which passes ---------------------------------------------------------------------------------------------
SETTINGS = {"soc_version": "Ascend310P3", "precision_mode_v2": "origin", "oo_level": "O1"}


def test_compiles_of_one_process_share_no_passes() -> None:
    vendor(swap("Neg", "Abs"), "one")
    vendor(swap("Neg", "Exp"), "two")
    found = [atc.compile_model("m.onnx", **SETTINGS, **given) for given in ({"opp": "one"}, {}, {"opp": "two"})]
    first = [next(n.type for n in model.graph if n.type not in ("Data", "Const")) for model in found]
    assert first == ["Abs", "Neg", "Exp"]


def test_a_program_gives_its_own_classes() -> None:
    with registering_in(PassRegistry()):

        @register_fusion_pass(name="Mine", stage=PassStage.AFTER_INFER_SHAPE)
        class Mine(PatternFusionPass):
            @pattern
            def found(self, inputs):
                from ge.es.all import Neg

                return Neg(inputs[0])

            def replacement(self, inputs):
                from ge.es.all import Abs

                return Abs(inputs[0])

    models = [atc.compile_model("m.onnx", passes=passes, **SETTINGS) for passes in ([Mine], [])]
    assert [bool(model.graph.nodes_of_type("Abs")) for model in models] == [True, False]


def test_classes_must_be_registered_and_named_differently() -> None:
    class Bare(FusionBasePass):
        pass

    with pytest.raises(ReportedError, match=r"E13030.*Bare is no registered pass"):
        atc.compile_model("m.onnx", passes=[Bare], **SETTINGS)
    vendor(swap("Neg", "Abs", "Bare"))
    with registering_in(PassRegistry()):
        register_fusion_pass(name="Bare", stage=PassStage.BEFORE_INFER_SHAPE)(Bare)
    with pytest.raises(ReportedError, match=r"E13030.*already exists: Bare"):
        atc.compile_model("m.onnx", passes=[Bare], opp="opp", **SETTINGS)


def test_a_program_is_told_by_the_log(caplog) -> None:
    path = vendor(swap("Neg", "Abs"))
    vendor("", file="native.so")
    with caplog.at_level(logging.INFO, "atc"):
        atc.compile_model("m.onnx", opp="opp", **SETTINGS)
    levels = {record.getMessage(): record.levelname for record in caplog.records}
    assert levels[f"Loaded {path}: custom passes Swap"] == "INFO"
    assert [level for text, level in levels.items() if "native passes need CANN" in text] == ["WARNING"]


def test_a_program_gets_files_only_if_it_asks() -> None:
    vendor(swap("Neg", "Abs"))
    atc.compile_model("m.onnx", opp="opp", **SETTINGS)
    assert not Path("fusion_result.json").exists()
    atc.compile_model("m.onnx", opp="opp", export_compile_stat=1, **SETTINGS)
    assert Path("fusion_result.json").exists()


def test_om_run_loads_no_passes(capsys, monkeypatch) -> None:
    run(B, capsys)
    path = vendor("raise AssertionError('om-run loaded a pass')")
    monkeypatch.setenv("ASCEND_OPP_PATH", "opp")
    monkeypatch.setenv("ASCEND_GE_PY_PASS_PATH", path)
    np.save("x.npy", np.ones((2, 3), np.float32))
    assert run_command.main(["--model=o/m.om", "--input=x.npy"]) == 0


def test_equal_compiles_give_equal_files(capsys) -> None:
    vendor(swap("Neg", "Abs") + swap("Relu", "Exp", "Other", "AFTER_INFER_SHAPE"))
    contents = []
    for _ in range(2):
        assert run(f"{B} --opp=opp", capsys)[0] == 0
        contents.append(Path("o/m.om").read_bytes())
    assert contents[0] == contents[1]
    assert atc_process(f"{B} --opp=opp").returncode == 0
    assert Path("o/m.om").read_bytes() == contents[0]
