"""Slice, StridedSlice and StridedSliceV2 against onnxruntime and numpy's own slicing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ge.errors import ReportedError
from ge.graph import Graph, Tensor, TensorDesc
from ge.ops import infer_node
from tests.ops.one_node import data, inferred, run_ge, run_onnx

LOWEST, HIGHEST = -(2**63), 2**63 - 1


def vector(values: list[int] | None) -> np.ndarray | None:
    return None if values is None else np.array(values, np.int64)


@pytest.mark.parametrize(
    ("begin", "end", "axes", "strides"),
    [
        ([0, 1], [2, 3], None, None), ([1], [HIGHEST], [1], None), ([-2], [-1], [-1], [1]),
        ([3, 0], [0, 5], [0, 1], [-1, 2]),
        ([-1], [LOWEST], [0], [-1]), ([HIGHEST], [LOWEST], [1], [-2]), ([2], [1], [0], None), ([10], [20], [1], None),
        ([-100], [100], [2], [3]), ([0, 0, 0], [4, 5, 6], [2, 0, 1], [1, 2, 1]), ([LOWEST], [HIGHEST], [0], [HIGHEST]),
    ],
)  # fmt: skip
def test_strided_slice_v2_is_onnx_slice(
    begin: list[int], end: list[int], axes: list[int] | None, strides: list[int] | None
) -> None:
    x = data(1, 4, 5, 6)
    inputs = [x, vector(begin), vector(end), vector(axes), vector(strides)]
    [found] = run_ge("StridedSliceV2", inputs)
    np.testing.assert_array_equal(found, run_onnx("Slice", inputs)[0])


@pytest.mark.parametrize(
    ("begin", "end", "strides", "masks", "expected"),
    [
        ([1, 1], [3, 4], [1, 1], {}, np.s_[1:3, 1:4]),
        ([1, 1], [3, 4], [1, 2], {"begin_mask": 2}, np.s_[1:3, :4:2]),
        ([1, 1], [3, 4], [1, 1], {"end_mask": 1}, np.s_[1:, 1:4]),
        ([1, 0, 2], [3, 0, 4], [1, 1, 1], {"ellipsis_mask": 2}, np.s_[1:3, ..., 2:4]),
        ([0, 1], [0, 3], [1, 1], {"new_axis_mask": 1}, np.s_[None, 1:3]),
        ([2, -1], [3, 0], [1, 1], {"shrink_axis_mask": 3}, np.s_[2, -1]),
        ([0, 0, 1, 0], [0, 0, 2, 0], [1, 1, 1, 1], {"ellipsis_mask": 1, "new_axis_mask": 2, "shrink_axis_mask": 4},
         np.s_[..., None, 1, 0:0]),
        ([3], [0], [-1], {}, np.s_[3:0:-1]),
    ],
)  # fmt: skip
def test_masks(begin: list[int], end: list[int], strides: list[int], masks: dict[str, int], expected: Any) -> None:
    x = data(2, 4, 5, 6)
    for name, inputs in (
        ("StridedSlice", [vector(begin), vector(end), vector(strides)]),
        ("StridedSliceV2", [vector(begin), vector(end), None, vector(strides)]),
    ):
        np.testing.assert_array_equal(run_ge(name, [x, *inputs], masks)[0], x[expected])


@given(
    dims=st.lists(st.integers(0, 4), min_size=1, max_size=3),
    parts=st.lists(
        st.tuples(st.integers(-6, 6), st.integers(-6, 6), st.sampled_from([-3, -1, 1, 2])), min_size=1, max_size=3
    ),
    begin_mask=st.integers(0, 7),
    end_mask=st.integers(0, 7),
)
def test_every_region_is_what_numpy_takes(
    dims: list[int], parts: list[tuple[int, int, int]], begin_mask: int, end_mask: int
) -> None:
    parts = parts[: len(dims)]
    x = data(3, *dims)
    begin, end, strides = ([part[at] for part in parts] for at in range(3))
    [found] = run_ge(
        "StridedSlice",
        [x, vector(begin), vector(end), vector(strides)],
        {"begin_mask": begin_mask, "end_mask": end_mask},
    )
    index = tuple(
        slice(None if begin_mask >> at & 1 else first, None if end_mask >> at & 1 else last, step)
        for at, (first, last, step) in enumerate(parts)
    )
    np.testing.assert_array_equal(found, x[index])


@pytest.mark.parametrize(
    ("offsets", "sizes"), [([1, 0], [2, -1]), ([0, 3], [4, 2]), ([4, 5], [0, 0]), ([0, 0], [-1, -1])]
)
def test_slice_by_sizes(offsets: list[int], sizes: list[int]) -> None:
    x = data(4, 4, 5)
    [found] = run_ge("Slice", [x, vector(offsets), vector(sizes)])
    ends = [dim if size == -1 else at + size for dim, at, size in zip(x.shape, offsets, sizes, strict=True)]
    np.testing.assert_array_equal(found, x[offsets[0] : ends[0], offsets[1] : ends[1]])


def test_partly_known_shapes() -> None:
    graph = Graph()
    x = graph.add_node("Data", "x", output_descs=[TensorDesc([-1, 5, 6])]).output(0)
    consts = [
        graph.add_const(name, Tensor.of(np.array(value))) for name, value in zip("bea", ([1], [3], [2]), strict=True)
    ]
    node = graph.add_node("StridedSliceV2", "node", [x, *consts])
    infer_node(node)
    assert node.output_descs[0].shape == (-1, 5, 2)


def test_regions_known_only_while_running() -> None:
    x = np.zeros((4, 5, 6))
    two = [vector([0, 1]), vector([2, 3])]
    assert inferred("StridedSliceV2", [x, *two], {}, constant=False)[0].shape == (-1, -1, 6)
    attrs = {"shrink_axis_mask": 1, "new_axis_mask": 2}
    assert inferred("StridedSlice", [x, *two, vector([1, 1])], attrs, constant=False)[0].shape == (1, 5, 6)


@pytest.mark.parametrize(
    ("type", "inputs", "attrs", "message"),
    [
        ("StridedSlice", [[0], [1], [0]], {}, "a stride is 0"),
        ("StridedSlice", [[0], [1, 2], [1]], {}, "differ in length"),
        ("StridedSlice", [[0] * 3, [1] * 3, [1] * 3], {}, "3 regions are given for rank 2"),
        ("StridedSlice", [[5], [6], [1]], {"shrink_axis_mask": 1}, "position 5 is outside a dim of 2"),
        ("StridedSlice", [[0, 0], [1, 1], [1, 1]], {"ellipsis_mask": 3}, "more than one ellipsis"),
        ("StridedSliceV2", [[0], [1], [2]], {}, "axis 2 is out of range for rank 2"),
        ("StridedSliceV2", [[0], [1], [0, 1]], {}, "axes .* differ in length"),
        ("Slice", [[0, 0], [3, 1]], {}, r"reach outside shape \[2, 3\]"),
        ("Slice", [[0], [1]], {}, r"do not fit shape \[2, 3\]"),
    ],
)
def test_misfits_are_reported(type: str, inputs: list[list[int]], attrs: dict[str, int], message: str) -> None:
    with pytest.raises(ReportedError, match=message):
        inferred(type, [np.zeros((2, 3)), *map(vector, inputs)], attrs)
