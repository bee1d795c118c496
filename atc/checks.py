"""From option values to :class:`CompileOptions`: the checks, in the order that decides which fault is reported.

The order is ATC's. Each check is a function of the values as the lexer gives them; none of them looks into the model.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from atc.model_suffixes import check_is_no_folder, check_suffix
from ge import option_grammar
from ge.atomic_file import check_writable
from ge.errors import ReportedError
from ge.fusion_switches import FusionSwitches, parse_switch_list, read_switch_file
from ge.graph.types import FORMAT_BY_TEXT
from ge.mapped_file import why_unreadable
from ge.ops.precision import has_bf16, has_hif8
from ge.option_table import OPTIONS, Kind, Option, Status
from ge.options import (
    DEFAULT_PRECISION,
    INPUT_FORMATS,
    CompileOptions,
    Environment,
    Framework,
    Mode,
    parse_half_inputs,
    parse_half_outputs,
    parse_out_nodes,
    parse_output_type,
)
from ge.precision_files import (
    Customized,
    KeptNodes,
    MixListChanges,
    read_customized,
    read_kept_nodes,
    read_mix_list,
)

_NEEDS_MODEL = frozenset({Mode.COMPILE, Mode.PRE_CHECK, Mode.COMPILE_OM2, Mode.COMPILE_EXEOM})
_NEEDS_OUTPUT = _NEEDS_MODEL - {Mode.PRE_CHECK}
_SUPPORTED_MODES = frozenset({Mode.COMPILE, Mode.TO_JSON, Mode.PRE_CHECK, Mode.DISPLAY})
_NAMED_MISTAKES = {
    Framework.CAFFE: "Caffe models (--framework=0)",
    Framework.MINDSPORE: "MindSpore models (--framework=1)",
}


@dataclass(frozen=True)
class Given:
    """The values as the lexer gives them, and what happens around them."""

    values: Mapping[str, str]
    environment: Environment
    warn: Callable[[str], None]
    is_library_call: bool = False
    """Whether a program asks, so that the result goes back to it and neither model nor output must be paths."""

    def __getitem__(self, name: str) -> str:
        return self.values.get(name, "")

    @property
    def mode(self) -> Mode:
        """The value of ``--mode``, or its default."""
        return Mode(int(self["mode"] or OPTIONS["mode"].default))

    @property
    def framework(self) -> Framework | None:
        """The value of ``--framework``, if given."""
        return Framework(int(self["framework"])) if self["framework"] else None

    @property
    def check_report(self) -> str:
        """Path of the report: the option, else the work folder of the environment, else the current folder."""
        name = OPTIONS["check_report"].default
        return self["check_report"] or os.path.join(self.environment.work_path, name)


def check(given: Given) -> CompileOptions:
    """Run all checks that the mode asks for and return the typed options; raises the first fault."""
    for step in CHECKS[given.mode]:
        step(given)
    return _typed(given)


def _typed(given: Given) -> CompileOptions:
    framework = Framework.ONNX if given.framework is None else given.framework
    out_nodes = parse_out_nodes(given["out_nodes"])
    is_default_precision = not (given["precision_mode"] or given["precision_mode_v2"])
    recorded = {name: _without_folder(name, given[name]) for name in OPTIONS if given[name] and _is_recorded(name)}
    return CompileOptions(
        mode=given.mode,
        model=given["model"],
        framework=framework,
        output=given["output"],
        soc_version=given["soc_version"],
        input_shape=_input_shape(given),
        input_format=FORMAT_BY_TEXT[given["input_format"] or INPUT_FORMATS[framework][0]],
        out_nodes=out_nodes,
        output_type=parse_output_type(given["output_type"], out_nodes),
        half_inputs=parse_half_inputs(given["input_fp16_nodes"], given["is_input_adjust_hw_layout"], _unheard),
        half_outputs=parse_half_outputs(out_nodes, given["is_output_adjust_hw_layout"], _unheard),
        precision_mode=given["precision_mode"],
        precision_mode_v2=DEFAULT_PRECISION if is_default_precision else given["precision_mode_v2"],
        is_default_precision=is_default_precision,
        kept_nodes=read_kept_nodes(given["keep_dtype"]) if given["keep_dtype"] else KeptNodes(),
        custom_types=read_customized(given["customize_dtypes"]) if given["customize_dtypes"] else Customized(),
        mix_list_changes=read_mix_list(given["modify_mixlist"]) if given["modify_mixlist"] else MixListChanges(),
        is_weight_clip=(given["is_weight_clip"] or OPTIONS["is_weight_clip"].default) == "1",
        format_refinement=(given["format_refinement"] or OPTIONS["format_refinement"].default) == "1",
        enable_small_channel=given["enable_small_channel"] == "1",
        log=given["log"] or OPTIONS["log"].default,
        display_model_info=given["display_model_info"] == "1",
        check_report=given.check_report,
        om=given["om"],
        om_is_source=bool(given["om"]) and given.framework is not None,
        json=given["json"],
        host_env_os=given["host_env_os"],
        host_env_cpu=given["host_env_cpu"],
        opp=given["opp"],
        pass_timeout=int(given["pass_timeout"] or OPTIONS["pass_timeout"].default),
        fusion_switches=_fusion_switches(given),
        export_compile_stat=_compile_stat(given),
        recorded=recorded,
        ge_options={option.key: given[name] for name, option in OPTIONS.items() if option.key and given[name]},
        command_line=_command_line(given),
    )


def _input_shape(given: Given) -> dict[str, tuple[option_grammar.Dim, ...]]:
    """Return the shapes of the inputs: ``--input_shape_range`` overrides ``--input_shape``."""
    if given["input_shape_range"]:
        return option_grammar.parse_input_shape_range(given["input_shape_range"])
    return option_grammar.parse_input_shape(given["input_shape"])


def _fusion_switches(given: Given) -> FusionSwitches:
    graph, loops = read_switch_file(given["fusion_switch_file"]) if given["fusion_switch_file"] else ({}, {})
    overrides = parse_switch_list(given["optimization_switch"], given.warn)
    return FusionSwitches(graph, loops, overrides, is_level_one=given["oo_level"] == "O1")


def _compile_stat(given: Given) -> int:
    """A program that calls the compiler gets files only if it asks for them."""
    return int(given["export_compile_stat"] or (0 if given.is_library_call else OPTIONS["export_compile_stat"].default))


def _is_recorded(name: str) -> bool:
    return OPTIONS[name].status is Status.RECORDED


def _without_folder(name: str, value: str) -> str:
    """Return a path's last part, so that the .om does not depend on where files lie; other values as they are."""
    is_path = OPTIONS[name].rule.kind in (Kind.FILE, Kind.FOLDER, Kind.TARGET)
    return os.path.basename(os.path.normpath(value)) if is_path else value


