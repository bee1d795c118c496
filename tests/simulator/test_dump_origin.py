"""From storage layouts back to what the model means, held to index formulas applied element by element."""

from __future__ import annotations

from collections.abc import Sequence

import ml_dtypes
import numpy as np
import pytest

from ge.formats import LayoutError
from ge.graph import DataType, Format, TensorDesc
from ge.graph.types import FORMAT_BY_TEXT, data_type_of
from simulator.dump_origin import as_npy, in_origin, rnn_sizes
from tests.ge.formats.index_formulas import lay_out

Array = np.ndarray
AXES = {"NCHW": "NCHW", "NHWC": "NHWC", "HWCN": "HWCN", "NCDHW": "NCDHW", "NDHWC": "NDHWC"}
CHANNELS = [1, 15, 16, 17, 33]


def stored(
    elements: Array, origin: str, layout: str, c0: int = 16, *, m0: int = 16, groups: int = 1, shown: Sequence[int] = ()
) -> tuple[Array, TensorDesc]:
    """Lay elements out with NaN (the largest integer) in all padding; ``shown`` is the shape that a descriptor has."""
    numbers = np.arange(1, elements.size + 1).reshape(elements.shape)
    places = lay_out(numbers, origin, layout, c0, m0, groups)
    poison = np.nan if elements.dtype.kind in "fV" else np.iinfo(elements.dtype).max
    memory = np.concatenate([np.array([poison]).astype(elements.dtype), elements.reshape(-1)])[places]
    memory = memory.reshape(shown or _merged(memory.shape, layout))
    formats = FORMAT_BY_TEXT[layout.removesuffix(" of a matrix")], FORMAT_BY_TEXT[origin]
    desc = TensorDesc(memory.shape, formats[0], data_type_of(elements.dtype), elements.shape, formats[1])
    desc.sub_format = groups
    return memory, desc


