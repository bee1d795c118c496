"""Inputs for runs without data: zeros, or random values that are typed, finite and the same on every run."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from atc.input_files import Array, Tensor

SEED = 20240601


def zero_inputs(inputs: Sequence[Tensor]) -> list[Array]:
    """Return zeros of each input's dtype and shape; empty texts where it takes texts."""
    return [np.full(tuple(t.shape), "" if t.datatype.hasobject else 0, t.datatype) for t in inputs]


def random_inputs(inputs: Sequence[Tensor], seed: int = SEED) -> list[Array]:
    """Return seeded random values of each input's dtype and shape.

    Floating point and complex parts lie in [0, 1), 8-bit integers take their whole range, bool both values. Wider
    integers are 0 or 1: they are mostly indices, lengths and masks, for which larger values could be out of range.
    Texts are numbers.
    """
    generator = np.random.default_rng(seed)
    return [_random(tensor, generator) for tensor in inputs]


def _random(tensor: Tensor, generator: np.random.Generator) -> Array:
    shape, dtype = tuple(tensor.shape), tensor.datatype
    if dtype.hasobject:
        return generator.integers(0, 1000, shape).astype("U").astype(object)
    if dtype.kind == "b":
        return generator.integers(0, 2, shape).astype(bool)
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        low, high = (limits.min, limits.max) if dtype.itemsize == 1 else (0, 1)
        return generator.integers(low, high, shape, dtype, endpoint=True)
    if dtype.kind == "c":
        return (generator.random(shape) + 1j * generator.random(shape)).astype(dtype)
    # narrow types round values just below 1 up to 1, which is as good
    return generator.random(shape).astype(dtype)
