"""Elementwise operators on storage layouts."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from ge.ops.format_columns import COLUMNS
from ge.ops.format_columns_selectors import by_agreement
from tests.simulator.storage_model import NC1HWC0, NCDHW, NCHW, ND, NDC1HWC0, NHWC, NZ, check_stored, uniform

TYPES = [np.float32, np.float16, ml_dtypes.bfloat16]
CHANNELS = [1, 15, 16, 17, 33]

ATTRS: dict[str, dict[str, Any]] = {
    "Adds": {"value": 1.5},
    "Muls": {"value": -0.5},
    "Power": {"power": 2.0, "scale": 0.5, "shift": 1.0},
    "Threshold": {"threshold": -0.5},
    "Shrink": {"lambd": 0.5, "bias": 0.25},
    "LeakyRelu": {"negative_slope": 0.1},
    "Cast": {"dst_type": 1},
    "HardSigmoid": {"alpha": 0.2, "beta": 0.5},
    "Identity": {"_must_copy": True},
}
ONLY_BOOL = {"LogicalNot"}
ONLY_INT = {"Invert"}
REFERENCE = {"Erfc", "OnesLike", "ZerosLike"}
DOMAIN = {
    **dict.fromkeys(("Acos", "Asin", "Atanh"), (-0.9, 0.9)),
    **dict.fromkeys(("Acosh",), (1.1, 3.0)),
    **dict.fromkeys(("Log", "Log1p", "Rsqrt", "Sqrt", "Reciprocal"), (0.1, 3.0)),
}
UNARY = [op_type for op_type, selector in COLUMNS.items() if selector is by_agreement]


def operand(type: str, *shape: int) -> np.ndarray:
    x = uniform(*shape, low=DOMAIN.get(type, (-2, 2))[0], high=DOMAIN.get(type, (-2, 2))[1])
    if type in ONLY_BOOL:
        return x > 0
    return (x * 10).astype(np.int32) if type in ONLY_INT else x


@pytest.mark.parametrize("type", UNARY)
def test_one_operand(type: str) -> None:
    """Many functions are not 0 at 0: Cos, Exp, Sigmoid, Reciprocal, Adds."""
    x = operand(type, 2, 17, 3, 5)
    check_stored(type, [x], ATTRS.get(type), may_be_reference=type in REFERENCE)


@pytest.mark.parametrize("c", CHANNELS)
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(("layout", "origin"), [(NC1HWC0, NCHW), (NC1HWC0, NHWC), (NZ, ND)])
def test_what_is_not_zero_at_zero(c: int, dtype: Any, layout: Any, origin: Any) -> None:
    shape = (2, 3, 5, c) if origin is NHWC else (2, c, 3, 5) if layout is NC1HWC0 else (2, c, 19)
    x = uniform(*shape, dtype=dtype)
    for op_type, attrs in (("Sigmoid", {}), ("Exp", {}), ("Adds", {"value": 1.0}), ("Relu", {})):
        check_stored(op_type, [x], attrs, layout=layout, origins=[origin])


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32])
def test_whole_numbers(dtype: Any) -> None:
    x = uniform(2, 33, 3, 5, low=0, high=99).astype(dtype)
    check_stored("Relu", [x])
    check_stored("Abs", [x[0, 0]], layout=NZ)


def test_volumes() -> None:
    x = uniform(2, 17, 2, 3, 5)
    check_stored("Tanh", [x], layout=NDC1HWC0)
    check_stored("Exp", [x], layout=NDC1HWC0)
    check_stored("Add", [x, x[:, :, :1]], layout=NDC1HWC0, origins=[NCDHW, NCDHW])


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("other", [(2, 17, 3, 5), (1, 17, 1, 1), (2, 17, 1, 1), (2, 17, 3, 1), (1, 17, 1, 5)])
@pytest.mark.parametrize("type", ["Add", "Sub", "Mul", "RealDiv", "Maximum", "SquaredDifference", "FloorDiv", "Pow"])
def test_two_operands(type: str, other: tuple[int, ...], dtype: Any) -> None:
    """0 / 0 in the padding is no concern of anybody's."""
    x, y = uniform(2, 17, 3, 5, dtype=dtype, low=0.5), uniform(*other, dtype=dtype, low=0.5, seed=1)
    check_stored(type, [x, y])
    check_stored(type, [y, x])


def test_channels_last() -> None:
    x, y = uniform(2, 3, 5, 17), uniform(2, 1, 1, 17, seed=1)
    check_stored("Mul", [x, y], origins=[NHWC, NHWC])


@pytest.mark.parametrize("type", ["Add", "RealDiv", "Minimum", "Mul"])
@pytest.mark.parametrize("is_constant", [False, True])
def test_with_a_scalar(type: str, is_constant: bool) -> None:
    x, y = uniform(2, 32, 3, 5, low=0.5), np.array(1.5, np.float32)
    constant = [1] if is_constant else []
    check_stored(type, [x, y], constant=constant)
    check_stored(type, [uniform(2, 16, 48), y.reshape(1)], layout=NZ, constant=constant)


@pytest.mark.parametrize("type", ["Equal", "Less", "GreaterEqual", "NotEqual", "LogicalOr"])
def test_comparisons(type: str) -> None:
    """Zeros are equal, also in the padding."""
    x, y = uniform(2, 17, 3, 5), uniform(2, 17, 3, 5, seed=1)
    check_stored(type, [x > 0, y > 0] if type.startswith("Logical") else [x, y])


def test_rows_and_columns_with_batches() -> None:
    x, y = uniform(3, 2, 17, 19), uniform(17, 19, seed=1)
    check_stored("Add", [x, y], layout=NZ, origins=[ND, ND])
    check_stored("Mul", [x, uniform(2, 17, 19)], layout=NZ, origins=[ND, ND])


def test_three_operands() -> None:
    x, y = uniform(2, 17, 3, 5), uniform(1, 17, 1, 1, seed=1)
    check_stored("SelectV2", [x > 0, x, y])
    check_stored("AddN", [x, x + 1, x], {"N": 3})
    check_stored("ClipByValue", [uniform(2, 32, 3, 5), np.array(-0.5, np.float32), np.array(0.5, np.float32)])


def test_not_a_number_stays_out_of_the_padding() -> None:
    x = uniform(1, 17, 2, 3)
    x[0, 16] = np.nan
    x[0, 3] = np.inf
    for op_type in ("Relu", "Exp", "Sigmoid", "Neg"):
        check_stored(op_type, [x])
