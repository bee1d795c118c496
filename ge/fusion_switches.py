"""Which fusions are on: the switch file, the list of switches, the level of optimisation.

The file is JSON, ``{"Switch": {"GraphFusion": {"ALL": "off", "MyPass": "on"}, "UBFusion": {...}}}``, or text with one
``Name:on`` or ``Name:off`` per line. Names are case-sensitive; those that nobody knows are ignored.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ge.errors import ReportedError

ALL = "ALL"
MAX_BYTES = 1 << 20
"""Largest switch file that is read."""

_GROUPS = ("GraphFusion", "UBFusion")
_VALUES = {"on": True, "off": False}

Switches = Mapping[str, bool]


@dataclass(frozen=True)
class FusionSwitches:
    """What was asked for. An entry of ``overrides`` beats one of the file, which beats its ``ALL``."""

    graph: Switches = field(default_factory=dict)
    loops: Switches = field(default_factory=dict)
    overrides: Switches = field(default_factory=dict)
    is_level_one: bool = False
    """``--oo_level=O1``: no built-in fusions but those that are needed."""

    def allows_custom(self, name: str) -> bool:
        """Tell whether a user's pass runs. The level of optimisation does not concern it."""
        asked = self._asked(name)
        return self.graph.get(ALL, True) if asked is None else asked

    def allows_builtin(self, name: str, *, is_closable: bool = True) -> bool:
        """Tell whether a built-in fusion runs; one that is not closable is only ever turned off by its own name."""
        asked = self._asked(name)
        if asked is not None or not is_closable:
            return asked is not False
        return self.graph.get(ALL, True) and not self.is_level_one

    def _asked(self, name: str) -> bool | None:
        found = self.overrides.get(name)
        return self.graph.get(name) if found is None else found


def read_switch_file(path: str) -> tuple[Switches, Switches]:
    """Return the switches of graph fusions and of fused loops in a file.

    Raises E21001 for a file that cannot be read or is empty, E20003 for contents of another form.
    """
    try:
        with open(path, "rb") as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as fault:
        raise ReportedError("E21001", file=path, errmsg=fault.strerror or str(fault)) from fault
    if not content.strip():
        raise ReportedError("E21001", file=path, errmsg="the file is empty")
    if len(content) > MAX_BYTES:
        raise ReportedError("E20003", file=path, reason=f"it is larger than {MAX_BYTES} bytes")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as fault:
        raise ReportedError("E20003", file=path, reason="it is not UTF-8 text") from fault
    return _read_json(path, text) if text.lstrip().startswith(("{", "[")) else (_read_lines(path, text), {})


def _read_json(path: str, text: str) -> tuple[Switches, Switches]:
    # GE quirk, custom_passes.md 5: custom passes all run when the JSON is broken, while the built-in reader fails the
    # compile; here one reader serves both
    def fault(reason: str) -> ReportedError:
        return ReportedError("E20003", file=path, reason=reason)

    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as broken:
        raise fault(f"it is not JSON: {broken}") from broken
    top = _checked_object(content, "the file", ("Switch", "Priority"), fault)
    groups = _checked_object(top.get("Switch", {}), "Switch", _GROUPS, fault)
    graph, loops = (_checked_switches(groups.get(name, {}), name, fault) for name in _GROUPS)
    return graph, loops


def _checked_object(value: object, what: str, keys: tuple[str, ...], fault: Callable[[str], Exception]) -> Any:
    if not isinstance(value, dict):
        raise fault(f"{what} must hold an object with the keys {' and '.join(keys)}, not {type(value).__name__}")
    unknown = next((key for key in value if key not in keys), None)
    if unknown is not None:
        raise fault(f"{what} has the key {unknown!r}; expected {' or '.join(keys)}")
    return value


def _checked_switches(value: object, group: str, fault: Callable[[str], Exception]) -> Switches:
    if not isinstance(value, dict):
        raise fault(f"{group} must map names of passes to 'on' or 'off', not be {type(value).__name__}")
    for name, switch in value.items():
        if not isinstance(switch, str) or switch not in _VALUES:
            raise fault(f"{group}: {name} is {switch!r}; expected 'on' or 'off'")
    return {name: _VALUES[switch] for name, switch in value.items()}


def _read_lines(path: str, text: str) -> Switches:
    switches: dict[str, bool] = {}
    for number, line in enumerate(text.splitlines(), 1):
        entry = line.strip()
        if not entry:
            continue
        name, _, switch = (part.strip() for part in entry.rpartition(":"))
        if not name or switch not in _VALUES:
            reason = f"line {number} is '{entry[:80]}'; expected Name:on or Name:off"
            raise ReportedError("E20003", file=path, reason=reason)
        switches[name] = _VALUES[switch]
    return switches


def parse_switch_list(text: str, warn: Callable[[str], None] = lambda line: None) -> Switches:
    """Return the switches of ``"Pass:on;Pass2:off"``; items of another form are left out, with a warning."""
    switches: dict[str, bool] = {}
    for item in filter(None, (part.strip() for part in text.split(";"))):
        name, _, switch = (part.strip() for part in item.rpartition(":"))
        if not name or switch not in _VALUES:
            warn(f"--optimization_switch: '{item[:80]}' is left out; expected Name:on or Name:off")
        else:
            switches[name] = _VALUES[switch]
    return switches
