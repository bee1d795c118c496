"""The kernel contract and the choice of kernels.

A kernel is a function ``(inputs, outputs, scratch)`` that writes into the outputs it is given. Inputs are arrays in
slot order (``None``: absent), outputs are arrays in output order (``None``: nobody reads it and it has no memory),
``scratch`` is a flat uint8 array of at least the bytes that the kernel asked for, its contents undefined.

Builders make kernels, once, when a model is loaded:

    @kernel("Relu", "Relu6", dtypes=FLOATS)
    def build_relu(request: KernelRequest) -> Kernel | None: ...

The first builder registered for the operator type whose dtypes and formats fit and that does not answer ``None`` is
taken. If there is none, the operator's reference semantics run instead (:mod:`simulator.kernels.reference`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from ge.graph import DataType, Format, TensorDesc
from ge.ops.registry import Attributes

Array = np.ndarray[Any, np.dtype[Any]]
Inputs = Sequence[Any]
Outputs = Sequence[Any]
"""Arrays, or ``None`` where the node has none: what is there is settled when the kernel is built."""
Run = Callable[[Inputs, Outputs, Array], None]
"""``run(inputs, outputs, scratch)``."""

FLOATS = frozenset({DataType.DT_FLOAT, DataType.DT_FLOAT16, DataType.DT_BF16, DataType.DT_DOUBLE})
PLAIN_FORMATS = frozenset(
    {
        Format.FORMAT_ND,
        Format.FORMAT_NCHW,
        Format.FORMAT_NHWC,
        Format.FORMAT_NCDHW,
        Format.FORMAT_NDHWC,
        Format.FORMAT_NCL,
        Format.FORMAT_HWCN,
        Format.FORMAT_DHWCN,
        Format.FORMAT_NC,
        Format.FORMAT_CN,
        Format.FORMAT_CHWN,
        Format.FORMAT_DHWNC,
    }
)
"""Formats whose storage shape is the origin shape in some order of axes: nothing is padded or split."""

SCRATCH_ALIGNMENT = 64


@dataclass(frozen=True)
class Kernel:
    """A kernel bound to one node's shapes and attributes.

    ``scratch_bytes`` is what ``run`` needs of scratch. ``is_reference`` marks adapted reference semantics, which may
    allocate. ``is_in_place_safe`` promises right results when an output is exactly the memory of an input.
    ``product_size`` is the number of multiply-adds in one of its matrix products, which tells whether threads pay.
    """

    name: str
    run: Run
    scratch_bytes: int = 0
    is_reference: bool = False
    is_in_place_safe: bool = False
    product_size: int = 0
    bind: Callable[[Inputs, Outputs, Array], Sequence[Any]] | None = None
    """Kernels that are compiled return their jobs (:class:`simulator.codegen.jobs.Job`) for memory that stays."""

    def within(self, run: Run, **changes: Any) -> Kernel:
        """Return this kernel with ``run``, which calls this one's, in its place: never its jobs alone."""
        return replace(self, run=run, bind=None, **changes)


class KernelCompiler(Protocol):
    """What makes compiled kernels (:class:`simulator.codegen.compiler.Compiler`)."""

    def build(self, request: KernelRequest) -> Kernel | None:
        """Return a compiled kernel, or ``None`` to leave the node to the others."""


