"""Kernels that move elements: concatenation, splitting, slicing, transposition, expansion; and casts."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ge.errors import ReportedError
from ge.graph.types import data_type_of
from ge.ops import lookup
from simulator import InferSession
from simulator.kernels.rearrange import merged
from tests.simulator.differential import FLOAT_TYPES, check_kernel
from tests.simulator.planned_model import run_model, single

ALL_TYPES = [*FLOAT_TYPES, np.int8, np.int32, np.int64, np.uint8, np.bool_]


def counted(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    return (np.arange(np.prod(shape)) % 100).reshape(shape).astype(dtype)


def index(*values: int) -> np.ndarray:
    return np.array(values[0] if len(values) == 1 else values, np.int32)


@pytest.mark.parametrize("dtype", ALL_TYPES)
@pytest.mark.parametrize("axis", [0, 1, 2, -1, -3])
def test_concat(dtype: Any, axis: int) -> None:
    shapes = [[2, 3, 4], [2, 3, 4], [2, 3, 4]]
    shapes[1][axis], shapes[2][axis] = 5, 0
    parts = [counted(*shape, dtype=dtype) for shape in shapes]
    check_kernel("ConcatD", parts, {"concat_dim": axis, "N": 3}, kernel="concat")
    check_kernel("ConcatV2", [*parts, index(axis)], {"N": 3}, kernel="concat", constant=[3])
    check_kernel("Concat", [index(axis), *parts], {"N": 3}, kernel="concat", constant=[0, 2])


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_pack(axis: int) -> None:
    check_kernel("Pack", [counted(2, 3), counted(2, 3) + 1, counted(2, 3) + 2], {"axis": axis, "N": 3}, kernel="pack")


@pytest.mark.parametrize("dtype", ALL_TYPES)
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_split(dtype: Any, axis: int) -> None:
    x = counted(6, 9, 12, dtype=dtype)
    check_kernel("Split", [index(axis), x], {"num_split": 3}, kernel="view-copy", constant=[0], n_outputs=3)
    sizes = np.array([1, 2, x.shape[axis] - 3], np.int64)
    check_kernel("SplitV", [x, sizes, index(axis)], {"num_split": 3}, kernel="view-copy", constant=[1, 2], n_outputs=3)


def test_slices() -> None:
    x = counted(6, 9, 12)
    check_kernel("Slice", [x, index(1, 0, 3), index(2, 9, 4)], kernel="view-copy", constant=[1, 2])
    begin, end, axes, steps = index(5, -2), index(0, 1), index(0, 2), index(-2, -3)
    check_kernel("StridedSliceV2", [x, begin, end, axes, steps], kernel="view-copy", constant=[1, 2, 3, 4])


@pytest.mark.parametrize("dtype", ALL_TYPES)
def test_expand(dtype: Any) -> None:
    shape = np.array([2, 3, 4], np.int64)
    check_kernel("Expand", [counted(3, 1, dtype=dtype), shape], kernel="expand", constant=[1])
    check_kernel("Expand", [counted(2, 3, 4, dtype=dtype), index(1, 1)], kernel="expand", constant=[1])


@pytest.mark.parametrize("dtype", ALL_TYPES)
def test_tile(dtype: Any) -> None:
    check_kernel("Tile", [counted(2, 1, 4, dtype=dtype), index(1, 3, 2)], kernel="tile", constant=[1])


@pytest.mark.parametrize("dtype", ALL_TYPES)
@pytest.mark.parametrize("type", ["Reshape", "Identity", "Flatten"])
def test_copies(dtype: Any, type: str) -> None:
    x = counted(2, 3, 4, dtype=dtype)
    model = single("Identity", [x], {"_must_copy": True})
    if type == "Reshape":
        model = single("Reshape", [x, np.array([4, -1], np.int64)], {"_must_copy": True}, constant=[1])
    if type == "Flatten":
        model = single("Flatten", [x], {"_must_copy": True})
    [y] = run_model(model, [x])
    np.testing.assert_array_equal(y.reshape(-1), x.reshape(-1))


@pytest.mark.parametrize("dtype", ALL_TYPES)
@pytest.mark.parametrize("perm", [(0, 2, 3, 1), (0, 3, 1, 2), (3, 2, 1, 0), (0, 1, 2, 3), (1, 0, 2, 3)])
def test_transpose(dtype: Any, perm: tuple[int, ...]) -> None:
    x = counted(2, 3, 4, 5, dtype=dtype)
    check_kernel("Transpose", [x, index(*perm)], kernel="transpose", constant=[1])
    check_kernel("TransposeD", [x], {"perm": list(perm)}, kernel="transpose")


@pytest.mark.parametrize("shape", [(300, 5), (5, 300), (257, 130), (3, 200, 4)])
def test_transposes_with_long_rows(shape: tuple[int, ...]) -> None:
    x = counted(*shape)
    [y] = run_model(single("TransposeD", [x], {"perm": list(range(len(shape)))[::-1]}), [x])
    np.testing.assert_array_equal(y, x.T)


@given(
    st.lists(st.integers(1, 4), min_size=1, max_size=5).flatmap(
        lambda s: st.tuples(st.just(s), st.permutations(range(len(s))))
    )
)
def test_merged_axes_transpose_alike(case: tuple[list[int], list[int]]) -> None:
    shape, perm = case
    x = np.arange(np.prod(shape)).reshape(shape)
    dims, order = merged(shape, perm)
    np.testing.assert_array_equal(x.reshape(dims).transpose(order).ravel(), x.transpose(perm).ravel())
    assert not any(b == a + 1 for a, b in pairwise(order))


@pytest.mark.parametrize("dtype", ALL_TYPES)
@pytest.mark.parametrize("widths", [(1, 2, 0, 3), (0, 0, 0, 0), (-1, 2, 1, -2), (2, -1, -1, -1)])
def test_pad(dtype: Any, widths: tuple[int, ...]) -> None:
    x, value = counted(4, 5, dtype=dtype), np.array(1, dtype)
    check_kernel("PadV3", [x, index(*widths), value], kernel="pad", constant=[1, 2])
    check_kernel("PadV3", [x, index(*widths)], {"paddings_contiguous": False}, kernel="pad", constant=[1])
    pairs = [list(widths[:2]), list(widths[2:])]
    check_kernel("PadD", [x], {"paddings": pairs}, kernel="pad")


@pytest.mark.parametrize("dtype", ALL_TYPES)
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("picked", [(2, 0, -1, 2), ((0, 1), (-2, 1)), ()])
def test_gather(dtype: Any, axis: int, picked: Any) -> None:
    indices = np.array(picked, np.int64)
    kernel = "gather" if indices.size else "nothing"
    check_kernel("GatherV2", [counted(3, 4, 5, dtype=dtype), indices, index(axis)], kernel=kernel, constant=[2])


def test_gather_refuses_indices_outside() -> None:
    model = single("GatherV2", [counted(3, 4), np.array([0, 3]), index(0)], constant=[2])
    session = InferSession(model_path=model)
    with pytest.raises(ReportedError, match=r"R1050.*node.*3"):
        session.infer([counted(3, 4), np.array([0, 3])])


CAST_TYPES = [*ALL_TYPES, np.int16, np.uint16, np.uint32, np.uint64]


@pytest.mark.parametrize("source", CAST_TYPES)
@pytest.mark.parametrize("target", CAST_TYPES)
def test_casts_equal_the_reference(source: Any, target: Any) -> None:
    rng = np.random.default_rng(0)
    values = rng.standard_normal(2000) * 10.0 ** rng.integers(-2, 12, 2000)
    if np.dtype(source).kind in "iu":
        values = rng.integers(np.iinfo(source).min, np.iinfo(source).max, 2000, dtype=source)
    with np.errstate(over="ignore"):
        x = values.astype(source)
    if np.dtype(source).kind not in "iub":
        x[:8] = np.array([np.nan, np.inf, -np.inf, -0.0, 127.5, -128.9, 255.0, 0.5]).astype(source)
    attrs = {"dst_type": int(data_type_of(target))}
    [found] = run_model(single("Cast", [x], attrs), [x])
    definition = lookup("Cast")
    assert definition is not None
    [expected] = definition.evaluate(attrs, [x], [data_type_of(target)])
    assert found.dtype == expected.dtype
    if found.dtype == FLOAT_TYPES[2]:  # numpy does not know that its NaN is one
        found, expected = found.astype(np.float32), expected.astype(np.float32)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("target", "low", "high"),
    [(np.int8, -128, 127), (np.uint8, 0, 255), (np.int32, -(2**31), 2**31 - 1), (np.int64, -(2**63), 2**63 - 1)],
)
@pytest.mark.parametrize("source", FLOAT_TYPES)
def test_floats_saturate_at_the_bounds_of_integers(source: Any, target: Any, low: int, high: int) -> None:
    with np.errstate(over="ignore"):
        x = np.array([1e30, -1e30, np.inf, -np.inf, np.nan, 2.75, -2.75]).astype(source)
    [y] = run_model(single("Cast", [x], {"dst_type": int(data_type_of(target))}), [x])
    small = 0 if low == 0 else -2
    np.testing.assert_array_equal(y, np.array([high, low, high, low, 0, 2, small], target))
