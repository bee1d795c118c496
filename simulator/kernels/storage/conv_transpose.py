"""Transposed convolution of feature maps whose channels lie in blocks.

Rows of positions [positions, channels] are multiplied by the filter [channels, taps x filters]; what every tap spreads
is added where it belongs, with the filters of a position side by side, and copied to blocks at the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

import numpy as np

from ge.graph import Format
from ge.graph.types import numpy_dtype
from ge.ops.conv_transpose import requested_sizes, transposed_windows
from ge.ops.window import Window
from simulator.kernels.halves import convert
from simulator.kernels.registry import Array, Inputs, Kernel, KernelRequest, Outputs, ScratchLayout
from simulator.kernels.storage.convolution import compute_dtype
from simulator.kernels.storage.filters import StoredFilter
from simulator.kernels.storage.layout import channels, from_rows, is_image, storage_kernel, to_rows
from simulator.kernels.taps import Tap, clipped_taps

SPREAD_BYTES = 1 << 20
"""Most bytes of spread rows, unless a single one has more."""
_FORMATS = (Format.FORMAT_NC1HWC0, Format.FORMAT_FRACTAL_Z)


@storage_kernel("Conv2DTranspose", formats=_FORMATS)
def build_conv_transpose(request: KernelRequest) -> Kernel | None:
    """Bind the transpose of a convolution; input 0 is ``input_size``."""
    return None if request.input(4) is not None else _build(request, x=1, filter=2, bias=3)


@storage_kernel("Conv2DBackpropInput", formats=_FORMATS)
def build_backprop_input(request: KernelRequest) -> Kernel | None:
    """Bind the gradient of a convolution with respect to its input, which is the same thing."""
    return _build(request, x=2, filter=1, bias=None)


@dataclass(frozen=True)
class _Spread:
    """y [sizes, filters] from x [counts, channels]; ``windows`` are those of the convolution that reads the result."""

    groups: int
    depth: int
    filters: int
    windows: tuple[Window, Window]
    kernel: tuple[int, int]

    @property
    def taps(self) -> int:
        return prod(self.kernel)


def _build(request: KernelRequest, x: int, filter: int, bias: int | None) -> Kernel | None:
    source, result, sizes = request.input(x), request.outputs[0], request.ints(0)
    if source is None or sizes is None or not is_image(source) or not is_image(result):
        return None
    computed = compute_dtype(source.data_type)
    stored = StoredFilter.of(request, filter, computed)
    if stored is None:
        return None
    groups, depth, filters, deep, *kernel = stored.shape
    counts = list(source.shape[2:4])
    windows = transposed_windows(request.op, counts, kernel, requested_sizes(request.op, sizes))
    if [w.size for w in windows] != list(result.shape[2:4]) or deep != 1:
        return None
    if (groups * depth, groups * filters) != (channels(source), channels(result)):
        return None
    what = _Spread(groups, depth, filters, (windows[0], windows[1]), (kernel[0], kernel[1]))
    return _spreading(request, what, stored, computed, (x, filter, bias))


def _fill(filter: Array, matrices: list[Array]) -> None:
    """Write a filter [groups, channels, filters, 1, h, w] as [channels, taps x filters] per group."""
    for own, matrix in zip(filter, matrices, strict=True):
        turned = own[:, :, 0].transpose(0, 2, 3, 1)
        np.copyto(matrix.reshape(turned.shape), turned, casting="unsafe")


def _spreading(
    request: KernelRequest,
    what: _Spread,
    stored: StoredFilter,
    computed: np.dtype[Any],
    slots: tuple[int, int, int | None],
) -> Kernel:
    x_slot, filter_slot, bias_slot = slots
    x_desc, y_desc = request.inputs[x_slot], request.outputs[0]
    assert x_desc is not None
    in_blocks, rows, columns, in_lanes = x_desc.shape[1:]
    out_blocks, out_lanes = y_desc.shape[1], y_desc.shape[-1]
    own, result = numpy_dtype(x_desc.data_type), numpy_dtype(y_desc.data_type)
    space, outputs = prod(y_desc.shape[2:4]), what.groups * what.filters
    row_bytes = columns * what.taps * what.filters * computed.itemsize
    block = min(max(SPREAD_BYTES // row_bytes, 1), rows)
    layout = ScratchLayout()
    take_wide = layout.take([in_blocks * block * columns * in_lanes * (own != computed)], computed)
    take_rows = layout.take([block * columns, in_blocks * in_lanes], computed)
    take_spread = layout.take([block * columns * what.taps * what.filters], computed)
    take_total = layout.take([space, out_blocks * out_lanes], computed)
    take_rounded = layout.take([space, out_blocks * out_lanes][: None if result != computed else 0] or [0], result)
    shapes = [(what.depth, what.taps * what.filters)] * what.groups
    weights_of = stored.reader(request, filter_slot, layout, shapes, _fill)
    taps = list(product(*map(clipped_taps, what.windows)))
    offset = request.op.get("offset_x", 0) if own.kind in "iu" else 0

    def run(inputs: Inputs, results: Outputs, scratch: Array) -> None:
        weights = weights_of(inputs[filter_slot], scratch)
        bias = inputs[bias_slot] if bias_slot is not None and len(inputs) > bias_slot else None
        total = take_total(scratch)
        places = total.reshape(*y_desc.shape[2:4], -1)
        for x, y in zip(inputs[x_slot], results[0], strict=True):
            total.fill(0)
            if bias is not None:
                total[:, :outputs] = bias.reshape(-1)
            for start in range(0, rows, block):
                part = slice(start, min(start + block, rows))
                operand = _rows_of(x[:, part], take_wide(scratch), take_rows(scratch), offset)
                for group, matrix in enumerate(weights):
                    left = operand[:, group * what.depth : (group + 1) * what.depth]
                    spread = take_spread(scratch)[: len(left) * matrix.shape[1]].reshape(len(left), -1)
                    np.matmul(left, matrix, out=spread)
                    parts = spread.reshape(part.stop - start, columns, *what.kernel, what.filters)
                    target = places[:, :, group * what.filters : (group + 1) * what.filters]
                    for combination in taps:
                        _add(parts, combination, part, target)
            sums = total
            if result != computed:
                sums = take_rounded(scratch)
                convert(sums, total)
            from_rows(sums, y.reshape(out_blocks, space, out_lanes))

    size = what.depth * what.filters * what.taps * block * columns
    return Kernel("conv-blocks-transposed", run, layout.size, product_size=size)


def _rows_of(part: Array, wide: Array, rows: Array, offset: int) -> Array:
    """Return [blocks, h, w, lanes] as rows [positions, channels], in the type of ``rows``."""
    blocks, lanes = part.shape[0], part.shape[-1]
    if part.dtype != rows.dtype:
        staged = wide[: part.size].reshape(part.shape)
        np.subtract(part, offset, out=staged, dtype=rows.dtype) if offset else convert(staged, part)
        part = staged
    positions = part.size // (blocks * lanes)
    found = rows[:positions]
    to_rows(part.reshape(blocks, positions, lanes), found)
    return found


def _add(parts: Array, taps: Sequence[Tap], rows: slice, target: Array) -> None:
    """Add what one tap spread from the input rows ``rows`` to the positions that it meets."""
    first, second = taps
    start, stop = max(first.windows.start, rows.start), min(first.windows.stop, rows.stop)
    if start >= stop:
        return
    step = first.elements.step
    begin = first.elements.start + (start - first.windows.start) * step
    elements = slice(begin, begin + (stop - start - 1) * step + 1, step)
    source = parts[start - rows.start : stop - rows.start, second.windows, first.index, second.index]
    reached = target[elements, second.elements]
    np.add(reached, source, out=reached)
