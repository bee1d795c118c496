"""Matrix products of operands in FRACTAL_NZ: rows are brought together from the blocks a few at a time.

A matrix [I, J] lies as [J / C0, I, C0]: what is copied to a row are runs of C0 elements. The second operand is brought
together as a whole, once when it is loaded if it is constant. Rows and columns of padding take no part.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ge.graph import DataType, Format, TensorDesc
from ge.graph.types import numpy_dtype
from ge.ops.format_columns_selectors import MATRIX_PRODUCTS
from simulator.kernels.halves import convert
from simulator.kernels.registry import Array, Inputs, Kernel, KernelRequest, Outputs, ScratchLayout
from simulator.kernels.storage.layout import from_rows, storage_kernel, to_rows

BLOCK_ELEMENTS = 1 << 18
"""Most elements of rows of the first operand or the result, unless one row alone has more."""
_BYTES = (DataType.DT_INT8, DataType.DT_UINT8)


@dataclass(frozen=True)
class _Matrix:
    """Matrices in FRACTAL_NZ: [batch..., column blocks, rows of all blocks, lanes]."""

    batch: tuple[int, ...]
    rows: int
    columns: int
    blocks: int
    stored_rows: int
    lanes: int
    dtype: np.dtype[Any]

    @classmethod
    def of(cls, desc: TensorDesc | None) -> _Matrix | None:
        if desc is None or desc.format is not Format.FORMAT_FRACTAL_NZ or len(desc.origin_shape) < 2:
            return None
        *batch, rows, columns = desc.origin_shape
        *_, blocks, outer, inner, lanes = desc.shape
        return cls(tuple(batch), rows, columns, blocks, outer * inner, lanes, numpy_dtype(desc.data_type))

    def view(self, array: Array) -> Array:
        return array.reshape(*self.batch, self.blocks, self.stored_rows, self.lanes)

    @property
    def width(self) -> int:
        """Columns with padding."""
        return self.blocks * self.lanes

    def pick(self, batch: tuple[int, ...]) -> tuple[int, ...]:
        """Return the index of the matrix that takes part in the result ``batch``."""
        own = batch[len(batch) - len(self.batch) :]
        return tuple(0 if dim == 1 else i for dim, i in zip(self.batch, own, strict=True))


class _Gatherer:
    """Brings rows of one operand together, in the type of the product."""

    def __init__(self, matrix: _Matrix, rows: int, blocks: int, computed: np.dtype[Any], layout: ScratchLayout) -> None:
        self.computed = computed
        self.is_widened = computed != matrix.dtype
        self.lanes = matrix.lanes
        self._wide = layout.take([blocks * rows * matrix.lanes * self.is_widened], computed)
        self._rows = layout.take([rows * blocks * matrix.lanes], computed)

    def gather(self, part: Array, scratch: Array) -> Array:
        """Return [blocks, rows, lanes] as rows [rows, blocks x lanes]."""
        if self.is_widened:
            wide = self._wide(scratch)[: part.size].reshape(part.shape)
            convert(wide, part)
            part = wide
        rows = self._rows(scratch)[: part.size].reshape(part.shape[1], -1)
        to_rows(part, rows)
        return rows


@storage_kernel(*MATRIX_PRODUCTS, formats=(Format.FORMAT_FRACTAL_NZ,))
def build_matmul(request: KernelRequest) -> Kernel | None:
    """Bind ``x1 @ x2 + bias``, either operand transposed if wanted, batch axes broadcast."""
    first, second, result = (_Matrix.of(d) for d in (request.input(0), request.input(1), request.outputs[0]))
    if first is None or second is None or result is None or request.input(3) is not None:
        return None
    prefix = "adj" if request.type.startswith("Batch") else "transpose"
    swaps = [bool(getattr(request.op, f"{prefix}_{name}")) for name in ("x1", "x2")]
    return _Product(request, first, second, result, swaps).kernel()


def _compute_dtype(dtype: DataType) -> np.dtype[Any]:
    """Return the type of products and sums. Bytes are exact in double precision, wider whole numbers wrap."""
    found = numpy_dtype(dtype)
    if found.kind in "iu":
        return np.dtype(np.float64 if dtype in _BYTES else np.int64)
    return found if found.itemsize >= 4 else np.dtype(np.float32)


class _Product:
    """One product, tile of rows by tile of rows."""

    def __init__(
        self, request: KernelRequest, first: _Matrix, second: _Matrix, result: _Matrix, swaps: list[bool]
    ) -> None:
        self.first, self.second, self.result = first, second, result
        self.is_turned, self.is_second_turned = swaps
        self.computed = _compute_dtype(request.dtype(0))
        self.offset = getattr(request.op, "offset_x", 0) if self.first.dtype.kind in "iu" else 0
        self.depth = first.rows if self.is_turned else first.columns
        # a transposed operand is cut block by block, of columns
        rows = max(BLOCK_ELEMENTS // max(self.depth, result.width), 1)
        self.step = max(rows // first.lanes, 1) * first.lanes if self.is_turned else min(rows, result.rows)
        self.layout = ScratchLayout()
        if self.is_turned:
            blocks = min(self.step // first.lanes, first.blocks)
            self.left = _Gatherer(first, first.rows, blocks, self.computed, self.layout)
        else:
            self.left = _Gatherer(first, self.step, first.blocks, self.computed, self.layout)
        self.sums = self.layout.take([min(self.step, result.stored_rows), result.width], self.computed)
        self.is_rounded = result.dtype != self.computed
        rounded = [min(self.step, result.stored_rows), result.width] if self.is_rounded else [0]
        self.rounded = self.layout.take(rounded, result.dtype)
        self.right = self._right(request)

    def _right(self, request: KernelRequest) -> Callable[[Array, tuple[int, ...], Array], Array]:
        """Return how to get the second operand [depth, columns] of a batch."""
        matrix = self.second
        constant = request.constants.get(1)

        def turned(rows: Array) -> Array:
            return rows.swapaxes(-1, -2) if self.is_second_turned else rows

        if constant is not None:
            stored = matrix.view(constant)
            known = np.empty((*matrix.batch, matrix.rows, matrix.width), self.computed)
            for index in np.ndindex(*matrix.batch):
                part = stored[index][:, : matrix.rows]
                np.copyto(known[index].reshape(matrix.rows, matrix.blocks, -1), part.swapaxes(0, 1), casting="unsafe")
            found = turned(known[..., : matrix.columns])
            return lambda given, batch, scratch: found[matrix.pick(batch)]
        gatherer = _Gatherer(matrix, matrix.rows, matrix.blocks, self.computed, self.layout)

        def gather(given: Array, batch: tuple[int, ...], scratch: Array) -> Array:
            part = matrix.view(given)[matrix.pick(batch)][:, : matrix.rows]
            return turned(gatherer.gather(part, scratch)[:, : matrix.columns])

        return gather

    def _left(self, stored: Array, start: int, stop: int, scratch: Array) -> Array:
        """Return the rows ``start`` to ``stop`` of the first operand [rows, depth]."""
        if self.is_turned:
            lanes = self.first.lanes
            part = stored[start // lanes : -(-stop // lanes), : self.first.rows]
            return self.left.gather(part, scratch)[:, : stop - start].swapaxes(0, 1)
        return self.left.gather(stored[:, start:stop], scratch)[:, : self.depth]

    def kernel(self) -> Kernel:
        """Bind the product."""
        result, first = self.result, self.first
        batches = list(np.ndindex(*result.batch))
        y_shape = (*result.batch, result.rows, result.columns)

        def run(inputs: Inputs, outputs: Outputs, scratch: Array) -> None:
            x1, y = first.view(inputs[0]), result.view(outputs[0])
            bias = np.broadcast_to(inputs[2], y_shape) if len(inputs) > 2 and inputs[2] is not None else None
            sums, rounded = self.sums(scratch), self.rounded(scratch)
            sums[:, result.columns :] = 0
            right, last = None, None
            for batch in batches:
                if right is None or self.second.pick(batch) != last:
                    right, last = self.right(inputs[1], batch, scratch), self.second.pick(batch)
                for start in range(0, result.rows, self.step):
                    stop = min(start + self.step, result.rows)
                    left = self._left(x1[first.pick(batch)], start, stop, scratch)
                    if self.offset:
                        np.subtract(left, self.offset, out=left)
                    tile = sums[: stop - start]
                    known = tile[:, : result.columns]
                    np.matmul(left, right, out=known)
                    if bias is not None:
                        np.add(known, bias[batch][start:stop], out=known, casting="unsafe")
                    if self.is_rounded:
                        convert(rounded[: stop - start], tile)
                        tile = rounded[: stop - start]
                    from_rows(tile, y[batch][:, start:stop])
            y[..., result.rows :, :] = 0

        size = min(self.step, result.rows) * self.depth * result.columns
        return Kernel("matmul-blocks", run, self.layout.size, product_size=size)
