"""The options of ``om-run``: those of ais_bench, with msit's spellings and short forms as further names."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from atc.shape_sets import Shapes, parse_shape_ranges, parse_shapes
from ge.errors import ReportedError
from ge.option_table import Kind, Option, Rule, Status

_MAX_REPEATS = 10**9


def _count(least: int, most: int = _MAX_REPEATS) -> Rule:
    def check(text: str) -> str | None:
        if re.fullmatch("[0-9]{1,10}", text) and least <= int(text) <= most:
            return None
        return f"it must be a number from {least} to {most}"

    return Rule(code="R1001", check=check)


def _sizes(text: str) -> str | None:
    is_list = all(re.fullmatch("[0-9]{1,18}", part.strip()) and int(part) > 0 for part in text.split(","))
    return None if is_list else "it must be numbers of bytes of at least 1, separated by commas"


def _one_of(values: str) -> Rule:
    return Rule(code="R1001", values=tuple(values.split()))


_TEXT = Rule(code="R1001")
_SWITCH = Rule(kind=Kind.SWITCH, code="R1001")
_FILE = Rule(kind=Kind.FILE, code="R1001")
_TARGET = Rule(kind=Kind.TARGET, code="R1001")
_WORKS, _LATER = Status.IMPLEMENTED, Status.NOT_YET

# fmt: off
# name, further names, status, rule, default, help text
_ROWS: dict[str, tuple[tuple[str, str, Status, Rule, str, str], ...]] = {
    "General": (
        ("help", "h", _WORKS, Rule(kind=Kind.FLAG, code="R1001"), "", "Show this text."),
        ("model", "m om om_model", _WORKS, _FILE, "", "The .om file to run."),
        ("device", "d", _WORKS, _count(0, 255), "0", "Device number; there is one device, the CPU."),
        ("threads", "", _WORKS, _count(1, 4096), "", "Threads to compute with; by default all usable cores."),
        ("custom_ops", "", _WORKS, Rule(kind=Kind.FOLDER, code="R1001"), "",
            "Folder with the files that declare the custom operators of the model, or an opp folder. Each is executed; "
            "without it none is."),
        ("debug", "", _WORKS, _SWITCH, "false",
            "Show inputs, outputs and kernels of the model; check the padding after every operator."),
    ),
    "Input": (
        ("input", "i", _WORKS, _TEXT, "",
            "Files, all of the first input first, separated by commas; or one directory per input. Without it the "
            "inputs are made up, see --pure_data_type."),
        ("pure_data_type", "pdt", _WORKS, _one_of("zero random"), "zero",
            "What made up inputs hold: zero, or random values (the same ones on every run)."),
        ("allow_reinterpret", "", _WORKS, _SWITCH, "false",
            "Take .npy files of the right number of bytes whatever their data type and shape are."),
    ),
    "Output": (
        ("output", "o", _WORKS, _TARGET, "", "Directory for the results; without it nothing is saved."),
        ("output_dirname", "od", _WORKS, _TEXT, "",
            "Directory inside --output, written over on every run; by default named after date and time."),
        ("outfmt", "", _WORKS, _one_of("NPY BIN TXT"), "BIN", "Form of the results: NPY, BIN or TXT."),
    ),
    "Dump": (
        ("dump", "", _WORKS, _SWITCH, "false", "Save what every operator reads and makes, below --output/dump."),
        ("dump_mode", "", _WORKS, _one_of("input output all"), "all", "Save the inputs of operators, their outputs, or "
            "both."),
        ("dump_layer", "", _WORKS, _TEXT, "", "Operators to save, by their names in the .om or in the original model, "
            "separated by commas; by default all."),
        ("dump_extra", "", _WORKS, _SWITCH, "false", "Save also what devices do not: inputs and constants of the "
            "model, and operators that only show the memory of others."),
        ("acl_json_path", "acl", _WORKS, _FILE, "", "File whose entry \"dump\" says what is dumped, and where to; "
            "it goes before --dump."),
        ("dump_npy", "", _WORKS, _SWITCH, "false", "Convert the dump to .npy, which happens without this option too."),
    ),
    "Measuring": (
        ("loop", "l", _WORKS, _count(1), "1", "How often every set of inputs is run."),
        ("warmup_count", "wcount", _WORKS, _count(0), "1", "Runs before the measured ones."),
        ("batchsize", "", _WORKS, _count(1), "", "Samples per run, for the throughput; by default the first "
            "dimension of the first input."),
    ),
    "Dynamic shapes": (
        ("dymBatch", "db dym_batch", _LATER, _TEXT, "", "Batch size to run a model with batch gears at."),
        ("dymHW", "dhw dym_hw", _LATER, _TEXT, "", "Image size, \"h,w\"."),
        ("dymDims", "dd dym_dims", _LATER, _TEXT, "", "Dimensions, \"a:1,600;b:1,600\"."),
        ("dymShape", "ds dym_shape", _WORKS, _TEXT, "", "Shapes to run a model with open dimensions at, "
            "\"a:1,600;b:1,600\"."),
        ("dymShape_range", "dr dym_shape_range", _WORKS, _TEXT, "", "Shapes to run one after the other, each dimension "
            "a number, low~high or low~high~step, or several of these joined by '-'; or a file with a set on each "
            "line."),
        ("auto_set_dymshape_mode", "asdsm", _WORKS, _SWITCH, "false", "Take the shapes from the .npy files."),
        ("auto_set_dymdims_mode", "asddm", _LATER, _SWITCH, "false", "Take the dimensions from the .npy files."),
        ("outputSize", "outsize output_size", _WORKS, Rule(code="R1001", check=_sizes), "", "Most bytes that each "
            "output may take, separated by commas. Not needed: outputs take what they need."),
    ),
    "Others": (
        ("output_batchsize_axis", "oba", _LATER, _TEXT, "0", "Axis along which results are split into samples."),
        ("run_mode", "rm", _LATER, _one_of("array files tensor full"), "array", "How inputs are handed over."),
        ("display_all_summary", "das", _LATER, _SWITCH, "false", "Show the times of copies too."),
        ("profiler", "pf", _LATER, _SWITCH, "false", "Measure every operator."),
        ("profiler_rename", "", _LATER, _SWITCH, "false", "Name the profile after the call."),
        ("aipp_config", "", _LATER, _FILE, "", "AIPP configuration."),
        ("divide_input", "", _LATER, _SWITCH, "false", "Share the inputs between devices."),
        ("pipeline", "", _LATER, _SWITCH, "false", "Read, run and save at the same time."),
        ("energy_consumption", "", _LATER, _SWITCH, "false", "Measure the energy."),
        ("npu_id", "", _LATER, _TEXT, "", "Chip for --energy_consumption."),
        ("backend", "", _LATER, _TEXT, "", "Other engine to run with."),
        ("perf", "", _LATER, _SWITCH, "false", "Measure the other engine."),
        ("infer_queue_count", "", _WORKS, _TEXT, "", "Withdrawn; ignored with a warning."),
    ),
}
# fmt: on
# What options that are not implemented yet may be set to, because it is what happens anyway.
_GRANTED: dict[str, tuple[str, ...]] = {
    "run_mode": ("array",),
    "output_batchsize_axis": ("0",),
    "dymBatch": ("0",),
}


def _options() -> Iterator[Option]:
    for group, rows in _ROWS.items():
        for name, aliases, status, rule, default, text in rows:
            is_later_switch = status is _LATER and rule.kind is Kind.SWITCH
            granted = _GRANTED.get(name, ("false",) if is_later_switch else ())
            yield Option(
                name, group, text, rule, status, default=default, granted=granted, aliases=tuple(aliases.split())
            )


RUN_OPTIONS: dict[str, Option] = {option.name: option for option in _options()}


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """The options of one run of ``om-run``, checked and typed."""

    model: str
    input: tuple[str, ...] = ()
    """Files or directories as given; empty: inputs are made up."""
    output: str = ""
    output_dirname: str = ""
    outfmt: str = "BIN"
    loop: int = 1
    warmup_count: int = 1
    pure_data_type: str = "zero"
    batchsize: int | None = None
    threads: int | None = None
    custom_ops: str = ""
    """Folder with files of custom operators; empty: there are none."""
    debug: bool = False
    allow_reinterpret: bool = False
    device: int = 0
    shape_sets: tuple[Shapes, ...] = ()
    """Shapes of the inputs: one set of --dymShape, or those of --dymShape_range, each for runs of its own."""
    shapes_from: str = ""
    """The option that says what shapes the inputs have, if there is one."""
    output_sizes: tuple[int, ...] = ()
    """Most bytes per output; empty: no limit."""
    dump: bool = False
    """Whether operators are dumped, below ``output``."""
    dump_mode: str = "all"
    dump_layers: tuple[str, ...] = ()
    """Names of operators; empty: all."""
    dump_extra: bool = False
    acl_json_path: str = ""
    """File that says what is dumped; empty: the options do."""


def run_options(values: Mapping[str, str]) -> RunOptions:
    """Check ``values`` (as the lexer gives them) and return the typed options; raises the first fault."""
    if values.get("dump") == "true" and values.get("profiler") == "true":
        raise ReportedError("R1006", parameter1="--dump", parameter2="--profiler")
    _refuse_unimplemented(values)
    for name, value in values.items():
        RUN_OPTIONS[name].check_value(value)
    if not values.get("model"):
        raise ReportedError("R1002", parameter="--model")
    names = tuple(part.strip() for part in values.get("input", "").split(",")) if values.get("input") else ()
    if "" in names:
        raise RUN_OPTIONS["input"].refuse(values["input"], "there is an empty name between two commas")
    if names and "pure_data_type" in values:
        raise ReportedError("R1006", parameter1="--pure_data_type", parameter2="--input")
    _check_dirname(values)
    _check_dump(values)
    shapes_from = _shapes_from(values)

    def number(name: str) -> int | None:
        return int(values[name]) if name in values else None

    return RunOptions(
        model=values["model"],
        input=names,
        output=values.get("output", ""),
        output_dirname=values.get("output_dirname", ""),
        outfmt=values.get("outfmt", "BIN"),
        loop=int(values.get("loop", "1")),
        warmup_count=int(values.get("warmup_count", "1")),
        pure_data_type=values.get("pure_data_type", "zero"),
        batchsize=number("batchsize"),
        threads=number("threads"),
        custom_ops=values.get("custom_ops", ""),
        debug=values.get("debug") == "true",
        allow_reinterpret=values.get("allow_reinterpret") == "true",
        device=int(values.get("device", "0")),
        shape_sets=_shape_sets(values),
        shapes_from=shapes_from,
        output_sizes=tuple(int(size) for size in values.get("outputSize", "").split(",") if size.strip()),
        dump=values.get("dump") == "true",
        dump_mode=values.get("dump_mode", "all"),
        dump_layers=_layers(values),
        dump_extra=values.get("dump_extra") == "true",
        acl_json_path=values.get("acl_json_path", ""),
    )


def _layers(values: Mapping[str, str]) -> tuple[str, ...]:
    """Return the names in --dump_layer. Raises R1001 for a list with nothing between two commas."""
    text = values.get("dump_layer", "")
    names = tuple(dict.fromkeys(name.strip() for name in text.split(","))) if text else ()
    if "" in names:
        raise RUN_OPTIONS["dump_layer"].refuse(text, "there is an empty name between two commas")
    return names


def _check_dump(values: Mapping[str, str]) -> None:
    """Raise R1004 for a dump without a place, and for its options without one."""
    if values.get("dump") == "true":
        if not values.get("output"):
            raise ReportedError("R1004", parameter="--dump", needed="--output")
        return
    for name in ("dump_mode", "dump_layer", "dump_extra", "dump_npy"):
        if values.get(name) not in (None, "false"):
            raise ReportedError("R1004", parameter=f"--{name}", needed="--dump")


def _shapes_from(values: Mapping[str, str]) -> str:
    """Return the one option that says what shapes the inputs have; ``""``: none. Raises R1004 and R1006."""
    given = [name for name in ("dymShape", "dymShape_range") if values.get(name)]
    if values.get("auto_set_dymshape_mode") == "true":
        given.append("auto_set_dymshape_mode")
    flags = [RUN_OPTIONS[name].flag for name in given]
    if len(flags) > 1:
        raise ReportedError("R1006", parameter1=flags[0], parameter2=flags[1])
    if given == ["dymShape_range"] and values.get("input"):
        raise ReportedError("R1006", parameter1=flags[0], parameter2="--input")
    if given == ["auto_set_dymshape_mode"] and not values.get("input"):
        raise ReportedError("R1004", parameter=flags[0], needed="--input")
    return "".join(flags)


def _shape_sets(values: Mapping[str, str]) -> tuple[Shapes, ...]:
    if values.get("dymShape"):
        return (parse_shapes(values["dymShape"]),)
    return tuple(parse_shape_ranges(values["dymShape_range"])) if values.get("dymShape_range") else ()


def _refuse_unimplemented(values: Mapping[str, str]) -> None:
    for name, value in values.items():
        option = RUN_OPTIONS[name]
        if option.status is Status.NOT_YET and value not in option.granted:
            raise ReportedError("R1005", parameter=option.flag)
    if "," in values.get("device", ""):
        raise ReportedError("R1005", parameter="--device with several numbers", solution="Give one device number.")


def _check_dirname(values: Mapping[str, str]) -> None:
    name = values.get("output_dirname", "")
    if not name:
        return
    if not values.get("output"):
        raise ReportedError("R1004", parameter="--output_dirname", needed="--output")
    parts = re.split(r"[/\\]" if os.name == "nt" else "/", name)
    if os.path.isabs(name) or ".." in parts or "\0" in name or all(part in ("", ".") for part in parts):
        reason = "it must be a path inside --output, without '..'"
        raise RUN_OPTIONS["output_dirname"].refuse(name, reason)
