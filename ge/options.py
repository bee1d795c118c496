"""The options of one run, checked and typed, and the environment it runs in.

:data:`OPTIONS` (``ge/option_table.py``) is the table of everything that ``atc`` knows; ``ge/option_grammar.py`` reads
the values that have a grammar of their own; :class:`CompileOptions` is the result. :class:`Environment` is the only
reader of environment variables.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum

from ge.errors import ReportedError
from ge.fusion_switches import FusionSwitches
from ge.graph.types import Format
from ge.option_grammar import (
    Dim,
    DimRange,
    OutNode,
    OutputType,
    parse_half_inputs,
    parse_half_outputs,
    parse_input_shape,
    parse_out_nodes,
    parse_output_type,
)
from ge.option_table import DEFAULT_PRECISION, FORMAT_REFINEMENT, OPTIONS, Option
from ge.precision_files import Customized, KeptNodes, MixListChanges

__all__ = [
    "DEFAULT_PRECISION",
    "INPUT_FORMATS",
    "NEW_PRECISION_NAMES",
    "OPTIONS",
    "PRECISION_KEPT",
    "CompileOptions",
    "Dim",
    "DimRange",
    "Environment",
    "Framework",
    "Mode",
    "Option",
    "OutNode",
    "OutputType",
    "parse_half_inputs",
    "parse_half_outputs",
    "parse_input_shape",
    "parse_out_nodes",
    "parse_output_type",
]


class Mode(IntEnum):
    """What one run of ``atc`` does (``--mode``)."""

    COMPILE = 0
    TO_JSON = 1
    PRE_CHECK = 3
    TEXT_TO_JSON = 5
    DISPLAY = 6
    COMPILE_OM2 = 7
    COMPILE_EXEOM = 30


class Framework(IntEnum):
    """The kind of the model file (``--framework``)."""

    CAFFE = 0
    MINDSPORE = 1
    TENSORFLOW = 3
    ONNX = 5


# Legal input formats per kind of model; the first is the default.
INPUT_FORMATS: dict[Framework, tuple[str, ...]] = {
    Framework.CAFFE: ("NCHW", "ND"),
    Framework.MINDSPORE: ("NCHW",),
    Framework.TENSORFLOW: ("NHWC", "NCHW", "ND", "NCDHW", "NDHWC"),
    Framework.ONNX: ("NCHW", "ND", "NCDHW"),
}

PRECISION_KEPT = (
    "neither --precision_mode_v2 nor --precision_mode is given: the model's own precision is kept, where ATC would "
    "use fp16; --precision_mode_v2=origin or --precision_mode_v2=fp16 says which one is meant"
)
# Values of --precision_mode by the name that --precision_mode_v2 has for them; the others have no newer name.
NEW_PRECISION_NAMES: dict[str, str] = {
    "force_fp16": "fp16",
    "force_fp32": "cube_fp16in_fp32out",
    "must_keep_origin_dtype": "origin",
    "allow_mix_precision": "mixed_float16",
    "allow_mix_precision_fp16": "mixed_float16",
    "allow_mix_precision_bf16": "mixed_bfloat16",
}


@dataclass(frozen=True, kw_only=True)
class CompileOptions:
    """The options of one run, checked and typed. Texts that were not given are empty."""

    mode: Mode = Mode.COMPILE
    model: str = ""
    framework: Framework = Framework.ONNX
    output: str = ""
    """Path of the result without its suffix."""
    soc_version: str = ""
    input_shape: Mapping[str, tuple[Dim, ...]] = field(default_factory=dict)
    """Shapes per input name, with ranges for what is known at run time only; ``()`` is a scalar."""
    input_format: Format = Format.FORMAT_NCHW
    out_nodes: tuple[OutNode, ...] = ()
    output_type: OutputType = field(default_factory=OutputType)
    half_inputs: Mapping[str, bool] = field(default_factory=dict)
    """Inputs that are given in float16, with whether they lie in NC1HWC0."""
    half_outputs: tuple[bool, ...] = ()
    """Per output of ``out_nodes`` whether it is wanted in float16 and NC1HWC0."""
    precision_mode: str = ""
    precision_mode_v2: str = ""
    is_default_precision: bool = False
    """Whether ``precision_mode_v2`` is :data:`DEFAULT_PRECISION` because neither precision option was given."""
    kept_nodes: KeptNodes = field(default_factory=KeptNodes)
    custom_types: Customized = field(default_factory=Customized)
    mix_list_changes: MixListChanges = field(default_factory=MixListChanges)
    is_weight_clip: bool = True
    """Whether constants are clamped to the finite range of a narrower type before they are converted to it."""
    format_refinement: bool = FORMAT_REFINEMENT == "1"
    """Whether tensors are stored in the layouts that the chip works in."""
    enable_small_channel: bool = False
    """Whether convolutions of up to four channels have layouts of their own."""
    log: str = "null"
    display_model_info: bool = False
    check_report: str = "check_result.json"
    om: str = ""
    om_is_source: bool = False
    """Whether ``om`` names a model to be parsed (a framework was given) instead of an .om."""
    json: str = ""
    host_env_os: str = ""
    host_env_cpu: str = ""
    opp: str = ""
    """Folder whose vendors' passes are loaded; empty: that of the environment or of the installation."""
    pass_timeout: int = 300
    """Seconds that a custom pass may take; 0 is no limit. Only the command line watches."""
    fusion_switches: FusionSwitches = field(default_factory=FusionSwitches)
    export_compile_stat: int = 0
    """When ``fusion_result.json`` is written: 0 never, 1 at the end, 2 as soon as the model is compiled."""
    recorded: Mapping[str, str] = field(default_factory=dict)
    """Options without effect here (hardware, metadata) as they were given, paths without folder; the .om keeps them."""
    ge_options: Mapping[str, str] = field(default_factory=dict)
    """What was given, by GE key."""
    command_line: str = "atc"
    """What the .om keeps as its origin: options in table order, no paths, nothing that only concerns the screen."""

    @property
    def precision(self) -> str:
        """The precision mode in force, under its newest name; that of the model unless one is set."""
        return NEW_PRECISION_NAMES.get(self.precision_mode, self.precision_mode) or self.precision_mode_v2 or "origin"


