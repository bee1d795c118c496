"""Indices of elements as functions of the loop axes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ge.ascir.asc_graph import contiguous_strides
from passes.lowering.refusal import Refusal, Rule


class Term(NamedTuple):
    """``(z // divisor) % modulus`` of one axis; modulus 0 is none."""

    axis: int
    divisor: int = 1
    modulus: int = 0


@dataclass(frozen=True)
class Index:
    """A sum of terms with coefficients, plus a constant: where along one dim of a value an element is."""

    constant: int = 0
    terms: tuple[tuple[Term, int], ...] = ()

    @classmethod
    def of_axis(cls, axis: int) -> Index:
        """Return the index that follows an axis."""
        return cls(0, ((Term(axis), 1),))

    @property
    def axis(self) -> int | None:
        """The axis that this index follows, if it is nothing else."""
        match self.constant, self.terms:
            case 0, ((Term(axis, 1, 0), 1),):
                return axis
        return None

    def scaled(self, factor: int, shift: int = 0) -> Index:
        """Return ``factor * self + shift``."""
        terms = tuple((term, factor * c) for term, c in self.terms) if factor else ()
        return Index(factor * self.constant + shift, terms)

    def plus(self, other: Index) -> Index:
        """Return the sum."""
        found = dict(self.terms)
        for term, coefficient in other.terms:
            found[term] = found.get(term, 0) + coefficient
        return Index(self.constant + other.constant, tuple(sorted((t, c) for t, c in found.items() if c)))


ZERO = Index()
Indices = tuple[Index, ...]


def loop_indices(count: int) -> Indices:
    """Return the indices that follow the first ``count`` axes, one each."""
    return tuple(map(Index.of_axis, range(count)))


def divided(index: Index, inner: int) -> Indices:
    """Return the two indices of a dim that is divided into blocks of ``inner``."""
    axis = index.axis
    if axis is None:
        if index == ZERO:
            return ZERO, ZERO
        raise Refusal(Rule.NOT_EXPRESSIBLE, "a dim that is no loop of its own cannot be divided")
    return Index(0, ((Term(axis, inner), 1),)), Index(0, ((Term(axis, 1, inner), 1),))


def flat(indices: Sequence[Index], dims: Iterable[int]) -> Index:
    """Return the place of an element in a row-major buffer of ``dims``."""
    total = ZERO
    for index, stride in zip(indices, contiguous_strides(dims), strict=True):
        total = total.plus(index.scaled(stride))
    return total


def axis_strides(place: Index, count: int) -> tuple[int, ...]:
    """Return how far a step along each of ``count`` axes moves ``place``.

    Raises :class:`Refusal` where that is not the same for every step, or backwards.
    """
    strides = [0] * count
    quotients: dict[int, tuple[int, int]] = {}
    remainders: dict[int, tuple[int, int]] = {}
    for term, coefficient in place.terms:
        if term.modulus:
            remainders[term.axis] = (term.modulus, coefficient)
        elif term.divisor > 1:
            quotients[term.axis] = (term.divisor, coefficient)
        else:
            strides[term.axis] += coefficient
    if quotients.keys() != remainders.keys():
        raise Refusal(Rule.NOT_EXPRESSIBLE, "an axis is divided and its parts do not come together again")
    for axis, (divisor, coefficient) in quotients.items():
        modulus, step = remainders[axis]
        if modulus != divisor or coefficient != divisor * step:
            raise Refusal(Rule.NOT_EXPRESSIBLE, "an axis is divided and its parts lie apart in memory")
        strides[axis] += step
    if min(strides, default=0) < 0 or place.constant < 0:
        raise Refusal(Rule.NOT_EXPRESSIBLE, "elements are read backwards")
    return tuple(strides)
