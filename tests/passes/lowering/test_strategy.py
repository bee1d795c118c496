"""Profiles, and what AUTOFUSE_FLAGS and AUTOFUSE_DFX_FLAGS make of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ge.errors import ReportedError
from ge.options import Environment
from passes.lowering.strategy import LOOP_PASSES, LoweringStrategy, configured, profile
from tests.passes.lowering.lowered import CANN, HOST


def changed(flags: str = "", dfx: str = "", base: LoweringStrategy = CANN) -> tuple[LoweringStrategy, list[str]]:
    """The strategy under these variables, and the warnings."""
    warnings: list[str] = []
    variables = {"AUTOFUSE_FLAGS": flags, "AUTOFUSE_DFX_FLAGS": dfx}
    return configured(base, Environment.read(variables), warnings.append), warnings


def test_profiles() -> None:
    assert (CANN.is_enabled, CANN.max_loop_loads, CANN.concat_max_inputs, CANN.passes) == (False, 4, 63, frozenset())
    assert (HOST.is_enabled, HOST.max_loop_loads, HOST.allows_ours) == (True, 15, True)
    assert HOST.passes >= {"reduce", "concat", "split", "slice", "transpose", "gather"}
    assert not CANN.allows_ours


@pytest.mark.parametrize(
    ("soc", "platform", "loads", "inputs"),
    [
        ("Ascend910B1", "2201", 4, 8),
        ("Ascend310P3", "2201", 4, 8),
        ("", "2201", 4, 8),
        ("Ascend950PR_9599", "3510", 15, 14),
    ],
)
def test_limits_by_soc_family(soc: str, platform: str, loads: int, inputs: int) -> None:
    found = profile("cann", soc)
    assert (found.platform, found.max_loop_loads, found.max_inputs_after_fusion) == (platform, loads, inputs)


def test_other_profiles_are_none() -> None:
    with pytest.raises(ReportedError) as caught:
        profile("gpu")
    assert caught.value.code == "E10001"
    assert "host or cann" in caught.value.message


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ("", {}),
        (";", {}),
        ("--enable_autofuse=true", {"is_enabled": True}),
        ("--enable_autofuse=false", {}),
        ("--recomputation_threshold=0", {"recomputation_threshold": 0}),
        ("--recomputation_threshold=255", {"recomputation_threshold": 255}),
        ("--recomputation_threshold=256", {"recomputation_threshold": 1}),
        ("--recomputation_threshold=x", {"recomputation_threshold": 1}),
        ("--max_fusion_size=7", {"max_fusion_size": 7, "max_loop_ops": 7}),
        ("--max_fusion_size=-7", {}),
        (f"--max_fusion_size={2**64}", {}),
        ("--autofuse_enable_pass=reduce,concat", {"passes": frozenset({"reduce", "concat"})}),
        ("--autofuse_enable_pass= reduce , concat ;", {"passes": frozenset({"reduce", "concat"})}),
        (
            "--enable_autofuse=true; --autofuse_enable_pass=reduce",
            {"is_enabled": True, "passes": frozenset({"reduce"})},
        ),
        ("--autofuse_enable_pass=reduce;--autofuse_disable_pass=concat", {"passes": frozenset({"reduce"})}),
        ("--experimental_enable_jit_executor_v2=true;--autofuse_enable_pgo=true", {}),
    ],
)
def test_flags(flags: str, expected: dict[str, object]) -> None:
    strategy, warnings = changed(flags)
    assert strategy == replace(CANN, **expected)  # type: ignore[arg-type]
    assert warnings == []


def test_passes_are_switched_off_only_beside_those_that_are_on() -> None:
    assert changed("--autofuse_disable_pass=reduce", base=HOST)[0].passes == HOST.passes
    both = changed("--autofuse_enable_pass=slice;--autofuse_disable_pass=reduce", base=HOST)[0]
    assert both.passes == HOST.passes - {"reduce"}


def test_a_pass_in_both_lists_is_off_with_a_warning() -> None:
    strategy, [warning] = changed("--autofuse_enable_pass=reduce,slice;--autofuse_disable_pass=slice")
    assert strategy.passes == {"reduce"}
    assert "slice stands in" in warning


def test_unknown_names_are_warned_of() -> None:
    strategy, warnings = changed("--autofuse_enable_pass=loop;--fast=yes", "--att_x=1;--faster=yes")
    assert strategy == CANN
    assert warnings == [
        "AUTOFUSE_FLAGS: the flag --fast is not known and has no effect",
        f"AUTOFUSE_FLAGS: there is no pass loop; passes are {', '.join(sorted(LOOP_PASSES))}",
        "AUTOFUSE_DFX_FLAGS: the flag --faster is not known and has no effect",
    ]


@pytest.mark.parametrize("text", ["enable_autofuse=true", "--enable_autofuse", "--a=b=c", "--=x", "true"])
@pytest.mark.parametrize("variable", ["AUTOFUSE_FLAGS", "AUTOFUSE_DFX_FLAGS"])
def test_malformed_flags_are_reported(variable: str, text: str) -> None:
    with pytest.raises(ReportedError) as caught:
        configured(CANN, Environment.read({variable: text}))
    assert caught.value.code == "E13024"
    assert variable in caught.value.message
    assert text in caught.value.message


def test_disable_lifting() -> None:
    assert changed(dfx="--disable_lifting=true;--att_corenum_threshold=40") == (
        replace(CANN, disables_lifting=True),
        [],
    )


def test_skip_lists_come_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "skip.ini"
    path.write_text("[ByNodeType]\nAbs\n# Relu\nReduceSum\n\n[ByNodeName]\nlayer/Relu:1\nx=y\n")
    strategy, _ = changed(dfx=f"--skip_node_names_cfg={path}")
    assert strategy.skipped_types == {"Abs", "ReduceSum"}
    assert strategy.skipped_names == {"layer/Relu:1"} | {"x=y"}


@pytest.mark.parametrize("content", [None, b"Abs\n", b"\xff\xfe\x00", b"[ByNodeType\nAbs\n"])
def test_files_that_are_no_skip_lists_are_reported(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "skip.ini"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ReportedError) as caught:
        changed(dfx=f"--skip_node_names_cfg={path}")
    assert caught.value.code == "E13024"
