"""The command ``atc``: arguments in, the lines and files of ATC out.

The lines on stdout and their order are a contract with scripts: they are written plainly, never wrapped or coloured.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from atc.terminal import guarded, program_fault, show, show_error

if TYPE_CHECKING:
    from ge.errors import ReportedError

logger = logging.getLogger("atc")

START = "ATC start working now, please wait for a moment."
SUCCESS = "ATC run success, welcome to the next use."
FAILURE = "ATC run failed, Please check the detail log, Try 'atc --help' for more information"
FAILED = 255
USAGE = """\
usage: atc --model=FILE --framework=5 --soc_version=CHIP --output=PATH [options]        3: TensorFlow, 5: ONNX
       atc --mode=1 --om=FILE --json=PATH        write an .om as JSON, or with --framework=3 or 5 a model
       atc --mode=3 --model=FILE --framework=5 --soc_version=CHIP        check a model only
       atc --mode=6 --om=FILE        show what an .om holds
       atc graph show FILE, atc graph diff A B        look at graphs; 'atc graph --help' says more"""
NOTES = """\
Options are written --name=value or --name value; '-' and '_' in names are the same, and a name may be shortened as
long as it stays unique. Quote values with ';' or blanks. Options marked "hardware only" or "recorded only" are checked
and kept in the .om, but change nothing here."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``atc`` with ``argv`` (by default those of the process); return 0, 255 for any error, 130 if interrupted.

    With ``graph`` as first word it is another command, see :mod:`atc.graph_command`.
    """
    arguments = sys.argv[1:] if argv is None else argv
    if arguments and arguments[0] == "graph":
        from atc.graph_command import main as graph_main

        return graph_main(arguments[1:])
    return guarded(lambda: _run(arguments), FAILED)


def entry() -> None:
    """Console entry point."""
    sys.exit(main())


def _run(argv: Sequence[str]) -> int:
    from atc.help_text import help_text
    from atc.lexer import UsageFault, lex
    from ge.errors import ReportedError
    from ge.option_table import OPTIONS

    show(START)
    try:
        values = lex(argv, OPTIONS)
    except UsageFault as fault:
        show_error(f"ERROR: {fault}")
        reason = f"The command line cannot be read: {fault}"
        return _fail(ReportedError("E19999", reason=reason, solution="'atc --help' lists the options.").lines())
    except ReportedError as error:
        return _fail(error.lines())
    if values.get("help") == "true":
        for line in help_text(USAGE, OPTIONS, NOTES).splitlines():
            show(line)
        return 0
    warnings: list[str] = []
    errors = _work(values, warnings)
    show("...")
    if errors:
        return _fail([*errors, *warnings])
    show(SUCCESS)
    for warning in warnings:
        show(warning)
    return 0


def _work(values: Mapping[str, str], warnings: list[str]) -> list[str]:
    """Check the values and do what the mode says; return the lines of the error, none if all went well.

    This is the boundary where a fault of the program becomes E19999.
    """
    from atc.checks import Given, check
    from atc.modes import run_mode
    from atc.screen_log import screen_log
    from atc.watchdog import Watchdog
    from ge.errors import ReportedError
    from ge.options import Environment
    from ge.session import CompileSession

    def emit(line: str) -> None:
        # ATC shows warnings after the result line, and so they follow errors
        if line.startswith("WARNING: "):
            warnings.append(line)
        else:
            show(line)

    level = values.get("log", "null")
    try:
        environment = Environment.read()
        with screen_log(level, on_stdout=environment.log_to_stdout):
            try:
                options = check(Given(values, environment, lambda text: emit(f"WARNING: {text}")))
                watchdog = Watchdog(options.pass_timeout, _stop)
                run_mode(options, CompileSession(options, environment, emit, watch=watchdog))
            except Exception:
                logger.debug("the run failed", exc_info=True)
                raise
    except ReportedError as error:
        return error.lines()
    except BrokenPipeError:
        raise
    except Exception as fault:  # noqa: BLE001 - the one boundary for faults of the program itself
        return program_fault(fault, "this model").lines()
    return []


def _stop(error: ReportedError) -> None:
    """End the process at once, in the middle of a pass. Files are written whole or not at all, so none is left."""
    try:
        show("...")
        _fail(error.lines())
    finally:  # also when nobody reads any more
        os._exit(FAILED)


def _fail(lines: Sequence[str]) -> int:
    show(FAILURE)
    for line in lines:
        show(line)
    return FAILED


if __name__ == "__main__":
    entry()
