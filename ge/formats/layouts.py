"""The index maps of all layouts: from origin shape, formats and block lengths to the places of the elements.

A storage layout follows its pattern (``storage_shape.py``) unless a rule of its own stands here. In three cases the
bytes do not fit the shape that descriptors show; ``IndexMap.storage_shape`` is that of the bytes, and
:func:`is_shown_as_stored` tells whether both agree:

- C1HWNCoC0 keeps every filter, where the shown shape counts them by sixteens;
- FRACTAL_Z_3D_TRANSPOSE divides filters by C0 and channels by 16, where the shown shape does it the other way round;
- a vector in FRACTAL_NZ is a row, where the shown shape is that of a column.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod

from ge.formats.cube_sizes import N0, SERVER_CUBES, CubeSizes
from ge.formats.filter_groups import FilterGroups
from ge.formats.index_map import WHOLE, IndexMap, Region, Run, product_of_runs, region, runs
from ge.formats.layout_error import LayoutError
from ge.formats.layout_pairs import ORIGINS, can_transfer
from ge.formats.origin_axes import GROUPED_FORMATS
from ge.formats.packed_format import primary_format
from ge.formats.pattern import Part, Pattern, part_extent
from ge.formats.storage_shape import (
    BY_AXES,
    BY_MATRIX,
    C04_CHANNELS,
    MATRIX_Z,
    Blocking,
    RnnSizes,
    axis_extents,
    c04_extents,
    storage_shape,
)
from ge.graph.tensor_desc import Shape
from ge.graph.types import FORMAT_TEXT, DataType, Format

MAX_ELEMENTS = 1 << 40
"""Elements that an index map may cover."""

Axes = Sequence[tuple[str, int]]
"""Axes of the fine origin, in order: name and extent."""


@dataclass(frozen=True)
class _Case:
    """One layout to be mapped: the origin's shape, its axes by name, the target and its block lengths."""

    shape: Shape
    origin: Format
    target: Format
    axes: Axes
    blocking: Blocking

    @property
    def extents(self) -> dict[str, int]:
        return dict(self.axes)


@lru_cache(maxsize=1024)
def index_map(origin_shape: Shape, origin_format: Format, format: Format, blocking: Blocking) -> IndexMap:
    """Return the places of a tensor's elements in the layout ``format``; formats without groups and C0, dims known.

    Raises :class:`LayoutError` when there is no such layout, a dim is unknown, or the shape lacks axes.
    """
    pair = f"{origin_shape} from {FORMAT_TEXT[origin_format]} to {FORMAT_TEXT[format]}"
    if not can_transfer(origin_format, format) or origin_format in ORIGINS:
        raise LayoutError(f"{pair}: there is no such transfer")
    if origin_shape.is_unknown_shape():
        raise LayoutError(f"{pair}: elements have places only where all dims are known")
    mapped = _map(origin_shape, origin_format, format, blocking)
    if prod(mapped.storage_shape) > MAX_ELEMENTS:
        raise LayoutError(f"{pair}: {mapped.storage_shape} has more than {MAX_ELEMENTS} elements")
    return mapped


def is_shown_as_stored(
    origin_shape: Iterable[int],
    origin_format: int,
    format: int,
    dtype: DataType,
    groups: int = 1,
    *,
    cubes: CubeSizes = SERVER_CUBES,
    rnn: RnnSizes | None = None,
) -> bool:
    """Tell whether a tensor's bytes in ``format`` have the shape that its descriptor shows (see above).

    What is not so must not be chosen for a tensor of a graph. Arguments are those of ``storage_shape``.
    """
    shape = Shape(origin_shape)
    blocking = Blocking.of(format, dtype, groups, cubes=cubes, rnn=rnn)
    mapped = index_map(shape, primary_format(origin_format), primary_format(format), blocking)
    shown = storage_shape(shape, origin_format, format, dtype, groups, cubes=cubes, rnn=rnn)
    return shown == mapped.storage_shape


