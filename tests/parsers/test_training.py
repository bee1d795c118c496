"""Optimiser steps against their formulas, and derivatives against differences, both in float64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

from ge.errors import ReportedError
from parsers.onnx.training import TRAINING
from tests.parsers.evaluation import evaluate, parse_model
from tests.parsers.onnx_models import model, node, value

F64 = TensorProto.DOUBLE
OPSETS = {"imports": {TRAINING: 1}, "opset": 13}


def step(op_type: str, tensors: list[list[np.ndarray]], rate: float, count: int, **attrs: Any) -> list[np.ndarray]:
    """Run one optimiser node on the tensors of each role, and return its outputs."""
    flat = [array for role in tensors for array in role]
    names = [f"t{i}" for i in range(len(flat))]
    n_results = len(flat) - len(tensors[0])  # all roles but the gradient come out
    outputs = [f"y{i}" for i in range(n_results)]
    source = model(
        [helper.make_node(op_type, ["R", "T", *names], outputs, "n", domain=TRAINING, **attrs)],
        [
            value("R", (), F64),
            value("T", (), TensorProto.INT64),
            *(value(m, a.shape, F64) for m, a in zip(names, flat, strict=True)),
        ],
        [value(name, None, F64) for name in outputs],
        **OPSETS,
    )
    return evaluate(parse_model(source), [np.float64(rate), np.int64(count), *flat])


def arrays(rng: np.random.Generator, n_roles: int) -> list[list[np.ndarray]]:
    """Return positive tensors of two shapes for each role."""
    return [[rng.uniform(0.1, 2, shape) for shape in ((2, 3), (4,))] for _ in range(n_roles)]


@pytest.mark.parametrize("count", [0, 3])
@pytest.mark.parametrize("norm", [0.0, 0.25])
def test_adagrad(rng: np.random.Generator, count: int, norm: float) -> None:
    xs, gs, hs = tensors = arrays(rng, 3)
    found = step("Adagrad", tensors, 0.5, count, norm_coefficient=norm, decay_factor=0.125, epsilon=0.0625)
    for i in range(2):
        g = gs[i] + norm * xs[i]
        h = hs[i] + g * g
        np.testing.assert_allclose(found[i], xs[i] - 0.5 / (1 + count * 0.125) * g / (np.sqrt(h) + 0.0625))
        np.testing.assert_allclose(found[2 + i], h)


@pytest.mark.parametrize("count", [0, 3])
@pytest.mark.parametrize("mode", ["standard", "nesterov"])
def test_momentum(rng: np.random.Generator, count: int, mode: str) -> None:
    xs, gs, vs = tensors = arrays(rng, 3)
    found = step("Momentum", tensors, 0.5, count, norm_coefficient=0.25, alpha=0.75, beta=0.375, mode=mode)
    for i in range(2):
        g = gs[i] + 0.25 * xs[i]
        v = 0.75 * vs[i] + (0.375 if count else 1) * g
        np.testing.assert_allclose(found[i], xs[i] - 0.5 * (v if mode == "standard" else g + 0.75 * v))
        np.testing.assert_allclose(found[2 + i], v)


@pytest.mark.parametrize("count", [0, 3])
@pytest.mark.parametrize("after", [0.0, 0.5])
def test_adam(rng: np.random.Generator, count: int, after: float) -> None:
    xs, gs, vs, hs = tensors = arrays(rng, 4)
    attrs = {"alpha": 0.75, "beta": 0.875, "epsilon": 0.0625, "norm_coefficient": 0.25}
    found = step("Adam", tensors, 0.5, count, norm_coefficient_post=after, **attrs)
    rate = 0.5 * np.sqrt(1 - 0.875**count) / (1 - 0.75**count) if count else 0.5
    for i in range(2):
        g = gs[i] + 0.25 * xs[i]
        v = 0.75 * vs[i] + 0.25 * g
        h = 0.875 * hs[i] + 0.125 * g * g
        np.testing.assert_allclose(found[i], (1 - after) * (xs[i] - rate * v / (np.sqrt(h) + 0.0625)))
        np.testing.assert_allclose(found[2 + i], v)
        np.testing.assert_allclose(found[4 + i], h)


def test_tensors_that_do_not_add_up() -> None:
    with pytest.raises(ReportedError) as caught:
        step("Adam", [[np.ones(2)], [np.ones(2)], [np.ones(2)]], 0.5, 0)
    assert "[n]" in caught.value.message
    assert "3 inputs" in caught.value.message


# -- derivatives -------------------------------------------------------------------------------------------------------
A, B = (2, 3), (3,)
FUNCTIONS: dict[str, tuple[list[Any], Callable[[np.ndarray, np.ndarray], np.ndarray]]] = {
    "sum and product": ([node("Add", "a b", "c", "p"), node("Mul", "c a", "y", "q")], lambda a, b: (a + b) * a),
    "quotient": ([node("Div", "b a", "y", "p")], lambda a, b: b / a),
    "difference, repeated": ([node("Sub", "b a", "c", "p"), node("Mul", "c c", "y", "q")], lambda a, b: (b - a) ** 2),
    "sigmoid of tanh": (
        [node("Mul", "a b", "c", "p"), node("Tanh", "c", "d", "q"), node("Sigmoid", "d", "y", "r")],
        lambda a, b: 1 / (1 + np.exp(-np.tanh(a * b))),
    ),
    "relu": ([node("Sub", "a b", "c", "p"), node("Relu", "c", "y", "q")], lambda a, b: np.maximum(a - b, 0)),
    "log, exp, sqrt": (
        [
            node("Log", "a", "c", "p"),
            node("Sqrt", "b", "d", "q"),
            node("Mul", "c d", "e", "r"),
            node("Exp", "e", "y", "s"),
        ],
        lambda a, b: np.exp(np.log(a) * np.sqrt(b)),
    ),
    "power": ([node("Mul", "a b", "c", "p"), node("Pow", "c three", "y", "q")], lambda a, b: (a * b) ** 3),
    "matrix by vector": ([node("MatMul", "a b", "y", "p")], lambda a, b: a @ b),
    "matrices": (
        [node("MatMul", "a m", "c", "p"), node("Gemm", "c a", "y", "q", transA=1)],
        lambda a, b: (a @ M).T @ a,
    ),
    "gemm": (
        [node("Gemm", "a m b", "y", "p", transB=1, alpha=2.0, beta=0.5)],
        lambda a, b: 2 * (a @ M.T) + 0.5 * b,
    ),
    "mean": (
        [
            node("Mul", "a a", "c", "p"),
            node("ReduceMean", "c", "d", "q", axes=[1], keepdims=0),
            node("ReduceSum", "d", "y", "r"),
        ],
        lambda a, b: (a * a).mean(1).sum(keepdims=True)[None],
    ),
    "reshaped": ([node("Reshape", "a flat", "c", "p"), node("Mul", "c c", "y", "q")], lambda a, b: a.reshape(-1) ** 2),
    "itself": ([node("Identity", "a", "y", "p")], lambda a, b: a),
}
M = np.array([[1.5, -2.0, 0.5], [0.25, 1.0, -1.0], [2.0, 0.0, 1.0]])
CONSTANTS = {"m": M, "three": np.float64(3), "flat": np.int64([-1])}


def derivatives(nodes: list[Any], a: np.ndarray, b: np.ndarray, **names: Any) -> list[np.ndarray]:
    names = {"xs": ["a", "b"], "y": "y"} | names
    inputs = [*names["xs"], *names.get("zs", [])]
    outputs = [f"d{name}" for name in names["xs"]]
    back = helper.make_node("Gradient", inputs, outputs, "back", domain=TRAINING, **names)
    source = model(
        [*nodes, back],
        [value("a", a.shape, F64), value("b", b.shape, F64)],
        [value(name, None, F64) for name in outputs],
        CONSTANTS,
        **OPSETS,
    )
    return evaluate(parse_model(source), [a, b])


@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives_agree_with_differences(rng: np.random.Generator, name: str) -> None:
    nodes, function = FUNCTIONS[name]
    point = [rng.uniform(0.5, 2, shape) for shape in (A, B)]
    found = derivatives(nodes, *point)
    for which, derivative in enumerate(found):
        assert derivative.shape == point[which].shape
        for index in np.ndindex(derivative.shape):
            sides = [[array.copy() for array in point] for _ in range(2)]
            sides[0][which][index] += 1e-6
            sides[1][which][index] -= 1e-6
            above, below = (function(*side).sum() for side in sides)
            assert derivative[index] == pytest.approx((above - below) / 2e-6, rel=1e-6, abs=1e-6)


def test_independent_tensor_inside_cuts_off_what_is_before(rng: np.random.Generator) -> None:
    a, b = rng.uniform(0.5, 2, A), rng.uniform(0.5, 2, B)
    nodes = [node("Exp", "a", "h", "p"), node("Mul", "h b", "y", "q")]
    [by_h] = derivatives(nodes, a, b, xs=["h"], zs=["b"])
    np.testing.assert_allclose(by_h, np.broadcast_to(b, A))


@pytest.mark.parametrize(
    ("nodes", "names", "words"),
    [
        ([node("Erf", "a", "y", "p")], {}, "p (Erf)"),
        ([node("Exp", "a", "y", "p")], {"y": "nothing"}, "[nothing]"),
        ([node("Pow", "a b", "y", "p")], {}, "exponent"),
    ],
)
def test_refused(nodes: list[Any], names: dict[str, Any], words: str) -> None:
    with pytest.raises(ReportedError) as caught:
        derivatives(nodes, np.ones(A), np.ones(B), **names)
    assert words in caught.value.message
    assert "back" in caught.value.message
