"""What a convolution of feature maps in blocks of channels computes; how is said by the modules that use this."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ge.graph import DataType
from ge.graph.types import numpy_dtype
from ge.ops.window import Window

TRIVIAL = Window(1, 1, 1, 1, 0, 0, 1)
"""An axis of one position."""


@dataclass(frozen=True)
class Convolution:
    """y[n, d, filter blocks, h, w, lanes] from x[n, d, channel blocks, h, w, lanes]; windows over d, h and w."""

    batch: int
    channels: int
    outputs: int
    groups: int
    windows: tuple[Window, Window, Window]
    lanes: int
    """Channels per block of x."""
    output_lanes: int
    dtype: np.dtype[Any]
    output_dtype: np.dtype[Any]
    computed: np.dtype[Any]
    offset: int
    """Subtracted from x."""

    @property
    def depth(self) -> int:
        """Channels per group."""
        return self.channels // self.groups

    @property
    def filters(self) -> int:
        """Filters per group."""
        return self.outputs // self.groups

    @property
    def blocks(self) -> int:
        """Blocks of channels of x."""
        return -(-self.channels // self.lanes)

    @property
    def output_blocks(self) -> int:
        """Blocks of filters of y."""
        return -(-self.outputs // self.output_lanes)


def compute_dtype(dtype: DataType) -> np.dtype[Any]:
    """Return the type of products and sums: sums of whole numbers are exact in double precision."""
    found = numpy_dtype(dtype)
    if found.kind in "iu":
        return np.dtype(np.float64)
    return found if found.kind == "f" and found.itemsize >= 4 else np.dtype(np.float32)