def _command_line(given: Given) -> str:
    """Return the command line as the .om keeps it: the same for the same compile, wherever the files lie."""
    on_screen_only = {"help", "log", "display_model_info", "pass_timeout"}
    words = ["atc"]
    for name, option in OPTIONS.items():
        if not given[name] or name in on_screen_only:
            continue
        if name == "output":
            words.append(f"--output={os.path.basename(given[name])}")
        elif option.rule.kind not in (Kind.FILE, Kind.FOLDER, Kind.TARGET):
            words.append(f"--{name}={given[name]}")
    return shlex.join(words)


# -- the checks --------------------------------------------------------------------------------------------------------


def refuse_unimplemented(given: Given) -> None:
    """E10055 for options that are known but not built yet, all of them in one message."""
    refused = []
    for name, value in given.values.items():
        option = OPTIONS[name]
        if option.status is Status.NOT_YET and value not in option.granted:
            option.check_value(value)
            refused.append(option.flag)
    if refused:
        verb = "is" if len(refused) == 1 else "are"
        raise ReportedError("E10055", reason=f"{', '.join(refused)} {verb} known but not implemented yet")


def no_auto_tuning(given: Given) -> None:
    """E10001 for any value of ``--auto_tune_mode``."""
    _check_value(given, "auto_tune_mode")


def deterministic_pair(given: Given) -> None:
    """E10001 unless level 0 and ``--deterministic=0`` go together."""
    _check_value(given, "deterministic_level")
    level = given["deterministic_level"]
    is_deterministic = given["deterministic"] == "1"
    if level and (level != "0") != is_deterministic:
        reason = f"--deterministic={int(is_deterministic)} goes with level {'1, 2 or 3' if is_deterministic else '0'}"
        raise OPTIONS["deterministic_level"].refuse(level, reason)


