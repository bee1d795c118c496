"""Storage shapes: known cases, the table of formulas over random shapes, unknown dims, and what has no layout."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ge.formats import (
    AXES,
    LITE_CUBES,
    SERVER_CUBES,
    CubeSizes,
    LayoutError,
    PackedFormat,
    RnnSizes,
    Transfer,
    expand_dims,
    storage_shape,
)
from ge.graph.tensor_desc import OpenDim, Shape
from ge.graph.types import DataType, Format
from ge.graph.types import DataType as T
from ge.graph.types import Format as F


def of(name: str) -> Format:
    return Format[f"FORMAT_{name}"]


def shown(shape, origin: str, layout: str, dtype: DataType = T.DT_FLOAT16, groups: int = 1, **more) -> list[int]:
    return list(storage_shape(shape, of(origin), of(layout), dtype, groups, **more))


# origin shape and format, layout, element type, storage shape
KNOWN = [
    ([8, 512, 5, 5], "NCHW", "NC1HWC0", T.DT_INT8, [8, 16, 5, 5, 32]),
    ([8, 512, 5, 5], "NCHW", "NC1HWC0", T.DT_FLOAT, [8, 32, 5, 5, 16]),
    ([8, 512, 5, 5], "NCHW", "NC1HWC0", T.DT_INT4, [8, 8, 5, 5, 64]),
    ([8, 512, 5, 5], "NCHW", "NC1HWC0", T.DT_UINT1, [8, 2, 5, 5, 256]),
    ([8, 512, 5, 5], "NCHW", "NC1HWC0_C04", T.DT_INT8, [8, 128, 5, 5, 4]),
    ([48, 512, 5, 5], "NCHW", "FRACTAL_Z", T.DT_FLOAT16, [800, 3, 16, 16]),
    ([48, 512, 5, 5], "NCHW", "FRACTAL_Z", T.DT_INT8, [400, 3, 16, 32]),
    ([48, 3, 5, 5], "NCHW", "FRACTAL_Z_C04", T.DT_FLOAT16, [7, 3, 16, 16]),
    ([48, 3, 5, 5], "NCHW", "FRACTAL_Z_C04", T.DT_INT8, [4, 3, 16, 32]),
    ([18, 512, 5, 5], "NCHW", "C1HWNCoC0", T.DT_INT8, [16, 5, 5, 2, 32, 32]),
    ([512, 1, 5, 5], "NCHW", "C1HWC0", T.DT_FLOAT16, [32, 5, 5, 16]),
    ([5, 6, 7, 8], "NCHW", "NHWC", T.DT_FLOAT, [5, 7, 8, 6]),
    ([5], "NCHW", "NHWC", T.DT_FLOAT, [5]),
    ([5, 5, 512, 8], "HWCN", "NC1HWC0", T.DT_INT8, [8, 16, 5, 5, 32]),
    ([4, 7, 7, 33], "NHWC", "NDC1HWC0", T.DT_FLOAT16, [4, 1, 3, 7, 7, 16]),
    ([48, 512, 3, 5, 5], "NCDHW", "FRACTAL_Z_3D", T.DT_FLOAT16, [2400, 3, 16, 16]),
    ([90, 512, 3, 5, 5], "NCDHW", "FRACTAL_Z_3D_TRANSPOSE", T.DT_FLOAT16, [450, 32, 16, 16]),
    ([34], "ND", "FRACTAL_NZ", T.DT_FLOAT16, [1, 3, 16, 16]),
    ([34, 1], "ND", "FRACTAL_NZ", T.DT_FLOAT16, [1, 3, 16, 16]),
    ([18, 34], "ND", "FRACTAL_NZ", T.DT_FLOAT, [3, 2, 16, 16]),
    ([1, 18, 34], "ND", "FRACTAL_NZ", T.DT_INT8, [1, 2, 2, 16, 32]),
    ([8, 1000], "NCHW", "FRACTAL_NZ_C0_32", T.DT_FLOAT16, [32, 1, 16, 32]),
    ([18, 34], "ND", "FRACTAL_Z", T.DT_INT8, [1, 3, 16, 32]),
    ([48, 80, 5, 5], "ND", "FRACTAL_ZN_LSTM", T.DT_FLOAT16, [6, 4, 16, 16]),
    ([3, 4, 5, 6], "ND", "NHWC", T.DT_FLOAT16, [3, 4, 5, 6]),
    ([-2], "ND", "NHWC", T.DT_FLOAT16, [-2]),
    ([8, 3, 224, 224], "NCHW", "NC1HWC0", T.DT_FLOAT16, [8, 1, 224, 224, 16]),
    ([64, 3, 7, 7], "NCHW", "FRACTAL_Z", T.DT_FLOAT16, [49, 4, 16, 16]),
    ([128, 1000], "ND", "FRACTAL_NZ", T.DT_FLOAT16, [63, 8, 16, 16]),
    ([2, 2, 17, 4], "ND", "FRACTAL_NZ", T.DT_FLOAT16, [2, 2, 1, 2, 16, 16]),
    ([16], "ND", "FRACTAL_NZ", T.DT_FLOAT16, [1, 1, 16, 16]),
    ([16], "ND", "FRACTAL_ZZ", T.DT_FLOAT16, [1, 1, 16, 16]),
    ([40], "ND", "FRACTAL_ZZ", T.DT_FLOAT16, [1, 3, 16, 16]),
    ([2, 33, 40], "ND", "FRACTAL_ZZ", T.DT_INT8, [2, 2, 2, 32, 32]),
    ([20, 3, 3, 40], "NHWC", "FRACTAL_Z_WINO", T.DT_FLOAT16, [3, 2, 2, 9, 8, 16]),
    ([4, 100, 200, 3], "NHWC", "NYUV_A", T.DT_UINT8, [4, 112, 256, 3]),
    ([8, 512, 5, 5], "ND", "NC1HWC0", T.DT_FLOAT16, [8, 32, 5, 5, 16]),
    ([8, 5, 5], "ND", "NC1HWC0", T.DT_FLOAT16, [8, 5, 5]),
    ([64], "NCHW", "NC1HWC0", T.DT_FLOAT16, [64]),
    ([2, 3, 4, 5], "NDHWC", "NDC1HWC0", T.DT_FLOAT16, [2, 3, 4, 5]),
    ([], "NCHW", "FRACTAL_NZ", T.DT_FLOAT16, []),
    ([7, 8], "NCHW", "ND", T.DT_FLOAT16, [7, 8]),
    ([0, 3, 4, 4], "NCHW", "NC1HWC0", T.DT_FLOAT16, [0, 1, 4, 4, 16]),
    ([2, 0, 4, 4], "NCHW", "NC1HWC0", T.DT_FLOAT16, [2, 0, 4, 4, 16]),
]


@pytest.mark.parametrize(("shape", "origin", "layout", "dtype", "expected"), KNOWN)
def test_known_shapes(shape: list[int], origin: str, layout: str, dtype: DataType, expected: list[int]) -> None:
    assert shown(shape, origin, layout, dtype) == expected


@pytest.mark.parametrize(
    ("shape", "dtype", "groups", "expected"),
    [
        ([48, 512, 5, 5], T.DT_INT8, 16, [6400, 3, 16, 32]),
        ([48, 512, 5, 5], T.DT_FLOAT16, 16, [12800, 3, 16, 16]),
        ([-1, 512, 5, 5], T.DT_FLOAT16, 16, [800, -1, 16, 16]),
        ([12, 512, 5, 5], T.DT_FLOAT16, 16, [800, 1, 16, 16]),  # fewer filters than groups: no groups
        ([64, 1, 3, 3], T.DT_FLOAT16, 64, [4 * 9, 1, 16, 16]),  # depthwise: 16 groups share a block
        ([48, 512, -1, 5], T.DT_FLOAT16, 16, [-1, 3, 16, 16]),
        ([48, -1, 5, 5], T.DT_FLOAT16, 16, [-1, -1, 16, 16]),  # the channels decide how many groups share a block
    ],
)
def test_filters_of_grouped_convolutions(shape, dtype, groups, expected) -> None:
    assert shown(shape, "NCHW", "FRACTAL_Z", dtype, groups) == expected
    packed = int(PackedFormat(F.FORMAT_FRACTAL_Z, groups))
    assert list(storage_shape(shape, F.FORMAT_NCHW, packed, dtype)) == expected


def test_expanded_bias() -> None:
    expanded = expand_dims([64], F.FORMAT_NCHW, F.FORMAT_NC1HWC0)
    assert shown(expanded, "NCHW", "NC1HWC0") == [1, 4, 1, 1, 16]


def test_rows_of_a_block_are_those_of_the_chip() -> None:
    one_row = CubeSizes(m0=1)
    assert shown([34], "ND", "FRACTAL_NZ", cubes=one_row) == [1, 34, 1, 16]
    assert shown([34, 20], "ND", "FRACTAL_NZ", cubes=LITE_CUBES) == [3, 34, 1, 8]


def test_packed_c0_goes_before_that_of_the_element_type() -> None:
    packed = int(PackedFormat(F.FORMAT_NC1HWC0, c0=8))
    assert list(storage_shape([1, 12, 2, 2], F.FORMAT_NCHW, packed, T.DT_FLOAT)) == [1, 2, 2, 2, 8]


@pytest.mark.parametrize(
    ("layout", "shape", "expected"),
    [
        ("FRACTAL_ZN_RNN", [70, 128], [5, 9, 16, 16]),
        ("FRACTAL_ZN_RNN", [40, 160], [3, 12, 16, 16]),
        ("FRACTAL_ZN_RNN", [30, 160], [2, 12, 16, 16]),
        ("FRACTAL_ZN_RNN", [2, 30, 160], [2, 2, 12, 16, 16]),
        ("FRACTAL_ZN_RNN", [31, 160], [31, 160]),  # the rows are none of the sizes
        ("FRACTAL_ZN_RNN", [128], [128]),
        ("FRACTAL_ZN_RNN", [-1, 160], [-1, 12, 16, 16]),
        ("FRACTAL_ZN_RNN", [40, -1], [3, -1, 16, 16]),
        ("ND_RNN_BIAS", [160], [192]),
        ("ND_RNN_BIAS", [2, 80], [2, 96]),
        ("ND_RNN_BIAS", [-1], [-1]),
    ],
)
def test_recurrent_weights(layout: str, shape: list[int], expected: list[int]) -> None:
    assert shown(shape, "ND", layout, rnn=RnnSizes(hidden_size=40, input_size=30)) == expected


def test_sizes_below_zero_fit_no_rows() -> None:
    sizes = RnnSizes(hidden_size=40, input_size=-5)
    assert shown([35, 160], "ND", "FRACTAL_ZN_RNN", rnn=sizes) == [35, 160]
    with pytest.raises(LayoutError, match="not that of weights"):
        Transfer.of(Shape((35, 160)), F.FORMAT_ND, F.FORMAT_FRACTAL_ZN_RNN, T.DT_FLOAT16, rnn=sizes)


def test_the_state_may_have_a_size_of_its_own() -> None:
    sizes = RnnSizes(hidden_size=40, input_size=30, state_size=20)
    assert shown([50, 160], "ND", "FRACTAL_ZN_RNN", rnn=sizes) == [2 + 2, 4 * 3, 16, 16]


# -- the table of formulas, with named extents ----------------------------------------------------------------------
def cd(a: int, b: int) -> int:
    return -(-a // b)


FORMULAS: dict[str, Callable[..., list[int]]] = {
    "NC1HWC0": lambda n, c, h, w, c0: [n, cd(c, c0), h, w, c0],
    "NC1HWC0_C04": lambda n, c, h, w, c0: [n, cd(c, 4), h, w, 4],
    "NDC1HWC0": lambda n, c, h, w, c0, d=1: [n, d, cd(c, c0), h, w, c0],
    "C1HWC0": lambda n, c, h, w, c0: [cd(n, c0), h, w, c0],
    "FRACTAL_Z": lambda n, c, h, w, c0: [cd(c, c0) * h * w, cd(n, 16), 16, c0],
    "FRACTAL_Z_3D": lambda n, c, h, w, c0, d: [d * cd(c, c0) * h * w, cd(n, 16), 16, c0],
    "FRACTAL_Z_3D_TRANSPOSE": lambda n, c, h, w, c0, d: [d * h * w * cd(n, 16), cd(c, c0), 16, c0],
    "FRACTAL_Z_WINO": lambda n, c, h, w, c0: [cd(c, c0), cd(n, 16), 2, h * w, 8, c0],
    "C1HWNCoC0": lambda n, c, h, w, c0: [cd(c, c0), h, w, cd(n, 16), c0, c0],
}
VOLUMES = {"NDC1HWC0", "FRACTAL_Z_3D", "FRACTAL_Z_3D_TRANSPOSE"}
DTYPES = [T.DT_FLOAT, T.DT_FLOAT16, T.DT_BF16, T.DT_BOOL, T.DT_INT8, T.DT_UINT8, T.DT_INT4, T.DT_INT32, T.DT_UINT1]
extents = st.fixed_dictionaries({axis: st.integers(0, 70) for axis in "NCDHW"})


@pytest.mark.parametrize("layout", FORMULAS)
@given(extents=extents, dtype=st.sampled_from(DTYPES), data=st.data())
def test_formulas(layout: str, extents: dict[str, int], dtype: DataType, data: st.DataObject) -> None:
    rank = 5 if layout in VOLUMES else 4
    origin = data.draw(st.sampled_from([f for f, axes in AXES.items() if len(axes) == rank]))
    shape = [extents[axis] for axis in AXES[origin]]
    named = {axis.lower(): extents[axis] for axis in AXES[origin]}
    expected = FORMULAS[layout](**named, c0=SERVER_CUBES.c0_of(dtype))
    assert list(storage_shape(shape, origin, of(layout), dtype)) == expected


@given(extents=extents, data=st.data())
def test_permutations_rename_the_axes(extents: dict[str, int], data: st.DataObject) -> None:
    origin = data.draw(st.sampled_from(list(AXES)))
    target = data.draw(st.sampled_from([f for f in AXES if len(AXES[f]) == len(AXES[origin])]))
    shape = [extents[axis] for axis in AXES[origin]]
    assert list(storage_shape(shape, origin, target, T.DT_INT64)) == [extents[axis] for axis in AXES[target]]


# -- unknown dims -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("shape", "origin", "layout", "expected"),
    [
        ([-1, 33, 5, 5], "NCHW", "FRACTAL_Z", [75, -1, 16, 16]),
        ([48, -1, 5, 5], "NCHW", "FRACTAL_Z", [-1, 3, 16, 16]),
        ([48, 33, -1, 5], "NCHW", "FRACTAL_Z", [-1, 3, 16, 16]),
        ([-1, -1, -1, -1], "NCHW", "NC1HWC0", [-1, -1, -1, -1, 16]),
        ([1, 3, -1, 224], "NCHW", "NC1HWC0", [1, 1, -1, 224, 16]),
        ([48, -1, 5, 5], "NCHW", "FRACTAL_Z_C04", [7, 3, 16, 16]),
        ([48, 3, 5, -1], "NCHW", "FRACTAL_Z_C04", [-1, 3, 16, 16]),
        ([-1, 20], "ND", "FRACTAL_NZ", [2, -1, 16, 16]),
        ([-1, 7, -1], "ND", "FRACTAL_NZ", [-1, -1, 1, 16, 16]),
        ([-1], "ND", "FRACTAL_NZ", [1, -1, 16, 16]),
        ([-1, 4, 3, -1, 5], "NCDHW", "FRACTAL_Z_3D_TRANSPOSE", [-1, 1, 16, 16]),
        ([8, -1, 3, 4, 5], "NCDHW", "FRACTAL_Z_3D_TRANSPOSE", [60, -1, 16, 16]),
        ([-1, 80, 5, 5], "ND", "FRACTAL_ZN_LSTM", [-1, -1, 16, 16]),
        ([4, -1, 200, 3], "NHWC", "NYUV_A", [4, -1, 256, 3]),
        ([2, -1, 7, 8], "NCHW", "NHWC", [2, 7, 8, -1]),
    ],
)
def test_what_depends_on_an_unknown_dim_is_unknown(shape, origin, layout, expected) -> None:
    assert shown(shape, origin, layout) == expected


@given(extents=extents, unknown=st.sets(st.sampled_from("NCDHW")), data=st.data())
def test_unknown_dims_agree_with_every_known_one(extents, unknown, data) -> None:
    """Wherever an open shape shows a number, the shape with numbers filled in shows the same."""
    layout = data.draw(st.sampled_from(sorted(FORMULAS)))
    groups = data.draw(st.sampled_from([1, 2, 4])) if layout in ("FRACTAL_Z", "FRACTAL_Z_3D") else 1
    axes = "NCDHW" if layout in VOLUMES else "NCHW"
    known = shown([extents[a] for a in axes], axes, layout, groups=groups)
    shape = [-1 if a in unknown else extents[a] for a in axes]
    if groups > 1 and "N" in unknown:
        return  # groups are ignored where the filters are not counted yet
    open_shape = shown(shape, axes, layout, groups=groups)
    assert all(open_dim in (-1, dim) for open_dim, dim in zip(open_shape, known, strict=True))


@pytest.mark.parametrize("layout", ["NC1HWC0", "FRACTAL_NZ", "FRACTAL_Z", "FRACTAL_ZN_RNN", "NHWC"])
def test_an_unknown_rank_stays(layout: str) -> None:
    assert shown([-2], "NCHW", layout) == [-2]


def test_an_open_dim_that_stays_whole_keeps_its_name() -> None:
    [batch, blocks, *_] = storage_shape([OpenDim("b"), OpenDim("c"), 4, 4], F.FORMAT_NCHW, F.FORMAT_NC1HWC0, T.DT_FLOAT)
    assert isinstance(batch, OpenDim)
    assert batch.name == "b"
    assert not isinstance(blocks, OpenDim)


# -- what has no layout ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("shape", "origin", "layout", "fault"),
    [
        ([3, 4], "NCHW", "RESERVED", "RESERVED is no layout"),
        ([3, 4], "RESERVED", "NC1HWC0", "RESERVED is no layout"),
        ([1, 2, 3, 4, 5], "NCHW", "NC1HWC0", r"shape \[1,2,3,4,5\] has 5 dims; NCHW is laid out with 4"),
        ([1, 2, 3, 4, 5], "ND", "NC1HWC0", "ND is laid out with 4"),
        ([1, 2, 3, 4, 5], "NCDHW", "NC1HWC0", "NC1HWC0 is made from N, C, H and W; NCDHW has N, C, D, H, W"),
        ([1, 2, 3, 4], "NCHW", "FRACTAL_Z_3D", "FRACTAL_Z_3D is made from N, C, D, H and W; NCHW has N, C, H, W"),
        ([1, 2, 3, 4], "NC1HWC0", "FRACTAL_Z", "NC1HWC0 does not have"),
        ([8, 5, 3, 3], "NCHW", "FRACTAL_Z_C04", "at most 4 channels, not 5"),
        ([1, 2, 3, 4], "NCHW", "FRACTAL_Z_G", "no storage shape is known for FRACTAL_Z_G"),
    ],
)
def test_layouts_that_do_not_exist(shape: list[int], origin: str, layout: str, fault: str) -> None:
    with pytest.raises(LayoutError, match=fault):
        shown(shape, origin, layout)


@pytest.mark.parametrize("dtype", [T.DT_UNDEFINED, T.DT_MAX])
def test_types_without_a_layout(dtype: DataType) -> None:
    with pytest.raises(LayoutError, match=dtype.name):
        shown([8, 512, 5, 5], "NCHW", "NC1HWC0", dtype)


@pytest.mark.parametrize("groups", [-1, 65536])
def test_groups_out_of_range(groups: int) -> None:
    with pytest.raises(LayoutError, match=str(groups)):
        shown([8, 512, 5, 5], "NCHW", "FRACTAL_Z", groups=groups)


def test_hidden_size_must_be_positive() -> None:
    with pytest.raises(LayoutError, match="hidden_size above 0, not 0"):
        shown([30, 160], "ND", "ND_RNN_BIAS", rnn=RnnSizes(hidden_size=0))
