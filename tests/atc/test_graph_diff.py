"""`atc graph diff`: what it says, how much of it, and its exit status."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from atc import graph_command
from atc.command import FAILURE, START, main
from ge.dump.onnx_text import onnx_text
from ge.dump.proto_text import model_message, proto_text
from ge.dump.settings import Detail
from ge.text import parse_graph

ROOT = Path(__file__).resolve().parents[2]
BEFORE = """
graph net(%x: f32[1,3,8,8]@NCHW, %go: bool[]@ND) {
  %w = Const {value=f32[2]{0.5, -1.0}} -> f32[2]@ND
  %scale = Const {value=f32[1]{2}} -> f32[1]@ND
  %conv = Conv2D(%x, %w) {pads=[0,0,0,0], strides=[1,1,1,1], data_format="NCHW"} -> f32[1,2,8,8]@NCHW
  %bn = BatchNorm(%conv, %scale) {epsilon=0.001} -> f32[1,2,8,8]@NCHW
  %relu = Relu(%bn) -> f32[1,2,8,8]@NCHW
  %gate = Mul(%relu, %scale) ctrl(%go) -> f32[1,2,8,8]@NCHW
  %if = If(%go, %gate) {then_branch=@then, else_branch=@else} -> f32[4]@ND
  %out:0 = NetOutput(%if)
  return %if as "y"
}
graph then(%then/x: f32[4]@ND) { %then/neg = Neg(%then/x) -> f32[4]@ND return %then/neg }
graph else(%else/x: f32[4]@ND) { return %else/x }
"""
AFTER = """
graph net(%x: f32[1,3,8,8]@NCHW, %go: bool[]@ND) {
  %folded = Const {value=f32[2]{1.5, -3.0}} -> f32[2]@ND
  %scale = Const {value=f32[1]{2}} -> f32[1]@ND
  %cast = Cast(%x) {dst_type=1} -> f16[1,3,8,8]@NCHW
  %conv = Conv2DV2(%cast, %folded) {pads=[1,1,1,1], strides=[1,1,1,1], groups=1}
    -> f16[1,2,8,8]@NCHW | [1,1,8,8,16]@NC1HWC0
  %relu = Relu(%conv) -> f32[1,2,8,8]@NCHW
  %gate = Mul(%relu, %scale) -> f32[1,2,8,8]@NCHW
  %if = If(%go, %gate) {then_branch=@yes, else_branch=@else} -> f32[4]@ND
  %out:0 = NetOutput(%if)
  return %if as "z"
}
graph yes(%yes/x: f32[4]@ND) { %yes/neg = Neg(%yes/x) -> f32[4]@ND return %yes/neg }
graph else(%else/x: f32[4]@ND) { return %else/x }
graph extra(%extra/x: f32[4]@ND) { return %extra/x }
"""


@pytest.fixture(autouse=True)
def work_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(name: str, text: str) -> str:
    Path(name).write_text(text)
    return name


def diff(before: str, after: str, capsys: pytest.CaptureFixture[str], *options: str) -> tuple[int, str]:
    status = main(["graph", "diff", write("a.txt", before), write("b.txt", after), *options])
    output = capsys.readouterr()
    assert output.err == ""
    return status, output.out


def test_everything_that_can_change(capsys: pytest.CaptureFixture[str]) -> None:
    assert diff(BEFORE, AFTER, capsys) == (
        1,
        """\
--- a.txt: graph text
+++ b.txt: graph text

summary
  same           6
  removed        1  BatchNorm
  added          2  Cast, Data
  renamed        3  Const, Data, Neg
  retyped        1  Conv2D -> Conv2DV2
  rewired        3  Conv2DV2, Mul, Relu
  attributes     2  data_format, groups, pads, value
  tensors        1  dtype f32 -> f16, format NCHW -> NC1HWC0, shape
  of the graphs  3

graph net

the graph itself
  names of results: y -> z

removed (1)
  BatchNorm (1)
    - bn

added (1)
  Cast (1)
    + cast

renamed (1)
  Const (1)
    w -> folded

retyped (1)
  Conv2DV2 (1)
    conv  type: Conv2D -> Conv2DV2

rewired (3)
  Conv2DV2 (1)
    conv  input 0: x:0 -> cast:0
  Mul (1)
    gate  runs after: go -> (none)
  Relu (1)
    relu  input 0: bn:0 -> conv:0

