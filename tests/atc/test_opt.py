"""``ge-opt``: passes named on the command line, and what is printed between and behind them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from atc import opt
from atc.opt import main
from ge.text import parse_graph
from passes.pipeline import named_passes

GRAPH = """graph g(%x: f32[2]@ND) {
  %a = Identity(%x) -> f32[2]@ND
  %unread = Relu(%x) -> f32[2]@ND
  %y = Neg(%a) -> f32[2]@ND
  return %y
}"""


@pytest.fixture
def source(tmp_path: Path) -> str:
    path = tmp_path / "g.txt"
    path.write_text(GRAPH)
    return str(path)


def types(text: str) -> set[str]:
    return {node.type for node in parse_graph(text)} - {"Data"}


def printed(source: str, capsys: pytest.CaptureFixture[str], *options: str) -> str:
    assert main([source, *options]) == 0
    return capsys.readouterr().out


def test_passes_run_in_the_order_given(source: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert types(printed(source, capsys)) == {"Identity", "Relu", "Neg"}
    assert types(printed(source, capsys, "--passes", "remove-identity")) == {"Relu", "Neg"}
    assert types(printed(source, capsys, "--passes", "remove-identity,remove-dead-nodes", "--verify-each")) == {"Neg"}


def test_print_after_shows_each_pass_that_changed_something(source: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(source, capsys, "--passes", "infer-shape,remove-identity,remove-dead-nodes", "--print-after")
    steps = [part.partition("\n") for part in text.split("# after ")[1:]]
    assert [(name, types(graph)) for name, _, graph in steps] == [
        ("remove-identity", {"Relu", "Neg"}),
        ("remove-dead-nodes", {"Neg"}),
    ]


def test_print_after_shows_the_graph_even_if_nothing_has_changed(
    source: str, capsys: pytest.CaptureFixture[str]
) -> None:
    text = printed(source, capsys, "--passes", "infer-shape", "--print-after")
    assert types(text) == {"Identity", "Relu", "Neg"}


def test_times_go_to_stderr_and_say_what_has_changed(source: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([source, "--passes", "infer-shape,remove-identity", "--time-passes"]) == 0
    output = capsys.readouterr()
    rows = [line.split() for line in output.err.splitlines()]
    assert [(row[1:]) for row in rows] == [["ms", "infer-shape"], ["ms", "remove-identity", "changed"]]
    assert types(output.out) == {"Relu", "Neg"}


def test_what_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list"]) == 0
    listed = [line for line in capsys.readouterr().out.splitlines() if not line.startswith("#")]
    assert set(listed) == set(named_passes())
    for name in named_passes():
        assert main(["--explain", name]) == 0
        assert len(capsys.readouterr().out) > 20


@pytest.mark.parametrize(
    ("options", "culprit"),
    [
        (["--passes", "remove-idntity"], "near or known: remove-identity"),
        (["--passes", "remove-identity{depth=3}"], "depth=3"),
        (["--passes", "fold-constants{limit=x}"], "limit=x"),
        (["--passes", "a b"], "a b"),
        (["--explain", "nothing"], "nothing"),
    ],
)
def test_a_pass_that_is_not_there(
    source: str, capsys: pytest.CaptureFixture[str], options: list[str], culprit: str
) -> None:
    assert main([source, *options]) == 1
    message = capsys.readouterr().err
    assert message.startswith("E10001")
    assert culprit in message
    assert "ge-opt --list" in message


@pytest.mark.parametrize(
    ("content", "code", "part"),
    [
        (None, "E13001", "No such file"),
        ("folder", "E13001", "not a regular file"),
        ("pipe", "E13001", "not a regular file"),
        (b"", "E13015", "0 bytes"),
        (b"\x93\xff\x00", "E13005", "byte 0"),
        (b"graph g(%x: f32[2]@ND", "E10001", "line 1, column 22"),
        (b"graph \xff", "E10001", "utf-8"),
        (GRAPH.replace("Neg", "Nag").encode(), "E10001", "node y (Nag): the operator type is not registered"),
        (GRAPH.replace("(%a)", "()").encode(), "E10001", "has 0 inputs"),
    ],
)
def test_sources_that_cannot_be_read(
    content: bytes | str | None, code: str, part: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "source"
    if isinstance(content, bytes):
        path.write_bytes(content)
    elif content == "folder":
        path.mkdir()
    elif content == "pipe":
        if not hasattr(os, "mkfifo"):
            pytest.skip("there are no named pipes")
        os.mkfifo(path)
    assert main([str(path)]) == 1
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.startswith(f"{code}: ")
    assert part in output.err
    assert "        Solution: " in output.err


@pytest.mark.parametrize(
    ("fault", "status", "text"),
    [
        (KeyboardInterrupt, 130, "interrupted"),
        (MemoryError, 1, "E19999: Internal Error!\n        There is not enough memory"),
        (ZeroDivisionError, 1, "ZeroDivisionError in broken"),
    ],
)
def test_faults_of_the_program(
    fault: type[BaseException],
    status: int,
    text: str,
    source: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def broken(*arguments: object) -> None:
        raise fault

    monkeypatch.setattr(opt, "parse_graph", broken)
    assert main([source]) == status
    assert text in capsys.readouterr().err


CUSTOM = '''from ge.es.all import Abs, Relu
from ge.passes import (DecomposePass, FusionBasePass, PassStage, PatternFusionPass, pattern, register_decompose_pass,
                       register_fusion_pass)


@register_fusion_pass(name="Pairs", stage=PassStage.AFTER_INFER_SHAPE)
class Pairs(PatternFusionPass):
    """Two become one."""

    @pattern
    def a(self, inputs):
        return Relu(Abs(inputs[0]))

    def replacement(self, inputs):
        return Abs(inputs[0])


@register_decompose_pass(name="Single", stage=PassStage.BEFORE_INFER_SHAPE, op_types=["Neg", "Abs"])
class Single(DecomposePass):
    def replacement(self, node):
        return None


@register_fusion_pass(name="Whole", stage=PassStage.BEFORE_INFER_SHAPE)
class Whole(FusionBasePass):
    """Looks at all."""

    def run(self, graph, context):
        return None


@register_fusion_pass(name="Faulty", stage=PassStage.BEFORE_INFER_SHAPE)
class Faulty(PatternFusionPass):
    def patterns(self):
        return 1 / 0

    def replacement(self, match_result):
        return None
'''


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("Pairs", ["custom pass Pairs: a PatternFusionPass, stage AfterInferShape", "Two become one.", "= Relu(%Abs"]),
        ("Single", ["a DecomposePass, stage BeforeInferShape", "It looks for nodes of the types Neg, Abs."]),
        ("Whole", ["a FusionBasePass, stage BeforeInferShape", "Looks at all."]),
    ],
)
def test_custom_passes_are_explained(tmp_path: Path, capsys: pytest.CaptureFixture[str], name, parts) -> None:
    (tmp_path / "p.py").write_text(CUSTOM)
    assert main(["--explain", name, f"--load={tmp_path / 'p.py'}"]) == 0
    told = capsys.readouterr().out
    for part in parts:
        assert part in told


def test_a_custom_pass_whose_patterns_fail_cannot_be_explained(tmp_path: Path, capsys) -> None:
    (tmp_path / "p.py").write_text(CUSTOM)
    assert main(["--explain", "Faulty", f"--load={tmp_path / 'p.py'}"]) == 1
    told = capsys.readouterr().err
    assert "E13028: The custom pass [Faulty]" in told
    assert "ZeroDivisionError" in told
