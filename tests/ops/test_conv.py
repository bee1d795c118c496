"""Convolutions: forward, transposed, depthwise, deformable, and BiasAdd."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ge.errors import ReportedError
from tests.ops.one_node import assert_close, data, inferred, run_ge, run_onnx

_SPACE = "DHW"


def ge_window(attrs: dict[str, Any], rank: int, channels_last: bool = False) -> dict[str, Any]:
    """Turn ONNX convolution attributes into GE's: full-rank lists in data_format order, pads as pairs per axis."""
    n = rank - 2
    letters = _SPACE[3 - n :]

    def whole(values: Any) -> list[int]:
        return [1, *values, 1] if channels_last else [1, 1, *values]

    pads = attrs.get("pads", [0] * 2 * n)
    found = {
        "strides": whole(attrs.get("strides", [1] * n)),
        "dilations": whole(attrs.get("dilations", [1] * n)),
        "pads": [value for i in range(n) for value in (pads[i], pads[i + n])],
        "groups": attrs.get("group", 1),
        "data_format": f"N{letters}C" if channels_last else f"NC{letters}",
    }
    if "auto_pad" in attrs:
        found["auto_pad"] = attrs["auto_pad"]
    return found


def to_last(x: np.ndarray) -> np.ndarray:
    """Move the channels behind."""
    return np.moveaxis(x, 1, -1)


def to_hwcn(weights: np.ndarray) -> np.ndarray:
    """Turn [O, I, space] into [space, I, O]."""
    return np.moveaxis(weights, (0, 1), (-1, -2))


CONV_ROWS = [
    ((2, 3, 8, 9), (4, 3, 3, 2), {}),
    ((2, 3, 8, 9), (4, 3, 3, 2), {"pads": [1, 0, 2, 1], "strides": [2, 1]}),
    ((1, 4, 9, 11), (6, 2, 3, 3), {"group": 2, "dilations": [2, 1], "pads": [2, 1, 2, 1]}),
    ((2, 6, 7, 7), (6, 1, 3, 3), {"group": 6, "strides": [1, 2], "pads": [1, 1, 1, 1]}),
    ((2, 3, 7, 8), (12, 1, 3, 2), {"group": 3, "dilations": [1, 3]}),
    ((2, 5, 6, 7), (7, 5, 1, 1), {}),
    ((2, 5, 6, 7), (7, 5, 1, 1), {"strides": [2, 3]}),
    ((1, 3, 10, 11), (4, 3, 3, 4), {"auto_pad": "SAME_UPPER", "strides": [2, 3]}),
    ((1, 3, 10, 11), (4, 3, 3, 4), {"auto_pad": "SAME_LOWER", "strides": [2, 3]}),
    ((1, 3, 10, 11), (4, 3, 3, 4), {"auto_pad": "VALID", "dilations": [2, 2]}),
    ((1, 2, 5, 6, 7), (4, 2, 2, 3, 2), {"pads": [0, 1, 1, 1, 0, 1], "strides": [2, 1, 2]}),
    ((2, 4, 5, 6, 4), (4, 2, 3, 1, 2), {"group": 2, "auto_pad": "SAME_UPPER", "strides": [2, 2, 1]}),
]


@pytest.mark.parametrize(("x_shape", "w_shape", "attrs"), CONV_ROWS)
@pytest.mark.parametrize("has_bias", [False, True])
def test_conv(x_shape: tuple[int, ...], w_shape: tuple[int, ...], attrs: dict[str, Any], has_bias: bool) -> None:
    x, w = data(1, *x_shape), data(2, *w_shape)
    bias = data(3, w_shape[0]) if has_bias else None
    [expected] = run_onnx("Conv", [x, w, bias], attrs)
    op_type = "Conv2D" if x.ndim == 4 else "Conv3D"
    [first] = run_ge(op_type, [x, w, bias], ge_window(attrs, x.ndim))
    [last] = run_ge(op_type, [to_last(x), to_hwcn(w), bias], ge_window(attrs, x.ndim, channels_last=True))
    assert_close(first, expected)
    assert_close(last, to_last(expected))


