"""Padding with a constant: fill, then copy what is kept."""

from __future__ import annotations

import numpy as np

from simulator.kernels.registry import Array, Inputs, Kernel, KernelRequest, Outputs, kernel


@kernel("PadV3", "Pad", "PadD")
def build_pad(request: KernelRequest) -> Kernel | None:
    """Bind constant padding of known widths; negative widths cut. Other modes are left to the reference."""
    op, rank = request.op, len(request.shape())
    if request.type == "PadV3" and (op.mode.lower() != "constant" or op.get("_x_axes") is not None):
        return None
    numbers = [width for pair in op.paddings for width in pair] if request.type == "PadD" else request.ints(1)
    if numbers is None or len(numbers) != 2 * rank:
        return None
    is_paired = request.type != "PadV3" or op.paddings_contiguous
    befores, afters = (numbers[::2], numbers[1::2]) if is_paired else (numbers[:rank], numbers[rank:])
    dims = list(zip(request.shape(), befores, afters, strict=True))
    kept = tuple(slice(max(-before, 0), dim - max(-after, 0)) for dim, before, after in dims)
    places = tuple(slice(max(before, 0), dim + before + min(after, 0)) for dim, before, after in dims)
    has_value = request.type == "PadV3" and request.input(2) is not None

    def run(inputs: Inputs, outputs: Outputs, scratch: Array) -> None:
        y = outputs[0]
        y.fill(inputs[2].reshape(-1)[0] if has_value else np.zeros((), y.dtype))
        np.copyto(y[places], inputs[0][kept])

    return Kernel("pad", run)
