"""Casts that the compiler makes: how they are told from those of the model, and constants in place of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from ge.graph import DataType, Graph, Node, NodeOut, Tensor, TensorDesc
from ge.graph.types import numpy_dtype
from ge.mapped_file import note_read
from ge.ops.cast import CLIP, NARROW_LIMITS, convert, in_range
from ge.ops.registry import Array
from ge.passes.origins import OUTPUT_ATTRS
from ge.tensor_memory import LOAD_TIME_CONST

ORIGINAL_NAMES = "_datadump_original_op_names"
BLOCK_ELEMENTS = 1 << 20
"""Elements of a constant that are converted at a time."""


def is_made(cast: Node) -> bool:
    """Tell whether a Cast is the compiler's: it stands for nothing in the user's model."""
    return cast.attrs.get(ORIGINAL_NAMES) == []


def add_cast(graph: Graph, source: NodeOut, dtype: DataType, *, clips: bool = False) -> NodeOut:
    """Add a Cast of ``source`` to ``dtype`` behind it. One over a load-time constant is one itself, and may clip."""
    desc = _desc_of(source, dtype)
    attrs: dict[str, Any] = {"dst_type": int(dtype), ORIGINAL_NAMES: []}
    if source.node.attrs.get(LOAD_TIME_CONST):
        attrs[LOAD_TIME_CONST] = True
        if clips and dtype in NARROW_LIMITS:
            attrs[CLIP] = True
    name = graph.unique_name(f"{source.node.name}_{source.index}_Cast")
    return graph.add_node("Cast", name, [source], attrs, output_descs=[desc]).output()


def _desc_of(source: NodeOut, dtype: DataType) -> TensorDesc:
    """Describe ``source`` in another type. That is no tensor of the model."""
    desc = source.desc.copy()
    desc.data_type = dtype
    desc.attrs = {name: value for name, value in desc.attrs.items() if name not in OUTPUT_ATTRS}
    return desc


class ConvertedConstants:
    """Constants in other types. Nodes that hold the same array get one new array."""

    def __init__(self, *, clips: bool) -> None:
        self.clips = clips
        self._arrays: dict[tuple[int, DataType], tuple[Array, Array]] = {}
        self.clipped: dict[str, int] = {}
        """Elements that were out of range, by the name of the constant."""

    def add(self, graph: Graph, source: NodeOut, dtype: DataType) -> NodeOut:
        """Add a Const with the value of the Const ``source`` in ``dtype``."""
        old: Array = source.node.attrs["value"].array
        key = (id(old), dtype)
        if key not in self._arrays:
            self._arrays[key] = old, self._convert(source.node.name, old, dtype)
        tensor = Tensor.of(self._arrays[key][1])
        tensor.desc = _desc_of(source, dtype)
        made = graph.add_const(graph.unique_name(f"{source.node.name}_Cast"), tensor)
        self._arrays[key] = old, tensor.array
        made.node.attrs[ORIGINAL_NAMES] = []
        return made

    def _convert(self, name: str, old: Array, dtype: DataType) -> Array:
        limit = NARROW_LIMITS.get(dtype) if self.clips else None
        flat = old.reshape(-1) if old.flags.c_contiguous else old  # otherwise reshaping would copy
        step = BLOCK_ELEMENTS if old.flags.c_contiguous else max(len(old), 1) if old.ndim else 1
        made = np.empty_like(flat, dtype=numpy_dtype(dtype))
        count = 0
        with np.errstate(all="ignore"):
            for start in range(0, len(flat), step):
                part = flat[start : start + step]
                if limit is not None and not (old.size > 1 and part.min() >= -limit and part.max() <= limit):
                    count += int(np.count_nonzero((np.abs(part) > limit) & np.isfinite(part)))
                    part = in_range(part, dtype)
                made[start : start + step] = convert(part, dtype)
        if count:
            self.clipped[name] = count
        note_read(old)
        return made.reshape(old.shape)
