"""Lowerings of matrix products (``ge/ops/matmul.py``) and convolutions (``ge/ops/conv.py``)."""

from __future__ import annotations

from passes.lowering.loop_ir import LoopOp
from passes.lowering.refusal import Rule
from passes.lowering.registry import NodeLowering, lowering

_TYPES = ("MatMul", "MatMulV2", "BatchMatMul", "BatchMatMulV2")


@lowering(*_TYPES)
def product(node: NodeLowering) -> None:
    """A short sum of products where the second operand is one column; else a cube kernel, if that is on."""
    node.require_plain()
    is_batch = node.node.type.startswith("Batch")
    names = ("adj_x1", "adj_x2") if is_batch else ("transpose_x1", "transpose_x2")
    swaps = [bool(getattr(node.op, name)) for name in names]
    has_more = len([s for s in node.node.inputs if s is not None]) > 2
    x1, x2 = node.source("x1"), node.source("x2")
    if x1 is None or x2 is None or min(len(x1.desc.shape), len(x2.desc.shape)) < 2:
        raise node.refusal("an operand is no matrix")
    k = x1.desc.shape[-1]
    is_column = x2.desc.shape[-2 if swaps[1] else -1] == 1
    if is_column and k <= node.strategy.max_vectorized_k and not swaps[0] and not has_more:
        _sum_of_products(node, node.loops.load(x1), node.loops.load(x2), is_swapped=swaps[1])
        return
    _cube(node, swaps, is_batch=is_batch)


def _sum_of_products(node: NodeLowering, x1: LoopOp, x2: LoopOp, *, is_swapped: bool) -> None:
    """[.., m, k] times [.., k, 1] is the sum over k of x1 times the row that x2 is."""
    rank = len(x2.dims)
    row = x2 if is_swapped else node.loops.transpose(x2, [*range(rank - 2), rank - 1, rank - 2])
    dims = (*node.dims[:-1], x1.dims[-1])
    products = node.apply("Mul", node.loops.broadcast(x1, dims), node.loops.broadcast(row, dims))
    if dims[-1] == 1:
        node.store(products)
        return
    if "reduce" not in node.strategy.passes:
        raise node.refusal("pass reduce is off", Rule.PASS_OFF)
    kept = ["NORM"] * (len(dims) - 1) + ["REDUCE"]
    node.store_root(node.loops.store_reduction("SUM", node.node.output(), products, kept))


def _cube(node: NodeLowering, swaps: list[bool], *, is_batch: bool) -> None:
    if "matmul" not in node.strategy.passes:
        raise node.refusal("pass matmul is off", Rule.PASS_OFF)
    sources = [source for source in node.node.inputs if source is not None]
    if len(sources) > 3 or int(node.op.get("offset_x", 0)):
        raise node.refusal("a product with an offset")
    batches = {tuple(source.desc.shape[:-2]) for source in sources[:2]}
    if len(batches) != 1:
        raise node.refusal("the batches of the operands differ")
    values = [node.realize(source) for source in sources]
    functor = ("Batch" if is_batch else "") + ("MatMulBias" if len(values) == 3 else "MatMul")
    attrs = {"transpose_x1": swaps[0], "transpose_x2": swaps[1]}
    node.store_root(node.loops.store_cube("StoreMatMul", node.node.output(), values, functor, **attrs))


@lowering("Conv2D", needs="conv")
def convolution(node: NodeLowering) -> None:
    node.require_plain()
    sources = [source for source in node.node.inputs if source is not None]
    if len(sources) > 3 or len(node.dims) != 4:
        raise node.refusal("a convolution with an offset, or of another rank")
    values = [node.realize(source) for source in sources]
    attrs = {name: tuple(int(v) for v in getattr(node.op, name)) for name in ("strides", "pads", "dilations")}
    node.store_root(
        node.loops.store_cube(
            "StoreConv2D", node.node.output(), values, "Conv2DBias" if len(values) == 3 else "Conv2D",
            groups=int(node.op.groups), data_format=str(node.op.data_format), **attrs,
        )
    )  # fmt: skip
