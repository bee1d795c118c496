"""The rules by which operators choose layouts that they can work in; :mod:`ge.ops.format_columns` says who uses which.

A rule sees the origin views of a node's tensors and yields what it can do in private layouts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from ge.formats import AXES, LAYOUT_PAIRS, CubeSizes
from ge.formats.cube_sizes import N0
from ge.formats.packed_format import MAX_GROUPS
from ge.graph.node import Node
from ge.graph.tensor import Tensor
from ge.graph.tensor_desc import TensorDesc
from ge.graph.types import DataType, Format
from ge.ops.conv import filter_format
from ge.ops.layout import channel_axis
from ge.ops.registry import Attributes, OpDef
from ge.tensor_memory import MAX_RANK

LAID_OUT = frozenset(
    {
        *(DataType.DT_FLOAT, DataType.DT_FLOAT16, DataType.DT_BF16),
        *(DataType.DT_INT8, DataType.DT_UINT8, DataType.DT_INT32, DataType.DT_BOOL),
    }
)
"""Element types of tensors in private layouts."""

MATRIX_PRODUCTS = ("MatMul", "MatMulV2", "MatMulV3", "BatchMatMul", "BatchMatMulV2", "BatchMatMulV3")

SPREADING = (Format.FORMAT_NC1HWC0, Format.FORMAT_FRACTAL_NZ, Format.FORMAT_NDC1HWC0)
"""Layouts of activations, in the order in which they are tried."""
_NZ = Format.FORMAT_FRACTAL_NZ

_RANKS = {
    Format.FORMAT_NC1HWC0: 4,
    Format.FORMAT_NC1HWC0_C04: 4,
    Format.FORMAT_FRACTAL_Z: 4,
    Format.FORMAT_FRACTAL_Z_C04: 4,
    Format.FORMAT_NDC1HWC0: 5,
    Format.FORMAT_FRACTAL_Z_3D: 5,
}
_IMAGES = frozenset({Format.FORMAT_NC1HWC0, Format.FORMAT_NC1HWC0_C04, Format.FORMAT_NDC1HWC0})
"""Layouts of feature maps; a filter (HWCN) never lies in one."""
_SMALL = frozenset({Format.FORMAT_NC1HWC0_C04, Format.FORMAT_FRACTAL_Z_C04})
_SMALL_CHANNELS = 4
_FILTERS = frozenset({Format.FORMAT_FRACTAL_Z, Format.FORMAT_FRACTAL_Z_C04, Format.FORMAT_FRACTAL_Z_3D})

UNIFIED_BUFFER_BYTES = 192 << 10
"""Memory that a reduction shares with its result, of the smallest chip."""


@dataclass(frozen=True)
class Layouts:
    """Formats per input slot (``None``: absent) and per output; ND for the origin format."""

    inputs: tuple[Format | None, ...]
    outputs: tuple[Format, ...]
    groups: int = 0


@dataclass(frozen=True)
class NodeTensors:
    """A node's tensors as rules see them: by slot, by port, with what they need to know of a chip."""

    node: Node
    definition: OpDef
    cubes: CubeSizes

    @property
    def op(self) -> Attributes:
        """Attributes, defaults filled in."""
        return self.definition.attributes(self.node.attrs)

    @property
    def inputs(self) -> list[TensorDesc | None]:
        """Descriptors of the inputs by slot."""
        return self.node.input_descs

    @property
    def outputs(self) -> list[TensorDesc]:
        """Descriptors of the outputs."""
        return self.node.output_descs

    def slot(self, port: str) -> int | None:
        """Return the slot of an input port that is connected."""
        found = self.definition.signature.input_slices(len(self.node.inputs)).get(port)
        return None if found is None or self.node.input(found.start) is None else found.start

    def input(self, port: str) -> TensorDesc | None:
        """Return the descriptor of an input port, ``None`` when it is absent."""
        slot = self.slot(port)
        return None if slot is None else self.inputs[slot]

    def constant(self, port: str) -> list[int] | None:
        """Return the axes that a Const gives to an input port; ``None`` when they are not known."""
        slot = self.slot(port)
        source = None if slot is None else self.node.input(slot)
        if source is None or source.node.type != "Const":
            return None
        value = source.node.attrs.get("value")
        if not isinstance(value, Tensor) or value.array.dtype.kind not in "iu" or value.array.size > MAX_RANK:
            return None
        return [int(v) for v in np.ravel(value.array)]

    def is_constant(self, port: str) -> bool:
        """Tell whether an input port is given by a Const."""
        slot = self.slot(port)
        source = None if slot is None else self.node.input(slot)
        return source is not None and source.node.type == "Const"

    def c0(self, desc: TensorDesc) -> int:
        """Return the block length of a tensor's element type."""
        return self.cubes.c0_of(desc.data_type)

    def can_lie(self, desc: TensorDesc | None, format: Format) -> bool:
        """Tell whether a tensor can lie in ``format``."""
        if desc is None or desc.data_type not in LAID_OUT or desc.origin_shape.elements < 1:
            return False
        rank, wanted = len(desc.origin_shape), _RANKS.get(format)
        if (rank != wanted if wanted is not None else rank < 2) or (desc.origin_format, format) not in LAYOUT_PAIRS:
            return False
        if format in _IMAGES and AXES[desc.origin_format][0] != "N":
            return False
        return format not in _SMALL or extent(desc, "C") <= _SMALL_CHANNELS

    def layouts(self, inputs: dict[int, Format], outputs: dict[int, Format], groups: int = 0) -> Layouts:
        """Return the layouts named, the origin format for all other tensors."""
        nd = Format.FORMAT_ND
        return Layouts(
            tuple(None if s is None else inputs.get(slot, nd) for slot, s in enumerate(self.node.inputs)),
            tuple(outputs.get(index, nd) for index in range(len(self.outputs))),
            groups,
        )


