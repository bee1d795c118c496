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

    Before opset 11 the widths are an attribute and become pairs per axis; a reflection is MirrorPad.
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
            raise n.fail("its axes are computed; they must be constant")
        extra["_x_axes"] = known
    return n.add("PadV3", n.need(0), n.need(1), n.input(2), mode=mode, paddings_contiguous=False, **extra)


@maps("CenterCropPad")
def center_crop_pad(n: NodeBuilder) -> Mapped:
    """Before: CenterCropPad(x, shape). After: PadV3, where cutting is padding by a negative width."""
    x, target = n.need(0), n.ints(n.need(1))
    rank = n.rank()
    shape = n.shape(x)
    axes = [n.axis(a, rank, "axes") for a in n.attr("axes", list(range(rank)))]
    if target is None or any(shape[a] < 0 for a in axes):
        raise n.fail("its shape is computed; it must be constant")
    if len(target) != len(axes):
        raise n.fail(f"its shape has {len(target)} dimensions for {len(axes)} axes")
    begins, ends = [0] * rank, [0] * rank
    for axis, wanted in zip(axes, target, strict=True):
        begins[axis], ends[axis] = _centred(shape[axis], wanted)
    widths = n.int64([*begins, *ends], "Paddings")
    return n.add("PadV3", x, widths, mode="constant", paddings_contiguous=False)


def _centred(size: int, wanted: int) -> tuple[int, int]:
    """Return the widths before and behind; an odd rest goes behind when padding, and is cut off behind too."""
    rest = abs(wanted - size)
    half = rest // 2
    return (half, rest - half) if wanted >= size else (-half, -(rest - half))
