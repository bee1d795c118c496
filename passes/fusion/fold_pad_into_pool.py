"""Folding of padding into pooling."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from ge.graph import NodeOut
from ge.graph.types import numpy_dtype
from ge.ops.layout import spatial_values
from ge.ops.pool import lowest
from ge.ops.registry import Attributes
from ge.ops.window import padding_mode
from passes.fusion.constants import attributes, is_float
from passes.fusion.padding import PADS, Padding
from passes.fusion.pair_fusion import Pair, PairFusion, Slots
from passes.fusion.sketch import Sketch

_MODE_NAMES = {"MaxPool": "padding", "MaxPoolV3": "padding_mode", "MaxPool3D": "padding"} | {
    "AvgPool": "padding",
    "AvgPoolV2": "padding_mode",
    "AvgPool3D": "padding",
}
"""Types of pooling with the attributes that choose the padding."""
_WITH_PADS = {"MaxPool": "MaxPoolV3", "AvgPool": "AvgPoolV2"}
"""Types without pads, and the types that have them."""
_NEVER_NEGATIVE = frozenset({"Exp", "HardSigmoid", "Relu", "Relu6", "Sigmoid", "SoftmaxV2", "Sqrt"})
_WRAPS_AROUND = frozenset({"Abs", "Square"})
"""These are never negative either, unless the numbers are whole: the magnitude of the lowest one is itself."""


class FoldPadIntoPool(PairFusion):
    """Before: ``MaxPoolV3(Pad(x, widths))``, ``AvgPoolV2(Pad(x, widths))``. After: the pool, with larger pads.

    1. A maximum pool pads with the lowest number: so does the Pad, or it pads with 0, x is never negative (it comes
       from Relu, for one), and no window has padding only.
    2. An average pool pads with 0. It then counts the padding (``exclusive`` is false): it did so before, or had no
       padding of its own, or has a divisor that counts nothing.
    3. MaxPool and AvgPool, which have no pads, become MaxPoolV3 and AvgPoolV2.

    Left alone:
    4. everything else of 1 and 2, other modes than constant;
    5. widths that are no constants, negative, or of batch or channels;
    6. padding that follows from the size (SAME), ``ceil_mode``, pooling of everything;
    7. others read what is padded.
    """

    name: ClassVar[str] = "PadPoolFusionPass"
    producers: ClassVar[Slots] = PADS
    readers: ClassVar[Slots] = dict.fromkeys(_MODE_NAMES, (0,))
    reader_inputs: ClassVar[Slots] = dict.fromkeys(_MODE_NAMES, (1,))

    def obstacle(self, pair: Pair) -> str:
        """Look at all cases."""
        padding = Padding.of(pair.producer)
        if isinstance(padding, str):
            return padding
        op, pool = attributes(pair.reader), pair.reader
        widths = padding.in_space(op.data_format)
        if widths is None:
            return f"{pair.producer.name} pads other axes than the spatial ones, or cuts: {list(padding.widths)}"
        if _mode(pair) not in ("EXPLICIT", "VALID"):
            return f"the padding of {pool.name} follows from the size"
        if getattr(op, "ceil_mode", False) or getattr(op, "global_pooling", False):
            return f"{pool.name} has ceil_mode, or pools everything"
        if pool.type.startswith("Avg"):
            return _average_obstacle(padding, pair, op)
        return _maximum_obstacle(padding, op, _pads(pair, widths))

    def fused(self, pair: Pair, sketch: Sketch) -> NodeOut:
        """Draw the pool with larger pads."""
        padding, op, pool = Padding.of(pair.producer), attributes(pair.reader), pair.reader
        assert isinstance(padding, Padding)
        widths = padding.in_space(op.data_format)
        assert widths is not None
        changes: dict[str, Any] = {"pads": _pads(pair, widths)}
        if pool.type in ("AvgPool", "AvgPoolV2"):
            changes["exclusive"] = False
        if pool.type == "AvgPool3D":
            changes["count_include_pad"] = True
        if "_x_auto_pad" in pool.attrs:
            changes["_x_auto_pad"] = "NOTSET"
        kind = _WITH_PADS.get(pool.type, pool.type)
        if kind != pool.type:
            changes["data_format"] = op.data_format  # what is meant by none is not the same for both types
        elif _MODE_NAMES[kind] in pool.attrs:
            changes[_MODE_NAMES[kind]] = "CALCULATED"
        made = sketch.add(kind, sketch.input_of(padding.source), like=pool, **changes)
        if kind != pool.type:
            made.node.attrs.pop("padding", None)
        return made


def _mode(pair: Pair) -> str:
    return padding_mode(attributes(pair.reader), _MODE_NAMES[pair.reader.type])


def _own_pads(pair: Pair) -> list[int]:
    return list(getattr(attributes(pair.reader), "pads", [])) if _mode(pair) == "EXPLICIT" else []


def _pads(pair: Pair, widths: list[int]) -> list[int]:
    own = _own_pads(pair) or [0] * len(widths)
    return [a + b for a, b in zip(own, widths, strict=True)]


def _average_obstacle(padding: Padding, pair: Pair, op: Attributes) -> str:
    if padding.fill != 0:
        return f"{pair.producer.name} pads with {padding.fill:g}, an average pool with 0"
    counts_padding = not getattr(op, "exclusive", True) or getattr(op, "count_include_pad", False)
    if counts_padding or not any(_own_pads(pair)) or getattr(op, "divisor_override", 0):
        return ""
    return f"{pair.reader.name} does not count its own padding, but what {pair.producer.name} pads"


def _maximum_obstacle(padding: Padding, op: Attributes, pads: list[int]) -> str:
    dtype = numpy_dtype(padding.source.desc.data_type)
    with np.errstate(over="ignore"):
        if padding.fill == lowest(dtype):
            return ""
    if padding.fill != 0:
        return f"what is padded is {padding.fill:g}, in a maximum pool the lowest number"
    if not _is_never_negative(padding.source):
        return f"{padding.source.node.name} may be negative: a maximum with the padding 0 is another one"
    return _empty_window(padding.source, op, pads)


def _is_never_negative(source: NodeOut) -> bool:
    kind = source.node.type
    return kind in _NEVER_NEGATIVE or (kind in _WRAPS_AROUND and is_float(source))


def _empty_window(source: NodeOut, op: Attributes, pads: list[int]) -> str:
    """Return which windows may have nothing but padding; empty if none can.

    One that reaches beyond the padding on both sides meets an element, unless its taps step over all of them.
    """
    dilations = spatial_values(op.get("_x_dilations", getattr(op, "dilation", [1])), op.data_format)
    kernel = spatial_values(op.ksize, op.data_format)
    sizes = spatial_values(source.desc.origin_shape, op.data_format)
    extents = [(taps - 1) * dilation + 1 for taps, dilation in zip(kernel, dilations, strict=True)]
    if any(pad >= extents[i // 2] for i, pad in enumerate(pads)):
        return f"a window of {extents} may have nothing but padding {pads}"
    rows = zip(sizes, kernel, dilations, strict=True)
    if any(size == 0 or (taps > 1 and dilation > max(size, 1)) for size, taps, dilation in rows):
        return f"taps that are {dilations} apart may step over all {sizes} elements"
    return ""
