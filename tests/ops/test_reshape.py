"""Reshape, Squeeze, Unsqueeze, Flatten, Shape and their kin."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ge.errors import ReportedError
from ge.graph import Graph, Tensor, TensorDesc
from ge.ops import InferContext, const_value, infer_node, lookup
from ge.ops.registry import Misfit
from tests.ops.one_node import data, inferred, run_ge, run_onnx


def vector(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def infer_from(type: str, dims: list[int], others: list[np.ndarray], attrs: dict[str, Any] | None = None) -> list[int]:
    """Return the inferred shape for a first input of shape ``dims`` (-1: unknown) and constant other inputs."""
    graph = Graph()
    x = graph.add_node("Data", "x", output_descs=[TensorDesc(dims)]).output(0)
    consts = [graph.add_const(f"c{index}", Tensor.of(array)) for index, array in enumerate(others)]
    node = graph.add_node(type, "node", [x, *consts], attrs)
    infer_node(node)
    return list(node.output_descs[0].shape)


@pytest.mark.parametrize(
    ("shape", "wanted", "allowzero"),
    [
        ((2, 3, 4), (6, 4), 0), ((2, 3, 4), (-1,), 0), ((2, 3, 4), (0, -1), 0), ((2, 3, 4), (2, 0, 2, -1), 0),
        ((), (1, 1), 0), ((1,), (), 0), ((0, 3), (3, 0), 1), ((0, 3), (0, 7), 0), ((2, 0), (0, 0, 3), 1),
    ],
)  # fmt: skip
def test_reshape_agrees_with_onnxruntime(shape: tuple[int, ...], wanted: tuple[int, ...], allowzero: int) -> None:
    x = data(1, *shape)
    [found] = run_ge("Reshape", [x, vector(*wanted)], {"_x_allowzero": allowzero})
    np.testing.assert_array_equal(found, run_onnx("Reshape", [x, vector(*wanted)], {"allowzero": allowzero})[0])


def test_reshape_of_some_axes() -> None:
    x = data(2, 2, 6, 5)
    found = run_ge("Reshape", [x, vector(3, 2)], {"axis": 1, "num_axes": 1})[0]
    np.testing.assert_array_equal(found, x.reshape(2, 3, 2, 5))
    found = run_ge("Reshape", [x, vector(-1)], {"axis": 1})[0]
    np.testing.assert_array_equal(found, x.reshape(2, 30))
    found = run_ge("Reshape", [x, vector(1)], {"axis": -1, "num_axes": 0})[0]
    assert found.shape == (2, 6, 5, 1)


@pytest.mark.parametrize(
    ("dims", "wanted", "shape"),
    [
        ([-1, 3, 4], (0, -1), [-1, 12]),  # the unknown dim is copied, so the rest is known
        ([-1, 3, 4], (-1, 12), [-1, 12]),
        ([-1, -1], (0, 2, -1), [-1, 2, -1]),
        ([2, -1, 4], (0, 0, 2, -1), [2, -1, 2, 2]),
        ([-2], (0, 5), [-1, 5]),
        ([-2], (3, -1), [3, -1]),
    ],
)
def test_reshape_of_partly_known_shapes(dims: list[int], wanted: tuple[int, ...], shape: list[int]) -> None:
    assert infer_from("Reshape", dims, [vector(*wanted)]) == shape


def test_reshape_to_a_shape_known_only_while_running() -> None:
    assert inferred("Reshape", [np.zeros((2, 3)), vector(3, 2)], {}, constant=False)[0].shape == (-1, -1)
    assert inferred("Reshape", [np.zeros((2, 3)), vector(-1)], {}, constant=False)[0].shape == (6,)


@pytest.mark.parametrize(
    ("wanted", "attrs", "message"),
    [
        ((4, 2), {}, r"shape \[2, 3\] cannot become \[4, 2\]"),
        ((-1, 4), {}, r"shape \[2, 3\] cannot become \[-1, 4\]"),
        ((-1, -1), {}, r"\[-1, -1\] is no shape to reshape to"),
        ((-3, 2), {}, "is no shape"),
        ((2, 3, 0), {}, r"cannot keep dims of the shape \[2, 3\]"),
        ((0, -1), {"_x_allowzero": 1}, "cannot become"),
        ((6,), {"axis": 3}, "axis 3 and num_axes -1 do not fit rank 2"),
    ],
)
def test_reshape_that_cannot_be(wanted: tuple[int, ...], attrs: dict[str, Any], message: str) -> None:
    with pytest.raises(ReportedError, match=message):
        inferred("Reshape", [np.zeros((2, 3)), vector(*wanted)], attrs)
    definition = lookup("Reshape")
    assert definition is not None
    with pytest.raises(Misfit, match=message):
        definition.evaluate(attrs, [np.zeros((2, 3)), vector(*wanted)], [])


@pytest.mark.parametrize("axis", [0, 1, 2, 3, -1, -2])
def test_flatten(axis: int) -> None:
    x = data(3, 2, 3, 4)
    found = run_ge("Flatten", [x], {"axis": axis})[0]
    np.testing.assert_array_equal(found, run_onnx("Flatten", [x], {"axis": axis})[0])


def test_flatten_of_partly_known_shapes() -> None:
    assert infer_from("Flatten", [-1, 3, 4], []) == [-1, 12]
    assert infer_from("Flatten", [2, -1], []) == [2, -1]
    assert infer_from("Flatten", [-2], []) == [-1, -1]
    with pytest.raises(ReportedError, match="axis 4 is out of range for rank 3"):
        infer_from("Flatten", [2, 3, 4], [], {"axis": 4})


@pytest.mark.parametrize(("shape", "axes"), [((1, 3, 1), (0,)), ((1, 3, 1), (-1, 0)), ((1, 3, 1), ()), ((1,), (0,))])
def test_squeeze_and_unsqueeze(shape: tuple[int, ...], axes: tuple[int, ...]) -> None:
    x = data(4, *shape)
    expected = run_onnx("Squeeze", [x, vector(*axes) if axes else None], reference=True)[0]
    np.testing.assert_array_equal(run_ge("Squeeze", [x], {"axis": list(axes)})[0], expected)
    np.testing.assert_array_equal(run_ge("SqueezeV3", [x, vector(*axes)])[0], expected)
    np.testing.assert_array_equal(run_ge("SqueezeV3", [x, None])[0], np.squeeze(x))
    expected = run_onnx("Unsqueeze", [x, vector(*axes)])[0]
    np.testing.assert_array_equal(run_ge("Unsqueeze", [x], {"axes": list(axes)})[0], expected)
    np.testing.assert_array_equal(run_ge("UnsqueezeV3", [x, vector(*axes)])[0], expected)


@pytest.mark.parametrize("axis", [0, 2, -1])
def test_expand_dims(axis: int) -> None:
    x = data(5, 2, 3)
    np.testing.assert_array_equal(run_ge("ExpandDims", [x, np.array(axis, np.int32)])[0], np.expand_dims(x, axis))


@pytest.mark.parametrize(
    ("type", "inputs", "attrs", "message"),
    [
        ("Squeeze", [np.zeros((2, 1))], {"axis": [0]}, r"axis 0 of shape \[2, 1\] cannot be removed"),
        ("SqueezeV3", [np.zeros((2, 1)), vector(4)], {}, "axis 4 is out of range for rank 2"),
        ("Unsqueeze", [np.zeros(2)], {"axes": [3]}, "axis 3 is out of range for rank 2"),
        ("UnsqueezeV3", [np.zeros(2), vector(1, -2)], {}, "name an axis twice"),
    ],
)
def test_axes_that_do_not_fit(type: str, inputs: list[np.ndarray], attrs: dict[str, Any], message: str) -> None:
    with pytest.raises(ReportedError, match=message):
        inferred(type, inputs, attrs)


def test_squeeze_of_unknown_dims() -> None:
    assert infer_from("Squeeze", [1, -1, 3], [], {"axis": [1]}) == [1, 3]
    assert infer_from("Squeeze", [1, -1, 3], []) == [-2]
    assert infer_from("UnsqueezeV3", [-1, 3], [vector(0, -1)]) == [1, -1, 3, 1]


@pytest.mark.parametrize(("start", "end"), [(None, None), (1, None), (-2, None), (0, -1), (1, 2), (-9, 9), (3, 1)])
def test_shape_with_start_and_end(start: int | None, end: int | None) -> None:
    x = data(6, 2, 3, 4)
    limits = {name: value for name, value in (("start", start), ("end", end)) if value is not None}
    found = run_ge("Shape", [x], {"dtype": 9, **{f"_x_{name}": value for name, value in limits.items()}})[0]
    np.testing.assert_array_equal(found, run_onnx("Shape", [x], limits)[0])


def test_shape_size_rank_and_their_types() -> None:
    x = data(7, 2, 0, 4)
    assert run_ge("Shape", [x])[0].dtype == np.int32
    assert run_ge("Size", [x], {"dtype": 9})[0].dtype == np.int64
    assert run_ge("Size", [data(7, 3, 5)])[0] == 15
    assert run_ge("Rank", [x])[0] == 3
    first, second = run_ge("ShapeN", [x, data(1, 5)], {"dtype": 9}, n_outputs=2)
    assert (first.tolist(), second.tolist()) == ([2, 0, 4], [5])


@pytest.mark.parametrize(
    ("type", "dims", "attrs", "value"),
    [
        ("Shape", [2, 3], {}, [2, 3]), ("Shape", [-1, 3, 4], {}, None), ("Shape", [-1, 3, 4], {"_x_start": 1}, [3, 4]),
        ("Shape", [-2], {"_x_start": 1}, None), ("Size", [2, 3], {}, 6), ("Size", [-1, 3], {}, None),
        ("Size", [-1, 0], {}, 0), ("Size", [-2], {}, None), ("Rank", [-1, -1], {}, 2), ("Rank", [-2], {}, None),
    ],
)  # fmt: skip
def test_values_known_from_shapes(type: str, dims: list[int], attrs: dict[str, int], value: object) -> None:
    graph = Graph()
    x = graph.add_node("Data", "x", output_descs=[TensorDesc(dims)]).output(0)
    node = graph.add_node(type, "node", [x], attrs)
    definition = lookup(type)
    assert definition is not None
    assert definition.value_infer is not None
    found = definition.value_infer(InferContext(node, definition, const_value))
    assert (None if found is None else found.tolist()) == value


def test_bits_of_narrow_types_are_kept() -> None:
    x = np.array([1.5, np.nan, -0.0, 300.0], np.float16)
    x.view(np.uint16)[1] = 0x7E55  # a NaN with a payload
    for name, others in (("Reshape", [vector(2, 2)]), ("Flatten", []), ("UnsqueezeV3", [vector(0)])):
        assert run_ge(name, [x, *others])[0].tobytes() == x.tobytes()
