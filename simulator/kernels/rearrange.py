"""Transposition: neighbouring axes that stay together move as one, long scattered rows move in pieces."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from simulator.kernels.registry import Array, Inputs, Kernel, KernelRequest, Outputs, kernel

TILE = 128
"""Longest piece of an output row that is gathered from scattered input rows at a time."""


@kernel("Transpose", "TransposeD")
def build_transpose(request: KernelRequest) -> Kernel | None:
    """Bind a transposition by a constant permutation."""
    shape = request.shape()
    given = list(request.op.perm) if request.type == "TransposeD" else request.ints(1)
    if given is None or not prod(shape):
        return None
    perm = [axis % len(shape) for axis in given]
    if sorted(perm) != list(range(len(shape))):
        return None
    dims, order = merged(shape, perm)
    result = tuple(dims[axis] for axis in order)
    is_scattered = len(order) > 1 and order[-1] != len(dims) - 1 and result[-1] > TILE

    def run(inputs: Inputs, outputs: Outputs, scratch: Array) -> None:
        x, y = inputs[0].reshape(dims).transpose(order), outputs[0].reshape(result)
        if not is_scattered:
            np.copyto(y, x)
            return
        for start in range(0, result[-1], TILE):
            np.copyto(y[..., start : start + TILE], x[..., start : start + TILE])

    return Kernel("transpose", run)


def merged(shape: Sequence[int], perm: Sequence[int]) -> tuple[list[int], list[int]]:
    """Return shape and permutation without axes of one element, axes that stay neighbours merged.

    ``x.transpose(perm)`` has the elements of ``x.reshape(dims).transpose(order)`` in the same order.
    """
    groups: list[list[int]] = []
    for axis in perm:
        if shape[axis] == 1:
            continue
        if groups and _follows(shape, groups[-1][-1], axis):
            groups[-1].append(axis)
        else:
            groups.append([axis])
    if not groups:
        return [1], [0]
    by_place = sorted(groups)
    dims = [prod(shape[axis] for axis in group) for group in by_place]
    return dims, [by_place.index(group) for group in groups]


def _follows(shape: Sequence[int], before: int, axis: int) -> bool:
    """True when ``axis`` comes right behind ``before``, axes of one element aside."""
    return before < axis and all(shape[i] == 1 for i in range(before + 1, axis))
