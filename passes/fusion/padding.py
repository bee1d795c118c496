"""Padding operators as fusions see them."""

from __future__ import annotations

from dataclasses import dataclass

from ge.graph import Node, NodeOut
from ge.ops.layout import spatial_axes
from passes.fusion.constants import attributes, ints_of, number_of
from passes.fusion.pair_fusion import Slots

PADS: Slots = {"Pad": (2,), "PadV2": (3,), "PadV3": (2, 3), "PadD": (1,)}
"""Types of padding operators with the numbers of inputs that they may have connected."""


@dataclass(frozen=True)
class Padding:
    """What a node pads its input with: widths (before, after) per axis, and the number."""

    source: NodeOut
    widths: tuple[tuple[int, int], ...]
    fill: float

    @classmethod
    def of(cls, node: Node) -> Padding | str:
        """Return what ``node`` does, or why it cannot be said."""
        source = node.input(0)
        assert source is not None
        shape = source.desc.origin_shape
        op = attributes(node)
        if node.type == "PadV3" and op.mode.lower() != "constant":
            return f"{node.name} pads in the mode {op.mode}"
        numbers = [w for pair in op.paddings for w in pair] if node.type == "PadD" else ints_of(node.input(1))
        if numbers is None or shape.is_unknown_rank():
            return f"the widths of {node.name} are no constants"
        axes = op.get("_x_axes") if node.type == "PadV3" else None
        axes = range(len(shape)) if axes is None else [axis % len(shape) for axis in axes]
        if len(numbers) != 2 * len(axes):
            return f"the widths of {node.name} do not fit its input"
        count = len(axes)
        is_paired = node.type != "PadV3" or op.paddings_contiguous
        befores, afters = (numbers[::2], numbers[1::2]) if is_paired else (numbers[:count], numbers[count:])
        by_axis = dict(zip(axes, zip(befores, afters, strict=True), strict=True))
        fill = 0.0 if node.input(2) is None else number_of(node.input(2))
        if fill is None:
            return f"what {node.name} pads with is no constant"
        return cls(source, tuple(by_axis.get(axis, (0, 0)) for axis in range(len(shape))), fill)

    def in_space(self, data_format: str) -> list[int] | None:
        """Return the widths of depth, height and width, flat; ``None`` if others are padded, or something is cut."""
        axes = spatial_axes(data_format)
        if len(self.widths) != len(data_format) or any(min(pair) < 0 for pair in self.widths):
            return None
        if any(any(pair) for axis, pair in enumerate(self.widths) if axis not in axes):
            return None
        return [width for axis in axes for width in self.widths[axis]]
