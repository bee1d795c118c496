"""Arithmetic that changes nothing."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ge.graph.types import data_type_by_short_name, numpy_dtype
from ge.ops import lookup
from ge.ops.registry import registered_types
from passes.fusion.drop_neutral_operand import DropNeutralOperand
from passes.fusion.signed_zero import teller_of_zeros
from tests.passes.fusion.fused import fused, graph_of, left_alone, results

FLOATS = ["f32", "f16", "bf16", "f64"]
INTEGERS = ["i8", "u8", "i16", "i32", "i64"]


def text(lines: str, dtype: str = "f32", shape: str = "[2,3]", result: str = "%z", number: str = "0", dims="") -> str:
    """%y is the arithmetic in question, %k the constant (of shape ``dims``, all elements ``number``)."""
    count = int(np.prod([int(dim) for dim in dims.split(",") if dim]))
    values = ", ".join([number] * count)
    last = "\n  %z = Relu(%y)" if "%z" not in lines else ""
    return f"""graph g(%x: {dtype}{shape}@ND) {{
  %k = Const {{value={dtype}[{dims}]{{{values}}}}} -> {dtype}[{dims}]@ND
  {lines}{last}
  return {result}
}}"""


NEUTRAL = [
    ("%y = Add(%x, %k)", "0"),
    ("%y = Add(%k, %x)", "0"),
    ("%y = AddV2(%x, %k)", "0"),
    ("%y = AddV2(%k, %x)", "0"),
    ("%y = Sub(%x, %k)", "0"),
    ("%y = Mul(%x, %k)", "1"),
    ("%y = Mul(%k, %x)", "1"),
    ("%y = RealDiv(%x, %k)", "1"),
    ("%y = Div(%x, %k)", "1"),
    ("%y = Pow(%x, %k)", "1"),
    ("%y = Muls(%x) {value=1.0}", "0"),
    ("%y = Adds(%x) {value=0.0}", "0"),
]


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS])
@pytest.mark.parametrize(("line", "number"), NEUTRAL)
def test_what_changes_nothing_goes(line, number, dtype) -> None:
    result = fused(DropNeutralOperand, text(line, dtype, number=number))
    assert result.times == (1, 1)
    assert (
        result.text()
        == f"""graph g(%x: {dtype}[2,3]@ND) {{
  %z = Relu(%x) -> {dtype}[2,3]@ND
  return %z
}}"""
    )


@pytest.mark.parametrize("dims", ["", "1", "1,1", "3", "2,1", "1,3", "2,3"])
@pytest.mark.parametrize(("line", "number"), [("%y = Add(%k, %x)", "0"), ("%y = Mul(%x, %k)", "1")])
def test_the_constant_may_have_any_shape(line, number, dims) -> None:
    assert fused(DropNeutralOperand, text(line, number=number, dims=dims)).types() == ["Relu"]


@pytest.mark.parametrize(
    ("shape", "dims", "result"),
    [
        ("[2,3]", "1,2,3", "[1,2,3]"),
        ("[3]", "1,1", "[1,3]"),
        ("[]", "1", "[1]"),
        ("[1]", "1,1,1", "[1,1,1]"),
        ("[1,3]", "2,1", "[2,3]"),
        ("[1]", "4", "[4]"),
    ],
)
@pytest.mark.parametrize(("line", "number"), [("%y = Add(%k, %x)", "0"), ("%y = Mul(%x, %k)", "1")])
def test_results_larger_than_the_operand_stay(line, number, shape, dims, result) -> None:
    """A constant of one element makes the shape grow too, if it has more axes."""
    reasons = left_alone(DropNeutralOperand, text(line, shape=shape, number=number, dims=dims))
    assert reasons == [f"DT_FLOAT {shape} would take the place of {result}"]


@pytest.mark.parametrize(
    ("shape", "dims", "goes"),
    [("[-1,3]", "", True), ("[-1,3]", "1,3", True), ("[-1,-1]", "1", True), ("[-1,3]", "2,1", False)],
)
def test_sizes_may_be_unknown(shape, dims, goes) -> None:
    """They must be known not to grow: an axis of unknown size may have one element."""
    given_text = text("%y = Mul(%x, %k)", shape=shape, number="1", dims=dims)
    if goes:
        assert fused(DropNeutralOperand, given_text).types() == ["Relu"]
    else:
        assert len(left_alone(DropNeutralOperand, given_text)) == 1


def test_an_unknown_rank_is_left_alone() -> None:
    assert len(left_alone(DropNeutralOperand, text("%y = Mul(%x, %k)", shape="[-2]", number="1"))) == 1


@pytest.mark.parametrize(
    ("line", "number"),
    [
        ("%y = Add(%x, %k)", "1"),
        ("%y = Sub(%x, %k)", "1"),
        ("%y = Sub(%k, %x)", "0"),
        ("%y = Mul(%x, %k)", "0"),
        ("%y = Mul(%x, %k)", "1.0000001"),
        ("%y = RealDiv(%k, %x)", "1"),
        ("%y = Pow(%k, %x)", "1"),
        ("%y = Pow(%x, %k)", "0"),
        ("%y = Maximum(%x, %k)", "0"),
        ("%y = Mul(%x, %k)", "nan"),
        ("%y = Muls(%x) {value=0.0}", "0"),
        ("%y = Adds(%x) {value=1.0}", "0"),
    ],
)
def test_what_does_change_something_stays(line, number) -> None:
    assert left_alone(DropNeutralOperand, text(line, number=number)) == []


def test_one_element_that_is_not_neutral() -> None:
    given_text = text("%y = Add(%x, %k)", dims="3").replace("{0, 0, 0}", "{0, 0, 1e-45}")
    assert left_alone(DropNeutralOperand, given_text) == []


@pytest.mark.parametrize("line", ["%y = Add(%x, %k)", "%y = Mul(%x, %k)"])
def test_operands_that_are_computed_or_empty(line) -> None:
    computed = "graph g(%x: f32[2]@ND, %k: f32[2]@ND) {\n  " + line + "\n  return %y\n}"
    assert left_alone(DropNeutralOperand, computed) == []
    assert left_alone(DropNeutralOperand, text(line, shape="[0]", dims="0")) == []


def test_constants_are_folded_elsewhere() -> None:
    given_text = text("%y = Add(%k, %k)\n  %z = Mul(%y, %x)")
    assert left_alone(DropNeutralOperand, given_text) == []


def test_a_result_that_the_graph_gives_out_and_others_read() -> None:
    result = fused(DropNeutralOperand, text("%y = Mul(%x, %k)", number="1", result="%y, %z"))
    assert result.types() == ["Relu"]
    assert [out.node.name for out in result.graph.outputs] == ["x", "z"]


def test_runs_go_whole() -> None:
    body = "%p = Add(%x, %k)\n  %q = Muls(%p) {value=1.0}\n  %y = Sub(%q, %k)"
    result = fused(DropNeutralOperand, text(body))
    assert result.types() == ["Relu"]
    assert result.times == (3, 3)


def test_control_edges_are_left_alone() -> None:
    given_text = text("%w = Abs(%x)\n  %y = Mul(%x, %k) ctrl(%w)", number="1", result="%z, %w")
    assert left_alone(DropNeutralOperand, given_text) == ["y has control edges"]


# -- zeros -------------------------------------------------------------------------------------------------------------
TELLING = [
    "RealDiv(%x, %y)",
    "Div(%x, %y)",
    "Reciprocal(%y)",
    "Rsqrt(%y)",
    "Atan2(%y, %x)",
    "Pow(%y, %x)",
    "FloorDiv(%x, %y)",
    "Power(%y) {power=-1.0}",
]


@pytest.mark.parametrize("reader", TELLING)
@pytest.mark.parametrize(
    ("line", "zero"),
    [
        ("%y = Add(%x, %k)", "0.0"),
        ("%y = AddV2(%k, %x)", "0.0"),
        ("%y = Adds(%x) {value=0.0}", "0.0"),
        ("%y = Sub(%x, %k)", "-0.0"),
    ],
)
def test_zeros_that_a_reader_can_tell_apart(line, zero, reader) -> None:
    """-0.0 becomes 0.0, and 1 / 0.0 is not 1 / -0.0."""
    given_text = text(f"{line}\n  %z = {reader}", number=zero)
    assert left_alone(DropNeutralOperand, given_text) == ["z can tell 0.0 from -0.0, which y makes one"]


@pytest.mark.parametrize("reader", TELLING)
@pytest.mark.parametrize(
    ("line", "number"),
    [
        ("%y = Add(%x, %k)", "-0.0"),
        ("%y = Adds(%x) {value=-0.0}", "0.0"),
        ("%y = Sub(%x, %k)", "0.0"),
        ("%y = Mul(%x, %k)", "1.0"),
        ("%y = RealDiv(%x, %k)", "1.0"),
    ],
)
def test_zeros_that_stay_what_they_are(line, number, reader) -> None:
    result = fused(DropNeutralOperand, text(f"{line}\n  %z = {reader}", number=number))
    assert result.types() == [reader.split("(")[0]]


@pytest.mark.parametrize("reader", ["RealDiv(%y, %x)", "Div(%y, %x)", "FloorDiv(%y, %x)", "Pow(%x, %y)"])
def test_operands_whose_zeros_are_alike(reader) -> None:
    result = fused(DropNeutralOperand, text(f"%y = Add(%x, %k)\n  %z = {reader}"))
    assert result.types() == [reader.split("(")[0]]


def test_whole_numbers_have_one_zero() -> None:
    assert fused(DropNeutralOperand, text("%y = Add(%x, %k)\n  %z = RealDiv(%x, %y)", "i32")).types() == ["RealDiv"]


def outcome(kind: str, *operands) -> Any:
    """What an operator makes of vectors, all attributes left out; ``None`` if it can do nothing with them."""
    definition = lookup(kind)
    assert definition is not None
    if definition.compute is None or len(definition.signature.inputs) != len(operands):
        return None
    try:
        with np.errstate(all="ignore"):
            found = definition.compute(definition.attributes({}), *operands)
    except Exception:  # noqa: BLE001 - whatever it is: they are no operands for it
        return None
    return found if isinstance(found, np.ndarray) and found.dtype.kind == "f" else None


def tells_zeros_apart(kind: str, count: int, slot: int) -> bool:
    """Whether an operator on floats gives out other numbers for -0.0 than for 0.0 in ``slot``."""
    for other in (1.0, -1.0, 0.0, 2.0):
        operands = [np.full(2, other, np.float32) for _ in range(count)]
        first, second = (
            outcome(kind, *operands[:slot], np.full(2, zero, np.float32), *operands[slot + 1 :]) for zero in (0.0, -0.0)
        )
        if first is not None and not np.array_equal(first, second, equal_nan=True):
            return True
    return False


def test_all_operators_that_can_tell_zeros_apart_are_known() -> None:
    known = 0
    for kind, count in itertools.product(registered_types(), (1, 2)):
        for slot in (slot for slot in range(count) if tells_zeros_apart(kind, count, slot)):
            graph = graph_of("graph g(%x: f32[2]@ND, %w: f32[2]@ND) {\n  return %x\n}")
            x, w = graph.data_nodes()
            graph.add_node(kind, "teller", [(x if place == slot else w).output() for place in range(count)])
            assert teller_of_zeros(x) == "teller", (kind, slot)
            known += 1
    assert known > 5


# -- numbers -----------------------------------------------------------------------------------------------------------
SPECIALS = [np.inf, -np.inf, np.nan, 0.0, -0.0, 1e-45, -3e38, 1.5]


@pytest.mark.parametrize(("line", "number"), NEUTRAL)
@pytest.mark.parametrize("dtype", ["f32", "f16", "i32", "i8"])
def test_numbers(line, number, dtype, rng) -> None:
    kind = numpy_dtype(data_type_by_short_name(dtype))
    if kind.kind == "f":
        with np.errstate(over="ignore"):
            x = np.resize(SPECIALS, 24).astype(kind).reshape(4, 6)
    else:
        limits = np.iinfo(kind)
        x = rng.integers(limits.min, limits.max, (4, 6), kind, endpoint=True)
        x[0, :3] = limits.min, limits.max, 0
    given_text = text(line + "\n  %z = Identity(%y)", dtype, "[4,6]", number=number)
    for which in (DropNeutralOperand, None):
        [found] = results(which, graph_of(given_text), [x])
        np.testing.assert_array_equal(found, x)


@settings(max_examples=60)
@given(
    steps=st.lists(
        st.tuples(st.sampled_from(["Add", "Sub", "Mul", "RealDiv"]), st.sampled_from([0, 1, 2]), st.booleans()),
        min_size=1,
        max_size=6,
    ),
    dtype=st.sampled_from(["f32", "i32", "u8"]),
    seed=st.integers(0, 2**32 - 1),
)
def test_any_run_gives_the_same_numbers(steps, dtype, seed) -> None:
    kind = numpy_dtype(data_type_by_short_name(dtype))
    x = np.random.default_rng(seed).integers(0, 100, (2, 3)).astype(kind)
    lines, value = [f"%k{n} = Const {{value={dtype}[]{{{n}}}}} -> {dtype}[]@ND" for n in range(3)], "%x"
    neutral = 0
    for place, (step, number, is_first) in enumerate(steps):
        number = max(number, 1) if step == "RealDiv" else number
        is_first = is_first and step in ("Add", "Mul")
        operands = [f"%k{number}", value] if is_first else [value, f"%k{number}"]
        lines.append(f"%v{place} = {step}({', '.join(operands)})")
        neutral += number == (0 if step in ("Add", "Sub") else 1)
        value = f"%v{place}"
    body = "\n  ".join([*lines, f"%end = Abs({value})"])
    given_text = f"graph g(%x: {dtype}[2,3]@ND) {{\n  {body}\n  return %end\n}}"
    result = fused(DropNeutralOperand, given_text)
    assert result.times == (neutral, neutral)
    assert len(result.types()) == len(steps) + 1 - neutral
    [expected] = results(None, graph_of(given_text), [x])
    if neutral:
        [found] = results(DropNeutralOperand, graph_of(given_text), [x])
        np.testing.assert_array_equal(found, expected)
