"""C0 and M0 by element type, chip and format."""

from __future__ import annotations

import pytest

from ge.formats import LITE_CUBES, SERVER_CUBES, CubeSizes, PackedFormat, cube_sizes
from ge.graph.types import DataType as T
from ge.graph.types import Format as F


@pytest.mark.parametrize(
    ("dtype", "server", "lite"),
    [
        (T.DT_FLOAT16, 16, 8),
        (T.DT_BF16, 16, 8),
        (T.DT_BOOL, 16, 8),
        (T.DT_FLOAT, 16, 16),
        (T.DT_INT32, 16, 16),
        (T.DT_INT64, 16, 16),
        (T.DT_DOUBLE, 16, 8),
        (T.DT_INT8, 32, 16),
        (T.DT_UINT8, 32, 16),
        (T.DT_INT4, 64, 32),
        (T.DT_INT2, 128, 64),
        (T.DT_UINT2, 128, 64),
        (T.DT_UINT1, 256, 128),
    ],
)
def test_c0_by_element_type(dtype: T, server: int, lite: int) -> None:
    assert SERVER_CUBES.c0_of(dtype) == server
    assert LITE_CUBES.c0_of(dtype) == lite
    assert CubeSizes().c0_of(dtype) == 16


@pytest.mark.parametrize(
    ("format", "dtype", "c0"),
    [
        (F.FORMAT_NC1HWC0, T.DT_INT8, 32),
        (F.FORMAT_NC1HWC0_C04, T.DT_INT8, 4),
        (int(PackedFormat(F.FORMAT_NC1HWC0_C04, c0=16)), T.DT_INT8, 4),
        (F.FORMAT_FRACTAL_NZ_C0_16, T.DT_INT8, 16),
        (F.FORMAT_FRACTAL_NZ_C0_32, T.DT_FLOAT16, 32),
        (int(PackedFormat(F.FORMAT_NC1HWC0, c0=8)), T.DT_FLOAT, 8),
        (int(PackedFormat(F.FORMAT_FRACTAL_Z, groups=4)), T.DT_FLOAT, 16),
    ],
)
def test_layout_goes_before_packed_c0_before_element_type(format: int, dtype: T, c0: int) -> None:
    assert SERVER_CUBES.block_length(format, dtype) == c0


@pytest.mark.parametrize(
    ("soc", "m0"), [("Ascend310", 16), ("Ascend310P3", 16), ("Ascend910A", 16), ("Ascend910B1", 16), ("Ascend035", 1)]
)
def test_rows_of_a_block_by_chip(soc: str, m0: int) -> None:
    assert cube_sizes(soc).m0 == m0
