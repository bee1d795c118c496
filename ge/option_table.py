"""The options of ``atc`` as one table: name, rule for the value, default, GE key, and what this version does with it.

The lexer, the checks and ``--help`` are made from :data:`OPTIONS`. The classes serve any command line of the project.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum

from ge.errors import ReportedError


class Kind(Enum):
    """How a value is written, and for paths what must be there."""

    TEXT = "text"
    NUMBER = "digits only, no sign"
    FLAG = "true or false, joined by '='; alone it means true"
    SWITCH = "true or false, joined by '=' or following; alone it means true"
    FILE = "an existing file"
    FOLDER = "an existing directory"
    TARGET = "a path to be written"


class Effect(Enum):
    """What an option can do without an NPU."""

    WORKS = "W"
    METADATA = "M"
    HARDWARE = "H"


class Status(Enum):
    """What this version does with an option."""

    IMPLEMENTED = "implemented"
    RECORDED = "recorded"
    NOT_YET = "not implemented yet"
    REFUSED = "refused with every value"


@dataclass(frozen=True)
class Rule:
    """What a value must be.

    ``values`` is a closed set, refused with ``code``; the lexer looks at it unless ``late``, then the checks do.
    ``check`` returns what is wrong with a value, or None; the checks call it.
    """

    kind: Kind = Kind.TEXT
    values: tuple[str, ...] = ()
    code: str = "E10001"
    late: bool = False
    check: Callable[[str], str | None] | None = None


@dataclass(frozen=True)
class Option:
    """One row of a table. ``granted`` lists the values of a NOT_YET option that ask for what happens anyway."""

    name: str
    group: str
    help: str
    rule: Rule = Rule()
    status: Status = Status.IMPLEMENTED
    effect: Effect = Effect.WORKS
    default: str = ""
    key: str = ""
    granted: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()

    @property
    def flag(self) -> str:
        """The option as it is written on the command line."""
        return f"--{self.name}"

    def refuse(self, value: str, reason: str = "") -> ReportedError:
        """Return the error for ``value`` under the code of this option's rule."""
        choices = ", ".join(self.rule.values)
        return ReportedError(
            self.rule.code,
            value=value,
            parameter=self.flag,
            reason=reason or f"it must be one of {choices}",
            support=choices,
            loglevel=value,
        )

    def check_value(self, value: str) -> None:
        """Raise the error of this option's rule unless ``value`` is in its set and passes its check."""
        if self.rule.values and value not in self.rule.values:
            raise self.refuse(value)
        reason = self.rule.check(value) if self.rule.check else None
        if reason:
            raise self.refuse(value, reason)


def _numbers(text: str, separator: str) -> list[int] | None:
    parts = [part for part in text.split(separator) if part]
    if parts and all(part.isascii() and part.isdecimal() and len(part) < 20 for part in parts):
        return [int(part) for part in parts]
    return None


def _aicore_num(text: str) -> str | None:
    numbers = _numbers(text, "|")
    if numbers is None or text.startswith("|") or text.count("|") > 1:
        return "it must be N, N| or cube|vector with numbers of cores"
    return None if all(numbers) else "a number of cores must be at least 1"


def _multi_stream_mode(text: str) -> str | None:
    mode, _, streams = text.partition(":")
    if text == "cv" or (mode in ("LoadBalance", "MainStream") and streams in map(str, range(1, 65))):
        return None
    return "it must be cv, LoadBalance:N or MainStream:N with N from 1 to 64"


def _h2d_overlap(text: str) -> str | None:
    numbers = _numbers(text, ",")
    if numbers is None:
        return "it must be 0, 1 or a list of numbers such as 44,64,68"
    return None if all(a < b for a, b in itertools.pairwise(numbers)) else "the numbers must ascend"


def _no_auto_tune(text: str) -> str | None:
    return "automatic tuning is not part of ATC any more; leave the option away"


def _no_compression_library(text: str) -> str | None:
    return "it needs the AMCT library, which is not there; quantise the model before compiling it"


