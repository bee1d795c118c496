"""Format integers: what is packed comes out again; what is none is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ge.formats import LayoutError, PackedFormat, primary_format
from ge.graph.types import Format

LAYOUTS = [f for f in Format if f < Format.FORMAT_END]


@pytest.mark.parametrize(("c0", "code"), [(16, 5), (32, 6), (8, 4), (4, 3), (64, 7), (256, 9), (1, 1), (0, 0)])
def test_code_of_c0(c0: int, code: int) -> None:
    assert int(PackedFormat(Format.FORMAT_NC1HWC0, c0=c0)) == 3 | code << 24


def test_fields_lie_where_the_bits_say() -> None:
    packed = PackedFormat(Format.FORMAT_FRACTAL_Z, groups=0x1234, c0=16)
    assert int(packed) == 4 | 0x1234 << 8 | 5 << 24
    assert str(packed) == "FRACTAL_Z (groups 4660, C0 16)"


@given(st.sampled_from(LAYOUTS), st.integers(0, 65535), st.sampled_from([0, *(1 << k for k in range(15))]))
def test_packing_is_reversible(layout: Format, groups: int, c0: int) -> None:
    packed = PackedFormat(layout, groups, c0)
    assert PackedFormat.unpack(int(packed)) == packed
    assert primary_format(int(packed)) is layout


def test_a_plain_format_is_a_packed_one_without_extras() -> None:
    for layout in LAYOUTS:
        assert PackedFormat.unpack(layout) == PackedFormat(layout)
        assert int(PackedFormat(layout)) == layout


@pytest.mark.parametrize("number", [-1, 52, 53, 0xFF, 1 << 28, -(1 << 40), 1 << 64])
def test_numbers_that_are_no_format(number: int) -> None:
    with pytest.raises(LayoutError, match="no format"):
        PackedFormat.unpack(number)


@pytest.mark.parametrize(("fields", "fault"), [({"groups": 65536}, "65536"), ({"groups": -1}, "-1"), ({"c0": 9}, "9")])
def test_fields_that_do_not_fit(fields: dict[str, int], fault: str) -> None:
    with pytest.raises(LayoutError, match=fault):
        PackedFormat(Format.FORMAT_FRACTAL_Z, **fields)
    with pytest.raises(LayoutError, match="32768"):
        PackedFormat(Format.FORMAT_FRACTAL_Z, c0=1 << 15)
