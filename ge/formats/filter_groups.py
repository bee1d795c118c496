"""How the filters of a grouped convolution share blocks.

The filters of one group read their own channels only. So that small groups fill whole blocks, ``merged`` groups lie
in one block diagonal: channels and filters of group ``i`` come behind those of the ``i % merged`` groups before it.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd, lcm

from ge.formats.cube_sizes import N0


@dataclass(frozen=True)
class FilterGroups:
    """``groups`` groups of ``filters`` filters with ``channels`` channels, ``merged`` of them in one diagonal."""

    groups: int
    channels: int
    filters: int
    merged: int

    @classmethod
    def of(cls, filters: int, channels: int, groups: int, c0: int) -> FilterGroups:
        """Divide ``filters`` filters (all groups together); no groups where there are fewer filters than groups."""
        if groups <= 1 or filters < groups:
            return cls(1, channels, filters, 1)
        own = filters // groups
        merged = min(lcm(c0 // gcd(channels, c0), N0 // gcd(own, N0)), groups) if channels else 1
        return cls(groups, channels, own, merged)

    @property
    def diagonals(self) -> int:
        """Blocks needed for all groups."""
        return -(-self.groups // self.merged)
