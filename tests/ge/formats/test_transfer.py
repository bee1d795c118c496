"""Transfers between layouts, held to index formulas applied element by element."""

from __future__ import annotations

import gc
import tracemalloc
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ge.formats import (
    AXES,
    LAYOUT_PAIRS,
    Blocking,
    CubeSizes,
    LayoutError,
    PackedFormat,
    RnnSizes,
    Transfer,
    can_transfer,
    index_map,
    is_private,
    is_shown_as_stored,
    transfer,
)
from ge.graph.tensor_desc import Shape
from ge.graph.types import FORMAT_TEXT, DataType, Format, data_type_of
from ge.graph.types import Format as F
from tests.ge.formats.index_formulas import lay_out

Array = np.ndarray[Any, np.dtype[Any]]
Dims = tuple[int, ...]
Pair = tuple[Format, Format]
DTYPES = {
    "bool": np.bool_,
    "int8": np.int8,
    "fp16": np.float16,
    "fp32": np.float32,
    "bf16": ml_dtypes.bfloat16,
    "int4": ml_dtypes.int4,
    "int64": np.int64,
    "complex128": np.complex128,
}
BY_C0 = {16: (np.float16, np.float32, np.bool_, ml_dtypes.bfloat16), 32: (np.int8,), 64: (ml_dtypes.int4,)}
STORED_PAIRS = sorted((a, b) for a, b in LAYOUT_PAIRS if is_private(b))
PERMUTED_PAIRS = sorted((a, b) for a, b in LAYOUT_PAIRS if not is_private(a) and not is_private(b))
CHANNELS = (1, 15, 16, 17, 33)


def pair_name(pair: Pair) -> str:
    return f"{FORMAT_TEXT[pair[0]]}-{FORMAT_TEXT[pair[1]]}"


def bits(array: Array) -> Array:
    return array.view(np.uint8).reshape(*array.shape, array.itemsize)


def filled(rng: np.random.Generator, shape: tuple[int, ...], dtype: Any) -> Array:
    """Elements of which none is zero, so that a lost one is seen."""
    if np.dtype(dtype) == np.bool_:
        return np.ones(shape, np.bool_)
    low, high = (-8, 8) if np.dtype(dtype) == ml_dtypes.int4 else (-100, 100)
    values = rng.integers(low, high, shape)
    return np.where(values == 0, 3, values).astype(dtype)


def poisoned(shape: tuple[int, ...], dtype: Any) -> Array:
    """Memory that nobody has cleared: NaN for floats, ones otherwise."""
    is_float = dtype is not ml_dtypes.int4 and np.dtype(dtype).kind in "fcV"
    return np.full(shape, np.nan if is_float else 1, dtype)


def origin_shape(rng: np.random.Generator, origin: Format, layout: Format, channels: int, filters: int) -> Dims:
    if layout == F.FORMAT_ND_RNN_BIAS:
        return (2, 4 * channels)
    if layout == F.FORMAT_FRACTAL_ZN_RNN:
        return (int(rng.choice([channels, filters, channels + filters])), 3 * channels)
    if origin == F.FORMAT_ND:
        rank = 2 if layout == F.FORMAT_FRACTAL_Z else int(rng.integers(1, 5))
        return tuple(int(d) for d in (*rng.integers(1, 4, 2), filters, channels)[-rank:])
    if layout == F.FORMAT_FRACTAL_Z_C04:
        channels = min(channels, 4)
    named = {"N": filters, "C": channels, **{axis: int(rng.integers(1, 4)) for axis in "DHW"}}
    return tuple(named[axis] for axis in AXES[origin])


