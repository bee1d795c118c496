"""Convolution of feature maps whose channels lie in blocks (NC1HWC0, NDC1HWC0).

A block of output rows is a product of columns [positions, taps x channels] and the filter [taps x channels, filters].
Filters of several rows that are long enough multiply the same columns a few lines further down, once per row: that
copies a third for 3x3. A constant bias is one more row of the filter, met by a column of ones. What the product makes
is copied to the blocks of its channels; short filters are multiplied block by block, straight to their place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import prod

import numpy as np

from ge.graph import DataType, Format
from ge.graph.types import numpy_dtype
from ge.ops.conv import conv_windows
from ge.ops.window import Window
from simulator.kernels.halves import convert
from simulator.kernels.registry import Array, Inputs, Kernel, KernelRequest, Outputs, ScratchLayout
from simulator.kernels.storage.columns import Columns
from simulator.kernels.storage.convolution import TRIVIAL, Convolution, compute_dtype
from simulator.kernels.storage.depthwise import build_depthwise
from simulator.kernels.storage.filters import StoredFilter
from simulator.kernels.storage.layout import (
    NC1HWC0_FORMATS,
    channels,
    from_rows,
    is_image,
    storage_kernel,
)

MIN_ROW_DEPTH = 48
"""Shortest filter row (channels times taps) that is worth a product of its own."""
MAX_NARROW_DEPTH = 96
"""Longest filter for which products of one block of filters each, straight to their place, are faster."""


@storage_kernel("Conv3D", formats=(Format.FORMAT_NDC1HWC0, Format.FORMAT_FRACTAL_Z_3D))
@storage_kernel("DepthwiseConv2D", formats=(Format.FORMAT_NC1HWC0, Format.FORMAT_FRACTAL_Z))
@storage_kernel("Conv2D", "Conv2DV2", formats=(*NC1HWC0_FORMATS, Format.FORMAT_FRACTAL_Z, Format.FORMAT_FRACTAL_Z_C04))
def build_conv(request: KernelRequest) -> Kernel | None:
    """Bind a convolution whose data lie in blocks of channels and whose filter lies in fractals."""
    x, y = request.inputs[0], request.outputs[0]
    if x is None or not is_image(x) or not is_image(y) or request.input(3) is not None:
        return None
    computed = compute_dtype(x.data_type)
    stored = StoredFilter.of(request, 1, computed)
    if stored is None:
        return None
    groups, filters, depth, *taps = stored.shape
    volume = x.format is Format.FORMAT_NDC1HWC0
    sizes = [x.shape[1], *x.shape[3:5]] if volume else list(x.shape[2:4])
    windows = tuple(conv_windows(request.op, sizes, taps if volume else taps[1:]))
    counts = [y.shape[1], *y.shape[3:5]] if volume else list(y.shape[2:4])
    work = Convolution(
        x.shape[0],
        channels(x),
        channels(y),
        groups,
        windows if volume else (TRIVIAL, *windows),  # type: ignore[arg-type]
        x.shape[-1],
        y.shape[-1],
        numpy_dtype(x.data_type),
        numpy_dtype(y.data_type),
        computed,
        request.op.offset_x if x.data_type in (DataType.DT_INT8, DataType.DT_UINT8) else 0,
    )
    if [w.count for w in windows] != counts or (groups * depth, groups * filters) != (work.channels, work.outputs):
        return None
    if depth == 1 and filters == 1 and groups > 1 and not volume and work.lanes == work.output_lanes:
        return build_depthwise(work, stored, request)
    return _by_columns(work, stored, request)


# -- the product -------------------------------------------------------------------------------------------------------
def _by_columns(work: Convolution, stored: StoredFilter, request: KernelRequest) -> Kernel:
    row_depth = work.depth * work.windows[0].kernel * work.windows[2].kernel
    is_split = work.windows[1].kernel > 1 and row_depth >= MIN_ROW_DEPTH
    work = _flat(work)
    layout = ScratchLayout()
    is_known = 1 in request.constants and (request.input(2) is None or 2 in request.constants)
    bias = request.constants.get(2) if is_known else None
    how = Columns(work, 0, ScratchLayout(), is_split=is_split)
    has_ones = bias is not None and how.is_unfolded
    how = Columns(work, int(has_ones), layout, is_split=is_split)
    n_products, plane = len(how.products(1)), how.row.count
    is_direct = (
        is_known and not is_split and work.groups == 1 and work.computed == work.output_dtype
        and how.depth <= MAX_NARROW_DEPTH and work.outputs % work.output_lanes == 0 and (has_ones or bias is None)
    )  # fmt: skip
    shapes = [(work.groups, how.width, work.filters)] * n_products
    weights_of = stored.reader(request, 1, layout, shapes, _fill(how, bias if has_ones else None))
    if is_direct:
        [matrix] = weights_of(request.constants[1], np.empty(0, np.uint8))
        by_block = np.ascontiguousarray(matrix.reshape(how.width, -1, work.output_lanes).swapaxes(0, 1))
    sums = _Sums(work, how.block * plane, layout, is_split=is_split, is_direct=is_direct)

    def run(inputs: Inputs, outputs: Outputs, scratch: Array) -> None:
        x, y = inputs[0].reshape(_shape(work, False)), outputs[0].reshape(_shape(work, True))
        weights = weights_of(inputs[1], scratch)
        columns = how.take(scratch)
        columns[..., how.depth : how.width] = 1
        addend = inputs[2] if len(inputs) > 2 and not has_ones else None
        sums.begin(addend, scratch)
        for sample in range(work.batch):
            for depth in range(how.deep.count):
                for row, rows in how.blocks():
                    sources = how.sources(x[sample], row * how.rows.stride, depth, rows, scratch)
                    positions = rows * plane
                    if how.is_unfolded:
                        operand = columns[..., : how.width]
                        how.unfold(sources, rows, columns)
                    else:
                        operand = how.operand(sources[0], row * plane, positions)
                    target = y[sample, depth].reshape(work.output_blocks, -1, work.output_lanes)
                    target = target[:, row * plane : row * plane + positions]
                    if is_direct:
                        np.matmul(operand[0, :positions], by_block, out=target)
                    else:
                        operands = [operand[:, start : start + positions] for start in how.products(rows)]
                        sums.write(operands, weights, target, scratch)

    size = how.depth * work.filters * how.block * plane
    return Kernel("conv-blocks-rows" if is_split else "conv-blocks", run, layout.size, product_size=size)


def _flat(work: Convolution) -> Convolution:
    """Make one row of all positions where every position stands for itself."""
    deep, rows, columns = work.windows
    # a stride that only one position would follow is 1: the counts tell whether every element is a position
    if not all(w.kernel == 1 and w.size == w.count and not w.before and not w.after for w in (rows, columns)):
        return work
    size = rows.count * columns.count
    return replace(work, windows=(deep, Window(size, 1, 1, 1, 0, 0, size), TRIVIAL))


def _shape(work: Convolution, is_output: bool) -> tuple[int, ...]:
    """Return [n, d, blocks, h, w, lanes]."""
    deep, *space = [w.count if is_output else w.size for w in work.windows]
    if is_output:
        return (work.batch, deep, work.output_blocks, *space, work.output_lanes)
    return (work.batch, deep, work.blocks, *space, work.lanes)


def _fill(how: Columns, bias: Array | None) -> Callable[[Array, list[Array]], None]:
    """Return what writes a filter into matrices [groups, depth, filters], one per filter row if split."""

    def fill(weights: Array, matrices: list[Array]) -> None:
        for row, matrix in enumerate(matrices):
            place = 0
            for part in how.parts:
                own = weights[:, :, part.first : part.first + part.channels]
                if how.is_split:
                    own = own[..., row : row + 1, :]
                split = own.reshape(*own.shape[:2], part.planes, part.lanes, *own.shape[3:])
                turned = split.transpose(0, 4, 2, 5, 6, 3, 1)  # g, d, planes, h, w, lanes, filters
                size = prod(turned.shape[1:-1])
                np.copyto(matrix[:, place : place + size].reshape(turned.shape), turned, casting="unsafe")
                place += size
            matrix[:, place:] = 0
            if bias is not None and row == 0:
                matrix[:, place] = bias.reshape(len(matrix), -1)

    return fill


class _Sums:
    """Sums products to rows [positions, filters], adds the bias, rounds once and copies to the blocks of y."""

    def __init__(
        self, work: Convolution, positions: int, layout: ScratchLayout, *, is_split: bool, is_direct: bool
    ) -> None:
        self.work = work
        shape = [0, 0] if is_direct else [positions, work.output_blocks * work.output_lanes]
        self.is_rounded = work.computed != work.output_dtype
        self._sums = layout.take(shape, work.computed)
        self._terms = layout.take([work.groups, positions, work.filters] if is_split else [0], work.computed)
        self._rounded = layout.take(shape if self.is_rounded else [0], work.output_dtype)
        self._bias = layout.take([work.outputs], work.computed)
        self.has_bias = False

    def begin(self, bias: Array | None, scratch: Array) -> None:
        """Make ready for a run: what pads the filters of the last block is 0 from the start."""
        self._sums(scratch)[:, self.work.outputs :] = 0
        if bias is not None:
            self._bias(scratch)[:] = bias.reshape(-1)
        self.has_bias = bias is not None

    def write(self, operands: Sequence[Array], weights: Sequence[Array], y: Array, scratch: Array) -> None:
        """Write the sum of all products to ``y`` [blocks, positions, lanes]."""
        work, count = self.work, y.shape[1]
        rows = self._sums(scratch)[:count]
        known = rows[:, : work.outputs]
        by_group = known.reshape(count, work.groups, work.filters).swapaxes(0, 1)
        _multiply(operands[0], weights[0], by_group)
        for operand, matrix in zip(operands[1:], weights[1:], strict=True):
            term = self._terms(scratch)[:, :count]
            _multiply(operand, matrix, term)
            np.add(by_group, term, out=by_group)
        if self.has_bias:
            np.add(known, self._bias(scratch), out=known)
        if self.is_rounded:
            rounded = self._rounded(scratch)[:count]
            convert(rounded, rows)
            rows = rounded
        from_rows(rows, y)


def _multiply(left: Array, right: Array, out: Array) -> None:
    if len(out) == 1:  # a plain matrix product has less to look after than a stack of one
        np.matmul(left[0], right[0], out=out[0])
    else:
        np.matmul(left, right, out=out)
