"""Moving a bias in front of the Reshape that stands between it and a matrix product."""

from __future__ import annotations

from typing import ClassVar

from ge.graph import NodeOut
from passes.fusion import affine
from passes.fusion.pair_fusion import Pair, PairFusion, Slots
from passes.fusion.products import PRODUCTS
from passes.fusion.sketch import Sketch


class MoveBiasBeforeReshape(PairFusion):
    """Before: ``Add(Reshape(MatMulV2(x1, x2)), b)``. After: ``Reshape(Add(MatMulV2(x1, x2), b))``.

    The same for BiasAdd, and for the other matrix products. So the bias stands where it can be folded into the product;
    dense layers over more than one axis are written with such a Reshape.

    Left alone:
    1. what is added is no constant vector along the last axis;
    2. the Reshape changes the last axis, or its size is not known;
    3. what is reshaped comes from no matrix product, or has other readers.
    """

    name: ClassVar[str] = "ReshapeBiasFusionPass"
    producers: ClassVar[Slots] = {"Reshape": (2,)}
    readers: ClassVar[Slots] = {"BiasAdd": (0,), "Add": (0, 1), "AddV2": (0, 1)}

    def obstacle(self, pair: Pair) -> str:
        """Look at all cases."""
        reason = affine.obstacle(pair.reader, pair.slot)
        if reason:
            return reason
        before = pair.producer.input(0)
        assert before is not None
        if before.node.type not in PRODUCTS or len(before.node.consumers(before.index)) != 1:
            return f"{before.node.name} is no matrix product, or has other readers"
        found, wanted = before.desc.origin_shape, pair.producer.output_descs[0].origin_shape
        if found.is_unknown_rank() or not found or not wanted or found[-1] < 1 or found[-1] != wanted[-1]:
            return f"{pair.producer.name} changes the last axis of {found}"
        if pair.reader.type == "BiasAdd" and affine.channels_of(pair.reader) != len(wanted) - 1:
            return f"{pair.reader.name} adds along another axis than the last"
        [bias] = pair.other_inputs
        dims = bias.desc.origin_shape
        if dims.elements != found[-1] or not dims or dims[-1] != found[-1]:
            return f"{bias.node.name} has not one number for each of {found[-1]} columns"
        return ""

    def fused(self, pair: Pair, sketch: Sketch) -> NodeOut:
        """Draw the addition, then the Reshape."""
        before, shape = pair.producer.inputs[:2]
        [bias] = pair.other_inputs
        assert before is not None
        assert shape is not None
        columns = bias.desc.origin_shape[-1]
        vector = sketch.input_of(bias)
        if len(bias.desc.origin_shape) > 1:
            vector = sketch.add("Reshape", vector, sketch.ints([columns]))
        added = sketch.add("Add", sketch.input_of(before), vector)
        return sketch.add("Reshape", added, sketch.input_of(shape), like=pair.producer)
