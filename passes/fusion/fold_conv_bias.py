"""Folding of an addend into the bias of a convolution."""

from __future__ import annotations

from typing import ClassVar

from passes.fusion.conv_fusion import ConvFusion
from passes.fusion.pair_fusion import Slots


class FoldConvBias(ConvFusion):
    """Before: ``Add(Conv2D(x, w, b), c)``. After: ``Conv2D(x, w, b + c)``; without b, c is the bias.

    The same for the other convolutions, for BiasAdd, Adds and the subtraction of a constant.
    """

    name: ClassVar[str] = "ConvBiasaddFusionPass"
    readers: ClassVar[Slots] = {"BiasAdd": (0,), "Add": (0, 1), "AddV2": (0, 1), "Adds": (0,), "Sub": (0,)}
    reader_inputs: ClassVar[Slots] = {"Adds": (1,)}
