"""Joining and splitting in storage layouts: along an axis that is not divided, or block by block."""

from __future__ import annotations

from itertools import accumulate

import numpy as np

from ge.graph import Format, TensorDesc
from ge.ops.format_columns_selectors import SPREADING
from simulator.kernels.concat import joining
from simulator.kernels.registry import Array, Inputs, Kernel, KernelRequest, Outputs
from simulator.kernels.storage.layout import places, storage_kernel


@storage_kernel("ConcatD", "Concat", "ConcatV2", formats=SPREADING)
def build_concat(request: KernelRequest) -> Kernel | None:
    """Bind a concatenation along a constant axis."""
    slots = list(range(len(request.inputs)))
    if request.type == "ConcatD":
        axis = int(request.op.concat_dim)
    else:
        given = request.ints(slots.pop(0 if request.type == "Concat" else -1))
        if given is None:
            return None
        axis = given[0]
    found = storage_axis(request.outputs[0], axis, [request.inputs[slot] for slot in slots])
    if found is None:
        return None
    return joining("concat", request, slots, [request.shape(slot)[found] for slot in slots], found)


@storage_kernel("Pack", formats=(Format.FORMAT_FRACTAL_NZ,))
def build_pack(request: KernelRequest) -> Kernel | None:
    """Bind a concatenation along a new axis before rows and columns, which stays as it is."""
    y = request.outputs[0]
    axis = request.op.axis % len(y.origin_shape)
    slots = list(range(len(request.inputs)))
    if any(d is None or d.format is not y.format or d.shape[-1] != y.shape[-1] for d in request.inputs):
        return None
    return joining("pack", request, slots, [1] * len(slots), axis) if axis < len(y.origin_shape) - 2 else None


@storage_kernel("SplitD", "Split", "SplitV", "SplitVD", formats=SPREADING)
def build_split(request: KernelRequest) -> Kernel | None:
    """Bind a split along a constant axis: copies of slices."""
    slot = 1 if request.type == "Split" else 0
    if request.type in ("SplitD", "SplitVD"):
        axis = int(request.op.split_dim)
    else:
        given = request.ints(0 if request.type == "Split" else 2)
        if given is None:
            return None
        axis = given[0]
    x = request.inputs[slot]
    found = None if x is None else storage_axis(x, axis, list(request.outputs))
    if found is None:
        return None
    ends = list(accumulate(desc.shape[found] for desc in request.outputs))
    parts = [slice(start, end) for start, end in zip([0, *ends], ends, strict=False)]
    lead = (slice(None),) * found

    def run(inputs: Inputs, outputs: Outputs, scratch: Array) -> None:
        for out, part in zip(outputs, parts, strict=True):
            if out is not None:
                np.copyto(out, inputs[slot][(*lead, part)])

    return Kernel("split", run)


def storage_axis(whole: TensorDesc, axis: int, parts: list[TensorDesc | None]) -> int | None:
    """Return the storage axis along which ``parts`` lie in ``whole``; ``None`` when they do not lie so."""
    where = places(whole)
    if where is None or not where:
        return None
    split = where[axis % len(where)]
    length = 1 if len(split) == 1 else whole.shape[split[1]]
    for part in parts:
        if part is None or part.format is not whole.format or part.shape[-1] != whole.shape[-1]:
            return None
        if part.origin_format is not whole.origin_format and whole.format is not Format.FORMAT_FRACTAL_NZ:
            return None
        if part.origin_shape[axis % len(where)] % length:
            return None
    return split[0]