class Places:
    """What the oracle says of a shape in a layout: per storage position the number of its element, 0 for padding."""

    def __init__(
        self, shape: Dims, origin: Format, layout: Format, c0: int, groups: int = 1, rnn: tuple[int, int] = (1, 1)
    ) -> None:
        name = FORMAT_TEXT[layout] + (" of a matrix" if layout == F.FORMAT_FRACTAL_Z and len(shape) == 2 else "")
        numbers = np.arange(1, np.prod(shape, dtype=int) + 1).reshape(shape)
        self.numbers = lay_out(numbers, FORMAT_TEXT[origin], name, c0, 16, groups, rnn)
        self.origin, self.layout, self.groups, self.sizes = origin, layout, groups, RnnSizes(*rnn)

    def check(self, source: Array) -> None:
        """Hold what is written to the oracle; read it back with poisoned padding."""
        plan = Transfer.of(
            Shape(source.shape), self.origin, self.layout, data_type_of(source.dtype), self.groups, rnn=self.sizes
        )
        expected = np.concatenate([np.zeros(1, source.dtype), source.ravel()])[self.numbers]
        stored = poisoned(plan.target_shape, source.dtype.type)
        plan.run(source, stored)
        assert stored.size == expected.size
        assert np.array_equal(bits(stored), bits(expected.reshape(stored.shape)))
        assert plan.map.padding_is_zero(stored)

        stored[self.numbers.reshape(stored.shape) == 0] = poisoned((), source.dtype.type)
        back = poisoned(source.shape, source.dtype.type)
        transfer(stored, back, self.layout, self.origin, self.groups, rnn=self.sizes)
        assert np.array_equal(bits(back), bits(source))
        if expected.size > source.size:
            assert not plan.map.padding_is_zero(stored)
        plan.map.clear_padding(stored)
        assert np.array_equal(bits(stored), bits(expected.reshape(stored.shape)))


@pytest.mark.parametrize("channels", CHANNELS)
@pytest.mark.parametrize("pair", STORED_PAIRS, ids=pair_name)
def test_every_layout_against_the_formulas(pair: Pair, channels: int, rng: np.random.Generator) -> None:
    origin, layout = pair
    for filters in rng.choice([1, 5, 16, 20], 2, replace=False).tolist():
        shape, rnn = origin_shape(rng, origin, layout, channels, filters), (channels, filters)
        for c0, dtypes in BY_C0.items():
            if layout == F.FORMAT_FRACTAL_ZN_RNN and c0 != 16:
                continue  # refused, see below
            places = Places(shape, origin, layout, c0, rnn=rnn)
            for dtype in dtypes:
                places.check(filled(rng, shape, dtype))


@pytest.mark.parametrize("groups", [1, 2, 3, 4, 5, 7, 8, 12, 16, 24, 31, 32, 33, 64])
@pytest.mark.parametrize("layout", [F.FORMAT_FRACTAL_Z, F.FORMAT_FRACTAL_Z_3D], ids=FORMAT_TEXT.get)
def test_filters_of_grouped_convolutions(layout: Format, groups: int, rng: np.random.Generator) -> None:
    """Small groups share blocks, each at its place on the diagonal."""
    for channels, per_group in ((1, 1), (1, 2), (3, 4), (15, 1), (16, 3), (17, 2), (33, 1)):
        for origin in rng.choice([a for a, b in STORED_PAIRS if b == layout and a in AXES], 2, replace=False).tolist():
            shape = origin_shape(rng, Format(origin), layout, channels, groups * per_group)
            for c0, dtype in ((16, np.float16), (32, np.int8)):
                Places(shape, Format(origin), layout, c0, groups).check(filled(rng, shape, dtype))


def test_groups_are_ignored_where_there_are_fewer_filters(rng: np.random.Generator) -> None:
    shape = (3, 4, 2, 2)
    Places(shape, F.FORMAT_NCHW, F.FORMAT_FRACTAL_Z, 16, groups=8).check(filled(rng, shape, np.float32))


@pytest.mark.parametrize("pair", PERMUTED_PAIRS, ids=pair_name)
def test_permutations(pair: Pair, rng: np.random.Generator) -> None:
    source_format, target_format = pair
    shape = tuple(int(d) for d in rng.integers(1, 6, len(AXES[source_format])))
    for dtype in DTYPES.values():
        source = filled(rng, shape, dtype)
        order = [AXES[source_format].index(axis) for axis in AXES[target_format]]
        target = poisoned(tuple(shape[axis] for axis in order), dtype)
        transfer(source, target, source_format, target_format)
        assert np.array_equal(bits(target), bits(np.ascontiguousarray(source.transpose(order))))


