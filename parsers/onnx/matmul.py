"""Matrix products."""

from __future__ import annotations

from parsers.onnx.mapping import Mapped, maps
from parsers.onnx.node_builder import NodeBuilder


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
    """Before: MatMul with numpy's meaning. After: BatchMatMulV2; vectors get an axis before and lose it behind.

    An operand of unknown rank is taken for a matrix, or several: a run that finds a vector stops.
    """
    a, b = n.need(0), n.need(1)
    rank_a, rank_b = (2 if n.shape(x).is_unknown_rank() else len(n.shape(x)) for x in (a, b))
    if 0 in (rank_a, rank_b):
        raise n.fail("a scalar is no matrix")
    if rank_a == 1:
        a = n.add("Unsqueeze", a, role="Unsqueeze_A", axes=[0]).output()
    if rank_b == 1:
        b = n.add("Unsqueeze", b, role="Unsqueeze_B", axes=[1]).output()
    surplus = [-2] * (rank_a == 1) + [-1] * (rank_b == 1)
    role = "BatchMatMulV2" if surplus else ""
    product = n.add("BatchMatMulV2", a, b, role=role, adj_x1=False, adj_x2=False)
    return n.add("Squeeze", product, axis=surplus) if surplus else product
