"""Repetition of tensors: numpy broadcasts while it copies."""

from __future__ import annotations

import numpy as np

from simulator.kernels.registry import Array, Inputs, Kernel, KernelRequest, Outputs, kernel


@kernel("Expand", "BroadcastTo")
def build_expand(request: KernelRequest) -> Kernel:
    """Bind a broadcast to the shape of the output."""

    def run(inputs: Inputs, outputs: Outputs, scratch: Array) -> None:
        np.copyto(outputs[0], inputs[0])

    return Kernel("expand", run)


@kernel("Tile", "TileD")
def build_tile(request: KernelRequest) -> Kernel | None:
    """Bind repetition along every axis."""
    shape, result = request.shape(), request.outputs[0].shape
    if len(shape) != len(result) or 0 in shape:
        return None
    pairs = [(total // dim, dim) for dim, total in zip(shape, result, strict=True)]
    source = [size for _, dim in pairs for size in (1, dim)]
    target = [size for pair in pairs for size in pair]

    def run(inputs: Inputs, outputs: Outputs, scratch: Array) -> None:
        np.copyto(outputs[0].reshape(target), inputs[0].reshape(source))

    return Kernel("tile", run)
