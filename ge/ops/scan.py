"""Scan outputs: tensors that a loop collects, one per turn, outside the arena. These operators are ours.

    handle = XScanBuffer()              before the loop
    handle = XScanAppend(handle, value) in its body
    y = XScanStack(handle)              behind it: all values along a new axis

A handle is a scalar of type VARIANT; at run time it is a :class:`ScanBuffer`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ge.graph.tensor_desc import Shape
from ge.graph.types import DataType, numpy_dtype
from ge.ops.inference import axis_in_rank
from ge.ops.registry import Array, Attributes, InferContext, Misfit, OutputSpec, operator

_FIRST_CAPACITY = 4


class ScanBuffer:
    """Values of one shape and type, in the order in which they were appended. Appending leaves the buffer as it is.

    Buffers that grow out of each other share memory: a buffer is the first ``length`` rows of it.
    """

    def __init__(self) -> None:
        self.length = 0
        self._rows: Array = np.empty(0)
        self._filled = [0]
        """Rows in use by any buffer that shares the memory."""

    def append(self, value: Array) -> ScanBuffer:
        """Return this buffer with a copy of ``value`` behind it. Raises ``Misfit`` for another shape or type."""
        if self.length and (value.shape != self._rows.shape[1:] or value.dtype != self._rows.dtype):
            known = f"{self._rows.dtype}{list(self._rows.shape[1:])}"
            raise Misfit(f"turn {self.length} gives {value.dtype}{list(value.shape)}, earlier ones gave {known}")
        grown = ScanBuffer()
        grown._rows, grown._filled, grown.length = self._rows, self._filled, self.length + 1
        if self.length == 0 or self._filled[0] != self.length or self.length == len(self._rows):
            capacity = max(2 * self.length, _FIRST_CAPACITY)
            grown._rows = np.empty((capacity, *value.shape), value.dtype)
            grown._rows[: self.length] = self._rows[: self.length] if self.length else 0
            grown._filled = [self.length]
        grown._rows[self.length] = value
        grown._filled[0] = grown.length
        return grown

    def rows(self) -> Array:
        """Return a read-only view of the values along axis 0. There must be at least one."""
        found = self._rows[: self.length]
        found.flags.writeable = False
        return found


def _handle(ctx: InferContext) -> Sequence[OutputSpec]:
    return [((), DataType.DT_VARIANT)]


def _appended(ctx: InferContext) -> Sequence[OutputSpec]:
    if ctx.dtype("handle") is not DataType.DT_VARIANT:
        raise ctx.fail("input handle is no scan buffer")
    return _handle(ctx)


def _stacked(ctx: InferContext) -> Sequence[OutputSpec]:
    _appended(ctx)
    shape, dtype = Shape(ctx.op.shape), DataType(ctx.op.dtype)
    if shape.is_unknown_rank():
        return [(shape, dtype)]
    axis = axis_in_rank(ctx.op.axis, len(shape) + 1)
    return [((*shape[:axis], ctx.op.count, *shape[axis:]), dtype)]


@operator("XScanBuffer() -> handle", infer=_handle, exact_types=True)
def scan_buffer(op: Attributes) -> Any:
    return ScanBuffer()


@operator("XScanAppend(handle, value) -> handle", infer=_appended, exact_types=True)
def scan_append(op: Attributes, handle: ScanBuffer, value: Array) -> Any:
    return handle.append(value)


@operator("XScanStack(handle) [dtype:t! shape:I! count:i=-1 axis:i=0 reverse:b=F]", infer=_stacked, exact_types=True)
def scan_stack(op: Attributes, handle: ScanBuffer) -> Array:
    """``shape`` (-1: not known, [-2]: not even the rank) and ``dtype`` describe one value, ``count`` is their number.

    With ``reverse`` the last value comes first. Of no values the result is empty, and what is not known is 0.
    """
    if handle.length:
        rows = handle.rows()
    else:
        known = Shape(op.shape)
        dims = () if known.is_unknown_rank() else tuple(max(d, 0) for d in known)
        rows = np.empty((0, *dims), numpy_dtype(DataType(op.dtype)))
    return np.moveaxis(rows[::-1] if op.reverse else rows, 0, axis_in_rank(op.axis, rows.ndim))
