"""Patterns of storage shapes.

A pattern names the dims of a storage shape: ``N C1 H W C0`` is the batch, the blocks of channels, height, width, and
the channels of one block. What an axis is divided by stands beside the pattern. A number stands for itself; factors in
parentheses are one dim.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from ge.graph.tensor_desc import Shape


class Part(NamedTuple):
    """A factor of a storage dim; level ``""``: a whole axis, ``"1"``: its blocks, ``"0"``: the lanes of one block."""

    axis: str
    level: str = ""


@dataclass(frozen=True)
class Pattern:
    """Storage dims, each a product of parts, and the names of the block lengths by axis."""

    dims: tuple[tuple[Part, ...], ...]
    divisors: Mapping[str, str | int]

    @classmethod
    def read(cls, text: str, **divisors: str | int) -> Pattern:
        """Read a pattern: ``Pattern.read("(C1 H W) N1 N0 C0", C="c0", N=16)``."""
        dims: list[tuple[Part, ...]] = []
        merged: list[Part] | None = None
        for word in text.replace("(", "( ").replace(")", " )").split():
            if word == "(":
                merged = []
            elif word == ")":
                dims.append(tuple(merged or ()))
                merged = None
            else:
                part = Part(word) if word.isdecimal() else Part(word[0], word[1:])
                if merged is None:
                    dims.append((part,))
                else:
                    merged.append(part)
        return cls(tuple(dims), divisors)

    @property
    def parts(self) -> tuple[Part, ...]:
        """All parts, as they follow each other in memory."""
        return tuple(part for dim in self.dims for part in dim)

    @property
    def axes(self) -> frozenset[str]:
        """The axes that the pattern is made of."""
        return frozenset(part.axis for part in self.parts if not part.axis.isdecimal())

    def lengths(self, c0: int, m0: int) -> dict[str, int]:
        """Return the block length of each divided axis."""
        named = {"c0": c0, "m0": m0}
        return {axis: named[d] if isinstance(d, str) else d for axis, d in self.divisors.items()}

    def shape(self, extents: Mapping[str, int], lengths: Mapping[str, int]) -> Shape:
        """Return the storage shape. -1 is an unknown extent, and every dim that depends on one is -1."""
        return Shape(_product([part_extent(part, extents, lengths) for part in dim]) for dim in self.dims)


def blocks(extent: int, length: int) -> int:
    """Return the blocks of ``length`` that ``extent`` takes, begun ones included; -1 for an unknown extent."""
    return -(-extent // length) if extent >= 0 else -1


def part_extent(part: Part, extents: Mapping[str, int], lengths: Mapping[str, int]) -> int:
    """Return how many positions a part has."""
    if part.axis.isdecimal():
        return int(part.axis)
    if part.level == "0":
        return lengths[part.axis]
    return blocks(extents[part.axis], lengths[part.axis]) if part.level else extents[part.axis]


def _product(factors: Iterable[int]) -> int:
    first, *rest = factors
    if not rest:
        return first  # an open dim keeps its name
    result = first
    for factor in rest:
        if result < 0 or factor < 0:
            return -1
        result *= factor
    return result