attributes (2)
  Const (1)
    folded  value: f32[2]{0.5, -1.0} -> f32[2]{1.5, -3.0}
  Conv2DV2 (1)
    conv
      data_format: "NCHW" -> (none)
      groups: (none) -> 1
      pads: [0, 0, 0, 0] -> [1, 1, 1, 1]

tensors (1)
  Conv2DV2 (1)
    conv
      output 0 dtype: f32 -> f16
      output 0 shape: [1,2,8,8] -> [1,1,8,8,16]
      output 0 format: NCHW -> NC1HWC0

graph yes

the graph itself
  name: then -> yes

renamed (2)
  Data (1)
    then/x -> yes/x
  Neg (1)
    then/neg -> yes/neg

graph extra

the graph itself
  body: (none) -> extra

added (1)
  Data (1)
    + extra/x
""",
    )


def test_the_other_way_round(capsys: pytest.CaptureFixture[str]) -> None:
    status, text = diff(AFTER, BEFORE, capsys)
    assert status == 1
    assert "  removed        2  Cast, Data\n  added          1  BatchNorm\n" in text
    assert "      output 0 format: NC1HWC0 -> NCHW\n" in text


def test_no_difference(capsys: pytest.CaptureFixture[str]) -> None:
    assert diff(BEFORE, BEFORE, capsys) == (
        0,
        "--- a.txt: graph text\n+++ b.txt: graph text\nno difference in 13 nodes\n",
    )


FORM = "graph g(%x: f32[4]@ND) {{ {} return }}"


@pytest.mark.parametrize(
    ("before", "after", "shown"),
    [
        ("%a = Relu(%x)", "%a = Relu", "input 0: x:0 -> (none)"),
        ("%a = Relu(%x, _)", "%a = Relu(%x)", None),
        ("%a:2 = A(%x) %b = Neg(%a)", "%a:2 = A(%x) %b = Neg(%a:1)", "input 0: a:0 -> a:1"),
        ("%a = A ctrl(%x)", "%a = A", "runs after: x -> (none)"),
        ("%a = A {p=1}", "%a = A {p=true}", "p: 1 -> true"),
        ("%a = A {p=1}", '%a = A {p="1"}', 'p: 1 -> "1"'),
        ("%a = A {p=[]}", "%a = A", "p: [] -> (none)"),
        ("%a = A {p=0.1}", "%a = A {p=0.10000000149}", None),
        ("%a = A {p=[[1],[2]]}", "%a = A {p=[[1],[3]]}", "p: [[1], [2]] -> [[1], [3]]"),
        ("%a = A {p=dtype f16}", "%a = A {p=dtype bf16}", "p: DT_FLOAT16 -> DT_BF16"),
        ('%a = A {p=bytes "00"}', '%a = A {p=bytes "ff"}', "p: bytes 00 -> bytes ff"),
        ("%a = A {p=i8[1]{1}}", "%a = A {p=i8[1]{2}}", "p: i8[1]{1} -> i8[1]{2}"),
        ("%a = A {p=desc(i8[1]@ND)}", "%a = A {p=desc(i8[2]@ND)}", "p: desc i8[1]@ND -> desc i8[2]@ND"),
        ('%a = A {p=["a","b"]}', '%a = A {p=["a","c"]}', 'p: ["a", "b"] -> ["a", "c"]'),
        ("%a = A -> f32[1]@ND", "%a = A -> f16[1]@ND", "output 0 dtype: f32 -> f16"),
        ("%a = A -> f32[-1(1~4)]@ND", "%a = A -> f32[-1(1~8)]@ND", "output 0 shape: [-1(1~4)] -> [-1(1~8)]"),
        ("%a = A -> f32[1]@ND", "%a = A -> f32[1]@NCHW", "output 0 format: ND -> NCHW"),
        ("%a = A -> f32[1]@ND", "%a = A -> f32[1]@ND | [1]@NCL", "output 0 format: ND -> NCL"),
        ("%a = A -> f32[2]@NCHW | [1]@ND", "%a = A -> f32[3]@NCHW | [1]@ND", "output 0 origin shape: [2] -> [3]"),
        ("%a = A -> f32[1]@ND{k=1}", "%a = A -> f32[1]@ND{k=2}", "output 0 k: 1 -> 2"),
        ("%a = A -> f32[1]@ND", "%a:2 = A -> f32[1]@ND, i8[]@ND", "output 1: (none) -> i8[]@ND"),
        ("%a = A %b = B", "%b = B %a = A", None),
        ("%a = A return %a } graph b() {", "%a = A return %x } graph b() {", "result 0: a:0 -> x:0"),
        ("return %x } graph b() {", "%o:0 = NetOutput(%x) return } graph b() {", "+ o"),
    ],
)
def test_single_changes(before: str, after: str, shown: str | None, capsys: pytest.CaptureFixture[str]) -> None:
    status, text = diff(FORM.format(before), FORM.format(after), capsys)
    assert status == (0 if shown is None else 1)
    assert "no difference in" in text if shown is None else f"  {shown}\n" in text


def test_long_values_are_shown_where_they_part(capsys: pytest.CaptureFixture[str]) -> None:
    one, other = (FORM.format(f'%a = A {{p="{"x" * 100}{end}{"y" * 100}"}}') for end in "12")
    _, text = diff(one, other, capsys)
    start, rest = "x" * 20, "y" * 39
    assert f"    a  p: ...{start}1{rest}... -> ...{start}2{rest}...\n" in text
    _, text = diff(one, other, capsys, "--all")
    assert f'"{"x" * 100}1{"y" * 100}" -> "{"x" * 100}2{"y" * 100}"' in text


def many(prefix: str, pads: int) -> str:
    """5,000 nodes of 20 types; all of them are renamed, all Conv2D have other attributes."""
    lines = ["%n0 = Neg(%x)"]
    for i in range(1, 5000):
        kind = "Conv2D" if i % 2 else f"Type{i % 20}"
        lines.append(f"%{prefix}{i} = {kind}(%{prefix if i > 1 else 'n'}{i - 1}) {{pads=[{pads if i % 2 else 0}]}}")
    return FORM.format("\n".join(lines))


def test_5000_nodes_are_summed_up(capsys: pytest.CaptureFixture[str]) -> None:
    status, text = diff(many("a", 1), many("b", 2), capsys)
    lines = text.splitlines()
    assert status == 1
    assert len(lines) < 70
    assert "  same            2" in lines
    assert "  attributes  2,500  pads 2,500" in lines
    assert "attributes (2,500)" in lines
    assert "    ... 2,497 more nodes (--all)" in lines
    _, text = diff(many("a", 1), many("b", 2), capsys, "--all")
    assert text.count("pads: [1] -> [2]\n") == 2500
    assert "more nodes" not in text


def test_what_one_file_does_not_tell_is_not_compared(capsys: pytest.CaptureFixture[str]) -> None:
    before, after = parse_graph(BEFORE), parse_graph(AFTER)
    texts = [onnx_text(model_message(graph, Detail.LINKS_ONLY), Detail.LINKS_ONLY) for graph in (before, after)]
    _, text = diff(texts[0], AFTER, capsys)
    assert "compared: names, types and edges; one file has no attributes\n" in text
    assert "attributes (" not in text
    assert "tensors (" not in text
    assert diff(texts[1], AFTER, capsys)[0] == 0


def test_results_of_dumps_before_there_is_a_net_output(capsys: pytest.CaptureFixture[str]) -> None:
    text = "graph g(%x: f32[1]@ND) {{ %two:2 = A(%x) -> f32[1]@ND, f32[1]@ND {} return {} }}"
    graph = parse_graph(text.format("", "%two:1, %x, %two"))
    dump = onnx_text(model_message(graph, Detail.FULL), Detail.FULL)
    assert diff(dump, text.format("", "%two:1, %x, %two"), capsys)[0] == 0
    status, shown = diff(dump, text.format("%out:0 = NetOutput(%two:1, %x, %two)", ""), capsys)
    assert (status, "result" in shown) == (1, False)
    status, shown = diff(dump, text.format("", "%x, %two"), capsys)
    assert (status, "result 0: two -> x\n" in shown) == (1, True)


def test_constants_without_data_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    graph = parse_graph(BEFORE)
    text = proto_text(model_message(graph, Detail.WITHOUT_WEIGHTS), Detail.WITHOUT_WEIGHTS)
    status, text = diff(text, BEFORE.replace("{0.5, -1.0}", "{0.5, -2.0}"), capsys)
    assert status == 0
    assert "not compared: the data of 2 constants, which one of the files does not hold\n" in text


# -- the command -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["show"], "Missing argument 'FILE'"),
        (["show", "none.om"], "E13026: The path [none.om] is invalid."),
        (["diff", "a"], "Missing argument 'B'"),
        (["diff", "--none", "a", "b"], "No such option"),
        (["diff", "good.txt", "bad.txt"], "E13005: The file [bad.txt] cannot be parsed as a model."),
        (["show", "good.txt", "--html", "good.txt/page"], "E13004: The file [good.txt/page] cannot be written."),
        (["draw", "a"], "No such command 'draw'"),
        (["show", "twice.pbtxt"], "E13005: The file [twice.pbtxt] cannot be parsed as a model. Reason: two nodes"),
        (["show", "good.txt", "--input-shape", "x:1,"], "E10014"),
    ],
)
def test_errors_have_status_2(arguments: list[str], text: str, capsys: pytest.CaptureFixture[str]) -> None:
    write("good.txt", "graph g() { return }")
    write("bad.txt", "graph g(")
    write("twice.pbtxt", 'graph { op { name: "n" type: "A" } op { name: "n" type: "A" } }')
    if "--input-shape" in arguments:
        arguments[1] = str(ROOT / "models/digits/digits.onnx")
    assert main(["graph", *arguments]) == 2
    assert text in capsys.readouterr().err


def test_a_fault_of_the_program_has_status_2_too(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(graph_command, "_print", lambda lines: 1 / 0)
    write("good.txt", "graph g() { return }")
    assert main(["graph", "show", "good.txt"]) == 2
    text = capsys.readouterr().err
    assert "E19999: Internal Error!" in text
    assert "Traceback" not in text


@pytest.mark.parametrize("arguments", [["--help"], ["diff", "-h"], ["show", "--help"]])
def test_help(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["graph", *arguments]) == 0
    assert "atc graph" in capsys.readouterr().out


def test_help_says_what_the_status_means(capsys: pytest.CaptureFixture[str]) -> None:
    main(["graph", "diff", "--help"])
    assert "0 if nothing has changed, 1 if something has, 2 for errors" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("arguments", [["--log=null", "graph"], ["Graph"], ["show", "graph"], ["--", "graph"]])
def test_elsewhere_the_word_is_a_stray_argument(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 255
    output = capsys.readouterr()
    assert output.out.splitlines()[:2] == [START, FAILURE]
    assert "is not an option; options begin with '--'" in output.err


def test_a_closed_pipe_ends_it_quietly() -> None:
    write("a.txt", many("a", 1))
    write("b.txt", many("b", 2))
    command = f"{sys.executable} -m atc.command graph diff a.txt b.txt --all | head -1"
    done = subprocess.run(
        ["bash", "-c", command],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert (done.stdout, done.stderr) == ("--- a.txt: graph text\n", "")


def on_a_terminal(*arguments: str) -> str:
    """What the command writes to a terminal."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm-256color", "COLUMNS": "40"}
    environment.pop("NO_COLOR", None)
    process = subprocess.Popen(
        [sys.executable, "-m", "atc.command", "graph", *arguments], stdout=theirs, stderr=theirs, env=environment
    )
    os.close(theirs)
    found = bytearray()

    def read() -> None:
        try:
            while block := os.read(ours, 4096):
                found.extend(block)
        except OSError:
            return  # Linux: the other end was closed

    reader = threading.Thread(target=read)
    reader.start()
    process.wait(60)
    reader.join(60)
    os.close(ours)
    return found.decode().replace("\r\n", "\n")


