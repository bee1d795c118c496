"""TensorFlow's documented semantics, written down again in float64: windows, convolutions, pools, resizing, boxes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
Pads = Sequence[tuple[int, int]]


def padding_of(
    padding: str | Pads, sizes: Sequence[int], kernel: Sequence[int], strides: Sequence[int], rates: Sequence[int]
) -> Pads:
    """Return begin and end per axis: SAME makes ceil(size / stride) positions, an odd rest goes to the end."""
    if padding == "VALID":
        return [(0, 0)] * len(sizes)
    if padding != "SAME":
        assert not isinstance(padding, str)
        return padding
    pads = []
    for size, k, stride, rate in zip(sizes, kernel, strides, rates, strict=True):
        total = max((math.ceil(size / stride) - 1) * stride + (k - 1) * rate + 1 - size, 0)
        pads.append((total // 2, total - total // 2))
    return pads


def windows(
    x: Array, kernel: Sequence[int], strides: Sequence[int], rates: Sequence[int], padding: str | Pads, fill: float
) -> Array:
    """Return [N, positions..., taps, C] of channels-last ``x``."""
    space = x.shape[1:-1]
    pads = padding_of(padding, space, kernel, strides, rates)
    padded = np.pad(x.astype(np.float64), [(0, 0), *pads, (0, 0)], constant_values=fill)
    counts = [
        (size + before + after - (k - 1) * rate - 1) // stride + 1
        for size, (before, after), k, stride, rate in zip(space, pads, kernel, strides, rates, strict=True)
    ]
    result = np.empty((len(x), *counts, math.prod(kernel), x.shape[-1]))
    for position in product(*map(range, counts)):
        for tap, offset in enumerate(product(*map(range, kernel))):
            at = tuple(p * s + o * r for p, s, o, r in zip(position, strides, offset, rates, strict=True))
            result[(slice(None), *position, tap)] = padded[(slice(None), *at)]
    return result


def conv(x: Array, w: Array, strides: Sequence[int], padding: str | Pads, rates: Sequence[int] | None = None) -> Array:
    """Convolve channels-last ``x`` with ``w`` [space, C / groups, O]."""
    kernel = w.shape[:-2]
    taps = windows(x, kernel, strides, rates or [1] * len(kernel), padding, 0)
    groups = x.shape[-1] // w.shape[-2]
    parts = np.split(taps, groups, -1)
    weights = np.split(w.astype(np.float64).reshape(-1, *w.shape[-2:]), groups, -1)
    return np.concatenate([np.einsum("...tc,tco->...o", p, q) for p, q in zip(parts, weights, strict=True)], -1)


def depthwise(x: Array, w: Array, strides: Sequence[int], padding: str, rates: Sequence[int]) -> Array:
    """Convolve each channel with its own filters, ``w`` [H, W, C, M]: result channel c M + m."""
    taps = windows(x, w.shape[:2], strides, rates, padding, 0)
    found = np.einsum("...tc,tcm->...cm", taps, w.astype(np.float64).reshape(-1, *w.shape[2:]))
    return found.reshape(*found.shape[:-2], -1)


def conv_gradient(sizes: Sequence[int], w: Array, dy: Array, strides: Sequence[int], padding: str | Pads) -> Array:
    """Return the gradient with respect to the input of a convolution whose result has the gradient ``dy``."""
    kernel, space = w.shape[:-2], sizes[1:-1]
    pads = padding_of(padding, space, kernel, strides, [1] * len(kernel))
    padded = np.zeros([sizes[0], *(s + b + a for s, (b, a) in zip(space, pads, strict=True)), sizes[-1]])
    for position in product(*map(range, dy.shape[1:-1])):
        for offset in product(*map(range, kernel)):
            at = tuple(p * s + o for p, s, o in zip(position, strides, offset, strict=True))
            if all(a < n for a, n in zip(at, padded.shape[1:-1], strict=True)):
                padded[(slice(None), *at)] += dy[(slice(None), *position)].astype(np.float64) @ w[offset].T
    return padded[(slice(None), *(slice(b, b + s) for (b, _), s in zip(pads, space, strict=True)))]


def pool(x: Array, kernel: Sequence[int], strides: Sequence[int], padding: str | Pads, kind: str) -> Array:
    """Return maxima, or averages that do not count padding."""
    ones = [1] * len(kernel)
    if kind == "max":
        return windows(x, kernel, strides, ones, padding, -np.inf).max(axis=-2)
    return np.nanmean(windows(x, kernel, strides, ones, padding, np.nan), axis=-2)


def resize_positions(size: int, out: int, *, align: bool, half: bool) -> Array:
    """Return where the positions of the result lie on the input axis, as TensorFlow's scalers have it."""
    scale = (size - 1) / (out - 1) if align and out > 1 else size / out
    at = np.arange(out, dtype=np.float64)
    return (at + 0.5) * scale - 0.5 if half else at * scale


def resize_linear(x: Array, size: Sequence[int], *, align: bool, half: bool) -> Array:
    """Resize an NHWC image, one axis after the other."""
    y = x.astype(np.float64)
    for axis, out in zip((1, 2), size, strict=True):
        at = resize_positions(x.shape[axis], out, align=align, half=half)
        low = np.maximum(np.floor(at), 0).astype(int)
        high = np.minimum(np.ceil(at), x.shape[axis] - 1).astype(int)
        part = (at - np.floor(at)).reshape([-1 if i == axis else 1 for i in range(4)])
        y = np.take(y, low, axis) * (1 - part) + np.take(y, high, axis) * part
    return y


def resize_nearest(x: Array, size: Sequence[int], *, align: bool, half: bool) -> Array:
    """Resize an NHWC image."""
    for axis, out in zip((1, 2), size, strict=True):
        at = resize_positions(x.shape[axis], out, align=align, half=False)
        if half:
            at = (np.arange(out) + 0.5) * (x.shape[axis] / out)
        nearest = np.floor(at + 0.5) if align else np.floor(at)
        x = np.take(x, np.clip(nearest, 0, x.shape[axis] - 1).astype(int), axis)
    return x


def overlap(a: Sequence[float], b: Sequence[float]) -> float:
    """Return intersection over union of two boxes of two opposite corners each."""
    (y1, y2), (x1, x2) = sorted((a[0], a[2])), sorted((a[1], a[3]))
    (v1, v2), (u1, u2) = sorted((b[0], b[2])), sorted((b[1], b[3]))
    shared = max(min(y2, v2) - max(y1, v1), 0) * max(min(x2, u2) - max(x1, u1), 0)
    whole = (y2 - y1) * (x2 - x1) + (v2 - v1) * (u2 - u1) - shared
    return shared / whole if whole > 0 else 0.0


def suppress(
    boxes: Array, scores: Array, limit: int, iou: float, lowest: float, sigma: float = 0
) -> tuple[list[int], list[float]]:
    """Keep boxes in the order of their scores; with a sigma lower the scores of those that overlap instead."""
    left = {i: float(s) for i, s in enumerate(scores) if s > lowest}
    kept, values = [], []
    while left and len(kept) < limit:
        best = min(left, key=lambda i: (-left[i], i))
        kept.append(best)
        values.append(left.pop(best))
        for i in list(left):
            shared = overlap(boxes[best], boxes[i])
            if sigma > 0:
                left[i] *= math.exp(-0.5 / sigma * shared * shared)
                if left[i] <= lowest:
                    del left[i]
            elif shared > iou:
                del left[i]
    return kept, values