Selector = Callable[[NodeTensors], Iterator[Layouts]]


def extent(desc: TensorDesc, axis: str) -> int:
    """Return the dim of a named axis. The tensor has as many dims as its origin format has axes."""
    return desc.origin_shape[AXES[desc.origin_format].index(axis)]


def _present(descs: Iterable[TensorDesc | None]) -> list[TensorDesc]:
    return [desc for desc in descs if desc is not None]


# -- fixed layouts per port --------------------------------------------------------------------------------------------
class Row:
    """A line of a kernel table: the layouts of ports by name, the origin format for all others."""

    def __init__(self, **ports: Format) -> None:
        self.ports = ports

    @property
    def is_for_few_channels(self) -> bool:
        """Whether the layouts are those of few channels, which have no groups."""
        return not _SMALL.isdisjoint(self.ports.values())


def by_rows(*rows: Row, has_channels: bool = True) -> Selector:
    """Layouts that kernel tables give, as far as the tensors can lie so.

    ``has_channels``: the operator says which axis of an image are its channels; the origin format must agree.
    """

    def select(tensors: NodeTensors) -> Iterator[Layouts]:
        signature = tensors.definition.signature
        groups = int(tensors.op.groups) if "groups" in signature.attrs else 0
        groups = groups if groups > 1 else 0
        if groups > MAX_GROUPS:
            return
        for row in rows:
            inputs, outputs = _place_row(tensors, row)
            wanted = [(tensors.inputs[slot], layout) for slot, layout in inputs.items()]
            wanted += [(tensors.outputs[index], layout) for index, layout in outputs.items()]
            if groups and row.is_for_few_channels:
                continue
            if not all(tensors.can_lie(desc, layout) for desc, layout in wanted):
                continue
            if not has_channels or all(_is_named_alike(tensors, desc, layout) for desc, layout in wanted if desc):
                yield tensors.layouts(inputs, outputs, groups)

    return select


def _is_named_alike(tensors: NodeTensors, desc: TensorDesc, layout: Format) -> bool:
    """Tell whether operator and origin format agree about the axes of an image or a filter."""
    op, axes = tensors.op, AXES[desc.origin_format]
    has_format = "data_format" in tensors.definition.signature.attrs
    data_format = str(op.data_format if has_format else op.get("_x_data_format", "NCHW"))
    if layout in _FILTERS:
        return axes == filter_format(op, data_format)
    return axes[0] == "N" and axes.index("C") == channel_axis(data_format, len(axes))


