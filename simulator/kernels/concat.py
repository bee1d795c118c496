"""Joining tensors along an axis: each is copied to its place."""

from __future__ import annotations

from itertools import accumulate
from math import prod

import numpy as np

from simulator.kernels.registry import Array, Inputs, Kernel, KernelRequest, Outputs, kernel


@kernel("ConcatD", "Concat", "ConcatV2", takes_empty=True)
def build_concat(request: KernelRequest) -> Kernel | None:
    """Bind a concatenation along a constant axis."""
    slots = list(range(len(request.inputs)))
    if request.type == "ConcatD":
        axis = request.op.concat_dim
    else:
        place = slots.pop(0 if request.type == "Concat" else -1)
        given = request.ints(place)
        if given is None:
            return None
        axis = given[0]
    if any(request.inputs[slot] is None for slot in slots):
        return None
    rank = len(request.outputs[0].shape)
    if rank == 0:
        return None
    axis %= rank
    return joining("concat", request, slots, [request.shape(slot)[axis] for slot in slots], axis)


@kernel("Pack")
def build_pack(request: KernelRequest) -> Kernel | None:
    """Bind a concatenation along a new axis."""
    if any(desc is None for desc in request.inputs):
        return None
    axis = request.op.axis % len(request.outputs[0].shape)
    return joining("pack", request, list(range(len(request.inputs))), [1] * len(request.inputs), axis)


def joining(name: str, request: KernelRequest, slots: list[int], parts: list[int], axis: int) -> Kernel:
    """Bind copies of the inputs in ``slots``, which take ``parts`` positions of ``axis`` of the output."""
    shape = request.outputs[0].shape
    outer, inner = prod(shape[:axis]), prod(shape[axis + 1 :])
    ends = [end * inner for end in accumulate(parts)]
    places = [slice(end - part * inner, end) for end, part in zip(ends, parts, strict=True)]

    def run(inputs: Inputs, outputs: Outputs, scratch: Array) -> None:
        y = outputs[0].reshape(outer, shape[axis] * inner)
        for slot, place in zip(slots, places, strict=True):
            np.copyto(y[:, place], inputs[slot].reshape(outer, place.stop - place.start))

    return Kernel(name, run)
