"""What fusions have in common that fold something into weight and bias of a matrix product."""

from __future__ import annotations

from typing import ClassVar

from ge.graph import NodeOut
from passes.fusion import affine
from passes.fusion.pair_fusion import Pair, PairFusion, Slots
from passes.fusion.products import PRODUCTS, Product, absorb, own_bias
from passes.fusion.sketch import Sketch


class MatMulFusion(PairFusion):
    """The product does what its only reader did.

    Left alone:
    1. what is folded, or what it is folded into, is no constant, or no floating point number;
    2. an operand is a vector, or the number of columns is not known;
    3. what is added has not one number per column, or a factor neither that nor one number;
    4. the weight would change, and others read it: it would have to be stored twice;
    5. the numbers would not fit into the type;
    6. the product has other readers (the matcher sees to that).
    """

    producers: ClassVar[Slots] = PRODUCTS

    def obstacle(self, pair: Pair) -> str:
        """Look at all cases."""
        product = Product(pair.producer)
        reason = affine.obstacle(pair.reader, pair.slot) or product.obstacle()
        if reason:
            return reason
        result = self._result(pair, pair.sketch())
        dtype = pair.producer.output_descs[0].data_type
        if not all(part is None or part.is_storable(dtype) for part in (result.scale, result.shift)):
            return f"the numbers do not fit into {dtype.name}"
        if result.shift is not None and not product.is_per_column(result.shift.shape):
            return f"what is added has not one number for each of {product.columns} columns"
        return "" if result.scale is None else product.obstacle_to_scaling(result.scale)

    def fused(self, pair: Pair, sketch: Sketch) -> NodeOut:
        """Draw the product with new constants."""
        return absorb(Product(pair.producer), self._result(pair, sketch))

    @staticmethod
    def _result(pair: Pair, sketch: Sketch) -> affine.Affine:
        return own_bias(Product(pair.producer), sketch).after(pair.reader, pair.slot)
