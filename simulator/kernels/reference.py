"""The default kernel: an operator's reference semantics, copied into the planned outputs. It may allocate."""

from __future__ import annotations

import numpy as np

from ge.errors import ReportedError
from ge.ops.registry import OpDef
from simulator.kernels.registry import Array, Inputs, Kernel, KernelRequest, Outputs

UNKNOWN_PRODUCT = 1 << 62
"""Reference semantics may multiply matrices of any size."""


def reference_kernel(request: KernelRequest, definition: OpDef) -> Kernel:
    """Adapt ``definition.evaluate``. Raises R1051 for operators without a numpy meaning."""
    if definition.compute is None:
        raise ReportedError(
            "R1051", node=request.node, optype=request.type, reason="the operator has neither a kernel nor a meaning"
        )
    attrs = dict(request.attrs)
    types = [desc.data_type for desc in request.outputs]

    def run(inputs: Inputs, outputs: Outputs, scratch: Array) -> None:
        results = definition.evaluate(attrs, list(inputs), types)
        for index, out in enumerate(outputs):
            if out is None:
                continue
            if index >= len(results) or results[index].shape != out.shape:
                found = list(results[index].shape) if index < len(results) else "nothing"
                fault = definition.misfit(
                    f"output {index} was compiled as {list(out.shape)}, the operator made {found}"
                )
                raise ReportedError("R1050", node=request.node, reason=str(fault), solution=fault.solution)
            np.copyto(out, results[index])

    return Kernel("reference", run, is_reference=True, is_in_place_safe=len(types) == 1, product_size=UNKNOWN_PRODUCT)
