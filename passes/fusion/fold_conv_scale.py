"""Folding of a factor into a convolution."""

from __future__ import annotations

from typing import ClassVar

from passes.fusion.conv_fusion import ConvFusion
from passes.fusion.pair_fusion import Slots


class FoldConvScale(ConvFusion):
    """Before: ``Mul(Conv2D(x, w, b), c)``. After: ``Conv2D(x, w * c, b * c)``.

    The same for the other convolutions, for quotients and for Muls: a BatchNorm written as arithmetic.
    """

    name: ClassVar[str] = "ConvScaleFusionPass"
    readers: ClassVar[Slots] = {"Mul": (0, 1), "RealDiv": (0,), "Div": (0,), "Muls": (0,)}
    reader_inputs: ClassVar[Slots] = {"Muls": (1,)}
