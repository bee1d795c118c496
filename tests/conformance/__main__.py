"""`python -m tests.conformance`: run onnx's backend tests, print the score and what differs from the list."""

from __future__ import annotations

import argparse
import re
import sys
import time

from tests.conformance import expectations, score
from tests.conformance.cases import load_cases
from tests.conformance.judge import judge
from tests.conformance.pool import LIMIT, run


def main() -> int:
    """Return 0 when the run agrees with the list, or has been written into it."""
    arguments = _arguments()
    started = time.monotonic()
    cases = [case for case in load_cases() if re.search(arguments.only, case.name)]
    verdicts = run(cases, judge, arguments.processes, arguments.limit)
    reasons = {n: r for n, r in expectations.read().items() if re.search(arguments.only, n)}
    if arguments.failures:
        for name in sorted(verdicts):
            if verdicts[name]:
                print(f"{name}: {verdicts[name]}")
    if arguments.operators:
        for operator, found in score.by_operator(cases, verdicts).items():
            print(f"{operator:40} {found}{'' if found.share >= 0.8 else '  below 80 %'}")
    for row, (both, plain) in score.table(cases, verdicts).items():
        print(f"{row:40} {both!s:26} without expanded: {plain}")
    print(f"{len(cases)} cases in {time.monotonic() - started:.0f} s")
    if arguments.update:
        expectations.LIST.write_text(expectations.render(expectations.updated(verdicts, reasons)), encoding="utf-8")
        score.write_to_readme(score.section(cases, verdicts))
        return 0
    surprises = expectations.compare(verdicts, reasons)
    if surprises:
        print(surprises)
    return 1 if surprises else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.conformance", description=__doc__)
    parser.add_argument("--only", default="", metavar="REGEX", help="run the cases whose name holds this pattern")
    parser.add_argument("--update", action="store_true", help="rewrite the list and the score in the README")
    parser.add_argument("--failures", action="store_true", help="print every failure, expected or not")
    parser.add_argument("--operators", action="store_true", help="print the score of each operator")
    parser.add_argument("--processes", type=int, default=2, help="processes that run cases (2)")
    parser.add_argument("--limit", type=float, default=LIMIT, help=f"seconds that a case may take ({LIMIT:g})")
    arguments = parser.parse_args()
    if arguments.update and arguments.only:
        parser.error("--update needs a full run, without --only")
    return arguments


if __name__ == "__main__":
    sys.exit(main())
