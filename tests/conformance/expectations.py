"""The committed list of cases that are expected to fail, grouped by reason.

# a comment

[The reason, in words that a user understands.]
test_name
test_other_name
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

LIST = Path(__file__).with_name("expected_failures.txt")
UNEXPLAINED = "TO BE EXPLAINED"
"""Start of the reasons that an update writes for new failures; they must be replaced before the list counts."""

_HEAD = """\
# Cases of onnx's backend tests that are expected to fail, grouped by reason.
# `python -m tests.conformance --update` takes out what passes and adds what fails, to be explained by hand.
"""


@dataclass(frozen=True)
class Surprises:
    """What differs from the list. ``failures`` are verdicts by case name; ``unknown`` are names of no case."""

    failures: Mapping[str, str]
    passes: list[str]
    unknown: list[str]
    unexplained: list[str]

    def __bool__(self) -> bool:
        return bool(self.failures or self.passes or self.unknown or self.unexplained)

    def __str__(self) -> str:
        lines = [f"unexpected failure: {name}: {verdict}" for name, verdict in self.failures.items()]
        lines += [f"unexpected pass: {name}" for name in self.passes]
        lines += [f"listed, but no case: {name}" for name in self.unknown]
        lines += [f"listed without a reason: {name}" for name in self.unexplained]
        return "\n".join(lines)


def parse(text: str) -> dict[str, str]:
    """Return the reason by case name. Raises ``ValueError`` for a name without reason, or listed twice."""
    reasons: dict[str, str] = {}
    reason = ""
    for number, line in enumerate(text.splitlines(), 1):
        entry = line.strip()
        if not entry or entry.startswith("#"):
            continue
        if entry.startswith("[") and entry.endswith("]"):
            reason = entry[1:-1].strip()
        elif not reason or entry in reasons:
            raise ValueError(f"line {number}: {entry} is listed {'twice' if entry in reasons else 'without a reason'}")
        else:
            reasons[entry] = reason
    return reasons


def render(reasons: Mapping[str, str]) -> str:
    """Return the text of the list; what is to be explained comes first."""
    groups: dict[str, list[str]] = defaultdict(list)
    for name, reason in reasons.items():
        groups[reason].append(name)
    order = sorted(groups, key=lambda reason: (not reason.startswith(UNEXPLAINED), reason))
    return _HEAD + "".join(f"\n[{reason}]\n" + "".join(f"{n}\n" for n in sorted(groups[reason])) for reason in order)


def read() -> dict[str, str]:
    """Return the committed list: reason by case name."""
    return parse(LIST.read_text(encoding="utf-8")) if LIST.exists() else {}


def compare(verdicts: Mapping[str, str], reasons: Mapping[str, str]) -> Surprises:
    """Hold verdicts (``""``: passed) against the list."""
    return Surprises(
        failures={name: verdict for name, verdict in verdicts.items() if verdict and name not in reasons},
        passes=[name for name in reasons if verdicts.get(name) == ""],
        unknown=[name for name in reasons if name not in verdicts],
        unexplained=[name for name, reason in reasons.items() if reason.startswith(UNEXPLAINED)],
    )


def updated(verdicts: Mapping[str, str], reasons: Mapping[str, str]) -> dict[str, str]:
    """Return the list as it should be after a full run: reasons are kept, new failures are to be explained."""
    return {
        name: reasons.get(name) or f"{UNEXPLAINED}: {_in_brackets(verdict)}"
        for name, verdict in verdicts.items()
        if verdict
    }


def _in_brackets(verdict: str) -> str:
    return verdict[:120].replace("[", "(").replace("]", ")")
