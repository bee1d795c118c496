"""Operators along axes that are divided into blocks: rows are brought together a few at a time.

Softmax and the normalisations need whole rows. Tiles of rows are copied from the blocks (64 bytes at a time), computed
by the plain kernel, and copied back; no tensor is ever laid out anew as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from ge.graph import Format, TensorDesc
from ge.graph.types import data_type_of, numpy_dtype
from ge.ops.format_columns_selectors import SPREADING
from simulator.kernels.blocks import compute_dtype
from simulator.kernels.halves import convert
from simulator.kernels.registry import (
    FLOATS,
    Array,
    Inputs,
    Kernel,
    KernelRequest,
    Outputs,
    ScratchLayout,
    choose,
)
from simulator.kernels.storage.layout import as_stored, clearing, copy_runs, places, renamed, storage_kernel

TILE_ELEMENTS = 32768
"""Most elements of a tile, unless one row alone has more."""


@dataclass(frozen=True)
class RowTiles:
    """A storage array as rows: kept axes first, those of a row behind them.

    ``lead`` are the loops over kept axes, ``cut`` is the kept axis of which a tile takes ``step`` positions; the kept
    axes behind it come whole.
    """

    order: tuple[int, ...]
    shape: tuple[int, ...]
    kept: int
    cut: int
    step: int

    @classmethod
    def of(cls, shape: Sequence[int], row_axes: Sequence[int]) -> RowTiles:
        """Divide an array into tiles of at most ``TILE_ELEMENTS``, or one row."""
        kept = [axis for axis in range(len(shape)) if axis not in row_axes]
        order = (*kept, *row_axes)
        turned = tuple(shape[axis] for axis in order)
        inner = prod(turned[len(kept) :])
        cut = len(kept)
        while cut > 0 and inner * turned[cut - 1] <= TILE_ELEMENTS:
            cut -= 1
            inner *= turned[cut]
        if cut == 0:
            return cls(order, turned, len(kept), 0, turned[0] if kept else 1)
        return cls(order, turned, len(kept), cut - 1, max(TILE_ELEMENTS // inner, 1))

    @property
    def length(self) -> int:
        """Elements of a row."""
        return prod(self.shape[self.kept :])

    @property
    def rows(self) -> int:
        """Most rows of a tile."""
        return self.step * prod(self.shape[self.cut + 1 : self.kept]) if self.kept else 1

    def tiles(self) -> list[tuple[Any, ...]]:
        """Return the index of every tile in the turned array."""
        if not self.kept:
            return [()]
        ends = range(0, self.shape[self.cut], self.step)
        return [
            (*lead, slice(start, min(start + self.step, self.shape[self.cut])))
            for lead in np.ndindex(*self.shape[: self.cut])
            for start in ends
        ]


# -- softmax -----------------------------------------------------------------------------------------------------------
@storage_kernel("SoftmaxV2", "LogSoftmaxV2", formats=SPREADING, dtypes=FLOATS)
def build_softmax(request: KernelRequest) -> Kernel | None:
    """Bind a softmax over axes of which those that are divided fill their blocks."""
    x, y = request.inputs[0], request.outputs[0]
    where = None if x is None else places(x)
    if x is None or not where or y.format is not x.format or y.shape != x.shape:
        return None
    axes = sorted(axis % len(where) for axis in request.op.axes)
    if axes and request.op.get("_x_flatten", False):
        axes = list(range(axes[0], len(where)))
    if not axes or any(len(where[a]) > 1 and x.origin_shape[a] % x.shape[where[a][1]] for a in axes):
        return None
    found = sorted(place for axis in axes for place in where[axis])
    if found == list(range(found[0], found[-1] + 1)):
        inner = choose(_softmax_request(request, x.shape, y, found))
        return None if inner is None else clearing(inner, request.outputs)
    tiles = RowTiles.of(x.shape, found)
    layout = ScratchLayout()
    take_x = layout.take([tiles.rows, tiles.length], numpy_dtype(x.data_type))
    take_y = layout.take([tiles.rows, tiles.length], numpy_dtype(y.data_type))
    kernels = _by_rows(tiles, layout, lambda rows: _softmax_request(request, (rows, tiles.length), y, [1]))
    if kernels is None:
        return None

    def run(inputs: Inputs, outputs: Outputs, scratch: Array) -> None:
        source, target = inputs[0].transpose(tiles.order), outputs[0].transpose(tiles.order)
        for index in tiles.tiles():
            part = source[index]
            rows = part.size // tiles.length
            tile, result = take_x(scratch)[:rows], take_y(scratch)[:rows]
            copy_runs(tile.reshape(part.shape), part)
            kernels(rows).run([tile], [result], scratch)
            copy_runs(target[index], result.reshape(part.shape))

    return clearing(Kernel("softmax-blocks", run, layout.size, is_in_place_safe=x.data_type is y.data_type), [y])


def _softmax_request(request: KernelRequest, shape: Sequence[int], y: TensorDesc, axes: list[int]) -> KernelRequest:
    attrs = {**request.attrs, "axes": axes, "_x_flatten": False}
    x = request.inputs[0]
    assert x is not None
    return renamed(request, request.type, attrs, (as_stored(x, shape),), (as_stored(y, shape),))


def _by_rows(
    tiles: RowTiles, layout: ScratchLayout, ask: Callable[[int], KernelRequest]
) -> Callable[[int], Kernel] | None:
    """Return the plain kernel for tiles of so many rows; its scratch comes first, so there is one for all sizes."""
    sizes = {min(tiles.step, tiles.shape[tiles.cut]), tiles.shape[tiles.cut] % tiles.step} if tiles.kept else {1}
    behind = prod(tiles.shape[tiles.cut + 1 : tiles.kept]) if tiles.kept else 1
    kernels: dict[int, Kernel] = {}
    for size in sizes - {0}:
        found = choose(ask(size * behind))
        if found is None:
            return None
        kernels[size * behind] = found
    take = layout.take([max(found.scratch_bytes for found in kernels.values())], np.uint8)
    own = {rows: found.within(_within(found, take)) for rows, found in kernels.items()}
    return own.__getitem__


def _within(inner: Kernel, take: Callable[[Array], Array]) -> Any:
    def run(inputs: Inputs, outputs: Outputs, scratch: Array) -> None:
        inner.run(inputs, outputs, take(scratch))

    return run


# -- normalisation -----------------------------------------------------------------------------------------------------
@storage_kernel(
    "LayerNorm", "LayerNormV3", "LayerNormV4", "RmsNorm", formats=(Format.FORMAT_FRACTAL_NZ,), dtypes=FLOATS
)
def build_layer_norm(request: KernelRequest) -> Kernel | None:
    """Bind a normalisation over the last axis of matrices in FRACTAL_NZ."""
    return _normalisation(request, request.type)


@storage_kernel("AddLayerNorm", formats=(Format.FORMAT_FRACTAL_NZ,), dtypes=FLOATS)
def build_add_layer_norm(request: KernelRequest) -> Kernel | None:
    """Bind the normalisation of a sum; a bias is one row, or one for each row."""
    bias, x = request.input(4), request.inputs[0]
    if x is None or (bias is not None and tuple(bias.shape) not in (x.origin_shape[-1:], x.origin_shape)):
        return None
    return _normalisation(request, "LayerNormV3")


def _normalisation(request: KernelRequest, type: str) -> Kernel | None:
    x, y, is_sum = request.inputs[0], request.outputs[0], request.type == "AddLayerNorm"
    where = None if x is None else places(x)
    if x is None or not where or y.shape != x.shape or len(x.origin_shape) < 2:
        return None
    if x.origin_shape[-1] % x.shape[-1] or x.origin_shape[-2] % x.shape[-2] or not _is_over_last_axis(request, x):
        return None
    tiles = RowTiles.of(x.shape, where[-1])
    layout = ScratchLayout()
    # a sum is normalised before it is rounded
    dtype = compute_dtype(x.data_type) if is_sum else numpy_dtype(x.data_type)
    is_rounded = dtype != numpy_dtype(y.data_type)
    take_x, take_y = (layout.take([tiles.rows, tiles.length], dtype) for _ in range(2))
    take_other = layout.take([tiles.rows, tiles.length] if is_sum or is_rounded else [0], numpy_dtype(y.data_type))
    kernels = _by_rows(tiles, layout, lambda rows: _row_request(request, type, (rows, tiles.length), dtype))
    if kernels is None:
        return None
    statistics = [i for i in range(1, len(request.outputs)) if not (is_sum and i == 3)]

    def run(inputs: Inputs, outputs: Outputs, scratch: Array) -> None:
        turned = [a.transpose(tiles.order) for a in inputs[: 2 if is_sum else 1]]
        done = 0
        for index in tiles.tiles():
            shape = turned[0][index].shape
            rows = prod(shape) // tiles.length
            tile, result, other = (take(scratch)[:rows] for take in (take_x, take_y, take_other))
            if is_sum:
                _add_up(tile, other, [a[index] for a in turned])
                if len(inputs) > 4 and inputs[4] is not None:
                    bias = inputs[4].reshape(-1, tiles.length)
                    np.add(tile, bias[done : done + rows] if len(bias) > 1 else bias, out=tile)
                if len(outputs) > 3 and outputs[3] is not None:
                    convert(other, tile)
                    copy_runs(outputs[3].transpose(tiles.order)[index], other.reshape(shape))
            else:
                copy_runs(tile.reshape(shape), turned[0][index])
            own: list[Array | None] = [result, *[None] * (len(outputs) - 1)]
            for place in statistics:
                if outputs[place] is not None:
                    own[place] = outputs[place].reshape(-1)[done : done + rows]
            kernels(rows).run([tile, *inputs[2 if is_sum else 1 : 4 if is_sum else None]], own, scratch)
            if is_rounded:
                convert(other, result)
                result = other
            copy_runs(outputs[0].transpose(tiles.order)[index], result.reshape(shape))
            done += rows

    return Kernel("norm-blocks", run, layout.size)


def _add_up(total: Array, spare: Array, addends: Sequence[Array]) -> None:
    """Write the sum of tiles of the storage as rows."""
    for number, addend in enumerate(addends):
        copy_runs(spare.reshape(addend.shape), addend)
        if number:
            np.add(total, spare, out=total)
        else:
            convert(total, spare)


def _is_over_last_axis(request: KernelRequest, x: TensorDesc) -> bool:
    op, rank = request.op, len(x.origin_shape)
    if request.type == "LayerNormV4":
        shape = request.input(1)
        return shape is not None and prod(shape.shape) == 1
    gamma = request.input(2 if request.type == "AddLayerNorm" else 1)
    if gamma is None or tuple(gamma.shape) != (x.origin_shape[-1],):
        return False
    first = getattr(op, "begin_norm_axis", -1)
    return bool(first % rank == rank - 1 and getattr(op, "begin_params_axis", -1) % rank == rank - 1)


def _row_request(request: KernelRequest, type: str, shape: tuple[int, int], dtype: np.dtype[Any]) -> KernelRequest:
    """Return the request for a tile of rows that are computed in ``dtype``."""
    attrs = {key: value for key, value in request.attrs.items() if not key.startswith("begin_")}
    if type in ("LayerNorm", "LayerNormV3"):
        attrs |= {"begin_norm_axis": 1, "begin_params_axis": 1}
    is_sum = request.type == "AddLayerNorm"
    parameters = request.inputs[2:4] if is_sum else request.inputs[1:]
    tile = TensorDesc(shape, data_type=data_type_of(dtype))
    outputs = [as_stored(desc, (shape[0], 1)) for desc in request.outputs[1 : 3 if is_sum else None]]
    return renamed(request, type, attrs, (tile, *parameters), (tile, *outputs))
