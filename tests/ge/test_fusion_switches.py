"""Switch files and switch lists: case 29 of the reference, as far as texts are read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ge.errors import ReportedError
from ge.fusion_switches import MAX_BYTES, FusionSwitches, parse_switch_list, read_switch_file

JSON = {"Switch": {"GraphFusion": {"ALL": "off", "MyPass": "on"}, "UBFusion": {"ALL": "off"}}}


def read(tmp_path: Path, content: str | bytes) -> tuple[dict[str, bool], dict[str, bool]]:
    path = tmp_path / "switches.cfg"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    graph, loops = read_switch_file(str(path))
    return dict(graph), dict(loops)


def test_json(tmp_path) -> None:
    assert read(tmp_path, json.dumps(JSON)) == ({"ALL": False, "MyPass": True}, {"ALL": False})


@pytest.mark.parametrize(
    "content", [{}, {"Switch": {}}, {"Switch": {"GraphFusion": {}}}, {"Priority": {"any": ["thing"]}}]
)
def test_parts_may_be_missing(tmp_path, content) -> None:
    assert read(tmp_path, json.dumps(content)) == ({}, {})


def test_lines(tmp_path) -> None:
    """GE reads this form for built-in fusions only; for custom passes it would turn all on, with a warning."""
    text = "APass:off\n\n  B.Pass : on \r\nName:with:colons:off\nALL:off\nAPass:on\n"
    expected = {"APass": True, "B.Pass": True, "Name:with:colons": False, "ALL": False}
    assert read(tmp_path, text) == (expected, {})


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("APass:off\nBPass\n", "line 2 is 'BPass'; expected Name:on or Name:off"),
        ("APass:ON\n", "line 1 is 'APass:ON'"),
        (":on\n", "line 1"),
        ('{"Switch": }', "it is not JSON: Expecting value: line 1 column 12"),
        ("[" * 100_000, "it is not JSON"),
        (f'{{"Switch": {"1" * 10_000}}}', "it is not JSON"),
        ("[]", "the file must hold an object with the keys Switch and Priority, not list"),
        ('{"Swich": {}}', "the file has the key 'Swich'; expected Switch or Priority"),
        ('{"Switch": []}', "Switch must hold an object with the keys GraphFusion and UBFusion, not list"),
        ('{"Switch": {"Graph": {}}}', "Switch has the key 'Graph'; expected GraphFusion or UBFusion"),
        ('{"Switch": {"GraphFusion": []}}', "GraphFusion must map names of passes to 'on' or 'off', not be list"),
        ('{"Switch": {"UBFusion": {"A": true}}}', "UBFusion: A is True; expected 'on' or 'off'"),
        ('{"Switch": {"GraphFusion": {"A": "ON"}}}', "GraphFusion: A is 'ON'; expected 'on' or 'off'"),
        (b"\xff\xfe", "it is not UTF-8 text"),
        (b"x" * (MAX_BYTES + 1), "it is larger than"),
    ],
)
def test_quirk_contents_that_are_not_understood_stop_the_compile(tmp_path, content, reason) -> None:
    """GE's reader for custom passes warns of broken JSON and runs them all, its reader for built-in fusions fails."""
    with pytest.raises(ReportedError, match="E20003") as fault:
        read(tmp_path, content)
    assert reason in fault.value.message


@pytest.mark.parametrize("content", ["", " \n\t"])
def test_an_empty_file(tmp_path, content) -> None:
    with pytest.raises(ReportedError, match=r"E21001.*the file is empty"):
        read(tmp_path, content)


def test_a_file_that_is_not_there(tmp_path) -> None:
    with pytest.raises(ReportedError, match=r"E21001.*No such file"):
        read_switch_file(str(tmp_path / "none.cfg"))
    with pytest.raises(ReportedError, match=r"E21001.*Is a directory"):
        read_switch_file(str(tmp_path))


def test_lists() -> None:
    warnings: list[str] = []
    assert parse_switch_list("A:on;B:off; A : off ;;", warnings.append) == {"A": False, "B": False}
    assert warnings == []
    assert parse_switch_list("A;B:On;C:off", warnings.append) == {"C": False}
    assert [w.split("'")[1] for w in warnings] == ["A", "B:On"]


@pytest.mark.parametrize(
    ("switches", "closable", "other"),
    [
        (FusionSwitches(), True, True),
        (FusionSwitches(graph={"F": False}), False, False),
        (FusionSwitches(graph={"ALL": False}), False, True),
        (FusionSwitches(graph={"ALL": False, "F": True}), True, True),
        (FusionSwitches(is_level_one=True), False, True),
        (FusionSwitches(is_level_one=True, overrides={"F": True}), True, True),
        (FusionSwitches(overrides={"F": False}, graph={"F": True}), False, False),
    ],
)
def test_built_in_fusions(switches, closable, other) -> None:
    assert switches.allows_builtin("F") is closable
    assert switches.allows_builtin("F", is_closable=False) is other
