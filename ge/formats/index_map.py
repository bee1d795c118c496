"""Where the elements of a tensor lie in a storage layout, as pairs of array views.

An axis divided into blocks is copied in runs: whole blocks together, a block begun or ended within for itself. Regions
are products of runs; both arrays show a region as views with equal axes, so nothing is gathered element by element.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from ge.formats.pattern import Part

Array = np.ndarray[Any, np.dtype[Any]]
Index = tuple[slice, ...]

_CHUNK_BYTES = 1 << 17
"""Storage copied at once: a chunk and its place in the other array stay in the second-level cache."""


@dataclass(frozen=True)
class Run:
    """``blocks`` times ``lanes`` positions of an axis from ``start`` on, which lie in lanes of storage blocks.

    ``block`` and ``lane`` are the first of each; ``stride`` is the distance of lanes.
    """

    start: int
    blocks: int
    lanes: int
    block: int
    lane: int
    stride: int = 1

    @property
    def origin(self) -> slice:
        """The positions on the origin's axis."""
        return slice(self.start, self.start + self.blocks * self.lanes)

    def storage(self, level: str) -> slice:
        """The positions among the blocks (level ``"1"``) or lanes (``"0"``) of the storage."""
        if level == "1":
            return slice(self.block, self.block + self.blocks)
        first = self.lane * self.stride
        return slice(first, first + (self.lanes - 1) * self.stride + 1, self.stride)


def runs(extent: int, length: int, start: int = 0, offset: int = 0) -> list[Run]:
    """Divide ``extent`` positions of an axis from ``start`` on; in blocks of ``length`` they lie from ``offset`` on."""
    found: list[Run] = []
    end = offset + extent
    place = offset
    while place < end:
        block, lane = divmod(place, length)
        whole = (end - place) // length if lane == 0 else 0
        count, lanes = (whole, length) if whole else (1, min(length - lane, end - place))
        found.append(Run(start + place - offset, count, lanes, block, lane))
        place += count * lanes
    return found


@dataclass(frozen=True)
class Region:
    """A box of elements: indices into both fine shapes, and how the origin's box is split and turned."""

    origin_index: Index
    split: tuple[int, ...]
    order: tuple[int, ...]
    storage_index: Index


@dataclass(frozen=True)
class IndexMap:
    """The places of all elements of a tensor in a storage layout.

    ``origin_shape`` and ``storage_shape`` are those of the arrays; the fine shapes have their dims divided further.
    Regions cover every element once. ``padding`` are boxes of the fine storage; ``None``: all that is in no region.
    """

    origin_shape: tuple[int, ...]
    storage_shape: tuple[int, ...]
    fine_origin: tuple[int, ...]
    fine_storage: tuple[int, ...]
    regions: tuple[Region, ...]
    padding: tuple[Index, ...] | None

    def store(self, origin: Array, storage: Array) -> None:
        """Write the elements of ``origin`` into ``storage`` and zeros into its padding."""
        fine = storage.reshape(self.fine_storage)
        if self.padding is None:
            fine[...] = 0
        else:
            self._clear(fine, self.padding)
        for origin_view, storage_view in self._views(origin, fine):
            _copy(origin_view, storage_view, storage_view)

    def load(self, storage: Array, origin: Array) -> None:
        """Write the elements that lie in ``storage`` into ``origin``; padding is not read."""
        for origin_view, storage_view in self._views(origin, storage.reshape(self.fine_storage)):
            _copy(storage_view, origin_view, storage_view)

    def padding_is_zero(self, storage: Array) -> bool:
        """Tell whether no padding lane holds anything else than zero."""
        fine = storage.reshape(self.fine_storage)
        elements = sum(np.count_nonzero(fine[region.storage_index]) for region in self.regions)
        return bool(np.count_nonzero(fine) == elements)

    def clear_padding(self, storage: Array) -> None:
        """Write zeros into all padding lanes. Needs memory for the elements where padding has no simple shape."""
        if self.padding is None:
            elements = np.empty(self.origin_shape, storage.dtype)
            self.load(storage, elements)
            self.store(elements, storage)
        else:
            self._clear(storage.reshape(self.fine_storage), self.padding)

    @staticmethod
    def _clear(fine_storage: Array, boxes: Iterable[Index]) -> None:
        for box in boxes:
            fine_storage[box] = 0

    def _views(self, origin: Array, fine_storage: Array) -> Iterator[tuple[Array, Array]]:
        fine_origin = origin.reshape(self.fine_origin)
        for region in self.regions:
            box = fine_origin[region.origin_index].reshape(region.split)
            yield box.transpose(region.order), fine_storage[region.storage_index]


def _copy(source: Array, target: Array, storage_view: Array) -> None:
    """Copy equal shapes in chunks that are near each other in the storage, whichever side is written."""
    shape = storage_view.shape
    axis, inner = len(shape), storage_view.itemsize
    while axis > 0 and inner * shape[axis - 1] <= _CHUNK_BYTES:
        axis -= 1
        inner *= shape[axis]
    if axis == 0:
        np.copyto(target, source)
        return
    step = max(_CHUNK_BYTES // inner, 1) if inner else shape[axis - 1]
    for lead in np.ndindex(*shape[: axis - 1]):
        for first in range(0, shape[axis - 1], step):
            part = (*lead, slice(first, first + step))
            np.copyto(target[part], source[part])


WHOLE = slice(None)


def region(
    axes: Sequence[tuple[str, int]],
    parts: Sequence[Part],
    divided: Mapping[str, Run],
    sliced: Mapping[str, tuple[slice, slice]],
) -> Region:
    """Build the region of ``axes`` (name and extent, in the order of the fine origin) within the storage's ``parts``.

    Axes in ``divided`` take the places of their run, those in ``sliced`` the given ones (origin, storage), others are
    whole. Whatever has no part in the storage has extent 1 here.
    """
    index: list[slice] = []
    split: list[int] = []
    names: list[Part] = []
    for axis, extent in axes:
        if axis in divided:
            run = divided[axis]
            index.append(run.origin)
            pieces = [(Part(axis, "1"), run.blocks), (Part(axis, "0"), run.lanes)]
        else:
            own = sliced[axis][0] if axis in sliced else WHOLE
            index.append(own)
            pieces = [(Part(axis), len(range(*own.indices(extent))))]
        kept = [piece for piece in pieces if piece[0] in parts]
        names += [name for name, _ in kept]
        split += [length for _, length in kept]
    places = tuple(
        divided[p.axis].storage(p.level) if p.level else sliced[p.axis][1] if p.axis in sliced else WHOLE for p in parts
    )
    return Region(tuple(index), tuple(split), tuple(names.index(part) for part in parts), places)


def product_of_runs(by_axis: Mapping[str, Sequence[Run]]) -> Iterator[dict[str, Run]]:
    """Iterate over all ways to choose one run per axis."""
    for chosen in product(*by_axis.values()):
        yield dict(zip(by_axis, chosen, strict=True))
