"""Transposition, blocks between space and batch, reversal."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from ge.errors import ReportedError
from ge.ops import lookup
from ge.ops.registry import Misfit
from tests.ops.one_node import data, inferred, run_ge, run_onnx


@pytest.mark.parametrize("perm", [(0, 1, 2, 3), (3, 2, 1, 0), (0, 2, 3, 1), (1, -4, 3, 2)])
@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16, np.bool_, object])
def test_transpose(perm: tuple[int, ...], dtype: Any) -> None:
    x = data(1, 2, 3, 4, 5).astype(dtype)
    expected = np.transpose(x, perm)
    np.testing.assert_array_equal(run_ge("Transpose", [x, np.array(perm, np.int32)])[0], expected)
    np.testing.assert_array_equal(run_ge("TransposeD", [x], {"perm": list(perm)})[0], expected)


def test_transpose_of_a_scalar_and_of_nothing() -> None:
    assert run_ge("Transpose", [np.array(2.0), np.zeros(0, np.int64)])[0] == 2
    assert run_ge("Transpose", [np.zeros((0, 3)), np.array([1, 0])])[0].shape == (3, 0)


def batch_to_space(x: np.ndarray, block: list[int], crops: list[list[int]]) -> np.ndarray:
    """TensorFlow's definition, element by element."""
    batch = x.shape[0] // int(np.prod(block))
    space = [dim * size for dim, size in zip(x.shape[1:], block, strict=False)]
    whole = np.zeros((batch, *space, *x.shape[1 + len(block) :]), x.dtype)
    for place in np.ndindex(batch, *space):
        offset = [at % size for at, size in zip(place[1:], block, strict=True)]
        source = int(np.ravel_multi_index(offset, block)) * batch + place[0]
        whole[place] = x[(source, *[at // size for at, size in zip(place[1:], block, strict=True)])]
    cuts = [slice(before, dim - after) for dim, (before, after) in zip(space, crops, strict=True)]
    return whole[(slice(None), *cuts)]


@pytest.mark.parametrize(
    ("shape", "block", "crops"),
    [((8, 3, 2, 2), [2, 2], [[1, 0], [0, 1]]), ((6, 4, 3), [3], [[2, 1]]), ((12, 1, 2), [2, 3], [[0, 0], [1, 2]])],
)
def test_space_and_batch(shape: tuple[int, ...], block: list[int], crops: list[list[int]]) -> None:
    x = data(2, *shape)
    [space] = run_ge("BatchToSpaceND", [x, np.array(block), np.array(crops)])
    np.testing.assert_array_equal(space, batch_to_space(x, block, crops))
    whole = batch_to_space(x, block, [[0, 0]] * len(block))
    np.testing.assert_array_equal(run_ge("SpaceToBatchND", [whole, np.array(block), np.zeros_like(crops)])[0], x)
    # Padding what was cropped gives back x, but for the elements that were lost.
    [padded] = run_ge("SpaceToBatchND", [space, np.array(block), np.array(crops)])
    assert padded.shape == x.shape
    assert set(np.ravel(padded)) == set(np.ravel(space)) | ({0.0} if space.size < x.size else set())


def test_reverse_v2() -> None:
    x = data(3, 2, 3, 4)
    np.testing.assert_array_equal(run_ge("ReverseV2", [x, np.array([0, -1])])[0], x[::-1, :, ::-1])
    np.testing.assert_array_equal(run_ge("ReverseV2", [x, np.zeros(0, np.int32)])[0], x)


@pytest.mark.parametrize(("seq", "batch", "lengths"), [(0, 1, [4, 2, 1]), (1, 0, [1, 3, 2, 2])])
@pytest.mark.parametrize("rest", [(), (2,)])
def test_reverse_sequence(seq: int, batch: int, lengths: list[int], rest: tuple[int, ...]) -> None:
    x = data(4, 4, 3, *rest)
    [found] = run_ge("ReverseSequence", [x, np.array(lengths)], {"seq_dim": seq, "batch_dim": batch})
    expected = run_onnx("ReverseSequence", [x, np.array(lengths)], {"time_axis": seq, "batch_axis": batch})[0]
    np.testing.assert_array_equal(found, expected)


def test_reverse_sequence_along_later_axes() -> None:
    x, lengths = data(5, 2, 3, 4), [2, 0, 3]
    [found] = run_ge("ReverseSequence", [x, np.array(lengths)], {"seq_dim": 2, "batch_dim": 1})
    for row, length in enumerate(lengths):
        np.testing.assert_array_equal(found[:, row, :length], x[:, row, :length][:, ::-1])
        np.testing.assert_array_equal(found[:, row, length:], x[:, row, length:])


def test_invert_permutation() -> None:
    assert run_ge("InvertPermutation", [np.array([3, 4, 0, 2, 1], np.int32)])[0].tolist() == [2, 4, 3, 0, 1]
    definition = lookup("InvertPermutation")
    assert definition is not None
    with pytest.raises(Misfit, match="no permutation"):
        definition.evaluate({}, [np.array([0, 2])], [])


@pytest.mark.parametrize(
    ("type", "inputs", "attrs", "message"),
    [
        ("Transpose", [np.zeros((2, 3)), np.array([0])], {}, r"perm \[0\] does not fit shape \[2, 3\]"),
        ("TransposeD", [np.zeros((2, 3))], {"perm": [0, 0]}, "name an axis twice"),
        (
            "BatchToSpaceND",
            [np.zeros((3, 2)), np.array([2]), np.zeros((1, 2), int)],
            {},
            r"block_shape \[2\] does not fit",
        ),
        ("BatchToSpaceND", [np.zeros((2, 2)), np.array([2]), np.array([[3, 2]])], {}, "cut more than shape"),
        ("SpaceToBatchND", [np.zeros((2, 3)), np.array([2]), np.zeros((1, 2), int)], {}, "is not divisible by 2"),
        ("SpaceToBatchND", [np.zeros((2, 4)), np.array([0]), np.zeros((1, 2), int)], {}, "do not fit each other"),
        ("ReverseSequence", [np.zeros((2, 3)), np.zeros(3, int)], {"seq_dim": 1}, r"shape \[3\] do not fit dim 0"),
        ("ReverseSequence", [np.zeros((2, 3)), np.zeros(2, int)], {"seq_dim": 0}, "name an axis twice"),
    ],
)
def test_misfits_are_reported(type: str, inputs: list[np.ndarray], attrs: dict[str, Any], message: str) -> None:
    with pytest.raises(ReportedError, match=message):
        inferred(type, inputs, attrs)


def test_a_permutation_known_only_while_running() -> None:
    assert inferred("Transpose", [np.zeros((2, 3)), np.array([1, 0])], {}, constant=False)[0].shape == (-1, -1)
