"""Finding normalisations: quotients by the root of a mean, scaled and shifted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ge.graph import Node, NodeOut
from ge.ops.registry import Array
from passes.fusion.constants import is_fixed, value_of
from passes.fusion.expression_fusion import results, tolerance_of
from passes.fusion.polynomial import Polynomial, Reader

REACH = 12
"""How many tensors above a mean are looked at."""

Dims = tuple[int, ...]


@dataclass(frozen=True)
class Normalised:
    """A tensor that is ``numerator / sqrt(mean + epsilon) * scale + shift``."""

    output: NodeOut
    epsilon: float
    scale: NodeOut | None
    shift: NodeOut | None


def normalised(mean: Node, numerator: Polynomial, reader: Reader, length: Dims) -> list[Normalised]:
    """Return the tensors that are such a quotient, with and without scale and shift, the nearest first.

    Scale and shift are constants with one element for each of the normalised ones, whose dims are ``length``.
    """
    root = mean.output()
    tolerance = tolerance_of(root)
    return [
        Normalised(output, epsilon, scale, shift)
        for output in results(root, REACH)
        if (found := reader.polynomial(output)) is not None
        for denominator, epsilon in _denominators(found, root)
        for scale, shift in _parameters(found, length)
        if found.is_close(_scaled(numerator * denominator, scale, shift), tolerance)
    ]


def _denominators(found: Polynomial, mean: NodeOut) -> Iterator[tuple[Polynomial, float]]:
    """Iterate over the one over root in ``found``, and the number that is added to the mean below it."""
    for base, exponent in dict.fromkeys(power for monomial in found.terms for power in monomial):
        if exponent != -0.5:
            continue
        if base == mean:
            yield Polynomial.of(mean, -0.5), 0.0
        elif isinstance(base, Polynomial) and base.constant > 0 and base == Polynomial.of(mean) + base.constant:
            yield Polynomial.of(base, -0.5), base.constant


def _parameters(found: Polynomial, length: Dims) -> Iterator[tuple[NodeOut | None, NodeOut | None]]:
    tensors = (base for monomial in found.terms for base, _ in monomial if not isinstance(base, Polynomial))
    fitting = [t for t in dict.fromkeys(tensors) if is_fixed(t) and _stripped(t.desc.origin_shape) == _stripped(length)]
    for scale in (None, *fitting):
        for shift in (None, *fitting):
            yield scale, shift


def _scaled(whole: Polynomial, scale: NodeOut | None, shift: NodeOut | None) -> Polynomial:
    product = whole if scale is None else whole * Polynomial.of(scale)
    return product if shift is None else product + Polynomial.of(shift)


def _stripped(dims: Dims) -> Dims:
    """Return a shape without leading ones, which change nothing when it is broadcast."""
    start = 0
    while start < len(dims) and dims[start] == 1:
        start += 1
    return tuple(dims[start:])


def in_shape(parameter: NodeOut | None, length: Dims) -> NodeOut | Array | None:
    """Return a scale or shift without leading ones."""
    if parameter is None or parameter.desc.origin_shape == length:
        return parameter
    value = value_of(parameter)
    return parameter if value is None else value.reshape(length)
