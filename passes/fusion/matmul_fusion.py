"""What fusions have in common that fold something into weight and bias of a matrix product."""

from __future__ import annotations

from typing import ClassVar

from ge.graph import Node, NodeOut
from passes.fusion.affine import Affine
from passes.fusion.affine_fusion import AffineFusion
from passes.fusion.pair_fusion import Pair, Slots
from passes.fusion.products import PRODUCTS, Product, absorb, own_bias
from passes.fusion.sketch import Sketch


class MatMulFusion(AffineFusion[Product]):
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

    def target(self, producer: Node) -> Product:
        """Return the product."""
        return Product(producer)

    def own(self, target: Product, sketch: Sketch) -> Affine:
        """Return the bias as an addend."""
        return own_bias(target, sketch)

    def absorbed(self, target: Product, result: Affine) -> NodeOut:
        """Draw the product with new constants."""
        return absorb(target, result)

    def misfit(self, target: Product, result: Affine, pair: Pair) -> str:
        """Look for cases 3 and 5."""
        dtype = pair.producer.output_descs[0].data_type
        if not all(part is None or part.is_storable(dtype) for part in (result.scale, result.shift)):
            return f"the numbers do not fit into {dtype.name}"
        if result.shift is not None and not target.is_per_column(result.shift.shape):
            return f"what is added has not one number for each of {target.columns} columns"
        return ""
