"""Addends, factors and Transposes folded into matrix products."""

from __future__ import annotations

import numpy as np
import pytest

from passes.fusion.fold_matmul_bias import FoldMatMulBias
from passes.fusion.fold_matmul_scale import FoldMatMulScale
from passes.fusion.fuse_matmul_transpose import FuseMatMulTranspose
from tests.passes.fusion.fused import fused, graph_of, left_alone, results

# type -> how it is called with x1, x2 and perhaps a bias, and its attributes that transpose x1 and x2
TYPES = {
    "MatMul": ("transpose_x1", "transpose_x2"),
    "MatMulV2": ("transpose_x1", "transpose_x2"),
    "MatMulV3": ("transpose_x1", "transpose_x2"),
    "BatchMatMul": ("adj_x1", "adj_x2"),
    "BatchMatMulV2": ("adj_x1", "adj_x2"),
    "BatchMatMulV3": ("adj_x1", "adj_x2"),
    "GEMM": ("transpose_a", "transpose_b"),
}
WITH_BIAS = [name for name in TYPES if name not in ("BatchMatMul", "GEMM")]
ALPHA, BETA = 1.5, -0.5


def call(name: str, x1: str = "%x", x2: str = "%w", bias: bool = False, attrs: str = "") -> str:
    if name == "GEMM":
        return f"GEMM({x1}, {x2}, %b, %alpha, %beta) {{{attrs}}}"
    return f"{name}({x1}, {x2}{', %b' if bias else ''}) {{{attrs}}}"


def text(lines: str, result: str = "%y", **shapes: tuple[int, ...]) -> str:
    sizes = {"x": (2, 3), "w": (3, 4), "b": (4,), "k": (4,)} | shapes
    inputs = ", ".join(f"%{name}: f32[{','.join(map(str, shape))}]@ND" for name, shape in sizes.items())
    return f"""graph g({inputs}) {{
  %alpha = Const {{value=f32[]{{{ALPHA}}}}} -> f32[]@ND
  %beta = Const {{value=f32[]{{{BETA}}}}} -> f32[]@ND
  {lines}
  return {result}
}}"""


def constants(rng, **shapes: tuple[int, ...]) -> dict:
    sizes = {"w": (3, 4), "b": (4,), "k": (4,)} | shapes
    return {name: rng.uniform(0.5, 2, shape).astype(np.float32) for name, shape in sizes.items()}


def product(name, x, values, has_bias):
    wide = {key: value.astype(np.float64) for key, value in values.items()}
    y = x.astype(np.float64) @ wide["w"]
    if name == "GEMM":
        return ALPHA * y + BETA * wide["b"]
    return y + wide["b"] if has_bias else y


