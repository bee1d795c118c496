"""Layers against oracles: convolution, pooling, normalisation, images, boxes, recurrence; both data formats."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest

from tests.parsers.tensorflow import oracles
from tests.parsers.tensorflow.tf_models import op_model, run, run_compiled
from tests.parsers.tensorflow.values import Array, f, i, same

Runner = Callable[..., list[Array]]


@pytest.fixture(
    params=[run, partial(run_compiled, format_refinement="0"), partial(run_compiled, format_refinement="1")],
    ids=["reference", "plain layouts", "storage layouts"],
)
def run_op(request: pytest.FixtureRequest) -> Runner:
    """Run one node: by the reference semantics, or compiled."""
    return lambda *arguments, **attrs: request.param(*op_model(*arguments, **attrs))


# -- convolution -------------------------------------------------------------------------------------------------------
def as_format(x: Array, data_format: str) -> Array:
    return np.moveaxis(x, -1, 1) if data_format.startswith("NC") else x


def per_axis(values: Sequence[int], data_format: str) -> list[int]:
    return [1, 1, *values] if data_format.startswith("NC") else [1, *values, 1]


@pytest.mark.parametrize("data_format", ["NHWC", "NCHW"])
@pytest.mark.parametrize(
    ("kernel", "strides", "rates", "padding"),
    [
        ([3, 3], [1, 1], [1, 1], "SAME"),
        ([2, 4], [1, 1], [1, 1], "SAME"),
        ([2, 4], [2, 3], [1, 1], "SAME"),
        ([3, 2], [1, 1], [2, 3], "SAME"),
        ([1, 1], [2, 2], [1, 1], "SAME"),
        ([3, 4], [2, 1], [1, 1], "VALID"),
        ([2, 3], [1, 2], [1, 1], [(1, 0), (2, 3)]),
    ],
)
@pytest.mark.parametrize("groups", [1, 2])
def test_convolution(
    run_op: Runner, data_format: str, kernel: list[int], strides: list[int], rates: list[int], padding: Any, groups: int
) -> None:
    x, w = f(2, 7, 8, 4), f(*kernel, 4 // groups, 6)
    attrs: dict[str, Any] = {"padding": padding}
    if not isinstance(padding, str):
        (top, bottom), (left, right) = padding
        pairs = [top, bottom, left, right]
        explicit = [0, 0, 0, 0, *pairs] if data_format == "NCHW" else [0, 0, *pairs, 0, 0]
        attrs = {"padding": "EXPLICIT", "explicit_paddings": explicit}
    found = run_op(
        "Conv2D",
        [as_format(x, data_format), w],
        [1],
        data_format=data_format,
        strides=per_axis(strides, data_format),
        dilations=per_axis(rates, data_format),
        **attrs,
    )
    same(found[0], as_format(oracles.conv(x, w, strides, padding, rates), data_format))


@pytest.mark.parametrize("data_format", ["NHWC", "NCHW"])
@pytest.mark.parametrize(
    ("strides", "rates", "padding"), [([1, 1], [1, 1], "SAME"), ([2, 2], [1, 1], "SAME"), ([1, 1], [2, 2], "VALID")]
)
def test_depthwise_convolution(
    run_op: Runner, data_format: str, strides: list[int], rates: list[int], padding: str
) -> None:
    x, w = f(2, 7, 8, 3), f(2, 3, 3, 2)
    found = run_op(
        "DepthwiseConv2dNative",
        [as_format(x, data_format), w],
        [1],
        data_format=data_format,
        padding=padding,
        strides=per_axis(strides, data_format),
        dilations=per_axis(rates, data_format),
    )
    same(found[0], as_format(oracles.depthwise(x, w, strides, padding, rates), data_format))


@pytest.mark.parametrize("data_format", ["NDHWC", "NCDHW"])
def test_convolution_over_three_axes(run_op: Runner, data_format: str) -> None:
    x, w = f(1, 4, 5, 6, 2), f(2, 3, 2, 2, 3)
    strides = per_axis([1, 2, 2], data_format)
    found = run_op(
        "Conv3D", [as_format(x, data_format), w], [1], strides=strides, padding="SAME", data_format=data_format
    )
    same(found[0], as_format(oracles.conv(x, w, [1, 2, 2], "SAME"), data_format))


@pytest.mark.parametrize("data_format", ["NHWC", "NCHW"])
@pytest.mark.parametrize(
    ("size", "strides", "padding"), [([7, 8], [2, 2], "SAME"), ([7, 9], [2, 2], "VALID"), ([6, 6], [1, 3], "SAME")]
)
def test_transposed_convolution(
    run_op: Runner, data_format: str, size: list[int], strides: list[int], padding: str
) -> None:
    w, sizes = f(3, 3, 4, 5), [2, *size, 4]
    counts = oracles.windows(np.zeros(sizes), [3, 3], strides, [1, 1], padding, 0).shape[1:3]
    dy = f(2, *counts, 5)
    given = [2, 4, *size] if data_format == "NCHW" else sizes
    found = run_op(
        "Conv2DBackpropInput",
        [i(*given), w, as_format(dy, data_format)],
        [0, 1],
        data_format=data_format,
        strides=per_axis(strides, data_format),
        padding=padding,
    )
    same(found[0], as_format(oracles.conv_gradient(sizes, w, dy, strides, padding), data_format))


def test_transposed_convolution_over_three_axes(run_op: Runner) -> None:
    w, sizes = f(2, 3, 2, 2, 3), [1, 4, 5, 6, 2]
    dy = f(1, 4, 3, 3, 3)
    found = run_op("Conv3DBackpropInputV2", [i(*sizes), w, dy], [0, 1], strides=[1, 1, 2, 2, 1], padding="SAME")
    same(found[0], oracles.conv_gradient(sizes, w, dy, [1, 2, 2], "SAME"))


# -- pooling -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("data_format", ["NHWC", "NCHW"])
@pytest.mark.parametrize(("op", "kind"), [("MaxPool", "max"), ("AvgPool", "mean")])
@pytest.mark.parametrize(
    ("kernel", "strides", "padding"), [([2, 2], [2, 2], "VALID"), ([3, 2], [2, 1], "SAME"), ([2, 4], [1, 3], "SAME")]
)
def test_pools(
    run_op: Runner, data_format: str, op: str, kind: str, kernel: list[int], strides: list[int], padding: str
) -> None:
    x = f(2, 5, 7, 3) - 3
    found = run_op(
        op,
        [as_format(x, data_format)],
        data_format=data_format,
        padding=padding,
        ksize=per_axis(kernel, data_format),
        strides=per_axis(strides, data_format),
    )
    same(found[0], as_format(oracles.pool(x, kernel, strides, padding, kind), data_format))


@pytest.mark.parametrize(("op", "kind"), [("MaxPool3D", "max"), ("AvgPool3D", "mean")])
def test_pools_over_three_axes(run_op: Runner, op: str, kind: str) -> None:
    x = f(1, 4, 5, 6, 2) - 3
    found = run_op(op, [x], ksize=[1, 2, 3, 2, 1], strides=[1, 2, 2, 1, 1], padding="SAME")
    same(found[0], oracles.pool(x, [2, 3, 2], [2, 2, 1], "SAME", kind))


def test_other_pools(run_op: Runner) -> None:
    x = f(1, 4, 4, 2) - 3
    expected = oracles.pool(x, [2, 2], [2, 2], "VALID", "max")
    same(run_op("MaxPoolV2", [x, i(1, 2, 2, 1), i(1, 2, 2, 1)], [1, 2], padding="VALID")[0], expected)
    values, places = run_op("MaxPoolWithArgmax", [x], ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="VALID")
    same(values, expected)
    np.testing.assert_array_equal(x.ravel()[places], values)
    explicit = [0, 0, 1, 0, 0, 1, 0, 0]
    found = run_op(
        "MaxPool", [x], ksize=[1, 2, 2, 1], strides=[1, 1, 1, 1], padding="EXPLICIT", explicit_paddings=explicit
    )
    same(found[0], oracles.pool(x, [2, 2], [1, 1], [(1, 0), (0, 1)], "max"))


# -- normalisation -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("op", ["FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"])
@pytest.mark.parametrize("data_format", ["NHWC", "NCHW"])
def test_batch_norm(run_op: Runner, op: str, data_format: str) -> None:
    x, scale, offset, mean, variance = f(2, 4, 5, 3), f(3), f(3), f(3), f(3, low=0.5)
    inputs = [as_format(x, data_format), scale, offset, mean, variance]
    found = run_op(op, inputs, is_training=False, epsilon=0.01, data_format=data_format)
    assert len(found) == (6 if op.endswith("V3") else 5)
    expected = (x.astype(float) - mean) / np.sqrt(variance + 0.01) * scale + offset
    same(found[0], as_format(expected, data_format))


def test_batch_norm_in_training(run_op: Runner) -> None:
    x, scale, offset = f(2, 4, 5, 3), f(3), f(3)
    y, mean, variance, *_ = run_op(
        "FusedBatchNormV3", [x, scale, offset, np.zeros(3, np.float32), np.ones(3, np.float32)], epsilon=0.001
    )
    x64 = x.astype(float)
    m, v = x64.mean((0, 1, 2)), x64.var((0, 1, 2))
    same(y, (x64 - m) / np.sqrt(v + 0.001) * scale + offset)
    same(mean, m)
    same(variance, v * 40 / 39)


def test_older_batch_norm(run_op: Runner) -> None:
    x, mean, variance, beta, gamma = f(2, 4, 5, 3), f(3), f(3, low=0.5), f(3), f(3)
    inputs = [x, mean, variance, beta, gamma]
    normalised = (x.astype(float) - mean) / np.sqrt(variance + 0.01)
    attrs = {"variance_epsilon": 0.01}
    found = run_op("BatchNormWithGlobalNormalization", inputs, scale_after_normalization=True, **attrs)
    same(found[0], normalised * gamma + beta)
    found = run_op("BatchNormWithGlobalNormalization", inputs, scale_after_normalization=False, **attrs)
    same(found[0], normalised + beta)


def test_local_response_norm(run_op: Runner) -> None:
    x = f(1, 2, 2, 7)
    squares = np.pad(x.astype(float) ** 2, [(0, 0)] * 3 + [(2, 2)])
    sums = sum(squares[..., k : k + 7] for k in range(5))
    found = run_op("LRN", [x], depth_radius=2, bias=1.5, alpha=0.3, beta=0.75)
    same(found[0], x / (1.5 + 0.3 * sums) ** 0.75)


# -- images ------------------------------------------------------------------------------------------------------------
SCALERS = [{}, {"align_corners": True}, {"half_pixel_centers": True}]


@pytest.mark.parametrize("scaler", SCALERS)
@pytest.mark.parametrize("size", [(8, 9), (3, 4), (1, 1), (5, 13)])
def test_resizing(run_op: Runner, scaler: dict[str, bool], size: tuple[int, int]) -> None:
    x = f(2, 5, 6, 3)
    how = {"align": scaler.get("align_corners", False), "half": scaler.get("half_pixel_centers", False)}
    same(run_op("ResizeBilinear", [x, i(*size)], [1], **scaler)[0], oracles.resize_linear(x, size, **how))
    same(run_op("ResizeNearestNeighbor", [x, i(*size)], [1], **scaler)[0], oracles.resize_nearest(x, size, **how))
    found = run_op("ResizeBilinear", [(x * 50).astype(np.uint8), i(*size)], [1], **scaler)[0]
    same(found, oracles.resize_linear((x * 50).astype(np.uint8), size, **how).astype(np.float32))


def cubic(distance: Array, a: float) -> Array:
    d = np.abs(distance)
    return np.where(
        d <= 1, ((a + 2) * d - (a + 3)) * d * d + 1, np.where(d < 2, ((a * d - 5 * a) * d + 8 * a) * d - 4 * a, 0)
    )


@pytest.mark.parametrize("scaler", SCALERS)
@pytest.mark.parametrize("size", [(10, 12), (3, 4)])
def test_cubic_resizing(run_op: Runner, scaler: dict[str, bool], size: tuple[int, int]) -> None:
    x = f(1, 5, 6, 2)
    align, half = scaler.get("align_corners", False), scaler.get("half_pixel_centers", False)
    expected = x.astype(float)
    for axis, out in zip((1, 2), size, strict=True):
        at = oracles.resize_positions(x.shape[axis], out, align=align, half=half)
        places = np.floor(at)[:, None] + np.arange(-1, 3)
        weights = cubic(places - at[:, None], -0.5 if half else -0.75)
        inside = (places >= 0) & (places < x.shape[axis])
        if half:
            weights = np.where(inside, weights, 0)
            weights /= weights.sum(1, keepdims=True)
        rows = np.zeros((out, x.shape[axis]))
        for tap in range(4):
            np.add.at(
                rows, (np.arange(out), np.clip(places[:, tap], 0, x.shape[axis] - 1).astype(int)), weights[:, tap]
            )
        expected = np.moveaxis(np.tensordot(rows, expected, (1, axis)), 0, axis)
    same(run_op("ResizeBicubic", [x, i(*size)], [1], **scaler)[0], expected, rtol=2e-3)


def test_crops(run_op: Runner) -> None:
    x = f(2, 5, 6, 2)
    boxes = np.float32([[0, 0, 1, 1], [0.25, 0.2, 0.75, 1.2], [0.9, 0.1, 0.1, 0.6]])
    found = run_op("CropAndResize", [x, boxes, i(0, 1, 1), i(3, 4)], [3], extrapolation_value=-7.0)[0]
    for k, image in enumerate((0, 1, 1)):
        y1, x1, y2, x2 = boxes[k].astype(float)
        for r, c in np.ndindex(3, 4):
            at = (y1 * 4 + r * (y2 - y1) * 4 / 2, x1 * 5 + c * (x2 - x1) * 5 / 3)
            if not (0 <= at[0] <= 4 and 0 <= at[1] <= 5):
                expected = np.full(2, -7.0)
            else:
                (t, left), (p, q) = np.floor(at).astype(int), at - np.floor(at)
                b, right = min(t + 1, 4), min(left + 1, 5)
                top = x[image, t, left] * (1 - q) + x[image, t, right] * q
                expected = top * (1 - p) + (x[image, b, left] * (1 - q) + x[image, b, right] * q) * p
            np.testing.assert_allclose(found[k, r, c], expected, rtol=1e-4, atol=1e-4)


def test_patches(run_op: Runner) -> None:
    x = f(2, 6, 5, 3)
    found = run_op(
        "ExtractImagePatches", [x], ksizes=[1, 2, 3, 1], strides=[1, 2, 1, 1], rates=[1, 2, 1, 1], padding="SAME"
    )
    taps = oracles.windows(x, [2, 3], [2, 1], [2, 1], "SAME", 0)
    same(found[0], taps.reshape(*taps.shape[:3], -1))


# -- boxes -------------------------------------------------------------------------------------------------------------
def boxes_and_scores(count: int = 30) -> tuple[Array, Array]:
    corners = f(count, 2, low=0, high=1)
    return np.concatenate([corners, corners + f(count, 2, low=0.1, high=0.6)], 1), f(count, low=0, high=1)


@pytest.mark.parametrize(("limit", "iou", "lowest"), [(5, 0.5, 0.0), (30, 0.2, 0.3), (0, 0.5, 0.0), (30, 1.0, 0.99)])
def test_suppression(run_op: Runner, limit: int, iou: float, lowest: float) -> None:
    boxes, scores = boxes_and_scores()
    arguments = [boxes, scores, i(limit), np.float32(iou)]
    everything = oracles.suppress(boxes, scores, limit, iou, -np.inf)[0]
    kept = oracles.suppress(boxes, scores, limit, iou, lowest)[0]
    same(run_op("NonMaxSuppression", arguments[:3], [2], iou_threshold=iou)[0], np.int32(everything))
    same(run_op("NonMaxSuppressionV2", arguments, [2, 3])[0], np.int32(everything))
    same(run_op("NonMaxSuppressionV3", [*arguments, np.float32(lowest)], [2, 3, 4])[0], np.int32(kept))
    found, count = run_op("NonMaxSuppressionV4", [*arguments, np.float32(lowest)], [2], pad_to_max_output_size=True)
    same(found, np.int32([*kept, *[0] * (limit - len(kept))]))
    same(count, np.int32(len(kept)))


@pytest.mark.parametrize("sigma", [0.0, 0.2, 0.9])
def test_soft_suppression(run_op: Runner, sigma: float) -> None:
    boxes, scores = boxes_and_scores()
    arguments = [boxes, scores, i(20), np.float32(0.4), np.float32(0.25), np.float32(sigma)]
    kept, values = oracles.suppress(boxes, scores, 20, 0.4, 0.25, sigma)
    found, found_scores, count = run_op("NonMaxSuppressionV5", arguments)
    assert (len(kept), len(kept) > 3) == (int(count), True)
    same(found, np.int32(kept))
    same(found_scores, np.float32(values))


@pytest.mark.parametrize("attrs", [{}, {"pad_per_class": True, "clip_boxes": False}])
@pytest.mark.parametrize("per_class", [1, 3])
def test_combined_suppression(run_op: Runner, attrs: dict[str, bool], per_class: int) -> None:
    boxes = np.stack([np.stack([boxes_and_scores(12)[0] for _ in range(per_class)], 1) for _ in range(2)])
    scores = f(2, 12, 3, low=0, high=1)
    arguments = [boxes, scores, i(2), i(9), np.float32(0.3), np.float32(0.4)]
    found_boxes, found_scores, found_classes, valid = run_op("CombinedNonMaxSuppression", arguments, [2, 3], **attrs)
    assert found_scores.shape == (2, 6 if attrs else 9)
    for sample in range(2):
        rows = []
        for kind in range(3):
            own = boxes[sample, :, kind % per_class]
            for k in oracles.suppress(own, scores[sample, :, kind], 2, 0.3, 0.4)[0]:
                rows.append((-scores[sample, k, kind], kind, own[k]))  # noqa: PERF401 - the row is long enough
        rows.sort(key=lambda row: row[0])
        assert valid[sample] == len(rows) > 2
        np.testing.assert_allclose(found_scores[sample, : len(rows)], [-row[0] for row in rows])
        np.testing.assert_array_equal(found_classes[sample, : len(rows)], [row[1] for row in rows])
        wanted = np.stack([row[2] for row in rows])
        np.testing.assert_allclose(found_boxes[sample, : len(rows)], wanted if attrs else np.clip(wanted, 0, 1))
        assert not found_scores[sample, len(rows) :].any()


# -- others ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("bits", "narrow"), [(8, False), (4, True)])
def test_pretended_quantisation(run_op: Runner, bits: int, narrow: bool) -> None:
    x, low, high = f(3, 40), -1.3, 1.1
    first, last = int(narrow), 2**bits - 1
    step = (high - low) / (last - first)
    zero = round(first - low / step)
    numbers = np.clip(np.round(x.astype(float) / step) + zero, first, last)
    expected = (numbers - zero) * step
    attrs = {"num_bits": bits, "narrow_range": narrow}
    found = run_op("FakeQuantWithMinMaxVars", [x, np.float32(low), np.float32(high)], **attrs)[0]
    assert np.abs(found - expected).max() < 0.51 * step  # halves may fall either way
    assert np.mean(np.abs(found - expected) < 1e-4) > 0.97
    same(run_op("FakeQuantWithMinMaxArgs", [x], min=low, max=high, **attrs)[0], found)
    limits = [np.full(40, limit, np.float32) for limit in (low, high)]
    same(run_op("FakeQuantWithMinMaxVarsPerChannel", [x, *limits], **attrs)[0], found)


def test_ctc_greedy_decoding(run_op: Runner) -> None:
    best = np.array([[0, 0, 3, 0, 1, 1], [2, 3, 3, 2, 2, 0]])  # 3 is the blank
    logits = np.full((6, 2, 4), -1, np.float32)
    for sample, time in np.ndindex(best.shape):
        logits[time, sample, best[sample, time]] = 0.5 + time
    places, labels, shape, score = run_op("CTCGreedyDecoder", [logits, i(6, 5)], merge_repeated=True)
    same(labels, i(0, 0, 1, 2, 2, dtype=np.int64))
    same(places, i([0, 0], [0, 1], [0, 2], [1, 0], [1, 1], dtype=np.int64))
    same(shape, i(2, 3, dtype=np.int64))
    same(score, np.float32([[-18], [-12.5]]))
    _, labels, *_ = run_op("CTCGreedyDecoder", [logits, i(6, 5)])
    same(labels, i(0, 0, 0, 1, 1, 2, 2, 2, dtype=np.int64))


@pytest.mark.parametrize("op", ["BlockLSTM", "BlockLSTMV2"])
@pytest.mark.parametrize("use_peephole", [False, True])
def test_block_lstm(run_op: Runner, op: str, use_peephole: bool) -> None:
    def sigmoid(x: Array) -> Array:
        return 1 / (1 + np.exp(-x))

    steps, batch, inputs, hidden = 4, 2, 3, 5
    x, w, b = f(steps, batch, inputs), f(inputs + hidden, 4 * hidden), f(4 * hidden)
    cs, h = f(batch, hidden), f(batch, hidden)
    peepholes = [f(hidden) for _ in range(3)]
    arguments = [np.int64(steps), x, cs, h, w, *peepholes, b]
    found = run_op(op, arguments, [0], cell_clip=1.5, use_peephole=use_peephole)
    wci, wcf, wco = (p.astype(float) * use_peephole for p in peepholes)
    forget_bias = 1.0 if op == "BlockLSTM" else 0.0
    for time in range(steps):
        gates = np.concatenate([x[time], h], 1).astype(float) @ w + b
        i_, second, third, o_ = np.split(gates, 4, 1)
        ci, fg = (second, third) if op == "BlockLSTM" else (third, second)
        i_, fg = sigmoid(i_ + cs * wci), sigmoid(fg + forget_bias + cs * wcf)
        ci = np.tanh(ci)
        cs = np.clip(ci * i_ + cs * fg, -1.5, 1.5)
        o_ = sigmoid(o_ + cs * wco)
        co = np.tanh(cs)
        h = o_ * co
        for result, expected in zip(found, (i_, cs, fg, o_, ci, co, h), strict=True):
            np.testing.assert_allclose(result[time], expected, rtol=1e-4, atol=1e-4)
