"""Convolutions in NC1HWC0 with constant filters, bound to compiled code.

Filters are packed, and the bias padded, once when a model is loaded. Data with padding around them, and narrow floats,
are first copied to float32 rows in scratch, padding included; all others are read where they lie.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from ge.graph import Format, TensorDesc
from ge.ops.conv import conv_windows
from ge.ops.window import Window
from simulator.codegen.conv import ConvCode, Word
from simulator.codegen.elementwise_kernels import FLOAT_ELEMENTS, element_of
from simulator.codegen.emission import ELEMENTS, LANES
from simulator.codegen.engine import Engine
from simulator.codegen.host import Host
from simulator.codegen.jobs import Job, address_of, compiled_kernel, job
from simulator.codegen.padding import PadCode
from simulator.kernels.registry import Array, Inputs, Kernel, KernelRequest, Outputs, ScratchLayout
from simulator.kernels.storage.filters import StoredFilter
from simulator.kernels.storage.layout import channels, is_image

TYPES = ("Conv2D", "Conv2DV2", "DepthwiseConv2D")
MAX_PADDED = 4
"""Most that the padding may make of the data; more is left to kernels that clip their windows."""
MIN_STRIP_WORK = 4000
"""Vector operations that a task should have."""


@dataclass(frozen=True)
class Shape:
    """A convolution: samples, channels and filters per group, groups, windows over rows and columns, element types."""

    batch: int
    depth: int
    filters: int
    groups: int
    rows: Window
    columns: Window
    source: str
    result: str

    @property
    def blocks(self) -> int:
        """Blocks of channels per group."""
        return -(-self.depth // LANES)

    @property
    def output_blocks(self) -> int:
        """Blocks of filters of all groups."""
        return -(-self.filters * self.groups // LANES)

    @property
    def x_blocks(self) -> int:
        """Blocks of channels of all groups."""
        return -(-self.depth * self.groups // LANES)

    @property
    def is_lane_grouped(self) -> bool:
        """Tell whether groups are as many filters as channels, so few that a block holds whole groups."""
        return self.groups > 1 and self.depth == self.filters and self.depth < LANES and LANES % self.depth == 0

    @property
    def is_padded(self) -> bool:
        """Tell whether windows reach beyond the data."""
        return any(w.before or w.reach > w.size + w.before for w in (self.rows, self.columns))

    @property
    def padded(self) -> tuple[int, int]:
        """Rows and columns with the padding."""
        height, width = (max(w.size + w.before, w.reach) for w in (self.rows, self.columns))
        return height, width


@dataclass(frozen=True)
class Part:
    """Filters that are summed by one function: ``count`` groups of ``filter_blocks`` blocks from ``first`` on."""

    first: int
    filter_blocks: int
    count: int
    columns: int


def build_conv(request: KernelRequest, engine: Engine) -> Kernel | None:
    """Bind a convolution whose groups are whole blocks of channels."""
    found = convolution(request, engine.host)
    if found is None:
        return None
    shape, stored = found
    if shape.is_lane_grouped:
        return _by_lanes(request, engine, shape, stored)
    if shape.groups > 1 and (shape.depth % LANES or shape.filters % LANES):
        return None
    shape = _flat(shape)
    parts = parts_of(shape, engine.host)
    lanes = shape.depth if shape.blocks == 1 and shape.groups == 1 else LANES
    packed = packed_filters(request, stored, shape, parts, lanes)
    bias, mask = bias_and_mask(request, shape)
    has_tail = bool(shape.filters * shape.groups % LANES)
    addresses = [
        engine.address(ConvCode(p.filter_blocks, p.columns, shape.columns.stride, lanes, shape.result, has_tail))
        for p in parts
    ]
    layout = ScratchLayout()
    staging = Staging.of(shape, layout, engine)

    def bind(inputs: Inputs, outputs: Outputs, scratch: Array) -> Sequence[Job]:
        jobs, x, x_dims = staging.jobs(inputs[0], scratch)
        for part, address, weights in zip(parts, addresses, packed, strict=True):
            words = _words(shape, part, x_dims, is_x_larger=prod(x_dims) > weights.size // max(part.count, 1))
            words[Word.X], words[Word.WEIGHTS] = x, address_of(weights)
            words[Word.BIAS] = address_of(bias) + part.first * LANES * 4
            words[Word.MASK] = address_of(mask) + part.first * LANES * 4
            words[Word.Y] = address_of(outputs[0]) + part.first * words[Word.Y_BLOCK]
            tasks = part.count * words[Word.PARTS]
            taps = shape.rows.kernel * shape.columns.kernel
            work = part.count * part.filter_blocks * shape.rows.count * shape.columns.count * shape.batch
            jobs.append(job(address, [words[word] for word in Word], tasks, work * taps * shape.blocks * lanes))
        return jobs

    return compiled_kernel("conv", bind, layout.size)


def _by_lanes(request: KernelRequest, engine: Engine, shape: Shape, stored: StoredFilter) -> Kernel:
    """Bind a convolution of small groups, depthwise ones among them: every block of channels by itself."""
    tiles = -(-shape.columns.count // tile_columns(engine.host, 1))
    columns = -(-shape.columns.count // tiles)
    has_tail = bool(shape.filters * shape.groups % LANES)
    stride = shape.columns.stride
    code = ConvCode(1, columns, stride, shape.depth, shape.result, has_tail, is_grouped=True)
    address = engine.address(code)
    part = Part(0, 1, shape.output_blocks, columns)
    dims = (shape.output_blocks, *stored.shape[4:6], shape.depth, LANES)

    def fill(weights: Array, matrices: list[Array]) -> None:
        flat = weights.reshape(shape.groups * shape.filters, shape.depth, *stored.shape[4:6])
        whole = np.zeros((shape.output_blocks * LANES, *flat.shape[1:]), flat.dtype)
        whole[: len(flat)] = flat
        split = whole.reshape(shape.output_blocks, LANES, *flat.shape[1:])
        np.copyto(matrices[0], split.transpose(0, 3, 4, 2, 1), casting="unsafe")

    [weights] = stored.reader(request, 1, ScratchLayout(), [dims], fill)(request.constants[1], np.empty(0, np.uint8))
    bias, mask = bias_and_mask(request, shape)
    layout = ScratchLayout()
    staging = Staging.of(shape, layout, engine)
    taps = shape.rows.kernel * shape.columns.kernel

    def bind(inputs: Inputs, outputs: Outputs, scratch: Array) -> Sequence[Job]:
        jobs, x, x_dims = staging.jobs(inputs[0], scratch)
        words = _words(shape, part, x_dims, is_x_larger=False)
        words[Word.X], words[Word.WEIGHTS], words[Word.Y] = x, address_of(weights), address_of(outputs[0])
        words[Word.BIAS], words[Word.MASK] = address_of(bias), address_of(mask)
        words[Word.X_GROUP], words[Word.FILTERS_PER_GROUP], words[Word.BLOCKS] = words[Word.X_BLOCK], 1, 1
        tasks = part.count * words[Word.PARTS]
        work = tasks * columns * words[Word.TILES_PER_STRIP] * taps * shape.depth
        jobs.append(job(address, [words[word] for word in Word], tasks, work))
        return jobs

    return compiled_kernel("conv-by-lanes", bind, layout.size)


def convolution(request: KernelRequest, host: Host) -> tuple[Shape, StoredFilter] | None:
    """Describe a convolution that compiled code can do; ``None`` for others."""
    x, y, weights = request.input(0), request.outputs[0], request.input(1)
    if x is None or weights is None or not (_is_blocked(x) and _is_blocked(y)) or request.input(3) is not None:
        return None
    types = [element_of(desc.data_type, host) for desc in (x, y)]
    if None in types or weights.data_type not in FLOAT_ELEMENTS:
        return None
    if 1 not in request.constants or (request.input(2) is not None and 2 not in request.constants):
        return None
    stored = StoredFilter.of(request, 1, np.dtype(np.float32))
    if stored is None:
        return None
    groups, filters, depth, tap_depth, *taps = stored.shape
    rows, columns = conv_windows(request.op, list(x.shape[2:4]), taps)
    source, result = (str(found) for found in types)
    shape = Shape(x.shape[0], depth, filters, groups, rows, columns, source, result)
    expected_x = (shape.batch, shape.x_blocks, rows.size, columns.size, LANES)
    expected_y = (shape.batch, shape.output_blocks, rows.count, columns.count, LANES)
    if tap_depth != 1 or tuple(x.shape) != expected_x or tuple(y.shape) != expected_y or not prod(expected_x):
        return None
    if (groups * depth, groups * filters) != (channels(x), channels(y)) or not prod(stored.shape):
        return None
    bias = request.constants.get(2)
    if bias is not None and bias.size != groups * filters:
        return None
    height, width = shape.padded
    is_small = height * width <= MAX_PADDED * max(rows.size * columns.size, 1024)
    return (shape, stored) if is_small and columns.stride <= MAX_STRIDE else None


MAX_STRIDE = 64
"""Strides are part of the code."""


def _is_blocked(desc: TensorDesc) -> bool:
    return desc.format is Format.FORMAT_NC1HWC0 and is_image(desc) and len(desc.shape) == 5 and desc.shape[-1] == LANES


def _flat(shape: Shape) -> Shape:
    """Make one row of all positions where every position stands for itself."""
    rows, columns = shape.rows, shape.columns
    if not all(w.kernel == 1 and w.size == w.count and not w.before and not w.after for w in (rows, columns)):
        return shape
    size = rows.count * columns.count
    return Shape(
        shape.batch, shape.depth, shape.filters, shape.groups,
        Window(1, 1, 1, 1, 0, 0, 1), Window(size, 1, 1, 1, 0, 0, size), shape.source, shape.result,
    )  # fmt: skip


# -- tiles -------------------------------------------------------------------------------------------------------------
def parts_of(shape: Shape, host: Host) -> list[Part]:
    """Choose how many blocks of filters and columns are summed in registers at once; a rest of blocks is a part."""
    per_group = shape.output_blocks // shape.groups if shape.groups > 1 else shape.output_blocks
    preferred = 4 if shape.columns.count <= tile_columns(host, 4) else 2
    while preferred > 1 and (not tile_columns(host, preferred) or per_group < preferred):
        preferred //= 2
    while shape.groups > 1 and per_group % preferred:
        preferred //= 2
    parts, first = [], 0
    while first < shape.output_blocks:
        count = (shape.output_blocks - first) // preferred
        if count:
            tiles = -(-shape.columns.count // tile_columns(host, preferred))
            parts.append(Part(first, preferred, count, -(-shape.columns.count // tiles)))
            first += count * preferred
        preferred //= 2
    return parts


def tile_columns(host: Host, filter_blocks: int) -> int:
    """Return how many columns are summed at once for so many blocks of filters; 0 where that is no good.

    A block is one register of 64 bytes, or several narrower ones; then one block of filters is enough: with AVX2, two
    times three columns take twice as long as six, because they need one register more than there is.
    """
    if host.width == 64:
        return {1: 14, 2: 14, 4: 6}[filter_blocks]
    if filter_blocks > 1:
        return 0
    per_block = LANES * 4 // host.width
    return max((host.registers - 2 - per_block) // per_block, 1)


def _words(shape: Shape, part: Part, x_dims: tuple[int, int, int], *, is_x_larger: bool) -> dict[Word, int]:
    """Return the block of a part but for addresses; ``x_dims`` are channel blocks, rows and columns as they lie."""
    rows, columns = shape.rows, shape.columns
    tiles = -(-columns.count // part.columns)
    tile_work = part.columns * part.filter_blocks * shape.blocks * LANES * rows.kernel * columns.kernel
    per_strip = min(max(-(-MIN_STRIP_WORK // tile_work), 1), tiles) if rows.count == 1 else tiles
    strips = -(-tiles // per_strip)
    n_parts = shape.batch * rows.count * strips
    x_blocks, _, width = x_dims
    line, plane = width * LANES * 4, x_dims[1] * width * LANES * 4
    y_block = rows.count * columns.count * LANES * ELEMENTS[shape.result][1]
    per_group = shape.filters // (LANES * part.filter_blocks) if shape.groups > 1 else part.count
    return {
        Word.OUTER_DIVISOR: 1 if is_x_larger else n_parts,
        Word.INNER_DIVISOR: part.count if is_x_larger else 1,
        Word.FILTER_GROUPS: part.count,
        Word.PARTS: n_parts,
        Word.STRIPS: strips,
        Word.ROWS: rows.count,
        Word.COLUMNS: columns.count,
        Word.TILES: tiles,
        Word.TILES_PER_STRIP: per_strip,
        Word.BLOCKS: shape.blocks,
        Word.TAP_ROWS: rows.kernel,
        Word.TAP_COLUMNS: columns.kernel,
        Word.X_SAMPLE: x_blocks * plane,
        Word.X_GROUP: shape.blocks * plane if shape.groups > 1 else 0,
        Word.FILTERS_PER_GROUP: per_group,
        Word.X_BLOCK: plane,
        Word.X_ROW: rows.stride * line,
        Word.X_TAP_ROW: rows.dilation * line,
        Word.X_TAP_COLUMN: columns.dilation * LANES * 4,
        Word.Y_SAMPLE: shape.output_blocks * y_block,
        Word.Y_BLOCK: y_block,
    }


# -- constants ---------------------------------------------------------------------------------------------------------
def packed_filters(
    request: KernelRequest, stored: StoredFilter, shape: Shape, parts: Sequence[Part], lanes: int
) -> list[Array]:
    """Return the weights of every part as [filter groups, channel blocks, rows, columns, channels, blocks, lanes]."""
    taps = stored.shape[4:6]
    dims = [(part.count, shape.blocks, *taps, lanes, part.filter_blocks, LANES) for part in parts]
    given, desc = request.constants[1], request.inputs[1]
    by_blocks = (shape.blocks * prod(taps), shape.output_blocks, LANES, LANES)
    if desc is not None and desc.format is Format.FORMAT_FRACTAL_Z and shape.groups == 1 and given.shape == by_blocks:
        return [_packed_blocks(given, part, shape_of) for part, shape_of in zip(parts, dims, strict=True)]

    def fill(weights: Array, matrices: list[Array]) -> None:
        flat = weights.reshape(shape.groups * shape.filters, shape.depth, *taps)
        for part, matrix in zip(parts, matrices, strict=True):
            _pack(flat[part.first * LANES :][: part.count * part.filter_blocks * LANES], matrix)

    return stored.reader(request, 1, ScratchLayout(), dims, fill)(request.constants[1], np.empty(0, np.uint8))


def _packed_blocks(fractals: Array, part: Part, dims: tuple[int, ...]) -> Array:
    """Pack a filter that lies as [channel blocks x taps, filter blocks, filters, channels]: squares are turned."""
    groups, blocks, height, width, lanes, filter_blocks, _ = dims
    own = fractals[:, part.first :][:, : groups * filter_blocks, :, :lanes]
    split = own.reshape(blocks, height, width, groups, filter_blocks, LANES, lanes)
    found = np.empty(dims, np.float32)
    np.copyto(found, split.transpose(3, 0, 1, 2, 6, 4, 5), casting="unsafe")
    return found


def _pack(weights: Array, matrix: Array) -> None:
    """Write [filters, channels, rows, columns] as ``packed_filters`` says, zeros where there are fewer."""
    groups, blocks, height, width, lanes, filter_blocks, _ = matrix.shape
    filters, depth = groups * filter_blocks * LANES, blocks * lanes
    if weights.shape[:2] != (filters, depth):
        whole = np.zeros((filters, depth, height, width), weights.dtype)
        whole[: len(weights), : weights.shape[1]] = weights
        weights = whole
    split = weights.reshape(groups, filter_blocks, LANES, blocks, lanes, height, width)
    np.copyto(matrix, split.transpose(0, 3, 5, 6, 4, 1, 2), casting="unsafe")


def bias_and_mask(request: KernelRequest, shape: Shape) -> tuple[Array, Array]:
    """Return a bias per output channel, 0 in the padding, and the mask of the channels."""
    filters = shape.filters * shape.groups
    bias, mask = np.zeros(shape.output_blocks * LANES, np.float32), np.zeros(shape.output_blocks * LANES, np.int32)
    mask[:filters] = -1
    given = request.constants.get(2)
    if given is not None:
        bias[:filters] = given.reshape(-1)
    return bias, mask


# -- rows with padding -------------------------------------------------------------------------------------------------
class Staging:
    """Where convolutions read: x as it lies, or float32 rows with padding around them in scratch."""

    def __init__(self, shape: Shape, layout: ScratchLayout, address: int | None) -> None:
        self.shape, self.address = shape, address
        height, width = shape.padded if address is not None else (shape.rows.size, shape.columns.size)
        self.dims = (shape.x_blocks, height, width)
        size = shape.batch * prod(self.dims) * LANES
        self._take = layout.take([size if address is not None else 0], np.float32)

    @classmethod
    def of(cls, shape: Shape, layout: ScratchLayout, engine: Engine) -> Staging:
        """Plan the copy, if one is needed."""
        if not shape.is_padded and shape.source == "f32":
            return cls(shape, layout, None)
        return cls(shape, layout, engine.address(PadCode(shape.source)))

    def jobs(self, x: Array, scratch: Array) -> tuple[list[Job], int, tuple[int, int, int]]:
        """Return the jobs that make it, where it begins, and its blocks, rows and columns."""
        if self.address is None:
            return [], address_of(x), self.dims
        rows, columns = self.shape.rows, self.shape.columns
        target = address_of(self._take(scratch))
        planes = self.shape.batch * self.shape.x_blocks
        _, height, width = self.dims
        words = [address_of(x), target, height, rows.size, columns.size, width, rows.before, columns.before]
        return [job(self.address, words, planes * height, planes * height * width * 2)], target, self.dims
