"""`atc graph show`: what it says of a graph."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from atc.command import main
from ge.dump.onnx_text import onnx_text
from ge.dump.proto_text import model_message
from ge.dump.settings import Detail
from ge.text import parse_graph

NET = """
graph net(%second: f32[]@ND {index=1}, %image: f16[-1(1~8),2,4,4]@NCHW | [-1,1,4,4,16]@NC1HWC0 {index=0}) {
  %w = Const {value=f32[2,3]{1, 2, 3, 4, 5, 6}} -> f32[2,3]@ND
  %zeros = Const {value=i64[1000] sha256:DIGEST} -> i64[1000]@ND
  %if:2 = If(%second, %image) {then_branch=@then, else_branch=@else} -> f32[4]@ND, i64[]@ND
  %Node_Output:0 = NetOutput(%if, %if:1)
  return %if as "probability", %if:1 as "count"
}
graph then(%then/x: f16[-1]@ND) { %then/neg = Neg(%then/x) -> f16[4]@ND return %then/neg }
graph else(%else/x: f16[-1]@ND) { return %else/x }
"""


NET = NET.replace("DIGEST", "0f" * 32)


@pytest.fixture(autouse=True)
def work_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def shown(text: str, capsys: pytest.CaptureFixture[str], *options: str) -> str:
    Path("net.txt").write_text(text)
    assert main(["graph", "show", "net.txt", *options]) == 0
    output = capsys.readouterr()
    assert output.err == ""
    return output.out


def test_everything_that_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        shown(NET, capsys)
        == """\
net.txt: graph text
graph net: 6 nodes, 3 nodes in 2 bodies
inputs
  image   f16[-1,1,4,4,16]@NC1HWC0 (origin [-1(1~8),2,4,4]@NCHW)
  second  f32[]@ND
outputs
  if:0  f32[4]@ND  probability
  if:1  i64[]@ND  count
operators
  4  Data
  2  Const
  1  If
  1  Neg
  1  NetOutput
element types
  4  f16
  3  f32
  2  i64
formats
  8  ND
  1  NC1HWC0
stored in another form than the model's
  1  NCHW as NC1HWC0
constants
  2  8,024 bytes (7.8 KiB)
bodies
  then  2 nodes, called by if (If)
  else  1 node, called by if (If)
"""
    )


def test_a_dump_of_links(capsys: pytest.CaptureFixture[str]) -> None:
    graph = parse_graph(NET, {"0f" * 32: np.zeros(1000, np.int64)})
    text = onnx_text(model_message(graph, Detail.LINKS_ONLY), Detail.LINKS_ONLY)
    assert (
        shown(text, capsys)
        == """\
net.txt: ge_onnx dump, links only
graph net: 6 nodes, 3 nodes in 2 bodies
inputs
  second  ?
  image   ?
outputs
  if:0  ?
  if:1  ?
operators
  4  Data
  2  Const
  1  If
  1  Neg
  1  NetOutput
constants
  2  size unknown
bodies
  then  2 nodes
  else  1 node
"""
    )


def test_a_dump_without_net_output_does_not_tell_which_output_is_the_result(capsys: pytest.CaptureFixture[str]) -> None:
    text = "graph g(%x: f32[1]@ND) { %two:2 = A(%x) -> i8[1]@ND, f32[2]@ND return %two:1, %x }"
    assert "outputs\n  two:1  f32[2]@ND\n  x:0    f32[1]@ND\n" in shown(text, capsys)
    dump = onnx_text(model_message(parse_graph(text), Detail.FULL), Detail.FULL)
    assert "outputs\n  two:?  ?\n  x:0    f32[1]@ND\n" in shown(dump, capsys)


def test_an_empty_graph(capsys: pytest.CaptureFixture[str]) -> None:
    assert shown("graph g() { return }", capsys) == "net.txt: graph text\ngraph g: 0 nodes\n"


def test_names_do_not_reach_the_terminal_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    text = shown('graph g(%"a\\u001b[31m\\nb": f32[1]@ND) { %n = "X\\u0007Y" return }', capsys)
    assert "  a?[31m?b  f32[1]@ND\n" in text
    assert "  1  X?Y\n" in text


@pytest.mark.parametrize("detail", [Detail.FULL, Detail.WITHOUT_WEIGHTS])
def test_bytes_of_constants_follow_from_their_shape(detail: Detail, capsys: pytest.CaptureFixture[str]) -> None:
    graph = parse_graph('graph g() { %a = Const {value=i4[5]{1,2,3,4,5}} %b = Const {value=str[1]{"abc"}} return }')
    text = shown(onnx_text(model_message(graph, detail), detail), capsys)
    size = {Detail.FULL: 3 + 16 + 4, Detail.WITHOUT_WEIGHTS: 3}[
        detail
    ]  # of a string: its head and the text with a zero
    assert f"  2  {size} bytes\n" in text
