"""What fusions have in common that fold something into filter and bias of a convolution."""

from __future__ import annotations

from typing import ClassVar

from ge.graph import Node, NodeOut
from passes.fusion.affine import Affine
from passes.fusion.affine_fusion import AffineFusion
from passes.fusion.convolutions import CONVOLUTIONS, Convolution, absorb, with_bias
from passes.fusion.pair_fusion import Pair, Slots
from passes.fusion.sketch import Sketch


class ConvFusion(AffineFusion[Convolution]):
    """The convolution does what its only reader did.

    Left alone:
    1. what is folded, or what it is folded into, is no constant, or no floating point number;
    2. it differs within a channel, or makes the result larger;
    3. the filter would change, and others read it: it would have to be stored twice;
    4. the numbers would not fit into the type of the filter;
    5. the result of the convolution has other readers (the matcher sees to that).
    """

    producers: ClassVar[Slots] = CONVOLUTIONS

    def target(self, producer: Node) -> Convolution:
        """Return the convolution."""
        return Convolution(producer)

    def own(self, target: Convolution, sketch: Sketch) -> Affine:
        """Return the bias as an addend."""
        return with_bias(target, sketch)

    def absorbed(self, target: Convolution, result: Affine) -> NodeOut:
        """Draw the convolution with new constants."""
        return absorb(target, result)

    def misfit(self, target: Convolution, result: Affine, pair: Pair) -> str:
        """Look for cases 2 and 4."""
        for part in (result.scale, result.shift):
            if part is not None and not target.is_per_channel(part.shape):
                return f"{pair.reader.name} has not one number for each of {target.outputs} channels"
            if part is not None and not part.is_storable(target.filter.desc.data_type):
                return f"the numbers do not fit into {target.filter.desc.data_type.name}"
        return ""