@dataclass(frozen=True, kw_only=True)
class Environment:
    """The environment variables that are heeded; unset ones are empty or None."""

    work_path: str = ""
    num_threads: int | None = None
    opp_path: str = ""
    python_pass_path: str = ""
    dump_ge_graph: str = ""
    dump_graph_level: str = ""
    dump_graph_path: str = ""
    dump_graph_format: str = ""
    dump_path: str = ""
    npu_collect_path: str = ""
    autofuse_flags: str = ""
    autofuse_dfx_flags: str = ""
    codegen: str = "on"
    """Whether the simulator compiles kernels for this machine: on, off, or verify (both, and compare)."""
    kernel_cache: str = ""
    """Folder of what it has compiled; empty when nobody knows where the user's files are."""
    log_to_stdout: bool = False

    @classmethod
    def read(cls, variables: Mapping[str, str] | None = None) -> Environment:
        """Read ``variables`` (by default those of the process); E13024 for a value that cannot be used."""
        variables = os.environ if variables is None else variables
        threads = variables.get("ATC_NUM_THREADS", "").strip()
        if threads and not (threads.isascii() and threads.isdecimal() and len(threads) < 6 and int(threads) > 0):
            raise ReportedError(
                "E13024", env="ATC_NUM_THREADS", value=threads, situation="as a number of threads (1 to 99999)"
            )
        codegen = variables.get("ATC_CODEGEN", "").strip().lower() or "on"
        if codegen not in CODEGEN_MODES:
            raise ReportedError(
                "E13024", env="ATC_CODEGEN", value=codegen, situation=f"where {', '.join(CODEGEN_MODES)} are possible"
            )
        return cls(
            work_path=variables.get("ASCEND_WORK_PATH", ""),
            num_threads=int(threads) if threads else None,
            opp_path=variables.get("ASCEND_OPP_PATH", ""),
            python_pass_path=variables.get("ASCEND_GE_PY_PASS_PATH", ""),
            dump_ge_graph=variables.get("DUMP_GE_GRAPH", ""),
            dump_graph_level=variables.get("DUMP_GRAPH_LEVEL", ""),
            dump_graph_path=variables.get("DUMP_GRAPH_PATH", ""),
            dump_graph_format=variables.get("DUMP_GRAPH_FORMAT", ""),
            dump_path=variables.get("ASCEND_DUMP_PATH", ""),
            npu_collect_path=variables.get("NPU_COLLECT_PATH", ""),
            autofuse_flags=variables.get("AUTOFUSE_FLAGS", ""),
            autofuse_dfx_flags=variables.get("AUTOFUSE_DFX_FLAGS", ""),
            codegen=codegen,
            kernel_cache=_kernel_cache(variables),
            log_to_stdout=variables.get("ASCEND_SLOG_PRINT_TO_STDOUT", "") == "1",
        )


CODEGEN_MODES = ("on", "off", "verify")


def _kernel_cache(variables: Mapping[str, str]) -> str:
    """Return the folder below the user's caches (XDG_CACHE_HOME, by default ~/.cache); relative ones do not count."""
    base = variables.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(base):
        home = variables.get("HOME", "")
        base = os.path.join(home, ".cache") if os.path.isabs(home) else ""
    return os.path.join(base, "atc-offline", "kernels") if base else ""
