"""Normalisation: by known statistics (a scale and a shift), or by those of each row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from ge.graph import DataType, TensorDesc
from ge.graph.types import data_type_of, numpy_dtype
from ge.ops.layout import channel_axis
from simulator.kernels.blocks import compute_dtype, elementwise, row_sums
from simulator.kernels.halves import convert
from simulator.kernels.math import NUMBERS
from simulator.kernels.registry import FLOATS, Array, Inputs, Kernel, KernelRequest, Outputs, ScratchLayout, kernel

BLOCK_ELEMENTS = 32768
"""Most elements of a block of rows, unless one row alone has more."""
PLAIN = frozenset({"NCHW", "NCDHW", "NC", "NCL", "ND"})


# -- known statistics --------------------------------------------------------------------------------------------------
@kernel("BatchNorm", "BNInfer", dtypes=FLOATS)
def build_batch_norm(request: KernelRequest) -> Kernel | None:
    """Bind ``x * factor + shift`` per channel; training is left to the reference."""
    op, shape = request.op, request.shape()
    if request.type == "BatchNorm":
        if op.is_training:
            return None
        axis = channel_axis(op.data_format, len(shape))
    else:
        axis = channel_axis(op.get("_x_data_format", "NCHW"), len(shape))
    dtype = compute_dtype(request.dtype())
    if dtype == np.float64 and any(request.dtype(slot) is not DataType.DT_DOUBLE for slot in range(1, 5)):
        return None
    along = [dim if i == axis else 1 for i, dim in enumerate(shape)]
    line = TensorDesc(along, data_type=data_type_of(dtype))
    inner = replace(request, inputs=(request.inputs[0], line, line), outputs=request.outputs[:1], constants={})
    scale_and_shift = elementwise("batch-norm", inner, _scale_and_shift, (0, 1, 2))

    def factors(inputs: Sequence[Array]) -> tuple[Array, Array]:
        scale, offset, mean, variance = (x.astype(dtype, copy=False) for x in inputs)
        factor = scale / np.sqrt(variance + dtype.type(op.epsilon))
        return factor.reshape(along), (offset - mean * factor).reshape(along)

    known = None
    if all(slot in request.constants for slot in range(1, 5)):
        with np.errstate(all="ignore"):
            known = factors([request.constants[slot] for slot in range(1, 5)])

    def run(inputs: Inputs, outputs: Outputs, scratch: Array) -> None:
        factor, shift = factors(inputs[1:5]) if known is None else known
        if outputs[0] is not None:
            scale_and_shift.run((inputs[0], factor, shift), outputs[:1], scratch)
        for out, statistic in zip(outputs[1:5], (3, 4, 3, 4), strict=False):
            if out is not None:
                np.copyto(out, inputs[statistic], casting="unsafe")
        if len(outputs) > 5 and outputs[5] is not None:
            outputs[5].fill(0)

    is_alone = len(request.outputs) == 1
    return Kernel("batch-norm", run, scale_and_shift.scratch_bytes, is_in_place_safe=is_alone)


def _scale_and_shift(x: Array, factor: Array, shift: Array, out: Array) -> None:
    np.multiply(x, factor, out=out)
    np.add(out, shift, out=out)


@kernel("BiasAdd", dtypes=NUMBERS)
def build_bias_add(request: KernelRequest) -> Kernel | None:
    """Bind the addition of one number per channel."""
    shape = request.shape()
    if request.dtype(1) != request.dtype():
        return None
    axis = channel_axis(request.op.data_format, len(shape))
    along = [dim if i == axis else 1 for i, dim in enumerate(shape)]
    return elementwise("bias-add", request, np.add, (0, 1), shapes=[shape, along], is_one_step=True)


# -- statistics of rows ------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Rows:
    """How a tensor is standardised: ``rows`` of ``length`` elements each.

    ``parts`` and ``cycle`` say which of the ``cycle * parts`` parameters an element takes: row r consists of ``parts``
    equal pieces, piece p takes parameter ``(r % cycle) * parts + p``, spread over the piece's elements; with
    ``parts == length`` every element of the row has its own.
    """

    rows: int
    length: int
    parts: int
    cycle: int
    epsilon: float
    is_centred: bool = True


@kernel("LayerNorm", "LayerNormV3", dtypes=FLOATS)
def build_layer_norm(request: KernelRequest) -> Kernel | None:
    """Bind standardisation over the last axes, scaled and shifted per element."""
    op, shape = request.op, request.shape()
    begin = op.begin_norm_axis % len(shape) if shape else 0
    if not prod(shape) or not shape or op.begin_params_axis % len(shape) != begin:
        return None
    length = prod(shape[begin:])
    rows = Rows(prod(shape[:begin]), length, length, 1, op.epsilon)
    return _standardising("layer-norm", request, rows, (1, 2), request.type == "LayerNormV3")


@kernel("LayerNormV4", dtypes=FLOATS)
def build_layer_norm_v4(request: KernelRequest) -> Kernel | None:
    """Bind LayerNormV4, whose scale and shift may be absent."""
    shape, axes = request.shape(), prod(request.shape(1))
    if not prod(shape):
        return None
    begin = len(shape) - axes
    length = prod(shape[begin:])
    return _standardising(
        "layer-norm", request, Rows(prod(shape[:begin]), length, length, 1, request.op.epsilon), (2, 3), True
    )


@kernel("RmsNorm", dtypes=FLOATS)
def build_rms_norm(request: KernelRequest) -> Kernel | None:
    """Bind division by the root mean square of the last axes."""
    shape, length = request.shape(), prod(request.shape(1))
    if not prod(shape):
        return None
    rows = Rows(prod(shape) // length, length, length, 1, request.op.epsilon, is_centred=False)
    return _standardising("rms-norm", request, rows, (1, None), True)


@kernel("InstanceNorm", dtypes=FLOATS)
def build_instance_norm(request: KernelRequest) -> Kernel | None:
    """Bind standardisation of every channel of every sample."""
    shape = request.shape()
    if channel_axis(request.op.data_format, len(shape)) != 1 or not prod(shape):
        return None
    rows = Rows(shape[0] * shape[1], prod(shape[2:]), 1, shape[1], request.op.epsilon)
    return _standardising("instance-norm", request, rows, (1, 2), False)


@kernel("GroupNorm", dtypes=FLOATS)
def build_group_norm(request: KernelRequest) -> Kernel | None:
    """Bind standardisation of groups of channels of every sample."""
    shape, groups = request.shape(), request.op.num_groups
    if channel_axis(request.op.data_format, len(shape)) != 1 or not prod(shape):
        return None
    rows = Rows(shape[0] * groups, prod(shape[1:]) // groups, shape[1] // groups, groups, request.op.eps)
    return _standardising("group-norm", request, rows, (1, 2), False)


def _standardising(
    name: str, request: KernelRequest, how: Rows, slots: tuple[int | None, int | None], gives_reciprocal: bool
) -> Kernel:
    """Bind ``(x - mean) / sqrt(variance + epsilon)`` by rows, times and plus the parameters in ``slots``.

    Further outputs are mean (if centred) and variance, or the reciprocal standard deviation.
    """
    dtype = compute_dtype(request.dtype())
    is_narrow = dtype != numpy_dtype(request.dtype())
    block = min(max(BLOCK_ELEMENTS // how.length, 1), how.rows)
    layout = ScratchLayout()
    wide = layout.take([block, how.length][: None if is_narrow else 0], dtype)
    results = layout.take([block, how.length][: None if is_narrow else 0], dtype)
    means, squares = layout.take([block, 1], dtype), layout.take([block], dtype)
    epsilon, length = dtype.type(how.epsilon), dtype.type(how.length)
    sum_rows = row_sums(how.length, dtype)
    first_statistic = 1 if how.is_centred else 0

    def parameter(inputs: Inputs, slot: int | None) -> Array | None:
        found = None if slot is None or slot >= len(inputs) else inputs[slot]
        return None if found is None else found.astype(dtype, copy=False).reshape(how.cycle, how.parts)

    def run(inputs: Inputs, outputs: Outputs, scratch: Array) -> None:
        x, y = inputs[0].reshape(how.rows, how.length), outputs[0].reshape(how.rows, how.length)
        scale, shift = (parameter(inputs, slot) for slot in slots)
        for start in range(0, how.rows, block):
            rows = slice(start, min(start + block, how.rows))
            size = rows.stop - start
            source, target = x[rows], y[rows]
            if is_narrow:
                source, target = wide(scratch)[:size], results(scratch)[:size]
                convert(source, x[rows])
            mean, square = means(scratch)[:size], squares(scratch)[:size]
            centred = source
            if how.is_centred:
                sum_rows(source, mean)
                np.divide(mean, length, out=mean)
                np.subtract(source, mean, out=target)
                centred = target
                _store(outputs, 1, rows, mean)
            np.vecdot(centred, centred, out=square)
            np.divide(square, length, out=square)
            if not gives_reciprocal:
                _store(outputs, 2, rows, square)
            np.add(square, epsilon, out=square)
            np.sqrt(square, out=square)
            np.reciprocal(square, out=square)
            if gives_reciprocal:
                _store(outputs, 1 + first_statistic, rows, square)
            np.multiply(centred, square.reshape(-1, 1), out=target)
            _apply(target, scale, shift, start, how)
            if is_narrow:
                convert(y[rows], target)

    return Kernel(name, run, layout.size)


def _store(outputs: Outputs, index: int, rows: slice, values: Array) -> None:
    """Write a statistic of some rows, if anybody wants it."""
    if index < len(outputs) and outputs[index] is not None:
        np.copyto(outputs[index].reshape(-1)[rows], values.reshape(-1), casting="unsafe")


def _apply(block: Array, scale: Array | None, shift: Array | None, start: int, how: Rows) -> None:
    """Multiply rows from ``start`` on by their scale and add their shift, in place."""
    for ufunc, values in ((np.multiply, scale), (np.add, shift)):
        if values is None:
            continue
        if how.cycle == 1 and how.parts == how.length:
            ufunc(block, values, out=block)
            continue
        pieces = block.reshape(len(block), how.parts, -1)
        first, done = start % how.cycle, 0
        while done < len(block):
            count = min(how.cycle - first, len(block) - done)
            part = pieces[done : done + count]
            ufunc(part, values[first : first + count, :, np.newaxis], out=part)
            done, first = done + count, 0


# -- neighbouring channels ---------------------------------------------------------------------------------------------
@kernel("LRN", dtypes=FLOATS)
def build_lrn(request: KernelRequest) -> Kernel | None:
    """Bind ``x / (bias + alpha * sum of squares of the neighbouring channels) ** beta`` of channels-first data."""
    op, shape = request.op, request.shape()
    if op.get("_x_data_format", "NCHW") not in ("NCHW", "NCDHW") or len(shape) < 3 or not prod(shape):
        return None
    size = op.get("_x_size", 2 * op.depth_radius + 1)
    batch, channels, positions = shape[0], shape[1], prod(shape[2:])
    dtype = compute_dtype(request.dtype())
    is_narrow = dtype != numpy_dtype(request.dtype())
    shifts = [s for s in range(-((size - 1) // 2), size // 2 + 1) if abs(s) < channels]
    block = min(max(BLOCK_ELEMENTS // channels, 1), positions)
    layout = ScratchLayout()
    wide, squares, sums = (layout.take([channels * block], dtype) for _ in range(3))

    def run(inputs: Inputs, outputs: Outputs, scratch: Array) -> None:
        x, y = (a.reshape(batch, channels, positions) for a in (inputs[0], outputs[0]))
        for sample in range(batch):
            for start in range(0, positions, block):
                columns = slice(start, min(start + block, positions))
                dims = (channels, columns.stop - start)
                source, square, total = (take(scratch)[: prod(dims)].reshape(dims) for take in (wide, squares, sums))
                convert(source, x[sample, :, columns])
                np.square(source, out=square)
                np.copyto(total, square)
                for shift in shifts:
                    if shift:
                        reached = total[max(-shift, 0) : channels - max(shift, 0)]
                        np.add(reached, square[max(shift, 0) : channels - max(-shift, 0)], out=reached)
                np.multiply(total, op.alpha, out=total)
                np.add(total, op.bias, out=total)
                _to_power(total, op.beta, square)
                target = square if is_narrow else y[sample, :, columns]
                np.divide(source, total, out=target)
                if is_narrow:
                    convert(y[sample, :, columns], target)

    return Kernel("lrn", run, layout.size)


def _to_power(base: Array, exponent: float, spare: Array) -> None:
    """Raise positive numbers to a power in place; roots of roots where that is exact and several times faster."""
    if exponent == 0.5:
        np.sqrt(base, out=base)
    elif exponent == 0.75:
        np.sqrt(base, out=spare)
        np.sqrt(spare, out=base)
        np.multiply(base, spare, out=base)
    else:
        np.power(base, exponent, out=base)
