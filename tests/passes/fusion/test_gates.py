"""Gelu, Swish and HardSwish: a tensor times a function of itself, written in all ways."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from passes.fusion.fuse_gelu import FuseGelu
from passes.fusion.fuse_gelu_tanh import FuseGeluTanh
from passes.fusion.fuse_hard_swish import FuseHardSwish
from passes.fusion.fuse_swish import FuseSwish
from tests.passes.fusion.fused import fused, graph_of, left_alone, results

NUMBERS = """
  %one = Const {value=f32[]{1.0}} -> f32[]@ND
  %half = Const {value=f32[]{0.5}} -> f32[]@ND
  %two = Const {value=f32[]{2.0}} -> f32[]@ND
  %three = Const {value=f32[]{3.0}} -> f32[]@ND
  %zero = Const {value=f32[]{0.0}} -> f32[]@ND
  %six = Const {value=f32[]{6.0}} -> f32[]@ND
  %sixth = Const {value=f32[]{0.16666667}} -> f32[]@ND
  %root = Const {value=f32[]{1.4142135}} -> f32[]@ND
  %inverse = Const {value=f32[]{0.70710677}} -> f32[]@ND
  %cubic = Const {value=f32[]{0.044715}} -> f32[]@ND
  %wide = Const {value=f32[]{0.7978846}} -> f32[]@ND"""


def text(body: str, result: str = "%y") -> str:
    lines = "\n".join(f"  {line.strip()}" for line in body.strip().splitlines())
    return f"graph g(%x: f32[2,5]@ND) {{{NUMBERS}\n{lines}\n  return {result}\n}}"


def product(*factors: str) -> list[str]:
    """All ways of multiplying three factors with two products, as two lines that give %y."""
    lines = []
    for first, second, third in itertools.permutations(factors):
        lines.append(f"%p = Mul({first}, {second})\n%y = Mul(%p, {third})")
        lines.append(f"%p = Mul({first}, {second})\n%y = Mul({third}, %p)")
    return lines


def both(type: str, first: str, second: str) -> list[str]:
    return [f"{type}({first}, {second})", f"{type}({second}, {first})"]


ERF_ARGUMENTS = [*both("Mul", "%x", "%inverse"), "RealDiv(%x, %root)", "Muls(%x) {value=0.70710677}"]
GELUS = [
    f"%a = {argument}\n%e = Erf(%a)\n%g = {gate}\n{last}"
    for argument in ERF_ARGUMENTS
    for gate in [*both("Add", "%e", "%one"), "Adds(%e) {value=1.0}"]
    for last in [*product("%x", "%g", "%half"), "%p = Mul(%x, %g)\n%y = RealDiv(%p, %two)"]
] + [
    "%a = Mul(%x, %inverse)\n%e = Erf(%a)\n%h = Mul(%e, %half)\n%g = Add(%h, %half)\n%y = Mul(%x, %g)",
    "%a = Mul(%x, %inverse)\n%e = Erf(%a)\n%h = Mul(%x, %half)\n%g = Mul(%h, %e)\n%y = Add(%g, %h)",
    "%n = Neg(%x)\n%a = Mul(%n, %inverse)\n%e = Erfc(%a)\n%h = Mul(%x, %half)\n%y = Mul(%h, %e)",
    "%n = RealDiv(%x, %root)\n%a = Neg(%n)\n%e = Erfc(%a)\n%h = Mul(%e, %half)\n%y = Mul(%x, %h)",
]

CUBES = [
    "%c = Pow(%x, %three)",
    "%s = Square(%x)\n%c = Mul(%s, %x)",
    "%s = Mul(%x, %x)\n%c = Mul(%x, %s)",
    "%s = Pow(%x, %two)\n%c = Mul(%s, %x)",
]
INNERS = [
    *(
        f"{cube}\n%k = {scaled}\n%i = {total}"
        for cube in CUBES
        for scaled in both("Mul", "%c", "%cubic")
        for total in both("Add", "%x", "%k")
    ),
    "%s = Mul(%x, %x)\n%k = Mul(%s, %cubic)\n%j = Add(%k, %one)\n%i = Mul(%x, %j)",
    "%k = Mul(%x, %cubic)\n%s = Mul(%k, %x)\n%j = Adds(%s) {value=1.0}\n%i = Mul(%j, %x)",
]
TANH_GELUS = [
    f"{inner}\n%a = {argument}\n%t = Tanh(%a)\n%g = {gate}\n{last}"
    for inner in INNERS
    for argument in both("Mul", "%i", "%wide")
    for gate in both("Add", "%t", "%one")
    for last in product("%x", "%g", "%half")[::5]
]

SWISHES = [
    *(f"%s = Sigmoid(%x)\n%y = {last}" for last in both("Mul", "%x", "%s")),
]

SIXTHS = [
    *product("%x", "%g", "%sixth"),
    "%p = Mul(%x, %g)\n%y = RealDiv(%p, %six)",
    "%p = RealDiv(%g, %six)\n%y = Mul(%p, %x)",
]
HARD_SWISHES = [
    *(
        f"%a = {shifted}\n%g = {gate}\n{last}"
        for shifted in [*both("Add", "%x", "%three"), "Adds(%x) {value=3.0}"]
        for gate in ["ClipByValue(%a, %zero, %six)", "Relu6(%a)"]
        for last in SIXTHS
    ),
    *(f"%g = HardSigmoid(%x) {{alpha=0.16666667, beta=0.5}}\n%y = {last}" for last in both("Mul", "%x", "%g")),
    "%m = Mul(%x, %sixth)\n%a = Add(%m, %half)\n%g = ClipByValue(%a, %zero, %one)\n%y = Mul(%x, %g)",
]


@pytest.mark.parametrize(
    ("fusion", "bodies", "node"),
    [
        (FuseGelu, GELUS, '%y_ = GeluV2(%x) {approximate="none"} -> f32[2,5]@ND'),
        (FuseGeluTanh, TANH_GELUS, '%y_ = GeluV2(%x) {approximate="tanh"} -> f32[2,5]@ND'),
        (FuseSwish, SWISHES, "%y_ = Swish(%x) {scale=1.0} -> f32[2,5]@ND"),
        (FuseHardSwish, HARD_SWISHES, "%y_ = HardSwish(%x) -> f32[2,5]@ND"),
    ],
    ids=["gelu", "tanh gelu", "swish", "hard swish"],
)
def test_all_ways_of_writing_become_one_node(fusion, bodies, node) -> None:
    for body in bodies:
        result = fused(fusion, text(body))
        assert result.times == (1, 1), body
        [new] = [n for n in result.graph if n.type not in ("Data", "Const")]
        result.graph.rename(new, "y_")
        assert result.text() == f"graph g(%x: f32[2,5]@ND) {{\n  {node}\n  return %y_\n}}", body


def test_the_scale_of_swish_is_kept() -> None:
    result = fused(FuseSwish, text("%a = Muls(%x) {value=1.702}\n%s = Sigmoid(%a)\n%y = Mul(%x, %s)"))
    assert result.only("Swish").attrs["scale"] == 1.702


def test_x_may_be_computed_by_arithmetic_itself() -> None:
    """What is multiplied and added before is no part of the activation."""
    body = GELUS[0].replace("%x", "%z")
    before = "%u = Mul(%x, %inverse)\n%z = Add(%u, %half)\n"
    result = fused(FuseGelu, text(before + body))
    assert result.types() == ["Mul", "Add", "GeluV2"]
    assert result.only("GeluV2").input(0).node.name == "z"


def test_the_nearest_product_is_taken() -> None:
    result = fused(FuseGelu, text(GELUS[0] + "\n%z = Mul(%y, %three)", "%z"))
    assert result.types() == ["GeluV2", "Mul"]


def test_the_new_node_knows_where_it_comes_from() -> None:
    node = fused(FuseGelu, text(GELU)).only("GeluV2")
    assert sorted(node.attrs["_datadump_original_op_names"]) == ["a", "e", "g", "h", "y"]
    assert sorted(node.attrs["_datadump_original_op_types"]) == ["Add", "Erf", "Mul", "Mul", "Mul"]
    assert node.attrs["pass_name"] == ["GeluFusionPass"]


GELU = "%a = Mul(%x, %inverse)\n%e = Erf(%a)\n%g = Add(%e, %one)\n%h = Mul(%x, %g)\n%y = Mul(%h, %half)"
SWISH = "%s = Sigmoid(%x)\n%y = Mul(%x, %s)"
HARD_SIGMOID = "%g = HardSigmoid(%x) {alpha=0.16666667, beta=0.5}\n%y = Mul(%x, %g)"
HARD_SWISH = "%a = Add(%x, %three)\n%g = Relu6(%a)\n%p = Mul(%x, %g)\n%y = RealDiv(%p, %six)"


def halves(number: str) -> str:
    return f"{number} * f * x + {number} * x"


@pytest.mark.parametrize(
    ("fusion", "body", "old", "new", "reasons"),
    [
        (FuseGelu, GELU, "%inverse", "%half", ["Erf takes 0.5 * x, not 0.707107 * x"]),
        (FuseGelu, GELU, "%h, %half", "%h, %sixth", [f"the result is {halves('0.166667')}, not {halves('0.5')}"]),
        (FuseGelu, GELU, "(%x, %g)", "(%a, %g)", [f"the result is {halves('0.353553')}, not {halves('0.5')}"]),
        (FuseGelu, GELU, "Erf", "Tanh", []),
        (FuseSwish, SWISH, "Mul(%x, %s)", "Mul(%s, %s)", []),
        (FuseHardSwish, HARD_SWISH, "%p, %six", "%p, %three", ["the result is 0.333333 * f * x, not 0.166667 * f * x"]),
        (FuseHardSwish, HARD_SWISH, "%x, %three", "%x, %two", ["Relu6 takes 2 + x, not 3 + x"]),
        (FuseHardSwish, HARD_SWISH, "Relu6(%a)", "ClipByValue(%a, %one, %six)", []),
        (FuseHardSwish, HARD_SIGMOID, "0.16666667", "0.2", ["HardSigmoid takes x, not 0.833333 * x"]),
    ],
)
def test_must_not_fire(fusion, body, old, new, reasons) -> None:
    assert old in body
    assert left_alone(fusion, text(body.replace(old, new))) == reasons


@pytest.mark.parametrize("shared", ["%a", "%e", "%g", "%h"])
def test_values_that_others_read_are_left_alone(shared: str) -> None:
    assert left_alone(FuseGelu, text(f"{GELU}\n%z = Abs({shared})", "%y, %z")) == [f"z reads {shared[1:]} too"]
    assert left_alone(FuseGelu, text(GELU, f"%y, {shared}")) == [f"the graph's result reads {shared[1:]} too"]


def test_control_edges_are_left_alone() -> None:
    body = GELU.replace("Mul(%x, %inverse)", "Mul(%x, %inverse) ctrl(%w)")
    assert left_alone(FuseGelu, text(f"%w = Abs(%x)\n{body}", "%y, %w")) == ["a has control edges"]


def test_integers_are_left_alone() -> None:
    body = "graph g(%x: i32[3]@ND) {\n  %a = Adds(%x) {value=3.0}\n  %g = Relu6(%a)\n  %y = Mul(%x, %g)\n  return %y\n}"
    assert left_alone(FuseHardSwish, body) == []


@pytest.mark.parametrize("tolerance", ["1.4142135", "1.41421"])
def test_numbers_may_be_rounded(tolerance: str) -> None:
    body = GELU.replace("Mul(%x, %inverse)", "RealDiv(%x, %r)")
    given = text(f"%r = Const {{value=f32[]{{{tolerance}}}}} -> f32[]@ND\n{body}")
    assert fused(FuseGelu, given).times == (1, 1)
    assert left_alone(FuseGelu, given.replace(tolerance, "1.41")) == ["Erf takes 0.70922 * x, not 0.707107 * x"]


def test_rounding_is_judged_by_the_type() -> None:
    half = text(GELU).replace("f32", "f16")
    assert fused(FuseGelu, half.replace("0.70710677", "0.7065")).times == (1, 1)
    assert left_alone(FuseGelu, text(GELU).replace("0.70710677", "0.7065")) != []


def gelu(x):
    return x * (np.vectorize(math.erf)(x / math.sqrt(2)) + 1) / 2


def gelu_tanh(x):
    return x * (np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)) + 1) / 2


@pytest.mark.parametrize(
    ("fusion", "body", "meaning"),
    [
        (FuseGelu, GELU, gelu),
        (FuseGeluTanh, TANH_GELUS[3], gelu_tanh),
        (FuseSwish, SWISH, lambda x: x / (1 + np.exp(-x))),
        (FuseSwish, "%a = Mul(%x, %three)\n%s = Sigmoid(%a)\n%y = Mul(%s, %x)", lambda x: x / (1 + np.exp(-3 * x))),
        (FuseHardSwish, HARD_SWISH, lambda x: x * np.clip(x + 3, 0, 6) / 6),
        (FuseHardSwish, HARD_SWISHES[-1], lambda x: x * np.clip(x / 6 + 0.5, 0, 1)),
    ],
    ids=["gelu", "tanh gelu", "swish", "scaled swish", "hard swish", "hard swish, drawn in"],
)
def test_numbers(fusion, body, meaning, rng) -> None:
    x = (rng.standard_normal((40, 50)) * 3).astype(np.float32)
    x[0, :6] = [0.0, -0.0, 6.0, -6.0, 3.0, -3.0]
    given = text(body).replace("f32[2,5]", "f32[40,50]")
    expected = meaning(x.astype(np.float64))
    for which in (fusion, None):
        [found] = results(which, graph_of(given), [x])
        np.testing.assert_allclose(found, expected, rtol=2e-5, atol=2e-6)