small = st.integers(0, 20)
triple = st.tuples(*[st.integers(0, 3)] * 3)


@settings(max_examples=200)
@given(
    pair=st.sampled_from(STORED_PAIRS),
    n=small,
    c=st.integers(0, 40),
    hw=st.tuples(*[st.integers(0, 3)] * 3),
    data=st.data(),
)
def test_any_shape(pair: Pair, n: int, c: int, hw: Dims, data: st.DataObject) -> None:
    """Empty tensors too: nothing is copied, what is left is padding."""
    origin, layout = pair
    if layout in (F.FORMAT_FRACTAL_ZN_RNN, F.FORMAT_ND_RNN_BIAS):
        shape: Dims = (max(n, 1), 2 * max(n, 1))[-2 if layout == F.FORMAT_FRACTAL_ZN_RNN else -1 :]
    elif origin == F.FORMAT_ND:
        shape = (n, c) if layout == F.FORMAT_FRACTAL_Z else (*hw, n, c)[data.draw(st.integers(0, 4)) :]
    else:
        named = {"N": n, "C": min(c, 4) if layout == F.FORMAT_FRACTAL_Z_C04 else c, **dict(zip("DHW", hw, strict=True))}
        shape = tuple(named[axis] for axis in AXES[origin])
    rng = np.random.default_rng(n * 41 + c)
    Places(shape, origin, layout, 16, rnn=(max(n, 1), max(n, 1))).check(filled(rng, shape, np.float16))


@pytest.mark.parametrize("pair", STORED_PAIRS, ids=pair_name)
@pytest.mark.parametrize("empty", range(5))
def test_empty_tensors_leave_padding_only(pair: Pair, empty: int) -> None:
    origin, layout = pair
    if layout in (F.FORMAT_FRACTAL_ZN_RNN, F.FORMAT_ND_RNN_BIAS):
        shape: Dims = (1, 0)
    else:
        dims = [2, 3, 2, 3, 2][: len(AXES[origin]) if origin in AXES else 2]
        shape = tuple(0 if axis == empty % len(dims) else dim for axis, dim in enumerate(dims))
    Places(shape, origin, layout, 16).check(np.zeros(shape, np.float16))


