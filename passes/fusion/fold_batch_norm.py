"""Folding of a BatchNorm into a convolution."""

from __future__ import annotations

from typing import ClassVar

from passes.fusion.affine import BATCH_NORMS
from passes.fusion.conv_fusion import ConvFusion
from passes.fusion.pair_fusion import Slots


class FoldBatchNorm(ConvFusion):
    """Before: ``BatchNorm(Conv2D(x, w, b), scale, offset, mean, variance)``.

    After: ``Conv2D(x, w * f, (b - mean) * f + offset)`` with ``f = scale / sqrt(variance + epsilon)``.

    The same for the other convolutions, transposed ones too, and for BNInfer. Besides what
    :class:`passes.fusion.conv_fusion.ConvFusion` leaves alone: a BatchNorm in training, and one whose statistics are
    read.
    """

    name: ClassVar[str] = "ConvBatchnormFusionPass"
    readers: ClassVar[Slots] = dict.fromkeys(BATCH_NORMS, (0,))
    reader_inputs: ClassVar[Slots] = dict.fromkeys(BATCH_NORMS, (5,))
