"""Matrix products."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ge.errors import ReportedError
from ge.graph import Graph, TensorDesc
from ge.ops import infer_node
from tests.ops.one_node import assert_close, data, inferred, run_ge, run_onnx


@pytest.mark.parametrize("type", ["MatMul", "MatMulV2", "MatMulV3"])
@pytest.mark.parametrize(("left", "right"), [(False, False), (True, False), (False, True), (True, True)])
def test_matmul(type: str, left: bool, right: bool) -> None:
    a, b, bias = data(1, 5, 4), data(2, 4, 6), data(3, 6)
    operands = [a.T if left else a, b.T if right else b, bias]
    [found] = run_ge(type, operands, {"transpose_x1": left, "transpose_x2": right})
    assert_close(found, a.astype(np.float64) @ b + bias)


@pytest.mark.parametrize("type", ["BatchMatMul", "BatchMatMulV2", "BatchMatMulV3"])
@pytest.mark.parametrize(
    ("a_shape", "b_shape"),
    [((2, 3, 4, 5), (2, 3, 5, 6)), ((2, 1, 4, 5), (3, 5, 6)), ((4, 5), (2, 5, 6)), ((5,), (2, 5, 6)), ((4, 5), (5,))],
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_batch_matmul(type: str, a_shape: tuple[int, ...], b_shape: tuple[int, ...], dtype: Any) -> None:
    a, b = data(1, *a_shape, dtype=dtype), data(2, *b_shape, dtype=dtype)
    [expected] = run_onnx("MatMul", [a, b])
    assert_close(run_ge(type, [a, b])[0], expected)
    if min(a.ndim, b.ndim) > 1:
        swapped = [a.swapaxes(-1, -2), b.swapaxes(-1, -2)]
        assert_close(run_ge(type, swapped, {"adj_x1": True, "adj_x2": True})[0], expected)


def test_adjoint_of_complex_operands() -> None:
    a, b = data(1, 3, 4) + 1j * data(2, 3, 4), data(3, 3, 5) + 1j * data(4, 3, 5)
    a, b = a.astype(np.complex64), b.astype(np.complex64)
    np.testing.assert_allclose(run_ge("BatchMatMul", [a, b], {"adj_x1": True})[0], a.conj().T @ b, rtol=1e-5)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
def test_bytes_give_int32(dtype: Any) -> None:
    a, b = data(1, 3, 300, dtype=dtype, low=0, high=127), data(2, 300, 4, dtype=np.int8, low=-128, high=127)
    bias = np.array([1, -2, 3, 100000], np.int32)
    [found] = run_ge("MatMulV2", [a, b, bias], {"offset_x": 7})
    assert found.dtype == np.int32
    np.testing.assert_array_equal(found, (a.astype(np.int64) - 7) @ b.astype(np.int64) + bias)


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint32, np.uint64])
def test_wider_integers_wrap(dtype: Any) -> None:
    high = np.iinfo(dtype).max
    a, b = np.array([[high, 3], [2, 5]], dtype), np.array([[7, 1], [high, high - 1]], dtype)
    with np.errstate(over="ignore"):
        expected = (a[:, :, None] * b[None]).sum(1, dtype=dtype)
    np.testing.assert_array_equal(run_ge("BatchMatMulV2", [a, b])[0], expected)
    small = [data(1, 6, 50, dtype=dtype, low=0, high=99), data(2, 50, 5, dtype=dtype, low=0, high=99)]
    np.testing.assert_array_equal(run_ge("BatchMatMulV2", small)[0], run_onnx("MatMul", small)[0])


@pytest.mark.parametrize(("left", "right"), [(False, False), (True, False), (False, True), (True, True)])
@pytest.mark.parametrize("c_shape", [(6,), (5, 1), (5, 6), ()])
def test_gemm(left: bool, right: bool, c_shape: tuple[int, ...]) -> None:
    a, b, c = data(1, *((4, 5) if left else (5, 4))), data(2, *((6, 4) if right else (4, 6))), data(3, *c_shape)
    attrs = {"transA": int(left), "transB": int(right), "alpha": 0.5, "beta": 2.0}
    inputs = [a, b, c, np.float32([0.5]), np.float32([2.0])]
    [found] = run_ge("GEMM", inputs, {"transpose_a": left, "transpose_b": right})
    assert_close(found, run_onnx("Gemm", [a, b, c], attrs)[0])


@pytest.mark.parametrize("transpose", [False, True])
@pytest.mark.parametrize(("shape", "axis"), [((2, 3, 2, 2), 1), ((4, 6), 1), ((2, 3, 5), 2)])
def test_fully_connection(shape: tuple[int, ...], axis: int, transpose: bool) -> None:
    depth = int(np.prod(shape[axis:]))
    x, w, b = data(1, *shape), data(2, 7, depth), data(3, 7)
    attrs = {"num_output": 7, "axis": axis, "transpose": transpose}
    [found] = run_ge("FullyConnection", [x, w.T.copy() if transpose else w, b], attrs)
    assert_close(found, x.reshape(*shape[:axis], depth).astype(np.float64) @ w.T + b)


@pytest.mark.parametrize(
    ("type", "inputs", "attrs", "message"),
    [
        ("MatMulV2", [(2, 3), (4, 5)], {}, r"operands \[2,3\] and \[4,5\] have inner sizes 3 and 4"),
        ("MatMulV2", [(2, 3), (4, 3)], {"transpose_x1": True, "transpose_x2": True}, "inner sizes 2 and 3"),
        ("MatMulV2", [(1, 2, 3), (3, 5)], {}, r"x1 has shape \[1,2,3\], but a matrix of rank 2 is needed"),
        ("MatMulV2", [(2, 3), (3, 5), (4,)], {}, r"bias \[4\] cannot be broadcast to the product \[2,5\]"),
        ("MatMulV2", [(2, 1), (1, 1), (2, 4)], {}, r"bias \[2,4\] cannot be broadcast to the product \[2,1\]"),
        ("BatchMatMulV2", [(2, 4, 3), (3, 3, 5)], {}, r"shapes \[2\] and \[3\] cannot be broadcast"),
        ("BatchMatMulV2", [(), (3, 5)], {}, "a scalar cannot be multiplied as a matrix"),
        ("BatchMatMulV2", [(3,), (3, 5)], {"adj_x1": True}, r"x1 has shape \[3\], which cannot be transposed"),
        ("GEMM", [(2, 3), (3, 5), (3, 5), (), ()], {}, r"c \[3,5\] cannot be broadcast to the product \[2,5\]"),
        ("FullyConnection", [(2, 3, 4), (5, 11)], {"num_output": 5}, "num_output 5 .* need 5 times 12 elements"),
        ("FullyConnection", [(2, 3), (5, 3)], {"num_output": 5, "axis": 3}, "axis must be 1 or 2, not 3"),
    ],
)
def test_products_refuse(type: str, inputs: list[tuple[int, ...]], attrs: dict[str, Any], message: str) -> None:
    with pytest.raises(ReportedError, match=message) as caught:
        inferred(type, [data(i, *shape) for i, shape in enumerate(inputs)], attrs)
    assert caught.value.code == "E14001"


def test_operands_must_have_one_type() -> None:
    with pytest.raises(ReportedError, match="element types differ: x1 DT_FLOAT, x2 DT_DOUBLE"):
        inferred("MatMulV2", [data(1, 2, 3), data(2, 3, 2, dtype=np.float64)], {})


@pytest.mark.parametrize("bias", [[5], [1, 5], [-1], [-2], [2, -1]])
def test_a_bias_may_fit_dims_that_are_not_known_yet(bias: list[int]) -> None:
    graph = Graph()
    sources = [
        graph.add_node("Data", f"in{i}", output_descs=[TensorDesc(dims)]).output(0)
        for i, dims in enumerate(([-1, 3], [3, -1], bias))
    ]
    node = graph.add_node("MatMulV2", "node", sources)
    infer_node(node)
    assert list(node.output_descs[0].shape) == [-1, -1]
