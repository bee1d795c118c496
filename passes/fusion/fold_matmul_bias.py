"""Folding of an addend into the bias of a matrix product."""

from __future__ import annotations

from typing import ClassVar

from passes.fusion.matmul_fusion import MatMulFusion
from passes.fusion.pair_fusion import Slots


class FoldMatMulBias(MatMulFusion):
    """Before: ``Add(MatMul(x1, x2), c)``. After: ``MatMul(x1, x2, c)``, or, with a bias b, ``MatMul(x1, x2, b + c)``.

    The same for all matrix products, for BiasAdd and the subtraction of a constant. BatchMatMul, which has no bias,
    becomes BatchMatMulV2; GEMM adds to its c.
    """

    name: ClassVar[str] = "MatMulBiasAddFusionPass"
    readers: ClassVar[Slots] = {"BiasAdd": (0,), "Add": (0, 1), "AddV2": (0, 1), "Sub": (0,)}