@pytest.mark.parametrize("shape", [(2, 35, 100, 120), (1, 4, 3, 70000), (1, 70000, 2, 2), (300, 16, 2, 70)])
def test_large_tensors(shape: Dims, rng: np.random.Generator) -> None:
    """What is copied in several turns, against numpy's own padding and transposition."""
    n, c, h, w = shape
    source = filled(rng, shape, np.float32)
    blocks = -(-c // 16)
    padded = np.pad(source, ((0, 0), (0, blocks * 16 - c), (0, 0), (0, 0)))
    expected = padded.reshape(n, blocks, 16, h, w).transpose(0, 1, 3, 4, 2)
    target, back = poisoned(expected.shape, np.float32), poisoned(shape, np.float32)
    transfer(source, target, F.FORMAT_NCHW, F.FORMAT_NC1HWC0)
    transfer(target, back, F.FORMAT_NC1HWC0, F.FORMAT_NCHW)
    assert np.array_equal(target, expected)
    assert np.array_equal(back, source)


# -- cases known from elsewhere ----------------------------------------------------------------------------------------
def test_two_filters_in_two_groups() -> None:
    source = np.array([19, 88], np.float16).reshape(1, 1, 1, 2)
    target = poisoned((1, 1, 16, 16), np.float16)
    transfer(source, target, F.FORMAT_HWCN, F.FORMAT_FRACTAL_Z, groups=2)
    expected = np.zeros(256, np.float16)
    expected[[0, 17]] = 19, 88
    assert np.array_equal(target.ravel(), expected)


def test_the_second_group_fills_lanes_of_its_own(rng: np.random.Generator) -> None:
    source = filled(rng, (3, 3, 4, 8), np.float16)
    target = poisoned((9, 1, 16, 16), np.float16)
    transfer(source, target, F.FORMAT_HWCN, F.FORMAT_FRACTAL_Z, groups=2)
    rows = target.reshape(3, 3, 16, 16)
    assert np.array_equal(rows[:, :, :4, :4], source[..., :4].swapaxes(2, 3))
    assert np.array_equal(rows[:, :, 4:8, 4:8], source[..., 4:].swapaxes(2, 3))
    assert np.count_nonzero(target) == source.size


def test_the_first_filter_of_a_network() -> None:
    """[64,3,7,7] in fp16: 50176 elements, as large as a file of 100352 bytes."""
    plan = Transfer.of(Shape((64, 3, 7, 7)), F.FORMAT_NCHW, F.FORMAT_FRACTAL_Z, DataType.DT_FLOAT16)
    assert plan.target_shape == (49, 4, 16, 16)
    assert np.zeros(plan.target_shape, np.float16).nbytes == 100352


def test_a_vector_is_a_row() -> None:
    source = np.arange(1, 17, dtype=np.float16)
    target = poisoned((1, 1, 16, 16), np.float16)
    transfer(source, target, F.FORMAT_ND, F.FORMAT_FRACTAL_NZ)
    assert np.array_equal(target[0, 0], np.pad(source[None], ((0, 15), (0, 0))))


def test_rows_of_a_block_are_those_of_the_chip(rng: np.random.Generator) -> None:
    cubes = CubeSizes(m0=1)
    source = filled(rng, (3, 20), np.float16)
    target = poisoned((2, 3, 1, 16), np.float16)
    transfer(source, target, F.FORMAT_ND, F.FORMAT_FRACTAL_NZ, cubes=cubes)
    assert np.array_equal(target, lay_out(source, "ND", "FRACTAL_NZ", 16, 1))


def test_packed_format_gives_groups_and_c0(rng: np.random.Generator) -> None:
    source = filled(rng, (8, 3, 2, 2), np.float32)
    target = poisoned((4, 1, 16, 8), np.float32)
    packed = int(PackedFormat(F.FORMAT_FRACTAL_Z, groups=2, c0=8))
    transfer(source, target, F.FORMAT_NCHW, packed)
    assert np.array_equal(target.ravel(), lay_out(source, "NCHW", "FRACTAL_Z", 8, 16, 2).ravel())
    back = poisoned(source.shape, np.float32)
    transfer(target, back, packed, F.FORMAT_NCHW)
    assert np.array_equal(back, source)


def test_signs_of_zero_and_payloads_of_nan_survive() -> None:
    source = np.array([0x8000, 0x7E01, 0xFE02, 0x7C00], np.uint16).view(np.float16).reshape(1, 4, 1, 1)
    target, back = poisoned((1, 1, 1, 1, 16), np.float16), np.zeros_like(source)
    transfer(source, target, F.FORMAT_NCHW, F.FORMAT_NC1HWC0)
    transfer(target, back, F.FORMAT_NC1HWC0, F.FORMAT_NCHW)
    assert np.array_equal(bits(back), bits(source))
    assert not bits(target[..., 4:]).any()


# -- bytes that do not fit the shape that is shown ---------------------------------------------------------------------
@pytest.mark.parametrize(
    ("shape", "origin", "layout", "dtype", "is_same"),
    [
        ((3, 3, 40, 1), "HWCN", "C1HWNCoC0", "DT_FLOAT16", True),
        ((3, 3, 40, 2), "HWCN", "C1HWNCoC0", "DT_FLOAT16", False),
        ((2, 3, 3, 20, 40), "DHWNC", "FRACTAL_Z_3D_TRANSPOSE", "DT_FLOAT16", True),
        ((2, 3, 3, 20, 40), "DHWNC", "FRACTAL_Z_3D_TRANSPOSE", "DT_INT8", False),
        ((16,), "ND", "FRACTAL_NZ", "DT_FLOAT16", True),
        ((17,), "ND", "FRACTAL_NZ", "DT_FLOAT16", False),
        ((17, 1), "ND", "FRACTAL_NZ", "DT_FLOAT16", True),
    ],
)
def test_where_bytes_and_shown_shape_agree(shape, origin: str, layout: str, dtype: str, is_same: bool) -> None:
    assert is_shown_as_stored(shape, F[f"FORMAT_{origin}"], F[f"FORMAT_{layout}"], DataType[dtype]) == is_same


@pytest.mark.parametrize("pair", [p for p in STORED_PAIRS if p[1] != F.FORMAT_C1HWNCoC0], ids=pair_name)
def test_bytes_have_the_shown_shape_elsewhere(pair: Pair, rng: np.random.Generator) -> None:
    origin, layout = pair
    for channels in CHANNELS:
        shape = origin_shape(rng, origin, layout, channels, 20)
        if len(shape) > 1:
            sizes = RnnSizes(channels, 20)
            assert is_shown_as_stored(shape, origin, layout, DataType.DT_FLOAT16, rnn=sizes)


# -- which pairs there are ---------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("source", "target", "is_legal"),
    [
        ("NCHW", "NC1HWC0", True),
        ("NC1HWC0", "NHWC", True),
        ("HWCN", "FRACTAL_Z", True),
        ("ND", "FRACTAL_Z", True),
        ("ND", "FRACTAL_NZ", True),
        ("NCDHW", "NDC1HWC0", True),
        ("ND", "FRACTAL_ZN_RNN", True),
        ("NCDHW", "DHWCN", True),
        ("ND", "NC1HWC0", False),
        ("NC1HWC0", "ND", False),
        ("NC1HWC0", "FRACTAL_NZ", False),
        ("NC1HWC0", "FRACTAL_Z", False),
        ("NCHW", "NCDHW", False),
        ("NCHW", "NCHW", False),
        ("NCHW", "ND", False),
        ("NCDHW", "FRACTAL_Z", False),
        ("NCHW", "FRACTAL_Z_WINO", False),
    ],
)
def test_pairs(source: str, target: str, is_legal: bool) -> None:
    assert can_transfer(F[f"FORMAT_{source}"], F[f"FORMAT_{target}"]) == is_legal
    packed = int(PackedFormat(F[f"FORMAT_{target}"], groups=2, c0=16))
    assert can_transfer(F[f"FORMAT_{source}"], packed) == is_legal


