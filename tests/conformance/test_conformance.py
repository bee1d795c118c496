"""onnx's own backend tests against the compiler; and the runner against cases that crash and hang."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass

import pytest

from tests.conformance import expectations, score
from tests.conformance.cases import Case, load_cases
from tests.conformance.judge import judge
from tests.conformance.pool import run


@dataclass(frozen=True)
class Run:
    """All cases and what came of them."""

    cases: list[Case]
    verdicts: dict[str, str]


@pytest.fixture(scope="module")
def full_run() -> Run:
    cases = load_cases()
    return Run(cases, run(cases, judge))


def test_cases_fail_and_pass_as_listed(full_run: Run):
    surprises = expectations.compare(full_run.verdicts, expectations.read())
    assert not surprises, f"{surprises}\n(python -m tests.conformance --update rewrites the list)"


def test_nothing_crashes_or_hangs(full_run: Run):
    assert not [name for name, verdict in full_run.verdicts.items() if verdict.startswith(("crash", "hang"))]


def test_readme_tells_the_score(full_run: Run):
    assert score.in_readme() == score.section(full_run.cases, full_run.verdicts)


def test_enough_cases_pass(full_run: Run):
    rows = score.table(full_run.cases, full_run.verdicts)
    wanted = {"node, inputs and outputs are tensors": 0.9, "simple": 0.95, "pytorch-converted": 0.95}
    wanted |= {"pytorch-operator": 0.95}
    missed = {name: rows[name] for name, share in wanted.items() if min(s.share for s in rows[name]) < share}
    assert not missed


def test_enough_operators_pass_most_of_their_cases(full_run: Run):
    scores = score.by_operator(full_run.cases, full_run.verdicts)
    passing = [operator for operator, found in scores.items() if "." not in operator and found.share >= 0.8]
    assert len(passing) >= 150


# -- the runner itself ---------------------------------------------------------------------------------------------
def _case(name: str) -> Case:
    return Case(name, "node", "Add", b"", [], 0.0, 0.0, only_tensors=True)


def misbehave(case: Case) -> str:
    """Do what the name says."""
    match case.name:
        case "crash":
            os._exit(3)
        case "hang":
            time.sleep(600)
        case "fail":
            return "differs"
    return ""


def test_crash_and_hang_are_failures_of_their_case_only():
    names = ["pass_0", "crash", "pass_1", "hang", "fail", "pass_2", "pass_3"]
    assert run([_case(name) for name in names], misbehave, limit=1.0) == {
        "pass_0": "",
        "pass_1": "",
        "pass_2": "",
        "pass_3": "",
        "fail": "differs",
        "crash": "crash: the process ended with status 3",
        "hang": "hang: no result after 1 s",
    }


LISTED = """\
# comment

[No such type.]
test_a
test_b
"""


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [
        ({"test_a": "bad", "test_b": "bad", "test_c": ""}, ""),
        ({"test_a": "", "test_b": "bad"}, "unexpected pass: test_a"),
        ({"test_a": "bad", "test_b": "bad", "test_c": "E1: no"}, "unexpected failure: test_c: E1: no"),
        ({"test_a": "bad"}, "listed, but no case: test_b"),
    ],
)
def test_surprises(verdicts: dict[str, str], expected: str):
    assert str(expectations.compare(verdicts, expectations.parse(LISTED))) == expected


def test_update_keeps_reasons_and_asks_for_new_ones():
    listed = expectations.parse(LISTED)
    updated = expectations.updated({"test_a": "", "test_b": "bad", "test_c": "E1: [x]"}, listed)
    assert updated == {"test_b": "No such type.", "test_c": "TO BE EXPLAINED: E1: (x)"}
    assert expectations.parse(expectations.render(updated)) == updated
    assert expectations.compare({"test_b": "bad", "test_c": "bad"}, updated).unexplained == ["test_c"]


@pytest.mark.parametrize("text", ["test_a\n", "[r]\ntest_a\ntest_a\n"])
def test_list_without_reason_or_with_doubles_is_refused(text: str):
    with pytest.raises(ValueError, match="test_a"):
        expectations.parse(text)
