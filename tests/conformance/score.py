"""Counting: how many cases of which kind pass, as a table and as the section of the README."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import onnx

from tests.conformance.cases import SUITES, Case

README = Path(__file__).resolve().parents[2] / "README.md"
BEGIN = "<!-- conformance score: written by `python -m tests.conformance --update` -->"
END = "<!-- end of conformance score -->"


@dataclass(frozen=True)
class Score:
    """Passed cases out of ``total``."""

    passed: int
    total: int

    @property
    def share(self) -> float:
        """Passed cases as a fraction; of nothing, all pass."""
        return self.passed / self.total if self.total else 1.0

    def __str__(self) -> str:
        return f"{self.passed} of {self.total} ({100 * self.share:.1f} %)"


def count(cases: Sequence[Case], verdicts: Mapping[str, str]) -> Score:
    """Count ``cases``."""
    return Score(sum(not verdicts[case.name] for case in cases), len(cases))


def table(cases: Sequence[Case], verdicts: Mapping[str, str]) -> dict[str, tuple[Score, Score]]:
    """Return, per row, the score of all its cases and of those that are not ``*_expanded*``."""
    rows: dict[str, Callable[[Case], bool]] = {
        "node, inputs and outputs are tensors": lambda case: case.suite == "node" and case.only_tensors,
        "node, all": lambda case: case.suite == "node",
    }
    rows |= {suite: lambda case, suite=suite: case.suite == suite for suite in SUITES[1:]}  # type: ignore[misc]
    found = {name: [case for case in cases if belongs(case)] for name, belongs in rows.items()}
    return {
        name: (count(group, verdicts), count([case for case in group if not case.is_expanded], verdicts))
        for name, group in found.items()
    }


def by_operator(cases: Sequence[Case], verdicts: Mapping[str, str]) -> dict[str, Score]:
    """Return the score of each operator: its node cases that hold tensors, those of its function body included."""
    groups: dict[str, list[Case]] = defaultdict(list)
    for case in cases:
        if case.operator and case.only_tensors:
            groups[case.operator].append(case)
    return {operator: count(groups[operator], verdicts) for operator in sorted(groups)}


def section(cases: Sequence[Case], verdicts: Mapping[str, str]) -> str:
    """Return the lines of the README between the markers."""
    operators = by_operator(cases, verdicts)
    whole = sum(score.passed == score.total for score in operators.values())
    most = sum(score.share >= 0.8 for score in operators.values())
    lines = [
        f"The backend tests of onnx {onnx.__version__}, each compiled to an .om (`precision_mode_v2=origin`), "
        "read again and run:",
        "",
        "| suite | passed | without `*_expanded*` |",
        "|---|---|---|",
        *(f"| {name} | {both} | {plain} |" for name, (both, plain) in table(cases, verdicts).items()),
        "",
        f"Of the {len(operators)} operators in the node suite, {whole} pass all their cases and {most} at least 80 %.",
        "What fails, and why, is listed in [expected_failures.txt](tests/conformance/expected_failures.txt).",
    ]
    return "\n".join(lines)


def in_readme() -> str:
    """Return the section as it stands in the README. Raises ``ValueError`` where the markers are missing."""
    return README.read_text(encoding="utf-8").split(BEGIN + "\n", 1)[1].split("\n" + END, 1)[0]


def write_to_readme(text: str) -> None:
    """Replace the section of the README."""
    content = README.read_text(encoding="utf-8")
    before, _, rest = content.partition(BEGIN)
    after = rest.partition(END)[2]
    README.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}", encoding="utf-8")
