"""Format integers: the layout in bits 0-7, the number of groups in bits 8-23, the code of C0 in bits 24-27."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from ge.formats.layout_error import LayoutError
from ge.graph.types import FORMAT_TEXT, Format

MAX_GROUPS = 0xFFFF
_MAX_C0_CODE = 0xF
_PRIMARY_BITS, _GROUP_BITS = 8, 16
_C0_SHIFT = _PRIMARY_BITS + _GROUP_BITS


@dataclass(frozen=True)
class PackedFormat:
    """A format with what a tensor's layout depends on besides it.

    ``groups`` is the sub-format (0 and 1: none), ``c0`` the block length (a power of two; 0: that of the element type).
    A plain :class:`Format` is the packed integer without either. Integers of equal meaning may differ (groups 0 and 1,
    a C0 that the element type gives anyway), so compare ``primary`` where the layout alone counts.
    """

    primary: Format
    groups: int = 0
    c0: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.groups <= MAX_GROUPS:
            raise LayoutError(f"a format holds 0 to {MAX_GROUPS} groups, not {self.groups}")
        if self.c0 < 0 or self.c0 & (self.c0 - 1) or self.c0.bit_length() > _MAX_C0_CODE:
            raise LayoutError(f"C0 in a format is a power of two up to {1 << (_MAX_C0_CODE - 1)}, not {self.c0}")

    @classmethod
    def unpack(cls, packed: int) -> PackedFormat:
        """Take a format integer apart. Raises :class:`LayoutError` for a layout that does not exist."""
        primary, groups = packed & 0xFF, packed >> _PRIMARY_BITS & MAX_GROUPS
        code = packed >> _C0_SHIFT
        if packed < 0 or code > _MAX_C0_CODE or primary not in FORMAT_TEXT or primary >= Format.FORMAT_END:
            raise LayoutError(f"{packed} is no format: layouts are 0 to {Format.FORMAT_END - 1}, codes of C0 0 to 15")
        return cls(Format(primary), groups, 1 << (code - 1) if code else 0)

    def __int__(self) -> int:
        return self.primary | self.groups << _PRIMARY_BITS | self.c0.bit_length() << _C0_SHIFT

    @property
    def is_grouped(self) -> bool:
        """True for two groups or more."""
        return self.groups > 1

    def __str__(self) -> str:
        extras = [f"groups {self.groups}"] if self.is_grouped else []
        extras += [f"C0 {self.c0}"] if self.c0 else []
        name = FORMAT_TEXT[self.primary]
        return f"{name} ({', '.join(extras)})" if extras else name


@lru_cache(maxsize=1024)
def primary_format(packed: int) -> Format:
    """Return the layout of a format integer. Raises :class:`LayoutError` for one that does not exist."""
    return PackedFormat.unpack(packed).primary
