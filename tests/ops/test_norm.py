"""Normalisation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ge.errors import ReportedError
from tests.ops.one_node import assert_close, data, inferred, run_ge, run_onnx


def parameters(channels: int) -> list[np.ndarray]:
    """Return scale, offset, mean, variance."""
    return [data(2, channels), data(3, channels), data(4, channels), data(5, channels, low=0.1)]


def to_last(x: np.ndarray) -> np.ndarray:
    """Move the channels behind."""
    return np.moveaxis(x, 1, -1)


@pytest.mark.parametrize("shape", [(2, 3, 4, 5), (4, 3), (2, 3, 7), (1, 3, 2, 4, 3)])
def test_batch_norm(shape: tuple[int, ...]) -> None:
    x, rest = data(1, *shape), parameters(3)
    [expected] = run_onnx("BatchNormalization", [x, *rest], {"epsilon": 1e-3})
    attrs = {"is_training": False, "epsilon": 1e-3}
    assert_close(run_ge("BatchNorm", [x, *rest], {**attrs, "data_format": "NCHW"})[0], expected)
    assert_close(run_ge("BatchNorm", [to_last(x), *rest], {**attrs, "data_format": "NHWC"})[0], to_last(expected))
    assert_close(run_ge("BNInfer", [x, *rest], {"epsilon": 1e-3})[0], expected)
    last = run_ge("BNInfer", [to_last(x), *rest], {"epsilon": 1e-3, "_x_data_format": "NHWC"})[0]
    assert_close(last, to_last(expected))


def test_batch_norm_passes_the_statistics_on() -> None:
    x, rest = data(1, 2, 3, 4, 5), parameters(3)
    _, mean, variance, *_ = run_ge("BatchNorm", [x, *rest], {"is_training": False, "data_format": "NCHW"}, 6)
    np.testing.assert_array_equal(mean, rest[2])
    np.testing.assert_array_equal(variance, rest[3])


def test_batch_norm_in_training_with_the_momentum_of_onnx() -> None:
    x, rest = data(1, 4, 3, 5, 6), parameters(3)
    expected = run_onnx(
        "BatchNormalization", [x, *rest], {"training_mode": 1, "momentum": 0.7, "epsilon": 1e-3}, 3, reference=True
    )
    found = run_ge("BatchNorm", [x, *rest], {"data_format": "NCHW", "epsilon": 1e-3, "_x_momentum": 0.7}, 3)
    for mine, theirs in zip(found, expected, strict=True):
        assert_close(mine, theirs)


@pytest.mark.parametrize("factor", [1.0, 0.25])
def test_batch_norm_in_training_as_in_tensorflow(factor: float) -> None:
    """Running statistics move by the factor towards mean and unbiased variance of the batch."""
    x, (scale, offset, mean, variance) = data(1, 4, 5, 6, 3), parameters(3)
    attrs = {"exponential_avg_factor": factor, "epsilon": 1e-3}
    y, new_mean, new_variance, *saved = run_ge("BatchNorm", [x, scale, offset, mean, variance], attrs, 6)
    wide = x.astype(np.float64)
    batch_mean, batch_variance = wide.mean((0, 1, 2)), wide.var((0, 1, 2))
    assert_close(y, (wide - batch_mean) / np.sqrt(batch_variance + 1e-3) * scale + offset)
    assert_close(new_mean, mean + factor * (batch_mean - mean))
    assert_close(new_variance, variance + factor * (wide.var((0, 1, 2), ddof=1) - variance))
    assert_close(saved[0], batch_mean)
    assert_close(saved[1], batch_variance)


@pytest.mark.parametrize("shape", [(2, 3, 4, 5), (2, 3, 7), (1, 3, 2, 4, 3)])
def test_instance_norm(shape: tuple[int, ...]) -> None:
    x, gamma, beta = data(1, *shape), data(2, 3), data(3, 3)
    [expected] = run_onnx("InstanceNormalization", [x, gamma, beta], {"epsilon": 1e-3})
    y, mean, variance = run_ge("InstanceNorm", [x, gamma, beta], {"data_format": "NCHW", "epsilon": 1e-3}, 3)
    space = tuple(range(2, x.ndim))
    assert_close(y, expected)
    assert_close(mean, x.mean(space, keepdims=True, dtype=np.float64))
    assert_close(variance, x.var(space, keepdims=True, dtype=np.float64))
    [last, *_] = run_ge("InstanceNorm", [to_last(x), gamma, beta], {"data_format": "NHWC", "epsilon": 1e-3}, 3)
    assert_close(last, to_last(expected))


@pytest.mark.parametrize("groups", [1, 2, 6])
def test_group_norm(groups: int) -> None:
    x, gamma, beta = data(1, 2, 6, 4, 5), data(2, 6), data(3, 6)
    [expected] = run_onnx("GroupNormalization", [x, gamma, beta], {"num_groups": groups, "epsilon": 1e-3})
    y, mean, variance = run_ge("GroupNorm", [x, gamma, beta], {"num_groups": groups, "eps": 1e-3}, 3)
    wide = x.reshape(2, groups, -1).astype(np.float64)
    assert_close(y, expected)
    assert_close(mean, wide.mean(2))
    assert_close(variance, wide.var(2))
    attrs = {"num_groups": groups, "eps": 1e-3, "data_format": "NHWC"}
    assert_close(run_ge("GroupNorm", [to_last(x), gamma, beta], attrs, 3)[0], to_last(expected))


@pytest.mark.parametrize("axis", [1, 2, -1])
def test_layer_norms(axis: int) -> None:
    x = data(1, 2, 3, 4, 5) + 3
    inner = x.shape[axis:]
    gamma, beta = data(2, *inner), data(3, *inner)
    expected = run_onnx("LayerNormalization", [x, gamma, beta], {"axis": axis, "epsilon": 1e-3}, 3)
    wide = x.astype(np.float64).var(tuple(range(axis % 4, 4)), keepdims=True)
    attrs = {"begin_norm_axis": axis, "begin_params_axis": axis, "epsilon": 1e-3}
    for found, last in (
        (run_ge("LayerNorm", [x, gamma, beta], attrs, 3), wide),
        (run_ge("LayerNormV3", [x, gamma, beta], attrs, 3), expected[2]),
        (run_ge("LayerNormV4", [x, np.array(inner), gamma, beta], {"epsilon": 1e-3}, 3), expected[2]),
    ):
        for mine, theirs in zip(found, [*expected[:2], last], strict=True):
            assert_close(mine, theirs)


def test_layer_norm_parameters_may_span_fewer_axes() -> None:
    x, gamma, beta = data(1, 2, 3, 4), data(2, 4), data(3, 4)
    [y, *_] = run_ge("LayerNorm", [x, gamma, beta], {"begin_norm_axis": 1, "begin_params_axis": 2}, 3)
    wide = x.astype(np.float64)
    mean, variance = wide.mean((1, 2), keepdims=True), wide.var((1, 2), keepdims=True)
    assert_close(y, (wide - mean) / np.sqrt(variance + 1e-7) * gamma + beta)


def test_layer_norm_v4_without_parameters_keeps_wide_statistics() -> None:
    x = data(1, 2, 6, dtype=np.float16)
    y, mean, rstd = run_ge("LayerNormV4", [x, np.array([6])], {}, 3)
    wide = x.astype(np.float64)
    assert (y.dtype, mean.dtype, rstd.dtype) == (np.float16, np.float32, np.float32)
    assert_close(mean[:, 0], wide.mean(1))
    assert_close(y.astype(np.float64), (wide - wide.mean(1, keepdims=True)) * rstd, atol=1e-3)


@pytest.mark.parametrize("axes", [1, 2])
def test_rms_norm(axes: int) -> None:
    x = data(1, 2, 3, 4, dtype=np.float32)
    gamma = data(2, *x.shape[3 - axes :])
    y, rstd = run_ge("RmsNorm", [x, gamma], {"epsilon": 1e-3}, 2)
    wide = x.astype(np.float64)
    expected = 1 / np.sqrt((wide**2).mean(tuple(range(3 - axes, 3)), keepdims=True) + 1e-3)
    assert_close(rstd, expected)
    assert_close(y, wide * expected * gamma)


@pytest.mark.parametrize("axes", [1, 2])
@pytest.mark.parametrize("with_bias", [False, True])
def test_add_layer_norm(axes: int, with_bias: bool) -> None:
    x1, x2 = (data(seed, 2, 3, 4, dtype=np.float32) for seed in (1, 2))
    gamma, beta = (data(seed, *x1.shape[3 - axes :], dtype=np.float32) for seed in (3, 4))
    bias = data(5, 4, dtype=np.float32) if with_bias else None
    y, mean, rstd, x = run_ge("AddLayerNorm", [x1, x2, gamma, beta, bias], {"epsilon": 1e-3}, 4)
    wide = x1.astype(np.float64) + x2 + (0 if bias is None else bias)
    last = tuple(range(3 - axes, 3))
    assert_close(x, wide)
    assert_close(mean, wide.mean(last, keepdims=True))
    assert_close(rstd, 1 / np.sqrt(wide.var(last, keepdims=True) + 1e-3))
    normal = (wide - wide.mean(last, keepdims=True)) / np.sqrt(wide.var(last, keepdims=True) + 1e-3)
    assert_close(y, normal * gamma + beta)


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 11])
def test_lrn(size: int) -> None:
    x = data(1, 2, 7, 3, 4)
    attrs = {"depth_radius": (size - 1) // 2, "alpha": 0.5 / size, "beta": 0.75, "bias": 2.0, "_x_size": size}
    below, above = (size - 1) // 2, size // 2
    wide = x.astype(np.float64)
    sums = np.stack([(wide[:, max(c - below, 0) : c + above + 1] ** 2).sum(1) for c in range(7)], 1)
    expected = wide / (2.0 + 0.5 / size * sums) ** 0.75
    assert_close(run_ge("LRN", [x], attrs)[0], expected)
    assert_close(run_ge("LRN", [to_last(x)], {**attrs, "_x_data_format": "NHWC"})[0], to_last(expected))
    if size % 2:
        onnx_attrs = {"size": size, "alpha": 0.5, "beta": 0.75, "bias": 2.0}
        assert_close(run_onnx("LRN", [x], onnx_attrs)[0], expected)


@pytest.mark.parametrize("p", [0.0, 0.5, 1.0, 2.0, 3.0, np.inf, -np.inf])
@pytest.mark.parametrize(("axes", "keepdim"), [([], False), ([1, -1], True), ([0], False)])
def test_lp_norm(p: float, axes: list[int], keepdim: bool) -> None:
    x = data(1, 2, 3, 4)
    x[0, 1] = 0
    size = np.abs(x.astype(np.float64))
    over = tuple(axes) or None
    reductions = {
        0.0: lambda: (size != 0).sum(over, keepdims=keepdim),
        np.inf: lambda: size.max(over, keepdims=keepdim),
        -np.inf: lambda: size.min(over, keepdims=keepdim),
    }
    expected = reductions.get(p, lambda: (size**p).sum(over, keepdims=keepdim) ** (1 / p))()
    [found] = run_ge("LpNormV2", [x], {"p": p, "axes": axes, "keepdim": keepdim})
    assert_close(found, np.asarray(expected, np.float64))


@pytest.mark.parametrize("axes", [[0, 2, 3], [1], [-1]])
def test_mvn(axes: list[int]) -> None:
    x = data(1, 2, 3, 4, 5)
    [expected] = run_onnx("MeanVarianceNormalization", [x], {"axes": [a % 4 for a in axes]}, opset=13)
    assert_close(run_ge("MVNV2", [x], {"axes": axes})[0], expected)


@pytest.mark.parametrize(
    ("type", "shapes", "attrs", "message"),
    [
        ("BatchNorm", [(2, 3, 4, 5), (3,), (3,)], {"is_training": False}, "mean and variance are needed"),
        ("BatchNorm", [(2, 3, 4, 5), (3,), (3,)], {}, r"scale has 3 elements, but x \[2,3,4,5\] has 5 channels"),
        ("BatchNorm", [(3,), (3,), (3,)], {}, r"x has shape \[3\], but needs a batch and a channel axis"),
        ("InstanceNorm", [(2, 3), (3,), (3,)], {}, r"x has shape \[2,3\], but needs"),
        ("GroupNorm", [(2, 6, 4), (6,), (6,)], {"num_groups": 4}, "6 channels cannot be split into 4 groups"),
        ("LayerNorm", [(2, 3), (3,), (3,)], {"begin_norm_axis": 2}, "axis 2 is out of range for rank 2"),
        ("LayerNorm", [(2, 3), (3,), (2,)], {"begin_params_axis": 1}, r"beta has shape \[2\], but \[3\] is needed"),
        ("RmsNorm", [(2, 3), (2,)], {}, r"gamma \[2\] does not match the last axes of x \[2,3\]"),
        ("AddLayerNorm", [(3,), (3,), (2, 3), (2, 3)], {}, r"gamma \[2,3\] does not match the last axes of x1 \+ x2"),
        ("LRN", [(2, 3, 4, 5)], {"norm_region": "WITHIN"}, "norm_region WITHIN is not ACROSS_CHANNELS"),
        ("LpNormV2", [(2, 3)], {"axes": [0, -2]}, "name an axis twice"),
    ],
)
def test_normalisation_refuses(type: str, shapes: list[tuple[int, ...]], attrs: dict[str, Any], message: str) -> None:
    with pytest.raises(ReportedError, match=message) as caught:
        inferred(type, [data(i, *shape) for i, shape in enumerate(shapes)], attrs, 3)
    assert caught.value.code == "E14001"


def test_layer_norm_v4_refuses_another_normalized_shape() -> None:
    with pytest.raises(ReportedError, match=r"normalized_shape \[4\] does not match the last axes of x \[2,3\]"):
        inferred("LayerNormV4", [data(1, 2, 3), np.array([4])], {}, 3)
