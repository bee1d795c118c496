"""Conversion of element types, a block at a time where it takes more than numpy's own conversion."""

from __future__ import annotations

from typing import Any

import numpy as np

from ge.graph.types import DataType, numpy_dtype
from ge.ops.cast import CLIP
from simulator.kernels.blocks import compute_dtype, elementwise
from simulator.kernels.halves import convert
from simulator.kernels.math import BOOLS, INTEGERS, NUMBERS
from simulator.kernels.registry import Array, Inputs, Kernel, KernelRequest, Outputs, kernel

_EXACT_IN_SINGLE = frozenset(
    {
        DataType.DT_BOOL,
        DataType.DT_FLOAT,
        DataType.DT_FLOAT16,
        DataType.DT_BF16,
        DataType.DT_INT8,
        DataType.DT_UINT8,
        DataType.DT_INT16,
        DataType.DT_UINT16,
    }
)


@kernel("Cast", "CastLike", dtypes=NUMBERS | BOOLS)
def build_cast(request: KernelRequest) -> Kernel | None:
    """Bind a conversion between bool, integers of whole bytes and floats of at least 16 bits."""
    source, target = request.dtype(), request.outputs[0].data_type
    if target not in NUMBERS | BOOLS or request.attrs.get(CLIP):
        return None
    if target is DataType.DT_BOOL:
        return elementwise("cast-bool", request, lambda x, out: np.not_equal(x, 0, out=out), result=np.dtype(np.bool_))
    if target in INTEGERS and source not in INTEGERS | BOOLS:
        return elementwise("cast-saturated", request, _saturating(source, target), result=numpy_dtype(target))
    if target is DataType.DT_BF16 and source not in _EXACT_IN_SINGLE:
        return None  # numpy would round twice

    def run(inputs: Inputs, outputs: Outputs, scratch: Array) -> None:
        convert(outputs[0], inputs[0])

    is_same_size = numpy_dtype(source).itemsize == numpy_dtype(target).itemsize
    return Kernel("cast", run, is_in_place_safe=is_same_size)


def _saturating(source: DataType, target: DataType) -> Any:
    """Return the formula for floats to integers: truncate, NaN is 0, what is out of range becomes the nearest bound."""
    info, wide = np.iinfo(numpy_dtype(target)), compute_dtype(source)
    low, high = wide.type(info.min), wide.type(info.max)  # may be rounded up: hence "at least"

    def run(x: Array, out: Array) -> None:
        np.copyto(out, 0)
        np.copyto(out, x, where=np.less(np.abs(x), np.inf), casting="unsafe")
        np.copyto(out, info.max, where=np.greater_equal(x, high))
        np.copyto(out, info.min, where=np.less_equal(x, low))

    return run
