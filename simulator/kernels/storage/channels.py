"""Operators with one number per channel (BatchNorm, BNInfer, BiasAdd, PRelu) on channels that lie in blocks.

The numbers are laid out as the channels are and repeated along a row, which makes rows long; lanes without a channel
get 0, so what is multiplied or shifted by them stays 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ge.graph import DataType, Format, TensorDesc
from ge.graph.types import data_type_of, numpy_dtype
from simulator.kernels.blocks import compute_dtype, elementwise
from simulator.kernels.math import NUMBERS
from simulator.kernels.reference import reference_kernel
from simulator.kernels.registry import FLOATS, Array, Inputs, Kernel, KernelRequest, Outputs, ScratchLayout, choose
from simulator.kernels.storage.layout import as_stored, channels, definition_of, is_image, renamed, storage_kernel

_FORMATS = (Format.FORMAT_NC1HWC0, Format.FORMAT_NDC1HWC0)


class _Lanes:
    """How vectors of channels are laid out for a feature map ``x``."""

    def __init__(self, x: TensorDesc) -> None:
        self.channels = channels(x)
        blocks = x.shape[2] if x.format is Format.FORMAT_NDC1HWC0 else x.shape[1]
        self.shape = (blocks, 1, x.shape[-2], x.shape[-1])

    def lay_out(self, vector: Array, target: Array) -> None:
        """Repeat ``vector`` along the rows of ``target`` [blocks, 1, width, lanes]."""
        lanes = target.shape[-1]
        whole = self.channels // lanes
        np.copyto(target[:whole, 0], vector[: whole * lanes].reshape(whole, 1, lanes), casting="unsafe")
        if whole < len(target):
            rest = vector[whole * lanes :]
            np.copyto(target[whole, 0, :, : len(rest)], rest, casting="unsafe")
            target[whole, 0, :, len(rest) :] = 0


def _is_elementwise(request: KernelRequest) -> bool:
    x, y = request.inputs[0], request.outputs[0]
    return is_image(x) and x is not None and y.format is x.format and y.shape == x.shape


# -- known statistics --------------------------------------------------------------------------------------------------
@storage_kernel("BatchNorm", "BNInfer", formats=_FORMATS, dtypes=FLOATS)
def build_batch_norm(request: KernelRequest) -> Kernel | None:
    """Bind ``x * factor + shift`` per channel, with statistics that are given."""
    x, op = request.inputs[0], request.op
    if not _is_elementwise(request) or x is None or (request.type == "BatchNorm" and op.is_training):
        return None
    dtype, lanes = compute_dtype(x.data_type), _Lanes(x)
    if dtype == np.float64 and any(request.dtype(slot) is not DataType.DT_DOUBLE for slot in range(1, 5)):
        return None
    line = TensorDesc(lanes.shape, data_type=data_type_of(dtype))
    stored = (as_stored(x), line, line)
    inner = replace(request, inputs=stored, outputs=(as_stored(request.outputs[0]),), constants={})
    scaling = elementwise("batch-norm-blocks", inner, _scale_and_shift, (0, 1, 2))
    layout = ScratchLayout()
    take_inner = layout.take([scaling.scratch_bytes], np.uint8)
    take = [layout.take(lanes.shape, dtype) for _ in range(2)]

    def lay_out(given: Sequence[Array], targets: Sequence[Array]) -> None:
        scale, offset, mean, variance = (v.astype(dtype, copy=False).reshape(-1) for v in given)
        factor = scale / np.sqrt(variance + dtype.type(op.epsilon))
        lanes.lay_out(factor, targets[0])
        lanes.lay_out(offset - mean * factor, targets[1])

    known: list[Array] | None = None
    if all(slot in request.constants for slot in range(1, 5)):
        known = [np.empty(lanes.shape, dtype) for _ in range(2)]
        with np.errstate(all="ignore"):
            lay_out([request.constants[slot] for slot in range(1, 5)], known)

    def run(inputs: Inputs, outputs: Outputs, scratch: Array) -> None:
        laid = known
        if laid is None:
            laid = [place(scratch) for place in take]
            lay_out(inputs[1:5], laid)
        if outputs[0] is not None:
            scaling.run((inputs[0], *laid), outputs[:1], take_inner(scratch))
        for out, statistic in zip(outputs[1:5], (3, 4, 3, 4), strict=False):
            if out is not None:
                np.copyto(out, inputs[statistic], casting="unsafe")
        if len(outputs) > 5 and outputs[5] is not None:
            outputs[5].fill(0)

    return Kernel("batch-norm-blocks", run, layout.size, is_in_place_safe=len(request.outputs) == 1)


def _scale_and_shift(x: Array, factor: Array, shift: Array, out: Array) -> None:
    np.multiply(x, factor, out=out)
    np.add(out, shift, out=out)


# -- one vector --------------------------------------------------------------------------------------------------------
@storage_kernel("BiasAdd", formats=_FORMATS, dtypes=NUMBERS)
def build_bias_add(request: KernelRequest) -> Kernel | None:
    """Bind the sum with one number per channel."""
    return _with_vector(request, "Add", {})


@storage_kernel("PRelu", formats=_FORMATS, dtypes=FLOATS)
def build_prelu(request: KernelRequest) -> Kernel | None:
    """Bind PRelu with one slope per channel, or one for all."""
    return _with_vector(request, "PRelu", {"_x_unidirectional": True})


def _with_vector(request: KernelRequest, type: str, extra: dict[str, object]) -> Kernel | None:
    """Bind the plain operator ``type`` to x and the vector in slot 1."""
    x, vector = request.inputs[0], request.input(1)
    if not _is_elementwise(request) or x is None or vector is None or vector.data_type is not x.data_type:
        return None
    if vector.shape.elements not in (1, channels(x)):
        return None
    lanes, dtype = _Lanes(x), numpy_dtype(x.data_type)
    layout = ScratchLayout()
    take = layout.take(lanes.shape, dtype)
    lay_out = _laid(lanes, vector.shape.elements)
    constant, known = request.constants.get(1), None
    if constant is not None:
        known = np.empty(lanes.shape, dtype)
        lay_out(constant, known)
    attrs: dict[str, Any] = {**request.attrs, **extra}
    stored = (as_stored(x), TensorDesc(lanes.shape, data_type=vector.data_type))
    constants = {} if known is None else {1: known}
    plain = renamed(request, type, attrs, stored, (as_stored(request.outputs[0]),), constants)
    found = choose(plain) or reference_kernel(plain, definition_of(type))
    take_inner = layout.take([found.scratch_bytes], np.uint8)

    def run(inputs: Inputs, outputs: Outputs, scratch: Array) -> None:
        laid = known
        if laid is None:
            laid = take(scratch)
            lay_out(inputs[1], laid)
        found.run((inputs[0], laid), outputs, take_inner(scratch))

    return found.within(run, name=f"{request.type.lower()}-blocks", scratch_bytes=layout.size)


def _laid(lanes: _Lanes, elements: int) -> Callable[[Array, Array], None]:
    def lay_out(vector: Array, target: Array) -> None:
        flat = vector.reshape(-1)
        lanes.lay_out(np.broadcast_to(flat, lanes.channels) if elements == 1 else flat, target)

    return lay_out