def test_every_pair_has_its_inverse() -> None:
    assert {(b, a) for a, b in LAYOUT_PAIRS} == LAYOUT_PAIRS


# -- what is refused ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("shape", "origin", "layout", "dtype", "fault"),
    [
        ((1, 3, 4, 4), "ND", "NC1HWC0", "DT_FLOAT", "there is no such transfer"),
        ((3,), "NCHW", "NC1HWC0", "DT_FLOAT", r"shape \[3\] lacks axes of NCHW that NC1HWC0 is made from"),
        ((1, -1, 4, 4), "NCHW", "NC1HWC0", "DT_FLOAT", "only where all dims are known"),
        ((8, 5, 3, 3), "NCHW", "FRACTAL_Z_C04", "DT_FLOAT", "at most 4 channels"),
        ((), "ND", "FRACTAL_NZ", "DT_FLOAT", "scalar"),
        ((5, 4), "ND", "FRACTAL_ZN_RNN", "DT_FLOAT", "not that of weights"),
        ((1, 4), "ND", "FRACTAL_ZN_RNN", "DT_INT8", "C0 is 32"),
        ((1 << 20, 1 << 20, 1, 2), "NCHW", "NC1HWC0", "DT_FLOAT", "more than 1099511627776 elements"),
    ],
)
def test_transfers_that_do_not_exist(shape, origin: str, layout: str, dtype: str, fault: str) -> None:
    with pytest.raises(LayoutError, match=fault):
        Transfer.of(Shape(shape), F[f"FORMAT_{origin}"], F[f"FORMAT_{layout}"], DataType[dtype])


