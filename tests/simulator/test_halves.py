"""float16 and back: the bits that numpy's own conversion gives."""

from __future__ import annotations

import numpy as np
import pytest

from simulator.kernels.halves import BLOCK, SHORT, convert

ALL_HALVES = np.arange(1 << 16, dtype=np.uint16).view(np.float16)


def rounded(x: np.ndarray) -> np.ndarray:
    found = np.empty(x.shape, np.float16)
    convert(found, x)
    return found


def check_rounding(x: np.ndarray) -> None:
    with np.errstate(all="ignore"):
        expected = x.astype(np.float16)
        found = rounded(x)
    is_number = ~np.isnan(x)
    np.testing.assert_array_equal(np.isnan(found), ~is_number)
    np.testing.assert_array_equal(found.view(np.uint16)[is_number], expected.view(np.uint16)[is_number])


def test_every_half_is_widened_exactly() -> None:
    found = np.empty(ALL_HALVES.shape, np.float32)
    for part in (ALL_HALVES, ALL_HALVES[np.isfinite(ALL_HALVES)]):  # with infinity and NaN, and without
        found = np.empty(part.shape, np.float32)
        convert(found, part)
        np.testing.assert_array_equal(found.view(np.uint32), part.astype(np.float32).view(np.uint32))


def test_every_half_its_neighbours_and_every_tie_are_rounded() -> None:
    with np.errstate(all="ignore"):
        x = ALL_HALVES[np.isfinite(ALL_HALVES)].astype(np.float32)
        ties = x + (np.spacing(ALL_HALVES[np.isfinite(ALL_HALVES)]).astype(np.float32) / 2)
    cases = [f for base in (x, ties) for f in (base, np.nextafter(base, np.inf), np.nextafter(base, -np.inf))]
    check_rounding(np.concatenate([f.astype(np.float32) for f in cases]))


@pytest.mark.parametrize("has_nan", [True, False])
@pytest.mark.parametrize("share_of_zeros", [0, 0.5, 1])
def test_any_bits_are_rounded(share_of_zeros: float, has_nan: bool) -> None:
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 1 << 32, 1 << 20, dtype=np.uint64).astype(np.uint32)
    x = bits.view(np.float32)
    x[rng.random(x.shape) < share_of_zeros] = 0
    check_rounding(x if has_nan else np.nan_to_num(x, nan=1e-6))


def test_limits_are_rounded() -> None:
    limits = np.array(
        [0.0, 65504, 65519.996, 65520, 65536, 1e38, np.inf, np.nan, 2**-24, 2**-25, 2**-26, 1e-45], np.float32
    )
    check_rounding(np.tile(np.concatenate([limits, -limits]), SHORT))


@pytest.mark.parametrize("shape", [(SHORT + 1,), (BLOCK + 7,), (3, BLOCK // 2 + 1), (70, 3, 200), (2, 3 * BLOCK)])
def test_parts_of_arrays(shape: tuple[int, ...]) -> None:
    """Neither side need be contiguous."""
    rng = np.random.default_rng(1)
    whole = rng.standard_normal([dim + 2 for dim in shape]).astype(np.float32)
    inside = tuple(slice(1, dim + 1) for dim in shape)
    target = np.zeros([dim + 3 for dim in shape], np.float16)
    convert(target[inside], whole[inside])
    np.testing.assert_array_equal(target[inside], whole[inside].astype(np.float16))
    back = np.zeros(whole.shape, np.float32)
    convert(back[inside], target[inside])
    np.testing.assert_array_equal(back[inside], target[inside].astype(np.float32))
    assert np.count_nonzero(back) == np.count_nonzero(back[inside])


@pytest.mark.parametrize(
    ("before", "after"), [(np.float64, np.float16), (np.float32, np.int8), (np.float16, np.float16)]
)
def test_other_types_are_numpys(before: type, after: type) -> None:
    x = np.linspace(-100, 100, 2 * SHORT).astype(before)
    found = np.empty(x.shape, after)
    convert(found, x)
    np.testing.assert_array_equal(found, x.astype(after))
