"""Arithmetic on constants for fusions: exact until it is stored, now or at load."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ge.graph import DataType
from ge.graph.types import data_type_by_short_name, numpy_dtype
from ge.options import CompileOptions, Environment
from ge.session import CompileSession
from ge.tensor_memory import LOAD_TIME_CONST
from passes.fusion.constant_arithmetic import Constant, rounded
from passes.fusion.sketch import Sketch
from tests.passes.fusion.fused import graph_of, run_model

FLOATS = {"f16": 11, "bf16": 8, "f32": 24}
"""Types with the number of their binary digits."""


def known(value: Any) -> Constant:
    array = np.asarray(value, np.float64)
    return Constant(Sketch(), array.shape, value=array)


@pytest.mark.parametrize("dtype", FLOATS)
def test_numbers_are_rounded_in_one_go(dtype) -> None:
    """Just above the middle between two numbers: rounded to float32 first, it would be the middle, and go down."""
    kind = data_type_by_short_name(dtype)
    step = 2.0 ** (1 - FLOATS[dtype])
    value = np.array([1 + step / 2 + 2.0**-50, 1 + step / 2, 1 + step * 3 / 2, -1 - step / 2 - 2.0**-50])
    expected = np.array([1 + step, 1, 1 + 2 * step, -1 - step])
    np.testing.assert_array_equal(rounded(value, kind).astype(np.float64), expected)


@pytest.mark.parametrize("dtype", [*FLOATS, "f64"])
def test_the_shape_stays(dtype) -> None:
    for shape in [(), (1,), (2, 3), (0, 2)]:
        found = rounded(np.ones(shape), data_type_by_short_name(dtype))
        assert found.shape == shape
        assert found.flags.c_contiguous


@pytest.mark.parametrize(
    ("value", "dtype", "fits"),
    [
        (65504.0, "f16", True),
        (65520.0, "f16", False),
        (1e30, "f32", True),
        (1e39, "f32", False),
        (np.inf, "f64", False),
        (np.nan, "f64", False),
        (0.0, "f16", True),
        (1e-8, "f16", False),
        (1e-7, "f16", True),
        (1e-46, "f32", False),
    ],
)
def test_what_can_be_stored(value, dtype, fits) -> None:
    assert known([1.0, value]).is_storable(data_type_by_short_name(dtype)) is fits


@pytest.mark.parametrize(
    ("value", "dtype", "keeps"),
    [(1e-3, "f16", True), (1e-6, "f16", False), (2.0**-24, "f16", True), (1e-37, "f32", True), (1e-43, "f32", False)],
)
def test_what_keeps_its_digits(value, dtype, keeps) -> None:
    assert known([1.0, value, 0.0]).keeps_digits(data_type_by_short_name(dtype)) is keeps


@pytest.mark.parametrize(
    ("made", "fits"),
    [
        (known(1e-200) * known(1e-200), False),
        (known(1e-200) * known([1.0, 1e-200]) * known(1e300), False),
        ((known(1e-200) * known(1e-200)).reshape((1,)) + known(1.0), False),
        (known(1e-300) / known(1e300), False),
        (known(1e-200) * 0.0, True),
        (known(0.0) * known(1e-200), True),
        (known(0.0) / known(5.0), True),
        (known(1.0) / known(np.inf), True),
        (known(1e-200) * known(1e200), True),
        (known(1.0) - known(1.0), True),
    ],
    ids=["product", "in between", "part of a sum", "quotient", "times 0", "0 times", "0 over", "over inf", "1", "sum"],
)
def test_what_is_too_small_for_float64_is_not_taken_for_0(made, fits) -> None:
    assert made.is_storable(DataType.DT_DOUBLE) is fits


def test_shapes() -> None:
    ramp = known(np.arange(6.0).reshape(2, 3))
    assert ramp.reshape((1, -1)).shape == (1, 6)
    np.testing.assert_array_equal(ramp.transpose().value, np.arange(6.0).reshape(2, 3).T)
    np.testing.assert_array_equal((ramp + known([[10.0], [20.0]])).value, [[10, 11, 12], [23, 24, 25]])
    assert Constant.filled(Sketch(), (2, 1), 3.0).is_everywhere(3)
    assert not ramp.is_everywhere(0)
    assert ramp.magnitude() == 5


OPERATORS = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv}


@settings(max_examples=40)
@given(
    steps=st.lists(st.tuples(st.sampled_from(list(OPERATORS)), st.sampled_from("abc"), st.booleans()), max_size=5),
    root=st.booleans(),
    dtype=st.sampled_from(["f32", "f16", "f64"]),
    seed=st.integers(0, 2**32 - 1),
)
def test_what_is_computed_at_load_is_what_is_computed_now(steps, root, dtype, seed) -> None:
    kind = numpy_dtype(data_type_by_short_name(dtype))
    rng = np.random.default_rng(seed)
    shapes: dict[str, tuple[int, ...]] = {"a": (2, 3), "b": (3,), "c": ()}
    values = {name: rng.uniform(0.5, 2, shape).astype(kind) for name, shape in shapes.items()}
    inputs = ", ".join(f"%{n}: {dtype}[{','.join(map(str, shape))}]@ND" for n, shape in shapes.items())
    results = []
    for at_load in ("", "abc"):
        graph = graph_of(f"graph g({inputs}) {{\n  return %a, %b, %c\n}}", values, at_load)
        sketch = Sketch(graph.outputs)
        leaves = {name: Constant.of(sketch, out) for name, out in zip("abc", graph.outputs, strict=True)}
        made = leaves["a"]
        for symbol, name, is_first in steps:
            pair = (leaves[name], made) if is_first else (made, leaves[name])
            made = OPERATORS[symbol](*pair)
        made = (made * made).sqrt() if root else made
        sketch.finish(made.reshape((3, 2)).stored(data_type_by_short_name(dtype)))
        results.append(evaluated(sketch, values))
    np.testing.assert_array_equal(*results)


def evaluated(sketch: Sketch, values) -> Any:
    """Run what was drawn as a model of its own, whose inputs are the constants that it reads."""
    for node in sketch.graph:
        node.attrs.pop(LOAD_TIME_CONST, None)
    names = dict(zip(sketch.inputs, values, strict=True))
    feeds = [values[names[data.output()]] for data in sketch.graph.data_nodes()]
    return run_model(sketch.graph, CompileSession(CompileOptions(), Environment()), feeds)[0]
