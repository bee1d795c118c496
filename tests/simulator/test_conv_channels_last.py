"""Convolution kernels on channels-last data."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.simulator.differential import FLOAT_TYPES, check_kernel


def operands(x_shape: tuple[int, ...], w_shape: tuple[int, ...], dtype: Any = np.float32) -> list[np.ndarray]:
    """Return x, a filter that keeps the scale of x, and a bias."""
    rng = np.random.default_rng(5)
    depth = np.prod(w_shape[:-1])
    arrays = (
        rng.standard_normal(x_shape),
        rng.standard_normal(w_shape) / np.sqrt(depth),
        rng.standard_normal(w_shape[-1]),
    )
    return [array.astype(dtype) for array in arrays]


def attributes(
    n: int, strides: tuple[int, ...], rates: tuple[int, ...], padding: Any, groups: int = 1
) -> dict[str, Any]:
    mode = {"padding": padding, "pads": [0] * 2 * n} if isinstance(padding, str) else {"pads": padding}
    form = "NHWC" if n == 2 else "NDHWC"
    return {"strides": [1, *strides, 1], "dilations": [1, *rates, 1], "data_format": form, "groups": groups, **mode}


# operator, x, filter, strides, dilations, padding, groups, kernel
ROWS: list[tuple[Any, ...]] = [
    ("Conv2D", (2, 6, 7, 5), (1, 1, 5, 7), (1, 1), (1, 1), "SAME", 1, "pointwise"),
    ("Conv2D", (1, 6, 7, 5), (1, 1, 5, 7), (2, 3), (1, 1), "VALID", 1, "unfolded"),
    ("Conv2D", (2, 9, 8, 3), (3, 3, 3, 4), (1, 1), (1, 1), "SAME", 1, "unfolded"),
    ("Conv2D", (1, 21, 22, 3), (7, 7, 3, 8), (2, 2), (1, 1), "SAME", 1, "unfolded"),
    ("Conv2D", (2, 9, 8, 4), (2, 4, 4, 6), (1, 3), (1, 1), [1, 0, 2, 1], 1, "unfolded"),
    ("Conv2D", (1, 13, 12, 4), (4, 2, 4, 6), (3, 1), (2, 3), "VALID", 1, "unfolded"),
    ("Conv2D", (1, 13, 12, 6), (3, 3, 1, 6), (1, 1), (1, 1), "SAME", 6, "depthwise"),
    ("Conv3D", (1, 5, 6, 7, 4), (2, 3, 2, 4, 3), (2, 1, 2), (1, 1, 1), [0, 1, 1, 1, 0, 1], 1, "unfolded"),
    ("Conv3D", (1, 5, 6, 7, 4), (2, 3, 2, 4, 3), (1, 1, 1), (2, 1, 2), "SAME", 1, "unfolded"),
    ("DepthwiseConv2D", (2, 7, 9, 6), (3, 3, 6, 1), (1, 1), (1, 1), "SAME", 1, "depthwise"),
    ("DepthwiseConv2D", (1, 11, 9, 6), (5, 3, 6, 1), (2, 2), (1, 1), "SAME", 1, "depthwise"),
    ("DepthwiseConv2D", (1, 11, 9, 6), (3, 3, 6, 1), (1, 1), (2, 3), "VALID", 1, "depthwise"),
]


def case(row: tuple[Any, ...], dtype: Any = np.float32) -> tuple[str, list[np.ndarray], dict[str, Any], str]:
    kind, x, w, strides, rates, padding, groups, name = row
    inputs = operands(x, w, dtype)
    if kind == "DepthwiseConv2D":
        inputs[2] = np.resize(inputs[0], x[-1])
    attrs = attributes(len(strides), strides, rates, padding, groups)
    if kind == "DepthwiseConv2D":
        del attrs["groups"]
    return kind, inputs, attrs, f"conv-{name}-channels-last"


@pytest.mark.parametrize("row", ROWS)
@pytest.mark.parametrize("has_bias", [False, True])
def test_constant_filters(row: tuple[Any, ...], has_bias: bool) -> None:
    kind, inputs, attrs, name = case(row)
    check_kernel(kind, inputs[: 2 + has_bias], attrs, constant=[1, 2][: 1 + has_bias], kernel=name)


@pytest.mark.parametrize("row", ROWS)
def test_filters_that_are_computed(row: tuple[Any, ...]) -> None:
    kind, inputs, attrs, name = case(row)
    check_kernel(kind, inputs, attrs, kernel=name)


@pytest.mark.parametrize("row", ROWS[1:])
@pytest.mark.parametrize("dtype", FLOAT_TYPES[1:])
def test_other_types(row: tuple[Any, ...], dtype: Any) -> None:
    kind, inputs, attrs, name = case(row, dtype)
    check_kernel(kind, inputs, attrs, constant=[1, 2], kernel=name)


@st.composite
def convolutions(draw: st.DrawFn) -> tuple[Any, ...]:
    sizes = [draw(st.integers(1, 9)) for _ in range(2)]
    kernel = [draw(st.integers(1, 4)) for _ in range(2)]
    strides = tuple(draw(st.integers(1, 3)) for _ in range(2))
    rates = tuple(draw(st.integers(1, 2)) for _ in range(2))
    channels, outputs = draw(st.integers(1, 5)), draw(st.integers(1, 5))
    return (
        *("Conv2D", (draw(st.integers(1, 2)), *sizes, channels), (*kernel, channels, outputs)),
        *(strides, rates, "SAME", 1, "any"),
    )


@given(convolutions())
@settings(max_examples=60)
def test_any_convolution(row: tuple[Any, ...]) -> None:
    kind, inputs, attrs, _ = case(row)
    # one or two results may happen to be small beside what they are the sum of
    check_kernel(kind, inputs, attrs, constant=[1, 2], kernel=None, tolerance=1e-4)
