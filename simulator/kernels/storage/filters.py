"""Filters of convolutions, read from their storage layout into matrices for products."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from ge.formats import IndexMap, LayoutError
from ge.graph import TensorDesc
from ge.ops.conv import filter_format
from ge.ops.layout import channels_first
from simulator.kernels.registry import Array, KernelRequest, ScratchLayout
from simulator.kernels.storage.layout import groups_of, stored_map

Fill = Callable[[Array, list[Array]], None]
"""Writes a filter [groups, filters, channels, depth, height, width] into matrices."""


@dataclass(frozen=True)
class StoredFilter:
    """A filter in a storage layout: where its elements lie, and how its axes are called."""

    map: IndexMap
    format: str
    groups: int
    is_depthwise: bool
    dtype: np.dtype[Any]

    @classmethod
    def of(cls, request: KernelRequest, slot: int, dtype: np.dtype[Any]) -> StoredFilter | None:
        """Describe the filter of a convolution; ``None`` when its bytes are not what its descriptor says."""
        desc = request.input(slot)
        op, is_depthwise = request.op, request.type == "DepthwiseConv2D"
        groups = 1 if is_depthwise else op.groups
        if desc is None:
            return None
        found = _map_of(desc, max(groups, groups_of(desc)))
        return None if found is None else cls(found, filter_format(op, op.data_format), groups, is_depthwise, dtype)

    @property
    def shape(self) -> tuple[int, ...]:
        """[groups, filters per group, channels per group, depth, height, width]."""
        return tuple(self._view(np.empty(self.map.origin_shape, np.void)).shape)

    def _view(self, origin: Array) -> Array:
        whole = channels_first(origin, self.format)
        if self.is_depthwise:
            whole = whole.swapaxes(0, 1)[:, :, np.newaxis]
        else:
            whole = whole.reshape(self.groups, -1, *whole.shape[1:])
        return whole if whole.ndim == 6 else whole[:, :, :, np.newaxis]

    def reader(
        self, request: KernelRequest, slot: int, layout: ScratchLayout, shapes: Sequence[tuple[int, ...]], fill: Fill
    ) -> Callable[[Array, Array], list[Array]]:
        """Return how to get matrices of ``shapes``, in type ``dtype``, from the stored filter and scratch.

        A constant filter is read once, here; another one in every run, into scratch.
        """
        constant = request.constants.get(slot)
        if constant is not None:
            origin = np.empty(self.map.origin_shape, constant.dtype)
            self.map.load(constant, origin)
            known = [np.empty(shape, self.dtype) for shape in shapes]
            fill(self._view(origin), known)
            return lambda given, scratch: known
        take_origin = layout.take([prod(self.map.origin_shape) * 8], np.uint8)
        take = [layout.take(shape, self.dtype) for shape in shapes]

        def read(given: Array, scratch: Array) -> list[Array]:
            size = prod(self.map.origin_shape)
            origin = take_origin(scratch)[: size * given.itemsize].view(given.dtype).reshape(self.map.origin_shape)
            self.map.load(given, origin)
            found = [place(scratch) for place in take]
            fill(self._view(origin), found)
            return found

        return read


def _map_of(desc: TensorDesc, groups: int) -> IndexMap | None:
    try:
        found = stored_map(desc, groups)
    except LayoutError:
        return None
    return found if found.storage_shape == tuple(desc.shape) else None