def _map(shape: Shape, origin: Format, target: Format, blocking: Blocking) -> IndexMap:
    if target in BY_MATRIX:
        return _matrix_map(shape, BY_MATRIX[target], blocking)
    if target == Format.FORMAT_FRACTAL_Z and len(shape) == 2:
        return _matrix_map(shape, MATRIX_Z, blocking)
    if target == Format.FORMAT_FRACTAL_ZN_RNN:
        return _rnn_weight_map(shape, blocking)
    if target == Format.FORMAT_ND_RNN_BIAS:
        return _rnn_bias_map(shape, blocking)
    extents = axis_extents(shape, origin, target)
    if extents is None:
        raise LayoutError(
            f"shape {shape} lacks axes of {FORMAT_TEXT[origin]} that {FORMAT_TEXT[target]} is made from: expand it"
        )
    case = _Case(shape, origin, target, list(extents.items()), blocking)
    if target in GROUPED_FORMATS and blocking.groups > 1 and extents["N"] >= blocking.groups:
        return _grouped_map(case)
    return _RULES.get(target, _blocked_map)(case)


def _blocked_map(case: _Case) -> IndexMap:
    """Divide axes as the pattern of the layout says."""
    pattern = BY_AXES[case.target]
    axes = [*case.axes, ("G", 1)] if "G" in pattern.axes else case.axes
    return _pattern_map(case.shape, axes, pattern, case.blocking)


def _pattern_map(shape: Shape, axes: Axes, pattern: Pattern, blocking: Blocking, batch: Axes = ()) -> IndexMap:
    """Divide ``axes`` as ``pattern`` says; those in ``batch`` lie before them in both arrays."""
    extents, lengths = dict(axes), pattern.lengths(blocking.c0, blocking.m0)
    parts = (*(Part(name) for name, _ in batch), *pattern.parts)
    all_axes = (*batch, *axes)
    by_axis = {axis: runs(extents[axis], length) for axis, length in lengths.items()}
    return IndexMap(
        tuple(shape),
        (*_lengths_of(batch), *pattern.shape(extents, lengths)),
        _lengths_of(all_axes),
        tuple(part_extent(part, dict(all_axes), lengths) for part in parts),
        tuple(region(all_axes, parts, divided, {}) for divided in product_of_runs(by_axis)),
        tuple(
            _free_lanes(parts, axis, extents[axis], length)
            for axis, length in lengths.items()
            if extents[axis] % length or not extents[axis]
        ),
    )


def _free_lanes(parts: Sequence[Part], axis: str, extent: int, length: int) -> tuple[slice, ...]:
    """Return the box behind the last position of an axis, within the block begun there."""
    block, lane = divmod(extent, length)
    places = {Part(axis, "1"): slice(block, None), Part(axis, "0"): slice(lane, None)}
    return tuple(places.get(part, WHOLE) for part in parts)


def _lengths_of(axes: Axes) -> tuple[int, ...]:
    return tuple(extent for _, extent in axes)


def _matrix_map(shape: Shape, pattern: Pattern, blocking: Blocking) -> IndexMap:
    """Lay out the last two dims; a vector is a row."""
    if not shape:
        raise LayoutError("a scalar has no rows and columns to be laid out in blocks")
    *batch, rows, columns = shape if len(shape) > 1 else (1, *shape)
    return _pattern_map(shape, [("I", rows), ("J", columns)], pattern, blocking, _batch_axes(batch))


def _batch_axes(extents: Iterable[int]) -> Axes:
    return tuple((f"B{place}", extent) for place, extent in enumerate(extents))


def _transposed_map(case: _Case) -> IndexMap:
    """FRACTAL_Z_3D_TRANSPOSE: FRACTAL_Z_3D with filters and channels in each other's place."""
    return _pattern_map(case.shape, case.axes, Pattern.read("(D N1 H W) C1 C0 N0", N="c0", C=N0), case.blocking)


