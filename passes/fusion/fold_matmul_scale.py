"""Folding of a factor into the weight of a matrix product."""

from __future__ import annotations

from typing import ClassVar

from passes.fusion.matmul_fusion import MatMulFusion
from passes.fusion.pair_fusion import Slots


class FoldMatMulScale(MatMulFusion):
    """Before: ``Muls(MatMul(x1, w, b))``. After: ``MatMul(x1, w * value, b * value)``; the weight may be x1 too.

    The same for all matrix products, for products with a constant and quotients by one.
    """

    name: ClassVar[str] = "MatMulScaleFusionPass"
    readers: ClassVar[Slots] = {"Mul": (0, 1), "RealDiv": (0,), "Div": (0,), "Muls": (0,)}
    reader_inputs: ClassVar[Slots] = {"Muls": (1,)}
