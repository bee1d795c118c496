"""``--help``: made from the option tables."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Mapping

import click

from ge.option_table import Effect, Kind, Option, Status

_METAVARS = {
    Kind.TEXT: "VALUE",
    Kind.NUMBER: "N",
    Kind.FLAG: "",
    Kind.SWITCH: "[BOOL]",
    Kind.FILE: "FILE",
    Kind.FOLDER: "DIR",
    Kind.TARGET: "PATH",
}


def help_text(usage: str, table: Mapping[str, Option], notes: str = "") -> str:
    """Return usage, then the options of ``table`` under their group headings, then ``notes``."""
    formatter = click.HelpFormatter(width=max(60, min(shutil.get_terminal_size().columns - 2, 110)))
    for line in usage.splitlines():
        formatter.write(f"{line}\n")
    for group, options in itertools.groupby(table.values(), key=lambda option: option.group):
        with formatter.section(group):
            formatter.write_dl([(_form(option), _meaning(option)) for option in options], col_max=34)
    if notes:
        formatter.write(f"\n{notes}\n")
    return formatter.getvalue().rstrip("\n")


def _form(option: Option) -> str:
    names = [option.flag, *(f"{'-' if len(alias) <= 5 else '--'}{alias}" for alias in option.aliases)]
    return " ".join(filter(None, [", ".join(names), _METAVARS[option.rule.kind]]))


def _meaning(option: Option) -> str:
    parts = [option.help]
    if option.status is Status.NOT_YET:
        parts.append("[not implemented yet]")
    elif option.status is Status.RECORDED:
        parts.append("[recorded only]" if option.effect is not Effect.HARDWARE else "[hardware only, recorded]")
    if option.default:
        parts.append(f"Default: {option.default}.")
    return " ".join(parts)
