"""Padding."""

from __future__ import annotations

from typing import Any

import numpy as np

from parsers.onnx.conv import paired
from parsers.onnx.mapping import Mapped, maps
from parsers.onnx.node_builder import NodeBuilder

MODES = ("constant", "reflect", "edge", "wrap")


@maps("Pad")
def pad(n: NodeBuilder) -> Mapped:
    """Before: Pad. After: PadV3, with all begins before all ends (``paddings_contiguous`` false) as ONNX has them.

    Before opset 11 the widths are an attribute and become pairs per axis; a reflection is MirrorPad. Since opset 18
    axes can be an input: constant ones are ``_x_axes``, with computed ones it is XPad.
    """
    if n.since_version >= 11:
        return _by_inputs(n)
    mode = n.choice("mode", *MODES)
    pairs = np.asarray(paired(n.attr("pads")), np.int64)
    if mode == "reflect":
        return n.add("MirrorPad", n.need(0), n.const("Paddings", pairs.reshape(-1, 2)), mode="REFLECT")
    value = n.scalar("Value", n.attr("value"), n.dtype(n.need(0))) if mode == "constant" else None
    return n.add("PadV3", n.need(0), n.const("Paddings", pairs), value, mode=mode, paddings_contiguous=True)


def _by_inputs(n: NodeBuilder) -> Mapped:
    mode = n.choice("mode", *MODES)
    extra: dict[str, Any] = {}
    axes = n.input(3)
    if axes is not None:
        known = n.ints(axes)
        if known is None:
            return n.add("XPad", *n.inputs, mode=mode)
        extra["_x_axes"] = known
    return n.add("PadV3", n.need(0), n.need(1), n.input(2), mode=mode, paddings_contiguous=False, **extra)
