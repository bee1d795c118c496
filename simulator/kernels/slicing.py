"""Operators whose meaning is a view of their input (parts, reversals): one copy stores it."""

from __future__ import annotations

from dataclasses import replace

from ge.ops.registry import lookup
from simulator.kernels.reference import reference_kernel
from simulator.kernels.registry import Kernel, KernelRequest, kernel


@kernel(
    "ReverseV2",
    "Slice",
    "Split",
    "SplitD",
    "SplitV",
    "SplitVD",
    "StridedSlice",
    "StridedSliceV2",
    "Unpack",
)
def build_view_copy(request: KernelRequest) -> Kernel | None:
    """Bind the reference semantics, which make a view and no copy."""
    definition = lookup(request.type)
    if definition is None or definition.compute is None:
        return None
    return replace(reference_kernel(request, definition), name="view-copy", is_reference=False)
