"""Kernels on storage layouts allocate nothing that grows with the tensor."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from ge.formats import storage_shape
from ge.graph import Format, Graph, TensorDesc
from ge.graph.types import DataType
from simulator.loader import load
from simulator.steps import Step
from tests.simulator.planned_model import plan_model
from tests.simulator.storage_model import C04, NC1HWC0, NCDHW, NCHW, ND, NDC1HWC0, NZ, Laid, StorageCase, default_origin
from tests.simulator.test_allocation import SLACK, floats, half, ints, window

Case = tuple[str, Callable[[int], Sequence[Any]], dict[str, Any], Sequence[int], int, Format]
VOLUME = {"strides": [1] * 5, "pads": [1] * 6, "dilations": [1] * 5, "groups": 1, "data_format": "NCDHW"}
POOL_3D = {"ksize": [1, 1, 3, 3, 3], "strides": [1] * 5, "pads": [1] * 6, "data_format": "NCDHW", "padding": "SAME"}
LAST = {"begin_norm_axis": -1, "begin_params_axis": -1}


def conv(
    k: int, c: int, n: int = 16, groups: int = 1, stride: int = 1, layout: Format = NC1HWC0, fixed: Any = (1, 2)
) -> Case:
    def inputs(size: int) -> list[np.ndarray]:
        return [floats(1, c, size, 64), floats(n, c // groups, k, k), floats(n)]

    return "Conv2D", inputs, window(k, stride, groups, k // 2), fixed, 1, layout


def image(size: int, c: int = 17) -> np.ndarray:
    return floats(1, c, size, 64)


CASES: dict[str, Case] = {
    "conv 1x1": conv(1, 32, n=128),
    "conv 1x1, one block": conv(1, 16),
    "conv 3x3": conv(3, 20),
    "conv 3x3, stride 2": conv(3, 16, stride=2),
    "conv 7x7 of few channels": conv(7, 3, stride=2),
    "conv in C04": conv(3, 3, layout=C04),
    "conv of groups": conv(3, 16, n=8, groups=4),
    "conv of uneven groups": conv(3, 20, n=8, groups=4),
    "conv with a computed filter": conv(3, 20, fixed=()),
    "conv depthwise": conv(3, 20, n=20, groups=20),
    "conv depthwise, stride 2": conv(3, 20, n=20, groups=20, stride=2, fixed=()),
    "conv of volumes": (
        "Conv3D", lambda n: [floats(1, 17, 3, n, 20), floats(16, 17, 3, 3, 3)], VOLUME, [1], 1, NDC1HWC0
    ),
    "conv transposed": (
        "Conv2DTranspose",
        lambda n: [np.zeros(4, np.int32), floats(1, 8, n, 64), floats(8, 17, 2, 2), floats(17)],
        {**window(2, 2), "output_padding": [0] * 4},
        [0, 2, 3],
        1,
        NC1HWC0,
    ),
    "max pool": ("MaxPoolV3", lambda n: [image(n)], window(3, 2, pad=1), [], 1, NC1HWC0),
    "average pool": ("AvgPoolV2", lambda n: [image(n)], window(3, 1, pad=1), [], 1, NC1HWC0),
    "max pool of volumes": ("MaxPool3D", lambda n: [floats(1, 17, 4, n, 20)], POOL_3D, [], 1, NDC1HWC0),
    "global average": ("GlobalAveragePool", lambda n: [image(n)], {}, [], 1, NC1HWC0),
    "resize": (
        "Resize", lambda n: [image(n), None, np.array([1, 1, 2, 1.5], np.float32)], {"mode": "linear"}, [2], 1, NC1HWC0
    ),
    "batch norm": (
        "BatchNorm", lambda n: [image(n), *[floats(17)] * 4], {"is_training": False, "data_format": "NCHW"},
        [1, 2, 3, 4], 1, NC1HWC0,
    ),
    "bias": ("BiasAdd", lambda n: [image(n), floats(17)], {"data_format": "NCHW"}, [1], 1, NC1HWC0),
    "prelu": ("PRelu", lambda n: [image(n), floats(17)], {}, [], 1, NC1HWC0),
    "relu": ("Relu", lambda n: [image(n)], {}, [], 1, NC1HWC0),
    "sigmoid": ("Sigmoid", lambda n: [image(n)], {}, [], 1, NC1HWC0),
    "add": ("Add", lambda n: [image(n), image(n)], {}, [], 1, NC1HWC0),
    "multiply by channel": ("Mul", lambda n: [image(n), floats(1, 17, 1, 1)], {}, [], 1, NC1HWC0),
    "exp of matrices": ("Exp", lambda n: [floats(n, 250)], {}, [], 1, NZ),
    "mean of images": ("ReduceMean", lambda n: [image(n), ints(2, 3)], {"keep_dims": True}, [1], 1, NC1HWC0),
    "largest of rows": ("ReduceMax", lambda n: [image(n), ints(3)], {"keep_dims": True}, [1], 1, NC1HWC0),
    "log of sums": ("ReduceLogSumExp", lambda n: [image(n), ints(2)], {"keep_dims": True}, [1], 1, NC1HWC0),
    "concat": ("ConcatD", lambda n: [image(n, 32), image(n, 32)], {"concat_dim": 1, "N": 2}, [], 1, NC1HWC0),
    "split": ("SplitD", lambda n: [image(n, 32)], {"split_dim": 1, "num_split": 2}, [], 2, NC1HWC0),
    "softmax of channels": ("SoftmaxV2", lambda n: [image(n, 32)], {"axes": [1]}, [], 1, NC1HWC0),
    "softmax of rows": ("SoftmaxV2", lambda n: [floats(n, 256)], {"axes": [-1]}, [], 1, NZ),
    "layer norm": ("LayerNorm", lambda n: [floats(n, 256), floats(256), floats(256)], LAST, [1, 2], 3, NZ),
    "norm of a sum": ("AddLayerNorm", lambda n: [floats(n, 256)] * 2 + [floats(256)] * 2, {}, [2, 3], 4, NZ),
    "matmul": ("MatMulV2", lambda n: [floats(n, 100), floats(100, 120), floats(120)], {}, [1, 2], 1, NZ),
    "matmul, weights computed": ("MatMulV2", lambda n: [floats(n, 100), floats(100, 120)], {}, [], 1, NZ),
    "matmul transposed": ("MatMulV2", lambda n: [floats(100, n), floats(100, 120)], {"transpose_x1": True}, [], 1, NZ),
}  # fmt: skip
WITHOUT_HALF = {"resize"}
SMALL, LARGE = 80, 320


def step_of(case: Case, size: int, is_half: bool) -> tuple[Step, list[np.ndarray]]:
    op_type, make, attrs, constant, n_outputs, layout = case
    inputs = [half(x) if is_half and x is not None else x for x in make(size)]
    origins = [default_origin(x) for x in inputs]
    stored = StorageCase(op_type, inputs, attrs, layout, origins, constant, n_outputs)
    node = stored.plain().graph.find("node")
    assert node is not None
    model, feeds, *_ = stored.stored(node, fast=True)
    plan = load(model)
    for binding, feed in zip(plan.inputs, feeds, strict=True):
        np.copyto(binding.array, feed)
    return plan.steps[0], feeds


def peak_of(step: Step) -> int:
    assert not step.kernel.is_reference
    with np.errstate(all="ignore"):
        step.call()
        gc.collect()
        tracemalloc.start()
        try:
            step.call()
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()


@pytest.mark.parametrize("is_half", [False, True], ids=["single", "half"])
@pytest.mark.parametrize("name", CASES)
def test_nothing_grows_with_the_tensor(name: str, is_half: bool) -> None:
    if is_half and name in WITHOUT_HALF:
        pytest.skip("its scales are no tensor of the model")
    small, large = (peak_of(step_of(CASES[name], size, is_half)[0]) for size in (SMALL, LARGE))
    assert large <= small + SLACK, f"{small} bytes, then {large}"


@pytest.mark.parametrize("is_half", [False, True], ids=["single", "half"])
@pytest.mark.parametrize(
    ("make", "origin", "layout"),
    [
        (lambda n: (1, 17, n, 64), NCHW, NC1HWC0),
        (lambda n: (n, 17, 3, 3), NCHW, Format.FORMAT_FRACTAL_Z),
        (lambda n: (n, 250), ND, NZ),
        (lambda n: (1, 17, 3, n, 20), NCDHW, NDC1HWC0),
    ],
)
def test_transfers(make: Callable[[int], tuple[int, ...]], origin: Format, layout: Format, is_half: bool) -> None:
    dtype = DataType.DT_FLOAT16 if is_half else DataType.DT_FLOAT
    for is_back in (False, True):
        peaks = []
        for size in (SMALL, LARGE):
            shape = make(size)
            plain = TensorDesc(shape, origin, dtype)
            stored = TensorDesc(storage_shape(shape, origin, layout, dtype), layout, dtype, shape, origin)
            before, after = (stored, plain) if is_back else (plain, stored)
            graph = Graph("transfer")
            x = graph.add_node("Data", "x", attrs={"index": 0}, output_descs=[before]).output()
            attrs = {"src_format": "ND", "dst_format": "ND"}
            node = graph.add_node("TransData", "node", [x], attrs, output_descs=[after])
            peaks.append(peak_of(load(plan_model(graph, [node.output()])).steps[0]))
        assert peaks[1] <= peaks[0] + SLACK, peaks


def test_laid_tensors_agree() -> None:
    """The fast way to lay out, which only these measurements use, is that of the oracle."""
    x = floats(2, 17, 3, 5)
    laid = Laid.of(x.shape, DataType.DT_FLOAT, NCHW, NC1HWC0)
    np.testing.assert_array_equal(laid.store(x), laid.store_fast(x))