def test_conv_works_in_pieces_on_large_inputs(monkeypatch: pytest.MonkeyPatch) -> None:
    x, w = data(1, 2, 4, 12, 9), data(2, 6, 2, 3, 3)
    attrs = {"group": 2, "strides": [2, 1], "pads": [1, 1, 1, 1]}
    monkeypatch.setattr("ge.ops.conv._COLUMN_BYTES", 4 * 2 * 9 * 2 * 9)  # two rows at a time
    assert_close(run_ge("Conv2D", [x, w], ge_window(attrs, 4))[0], run_onnx("Conv", [x, w], attrs)[0])


@pytest.mark.parametrize(("filter_format", "axes"), [("HWCN", (2, 3, 1, 0)), ("NHWC", (0, 2, 3, 1))])
def test_the_filter_may_have_its_own_format(filter_format: str, axes: tuple[int, ...]) -> None:
    x, w = data(1, 1, 3, 6, 5), data(2, 4, 3, 2, 3)
    attrs = {**ge_window({}, 4), "_x_filter_format": filter_format}
    assert_close(run_ge("Conv2D", [x, w.transpose(axes)], attrs)[0], run_onnx("Conv", [x, w], {})[0])


def test_strides_may_be_given_for_the_spatial_axes_alone() -> None:
    x, w = data(1, 1, 3, 6, 7), data(2, 4, 3, 2, 3)
    attrs = {**ge_window({}, 4), "strides": [1, 2], "dilations": [2]}
    [expected] = run_onnx("Conv", [x, w], {"strides": [1, 2], "dilations": [2, 2]})
    assert_close(run_ge("Conv2D", [x, w], attrs)[0], expected)


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_tensorflow_padding(padding: str) -> None:
    x, w = data(1, 1, 7, 8, 3), data(2, 3, 2, 3, 4)
    attrs = {"strides": [1, 2, 3, 1], "pads": [0, 0, 0, 0], "data_format": "NHWC", "padding": padding}
    onnx_attrs = {"strides": [2, 3], "auto_pad": padding.replace("SAME", "SAME_UPPER")}
    [expected] = run_onnx("Conv", [np.moveaxis(x, -1, 1), w.transpose(3, 2, 0, 1)], onnx_attrs)
    assert_close(run_ge("Conv2D", [x, w], attrs)[0], to_last(expected))


def test_conv_of_bytes_sums_exactly_after_the_offset() -> None:
    x, w = data(1, 1, 3, 6, 6, dtype=np.int8, low=-128, high=127), data(2, 2, 3, 3, 3, dtype=np.int8, low=-99, high=99)
    bias = np.array([1000, -70000], np.int32)
    [found] = run_ge("Conv2D", [x, w, bias], {**ge_window({"pads": [1, 1, 1, 1]}, 4), "offset_x": 5})
    padded = np.pad(x.astype(np.int64) - 5, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))
    expected = np.einsum("nchwij,ocij->nohw", windows, w.astype(np.int64)) + bias[:, None, None]
    assert found.dtype == np.int32
    np.testing.assert_array_equal(found, expected)


def test_conv_rounds_half_precision_once() -> None:
    x, w = data(1, 1, 8, 6, 6, dtype=np.float16), data(2, 4, 8, 3, 3, dtype=np.float16)
    [found] = run_ge("Conv2D", [x, w], ge_window({}, 4))
    [expected] = run_onnx("Conv", [x.astype(np.float32), w.astype(np.float32)], {})
    np.testing.assert_allclose(found, expected.astype(np.float16), rtol=1e-3, atol=1e-3)
    assert found.dtype == np.float16


