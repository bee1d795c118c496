"""Concatenations and splits along a constant axis, bound to compiled copies of runs."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from math import prod

from ge.formats import is_private
from ge.graph import TensorDesc
from ge.graph.types import DataType, has_numpy_dtype, numpy_dtype
from simulator.codegen.elementwise import ElementwiseCode, Operand
from simulator.codegen.elementwise_kernels import LONG_ROW, MIN_ROW, Loops
from simulator.codegen.engine import Engine
from simulator.codegen.jobs import Job, address_of, compiled_kernel
from simulator.kernels.registry import Array, Inputs, Kernel, KernelRequest, Outputs
from simulator.kernels.storage.join import storage_axis

JOINING, SPLITTING = ("ConcatD", "Concat", "ConcatV2"), ("SplitD", "Split", "SplitV", "SplitVD")


def build_concat(request: KernelRequest, engine: Engine) -> Kernel | None:
    """Bind a concatenation."""
    slots = list(range(len(request.inputs)))
    if request.type == "ConcatD":
        axis: int | None = int(request.op.concat_dim)
    else:
        given = request.ints(slots.pop(0 if request.type == "Concat" else -1))
        axis = None if given is None else given[0]
    whole, parts = request.outputs[0], [request.inputs[slot] for slot in slots]
    moves = None if axis is None else _moves(whole, parts, axis)
    if moves is None:
        return None
    address, size = engine.address(_copying(whole)), _size(whole)

    def bind(inputs: Inputs, outputs: Outputs, scratch: Array) -> Sequence[Job]:
        to = address_of(outputs[0])
        return [
            loops.job(address, [address_of(inputs[slot]), to + start * size], [size, size], ())
            for slot, (start, loops, _) in zip(slots, moves, strict=True)
        ]

    return compiled_kernel("concat", bind)


def build_split(request: KernelRequest, engine: Engine) -> Kernel | None:
    """Bind a split."""
    slot = 1 if request.type == "Split" else 0
    if request.type in ("SplitD", "SplitVD"):
        axis: int | None = int(request.op.split_dim)
    else:
        given = request.ints(0 if request.type == "Split" else 2)
        axis = None if given is None else given[0]
    whole = request.inputs[slot]
    moves = None if axis is None or whole is None else _moves(whole, list(request.outputs), axis)
    if moves is None or whole is None:
        return None
    address, size = engine.address(_copying(whole)), _size(whole)

    def bind(inputs: Inputs, outputs: Outputs, scratch: Array) -> Sequence[Job]:
        source = address_of(inputs[slot])
        return [
            loops.job(address, [source + start * size, address_of(out)], [size, size], ())
            for out, (start, _, loops) in zip(outputs, moves, strict=True)
            if out is not None
        ]

    return compiled_kernel("split", bind)


def _moves(whole: TensorDesc, parts: Sequence[TensorDesc | None], axis: int) -> list[tuple[int, Loops, Loops]] | None:
    """Return per part its first element in the whole, and the loops that copy it there and from there."""
    descs = [part for part in parts if part is not None]
    dtype = whole.data_type
    if len(descs) != len(parts) or any(part.data_type is not dtype for part in descs) or not _size(whole):
        return None
    where = _axis(whole, descs, axis)
    if where is None:
        return None
    shape = tuple(whole.shape)
    outer, inner = prod(shape[:where]), prod(shape[where + 1 :])
    counts = [part.shape[where] for part in descs]
    expected = [(*shape[:where], count, *shape[where + 1 :]) for count in counts]
    if [tuple(part.shape) for part in descs] != expected or sum(counts) != shape[where] or not prod(shape):
        return None
    if min(counts) < 1 or min(counts) * inner < MIN_ROW:
        return None
    starts = [0, *accumulate(counts)][:-1]
    line = shape[where] * inner
    return [(start * inner, *_loops(outer, count, inner, line)) for start, count in zip(starts, counts, strict=True)]


def _loops(outer: int, count: int, inner: int, line: int) -> tuple[Loops, Loops]:
    """Return the loops over ``outer`` runs of ``count * inner`` elements, out to lines of ``line`` and back."""
    if inner >= LONG_ROW:
        dims = (1, outer, count, 1, inner)
        part, whole = (0, count * inner, inner, 0, 1), (0, line, inner, 0, 1)
    else:
        dims = (1, 1, outer, 1, count * inner)
        part, whole = (0, 0, count * inner, 0, 1), (0, 0, line, 0, 1)
    total = prod(dims)
    return Loops(dims, (part, whole), total), Loops(dims, (whole, part), total)


def _axis(whole: TensorDesc, parts: Sequence[TensorDesc], axis: int) -> int | None:
    """Return the axis of the storage along which parts lie in a whole."""
    if any(is_private(desc.format) for desc in (whole, *parts)):
        return storage_axis(whole, axis, list(parts))
    return axis % len(whole.shape) if whole.shape else None


def _size(desc: TensorDesc) -> int:
    """Return the bytes of an element, 0 for elements that are not copied here."""
    known = desc.data_type is not DataType.DT_STRING and has_numpy_dtype(desc.data_type)
    size = numpy_dtype(desc.data_type).itemsize if known else 0
    return size if size in (2, 4) else 0


def _copying(desc: TensorDesc) -> ElementwiseCode:
    element = f"b{_size(desc)}"
    return ElementwiseCode("copy", (Operand(element, False),), element)
