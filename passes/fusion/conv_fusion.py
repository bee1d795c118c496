"""What fusions have in common that fold something into filter and bias of a convolution."""

from __future__ import annotations

from typing import ClassVar

from ge.graph import NodeOut
from passes.fusion import affine
from passes.fusion.convolutions import CONVOLUTIONS, Convolution, absorb, with_bias
from passes.fusion.pair_fusion import Pair, PairFusion, Slots
from passes.fusion.sketch import Sketch


class ConvFusion(PairFusion):
    """The convolution does what its only reader did.

    Left alone:
    1. what is folded, or what it is folded into, is no constant, or no floating point number;
    2. it differs within a channel, or makes the result larger;
    3. the filter would change, and others read it: it would have to be stored twice;
    4. the numbers would not fit into the type of the filter;
    5. the result of the convolution has other readers (the matcher sees to that).
    """

    producers: ClassVar[Slots] = CONVOLUTIONS

    def obstacle(self, pair: Pair) -> str:
        """Look at all cases."""
        convolution = Convolution(pair.producer)
        reason = affine.obstacle(pair.reader, pair.slot) or convolution.obstacle()
        if reason:
            return reason
        result = self._result(pair, pair.sketch())
        for part in (result.scale, result.shift):
            if part is not None and not convolution.is_per_channel(part.shape):
                return f"{pair.reader.name} has not one number for each of {convolution.outputs} channels"
            if part is not None and not part.is_storable(convolution.filter.desc.data_type):
                return f"the numbers do not fit into {convolution.filter.desc.data_type.name}"
        return "" if result.scale is None else convolution.obstacle_to_scaling(result.scale)

    def fused(self, pair: Pair, sketch: Sketch) -> NodeOut:
        """Draw the convolution with new constants."""
        return absorb(Convolution(pair.producer), self._result(pair, sketch))

    @staticmethod
    def _result(pair: Pair, sketch: Sketch) -> affine.Affine:
        return with_bias(Convolution(pair.producer), sketch).after(pair.reader, pair.slot)