@pytest.mark.parametrize("multiplier", [1, 2])
def test_depthwise_conv(multiplier: int) -> None:
    x, w = data(1, 2, 3, 7, 8), data(2, 3 * multiplier, 1, 3, 2)
    attrs = {"strides": [2, 1], "pads": [1, 0, 1, 1], "dilations": [1, 2], "group": 3}
    [expected] = run_onnx("Conv", [x, w], attrs)
    by_channel = w.reshape(3, multiplier, 3, 2)  # channel, multiplier, height, width
    first = ge_window(attrs, 4)
    last = ge_window(attrs, 4, channels_last=True)
    del first["groups"], last["groups"]
    assert_close(run_ge("DepthwiseConv2D", [x, by_channel.transpose(1, 0, 2, 3)], first)[0], expected)
    assert_close(run_ge("DepthwiseConv2D", [to_last(x), by_channel.transpose(2, 3, 0, 1)], last)[0], to_last(expected))


@pytest.mark.parametrize(
    ("attrs", "message"),
    [
        ({"groups": 2}, "x has 3 channels, but the filter takes 3 in each of 2 groups"),
        ({"groups": 0}, "groups 0 must be positive"),
        ({"strides": [1, 1, 0, 1]}, "stride 0"),
        ({"strides": [1, 1, 1]}, r"\[1, 1, 1\] has neither one entry per axis of NCHW nor one per spatial axis"),
        ({"pads": [0, 0]}, r"pads \[0, 0\] must have two values for each of 2 spatial axes"),
        ({"pads": [0, 0, 0, -1]}, "must not be negative"),
        ({"dilations": [1, 1, 9, 1]}, "a kernel of 3 with dilation 9 does not fit into 5 elements"),
        ({"data_format": "NCDHW"}, "data_format must be an order of N, C, H, W, not NCDHW"),
        ({"auto_pad": "SAME_MIDDLE"}, "padding SAME_MIDDLE is unknown"),
        ({"pads": None}, "attribute pads is missing"),
    ],
)
def test_conv_refuses(attrs: dict[str, Any], message: str) -> None:
    operands = [data(1, 1, 3, 5, 6), data(2, 4, 3, 3, 3)]
    whole = {**ge_window({}, 4), **attrs}
    with pytest.raises(ReportedError, match=message) as caught:
        inferred("Conv2D", operands, whole)
    assert caught.value.code == "E14001"
    assert "[node] of type [Conv2D]" in str(caught.value)


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ([data(1, 3, 5, 6), data(2, 4, 3, 3, 3)], r"x has shape \[3,5,6\], but data_format NCHW needs rank 4"),
        (
            [data(1, 1, 3, 5, 6), data(2, 4, 3, 3, 3), data(3, 5)],
            "bias has 5 elements, but there are 4 output",
        ),
        ([data(1, 1, 3, 5, 6), data(2, 4, 3, 3, 3, dtype=np.float16)], "x is DT_FLOAT, but filter is DT_FLOAT16"),
        ([data(1, 1, 3, 5, 6), data(2, 4, 3, 3, 3), None, data(4, 1)], "input offset_w is reserved"),
        ([data(1, 1, 3, 5, 6), None], "input filter is not connected"),
    ],
)
def test_conv_refuses_operands(inputs: list[Any], message: str) -> None:
    with pytest.raises(ReportedError, match=message):
        inferred("Conv2D", inputs, ge_window({}, 4))


# -- transposed ----------------------------------------------------------------------------------------------------
TRANSPOSED_ROWS = [
    ((2, 4, 5, 7), (4, 3, 3, 2), {}),
    ((2, 4, 5, 7), (4, 3, 3, 2), {"strides": [2, 3], "pads": [1, 0, 0, 1], "output_padding": [1, 2]}),
    ((1, 6, 4, 5), (6, 2, 3, 3), {"group": 3, "strides": [2, 2], "dilations": [2, 1]}),
    ((1, 4, 5, 6), (4, 3, 3, 4), {"strides": [2, 2], "auto_pad": "SAME_UPPER"}),
    ((1, 4, 5, 6), (4, 3, 3, 4), {"strides": [2, 2], "auto_pad": "SAME_LOWER"}),
    ((1, 4, 5, 7), (4, 3, 3, 2), {"strides": [2, 3], "output_shape": [10, 19]}),
    ((1, 4, 5, 7), (4, 3, 3, 2), {"strides": [2, 3], "output_shape": [10, 19], "auto_pad": "SAME_UPPER"}),
    ((1, 2, 3, 4, 3), (2, 3, 2, 3, 2), {"strides": [2, 1, 2], "pads": [0, 1, 0, 1, 1, 0]}),
]