def _lexed(values: str, code: str = "E10001", kind: Kind = Kind.TEXT) -> Rule:
    return Rule(kind=kind, values=tuple(values.split()), code=code)


def _late(values: str, code: str = "E10001") -> Rule:
    return Rule(values=tuple(values.split()), code=code, late=True)


PRECISION_MODES = (
    "force_fp16 force_fp32 cube_fp16in_fp32out must_keep_origin_dtype allow_mix_precision allow_mix_precision_fp16 "
    "allow_mix_precision_bf16 allow_fp32_to_fp16 allow_fp32_to_bf16"
)
# What --precision_mode_v2 is when neither precision option is given, as in ATC: the one place that says so. If it were
# "origin", compiles that leave both options away would get a warning.
DEFAULT_PRECISION = "fp16"
PRECISION_MODES_V2 = "fp16 origin cube_fp16in_fp32out mixed_float16 mixed_bfloat16 mixed_hif8 cube_hif8"

_TEXT, _FLAG = Rule(), Rule(kind=Kind.FLAG)
_FILE, _FOLDER, _TARGET = Rule(kind=Kind.FILE), Rule(kind=Kind.FOLDER), Rule(kind=Kind.TARGET)
_BIT, _BIT_NUMBER, _LATE_BIT = _lexed("0 1", "E10006"), _lexed("0 1", "E10006", Kind.NUMBER), _late("0 1", "E10006")
_BOOLEAN = _late("true false", "E10005")
FORMAT_REFINEMENT = "1"
"""The default of ``--format_refinement``."""

_WORKS, _TAKEN, _LATER = Status.IMPLEMENTED, Status.RECORDED, Status.NOT_YET
_W, _M, _H = Effect.WORKS, Effect.METADATA, Effect.HARDWARE

_Row = tuple[str, Status, Effect, Rule, str, str, str]

