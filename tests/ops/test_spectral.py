"""Fourier transforms and mel spectra against onnxruntime and against sums written out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ge.errors import ReportedError
from tests.ops.one_node import assert_close, data, inferred, run_ge, run_onnx


def transform(x: np.ndarray, axis: int, length: int, sign: int) -> np.ndarray:
    """Return sum over n of x[n] exp(sign 2 pi i k n / length) along ``axis``, parts on the last axis."""
    signal = np.moveaxis(x[..., 0] + 1j * (x[..., 1] if x.shape[-1] == 2 else 0), axis, -1)[..., :length]
    k, m = np.arange(length)[:, None], np.arange(signal.shape[-1])
    result = np.moveaxis(signal @ np.exp(sign * 2j * np.pi * k * m / length).T, -1, axis)
    return np.stack([result.real, result.imag], -1)


@pytest.mark.parametrize("length", [None, 3, 8, 5])
@pytest.mark.parametrize("axis", [0, 1, -2])
@pytest.mark.parametrize("parts", [1, 2])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
def test_dft(length: int | None, axis: int, parts: int, dtype: Any) -> None:
    x = data(1, 5, 5, 4, parts, dtype=dtype)
    size = None if length is None else np.array(length, np.int64)
    wanted = length or x.shape[axis if axis >= 0 else 2]
    along = axis if axis >= 0 else 2
    forward = transform(x.astype(np.float64), along, wanted, -1)
    tolerance = {np.float16: 2e-3, np.float32: 2e-6, np.float64: 1e-12}[dtype]
    [found] = run_ge("XDFT", [x, size, np.array(axis)])
    assert found.dtype == dtype
    assert_close(found.astype(np.float64), forward, tolerance, tolerance)
    [found] = run_ge("XDFT", [x, size, np.array(axis)], {"inverse": True})
    assert_close(
        found.astype(np.float64), transform(x.astype(np.float64), along, wanted, 1) / wanted, tolerance, tolerance
    )
    if parts == 1:
        [found] = run_ge("XDFT", [x, size, np.array(axis)], {"onesided": True})
        half = np.take(forward, range(wanted // 2 + 1), along)
        assert_close(found.astype(np.float64), half, tolerance, tolerance)


@pytest.mark.parametrize("length", [6, 7])
def test_onesided_inverse_gives_the_signal_back(length: int) -> None:
    x = data(2, 2, length, 1)
    [half] = run_ge("XDFT", [x], {"onesided": True})
    assert half.shape == (2, length // 2 + 1, 2)
    [found] = run_ge("XDFT", [half, np.array(length)], {"onesided": True, "inverse": True})
    assert_close(found, x)
    [even] = run_ge("XDFT", [half], {"onesided": True, "inverse": True})
    assert even.shape == (2, 6, 1)


@pytest.mark.parametrize(("shape", "axis"), [((2, 4, 1), 2), ((2, 4, 1), -1), ((2, 4, 3), 1), ((2, 4, 1), -4)])
def test_dft_refuses(shape: tuple[int, ...], axis: int) -> None:
    with pytest.raises(ReportedError) as caught:
        inferred("XDFT", [np.zeros(shape, np.float32), None, np.array(axis)], {})
    assert caught.value.code == "E14001"


@pytest.mark.parametrize("onesided", [0, 1])
@pytest.mark.parametrize(("step", "window", "length"), [(4, 8, None), (3, 6, 6), (5, None, 7), (16, None, 16)])
def test_stft(onesided: int, step: int, window: int | None, length: int | None) -> None:
    x = data(3, 2, 32, 1)
    weights = None if window is None else data(4, window)
    inputs = [x, np.array(step, np.int64), weights, None if length is None else np.array(length, np.int64)]
    [found] = run_ge("XSTFT", inputs, {"onesided": bool(onesided)})
    [expected] = run_onnx("STFT", inputs, {"onesided": onesided})
    assert_close(found, expected)


def test_stft_of_a_complex_signal_frame_by_frame() -> None:
    x, weights = data(5, 2, 11, 2), data(6, 4)
    [found] = run_ge("XSTFT", [x, np.array(3), weights], {"onesided": False})
    frames = np.stack(
        [transform((x[:, s : s + 4] * weights[:, None]).astype(np.float64), 1, 4, -1) for s in (0, 3, 6)], 1
    )
    assert_close(found, frames)


@pytest.mark.parametrize(
    ("inputs", "reason"),
    [
        ([data(1, 2, 8, 1), np.array(2), data(1, 4), np.array(5)], "window has 4 elements, but frame_length is 5"),
        ([data(1, 2, 8, 1), np.array(2), None, np.array(9)], "longer than the signal"),
        ([data(1, 2, 8, 1), np.array(0), None, np.array(4)], "frame_step"),
        ([data(1, 8, 1), np.array(2), None, np.array(4)], "3 axes"),
    ],
)
def test_stft_refuses(inputs: list[Any], reason: str) -> None:
    with pytest.raises(ReportedError) as caught:
        inferred("XSTFT", inputs, {})
    assert reason in caught.value.message


@pytest.mark.parametrize(
    ("bands", "length", "rate", "low", "high"),
    [(8, 16, 8192, 0, 4096), (20, 256, 16000, 125.5, 7000), (5, 64, 8000, 300, 3400), (0, 16, 8000, 0, 4000)],
)
def test_mel_weight_matrix(bands: int, length: int, rate: int, low: float, high: float) -> None:
    inputs = [np.array(v, np.int64) for v in (bands, length, rate)] + [np.array(v, np.float32) for v in (low, high)]
    [found] = run_ge("XMelWeightMatrix", inputs)
    assert found.shape == (length // 2 + 1, bands)
    if bands:
        [expected] = run_onnx("MelWeightMatrix", inputs, {"output_datatype": 1})
        assert_close(found, expected)