def framework_and_weight(given: Given) -> None:
    """E10007 without a framework, E10008 for Caffe without weights, E10055 for those that are not built yet."""
    framework = given.framework
    if framework is None:
        choices = "0 (Caffe), 1 (MindSpore), 3 (TensorFlow), 5 (ONNX)"
        raise ReportedError("E10007", parameter="--framework", value="missing", support=choices)
    if given["weight"]:
        option_grammar.check_input_file(given["weight"], "--weight")
    elif framework is Framework.CAFFE:
        raise ReportedError("E10008")
    _implemented(framework)
    if given["weight"]:
        given.warn("--weight is ignored: only Caffe models have their weights in a second file")


def _implemented(framework: Framework | None) -> None:
    if framework in _NAMED_MISTAKES:
        reason = f"{_NAMED_MISTAKES[framework]} are not implemented yet"
        raise ReportedError("E10055", reason=reason, solution="Export the model as ONNX and give --framework=5.")


def mode_fits_chip(given: Given) -> None:
    """E10055 where ``--mode`` and ``--soc_version`` do not go together or the mode is not built yet."""
    is_lite = given["soc_version"] in option_grammar.LITE_SOC_VERSIONS
    if is_lite != (given.mode is Mode.COMPILE_EXEOM) and given.mode is not Mode.PRE_CHECK and given["soc_version"]:
        lite = ", ".join(sorted(option_grammar.LITE_SOC_VERSIONS))
        reason = f"--mode={int(given.mode)} and --soc_version={given['soc_version']} do not go together"
        raise ReportedError("E10055", reason=reason, solution=f"Use --mode=30 for {lite}, and --mode=0 for others.")
    _supported_mode(given)


def _supported_mode(given: Given) -> None:
    if given.mode not in _SUPPORTED_MODES:
        raise ReportedError("E10055", reason=f"--mode={int(given.mode)} is known but not implemented yet")


def input_format(given: Given) -> None:
    """E10001 for a format that the framework does not have."""
    allowed = INPUT_FORMATS[given.framework or Framework.ONNX]
    value = given["input_format"]
    if value and value not in allowed:
        raise OPTIONS["input_format"].refuse(value, f"for this kind of model it must be one of {', '.join(allowed)}")


def required(given: Given) -> None:
    """E10054 where soc_version, output or model is missing; E10001 for a chip that nobody knows."""
    names = ["soc_version"]
    if not given.is_library_call:
        names += ["output"] * (given.mode in _NEEDS_OUTPUT) + ["model"]
    for name in names:
        if not given[name]:
            raise ReportedError("E10054", parameter=OPTIONS[name].flag)
    option_grammar.check_soc_version(given["soc_version"])


def model_is_readable(given: Given) -> None:
    """E10001 unless the model is a file that can be read and its name says nothing else."""
    if given["model"]:
        _check_model_file(given, "model")


def _check_model_file(given: Given, name: str) -> None:
    path, framework = given[name], given.framework or Framework.ONNX
    if framework is Framework.TENSORFLOW:
        check_is_no_folder(path, f"--{name}")
    option_grammar.check_input_file(path, f"--{name}")
    check_suffix(path, f"--{name}", framework)


def output_path(given: Given) -> None:
    """E10022, E10021, E10001 for the path itself, E13004 if it can be seen to be unwritable."""
    if given["output"]:
        option_grammar.check_output_stem(given["output"], "--output")
        check_writable(f"{given['output']}.om")


def distinct_files(given: Given) -> None:
    """E10001 for a result that would take the place of a file that is read, or of another result."""
    taken = {
        os.path.realpath(given[name]): option.flag
        for name, option in OPTIONS.items()
        if given[name] and option.rule.kind is Kind.FILE
    }
    suffixes = {"output": ".om"} if given.mode in _NEEDS_OUTPUT else {}
    for name in ("output", "check_report", "json"):
        path = given[name] and os.path.realpath(f"{given[name]}{suffixes.get(name, '')}")
        if path in taken:
            reason = f"the result would take the place of the file of {taken[path]}"
            raise OPTIONS[name].refuse(given[name], reason)
        if path:
            taken[path] = OPTIONS[name].flag