@pytest.mark.parametrize(("x_shape", "w_shape", "attrs"), TRANSPOSED_ROWS)
def test_transposed_conv(x_shape: tuple[int, ...], w_shape: tuple[int, ...], attrs: dict[str, Any]) -> None:
    x, w, bias = data(1, *x_shape), data(2, *w_shape), data(3, w_shape[1] * attrs.get("group", 1))
    [expected] = run_onnx("ConvTranspose", [x, w, bias], attrs)
    op_type = "Conv2DTranspose" if x.ndim == 4 else "Conv3DTranspose"
    zeros = np.zeros(x.ndim, np.int64)
    for is_last in (False, True):
        whole = ge_window(attrs, x.ndim, is_last)
        extra = attrs.get("output_padding", [0] * (x.ndim - 2))
        whole["output_padding"] = [0, *extra, 0] if is_last else [0, 0, *extra]
        if "output_shape" in attrs:
            whole["_x_output_shape"] = attrs["output_shape"]
        operands = [to_last(x), to_hwcn(w)] if is_last else [x, w]
        [found] = run_ge(op_type, [zeros, *operands, bias], whole)
        assert_close(found, to_last(expected) if is_last else expected)


def test_input_size_asks_for_the_size_of_the_result() -> None:
    x, w = data(1, 1, 4, 5, 6), data(2, 4, 3, 3, 3)
    attrs = {**ge_window({"strides": [2, 2], "pads": [1, 1, 1, 1]}, 4), "output_padding": [0, 0, 0, 0]}
    smaller, larger = np.array([1, 3, 9, 11]), np.array([10, 12])
    [found] = run_ge("Conv2DTranspose", [larger, x, w], attrs)
    [expected] = run_onnx("ConvTranspose", [x, w], {"strides": [2, 2], "pads": [1] * 4, "output_padding": [1, 1]})
    assert_close(found, expected)
    assert_close(run_ge("Conv2DTranspose", [smaller, x, w], attrs)[0], expected[:, :, :9, :11])
    with pytest.raises(ReportedError, match="input_size 14 on spatial axis 0 leads to 7, not 5"):
        inferred("Conv2DTranspose", [np.array([14, 12]), x, w], attrs)


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_backprop_input_is_the_gradient_of_conv(padding: str) -> None:
    """The transpose of a linear map A satisfies <A x, y> = <x, A' y>."""
    x, w = data(1, 2, 7, 8, 3, dtype=np.float64), data(2, 3, 2, 3, 4, dtype=np.float64)
    attrs = {"strides": [1, 2, 3, 1], "pads": [0] * 4, "data_format": "NHWC", "padding": padding}
    [forward] = run_ge("Conv2D", [x, w], attrs)
    y = data(3, *forward.shape, dtype=np.float64)
    [back] = run_ge("Conv2DBackpropInput", [np.array(x.shape), w, y], attrs)
    assert back.shape == x.shape
    assert np.vdot(forward, y) == pytest.approx(np.vdot(x, back), rel=1e-12)


def test_transposed_conv_of_unknown_input_size() -> None:
    [desc] = inferred(
        "Conv2DTranspose",
        [np.zeros(4, np.int64), data(1, 1, 4, 5, 6), data(2, 4, 3, 3, 3)],
        ge_window({}, 4),
        constant=False,
    )
    assert list(desc.shape) == [1, 3, -1, -1]