def _merged(dims: Sequence[int], layout: str) -> tuple[int, ...]:
    """The shape that descriptors show: FRACTAL_Z merges what lies before the filters, and divides these by 16."""
    if layout in ("FRACTAL_Z", "FRACTAL_Z_3D"):
        return (int(np.prod(dims[:-2])), dims[-2] // 16, 16, dims[-1])
    return tuple(dims)


def filled(rng: np.random.Generator, shape: Sequence[int], dtype: type = np.float16) -> Array:
    values = rng.standard_normal(shape) * 50
    return values.astype(dtype)


def check(elements: Array, origin: str, layout: str, c0: int = 16, **how: object) -> None:
    memory, desc = stored(elements, origin, layout, c0, **how)
    found = in_origin(memory, desc)
    assert found.dtype == elements.dtype
    np.testing.assert_array_equal(found, elements)


@pytest.mark.parametrize("channels", CHANNELS)
@pytest.mark.parametrize("origin", ["NCHW", "NHWC", "HWCN"])
@pytest.mark.parametrize(("dtype", "c0"), [(np.float16, 16), (np.float32, 16), (np.int8, 32), (np.float16, 8)])
def test_blocks_of_channels(origin: str, channels: int, dtype: type, c0: int, rng: np.random.Generator) -> None:
    """C0 is that of the stored shape: chips differ in it."""
    extents = {"N": 2, "C": channels, "H": 3, "W": 2}
    check(filled(rng, [extents[axis] for axis in origin], dtype), origin, "NC1HWC0", c0)


@pytest.mark.parametrize("shape", [(1, 1), (17, 31), (16, 16), (3, 17, 31), (2, 2, 33, 16)])
@pytest.mark.parametrize("m0", [16, 1])
def test_fractals_of_matrices(shape: Sequence[int], m0: int, rng: np.random.Generator) -> None:
    check(filled(rng, shape), "NCHW" if len(shape) == 4 else "ND", "FRACTAL_NZ", m0=m0)
    check(filled(rng, shape, np.int8), "ND", "FRACTAL_NZ", 32, m0=m0)


@pytest.mark.parametrize("elements", [1, 16, 34])
def test_a_vector_in_fractals_is_a_row(elements: int, rng: np.random.Generator) -> None:
    """Its descriptor shows a column of the same size."""
    check(filled(rng, [elements]), "ND", "FRACTAL_NZ", shown=(1, -(-elements // 16), 16, 16))


@pytest.mark.parametrize("groups", [2, 4, 32])
def test_filters_of_grouped_convolutions(groups: int, rng: np.random.Generator) -> None:
    check(filled(rng, (groups * 3, 5, 3, 3)), "NCHW", "FRACTAL_Z", groups=groups)


@pytest.mark.parametrize("c0", [16, 8])
@pytest.mark.parametrize("channels", [1, 3, 4])
def test_layouts_for_few_channels(channels: int, c0: int, rng: np.random.Generator) -> None:
    check(filled(rng, (20, channels, 3, 3)), "NCHW", "FRACTAL_Z_C04", c0)
    check(filled(rng, (2, channels, 3, 5)), "NCHW", "NC1HWC0_C04", 4)


@pytest.mark.parametrize("layout", ["FRACTAL_ZZ", "FRACTAL_NZ_C0_16", "FRACTAL_NZ_C0_32"])
def test_other_fractals(layout: str, rng: np.random.Generator) -> None:
    check(filled(rng, (3, 17, 40)), "ND", layout, 32 if layout.endswith("32") else 16)


@pytest.mark.parametrize(("layout", "shape"), [("FRACTAL_ZN_RNN", (9 + 17, 4 * 17)), ("ND_RNN_BIAS", (4 * 17,))])
def test_weights_of_recurrent_operators(layout: str, shape: Sequence[int], rng: np.random.Generator) -> None:
    elements = filled(rng, shape)
    memory = lay_out(elements, "ND", layout, 16, rnn=(17, 9))
    desc = TensorDesc(memory.shape, FORMAT_BY_TEXT[layout], DataType.DT_FLOAT16, shape, Format.FORMAT_ND)
    found = in_origin(memory, desc, rnn_sizes({"hidden_size": 17, "input_size": 9}))
    np.testing.assert_array_equal(found, elements)
    with pytest.raises(LayoutError):
        in_origin(memory, desc, rnn_sizes({"src_format": "ND"}))


@pytest.mark.parametrize("channels", CHANNELS)
def test_filters(channels: int, rng: np.random.Generator) -> None:
    check(filled(rng, (20, channels, 3, 1)), "NCHW", "FRACTAL_Z")
    check(filled(rng, (3, 1, channels, 20)), "HWCN", "FRACTAL_Z")
    check(filled(rng, (20, channels, 2, 1, 3)), "NCDHW", "FRACTAL_Z_3D")
    check(filled(rng, (2, 2, 1, 3, channels)), "NDHWC", "NDC1HWC0")


@pytest.mark.parametrize(
    ("shape", "full"),
    [
        *[((17,), (1, 17, 1, 1)), ((17,), (1, 1, 1, 17)), ((17,), (17, 1, 1, 1))],
        *[((17, 5), (1, 17, 5, 1)), ((17, 5), (17, 5, 1, 1)), ((17, 5), (1, 1, 17, 5))],
        *[((2, 17, 5), (1, 2, 17, 5)), ((2, 17, 5), (2, 17, 1, 5)), ((1, 1, 3), (1, 1, 1, 3)), ((), (1, 1, 1, 1))],
    ],
)
def test_small_tensors_of_which_only_the_storage_tells_the_axes(
    shape: Sequence[int], full: Sequence[int], rng: np.random.Generator
) -> None:
    elements = filled(rng, full)
    memory, desc = stored(elements, "NCHW", "NC1HWC0")
    desc.origin_shape = TensorDesc(shape).shape
    np.testing.assert_array_equal(in_origin(memory, desc), elements.reshape(shape))


@pytest.mark.parametrize(("storage", "origin"), [("NHWC", "NCHW"), ("HWCN", "NHWC"), ("NDHWC", "NCDHW")])
def test_axes_in_another_order(storage: str, origin: str, rng: np.random.Generator) -> None:
    extents = {"N": 2, "C": 3, "D": 6, "H": 4, "W": 5}
    elements = filled(rng, [extents[axis] for axis in origin])
    memory = np.ascontiguousarray(elements.transpose([origin.index(axis) for axis in storage]))
    desc = TensorDesc(
        memory.shape, FORMAT_BY_TEXT[storage], DataType.DT_FLOAT16, elements.shape, FORMAT_BY_TEXT[origin]
    )
    np.testing.assert_array_equal(in_origin(memory, desc), elements)


@pytest.mark.parametrize("origin", ["ND", "NHWC"])
def test_formats_that_say_nothing_of_places_change_nothing(origin: str, rng: np.random.Generator) -> None:
    elements = filled(rng, (2, 3))
    desc = TensorDesc((2, 3), Format.FORMAT_NCHW, DataType.DT_FLOAT16, (2, 3), FORMAT_BY_TEXT[origin])
    assert in_origin(elements, desc) is not None
    np.testing.assert_array_equal(in_origin(elements, desc), elements)


@pytest.mark.parametrize(
    ("shape", "format", "origin_shape", "origin"),
    [
        ((1, 1, 2, 2, 16), "NC1HWC0", (1, 3, 2, 2), "ND"),
        ((1, 1, 2, 2, 16), "NC1HWC0", (1, 17, 2, 2), "NCHW"),
        ((1, 1, 2, 2, 12), "NC1HWC0", (1, 3, 2, 2), "NCHW"),
        ((2, 3), "ND", (2, 4), "ND"),
        ((4, 4), "NC1C0HWPAD", (4, 4), "NCHW"),
    ],
)
def test_layouts_that_nobody_knows(shape: Sequence[int], format: str, origin_shape: Sequence[int], origin: str) -> None:
    desc = TensorDesc(shape, FORMAT_BY_TEXT[format], DataType.DT_FLOAT16, origin_shape, FORMAT_BY_TEXT[origin])
    with pytest.raises(LayoutError):
        in_origin(np.zeros(shape, np.float16), desc)


@pytest.mark.parametrize(
    ("stored", "origin_type", "expected"),
    [
        (np.array([1.5, -2], ml_dtypes.bfloat16), DataType.DT_BF16, np.float32([1.5, -2])),
        (np.array([1.5, -2], ml_dtypes.float8_e5m2), DataType.DT_FLOAT8_E5M2, np.float32([1.5, -2])),
        (np.array([7, -8], ml_dtypes.int4), DataType.DT_INT4, np.int8([7, -8])),
        (np.array([15, 0], ml_dtypes.uint4), DataType.DT_UINT4, np.uint8([15, 0])),
        (np.float16([1.5]), DataType.DT_FLOAT, np.float32([1.5])),
        (np.float32([1.1]), DataType.DT_FLOAT16, np.float32([1.1])),  # rounding would lose what was computed
        (np.int32([5]), DataType.DT_INT64, np.int64([5])),
        (np.int32([5]), DataType.DT_DOUBLE, np.int32([5])),
        (np.array([True]), DataType.DT_INT32, np.array([True])),
        (np.array(["a", "grün"], object), DataType.DT_STRING, np.array(["a", "grün"])),
    ],
)
def test_types_of_npy_files(stored: Array, origin_type: DataType, expected: Array) -> None:
    found = as_npy(stored, origin_type)
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)
