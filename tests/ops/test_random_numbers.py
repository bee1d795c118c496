"""Random numbers: types, bounds, moments, seeds."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from ge.errors import ReportedError
from ge.graph.types import DataType
from ge.ops import lookup
from tests.ops.one_node import inferred, run_ge

COUNT = np.array([200, 50])
ALL_TYPES = [
    (DataType.DT_FLOAT, np.float32), (DataType.DT_DOUBLE, np.float64), (DataType.DT_FLOAT16, np.float16),
    (DataType.DT_BF16, ml_dtypes.bfloat16),
]  # fmt: skip


@pytest.mark.parametrize(("dtype", "numpy_type"), ALL_TYPES)
def test_uniform_numbers_fill_the_half_open_interval(dtype: DataType, numpy_type: Any) -> None:
    [found] = run_ge("RandomUniform", [COUNT], {"dtype": dtype, "seed": 7})
    assert found.dtype == numpy_type
    wide = found.astype(np.float64)
    assert wide.min() >= 0
    assert wide.max() < 1
    histogram, _ = np.histogram(wide, 10, (0, 1))
    assert np.all(np.abs(histogram - 1000) < 150)  # five standard deviations


@pytest.mark.parametrize(("dtype", "numpy_type"), ALL_TYPES)
def test_normal_numbers(dtype: DataType, numpy_type: Any) -> None:
    [found] = run_ge("RandomStandardNormal", [COUNT], {"dtype": dtype, "seed": 3})
    wide = found.astype(np.float64)
    assert found.dtype == numpy_type
    assert abs(wide.mean()) < 0.05
    assert abs(wide.std() - 1) < 0.05
    [cut] = run_ge("TruncatedNormal", [COUNT], {"dtype": dtype, "seed": 3})
    assert np.abs(cut.astype(np.float64)).max() <= 2


def test_whole_numbers() -> None:
    [found] = run_ge("RandomUniformInt", [COUNT, np.array(-2), np.array(3)], {"seed": 5})
    assert found.dtype == np.int64
    values, counts = np.unique(found, return_counts=True)
    assert values.tolist() == [-2, -1, 0, 1, 2]
    assert np.all(np.abs(counts - 2000) < 200)


def test_multinomial_follows_the_softmax_of_its_logits() -> None:
    logits = np.log(np.array([[0.1, 0.6, 0.3], [0.5, 0.0, 0.5]], np.float32) + 1e-30)
    [found] = run_ge("Multinomial", [logits, np.array(10_000)], {"dtype": DataType.DT_INT32, "seed": 2})
    assert found.dtype == np.int32
    shares = np.stack([np.bincount(row, minlength=3) / 10_000 for row in found])
    np.testing.assert_allclose(shares, [[0.1, 0.6, 0.3], [0.5, 0.0, 0.5]], atol=0.03)


def test_bernoulli_depends_on_its_inputs_alone() -> None:
    x = np.broadcast_to(np.array([0.0, 0.25, 1.0], np.float32), (4000, 3)).copy()
    inputs = [x, np.array([1]), np.array([0, 4])]
    [first] = run_ge("StatelessBernoulliV2", inputs)
    np.testing.assert_array_equal(first, run_ge("StatelessBernoulliV2", inputs)[0])
    assert first.dtype == np.float32
    np.testing.assert_allclose(first.mean(axis=0), [0, 0.25, 1], atol=0.04)
    [other] = run_ge("StatelessBernoulliV2", [x, np.array([2]), np.array([0, 4])], {"dtype": DataType.DT_INT32})
    assert other.dtype == np.int32
    assert np.any(other != first)


@pytest.mark.parametrize("attrs", [{"seed": 1}, {"seed2": 9}, {"seed": -5, "seed2": 2**40}])
def test_a_seed_repeats_itself(attrs: dict[str, int]) -> None:
    attrs = {"dtype": DataType.DT_FLOAT, **attrs}
    np.testing.assert_array_equal(
        run_ge("RandomUniform", [COUNT], attrs)[0], run_ge("RandomUniform", [COUNT], attrs)[0]
    )


def test_without_seed_numbers_differ_and_are_never_folded() -> None:
    attrs = {"dtype": DataType.DT_FLOAT}
    assert np.any(run_ge("RandomUniform", [COUNT], attrs)[0] != run_ge("RandomUniform", [COUNT], attrs)[0])
    for name in ("RandomUniform", "RandomStandardNormal", "RandomUniformInt", "TruncatedNormal", "Multinomial"):
        definition = lookup(name)
        assert definition is not None
        assert definition.is_stateful


@pytest.mark.parametrize(
    ("type", "inputs", "attrs", "message"),
    [
        ("RandomUniform", [np.array([2])], {"dtype": DataType.DT_INT32}, "no random numbers of type DT_INT32"),
        ("RandomUniform", [np.array([-2])], {"dtype": DataType.DT_FLOAT}, r"holds \[-2\], which is no shape"),
        ("Multinomial", [np.zeros(3), np.array(2)], {}, r"logits of shape \[3\] is no matrix"),
    ],
)
def test_misfits_are_reported(type: str, inputs: list[np.ndarray], attrs: dict[str, Any], message: str) -> None:
    with pytest.raises(ReportedError, match=message):
        inferred(type, inputs, attrs)


# -- dropout -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("ratio", [None, 0.2, 0.75])
def test_dropout_in_training(dtype: Any, ratio: float | None) -> None:
    x = np.linspace(1, 2, 10_000, dtype=dtype).reshape(100, 100)
    share = 0.5 if ratio is None else ratio
    inputs = [x, np.array(True), None if ratio is None else np.array(ratio, np.float32)]
    y, mask = run_ge("XDropout", inputs, {"seed": 11, "is_seeded": True}, 2)
    assert abs(mask.mean() - (1 - share)) < 0.025  # five standard deviations
    np.testing.assert_allclose(y, np.where(mask, x.astype(np.float64) / (1 - share), 0), rtol=2e-3)
    again, _ = run_ge("XDropout", inputs, {"seed": 11, "is_seeded": True}, 2)
    np.testing.assert_array_equal(y, again)
    other, _ = run_ge("XDropout", inputs, {}, 2)
    assert (other != y).any()


@pytest.mark.parametrize(("trains", "ratio"), [(False, 0.5), (True, 0.0)])
def test_dropout_that_drops_nothing(trains: bool, ratio: float) -> None:
    x = np.array([np.nan, -np.inf, 1], np.float32)
    y, mask = run_ge("XDropout", [x, np.array(trains), np.array(ratio, np.float32)], {}, 2)
    np.testing.assert_array_equal(y, x)
    assert mask.all()


@pytest.mark.parametrize("ratio", [-0.5, 1.0, np.nan])
def test_dropout_ratio_out_of_range(ratio: float) -> None:
    definition = lookup("XDropout")
    inputs = [np.ones(2, np.float32), np.array(True), np.array(ratio, np.float32)]
    with pytest.raises(ValueError, match="dropout ratio"):
        definition.evaluate({}, inputs, [DataType.DT_FLOAT, DataType.DT_BOOL])
