"""Compiled convolutions of feature maps in NC1HWC0 against their meaning in double precision."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.simulator.codegen.compilers import LEVELS, compiler
from tests.simulator.storage_model import check_stored, uniform

TYPES = [np.float32, np.float16, ml_dtypes.bfloat16]


def check(
    x: np.ndarray,
    weights: np.ndarray,
    *,
    level: str = "native",
    has_bias: bool = True,
    stride: Any = 1,
    pad: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
    kernel: str = "llvm-conv",
) -> None:
    """Hold a channels-first convolution to its meaning; its kernel must be the one that is named."""
    bias = uniform(len(weights), dtype=x.dtype, seed=2)
    attrs = {
        "strides": [1, 1, *np.broadcast_to(stride, 2).tolist()],
        "dilations": [1, 1, *np.broadcast_to(dilation, 2).tolist()],
        "pads": np.broadcast_to(pad, 4).tolist(),
        "groups": groups,
        "data_format": "NCHW",
    }
    inputs, constant = ([x, weights, bias], (1, 2)) if has_bias else ([x, weights], (1,))
    tolerance = {4: 1e-5}.get(x.itemsize, 1.5e-3 if x.dtype == np.float16 else 1e-2)
    check_stored(
        "Conv2D", inputs, attrs, constant=constant, kernel=kernel, tolerance=tolerance, compiler=compiler(level)
    )


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("c", [1, 3, 15, 16, 17, 33])
@pytest.mark.parametrize("k", [1, 3])
def test_channels(c: int, k: int, level: str, dtype: Any) -> None:
    for n in (1, 16, 33, 80):
        if level == "plain" and dtype == np.float16:
            pytest.skip("it has no conversion from and to float16")
        check(uniform(2, c, 9, 11, dtype=dtype), uniform(n, c, k, k, dtype=dtype, seed=1), pad=k // 2, level=level)


@pytest.mark.parametrize(
    "how",
    [
        {"stride": 2},
        {"stride": 2, "pad": 1},
        {"stride": [1, 2], "pad": [0, 2, 1, 0]},
        {"stride": [3, 1], "pad": 1},
        {"dilation": 2},
        {"dilation": [1, 2], "pad": 2},
        {"dilation": [2, 1], "stride": [2, 1], "pad": 1},
        {"dilation": [3, 2], "stride": [2, 3], "pad": [3, 2, 0, 1]},
    ],
    ids=str,
)
@pytest.mark.parametrize("c", [3, 20])
@pytest.mark.parametrize("kernel", [(1, 1), (3, 3), (3, 2), (1, 5), (5, 1)])
def test_windows(c: int, kernel: tuple[int, int], how: dict[str, Any]) -> None:
    check(uniform(1, c, 13, 14), uniform(18, c, *kernel, seed=1), **how)


@pytest.mark.parametrize("width", [1, 2, 4, 5, 6, 7, 12, 13, 14, 15, 28, 29, 57])
@pytest.mark.parametrize("blocks", [1, 2, 3, 4, 7])
def test_tiles(width: int, blocks: int) -> None:
    x, weights = uniform(1, 16, 2, width), uniform(blocks * 16, 16, 1, 3, seed=1)
    check(x, weights, pad=[0, 0, 1, 1])
    check(x, uniform(blocks * 16, 16, 1, 1, seed=1), has_bias=False)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(("groups", "c", "n"), [(2, 16, 16), (3, 32, 16), (2, 16, 96), (4, 48, 48)])
def test_groups_of_whole_blocks(groups: int, c: int, n: int, dtype: Any) -> None:
    x, weights = uniform(2, groups * c, 7, 6, dtype=dtype), uniform(groups * n, c, 3, 3, dtype=dtype, seed=1)
    check(x, weights, pad=1, groups=groups)
    check(x, weights, has_bias=False, stride=2, groups=groups)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(("groups", "depth"), [(15, 1), (16, 1), (33, 1), (8, 2), (9, 4), (4, 8), (3, 8)])
def test_groups_within_a_block(groups: int, depth: int, level: str, dtype: Any) -> None:
    if level == "plain" and dtype == np.float16:
        pytest.skip("it has no conversion from and to float16")
    channels = groups * depth
    x, weights = uniform(2, channels, 7, 19, dtype=dtype), uniform(channels, depth, 3, 3, dtype=dtype, seed=1)
    for how in ({"pad": 1}, {"stride": 2}, {"dilation": [1, 2], "pad": [0, 1, 2, 0]}):
        check(x, weights, groups=groups, kernel="llvm-conv-by-lanes", level=level, **how)
    check(x, uniform(channels, depth, 1, 1, dtype=dtype, seed=1), groups=groups, kernel="llvm-conv-by-lanes")


@pytest.mark.parametrize("c", [1, 16, 17, 40])
def test_depthwise(c: int) -> None:
    attrs = {"strides": [1, 1, 2, 1], "dilations": [1] * 4, "pads": [1, 1, 0, 2], "data_format": "NCHW"}
    check_stored(
        "DepthwiseConv2D", [uniform(2, c, 7, 9), uniform(1, c, 3, 3, seed=1), uniform(c, seed=2)], attrs,
        constant=(1, 2), kernel="llvm-conv-by-lanes" if c > 1 else "llvm-conv", compiler=compiler(),
    )  # fmt: skip


@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf])
def test_special_numbers_stay_out_of_the_padding(special: float) -> None:
    x = uniform(1, 3, 6, 6)
    x[0, 1, 2, 3] = special
    check(x, uniform(5, 3, 3, 3, seed=1), pad=1)


def test_what_numbers_cannot_be_widened_for_is_left_to_numpy() -> None:
    x = uniform(1, 16, 3, 3)
    check(x, uniform(16, 16, 3, 3, seed=1), pad=60, kernel="conv-blocks-rows")