@pytest.mark.parametrize(
    ("attrs", "message"),
    [
        ({"groups": 3}, "4 channels cannot be split into 3 groups"),
        ({"pads": [4, 4, 0, 0]}, "pads 4 and 4 leave nothing of 7 elements"),
        ({"output_padding": [0, 0, -1, 0]}, "output_padding -1 must not be negative"),
    ],
)
def test_transposed_conv_refuses(attrs: dict[str, Any], message: str) -> None:
    operands = [np.zeros(4, np.int64), data(1, 1, 4, 5, 6), data(2, 4, 3, 3, 3)]
    with pytest.raises(ReportedError, match=message):
        inferred("Conv2DTranspose", operands, {**ge_window({}, 4), **attrs})


# -- deformable ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("has_mask", [False, True])
def test_deformable_conv(has_mask: bool) -> None:
    x, w, bias = data(1, 2, 4, 7, 8), data(2, 6, 2, 3, 2), data(5, 6)
    attrs = {"group": 2, "strides": [2, 1], "pads": [1, 0, 1, 1], "dilations": [1, 2]}
    offset = data(3, 2, 2 * 6 * 2, 4, 7)
    mask = data(4, 2, 2 * 6, 4, 7) if has_mask else None
    inputs = [x, w, offset, bias, mask]
    [expected] = run_onnx("DeformConv", inputs, {**attrs, "offset_group": 2, "kernel_shape": [3, 2]}, opset=19)
    whole = {**ge_window(attrs, 4), "deformable_groups": 2}
    assert_close(run_ge("XDeformConv", inputs, whole)[0], expected)

    planes = offset.reshape(2, 12, 2, 4, 7)
    parts = [planes[:, :, 1], planes[:, :, 0], *([] if mask is None else [mask])]
    ge_inputs = [x, w, np.concatenate(parts, 1), bias]
    assert_close(run_ge("DeformableConv2D", ge_inputs, {**whole, "modulated": has_mask})[0], expected)
    last = {**ge_window(attrs, 4, channels_last=True), "deformable_groups": 2, "modulated": has_mask}
    ge_inputs = [to_last(x), to_hwcn(w), to_last(ge_inputs[2]), bias]
    assert_close(run_ge("DeformableConv2D", ge_inputs, last)[0], to_last(expected))


@pytest.mark.parametrize(
    ("offsets", "attrs", "message"),
    [
        ((1, 17, 3, 4), {}, r"offsets has dims \[1, 17, 3, 4\] .*, but \[1, 18, 3, 4\] are needed"),
        ((1, 18, 3, 4), {"deformable_groups": 3}, "4 channels cannot be split into 3 deformable groups"),
        ((1, 18, 3, 4), {"groups": 2}, "x has 4 channels, but the filter takes 4 in each of 2 groups"),
    ],
)
def test_deformable_conv_refuses(offsets: tuple[int, ...], attrs: dict[str, Any], message: str) -> None:
    operands = [data(1, 1, 4, 5, 6), data(2, 2, 4, 3, 3), data(3, *offsets)]
    with pytest.raises(ReportedError, match=message):
        inferred("DeformableConv2D", operands, {**ge_window({}, 4), "modulated": False, **attrs})


@pytest.mark.parametrize("data_format", ["NCHW", "NHWC"])
def test_bias_add(data_format: str) -> None:
    x, bias = data(1, 2, 3, 4, 5), data(2, 3)
    expected = x + bias.reshape(3, 1, 1)
    x, expected = (x, expected) if data_format == "NCHW" else (to_last(x), to_last(expected))
    np.testing.assert_array_equal(run_ge("BiasAdd", [x, bias], {"data_format": data_format})[0], expected)


def test_conv_of_an_empty_batch() -> None:
    assert run_ge("Conv2D", [data(1, 0, 3, 5, 6), data(2, 4, 3, 3, 3)], ge_window({}, 4))[0].shape == (0, 4, 3, 4)
