"""Fusion of a Transpose into the matrix product that reads it."""

from __future__ import annotations

from typing import ClassVar

from ge.graph import DataType, NodeOut
from passes.fusion.constants import attributes, ints_of
from passes.fusion.pair_fusion import Pair, PairFusion, Slots
from passes.fusion.products import PRODUCTS, Product
from passes.fusion.sketch import Sketch

_COMPLEX = (DataType.DT_COMPLEX64, DataType.DT_COMPLEX128)


class FuseMatMulTranspose(PairFusion):
    """Before: ``BatchMatMul(x1, Transpose(x2))``. After: ``BatchMatMul(x1, x2)`` with ``adj_x2`` turned over.

    The same for x1 and for all matrix products.

    Left alone:
    1. the Transpose does not exchange the last two axes alone;
    2. numbers are complex: ``adj`` would conjugate them;
    3. both operands are the one Transpose, or others read it.
    """

    name: ClassVar[str] = "MatMulTransposeFusionPass"
    producers: ClassVar[Slots] = {"Transpose": (2,), "TransposeD": (1,)}
    readers: ClassVar[Slots] = dict.fromkeys(PRODUCTS, (0, 1))
    reader_inputs: ClassVar[Slots] = PRODUCTS

    def obstacle(self, pair: Pair) -> str:
        """Look at the permutation and the type."""
        perm = _permutation(pair)
        if perm is None:
            return f"the permutation of {pair.producer.name} is no constant"
        rank = len(perm)
        swapped = [*range(rank - 2), rank - 1, rank - 2]
        if rank < 2 or [axis % rank for axis in perm] != swapped:
            return f"{pair.producer.name} does not exchange the last two axes alone: {perm}"
        if pair.producer.output_descs[0].data_type in _COMPLEX:
            return "complex numbers would be conjugated"
        return ""

    def fused(self, pair: Pair, sketch: Sketch) -> NodeOut:
        """Draw the product with the attribute turned over."""
        product = Product(pair.reader)
        source = pair.producer.input(0)
        assert source is not None
        inputs = [None if s is None else sketch.input_of(source if i == pair.slot else s) for i, s in _inputs(pair)]
        name, was_swapped = product.swap_names[pair.slot], product.swaps[pair.slot]
        return sketch.add(pair.reader.type, *inputs, like=pair.reader, **{name: not was_swapped})


def _inputs(pair: Pair) -> list[tuple[int, NodeOut | None]]:
    return list(enumerate(pair.reader.inputs))


def _permutation(pair: Pair) -> list[int] | None:
    if pair.producer.type == "TransposeD":
        return list(attributes(pair.producer).perm)
    return ints_of(pair.producer.input(1))
