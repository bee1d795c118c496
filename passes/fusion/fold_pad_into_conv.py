"""Folding of padding into a convolution."""

from __future__ import annotations

from typing import ClassVar

from ge.graph import NodeOut
from ge.ops.window import padding_mode
from passes.fusion.constants import attributes
from passes.fusion.convolutions import FORWARD
from passes.fusion.padding import PADS, Padding
from passes.fusion.pair_fusion import Pair, PairFusion, Slots
from passes.fusion.sketch import Sketch


class FoldPadIntoConv(PairFusion):
    """Before: ``Conv2D(Pad(x, widths), w)``. After: ``Conv2D(x, w)`` with pads larger by the widths.

    The same for the other convolutions that are no transposed ones.

    Left alone:
    1. the mode is not constant, or the padding is not 0;
    2. widths are no constants, negative, or of batch or channels;
    3. the padding of the convolution follows from the size (SAME);
    4. ``offset_x`` is subtracted from what is padded here, but not from the padding of a convolution;
    5. others read what is padded.
    """

    name: ClassVar[str] = "PadConv2dFusionPass"
    producers: ClassVar[Slots] = PADS
    readers: ClassVar[Slots] = dict.fromkeys(FORWARD, (0,))
    reader_inputs: ClassVar[Slots] = FORWARD

    def obstacle(self, pair: Pair) -> str:
        """Look at all cases."""
        padding = Padding.of(pair.producer)
        if isinstance(padding, str):
            return padding
        op = attributes(pair.reader)
        if padding.fill != 0:
            return f"{pair.producer.name} pads with {padding.fill:g}, a convolution with 0"
        if padding.in_space(op.data_format) is None:
            return f"{pair.producer.name} pads other axes than the spatial ones, or cuts: {list(padding.widths)}"
        if _mode(pair) not in ("EXPLICIT", "VALID"):
            return f"the padding of {pair.reader.name} follows from the size"
        if op.offset_x:
            return f"{pair.reader.name} subtracts {op.offset_x} from what is padded"
        return ""

    def fused(self, pair: Pair, sketch: Sketch) -> NodeOut:
        """Draw the convolution with larger pads."""
        padding, op = Padding.of(pair.producer), attributes(pair.reader)
        assert isinstance(padding, Padding)
        widths = padding.in_space(op.data_format)
        assert widths is not None
        own = op.pads if _mode(pair) == "EXPLICIT" else [0] * len(widths)
        inputs = [None if s is None else sketch.input_of(s) for s in (padding.source, *pair.reader.inputs[1:])]
        pads = [a + b for a, b in zip(own, widths, strict=True)]
        explicit = {name: value for name, value in _EXPLICIT.items() if name in pair.reader.attrs}
        return sketch.add(pair.reader.type, *inputs, like=pair.reader, pads=pads, **explicit)


_EXPLICIT = {"auto_pad": "NOTSET", "_x_auto_pad": "NOTSET", "padding": "EXPLICIT", "pad_mode": "SPECIFIC"}
"""Attributes that choose the padding of a convolution, with the values that let pads count."""


def _mode(pair: Pair) -> str:
    op = attributes(pair.reader)
    return padding_mode(op, "padding" if op.get("pad_mode") is None else "pad_mode")
