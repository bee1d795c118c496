"""Where the axes of a tensor stand: data_format strings and what they say about shapes and attribute lists.

``N`` is the batch (of a filter: its outputs), ``C`` the channels (of a filter: the inputs per group), ``D H W`` space.
Computations work channels first; other layouts are transposed views on the way in and out.

Operators whose signature has no data_format read the extra attribute ``_x_data_format`` (default: channels first).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ge.ops.registry import Array, InferContext, Misfit

_SPACE = "DHW"


def channels_first_name(rank: int) -> str:
    """Return the channels-first format of a rank: NC, NCW, NCHW or NCDHW."""
    return "NC" + _SPACE[max(5 - rank, 0) :]


def spatial_axes(data_format: str) -> list[int]:
    """Return the positions of depth, height and width, as far as the format has them, in this order."""
    return [data_format.index(letter) for letter in _SPACE if letter in data_format]


def _to_channels_first(data_format: str) -> list[int]:
    return [data_format.index("N"), data_format.index("C"), *spatial_axes(data_format)]


def channels_first(array: Array, data_format: str) -> Array:
    """Return a view of ``array`` with the axes N, C, space."""
    return np.transpose(array, _to_channels_first(data_format))


def from_channels_first(array: Array, data_format: str) -> Array:
    """Inverse of :func:`channels_first`."""
    return np.transpose(array, np.argsort(_to_channels_first(data_format)))


def shape_channels_first(shape: Sequence[int], data_format: str) -> list[int]:
    """Return the dims in the order N, C, space."""
    return [shape[axis] for axis in _to_channels_first(data_format)]


def shape_in_format(dims: Sequence[int], data_format: str) -> list[int]:
    """Return channels-first ``dims`` in the order of ``data_format``."""
    return [dims[axis] for axis in np.argsort(_to_channels_first(data_format))]


def channel_axis(data_format: str, rank: int) -> int:
    """Return the axis of the channels for any rank: the last for NHWC and NDHWC, otherwise 1."""
    return rank - 1 if data_format in ("NHWC", "NDHWC", "NWC") else min(1, rank - 1)


def spatial_values(values: Sequence[int], data_format: str) -> list[int]:
    """Return the entries of an attribute such as strides for depth, height, width.

    ``values`` has one entry per axis of the format, one per spatial axis, or one for all. Raises ``Misfit``.
    """
    axes = spatial_axes(data_format)
    if len(values) == len(data_format):
        return [int(values[axis]) for axis in axes]
    if len(values) == len(axes):
        return [int(v) for v in values]
    if len(values) == 1:
        return [int(values[0])] * len(axes)
    raise Misfit(f"{list(values)} has neither one entry per axis of {data_format} nor one per spatial axis")


def check_format(ctx: InferContext, data_format: Any, letters: str) -> str:
    """Return ``data_format`` if it orders exactly ``letters`` (NCHW, NCDHW). Raises the node's E14001 otherwise."""
    if sorted(str(data_format)) != sorted(letters):
        raise ctx.fail(f"data_format must be an order of {', '.join(letters)}, not {data_format}", value="data_format")
    return str(data_format)