def kernel_choice(given: Given) -> None:
    """E10001 for ``--op_select_implmode`` and what goes with it."""
    _check_value(given, "op_select_implmode")
    if given["optypelist_for_implmode"] and not given["op_select_implmode"]:
        reason = "it has no effect without --op_select_implmode"
        raise OPTIONS["optypelist_for_implmode"].refuse(given["optypelist_for_implmode"], reason)
    if given["op_precision_mode"]:
        option_grammar.check_input_file(given["op_precision_mode"], "--op_precision_mode")
        _check_op_precision_file(given["op_precision_mode"])


_OP_PRECISIONS = (
    *("high_precision", "high_performance", "enable_float_32_execution", "enable_hi_float_32_execution"),
    *("support_out_of_bound_index", "keep_fp16", "super_performance"),
)
_MAX_CONFIGURATION_BYTES = 16 << 20


def _check_op_precision_file(path: str) -> None:
    """E20003 unless the file has sections [ByOpType] and [ByNodeName] with name=precision lines."""
    for number, line in enumerate(_configuration_text(path, "--op_precision_mode").splitlines(), 1):
        entry = line.strip()
        name, _, precision = (part.strip() for part in entry.partition("="))
        if not entry or entry[0] in "#;" or entry in ("[ByOpType]", "[ByNodeName]"):
            continue
        if entry[0] == "[" or not name or precision not in _OP_PRECISIONS:
            expected = f"[ByOpType], [ByNodeName] or name=precision with one of {', '.join(_OP_PRECISIONS)}"
            raise ReportedError("E20003", file=path, reason=f"line {number} is '{entry[:80]}'; expected {expected}")


def _configuration_text(path: str, parameter: str) -> str:
    try:
        with open(path, "rb") as file:
            content = file.read(_MAX_CONFIGURATION_BYTES + 1)
        if len(content) > _MAX_CONFIGURATION_BYTES:
            raise ReportedError("E13015", file=path, size=os.path.getsize(path), maxsize=_MAX_CONFIGURATION_BYTES)
        return content.decode("utf-8-sig")
    except OSError as fault:
        raise ReportedError("E10001", value=path, parameter=parameter, reason=fault.strerror or str(fault)) from fault
    except UnicodeDecodeError as fault:
        raise ReportedError("E20003", file=path, reason="it is not UTF-8 text") from fault


def precision(given: Given) -> None:
    """E10001 for an unknown precision or one that the chip lacks, E10056 for both options; ``--modify_mixlist``."""
    names = [name for name in ("precision_mode", "precision_mode_v2") if given[name]]
    for name in names:
        _check_value(given, name)
    if len(names) == 2:
        raise ReportedError(
            "E10056", parameter1="--precision_mode", parameter2="--precision_mode_v2", solution=_KEEP_ONE_PRECISION
        )
    for name in names:
        _precision_fits_chip(OPTIONS[name], given[name], given["soc_version"])
    if given["modify_mixlist"]:
        _mix_list(given)


_KEEP_ONE_PRECISION = "Keep --precision_mode_v2 alone; origin keeps the precision of the model."
_BF16_MODES = frozenset({"mixed_bfloat16", "allow_mix_precision_bf16", "allow_fp32_to_bf16"})
_HIF8_MODES = frozenset({"mixed_hif8", "cube_hif8"})


def _precision_fits_chip(option: Option, value: str, soc_version: str) -> None:
    """E10001 for a precision that the chip does not have, E10055 for hifloat8, which nobody computes here."""
    if value in _BF16_MODES and not has_bf16(soc_version):
        reason = f"{soc_version} does not compute in bf16; A2, A3, 310B and 950 chips do (such as Ascend910B1)"
        raise option.refuse(value, reason)
    if value in _HIF8_MODES and not has_hif8(soc_version):
        raise option.refuse(value, f"{soc_version} does not compute in hifloat8; 950 chips do (such as Ascend950)")
    if value in _HIF8_MODES:
        raise ReportedError(
            "E10055",
            reason=f"{option.flag}={value} is known but not implemented yet",
            solution="Give --precision_mode_v2=mixed_float16 for mixed precision, or origin to keep the model's.",
        )


