"""Conversion between float32 and float16 by arithmetic on whole arrays.

numpy converts number by number, with branches for zeros and numbers below the normal range: behind a Relu, where zeros
lie anywhere, that takes 5 nanoseconds per number, below the normal range 60. These formulas have no branches and take
two, whatever the numbers are; they give the same bits. A few numbers of every block tell which way is to be preferred.

Rounding: a number of at least 2**-14 is rounded by its bits, after its exponent has been made that of float16; what is
smaller by adding 0.5, whose last bit is 2**-24. Each way is given the nearest number that it is right for, which the
other one makes 2**-14 of, so that the sum of both, less 2**-14, is the result.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np

from simulator.kernels.registry import Array

BLOCK = 16384
"""Numbers that are converted at once: what lies between the steps stays in the second-level cache."""
_SAMPLE = 256
SHORT = 512
"""Arrays up to here are left to numpy, which has less to begin with."""
_SINGLE, _HALF = np.dtype(np.float32), np.dtype(np.float16)
_SMALLEST, _OVERFLOW = np.float32(2.0**-14), np.float32(2.0**16)
_TO_HALF, _FROM_HALF = np.float32(2.0**-112), np.float32(2.0**112)
_ROUND_AND_ONE_LESS = np.uint32((0xFFF - 0x800000) % 2**32)
"""Just below half of the bits that go, and one less in the exponent: the other way gives it back."""
_SMALLEST_BITS, _OVERFLOW_BITS = _SMALLEST.view(np.uint32), np.float32(65520).view(np.uint32)
_INFINITY_BITS = np.float32(np.inf).view(np.uint32)
_LEADING_ONE = np.uint32(113 << 23)
_IS_LITTLE = sys.byteorder == "little"


class _Buffers(threading.local):
    """Memory between the steps, one set per thread."""

    def __init__(self) -> None:
        self.magnitude, self.small = np.empty(BLOCK, np.float32), np.empty(BLOCK, np.float32)
        self.bits, self.flags = np.empty(BLOCK, np.uint32), np.empty(BLOCK, np.bool_)
        self.halves, self.signs = np.empty(BLOCK, np.uint16), np.empty(BLOCK, np.uint16)


_BUFFERS = _Buffers()


def convert(target: Array, source: Array) -> None:
    """Write ``source`` into ``target`` (the same memory only for equal types), rounding once; casts as numpy does."""
    pair = (source.dtype, target.dtype)
    step = _round if pair == (_SINGLE, _HALF) else _widen if pair == (_HALF, _SINGLE) else None
    if step is None or target.size <= SHORT or source.shape != target.shape or not _IS_LITTLE:
        np.copyto(target, source, casting="unsafe")
        return
    for to, given in _blocks(target, source):
        step(to, given)


def _blocks(target: Array, source: Array) -> Iterator[tuple[Array, Array]]:
    """Divide equal shapes into parts of at most ``BLOCK`` numbers (whole trailing axes, or parts of the last)."""
    if target.flags.c_contiguous and source.flags.c_contiguous:
        target, source = target.reshape(-1), source.reshape(-1)
    shape = target.shape
    cut, inner = len(shape), 1
    while cut > 0 and inner * shape[cut - 1] <= BLOCK:
        cut -= 1
        inner *= shape[cut]
    if cut == 0:
        yield target, source
        return
    step = max(BLOCK // inner, 1)
    for lead in np.ndindex(*shape[: cut - 1]):
        for start in range(0, shape[cut - 1], step):
            index: tuple[Any, ...] = (*lead, slice(start, start + step))
            yield target[index], source[index]


def _round(target: Array, source: Array) -> None:
    size, memory = target.size, _BUFFERS
    magnitude, small, bits = memory.magnitude[:size], memory.small[:size], memory.bits[:size]
    flat = source.reshape(-1) if source.flags.c_contiguous else small
    if not source.flags.c_contiguous:
        np.copyto(flat.reshape(source.shape), source)
    signs, scaled, low = memory.signs[:size], magnitude.view(np.uint32), small.view(np.uint32)
    if not _is_mixed(flat.view(np.uint32), 0x7FFFFFFF, _SMALLEST_BITS):
        np.copyto(target, source, casting="unsafe")
        return
    np.bitwise_and(flat.view(np.uint32), 0x7FFFFFFF, out=scaled)
    largest = scaled.max()
    if largest > _INFINITY_BITS:  # NaN
        np.copyto(target, source, casting="unsafe")
        return
    np.right_shift(flat.view(np.uint32), 16, out=bits)
    np.copyto(signs, bits, casting="unsafe")
    np.bitwise_and(signs, 0x8000, out=signs)
    np.minimum(scaled, _SMALLEST_BITS, out=low)  # positive numbers are ordered as their bits
    np.add(small, np.float32(0.5), out=small)
    np.maximum(scaled, _SMALLEST_BITS, out=scaled)
    if largest >= _OVERFLOW_BITS:
        np.minimum(magnitude, _OVERFLOW, out=magnitude)
    np.multiply(magnitude, _TO_HALF, out=magnitude)
    np.right_shift(scaled, 13, out=bits)
    np.bitwise_and(bits, 1, out=bits)
    np.add(bits, _ROUND_AND_ONE_LESS, out=bits)
    np.add(bits, scaled, out=bits)
    np.right_shift(bits, 13, out=bits)
    np.add(bits, low, out=bits)
    halves = target.reshape(-1).view(np.uint16) if target.flags.c_contiguous else memory.halves[:size]
    np.copyto(halves, bits, casting="unsafe")
    np.bitwise_or(halves, signs, out=halves)
    if not target.flags.c_contiguous:
        np.copyto(target, halves.view(np.float16).reshape(target.shape))


def _is_mixed(bits: Array, magnitude: int, smallest: Any) -> bool:
    """Tell by a sample whether more than a few numbers are zero or below the normal range, where numpy is slow."""
    middle = len(bits) // 2
    sample = bits[middle : middle + _SAMPLE] & magnitude
    return int(np.count_nonzero(sample < smallest)) * 32 > len(sample)


def _widen(target: Array, source: Array) -> None:
    size, memory = target.size, _BUFFERS
    signs = memory.signs[:size]
    if source.flags.c_contiguous:
        halves = source.reshape(-1).view(np.uint16)
    else:
        halves = memory.halves[:size]
        np.copyto(halves.view(np.float16).reshape(source.shape), source)
    if not _is_mixed(halves, 0x7FFF, 0x400):
        np.copyto(target, source)
        return
    np.bitwise_and(halves, 0x7FFF, out=signs)
    if signs.max() >= 0x7C00:  # infinity or NaN
        np.copyto(target, source)
        return
    flat = target.reshape(-1) if target.flags.c_contiguous else memory.magnitude[:size]
    bits = flat.view(np.uint32)
    np.copyto(bits, signs)
    np.left_shift(bits, 13, out=bits)
    np.subtract(signs, 1, out=signs)
    if np.count_nonzero(np.less(signs, 0x3FF, out=memory.flags[:size])) * 64 > size:
        _scale_small(flat, memory.small[:size], memory.bits[:size])
    else:  # next to nothing below the normal range, which processors are slow with
        np.multiply(flat, _FROM_HALF, out=flat)
    np.bitwise_and(halves, 0x8000, out=signs)
    upper = memory.bits[:size]
    np.left_shift(signs, 16, out=upper, dtype=np.uint32)
    np.bitwise_or(bits, upper, out=bits)
    if not target.flags.c_contiguous:
        np.copyto(target, flat.reshape(target.shape))


def _scale_small(flat: Array, excess: Array, is_normal: Array) -> None:
    """Multiply by 2**112 without operands below float32's normal range: those get a leading 1 that is taken off."""
    bits = flat.view(np.uint32)
    np.right_shift(bits, 23, out=is_normal)
    np.minimum(is_normal, 1, out=is_normal)
    np.subtract(is_normal, 1, out=excess.view(np.uint32))
    np.bitwise_and(excess.view(np.uint32), _SMALLEST_BITS, out=excess.view(np.uint32))
    np.left_shift(is_normal, 23, out=is_normal)
    np.subtract(bits, is_normal, out=bits)
    np.add(bits, _LEADING_ONE, out=bits)
    np.subtract(flat, excess, out=flat)
