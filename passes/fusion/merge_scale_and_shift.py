"""Fusion of numbers that are multiplied and added one after the other."""

from __future__ import annotations

from collections.abc import Collection
from math import prod
from typing import ClassVar

import ml_dtypes

from ge.graph import DataType, Node, NodeOut
from ge.graph.types import numpy_dtype
from passes.fusion.affine import BATCH_NORMS, STEP_TYPES, Affine, affine_slot, channels_of
from passes.fusion.chain_fusion import ChainFusion
from passes.fusion.constant_arithmetic import Constant
from passes.fusion.rewriting import Rewriting
from passes.fusion.signed_zero import teller_of_zeros
from passes.fusion.sketch import Sketch

_ROOM = 16
"""How many times an addend must fit into a type: then products overflow only where the result is about to as well."""


class MergeScaleAndShift(ChainFusion):
    """Before: ``Mul(Add(Mul(x, a), b), c)`` and longer runs. After: ``Add(Mul(x, a * c), b * c)``, or one of both.

    1. Links are Add, Sub, Mul, RealDiv with a constant of floating point numbers, their relatives, Neg, BiasAdd,
       BatchNorm.
    2. A run with a BatchNorm becomes a BatchNorm: one node, whose scale and offset do everything.
    3. What multiplies by 1 or adds 0 in the end goes.

    Left alone:
    4. runs that would not become shorter;
    5. constants that would grow by being combined, as a row and a column do: the run is cut there;
    6. results that are not finite, or 0 where no factor is, or have lost digits;
    7. addends so large that the product may overflow where the sum does not;
    8. adding 0.0 in the end makes 0.0 of -0.0, and a reader could tell;
    9. values that others read: the run ends there.
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
        dtype = (end if norm is None else _parameter(norm)).desc.data_type
        reason = _obstacle(affine, dtype) or ("" if norm is not None else _teller(affine, piece[-1]))
        if reason:
            rewriting.refuse(piece, reason)
            return
        sketch = affine.sketch
        sketch.finish(_drawn(affine, dtype) if norm is None else _normalising(affine, norm))
        rewriting.replace(piece, end, sketch)


def _obstacle(affine: Affine, dtype: DataType) -> str:
    """Return why the numbers cannot be used; empty if they can."""
    scale, shift = affine.scale, affine.shift
    if not all(part is None or part.is_storable(dtype) for part in (scale, shift)):
        return f"the combined numbers do not fit into {dtype.name}"
    if scale is not None and not scale.keeps_digits(dtype):
        return f"the combined factor would lose digits in {dtype.name}"
    if scale is not None and shift is not None and shift.magnitude() > _limit(dtype) / _ROOM:
        return f"the product may not fit into {dtype.name} where the sum with {shift.magnitude():g} does"
    return ""


def _limit(dtype: DataType) -> float:
    return float(ml_dtypes.finfo(numpy_dtype(dtype)).max)


def _teller(affine: Affine, end: Node) -> str:
    is_dropped = affine.shift is not None and affine.shift.is_everywhere(0)
    teller = teller_of_zeros(end) if is_dropped else ""
    return f"{teller} can tell 0.0 from -0.0, which {end.name} makes one" if teller else ""


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


def _parameter(norm: Node) -> NodeOut:
    scale = norm.input(1)
    assert scale is not None
    return scale


def _normalising(affine: Affine, norm: Node) -> NodeOut:
    """Draw a BatchNorm of mean 0 and variance 1."""
    sketch, parameter = affine.sketch, _parameter(norm)
    assert affine.scale is not None
    channels, dtype = _elements(parameter), parameter.desc.data_type
    zeros = Constant.filled(sketch, (channels,), 0.0)
    scale = (zeros + affine.scale.reshape((-1,))).stored(dtype)
    offset = (zeros if affine.shift is None else zeros + affine.shift.reshape((-1,))).stored(dtype)
    mean, variance = zeros.stored(dtype), (zeros + 1.0).stored(dtype)
    return sketch.add(norm.type, sketch.inputs[0], scale, offset, mean, variance, like=norm, epsilon=0.0)
