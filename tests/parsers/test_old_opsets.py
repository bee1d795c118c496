"""Models of opsets 1 to 6: limited broadcasting and attributes that later opsets renamed or turned into inputs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper

from ge.errors import ReportedError
from tests.parsers.evaluation import evaluate, parse_model

X = np.arange(2 * 3 * 4 * 5, dtype=np.float32).reshape(2, 3, 4, 5) - 40


def model(op_type: str, opset: int, feeds: list[Any], attrs: dict[str, Any], constants: list[Any] = ()) -> ModelProto:
    """Return a model of one node whose inputs are ``feeds``, then ``constants``."""
    arrays = [np.asarray(a) for a in [*feeds, *constants]]
    names = [f"in{i}" for i in range(len(arrays))]
    node = helper.make_node(op_type, names, ["y"], name="n", **attrs)
    values = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
        for name, a in zip(names, arrays, strict=True)
    ]
    initializers = [
        helper.make_tensor(name, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape, a.reshape(-1))
        for name, a in list(zip(names, arrays, strict=True))[len(feeds) :]
    ]
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph([node], "old", values, [y], initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=3)


def run(op_type: str, opset: int, feeds: list[Any], attrs: dict[str, Any], constants: list[Any] = ()) -> np.ndarray:
    return evaluate(parse_model(model(op_type, opset, feeds, attrs, constants)), [np.asarray(f) for f in feeds])[0]


@pytest.mark.parametrize("opset", [1, 6])
@pytest.mark.parametrize(
    ("shape", "axis", "aligned"),
    [
        ((), None, ()),
        ((1, 1), None, (1, 1)),
        ((5,), None, (5,)),
        ((4, 5), None, (4, 5)),
        ((3, 4), 1, (3, 4, 1)),
        ((2,), 0, (2, 1, 1, 1)),
        ((3,), -3, (3, 1, 1)),
    ],
)
def test_second_operand_lies_at_axis(opset: int, shape: tuple[int, ...], axis: int | None, aligned: tuple[int, ...]):
    other = (np.arange(np.prod(shape, dtype=int)) + 1).astype(np.float32).reshape(shape)
    attrs = {"broadcast": 1} if axis is None else {"broadcast": 1, "axis": axis}
    np.testing.assert_array_equal(run("Sub", opset, [X, other], attrs), X - other.reshape(aligned))


@pytest.mark.parametrize(
    ("shape", "attrs", "words"),
    [
        ((5,), {}, "sets no attribute broadcast"),
        ((3, 4), {"broadcast": 1, "axis": 3}, "does not fit at axis 3"),
        ((3,), {"broadcast": 1, "axis": 4}, "out of range"),
    ],
)
def test_operands_that_do_not_fit(shape: tuple[int, ...], attrs: dict[str, int], words: str):
    with pytest.raises(ReportedError) as caught:
        run("Add", 6, [X, np.ones(shape, np.float32)], attrs)
    assert caught.value.code == "E11010"
    assert words in str(caught.value)
    assert "[n]" in str(caught.value)


ROW = X[0, 0]
SLOPE = np.asarray([0.5, 2.0, 4.0], np.float32)
STATISTICS = [np.asarray(v, np.float32) for v in ([1, 2, 3], [0, 1, 2], [5, 6, 7], [1, 4, 9])]


@pytest.mark.parametrize(
    ("op_type", "opset", "attrs", "constants", "expected"),
    [
        ("Cast", 1, {"to": "DOUBLE"}, [], X.astype(np.float64)),
        ("Clip", 1, {"max": 3.0}, [], np.minimum(X, 3)),
        ("Clip", 6, {"min": -3.0}, [], np.maximum(X, -3)),
        ("Pad", 1, {"paddings": [0, 0, 1, 0, 0, 0, 0, 2], "value": 7.0}, [],
         np.pad(X, [(0, 0), (0, 0), (1, 0), (0, 2)], constant_values=7)),
        ("Reshape", 1, {"shape": [0, -1]}, [], X.reshape(2, 60)),
        ("Tile", 1, {}, [np.int64([3]), np.int64([2])], np.tile(X, (1, 1, 3, 1))),
        ("Upsample", 1, {"height_scale": 2.0, "width_scale": 3.0}, [], X.repeat(2, 2).repeat(3, 3)),
        ("PRelu", 6, {}, [SLOPE], np.where(X < 0, X * SLOPE.reshape(3, 1, 1), X)),
        ("GlobalLpPool", 1, {"p": 1.0}, [], np.abs(X).sum((2, 3), keepdims=True)),
        ("Gemm", 6, {"broadcast": 1}, [np.eye(5, dtype=np.float32), np.float32([1, 2, 3, 4, 5])],
         ROW + np.float32([1, 2, 3, 4, 5])),
    ],
)  # fmt: skip
def test_old_attributes(op_type: str, opset: int, attrs: dict[str, Any], constants: list[Any], expected: np.ndarray):
    found = run(op_type, opset, [ROW if op_type == "Gemm" else X], attrs, constants)
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert found.dtype == expected.dtype


def test_concat_joins_channels_by_default():
    np.testing.assert_array_equal(run("Concat", 1, [X, X], {}), np.concatenate([X, X], 1))


@pytest.mark.parametrize("is_test", [0, 1])
def test_batch_normalization_takes_statistics_of_the_batch_unless_tested(is_test: int):
    scale, bias, mean, variance = (v.reshape(3, 1, 1) for v in STATISTICS)
    if not is_test:
        mean, variance = X.mean((0, 2, 3), keepdims=True)[0], X.var((0, 2, 3), keepdims=True)[0]
    expected = scale * (X - mean) / np.sqrt(variance + 1e-5) + bias
    found = run("BatchNormalization", 6, [X], {"is_test": is_test}, STATISTICS)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("opset", [6, 7])
def test_batch_normalization_per_activation(opset: int):
    rng = np.random.default_rng(0)
    scale, bias, mean, variance = (rng.uniform(0.5, 2, X.shape[1:]).astype(np.float32) for _ in range(4))
    attrs = {"spatial": 0, "epsilon": 0.25} | ({"is_test": 1} if opset < 7 else {})
    found = run("BatchNormalization", opset, [X], attrs, [scale, bias, mean, variance])
    np.testing.assert_allclose(found, scale * (X - mean) / np.sqrt(variance + 0.25) + bias, rtol=1e-5, atol=1e-5)
