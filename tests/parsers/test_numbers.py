"""Numbers: parsed graphs, run by the reference semantics of their operators, against onnxruntime.

Mostly older forms of operators: ONNX's own node tests, which know the newest, run in tests/conformance.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import ModelProto

from tests.parsers.evaluation import evaluate, parse_model
from tests.parsers.onnx_models import one

Array = np.ndarray[Any, np.dtype[Any]]


def close(found: Array, expected: Array, rtol: float, atol: float) -> None:
    assert found.shape == expected.shape
    if expected.dtype.kind in "OUS":
        as_text = [[v.decode() if isinstance(v, bytes) else str(v) for v in a.ravel()] for a in (found, expected)]
        assert as_text[0] == as_text[1]
        return
    assert found.dtype == expected.dtype
    wide = np.complex128 if expected.dtype.kind == "c" else np.float64
    np.testing.assert_allclose(found.astype(wide), expected.astype(wide), rtol=rtol, atol=atol)


# -- one operator ------------------------------------------------------------------------------
def drawn(dims: Iterable[int], seed: int = 0, low: float = -2.0, high: float = 2.0) -> Array:
    return np.random.default_rng(seed).uniform(low, high, tuple(dims)).astype(np.float32)


I64 = np.int64
IMAGE, FILTER = (2, 3, 7, 8), drawn((4, 3, 3, 2), 1)

OLDER: dict[str, ModelProto] = {
    "Conv 1": one("Conv", IMAGE, FILTER, opset=10, pads=[1, 0, 2, 1], strides=[2, 1], dilations=[1, 2]),
    "Conv 1 SAME_LOWER": one("Conv", IMAGE, FILTER, opset=10, auto_pad="SAME_LOWER", strides=[2, 3]),
    "Conv over one axis": one("Conv", (2, 3, 9), drawn((4, 3, 3)), drawn((4,)), opset=8, pads=[2, 1], strides=[2]),
    "Conv over three axes": one("Conv", (1, 2, 5, 6, 7), drawn((4, 1, 2, 3, 2)), opset=7, group=2, strides=[1, 2, 1]),
    "ConvTranspose 1": one("ConvTranspose", IMAGE, drawn((3, 2, 3, 2)), opset=10, strides=[2, 3], pads=[1, 0, 0, 1]),
    "ConvTranspose with output_shape": one(
        "ConvTranspose", IMAGE, drawn((3, 2, 3, 2)), opset=11, strides=[2, 2], output_shape=[15, 16]
    ),
    "ConvTranspose over one axis": one("ConvTranspose", (2, 3, 5), drawn((3, 4, 3)), opset=11, strides=[2]),
    "AveragePool 7": one("AveragePool", IMAGE, opset=7, kernel_shape=[3, 2], pads=[1, 0, 1, 1], count_include_pad=1),
    "AveragePool 10 ceil": one("AveragePool", IMAGE, opset=10, kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1),
    "AveragePool over one axis": one("AveragePool", (2, 3, 9), opset=11, kernel_shape=[4], pads=[1, 2], strides=[3]),
    "AveragePool over three axes": one("AveragePool", (1, 2, 5, 6, 7), opset=11, kernel_shape=[2, 3, 2]),
    "MaxPool 1": one("MaxPool", IMAGE, opset=7, kernel_shape=[3, 2], strides=[2, 2], auto_pad="SAME_UPPER"),
    "MaxPool 8 with indices": one("MaxPool", IMAGE, outputs=2, opset=9, kernel_shape=[2, 2], strides=[2, 2]),
    "MaxPool 10 dilated": one("MaxPool", IMAGE, opset=10, kernel_shape=[2, 2], dilations=[2, 3], ceil_mode=1),
    "MaxPool over one axis": one("MaxPool", (2, 3, 9), opset=12, kernel_shape=[3], strides=[2], pads=[1, 1]),
    "LpPool 2": one("LpPool", IMAGE, opset=10, kernel_shape=[3, 2], p=3, pads=[1, 1, 0, 0]),
    "GlobalLpPool": one("GlobalLpPool", IMAGE, opset=7, p=1),
    "GlobalMaxPool": one("GlobalMaxPool", (2, 3, 9), opset=7),
    "BatchNormalization 9": one("BatchNormalization", IMAGE, *(drawn((3,), s, 0.5, 2) for s in range(4)), opset=9),
    "BatchNormalization of vectors": one(
        "BatchNormalization", (4, 3), *(drawn((3,), s, 0.5, 2) for s in range(4)), opset=13, epsilon=0.1
    ),
    "InstanceNormalization": one("InstanceNormalization", IMAGE, drawn((3,)), drawn((3,)), opset=7, epsilon=0.01),
    "LRN": one("LRN", (2, 8, 3, 3), opset=7, size=5, alpha=0.3, beta=0.6, bias=1.5),
    "LpNormalization": one("LpNormalization", (3, 4, 5), opset=7, axis=1, p=1),
    "MeanVarianceNormalization": one("MeanVarianceNormalization", IMAGE, opset=9, axes=[0, 2]),
    "Gemm 7": one("Gemm", (3, 4), drawn((5, 3)), drawn((1, 5)), opset=7, transA=1, transB=1, alpha=0.5, beta=2.0),
    "Gemm 11 with alpha and no C": one("Gemm", (3, 4), drawn((4, 5)), opset=11, alpha=0.5),
    "MatMul of vectors": one("MatMul", (4,), drawn((4,)), opset=9),
    "MatMul vector and matrices": one("MatMul", (4,), drawn((2, 3, 4, 5)), opset=9),
    "MatMul broadcast": one("MatMul", (2, 1, 3, 4), drawn((5, 4, 2)), opset=9),
    "Softmax 1": one("Softmax", (2, 3, 4), opset=7, axis=1),
    "Softmax 11 negative axis": one("Softmax", (2, 3, 4), opset=11, axis=-2),
    "LogSoftmax 1": one("LogSoftmax", (2, 3, 4), opset=9, axis=0),
    "Hardmax 1": one("Hardmax", (2, 3, 4), opset=9, axis=1),
    "Clip 6": one("Clip", IMAGE, opset=10, min=-0.5, max=0.75),
    "Clip 11": one("Clip", IMAGE, np.float32(-0.5), opset=11),
    "Dropout 7": one("Dropout", IMAGE, opset=7, ratio=0.3),
    "Pad 2": one("Pad", (2, 3), opset=10, pads=[1, 0, 0, 2], value=1.5),
    "Pad 2 reflect": one("Pad", (4, 5), opset=10, pads=[1, 2, 3, 1], mode="reflect"),
    "Pad 2 edge": one("Pad", (4, 5), opset=10, pads=[1, 2, 3, 1], mode="edge"),
    "Pad 18 with axes": one(
        "Pad", (2, 3, 4), np.array([1, 0, 0, 2], I64), np.float32(3), np.array([-1, 0], I64), opset=18
    ),
    "Slice 1": one("Slice", (4, 5, 6), opset=9, starts=[1, -3], ends=[3, 1000], axes=[0, 2]),
    "Slice 10": one("Slice", (4, 5), *(np.array(v, I64) for v in ([3], [0], [1], [-2])), opset=10),
    "Split 2": one("Split", (7, 2), outputs=3, opset=11, axis=0, split=[2, 4, 1]),
    "Split 18 uneven": one("Split", (7, 2), outputs=3, opset=18, num_outputs=3),
    "Squeeze 1": one("Squeeze", (1, 3, 1), opset=11, axes=[0]),
    "Squeeze 11 all": one("Squeeze", (1, 3, 1), opset=11),
    "Unsqueeze 1": one("Unsqueeze", (3, 4), opset=11, axes=[0, 3]),
    "TopK 1": one("TopK", (3, 6), outputs=2, opset=9, axis=1, k=2),
    "TopK 11 smallest": one("TopK", (3, 6), np.array([4], I64), outputs=2, opset=11, axis=0 - 1, largest=0),
    "ReduceSum 11": one("ReduceSum", (2, 3, 4), opset=11, axes=[0, -1], keepdims=0),
    "ReduceSum 11 all": one("ReduceSum", (2, 3, 4), opset=11),
    "ReduceMean 11": one("ReduceMean", (2, 3, 4), opset=11, axes=[1]),
    "ReduceMax 12": one("ReduceMax", (2, 3, 4), opset=12, axes=[1], keepdims=0),
    "ReduceL1 11": one("ReduceL1", (2, 3, 4), opset=11, axes=[-1]),
    "ReduceL2 11": one("ReduceL2", (2, 3, 4), opset=11, keepdims=0),
    "ReduceLogSumExp 11": one("ReduceLogSumExp", (2, 3, 4), opset=11, axes=[0, 1]),
    "ReduceSumSquare 11": one("ReduceSumSquare", (2, 3, 4), opset=11, axes=[2]),
    "ArgMax 1": one("ArgMax", (3, 4), opset=7, axis=1),
    "ArgMin 12 last": one("ArgMin", np.float32([[1, 0, 0], [2, 2, 3]]), opset=12, axis=1, select_last_index=1),
    "Upsample 7": one("Upsample", (1, 2, 3, 4), opset=7, scales=[1.0, 1.0, 2.0, 1.5]),
    "Upsample 9 linear": one("Upsample", (1, 2, 3, 4), np.float32([1, 1, 2, 3]), opset=9, mode="linear"),
    "Resize 10": one("Resize", (1, 2, 4, 6), np.float32([1, 1, 0.5, 2]), opset=10),
    "Resize 11 half pixel": one(
        "Resize", (1, 2, 4, 6), np.zeros(0, np.float32), np.float32([1, 1, 1.7, 0.6]), opset=11, mode="linear"
    ),
    "Resize 11 sizes": one(
        "Resize", (1, 2, 4, 6), np.zeros(0, np.float32), np.zeros(0, np.float32), np.array([1, 2, 9, 5], I64),
        opset=11, mode="cubic", coordinate_transformation_mode="align_corners",
    ),
    "Resize 13 plain nearest": one(
        "Resize", (1, 2, 4, 6), None, np.float32([1, 1, 2, 3]), opset=13, nearest_mode="floor",
        coordinate_transformation_mode="asymmetric",
    ),
    "OneHot 11 negative": one(
        "OneHot", np.array([0, -1, 5, 2], I64), np.array(3, I64), np.float32([2, 5]), opset=11, axis=0
    ),
    "Scatter 9": one("Scatter", (3, 3), np.array([[1, 0, 2]], I64), drawn((1, 3)), opset=9, axis=0),
    "Compress 9": one("Compress", (3, 4), np.array([False, True, True]), opset=9, axis=0),
    "Compress flat": one("Compress", (3, 4), np.array([False, True, True, False, True]), opset=9),
    "Transpose reversed": one("Transpose", (2, 3, 4), opset=7),
    "Expand 8": one("Expand", (3, 1), np.array([2, 1, 4], I64), opset=8),
    "Tile 6": one("Tile", (2, 3), np.array([2, 2], I64), opset=7),
    "Mean 8": one("Mean", (2, 3), drawn((3,)), drawn((2, 1)), opset=8),
    "Sum 8": one("Sum", (2, 3), drawn((3,)), drawn((2, 1)), opset=8),
    "Max 8": one("Max", (2, 3), drawn((3,)), drawn((2, 1)), opset=8),
    "Min 8": one("Min", (2, 3), drawn((3,)), opset=8),
    "Mod of floats": one("Mod", (2, 3), drawn((3,), 4), opset=10, fmod=1),
    "Mod of integers": one("Mod", np.array([7, -7, 7, -7], I64), np.array([3, 3, -3, -3], I64), opset=10),
    "Xor": one("Xor", np.array([True, True, False]), np.array([True, False, False]), opset=7),
    "PRelu 7": one("PRelu", IMAGE, drawn((3, 1, 1)), opset=7),
    "PRelu 9 along the last axis": one("PRelu", IMAGE, drawn((8,)), opset=9),
    "Selu": one("Selu", IMAGE, opset=7, alpha=2.0, gamma=3.0),
    "ThresholdedRelu of infinities": one("ThresholdedRelu", np.float32([-np.inf, -1, 1, np.inf]), opset=10, alpha=0.5),
    "Shape 15": one("Shape", (2, 3, 4, 5), opset=15, start=1, end=-1),
    "EyeLike": one("EyeLike", (3, 5), opset=9, k=1),
    "EyeLike beside the matrix": one("EyeLike", np.zeros((3, 5), np.int32), opset=9, k=7),
    "DepthToSpace 1": one("DepthToSpace", (1, 8, 2, 3), opset=10, blocksize=2),
    "Flatten 1": one("Flatten", (2, 3, 4), opset=7, axis=2),
    "GatherND 11": one("GatherND", (3, 4), np.array([[0, 1], [2, -1]], I64), opset=11),
    "ScatterND 16 add": one("ScatterND", (4, 2), np.array([[1], [1]], I64), drawn((2, 2)), opset=16, reduction="add"),
    "ScatterND 18 mul": one("ScatterND", (4, 2), np.array([[1], [1]], I64), drawn((2, 2)), opset=18, reduction="mul"),
    "LayerNormalization with statistics": one(
        "LayerNormalization", (2, 3, 4), drawn((3, 4)), drawn((3, 4)), outputs=3, opset=17, axis=1
    ),
    "LayerNormalization with a short scale": one("LayerNormalization", (2, 3, 4), drawn((4,)), opset=17, axis=1),
    "LSTM 7": one(
        "LSTM", (5, 2, 3), drawn((2, 16, 3)), drawn((2, 16, 4), 1), drawn((2, 32), 2), outputs=3, opset=7,
        direction="bidirectional", hidden_size=4,
    ),
    "GRU 7": one(
        "GRU", (5, 2, 3), drawn((1, 12, 3)), drawn((1, 12, 4), 1), drawn((1, 24), 2), outputs=2, opset=7,
        linear_before_reset=1, hidden_size=4,
    ),
    "RNN 7": one("RNN", (5, 2, 3), drawn((1, 4, 3)), drawn((1, 4, 4), 1), outputs=2, opset=7, hidden_size=4),
    "QLinearConv": one(
        "QLinearConv", np.arange(2 * 3 * 5 * 5, dtype=np.uint8).reshape(2, 3, 5, 5), np.float32(0.1), np.uint8(100),
        np.arange(-54, 54, dtype=np.int8).reshape(4, 3, 3, 3), np.float32([0.1, 0.2, 0.3, 0.4]),
        np.zeros(4, np.int8), np.float32(2.5), np.uint8(128), np.arange(4, dtype=np.int32) * 500, opset=10,
    ),
    "QLinearMatMul": one(
        "QLinearMatMul", np.arange(12, dtype=np.uint8).reshape(3, 4), np.float32(0.2), np.uint8(5),
        np.arange(20, dtype=np.uint8).reshape(4, 5), np.float32(0.3), np.uint8(9), np.float32(0.5), np.uint8(77),
        opset=10,
    ),
    "DequantizeLinear per axis": one(
        "DequantizeLinear", np.arange(24, dtype=np.int8).reshape(2, 3, 4), np.float32([0.1, 0.2, 0.4]),
        np.int8([1, 2, 3]), opset=13, axis=1,
    ),
    "MatMulInteger per column": one(
        "MatMulInteger", np.arange(12, dtype=np.uint8).reshape(3, 4), np.arange(20, dtype=np.uint8).reshape(4, 5),
        np.uint8(3), np.uint8([5, 6, 7, 8, 9]), opset=10,
    ),
    "GroupNormalization 18": one("GroupNormalization", (2, 6, 3), drawn((2,)), drawn((2,)), opset=18, num_groups=2),
    "GroupNormalization 21": one("GroupNormalization", (2, 6, 3), drawn((6,)), drawn((6,)), opset=21, num_groups=2),
    "Gelu 20 tanh": one("Gelu", IMAGE, opset=20, approximate="tanh"),
    "GridSample 16 bicubic": one("GridSample", (1, 2, 4, 5), drawn((1, 3, 3, 2), 3), opset=16, mode="bicubic"),
}  # fmt: skip


@pytest.mark.parametrize("case", OLDER)
def test_older_forms(case: str) -> None:
    source = OLDER[case]
    feeds = {v.name: drawn([d.dim_value for d in v.type.tensor_type.shape.dim], 7) for v in source.graph.input}
    runner = onnxruntime.InferenceSession(source.SerializeToString(), providers=["CPUExecutionProvider"])
    expected = runner.run(None, feeds)
    found = evaluate(parse_model(source), list(feeds.values()))
    for result, wanted in zip(found, expected, strict=True):
        close(result, wanted, 1e-4, 1e-5)
        spread = np.abs(wanted.astype(np.float64)).max(initial=0)
        assert spread > 0 or "beside" in case, "an oracle of zeros tells nothing"


RANDOM = {
    "RandomNormal": (one("RandomNormal", opset=7, shape=[200, 100], mean=3.0, scale=2.0), 3.0, 2.0),
    "RandomNormalLike": (one("RandomNormalLike", (200, 100), opset=7, mean=3.0, scale=2.0), 3.0, 2.0),
    "RandomUniform": (one("RandomUniform", opset=7, shape=[200, 100], low=1.0, high=5.0), 3.0, 4 / 12**0.5),
    "RandomUniformLike": (one("RandomUniformLike", (200, 100), opset=7, low=1.0, high=5.0, seed=7.5), 3.0, 4 / 12**0.5),
    "Bernoulli": (one("Bernoulli", np.full((200, 100), 0.3, np.float32), opset=15), 0.3, (0.3 * 0.7) ** 0.5),
}


@pytest.mark.parametrize("case", RANDOM)
def test_random_numbers_have_their_mean_and_deviation(case: str) -> None:
    source, mean, deviation = RANDOM[case]
    graph = parse_model(source)
    (found,) = evaluate(graph, [np.zeros(data.output().desc.shape, np.float32) for data in graph.data_nodes()])
    assert found.shape == (200, 100)
    assert found.mean() == pytest.approx(mean, abs=0.06)
    assert found.std() == pytest.approx(deviation, rel=0.03)


def test_seeds_are_kept() -> None:
    def numbers(**seed: float) -> Array:
        return evaluate(parse_model(one("RandomUniform", opset=7, shape=[50], **seed)), [])[0]

    np.testing.assert_array_equal(numbers(seed=1.25), numbers(seed=1.25))
    assert not np.array_equal(numbers(seed=1.25), numbers(seed=1.5))
    assert not np.array_equal(numbers(), numbers())


@pytest.mark.parametrize(
    "name",
    ["ch_PP-OCRv4_det_infer", "ch_ppocr_mobile_v2.0_cls_infer", "conv_zoo", "vit_tiny", "bert_tiny_legacy_dyn",
     "gpt2_tiny", "rnn_zoo", "silero_vad_16k_op15"],
)  # fmt: skip
def test_sample_models(name: str, sample_model: Any) -> None:
    sample = sample_model(f"onnx/{name}.onnx")
    graph = parse_model(sample.path, input_shape={key: array.shape for key, array in sample.inputs.items()})
    results = evaluate(graph, [sample.inputs[data.name] for data in graph.data_nodes()])
    for found, output in zip(results, graph.output_names, strict=True):
        wanted = sample.outputs[output]
        np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-4 * np.abs(wanted).max())
