"""What TensorFlow's graph optimizer has fused is computed as its parts are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ge.errors import ReportedError
from tests.parsers.tensorflow import oracles
from tests.parsers.tensorflow.tf_models import run_op
from tests.parsers.tensorflow.values import Array, f, same

X, W, BIAS, SIDE = f(2, 5, 6, 3), f(3, 3, 3, 4), f(4), f(2, 5, 6, 4)
NORM = [f(4), f(4), f(4), f(4, low=0.5)]
CONV: dict[str, Any] = {"strides": [1, 1, 1, 1], "padding": "SAME"}
CONVOLVED = oracles.conv(X, W, [1, 1], "SAME")


def normalised(x: Array, epsilon: float) -> Array:
    scale, offset, mean, variance = NORM
    return (x - mean) / np.sqrt(variance + epsilon) * scale + offset


@pytest.mark.parametrize(
    ("steps", "arguments", "attrs", "expected"),
    [
        ([], [], {}, CONVOLVED),
        (["BiasAdd"], [BIAS], {}, CONVOLVED + BIAS),
        (["BiasAdd", "Relu6"], [BIAS], {}, np.clip(CONVOLVED + BIAS, 0, 6)),
        (["BiasAdd", "Add", "Relu"], [BIAS, SIDE], {}, np.maximum(CONVOLVED + BIAS + SIDE, 0)),
        (["FusedBatchNorm", "Relu"], NORM, {"epsilon": 0.01}, np.maximum(normalised(CONVOLVED, 0.01), 0)),
        (["BiasAdd", "LeakyRelu"], [BIAS], {"leakyrelu_alpha": 0.3}, None),
    ],
)
def test_fused_convolution(steps: list[str], arguments: list[Array], attrs: dict[str, Any], expected: Any) -> None:
    if expected is None:
        biased = CONVOLVED + BIAS
        expected = np.where(biased > 0, biased, 0.3 * biased)
    found = run_op("_FusedConv2D", [X, W, *arguments], [1], fused_ops=steps, num_args=len(arguments), **CONV, **attrs)
    same(found[0], expected)


def test_other_fused_operators() -> None:
    a, b, c = f(3, 5), f(4, 5), f(4)
    found = run_op("_FusedMatMul", [a, b, c], [1], transpose_b=True, fused_ops=["BiasAdd", "Tanh"], num_args=1)
    same(found[0], np.tanh(a.astype(float) @ b.T + c))
    w = f(3, 3, 3, 1)
    found = run_op("_FusedDepthwiseConv2dNative", [X, w, BIAS[:3]], [1], fused_ops=["BiasAdd"], num_args=1, **CONV)
    same(found[0], oracles.depthwise(X, w, [1, 1], "SAME", [1, 1]) + BIAS[:3])
    x = CONVOLVED.astype(np.float32)
    norm = {"is_training": False, "epsilon": 0.02, "activation_mode": "Relu", "num_side_inputs": 1}
    found = run_op("_FusedBatchNormEx", [x, *NORM, SIDE], **norm)
    same(found[0], np.maximum(normalised(x.astype(float), 0.02) + SIDE, 0))


@pytest.mark.parametrize(
    ("steps", "told"), [(["BiasAdd", "Swirl"], "names Swirl"), (["BiasAdd", "Add"], "too few for BiasAdd, Add")]
)
def test_what_cannot_be_taken_apart(steps: list[str], told: str) -> None:
    with pytest.raises(ReportedError) as caught:
        run_op("_FusedConv2D", [X, W, BIAS], [1], fused_ops=steps, num_args=1, **CONV)
    assert told in caught.value.message