def test_filters_must_be_divisible_into_groups() -> None:
    with pytest.raises(LayoutError, match="7 filters cannot be divided into 3 groups"):
        Transfer.of(Shape((7, 2, 1, 1)), F.FORMAT_NCHW, F.FORMAT_FRACTAL_Z, DataType.DT_FLOAT, 3)


def test_small_channel_filters_need_blocks_of_four() -> None:
    packed = int(PackedFormat(F.FORMAT_FRACTAL_Z_C04, c0=2))
    with pytest.raises(LayoutError, match="not 2"):
        Transfer.of(Shape((7, 2, 1, 1)), F.FORMAT_NCHW, packed, DataType.DT_FLOAT)


@pytest.mark.parametrize(
    ("source", "target", "fault"),
    [
        (np.zeros((1, 3, 4, 4), np.float16), np.zeros((1, 1, 4, 4, 8), np.float16), r"\[1, 1, 4, 4, 16\] is needed"),
        (np.zeros((1, 3, 4, 4), np.float16), np.zeros((1, 1, 4, 4, 16), np.float32), "keeps the element type"),
        (np.zeros((1, 3, 4, 4), np.float16), np.zeros((1, 1, 4, 16, 4), np.float16).swapaxes(3, 4), "not contiguous"),
        (np.zeros((1, 3, 4, 8), np.float16)[..., ::2], np.zeros((1, 1, 4, 4, 16), np.float16), "not contiguous"),
        (np.array([["a"]], object), np.zeros((1, 1, 16, 16), object), "no layout"),
        (np.zeros((1, 3, 4, 4), "M8[s]"), np.zeros((1, 1, 4, 4, 16), "M8[s]"), "no layout"),
    ],
)
def test_arrays_that_do_not_fit(source: Array, target: Array, fault: str) -> None:
    with pytest.raises(LayoutError, match=fault):
        transfer(source, target, F.FORMAT_NCHW, F.FORMAT_NC1HWC0)


# -- memory ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("is_back", [False, True], ids=["store", "load"])
@pytest.mark.parametrize(
    ("origin", "layout", "shape"),
    [
        (F.FORMAT_NCHW, F.FORMAT_NC1HWC0, (1, 35, 64, 64)),
        (F.FORMAT_NHWC, F.FORMAT_NC1HWC0, (1, 64, 64, 35)),
        (F.FORMAT_NCHW, F.FORMAT_FRACTAL_Z, (130, 70, 3, 3)),
        (F.FORMAT_NCHW, F.FORMAT_FRACTAL_Z_C04, (1000, 3, 7, 7)),
        (F.FORMAT_ND, F.FORMAT_FRACTAL_NZ, (300, 300)),
        (F.FORMAT_HWCN, F.FORMAT_C1HWNCoC0, (5, 5, 40, 5)),
        (F.FORMAT_NCDHW, F.FORMAT_NDC1HWC0, (1, 20, 8, 20, 20)),
        (F.FORMAT_NCHW, F.FORMAT_NHWC, (1, 35, 64, 64)),
    ],
)
def test_no_memory_is_taken_but_for_views(origin, layout, shape, is_back: bool, rng: np.random.Generator) -> None:
    plan = Transfer.of(Shape(shape), origin, layout, DataType.DT_FLOAT)
    source, target = filled(rng, shape, np.float32), poisoned(plan.target_shape, np.float32)
    plan.run(source, target)
    arrays = (source, target)
    if is_back:
        plan, arrays = Transfer(plan.map, to_storage=False), (target, source)
    gc.collect()
    tracemalloc.start()
    try:
        plan.run(*arrays)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 16 << 10 < source.nbytes


def test_maps_are_made_once() -> None:
    arguments = (Shape((1, 3, 8, 8)), F.FORMAT_NCHW, F.FORMAT_NC1HWC0, Blocking(c0=16))
    assert index_map(*arguments) is index_map(*arguments)
