"""Padding in all modes against onnxruntime and numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ge.errors import ReportedError
from tests.ops.one_node import data, inferred, run_ge, run_onnx


def widths(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


ONNX_LAYOUT = {"paddings_contiguous": False}


@pytest.mark.parametrize("mode", ["constant", "reflect", "edge", "wrap"])
@pytest.mark.parametrize("pads", [(0, 1, 2, 1), (2, 0, 0, 3), (0, 0, 0, 0), (1, -1, 1, 2), (-1, 0, 0, -2)])
def test_pad_v3_is_onnx_pad(mode: str, pads: tuple[int, ...]) -> None:
    if mode != "constant" and min(pads) < 0:
        pads = tuple(max(width, 0) for width in pads)  # runtimes differ on what cutting means beside mirrors
    x = data(1, 4, 5)
    [found] = run_ge("PadV3", [x, widths(*pads), None], {"mode": mode, **ONNX_LAYOUT})
    np.testing.assert_array_equal(found, run_onnx("Pad", [x, widths(*pads)], {"mode": mode})[0])


@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.float16, np.bool_])
def test_pad_value(dtype: Any) -> None:
    x, value = data(2, 2, 3, dtype=dtype), np.array(1, dtype)
    [found] = run_ge("PadV3", [x, widths(1, 0, 0, 2), value])
    np.testing.assert_array_equal(found, np.pad(x, [(1, 0), (0, 2)], constant_values=value))
    [found] = run_ge("PadV2", [x, widths(1, 0, 0, 2), value])
    np.testing.assert_array_equal(found, np.pad(x, [(1, 0), (0, 2)], constant_values=value))


@pytest.mark.parametrize("axes", [[1], [-1, 0], [2, 0]])
@pytest.mark.parametrize("mode", ["constant", "reflect", "edge"])
def test_pad_of_some_axes(axes: list[int], mode: str) -> None:
    x = data(3, 6, 4, 5)
    pads = widths(*range(2 * len(axes)))
    [found] = run_ge("PadV3", [x, pads, None], {"mode": mode, "_x_axes": axes, **ONNX_LAYOUT})
    expected = run_onnx("Pad", [x, pads, None, np.array(axes)], {"mode": mode})[0]
    np.testing.assert_array_equal(found, expected)
    [found] = run_ge("XPad", [x, pads, None, np.array(axes)], {"mode": mode})
    np.testing.assert_array_equal(found, expected)


def test_pad_by_inputs_alone() -> None:
    x, pads, value = data(7, 2, 3), widths(1, 0, 0, 2), np.array(5, np.float32)
    expected = run_onnx("Pad", [x, pads, value])[0]
    np.testing.assert_array_equal(run_ge("XPad", [x, pads, value])[0], expected)
    [desc] = inferred("XPad", [x, pads, value, np.array([0, 1])], {}, constant=False)
    assert desc.shape == (-1, -1)


@pytest.mark.parametrize("mode", ["reflect", "symmetric", "edge", "wrap"])
@pytest.mark.parametrize(("dim", "before", "after"), [(3, 7, 5), (1, 2, 3), (2, 5, 4)])
def test_pads_wider_than_the_tensor_go_round_again(mode: str, dim: int, before: int, after: int) -> None:
    x = data(4, 2, dim)
    [found] = run_ge("PadV3", [x, widths(0, 0, before, after), None], {"mode": mode})
    np.testing.assert_array_equal(found, np.pad(x, [(0, 0), (before, after)], mode=mode))


@pytest.mark.parametrize("mode", ["REFLECT", "SYMMETRIC"])
def test_mirror_pad(mode: str) -> None:
    x = data(5, 3, 4)
    [found] = run_ge("MirrorPad", [x, widths(1, 2, 0, 3).reshape(2, 2)], {"mode": mode})
    np.testing.assert_array_equal(found, np.pad(x, [(1, 2), (0, 3)], mode=mode.lower()))


def test_pad_with_zeros() -> None:
    x = data(6, 2, 3)
    expected = np.pad(x, [(0, 1), (2, 0)])
    np.testing.assert_array_equal(run_ge("Pad", [x, widths(0, 1, 2, 0).reshape(2, 2)])[0], expected)
    np.testing.assert_array_equal(run_ge("PadD", [x], {"paddings": [[0, 1], [2, 0]]})[0], expected)


def test_strings_are_padded_with_empty_ones() -> None:
    assert run_ge("Pad", [np.array(["a"], object), widths(1, 1)])[0].tolist() == ["", "a", ""]


@pytest.mark.parametrize(
    ("pads", "attrs", "message"),
    [
        ((1, 1), {}, "2 padding widths are given for 2 axes"),
        ((0, -3, 0, 0), {}, "padding 0 and -3 cuts more than a dim of 2 has"),
        ((0, 1, 0, 0), {"mode": "round"}, "mode round is none of constant, reflect"),
        ((0, 1), {"_x_axes": [2]}, "axis 2 is out of range for rank 2"),
    ],
)
def test_misfits_are_reported(pads: tuple[int, ...], attrs: dict[str, Any], message: str) -> None:
    with pytest.raises(ReportedError, match=message):
        inferred("PadV3", [np.zeros((2, 3)), widths(*pads), None], attrs)


def test_an_empty_dim_has_no_border_to_repeat() -> None:
    with pytest.raises(ReportedError, match="mode edge cannot pad an empty dim"):
        inferred("PadV3", [np.zeros((0, 3)), widths(1, 0, 0, 0), None], {"mode": "edge"})


def test_widths_known_only_while_running() -> None:
    x, pads = np.zeros((2, 3, 4)), widths(1, 2)
    assert inferred("PadV3", [x, pads, None], {"_x_axes": [1]}, constant=False)[0].shape == (2, -1, 4)
