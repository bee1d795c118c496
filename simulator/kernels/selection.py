"""Choosing between two tensors, element by element."""

from __future__ import annotations

import numpy as np

from ge.graph.types import DataType
from simulator.kernels.blocks import BLOCK_ELEMENTS, Formula, walk
from simulator.kernels.registry import Array, Inputs, Kernel, KernelRequest, Outputs, kernel


@kernel("Select", "SelectV2")
def build_select(request: KernelRequest) -> Kernel | None:
    """Bind ``condition ? then : else`` of operands that broadcast by numpy's rule."""
    condition, first, second = request.inputs[:3]
    if condition is None or first is None or second is None:
        return None
    if condition.data_type is not DataType.DT_BOOL or first.data_type != second.data_type:
        return None
    if request.type == "Select" and len(condition.shape) != len(first.shape):
        return None

    def select(flags: Array, then: Array, other: Array, is_other: Array, out: Array) -> None:
        if np.may_share_memory(out, other):
            np.copyto(out, then, where=flags)
            return
        np.logical_not(flags, out=is_other[: flags.size].reshape(flags.shape))
        np.copyto(out, then)
        np.copyto(out, other, where=is_other[: flags.size].reshape(flags.shape))

    return _selection(request, select)


def _selection(request: KernelRequest, select: Formula) -> Kernel:
    path = walk(request.outputs[0].shape, [request.shape(slot) for slot in range(3)], BLOCK_ELEMENTS)

    def run(inputs: Inputs, outputs: Outputs, scratch: Array) -> None:
        operands = [x.reshape(d) for x, d in zip(inputs, path.operand_dims, strict=False)]
        out = outputs[0]
        out = out.reshape(path.dims)
        spare = scratch[: path.block].view(np.bool_)
        for index, own in path.indices:
            select(*(operand[i] for operand, i in zip(operands, own, strict=True)), spare, out[index])

    return Kernel("select", run, path.block, is_in_place_safe=True)
