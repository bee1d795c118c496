"""Runs of factors and addends merged into one of each."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ge.graph.types import data_type_by_short_name, numpy_dtype
from ge.options import CompileOptions, Environment
from ge.session import CompileSession
from passes.fusion.merge_scale_and_shift import MergeScaleAndShift
from tests.passes.fusion.fused import fused, graph_of, left_alone, results, run_model

VECTORS = {
    "a": np.array([1.5, -2.0, 0.75, 3.0], np.float32),
    "b": np.array([0.25, 1.0, -1.0, 0.5], np.float32),
    "n": np.array(-0.625, np.float32),
}


def text(body: str, *, dtype: str = "f32", result: str = "%y", shape: str = "[2,3,4]", more: str = "") -> str:
    lines = "\n".join(f"  {line.strip()}" for line in body.strip().splitlines())
    constants = f", %a: {dtype}[4]@ND, %b: {dtype}[4]@ND, %n: {dtype}[]@ND"
    return f"graph g(%x: {dtype}{shape}@ND{constants}{more}) {{\n{lines}\n  return {result}\n}}"


def graph(body: str, at_load=(), constants=VECTORS, **options):
    return graph_of(text(body, **options), constants, at_load)


# body -> the factor and the addend that remain, None where nothing is multiplied or added
A, B, N = (VECTORS[name].astype(np.float64) for name in "abn")
FORMS = {
    "factors": ("%p = Mul(%x, %a)\n%y = Mul(%b, %p)", A * B, None),
    "addends": ("%p = Add(%x, %a)\n%y = Add(%b, %p)", None, A + B),
    "a factor on both sides": ("%p = Mul(%n, %x)\n%q = Add(%p, %a)\n%y = Mul(%q, %b)", N * B, A * B),
    "an addend on both sides": ("%p = AddV2(%x, %a)\n%q = Mul(%p, %n)\n%y = Sub(%q, %b)", N, A * N - B),
    "a divided number": ("%p = RealDiv(%x, %a)\n%y = Div(%p, %n)", 1 / A / N, None),
    "differences": ("%p = Sub(%x, %a)\n%y = Sub(%p, %b)", None, -A - B),
    "turned differences": ("%p = Sub(%a, %x)\n%q = Sub(%b, %p)\n%y = Mul(%q, %n)", N, (B - A) * N),
    "numbers": (
        "%p = Muls(%x) {value=3.0}\n%q = Adds(%p) {value=0.5}\n%y = Muls(%q) {value=-2.0}",
        np.float64(-6),
        np.float64(-1),
    ),
    "signs": ("%p = Neg(%x)\n%q = Mul(%p, %a)\n%y = Neg(%q)", A, None),
    "a long run": ("%p = Mul(%x, %a)\n" * 1 + "%q = Add(%p, %b)\n%r = Mul(%q, %a)\n%y = Add(%r, %b)", A * A, A * B + B),
    "bias": ('%p = Mul(%x, %n)\n%q = BiasAdd(%p, %b) {data_format="NHWC"}\n%y = Mul(%q, %a)', N * A, A * B),
}


@pytest.mark.parametrize("name", FORMS)
def test_what_remains_of_a_run(name) -> None:
    body, factor, addend = FORMS[name]
    result = fused(MergeScaleAndShift, graph(body))
    assert result.types() == ["Mul"] * (factor is not None) + ["Add"] * (addend is not None)
    assert result.times == (1, 1)
    for kind, wanted in (("Mul", factor), ("Add", addend)):
        if wanted is not None:
            found = result.constant(result.only(kind), 1)
            assert found.dtype == np.float32
            np.testing.assert_array_equal(found.reshape(wanted.shape), wanted.astype(np.float32))


@pytest.mark.parametrize("at_load", [(), "abn"], ids=["known", "computed at load"])
@pytest.mark.parametrize("name", FORMS)
def test_numbers(name, at_load, rng) -> None:
    body, factor, addend = FORMS[name]
    x = rng.standard_normal((2, 3, 4)).astype(np.float32)
    expected = x.astype(np.float64) * (1 if factor is None else factor) + (0 if addend is None else addend)
    for which in (MergeScaleAndShift, None):
        [found] = results(which, graph(body, at_load), [x])
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_the_text_of_a_merge() -> None:
    before = """graph g(%x: f32[1,2]@ND) {
  %a = Const {value=f32[2]{2.0, 4.0}} -> f32[2]@ND
  %b = Const {value=f32[]{10.0}} -> f32[]@ND
  %p = Mul(%x, %a) -> f32[1,2]@ND
  %q = Add(%b, %p) -> f32[1,2]@ND
  %y = RealDiv(%q, %a) -> f32[1,2]@ND
  return %y
}"""
    after = """graph g(%x: f32[1,2]@ND) {
  %Const_p_q_y_0 = Const {value=f32[2]{5.0, 2.5}} -> f32[2]@ND
  %Add_p_q_y_1 = Add(%x, %Const_p_q_y_0) -> f32[1,2]@ND
  return %Add_p_q_y_1
}"""
    assert fused(MergeScaleAndShift, before).text() == after


@pytest.mark.parametrize(
    "body",
    [
        "%p = Mul(%x, %a)\n%y = RealDiv(%p, %a)",
        "%p = Neg(%x)\n%y = Neg(%p)",
        "%p = Add(%x, %a)\n%y = Sub(%p, %a)",
        "%p = Sub(%n, %x)\n%y = Sub(%n, %p)",
        "%p = Muls(%x) {value=4.0}\n%q = Adds(%p) {value=0.0}\n%y = Muls(%q) {value=0.25}",
    ],
)
def test_what_does_nothing_in_the_end_goes(body) -> None:
    result = fused(MergeScaleAndShift, graph(f"{body}\n%z = Abs(%y)", result="%z"))
    assert result.types() == ["Abs"]
    assert list(result.only("Abs").inputs) == list(result.graph.data_nodes()[0].outputs())


def test_numbers_are_rounded_once(rng) -> None:
    values = {name: rng.uniform(0.5, 2, 4).astype(np.float32) for name in "abn"}
    given = text("%p = Mul(%x, %a)\n%q = Mul(%p, %b)\n%y = RealDiv(%q, %n)").replace("%n: f32[]", "%n: f32[4]")
    result = fused(MergeScaleAndShift, graph_of(given, values))
    a, b, n = (values[name].astype(np.float64) for name in "abn")
    np.testing.assert_array_equal(result.constant(result.only("Mul"), 1), (a * b / n).astype(np.float32))


@pytest.mark.parametrize("dtype", ["f16", "bf16", "f64"])
def test_other_float_types(dtype) -> None:
    kind = numpy_dtype(data_type_by_short_name(dtype))
    values = {name: value.astype(kind) for name, value in VECTORS.items()}
    result = fused(MergeScaleAndShift, graph(FORMS["a factor on both sides"][0], constants=values, dtype=dtype))
    assert result.types() == ["Mul", "Add"]
    np.testing.assert_array_equal(result.constant(result.only("Mul"), 1), (N * B).astype(kind))


def test_runs_are_found_between_other_operators() -> None:
    body = "%p = Mul(%x, %a)\n%q = Mul(%p, %b)\n%r = Relu(%q)\n%s = Add(%r, %a)\n%t = Add(%s, %n)\n%y = Relu(%t)"
    result = fused(MergeScaleAndShift, graph(body))
    assert result.types() == ["Mul", "Relu", "Add", "Relu"]
    assert result.times == (2, 2)


def test_sizes_may_be_unknown() -> None:
    result = fused(MergeScaleAndShift, graph(FORMS["a long run"][0], shape="[-1,-1,4]"))
    assert result.types() == ["Mul", "Add"]
    assert result.only("Add").output_descs[0].shape == [-1, -1, 4]


# -- normalisation -----------------------------------------------------------------------------------------------------
NORM = '%p:6 = BatchNorm(%x, %s, %o, %m, %v) {epsilon=0.01, data_format="NCHW", is_training=false}'
INFER = "%p = BNInfer(%x, %s, %o, %m, %v) {epsilon=0.01}"
STATISTICS = ", ".join(f"%{name}: f32[3]@ND" for name in "somv")


def statistics(rng) -> dict:
    return {name: rng.uniform(0.5, 2, (3, 1, 1) if name == "k" else 3).astype(np.float32) for name in "somvk"}


def normalisation(body: str, values, at_load=(), result: str = "%y"):
    given = text(body, shape="[2,3,4,4]", more=f", {STATISTICS}, %k: f32[3,1,1]@ND", result=result)
    return graph_of(given, VECTORS | values, at_load)


@pytest.mark.parametrize("at_load", [(), "somvk"], ids=["known", "computed at load"])
@pytest.mark.parametrize("norm", [NORM, INFER], ids=["BatchNorm", "BNInfer"])
def test_a_run_with_a_normalisation_becomes_one(norm, at_load, rng) -> None:
    body = f"{norm}\n%q = Mul(%p, %k)\n%y = Add(%q, %n)"
    values = statistics(rng)
    kind = "BatchNorm" if norm is NORM else "BNInfer"
    assert fused(MergeScaleAndShift, normalisation(body, values, at_load)).types() == [kind]
    x = rng.standard_normal((2, 3, 4, 4)).astype(np.float32)
    s, o, m, v, k = (values[name].astype(np.float64).reshape(3, 1, 1) for name in "somvk")
    expected = ((x - m) / np.sqrt(v + 0.01) * s + o) * k + N
    for which in (MergeScaleAndShift, None):
        [found] = results(which, normalisation(body, values, at_load), [x])
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def test_a_factor_before_the_normalisation_and_one_that_is_not_per_channel(rng) -> None:
    body = f"%w = Mul(%x, %k)\n{NORM.replace('%x', '%w')}\n%y = Mul(%p, %a)"
    result = fused(MergeScaleAndShift, normalisation(body, statistics(rng)))
    assert result.types() == ["BatchNorm", "Mul"]


def test_a_normalisation_and_a_factor_per_element(rng) -> None:
    """It is as large as the product would be, but a normalisation has no place for it."""
    body = f"%w = Mul(%x, %e)\n{INFER.replace('%x', '%w')}\n%y = Add(%p, %n)"
    values = VECTORS | statistics(rng) | {"e": rng.uniform(0.5, 2, (3, 4, 4)).astype(np.float32)}
    given = text(body, shape="[2,3,4,4]", more=f", {STATISTICS}, %e: f32[3,4,4]@ND")
    values = {name: value for name, value in values.items() if name != "k"}
    assert fused(MergeScaleAndShift, graph_of(given, values)).types() == ["Mul", "BNInfer"]


@pytest.mark.parametrize(
    ("norm", "more", "result"),
    [
        (NORM.replace("is_training=false", "is_training=true"), "", "%y"),
        (NORM, "%z = Relu(%p:1)\n", "%y, %z"),
        (NORM.replace("%s,", "%w,"), "%w = Relu(%s)\n", "%y"),
    ],
    ids=["training", "statistics", "computed scale"],
)
def test_normalisations_that_are_no_scale_and_shift(norm, more, result, rng) -> None:
    before, behind = (more, "") if "%w =" in more else ("", more)
    body = f"{before}{norm}\n{behind}%y = Mul(%p, %k)"
    values = {name: value for name, value in statistics(rng).items() if name != "s"}
    assert left_alone(MergeScaleAndShift, normalisation(body, values, result=result)) == []


# -- left alone --------------------------------------------------------------------------------------------------------
RUN = "%p = Mul(%x, %a)\n%q = Add(%p, %b)\n%y = Mul(%q, %n)"


def test_a_run_that_would_stay_as_long_as_it_is() -> None:
    assert left_alone(MergeScaleAndShift, graph("%p = Mul(%x, %a)\n%y = Add(%p, %b)")) == []
    assert left_alone(MergeScaleAndShift, graph("%p = Add(%x, %a)\n%y = Mul(%p, %b)")) == []
    assert left_alone(MergeScaleAndShift, graph("%y = Mul(%x, %a)")) == []


@pytest.mark.parametrize("shared", ["%p", "%q"])
def test_values_that_others_read_end_the_run(shared) -> None:
    assert left_alone(MergeScaleAndShift, graph(f"{RUN}\n%z = Abs({shared})", result="%y, %z")) == []
    assert left_alone(MergeScaleAndShift, graph(RUN, result=f"%y, {shared}")) == []
    twice = RUN.replace("%y = Mul(%q, %n)", "%r = Mul(%q, %n)\n%y = Mul(%r, %r)")
    assert fused(MergeScaleAndShift, graph(twice)).types() == ["Mul", "Add", "Mul"]


@pytest.mark.parametrize("place", ["%q = Add(%p, %b)", "%y = Mul(%q, %n)"])
def test_control_edges_end_the_run(place) -> None:
    body = "%w = Abs(%x)\n" + RUN.replace(place, f"{place} ctrl(%w)")
    assert left_alone(MergeScaleAndShift, graph(body, result="%y, %w")) == []


@pytest.mark.parametrize("name", ["a", "b", "n"])
def test_operands_that_are_no_constants_end_the_run(name) -> None:
    values = {key: value for key, value in VECTORS.items() if key != name}
    assert left_alone(MergeScaleAndShift, graph(RUN, constants=values)) == []


def truncated(p: int, d: int) -> int:
    return p // d if p >= 0 else -(-p // d)


@pytest.mark.parametrize(("dtype", "kind"), [("i8", np.int8), ("u8", np.uint8), ("i32", np.int32), ("i64", np.int64)])
def test_whole_numbers_are_left_alone(dtype, kind, rng) -> None:
    """They wrap around, and their quotients are whole."""
    values = {"a": np.array([3, 2, 5, 7], kind), "b": np.array([4, 2, 3, 1], kind), "n": np.array(2, kind)}
    body = "%p = Mul(%x, %a)\n%q = RealDiv(%p, %b)\n%r = Add(%q, %n)\n%y = Mul(%r, %b)"
    assert left_alone(MergeScaleAndShift, graph(body, constants=values, dtype=dtype)) == []
    limits = np.iinfo(kind)
    x = rng.integers(limits.min, limits.max, (2, 3, 4), kind, endpoint=True)
    with np.errstate(over="ignore"):
        product = x * values["a"]
        quotient = np.vectorize(truncated, otypes=[object])(product.astype(object), values["b"].astype(object))
        expected = (quotient.astype(kind) + values["n"]) * values["b"]
    session = CompileSession(CompileOptions(), Environment())
    [found] = run_model(graph(body, constants=values, dtype=dtype), session, [x])
    np.testing.assert_array_equal(found, expected)


def test_constants_that_would_grow_are_left_alone() -> None:
    body = "%p = Mul(%x, %row)\n%y = Mul(%p, %column)"
    values = VECTORS | {"row": np.ones((1, 4), np.float32), "column": np.ones((3, 1), np.float32)}
    more = ", %row: f32[1,4]@ND, %column: f32[3,1]@ND"
    assert left_alone(MergeScaleAndShift, graph(body, constants=values, more=more)) == []


def test_the_rest_of_a_run_is_merged_behind_a_cut() -> None:
    body = "%p = Mul(%x, %row)\n%q = Mul(%p, %column)\n%y = Mul(%q, %column)"
    values = VECTORS | {"row": np.full((1, 4), 2, np.float32), "column": np.full((3, 1), 3, np.float32)}
    result = fused(MergeScaleAndShift, graph(body, constants=values, more=", %row: f32[1,4]@ND, %column: f32[3,1]@ND"))
    assert result.types() == ["Mul", "Mul"]
    last = result.graph.outputs[0].node
    np.testing.assert_array_equal(result.constant(last, 1), np.full((3, 1), 9))


def test_scalars_stay_scalars() -> None:
    body = "%p = Muls(%x) {value=2.0}\n%q = Add(%p, %n)\n%y = Muls(%q) {value=2.0}"
    result = fused(MergeScaleAndShift, graph(body, shape="[]"))
    assert result.types() == ["Mul", "Add"]
    assert result.only("Add").output_descs[0].shape == []


def test_a_result_larger_than_what_is_scaled() -> None:
    """What adds 0 and multiplies by 1 goes only where the shape stays."""
    values = VECTORS | {"z": np.zeros((3, 4), np.float32)}
    body = "%p = Add(%x, %z)\n%y = Sub(%p, %n)\n%w = Add(%y, %n)"
    made = graph(body, constants=values, shape="[4]", more=", %z: f32[3,4]@ND", result="%w")
    assert left_alone(MergeScaleAndShift, made) == ["DT_FLOAT [4] would take the place of [3,4]"]


FITS, DIGITS = "the combined numbers do not fit into {}", "the combined factor would lose digits in {}"


def pair(first: float, second: float, third: float = 1.0) -> str:
    return f"%p = Muls(%x) {{value={first}}}\n%q = Adds(%p) {{value={third}}}\n%y = Muls(%q) {{value={second}}}"


@pytest.mark.parametrize(
    ("dtype", "body", "reason"),
    [
        ("f32", pair(1e30, 1e30), FITS.format("DT_FLOAT")),
        ("f16", pair(300.0, 300.0), FITS.format("DT_FLOAT16")),
        ("f32", pair(2.0, 1e30, 1e30), FITS.format("DT_FLOAT")),
        ("f32", pair(1e-30, 1e-30), FITS.format("DT_FLOAT")),
        ("f64", pair(1e-200, 1e-200), FITS.format("DT_DOUBLE")),
        ("f64", pair(1e-160, 1e-160), FITS.format("DT_DOUBLE")),
        ("f64", pair(1e200, 1e200), FITS.format("DT_DOUBLE")),
        ("f32", pair(1e-20, 1e-22), DIGITS.format("DT_FLOAT")),
        ("f16", pair(1e-3, 2e-3), DIGITS.format("DT_FLOAT16")),
        ("f16", pair(2.0, 100.0, -600.0), "the product may not fit into DT_FLOAT16 where the sum with 60000 does"),
        ("f32", pair(2.0, 1e8, 1e30), "the product may not fit into DT_FLOAT where the sum with 1e+38 does"),
    ],
    ids=[
        "factor",
        "factor, f16",
        "addend",
        "0",
        "0 in between",
        "digits in between",
        "inf in between",
        "digits",
        "digits, f16",
        "room, f16",
        "room",
    ],
)
def test_numbers_that_do_not_fit_together(dtype, body, reason) -> None:
    kind = numpy_dtype(data_type_by_short_name(dtype))
    values = {name: value.astype(kind) for name, value in VECTORS.items()}
    assert left_alone(MergeScaleAndShift, graph(body, constants=values, dtype=dtype)) == [reason]


@pytest.mark.parametrize("special", [np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("body", [RUN, FORMS["an addend on both sides"][0], FORMS["turned differences"][0]])
def test_constants_that_are_not_finite(special, body) -> None:
    values = VECTORS | {"a": np.array([1, special, 2, 3], np.float32)}
    assert left_alone(MergeScaleAndShift, graph(body, constants=values)) == [FITS.format("DT_FLOAT")]


def test_division_by_0(rng) -> None:
    values = VECTORS | {"a": np.array([1, 0, -0.0, 3], np.float32)}
    body = "%p = RealDiv(%x, %a)\n%q = Add(%p, %b)\n%y = Mul(%q, %n)"
    assert left_alone(MergeScaleAndShift, graph(body, constants=values)) == [FITS.format("DT_FLOAT")]


SPECIALS = np.array([np.inf, -np.inf, np.nan, 0.0, -0.0, 3e38, -3e38, 1e-40], np.float32)


@pytest.mark.parametrize("name", FORMS)
def test_numbers_that_are_not_finite_go_through(name) -> None:
    body = FORMS[name][0]
    x = np.resize(SPECIALS, (2, 3, 4))
    x[1] = np.where(np.abs(x[1]) > 1e38, 7, x[1])
    [merged] = results(MergeScaleAndShift, graph(body), [x])
    [plain] = results(None, graph(body), [x])
    is_plain = np.abs(x) < 1e38
    np.testing.assert_allclose(merged[is_plain], plain[is_plain], rtol=1e-6, atol=1e-6)
    np.testing.assert_array_equal(merged[~np.isfinite(x)], plain[~np.isfinite(x)])


def test_a_factor_of_0_still_multiplies() -> None:
    """Infinity times 0 is no number."""
    values = VECTORS | {"a": np.array([0, 1, 0, -0.0], np.float32)}
    assert fused(MergeScaleAndShift, graph(RUN, constants=values)).types() == ["Mul", "Add"]
    x = np.resize(SPECIALS, (2, 3, 4))
    [merged] = results(MergeScaleAndShift, graph(RUN, constants=values), [x])
    [plain] = results(None, graph(RUN, constants=values), [x])
    np.testing.assert_allclose(merged, plain, rtol=1e-6)


@pytest.mark.parametrize("reader", ["Reciprocal(%y)", "RealDiv(%n, %y)", "FloorDiv(%n, %y)", "Power(%y) {power=-1.0}"])
@pytest.mark.parametrize(
    "body", ["%p = Adds(%x) {value=2.0}\n%y = Adds(%p) {value=-2.0}", "%p = Sub(%n, %x)\n%y = Sub(%n, %p)"]
)
def test_an_addend_of_0_that_a_reader_could_tell(body, reader) -> None:
    given = graph(f"{body}\n%z = {reader}", result="%z")
    assert left_alone(MergeScaleAndShift, given) == ["z can tell 0.0 from -0.0, which y makes one"]


# -- at random ---------------------------------------------------------------------------------------------------------
SHAPES = [(), (1,), (4,), (3, 1), (2, 1, 1), (1, 3, 4), (2, 3, 4)]
STEPS = ["Add", "AddV2", "Sub", "Mul", "RealDiv", "Div", "Muls", "Adds", "Neg", "BNInfer"]


@st.composite
def runs(draw):
    """Steps: an operator, whether the constant stands first, and the shape of the constant."""
    count = draw(st.integers(2, 7))
    return [(draw(st.sampled_from(STEPS)), draw(st.booleans()), draw(st.sampled_from(SHAPES))) for _ in range(count)]


def written(run, rng, kind, special: float):
    """The text of a run, its constants, and a function that gives its result in float64, and how large terms were."""
    name = {np.dtype(np.float32): "f32", np.dtype(np.float64): "f64"}[np.dtype(kind)]
    lines: list[str] = []
    constants: dict[str, np.ndarray] = {}
    steps: list[tuple[str, bool, Any]] = []
    value = "%x"

    def constant(shape):
        array = rng.uniform(0.5, 2, shape) * rng.choice([-1, 1], shape)
        array = np.where(rng.uniform(size=shape) < 0.1, special, array).astype(kind)
        constants[f"c{len(constants)}"] = array
        return f"%c{len(constants) - 1}", array.astype(np.float64)

    for place, (step, is_first, shape) in enumerate(run):
        made = f"%v{place}"
        if step in ("Muls", "Adds"):
            number = float(np.float32(rng.uniform(-2, 2)))
            lines.append(f"{made} = {step}({value}) {{value={number!r}}}")
            steps.append((step, False, np.float64(number)))
        elif step == "Neg":
            lines.append(f"{made} = Neg({value})")
            steps.append(("Neg", False, None))
        elif step == "BNInfer":
            operands = [constant((3,)) for _ in range(4)]
            constants[operands[3][0][1:]] = variance = np.abs(operands[3][1]).astype(kind)
            lines.append(f"{made} = BNInfer({value}, {', '.join(text for text, _ in operands)}) {{epsilon=0.5}}")
            scale, offset, mean = (array.reshape(3, 1) for _, array in operands[:3])
            steps.append(("BNInfer", False, (scale, offset, mean, variance.astype(np.float64).reshape(3, 1))))
        else:
            operand, array = constant(shape)
            if step in ("RealDiv", "Div"):
                is_first = False
                array = np.where(array == 0, 1.5, array)
                constants[operand[1:]] = array.astype(kind)
            lines.append(f"{made} = {step}({operand}, {value})" if is_first else f"{made} = {step}({value}, {operand})")
            steps.append((step, is_first, array))
        value = made
    inputs = "".join(f", %{key}: {name}[{','.join(map(str, array.shape))}]@ND" for key, array in constants.items())
    body = "\n  ".join(lines)
    return f"graph g(%x: {name}[2,3,4]@ND{inputs}) {{\n  {body}\n  return {value}\n}}", constants, steps


def meaning(steps, x):
    """The result in float64, and the sum of the magnitudes of all terms in it."""
    y, size = x.astype(np.float64), np.abs(x.astype(np.float64))
    for step, is_first, array in steps:
        if step in ("Add", "AddV2", "Adds"):
            y, size = y + array, size + np.abs(array)
        elif step == "Sub":
            y, size = (array - y if is_first else y - array), size + np.abs(array)
        elif step in ("Mul", "Muls"):
            y, size = y * array, size * np.abs(array)
        elif step in ("RealDiv", "Div"):
            y, size = y / array, size / np.abs(array)
        elif step == "Neg":
            y = -y
        else:
            scale, offset, mean, variance = array
            factor = scale / np.sqrt(variance + 0.5)
            y, size = (y - mean) * factor + offset, (size + np.abs(mean)) * np.abs(factor) + np.abs(offset)
    return y, size


@settings(max_examples=120)
@given(
    run=runs(),
    kind=st.sampled_from([np.float32, np.float64]),
    special=st.sampled_from([0.0, -0.0, 1.0]),
    is_at_load=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)
def test_a_merged_run_computes_the_same_with_no_more_nodes(run, kind, special, is_at_load, seed) -> None:
    rng = np.random.default_rng(seed)
    given_text, constants, steps = written(run, rng, kind, special)
    at_load = list(constants) if is_at_load else ()
    result = fused(MergeScaleAndShift, graph_of(given_text, constants, at_load))
    assert len(result.types()) <= len(run)
    x = rng.uniform(-2, 2, (2, 3, 4)).astype(kind)
    which = MergeScaleAndShift if result.times[1] else None
    [found] = results(which, graph_of(given_text, constants, at_load), [x])
    expected, size = meaning(steps, x)
    bound = 4 * (len(run) + 2) * np.finfo(kind).eps * size
    assert found.shape == expected.shape
    assert (np.abs(found - expected) <= bound).all()
