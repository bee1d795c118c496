"""Arithmetic of a graph, read as polynomials.

    Mul(Mul(x, 0.5), Add(Erf(...), 1))        ->  0.5 * x + 0.5 * x * erf
    RealDiv(Sub(x, m), Sqrt(Add(v, 1e-5)))    ->  x * p**-0.5 - m * p**-0.5   where p is the polynomial v + 1e-5

Orders of operands, ways of writing a square or a reciprocal, factors drawn in or out: all give the same polynomial.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from ge.graph import Node, NodeOut
from passes.fusion.constants import attributes, is_fixed, is_float, number_of

MAX_TERMS = 16
"""Most terms of a polynomial that is looked at; what fusions look for has fewer."""
MAX_NODES = 32
"""Most nodes that one reader reads."""

Monomial = frozenset[tuple["NodeOut | Polynomial", float]]
"""Bases and their exponents; empty: 1. A base is a tensor, or a polynomial raised to what is no whole number."""


class Unreadable(ValueError):
    """What is no polynomial of the tensors asked for, or too long a one."""


@dataclass(frozen=True, eq=False)
class Polynomial:
    """A sum of monomials with coefficients; none is 0."""

    terms: Mapping[Monomial, float]

    @classmethod
    def number(cls, value: float) -> Polynomial:
        """Return a constant."""
        return cls({frozenset(): value} if value else {})

    @classmethod
    def of(cls, base: NodeOut | Polynomial, exponent: float = 1.0) -> Polynomial:
        """Return a power of a tensor or of a polynomial."""
        return cls({frozenset({(base, exponent)}): 1.0})

    @cached_property
    def _key(self) -> frozenset[tuple[Monomial, float]]:
        return frozenset(self.terms.items())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Polynomial) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    @property
    def constant(self) -> float:
        """The term without a tensor."""
        return self.terms.get(frozenset(), 0.0)

    def __add__(self, other: Polynomial | float) -> Polynomial:
        terms = dict(self.terms)
        for monomial, coefficient in _polynomial(other).terms.items():
            total = terms.pop(monomial, 0.0) + coefficient
            if total:
                terms[monomial] = total
        return _limited(terms)

    def __sub__(self, other: Polynomial | float) -> Polynomial:
        return self + _polynomial(other) * -1.0

    def __mul__(self, other: Polynomial | float) -> Polynomial:
        terms: dict[Monomial, float] = {}
        for first, one in self.terms.items():
            for second, two in _polynomial(other).terms.items():
                monomial = _product(first, second)
                total = terms.pop(monomial, 0.0) + one * two
                if total:
                    terms[monomial] = total
        return _limited(terms)

    __radd__ = __add__
    __rmul__ = __mul__

    def __pow__(self, exponent: float) -> Polynomial:
        """Raise to a power. Only a whole one is drawn into a product: the root of a square is not the number."""
        if exponent == 1:
            return self
        if len(self.terms) == 1 and exponent == int(exponent):
            [(monomial, coefficient)] = self.terms.items()
            return Polynomial({_power(monomial, exponent): coefficient**exponent})
        if self.terms and exponent in (2, 3):
            return self * self ** (exponent - 1)
        if not self.terms:
            raise Unreadable("a power of 0")
        single = self._single
        return Polynomial.of(self if single is None else single, float(exponent))

    @property
    def _single(self) -> NodeOut | None:
        """The tensor that the polynomial is, if it is one alone."""
        if len(self.terms) != 1:
            return None
        [(monomial, coefficient)] = self.terms.items()
        if coefficient != 1 or len(monomial) != 1:
            return None
        [(base, exponent)] = monomial
        return base if exponent == 1 and not isinstance(base, Polynomial) else None

    def bases(self) -> Iterator[NodeOut | Polynomial]:
        """Iterate over what is raised to powers in it; some may come twice."""
        for monomial in self.terms:
            for base, _ in monomial:
                yield base

    def is_like(self, other: Polynomial) -> bool:
        """Tell whether the monomials are the same, whatever the coefficients."""
        return self.terms.keys() == other.terms.keys()

    def is_close(self, other: Polynomial, tolerance: float) -> bool:
        """Tell whether the monomials are the same and the coefficients nearly."""
        return self.is_like(other) and all(
            math.isclose(self.terms[m], c, rel_tol=tolerance) for m, c in other.terms.items()
        )

    def text(self, names: Mapping[NodeOut, str]) -> str:
        """Return the polynomial as people write it."""
        parts = [_monomial_text(monomial, coefficient, names) for monomial, coefficient in self.terms.items()]
        return " + ".join(sorted(parts)) or "0"


def _polynomial(value: Polynomial | float) -> Polynomial:
    return value if isinstance(value, Polynomial) else Polynomial.number(value)


def _limited(terms: dict[Monomial, float]) -> Polynomial:
    if len(terms) > MAX_TERMS:
        raise Unreadable("too many terms")
    if not all(map(math.isfinite, terms.values())):
        raise Unreadable("a coefficient is not finite")
    return Polynomial(terms)


def _product(first: Monomial, second: Monomial) -> Monomial:
    exponents = dict(first)
    for base, exponent in second:
        exponents[base] = exponents.get(base, 0.0) + exponent
    return frozenset((base, exponent) for base, exponent in exponents.items() if exponent)


def _power(monomial: Monomial, exponent: float) -> Monomial:
    return frozenset((base, own * exponent) for base, own in monomial if own * exponent)


def _monomial_text(monomial: Monomial, coefficient: float, names: Mapping[NodeOut, str]) -> str:
    factors = [] if coefficient == 1 and monomial else [f"{coefficient:.6g}"]
    for base, exponent in monomial:
        name = f"({base.text(names)})" if isinstance(base, Polynomial) else names.get(base, str(base))
        factors.append(name if exponent == 1 else f"{name}**{exponent:g}")
    return " * ".join(sorted(factors))


# -- reading -----------------------------------------------------------------------------------------------------------
Rule = Callable[["Reader", Node], Polynomial]


class Reader:
    """Reads tensors as polynomials in ``symbols``; constants that are no single numbers are symbols too."""

    def __init__(self, symbols: Collection[NodeOut]) -> None:
        self._symbols = frozenset(symbols)
        self._known = {symbol: Polynomial.of(symbol) for symbol in symbols}
        self._count = 0

    def polynomial(self, source: NodeOut) -> Polynomial | None:
        """Return the polynomial that a tensor is; ``None`` if it is none, or too long a one."""
        try:
            return self.read(source)
        except Unreadable:
            return None

    def read(self, source: NodeOut | None) -> Polynomial:
        """Return the polynomial that a tensor is. Raises :class:`Unreadable`."""
        if source is None:
            raise Unreadable("an input is absent")
        if source not in self._known:
            self._known[source] = _constant(source) if is_fixed(source) else self._result(source)
        return self._known[source]

    def _result(self, source: NodeOut) -> Polynomial:
        rule = _RULES.get(source.node.type)
        if rule is None or not is_float(source):
            raise Unreadable(f"{source.node.type} is no arithmetic")
        self._count += 1
        if self._count > MAX_NODES:
            raise Unreadable("too many nodes")
        try:
            return rule(self, source.node)
        except OverflowError as fault:
            raise Unreadable("a coefficient is not finite") from fault

    def nodes(self, *sources: NodeOut) -> list[Node]:
        """Return the operators that compute what was read from the symbols."""
        found: dict[Node, None] = {}
        waiting = list(sources)
        while waiting:
            source = waiting.pop()
            if source in self._symbols or is_fixed(source) or source.node in found:
                continue
            found[source.node] = None
            waiting.extend(before for before in source.node.inputs if before is not None)
        return list(found)


def _constant(source: NodeOut) -> Polynomial:
    number = number_of(source)
    if number is None:
        return Polynomial.of(source)
    if not math.isfinite(number):
        raise Unreadable("a constant is not finite")
    return Polynomial.number(number)


def _exponent(node: Node) -> float:
    exponent = number_of(node.input(1))
    if exponent is None or not math.isfinite(exponent) or exponent == 0:
        raise Unreadable("the exponent is no number that can be used")
    return exponent


def _power_node(reader: Reader, node: Node) -> Polynomial:
    op = attributes(node)
    return (reader.read(node.input(0)) * op.scale + op.shift) ** op.power


def _binary(combine: Callable[[Polynomial, Polynomial], Polynomial]) -> Rule:
    return lambda reader, node: combine(reader.read(node.input(0)), reader.read(node.input(1)))


def _unary(apply: Callable[[Polynomial], Polynomial]) -> Rule:
    return lambda reader, node: apply(reader.read(node.input(0)))


_RULES: dict[str, Rule] = {
    "Add": _binary(lambda a, b: a + b),
    "AddV2": _binary(lambda a, b: a + b),
    "Sub": _binary(lambda a, b: a - b),
    "Mul": _binary(lambda a, b: a * b),
    "RealDiv": _binary(lambda a, b: a * b**-1),
    "Div": _binary(lambda a, b: a * b**-1),
    "SquaredDifference": _binary(lambda a, b: (a - b) ** 2),
    "Neg": _unary(lambda a: a * -1.0),
    "Square": _unary(lambda a: a**2),
    "Sqrt": _unary(lambda a: a**0.5),
    "Rsqrt": _unary(lambda a: a**-0.5),
    "Reciprocal": _unary(lambda a: a**-1),
    "Muls": lambda reader, node: reader.read(node.input(0)) * attributes(node).value,
    "Adds": lambda reader, node: reader.read(node.input(0)) + attributes(node).value,
    "Pow": lambda reader, node: reader.read(node.input(0)) ** _exponent(node),
    "Power": _power_node,
}
ARITHMETIC = frozenset(_RULES)
"""Types of the operators that are read."""
