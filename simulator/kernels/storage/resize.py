"""Resampling of feature maps whose channels lie in blocks: rows are picked whole, columns as blocks of lanes."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from ge.formats import AXES
from ge.graph import Format, TensorDesc
from ge.graph.types import numpy_dtype
from ge.ops.resize import Taps, image_taps, resize_taps
from simulator.kernels.halves import convert
from simulator.kernels.registry import Array, Inputs, Kernel, KernelRequest, Outputs, ScratchLayout
from simulator.kernels.storage.layout import is_image, storage_kernel

BLOCK_BYTES = 1 << 18
"""Most bytes of results per block of planes, unless one plane alone has more."""


@dataclass(frozen=True)
class _Axis:
    """One spatial axis: what every position reads, tap by tap, and by which weights (none: plain copies)."""

    indices: tuple[Array, ...]
    weights: tuple[Array, ...]
    out: int


@storage_kernel("Resize", "ResizeNearestNeighborV2", "ResizeBilinearV2", formats=(Format.FORMAT_NC1HWC0,))
def build_resize(request: KernelRequest) -> Kernel | None:
    """Bind a resampling of height and width by constant sizes."""
    x, y = request.inputs[0], request.outputs[0]
    if not is_image(x) or not is_image(y) or x is None or x.format is not y.format or x.shape[-1] != y.shape[-1]:
        return None
    found = _taps(request, x)
    letters = AXES[x.origin_format]
    if found is None or any(letters[axis] not in "HW" or taps.is_outside is not None for axis, taps in found):
        return None
    by_letter = {letters[axis]: taps for axis, taps in found}
    is_picked = all(taps.weights is None for taps in by_letter.values())
    own, result = numpy_dtype(x.data_type), numpy_dtype(y.data_type)
    is_narrow = own.kind != "f" or own.itemsize < 4
    dtype = own if is_picked else np.dtype(np.float32) if is_narrow else own
    height = _axis(by_letter.get("H"), dtype, 1)
    width = _axis(by_letter.get("W"), dtype, x.shape[-1])
    if (height.out if height else x.shape[2], width.out if width else x.shape[3]) != tuple(y.shape[2:4]):
        return None
    return _Resampling(x, y, height, width, dtype, result).kernel()


def _taps(request: KernelRequest, x: TensorDesc) -> list[tuple[int, Taps]] | None:
    """Return the axes of the origin that are resampled; ``None`` where inputs that say so are not constant."""
    op, shape = request.op, x.origin_shape
    given = [request.constants.get(slot) if request.input(slot) is not None else None for slot in range(1, 4)]
    if any(value is None and request.input(slot) is not None for slot, value in enumerate(given, start=1)):
        return None
    if request.type == "Resize":
        return resize_taps(op, shape, *given)
    size = given[0]
    if size is None or sorted(op.get("_x_data_format", "NCHW")) != sorted(AXES[x.origin_format]):
        return None
    return image_taps(op, shape, size, is_nearest=request.type == "ResizeNearestNeighborV2")


def _axis(taps: Taps | None, dtype: np.dtype[Any], lanes: int) -> _Axis | None:
    if taps is None:
        return None
    indices = tuple(np.ascontiguousarray(column, np.intp) for column in taps.indices.T)
    if taps.weights is None:
        return _Axis(indices, (), len(taps.indices))
    weights = tuple(np.repeat(column.astype(dtype), lanes) for column in taps.weights.T)
    return _Axis(indices, weights, len(taps.indices))


class _Resampling:
    """Height first, then width, a few planes [h, w, lanes] at a time."""

    def __init__(
        self,
        x: TensorDesc,
        y: TensorDesc,
        height: _Axis | None,
        width: _Axis | None,
        dtype: np.dtype[Any],
        result: np.dtype[Any],
    ) -> None:
        self.planes, self.lanes = x.shape[0] * x.shape[1], x.shape[-1]
        self.before, self.after = x.shape[2:4], y.shape[2:4]
        self.height, self.width = height, width
        self.dtype, self.result = dtype, result
        self.is_widened = numpy_dtype(x.data_type) != dtype
        largest = max(self.before[0], self.after[0]) * max(self.before[1], self.after[1]) * self.lanes
        self.block = min(max(BLOCK_BYTES // (largest * dtype.itemsize), 1), self.planes)

    def kernel(self) -> Kernel:
        """Bind the steps that are needed."""
        layout = ScratchLayout()
        sizes = {
            "source": (*self.before,),
            "rows": (self.after[0], self.before[1]),
            "result": (*self.after,),
        }
        take = {name: layout.take([self.block, *size, self.lanes], self.dtype) for name, size in sizes.items()}
        largest = max(prod(size) for size in sizes.values())
        take_term = layout.take([self.block * largest * self.lanes], self.dtype)

        def run(inputs: Inputs, outputs: Outputs, scratch: Array) -> None:
            x = inputs[0].reshape(self.planes, *self.before, self.lanes)
            y = outputs[0].reshape(self.planes, *self.after, self.lanes)
            term = take_term(scratch)
            for start in range(0, self.planes, self.block):
                part = slice(start, min(start + self.block, self.planes))
                count = part.stop - start
                source = x[part]
                if self.is_widened:
                    source = take["source"](scratch)[:count]
                    convert(source, x[part])
                if self.height is not None:
                    rows = take["rows"](scratch)[:count]
                    flat = (count, -1, self.before[1] * self.lanes)
                    _resample(source.reshape(flat), self.height, rows.reshape(flat), term, self.height.weights, None)
                    source = rows
                if self.width is not None:
                    columns = take["result"](scratch)[:count]
                    flat = (count * self.after[0], -1, self.lanes)
                    _resample(source.reshape(flat), self.width, columns.reshape(flat), term, (), self.width.weights)
                    source = columns
                if self.result.kind in "iu" and source.dtype.kind == "f":
                    info = np.iinfo(self.result)
                    bounded = term[: source.size].reshape(source.shape)
                    source = np.clip(source, info.min, info.max, out=bounded)
                convert(y[part], source)

        return Kernel("resize-blocks", run, layout.size)


def _resample(
    source: Array, axis: _Axis, result: Array, term: Array, by_row: tuple[Array, ...], along: tuple[Array, ...] | None
) -> None:
    """Mix [n, size, items] into [n, out, items]; weights are ``by_row``, or ``along`` positions and items."""
    shape = result.shape
    for number, indices in enumerate(axis.indices):
        target = term[: result.size].reshape(shape) if number else result
        np.take(source, indices, axis=1, out=target, mode="clip")
        if by_row:
            np.multiply(target, by_row[number][:, np.newaxis], out=target)
        elif along:
            lines = target.reshape(shape[0], -1)
            np.multiply(lines, along[number], out=lines)
        if number:
            np.add(result, target, out=result)
