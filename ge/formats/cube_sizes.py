"""Block lengths of the matrix unit: C0 and M0 by element type and chip."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ge.formats.packed_format import PackedFormat
from ge.graph.types import DataType, Format

N0 = 16
"""Filters (and rows) per block, on every chip."""

_FIXED_C0 = {
    Format.FORMAT_NC1HWC0_C04: 4,
    Format.FORMAT_FRACTAL_NZ_C0_16: 16,
    Format.FORMAT_FRACTAL_NZ_C0_32: 32,
}


@dataclass(frozen=True, eq=False)
class CubeSizes:
    """Rows (M0) and reduced elements (K0 = C0) of one block of a chip's matrix unit, ``c0`` by element type.

    There is one object per kind of chip; others are equal to none.
    """

    m0: int = 16
    default_c0: int = 16
    c0: Mapping[DataType, int] = field(default_factory=dict)

    def c0_of(self, dtype: DataType) -> int:
        """Return C0 of tensors of ``dtype``."""
        return self.c0.get(dtype, self.default_c0)

    def block_length(self, format: int, dtype: DataType) -> int:
        """Return C0 of a tensor: fixed by the layout, else packed in the format integer, else that of ``dtype``."""
        packed = PackedFormat.unpack(format)
        return _FIXED_C0.get(packed.primary) or packed.c0 or self.c0_of(dtype)


_BELOW_A_BYTE = {DataType.DT_INT4: 64, DataType.DT_INT2: 128, DataType.DT_UINT2: 128, DataType.DT_UINT1: 256}
_WIDE = (
    *(DataType.DT_FLOAT, DataType.DT_INT8, DataType.DT_UINT8),
    *(DataType.DT_INT32, DataType.DT_UINT32, DataType.DT_INT64, DataType.DT_UINT64),
)

SERVER_CUBES = CubeSizes(c0={DataType.DT_INT8: 32, DataType.DT_UINT8: 32, **_BELOW_A_BYTE})
"""Ascend310, 310P, 910 and 910B. fp32 and int32 have C0 16 too; bool is not listed and has 16."""

LITE_CUBES = CubeSizes(
    m0=1,
    default_c0=8,
    c0=dict.fromkeys(_WIDE, 16) | {dtype: length // 2 for dtype, length in _BELOW_A_BYTE.items()},
)
"""Ascend035."""


def cube_sizes(soc_version: str) -> CubeSizes:
    """Return the block lengths of a chip (a value of ``--soc_version``)."""
    return LITE_CUBES if soc_version.startswith("Ascend035") else SERVER_CUBES