def _place_row(tensors: NodeTensors, row: Row) -> tuple[dict[int, Format], dict[int, Format]]:
    signature = tensors.definition.signature
    inputs: dict[int, Format] = {}
    for port in signature.inputs:
        slot = tensors.slot(port.name)
        if slot is not None and port.name in row.ports:
            inputs[slot] = row.ports[port.name]
    named = enumerate(signature.outputs[: len(tensors.outputs)])
    return inputs, {index: row.ports[out.name] for index, out in named if out.name in row.ports}


def like_an_image(*rows: Row) -> Selector:
    """Resampling of space: batch and channels stay as they are, nothing comes from outside."""
    select = by_rows(*rows)

    def select_space(tensors: NodeTensors) -> Iterator[Layouts]:
        mode = str(tensors.op.get("mode", "nearest"))
        is_cropped = tensors.op.get("coordinate_transformation_mode") == "tf_crop_and_resize"
        ports = [port.name for port in tensors.definition.signature.inputs[1:]]
        is_known = all(tensors.slot(port) is None or tensors.is_constant(port) for port in ports)
        if mode not in ("nearest", "linear") or is_cropped or not is_known:
            return
        x, y = tensors.input("x"), tensors.outputs[0]
        if x is None or tensors.c0(x) != tensors.c0(y):
            return
        for found in select(tensors):
            if all(extent(x, axis) == extent(y, axis) for axis in "NC"):
                yield found

    return select_space


def with_statistics(*rows: Row) -> Selector:
    """BatchNorm: by statistics that are given; in training they would be made of what lies in the blocks."""
    select = by_rows(*rows)
    return lambda tensors: iter(()) if tensors.op.is_training else select(tensors)


def with_a_slope(*rows: Row) -> Selector:
    """PRelu: one slope for all, or one per channel."""
    select = by_rows(*rows, has_channels=False)

    def select_slope(tensors: NodeTensors) -> Iterator[Layouts]:
        weight, x = tensors.input("weight"), tensors.input("x")
        for found in select(tensors):
            if weight is not None and x is not None and _is_per_channel(tensors, weight, x):
                yield found

    return select_slope


def _is_per_channel(tensors: NodeTensors, weight: TensorDesc, x: TensorDesc) -> bool:
    shape, rank = weight.origin_shape, len(x.origin_shape)
    if shape.elements == 1:
        return True
    if len(shape) == 1 and not tensors.op.get("_x_unidirectional", False):
        behind = rank - 2  # stands for [C, 1, 1]
    else:
        behind = next((place for place, dim in enumerate(reversed(shape)) if dim != 1), 0)
    is_channel = AXES[x.origin_format].index("C") == rank - 1 - behind
    return is_channel and shape.elements == extent(x, "C")


# -- element by element ------------------------------------------------------------------------------------------------
def by_agreement(tensors: NodeTensors) -> Iterator[Layouts]:
    """One input, one output: any layout in which both lie alike."""
    x, y = tensors.inputs[0], tensors.outputs[0]
    for layout in SPREADING:
        if x is None or not (tensors.can_lie(x, layout) and tensors.can_lie(y, layout)):
            continue
        if tensors.c0(x) == tensors.c0(y) and (x.origin_format == y.origin_format or layout == _NZ):
            yield tensors.layouts({0: layout}, {0: layout})


def by_broadcast(tensors: NodeTensors) -> Iterator[Layouts]:
    """Operands of several shapes: what is divided into blocks must not be broadcast.

    Scalars keep the origin format; the channels of all others must then fill their blocks, as must rows and columns
    in FRACTAL_NZ.
    """
    large = {slot: desc for slot, desc in enumerate(tensors.inputs) if desc is not None and not _is_scalar(desc)}
    y = tensors.outputs[0]
    if not large or _is_scalar(y):
        return
    operands = list(large.values())
    has_scalars = len(large) < len(_present(tensors.inputs))
    for layout in SPREADING:
        everyone = [*operands, y]
        if not all(tensors.can_lie(desc, layout) for desc in everyone):
            continue
        if len({tensors.c0(desc) for desc in everyone}) > 1:
            continue
        if layout != _NZ and len({desc.origin_format for desc in everyone}) > 1:
            continue
        if _broadcasts_in(tensors, layout, operands, has_scalars=has_scalars):
            yield tensors.layouts(dict.fromkeys(large, layout), {0: layout})


def _is_scalar(desc: TensorDesc) -> bool:
    return len(desc.origin_shape) == 0 or desc.origin_shape == (1,)


