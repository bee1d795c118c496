"""The shapes that TensorFlow's users know: what is written around convolutions and products becomes part of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import atc
from parsers.tensorflow import graph_def_pb2 as pb
from tests.end_to_end.agreement import run
from tests.parsers.tensorflow import oracles
from tests.parsers.tensorflow.tf_models import Type, const, graph, node, placeholder

Array = np.ndarray[Any, np.dtype[Any]]
GENERATOR = np.random.default_rng(11)


def f(*shape: int, low: float = -1, high: float = 1) -> Array:
    return GENERATOR.uniform(low, high, shape).astype(np.float32)


X, W, DEPTHWISE = f(2, 7, 8, 3), f(3, 3, 3, 4), f(3, 3, 3, 2)
TRANSPOSED = f(3, 3, 4, 3)
GAMMA, BETA, MEAN, VARIANCE = f(4, low=0.5), f(4), f(4), f(4, low=0.5, high=2)
MEAN_6, VARIANCE_6 = f(6), f(6, low=0.5, high=2)
CONV = node("Conv2D", "conv", "x w", strides=[1, 1, 1, 1], padding="SAME")
CONVOLVED = oracles.conv(X, W, [1, 1], "SAME")
NORMALISED = (CONVOLVED - MEAN) / np.sqrt(VARIANCE + 1e-3) * GAMMA + BETA


def statistics(count: int) -> list[pb.NodeDef]:
    names = {4: (GAMMA, BETA, MEAN, VARIANCE), 6: (np.ones(6, np.float32), np.zeros(6, np.float32), MEAN_6, VARIANCE_6)}
    return [const(name, value) for name, value in zip(("gamma", "beta", "mean", "variance"), names[count], strict=True)]


def arithmetic(source: str) -> list[pb.NodeDef]:
    """Return a batch norm as Keras writes it when it cannot use the fused one."""
    return [
        *statistics(4),
        const("eps", np.float32(1e-3)),
        node("AddV2", "add", "variance eps"),
        node("Rsqrt", "rsqrt", "add"),
        node("Mul", "scale", "rsqrt gamma"),
        node("Mul", "scaled", f"{source} scale"),
        node("Mul", "shifted_mean", "mean scale"),
        node("Sub", "shift", "beta shifted_mean"),
        node("AddV2", "y", "scaled shift"),
    ]


FUSED = [
    node("FusedBatchNormV3", "norm", "conv gamma beta mean variance", is_training=False, epsilon=1e-3),
    node("Identity", "y", "norm"),
]

MODELS: dict[str, tuple[list[pb.NodeDef], Array, dict[str, int]]] = {
    "fused batch norm": (
        [
            CONV,
            *statistics(4),
            *FUSED,
        ],
        NORMALISED,
        {"Conv2D": 1},
    ),
    "batch norm as arithmetic": ([CONV, *arithmetic("conv")], NORMALISED, {"Conv2D": 1}),
    "bias, then batch norm": (
        [CONV, const("bias", BETA), node("BiasAdd", "biased", "conv bias"), *arithmetic("biased")],
        NORMALISED + BETA / np.sqrt(VARIANCE + 1e-3) * GAMMA,
        {"Conv2D": 1},
    ),
    "depthwise with batch norm": (
        [
            const("d", DEPTHWISE),
            node("DepthwiseConv2dNative", "conv", "x d", strides=[1, 1, 1, 1], padding="SAME"),
            *statistics(6),
            *FUSED,
        ],
        (oracles.depthwise(X, DEPTHWISE, [1, 1], "SAME", [1, 1]) - MEAN_6) / np.sqrt(VARIANCE_6 + 1e-3),
        {"DepthwiseConv2D": 1},
    ),
    "padding before a strided convolution": (
        [
            const("widths", np.int32([[0, 0], [0, 1], [1, 1], [0, 0]])),
            node("Pad", "padded", "x widths"),
            node("Conv2D", "conv", "padded w", strides=[1, 2, 2, 1], padding="VALID"),
            node("Relu6", "y", "conv"),
        ],
        np.clip(oracles.conv(X, W, [2, 2], [(0, 1), (1, 1)]), 0, 6),
        {"Conv2D": 1, "Relu6": 1},
    ),
    "channels first": (
        [
            const("axes", np.int32([0, 3, 1, 2])),
            node("Transpose", "first", "x axes"),
            node("Conv2D", "conv", "first w", strides=[1, 1, 1, 1], padding="SAME", data_format="NCHW"),
            const("bias", BETA),
            node("BiasAdd", "biased", "conv bias", data_format="NCHW"),
            const("back", np.int32([0, 2, 3, 1])),
            node("Transpose", "y", "biased back"),
        ],
        CONVOLVED + BETA,
        {"Conv2D": 1, "Transpose": 2},
    ),
    "transposed convolution with bias and batch norm": (
        [
            const("sizes", np.int32([2, 14, 16, 4])),
            const("t", TRANSPOSED),
            node("Conv2DBackpropInput", "conv", "sizes t x", strides=[1, 2, 2, 1], padding="SAME"),
            const("bias", BETA),
            node("BiasAdd", "biased", "conv bias"),
            *arithmetic("biased"),
        ],
        (oracles.conv_gradient([2, 14, 16, 4], TRANSPOSED, X, [2, 2], "SAME") + BETA - MEAN)
        / np.sqrt(VARIANCE + 1e-3)
        * GAMMA
        + BETA,
        {"Conv2DTranspose": 1},
    ),
    "dropout that keeps everything": (
        [
            const("one", np.float32(1)),
            node("PlaceholderWithDefault", "keep", "one"),
            CONV,
            node("RealDiv", "scaled", "conv keep"),
            node("Shape", "shape", "conv"),
            node("RandomUniform", "noise", "shape", dtype=Type(pb.DT_FLOAT)),
            node("AddV2", "shifted", "noise keep"),
            node("Floor", "mask", "shifted"),
            node("Mul", "y", "scaled mask"),
        ],
        CONVOLVED,
        {"Conv2D": 1},
    ),
    "what changes nothing": (
        [
            node("StopGradient", "a", "x"),
            node("CheckNumerics", "b", "a", message="x"),
            node("Identity", "c", "b"),
            node("Snapshot", "d", "c"),
            node("Conv2D", "conv", "d w", strides=[1, 1, 1, 1], padding="SAME"),
            node("PreventGradient", "y", "conv"),
        ],
        CONVOLVED,
        {"Conv2D": 1},
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_what_is_around_a_convolution_becomes_part_of_it(name: str, tmp_path: Path) -> None:
    nodes, expected, left = MODELS[name]
    content = graph(placeholder("x", X.shape), const("w", W), *nodes).SerializeToString()
    options = {"framework": 3, "soc_version": "Ascend310P3", "precision_mode_v2": "origin"}
    # with refinement on, Transposes may become part of TransData
    fused = atc.compile_model(content, **options, format_refinement="0")
    types = [n.type for n in fused.graph if n.type not in ("Data", "Const", "NetOutput")]
    assert {kind: types.count(kind) for kind in dict.fromkeys(types)} == left
    for compiled in (fused, atc.compile_model(content, **options, format_refinement="1")):
        compiled.save(tmp_path / "m.om")
        np.testing.assert_allclose(run(tmp_path / "m.om", {"x": X})["y:0"], expected, rtol=1e-4, atol=1e-4)
