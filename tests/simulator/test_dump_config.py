"""acl.json: what it may ask for, what is refused, and what becomes of it."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ge.errors import ReportedError
from simulator import DumpMode, DumpSettings, InferSession
from simulator.dump_config import ConfigFault, parse_dump_config, read_dump_config
from simulator.dump_settings import STATISTICS
from simulator.dump_statistics import statistics
from tests.simulator.planned_model import planned
from tests.simulator.test_dump import CHAIN, X, dumps


def parsed(**dump: Any) -> Any:
    return parse_dump_config(json.dumps({"dump": {"dump_path": "out", "dump_list": [], **dump}}).encode())


def test_an_empty_list_asks_for_all_operators_and_their_outputs() -> None:
    for entries in ([], [{}]):
        assert parsed(dump_list=entries).settings_for("any", "any") == DumpSettings("out", DumpMode.OUTPUT)


@pytest.mark.parametrize(
    ("entries", "layers"),
    [
        ([{"model_name": "file", "layer": ["a"]}], ("a",)),
        ([{"model_name": "graph", "layer": ["a"]}], ("a",)),
        ([{"model_name": "graph", "layer": ["a"]}, {"model_name": "file", "layer": ["b"]}], ("b",)),
        ([{"layer": ["c"]}, {"model_name": "file", "layer": ["b", "c"]}], ("c", "b")),
        ([{"model_name": "file"}], ()),
        ([{"model_name": "file"}, {"layer": ["c"]}], ()),
        ([{"model_name": "other"}], None),
    ],
)
def test_entries_of_models(entries: list[dict[str, Any]], layers: tuple[str, ...] | None) -> None:
    settings = parsed(dump_list=entries).settings_for("file", "graph")
    assert (None if settings is None else settings.layers) == layers


def test_files_that_ask_for_no_dump(tmp_path: Path) -> None:
    (tmp_path / "acl.json").write_text("{}")
    assert read_dump_config(str(tmp_path / "acl.json")) is None
    assert InferSession(0, planned(CHAIN), str(tmp_path / "acl.json")).dump_folder is None


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"dump_mode": "both"}, 'dump_mode is "both", it must be one of input, output, all'),
        ({"dump_stats": ["Max"]}, "dump_stats needs dump_data stats"),
        ({"dump_data": "stats", "dump_stats": []}, "dump_stats must not be empty"),
        ({"dump_data": "stats", "dump_stats": ["Median"]}, 'dump_stats holds "Median"'),
        ({"dump_path": ""}, "dump_path must be given"),
        ({"dump_path": None}, "dump_path must be given"),
        ({"dump_path": "x" * 513}, "513 characters"),
        ({"dump_path": "127.0.0.1:/x"}, "names a host"),
        ({"dump_path": "a;b"}, "may hold letters"),
        ({"dump_step": "|".join("1" * 101)}, "101 sets"),
        ({"dump_step": "3-1"}, '"3-1", the first number must be below'),
        ({"dump_step": "1|x"}, 'holds "x"'),
        ({"dump_step": 3}, "must be a text"),
        ({"dump_list": None}, "dump_list must be given"),
        ({"dump_list": ["conv"]}, "must hold objects"),
        ({"dump_list": [{"layers": []}]}, r"dump_list\[0\] has no entry layers"),
        ({"dump_list": [{"layer": "conv"}]}, r"dump_list\[0\].layer must be a list of texts"),
        ({"dump_list": [{"model_name": 5}]}, "model_name must be a text"),
        ({"dump_list": [{"opname_range": [{"begin": "a", "end": "b"}]}], "dump_level": "op"}, "needs model_name"),
        ({"dump_list": [{"model_name": "m", "opname_range": [{"begin": "a", "end": "b"}]}]}, "needs dump_level op"),
        ({"dump_list": [{"model_name": "m", "opname_range": [{"begin": "a"}]}], "dump_level": "op"}, "begin and end"),
        ({"dump_list": [{"optype_blacklist": [{"name": "Add", "pos": ["left"]}]}]}, r"\[0\].pos must list places"),
        ({"dump_list": [{"opname_blacklist": [{"pos": ["input0"]}]}]}, "needs a name"),
        ({"dump_list": [{"watcher_nodes": ["a"]}]}, "needs dump_scene watcher"),
        ({"dump_level": "kernels"}, "dump_level"),
        ({"dump_debug": "on"}, "dump_debug on is known but not implemented"),
        ({"dump_debug": "on", "dump_list": [{"layer": ["a"]}]}, "exclude each other"),
        ({"dump_op_switch": "on"}, "not implemented"),
        ({"dump_scene": "watcher"}, "not implemented"),
        ({"dump_scene": "watcher", "dump_op_switch": "on"}, "excludes"),
        ({"dump_scene": "always"}, "dump_scene"),
        ({"path": "x"}, "no entry path"),
    ],
)
def test_what_cannot_be_followed(change: dict[str, Any], reason: str) -> None:
    with pytest.raises(ConfigFault, match=reason):
        parsed(**change)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"\xff\xfe", "not JSON"),
        (b"[]", "must be a JSON object"),
        (b'{"dump": []}', "dump must be an object"),
        (b'{"profiler": {"switch": "on"}}', "profiler"),
    ],
)
def test_files_that_are_no_configuration(content: bytes, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "acl.json"
    path.write_bytes(content)
    with pytest.raises(ReportedError, match=f"R1046.*acl.json.*{reason}"):
        InferSession(0, planned(CHAIN), str(path))


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ReportedError, match=r"R1046.*No such file"):
        InferSession(0, planned(CHAIN), str(tmp_path / "none"))


# -- what becomes of it ------------------------------------------------------------------------------------------------
def followed(tmp_path: Path, **dump: Any) -> InferSession:
    """A session of the graph `chain` that follows a configuration."""
    path = tmp_path / "acl.json"
    path.write_text(json.dumps({"dump": {"dump_path": str(tmp_path / "out"), "dump_list": [], **dump}}))
    return InferSession(0, planned(CHAIN), str(path), loop=5)


def test_steps_of_a_loop(tmp_path: Path) -> None:
    session = followed(tmp_path, dump_step="0|2-3", dump_mode="all")
    session.infer([X])
    found = dumps(session)
    assert [one.folder.name for one in found] == ["0", "2", "3"]
    assert [one.ops() for one in found] == [["m", "n", "e", "s"]] * 3


def test_ranges_run_from_the_first_to_the_last(tmp_path: Path) -> None:
    entry = {"model_name": "chain", "opname_range": [{"begin": "n", "end": "e"}]}
    session = followed(tmp_path, dump_list=[entry], dump_level="op")
    session.infer([X])
    assert dumps(session)[0].ops() == ["n", "e"]


def test_tensors_on_a_blacklist_are_left_out(tmp_path: Path) -> None:
    entry = {
        "optype_blacklist": [{"name": "Mul", "pos": ["input1"]}],
        "opname_blacklist": [{"name": "e", "pos": ["output0", "input0"]}],
    }
    session = followed(tmp_path, dump_list=[entry], dump_mode="all")
    session.infer([X])
    [found, *_] = dumps(session)
    kinds = {op: [(t["kind"], t["index"]) for t in found.entries(op)[0]["tensors"]] for op in found.ops()}
    both = [("input", 0), ("output", 0)]
    assert kinds == {"m": both, "n": both, "s": both}


def test_another_model_is_told(caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    session = followed(tmp_path, dump_list=[{"model_name": "other"}])
    session.infer([X])
    assert session.dump_folder is None
    [record] = caplog.records
    assert "asks for the models other, this one is chain" in record.message


def test_statistics_take_the_place_of_tensors(tmp_path: Path) -> None:
    session = followed(tmp_path, dump_data="stats", dump_stats=["Min", "Max", "L2norm"], dump_mode="all")
    session.infer([X])
    [found, *_] = dumps(session)
    assert sorted(path.name for path in found.folder.iterdir() if path.is_file()) == ["manifest.json", "stats.csv"]
    with open(found.folder / "stats.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["op"], row["kind"], row["index"]) for row in rows[:3]] == [
        ("m", "input", "0"),
        ("m", "input", "1"),
        ("m", "output", "0"),
    ]
    assert list(rows[2])[-3:] == ["Min", "Max", "L2norm"]
    assert [float(rows[2][name]) for name in ("Min", "Max")] == [-4, 6]
    assert float(rows[2]["L2norm"]) == pytest.approx(np.sqrt(4 + 16 + 36))


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (np.float32([1, -3, np.nan, np.inf, -np.inf, -np.inf]), (1, -3, -1, 1, 1, 2, 10**0.5)),
        (np.float16([60000, 60000]), (60000, 60000, 60000, 0, 0, 0, 60000 * 2**0.5)),
        (np.array([True, False]), (1, 0, 0.5, 0, 0, 0, 1)),
        (np.uint8([[255]]), (255, 255, 255, 0, 0, 0, 255)),
        (np.float32([np.nan]), ("", "", "", 1, 0, 0, "")),
        (np.float32([]), ("", "", "", 0, 0, 0, "")),
        (np.array(["a"]), ("", "", "", "", "", "", "")),
    ],
)
def test_statistics(values: np.ndarray, expected: tuple[Any, ...]) -> None:
    found = statistics(values)
    assert tuple(found) == STATISTICS
    for name, value in zip(STATISTICS, expected, strict=True):
        assert found[name] == (value if isinstance(value, str) else pytest.approx(value)), name


@pytest.mark.parametrize(
    ("fields", "parameter"),
    [({"mode": "both"}, "mode"), ({"layers": "conv"}, "layers"), ({"stats": ["Mode"]}, "stats")],
)
def test_settings_that_mean_nothing(fields: dict[str, Any], parameter: str) -> None:
    with pytest.raises(ReportedError, match=f"R1001.*{parameter}"):
        DumpSettings("out", **fields)
    assert DumpSettings("out", mode="input").mode is DumpMode.INPUT  # type: ignore[arg-type]
