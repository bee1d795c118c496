"""Transposes that go into matrix products, beyond those in test_matmul_folding.py: permutations, types, at random."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from passes.fusion.fuse_matmul_transpose import FuseMatMulTranspose
from tests.passes.fusion.fused import fused, graph_of, left_alone, results


def products(perm: str, *, kind: str = "Transpose", dtype: str = "f32") -> str:
    made = "%t = Transpose(%w, %p)" if kind == "Transpose" else f"%t = TransposeD(%w) {{perm=[{perm}]}}"
    constant = f"%p = Const {{value=i64[3]{{{perm}}}}} -> i64[3]@ND\n  " if kind == "Transpose" else ""
    head = f"graph g(%x: {dtype}[2,3,5]@ND, %w: {dtype}[2,4,5]@ND) {{\n  "
    return f"{head}{constant}{made}\n  %y = BatchMatMulV2(%x, %t)\n  return %y\n}}"


@pytest.mark.parametrize("kind", ["Transpose", "TransposeD"])
@pytest.mark.parametrize("perm", ["0,2,1", "0,-1,-2", "-3,-1,1"])
def test_transposes_go_into_matrix_products(perm, kind, rng) -> None:
    result = fused(FuseMatMulTranspose, products(perm, kind=kind))
    assert result.types() == ["BatchMatMulV2"]
    assert result.only("BatchMatMulV2").attrs["adj_x2"] is True
    x, w = rng.standard_normal((2, 3, 5)).astype(np.float32), rng.standard_normal((2, 4, 5)).astype(np.float32)
    expected = x.astype(np.float64) @ w.transpose(0, 2, 1)
    for which in (FuseMatMulTranspose, None):
        [found] = results(which, graph_of(products(perm, kind=kind)), [x, w])
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def test_complex_numbers_would_be_conjugated() -> None:
    assert left_alone(FuseMatMulTranspose, products("0,2,1", dtype="c64")) == ["complex numbers would be conjugated"]


def test_a_computed_permutation() -> None:
    given_text = "graph g(%x: f32[2,3]@ND, %w: f32[3,4]@ND, %p: i64[2]@ND) {\n  %t = Transpose(%x, %p)\n"
    given_text += "  %y = MatMulV2(%t, %w)\n  return %y\n}"
    assert left_alone(FuseMatMulTranspose, given_text) == ["the permutation of t is no constant"]


@settings(max_examples=60)
@given(
    swaps=st.tuples(st.booleans(), st.booleans()),
    turned=st.tuples(st.booleans(), st.booleans()),
    batch=st.sampled_from([(), (2,), (2, 3)]),
    seed=st.integers(0, 2**32 - 1),
)
def test_any_product_of_transposes(swaps, turned, batch, seed) -> None:
    rng = np.random.default_rng(seed)
    rank = len(batch) + 2
    order = [*range(rank - 2), rank - 1, rank - 2]
    lines, operands, inputs, values = [], [], [], []
    for name, shape, is_swapped, is_turned in zip("xw", ((2, 3), (3, 4)), swaps, turned, strict=True):
        value = rng.standard_normal((*batch, *shape)).astype(np.float32)
        values.append(value)
        inputs.append(np.ascontiguousarray(value.swapaxes(-1, -2) if is_swapped != is_turned else value))
        operands.append(f"%{name}t" if is_turned else f"%{name}")
        if is_turned:
            lines.append(f"%{name}t = TransposeD(%{name}) {{perm={order}}}")
    head = ", ".join(f"%{n}: f32{str(list(v.shape)).replace(' ', '')}@ND" for n, v in zip("xw", inputs, strict=True))
    attrs = f"{{adj_x1={str(swaps[0]).lower()}, adj_x2={str(swaps[1]).lower()}}}"
    lines.append(f"%y = BatchMatMulV2({', '.join(operands)}) {attrs}")
    body = "\n  ".join(lines)
    given_text = f"graph g({head}) {{\n  {body}\n  return %y\n}}"
    result = fused(FuseMatMulTranspose, given_text)
    assert result.types() == ["BatchMatMulV2"]
    [found] = results(FuseMatMulTranspose if any(turned) else None, graph_of(given_text), inputs)
    np.testing.assert_allclose(found, values[0].astype(np.float64) @ values[1], rtol=1e-5, atol=1e-5)
