"""Convolutions as fusions see them: which input is what, and how numbers per output channel lie over a filter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ge.graph import Node, NodeOut
from ge.ops.conv import filter_format
from passes.fusion.affine import Affine
from passes.fusion.constant_arithmetic import Constant
from passes.fusion.constants import attributes, is_fixed
from passes.fusion.sketch import Sketch
from passes.fusion.weights import scaled, weight_obstacle


@dataclass(frozen=True)
class _Slots:
    x: int
    filter: int
    bias: int


_FORWARD, _TRANSPOSED, _GRADIENT = _Slots(0, 1, 2), _Slots(1, 2, 3), _Slots(2, 1, 3)
_SLOTS = {
    "Conv2D": _FORWARD,
    "Conv2DV2": _FORWARD,
    "Conv3D": _FORWARD,
    "DepthwiseConv2D": _FORWARD,
    "Conv2DTranspose": _TRANSPOSED,
    "Conv3DTranspose": _TRANSPOSED,
    "Conv2DBackpropInput": _GRADIENT,
}
CONVOLUTIONS = {
    kind: (slots.bias,) if slots is _GRADIENT else (slots.bias, slots.bias + 1) for kind, slots in _SLOTS.items()
}
"""Types of convolutions with the numbers of inputs that they have connected, without and with a bias.

Conv2DBackpropInput has none: where it is to have one it becomes a Conv2DTranspose.
"""
FORWARD = {kind: CONVOLUTIONS[kind] for kind, slots in _SLOTS.items() if slots is _FORWARD}
"""Those that are no transposed ones."""


@dataclass(frozen=True)
class Convolution:
    """A convolution of a graph."""

    node: Node

    @property
    def slots(self) -> _Slots:
        """Which input is what."""
        return _SLOTS[self.node.type]

    @property
    def filter(self) -> NodeOut:
        """The filter."""
        return self._input(self.slots.filter)

    @property
    def bias(self) -> NodeOut | None:
        """The bias, if there is one."""
        return self.node.input(self.slots.bias)

    def _input(self, slot: int) -> NodeOut:
        source = self.node.input(slot)
        assert source is not None
        return source

    @property
    def rank(self) -> int:
        """Number of axes of what goes in and comes out."""
        return len(self.filter.desc.origin_shape)

    @property
    def channel_axis(self) -> int:
        """The axis of the result's channels."""
        return str(attributes(self.node).data_format).index("C")

    @property
    def outputs(self) -> int:
        """Number of output channels; -1 when it is not known."""
        return self.node.output_descs[0].origin_shape[self.channel_axis]

    def is_per_channel(self, dims: Sequence[int]) -> bool:
        """Tell whether a constant of shape ``dims``, broadcast to the result, has one number per output channel."""
        padded = [1] * (self.rank - len(dims)) + list(dims)
        return len(padded) == self.rank and all(
            dim == 1 or (axis == self.channel_axis and dim == self.outputs) for axis, dim in enumerate(padded)
        )

    def obstacle(self) -> str:
        """Return why no number can be added to its result by another bias; empty if it can."""
        if self.bias is not None and not is_fixed(self.bias):
            return f"{self.bias.node.name} is no constant"
        return "the number of output channels is not known" if self.outputs < 1 else ""

    def obstacle_to_scaling(self, factor: Constant) -> str:
        """Return why its result cannot be multiplied by another filter; empty if it can."""
        return weight_obstacle(self.node, self.filter, factor)

    def over_filter(self, factor: Constant) -> Constant:
        """Lay a vector with a number per output channel over the filter."""
        op = attributes(self.node)
        letters = filter_format(op, op.data_format)
        shape = self.filter.desc.origin_shape
        first, second = shape[letters.index("N")], shape[letters.index("C")]
        if self.node.type == "DepthwiseConv2D":
            matrix = factor.reshape((second, first)).transpose()
        elif self.slots is not _FORWARD:
            groups = op.groups
            ones = Constant.filled(factor.sketch, (1, first // groups, 1), 1.0)
            matrix = (factor.reshape((groups, 1, second)) * ones).reshape((first, second))
        else:
            matrix = factor.reshape((first, 1))
        axes = {letters.index("N"): matrix.shape[0], letters.index("C"): matrix.shape[1]}
        if letters.index("N") > letters.index("C"):
            matrix = matrix.transpose()
        return matrix.reshape(tuple(axes.get(axis, 1) for axis in range(self.rank)))


def absorb(convolution: Convolution, affine: Affine) -> NodeOut:
    """Draw the convolution with another filter and bias: what ``affine`` does to its result is done by these."""
    sketch, node, slots = affine.sketch, convolution.node, convolution.slots
    outputs = convolution.outputs
    inputs = [None if s is None else sketch.input_of(s) for s in node.inputs[: slots.bias]]
    if affine.scale is not None:
        factor = _per_channel(affine.scale, outputs)
        inputs[slots.filter] = scaled(sketch, convolution.filter, convolution.over_filter(factor))
    if affine.shift is not None:
        dtype = (node.output() if convolution.bias is None else convolution.bias).desc.data_type
        bias = _per_channel(affine.shift, outputs).stored(dtype)
        if slots is _GRADIENT:
            return sketch.add("Conv2DTranspose", *(inputs[slot] for slot in (0, 2, 1)), bias, like=node)
        inputs.append(bias)
    return sketch.add(node.type, *inputs, like=node)


def with_bias(convolution: Convolution, sketch: Sketch) -> Affine:
    """Return what the convolution's own bias does."""
    bias = convolution.bias
    return Affine(sketch, None, None if bias is None else _along(Constant.of(sketch, bias), convolution))


def _along(vector: Constant, convolution: Convolution) -> Constant:
    axis = convolution.channel_axis
    return vector.reshape(tuple(-1 if i == axis else 1 for i in range(convolution.rank)))


def _per_channel(part: Constant, outputs: int) -> Constant:
    """Return a vector with a number per channel; a single number is repeated."""
    vector = part.reshape((-1,))
    return vector if vector.shape == (outputs,) else vector * Constant.filled(part.sketch, (outputs,), 1.0)
