"""Elementwise operators in any layout: their plain kernels over the storage, padding cleared where it would not stay 0.

Operands lie in the same layout, so equal elements are at equal places, and axes that are repeated are repeated in the
storage. What a kernel makes of the zeros in the padding is tried out on a few zeros when it is built.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

import numpy as np

from ge.formats import is_private
from ge.graph import TensorDesc
from ge.graph.types import numpy_dtype
from ge.ops.format_columns import COLUMNS
from ge.ops.format_columns_selectors import SPREADING, by_agreement, by_broadcast
from ge.ops.registry import lookup
from simulator.kernels.reference import reference_kernel
from simulator.kernels.registry import Array, Inputs, Kernel, KernelRequest, Outputs, ScratchLayout, choose
from simulator.kernels.storage.layout import (
    IMAGE_FORMATS,
    as_stored,
    clearing,
    has_padding,
    places,
    storage_kernel,
)

TYPES = tuple(name for name, selector in COLUMNS.items() if selector in (by_agreement, by_broadcast))
"""Operators whose columns say that all their tensors lie alike."""


@storage_kernel(*TYPES, formats=SPREADING)
def build_elementwise(request: KernelRequest) -> Kernel | None:
    """Bind an operator that works on the storage as it lies; single elements may come in any format."""
    result = request.outputs[0]
    descs = [desc for desc in request.inputs if desc is not None]
    if not is_private(result.format) or len(request.outputs) != 1 or not all(fits(d, result) for d in descs):
        return None
    inner = plain_kernel(request, [_operand_shape(desc, result) for desc in request.inputs])
    if inner is None:
        return None
    return inner if keeps_zeros(request) else clearing(inner, request.outputs)


def plain_kernel(request: KernelRequest, shapes: Sequence[Sequence[int]]) -> Kernel | None:
    """Return the plain kernel over storage arrays, operands broadcast as ``shapes`` (absent operands: anything).

    An operand whose shape is not that of its array is repeated along an axis in scratch before, so that the innermost
    axes run on without a break.
    """
    stored = _over_storage(request, shapes)
    inner = choose(stored)
    if inner is None:
        definition = lookup(request.type)
        if definition is None:
            return None
        inner = reference_kernel(stored, definition)
    own = inner
    layout = ScratchLayout()
    layout.take([own.scratch_bytes], np.uint8)
    repeated = {
        slot: layout.take(shape, numpy_dtype(desc.data_type))
        for slot, (desc, shape) in enumerate(zip(request.inputs, shapes, strict=True))
        if desc is not None and prod(shape) != prod(desc.shape)
    }
    if not repeated:
        return inner

    def run(inputs: Inputs, outputs: Outputs, scratch: Array) -> None:
        operands = list(inputs)
        for slot, take in repeated.items():
            operands[slot] = take(scratch)
            np.copyto(operands[slot], inputs[slot])
        own.run(operands, outputs, scratch)

    return inner.within(run, scratch_bytes=layout.size)


def _over_storage(request: KernelRequest, shapes: Sequence[Sequence[int]]) -> KernelRequest:
    inputs = [
        None if desc is None else as_stored(desc, shape) for desc, shape in zip(request.inputs, shapes, strict=True)
    ]
    return replace(request, inputs=tuple(inputs), outputs=tuple(as_stored(desc) for desc in request.outputs))


def fits(desc: TensorDesc, result: TensorDesc) -> bool:
    """Tell whether an operand is one element, or lies as the result does along every axis divided into blocks."""
    if desc.shape.elements == 1 and not is_private(desc.format):
        return True
    if desc.format is not result.format or desc.shape[-1] != result.shape[-1]:
        return False
    if desc.origin_shape == result.origin_shape:
        return desc.shape == result.shape
    own, whole = places(desc), places(result)
    if own is None or whole is None or desc.origin_format is not result.origin_format:
        return False
    for axis, split in enumerate(reversed(whole), start=1):
        if len(split) > 1 and (axis > len(own) or desc.origin_shape[-axis] != result.origin_shape[-axis]):
            return False
    return True


def _operand_shape(desc: TensorDesc | None, result: TensorDesc) -> Sequence[int]:
    """Return how an operand is broadcast: one value per channel is repeated along rows, which makes rows long."""
    if desc is None or (desc.shape.elements == 1 and not is_private(desc.format)):
        return ()
    shape = desc.shape
    is_per_channel = desc.format in IMAGE_FORMATS and shape[-2] == 1 < shape[-1]
    return (*shape[:-2], result.shape[-2], shape[-1]) if is_per_channel else shape


def keeps_zeros(request: KernelRequest) -> bool:
    """Tell whether zeros in the padding of the operands stay zeros; ``True`` as well when there is no padding."""
    result = request.outputs[0]
    if not has_padding(result):
        return True
    lanes = TensorDesc(result.shape[-1:])
    arrays: list[Array | None] = []
    for slot, desc in enumerate(request.inputs):
        if desc is not None and not is_private(desc.format) and slot not in request.constants:
            return False
        is_scalar = desc is not None and not is_private(desc.format)
        dtype = None if desc is None else numpy_dtype(desc.data_type)
        arrays.append(request.constants[slot].reshape(()) if is_scalar else dtype and np.zeros(lanes.shape, dtype))
    trial = replace(request, outputs=(as_stored(result, lanes.shape),), constants={})
    found = plain_kernel(trial, [() if array is None else array.shape for array in arrays])
    if found is None:
        return False
    out = np.empty(lanes.shape, numpy_dtype(result.data_type))
    with np.errstate(all="ignore"):
        found.run(arrays, [out], np.empty(found.scratch_bytes, np.uint8))
    return not out.any()