@pytest.mark.parametrize("at_load", [(), "wbk"], ids=["known", "computed at load"])
@pytest.mark.parametrize(
    ("line", "meaning"),
    [
        ("%y = Add(%p, %k)", lambda p, k: p + k),
        ("%y = Add(%k, %p)", lambda p, k: p + k),
        ("%y = AddV2(%k, %p)", lambda p, k: p + k),
        ("%y = Sub(%p, %k)", lambda p, k: p - k),
        ('%y = BiasAdd(%p, %k) {data_format="NHWC"}', lambda p, k: p + k),
    ],
)
@pytest.mark.parametrize("has_bias", [False, True], ids=["no bias", "bias"])
@pytest.mark.parametrize("name", TYPES)
def test_addends_become_the_bias(name, has_bias, line, meaning, at_load, rng) -> None:
    if has_bias and name not in WITH_BIAS:
        pytest.skip(f"{name} has no input for a bias, or always has one")
    values = constants(rng)
    given = text(f"%p = {call(name, bias=has_bias)}\n  {line}")
    result = fused(FoldMatMulBias, graph_of(given, values, at_load))
    assert result.types() == ["BatchMatMulV2" if name == "BatchMatMul" else name]
    assert result.times == (1, 1)
    x = rng.standard_normal((2, 3)).astype(np.float32)
    [found] = results(FoldMatMulBias, graph_of(given, values, at_load), [x])
    np.testing.assert_allclose(found, meaning(product(name, x, values, has_bias), values["k"]), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("at_load", [(), "wbk"], ids=["known", "computed at load"])
@pytest.mark.parametrize(
    ("line", "shape", "meaning"),
    [
        ("%y = Muls(%p) {value=-0.75}", (4,), lambda p, k: p * -0.75),
        ("%y = Mul(%p, %k)", (), lambda p, k: p * k),
        ("%y = Mul(%k, %p)", (4,), lambda p, k: p * k),
        ("%y = RealDiv(%p, %k)", (1, 4), lambda p, k: p / k),
    ],
)
@pytest.mark.parametrize("name", TYPES)
def test_factors_go_into_the_weight(name, line, shape, meaning, at_load, rng) -> None:
    has_bias = name in WITH_BIAS
    values = constants(rng, k=shape)
    given = text(f"%p = {call(name, bias=has_bias)}\n  {line}", k=shape)
    result = fused(FoldMatMulScale, graph_of(given, values, at_load))
    assert result.types() == [name]
    x = rng.standard_normal((2, 3)).astype(np.float32)
    [found] = results(FoldMatMulScale, graph_of(given, values, at_load), [x])
    np.testing.assert_allclose(found, meaning(product(name, x, values, has_bias), values["k"]), rtol=1e-5, atol=1e-5)


def test_a_transposed_weight_is_scaled_by_rows(rng) -> None:
    values = constants(rng, w=(4, 3))
    given = text(f"%p = {call('MatMulV2', attrs='transpose_x2=true')}\n  %y = Mul(%p, %k)", w=(4, 3))
    x = rng.standard_normal((2, 3)).astype(np.float32)
    [found] = results(FoldMatMulScale, graph_of(given, values), [x])
    np.testing.assert_allclose(found, (x.astype(np.float64) @ values["w"].T) * values["k"], rtol=1e-5)


def test_the_weight_may_be_the_first_operand(rng) -> None:
    values = constants(rng, w=(5, 2))
    given = text(f"%p = {call('MatMulV2', '%w', '%x')}\n  %y = Muls(%p) {{value=3.0}}", w=(5, 2))
    x = rng.standard_normal((2, 3)).astype(np.float32)
    [found] = results(FoldMatMulScale, graph_of(given, values), [x])
    np.testing.assert_allclose(found, 3 * (values["w"].astype(np.float64) @ x), rtol=1e-5)


PRODUCT = "%p = MatMulV2(%x, %w)"


@pytest.mark.parametrize(
    ("fusion", "lines", "shapes", "reasons"),
    [
        (FoldMatMulBias, f"{PRODUCT}\n  %y = Add(%p, %k)", {"k": (2, 4)}, "added"),
        (FoldMatMulBias, f"{PRODUCT}\n  %y = Add(%p, %k)", {"k": ()}, "added"),
        (FoldMatMulBias, f"{PRODUCT}\n  %y = Add(%p, %k)", {"k": (2, 1)}, "added"),
        (FoldMatMulBias, f"{PRODUCT}\n  %y = Add(%p, %k)", {"k": (5, 1, 4)}, "added"),
        (FoldMatMulBias, f"{PRODUCT}\n  %z = Relu(%p)\n  %y = Add(%p, %k)", {}, ["z reads p too"]),
        (FoldMatMulBias, f"{PRODUCT}\n  %y = Add(%p, %p)", {}, ["y reads p more than once"] * 2),
        (FoldMatMulScale, f"{PRODUCT}\n  %y = Mul(%p, %k)", {"k": (2, 1)}, "factor"),
        (FoldMatMulScale, f"{PRODUCT}\n  %z = Relu(%w)\n  %y = Mul(%p, %k)", {}, "twice"),
    ],
    ids=["rows", "number", "column", "growth", "shared", "itself", "rows scaled", "weight shared"],
)
def test_must_not_fire(fusion, lines, shapes, reasons, rng) -> None:
    sentences = {
        "added": ["what is added has not one number for each of 4 columns"],
        "factor": ["the factor is neither one number nor one for each of 4 columns"],
        "twice": ["z reads w too: it would have to be stored twice"],
    }
    graph = graph_of(text(lines, "%y, %z" if "%z" in lines else "%y", **shapes), constants(rng, **shapes))
    assert left_alone(fusion, graph) == sentences.get(reasons if isinstance(reasons, str) else "", reasons)


@pytest.mark.parametrize(
    ("fusion", "line", "fixed", "reason"),
    [
        (FoldMatMulBias, "%y = Add(%p, %k)", "w", "k is no constant"),
        (FoldMatMulScale, "%y = Muls(%p) {value=2.0}", "", "neither operand is a constant"),
        (FoldMatMulScale, "%y = Mul(%p, %k)", "w", "k is no constant"),
    ],
)
def test_what_is_computed_is_left_alone(fusion, line, fixed, reason, rng) -> None:
    values = {name: value for name, value in constants(rng).items() if name in fixed}
    assert left_alone(fusion, graph_of(text(f"{PRODUCT}\n  {line}"), values)) == [reason]


def test_vectors_are_left_alone(rng) -> None:
    given = text("%p = BatchMatMulV2(%x, %w)\n  %y = Add(%p, %k)", x=(3,))
    assert left_alone(FoldMatMulBias, graph_of(given, constants(rng))) == ["its operands are not known to be matrices"]


# -- Transpose ---------------------------------------------------------------------------------------------------------
SWAP = "%s = Const {value=i64[2]{1, 0}} -> i64[2]@ND\n  "


@pytest.mark.parametrize("slot", [0, 1])
@pytest.mark.parametrize("was_swapped", [False, True])
@pytest.mark.parametrize("name", TYPES)
def test_transposes_turn_the_attribute_over(name, slot, was_swapped, rng) -> None:
    attribute = TYPES[name][slot]
    left, right = (2, 3), (3, 4)
    shape = (left, right)[slot]
    shape = shape if was_swapped else shape[::-1]
    shapes = {"x": shape, "w": right} if slot == 0 else {"x": left, "w": shape}
    operand = ("%x", "%w")[slot]
    operands = ("%t", "%w") if slot == 0 else ("%x", "%t")
    lines = f"{SWAP}%t = Transpose({operand}, %s)\n  "
    lines += f"%y = {call(name, *operands, attrs=f'{attribute}={str(was_swapped).lower()}')}"
    result = fused(FuseMatMulTranspose, graph_of(text(lines, **shapes), {"b": np.ones(4, np.float32)}))
    assert result.types() == [name]
    assert result.only(name).attrs[attribute] is not was_swapped
    inputs = {key: rng.standard_normal(size).astype(np.float32) for key, size in shapes.items()}
    bias = np.ones(4, np.float32)
    found = [
        results(which, graph_of(text(lines, **shapes), {"b": bias, "k": bias}), [inputs["x"], inputs["w"]])[0]
        for which in (FuseMatMulTranspose, None)
    ]
    first, second = (inputs[key].astype(np.float64) for key in ("x", "w"))
    operand_value = (first, second)[slot]
    straight = operand_value if was_swapped else operand_value.T
    y = straight @ second if slot == 0 else first @ straight
    expected = ALPHA * y + BETA if name == "GEMM" else y
    for values in found:
        np.testing.assert_allclose(values, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("perm", "shape", "reason"),
    [
        ((0, 2, 1, 3), (2, 4, 3, 5), "t does not exchange the last two axes alone: [0, 2, 1, 3]"),
        ((1, 0, 3, 2), (3, 2, 5, 4), "t does not exchange the last two axes alone: [1, 0, 3, 2]"),
    ],
)
def test_other_permutations_are_left_alone(perm, shape, reason) -> None:
    given = f"""graph g(%x: f32[2,3,6,4]@ND, %w: f32[{",".join(map(str, shape))}]@ND) {{
  %s = Const {{value=i64[4]{{{", ".join(map(str, perm))}}}}} -> i64[4]@ND
  %t = Transpose(%w, %s)
  %y = BatchMatMulV2(%x, %t)
  return %y
}}"""
    assert left_alone(FuseMatMulTranspose, given) == [reason]


def test_a_transpose_that_is_both_operands_or_shared_is_left_alone() -> None:
    square = {"x": (3, 3), "w": (3, 3)}
    twice = text(f"{SWAP}%t = Transpose(%x, %s)\n  %y = MatMulV2(%t, %t)", **square)
    assert left_alone(FuseMatMulTranspose, twice) == ["y reads t more than once"] * 2
    shared = text(f"{SWAP}%t = Transpose(%x, %s)\n  %z = Relu(%t)\n  %y = MatMulV2(%t, %w)", "%y, %z", **square)
    assert left_alone(FuseMatMulTranspose, shared) == ["z reads t too"]