# fmt: off
# name, status, effect, rule, default, GE key,
#     help text
_ROWS: dict[str, tuple[_Row, ...]] = {
    "General": (
        ("help", _WORKS, _W, _FLAG, "", "",
            "Show this text."),
        ("mode", _WORKS, _W, _lexed("0 1 3 5 6 7 30", kind=Kind.NUMBER), "0", "",
            "What to do: 0 compile; 1 write an .om or a model as JSON; 3 check the model only; 5 text dump to JSON; "
            "6 show what an .om holds; 7 compile to .om2; 30 compile to .exeom. (5, 7 and 30: not implemented yet.)"),
        ("raw_ge_options", _LATER, _W, _FILE, "", "",
            "JSON file with GE options."),
        ("raw_ge_options_ignore_unsupported", _LATER, _W, _FLAG, "false", "",
            "Warn about unknown keys in --raw_ge_options instead of refusing them."),
    ),
    "Input": (
        ("model", _WORKS, _W, _FILE, "", "",
            "The model file. A suffix that names another kind of file than --framework (.txt, .pth, .om) is refused."),
        ("weight", _WORKS, _W, _FILE, "", "",
            "The weights of a Caffe model; ignored for others."),
        ("framework", _WORKS, _W, _lexed("0 1 3 5", "E10007", Kind.NUMBER), "", "ge.frameworkType",
            "The kind of the model file: 0 Caffe, 1 MindSpore, 3 TensorFlow (a frozen graph), 5 ONNX. (0 and 1: not "
            "implemented yet.)"),
        ("om", _WORKS, _W, _FILE, "", "",
            "The .om file to write as JSON (--mode=1; with --framework a model) or to show (--mode=6)."),
        ("input_format", _WORKS, _W, _TEXT, "NCHW", "input_format",
            "Format of the inputs: NCHW, ND or NCDHW."),
        ("input_shape", _WORKS, _W, _TEXT, "", "ge.inputShape",
            "Shapes of the inputs, \"name:d0,d1;name2:d0\"; no dimension is a scalar, -1 and low~high are dimensions "
            "that are known when the model runs."),
        ("input_shape_range", _WORKS, _W, _TEXT, "", "input_shape_range",
            "Deprecated way to give shape ranges, \"name:[1~8,3,-1];name2:[]\"; overrides --input_shape."),
        ("input_hint_shape", _TAKEN, _M, _TEXT, "", "ge.inputHintShape",
            "Likely shapes of dynamic inputs, \"index:[d0,d1];index2:[]\"."),
        ("dynamic_batch_size", _LATER, _W, _TEXT, "", "ge.dynamicBatchSize",
            "Batch sizes to compile for, \"1,2,4\"."),
        ("dynamic_image_size", _LATER, _W, _TEXT, "", "ge.dynamicImageSize",
            "Image sizes to compile for, \"h,w;h,w\"."),
        ("dynamic_dims", _LATER, _W, _TEXT, "", "ge.dynamicDims",
            "Values of the -1 dimensions to compile for, \"a,b;c,d\"."),
        ("singleop", _LATER, _W, _FILE, "", "",
            "JSON file with single operators to compile."),
    ),
    "Output": (
        ("output", _WORKS, _W, _TARGET, "", "",
            "Path of the result without its suffix: .om is appended."),
        ("output_type", _WORKS, _W, _TEXT, "", "ge.outputDatatype",
            "Data type of all outputs, or \"node:index:type;...\" for outputs in --out_nodes: FP32, FP16, UINT8, "
            "INT8. (HIF8, HIF4, FP8E5M2, FP8E4M3FN: not implemented yet.)"),
        ("check_report", _WORKS, _W, _TARGET, "check_result.json", "check_report",
            "Where the report of the model check is written."),
        ("json", _WORKS, _W, _TARGET, "", "",
            "The JSON file to write (--mode=1)."),
        ("host_env_os", _WORKS, _M, _late("linux minios"), "", "ge.host_env_os",
            "Operating system that a dynamic model is for: linux or minios; by default this one."),
        ("host_env_cpu", _WORKS, _M, _late("x86_64 aarch64 arm64 arm"), "", "ge.host_env_cpu",
            "Processor that a dynamic model is for: x86_64, aarch64, arm64 or arm; by default this one."),
    ),
    "Target chip": (
        ("soc_version", _WORKS, _M, _TEXT, "", "ge.socVersion",
            "The chip, for example Ascend310P3."),
        ("virtual_type", _TAKEN, _H, _lexed("0 1", kind=Kind.NUMBER), "0", "ge.virtual_type",
            "1 if the device is shared between virtual machines."),
        ("core_type", _TAKEN, _H, _late("AiCore VectorCore"), "AiCore", "ge.engineType",
            "Kind of core: AiCore or VectorCore."),
        ("aicore_num", _TAKEN, _H, Rule(check=_aicore_num), "", "ge.aicoreNum",
            "Number of cores, N or \"cube|vector\"."),
    ),
    "Features": (
        ("out_nodes", _WORKS, _W, _TEXT, "", "ge.outputNodeName",
            "The outputs to keep: \"node:index;node:index\", or names of model outputs."),
        ("input_fp16_nodes", _WORKS, _W, _TEXT, "", "ge.INPUT_NODES_SET_FP16",
            "Inputs that are given as FP16, \"name;name\"."),
        ("is_input_adjust_hw_layout", _WORKS, _W, _TEXT, "", "is_input_adjust_hw_layout",
            "Which of --input_fp16_nodes are given as NC1HWC0, \"true,false\"."),
        ("is_output_adjust_hw_layout", _WORKS, _W, _TEXT, "", "is_output_adjust_hw_layout",
            "Which of --out_nodes are wanted as FP16 and NC1HWC0, \"true,false\"."),
        ("insert_op_conf", _LATER, _W, _FILE, "", "ge.insertOpFile",
            "AIPP configuration."),
        ("op_name_map", _LATER, _W, _FILE, "", "op_name_map",
            "Operator types for Caffe layers."),
        ("external_weight", _LATER, _W, _lexed("0 1 2", "E10006"), "0", "ge.externalWeight",
            "0 weights inside the .om; 1 one file per weight; 2 one file for all."),
    ),
    "Model tuning": (
        ("disable_reuse_memory", _LATER, _M, _BIT_NUMBER, "0", "ge.exec.disableReuseMemory",
            "1 gives every tensor memory of its own."),
        ("opp", _WORKS, _W, _FOLDER, "", "",
            "Folder with custom passes, vendors/<vendor>/custom_fusion_passes/*.py, and custom operators, "
            "vendors/<vendor>/custom_ops/*.py; by default $ASCEND_OPP_PATH, or opp beside this program."),
        ("fusion_switch_file", _WORKS, _W, _FILE, "", "ge.fusionSwitchFile",
            "File that turns fusion passes on and off: JSON, or lines Name:off."),
        ("optimization_switch", _WORKS, _W, _TEXT, "", "ge.optimizationSwitch",
            "Passes to turn on and off, \"Pass:on;Pass2:off\"; overrides --fusion_switch_file."),
        ("enable_scope_fusion_passes", _LATER, _W, _TEXT, "", "enable_scope_fusion_passes",
            "Scope fusion passes for TensorFlow models."),
        ("oo_level", _WORKS, _W, _late("O1 O3"), "O3", "ge.oo.level",
            "Amount of graph optimisation: O3, or O1 without built-in fusions."),
        ("oo_constant_folding", _LATER, _W, _late("true false"), "true", "ge.oo.constantFolding",
            "Whether constant expressions are computed by the compiler."),
        ("oo_dead_code_elimination", _LATER, _W, _late("true false"), "true", "ge.oo.deadCodeElimination",
            "Whether branches that are never taken are removed."),
        ("topo_sorting_mode", _LATER, _W, _late("0 1 2 3"), "1", "ge.topoSortingMode",
            "Order of the nodes: 0 BFS, 1 DFS, 2 RDFS, 3 StableRDFS."),
        ("static_model_ops_lower_limit", _LATER, _W, _TEXT, "4", "ge.exec.static_model_ops_lower_limit",
            "Static parts of a dynamic model with fewer operators become dynamic."),
        ("enable_attr_compression", _LATER, _W, _TEXT, "true", "ge.enableAttrCompression",
            "Whether attributes are stored in compressed form."),
        ("enable_single_stream", _TAKEN, _M, _BOOLEAN, "", "ge.enableSingleStream",
            "Whether one stream is used: true or false."),
        ("multi_stream_parallel_mode", _TAKEN, _H, Rule(check=_multi_stream_mode), "", "ge.autoMultistreamParallelMode",
            "Parallel streams: cv, LoadBalance:N or MainStream:N."),
        ("ac_parallel_enable", _TAKEN, _H, _LATE_BIT, "0", "ac_parallel_enable",
            "1 runs AI CPU operators in parallel."),
        ("tiling_schedule_optimize", _TAKEN, _H, _LATE_BIT, "0", "ge.tiling_schedule_optimize",
            "1 moves tiling to the device."),
        ("quant_dumpable", _TAKEN, _M, _LATE_BIT, "", "ge.quant_dumpable",
            "1 keeps quantised operators dumpable."),
        ("buffer_optimize", _TAKEN, _H, _late("l1_optimize l2_optimize off_optimize"), "l2_optimize",
            "ge.bufferOptimize",
            "Use of on-chip buffers: l1_optimize, l2_optimize or off_optimize."),
        ("enable_small_channel", _WORKS, _W, _late("0 1"), "0", "ge.enableSmallChannel",
            "1 stores few channels more tightly."),
        ("format_refinement", _WORKS, _W, _late("0 1"), FORMAT_REFINEMENT, "",
            "1 stores tensors in the layouts that the chip works in, 0 as the model has them."),
        ("enable_compress_weight", _TAKEN, _M, _BOOLEAN, "false", "ge.enableCompressWeight",
            "Whether weights are compressed: true or false."),
        ("compress_weight_conf", _TAKEN, _M, _FILE, "", "compress_weight_conf",
            "File with the names of the nodes to compress."),
        ("compression_optimize_conf", Status.REFUSED, _M, Rule(check=_no_compression_library), "",
            "ge.compressionOptimizeConf",
            "Quantisation while compiling; always refused, because the AMCT library is not there."),
        ("sparsity", _TAKEN, _H, _BIT_NUMBER, "0", "ge.enableSparseMatrixWeight",
            "1 if the weights are pruned 4:2."),
        ("mdl_bank_path", _TAKEN, _H, _FOLDER, "", "ge.mdl_bank_path",
            "Folder of tuned model settings."),
        ("op_bank_path", _TAKEN, _H, _FOLDER, "", "ge.op_bank_path",
            "Folder of tuned operator settings."),
        ("cluster_config", _TAKEN, _H, _FILE, "", "ge.cluster_config",
            "Description of the cluster."),
        ("hccl_sub_comm_config", _TAKEN, _H, _FILE, "", "ge.hccl_sub_comm_config",
            "Communication groups."),
        ("h2d_overlapped_with_compute", _TAKEN, _H, Rule(check=_h2d_overlap), "", "",
            "Copying inputs while computing: 0, 1 or ascending numbers \"44,64,68\"."),
    ),
    "Operator tuning and precision": (
        ("precision_mode", _WORKS, _W, _late(PRECISION_MODES), "", "ge.exec.precision_mode",
            "Old form of --precision_mode_v2: force_fp16 is fp16 there, must_keep_origin_dtype origin, force_fp32 "
            "cube_fp16in_fp32out, allow_mix_precision mixed_float16."),
        ("precision_mode_v2", _WORKS, _W, _late(PRECISION_MODES_V2), DEFAULT_PRECISION, "ge.exec.precision_mode_v2",
            "Precision of the compiled operators: fp16; origin, that of the model; cube_fp16in_fp32out; mixed_float16, "
            "mixed_bfloat16. (mixed_hif8, cube_hif8: not implemented yet.)"),
        ("keep_dtype", _WORKS, _W, _FILE, "", "keep_dtype",
            "File with the nodes that keep their precision, by line: a name, or OpType::Type."),
        ("customize_dtypes", _WORKS, _W, _FILE, "", "ge.customizeDtypes",
            "File with data types per node, by line: Name::InputDtype:t1,t2,OutputDtype:t1 or OpType::Type:..."),
        ("modify_mixlist", _WORKS, _W, _FILE, "", "ge.exec.modify_mixlist",
            "JSON file with changes to the lists of mixed precision."),
        ("op_precision_mode", _TAKEN, _M, _FILE, "", "ge.exec.op_precision_mode",
            "File with the kernel precision per operator."),
        ("op_select_implmode", _TAKEN, _M,
            _late("high_precision high_performance high_precision_for_all high_performance_for_all"), "",
            "ge.opSelectImplmode",
            "Kernel precision of all operators (deprecated)."),
        ("optypelist_for_implmode", _TAKEN, _M, _TEXT, "", "ge.optypelistForImplmode",
            "The operator types that --op_select_implmode is for."),
        ("allow_hf32", _TAKEN, _H, _BOOLEAN, "", "ge.exec.allow_hf32",
            "Whether HF32 may be used: true or false."),
        ("is_weight_clip", _WORKS, _W, _LATE_BIT, "1", "ge.is_weight_clip",
            "1 clamps weights to the finite range of FP16 before they are converted."),
        ("jit_compile", _TAKEN, _M, _late("0 1 2"), "1", "ge.jit_compile",
            "When kernels are compiled: 0, 1 or 2."),
    ),
    "Debugging": (
        ("log", _WORKS, _W, _lexed("debug info warning error null", "E10010"), "null", "log",
            "Log level on the screen: debug, info, warning, error, or null for none."),
        ("dump_mode", _LATER, _W, _BIT, "0", "dump_mode",
            "1 adds inferred shapes to the JSON of a model (--mode=1)."),
        ("display_model_info", _WORKS, _W, _BIT, "0", "ge.display_model_info",
            "1 shows the sizes of the compiled model."),
        ("save_original_model", _LATER, _W, _BOOLEAN, "", "ge.saveOriginalModel",
            "true also writes <output>_original.om."),
        ("export_compile_stat", _WORKS, _W, _late("0 1 2"), "1", "ge.exportCompileStat",
            "When fusion_result.json is written: 0 never, 1 at the end, 2 as soon as the model is compiled."),
        ("pass_timeout", _WORKS, _W, Rule(kind=Kind.NUMBER), "300", "",
            "Seconds that a custom pass may take; 0 is no limit."),
        ("debug_dir", _TAKEN, _H, _FOLDER, "", "ge.debugDir",
            "Folder for kernel files."),
        ("op_debug_level", _TAKEN, _H, _lexed("0 1 2 3 4", kind=Kind.NUMBER), "0", "ge.opDebugLevel",
            "Kernel debugging, 0 to 4."),
        ("op_debug_config", _TAKEN, _H, _FILE, "", "op_debug_config",
            "File with kernel debugging items."),
        ("op_compiler_cache_mode", _TAKEN, _H, _late("enable disable force"), "disable", "ge.op_compiler_cache_mode",
            "Kernel cache: enable, disable or force."),
        ("op_compiler_cache_dir", _TAKEN, _H, _FOLDER, "", "ge.op_compiler_cache_dir",
            "Folder of the kernel cache."),
        ("status_check", _TAKEN, _H, _BIT, "0", "ge.status_check",
            "1 checks for overflow on the device."),
        ("atomic_clean_policy", _TAKEN, _H, _BIT, "0", "ge.exec.atomicCleanPolicy",
            "When memory is cleared: 0 at the start, 1 per operator."),
        ("deterministic", _TAKEN, _M, _BIT, "0", "ge.deterministic",
            "1 asks for repeatable results."),
        ("deterministic_level", _TAKEN, _M, _late("0 1 2 3"), "0", "ge.deterministicLevel",
            "Degree of repeatability, 0 to 3; 0 if and only if --deterministic is 0."),
    ),
    "Other": (
        ("shape_generalized_build_mode", _TAKEN, _M, _late("shape_precise shape_generalized"), "shape_precise",
            "ge.shape_generalized_build_mode",
            "Deprecated."),
        ("auto_tune_mode", Status.REFUSED, _M, Rule(check=_no_auto_tune), "", "",
            "Withdrawn: every value is refused."),
        ("cal_conf", _TAKEN, _M, _FILE, "", "",
            "Calibration settings."),
        ("target", _TAKEN, _M, _TEXT, "", "target",
            "Build target."),
        ("device_id", _TAKEN, _M, _TEXT, "0", "",
            "Device number."),
        ("build_config", _TAKEN, _M, _TEXT, "", "",
            "Command template."),
    ),
}
# fmt: on

# Values of options that are not implemented yet, but ask for exactly what happens without them.
_GRANTED: dict[str, tuple[str, ...]] = {
    "raw_ge_options_ignore_unsupported": ("false",),
    "external_weight": ("0",),
    "disable_reuse_memory": ("0",),
    "oo_constant_folding": ("true",),
    "dump_mode": ("0",),
    "save_original_model": ("false",),
}
_ALIASES: dict[str, tuple[str, ...]] = {"help": ("h",)}


def _options() -> Iterator[Option]:
    for group, rows in _ROWS.items():
        for name, status, effect, rule, default, key, text in rows:
            granted, aliases = _GRANTED.get(name, ()), _ALIASES.get(name, ())
            yield Option(name, group, text, rule, status, effect, default, key, granted, aliases)


OPTIONS: dict[str, Option] = {option.name: option for option in _options()}
