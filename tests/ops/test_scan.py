"""Scan buffers: what they hold, what is known of it, and that appending changes no other buffer."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ge.errors import ReportedError
from ge.graph import DataType, Graph, TensorDesc
from ge.ops import infer_node, lookup
from ge.ops.registry import Misfit
from ge.ops.scan import ScanBuffer


def stack(buffer: ScanBuffer, **attrs: Any) -> np.ndarray:
    definition = lookup("XScanStack")
    assert definition is not None
    values = {"dtype": DataType.DT_FLOAT, "shape": [2], **attrs}
    return definition.evaluate(values, [buffer], [values["dtype"]])[0]


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(-9, 9)), max_size=30))
def test_buffers_are_independent(steps: list[tuple[int, int]]) -> None:
    """Append to any of the buffers made so far; each must hold what a list would."""
    buffers, lists = [ScanBuffer()], [[]]
    for choice, number in steps:
        at = choice % len(buffers)
        buffers.append(buffers[at].append(np.array(number)))
        lists.append([*lists[at], number])
    for buffer, expected in zip(buffers, lists, strict=True):
        assert buffer.length == len(expected)
        if expected:
            np.testing.assert_array_equal(buffer.rows(), expected)


def test_a_buffer_keeps_copies_and_gives_read_only_views() -> None:
    value = np.float32([1, 2])
    buffer = ScanBuffer().append(value)
    value[:] = 0
    np.testing.assert_array_equal(buffer.rows(), [[1, 2]])
    assert not buffer.rows().flags.writeable


def test_long_loops_do_not_copy_everything_each_turn() -> None:
    buffer, memories = ScanBuffer(), set()
    for _ in range(1000):
        buffer = buffer.append(np.zeros(4))
        memories.add(buffer.rows().ctypes.data)
    assert len(memories) <= 10, "the memory doubles"


@pytest.mark.parametrize("value", [np.zeros(3, np.float32), np.zeros(2, np.float64), np.zeros((2, 1), np.float32)])
def test_all_turns_give_one_shape_and_type(value: np.ndarray) -> None:
    with pytest.raises(Misfit, match=r"turn 1 gives \w+\[.*\], earlier ones gave float32\[2\]"):
        ScanBuffer().append(np.zeros(2, np.float32)).append(value)


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -3])
@pytest.mark.parametrize("reverse", [False, True])
def test_stacking(axis: int, reverse: bool, rng: np.random.Generator) -> None:
    values = list(rng.standard_normal((4, 2, 3)).astype(np.float32))
    buffer = ScanBuffer()
    for value in values:
        buffer = buffer.append(value)
    expected = np.stack(values[::-1] if reverse else values, axis)
    np.testing.assert_array_equal(stack(buffer, shape=[2, 3], axis=axis, reverse=reverse), expected)


@pytest.mark.parametrize(
    ("shape", "axis", "expected"), [([2, 3], 0, (0, 2, 3)), ([-1, 3], 1, (0, 0, 3)), ([], 0, (0,)), ([-2], 0, (0,))]
)
def test_stacking_nothing(shape: list[int], axis: int, expected: tuple[int, ...]) -> None:
    found = stack(ScanBuffer(), shape=shape, axis=axis, dtype=DataType.DT_INT64)
    assert (found.shape, found.dtype) == (expected, np.int64)


@pytest.mark.parametrize(
    ("attrs", "expected"),
    [
        ({"shape": [2, 3]}, (-1, 2, 3)),
        ({"shape": [2, 3], "count": 4, "axis": -1}, (2, 3, 4)),
        ({"shape": [-1], "count": 0}, (0, -1)),
        ({"shape": [-2], "count": 4}, (-2,)),
    ],
)
def test_inference(attrs: dict[str, Any], expected: tuple[int, ...]) -> None:
    graph = Graph()
    x = graph.add_node("Data", "x", output_descs=[TensorDesc([2, 3], data_type=DataType.DT_BOOL)])
    handle = graph.add_node("XScanBuffer", "b")
    infer_node(handle)
    more = graph.add_node("XScanAppend", "a", [handle.output(), x.output()])
    infer_node(more)
    assert (more.output_descs[0].shape, more.output_descs[0].data_type) == ((), DataType.DT_VARIANT)
    y = graph.add_node("XScanStack", "y", [more.output()], {"dtype": DataType.DT_BOOL, **attrs})
    infer_node(y)
    assert (y.output_descs[0].shape, y.output_descs[0].data_type) == (expected, DataType.DT_BOOL)


def test_what_is_no_buffer() -> None:
    graph = Graph()
    x = graph.add_node("Data", "x", output_descs=[TensorDesc([2])])
    for op_type, inputs in (("XScanAppend", [x.output()] * 2), ("XScanStack", [x.output()])):
        node = graph.add_node(op_type, op_type, inputs, {"dtype": DataType.DT_FLOAT, "shape": [2]})
        with pytest.raises(ReportedError, match=r"E14001.*no scan buffer"):
            infer_node(node)