def _broadcasts_in(tensors: NodeTensors, format: Format, operands: Sequence[TensorDesc], *, has_scalars: bool) -> bool:
    if has_scalars:
        return all(_fills_blocks(tensors, desc, format) for desc in operands)
    if len({desc.origin_shape for desc in operands}) == 1:
        return True
    if format == _NZ:
        return len({desc.origin_shape[-2:] for desc in operands}) == 1
    return len({extent(desc, "C") for desc in operands}) == 1


def _fills_blocks(tensors: NodeTensors, desc: TensorDesc, format: Format) -> bool:
    """Tell whether a tensor has no padding in ``format``."""
    c0 = tensors.c0(desc)
    if format == _NZ:
        return desc.origin_shape[-1] % c0 == 0 and desc.origin_shape[-2] % N0 == 0
    return extent(desc, "C") % c0 == 0


# -- along axes --------------------------------------------------------------------------------------------------------
def by_reduced_axes(tensors: NodeTensors) -> Iterator[Layouts]:
    """Reductions: over axes that are not divided, with the result in the same layout; some with a plain result."""
    x, y = tensors.inputs[0], tensors.outputs[0]
    axes = _reduced_axes(tensors)
    if x is None or not axes:
        return
    rank, keeps = len(x.origin_shape), bool(tensors.op.keep_dims)
    for layout in SPREADING:
        if not tensors.can_lie(x, layout):
            continue
        blocked = {rank - 1, rank - 2} if layout == _NZ else {AXES[x.origin_format].index("C")}
        if not blocked & axes:
            agrees = x.origin_format == y.origin_format or layout == _NZ
            if agrees and tensors.can_lie(y, layout) and tensors.c0(x) == tensors.c0(y):
                yield tensors.layouts({0: layout}, {0: layout})
        elif layout == Format.FORMAT_NC1HWC0 and x.data_type == DataType.DT_FLOAT16:
            if keeps or _fits_buffer(x, axes):
                yield tensors.layouts({0: layout}, {})
        elif layout == _NZ and _fills_blocks(tensors, x, layout):
            yield tensors.layouts({0: layout}, {})


def _reduced_axes(tensors: NodeTensors) -> set[int]:
    """Return the axes that are reduced; none when they are not known, or when there are none."""
    x, signature = tensors.inputs[0], tensors.definition.signature
    if x is None:
        return set()
    name = "axes" if "axes" in signature.attrs else "axis"
    given = getattr(tensors.op, name) if name in signature.attrs else tensors.constant("axes")
    rank = len(x.origin_shape)
    if given is None or not all(-rank <= axis < rank for axis in given):
        return set()
    if not given and not getattr(tensors.op, "noop_with_empty_axes", True):
        return set(range(rank))
    return {axis % rank for axis in given}


def _fits_buffer(x: TensorDesc, axes: set[int]) -> bool:
    reduced = prod(dim for axis, dim in enumerate(x.origin_shape) if axis in axes)
    kept = prod(dim for axis, dim in enumerate(x.origin_shape) if axis not in axes)
    width = 4 if x.data_type in (DataType.DT_FLOAT, DataType.DT_INT32) else 2
    return (reduced + kept) * width * 2 < UNIFIED_BUFFER_BYTES


def by_soft_axes(tensors: NodeTensors) -> Iterator[Layouts]:
    """Softmax: over whole axes, or over divided ones without padding."""
    x, y = tensors.inputs[0], tensors.outputs[0]
    if x is None:
        return
    rank = len(x.origin_shape)
    axes = {int(axis) % rank for axis in tensors.op.axes} if rank else set()
    if axes and tensors.op.get("_x_flatten", False):
        axes = set(range(min(axes), rank))
    for layout in SPREADING:
        if not (tensors.can_lie(x, layout) and tensors.can_lie(y, layout)) or tensors.c0(x) != tensors.c0(y):
            continue
        if layout != _NZ and x.origin_format != y.origin_format:
            continue
        blocked = {rank - 1, rank - 2} if layout == _NZ else {AXES[x.origin_format].index("C")}
        if not blocked & axes or _fills_blocks(tensors, x, layout):
            yield tensors.layouts({0: layout}, {0: layout})


_NORMALISED = frozenset({"x", "x1", "x2"})
"""Inputs of normalisations that have the full shape; statistics and parameters keep the origin format."""


