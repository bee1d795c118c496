"""Fourier transforms and mel spectra. GE has no such operators; these are ours.

A complex number is an axis of two at the end, real and imaginary part; an axis of one there makes the tensor real.
All is computed in the precision of the signal, float16 and its like in float32.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ge.graph.tensor_desc import Shape
from ge.graph.types import DataType
from ge.ops.inference import axis_in_rank
from ge.ops.registry import Array, InferContext, Misfit, OutputSpec, operator


def _signal_axis(axis: int, rank: int) -> int:
    """Return the axis of a transform, which must not be the one that holds real and imaginary part."""
    found = axis_in_rank(axis, rank)
    if found == rank - 1:
        raise Misfit(f"axis {axis} of rank {rank} holds real and imaginary parts, no signal")
    return found


def _one(name: str, values: Sequence[int] | None, least: int = 1) -> int:
    """Return the only number of an input, -1 when it is not known. Raises ``Misfit`` when it is below ``least``."""
    if values is None:
        return -1
    if len(values) != 1 or values[0] < least:
        raise Misfit(f"{name} must be one number of at least {least}, not {list(values)}")
    return values[0]


def _complex(x: Array) -> Array:
    """Join real and imaginary part."""
    if x.shape[-1] not in (1, 2):
        raise Misfit(f"the last axis of shape {list(x.shape)} must be 1 (real) or 2 (real and imaginary part)")
    joined: Array = x[..., 0] if x.shape[-1] == 1 else x[..., 0] + 1j * x[..., 1]
    return joined


def _parts(x: Array) -> Array:
    """Put real and imaginary part on an axis of their own."""
    return np.stack([x.real, x.imag], -1)


# -- DFT -----------------------------------------------------------------------------------------------------------
def _infer_dft(ctx: InferContext) -> Sequence[OutputSpec]:
    shape, dtype = ctx.shape("input"), ctx.dtype("input")
    if shape.is_unknown_rank():
        return [([-2], dtype)]
    _check_pairs(ctx, shape)
    is_real_result = ctx.op.inverse and ctx.op.onesided
    dims = [*shape[:-1], 1 if is_real_result else 2]
    axes = ctx.ints("axis") if ctx.has("axis") else [-2]
    if axes is None:
        return [([-1] * (len(shape) - 1) + dims[-1:], dtype)]
    axis = _signal_axis(_one("axis", axes, -len(shape)), len(shape))
    if ctx.has("dft_length"):
        length = _one("dft_length", ctx.ints("dft_length"))
    else:
        length = 2 * (shape[axis] - 1) if is_real_result and shape[axis] > 0 else shape[axis]
    if ctx.op.onesided and length < 0:
        length = -1  # not the dim of the input, whatever its name
    dims[axis] = length // 2 + 1 if ctx.op.onesided and not ctx.op.inverse and length >= 0 else length
    return [(dims, dtype)]


def _check_pairs(ctx: InferContext, shape: Shape) -> None:
    if len(shape) < 2 or shape[-1] not in (-1, 1, 2):
        raise ctx.fail(f"its input of shape {shape} must end with an axis of 1 (real) or 2 (real and imaginary part)")


@operator("XDFT(input, dft_length?, axis?) -> output [inverse:b=F onesided:b=F]", infer=_infer_dft)
def dft(op: Any, x: Array, dft_length: Array | None, axis: Array | None) -> Array:
    """Transform along ``axis`` (default: the last signal axis), zero-padded or cut to ``dft_length``.

    ``onesided`` gives the first half of a real signal's spectrum, or takes it back to the real signal.
    """
    signal = _complex(x)
    along = _signal_axis(-2 if axis is None else int(np.ravel(axis)[0]), x.ndim)
    length = None if dft_length is None else _one("dft_length", [int(v) for v in np.ravel(dft_length)])
    if op.inverse:
        if op.onesided:
            return np.fft.irfft(signal, length, along)[..., None]
        return _parts(np.fft.ifft(signal, length, along))
    spectrum = np.fft.fft(signal, length, along)
    if op.onesided:
        spectrum = np.take(spectrum, range(spectrum.shape[along] // 2 + 1), along)
    return _parts(spectrum)


# -- short-time transform --------------------------------------------------------------------------------------------
def _frame_length(signal: int, window: int | None, given: Sequence[int] | None, is_given: bool) -> int:
    """Return the length of a frame from what there is; -1 when it is not known."""
    length = _one("frame_length", given) if is_given else -1
    if window is None:
        return length if is_given else signal
    if length not in (-1, window) and window != -1:
        raise Misfit(f"the window has {window} elements, but frame_length is {length}")
    return window if length == -1 else length


def _infer_stft(ctx: InferContext) -> Sequence[OutputSpec]:
    shape, dtype = ctx.shape("signal"), ctx.dtype("signal")
    if shape.is_unknown_rank():
        return [([-1, -1, -1, 2], dtype)]
    _check_pairs(ctx, shape)
    if len(shape) != 3:
        raise ctx.fail(f"its signal has the shape {shape}, but must have 3 axes")
    window = ctx.shape("window").elements if ctx.has("window") else None
    length = _frame_length(shape[1], window, ctx.ints("frame_length"), ctx.has("frame_length"))
    step = _one("frame_step", ctx.ints("frame_step"))
    frames = -1
    if min(shape[1], length, step) >= 0:
        frames = _count_frames(shape[1], length, step)
    bins = length // 2 + 1 if ctx.op.onesided and length >= 0 else length
    return [([shape[0], frames, bins, 2], dtype)]


def _count_frames(signal: int, length: int, step: int) -> int:
    if length > signal:
        raise Misfit(f"a frame of {length} elements is longer than the signal of {signal}")
    return (signal - length) // step + 1


@operator("XSTFT(signal, frame_step, window?, frame_length?) -> output [onesided:b=T]", infer=_infer_stft)
def stft(op: Any, x: Array, frame_step: Array, window: Array | None, frame_length: Array | None) -> Array:
    """Transform frames of the signal that start ``frame_step`` apart, each multiplied by the window."""
    signal = _complex(x)
    given = None if frame_length is None else [int(v) for v in np.ravel(frame_length)]
    size = None if window is None else window.size
    length = _frame_length(signal.shape[1], size, given, given is not None)
    step = _one("frame_step", [int(v) for v in np.ravel(frame_step)])
    _count_frames(signal.shape[1], length, step)
    frames = np.lib.stride_tricks.sliding_window_view(signal, length, 1)[:, ::step]
    if window is not None:
        frames = frames * window.reshape(-1).astype(frames.real.dtype)
    spectrum = np.fft.fft(frames, axis=-1)
    return _parts(spectrum[..., : length // 2 + 1] if op.onesided else spectrum)


# -- mel spectra -----------------------------------------------------------------------------------------------------
_MEL_INPUTS = ("num_mel_bins", "dft_length", "sample_rate", "lower_edge_hertz", "upper_edge_hertz")


def _infer_mel(ctx: InferContext) -> Sequence[OutputSpec]:
    dtype = DataType(ctx.op.dtype)
    for name in _MEL_INPUTS:
        if ctx.shape(name).elements not in (1, -1):
            raise ctx.fail(f"input {name} of shape {ctx.shape(name)} must be one number")
    bands, length = _one("num_mel_bins", ctx.ints("num_mel_bins"), 0), _one("dft_length", ctx.ints("dft_length"))
    return [([length // 2 + 1 if length >= 0 else -1, bands], dtype)]


@operator(
    "XMelWeightMatrix(num_mel_bins, dft_length, sample_rate, lower_edge_hertz, upper_edge_hertz) [dtype:t=FLOAT]",
    infer=_infer_mel,
)
def mel_weight_matrix(op: Any, bands: Array, length: Array, rate: Array, lower: Array, upper: Array) -> Array:
    """Triangles with peak 1 that are equally wide on the mel scale, one per column, one row per frequency bin."""
    count, size = _one("num_mel_bins", [int(bands.item())], 0), _one("dft_length", [int(length.item())])
    if rate.item() <= 0:
        raise Misfit(f"sample_rate must be positive, not {rate.item()}")
    low, high = (2595 * np.log10(1 + float(edge.item()) / 700) for edge in (lower, upper))
    mels = low + np.arange(count + 2) * ((high - low) / (count + 2))
    hertz = 700 * (10 ** (mels / 2595) - 1)
    bins = np.floor((size + 1) * hertz / rate.item())
    left, centre, right = bins[:-2], bins[1:-1], bins[2:]
    row = np.arange(size // 2 + 1)[:, None]
    rising = np.where(left < centre, (row - left) / np.maximum(centre - left, 1), 1)
    falling = (right - row) / np.maximum(right - centre, 1)
    weights = np.where((row >= left) & (row <= centre), rising, 0)
    return np.where((row >= centre) & (row < right), falling, weights)
