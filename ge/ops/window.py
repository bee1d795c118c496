"""Sliding windows: the geometry that convolution and pooling share.

How the padding is chosen, first attribute found wins:
  ``auto_pad`` (kept by ONNX convolutions), ``_x_auto_pad`` (pooling): NOTSET, VALID, SAME_UPPER, SAME_LOWER;
  ``padding`` (TensorFlow), ``padding_mode`` (MaxPoolV3, AvgPoolV2): SAME, VALID, EXPLICIT, CALCULATED.
SAME stands for SAME_UPPER: when the total is odd, the end gets one more. With NOTSET, EXPLICIT and CALCULATED the
attribute ``pads`` counts: begin and end per spatial axis.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ge.ops.registry import Array, Misfit

_MODES = {
    "NOTSET": "EXPLICIT",
    "CALCULATED": "EXPLICIT",
    "EXPLICIT": "EXPLICIT",
    "SPECIFIC": "EXPLICIT",
    "VALID": "VALID",
    "SAME": "SAME_UPPER",
    "SAME_UPPER": "SAME_UPPER",
    "SAME_LOWER": "SAME_LOWER",
}


@dataclass(frozen=True, slots=True)
class Window:
    """A window that slides along one spatial axis; sizes in elements, -1 where unknown.

    ``before`` and ``after`` are the padding; ``count`` is the number of positions.
    """

    size: int
    kernel: int
    stride: int
    dilation: int
    before: int
    after: int
    count: int

    @property
    def extent(self) -> int:
        """Elements from the first to the last tap."""
        return (self.kernel - 1) * self.dilation + 1

    @property
    def reach(self) -> int:
        """Elements of padded input that the windows touch (beyond the padding with ceil_mode)."""
        return (self.count - 1) * self.stride + self.extent

    def taps(self, index: int) -> slice:
        """Positions, in the padded input, of tap ``index`` of every window."""
        start = index * self.dilation
        return slice(start, start + (self.count - 1) * self.stride + 1, self.stride)


def padding_mode(op: Any, attribute: str) -> str:
    """Return EXPLICIT, VALID, SAME_UPPER or SAME_LOWER; ``attribute`` is the fallback. Raises ``Misfit``."""
    found = op.get("auto_pad", op.get("_x_auto_pad"))
    if found in (None, "NOTSET", b"NOTSET"):
        found = op.get(attribute, "CALCULATED")
    text = found.decode() if isinstance(found, bytes) else str(found)
    if text not in _MODES:
        raise Misfit(f"padding {text} is unknown")
    return _MODES[text]


def slide(
    size: int, kernel: int, stride: int, dilation: int, pads: tuple[int, int], mode: str, is_ceil: bool = False
) -> Window:
    """Place a window. ``is_ceil`` counts a last, partly filled position unless it starts behind the input.

    The stride of a single position, and the dilation of a single tap, do not matter: they become 1. Raises ``Misfit``
    for values below 1 and for a window larger than the padded input.
    """
    before, after = pads if mode == "EXPLICIT" else (0, 0)
    if stride < 1 or dilation < 1 or kernel == 0 or before < 0 or after < 0:
        raise Misfit(
            f"kernel {kernel}, stride {stride} and dilation {dilation} must be positive, "
            f"pads {before} and {after} must not be negative"
        )
    extent = (kernel - 1) * dilation + 1
    if mode in ("SAME_UPPER", "SAME_LOWER"):
        if size < 0 or kernel < 0:
            return Window(size, kernel, stride, dilation, 0, 0, -1 if size < 0 else -(-size // stride))
        count = -(-size // stride)
        total = max((count - 1) * stride + extent - size, 0)
        before = total // 2 if mode == "SAME_UPPER" else total - total // 2
        return _plain(Window(size, kernel, stride, dilation, before, total - before, count))
    if size < 0 or kernel < 0:
        return Window(size, kernel, stride, dilation, before, after, -1)
    room = size + before + after - extent
    count = room // stride + 1
    if is_ceil:
        count = -(-room // stride) + 1
        if (count - 1) * stride >= size + before:
            count -= 1
    if count < 1:
        raise Misfit(
            f"a kernel of {kernel} with dilation {dilation} does not fit into {size} elements padded by "
            f"{before} and {after}"
        )
    return _plain(Window(size, kernel, stride, dilation, before, after, count))


def _plain(window: Window) -> Window:
    stride = window.stride if window.count > 1 else 1
    return replace(window, stride=stride, dilation=window.dilation if window.kernel > 1 else 1)


def slide_all(
    sizes: Sequence[int],
    kernel: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    pads: Sequence[int],
    mode: str,
    is_ceil: bool = False,
) -> list[Window]:
    """Place one window per spatial axis; ``pads`` is [begin, end] per axis, flat. Raises ``Misfit``."""
    if mode == "EXPLICIT" and len(pads) != 2 * len(sizes):
        raise Misfit(f"pads {list(pads)} must have two values for each of {len(sizes)} spatial axes")
    pairs = [(pads[2 * i], pads[2 * i + 1]) if mode == "EXPLICIT" else (0, 0) for i in range(len(sizes))]
    rows = zip(sizes, kernel, strides, dilations, pairs, strict=True)
    return [slide(size, k, stride, dilation, pair, mode, is_ceil) for size, k, stride, dilation, pair in rows]


def pad_for(x: Array, windows: Sequence[Window], fill: float) -> Array:
    """Return ``x`` (N, C, space) padded by ``fill`` to what the windows touch; ``x`` itself when nothing is to do."""
    space = tuple(max(w.size + w.before + w.after, w.reach) for w in windows)
    if space == x.shape[2:]:
        return x
    padded = np.full((*x.shape[:2], *space), fill, x.dtype)
    inside = tuple(slice(w.before, w.before + w.size) for w in windows)
    padded[(slice(None), slice(None), *inside)] = x
    return padded
