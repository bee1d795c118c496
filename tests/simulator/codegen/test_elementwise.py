"""Compiled elementwise operators, in plain and storage layouts, against their meaning in double precision."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from ge.ops import lookup
from simulator.codegen.compiler import BUILDERS
from simulator.codegen.formulas import CHOICES
from tests.simulator.codegen.compilers import LEVELS, compiler
from tests.simulator.differential import check_kernel
from tests.simulator.storage_model import NDC1HWC0, NZ, check_stored, uniform

TYPES = [np.float32, np.float16, ml_dtypes.bfloat16]
BINARY = {"Add", "AddV2", "Div", "Maximum", "Minimum", "Mul", "RealDiv", "SquaredDifference", "Sub"}
SEVERAL = {"AddN": 3, "AccumulateNV2": 2, "ClipByValue": 3}
POSITIVE = {"Log", "Rsqrt", "Sqrt"}
ATTRS: dict[str, dict[str, Any]] = {
    "Adds": {"value": 0.75},
    "Muls": {"value": -1.5},
    "GeluV2": {"approximate": "none"},
    "LeakyRelu": {"negative_slope": 0.1},
    "Swish": {"scale": 1.5},
    "AddN": {"N": 3},
    "AccumulateNV2": {"N": 2},
}
WIDTHS = [1, 2, 15, 16, 17, 31, 33, 49, 100, 4096, 4097, 9000]


def operands(type: str, shape: tuple[int, ...], dtype: Any) -> list[np.ndarray]:
    """Return random operands that the operator has a meaning for."""
    count = 2 if type in BINARY else SEVERAL.get(type, 1)
    low = 0.25 if type in POSITIVE else -3
    found = [uniform(*shape, dtype=dtype, low=low, high=3, seed=slot) for slot in range(count)]
    if type == "ClipByValue":
        found[1:] = [np.array(-1, dtype), np.array(1.5, dtype)]
    if type in ("Div", "RealDiv", "Reciprocal"):
        found[-1] = (np.abs(found[-1]) + dtype(0.5)).astype(dtype)
    return found


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("type", sorted(CHOICES))
def test_flat_data(type: str, dtype: Any) -> None:
    for width in WIDTHS:
        plan = check_kernel(
            type, operands(type, (width,), dtype), ATTRS.get(type), kernel=None, compiler=compiler(), tolerance=None
        )
        assert plan.steps[0].kernel.name.startswith("llvm-")


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("type", ["Relu", "Gelu", "Add", "Tanh", "Softplus"])
def test_lesser_machines(type: str, level: str) -> None:
    for dtype in TYPES if level != "plain" else (np.float32, ml_dtypes.bfloat16):
        plan = check_kernel(
            type, operands(type, (3, 37), dtype), ATTRS.get(type), kernel=None, compiler=compiler(level)
        )
        assert plan.steps[0].kernel.name.startswith("llvm-")


@pytest.mark.parametrize("c", [1, 15, 16, 17, 33])
@pytest.mark.parametrize("type", sorted(set(CHOICES) - {"ClipByValue"}))
def test_blocks_of_channels(type: str, c: int) -> None:
    x = operands(type, (2, c, 3, 5), np.float32)
    check_stored(type, x, ATTRS.get(type), compiler=compiler())


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(
    ("shape", "other"),
    [
        ((4, 33), (33,)),
        ((4, 33), (4, 1)),
        ((2, 3, 700), (3, 1)),
        ((2, 3, 4, 17), (3, 1, 17)),
        ((5, 6, 20), (1, 6, 1)),
        ((3, 1, 40), (1, 2, 40)),
        ((9, 40), ()),
        ((), (2, 20)),
        ((2, 3, 4, 5, 30), (1, 3, 1, 5, 1)),
    ],
)
def test_broadcasts(shape: tuple[int, ...], other: tuple[int, ...], dtype: Any) -> None:
    for name in ("Add", "Sub"):
        inputs = [uniform(*shape, dtype=dtype), uniform(*other, dtype=dtype, seed=1)]
        plan = check_kernel(name, inputs, kernel=None, compiler=compiler())
        assert plan.steps[0].kernel.name.startswith("llvm-")


@pytest.mark.parametrize("c", [3, 16, 40])
def test_operands_with_one_number_per_channel_in_blocks(c: int) -> None:
    for name in ("Add", "Mul"):
        check_stored(name, [uniform(2, c, 3, 5), uniform(2, c, 1, 1, seed=1)], compiler=compiler())


@pytest.mark.parametrize("c", [1, 15, 16, 17, 33])
@pytest.mark.parametrize("type", ["Exp", "Sigmoid", "HardSigmoid"])
def test_what_zeros_become_is_cleared_from_the_padding(type: str, c: int) -> None:
    for dtype in TYPES:
        check_stored(type, [uniform(2, c, 3, 5, dtype=dtype)], compiler=compiler())


@pytest.mark.parametrize("c", [1, 17, 32])
@pytest.mark.parametrize("type", ["Add", "Exp", "Relu", "Tanh"])
def test_matrices_and_volumes(type: str, c: int) -> None:
    for dtype in TYPES:
        check_stored(type, operands(type, (2, c, 40), dtype), layout=NZ, compiler=compiler())
        check_stored(type, operands(type, (2, c, 3, 2, 5), dtype), layout=NDC1HWC0, compiler=compiler())


@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf, -0.0, 1e-40])
@pytest.mark.parametrize("type", sorted(set(CHOICES) - set(SEVERAL) - POSITIVE - {"ClipByValue"}))
def test_special_numbers(type: str, special: float) -> None:
    x = operands(type, (40,), np.float32)
    x[0][[0, 7, 39]] = special
    check_kernel(type, x, ATTRS.get(type), kernel=None, compiler=compiler())


@pytest.mark.parametrize(
    ("source", "target", "number"),
    [
        (np.float32, np.float16, 1),
        (np.float16, np.float32, 0),
        (np.float32, ml_dtypes.bfloat16, 27),
        (ml_dtypes.bfloat16, np.float32, 0),
    ],
)
def test_cast(source: Any, target: Any, number: int) -> None:
    bits = np.arange(0, 2**32, 65521, dtype=np.uint64).astype(np.uint32)
    with np.errstate(all="ignore"):
        single = bits.view(np.float32)
        x = np.where(np.isnan(single), np.float32(np.nan), single).astype(source)
        expected = x.astype(target)
    plan = check_kernel("Cast", [x], {"dst_type": number}, kernel="llvm-copy", compiler=compiler())
    [found] = plan.steps[0].outputs
    assert found is not None
    is_nan = np.isnan(expected.astype(np.float32))
    np.testing.assert_array_equal(found[~is_nan].astype(np.float32), expected[~is_nan].astype(np.float32))


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("c", [1, 15, 16, 17, 33])
def test_batch_norm(c: int, dtype: Any) -> None:
    numbers = [uniform(c, seed=slot, low=0.5, high=2) for slot in range(1, 5)]
    attrs = {"is_training": False, "epsilon": 1e-3, "data_format": "NCHW"}
    check_stored(
        "BatchNorm", [uniform(2, c, 3, 5, dtype=dtype), *numbers], attrs, n_outputs=6, constant=(1, 2, 3, 4),
        kernel="llvm-by-channel", compiler=compiler(),
    )  # fmt: skip


@pytest.mark.parametrize("c", [1, 15, 16, 17, 33])
def test_bias_add(c: int) -> None:
    inputs = [uniform(2, c, 3, 5), uniform(c, seed=1)]
    check_stored(
        "BiasAdd", inputs, {"data_format": "NCHW"}, constant=(1,), kernel="llvm-by-channel", compiler=compiler()
    )


def test_every_builder_can_be_asked_for_types_that_exist() -> None:
    assert all(lookup(name) is not None for name in BUILDERS)


def test_numpy_kernels_around_compiled_ones_keep_their_own_part() -> None:
    """A bias that only a run knows is laid out by numpy, and added by a compiled loop."""
    inputs = [uniform(2, 20, 3, 5), uniform(20, seed=1)]
    check_stored("BiasAdd", inputs, {"data_format": "NCHW"}, compiler=compiler())
    inputs[1] = np.abs(inputs[1])
    check_stored("PRelu", inputs, compiler=compiler())
