"""Both views of a descriptor: the storage view follows from the origin view and the layout."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from ge.formats.cube_sizes import SERVER_CUBES, CubeSizes
from ge.formats.index_map import Array
from ge.formats.layout_error import LayoutError
from ge.formats.origin_axes import GROUPED_FORMATS, is_private
from ge.formats.reshape_type import expand_dims
from ge.formats.storage_shape import storage_shape
from ge.formats.transfer import Transfer
from ge.graph.tensor_desc import Shape, TensorDesc
from ge.graph.types import FORMAT_TEXT, DataType, Format


def is_origin_layout(format: Format, origin_format: Format) -> bool:
    """Tell whether a tensor of ``origin_format`` that is stored in ``format`` lies as its origin view says.

    ND beside named axes is no other layout.
    """
    return format == origin_format or (Format.FORMAT_ND in (format, origin_format) and not is_private(format))


def lies_in_origin(desc: TensorDesc) -> bool:
    """Tell whether a tensor lies in memory as its origin view says."""
    return is_origin_layout(desc.format, desc.origin_format)


def stored_shape(desc: TensorDesc, cubes: CubeSizes = SERVER_CUBES) -> Shape:
    """Return the storage shape that follows from the origin view of a descriptor, its format and its groups.

    Raises :class:`LayoutError` for what has no layout.
    """
    if lies_in_origin(desc):
        return desc.origin_shape
    has_names = min(desc.origin_shape, default=0) < 0  # equal open dims may have different ones
    find = _stored_shape.__wrapped__ if has_names else _stored_shape
    return find(desc.origin_shape, desc.origin_format, desc.format, desc.data_type, desc.sub_format, cubes)


@lru_cache(maxsize=1024)
def _stored_shape(
    origin_shape: Shape, origin_format: Format, format: Format, dtype: DataType, groups: int, cubes: CubeSizes
) -> Shape:
    """Return the storage shape; the tensors of a model have few different ones."""
    expanded = expand_dims(origin_shape, origin_format, format)
    return storage_shape(expanded, origin_format, format, dtype, groups, cubes=cubes)


def lay_out(desc: TensorDesc, format: Format, groups: int = 0, *, cubes: CubeSizes = SERVER_CUBES) -> TensorDesc:
    """Give a descriptor another layout, and return it. ``groups`` counts for layouts that depend on it only."""
    desc.format = format
    desc.sub_format = groups if groups > 1 and format in GROUPED_FORMATS else 0
    desc.shape = stored_shape(desc, cubes)
    return desc


def lay_out_as_origin(desc: TensorDesc) -> TensorDesc:
    """Let a tensor lie as its origin view says, and return the descriptor."""
    return lay_out(desc, desc.origin_format)


def storage_fault(desc: TensorDesc, cubes: CubeSizes = SERVER_CUBES) -> str:
    """Return why the two views of a descriptor contradict each other; empty when they do not."""
    if desc.sub_format and desc.format not in GROUPED_FORMATS:
        return f"{FORMAT_TEXT[desc.format]} does not depend on groups, {desc.sub_format} are given"
    try:
        expected = stored_shape(desc, cubes)
    except LayoutError as fault:
        return str(fault)
    if desc.shape == expected:
        return ""
    origin = f"{desc.origin_shape}@{FORMAT_TEXT[desc.origin_format]}"
    return f"{origin} in {FORMAT_TEXT[desc.format]} has the shape {expected}, not {desc.shape}"


def _transfer(desc: TensorDesc, shape: Shape, source: Format, target: Format, cubes: CubeSizes) -> Transfer:
    dims = expand_dims(shape, desc.origin_format, desc.format)
    return Transfer.of(dims, source, target, desc.data_type, desc.sub_format, cubes=cubes)


def origin_array(stored: Array, desc: TensorDesc, cubes: CubeSizes = SERVER_CUBES) -> Array:
    """Return a tensor in its origin view: ``stored`` itself where it lies so, else a new array.

    Raises :class:`LayoutError` when the descriptor is not that of the array.
    """
    if lies_in_origin(desc):
        return stored
    # between two formats with names the source's dims count
    shape = desc.origin_shape if is_private(desc.format) else desc.shape
    prepared = _transfer(desc, shape, desc.format, desc.origin_format, cubes)
    origin = np.empty(prepared.target_shape, stored.dtype)
    prepared.run(np.ascontiguousarray(stored), origin)
    return origin.reshape(desc.origin_shape)


def stored_array(origin: Array, desc: TensorDesc, cubes: CubeSizes = SERVER_CUBES) -> Array:
    """Return a tensor as it is stored: ``origin`` itself where that is its origin view, else a new array.

    Raises :class:`LayoutError` when the descriptor is not that of the array.
    """
    if lies_in_origin(desc):
        return origin
    prepared = _transfer(desc, desc.origin_shape, desc.origin_format, desc.format, cubes)
    stored = np.empty(prepared.target_shape, origin.dtype)
    prepared.run(np.ascontiguousarray(origin).reshape(prepared.source_shape), stored)
    return stored.reshape(desc.shape)
