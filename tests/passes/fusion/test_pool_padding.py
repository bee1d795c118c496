"""Padding folded into pools."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ge.graph.types import data_type_by_short_name, numpy_dtype
from passes.fusion.fold_pad_into_pool import FoldPadIntoPool
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

MAX, AVG = Reader("MaxPoolV3"), Reader("AvgPoolV2")
SMALL = ((1, 2), (0, 1))
MAX_POOLS = {
    "max": MAX,
    "own pads": replace(MAX, pads=((1, 0), (1, 0)), strides=(2, 1)),
    "dilated": replace(MAX, dilations=(2, 3), pads=((1, 1), (0, 2))),
    "valid": replace(MAX, mode='padding_mode="VALID"'),
    "ONNX valid": replace(MAX, mode='_x_auto_pad="VALID"'),
    "channels last": replace(MAX, form="NHWC", pads=((1, 0), (1, 0))),
    "TensorFlow": Reader("MaxPool", form="NHWC", strides=(2, 2), mode='padding="VALID"'),
    "TensorFlow, no format": Reader("MaxPool", form="NHWC", mode='padding="VALID"', attrs={"data_format": ""}),
    "TensorFlow, channels first": Reader("MaxPool", mode='padding="VALID"'),
    "volume": Reader("MaxPool3D", (1, 2, 3, 4, 5), (2, 4, 3), form="NCDHW", mode='padding="CALCULATED"'),
    "volume, channels last": Reader("MaxPool3D", (1, 2, 3, 4, 5), (2, 4, 3), form="NDHWC", mode='padding="VALID"'),
}
AVERAGES = {
    "average": replace(AVG, attrs={"exclusive": "false"}),
    "own pads counted": replace(AVG, pads=((1, 0), (1, 1)), strides=(2, 1), attrs={"exclusive": "false"}),
    "exclusive, no own pads": replace(AVG, attrs={"exclusive": "true"}),
    "divisor": replace(AVG, pads=((1, 0), (0, 1)), attrs={"divisor_override": "5"}),
    "dilated": replace(AVG, dilations=(2, 3), attrs={"exclusive": "false"}),
    "valid": replace(AVG, mode='padding_mode="VALID"'),
    "channels last": replace(AVG, form="NHWC", pads=((0, 1), (1, 0)), attrs={"exclusive": "false"}),
    "TensorFlow": Reader("AvgPool", form="NHWC", strides=(2, 2), mode='padding="VALID"'),
    "TensorFlow, no format": Reader("AvgPool", form="NHWC", mode='padding="VALID"', attrs={"data_format": ""}),
    "volume": Reader("AvgPool3D", (1, 2, 3, 4, 5), (2, 4, 3), form="NCDHW", pads=((1, 0), (1, 2), (0, 0))),
    "volume, not counted": Reader(
        "AvgPool3D", (1, 2, 3, 4, 5), (2, 4, 3), form="NCDHW", attrs={"count_include_pad": "false"}
    ),
}


def small_space(reader: Reader) -> Pairs:
    return SMALL if len(reader.kernel) == 2 else ((0, 1), *SMALL)


@pytest.mark.parametrize("style", ["PadV2", "begins first"])
@pytest.mark.parametrize("name", MAX_POOLS)
def test_maximum_pools_take_over_padding_by_the_lowest_number(name, style, rng) -> None:
    reader = MAX_POOLS[name]
    space = small_space(reader)
    lines = pad_lines(style, in_space(reader, space), "-inf")
    kind = "MaxPoolV3" if reader.type == "MaxPool" else reader.type
    assert fused(FoldPadIntoPool, text(reader, lines)).types() == [kind]
    check_numbers(FoldPadIntoPool, reader, lines, space, rng, fill=-np.inf)


@pytest.mark.parametrize("name", MAX_POOLS)
def test_padding_by_0_does_not_matter_to_what_is_never_negative(name, rng) -> None:
    reader = MAX_POOLS[name]
    space = small_space(reader)
    lines = "%r = Relu(%x)\n  " + pad_lines("Pad", in_space(reader, space), source="%r")
    kind = "MaxPoolV3" if reader.type == "MaxPool" else reader.type
    assert fused(FoldPadIntoPool, text(reader, lines)).types() == ["Relu", kind]
    check_numbers(FoldPadIntoPool, reader, lines, space, rng, low=0.0)


@pytest.mark.parametrize("producer", ["Abs", "Exp", "HardSigmoid", "Relu6", "Sigmoid", "SoftmaxV2", "Sqrt", "Square"])
def test_what_is_never_negative(producer) -> None:
    lines = f"%r = {producer}(%x)\n  " + pad_lines("Pad", in_space(MAX, SMALL), source="%r")
    assert fused(FoldPadIntoPool, text(MAX, lines)).types() == [producer, "MaxPoolV3"]


@pytest.mark.parametrize("style", ["Pad", "PadV2", "begins first"])
@pytest.mark.parametrize("name", AVERAGES)
def test_average_pools_take_over_padding_by_0(name, style, rng) -> None:
    reader = AVERAGES[name]
    space = small_space(reader)
    lines = pad_lines(style, in_space(reader, space))
    kind = "AvgPoolV2" if reader.type == "AvgPool" else reader.type
    assert fused(FoldPadIntoPool, text(reader, lines)).types() == [kind]
    check_numbers(FoldPadIntoPool, reader, lines, space, rng)


def test_the_text_of_a_pool_that_had_no_pads() -> None:
    before = """graph g(%x: f32[1,2,2,1]@NHWC) {
  %n = Const {value=i32[4,2]{0, 0, 1, 0, 0, 1, 0, 0}} -> i32[4,2]@ND
  %p = Pad(%x, %n) -> f32[1,3,3,1]@NHWC
  %y = AvgPool(%p) {ksize=[1, 2, 2, 1], strides=[1, 1, 1, 1], padding="VALID"} -> f32[1,2,2,1]@NHWC
  return %y
}"""
    attrs = 'ksize=[1, 2, 2, 1], strides=[1, 1, 1, 1], pads=[1, 0, 0, 1], exclusive=false, data_format="NHWC"'
    after = f"""graph g(%x: f32[1,2,2,1]@NHWC) {{
  %AvgPoolV2_p_y_0 = AvgPoolV2(%x) {{{attrs}}} -> f32[1,2,2,1]@NHWC
  return %AvgPoolV2_p_y_0
}}"""
    assert fused(FoldPadIntoPool, before).text() == after


@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32", "f64"])
def test_maximum_pools_of_all_float_types(dtype) -> None:
    lowest = pad_lines("PadV2", in_space(MAX, SMALL), "-inf", dtype)
    assert fused(FoldPadIntoPool, text(MAX, lowest, dtype=dtype)).types() == ["MaxPoolV3"]
    zero = "%r = Relu(%x)\n  " + pad_lines("Pad", in_space(MAX, SMALL), source="%r")
    assert fused(FoldPadIntoPool, text(MAX, zero, dtype=dtype)).types() == ["Relu", "MaxPoolV3"]


@pytest.mark.parametrize(("dtype", "lowest"), [("i8", -128), ("u8", 0)])
def test_maximum_pools_of_whole_numbers(dtype, lowest, rng) -> None:
    lines = pad_lines("PadV2", in_space(MAX, SMALL), str(lowest), dtype)
    limits = np.iinfo(numpy_dtype(data_type_by_short_name(dtype)))
    x = rng.integers(limits.min, limits.max + 1, MAX.x).astype(limits.dtype)
    expected = meaning(MAX, x, None, SMALL, lowest)
    for which in (FoldPadIntoPool, None):
        [found] = results(which, graph_of(text(MAX, lines, dtype=dtype)), [x])
        np.testing.assert_array_equal(found, expected)


LOWEST = pad_lines("PadV2", in_space(MAX, SMALL), "-inf")
ZEROS = pad_lines("Pad", in_space(MAX, SMALL))
FROM_SIZE, ALL_OF_IT = "the padding of y follows from the size", "y has ceil_mode, or pools everything"
WIDE_PAD = "%r = Relu(%x)\n  " + pad_lines("Pad", in_space(MAX, ((3, 0), (0, 0))), source="%r")
FAR_TAPS = "%r = Relu(%x)\n  " + pad_lines("Pad", in_space(MAX, ((2, 2), (2, 2))), source="%r")


@pytest.mark.parametrize(
    ("reader", "lines", "reasons"),
    [
        (MAX, ZEROS, ["x may be negative: a maximum with the padding 0 is another one"]),
        (
            MAX,
            LOWEST.replace("-inf", "-3.4028235e+38"),
            ["what is padded is -3.40282e+38, in a maximum pool the lowest number"],
        ),
        (MAX, LOWEST.replace("-inf", "1.0"), ["what is padded is 1, in a maximum pool the lowest number"]),
        (MAX, LOWEST.replace("-inf", "nan"), ["what is padded is nan, in a maximum pool the lowest number"]),
        (MAX, WIDE_PAD, ["a window of [3, 2] may have nothing but padding [3, 0, 0, 0]"]),
        (
            replace(MAX, pads=((1, 0), (0, 0))),
            WIDE_PAD.replace("3,0", "2,0"),
            ["a window of [3, 2] may have nothing but padding [3, 0, 0, 0]"],
        ),
        (
            Reader("MaxPoolV3", (1, 1, 1, 1), (2, 2), dilations=(3, 3)),
            FAR_TAPS,
            ["taps that are [3, 3] apart may step over all [1, 1] elements"],
        ),
        (replace(MAX, mode='padding_mode="SAME"'), LOWEST, [FROM_SIZE]),
        (replace(MAX, mode='_x_auto_pad="SAME_LOWER"'), LOWEST, [FROM_SIZE]),
        (replace(MAX, mode="ceil_mode=true"), LOWEST, [ALL_OF_IT]),
        (replace(MAX, mode="global_pooling=true"), LOWEST, [ALL_OF_IT]),
        (AVG, LOWEST, ["p pads with -inf, an average pool with 0"]),
        (AVG, LOWEST.replace("-inf", "1.0"), ["p pads with 1, an average pool with 0"]),
        (
            replace(AVG, pads=((1, 0), (0, 0))),
            ZEROS,
            ["y does not count its own padding, but what p pads"],
        ),
        (
            Reader("AvgPoolV2", pads=((1, 0), (0, 0)), attrs={"exclusive": "true"}),
            ZEROS,
            ["y does not count its own padding, but what p pads"],
        ),
        (replace(AVG, mode="ceil_mode=true", attrs={"exclusive": "false"}), ZEROS, [ALL_OF_IT]),
        (replace(AVG, mode="global_pooling=true"), ZEROS, [ALL_OF_IT]),
        (Reader("AvgPool", mode='padding="SAME"'), ZEROS, [FROM_SIZE]),
        (
            MAX,
            pad_lines("PadV2", ((0, 0), (1, 1), (0, 0), (0, 0)), "-inf"),
            other_axes(((0, 0), (1, 1), (0, 0), (0, 0))),
        ),
        (
            AVG,
            pad_lines("Pad", ((0, 0), (0, 0), (2, -1), (0, 0))),
            other_axes(((0, 0), (0, 0), (2, -1), (0, 0))),
        ),
        (
            AVG,
            pad_lines("begins first", in_space(AVG, SMALL)).replace("{paddings", '{mode="reflect", paddings'),
            ["p pads in the mode reflect"],
        ),
    ],
    ids=[
        "negative",
        "lowest finite",
        "1",
        "nan",
        "padding alone",
        "own padding too",
        "steps over",
        "same",
        "same lower",
        "ceil",
        "global",
        "average of -inf",
        "average of 1",
        "not counted by default",
        "not counted",
        "average, ceil",
        "average, global",
        "average, same",
        "channels",
        "cut",
        "reflect",
    ],
)
def test_pools_that_must_not_pad(reader, lines, reasons) -> None:
    assert left_alone(FoldPadIntoPool, text(reader, lines)) == reasons


@pytest.mark.parametrize("producer", ["Abs", "Square"])
def test_magnitudes_of_whole_numbers_may_be_negative(producer) -> None:
    """The magnitude of -128 is -128."""
    lines = f"%r = {producer}(%x)\n  " + pad_lines("PadV2", in_space(MAX, SMALL), "0", "i8", "%r")
    reasons = ["r may be negative: a maximum with the padding 0 is another one"]
    assert left_alone(FoldPadIntoPool, text(MAX, lines, dtype="i8")) == reasons


def test_unknown_sizes_and_far_taps() -> None:
    reader = replace(MAX, dilations=(2, 1))
    lines = "%r = Relu(%x)\n  " + pad_lines("Pad", in_space(MAX, ((1, 1), (1, 1))), source="%r")
    known, unknown = text(reader, lines), text(reader, lines, x="[2,4,-1,-1]")
    assert fused(FoldPadIntoPool, known).types() == ["Relu", "MaxPoolV3"]
    reasons = ["taps that are [2, 1] apart may step over all [-1, -1] elements"]
    assert left_alone(FoldPadIntoPool, unknown) == reasons
    assert fused(FoldPadIntoPool, unknown.replace("_x_dilations=[2,1]", "_x_dilations=[1,1]")).times == (1, 1)


def test_pools_leave_shared_values_alone() -> None:
    source = text(AVG, ZEROS, result="%y, %z").replace("%y =", "%z = Abs(%p)\n  %y =")
    assert left_alone(FoldPadIntoPool, source) == ["z reads p too"]
    assert left_alone(FoldPadIntoPool, text(AVG, ZEROS, result="%y, %p")) == ["the graph's result reads p too"]


@settings(max_examples=80)
@given(
    case=padded_readers("MaxPoolV3", "AvgPoolV2"),
    style=st.sampled_from(STYLES),
    seed=st.integers(0, 2**32 - 1),
    is_positive=st.booleans(),
)
def test_a_folded_padding_changes_no_number(case, style, seed, is_positive) -> None:
    check_law(FoldPadIntoPool, case, style, seed, is_positive)


@settings(max_examples=150)
@given(case=padded_readers("MaxPoolV3"), seed=st.integers(0, 2**32 - 1))
def test_a_zero_that_is_padded_is_never_the_maximum_alone(case, seed) -> None:
    check_law(FoldPadIntoPool, case, "Pad", seed, is_positive=True)
