"""Elementwise kernels: broadcast operands walked in blocks that stay in the cache.

A formula is called as ``formula(*operands, *temporaries, out=out)``, once per block; a numpy ufunc is a formula.
``out`` may be the very memory of an operand of the same shape, so a formula reads nothing from its operands after it
has begun to write ``out``, unless by the ufunc that writes. Narrow floats are widened on the way in and rounded once on
the way out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

import numpy as np

from ge.graph.types import NARROW_FLOATS, DataType, numpy_dtype
from simulator.kernels.halves import convert
from simulator.kernels.registry import Array, Inputs, Kernel, KernelRequest, Outputs, ScratchLayout

Formula = Callable[..., Any]
BLOCK_ELEMENTS = 32768
"""Elements per block: a handful of float32 blocks fit into the second-level cache."""

Index = tuple[slice, ...]


def compute_dtype(dtype: DataType) -> np.dtype[Any]:
    """Return the numpy type in which elements of ``dtype`` are computed."""
    return np.dtype(np.float32) if dtype in NARROW_FLOATS else numpy_dtype(dtype)


LONGEST_ROW = 32768
"""Longer rows are summed pairwise: one running sum would lose digits."""


def row_sums(length: int, dtype: np.dtype[Any]) -> Callable[[Array, Array], Any]:
    """Return ``run(rows, totals)``, which writes the sums of [n, length] to [n, 1].

    As products with ones they are several times faster than reductions, and no worse.
    """
    if length > LONGEST_ROW:
        return lambda rows, totals: np.add.reduce(rows, axis=1, out=totals, keepdims=True)
    ones = np.ones(length, dtype)
    return lambda rows, totals: np.vecdot(rows, ones, out=totals.reshape(-1))


@dataclass(frozen=True)
class Walk:
    """Blocks of a broadcast: the collapsed shapes of result and operands, and per block the index into each."""

    dims: tuple[int, ...]
    operand_dims: tuple[tuple[int, ...], ...]
    indices: tuple[tuple[Index, tuple[Index, ...]], ...]
    block: int
    """Most elements of a block."""


def walk(shape: Sequence[int], operands: Sequence[Sequence[int]], limit: int) -> Walk:
    """Divide the result ``shape`` into blocks of at most ``limit`` elements (one row of the innermost axes at least).

    Neighbouring axes along which the same operands are repeated become one.
    """
    padded = [(*[1] * (len(shape) - len(operand)), *operand) for operand in operands]
    dims: list[int] = []
    repeats: list[tuple[bool, ...]] = []
    for axis, dim in enumerate(shape):
        if dim == 1:
            continue
        repeated = tuple(operand[axis] == 1 for operand in padded)
        if repeats and repeats[-1] == repeated:
            dims[-1] *= dim
        else:
            dims.append(dim)
            repeats.append(repeated)
    if not dims:
        dims, repeats = [1], [(False,) * len(operands)]
    operand_dims = tuple(
        tuple(1 if repeated[i] else dim for dim, repeated in zip(dims, repeats, strict=True))
        for i in range(len(operands))
    )
    cut, inner = len(dims) - 1, 1
    while cut > 0 and inner * dims[cut] <= limit:
        inner *= dims[cut]
        cut -= 1
    step = max(min(limit // inner, dims[cut]), 1)
    ranges = [[slice(i, i + 1) for i in range(dim)] for dim in dims[:cut]]
    ranges.append([slice(i, min(i + step, dims[cut])) for i in range(0, dims[cut], step)])
    whole = [slice(None)] * (len(dims) - cut - 1)
    indices = []
    for corner in product(*ranges):
        index = (*corner, *whole)
        own = tuple(
            tuple(slice(None) if size == 1 else part for size, part in zip(sizes, index, strict=True))
            for sizes in operand_dims
        )
        indices.append((index, own))
    return Walk(tuple(dims), operand_dims, tuple(indices), inner * step)


def elementwise(
    name: str,
    request: KernelRequest,
    formula: Formula,
    slots: Sequence[int] = (0,),
    *,
    temporaries: int = 0,
    result: np.dtype[Any] | None = None,
    shapes: Sequence[Sequence[int]] | None = None,
    is_one_step: bool = False,
) -> Kernel:
    """Bind an elementwise operator of one output.

    ``slots`` are the operands, ``shapes`` their shapes where they are to be broadcast differently, ``result`` the type
    that the formula writes (default: the compute type of operand 0), ``temporaries`` the number of blocks of it that
    the formula wants. ``is_one_step`` says that nothing is gained by blocks.
    """
    types = [request.dtype(slot) for slot in slots]
    wide = [compute_dtype(t) for t in types]
    is_widened = [w != numpy_dtype(t) for w, t in zip(wide, types, strict=True)]
    made = wide[0] if result is None else result
    is_rounded = made != numpy_dtype(request.outputs[0].data_type)
    is_whole = is_one_step and not any(is_widened) and not is_rounded
    own_shapes = [request.shape(slot) for slot in slots] if shapes is None else shapes
    out_shape = request.outputs[0].shape
    path = walk(out_shape, own_shapes, max(prod(out_shape), 1) if is_whole else BLOCK_ELEMENTS)
    layout = ScratchLayout()
    widened = [layout.take([path.block * w], dtype) for w, dtype in zip(is_widened, wide, strict=True)]
    rounded = layout.take([path.block * is_rounded], made)
    temporary = [layout.take([path.block], made) for _ in range(temporaries)]

    def run(inputs: Inputs, outputs: Outputs, scratch: Array) -> None:
        operands = [inputs[slot].reshape(d) for slot, d in zip(slots, path.operand_dims, strict=True)]
        out = outputs[0].reshape(path.dims)
        wide_blocks = [take(scratch) for take in widened]
        round_block, temps = rounded(scratch), [take(scratch) for take in temporary]
        for index, own in path.indices:
            target = out[index]
            blocks = [operand[i] for operand, i in zip(operands, own, strict=True)]
            for i, is_wide in enumerate(is_widened):
                if is_wide:
                    block = wide_blocks[i][: blocks[i].size].reshape(blocks[i].shape)
                    convert(block, blocks[i])
                    blocks[i] = block
            size, shape = target.size, target.shape
            place = round_block[:size].reshape(shape) if is_rounded else target
            formula(*blocks, *[t[:size].reshape(shape) for t in temps], out=place)
            if is_rounded:
                convert(target, place)

    return Kernel(name, run, layout.size, is_in_place_safe=True)