def test_colours_on_a_terminal_only(capsys: pytest.CaptureFixture[str]) -> None:
    _, plain = diff(BEFORE, AFTER, capsys)
    assert "\x1b" not in plain
    coloured = on_a_terminal("diff", "a.txt", "b.txt")
    assert "\x1b[31m    - bn\x1b[0m\n" in coloured
    assert "\x1b[32m    + cast\x1b[0m\n" in coloured
    assert "      pads: [0, 0, 0, 0] -> [1, 1, 1, 1]\n" in coloured  # longer lines are not broken either


@pytest.mark.parametrize(("extra", "expected"), [("", "renamed (1)"), (", _other=2", "attributes (1)")])
def test_the_names_of_origin_of_a_renamed_node_are_no_further_change(tmp_path, capsys, extra, expected) -> None:
    text = """graph g(%x: f32[4]@ND) {
  %NAME = Relu(%x) {_datadump_original_op_names=["NAME"]EXTRA} -> f32[4]@ND
  %y = Neg(%NAME) -> f32[4]@ND
  return %y
}"""
    paths = [tmp_path / "a.txt", tmp_path / "b.txt"]
    paths[0].write_text(text.replace("NAME", "one").replace("EXTRA", ""))
    paths[1].write_text(text.replace("NAME", "two").replace("EXTRA", extra))
    assert main(["graph", "diff", *map(str, paths)]) == 1
    told = capsys.readouterr().out
    assert expected in told
    assert "original_op_names" not in told
    assert ("attributes" in told) is bool(extra)
