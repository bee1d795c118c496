"""Expansion of small shapes to the full rank of their format."""

from __future__ import annotations

from itertools import combinations

import pytest

from ge.formats import AXES, FORBIDDEN, LayoutError, expand_by_mask, expand_dims, full_rank, reshape_mask
from ge.graph.tensor_desc import OpenDim
from ge.graph.types import Format
from ge.graph.types import Format as F

FIVE = F.FORMAT_NC1HWC0

# origin format, reshape type, shape, expanded
CASES = [
    ("NCHW", "", [], [1, 1, 1, 1]),
    ("NCHW", "", [5], [1, 5, 1, 1]),
    ("NHWC", "", [5], [1, 1, 1, 5]),
    ("HWCN", "", [5], [1, 1, 5, 1]),
    ("CHWN", "", [5], [5, 1, 1, 1]),
    ("NDHWC", "", [5], [1, 1, 1, 1, 5]),
    ("NCDHW", "", [5], [1, 5, 1, 1, 1]),
    ("DHWCN", "", [5], [1, 1, 1, 5, 1]),
    ("DHWNC", "", [5], [1, 1, 1, 1, 5]),
    ("NCHW", "", [5, 6], [1, 5, 6, 1]),
    ("NHWC", "CN", [5, 6], [1, 5, 6, 1]),
    ("HWCN", "NH", [5, 6], [1, 1, 5, 6]),
    ("CHWN", "XY", [5, 6], [1, 1, 5, 6]),
    ("NDHWC", "", [5, 6], [1, 1, 1, 5, 6]),
    ("NCDHW", "", [5, 6], [1, 1, 1, 5, 6]),
    ("DHWCN", "", [5, 6], [1, 1, 1, 5, 6]),
    ("DHWNC", "", [5, 6], [1, 1, 1, 5, 6]),
    ("NCHW", "WHN", [5, 6, 7], [1, 5, 6, 7]),
    ("NHWC", "", [5, 6, 7], [1, 5, 6, 7]),
    ("HWCN", "", [5, 6, 7], [1, 5, 6, 7]),
    ("CHWN", "", [5, 6, 7], [1, 5, 6, 7]),
    ("NCDHW", "", [5, 6, 7], [1, 1, 5, 6, 7]),
    ("NDHWC", "", [5, 6, 7], [1, 1, 5, 6, 7]),
    ("DHWCN", "", [5, 6, 7, 8], [1, 5, 6, 7, 8]),
    ("NCDHW", "", [5, 6, 7, 8], [1, 5, 6, 7, 8]),
    ("NDHWC", "ND", [6, 5], [6, 5, 1, 1, 1]),
    ("NCDHW", "CW", [6, 5], [1, 6, 1, 1, 5]),
    ("DHWNC", "WNC", [7, 6, 5], [1, 1, 7, 6, 5]),
    ("NCHW", "NHW", [5, 6], [5, 1, 6, 1]),
    ("NCHW", "", [-1], [1, -1, 1, 1]),
    # kept as they are
    ("NCHW", FORBIDDEN, [8, 9], [8, 9]),
    ("NCHW", "C", [5, 6], [5, 6]),
    ("NCHW", "NC", [5, 6, 7, 8], [5, 6, 7, 8]),
    ("NCDHW", "", [4, 5, 6, 7, 8, 9], [4, 5, 6, 7, 8, 9]),
    ("NCHW", "", [-2], [-2]),
    ("ND", "", [8, 9], [8, 9]),
    ("ND", "NC", [8, 9], [8, 9]),
    ("FRACTAL_NZ", "", [8], [8]),
    ("NCL", "C", [8], [8]),
]


def of(name: str) -> Format:
    return Format[f"FORMAT_{name}"]


@pytest.mark.parametrize(("origin", "kept", "shape", "expanded"), CASES)
def test_expansion(origin: str, kept: str, shape: list[int], expanded: list[int]) -> None:
    assert expand_dims(shape, of(origin), FIVE, kept) == expanded
    if shape != [-2]:
        assert expand_by_mask(shape, reshape_mask(len(shape), of(origin), FIVE, kept)) == expanded


@pytest.mark.parametrize("target", ["FRACTAL_NZ", "FRACTAL_NZ_C0_16", "FRACTAL_NZ_C0_32"])
def test_matrix_layouts_take_any_rank(target: str) -> None:
    assert expand_dims([8, 9], F.FORMAT_NCHW, of(target), "HW") == [8, 9]
    assert reshape_mask(2, F.FORMAT_NCHW, of(target), "HW") == 0


def test_a_matrix_of_no_named_axes_stays_one_in_fractal_z() -> None:
    assert expand_dims([], F.FORMAT_ND, F.FORMAT_FRACTAL_Z) == []
    assert expand_dims([], F.FORMAT_ND, FIVE) == [1, 1, 1, 1]
    assert reshape_mask(0, F.FORMAT_ND, F.FORMAT_FRACTAL_Z) == 0


@pytest.mark.parametrize("target", ["ND", "ND_RNN_BIAS", "FRACTAL_ZN_RNN"])
def test_targets_that_have_no_mask(target: str) -> None:
    assert reshape_mask(2, F.FORMAT_NCHW, of(target), "HW") == 0


@pytest.mark.parametrize("origin", AXES)
def test_every_ordered_choice_of_axes(origin: Format) -> None:
    """The mask has a bit for every axis left out; the dims stand at the axes kept."""
    axes = AXES[origin]
    for rank in range(1, len(axes)):
        for kept in combinations(axes, rank):
            mask = reshape_mask(rank, origin, FIVE, "".join(kept))
            assert mask >> 56 == full_rank(origin) == len(axes)
            assert [bool(mask >> i & 1) for i in range(len(axes))] == [axis not in kept for axis in axes]
            dims = list(range(2, 2 + rank))
            expanded = dict(zip(axes, expand_dims(dims, origin, FIVE, "".join(kept)), strict=True))
            assert [expanded[axis] for axis in kept] == dims
            assert sum(dim == 1 for dim in expanded.values()) == len(axes) - rank


def test_mask_of_a_vector() -> None:
    assert reshape_mask(1, F.FORMAT_NCHW, FIVE) == 0b1101 | 4 << 56


def test_a_mask_for_another_rank_is_refused() -> None:
    with pytest.raises(LayoutError, match=r"inserts 3 of 4 dims; shape \[5,6\] has 2"):
        expand_by_mask([5, 6], reshape_mask(1, F.FORMAT_NCHW, FIVE))
    assert expand_by_mask([5, 6], 0) == [5, 6]


def test_an_open_dim_keeps_its_name() -> None:
    [_, dim, _, _] = expand_dims([OpenDim("batch")], F.FORMAT_NCHW, FIVE)
    assert dim.name == "batch"
