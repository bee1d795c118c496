"""From an argument list to option values, by the rules of ``atc`` (getopt_long) and, where they differ, of ``om-run``.

Forms are ``--name=value``, ``--name value`` and, with names of two letters or more, ``-name=value`` and
``-name value``. A ``-`` inside a name means ``_``. A name may be cut where it stays unique. Of several values for one
option the last counts, and only that one is looked at.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence

from ge.errors import ReportedError
from ge.option_table import Kind, Option

_TRUE = frozenset({"", "1", "t", "true", "y", "yes"})
_FALSE = frozenset({"0", "f", "false", "n", "no"})


class UsageFault(Exception):
    """The arguments cannot be split into options: an unknown name, a missing value, a stray argument."""


def lex(arguments: Sequence[str], table: Mapping[str, Option]) -> dict[str, str]:
    """Return the value of each given option, flags as ``true`` or ``false``.

    Raises :class:`UsageFault` for arguments that are no options, and the code of the option's rule for a value outside
    its closed set, a number that is not digits, or a flag that is neither true nor false. An empty value of an option
    without a closed set is the same as leaving it away.
    """
    values = _split(arguments, table)
    checked = {name: read_value(table[name], text) for name, text in values.items()}
    return {name: text for name, text in checked.items() if text}


def _split(arguments: Sequence[str], table: Mapping[str, Option]) -> dict[str, str]:
    values: dict[str, str] = {}
    rest = list(reversed(arguments))
    while rest:
        argument = rest.pop()
        if argument == "--" and not rest:
            break
        if argument in ("-", "--") or not argument.startswith("-"):
            stray = rest[-1] if argument == "--" else argument
            raise UsageFault(f"'{stray}' is not an option; options begin with '--', and values with blanks need quotes")
        option, joined, value = _option(argument, table)
        if not joined:
            value = _following_value(option, argument, rest)
        values[option.name] = value
    return values


def _option(argument: str, table: Mapping[str, Option]) -> tuple[Option, str, str]:
    """Return the option that ``argument`` names, ``=`` if a value is joined to it, and that value."""
    name, joined, value = argument.lstrip("-").partition("=")
    dashes = len(argument) - len(argument.lstrip("-"))
    key = name.replace("-", "_")
    names = {alias: option for option in table.values() for alias in (option.name, *option.aliases)}
    if dashes > 2 or not key or (dashes == 1 and len(key) == 1 and key not in names):
        raise UsageFault(f"unknown option '{argument}'")
    if key in names:
        return names[key], joined, value
    matches = {option.name: option for alias, option in names.items() if alias.startswith(key)}
    if len(matches) == 1:
        return next(iter(matches.values())), joined, value
    if matches:
        raise UsageFault(f"option '--{key}' is ambiguous: it may be --{', --'.join(sorted(matches))}")
    near = " or ".join(f"'--{match}'" for match in difflib.get_close_matches(key, table, n=2, cutoff=0.7))
    raise UsageFault(f"unknown option '--{key}'" + (f"; did you mean {near}?" if near else ""))


def _following_value(option: Option, argument: str, rest: list[str]) -> str:
    """Take the value from the next argument where the option needs one."""
    if option.rule.kind is Kind.FLAG:
        return ""
    if option.rule.kind is Kind.SWITCH:
        return rest.pop() if rest and rest[-1].lower() in (_TRUE | _FALSE) - {""} else ""
    if not rest:
        raise UsageFault(f"option '{argument}' needs a value")
    return rest.pop()


def read_value(option: Option, text: str) -> str:
    """Return ``text`` if the option's rule admits it; the closed set is looked at before the type."""
    rule = option.rule
    if rule.kind in (Kind.FLAG, Kind.SWITCH):
        if text.lower() in _TRUE:
            return "true"
        if text.lower() in _FALSE:
            return "false"
        raise _wrong_type(option, text, "type must be bool")
    if rule.values and not rule.late and text not in rule.values:
        raise option.refuse(text)
    if rule.kind is Kind.NUMBER and not rule.values and text and not (text.isascii() and text.isdecimal()):
        raise _wrong_type(option, text, "it must be digits only")
    return text


def _wrong_type(option: Option, text: str, reason: str) -> ReportedError:
    code = "R1001" if option.rule.code.startswith("R") else "E10003"
    return ReportedError(code, value=text, parameter=option.flag, reason=reason)
