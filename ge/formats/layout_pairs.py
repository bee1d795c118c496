"""Which layouts can be made from which formats."""

from __future__ import annotations

from ge.formats.origin_axes import (
    FRACTAL_NZ_FORMATS,
    ORIGIN_FORMATS,
    PLANAR_FORMATS,
    VOLUME_FORMATS,
)
from ge.formats.packed_format import primary_format
from ge.graph.types import Format

ORIGINS: dict[Format, tuple[Format, ...]] = {
    Format.FORMAT_NC1HWC0: PLANAR_FORMATS,
    Format.FORMAT_NC1HWC0_C04: PLANAR_FORMATS,
    Format.FORMAT_NDC1HWC0: (*VOLUME_FORMATS, *PLANAR_FORMATS),
    Format.FORMAT_FRACTAL_Z: (*PLANAR_FORMATS, Format.FORMAT_ND),
    Format.FORMAT_FRACTAL_Z_C04: PLANAR_FORMATS,
    Format.FORMAT_FRACTAL_Z_3D: VOLUME_FORMATS,
    Format.FORMAT_FRACTAL_Z_3D_TRANSPOSE: VOLUME_FORMATS,
    Format.FORMAT_C1HWNCoC0: PLANAR_FORMATS,
    **dict.fromkeys(FRACTAL_NZ_FORMATS, ORIGIN_FORMATS),
    Format.FORMAT_FRACTAL_ZZ: ORIGIN_FORMATS,
    Format.FORMAT_FRACTAL_ZN_RNN: (Format.FORMAT_ND,),
    Format.FORMAT_ND_RNN_BIAS: (Format.FORMAT_ND,),
}
"""Storage layouts whose elements are known to lie somewhere, and the formats that they are made from and turned into.

ND of rank 4 has a shape in NC1HWC0 (it is read as NCHW), but nothing says that its axes mean that: no pair.
"""

LAYOUT_PAIRS: frozenset[tuple[Format, Format]] = frozenset(
    pair
    for storage, origins in ORIGINS.items()
    for origin in origins
    for pair in ((origin, storage), (storage, origin))
) | frozenset(
    (first, second)
    for formats in (PLANAR_FORMATS, VOLUME_FORMATS)
    for first in formats
    for second in formats
    if first != second
)
"""All pairs (source, target) that one TransData, or one Transpose between formats with named axes, can do."""


def can_transfer(source: int, target: int) -> bool:
    """Tell whether a tensor can be turned from one format into another in one step.

    Two private layouts never can: the way leads through the origin. Equal formats are no transfer.
    """
    return (primary_format(source), primary_format(target)) in LAYOUT_PAIRS
