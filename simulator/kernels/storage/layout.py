"""How kernels see a tensor in a storage layout: where its origin axes went, and which lanes are padding.

Attributes of operators name axes of the origin; an axis that a layout divides into blocks is two axes of the storage.
Lanes of padding hold zeros in memory, and every kernel leaves them so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from ge.formats import AXES, FRACTAL_NZ_FORMATS, Blocking, IndexMap, LayoutError, expand_dims, index_map, is_private
from ge.graph import Format, TensorDesc
from ge.ops.registry import OpDef, lookup
from simulator.kernels.registry import PLAIN_FORMATS, Array, Inputs, Kernel, KernelRequest, Outputs, kernel

NC1HWC0_FORMATS = (Format.FORMAT_NC1HWC0, Format.FORMAT_NC1HWC0_C04)
IMAGE_FORMATS = (*NC1HWC0_FORMATS, Format.FORMAT_NDC1HWC0)
"""Layouts of feature maps: channels in blocks, C0 of them side by side at the end."""
MATRIX_FORMATS = FRACTAL_NZ_FORMATS
_PLACES: dict[Format, dict[str, tuple[int, ...]]] = {
    **{layout: {"N": (0,), "C": (1, 4), "H": (2,), "W": (3,)} for layout in NC1HWC0_FORMATS},
    Format.FORMAT_NDC1HWC0: {"N": (0,), "D": (1,), "C": (2, 5), "H": (3,), "W": (4,)},
}


def has_private(request: KernelRequest) -> bool:
    """Tell whether any tensor of the node is in a layout of the hardware."""
    return any(desc is not None and is_private(desc.format) for desc in (*request.inputs, *request.outputs))


def storage_kernel(
    *types: str, formats: Sequence[Format], dtypes: Any = None, takes_empty: bool = False
) -> Callable[[Any], Any]:
    """Register a builder for nodes of which at least one tensor is in one of the private ``formats``.

    The others may be plain: scalars, vectors, results whose axes lost their names.
    """

    def decorate(build: Callable[[KernelRequest], Kernel | None]) -> Callable[[KernelRequest], Kernel | None]:
        def build_for_storage(request: KernelRequest) -> Kernel | None:
            return build(request) if has_private(request) else None

        kernel(*types, dtypes=dtypes, formats=PLAIN_FORMATS | set(formats), takes_empty=takes_empty)(build_for_storage)
        return build

    return decorate


# -- one tensor --------------------------------------------------------------------------------------------------------
def groups_of(desc: TensorDesc) -> int:
    """Return the groups of a convolution's filter that its layout depends on; 1 for all others."""
    return max(desc.sub_format, 1)


def full_shape(desc: TensorDesc) -> tuple[int, ...]:
    """Return the origin dims with those that the layout needs besides (a bias of 64 channels is [1, 64, 1, 1])."""
    return tuple(expand_dims(desc.origin_shape, desc.origin_format, desc.format))


def stored_map(desc: TensorDesc, groups: int | None = None) -> IndexMap:
    """Return the places of a tensor's elements. Raises :class:`LayoutError` when its origin does not say them."""
    c0, m0 = desc.shape[-1], desc.shape[-2] if desc.format in MATRIX_FORMATS else 16
    blocking = Blocking(c0, m0, groups_of(desc) if groups is None else groups)
    return index_map(type(desc.shape)(full_shape(desc)), desc.origin_format, desc.format, blocking)


def places(desc: TensorDesc) -> tuple[tuple[int, ...], ...] | None:
    """Return the storage axes of every origin axis, blocks before lanes; ``None`` where the layout tells no axes."""
    rank = len(desc.origin_shape)
    if not is_private(desc.format):
        return tuple((axis,) for axis in range(rank))
    if desc.format in MATRIX_FORMATS:
        if rank < 2:
            return None
        return (*((axis,) for axis in range(rank - 2)), (rank - 1, rank), (rank - 2, rank + 1))
    letters = AXES.get(desc.origin_format, "")
    table = _PLACES.get(desc.format, {})
    if rank != len(letters) or not set(letters) <= set(table):
        return None
    return tuple(table[letter] for letter in letters)


