"""The files of ``--keep_dtype``, ``--customize_dtypes`` and ``--modify_mixlist``, and what they ask for."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ge.errors import ReportedError
from ge.graph.types import DataType

MAX_BYTES = 16 << 20
"""Largest of these files that is read."""
MAX_LINE = 1023
"""Longest line of a file of ``--customize_dtypes``."""

_BY_TYPE = "OpType::"
_PASCAL_CASE = re.compile(r"[A-Z][A-Za-z0-9]*")
_DATA_TYPES = {
    "float": DataType.DT_FLOAT,
    "half": DataType.DT_FLOAT16,
    "fp16": DataType.DT_FLOAT16,
    "bf16": DataType.DT_BF16,
    "float32": DataType.DT_FLOAT,
    "float16": DataType.DT_FLOAT16,
    "bfloat16": DataType.DT_BF16,
    "double": DataType.DT_DOUBLE,
    **{name: DataType[f"DT_{name.upper()}"] for name in ("int8", "int16", "int32", "int64", "bool")},
    **{name: DataType[f"DT_{name.upper()}"] for name in ("uint8", "uint16", "uint32", "uint64", "int4")},
}


@dataclass(frozen=True)
class KeptNodes:
    """Nodes that keep the precision of the model, by name and by operator type."""

    names: tuple[str, ...] = ()
    types: tuple[str, ...] = ()


@dataclass(frozen=True)
class CustomTypes:
    """Element types per slot for one node or operator type; ``None``, and slots beyond the list, stay as they are."""

    inputs: tuple[DataType | None, ...] = ()
    outputs: tuple[DataType | None, ...] = ()


@dataclass(frozen=True)
class Customized:
    """Element types by node name and by operator type; the name beats the type."""

    by_name: Mapping[str, CustomTypes] = field(default_factory=dict)
    by_type: Mapping[str, CustomTypes] = field(default_factory=dict)


@dataclass(frozen=True)
class MixListChanges:
    """Changes to the lists of mixed precision. What is only removed becomes gray."""

    white_added: frozenset[str] = frozenset()
    white_removed: frozenset[str] = frozenset()
    black_added: frozenset[str] = frozenset()
    black_removed: frozenset[str] = frozenset()

    def apply(self, white: frozenset[str], black: frozenset[str]) -> tuple[frozenset[str], frozenset[str]]:
        """Return both lists changed; what is added to one is no longer on the other."""
        return (
            white - self.white_removed - self.black_added | self.white_added,
            black - self.black_removed - self.white_added | self.black_added,
        )


def _text_of(path: str, parameter: str, unreadable: Callable[[str], ReportedError]) -> str:
    try:
        with open(path, "rb") as file:
            content = file.read(MAX_BYTES + 1)
        if len(content) > MAX_BYTES:
            raise ReportedError("E13015", file=path, size=os.path.getsize(path), maxsize=MAX_BYTES)
        return content.decode("utf-8-sig")
    except OSError as fault:
        reason = fault.strerror or str(fault)
        raise ReportedError("E10001", value=path, parameter=parameter, reason=reason) from fault
    except UnicodeDecodeError as fault:
        raise unreadable("it is not UTF-8 text") from fault


def read_kept_nodes(path: str) -> KeptNodes:
    """Read a file of ``--keep_dtype``: per line the name of a node, or ``OpType::`` and an operator type.

    Raises E10001 for a file that cannot be read, E10003 for an operator type that is not written as one, E20003 for
    other contents.
    """
    names: dict[str, None] = {}
    types: dict[str, None] = {}
    for line in _text_of(path, "--keep_dtype", lambda why: _bad_contents(path, why)).splitlines():
        entry = line.strip()
        if not entry.startswith(_BY_TYPE):
            names.update(dict.fromkeys([entry] if entry else []))
            continue
        optype = entry.removeprefix(_BY_TYPE).strip()
        if not _PASCAL_CASE.fullmatch(optype):
            reason = "an operator type begins with a capital letter and has letters and digits only, such as Relu"
            raise ReportedError("E10003", value=entry[:MAX_LINE], parameter="--keep_dtype", reason=reason)
        types[optype] = None
    return KeptNodes(tuple(names), tuple(types))


def _bad_contents(path: str, reason: str) -> ReportedError:
    return ReportedError("E20003", file=path, reason=reason)


def read_customized(path: str) -> Customized:
    """Read a file of ``--customize_dtypes``: lines ``Name::InputDtype:t1,t2,OutputDtype:t1``, or ``OpType::Type:...``.

    Either part may be left out, an empty type keeps that slot, of two lines for the same the first counts. Raises
    E10001 for a file that cannot be read, E20101 for a line of another form, E20003 for an element type that nobody
    knows.
    """
    by_name: dict[str, CustomTypes] = {}
    by_type: dict[str, CustomTypes] = {}
    for number, line in enumerate(
        _text_of(path, "--customize_dtypes", lambda why: _bad_line(path, why)).splitlines(), 1
    ):
        entry = line.strip()
        if not entry:
            continue
        if len(entry) > MAX_LINE:
            raise _bad_line(path, f"line {number} has {len(entry)} characters, at most {MAX_LINE} are read")
        target = by_type if entry.startswith(_BY_TYPE) else by_name
        name, colon, wanted = entry.removeprefix(_BY_TYPE).partition(":")
        if not (name and colon):
            raise _bad_line(path, f"line {number} is '{entry[:80]}'; {_FORM}")
        target.setdefault(name, _custom_types(path, number, wanted.removeprefix(":")))
    return Customized(by_name, by_type)


_FORM = "expected Name::InputDtype:t1,t2,OutputDtype:t1 or OpType::Type:InputDtype:t1,t2,OutputDtype:t1"
_PARTS = re.compile(r"(?:InputDtype:(?P<inputs>[^:]*?))?(?:(?:^|,)\s*OutputDtype:(?P<outputs>[^:]*))?")


def _bad_line(path: str, reason: str) -> ReportedError:
    return ReportedError("E20101", value=path, parameter="--customize_dtypes", reason=reason)


def _custom_types(path: str, number: int, text: str) -> CustomTypes:
    found = _PARTS.fullmatch(text.strip())
    if found is None or (found["inputs"] is None and found["outputs"] is None):
        raise _bad_line(path, f"line {number} names the types as '{text[:80]}'; {_FORM}")
    inputs, outputs = (() if part is None else _types(path, number, part) for part in found.groups())
    return CustomTypes(inputs, outputs)


def _types(path: str, number: int, text: str) -> tuple[DataType | None, ...]:
    names = [name.strip().lower() for name in text.split(",")]
    unknown = next((name for name in names if name and name not in _DATA_TYPES), None)
    if unknown is not None:
        reason = f"line {number}: '{unknown[:80]}' is no element type; known are {', '.join(sorted(_DATA_TYPES))}"
        raise _bad_contents(path, reason)
    return tuple(_DATA_TYPES.get(name) for name in names)


_LISTS, _CHANGES = ("white-list", "black-list"), ("to-add", "to-remove")


def read_mix_list(path: str) -> MixListChanges:
    """Read a file of ``--modify_mixlist``: ``{"black-list": {"to-add": [], "to-remove": []}, "white-list": {...}}``.

    Raises E10001 for a file that cannot be read, E10032 for one of another form.
    """

    def fault(reason: str) -> ReportedError:
        return ReportedError("E10032", file_name=path, reason=reason)

    try:
        content = json.loads(_text_of(path, "--modify_mixlist", fault))
    except (ValueError, RecursionError) as broken:
        raise fault(f"it is not JSON: {broken}") from broken
    found = {name: _changes(_object(content, "the file", _LISTS, fault).get(name, {}), name, fault) for name in _LISTS}
    (white_added, white_removed), (black_added, black_removed) = (found[name] for name in _LISTS)
    for first, second, what in (
        (white_added, black_added, "to both lists"),
        (white_added, white_removed, "to the white list and removed from it"),
        (black_added, black_removed, "to the black list and removed from it"),
    ):
        if first & second:
            raise fault(f"{min(first & second)} is added {what}")
    return MixListChanges(white_added, white_removed, black_added, black_removed)


def _object(
    value: object, what: str, keys: tuple[str, ...], fault: Callable[[str], ReportedError]
) -> dict[str, object]:
    if not isinstance(value, dict):
        raise fault(f"{what} must hold an object with the keys {' and '.join(keys)}, not {type(value).__name__}")
    unknown = next((key for key in value if key not in keys), None)
    if unknown is not None:
        raise fault(f"{what} has the key {unknown!r}; expected {' or '.join(keys)}")
    return value


def _changes(value: object, name: str, fault: Callable[[str], ReportedError]) -> tuple[frozenset[str], frozenset[str]]:
    lists = _object(value, name, _CHANGES, fault)

    def types_of(change: str) -> frozenset[str]:
        types = lists.get(change, [])
        if not isinstance(types, list) or not all(isinstance(optype, str) for optype in types):
            raise fault(f"{change} of {name} must be a list of operator types, not {str(types)[:80]}")
        return frozenset(types)

    return types_of("to-add"), types_of("to-remove")
