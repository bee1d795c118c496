"""Real kernels allocate nothing that grows with the tensor: the peak is the same for a tensor four times as large."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from simulator.loader import load
from tests.simulator.planned_model import run_plan, single

SLACK = 16 << 10
"""Bytes by which two runs of the same kernel may differ: views, tuples, small vectors."""
Case = tuple[str, Callable[[int], Sequence[Any]], dict[str, Any], Sequence[int], int]


def floats(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).uniform(0.1, 1, shape).astype(np.float32)


def ints(*values: int) -> np.ndarray:
    return np.array(values, np.int32)


def window(k: int, stride: int = 1, groups: int = 1, pad: int = 0) -> dict[str, Any]:
    return {
        "strides": [1, 1, stride, stride],
        "pads": [pad] * 4,
        "dilations": [1] * 4,
        "groups": groups,
        "data_format": "NCHW",
        "ksize": [1, 1, k, k],
    }


def conv(k: int, channels: int, groups: int = 1, stride: int = 1, bias: bool = True) -> Case:
    outputs = channels if groups > 1 else 16

    def inputs(n: int) -> list[np.ndarray]:
        return [floats(1, channels, n, 128), floats(outputs, channels // groups, k, k), *([floats(outputs)] * bias)]

    return "Conv2D", inputs, window(k, stride, groups, k // 2), [1, 2], 1


def conv_last(k: int, channels: int, stride: int = 1, type: str = "Conv2D") -> Case:
    """Return a convolution of channels-last data."""
    outputs = 1 if type == "DepthwiseConv2D" else 16

    def inputs(n: int) -> list[np.ndarray]:
        return [floats(1, n, 128, channels), floats(k, k, channels, outputs)]

    axes = {name: [1, value, value, 1] for name, value in (("strides", stride), ("dilations", 1))}
    return type, inputs, {**axes, "pads": [k // 2] * 4, "data_format": "NHWC"}, [1], 1


# name -> operator, inputs for a size, attributes, constant slots, outputs. The large tensor grows along the size.
CASES: dict[str, Case] = {
    "conv 1x1": conv(1, 16),
    "conv 3x3, unfolded": conv(3, 3),
    "conv 3x3, unfolded rows": conv(3, 16),
    "conv 3x3, stride 2": conv(3, 16, stride=2),
    "conv depthwise": conv(3, 8, groups=8),
    "conv depthwise, stride 2": conv(3, 8, groups=8, stride=2),
    "conv of groups": conv(3, 16, groups=4),
    "conv 1x1, channels last": conv_last(1, 16),
    "conv 3x3, channels last": conv_last(3, 16),
    "conv 3x3, channels last, stride 2": conv_last(3, 3, stride=2),
    "conv depthwise, channels last": conv_last(3, 8, type="DepthwiseConv2D"),
    "conv transposed": (
        "Conv2DTranspose",
        lambda n: [np.zeros(4, np.int64), floats(1, 8, n, 128), floats(8, 4, 2, 2), floats(4)],
        {**window(2, 2), "output_padding": [0] * 4},
        [0, 2, 3],
        1,
    ),
    "max pool": ("MaxPoolV3", lambda n: [floats(1, 8, n, 128)], window(3, 2, pad=1), [], 1),
    "average pool": ("AvgPoolV2", lambda n: [floats(1, 8, n, 128)], window(3, 2, pad=1), [], 1),
    "global average": ("GlobalAveragePool", lambda n: [floats(1, 8, n, 128)], {}, [], 1),
    "matmul": ("MatMulV2", lambda n: [floats(n, 128), floats(128, 128), floats(128)], {}, [1, 2], 1),
    "matmul transposed": (
        "MatMulV2",
        lambda n: [floats(128, n), floats(128, 128)],
        {"transpose_x1": True, "transpose_x2": True},
        [1],
        1,
    ),
    "batch matmul": ("BatchMatMulV2", lambda n: [floats(8, n, 128), floats(8, 128, 64)], {}, [], 1),
    "matmul, weights computed": ("BatchMatMulV2", lambda n: [floats(n, 128), floats(128, 64)], {}, [], 1),
    "relu": ("Relu", lambda n: [floats(n, 1024)], {}, [], 1),
    "sigmoid": ("Sigmoid", lambda n: [floats(n, 1024)], {}, [], 1),
    "gelu": ("Gelu", lambda n: [floats(n, 1024)], {}, [], 1),
    "hard swish": ("HardSwish", lambda n: [floats(n, 1024)], {}, [], 1),
    "leaky relu": ("LeakyRelu", lambda n: [floats(n, 1024)], {"negative_slope": 0.1}, [], 1),
    "shrink": ("Shrink", lambda n: [floats(n, 1024)], {}, [], 1),
    "add": ("Add", lambda n: [floats(n, 1024), floats(n, 1024)], {}, [], 1),
    "add, broadcast": ("Add", lambda n: [floats(n, 1024), floats(n, 1)], {}, [], 1),
    "less": ("Less", lambda n: [floats(n, 1024), floats(1024)], {}, [], 1),
    "select": ("SelectV2", lambda n: [floats(n, 1024) > 0.5, floats(n, 1024), floats(1024)], {}, [], 1),
    "clip": ("ClipByValue", lambda n: [floats(n, 1024), floats(), floats()], {}, [1, 2], 1),
    "power": ("Pow", lambda n: [floats(n, 1024), floats(n, 1024)], {}, [], 1),
    "sum of three": ("AddN", lambda n: [floats(n, 1024)] * 3, {"N": 3}, [], 1),
    "prelu": ("PRelu", lambda n: [floats(1, 16, n, 64), floats(16)], {}, [1], 1),
    "batch norm": (
        "BatchNorm",
        lambda n: [floats(1, 16, n, 64), *[floats(16)] * 4],
        {"is_training": False, "data_format": "NCHW"},
        [1, 2, 3, 4],
        1,
    ),
    "layer norm": (
        "LayerNorm",
        lambda n: [floats(n, 1024), floats(1024), floats(1024)],
        {"begin_norm_axis": 1, "begin_params_axis": 1},
        [1, 2],
        3,
    ),
    "instance norm": (
        "InstanceNorm",
        lambda n: [floats(1, 16, n, 64), floats(16), floats(16)],
        {"data_format": "NCHW"},
        [1, 2],
        3,
    ),
    "softmax": ("SoftmaxV2", lambda n: [floats(n, 1024)], {}, [], 1),
    "softmax of an inner axis": ("SoftmaxV2", lambda n: [floats(n, 32, 32)], {"axes": [1]}, [], 1),
    "log softmax": ("LogSoftmaxV2", lambda n: [floats(n, 1024)], {}, [], 1),
    "mean of rows": ("ReduceMean", lambda n: [floats(n, 1024), ints(1)], {"keep_dims": True}, [1], 1),
    "mean of columns": ("ReduceMean", lambda n: [floats(n, 1024), ints(0)], {"keep_dims": True}, [1], 1),
    "largest": ("ReduceMax", lambda n: [floats(4, n, 256), ints(1, 2)], {}, [1], 1),
    "concat": ("ConcatD", lambda n: [floats(n, 512), floats(n, 512)], {"concat_dim": 1, "N": 2}, [], 1),
    "split": ("Split", lambda n: [ints(1), floats(n, 1024)], {"num_split": 2}, [0], 2),
    "slice": ("Slice", lambda n: [floats(n, 1024), ints(0, 3), ints(n, 900)], {}, [1, 2], 1),
    "expand": ("Expand", lambda n: [floats(n, 1), np.array([n, 1024])], {}, [1], 1),
    "pad": ("PadV3", lambda n: [floats(n, 1024), ints(0, 1, 2, 3)], {}, [1], 1),
    "gather": ("GatherV2", lambda n: [floats(n, 1024), ints(0, 1, 2), ints(1)], {}, [2], 1),
    "lrn": ("LRN", lambda n: [floats(1, 16, n, 64)], {"depth_radius": 2}, [], 1),
    "tile": ("Tile", lambda n: [floats(n, 256), ints(1, 4)], {}, [1], 1),
    "transpose": ("TransposeD", lambda n: [floats(n, 16, 64)], {"perm": [2, 0, 1]}, [], 1),
    "identity": ("Identity", lambda n: [floats(n, 1024)], {"_must_copy": True}, [], 1),
    "cast to half": ("Cast", lambda n: [floats(n, 1024)], {"dst_type": 1}, [], 1),
    "cast to integer": ("Cast", lambda n: [floats(n, 1024)], {"dst_type": 3}, [], 1),
}
SMALL, LARGE = 160, 640
WITHOUT_HALF = {"split", "identity", "cast to half"}


def half(array: Any) -> Any:
    return array.astype(np.float16) if array.dtype == np.float32 else array


def peak_of_a_run(case: Case, size: int, is_half: bool) -> tuple[int, int]:
    """Return the bytes that a warm run allocates at most, and those of its outputs."""
    op_type, make, attrs, constant, n_outputs = case
    inputs = [half(x) if is_half else x for x in make(size)]
    plan = load(single(op_type, inputs, attrs, constant=constant, n_outputs=n_outputs))
    [step] = plan.steps
    assert not step.kernel.is_reference
    feeds = [x for slot, x in enumerate(inputs) if slot not in constant]
    run_plan(plan, feeds)
    gc.collect()
    with np.errstate(all="ignore"):
        tracemalloc.start()
        try:
            step.call()
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    return peak, sum(y.nbytes for y in step.outputs if y is not None)


@pytest.mark.parametrize("is_half", [False, True], ids=["single", "half"])
@pytest.mark.parametrize("name", CASES)
def test_nothing_grows_with_the_tensor(name: str, is_half: bool) -> None:
    small, small_bytes = peak_of_a_run(CASES[name], SMALL, is_half)
    large, large_bytes = peak_of_a_run(CASES[name], LARGE, is_half)
    assert large <= small + SLACK, f"{small} bytes, then {large}, outputs {small_bytes} and {large_bytes}"


def test_the_measure_can_tell() -> None:
    """The reference semantics do allocate, and tracemalloc sees it."""
    peaks = []
    for size in (SMALL, LARGE):
        x = floats(size, 1024)
        plan = load(single("Cumsum", [x, ints(1).reshape(())], constant=[1]))
        [step] = plan.steps
        assert step.kernel.is_reference
        run_plan(plan, [x])
        tracemalloc.start()
        step.call()
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] > peaks[0] + SLACK
