"""The small languages inside option values: shapes, node lists, data types, chip names, paths.

Every function takes the text of one option and returns typed data or raises a :class:`ReportedError` that names the
option, the value and what was expected. Nothing here looks at a model.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ge.errors import ReportedError
from ge.graph.types import DataType
from ge.mapped_file import why_unreadable

INT64_MAX = 2**63 - 1
PATH_MAX = 4096

_SHAPE_SAMPLE = "data:1,3,224,224;scale:1"
_RANGE_SAMPLE = "data:1~8,3,-1,224"
_BRACKETS_SAMPLE = "data:[1~8,3,-1,224]"


@dataclass(frozen=True)
class DimRange:
    """A dimension that is known when the model runs: ``low`` to ``high``, without upper bound if ``high`` is None."""

    low: int
    high: int | None

    def holds(self, dim: int) -> bool:
        """Tell whether the range has ``dim`` in it."""
        return self.low <= dim and (self.high is None or dim <= self.high)


Dim = int | DimRange
ANY_DIM = DimRange(0, None)


def open_dims(dims: Sequence[Dim]) -> list[int]:
    """Return ``dims`` as a shape has them: -1 where they are known when the model runs."""
    return [dim if isinstance(dim, int) else -1 for dim in dims]


def dim_bounds(dims: Sequence[Dim]) -> list[tuple[int, int]]:
    """Return ``(low, high)`` per dimension, as a shape range has them: high is -1 without upper bound."""
    return [(d, d) if isinstance(d, int) else (d.low, -1 if d.high is None else d.high) for d in dims]


def parse_input_shape(text: str) -> dict[str, tuple[Dim, ...]]:
    """Read ``name:d,d;name2:`` into shapes per input name; no dims at all is a scalar.

    A value that holds ``-1`` or ``~`` anywhere is read as a shape range (E10048 and E10002), any other as static
    shapes (E10002, E10011, E10013, E10014, each followed by E10001 for the whole value).
    """
    if not text.strip():
        return {}
    if "~" in text or "-1" in text:
        return _parse_shape_range(text)
    try:
        return _named_items(text, _static_dim, whole=text)
    except ReportedError as error:
        follow_up = ReportedError(
            "E10001", value=text, parameter="--input_shape", reason="it does not follow name:d0,d1,...;name2:d0,..."
        )
        error.also = (*error.also, follow_up)
        raise


def _parse_shape_range(text: str) -> dict[str, tuple[Dim, ...]]:
    if ":" not in text:
        raise _bad_range(text, "no input is named")
    return _named_items(text, _range_dim, whole=text)


def _bad_range(text: str, reason: str, sample: str = _RANGE_SAMPLE) -> ReportedError:
    return ReportedError("E10048", shape_range=text, reason=reason, sample=sample)


def parse_input_shape_range(text: str) -> dict[str, tuple[Dim, ...]]:
    """Read ``name:[d,d];name2:[]`` of ``--input_shape_range``, where d is n, -1 or low~high; else E10048, E10013."""
    shapes: dict[str, tuple[Dim, ...]] = {}
    for item in (part.strip() for part in text.split(";")):
        match = re.fullmatch(r"(.*):\s*\[([^][]*)\]", item, re.DOTALL)
        name = match[1].strip() if match else ""
        if not match or not name:
            reason = (
                f"'{item}' is not of the form name:[d0,d1,...]" if item else "there is an empty item between two ';'"
            )
            raise _bad_range(text, reason, _BRACKETS_SAMPLE)
        if name in shapes:
            raise _bad_range(text, f"'{name}' is given twice", _BRACKETS_SAMPLE)
        dims = [dim.strip() for dim in match[2].split(",")] if match[2].strip() else []
        shapes[name] = tuple(_bracketed_dim(dim, item) for dim in dims)
    return shapes


def _bracketed_dim(text: str, item: str) -> Dim:
    if not re.fullmatch(r"-1|[0-9]+|[0-9]+ *~ *[0-9]+", text):
        raise _bad_range(item, f"'{text}' is neither a number, -1 nor low~high", _BRACKETS_SAMPLE)
    if text == "-1":
        return ANY_DIM
    low, tilde, high = (part.strip() for part in text.partition("~"))
    first = _bounded(low, "--input_shape_range")
    last = _bounded(high, "--input_shape_range") if tilde else first
    if first > last or last == 0:
        reason = f"the lower bound of '{text}' is above the upper one" if last else f"'{text}' is always empty"
        raise _bad_range(item, reason, _BRACKETS_SAMPLE)
    return DimRange(first, last) if first < last else first


def _named_items(text: str, read_dim: Callable[[str, str], Dim], *, whole: str) -> dict[str, tuple[Dim, ...]]:
    """Split into items at ``;`` and each item at its last ``:`` (names may hold colons)."""
    shapes: dict[str, tuple[Dim, ...]] = {}
    for item in text.split(";"):
        name, colon, dims = (part.strip() for part in item.rpartition(":"))
        if not colon or not name:
            reason = f"'{item.strip()}' names no input" if item.strip() else "there is an empty item between two ';'"
            raise ReportedError("E10002", shape=whole, reason=reason, sample=_SHAPE_SAMPLE)
        if name in shapes:
            raise ReportedError("E10002", shape=whole, reason=f"'{name}' is given twice", sample=_SHAPE_SAMPLE)
        shapes[name] = tuple(read_dim(dim.strip(), item.strip()) for dim in dims.split(",")) if dims else ()
    return shapes


def _static_dim(text: str, item: str) -> int:
    number = re.match(r"-?[0-9]+", text)
    if "." in text or (number and number.end() != len(text)):
        raise ReportedError("E10002", shape=item, reason=f"'{text}' is not a whole number", sample=_SHAPE_SAMPLE)
    if not number:
        raise ReportedError("E10014", value=text, parameter="--input_shape")
    value = _bounded(text, "--input_shape")
    if value <= 0:
        raise ReportedError("E10011", shape=item, result=text)
    return value


def _range_dim(text: str, item: str) -> Dim:
    if re.search(r"[^0-9 ~-]", text):
        raise ReportedError(
            "E10002", shape=item, reason=f"'{text}' holds more than digits, '~' and '-'", sample=_RANGE_SAMPLE
        )
    if text == "-1":
        return ANY_DIM
    if re.fullmatch(r"[0-9]+", text):
        value = _bounded(text, "--input_shape")
        if value == 0:
            raise ReportedError("E10011", shape=item, result=text)
        return value
    bounds = re.fullmatch(r"([0-9]+) *~ *([0-9]+)", text)
    if not bounds:
        reason = f"'{text}' is neither a number, -1 nor low~high with both bounds at least 0"
        raise _bad_range(item, reason)
    low, high = (_bounded(bound, "--input_shape") for bound in bounds.groups())
    if low > high:
        raise _bad_range(item, f"the lower bound of '{text}' is above the upper one")
    if low < high:
        return DimRange(low, high)
    if low == 0:
        raise ReportedError("E10011", shape=item, result=text)
    return low


def _bounded(text: str, parameter: str) -> int:
    # the length is looked at first, because int() refuses digit strings of more than 4300 characters
    digits = text.lstrip("-0") or "0"
    if len(digits) > 19 or int(digits) > INT64_MAX:
        raise ReportedError("E10013", value=text, parameter=parameter)
    return -int(digits) if text.startswith("-") else int(digits)


def parse_hint_shape(text: str) -> dict[int, tuple[int, ...]]:
    """Read ``0:[1,2];1:[]`` (input index to dims) of ``--input_hint_shape``; E10014 if malformed."""
    hints: dict[int, tuple[int, ...]] = {}
    for item in text.split(";"):
        match = re.fullmatch(r"\s*([0-9]+)\s*:\s*\[([0-9, ]*)\]\s*", item)
        dims = [dim.strip() for dim in match[2].split(",")] if match and match[2].strip() else []
        if not match or not all(re.fullmatch("[0-9]+", dim) for dim in dims):
            raise ReportedError(
                "E10014", value=item, parameter="--input_hint_shape", solution="Write index:[d0,d1];index2:[...]."
            )
        index = _bounded(match[1], "--input_hint_shape")
        if index in hints:
            raise ReportedError(
                "E10014", value=text, parameter="--input_hint_shape", solution=f"Give input {index} once only."
            )
        hints[index] = tuple(_bounded(dim, "--input_hint_shape") for dim in dims)
    return hints


@dataclass(frozen=True)
class OutNode:
    """One requested output: output ``index`` of node ``name``, or the graph output ``name`` if ``index`` is None."""

    name: str
    index: int | None = None

    def __str__(self) -> str:
        return self.name if self.index is None else f"{self.name}:{self.index}"


def parse_out_nodes(text: str) -> tuple[OutNode, ...]:
    """Read ``node:idx;node:idx`` or ``outA;outB``; mixing both forms or a malformed index is E10001."""
    if not text.strip():
        return ()
    outputs = tuple(_out_node(item.strip(), text) for item in text.split(";"))
    if len({output.index is None for output in outputs}) > 1:
        reason = "it mixes 'node:index' with bare output names"
        raise ReportedError("E10001", value=text, parameter="--out_nodes", reason=reason)
    return outputs


def _out_node(item: str, whole: str) -> OutNode:
    name, colon, index = item.rpartition(":")
    if not colon:
        name = index
    if not name:
        reason = f"'{item}' names no node" if item else "there is an empty item between two ';'"
        raise ReportedError("E10001", value=whole, parameter="--out_nodes", reason=reason)
    return OutNode(name, _output_index(index, whole, "--out_nodes") if colon else None)


def parse_half_inputs(names: str, layouts: str, warn: Callable[[str], None]) -> dict[str, bool]:
    """Read ``--input_fp16_nodes`` (``n1;n2``) and ``--is_input_adjust_hw_layout`` (``true,false``).

    Returns the inputs that are given in float16, with whether they are given in NC1HWC0. E10001 for a name that is
    missing or repeated, E10005 for a flag that is neither true nor false. Flags that have no input are ignored, inputs
    without a flag have false; both with a warning.
    """
    listed = [name.strip() for name in names.split(";")] if names.strip() else []
    for place, name in enumerate(listed):
        if not name or name in listed[:place]:
            reason = f"'{name}' is given twice" if name else "there is an empty item between two ';'"
            raise ReportedError("E10001", value=names, parameter="--input_fp16_nodes", reason=reason)
    flags = _layout_flags(layouts, "--is_input_adjust_hw_layout", len(listed), "--input_fp16_nodes", warn)
    return dict(zip(listed, flags, strict=True))


def parse_half_outputs(out_nodes: tuple[OutNode, ...], layouts: str, warn: Callable[[str], None]) -> tuple[bool, ...]:
    """Read ``--is_output_adjust_hw_layout``: per output of ``--out_nodes`` whether it is wanted in float16 and NC1HWC0.

    Faults and warnings as for inputs.
    """
    return _layout_flags(layouts, "--is_output_adjust_hw_layout", len(out_nodes), "--out_nodes", warn)


def _layout_flags(text: str, parameter: str, count: int, partner: str, warn: Callable[[str], None]) -> tuple[bool, ...]:
    """Return ``count`` flags of a text ``true,false,...``; a warning where the text has another number of them."""
    flags = []
    for item in text.split(",") if text.strip() else []:
        if item.strip() not in ("true", "false"):
            raise ReportedError("E10005", value=item.strip(), parameter=parameter)
        flags.append(item.strip() == "true")
    if flags and not count:
        warn(f"{parameter} has no effect without {partner}")
    elif flags and len(flags) != count:
        what = "the others are ignored" if len(flags) > count else "the others count as false"
        warn(f"{parameter} has {len(flags)} values for {count} names in {partner}: {what}")
    return tuple(flags[place] if place < len(flags) else False for place in range(count))


def _output_index(text: str, whole: str, parameter: str) -> int:
    if not re.fullmatch("[0-9]+", text):
        reason = f"'{text}' is not an output index; it must be digits only"
        raise ReportedError("E10001", value=whole, parameter=parameter, reason=reason)
    return _bounded(text, parameter)


# The names that ATC's code accepts, with the data type that each becomes.
OUTPUT_TYPES: dict[str, DataType] = {
    "FP32": DataType.DT_FLOAT,
    "FP16": DataType.DT_FLOAT16,
    "UINT8": DataType.DT_UINT8,
    "INT8": DataType.DT_INT8,
    "HIF8": DataType.DT_HIFLOAT8,
    "HIF4": DataType.DT_HIFLOAT4,
    "FP8E5M2": DataType.DT_FLOAT8_E5M2,
    "FP8E4M3FN": DataType.DT_FLOAT8_E4M3FN,
}
# No CPU has these; until the simulator knows them they are refused.
NARROW_OUTPUT_TYPES = ("HIF8", "HIF4", "FP8E5M2", "FP8E4M3FN")
_DOCUMENTED_ONLY = frozenset({"INT16", "INT32", "INT64", "UINT16", "UINT32", "UINT64", "DOUBLE"})


@dataclass(frozen=True)
class OutputType:
    """The data type asked for: for all outputs (``whole``), or per (node, output index)."""

    whole: DataType | None = None
    per_output: Mapping[tuple[str, int], DataType] = field(default_factory=dict)


def parse_output_type(text: str, out_nodes: tuple[OutNode, ...] = ()) -> OutputType:
    """Read ``T`` or ``node:idx:T;...``; each node:idx must be among ``out_nodes``. Everything wrong is E10001."""
    if not text.strip():
        return OutputType()
    if ":" not in text and ";" not in text:
        return OutputType(whole=_output_type_name(text.strip(), text))
    requested = {(output.name, output.index) for output in out_nodes}
    types: dict[tuple[str, int], DataType] = {}
    for item in text.split(";"):
        name, *rest = item.strip().rsplit(":", 2)
        if len(rest) != 2 or not name:
            raise _bad_output_type(text, f"'{item.strip()}' is not of the form node:index:type")
        output = (name, _output_index(rest[0], text, "--output_type"))
        if output not in requested:
            raise _bad_output_type(text, f"'{name}:{rest[0]}' is not listed in --out_nodes")
        if output in types:
            raise _bad_output_type(text, f"'{name}:{rest[0]}' is given twice")
        types[output] = _output_type_name(rest[1], text)
    return OutputType(per_output=types)


def _output_type_name(name: str, whole: str) -> DataType:
    if name in OUTPUT_TYPES:
        return OUTPUT_TYPES[name]
    reason = f"'{name}' is not one of {', '.join(OUTPUT_TYPES)}"
    if name in _DOCUMENTED_ONLY:
        reason += " (ATC's documents list it, but ATC itself refuses it)"
    raise _bad_output_type(whole, reason)


def _bad_output_type(value: str, reason: str) -> ReportedError:
    return ReportedError("E10001", value=value, parameter="--output_type", reason=reason)


# There is no closed list upstream (a chip is known when its platform file is there); these are the names in use.
SOC_VERSIONS: tuple[str, ...] = (
    *("Ascend310", "Ascend310B1", "Ascend310P1", "Ascend310P3", "Ascend310P5", "Ascend310P7"),
    *("Ascend910", "Ascend910A", "Ascend910B", "Ascend910ProA", "Ascend910ProB", "Ascend910PremiumA"),
    *("Ascend910B1", "Ascend910B2", "Ascend910B2C", "Ascend910B3", "Ascend910B4"),
    *("Ascend910_9362", "Ascend910_9372", "Ascend910_9381", "Ascend910_9382", "Ascend910_9391", "Ascend910_9392"),
    *("Ascend950", "Ascend610", "Ascend035", "Ascend035A", "Ascend035B"),
)
# Of these families the members are named by platform files that are not published: any suffix of the family is taken.
_OPEN_FAMILIES = re.compile(r"Ascend950[A-Z]*(_[0-9A-Za-z]+)?")
LITE_SOC_VERSIONS = frozenset({"Ascend035", "Ascend035A", "Ascend035B"})


def check_soc_version(name: str) -> None:
    """Raise E10001 with near matches unless ``name`` is a known chip (case counts)."""
    if name in SOC_VERSIONS or _OPEN_FAMILIES.fullmatch(name):
        return
    by_lower_case = {known.lower(): known for known in SOC_VERSIONS}
    candidates = (name.lower(), f"ascend{name.lower()}")
    near = [by_lower_case[c] for c in candidates if c in by_lower_case] or [
        by_lower_case[match]
        for match in difflib.get_close_matches(candidates[name[:1].isdigit()], by_lower_case, n=3, cutoff=0.7)
    ]
    reason = f"no such chip is known; did you mean {' or '.join(near)}?" if near else "no such chip is known"
    raise ReportedError(
        "E10001",
        value=name,
        parameter="--soc_version",
        reason=reason,
        solution=f"Write 'Ascend' and the name that npu-smi shows. Known are {', '.join(SOC_VERSIONS)}.",
    )


_PATH_CHARACTERS = re.compile(r"[A-Za-z0-9\-._/\u4e00-\u9fa5]*")


def check_path_characters(path: str, parameter: str) -> None:
    """Raise E10001 for a path with characters that ATC refuses: blanks, ``~``, ``:``, ``+``, ``@`` and others."""
    if os.name == "nt":
        path = path.replace("\\", "/").removeprefix(Path(path).drive)
    end = _PATH_CHARACTERS.match(path)
    position = end.end() if end else 0
    if position < len(path):
        reason = f"{path[position]!r} is not allowed in a path; letters, digits and '-', '.', '_', '/' are"
        raise ReportedError(
            "E10001",
            value=path,
            parameter=parameter,
            reason=reason,
            solution="Rename the file or directory, or work from a copy elsewhere.",
        )


def check_input_file(path: str, parameter: str) -> None:
    """Raise E10001 unless ``path`` is a regular file that may be read and its real path has allowed characters."""
    _check_length(path, parameter)
    reason = why_unreadable(path)
    if reason:
        raise ReportedError("E10001", value=path, parameter=parameter, reason=reason, solution="Give an existing file.")
    check_path_characters(os.path.realpath(path), parameter)


def check_input_directory(path: str, parameter: str) -> None:
    """Raise E10001 unless ``path`` is an existing directory whose real path has allowed characters."""
    _check_length(path, parameter)
    if not os.path.isdir(path):
        reason = "it is a file, not a directory" if os.path.exists(path) else "the directory does not exist"
        raise ReportedError(
            "E10001", value=path, parameter=parameter, reason=reason, solution="Give an existing directory."
        )
    check_path_characters(os.path.realpath(path), parameter)


def check_output_stem(path: str, parameter: str) -> None:
    """Check the text of an output path: E10022 without a file name, E10021 too long, E10001 bad characters."""
    if path.endswith(("/", os.sep)) or os.path.basename(path) in {".", ".."}:
        raise ReportedError("E10022", filename=path, parameter=parameter)
    _check_length(path, parameter)
    check_path_characters(path, parameter)


def _check_length(path: str, parameter: str) -> None:
    try:
        size = len(os.fsencode(path))
    except UnicodeEncodeError:
        size = 0
    if size == 0 or "\0" in path:
        raise ReportedError("E10001", value=path, parameter=parameter, reason="no file can have this name")
    if size >= PATH_MAX:
        raise ReportedError("E10021", parameter=parameter, size=PATH_MAX - 1)