def by_last_axis(tensors: NodeTensors) -> Iterator[Layouts]:
    """Normalisation over the last axis: in FRACTAL_NZ where rows and columns fill their blocks."""
    signature = tensors.definition.signature
    inputs = {slot: _NZ for slot in map(tensors.slot, sorted(_NORMALISED)) if slot is not None}
    named = enumerate(signature.outputs[: len(tensors.outputs)])
    full = {"y", "x"} if "x1" in {port.name for port in signature.inputs} else {"y"}
    outputs = {index: _NZ for index, out in named if out.name in full}
    descs = _present([*(tensors.inputs[slot] for slot in inputs), *(tensors.outputs[index] for index in outputs)])
    if not all(tensors.can_lie(desc, _NZ) and _fills_blocks(tensors, desc, _NZ) for desc in descs):
        return
    if len({desc.origin_shape for desc in descs}) == 1 and _normalises_last(tensors, descs[0]):
        yield tensors.layouts(inputs, outputs)


def _normalises_last(tensors: NodeTensors, x: TensorDesc) -> bool:
    parameter = tensors.input("gamma") or tensors.input("beta")
    if parameter is not None and parameter.origin_shape != (x.origin_shape[-1],):
        return False
    if tensors.input("normalized_shape") is not None:
        length = tensors.input("normalized_shape")
        return length is not None and length.origin_shape.elements == 1
    first = getattr(tensors.op, "begin_norm_axis", -1)
    return parameter is not None and int(first) % len(x.origin_shape) == len(x.origin_shape) - 1


# -- parts of an axis --------------------------------------------------------------------------------------------------
def by_blocks_of_parts(tensors: NodeTensors) -> Iterator[Layouts]:
    """Joining and splitting: along a divided axis only where every part fills its blocks."""
    types, signature = tensors.node.type, tensors.definition.signature
    ports = signature.input_slices(len(tensors.node.inputs))
    slots = [slot for slot in range(*ports["x"].indices(len(tensors.inputs))) if tensors.inputs[slot] is not None]
    operands, results = _present(tensors.inputs[slot] for slot in slots), tensors.outputs
    axis = _part_axis(tensors)
    if axis is None or not operands or not results:
        return
    if types == "Pack":
        yield from _stacked(tensors, slots, operands, axis)
        return
    rank = len(results[0].origin_shape)
    parts = [*operands, *results]
    if not -rank <= axis < rank or any(len(desc.origin_shape) != rank for desc in parts):
        return
    for layout in SPREADING:
        if not all(tensors.can_lie(desc, layout) for desc in parts):
            continue
        if layout != _NZ and len({desc.origin_format for desc in parts}) > 1:
            continue
        if all(_part_fills(tensors, desc, layout, axis % rank) for desc in parts):
            yield tensors.layouts(dict.fromkeys(slots, layout), dict.fromkeys(range(len(results)), layout))


def _part_fills(tensors: NodeTensors, desc: TensorDesc, format: Format, axis: int) -> bool:
    if format != _NZ:
        return AXES[desc.origin_format][axis] != "C" or desc.origin_shape[axis] % tensors.c0(desc) == 0
    behind = len(desc.origin_shape) - 1 - axis
    length = {0: tensors.c0(desc), 1: tensors.cubes.m0}.get(behind, 1)
    return desc.origin_shape[axis] % length == 0


def _stacked(
    tensors: NodeTensors, slots: Sequence[int], operands: Sequence[TensorDesc], axis: int
) -> Iterator[Layouts]:
    """Pack: in FRACTAL_NZ, with the new axis before rows and columns."""
    y = tensors.outputs[0]
    rank = len(y.origin_shape)
    fits = all(tensors.can_lie(desc, _NZ) for desc in (*operands, y))
    if fits and -rank <= axis < rank and axis % rank < rank - 2:
        yield tensors.layouts(dict.fromkeys(slots, _NZ), {0: _NZ})


def _part_axis(tensors: NodeTensors) -> int | None:
    """Return the axis along which parts are joined or split, as it is given; ``None`` when it is not known."""
    signature = tensors.definition.signature
    for name in ("concat_dim", "split_dim", "axis"):
        if name in signature.attrs:
            return int(getattr(tensors.op, name))
        found = tensors.constant(name)
        if found:
            return found[0]
    return None
