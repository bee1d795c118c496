"""What lowering may do: the profile, changed by AUTOFUSE_FLAGS and AUTOFUSE_DFX_FLAGS."""

from __future__ import annotations

import configparser
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from ge.errors import ReportedError
from ge.options import Environment

LOOP_PASSES = frozenset({"concat", "conv", "gather", "matmul", "reduce", "slice", "split", "transpose"})
"""Kinds of kernels that are switched one by one; pointwise kernels always are on."""
MAX_CONFIG_BYTES = 1 << 20


@dataclass(frozen=True, kw_only=True)
class LoweringStrategy:
    """Limits and switches of lowering and of the fusion of kernels. Defaults are those of profile ``cann``, 2201."""

    platform: str = "2201"
    """``host``, or whose element types and limits hold: ``2201`` (A2, A3), ``3510`` (950)."""
    is_enabled: bool = False
    passes: frozenset[str] = frozenset()
    max_loop_ops: int = 64
    max_loop_loads: int = 4
    max_buffer_readers: int = 4
    recomputation_threshold: int = 1
    max_vectorized_k: int = 32
    """Longest inner dimension of a matrix product that is lowered to a sum of products."""
    concat_max_inputs: int = 63
    concat_algorithm: int = 0
    heavy_types: frozenset[str] = frozenset({"Exp"})
    splits_are_slices: bool = True
    gathers_tail_only: bool = True
    slices_last_unit: bool = False
    """Whether a slice may leave one element of the last axis."""
    max_transposed_rank: int = 4
    disables_lifting: bool = False
    merges_equal_parts: bool = True
    """Whether loads and operators that are equal become one within a kernel."""
    skipped_types: frozenset[str] = frozenset()
    skipped_names: frozenset[str] = frozenset()
    max_fusion_size: int = 64
    max_inputs_after_fusion: int = 8
    max_fusion_rounds: int = 10
    max_name_length: int = 140

    @property
    def allows_ours(self) -> bool:
        """Whether lowerings and functors that CANN does not have are used."""
        return self.platform == "host"


_HOST = LoweringStrategy(
    platform="host",
    is_enabled=True,
    passes=LOOP_PASSES - {"matmul", "conv"},
    max_loop_loads=15,
    max_inputs_after_fusion=14,
    concat_max_inputs=512,
    heavy_types=frozenset(),
    gathers_tail_only=False,
    slices_last_unit=True,
    max_transposed_rank=8,
)
_A2 = LoweringStrategy()
_A5 = replace(
    _A2,
    platform="3510",
    max_loop_loads=15,
    max_inputs_after_fusion=14,
    concat_max_inputs=512,
    concat_algorithm=1,
    splits_are_slices=False,
    gathers_tail_only=False,
    slices_last_unit=True,
    max_transposed_rank=5,
)


def profile(name: str, soc_version: str = "") -> LoweringStrategy:
    """Return the strategy of ``--fusion_profile``: ``host``, or ``cann`` with the limits of a SoC (unknown: 2201)."""
    if name == "host":
        return _HOST
    if name != "cann":
        raise ReportedError("E10001", value=name, parameter="fusion_profile", reason="The value must be host or cann.")
    return _A5 if soc_version.lower().startswith("ascend950") else _A2


def configured(
    base: LoweringStrategy,
    environment: Environment,
    warn: Callable[[str], None] = lambda text: None,
    read: Callable[[str], str] | None = None,
) -> LoweringStrategy:
    """Return ``base`` with what the environment's flags say. ``read`` gives the text of a file (skip lists).

    Raises E13024 for text that is no list of flags.
    """
    strategy = base
    for variable, text, rules in (
        ("AUTOFUSE_FLAGS", environment.autofuse_flags, _FLAGS),
        ("AUTOFUSE_DFX_FLAGS", environment.autofuse_dfx_flags, _DFX_FLAGS),
    ):
        flags = _parsed(variable, text)
        for name, value in flags.items():
            if name in rules:
                strategy = rules[name](strategy, value)
            elif name not in _WITHOUT_EFFECT and not name.startswith(("att_", "autofuse_att_", "autofuse_pgo_")):
                warn(f"{variable}: the flag --{name} is not known and has no effect")
        if variable == "AUTOFUSE_FLAGS":
            strategy = _switched(strategy, flags, warn)
        elif "skip_node_names_cfg" in flags:
            strategy = _skipping(strategy, flags["skip_node_names_cfg"], read or _file_text)
    return strategy


