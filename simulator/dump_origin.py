"""From the bytes of a tensor in a storage layout to the tensor that the user's model means."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import combinations
from math import prod
from typing import Any

import numpy as np

from ge.formats import (
    AXES,
    FRACTAL_NZ_FORMATS,
    GROUPED_FORMATS,
    SERVER_CUBES,
    CubeSizes,
    LayoutError,
    PackedFormat,
    RnnSizes,
    Transfer,
    can_transfer,
    expand_dims,
    full_rank,
    is_private,
    storage_shape,
)
from ge.graph import DataType, Format, Shape, TensorDesc
from ge.graph.types import has_numpy_dtype, numpy_dtype

Array = np.ndarray[Any, np.dtype[Any]]

_INNERMOST_C0 = frozenset(
    {
        Format.FORMAT_NC1HWC0,
        Format.FORMAT_NDC1HWC0,
        Format.FORMAT_FRACTAL_Z,
        Format.FORMAT_FRACTAL_Z_C04,
        Format.FORMAT_FRACTAL_Z_3D,
        Format.FORMAT_FRACTAL_Z_3D_TRANSPOSE,
        Format.FORMAT_FRACTAL_NZ,
        Format.FORMAT_FRACTAL_ZZ,
        Format.FORMAT_C1HWNCoC0,
    }
)
"""Layouts whose last storage dim is C0, which the chip or the format integer has chosen."""
_WIDENED = {"int2": np.int8, "int4": np.int8, "uint2": np.uint8, "uint4": np.uint8}


def groups_of(desc: TensorDesc) -> int:
    """Return the number of groups that a filter's layout is made with: 1 unless it has some."""
    return desc.sub_format if desc.sub_format > 1 and desc.format in GROUPED_FORMATS else 1


def in_origin(array: Array, desc: TensorDesc, rnn: RnnSizes | None = None) -> Array:
    """Return what ``array``, the memory of a tensor, holds in its origin format and shape; padding is not read.

    ``rnn`` are the sizes by which weights of a recurrent operator are divided, which only the node that lays them out
    knows. The result may be a view. Raises :class:`LayoutError` where nobody can tell which element lies where.
    """
    source, target = desc.format, desc.origin_format
    if is_private(source):
        return _from_private(np.ascontiguousarray(array), desc, rnn)
    shape = desc.shape if not desc.shape.is_unknown_shape() else Shape(array.shape)
    is_permuted = source != target and source in AXES and target in AXES and len(shape) == len(AXES[source])
    if is_permuted and can_transfer(source, target):
        return _moved(np.ascontiguousarray(array), Transfer.of(shape, source, target, desc.data_type))
    if desc.origin_shape.is_unknown_shape():
        return array
    if prod(desc.origin_shape) != array.size:
        raise LayoutError(f"shape {Shape(array.shape)} does not hold the elements of {desc.origin_shape}")
    return array.reshape(desc.origin_shape)


def _from_private(array: Array, desc: TensorDesc, rnn: RnnSizes | None) -> Array:
    packed, cubes = _blocking(desc)
    groups = groups_of(desc)
    for shape in _full_shapes(desc):
        shown = storage_shape(shape, desc.origin_format, packed, desc.data_type, groups, cubes=cubes, rnn=rnn)
        if shown != desc.shape:
            continue
        transfer = Transfer.of(shape, packed, desc.origin_format, desc.data_type, groups, cubes=cubes, rnn=rnn)
        if prod(transfer.source_shape) == array.size:
            return _moved(array.reshape(transfer.source_shape), transfer).reshape(desc.origin_shape)
    layout = f"{desc.format.name}{desc.shape}"
    raise LayoutError(f"{layout} is not how {desc.origin_format.name}{desc.origin_shape} is laid out")


def _blocking(desc: TensorDesc) -> tuple[int, CubeSizes]:
    """Take block lengths from the shape that is stored: chips differ in them."""
    if desc.shape.is_unknown_shape() or not desc.shape:
        raise LayoutError(f"{desc.format.name}{desc.shape} does not tell its block lengths")
    c0 = desc.shape[-1] if desc.format in _INNERMOST_C0 else 0
    is_matrix = desc.format in FRACTAL_NZ_FORMATS and len(desc.shape) >= 4
    cubes = replace(SERVER_CUBES, m0=desc.shape[-2]) if is_matrix else SERVER_CUBES
    return int(PackedFormat(desc.format, c0=c0)), cubes


def _full_shapes(desc: TensorDesc) -> Iterator[Shape]:
    """Yield the shapes that an origin shape may have been laid out with: axes that it lacks have 1 there.

    Which axes its dims stand for is not kept beside a tensor, but the storage shape tells: two ways that give the same
    one differ in axes of length 1 only.
    """
    shape = desc.origin_shape
    yield shape
    rank = full_rank(desc.origin_format)
    if rank is None or len(shape) >= rank or desc.origin_format not in AXES:
        return
    yield expand_dims(shape, desc.origin_format, desc.format)
    for places in combinations(range(rank), len(shape)):
        full = [1] * rank
        for place, dim in zip(places, shape, strict=True):
            full[place] = dim
        yield Shape(full)


def _moved(array: Array, transfer: Transfer) -> Array:
    target = np.empty(transfer.target_shape, array.dtype)
    transfer.run(array, target)
    return target


def rnn_sizes(attrs: Mapping[str, object]) -> RnnSizes | None:
    """Return the sizes that a node (TransData) lays weights of a recurrent operator out with, if it has any."""
    hidden, inputs, state = (attrs.get(name) for name in ("hidden_size", "input_size", "state_size"))
    if not isinstance(hidden, int):
        return None
    return RnnSizes(hidden, inputs if isinstance(inputs, int) else 1, state if isinstance(state, int) else -1)


def as_npy(array: Array, origin_type: DataType) -> Array:
    """Return ``array`` as .npy files hold it: types that numpy does not know widened, texts as texts.

    Where the model had another type before it was compiled, and no value changes on the way, it is that type.
    """
    if array.dtype.hasobject:
        return array.astype("U")
    if array.dtype.kind == "V" or array.dtype.isbuiltin != 1:
        return array.astype(_WIDENED.get(array.dtype.name, np.float32))
    if has_numpy_dtype(origin_type):
        wanted = numpy_dtype(origin_type)
        if wanted != array.dtype and wanted.isbuiltin == 1 and not wanted.hasobject and _is_exact(array.dtype, wanted):
            return array.astype(wanted)
    return array


def _is_exact(source: np.dtype[Any], target: np.dtype[Any]) -> bool:
    """Numbers stay numbers of their kind: a bool does not become an int, nor an int a float."""
    return source.kind == target.kind and np.can_cast(source, target, "safe")
