"""The option lexer of atc, and what om-run adds to it."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atc.lexer import UsageFault, lex
from atc.run_options import RUN_OPTIONS
from ge.errors import ReportedError
from ge.option_table import OPTIONS, Kind, Option


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--model=m.onnx"], {"model": "m.onnx"}),
        (["--model", "m.onnx"], {"model": "m.onnx"}),
        (["-model=m.onnx"], {"model": "m.onnx"}),
        (["-model", "m.onnx"], {"model": "m.onnx"}),
        (["--soc-version=A"], {"soc_version": "A"}),
        (["-soc-version", "A"], {"soc_version": "A"}),
        (["--model=a-b=c-d"], {"model": "a-b=c-d"}),
        (["--model", "--log=x"], {"model": "--log=x"}),
        (["--soc=A"], {"soc_version": "A"}),
        (["--mod=m"], UsageFault),
        (["--mode=6"], {"mode": "6"}),
        (["--h"], {"help": "true"}),
        (["-h"], {"help": "true"}),
        (["--help"], {"help": "true"}),
        (["--help="], {"help": "true"}),
        (["--help=No"], {"help": "false"}),
        (["--help=T"], {"help": "true"}),
        (["--output=a", "--output=b"], {"output": "b"}),
        (["--framework=9", "--framework=5"], {"framework": "5"}),
        (["--output=a", "--output="], {}),
        (["--model="], {}),
        (["--"], {}),
        ([], {}),
    ],
)
def test_forms(arguments: list[str], expected: dict[str, str] | type[Exception]) -> None:
    if isinstance(expected, dict):
        assert lex(arguments, OPTIONS) == expected
    else:
        with pytest.raises(expected):
            lex(arguments, OPTIONS)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--nope=1"], "unknown option '--nope'"),
        (["--modle=1"], "unknown option '--modle'; did you mean '--mode' or '--model'?"),
        (["-x"], "unknown option '-x'"),
        (["---model=1"], "unknown option '---model=1'"),
        (["--=1"], "unknown option '--=1'"),
        (["--model"], "option '--model' needs a value"),
        (["stray"], "'stray' is not an option"),
        (["--help", "false"], "'false' is not an option"),
        (["--model=m", "-"], "'-' is not an option"),
        (["--", "--model=m"], "'--model=m' is not an option"),
        (["--dynamic=1"], "option '--dynamic' is ambiguous: it may be --dynamic_batch_size, --dynamic_dims, "),
    ],
)
def test_arguments_that_are_no_options(arguments: list[str], text: str) -> None:
    with pytest.raises(UsageFault) as fault:
        lex(arguments, OPTIONS)
    assert str(fault.value).startswith(text)


@pytest.mark.parametrize(
    ("argument", "code"),
    [
        *((f"--{name}=2", "E10006") for name in ("status_check", "deterministic", "display_model_info")),
        *((f"--{name}=2", "E10006") for name in ("atomic_clean_policy", "dump_mode", "disable_reuse_memory")),
        ("--sparsity=2", "E10006"),
        ("--external_weight=3", "E10006"),
        ("--log=bug", "E10010"),
        ("--log=", "E10010"),
        ("--framework=2", "E10007"),
        ("--framework=+5", "E10007"),
        ("--framework=", "E10007"),
        ("--framework=٥", "E10007"),
        ("--mode=2", "E10001"),
        ("--mode=10", "E10001"),
        ("--mode=-1", "E10001"),
        ("--virtual_type=2", "E10001"),
        ("--op_debug_level=9", "E10001"),
        ("--help=maybe", "E10003"),
        ("--raw_ge_options_ignore_unsupported=2", "E10003"),
    ],
)
def test_values_outside_their_set(argument: str, code: str) -> None:
    with pytest.raises(ReportedError) as error:
        lex([argument], OPTIONS)
    assert error.value.code == code
    assert argument.partition("=")[0] in error.value.message or code == "E10010"


def test_mode_error_lists_the_modes() -> None:
    with pytest.raises(ReportedError) as error:
        lex(["--mode=2"], OPTIONS)
    assert "0, 1, 3, 5, 6, 7, 30" in error.value.message


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["-m", "a.om", "-i", "x.npy"], {"model": "a.om", "input": "x.npy"}),
        (["-om", "a.om"], {"model": "a.om"}),
        (["--om-model=a.om"], {"model": "a.om"}),
        (["--warmup-count", "3", "-l", "2"], {"warmup_count": "3", "loop": "2"}),
        (["-wcount=3", "-pdt", "random"], {"warmup_count": "3", "pure_data_type": "random"}),
        (["--output-dirname=r", "-o", "out"], {"output_dirname": "r", "output": "out"}),
        (["--debug"], {"debug": "true"}),
        (["--debug", "True", "-l", "2"], {"debug": "true", "loop": "2"}),
        (["--debug", "0"], {"debug": "false"}),
        (["--debug=1"], {"debug": "true"}),
        (["--debug", "--loop=2"], {"debug": "true", "loop": "2"}),
        (["--dym-batch", "4"], {"dymBatch": "4"}),
        (["--dymBatch=4"], {"dymBatch": "4"}),
        (["--allow-reinterpret"], {"allow_reinterpret": "true"}),
        (["-h"], {"help": "true"}),
    ],
)
def test_spellings_of_om_run(arguments: list[str], expected: dict[str, str]) -> None:
    assert lex(arguments, RUN_OPTIONS) == expected


@pytest.mark.parametrize("argument", ["--outfmt=PNG", "--debug=perhaps", "--pure_data_type=ones"])
def test_values_that_om_run_refuses(argument: str) -> None:
    with pytest.raises(ReportedError) as error:
        lex([argument], RUN_OPTIONS)
    assert error.value.code == "R1001"


TEXT_OPTIONS = sorted(
    name for name, option in OPTIONS.items() if option.rule.kind is Kind.TEXT and not option.rule.values
)
names = st.sampled_from(sorted(OPTIONS))
values = st.text(max_size=12)
words = st.one_of(
    st.builds(lambda dashes, name, value: f"{'-' * dashes}{name}={value}", st.integers(0, 3), names, values),
    st.builds(lambda name: f"--{name}", names),
    st.builds(lambda name, cut: f"--{name[:cut]}", names, st.integers(0, 12)),
    st.text(max_size=12),
)


@pytest.mark.parametrize("table", [OPTIONS, RUN_OPTIONS], ids=["atc", "om-run"])
@given(arguments=st.lists(words, max_size=6))
def test_any_arguments_give_values_or_a_reported_fault(table: dict[str, Option], arguments: list[str]) -> None:
    try:
        result = lex(arguments, table)
    except (UsageFault, ReportedError):
        return
    assert result.keys() <= table.keys()
    assert all(result.values())


@given(
    pairs=st.lists(st.tuples(st.sampled_from(TEXT_OPTIONS), st.text(min_size=1, max_size=8)), max_size=8),
    style=st.randoms(use_true_random=False),
)
def test_last_duplicate_wins_in_every_spelling(pairs: list[tuple[str, str]], style: random.Random) -> None:
    arguments = []
    for name, value in pairs:
        spelling = "".join(style.choice("-_") if letter == "_" else letter for letter in name)
        dashes = style.choice(["-", "--"])
        arguments += style.choice([[f"{dashes}{spelling}={value}"], [f"{dashes}{spelling}", value]])
    assert lex(arguments, OPTIONS) == dict(pairs)


@given(name=names, cut=st.integers(1, 40))
def test_prefix_means_the_option_if_it_can_only_mean_that_one(name: str, cut: int) -> None:
    prefix = name[:cut]
    candidates = [other for other in OPTIONS if other.startswith(prefix)]
    if prefix in OPTIONS:
        candidates = [prefix]
    elif prefix == "h":
        candidates = ["help"]
    fallback = "7" if OPTIONS[name].rule.kind is Kind.NUMBER else "true"
    value = OPTIONS[name].rule.values[0] if OPTIONS[name].rule.values else fallback
    if len(candidates) == 1:
        assert lex([f"--{prefix}={value}"], OPTIONS) == {candidates[0]: value}
    else:
        with pytest.raises(UsageFault) as fault:
            lex([f"--{prefix}={value}"], OPTIONS)
        assert all(f"--{other}" in str(fault.value) for other in candidates)