def _parsed(variable: str, text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for item in filter(None, (part.strip() for part in text.split(";"))):
        name, equals, value = item.partition("=")
        if not name.startswith("--") or len(name) < 3 or not equals or "=" in value:
            raise ReportedError("E13024", env=variable, value=text, situation="as flags of the form --name=value;...")
        found[name[2:].strip()] = value.strip()
    return found


def _is_on(value: str) -> bool:
    return value.lower() == "true"


def _threshold(strategy: LoweringStrategy, value: str) -> LoweringStrategy:
    number = _number(value)
    return replace(strategy, recomputation_threshold=number if number is not None and number <= 255 else 1)


def _size(strategy: LoweringStrategy, value: str) -> LoweringStrategy:
    number = _number(value)
    if number is None or number >= 2**64:
        return strategy
    return replace(strategy, max_fusion_size=number, max_loop_ops=number)


def _number(value: str) -> int | None:
    return int(value) if value.isascii() and value.isdecimal() and len(value) <= 20 else None


def _enable(strategy: LoweringStrategy, value: str) -> LoweringStrategy:
    return replace(strategy, is_enabled=_is_on(value))


def _keep_kernels(strategy: LoweringStrategy, value: str) -> LoweringStrategy:
    return replace(strategy, disables_lifting=_is_on(value))


def _switched(strategy: LoweringStrategy, flags: Mapping[str, str], warn: Callable[[str], None]) -> LoweringStrategy:
    """Passes named as off only count where passes are named as on; what is in both lists is off."""
    if "autofuse_enable_pass" not in flags:
        return strategy
    on = _names(flags["autofuse_enable_pass"], warn)
    off = _names(flags.get("autofuse_disable_pass", ""), warn)
    for name in sorted(on & off):
        warn(f"AUTOFUSE_FLAGS: {name} stands in --autofuse_enable_pass and in --autofuse_disable_pass: it is off")
    return replace(strategy, passes=(strategy.passes | on) - off)


def _names(text: str, warn: Callable[[str], None]) -> frozenset[str]:
    names = frozenset(filter(None, (name.strip() for name in text.split(","))))
    for name in sorted(names - LOOP_PASSES):
        warn(f"AUTOFUSE_FLAGS: there is no pass {name}; passes are {', '.join(sorted(LOOP_PASSES))}")
    return names & LOOP_PASSES


def _file_text(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read(MAX_CONFIG_BYTES + 1)
    except (OSError, UnicodeDecodeError) as fault:
        raise ReportedError(
            "E13024", env="AUTOFUSE_DFX_FLAGS", value=path, situation=f"as a list of nodes ({type(fault).__name__})"
        ) from fault


def _skipping(strategy: LoweringStrategy, path: str, read: Callable[[str], str]) -> LoweringStrategy:
    text = read(path)
    parser = configparser.RawConfigParser(
        allow_no_value=True, delimiters=("\0",), comment_prefixes=("#",), strict=False
    )
    parser.optionxform = str  # type: ignore[assignment,method-assign]  # names keep their case
    try:
        if len(text) > MAX_CONFIG_BYTES:
            raise ValueError("too large")
        parser.read_string(text)
    except (configparser.Error, ValueError) as fault:
        raise ReportedError(
            "E13024", env="AUTOFUSE_DFX_FLAGS", value=path,
            situation="as a list of nodes with the sections [ByNodeType] and [ByNodeName]",
        ) from fault  # fmt: skip
    named = {name: frozenset(parser.options(name)) if parser.has_section(name) else frozenset() for name in _SECTIONS}
    return replace(
        strategy,
        skipped_types=strategy.skipped_types | named["ByNodeType"],
        skipped_names=strategy.skipped_names | named["ByNodeName"],
    )


_SECTIONS = ("ByNodeType", "ByNodeName")
_Rule = Callable[[LoweringStrategy, str], LoweringStrategy]
_FLAGS: dict[str, _Rule] = {
    "enable_autofuse": _enable,
    "recomputation_threshold": _threshold,
    "max_fusion_size": _size,
}
_DFX_FLAGS: dict[str, _Rule] = {"disable_lifting": _keep_kernels}
_WITHOUT_EFFECT = frozenset(
    {
        # read beside the table
        "autofuse_enable_pass", "autofuse_disable_pass", "skip_node_names_cfg",
        # of the device's code generator, or of its measurements
        "autofuse_enhance_precision_blacklist", "autofuse_enable_pgo", "experimental_enable_jit_executor_v2",
        "subgraph_recover", "codegen_compile_debug", "debug_dir",
    }
)  # fmt: skip
