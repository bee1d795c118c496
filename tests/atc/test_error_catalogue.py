"""Every error that the project can report has a row, every row a remedy, every call the fields its row needs."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from string import Formatter

import pytest

from ge.errors import CATALOGUE, ReportedError

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("ge", "parsers", "passes", "om_format", "simulator", "atc")


def holes(template: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(template) if name}


def raised_codes() -> Iterator[tuple[str, str, set[str] | None]]:
    """Yield (place, code, field names) of every ReportedError with a literal code; None where fields are a dict."""
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("ReportedError") and node.args:
                    code, names = node.args[0], [keyword.arg for keyword in node.keywords]
                    if isinstance(code, ast.Constant):
                        fields = None if None in names else {name for name in names if name}
                        yield f"{path.relative_to(ROOT)}:{node.lineno}", str(code.value), fields


def test_every_raised_code_has_a_row_and_all_its_fields() -> None:
    faults = []
    for place, code, fields in raised_codes():
        if code not in CATALOGUE:
            faults.append(f"{place}: no row for {code}")
        elif fields is not None and (missing := holes(CATALOGUE[code].template) - fields):
            faults.append(f"{place}: {code} needs {sorted(missing)}")
    assert faults == []


@pytest.mark.parametrize("code", CATALOGUE)
def test_row_is_complete(code: str) -> None:
    entry = CATALOGUE[code]
    assert re.fullmatch(r"[EW]\d{5}|R\d{4}", code)
    assert holes(entry.solution) <= holes(entry.template), "a remedy may only use the fields of its message"
    for text in (entry.template, entry.solution):
        assert text[0] in "[{-'" or text[0].isupper()
        assert len(text) > 10
    assert entry.solution.endswith(".")


def test_error_text_names_code_message_and_remedy() -> None:
    error = ReportedError("E10016", opname="y", parameter="--input_shape")
    message, remedy = error.lines()
    assert message == "E10016: Name [y] in parameter [--input_shape] does not exist in the model."
    assert remedy.startswith("        Solution: Take the name from the model")


def test_remedy_can_be_replaced_and_further_errors_follow() -> None:
    later = ReportedError("E10054", parameter="--model", solution="")
    error = ReportedError("E10008", solution="Do this.", also=(later,))
    assert [line.split(":")[0] for line in error.lines()] == ["E10008", "        Solution", "E10054"]


def test_braces_in_user_text_are_not_interpreted() -> None:
    error = ReportedError("E10016", opname="{parameter}{0}", parameter="--out_nodes")
    assert "[{parameter}{0}]" in error.message


@pytest.mark.parametrize("fields", [{}, {"opname": "x"}])
def test_missing_fields_are_a_programming_error(fields: dict[str, str]) -> None:
    with pytest.raises(KeyError):
        ReportedError("E10016", **fields)
