"""Sums inside operators are fp32 whatever is stored: squares and totals beyond 65504, and differences below fp16."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ge.ops import definition
from tests.simulator.planned_model import node_of, run_model, single

# 4000 numbers about 300: their squares and their sum are beyond fp16, their deviations a few units in the last place
ROWS = (300 + np.random.default_rng(5).integers(-8, 9, (2, 4, 10, 100)) * 0.25).astype(np.float32)
ONES, ZEROS = np.ones(100, np.float32), np.zeros(100, np.float32)
PER_CHANNEL = [np.ones(4, np.float32), np.zeros(4, np.float32)]


def normalised(x: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    """Return ``x`` without its mean, in units of its deviation."""
    mean, variance = x.mean(axis=axes, keepdims=True), x.var(axis=axes, keepdims=True)
    return (x - mean) / np.sqrt(variance + 1e-5)


WIDE = ROWS.astype(np.float64)
LAST = {"begin_norm_axis": 3, "begin_params_axis": 3, "epsilon": 1e-5}
CASES: dict[str, tuple[list[np.ndarray], dict[str, Any], int, np.ndarray]] = {
    "LayerNorm": ([ROWS, ONES, ZEROS], LAST, 3, normalised(WIDE, (3,))),
    "LayerNormV3": ([ROWS, ONES, ZEROS], LAST, 3, normalised(WIDE, (3,))),
    "InstanceNorm": (
        [ROWS, *PER_CHANNEL], {"data_format": "NCHW", "epsilon": 1e-5}, 3, normalised(WIDE, (2, 3)),
    ),
    "GroupNorm": (
        [ROWS, *PER_CHANNEL], {"num_groups": 2, "eps": 1e-5}, 3,
        normalised(WIDE.reshape(2, 2, -1), (2,)).reshape(WIDE.shape),
    ),
    "MVNV2": ([ROWS], {"axes": [0, 2, 3], "eps": 0.0}, 1, normalised(WIDE, (0, 2, 3))),
    "RmsNorm": ([ROWS, ONES], {}, 2, WIDE / np.sqrt(np.square(WIDE).mean(axis=3, keepdims=True))),
    "ReduceMean": ([ROWS, np.array([1, 2, 3], np.int32)], {}, 1, WIDE.mean(axis=(1, 2, 3))),
    "ReduceMeanD": ([ROWS], {"axes": [2, 3]}, 1, WIDE.mean(axis=(2, 3))),
    "GlobalAveragePool": ([ROWS], {}, 1, WIDE.mean(axis=(2, 3), keepdims=True)),
    "AvgPoolV2": (
        [ROWS],
        {"ksize": [1, 1, 10, 100], "strides": [1, 1, 1, 1], "padding_mode": "VALID", "data_format": "NCHW"}, 1,
        WIDE.mean(axis=(2, 3), keepdims=True),
    ),
    "LpNormV2": ([ROWS / 64], {"p": 2.0, "axes": [3]}, 1, np.linalg.norm(WIDE / 64, axis=3)),
    "SoftmaxV2": ([np.zeros((2, 100_000), np.float32)], {}, 1, np.full((2, 100_000), 1e-5)),
    "ReduceLogSumExp": ([ROWS, np.array([3], np.int32)], {}, 1, 300 + np.log(np.exp(WIDE - 300).sum(axis=3))),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("way", ["kernel", "reference"])
def test_internal_sums_are_single_precision(name: str, way: str) -> None:
    inputs, attrs, n_outputs, expected = CASES[name]
    narrow = [x.astype(np.float16) if x.dtype == np.float32 else x for x in inputs]
    model = single(name, narrow, attrs, n_outputs=n_outputs, constant=range(1, len(narrow)))
    if way == "kernel":
        found = run_model(model, narrow[:1])[0]
    else:
        node = node_of(model)
        found = definition(node).evaluate(attrs, narrow, [desc.data_type for desc in node.output_descs])[0]
    assert found.dtype == np.float16
    np.testing.assert_allclose(found.astype(np.float64), expected, rtol=1e-3, atol=1e-3 * np.abs(expected).max())