def _mix_list(given: Given) -> None:
    """E10001 for ``--modify_mixlist`` without a mixed precision or its file, E10032 for a file of another form."""
    option, mode = OPTIONS["modify_mixlist"], given["precision_mode"] or given["precision_mode_v2"]
    if "mix" not in mode:
        reason = f"it changes the lists of mixed precision, but the precision is {mode or DEFAULT_PRECISION}"
        solution = "Add --precision_mode_v2=mixed_float16, or leave the option away."
        raise ReportedError(
            "E10001", value=given["modify_mixlist"], parameter=option.flag, reason=reason, solution=solution
        )
    option_grammar.check_input_file(given["modify_mixlist"], option.flag)
    read_mix_list(given["modify_mixlist"])


def input_shape(given: Given) -> None:
    """All faults of the grammar of ``--input_shape`` and ``--input_shape_range``."""
    option_grammar.parse_input_shape(given["input_shape"])
    if given["input_shape_range"]:
        ignored = "; --input_shape is ignored" if given["input_shape"] else ""
        given.warn(f"--input_shape_range is deprecated: --input_shape takes ranges as well{ignored}")
        option_grammar.parse_input_shape_range(given["input_shape_range"])
    if given["input_hint_shape"]:
        option_grammar.parse_hint_shape(given["input_hint_shape"])


def other_paths(given: Given) -> None:
    """E10001 for a recorded option whose file or folder is not there."""
    for name, option in OPTIONS.items():
        if given[name] and option.status is Status.RECORDED:
            if option.rule.kind is Kind.FILE:
                option_grammar.check_input_file(given[name], option.flag)
            elif option.rule.kind is Kind.FOLDER:
                option_grammar.check_input_directory(given[name], option.flag)


def passes_and_fusions(given: Given) -> None:
    """E10001 for ``--opp``, ``--oo_level``, ``--pass_timeout``; E21001 and E20003 for ``--fusion_switch_file``."""
    if given["opp"]:
        option_grammar.check_input_directory(given["opp"], "--opp")
    if given["fusion_switch_file"]:
        reason = why_unreadable(given["fusion_switch_file"])  # before it is opened: a pipe would never answer
        if reason:
            raise ReportedError("E21001", file=given["fusion_switch_file"], errmsg=reason)
        read_switch_file(given["fusion_switch_file"])
        option_grammar.check_input_file(given["fusion_switch_file"], "--fusion_switch_file")
    _check_value(given, "oo_level")
    _check_value(given, "export_compile_stat")
    if len(given["pass_timeout"]) > 9:
        raise OPTIONS["pass_timeout"].refuse(given["pass_timeout"], "it must be less than 1000000000 seconds")


def compression(given: Given) -> None:
    """E10005 and E10047 for the options of weight compression."""
    _check_value(given, "enable_small_channel")
    _check_value(given, "format_refinement")
    _check_value(given, "enable_compress_weight")
    if given["enable_compress_weight"] == "true" and given["compress_weight_conf"]:
        raise ReportedError("E10047", parameter0="--enable_compress_weight", parameter1="--compress_weight_conf")


def dtype_files(given: Given) -> None:
    """All faults of the files of ``--keep_dtype`` and ``--customize_dtypes``; E10006 for ``--is_weight_clip``."""
    for name, read in (("keep_dtype", read_kept_nodes), ("customize_dtypes", read_customized)):
        if given[name]:
            option_grammar.check_input_file(given[name], OPTIONS[name].flag)
            read(given[name])
    _check_value(given, "is_weight_clip")


def check_report_path(given: Given) -> None:
    """E10022, E10021 and E10001 for ``--check_report``, E13004 if it can be seen to be unwritable."""
    if given["check_report"]:
        option_grammar.check_output_stem(given["check_report"], "--check_report")
        check_writable(given["check_report"])


def remaining_values(given: Given) -> None:
    """The own code of every option whose value is outside its set; pairs of stream options (E10056)."""
    for name, option in OPTIONS.items():
        if option.status in (Status.RECORDED, Status.REFUSED):
            _check_value(given, name)
    if given["enable_single_stream"] == "true" and given["multi_stream_parallel_mode"]:
        raise ReportedError("E10056", parameter1="--enable_single_stream", parameter2="--multi_stream_parallel_mode")
    if given["device_id"] and not re.fullmatch("[0-9]{1,9}", given["device_id"]):
        raise OPTIONS["device_id"].refuse(given["device_id"], "it must be a number")
    if given["shape_generalized_build_mode"]:
        given.warn("--shape_generalized_build_mode is deprecated and has no effect")


