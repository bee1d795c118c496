"""Matrix products."""

from __future__ import annotations

from ge.graph import DataType, NodeOut
from parsers.onnx.mapping import Mapped, maps
from parsers.onnx.node_builder import NodeBuilder, Source


@maps("Gemm")
def gemm(n: NodeBuilder) -> Mapped:
    """Before: alpha * A' * B' + beta * C.

    After: MatMulV2 alone; with C: MatMulV2 -> Add; with alpha or beta other than 1: MatMulV2 -> Muls(alpha), Muls(beta)
    -> Add; with alpha and no C: MatMulV2 -> Muls(alpha).
    """
    alpha, beta, c = n.attr("alpha"), n.attr("beta"), n.input(2)
    is_whole = c is None and alpha == 1
    product = n.add(
        "MatMulV2",
        n.need(0),
        n.need(1),
        role="" if is_whole else "MatMulV2",
        transpose_x1=bool(n.attr("transA")),
        transpose_x2=bool(n.attr("transB")),
    )
    if is_whole:
        return product
    if c is None:
        return n.add("Muls", product, value=alpha)
    if alpha == 1 and beta == 1:
        return n.add("Add", product, c)
    scaled = n.add("Muls", product, role="Muls_Alpha", value=alpha)
    addend = n.add("Muls", c, role="Muls_Beta", value=beta)
    return n.add("Add", scaled, addend)


@maps("MatMul")
def matmul(n: NodeBuilder) -> Mapped:
    """Before: MatMul with numpy's meaning. After: BatchMatMulV2; vectors get an axis before and lose it behind."""
    return multiply(n, n.need(0), n.need(1), n.rank(0), n.rank(1))


def multiply(n: NodeBuilder, a: Source, b: Source, rank_a: int, rank_b: int) -> Mapped:
    """Add the product of two tensors of known rank."""
    if 0 in (rank_a, rank_b):
        raise n.fail("a scalar is no matrix")
    if rank_a == 1:
        a = n.add("Unsqueeze", a, role="Unsqueeze_A", axes=[0])
    if rank_b == 1:
        b = n.add("Unsqueeze", b, role="Unsqueeze_B", axes=[1])
    surplus = [-2] * (rank_a == 1) + [-1] * (rank_b == 1)
    role = "BatchMatMulV2" if surplus else ""
    product = n.add("BatchMatMulV2", a, b, role=role, adj_x1=False, adj_x2=False)
    return n.add("Squeeze", product, axis=surplus) if surplus else product


@maps("MatMulInteger")
def matmul_integer(n: NodeBuilder) -> Mapped:
    """Before: MatMulInteger(A, B, a_zero_point, b_zero_point). After: Cast(int32) -> Sub x 2 -> BatchMatMulV2."""
    a = centred(n, 0, 2, "A", per_row=True)
    b = centred(n, 1, 3, "B", per_row=False)
    return multiply(n, a, b, n.rank(0), n.rank(1))


def centred(n: NodeBuilder, data: int, zero_point: int, role: str, *, per_row: bool) -> NodeOut:
    """Return an integer input as int32 minus its zero point; a vector of zero points counts per row or per column."""
    wide = n.cast(n.need(data), DataType.DT_INT32, role=f"Cast_{role}")
    offset = n.input(zero_point)
    if offset is None:
        return wide
    wide_offset: Source = n.cast(offset, DataType.DT_INT32, role=f"Cast_{role}_Zero")
    if per_row and n.rank(zero_point) == 1 and n.shape(offset).elements != 1:
        wide_offset = n.add("Unsqueeze", wide_offset, role=f"Unsqueeze_{role}_Zero", axes=[1])
    return n.add("Sub", wide, wide_offset, role=f"Sub_{role}").output()