@dataclass(frozen=True)
class KernelRequest:
    """What is known of a node when its kernel is chosen.

    ``inputs`` holds ``None`` for absent slots; ``constants`` maps slots to values that never change (read-only).
    ``compiler``, if there is one, is asked before the kernels that are registered here.
    """

    node: str
    type: str
    op: Attributes
    attrs: Mapping[str, Any]
    inputs: tuple[TensorDesc | None, ...]
    outputs: tuple[TensorDesc, ...]
    constants: Mapping[int, Array]
    compiler: KernelCompiler | None = None

    def input(self, slot: int) -> TensorDesc | None:
        """Return the descriptor of an input; ``None`` when absent or beyond the last slot."""
        return self.inputs[slot] if slot < len(self.inputs) else None

    def shape(self, slot: int = 0) -> tuple[int, ...]:
        """Return the storage shape of a connected input."""
        desc = self.inputs[slot]
        assert desc is not None
        return tuple(desc.shape)

    def dtype(self, slot: int = 0) -> DataType:
        """Return the element type of a connected input."""
        desc = self.inputs[slot]
        assert desc is not None
        return desc.data_type

    def ints(self, slot: int) -> list[int] | None:
        """Return the constant integers behind an input, flattened; ``None`` when absent or not constant."""
        value = self.constants.get(slot)
        return None if value is None else [int(v) for v in value.ravel()]


Builder = Callable[[KernelRequest], Kernel | None]


@dataclass(frozen=True)
class _Entry:
    builder: Builder
    dtypes: Collection[DataType] | None
    formats: Collection[Format]
    takes_empty: bool

    def fits(self, request: KernelRequest) -> bool:
        if self.dtypes is not None and request.inputs and request.inputs[0] is not None:
            first_type = request.inputs[0].data_type
            if first_type not in self.dtypes:
                return False
        if not self.takes_empty and any(map(_is_empty, (*request.inputs[:1], *request.outputs))):
            return False
        descs = [*request.inputs, *request.outputs]
        return all(desc is None or desc.format in self.formats for desc in descs)


_ENTRIES: dict[str, list[_Entry]] = {}


def kernel(
    *types: str,
    dtypes: Collection[DataType] | None = None,
    formats: Collection[Format] = PLAIN_FORMATS,
    takes_empty: bool = False,
) -> Callable[[Builder], Builder]:
    """Register the decorated builder for operator types; ``dtypes`` are those of input 0 (``None``: any).

    ``takes_empty`` says that input 0, or some of several outputs, may have no elements.
    """

    def decorate(builder: Builder) -> Builder:
        for name in types:
            _ENTRIES.setdefault(name, []).append(_Entry(builder, dtypes, formats, takes_empty))
        return builder

    return decorate


def _is_empty(desc: TensorDesc | None) -> bool:
    return desc is not None and desc.shape.elements == 0


_NOTHING_TO_DO = Kernel("nothing", lambda inputs, outputs, scratch: None, is_in_place_safe=True)


def choose(request: KernelRequest) -> Kernel | None:
    """Return the kernel for a node, or ``None`` when only its reference semantics can run it."""
    if all(map(_is_empty, request.outputs)):
        return _NOTHING_TO_DO
    if request.compiler is not None:
        found = request.compiler.build(request)
        if found is not None:
            return found
    for entry in _ENTRIES.get(request.type, ()):
        if entry.fits(request):
            found = entry.builder(request)
            if found is not None:
                return found
    return None


def kernel_types() -> list[str]:
    """Return the operator types that have kernels of their own, sorted."""
    return sorted(_ENTRIES)


def kernel_formats(type: str) -> frozenset[Format]:
    """Return the formats that kernels for an operator type work in, each alone or with others."""
    return frozenset(found for entry in _ENTRIES.get(type, ()) for found in entry.formats)


class ScratchLayout:
    """Lays arrays out in scratch: ``take`` while building, call the result with the scratch while running."""

    def __init__(self) -> None:
        self.size = 0

    def take(self, shape: Sequence[int], dtype: Any) -> Callable[[Array], Array]:
        """Reserve an array (64-byte aligned) and return the function that finds it in a scratch block."""
        dims, npdtype = tuple(shape), np.dtype(dtype)
        start = self.size
        end = start + math.prod(dims) * npdtype.itemsize
        self.size = -(-end // SCRATCH_ALIGNMENT) * SCRATCH_ALIGNMENT

        def view(scratch: Array) -> Array:
            return scratch[start:end].view(npdtype).reshape(dims)

        return view
