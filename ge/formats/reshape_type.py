"""Reshape types: which axes of a full shape the dims of a smaller one stand for.

A bias ``[64]`` of an NCHW tensor is laid out as if it were ``[1,64,1,1]``. A reshape type lists the axes kept, in the
order of the origin format: ``"C"`` here. Its letters beyond the rank do not count. An empty, unknown or unordered one
is replaced by the default for format and rank; ``FORBIDDEN`` keeps the shape as it is.
"""

from __future__ import annotations

from collections.abc import Iterable

from ge.formats.layout_error import LayoutError
from ge.formats.origin_axes import AXES, FRACTAL_NZ_FORMATS, full_rank
from ge.graph.tensor_desc import Shape
from ge.graph.types import Format

FORBIDDEN = "FORBIDDEN"

# the last row is for rank 4, which is below the full rank of volumes only
_DEFAULTS: dict[Format, tuple[str, ...]] = {
    Format.FORMAT_NCHW: ("C", "CH", "CHW"),
    Format.FORMAT_NHWC: ("C", "HW", "HWC"),
    Format.FORMAT_HWCN: ("C", "CN", "WCN"),
    Format.FORMAT_CHWN: ("C", "WN", "HWN"),
    Format.FORMAT_NDHWC: ("C", "WC", "HWC", "DHWC"),
    Format.FORMAT_NCDHW: ("C", "HW", "DHW", "CDHW"),
    Format.FORMAT_DHWCN: ("C", "CN", "WCN", "HWCN"),
    Format.FORMAT_DHWNC: ("C", "NC", "WNC", "HWNC"),
}
_NEVER_EXPANDED = frozenset(FRACTAL_NZ_FORMATS)
_NO_MASK = _NEVER_EXPANDED | {Format.FORMAT_ND, Format.FORMAT_ND_RNN_BIAS, Format.FORMAT_FRACTAL_ZN_RNN}
_RANK_SHIFT = 56


def _is_ordered(axes: str, origin_format: Format) -> bool:
    places = [AXES.get(origin_format, "").find(axis) for axis in axes]
    return places == sorted(set(places)) and -1 not in places


def _kept_places(rank: int, origin_format: Format, reshape_type: str) -> list[int] | None:
    """Return the place of each dim in the full shape; ``None`` where the shape stays as it is."""
    full = full_rank(origin_format)
    if full is None or rank >= full or reshape_type == FORBIDDEN:
        return None
    kept = reshape_type
    if not _is_ordered(kept, origin_format) or (not kept and rank):
        defaults = _DEFAULTS.get(origin_format)
        if defaults is None:
            return None
        kept = ("", *defaults)[rank]
    return None if rank > len(kept) else [AXES[origin_format].index(axis) for axis in kept[:rank]]


def expand_dims(shape: Iterable[int], origin_format: Format, format: Format, reshape_type: str = "") -> Shape:
    """Return an origin shape with a 1 for every axis that it lacks, ready to be laid out in ``format``.

    Shapes that need no expansion, or for which there is no rule (ND with dims, a reshape type that names too few axes),
    are returned as they are; so is an unknown rank.
    """
    dims = Shape(shape)
    is_matrix = origin_format == Format.FORMAT_ND and format == Format.FORMAT_FRACTAL_Z
    if dims.is_unknown_rank() or format in _NEVER_EXPANDED or is_matrix:
        return dims
    places = _kept_places(len(dims), origin_format, reshape_type)
    if places is None:
        return dims
    expanded = [1] * (full_rank(origin_format) or 0)
    for place, dim in zip(places, dims, strict=True):
        expanded[place] = dim
    return Shape(expanded)


def reshape_mask(rank: int, origin_format: Format, format: Format, reshape_type: str = "") -> int:
    """Return the expansion as a mask: bit i set when axis i of the full shape is inserted, its rank from bit 56 on.

    0 means that nothing is inserted.
    """
    if format in _NO_MASK or (origin_format == Format.FORMAT_ND and format == Format.FORMAT_FRACTAL_Z):
        return 0
    places = _kept_places(rank, origin_format, reshape_type)
    if places is None:
        return 0
    full = full_rank(origin_format) or 0
    inserted = sum(1 << place for place in range(full) if place not in places)
    return inserted | full << _RANK_SHIFT


def expand_by_mask(shape: Iterable[int], mask: int) -> Shape:
    """Apply a mask of :func:`reshape_mask`. Raises :class:`LayoutError` when it was made for another rank."""
    dims = Shape(shape)
    if not mask:
        return dims
    full = mask >> _RANK_SHIFT
    inserted = [bool(mask >> place & 1) for place in range(full)]
    if len(dims) + sum(inserted) != full:
        raise LayoutError(f"mask {mask:#x} inserts {sum(inserted)} of {full} dims; shape {dims} has {len(dims)}")
    rest = iter(dims)
    return Shape(1 if is_new else next(rest) for is_new in inserted)
