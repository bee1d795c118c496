"""What docs/data_dump.md says of options, names and acl.json is so."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from atc.run_options import RUN_OPTIONS
from ge.option_table import Status
from simulator.dump_config import parse_dump_config
from simulator.dump_names import MAX_NAME
from simulator.dump_selection import NO_TASK
from simulator.dump_settings import STATISTICS, DumpMode

TEXT = (Path(__file__).resolve().parents[2] / "docs" / "data_dump.md").read_text(encoding="utf-8")


def test_all_options_of_dumps_are_there() -> None:
    told = set(re.findall(r"`--(dump\w*|acl\w*)", TEXT))
    assert told == {name for name, option in RUN_OPTIONS.items() if option.group == "Dump"} - {"dump_npy"}
    assert all(RUN_OPTIONS[name].status is Status.IMPLEMENTED for name in told)


def test_the_configuration_can_be_followed() -> None:
    [example] = re.findall(r'^    (\{"dump": .*\n.*)$', TEXT, re.MULTILINE)
    config = parse_dump_config(example.encode())
    assert config is not None
    settings = config.settings_for("digits", "digits")
    assert settings is not None
    assert (settings.mode, settings.layers, settings.steps) == (DumpMode.ALL, ("relu1",), ((0, 0), (2, 3)))


@pytest.mark.parametrize("name", STATISTICS)
def test_statistics_are_named(name: str) -> None:
    assert f"`{name}`" in TEXT


def test_numbers() -> None:
    assert f"Names of {MAX_NAME + 1} characters and more" in TEXT
    assert str(NO_TASK) in TEXT
