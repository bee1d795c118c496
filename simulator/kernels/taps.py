"""Which elements the taps of a sliding window meet: windows clipped to the input, instead of a padded input."""

from __future__ import annotations

from dataclasses import dataclass

from ge.ops.window import Window


@dataclass(frozen=True)
class Tap:
    """Tap ``index`` of every window: the windows that it reaches inside the input, and the elements it meets there."""

    index: int
    windows: slice
    elements: slice

    @property
    def reach(self) -> int:
        """Number of windows whose tap lies inside the input."""
        return self.windows.stop - self.windows.start


def clipped_taps(window: Window) -> list[Tap]:
    """Return the taps that meet any element at all."""
    taps = []
    for index in range(window.kernel):
        offset = index * window.dilation - window.before
        first = max(-(offset // window.stride), 0)
        last = min((window.size - 1 - offset) // window.stride, window.count - 1)
        if first <= last:
            start = first * window.stride + offset
            elements = slice(start, start + (last - first) * window.stride + 1, window.stride)
            taps.append(Tap(index, slice(first, last + 1), elements))
    return taps
