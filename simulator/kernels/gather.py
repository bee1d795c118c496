"""Reading slices by index, straight into the output."""

from __future__ import annotations

from math import prod

import numpy as np

from ge.ops.gather import checked_indices
from simulator.kernels.registry import Array, Inputs, Kernel, KernelRequest, Outputs, kernel


@kernel("GatherV2", "Gather")
def build_gather(request: KernelRequest) -> Kernel | None:
    """Bind a gather along a constant axis without batch axes. Allocates in proportion to the indices only."""
    if request.op.batch_dims != 0:
        return None
    given = [0] if request.type == "Gather" else request.ints(2)
    shape = request.shape()
    if not given or not shape:
        return None
    axis = given[0] % len(shape)
    flat = (prod(shape[:axis]), shape[axis], prod(shape[axis + 1 :]))

    def run(inputs: Inputs, outputs: Outputs, scratch: Array) -> None:
        indices = checked_indices(inputs[1], flat[1]).reshape(-1)
        if indices.size:
            target = outputs[0].reshape(flat[0], indices.size, flat[2])
            # checked indices need no clipping, but only this mode writes without a buffer
            np.take(inputs[0].reshape(flat), indices, axis=1, out=target, mode="clip")

    return Kernel("gather", run)
