"""Fusion of numbers that are multiplied and added one after the other."""

from __future__ import annotations

from collections.abc import Collection
from math import prod
from typing import ClassVar

from ge.graph import DataType, Node, NodeOut
from passes.fusion.affine import BATCH_NORMS, STEP_TYPES, Affine, affine_slot, channels_of
from passes.fusion.chain_fusion import ChainFusion
from passes.fusion.constant_arithmetic import Constant
from passes.fusion.rewriting import Rewriting
from passes.fusion.sketch import Sketch


class MergeScaleAndShift(ChainFusion):
    """Before: ``Mul(Add(Mul(x, a), b), c)`` and longer runs. After: ``Add(Mul(x, a * c), b * c)``, or one of both.

    1. Links are Add, Sub, Mul, RealDiv with a constant of floating point numbers, their relatives, Neg, BiasAdd,
       BatchNorm.
    2. A run with a BatchNorm becomes a BatchNorm: one node, whose scale and offset do everything.
    3. What multiplies by 1 or adds 0 in the end goes.

    Left alone:
    4. runs that would not become shorter;
    5. constants that would grow by being combined, as a row and a column do: the run is cut there;
    6. results that are not finite, or 0 where no factor is;
    7. values that others read: the run ends there.
    """

    name: ClassVar[str] = "ScaleShiftFusionPass"
    links: ClassVar[Collection[str]] = STEP_TYPES

    def slot(self, node: Node) -> int | None:
        """Return the input that is no constant."""
        return affine_slot(node)

    def fuse(self, chain: list[Node], source: NodeOut, rewriting: Rewriting) -> None:
        """Replace the longest pieces that can be combined."""
        while len(chain) > 1:
            sketch = Sketch([source])
            count, affine = _longest_piece(chain, Affine(sketch))
            piece, chain = chain[:count], chain[count:]
            self._merge(piece, affine, rewriting)
            if chain:
                slot = self.slot(chain[0])
                following = None if slot is None else chain[0].input(slot)
                assert following is not None
                source = following

    def _merge(self, piece: list[Node], affine: Affine, rewriting: Rewriting) -> None:
        end = piece[-1].output()
        norm = next((node for node in piece if node.type in BATCH_NORMS), None)
        if len(piece) == 1 or (norm is None and _count(affine) >= len(piece)):
            return
        dtype = end.desc.data_type
        if not all(part is None or part.is_storable(dtype) for part in (affine.scale, affine.shift)):
            rewriting.refuse(piece, f"the combined numbers do not fit into {dtype.name}")
            return
        sketch = affine.sketch
        sketch.finish(_drawn(affine, dtype) if norm is None else _normalising(affine, norm))
        rewriting.replace(piece, end, sketch)


def _longest_piece(chain: list[Node], affine: Affine) -> tuple[int, Affine]:
    """Return how many nodes from the first one on can be combined without growth, and what they do."""
    largest, norm = 1, None
    for count, node in enumerate(chain):
        slot = affine_slot(node)
        assert slot is not None
        largest = max([largest, *(_elements(s) for s in node.inputs if s is not None and s != node.input(slot))])
        norm = node if norm is None and node.type in BATCH_NORMS else norm
        found = affine.after(node, slot)
        parts = [part for part in (found.scale, found.shift) if part is not None]
        if count and (
            any(prod(part.shape) > largest for part in parts)
            or (norm is not None and not all(is_per_channel(part, norm) for part in parts))
        ):
            return count, affine
        affine = found
    return len(chain), affine


def _elements(source: NodeOut) -> int:
    return source.desc.origin_shape.elements


def is_per_channel(part: Constant, norm: Node) -> bool:
    """Tell whether a constant has one number for each channel of ``norm``, or one for all."""
    rank = len(norm.output_descs[0].origin_shape)
    dims = (1,) * (rank - len(part.shape)) + part.shape
    axis = channels_of(norm)
    return len(dims) == rank and all(dim == 1 for i, dim in enumerate(dims) if i != axis)


def _count(affine: Affine) -> int:
    """Return how many nodes a run without BatchNorm becomes."""
    scale, shift = affine.scale, affine.shift
    multiplies = scale is not None and not scale.is_everywhere(1)
    return multiplies + (shift is not None and not shift.is_everywhere(0))


def _drawn(affine: Affine, dtype: DataType) -> NodeOut:
    sketch = affine.sketch
    result = sketch.inputs[0]
    if affine.scale is not None and not affine.scale.is_everywhere(1):
        result = sketch.add("Mul", result, affine.scale.stored(dtype))
    if affine.shift is not None and not affine.shift.is_everywhere(0):
        result = sketch.add("Add", result, affine.shift.stored(dtype))
    return result


def _normalising(affine: Affine, norm: Node) -> NodeOut:
    """Draw a BatchNorm of mean 0 and variance 1."""
    sketch, parameter = affine.sketch, norm.input(1)
    assert parameter is not None
    assert affine.scale is not None
    channels, dtype = _elements(parameter), parameter.desc.data_type
    zeros = Constant.filled(sketch, (channels,), 0.0)
    scale = (zeros + affine.scale.reshape((-1,))).stored(dtype)
    offset = (zeros if affine.shift is None else zeros + affine.shift.reshape((-1,))).stored(dtype)
    mean, variance = zeros.stored(dtype), (zeros + 1.0).stored(dtype)
    return sketch.add(norm.type, sketch.inputs[0], scale, offset, mean, variance, like=norm, epsilon=0.0)
