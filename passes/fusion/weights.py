"""Folding factors into weights."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from ge.graph import DataType, Node, NodeOut
from ge.graph.types import NARROW_FLOATS, numpy_dtype
from ge.mapped_file import note_read
from passes.fusion.constant_arithmetic import Constant, at_load, rounded
from passes.fusion.constants import is_fixed, value_of
from passes.fusion.sketch import Sketch


def weight_obstacle(owner: Node, weight: NodeOut, factor: Constant) -> str:
    """Return why ``factor`` cannot be folded into a weight that ``owner`` reads; empty if it can."""
    if not is_fixed(weight):
        return f"{weight.node.name} is no constant"
    others = {reader.node for reader in weight.node.consumers(weight.index)} - {owner}
    if others:
        return f"{min(node.name for node in others)} reads {weight.node.name} too: it would have to be stored twice"
    dtype, value = weight.desc.data_type, value_of(weight)
    if dtype in NARROW_FLOATS and value is not None and factor.value is not None:
        bound = float(np.abs(value.astype(np.float32)).max(initial=0)) * float(np.abs(factor.value).max(initial=0))
        limits = ml_dtypes.finfo(numpy_dtype(dtype))
        if bound > float(limits.max):
            return f"the products may not fit into {dtype.name}"
        if 0 < bound < float(limits.smallest_normal):
            return f"the products would lose digits in {dtype.name}"
    return ""


def scaled(sketch: Sketch, weight: NodeOut, factor: Constant) -> NodeOut:
    """Return a constant that feeds the sketch, times ``factor``, in its own type and format.

    What is computed at load is computed in the type of the weight: float64 copies of all weights would be in memory
    at once. (That is one rounding more, of the factor.)
    """
    dtype = weight.desc.data_type
    value = value_of(weight)
    if value is None or factor.value is None:
        return at_load(sketch, "Mul", sketch.input_of(weight), factor.stored(dtype))
    with np.errstate(all="ignore"):
        if dtype in (DataType.DT_FLOAT, DataType.DT_DOUBLE):
            # in blocks, without a float64 copy of the whole
            product = np.multiply(
                value, factor.value, dtype=np.float64, out=np.empty(value.shape, value.dtype), casting="same_kind"
            )
        else:
            product = rounded(value.astype(np.float64) * factor.value, dtype)
    note_read(value)
    return sketch.const(product, weight.desc.format)