def host_environment(given: Given) -> None:
    """E10001 for an operating system or processor that ATC does not know."""
    _check_value(given, "host_env_os")
    _check_value(given, "host_env_cpu")


def outputs(given: Given) -> None:
    """All faults of ``--out_nodes`` and ``--output_type`` that can be seen without the model."""
    output_type = parse_output_type(given["output_type"], parse_out_nodes(given["out_nodes"]))
    wanted = {output_type.whole, *output_type.per_output.values()}
    refused = [name for name in option_grammar.NARROW_OUTPUT_TYPES if option_grammar.OUTPUT_TYPES[name] in wanted]
    if refused:
        raise ReportedError("E10055", reason=f"--output_type={refused[0]} is known but not implemented yet")


def layouts_of_ends(given: Given) -> None:
    """Faults of the options that say in which layout inputs and results are, as far as seen without the model."""
    parse_half_inputs(given["input_fp16_nodes"], given["is_input_adjust_hw_layout"], given.warn)
    out_nodes = parse_out_nodes(given["out_nodes"])
    wanted = parse_half_outputs(out_nodes, given["is_output_adjust_hw_layout"], given.warn)
    output_type = parse_output_type(given["output_type"], out_nodes)
    for node, is_wanted in zip(out_nodes, wanted, strict=True):
        is_typed = output_type.whole is not None or (node.name, node.index or 0) in output_type.per_output
        if is_wanted and is_typed:
            given.warn(f"--output_type decides over --is_output_adjust_hw_layout for output {node}")


def _unheard(text: str) -> None:
    """Take a warning that a check has shown already."""


def json_request(given: Given) -> None:
    """The options of ``--mode=1``: E10004 for what is missing, E10001 for paths and framework 1."""
    missing = [ReportedError("E10004", parameter=f"--{name}") for name in ("om", "json") if not given[name]]
    if missing:
        if given["model"] and not given["om"]:
            missing[0].solution = f"--om names the file to write, a model too: --om={given['model']} --framework=5."
        missing[0].also = tuple(missing[1:])
        raise missing[0]
    if given.framework is Framework.MINDSPORE:
        reason = "a MindSpore model cannot be written as JSON"
        raise ReportedError("E10001", value="1", parameter="--framework", reason=reason)
    _implemented(given.framework)
    if given.mode is Mode.TEXT_TO_JSON and not given["om"].endswith(".txt"):
        raise OPTIONS["om"].refuse(given["om"], "the file for --mode=5 must end with .txt")
    if given.framework is None:
        option_grammar.check_input_file(given["om"], "--om")
    else:
        _check_model_file(given, "om")
    option_grammar.check_output_stem(given["json"], "--json")
    check_writable(given["json"])
    _supported_mode(given)


def display_request(given: Given) -> None:
    """The options of ``--mode=6``: E10004 without an .om, E10057 with a framework."""
    if not given["om"]:
        raise ReportedError("E10004", parameter="--om")
    if given["framework"]:
        raise ReportedError("E10057", parameter0="--framework", parameter1="--mode=6")
    option_grammar.check_input_file(given["om"], "--om")


def _check_value(given: Given, name: str) -> None:
    if given[name]:
        OPTIONS[name].check_value(given[name])


Check = Callable[[Given], None]
_COMPILE_CHECKS: tuple[Check, ...] = (
    refuse_unimplemented,
    no_auto_tuning,
    deterministic_pair,
    framework_and_weight,
    mode_fits_chip,
    input_format,
    required,
    model_is_readable,
    output_path,
    kernel_choice,
    precision,
    input_shape,
    other_paths,
    passes_and_fusions,
    compression,
    dtype_files,
    check_report_path,
    distinct_files,
    remaining_values,
    host_environment,
    layouts_of_ends,
    outputs,
)
CHECKS: dict[Mode, tuple[Check, ...]] = {
    Mode.COMPILE: _COMPILE_CHECKS,
    Mode.COMPILE_OM2: _COMPILE_CHECKS,
    Mode.COMPILE_EXEOM: _COMPILE_CHECKS,
    Mode.PRE_CHECK: tuple(step for step in _COMPILE_CHECKS if step is not output_path),
    Mode.TO_JSON: (refuse_unimplemented, json_request, distinct_files),
    Mode.TEXT_TO_JSON: (refuse_unimplemented, json_request, distinct_files),
    Mode.DISPLAY: (refuse_unimplemented, display_request),
}