def channels(desc: TensorDesc) -> int:
    """Return the number of channels that an image layout really holds."""
    return full_shape(desc)[AXES[desc.origin_format].index("C")]


def is_image(desc: TensorDesc | None) -> bool:
    """Tell whether a tensor lies in an image layout and its origin has the axes for it."""
    return desc is not None and desc.format in IMAGE_FORMATS and desc.origin_format in AXES


def planes_view(array: Array, desc: TensorDesc) -> Array:
    """Show an image layout as [batch, depth, blocks of channels, height, width, lanes] (depth 1 for images)."""
    return array if desc.format is Format.FORMAT_NDC1HWC0 else array[:, np.newaxis]


def has_padding(desc: TensorDesc) -> bool:
    """Tell whether the layout has lanes that no element takes."""
    return is_private(desc.format) and prod(desc.shape) != prod(desc.origin_shape)


def padding_clearer(desc: TensorDesc) -> Callable[[Array], None] | None:
    """Return what writes zeros into the padding of a tensor; ``None`` when it has none.

    Raises :class:`LayoutError` for a tensor that cannot lie so.
    """
    if not has_padding(desc):
        return None
    found = stored_map(desc)
    if found.storage_shape != tuple(desc.shape):
        raise LayoutError(f"storage shape {desc.shape} is not that of {desc.origin_shape} in its layout")
    return found.clear_padding


# -- blocks and rows ---------------------------------------------------------------------------------------------------
def copy_runs(target: Array, source: Array) -> None:
    """Copy between arrays of equal shape and type; runs of the last axis that lie together in both are copied whole."""
    item, length = source.itemsize, source.shape[-1]
    if length > 1 and source.strides[-1] == target.strides[-1] == item:
        run = np.dtype((np.void, item * length))
        source, target = source.view(run), target.view(run)
    np.copyto(target, source)


def to_rows(blocks: Array, rows: Array) -> None:
    """Copy [blocks, positions, lanes] to rows [positions, blocks x lanes]."""
    copy_runs(rows.reshape(len(rows), len(blocks), -1), blocks.swapaxes(0, 1))


def from_rows(rows: Array, blocks: Array) -> None:
    """Copy rows [positions, blocks x lanes] to [blocks, positions, lanes]."""
    copy_runs(blocks.swapaxes(0, 1), rows.reshape(len(rows), len(blocks), -1))


# -- whole nodes -------------------------------------------------------------------------------------------------------
def as_stored(desc: TensorDesc, shape: Sequence[int] | None = None) -> TensorDesc:
    """Describe the storage of a tensor as if its dims were all that is to be said about it."""
    return TensorDesc(desc.shape if shape is None else shape, Format.FORMAT_ND, desc.data_type)


def definition_of(type: str) -> OpDef:
    """Return the definition of a built-in operator."""
    definition = lookup(type)
    assert definition is not None
    return definition


def renamed(
    request: KernelRequest,
    type: str,
    attrs: dict[str, Any],
    inputs: tuple[TensorDesc | None, ...],
    outputs: tuple[TensorDesc, ...],
    constants: Mapping[int, Array] | None = None,
) -> KernelRequest:
    """Return the request for another node in the place of this one: what a part of it, or its storage, needs."""
    op, known = definition_of(type).attributes(attrs), {} if constants is None else constants
    return replace(request, type=type, op=op, attrs=attrs, inputs=inputs, outputs=outputs, constants=known)


def clearing(inner: Kernel, outputs: Sequence[TensorDesc]) -> Kernel:
    """Let a kernel write zeros into the padding of its outputs when it is done."""
    clearers = [padding_clearer(desc) for desc in outputs]
    if not any(clearers):
        return inner

    def run(inputs: Inputs, results: Outputs, scratch: Array) -> None:
        inner.run(inputs, results, scratch)
        for clear, result in zip(clearers, results, strict=False):
            if clear is not None and result is not None:
                clear(result)

    return inner.within(run)
