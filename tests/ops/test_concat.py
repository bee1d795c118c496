"""Concat, Pack, Split and Unpack."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ge.errors import ReportedError
from ge.graph import Graph, TensorDesc
from ge.graph.types import DataType
from ge.ops import infer_node
from tests.ops.one_node import data, inferred, run_ge, run_onnx


def scalar(value: int) -> np.ndarray:
    return np.array(value, np.int32)


def assert_all_equal(found: list[np.ndarray], expected: list[np.ndarray]) -> None:
    assert len(found) == len(expected)
    for mine, theirs in zip(found, expected, strict=True):
        np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize(
    ("shapes", "axis"),
    [([(2, 3), (2, 1)], 1), ([(2, 3), (0, 3), (4, 3)], 0), ([(1, 2, 3)] * 3, -1), ([(5,)], 0), ([(2, 0), (2, 3)], -1)],
)
@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int64, np.bool_])
def test_concat(shapes: list[tuple[int, ...]], axis: int, dtype: Any) -> None:
    inputs = [data(seed, *shape, dtype=dtype) for seed, shape in enumerate(shapes)]
    expected = run_onnx("Concat", inputs, {"axis": axis})
    assert_all_equal(run_ge("ConcatD", inputs, {"concat_dim": axis, "N": len(inputs)}), expected)
    assert_all_equal(run_ge("Concat", [scalar(axis), *inputs], {"N": len(inputs)}), expected)
    assert_all_equal(run_ge("ConcatV2", [*inputs, scalar(axis)], {"N": len(inputs)}), expected)


def test_concat_of_strings() -> None:
    parts = [np.array(["a", "bc"], object), np.array(["", "d"], object)]
    assert run_ge("ConcatD", parts, {"concat_dim": 0})[0].tolist() == ["a", "bc", "", "d"]


@pytest.mark.parametrize(
    ("dims", "axis", "shape"),
    [
        ([[2, -1], [-1, 3]], 0, [-1, 3]), ([[2, -1], [4, 3]], 0, [6, 3]), ([[-2], [2, 3]], 1, [2, -1]),
        ([[-2], [-2]], 0, [-2]), ([[-1, 2], [-1, 5]], 1, [-1, 7]),
    ],
)  # fmt: skip
def test_concat_of_partly_known_shapes(dims: list[list[int]], axis: int, shape: list[int]) -> None:
    graph = Graph()
    sources = [
        graph.add_node("Data", f"x{index}", output_descs=[TensorDesc(part)]).output(0)
        for index, part in enumerate(dims)
    ]
    node = graph.add_node("ConcatD", "node", sources, {"concat_dim": axis, "N": len(dims)})
    infer_node(node)
    assert list(node.output_descs[0].shape) == shape


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_pack_and_unpack(axis: int) -> None:
    inputs = [data(seed, 2, 3) for seed in range(4)]
    [packed] = run_ge("Pack", inputs, {"axis": axis, "N": 4})
    np.testing.assert_array_equal(packed, np.stack(inputs, axis))
    assert_all_equal(run_ge("Unpack", [packed], {"axis": axis, "num": 4}, n_outputs=4), inputs)


# -- Split -------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("shape", "axis", "count"), [((6, 2), 0, 3), ((2, 4, 3), -2, 2), ((5,), 0, 5), ((0, 2), 0, 2)])
def test_even_split(shape: tuple[int, ...], axis: int, count: int) -> None:
    x = data(1, *shape)
    expected = np.split(x, count, axis)
    assert_all_equal(run_ge("Split", [scalar(axis), x], {"num_split": count}, count), expected)
    assert_all_equal(run_ge("SplitD", [x], {"split_dim": axis, "num_split": count}, count), expected)


@pytest.mark.parametrize(("dim", "count"), [(7, 3), (6, 3), (10, 4), (3, 2)])
def test_split_that_leaves_a_rest(dim: int, count: int) -> None:
    x = data(2, 2, dim)
    attrs = {"num_split": count, "_x_num_outputs": count}
    expected = run_onnx("Split", [x], {"axis": 1, "num_outputs": count}, count, opset=18)
    assert_all_equal(run_ge("Split", [scalar(1), x], attrs, count), expected)
    assert_all_equal(run_ge("SplitD", [x], {"split_dim": 1, **attrs}, count), expected)


@pytest.mark.parametrize(("sizes", "axis"), [([1, 4, 2], 1), ([7], -1), ([0, 7], 1), ([1, 1], 0)])
def test_split_by_sizes(sizes: list[int], axis: int) -> None:
    x = data(3, 2, 7)
    count = len(sizes)
    expected = run_onnx("Split", [x, np.array(sizes)], {"axis": axis}, count)
    found = run_ge("SplitV", [x, np.array(sizes), scalar(axis)], {"num_split": count}, count)
    assert_all_equal(found, expected)
    attrs = {"size_splits": sizes, "split_dim": axis, "num_split": count}
    assert_all_equal(run_ge("SplitVD", [x], attrs, count), expected)


def test_one_size_may_be_left_open() -> None:
    x = data(4, 7)
    found = run_ge("SplitV", [x, np.array([2, -1, 1]), scalar(0)], {"num_split": 3}, 3)
    assert_all_equal(found, np.split(x, [2, 6]))


# -- what does not fit -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("type", "inputs", "attrs", "count", "message"),
    [
        (
            "ConcatD",
            [np.zeros((2, 3)), np.zeros((3, 4))],
            {"concat_dim": 0},
            1,
            r"shapes \[2,3\] and \[3,4\] do not fit",
        ),
        ("ConcatD", [np.zeros((2, 3)), np.zeros(3)], {"concat_dim": 0}, 1, r"\[2,3\] and \[3\] do not fit"),
        ("ConcatD", [np.zeros((2, 3))], {"concat_dim": 2}, 1, "axis 2 is out of range for rank 2"),
        ("ConcatD", [np.zeros(3), np.zeros(3, np.float32)], {"concat_dim": 0}, 1, "differ: DT_DOUBLE, DT_FLOAT"),
        ("Pack", [np.zeros(3), np.zeros(2)], {}, 1, r"shapes \[3\] and \[2\] do not fit"),
        ("Unpack", [np.zeros((3, 2))], {"num": 2}, 2, r"axis 0 of shape \[3,2\] is unpacked into 2 outputs"),
        ("SplitD", [np.zeros(5)], {"split_dim": 0, "num_split": 2}, 2, "dim of 5 cannot be split into 2 equal parts"),
        ("SplitVD", [np.zeros(5)], {"split_dim": 0, "num_split": 2, "size_splits": [2, 2]}, 2, "add up to a dim of 5"),
        ("SplitVD", [np.zeros(5)], {"split_dim": 0, "num_split": 2, "size_splits": [5]}, 2, "do not describe 2 parts"),
    ],
)
def test_misfits_are_reported(
    type: str, inputs: list[np.ndarray], attrs: dict[str, Any], count: int, message: str
) -> None:
    with pytest.raises(ReportedError, match=message):
        inferred(type, inputs, attrs, count)


def test_split_along_an_axis_known_only_while_running() -> None:
    descs = inferred("Split", [scalar(1), np.zeros((2, 4))], {"num_split": 2}, 2, constant=False)
    assert [list(desc.shape) for desc in descs] == [[-1, -1]] * 2
    assert descs[0].data_type is DataType.DT_DOUBLE
