"""Scalar functions over vectors of float32 lanes, written once for all loops that compute pointwise.

Errors are in units of the last place (ulp) of the exact result, over all float32 numbers, as tests measure them on a
machine with fused multiply-add; without it they are up to one ulp more.

========= ====== ==================================================================
exp       1      0 below -103.98, subnormal results are rounded as others are
expm1     2
log       1
log1p     2      for arguments from 0 on
tanh      2
sigmoid   3      0 below -88.72, where the exponential of the negative is infinite
erf       5
========= ====== ==================================================================

NaN stays NaN, and infinities are treated as numpy does.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from simulator.codegen.emission import F32V, I32V, Emitter, Value
from simulator.kernels.activation import ERF_BOTTOM, ERF_LIMIT, ERF_TOP, TAIL_BOTTOM, TAIL_LIMIT, TAIL_TOP

_LN2_HIGH, _LN2_LOW = 0.693359375, -2.12194440e-4
"""Their sum is log(2); the first has so few digits that its products with exponents are exact."""
_EXP = (1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1)
_LOG = (
    7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1,
    -1.6668057665e-1, 2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1,
)  # fmt: skip
_TANH = (-5.70498872745e-3, 2.06390887954e-2, -5.37397155531e-2, 1.33314422036e-1, -3.33332819422e-1)
_EXPM1 = tuple(1 / math.factorial(n) for n in range(10, 1, -1))


class Pointwise:
    """The functions, for an emitter. All take and return vectors of float32."""

    def __init__(self, e: Emitter) -> None:
        self.e, self.build = e, e.build

    # -- arithmetic ------------------------------------------------------------------------------------------------
    def number(self, value: float) -> Value:
        """Return a constant."""
        return self.e.splat(value)

    def add(self, a: Value, b: Value) -> Value:
        """Return ``a + b``."""
        return self.build.fadd(a, b)

    def subtract(self, a: Value, b: Value) -> Value:
        """Return ``a - b``."""
        return self.build.fsub(a, b)

    def multiply(self, a: Value, b: Value) -> Value:
        """Return ``a * b``."""
        return self.build.fmul(a, b)

    def divide(self, a: Value, b: Value) -> Value:
        """Return ``a / b``."""
        return self.build.fdiv(a, b)

    def negative(self, x: Value) -> Value:
        """Return ``-x``."""
        return self.build.fneg(x)

    def absolute(self, x: Value) -> Value:
        """Return ``|x|``."""
        return self.e.intrinsic("llvm.fabs", x)

    def root(self, x: Value) -> Value:
        """Return the square root."""
        return self.e.intrinsic("llvm.sqrt", x)

    def with_sign(self, x: Value, sign: Value) -> Value:
        """Return the magnitude of ``x`` with the sign of ``sign``."""
        return self.e.intrinsic("llvm.copysign", x, sign)

    def rounded(self, x: Value) -> Value:
        """Return the nearest whole number, halves to even."""
        return self.e.intrinsic("llvm.nearbyint", x)

    def choose(self, condition: Value, a: Value, b: Value) -> Value:
        """Return ``a`` where the condition holds, else ``b``."""
        return self.build.select(condition, a, b)

    def is_less(self, a: Value, b: Value) -> Value:
        """Tell where ``a < b``; NaN is less than nothing."""
        return self.build.fcmp_ordered("<", a, b)

    def is_nan(self, x: Value) -> Value:
        """Tell where ``x`` is NaN."""
        return self.build.fcmp_unordered("uno", x, x)

    def maximum(self, a: Value, b: Value) -> Value:
        """Return the larger one, NaN if either is."""
        larger = self.choose(self.build.fcmp_unordered(">", a, b), a, b)
        return self.choose(self.is_nan(b), b, larger)

    def minimum(self, a: Value, b: Value) -> Value:
        """Return the smaller one, NaN if either is."""
        smaller = self.choose(self.build.fcmp_unordered("<", a, b), a, b)
        return self.choose(self.is_nan(b), b, smaller)

    def at_least(self, x: Value, bound: Value) -> Value:
        """Return the larger one; ``bound`` is no NaN. A zero of either sign is the bound's."""
        return self.choose(self.build.fcmp_unordered(">", x, bound), x, bound)

    def at_most(self, x: Value, bound: Value) -> Value:
        """Return the smaller one; ``bound`` is no NaN."""
        return self.choose(self.build.fcmp_unordered("<", x, bound), x, bound)

    def polynomial(self, x: Value, coefficients: Sequence[float]) -> Value:
        """Evaluate a polynomial, highest power first."""
        found = self.number(coefficients[0])
        for coefficient in coefficients[1:]:
            found = self.e.multiply_add(found, x, self.number(coefficient))
        return found

    # -- exponentials ----------------------------------------------------------------------------------------------
    def exp(self, x: Value) -> Value:
        """Return the exponential."""
        bounded = self.at_least(self.at_most(x, self.number(89.0)), self.number(-104.5))
        turns = self.rounded(self.multiply(bounded, self.number(math.log2(math.e))))
        rest = self.e.multiply_add(turns, self.number(-_LN2_HIGH), bounded)
        rest = self.e.multiply_add(turns, self.number(-_LN2_LOW), rest)
        square = self.multiply(rest, rest)
        small = self.add(self.e.multiply_add(self.polynomial(rest, _EXP), square, rest), self.number(1.0))
        return self._scaled(small, self._whole(turns))

    def _whole(self, x: Value) -> Value:
        """Return numbers as integers, 0 for NaN."""
        return self.build.fptosi(self.choose(self.is_nan(x), self.number(0.0), x), I32V)

    def _scaled(self, x: Value, exponent: Value) -> Value:
        """Return ``x * 2**exponent`` in two steps, so that neither power is out of range."""
        half = self.build.ashr(exponent, self.e.splat(1, I32V))
        other = self.build.sub(exponent, half)
        return self.multiply(self.multiply(x, self._power_of_two(half)), self._power_of_two(other))

    def _power_of_two(self, exponent: Value) -> Value:
        biased = self.build.add(exponent, self.e.splat(127, I32V))
        return self.e.bits_to_floats(self.build.shl(biased, self.e.splat(23, I32V)))

    def expm1(self, x: Value) -> Value:
        """Return the exponential less 1."""
        square = self.multiply(x, x)
        near = self.e.multiply_add(self.polynomial(x, _EXPM1), square, x)
        far = self.subtract(self.exp(x), self.number(1.0))
        return self.choose(self.is_less(self.absolute(x), self.number(0.5)), near, far)

    def log(self, x: Value) -> Value:
        """Return the natural logarithm; NaN below 0, minus infinity at 0."""
        is_tiny = self.is_less(x, self.number(2.0**-126))
        normal = self.choose(is_tiny, self.multiply(x, self.number(2.0**23)), x)
        bits = self.build.sub(self.e.floats_to_bits(normal), self.e.splat(0x3F3504F3, I32V))  # from sqrt(1/2) on
        exponent = self.build.ashr(bits, self.e.splat(23, I32V))
        mantissa = self.build.and_(bits, self.e.splat(0x7FFFFF, I32V))
        reduced = self.e.bits_to_floats(self.build.add(mantissa, self.e.splat(0x3F3504F3, I32V)))
        power = self.build.sitofp(exponent, F32V)
        power = self.choose(is_tiny, self.subtract(power, self.number(23.0)), power)
        rest = self.subtract(reduced, self.number(1.0))
        square = self.multiply(rest, rest)
        small = self.multiply(self.multiply(self.polynomial(rest, _LOG), square), rest)
        small = self.e.multiply_add(power, self.number(_LN2_LOW), small)
        small = self.e.multiply_add(square, self.number(-0.5), small)
        found = self.e.multiply_add(power, self.number(_LN2_HIGH), self.add(rest, small))
        infinity = self.number(math.inf)
        found = self.choose(self.build.fcmp_ordered("==", x, infinity), infinity, found)
        found = self.choose(self.build.fcmp_ordered("==", x, self.number(0.0)), self.number(-math.inf), found)
        is_outside = self.build.fcmp_unordered("<", x, self.number(0.0))
        return self.choose(is_outside, self.number(math.nan), found)

    def log1p(self, x: Value) -> Value:
        """Return ``log(1 + x)`` of numbers that are not negative."""
        one = self.number(1.0)
        total = self.add(one, x)
        lost = self.divide(self.subtract(x, self.subtract(total, one)), total)
        found = self.add(self.log(total), lost)
        return self.choose(self.build.fcmp_ordered("==", x, self.number(math.inf)), x, found)

    # -- gates -----------------------------------------------------------------------------------------------------
    def sigmoid(self, x: Value) -> Value:
        """Return ``1 / (1 + exp(-x))``."""
        return self.gated(self.number(1.0), self.negative(x))

    def gated(self, x: Value, exponent: Value) -> Value:
        """Return ``x / (1 + exp(exponent))``."""
        return self.divide(x, self.add(self.exp(exponent), self.number(1.0)))

    def tanh(self, x: Value) -> Value:
        """Return the hyperbolic tangent."""
        size = self.absolute(x)
        square = self.multiply(x, x)
        near = self.e.multiply_add(self.multiply(self.polynomial(square, _TANH), square), x, x)
        two = self.number(2.0)
        far = self.subtract(self.number(1.0), self.gated(two, self.multiply(size, two)))
        return self.choose(self.is_less(size, self.number(0.625)), near, self.with_sign(far, x))

    def softplus(self, x: Value) -> Value:
        """Return ``log(1 + exp(x))``."""
        tail = self.log1p(self.exp(self.negative(self.absolute(x))))
        return self.add(self.at_least(x, self.number(0.0)), tail)

    def erf(self, x: Value) -> Value:
        """Return the error function."""
        bounded = self.at_most(self.at_least(x, self.number(-ERF_LIMIT)), self.number(ERF_LIMIT))
        square = self.multiply(bounded, bounded)
        top = self.multiply(bounded, self.polynomial(square, ERF_TOP[::-1]))
        found = self.divide(top, self.polynomial(square, ERF_BOTTOM[::-1]))
        return self.at_most(self.at_least(found, self.number(-1.0)), self.number(1.0))

    def gelu(self, x: Value) -> Value:
        """Return ``x * (1 + erf(x / sqrt(2))) / 2``, as ``max(x, 0) - |x| * tail(|x|)``: nothing cancels."""
        size = self.at_most(self.absolute(x), self.number(TAIL_LIMIT))
        tail = self.divide(self.polynomial(size, TAIL_TOP[::-1]), self.polynomial(size, TAIL_BOTTOM[::-1]))
        decay = self.exp(self.multiply(self.multiply(size, size), self.number(-0.5)))
        lost = self.multiply(self.multiply(tail, size), decay)
        return self.subtract(self.at_least(x, self.number(0.0)), lost)

    def gelu_tanh(self, x: Value) -> Value:
        """Return Gelu with tanh, as ``x / (1 + exp(-2 * inner))``."""
        factor = math.sqrt(8 / math.pi)
        square = self.multiply(x, x)
        inner = self.e.multiply_add(square, self.number(-0.044715 * factor), self.number(-factor))
        return self.gated(x, self.multiply(inner, x))
