"""Do arrays fit the inputs of a model? They are never converted, except for byte order and texts.

An input in a layout of the hardware takes arrays of its storage shape, as the device does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from ge.errors import ReportedError
from ge.formats import IndexMap, Transfer, expand_dims, lies_in_origin, storage_fault
from ge.graph import TensorDesc
from ge.graph.types import FORMAT_TEXT, DataType, numpy_dtype
from ge.tensor_memory import memory_size, shape_fault
from simulator.kernels.registry import Array


class Port(Protocol):
    """What must be known of a model input or output."""

    @property
    def name(self) -> str: ...
    @property
    def desc(self) -> TensorDesc: ...


def fitting_arrays(feeds: Sequence[Any], inputs: Sequence[Port], allow_reinterpret: bool) -> list[Array]:
    """Return one array per input, of its type and of a shape that it takes.

    ``allow_reinterpret`` takes any array of the right number of bytes where the shape is fixed. Raises R1030 (count),
    R1031 (type, shape, size) and R1033 (type, shape, range of an input with open dimensions).
    """
    arrays = [np.asarray(feed) for feed in feeds]
    if len(arrays) != len(inputs):
        names = ", ".join(port.name for port in inputs)
        raise ReportedError("R1030", expected=len(inputs), names=names, actual=len(arrays))
    return [_fit(array, port, allow_reinterpret) for array, port in zip(arrays, inputs, strict=True)]


def _fit(array: Array, port: Port, allow_reinterpret: bool) -> Array:
    desc = port.desc
    dtype = numpy_dtype(desc.data_type)
    try:
        native = _texts(array) if desc.data_type is DataType.DT_STRING else array
    except (SystemError, ValueError) as fault:  # numpy believes any 32 bits to be a character
        raise ReportedError(
            "R1033",
            name=port.name,
            expected_dtype="texts",
            expected_shape=limits_text(dim_limits(desc)),
            actual_dtype=array.dtype.name,
            actual_shape=list(array.shape),
            reason="its elements hold characters that do not exist",
        ) from fault
    native = native.astype(native.dtype.newbyteorder("="), copy=False)
    limits = dim_limits(desc)
    misfit = misfit_of(limits, native.shape)
    if native.dtype == dtype and misfit is None:
        return native
    size = memory_size(desc)
    if allow_reinterpret and size == native.nbytes and not native.dtype.hasobject:
        return np.ascontiguousarray(native).reshape(-1).view(dtype).reshape(desc.shape)
    fields: dict[str, Any] = {
        "name": port.name,
        "expected_dtype": dtype.name,
        "actual_dtype": native.dtype.name,
        "actual_shape": list(native.shape),
    }
    if size is None:
        reason = misfit or "its elements are of another type"
        raise ReportedError("R1033", **fields, expected_shape=limits_text(limits), reason=reason)
    solution = layout_hint(desc)
    raise ReportedError(
        "R1031", solution=solution, **fields, expected_shape=list(desc.shape), expected=size, actual=native.nbytes
    )


def layout_hint(desc: TensorDesc) -> str | None:
    """Return how to make an array for a tensor that lies in a layout of the hardware; ``None`` for all others."""
    if lies_in_origin(desc):
        return None
    return (
        f"The model was compiled to take this input as {FORMAT_TEXT[desc.format]} of {desc.origin_shape} in "
        f"{FORMAT_TEXT[desc.origin_format]}: arrays are given as they lie in memory. ge.formats.transfer makes one."
    )


def padding_of(port: Port) -> IndexMap | None:
    """Return the map that knows the padding lanes of a model input; ``None`` if there are none.

    Raises R1010 for an input whose storage shape does not follow from its origin shape.
    """
    desc = port.desc
    if lies_in_origin(desc) or desc.shape.is_unknown_shape() or desc.shape.elements == desc.origin_shape.elements:
        return None
    fault = storage_fault(desc)
    if fault:
        raise ReportedError("R1010", path=port.name, reason=f"this input is described in contradictions: {fault}")
    dims = expand_dims(desc.origin_shape, desc.origin_format, desc.format)
    return Transfer.of(dims, desc.origin_format, desc.format, desc.data_type, desc.sub_format).map


def _texts(array: Array) -> Array:
    """Return an array of str objects if ``array`` holds texts, else itself."""
    if array.dtype.kind == "S":
        return np.char.decode(array, "utf-8", "replace").astype(object)
    return array.astype(object) if array.dtype.kind in "UT" else array


def dim_limits(desc: TensorDesc) -> list[tuple[int, int]] | None:
    """Return least and greatest value (-1: no limit) of every dim; ``None`` when not even the rank is known."""
    if desc.shape.is_unknown_rank():
        return None
    if len(desc.shape_range) == len(desc.shape):
        return [(d, d) if d >= 0 else limits for d, limits in zip(desc.shape, desc.shape_range, strict=True)]
    return [(d, d) if d >= 0 else (0, -1) for d in desc.shape]


def misfit_of(limits: Sequence[tuple[int, int]] | None, shape: Sequence[int]) -> str | None:
    """Return what keeps ``shape`` from lying within the limits of its dims, ``None`` if it does."""
    fault = shape_fault(shape)
    if fault or limits is None:
        return fault or None
    if len(limits) != len(shape):
        return f"it has {len(shape)} dimensions, {len(limits)} are expected"
    for axis, (dim, (low, high)) in enumerate(zip(shape, limits, strict=True)):
        if dim < low or (high != -1 and dim > high):
            expected = str(low) if low == high else f"{low} or more" if high == -1 else f"{low} to {high}"
            return f"dimension {axis} is {dim}, {expected} is expected"
    return None


def limits_text(limits: Sequence[tuple[int, int]] | None) -> str:
    """Return a shape as --input_shape has it: ``[1~4,3,-1]``."""
    if limits is None:
        return " of any shape"
    return f"[{','.join(str(low) if low == high else _range(low, high) for low, high in limits)}]"


def _range(low: int, high: int) -> str:
    return f"{low}~{high}" if high != -1 else "-1" if low == 0 else f"{low}~"
