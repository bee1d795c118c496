"""A bias behind the Reshape of a matrix product."""

from __future__ import annotations

import numpy as np
import pytest

from passes.fusion.move_bias_before_reshape import MoveBiasBeforeReshape
from tests.passes.fusion.fused import fused, graph_of, left_alone, results, settled


def text(line: str, bias: str = "4", shape: str = "2,3,4", product: str = "%m = MatMulV2(%x, %w)") -> str:
    dims = shape.split(",")
    return f"""graph g(%x: f32[6,5]@ND, %w: f32[5,4]@ND, %b: f32[{bias}]@ND) {{
  %s = Const {{value=i32[{len(dims)}]{{{shape}}}}} -> i32[{len(dims)}]@ND
  {product}
  %r = Reshape(%m, %s)
  {line}
  return %y
}}"""


def constants(rng: np.random.Generator, bias: tuple[int, ...] = (4,)) -> dict[str, np.ndarray]:
    shapes = {"w": (5, 4), "b": bias}
    return {name: rng.uniform(-2, 2, shape).astype(np.float32) for name, shape in shapes.items()}


@pytest.mark.parametrize(
    ("line", "bias"),
    [("%y = Add(%r, %b)", (4,)), ("%y = Add(%b, %r)", (1, 4)), ('%y = BiasAdd(%r, %b) {data_format="NHWC"}', (4,))],
)
def test_it_is_added_before_the_reshape(line: str, bias: tuple[int, ...], rng: np.random.Generator) -> None:
    values = constants(rng, bias)
    source = text(line, ",".join(map(str, bias)))
    result = fused(MoveBiasBeforeReshape, graph_of(source, values))
    kept = [kind for kind in settled(result).types() if kind not in ("Const", "Data")]
    assert kept == ["MatMulV2", "Add", "Reshape"]
    x = rng.uniform(-2, 2, (6, 5)).astype(np.float32)
    expected = (x.astype(float) @ values["w"]).reshape(2, 3, 4) + values["b"].reshape(-1)
    for fusion in (None, MoveBiasBeforeReshape):
        [found] = results(fusion, graph_of(source, values), [x])
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("changed", "bias", "told"),
    [
        ({"line": "%y = Add(%r, %b)", "shape": "2,6,2", "bias": "2"}, (2,), "changes the last axis"),
        ({"line": "%y = Add(%r, %b)", "bias": "3,4"}, (3, 4), "one number for each of 4 columns"),
        ({"line": "%y = Add(%r, %b)", "bias": "1"}, (1,), "one number for each of 4 columns"),
        ({"line": '%y = BiasAdd(%r, %b) {data_format="NCHW"}', "bias": "3"}, (3,), "another axis than the last"),
        ({"line": "%y = Add(%r, %b)", "product": "%n = MatMulV2(%x, %w)\n  %m = Relu(%n)"}, (4,), "no matrix product"),
    ],
)
def test_what_is_left_alone(
    changed: dict[str, str], bias: tuple[int, ...], told: str, rng: np.random.Generator
) -> None:
    [reason] = left_alone(MoveBiasBeforeReshape, graph_of(text(**changed), constants(rng, bias)))
    assert told in reason
