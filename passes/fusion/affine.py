"""Operators that multiply a tensor by constants and add constants: what they do to it, composed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ge.graph import Node, NodeOut
from ge.ops.layout import channel_axis
from passes.fusion.constant_arithmetic import Constant
from passes.fusion.constants import attributes, is_fixed, is_float
from passes.fusion.sketch import Sketch

BATCH_NORMS = ("BatchNorm", "BNInfer")


@dataclass(frozen=True)
class Affine:
    """``x * scale + shift``; ``None`` where nothing is multiplied or added."""

    sketch: Sketch
    scale: Constant | None = None
    shift: Constant | None = None

    def times(self, factor: Constant) -> Affine:
        """Return what it is, times a constant."""
        scale = factor if self.scale is None else self.scale * factor
        return Affine(self.sketch, scale, None if self.shift is None else self.shift * factor)

    def over(self, divisor: Constant) -> Affine:
        """Return what it is, divided by a constant."""
        one = Constant.number(self.sketch, 1.0)
        scale = (one if self.scale is None else self.scale) / divisor
        return Affine(self.sketch, scale, None if self.shift is None else self.shift / divisor)

    def plus(self, addend: Constant) -> Affine:
        """Return what it is, plus a constant."""
        return Affine(self.sketch, self.scale, addend if self.shift is None else self.shift + addend)

    def minus(self, subtrahend: Constant) -> Affine:
        """Return what it is, minus a constant."""
        return self.plus(subtrahend * -1.0)

    def after(self, node: Node, slot: int) -> Affine:
        """Return what comes out of ``node`` if this goes into its input ``slot``."""
        return _STEPS[node.type](self, node, slot)


def obstacle(node: Node, slot: int) -> str:
    """Return why ``node`` does not do to its input ``slot`` what an :class:`Affine` says; empty if it does."""
    if not is_float(node.output()):
        return f"{node.name} does not compute floating point numbers"
    for other, source in enumerate(node.inputs):
        if other != slot and source is not None and not is_fixed(source):
            return f"{source.node.name} is no constant"
    if node.type in (*BATCH_NORMS, "BiasAdd") and node.output_descs[0].origin_shape.is_unknown_rank():
        return f"the rank of {node.name} is not known"
    if node.type == "BatchNorm":
        if attributes(node).is_training:
            return f"{node.name} is in training"
        if any(node.consumers(index) for index in range(1, len(node.output_descs))):
            return f"the statistics that {node.name} gives out are read"
    return ""


def _other(affine: Affine, node: Node, slot: int) -> Constant:
    """Return the constant operand of a binary operator."""
    source = node.input(1 - slot)
    assert source is not None
    return Constant.of(affine.sketch, source)


def _along_channels(affine: Affine, node: Node, source: NodeOut | None, axis: int) -> Constant:
    assert source is not None
    rank = len(node.output_descs[0].origin_shape)
    dims = tuple(-1 if i == axis else 1 for i in range(rank))
    return Constant.of(affine.sketch, source).reshape(dims)


def channels_of(node: Node) -> int:
    """Return the axis along which BatchNorm, BNInfer or BiasAdd has its constants."""
    op, rank = attributes(node), len(node.output_descs[0].origin_shape)
    return channel_axis(op.get("_x_data_format", "NCHW") if node.type == "BNInfer" else op.data_format, rank)


def _bias_add(affine: Affine, node: Node, slot: int) -> Affine:
    return affine.plus(_along_channels(affine, node, node.input(1), channels_of(node)))


def _batch_norm(affine: Affine, node: Node, slot: int) -> Affine:
    axis = channels_of(node)
    scale, offset, mean, variance = (_along_channels(affine, node, node.input(i), axis) for i in range(1, 5))
    factor = scale / (variance + attributes(node).epsilon).sqrt()
    return affine.times(factor).plus(offset - mean * factor)


def _difference(affine: Affine, node: Node, slot: int) -> Affine:
    other = _other(affine, node, slot)
    if slot == 0:
        return affine.minus(other)
    return affine.times(Constant.number(affine.sketch, -1.0)).plus(other)


_Step = Callable[[Affine, Node, int], Affine]


def _number(affine: Affine, node: Node) -> Constant:
    return Constant.number(affine.sketch, attributes(node).value)


_STEPS: dict[str, _Step] = {
    "Add": lambda affine, node, slot: affine.plus(_other(affine, node, slot)),
    "AddV2": lambda affine, node, slot: affine.plus(_other(affine, node, slot)),
    "Adds": lambda affine, node, slot: affine.plus(_number(affine, node)),
    "BiasAdd": _bias_add,
    "Sub": _difference,
    "Mul": lambda affine, node, slot: affine.times(_other(affine, node, slot)),
    "Muls": lambda affine, node, slot: affine.times(_number(affine, node)),
    "Neg": lambda affine, node, slot: affine.times(Constant.number(affine.sketch, -1.0)),
    "Div": lambda affine, node, slot: affine.over(_other(affine, node, slot)),
    "RealDiv": lambda affine, node, slot: affine.over(_other(affine, node, slot)),
    **dict.fromkeys(BATCH_NORMS, _batch_norm),
}
STEP_TYPES = frozenset(_STEPS)
"""Types of operators that may scale and shift by constants."""
_SLOTS = dict.fromkeys(_STEPS, (0,)) | dict.fromkeys(("Add", "AddV2", "Sub", "Mul"), (0, 1))


def affine_slot(node: Node) -> int | None:
    """Return the input that ``node`` scales and shifts by constants; ``None`` if it does nothing of that kind."""
    for slot in _SLOTS.get(node.type, ()):
        source = node.input(slot)
        if source is not None and not is_fixed(source) and not obstacle(node, slot):
            return slot
    return None
