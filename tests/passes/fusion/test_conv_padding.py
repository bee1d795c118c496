"""Padding folded into convolutions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from passes.fusion.fold_pad_into_conv import FoldPadIntoConv
from tests.passes.fusion.fused import fused, graph_of, left_alone, results
from tests.passes.fusion.padded import (
    STYLES,
    Pairs,
    Reader,
    check_law,
    check_numbers,
    in_space,
    meaning,
    other_axes,
    pad_lines,
    padded_readers,
    text,
)

SPACE = ((1, 2), (0, 3))
CONV = Reader("Conv2D", filter=(6, 4, 3, 2))
CONVS = {
    "conv": CONV,
    "own pads": replace(CONV, pads=((2, 0), (1, 4)), strides=(2, 1), dilations=(1, 2)),
    "grouped": replace(CONV, filter=(6, 2, 3, 2), groups=2, attrs={"auto_pad": '"NOTSET"'}),
    "channels last": replace(CONV, form="NHWC", pads=((0, 1), (1, 0)), strides=(1, 3)),
    "valid": replace(CONV, mode='auto_pad="VALID"'),
    "TensorFlow": replace(CONV, form="NHWC", mode='padding="VALID"'),
    "TensorFlow, own pads": replace(CONV, form="NHWC", pads=((1, 1), (0, 2)), mode='padding="EXPLICIT"'),
    "conv v2": replace(CONV, type="Conv2DV2", pads=((1, 0), (0, 1)), mode='pad_mode="SPECIFIC"'),
    "conv v2, valid": replace(CONV, type="Conv2DV2", mode='pad_mode="VALID"'),
    "depthwise": Reader("DepthwiseConv2D", filter=(2, 4, 3, 2), pads=((1, 0), (0, 0))),
    "depthwise, channels last": Reader("DepthwiseConv2D", filter=(2, 4, 3, 2), form="NHWC", strides=(2, 2)),
    "volume": Reader("Conv3D", (1, 2, 3, 4, 5), (2, 1, 3), (3, 2, 2, 1, 3), "NCDHW", pads=((1, 0), (0, 0), (0, 2))),
    "volume, channels last": Reader("Conv3D", (1, 2, 3, 4, 5), (2, 1, 3), (3, 2, 2, 1, 3), "NDHWC"),
}


def space_of(reader: Reader) -> Pairs:
    return SPACE if len(reader.kernel) == 2 else ((0, 1), *SPACE)


@pytest.mark.parametrize("name", CONVS)
def test_convolutions_take_over_the_padding(name, rng) -> None:
    reader = CONVS[name]
    space = space_of(reader)
    lines = pad_lines("Pad", in_space(reader, space))
    result = fused(FoldPadIntoConv, text(reader, lines))
    assert result.types() == [reader.type]
    assert result.times == (1, 1)
    own = reader.pads or ((0, 0),) * len(space)
    total = [
        width + more for pair, others in zip(own, space, strict=True) for width, more in zip(pair, others, strict=True)
    ]
    assert list(result.only(reader.type).attrs["pads"]) == total
    check_numbers(FoldPadIntoConv, reader, lines, space, rng)


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("name", ["own pads", "channels last"])
def test_all_ways_of_writing_a_padding(style, name, rng) -> None:
    lines = pad_lines(style, in_space(CONVS[name], SPACE))
    assert fused(FoldPadIntoConv, text(CONVS[name], lines)).times == (1, 1)
    check_numbers(FoldPadIntoConv, CONVS[name], lines, SPACE, rng)


def test_the_text_of_a_folded_padding() -> None:
    before = """graph g(%x: f32[1,1,2,2]@NCHW, %w: f32[1,1,2,2]@NCHW) {
  %n = Const {value=i64[8]{0, 0, 1, 0, 0, 0, 0, 2}} -> i64[8]@ND
  %p = PadV3(%x, %n) {mode="constant", paddings_contiguous=false} -> f32[1,1,3,4]@NCHW
  %y = Conv2D(%p, %w) {ATTRS, pads=[0, 0, 3, 0], auto_pad="VALID"} -> f32[1,1,2,3]@NCHW
  return %y
}"""
    after = """graph g(%x: f32[1,1,2,2]@NCHW, %w: f32[1,1,2,2]@NCHW) {
  %Conv2D_p_y_0 = Conv2D(%x, %w) {ATTRS, pads=[1, 0, 0, 2], auto_pad="NOTSET"} -> f32[1,1,2,3]@NCHW
  return %Conv2D_p_y_0
}"""
    attrs = 'strides=[1, 1, 1, 1], data_format="NCHW"'
    assert fused(FoldPadIntoConv, before.replace("ATTRS", attrs)).text() == after.replace("ATTRS", attrs)


def test_a_bias_stays(rng) -> None:
    lines = pad_lines("Pad", in_space(CONV, SPACE))
    source = text(CONV, lines, more=", %b: f32[6]@ND").replace("(%p, %w)", "(%p, %w, %b)")
    node = fused(FoldPadIntoConv, source).only("Conv2D")
    assert [source.node.name for source in node.inputs if source is not None] == ["x", "w", "b"]


def test_paddings_one_after_the_other_are_folded_all() -> None:
    lines = pad_lines("PadD", in_space(CONV, SPACE)).replace("%p", "%q") + "\n  "
    lines += pad_lines("PadD", in_space(CONV, ((1, 1), (1, 1))), source="%q")
    result = fused(FoldPadIntoConv, text(CONV, lines))
    assert result.types() == ["Conv2D"]
    assert list(result.only("Conv2D").attrs["pads"]) == [2, 3, 1, 4]


@pytest.mark.parametrize("size", ["[-1,4,-1,-1]", "[2,4,-1,6]"])
def test_sizes_may_be_unknown(size, rng) -> None:
    result = fused(FoldPadIntoConv, text(CONV, pad_lines("Pad", in_space(CONV, SPACE)), x=size))
    assert result.types() == ["Conv2D"]
    assert result.only("Conv2D").output_descs[0].shape[1] == 6


def test_padding_by_a_zero_of_either_sign_or_of_another_float_type() -> None:
    for fill, dtype in [("-0.0", "f32"), ("0.0", "f16"), ("0.0", "bf16")]:
        lines = pad_lines("PadV2", in_space(CONV, SPACE), fill, dtype)
        assert fused(FoldPadIntoConv, text(CONV, lines, dtype=dtype)).types() == ["Conv2D"]


def test_whole_numbers_are_padded_too(rng) -> None:
    lines = pad_lines("PadV2", in_space(CONV, SPACE), "0", "i8")
    x, w = rng.integers(-128, 128, CONV.x, np.int8), rng.integers(-128, 128, CONV.filter, np.int8)
    expected = meaning(CONV, x, w, SPACE, 0)
    for which in (FoldPadIntoConv, None):
        [found] = results(which, graph_of(text(CONV, lines, dtype="i8")), [x, w])
        np.testing.assert_array_equal(found, expected)


WIDTHS = in_space(CONV, SPACE)
ZERO_PAD = pad_lines("PadV2", WIDTHS)
ONNX_PAD = pad_lines("begins first", WIDTHS)


@pytest.mark.parametrize(
    ("lines", "reasons"),
    [
        (pad_lines("PadV2", WIDTHS, "0.5"), ["p pads with 0.5, a convolution with 0"]),
        (pad_lines("pairs", WIDTHS, "-1.0"), ["p pads with -1, a convolution with 0"]),
        (pad_lines("begins first", WIDTHS, "-inf"), ["p pads with -inf, a convolution with 0"]),
        (pad_lines("PadV2", WIDTHS, "nan"), ["p pads with nan, a convolution with 0"]),
        (ONNX_PAD.replace("{paddings", '{mode="reflect", paddings'), ["p pads in the mode reflect"]),
        (ONNX_PAD.replace("{paddings", '{mode="edge", paddings'), ["p pads in the mode edge"]),
        (ONNX_PAD.replace("{paddings", '{mode="wrap", paddings'), ["p pads in the mode wrap"]),
        (pad_lines("Pad", WIDTHS).replace("= Pad(%x, %n)", '= MirrorPad(%x, %n) {mode="SYMMETRIC"}'), []),
        (pad_lines("Pad", ((0, 0), (0, 0), (-1, 1), (0, 0))), other_axes(((0, 0), (0, 0), (-1, 1), (0, 0)))),
        (pad_lines("begins first", ((0, 0), (0, 0), (0, 0), (2, -2))), other_axes(((0, 0), (0, 0), (0, 0), (2, -2)))),
        (pad_lines("PadD", ((1, 0), (0, 0), (1, 1), (1, 1))), other_axes(((1, 0), (0, 0), (1, 1), (1, 1)))),
    ],
    ids=["0.5", "-1", "-inf", "nan", "reflect", "edge", "wrap", "mirror", "cut", "cut at the end", "samples"],
)
def test_paddings_that_no_convolution_does(lines, reasons) -> None:
    assert left_alone(FoldPadIntoConv, text(CONV, lines)) == reasons


def test_padded_channels_are_left_alone() -> None:
    widths = ((0, 0), (1, 1), (1, 1), (1, 1))
    reader = replace(CONV, filter=(6, 6, 3, 2))
    assert left_alone(FoldPadIntoConv, text(reader, pad_lines("Pad", widths))) == other_axes(widths)


@pytest.mark.parametrize(
    ("mode", "reasons"),
    [
        ('auto_pad="SAME_UPPER"', ["the padding of y follows from the size"]),
        ('auto_pad="SAME_LOWER"', ["the padding of y follows from the size"]),
        ('padding="SAME"', ["the padding of y follows from the size"]),
    ],
)
def test_convolutions_whose_padding_follows_from_the_size(mode, reasons) -> None:
    assert left_alone(FoldPadIntoConv, text(replace(CONV, mode=mode), ZERO_PAD)) == reasons


def test_an_offset_is_left_alone() -> None:
    """What is padded here becomes -offset, what the convolution pads stays 0."""
    source = text(replace(CONV, attrs={"offset_x": "3"}), pad_lines("Pad", WIDTHS), dtype="i8")
    assert left_alone(FoldPadIntoConv, source) == ["y subtracts 3 from what is padded"]


@pytest.mark.parametrize(
    ("old", "new", "result", "reasons"),
    [
        ("%y =", "%z = Relu(%p)\n  %y =", "%y, %z", ["z reads p too"]),
        ("%y =", "%y =", "%y, %p", ["the graph's result reads p too"]),
        ("%y =", "%z = Relu(%x)\n  %y =", "%y, %z", None),
        ("Conv2D(%p, %w)", "Conv2D(%x, %p)", "%y", []),
        ("Conv2D(%p, %w)", "Conv2D(%p, %p)", "%y", ["y reads p more than once"]),
    ],
    ids=["shared", "result", "source shared", "padded filter", "both"],
)
def test_who_else_reads_what_is_padded(old, new, result, reasons) -> None:
    square = Reader("Conv2D", (4, 4, 3, 3), (5, 6), (4, 4, 5, 6))
    source = text(square, ZERO_PAD, result=result).replace(old, new)
    source = source.replace("pads=[0,0,0,0]", "pads=[9,9,9,9]")
    if reasons is None:
        assert fused(FoldPadIntoConv, source).times == (1, 1)
    else:
        assert left_alone(FoldPadIntoConv, source) == reasons


def test_what_is_computed_is_left_alone() -> None:
    widths = text(CONV, "%p = Pad(%x, %n)", more=", %n: i32[4,2]@ND")
    assert left_alone(FoldPadIntoConv, widths) == ["the widths of p are no constants"]
    number = text(CONV, ZERO_PAD.replace("%x, %n, %f", "%x, %n, %v"), more=", %v: f32[]@ND")
    assert left_alone(FoldPadIntoConv, number) == ["what p pads with is no constant"]
    unknown = text(CONV, pad_lines("Pad", WIDTHS), x="[-2]")
    assert left_alone(FoldPadIntoConv, unknown) == ["the widths of p are no constants"]


def test_control_edges_stay() -> None:
    source = text(CONV, "%z = Relu(%x)\n  " + ZERO_PAD.replace("%f)", "%f) ctrl(%z)"), result="%y, %z")
    result = fused(FoldPadIntoConv, source)
    assert result.types() == ["Relu", "NoOp", "Conv2D"]
    [waits] = result.only("Conv2D").control_inputs
    assert [before.name for before in waits.control_inputs] == ["z"]


@settings(max_examples=60)
@given(case=padded_readers("Conv2D"), style=st.sampled_from(STYLES), seed=st.integers(0, 2**32 - 1))
def test_a_folded_padding_changes_no_number(case, style, seed) -> None:
    check_law(FoldPadIntoConv, case, style, seed)