def _small_channel_map(case: _Case) -> IndexMap:
    """FRACTAL_Z_C04: positions P (row by row) with 4 channels each, as one run that is divided by C0."""
    c0 = case.blocking.c0
    if c0 % C04_CHANNELS:
        raise LayoutError(f"FRACTAL_Z_C04 needs a C0 that {C04_CHANNELS} divides, not {c0}")
    extents = c04_extents(case.extents)
    positions = {"H": ("P", extents["H"] * extents["W"])}
    axes = [positions.get(axis, (axis, extent)) for axis, extent in case.axes if axis != "W"]
    pattern = Pattern.read("P1 N1 N0 (P0 C0)", P=c0 // C04_CHANNELS, N=N0, C=C04_CHANNELS)
    return _pattern_map(case.shape, axes, pattern, case.blocking)


def _grouped_map(case: _Case) -> IndexMap:
    """Filters of a grouped convolution: block diagonals, zero off the diagonal."""
    extents, groups, c0 = case.extents, case.blocking.groups, case.blocking.c0
    if extents["N"] % groups:
        raise LayoutError(f"{extents['N']} filters cannot be divided into {groups} groups of equal size")
    found = FilterGroups.of(extents["N"], extents["C"], groups, c0)
    pattern = BY_AXES[case.target]
    lengths = pattern.lengths(c0, case.blocking.m0)
    merged = extents | {"G": found.diagonals, "C": found.merged * found.channels, "N": found.merged * found.filters}
    axes: list[tuple[str, int]] = []
    for axis, extent in case.axes:
        axes += [("G", groups), ("N", found.filters)] if axis == "N" else [(axis, extent)]
    regions: list[Region] = []
    for place in range(found.merged):
        own = slice(place, None, found.merged)
        sliced = {"G": (own, slice(0, len(range(groups)[own])))}
        by_axis = {
            "C": runs(found.channels, c0, offset=place * found.channels),
            "N": runs(found.filters, N0, offset=place * found.filters),
        }
        regions += [region(axes, pattern.parts, divided, sliced) for divided in product_of_runs(by_axis)]
    return IndexMap(
        tuple(case.shape),
        tuple(pattern.shape(merged, lengths)),
        _lengths_of(axes),
        tuple(part_extent(part, merged, lengths) for part in pattern.parts),
        tuple(regions),
        None,
    )


def _diagonal_map(case: _Case) -> IndexMap:
    """C1HWNCoC0: the channels of a block lie on the diagonal of a C0 x C0 matrix."""
    extents, c0 = case.extents, case.blocking.c0
    pattern = Pattern.read("C1 H W N C0", C="c0")
    lead = pattern.shape(extents, pattern.lengths(c0, 1))[:-1]
    regions = [
        region(case.axes, pattern.parts, {"C": replace(run, stride=c0 + 1)}, {}) for run in runs(extents["C"], c0)
    ]
    return IndexMap(tuple(case.shape), (*lead, c0, c0), _lengths_of(case.axes), (*lead, c0 * c0), tuple(regions), None)


def _rnn_weight_map(shape: Shape, blocking: Blocking) -> IndexMap:
    """FRACTAL_ZN_RNN: rows of input and state padded each for itself, columns gate by gate; blocks column by column."""
    hidden = blocking.rnn.hidden_size
    if blocking.c0 != N0:
        raise LayoutError(f"FRACTAL_ZN_RNN is laid out in blocks of {N0} x {N0}; C0 is {blocking.c0}")
    parts = blocking.rnn.row_parts(shape[-2]) if len(shape) > 1 else ()
    if not parts or hidden < 1 or shape[-1] % hidden:
        raise LayoutError(f"shape {shape} is not that of weights of a recurrent operator with {blocking.rnn}")
    *batch, rows, columns = shape
    row_runs: list[Run] = []
    start = block = 0
    for part in parts:
        row_runs += runs(part, N0, start, block * N0)
        start, block = start + part, block - (-part // N0)
    axes = (*_batch_axes(batch), ("K", rows), ("G", columns // hidden), ("N", hidden))
    stored = (*(Part(name) for name, _ in axes[: len(batch)]), *Pattern.read("K1 G N1 N0 K0").parts)
    by_axis = {"K": row_runs, "N": runs(hidden, N0)}
    fine = (*batch, block, columns // hidden, -(-hidden // N0), N0, N0)
    return IndexMap(
        tuple(shape),
        (*batch, block, fine[-4] * fine[-3], N0, N0),
        _lengths_of(axes),
        fine,
        tuple(region(axes, stored, divided, {}) for divided in product_of_runs(by_axis)),
        None,
    )


def _rnn_bias_map(shape: Shape, blocking: Blocking) -> IndexMap:
    """ND_RNN_BIAS: every gate padded to whole blocks."""
    hidden = blocking.rnn.hidden_size
    if not shape or hidden < 1 or shape[-1] % hidden:
        raise LayoutError(f"shape {shape} is not that of a bias of a recurrent operator with {blocking.rnn}")
    *batch, columns = shape
    pattern = Pattern.read("(G N1 N0)", N="c0")
    return _pattern_map(shape, [("G", columns // hidden), ("N", hidden)], pattern, blocking, _batch_axes(batch))


_RULES: dict[Format, Callable[[_Case], IndexMap]] = {
    Format.FORMAT_FRACTAL_Z_3D_TRANSPOSE: _transposed_map,
    Format.FORMAT_FRACTAL_Z_C04: _small_channel_map,
    Format.FORMAT_C1HWNCoC0: _diagonal_map,
}
