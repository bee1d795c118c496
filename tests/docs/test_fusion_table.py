"""docs/architecture.md: its table of built-in fusions lists those that there are."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from ge.fusion_switches import FusionSwitches
from ge.ops import lookup
from passes.fusion.fuse_graph import BUILTIN_FUSIONS
from passes.fusion.graph_fusion import GraphFusion

PAGE = Path(__file__).resolve().parent.parent.parent / "docs" / "architecture.md"
HEADING = "## Built-in fusions (passes/fusion)\n"


@dataclass(frozen=True)
class Row:
    """A line of the table."""

    name: str
    change: str
    left_alone: str
    at_level_one: str
    at_level_three: str


def rows() -> list[Row]:
    section = PAGE.read_text(encoding="utf-8").split(HEADING)[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")][2:]
    return [Row(*(cell.strip() for cell in line.strip("|").split("|"))) for line in lines]


def test_all_fusions_are_listed_in_the_order_in_which_they_run() -> None:
    assert [row.name for row in rows()] == [fusion.name for fusion in BUILTIN_FUSIONS]


@pytest.mark.parametrize("fusion", BUILTIN_FUSIONS, ids=lambda fusion: fusion.name)
def test_what_a_row_says(fusion: type[GraphFusion]) -> None:
    [row] = [row for row in rows() if row.name == fusion.name]
    before, arrow, after = row.change.partition(" -> ")
    assert before
    assert arrow
    assert after
    operators = set(re.findall(r"\b[A-Z][A-Za-z]\w+", row.change))
    assert {name for name in operators if lookup(name) is None} == set()
    assert operators & set(fusion.anchor_types())
    assert row.left_alone
    for is_level_one, word in ((True, row.at_level_one), (False, row.at_level_three)):
        switches = FusionSwitches(is_level_one=is_level_one)
        assert word == ("on" if switches.allows_builtin(fusion.name, is_closable=fusion.is_closable) else "off")
