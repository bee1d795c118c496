"""Convolution of feature maps whose channels lie in blocks (NC1HWC0, NDC1HWC0).

A block of output rows is a product of columns [positions, taps x channels] and the filter [taps x channels, filters].
Behind the channels of a position lie, block by block, those of the next one: the taps along a filter row are one run of
bytes, which is copied as such. Filters of several rows that are long enough multiply the same columns a few lines
further down, once per row. What the product makes is copied to the blocks of its channels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from ge.graph import DataType, Format
from ge.graph.types import numpy_dtype
from ge.ops.conv import conv_windows
from ge.ops.window import Window
from simulator.kernels.registry import Array, Inputs, Kernel, KernelRequest, Outputs, ScratchLayout
from simulator.kernels.storage.depthwise import build_depthwise
from simulator.kernels.storage.filters import StoredFilter
from simulator.kernels.storage.layout import NC1HWC0_FORMATS, channels, is_image, storage_kernel

COLUMN_BYTES = 1 << 20
"""Most bytes of columns, which should still be in the cache when they are multiplied."""
MIN_ROW_DEPTH = 48
"""Shortest filter row (channels times taps) that is worth a product of its own."""
MAX_NARROW_DEPTH = 96
"""Longest filter for which products of one block of filters each, straight to their place, are faster."""
_TRIVIAL = Window(1, 1, 1, 1, 0, 0, 1)


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
        windows if volume else (_TRIVIAL, *windows),  # type: ignore[arg-type]
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
    return _unfolding(work, stored, request)


def compute_dtype(dtype: DataType) -> np.dtype[Any]:
    """Return the type of products and sums: sums of whole numbers are exact in double precision."""
    found = numpy_dtype(dtype)
    if found.kind in "iu":
        return np.dtype(np.float64)
    return found if found.kind == "f" and found.itemsize >= 4 else np.dtype(np.float32)


# -- where operands come from ------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class _Piece:
    """Blocks of channels of x, and lanes of them, that become planes and lanes of a part."""

    planes: slice
    lanes: slice
    blocks: slice
    source_lanes: slice


@dataclass(frozen=True)
class _Part:
    """Channels of one group from ``first`` on that lie alike: ``planes`` times ``lanes`` of them."""

    first: int
    planes: int
    lanes: int
    pieces: tuple[_Piece, ...]

    @property
    def channels(self) -> int:
        return self.planes * self.lanes


def _parts(work: Convolution, group: int) -> list[_Part]:
    """Divide the channels of a group: whole blocks as they lie, others brought together."""
    start, depth, c0 = group * work.depth, work.depth, work.lanes
    if start % c0:
        return [_gathered(start, 0, depth, c0)]
    whole = depth // c0
    found = []
    if whole:
        blocks = slice(start // c0, start // c0 + whole)
        found.append(_Part(0, whole, c0, (_Piece(slice(0, whole), slice(0, c0), blocks, slice(0, c0)),)))
    if depth % c0:
        found.append(_gathered(start + whole * c0, whole * c0, depth % c0, c0))
    return found


def _gathered(start: int, first: int, count: int, c0: int) -> _Part:
    pieces = []
    place = start
    while place < start + count:
        block, lane = divmod(place, c0)
        taken = min(c0 - lane, start + count - place)
        to = place - start
        pieces.append(_Piece(slice(0, 1), slice(to, to + taken), slice(block, block + 1), slice(lane, lane + taken)))
        place += taken
    return _Part(first, 1, count, tuple(pieces))


class _Geometry:
    """Sizes and steps of one convolution."""

    def __init__(self, work: Convolution, is_split: bool) -> None:
        self.work = work
        self.is_split = is_split
        self.deep, self.rows, self.columns = work.windows
        self.parts = [_parts(work, group) for group in range(work.groups)]
        offsets = [divmod(i * self.rows.dilation, self.rows.stride) for i in range(self.rows.kernel)]
        extras: dict[int, int] = {}
        for line, remainder in offsets:
            extras[remainder] = max(extras.get(remainder, 0), line)
        self.offsets = offsets
        self.phases = list(extras.items()) if is_split else [(0, 0)]
        """Input rows congruent modulo the stride, and how many of them are needed beyond one per output row."""

    @cached_property
    def is_staged(self) -> bool:
        """Whether x must be padded, widened or gathered before it is unfolded."""
        work = self.work
        is_padded = any(w.before or w.after or w.reach > w.size for w in work.windows)
        is_gathered = any(part.lanes != work.lanes for parts in self.parts for part in parts)
        return work.computed != work.dtype or is_padded or is_gathered or self.deep.kernel > 1

    @cached_property
    def width(self) -> int:
        """Columns of the staged input."""
        w = self.columns
        return max(w.size + w.before + w.after, w.reach) if self.is_staged else w.size

    @cached_property
    def product_depth(self) -> int:
        """Elements of a row of columns, of one group."""
        taps = self.deep.kernel * self.columns.kernel * (1 if self.is_split else self.rows.kernel)
        return self.work.depth * taps

    def lines(self, rows: int) -> int:
        """Lines of columns for a block of output rows."""
        return sum(rows + extra for _, extra in self.phases) if self.is_split else rows

    def input_rows(self, rows: int) -> int:
        """Padded input rows that a block of output rows reads."""
        return (rows - 1) * self.rows.stride + self.rows.extent

    def block(self) -> int:
        """Return the output rows per block: as many as fit, in blocks of nearly equal size."""
        count = rows = self.rows.count
        line = self.columns.count * self.product_depth * self.work.groups * self.work.computed.itemsize
        while rows > 1 and self.lines(rows) * line > COLUMN_BYTES:
            rows = max(rows * 3 // 4, 1)
        return -(-count // -(-count // rows))

    def products(self, rows: int) -> list[int]:
        """Return the first row of columns of the operand of every product."""
        if not self.is_split:
            return [0]
        starts, line = {}, 0
        for remainder, extra in self.phases:
            starts[remainder] = line
            line += rows + extra
        return [(starts[remainder] + offset) * self.columns.count for offset, remainder in self.offsets]

    def staged_size(self, rows: int) -> int:
        """Elements of the staged input of a block."""
        planes = sum(part.channels for parts in self.parts for part in parts) * self.deep.kernel
        return planes * self.input_rows(rows) * self.width * self.is_staged


def _stage(how: _Geometry, x: Array, first: int, depth: int, rows: int, staged: Array) -> list[list[Array]]:
    """Copy padded input rows from ``first`` on of ``x`` [d, blocks, h, w, lanes] to [planes, rows, w, lanes]."""
    window, columns, needed = how.rows, how.columns, how.input_rows(rows)
    staged.fill(0)
    start = max(window.before - first, 0)
    stop = min(window.before - first + window.size, needed)
    inside = slice(columns.before, columns.before + columns.size)
    place, found = 0, []
    for parts in how.parts:
        own = []
        for part in parts:
            shape = (how.deep.kernel, part.planes, needed, how.width, part.lanes)
            buffer = staged[place : place + prod(shape)].reshape(shape)
            place += buffer.size
            own.append(buffer.reshape(-1, *shape[2:]))
            for tap in range(how.deep.kernel):
                at = depth * how.deep.stride + tap * how.deep.dilation - how.deep.before
                if not 0 <= at < how.deep.size or start >= stop:
                    continue
                lines = slice(start + first - window.before, stop + first - window.before)
                for piece in part.pieces:
                    target = buffer[tap, piece.planes, start:stop, inside, piece.lanes]
                    source = x[at, piece.blocks, lines, :, piece.source_lanes]
                    if how.work.offset:
                        np.subtract(source, how.work.offset, out=target, dtype=how.work.computed)
                    else:
                        np.copyto(target, source, casting="unsafe")
        found.append(own)
    return found


def _runs(base: Array, start: int, shape: Sequence[int], steps: Sequence[int], length: int) -> Array:
    """Show runs of ``length`` elements of a contiguous array as items; steps are elements."""
    item, memory = base.itemsize, base.reshape(-1).view(np.uint8)
    return np.ndarray(shape, np.dtype((np.void, length * item)), memory, start * item, [s * item for s in steps])


def _unfold(how: _Geometry, sources: Sequence[Array], first: int, rows: int, columns: Array) -> None:
    """Fill ``columns`` [positions, depth] of one group from its parts; row ``first`` is the first input row."""
    depth, count, taps = how.product_depth, how.columns.count, how.columns.kernel
    is_run = how.columns.dilation == 1
    place = 0
    for source in sources:
        planes, height, width, lanes = source.shape
        plane, line_step = height * width * lanes, width * lanes
        length = taps * lanes if is_run else lanes
        tap_rows = [1, 0, 0] if how.is_split else [how.rows.kernel, how.rows.dilation * line_step, taps * lanes]
        line = 0
        for remainder, extra in how.phases:
            lines = rows + extra if how.is_split else rows
            shape = [lines, count, planes, tap_rows[0]]
            source_steps = [how.rows.stride * line_step, how.columns.stride * lanes, plane, tap_rows[1]]
            target_steps = [count * depth, depth, tap_rows[0] * taps * lanes, tap_rows[2]]
            for tap in range(1 if is_run else taps):
                start = (first + remainder) * line_step + tap * how.columns.dilation * lanes
                target = _runs(columns, line * count * depth + place + tap * lanes, shape, target_steps, length)
                np.copyto(target, _runs(source, start, shape, source_steps, length))
            line += lines
        place += planes * tap_rows[0] * taps * lanes


# -- the product -------------------------------------------------------------------------------------------------------
def _fill(how: _Geometry, output_lanes: int) -> Callable[[Array, list[Array]], None]:
    """Return what writes a filter into matrices [depth, filters], group by group and row by row (if split)."""
    n_rows = how.rows.kernel if how.is_split else 1

    def fill(filter: Array, matrices: list[Array]) -> None:
        for group, parts in enumerate(how.parts):
            for row in range(n_rows):
                place, matrix = 0, matrices[group * n_rows + row]
                for part in parts:
                    own = filter[group, :, part.first : part.first + part.channels]
                    if how.is_split:
                        own = own[:, :, :, row : row + 1]
                    split = own.reshape(own.shape[0], part.planes, part.lanes, *own.shape[2:])
                    turned = split.transpose(3, 1, 4, 5, 2, 0)
                    size = prod(turned.shape[:-1])
                    np.copyto(matrix[place : place + size].reshape(turned.shape), turned, casting="unsafe")
                    place += size

    return fill


def _unfolding(work: Convolution, stored: StoredFilter, request: KernelRequest) -> Kernel:
    row_depth = work.depth * work.windows[0].kernel * work.windows[2].kernel
    work = _flat(work)
    how = _Geometry(work, work.windows[1].kernel > 1 and row_depth >= MIN_ROW_DEPTH)
    n_products = len(how.products(1))
    block, plane = how.block(), how.columns.count
    layout = ScratchLayout()
    take_columns = layout.take([work.groups, how.lines(block) * plane * how.product_depth], work.computed)
    take_staged = layout.take([how.staged_size(block)], work.computed)
    store = _Store(work, block * plane, layout, is_split=how.is_split)
    shapes = [(how.product_depth, work.filters)] * (work.groups * n_products)
    weights_of = stored.reader(request, 1, layout, shapes, _fill(how, work.output_lanes))
    blocks = [(r, min(block, how.rows.count - r)) for r in range(0, how.rows.count, block)]
    is_bare = _needs_no_columns(how)

    def run(inputs: Inputs, outputs: Outputs, scratch: Array) -> None:
        x, y = inputs[0].reshape(_block_shape(work, False)), outputs[0].reshape(_block_shape(work, True))
        weights = weights_of(inputs[1], scratch)
        columns, staged = take_columns(scratch), take_staged(scratch)
        place = store.begin(inputs[2] if len(inputs) > 2 else None, scratch)
        for sample in range(work.batch):
            for depth in range(how.deep.count):
                for row, rows in blocks:
                    first, positions = row * how.rows.stride, rows * plane
                    if how.is_staged:
                        needed = staged[: how.staged_size(rows)]
                        sources, first = _stage(how, x[sample], first, depth, rows, needed), 0
                    else:
                        at = x[sample, depth * how.deep.stride]
                        sources = [[at[p.pieces[0].blocks] for p in parts] for parts in how.parts]
                    starts = how.products(rows)
                    for group, parts in enumerate(sources):
                        if is_bare:
                            operand = parts[0][0].reshape(-1, work.lanes)[first * plane :]
                        else:
                            size = how.lines(rows) * plane
                            operand = columns[group, : size * how.product_depth].reshape(size, how.product_depth)
                            _unfold(how, parts, first, rows, operand)
                        own = weights[group * n_products : (group + 1) * n_products]
                        operands = [operand[start : start + positions] for start in starts]
                        place.multiply(group, operands, own)
                    place.finish(y[sample, depth], row * plane, positions)

    size = how.product_depth * work.filters * block * plane
    name = "conv-blocks-rows" if how.is_split else "conv-blocks"
    return Kernel(name, run, layout.size, product_size=size)


def _flat(work: Convolution) -> Convolution:
    """Make one row of all positions where every position stands for itself."""
    deep, rows, columns = work.windows
    if not all(w.kernel == w.stride == 1 and not w.before and not w.after for w in (rows, columns)):
        return work
    size = rows.count * columns.count
    line = Window(size, 1, 1, 1, 0, 0, size)
    return Convolution(**{**work.__dict__, "windows": (deep, line, _TRIVIAL)})


def _needs_no_columns(how: _Geometry) -> bool:
    """Tell whether one block of channels of x is the columns."""
    is_pointwise = all(w.kernel == w.stride == 1 for w in how.work.windows)
    return is_pointwise and not how.is_staged and how.work.depth == how.work.lanes


def _block_shape(work: Convolution, is_output: bool) -> tuple[int, ...]:
    lanes, extent = (work.output_lanes, work.outputs) if is_output else (work.lanes, work.channels)
    deep, *space = [w.count if is_output else w.size for w in work.windows]
    return (work.batch, deep, -(-extent // lanes), *space, lanes)


class _Store:
    """Takes products [positions, filters] and writes them to blocks of filters, bias added, rounded once."""

    def __init__(self, work: Convolution, positions: int, layout: ScratchLayout, *, is_split: bool) -> None:
        self.work = work
        self.blocks = -(-work.outputs // work.output_lanes)
        padded = self.blocks * work.output_lanes
        self.is_rounded = work.computed != work.output_dtype
        self.sums = layout.take([positions, padded], work.computed)
        self.terms = layout.take([positions, work.filters][: None if is_split else 0] or [0], work.computed)
        self.rounded = layout.take([positions, padded] if self.is_rounded else [0], work.output_dtype)

    def begin(self, bias: Array | None, scratch: Array) -> _Sums:
        """Return what collects the products of a run."""
        sums = self.sums(scratch)
        sums[:, self.work.outputs :] = 0
        addend = None if bias is None else bias.astype(self.work.computed, copy=False).reshape(-1)
        return _Sums(self, sums, self.terms(scratch), self.rounded(scratch), addend)


@dataclass(frozen=True)
class _Sums:
    """The products of one run, a block of positions at a time."""

    store: _Store
    sums: Array
    terms: Array
    rounded: Array
    bias: Array | None

    def multiply(self, group: int, operands: Sequence[Array], weights: Sequence[Array]) -> None:
        """Sum the products of one group."""
        count, filters = len(operands[0]), self.store.work.filters
        result = self.sums[:count, group * filters : (group + 1) * filters]
        np.matmul(operands[0], weights[0], out=result)
        for operand, matrix in zip(operands[1:], weights[1:], strict=True):
            term = self.terms[:count]
            np.matmul(operand, matrix, out=term)
            np.add(result, term, out=result)

    def finish(self, y: Array, first: int, count: int) -> None:
        """Write ``count`` positions of ``y`` [blocks, h, w, lanes] from ``first`` on."""
        work, blocks = self.store.work, self.store.blocks
        sums = self.sums[:count]
        if self.bias is not None:
            known = sums[:, : work.outputs]
            np.add(known, self.bias, out=known)
        if self.store.is_rounded:
            np.copyto(self.rounded[:count], sums, casting="unsafe")
            sums = self.rounded[:count]
        lanes = work.output_lanes
        width = blocks * lanes
        source = _runs(sums, 0, [blocks, count], [lanes, width], lanes)
        step = prod(y.shape[1:])
        np.copyto(_runs(y, first * lanes, [blocks, count], [step, lanes], lanes), source)
