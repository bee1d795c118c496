"""The entry ``dump`` of acl.json, the file with which Ascend's runtimes are told what to dump.

{"dump": {"dump_path": "out", "dump_mode": "all", "dump_step": "0|3-5",
          "dump_list": [{"model_name": "net", "layer": ["conv1"]}]}}
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from ge.errors import ReportedError
from simulator.dump_settings import STATISTICS, DumpMode, DumpSettings, LeftOut

MAX_BYTES = 8 << 20
MAX_PATH = 512
MAX_STEPS = 100
_PATH = re.compile(r"[A-Za-z0-9_./\\ ~+-]+")
_HOST = re.compile(r"\d{1,3}(\.\d{1,3}){3}:")
_STEP = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9}))?")
_POSITION = re.compile(r"(input|output)([0-9]{1,5})")
_SCENES = ("lite_exception", "aic_err_brief_dump", "aic_err_norm_dump", "aic_err_detail_dump", "watcher")
_KEYS = frozenset(
    {"dump_path", "dump_list", "dump_mode", "dump_level", "dump_op_switch", "dump_step", "dump_data", "dump_stats"}
    | {"dump_debug", "dump_scene"}
)
T = TypeVar("T")


class ConfigFault(ValueError):
    """An entry that cannot be followed; the message names it and says why."""


@dataclass(frozen=True)
class ModelEntry:
    """One entry of dump_list. An empty ``model``: any. Without layers and ranges: all operators."""

    model: str = ""
    layers: tuple[str, ...] = ()
    ranges: tuple[tuple[str, str], ...] = ()
    left_out: tuple[LeftOut, ...] = ()


@dataclass(frozen=True)
class DumpConfig:
    """The entry ``dump``. ``entries`` empty: every operator of every model."""

    path: str
    mode: DumpMode
    steps: tuple[tuple[int, int], ...]
    stats: tuple[str, ...]
    entries: tuple[ModelEntry, ...]

    def settings_for(self, file_name: str, graph_name: str) -> DumpSettings | None:
        """Return what is dumped of a model; ``None``: nothing.

        If an entry names the file (its stem), entries that name the graph inside do not count.
        """
        named = [entry for entry in self.entries if entry.model == file_name]
        named = named or [entry for entry in self.entries if entry.model == graph_name]
        found = [entry for entry in self.entries if not entry.model] + named
        if self.entries and not found:
            return None
        is_whole = not found or any(not entry.layers and not entry.ranges for entry in found)
        return DumpSettings(
            self.path,
            self.mode,
            () if is_whole else tuple(dict.fromkeys(layer for entry in found for layer in entry.layers)),
            steps=self.steps,
            ranges=() if is_whole else tuple(one for entry in found for one in entry.ranges),
            left_out=tuple(one for entry in found for one in entry.left_out),
            stats=self.stats,
        )

    @property
    def models(self) -> list[str]:
        """The models that entries name."""
        return [entry.model for entry in self.entries if entry.model]


def read_dump_config(path: str) -> DumpConfig | None:
    """Read a configuration file; ``None`` when it asks for no dump. Raises R1046 with the entry and the reason."""
    try:
        with open(path, "rb") as file:
            content = file.read(MAX_BYTES + 1)
        if len(content) > MAX_BYTES:
            raise ConfigFault(f"it is larger than {MAX_BYTES} bytes")
        return parse_dump_config(content)
    except OSError as fault:
        raise ReportedError("R1046", file=path, reason=fault.strerror or str(fault)) from fault
    except ConfigFault as fault:
        raise ReportedError("R1046", file=path, reason=str(fault)) from fault


def parse_dump_config(content: bytes) -> DumpConfig | None:
    """Return what a configuration asks to dump. Raises :class:`ConfigFault`."""
    try:
        whole = json.loads(content)
    except (ValueError, RecursionError) as fault:
        raise ConfigFault(f"it is not JSON: {fault}") from fault
    if not isinstance(whole, dict):
        raise ConfigFault("it must be a JSON object")
    profiler = whole.get("profiler")
    if isinstance(profiler, dict) and profiler.get("switch") == "on":
        raise ConfigFault("profiler: measuring operators is known but not implemented yet")
    if "dump" not in whole:
        return None
    dump = whole["dump"]
    if not isinstance(dump, dict):
        raise ConfigFault("dump must be an object")
    unknown = sorted(dump.keys() - _KEYS)
    if unknown:
        raise ConfigFault(f"dump has no entry {unknown[0]}")
    _refuse_other_dumps(dump)
    stats = _stats(dump)
    level = _choice(dump, "dump_level", ("op", "kernel", "all"), "all")
    return DumpConfig(
        _path(dump),
        DumpMode(_choice(dump, "dump_mode", ("input", "output", "all"), "output")),
        _steps(dump),
        stats,
        _entries(dump, level),
    )


def _refuse_other_dumps(dump: Mapping[str, Any]) -> None:
    """Dumps of overflows, of faults and of single operators need what a simulator does not have."""
    debug = _choice(dump, "dump_debug", ("on", "off"), "off")
    switch = _choice(dump, "dump_op_switch", ("on", "off"), "off")
    scene = _choice(dump, "dump_scene", ("", *_SCENES), "")
    if debug == "on" and dump.get("dump_list"):
        raise ConfigFault("dump_debug on and dump_list exclude each other")
    if scene and (debug == "on" or switch == "on"):
        raise ConfigFault("dump_scene excludes dump_debug on and dump_op_switch on")
    asked = {"dump_debug on": debug == "on", "dump_scene": bool(scene), "dump_op_switch on": switch == "on"}
    for name in (name for name, is_asked in asked.items() if is_asked):
        raise ConfigFault(f"{name} is known but not implemented yet")


def _choice(dump: Mapping[str, Any], name: str, values: tuple[str, ...], default: str) -> str:
    value = dump.get(name, default)
    if not isinstance(value, str) or value not in values:
        raise ConfigFault(f"{name} is {_shown(value)}, it must be one of {', '.join(filter(None, values))}")
    return value


def _shown(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:60]}..."


def _path(dump: Mapping[str, Any]) -> str:
    path = dump.get("dump_path")
    if not isinstance(path, str) or not path:
        raise ConfigFault("dump_path must be given, and not be empty")
    if len(path) > MAX_PATH:
        raise ConfigFault(f"dump_path has {len(path)} characters, at most {MAX_PATH} are allowed")
    if _HOST.match(path):
        raise ConfigFault(f"dump_path {_shown(path)} names a host; dumps are written on this machine only")
    if not _PATH.fullmatch(path):
        raise ConfigFault(f"dump_path {_shown(path)} may hold letters, digits, blanks and _ . / \\ ~ + - only")
    return path


def _steps(dump: Mapping[str, Any]) -> tuple[tuple[int, int], ...]:
    text = dump.get("dump_step", "")
    if not isinstance(text, str):
        raise ConfigFault(f"dump_step is {_shown(text)}, it must be a text like 0|3-5|10")
    parts = text.split("|") if text else []
    if len(parts) > MAX_STEPS:
        raise ConfigFault(f"dump_step has {len(parts)} sets, at most {MAX_STEPS} are allowed")
    return tuple(_step(part) for part in parts)


def _step(part: str) -> tuple[int, int]:
    found = _STEP.fullmatch(part)
    if found is None:
        raise ConfigFault(f"dump_step holds {_shown(part)}, sets are numbers, or first-last")
    first, last = int(found[1]), int(found[2] or found[1])
    if found[2] and first >= last:
        raise ConfigFault(f"dump_step holds {_shown(part)}, the first number must be below the last")
    return first, last


def _stats(dump: Mapping[str, Any]) -> tuple[str, ...]:
    kind = _choice(dump, "dump_data", ("tensor", "stats"), "tensor")
    if kind == "tensor":
        if "dump_stats" in dump:
            raise ConfigFault("dump_stats needs dump_data stats")
        return ()
    names = _texts(dump, "dump_stats", "dump_stats") if "dump_stats" in dump else STATISTICS
    if not names:
        raise ConfigFault("dump_stats must not be empty")
    for name in names:
        if name not in STATISTICS:
            raise ConfigFault(f"dump_stats holds {_shown(name)}, known are {', '.join(STATISTICS)}")
    return tuple(dict.fromkeys(names))


# -- dump_list ---------------------------------------------------------------------------------------------------------
def _entries(dump: Mapping[str, Any], level: str) -> tuple[ModelEntry, ...]:
    found = dump.get("dump_list")
    if not isinstance(found, list):
        raise ConfigFault("dump_list must be given; an empty list dumps all operators")
    if any(not isinstance(entry, dict) for entry in found):
        raise ConfigFault("dump_list must hold objects")
    return tuple(_entry(entry, f"dump_list[{i}]", level) for i, entry in enumerate(found) if entry)


def _entry(entry: Mapping[str, Any], where: str, level: str) -> ModelEntry:
    known = {"model_name", "layer", "optype_blacklist", "opname_blacklist", "opname_range", "watcher_nodes"}
    unknown = sorted(entry.keys() - known)
    if unknown:
        raise ConfigFault(f"{where} has no entry {unknown[0]}")
    if "watcher_nodes" in entry:
        raise ConfigFault(f"{where}.watcher_nodes needs dump_scene watcher")
    model = entry.get("model_name", "")
    if not isinstance(model, str):
        raise ConfigFault(f"{where}.model_name must be a text")
    ranges = _listed(entry, "opname_range", where, _range)
    if ranges and (not model or level != "op"):
        missing = "model_name" if not model else "dump_level op"
        raise ConfigFault(f"{where}.opname_range needs {missing}")
    by_type = _listed(entry, "optype_blacklist", where, lambda one, at: _left_out(one, at, is_type=True))
    by_name = _listed(entry, "opname_blacklist", where, lambda one, at: _left_out(one, at, is_type=False))
    layers = tuple(_texts(entry, "layer", f"{where}.layer")) if "layer" in entry else ()
    return ModelEntry(model, layers, tuple(ranges), tuple(one for part in (*by_type, *by_name) for one in part))


def _listed(entry: Mapping[str, Any], name: str, where: str, read: Callable[[Mapping[str, Any], str], T]) -> list[T]:
    found = entry.get(name, [])
    if not isinstance(found, list) or any(not isinstance(one, dict) for one in found):
        raise ConfigFault(f"{where}.{name} must be a list of objects")
    return [read(one, f"{where}.{name}[{i}]") for i, one in enumerate(found)]


def _texts(entry: Mapping[str, Any], name: str, where: str) -> list[str]:
    found = entry[name]
    if not isinstance(found, list) or any(not isinstance(one, str) for one in found):
        raise ConfigFault(f"{where} must be a list of texts")
    return found


def _range(one: Mapping[str, Any], where: str) -> tuple[str, str]:
    begin, end = one.get("begin"), one.get("end")
    if not isinstance(begin, str) or not isinstance(end, str) or not begin or not end:
        raise ConfigFault(f"{where} needs both begin and end")
    return begin, end


def _left_out(one: Mapping[str, Any], where: str, *, is_type: bool) -> list[LeftOut]:
    name = one.get("name")
    if not isinstance(name, str) or not name:
        raise ConfigFault(f"{where} needs a name")
    places = [_POSITION.fullmatch(text) for text in _texts(one, "pos", f"{where}.pos")] if "pos" in one else []
    if not places or None in places:
        raise ConfigFault(f"{where}.pos must list places such as input0 and output1")
    return [LeftOut(name, is_type, place[1], int(place[2])) for place in places if place is not None]
