"""Elementwise operators of floats in any layout, and those with one number per channel, bound to compiled loops."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from ge.formats import is_private
from ge.graph import DataType, Format, TensorDesc
from ge.graph.types import numpy_dtype
from ge.ops.cast import CLIP
from simulator.codegen.elementwise import (
    MAX_OPERANDS,
    MAX_PARAMETERS,
    ClearLanesCode,
    ElementwiseCode,
    Operand,
)
from simulator.codegen.emission import ELEMENTS, LANES
from simulator.codegen.engine import Engine
from simulator.codegen.formulas import CHOICES, Choice
from simulator.codegen.host import Host
from simulator.codegen.jobs import Job, address_of, compiled_kernel, job
from simulator.kernels.registry import Array, Inputs, Kernel, KernelRequest, Outputs
from simulator.kernels.storage.elementwise import fits, keeps_zeros
from simulator.kernels.storage.layout import channels, has_padding, is_image

TYPES = tuple(CHOICES)
FLOAT_ELEMENTS = {DataType.DT_FLOAT: "f32", DataType.DT_FLOAT16: "f16", DataType.DT_BF16: "bf16"}
FLAT_ROW = 4096
"""Elements of a task of flat data."""
LONG_ROW = 512
"""Rows from here on are tasks of their own."""
MIN_ROW = 8
"""Shorter rows, if there are many, are left to numpy."""
OUTER_AXES = 3


def element_of(dtype: DataType, host: Host) -> str | None:
    """Return the name of a float type; ``None`` where the host cannot convert it, and for other types."""
    found = FLOAT_ELEMENTS.get(dtype)
    return None if found == "f16" and not host.converts_halves else found


def build_elementwise(request: KernelRequest, engine: Engine) -> Kernel | None:
    """Bind an operator of the table :data:`CHOICES`."""
    choice = CHOICES[request.type](request.op)
    descs = [desc for desc in request.inputs if desc is not None]
    if choice is None or len(request.outputs) != 1 or len(descs) != len(request.inputs):
        return None
    result = request.outputs[0]
    if any(desc.data_type is not result.data_type for desc in descs):
        return None
    shapes = _stored_shapes(request, descs)
    return None if shapes is None else _bound(request, engine, choice, shapes)


def build_cast(request: KernelRequest, engine: Engine) -> Kernel | None:
    """Bind conversions between float types of at most 32 bits."""
    x, y = request.inputs[0], request.outputs[0]
    if x is None or request.attrs.get(CLIP) or len(request.outputs) != 1 or tuple(x.shape) != tuple(y.shape):
        return None
    if x.format is not y.format and (is_private(x.format) or is_private(y.format)):
        return None
    return _bound(request, engine, ("copy", ()), [tuple(x.shape)])


def _stored_shapes(request: KernelRequest, descs: Sequence[TensorDesc]) -> list[tuple[int, ...]] | None:
    """Return how operands are broadcast in storage; ``None`` where their layouts do not allow it."""
    result = request.outputs[0]
    if not any(is_private(desc.format) for desc in (*descs, result)):
        return [tuple(desc.shape) for desc in descs]
    if not is_private(result.format) or not all(fits(desc, result) for desc in descs):
        return None
    return [() if not is_private(desc.format) else tuple(desc.shape) for desc in descs]


def _bound(request: KernelRequest, engine: Engine, choice: Choice, shapes: Sequence[tuple[int, ...]]) -> Kernel | None:
    result = request.outputs[0]
    slots = range(len(shapes))
    loops = Loops.of(tuple(result.shape), shapes)
    elements = [element_of(request.dtype(slot), engine.host) for slot in slots]
    made = element_of(result.data_type, engine.host)
    name, parameters = choice
    if loops is None or made is None or None in elements or not _is_bounded(parameters, len(shapes)):
        return None
    clear = None
    if has_padding(result) and not keeps_zeros(request):
        clear = padding_jobs(result, engine)
        if clear is None:
            return None
    operands = tuple(
        Operand(str(element), is_single) for element, is_single in zip(elements, loops.singles, strict=True)
    )
    address = engine.address(ElementwiseCode(name, operands, made, len(parameters)))
    sizes = [ELEMENTS[str(element)][1] for element in (*elements, made)]

    def bind(inputs: Inputs, outputs: Outputs, scratch: Array) -> Sequence[Job]:
        arrays = [inputs[slot] for slot in slots]
        places = [address_of(array) for array in (*arrays, outputs[0])]
        return [loops.job(address, places, sizes, parameters), *(clear(outputs[0]) if clear else ())]

    is_safe = len({*sizes}) == 1
    return compiled_kernel(name, bind, is_in_place_safe=is_safe)


def _is_bounded(parameters: Sequence[float], operands: int) -> bool:
    are_numbers = all(isinstance(v, int | float) and not math.isnan(v) for v in parameters)
    return are_numbers and len(parameters) <= MAX_PARAMETERS and operands <= MAX_OPERANDS


# -- axes --------------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Loops:
    """A broadcast as loops: dims (three outer axes, middle, inner) and per operand the strides in elements.

    ``total`` is the number of elements of flat rows, of which the last may be shorter.
    """

    dims: tuple[int, int, int, int, int]
    strides: tuple[tuple[int, int, int, int, int], ...]
    """Of the operands, those of the result behind them."""
    total: int

    @property
    def singles(self) -> tuple[bool, ...]:
        """Tell which operands the innermost axis repeats."""
        return tuple(stride[-1] == 0 for stride in self.strides[:-1])

    @classmethod
    def of(cls, shape: tuple[int, ...], operands: Sequence[tuple[int, ...]]) -> Loops | None:
        """Divide a broadcast into loops; ``None`` for shapes that do not broadcast or need too many axes."""
        axes = _merged(shape, operands)
        if axes is None:
            return None
        if len(axes) == 1:
            dim, strides = axes[0]
            rows = -(-dim // FLAT_ROW)
            if rows > 1:
                axes = [(rows, tuple(s * FLAT_ROW for s in strides)), (FLAT_ROW, strides)]
            return cls._made(axes, dim)
        if axes[-1][0] < MIN_ROW and prod(shape) > LONG_ROW:
            return None
        return cls._made(axes, 0)

    @classmethod
    def _made(cls, axes: Sequence[tuple[int, tuple[int, ...]]], total: int) -> Loops | None:
        single = (1, (0,) * len(axes[0][1]))
        whole = list(axes)
        if whole[-1][0] >= LONG_ROW or len(whole) == 1:
            whole.insert(len(whole) - 1, single)  # rows are tasks
        if len(whole) > OUTER_AXES + 2:
            return None
        whole = [single] * (OUTER_AXES + 2 - len(whole)) + whole
        dims = tuple(dim for dim, _ in whole)
        per_operand = tuple(zip(*(strides for _, strides in whole), strict=True))
        return cls(dims, per_operand, total or prod(dims[:3]) * dims[4])  # type: ignore[arg-type]

    @property
    def tasks(self) -> int:
        """Indices of the outer axes."""
        return prod(self.dims[:OUTER_AXES])

    def job(self, address: int, places: Sequence[int], sizes: Sequence[int], parameters: Sequence[float]) -> Job:
        """Bind the loops to memory; ``sizes`` are bytes of elements."""
        words = [self.dims[4], self.dims[3], self.total, self.dims[1], self.dims[2]]
        for place, size, stride in zip(places, sizes, self.strides, strict=True):
            words += [place, stride[3] * size, *(s * size for s in stride[:3])]
        with np.errstate(over="ignore"):
            words += [int(np.float32(value).view(np.uint32)) for value in parameters]
        return job(address, words, self.tasks, self.tasks * self.dims[3] * -(-self.dims[4] // LANES) * WEIGHT)


WEIGHT = 4
"""Vector operations that one result is taken for."""


def _merged(shape: tuple[int, ...], operands: Sequence[tuple[int, ...]]) -> list[tuple[int, tuple[int, ...]]] | None:
    """Return axes of more than one element as (dim, strides of operands and result), neighbours merged."""
    padded = [(*[1] * (len(shape) - len(operand)), *operand) for operand in operands]
    if any(len(own) != len(shape) or any(d not in (1, s) for d, s in zip(own, shape, strict=True)) for own in padded):
        return None
    steps = [_steps(own) for own in (*padded, shape)]
    axes: list[tuple[int, tuple[int, ...]]] = []
    for axis, dim in enumerate(shape):
        if dim == 1:
            continue
        strides = tuple(0 if own[axis] == 1 else step[axis] for own, step in zip((*padded, shape), steps, strict=True))
        if axes and axes[-1][1] == tuple(s * dim for s in strides):
            axes[-1] = (axes[-1][0] * dim, strides)
        else:
            axes.append((dim, strides))
    return axes or [(1, (1,) * (len(operands) + 1))]


def _steps(shape: Sequence[int]) -> list[int]:
    return [prod(shape[axis + 1 :]) for axis in range(len(shape))]


# -- padding -----------------------------------------------------------------------------------------------------------
def padding_jobs(desc: TensorDesc, engine: Engine) -> Callable[[Array], Sequence[Job]] | None:
    """Return what makes the jobs that clear the padding of a tensor; ``None`` for layouts that it does not know."""
    if not is_image(desc) or desc.shape[-1] != LANES:
        return None
    is_volume = desc.format is Format.FORMAT_NDC1HWC0
    samples = prod(desc.shape[:2]) if is_volume else desc.shape[0]
    blocks, positions = desc.shape[-4], prod(desc.shape[-3:-1])
    known = channels(desc) - (blocks - 1) * LANES
    if not 0 < known <= LANES:
        return None
    size = ELEMENTS[FLOAT_ELEMENTS[desc.data_type]][1]
    address = engine.address(ClearLanesCode(f"b{size}"))
    pitch = blocks * positions * LANES * size

    def jobs(array: Array) -> Sequence[Job]:
        last = address_of(array) + pitch - positions * LANES * size
        return [job(address, [last, pitch, positions, known], samples, samples * positions)]

    return jobs if known < LANES else lambda array: ()


# -- one number per channel --------------------------------------------------------------------------------------------
CHANNEL_TYPES = ("BatchNorm", "BNInfer", "BiasAdd")


def build_by_channel(request: KernelRequest, engine: Engine) -> Kernel | None:
    """Bind ``x * factor + shift`` per channel of feature maps in blocks; the numbers are constants."""
    x, y = request.inputs[0], request.outputs[0]
    if x is None or not is_image(x) or y.format is not x.format or y.shape != x.shape or x.shape[-1] != LANES:
        return None
    element = element_of(x.data_type, engine.host)
    numbers = _factor_and_shift(request)
    if element is None or y.data_type is not x.data_type or numbers is None:
        return None
    count = channels(x)
    if any(vector.size != count for vector in numbers):
        return None
    blocks = x.shape[-4]
    laid = [np.zeros((blocks, 1, 1, LANES), np.float32) for _ in numbers]
    for target, vector in zip(laid, numbers, strict=True):
        target.reshape(-1)[:count] = vector
    shape = tuple(x.shape)
    loops = Loops.of(shape, [shape, *([laid[0].shape] * 2)])
    if loops is None:
        return None
    operands = (Operand(element, False), *(Operand("f32", single) for single in loops.singles[1:]))
    address = engine.address(ElementwiseCode("multiply-add", operands, element))
    size = ELEMENTS[element][1]
    extra = _extra_outputs(request)
    if extra is None:
        return None
    copies = {
        index: (array, engine.address(ElementwiseCode("copy", (Operand(kind, False),), kind)), ELEMENTS[kind][1])
        for index, (array, kind) in extra.items()
    }

    def bind(inputs: Inputs, outputs: Outputs, scratch: Array) -> Sequence[Job]:
        places = [address_of(inputs[0]), *(address_of(vector) for vector in laid), address_of(outputs[0])]
        jobs = [loops.job(address, places, [size, 4, 4, size], ())]
        for index, (array, copying, width) in copies.items():
            if outputs[index] is not None:
                whole = Loops.of(array.shape, [array.shape])
                assert whole is not None
                jobs.append(whole.job(copying, [address_of(array), address_of(outputs[index])], [width] * 2, ()))
        return jobs

    return compiled_kernel("by-channel", bind, is_in_place_safe=len(request.outputs) == 1)


def _factor_and_shift(request: KernelRequest) -> tuple[Array, Array] | None:
    """Return the numbers per channel, float32; ``None`` when they are no constants."""
    if request.type == "BiasAdd":
        bias = request.constants.get(1)
        return None if bias is None else (np.ones(bias.size, np.float32), bias.reshape(-1).astype(np.float32))
    if request.type == "BatchNorm" and request.op.is_training:
        return None
    given = [request.constants.get(slot) for slot in range(1, 5)]
    if any(v is None for v in given):
        return None
    scale, offset, mean, variance = (v.astype(np.float32).reshape(-1) for v in given if v is not None)
    if len({len(v) for v in (scale, offset, mean, variance)}) > 1:
        return None
    with np.errstate(all="ignore"):
        factor = scale / np.sqrt(variance + np.float32(request.op.epsilon))
        return factor, offset - mean * factor


_STATISTICS = (None, 3, 4, 3, 4)
"""Slots that the outputs behind the first repeat; the last output is zeros."""


def _extra_outputs(request: KernelRequest) -> dict[int, tuple[Array, str]] | None:
    """Return what BatchNorm gives back besides its result, by output; ``None`` for types that are not copied."""
    found: dict[int, tuple[Array, str]] = {}
    for index, desc in enumerate(request.outputs[1:], start=1):
        element = FLOAT_ELEMENTS.get(desc.data_type)
        slot = _STATISTICS[index] if index < len(_STATISTICS) else None
        if element is None or desc.shape.elements < 1:
            return None
        array = np.zeros(tuple(desc.shape), numpy_dtype(desc.data_type))
        if slot is not None:
            if request.constants[slot].size != array.size:
                return None
            np.copyto(array, request.constants[slot].reshape(array.shape), casting="unsafe")
        found[index] = (array, element)
    return found
