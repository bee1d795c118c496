"""Shape arithmetic on tensors of which only some elements are known.

Exporters compute shapes: Shape, then Gather, Slice, Concat, a few sums, Reshape. Operators that only move elements are
run on the numbers of the elements, which tells where each one goes; elementwise operators are run with a stand-in for
what is not known.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from ge.graph.node import Node
from ge.graph.tensor_desc import OpenDim
from ge.graph.types import DataType, has_numpy_dtype, numpy_dtype
from ge.ops.known_value import MAX_PARTIAL, Array, KnownValue, certainly_equal
from ge.ops.registry import OpDef, lookup

_OF_X = (
    "Concat ConcatD ConcatV2 Pack Split SplitD SplitV SplitVD Unpack Identity Reshape Flatten Squeeze SqueezeV3 "
    "Unsqueeze UnsqueezeV3 ExpandDims Transpose TransposeD ReverseV2 Tile TileD Expand BroadcastTo "
    "Gather GatherV2 GatherElements GatherNd StridedSlice StridedSliceV2 Slice"
)
_MOVING: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(_OF_X.split(), ("x",)),
    "Fill": ("value",),
    "ScatterElements": ("data", "updates"),
    "TensorScatterUpdate": ("x", "updates"),
    "Select": ("x1", "x2"),
    "SelectV2": ("then", "else"),
}
"""Per operator type the inputs whose elements the outputs are made of."""

_ELEMENT_BY_ELEMENT = (
    "Abs Add Adds Cast Ceil Div Equal Floor FloorDiv FloorMod Greater GreaterEqual Less LessEqual LogicalAnd "
    "LogicalNot LogicalOr Maximum Minimum Mod Mul Muls Neg NotEqual Pow RealDiv Round Sign Sqrt Square Sub"
)
_ELEMENTWISE = frozenset(_ELEMENT_BY_ELEMENT.split())

_NEUTRAL: dict[str, tuple[int, bool]] = {
    "Add": (0, True),
    "Sub": (0, False),
    "Mul": (1, True),
    "Div": (1, False),
    "FloorDiv": (1, False),
    "RealDiv": (1, False),
}
"""Per operator type the number that leaves the other operand as it is, and whether it may be the first one."""

_INTEGERS = frozenset({DataType.DT_INT32, DataType.DT_INT64})


def may_be_partial(node: Node) -> bool:
    """Tell whether :func:`evaluate_partly` can say anything of this node: type, and sizes of its outputs."""
    if node.type not in _MOVING and node.type not in _ELEMENTWISE and node.type != "Shape":
        return False
    return all(
        0 <= desc.origin_shape.elements <= MAX_PARTIAL and has_numpy_dtype(desc.data_type) for desc in node.output_descs
    )


def evaluate_partly(node: Node, known_of: Callable[[int], KnownValue | None]) -> list[KnownValue] | None:
    """Return what is known of the outputs of a node; ``None``: nothing.

    ``known_of`` tells what is known of an input slot. To be asked only where :func:`may_be_partial` agrees; the
    outputs are inferred already.
    """
    definition = lookup(node.type)
    assert definition is not None
    if node.type == "Shape":
        return _dims_of_input(node)
    inputs = [None if source is None else known_of(slot) for slot, source in enumerate(node.inputs)]
    try:
        if node.type in _MOVING:
            return _moved(node, definition, inputs)
        return _elementwise(node, definition, inputs)
    except (ArithmeticError, LookupError, TypeError, ValueError):
        return None  # arguments that do not fit are reported where the node itself is evaluated


def _dims_of_input(node: Node) -> list[KnownValue] | None:
    source, (desc,) = node.input(0), node.output_descs
    if source is None or source.desc.origin_shape.is_unknown_rank():
        return None
    dims = source.desc.origin_shape[slice(node.attrs.get("_x_start", 0), node.attrs.get("_x_end"))]
    return [KnownValue.of_dims(dims, numpy_dtype(desc.data_type))]


# -- operators that move elements --------------------------------------------------------------------------------------
def _moved(node: Node, definition: OpDef, inputs: Sequence[KnownValue | None]) -> list[KnownValue] | None:
    slices = definition.signature.input_slices(len(inputs))
    data = [slot for name in _MOVING[node.type] for slot in range(len(inputs))[slices[name]]]
    condition = 0 if node.type.startswith("Select") else -1
    if node.attrs.get("reduction", "none") != "none":
        return None
    sources = _Elements.collect(node, data, inputs)
    if sources is None:
        return None
    arguments: list[Array | None] = []
    for slot, known in enumerate(inputs):
        if slot in data:
            arguments.append(sources.numbers[slot])
        elif node.input(slot) is None:
            arguments.append(None)
        elif known is None or (known.is_known is not None and slot != condition):
            return None
        else:
            arguments.append(known.array)
    numbers = definition.evaluate(node.attrs, arguments, [DataType.DT_INT64] * len(node.output_descs))
    results = [sources.at(n, numpy_dtype(d.data_type)) for n, d in zip(numbers, node.output_descs, strict=True)]
    chosen = inputs[condition] if condition >= 0 else None
    if chosen is not None and chosen.is_known is not None:
        results = [_masked(result, chosen.is_known) for result in results]
    return results


class _Elements:
    """The elements of several inputs in one row; ``numbers`` has, per input slot, the place of each in the row."""

    def __init__(self) -> None:
        self.numbers: dict[int, Array] = {}
        self._rows: list[KnownValue] = []
        self._count = 0

    @classmethod
    def collect(cls, node: Node, slots: Sequence[int], inputs: Sequence[KnownValue | None]) -> _Elements | None:
        """Number the inputs' elements; ``None`` when nothing is known, or an input is too long or of unknown size."""
        found = cls()
        for slot in slots:
            source, known = node.input(slot), inputs[slot]
            if source is None:
                return None
            if known is None:
                shape = source.desc.origin_shape
                if not 0 <= shape.elements <= MAX_PARTIAL:
                    return None
                known = KnownValue(np.ones(shape, numpy_dtype(source.desc.data_type)), np.zeros(shape, np.bool_))
            found._add(slot, known)
        return found if any(inputs[slot] is not None for slot in slots) else None

    def _add(self, slot: int, known: KnownValue) -> None:
        size = prod(known.array.shape)
        self.numbers[slot] = np.arange(self._count, self._count + size).reshape(known.array.shape)
        self._rows.append(known)
        self._count += size

    def at(self, numbers: Array, dtype: np.dtype[Any]) -> KnownValue:
        """Return the elements with these numbers."""
        values = np.concatenate([row.array.ravel() for row in self._rows])
        known = np.concatenate([row.known_mask().ravel() for row in self._rows])[numbers]
        array = values[numbers].astype(dtype)
        if known.all():
            return KnownValue(array)
        names, start = {}, 0
        for row in self._rows:
            names.update({start + i: name for i, name in row.names.items()})
            start += row.array.size
        flat = enumerate(numbers.ravel().tolist())
        return KnownValue(array, known, {i: names[number] for i, number in flat if number in names})


def _masked(result: KnownValue, is_known: Array) -> KnownValue:
    """Forget the elements of a selection whose condition is not known."""
    mask = np.broadcast_to(is_known, result.array.shape)
    names = {i: name for i, name in result.names.items() if mask.ravel()[i]}
    return KnownValue(np.where(mask, result.array, 1), result.known_mask() & mask, names)


# -- elementwise operators ---------------------------------------------------------------------------------------------
def _elementwise(node: Node, definition: OpDef, inputs: Sequence[KnownValue | None]) -> list[KnownValue] | None:
    operands = [known for known in inputs if known is not None]
    if len(operands) != len(node.inputs):
        return None
    (desc,) = node.output_descs
    (array,) = definition.evaluate(node.attrs, [known.array for known in operands], [desc.data_type])
    known = np.ones(array.shape, np.bool_)
    for operand in operands:
        known &= operand.known_mask()
    if node.type in ("Equal", "NotEqual"):
        array, known = _compared(operands, array, known, is_equal=node.type == "Equal")
    if known.all():
        return [KnownValue(array)]
    names = _kept_names(node, operands, known) if desc.data_type in _INTEGERS else {}
    return [KnownValue(np.where(known, array, 1).astype(array.dtype), known, names)]


def _spread(known: KnownValue, shape: tuple[int, ...]) -> list[int | None]:
    """Return the elements of an operand where broadcasting puts them."""
    places = np.broadcast_to(np.arange(known.array.size).reshape(known.array.shape), shape)
    elements = known.elements()
    return [elements[place] for place in places.ravel().tolist()]


def _compared(operands: Sequence[KnownValue], array: Array, known: Array, *, is_equal: bool) -> tuple[Array, Array]:
    if not all(operand.array.dtype.kind in "iu" for operand in operands):
        return array, known
    pairs = zip(*(_spread(operand, array.shape) for operand in operands), strict=True)
    answers = [certainly_equal(one, other) for one, other in pairs]
    told = np.array([answer is not None for answer in answers], np.bool_).reshape(array.shape)
    equal = np.array([answer is is_equal for answer in answers], np.bool_).reshape(array.shape)
    return np.where(told, equal, array), known | told


def _kept_names(node: Node, operands: Sequence[KnownValue], known: Array) -> dict[int, OpenDim]:
    """Return the names of dims that the operator leaves as they are, by flat index."""
    if node.type == "Cast" and operands[0].array.dtype.kind in "iu":
        return dict(operands[0].names)
    neutral, is_either_side = _NEUTRAL.get(node.type, (None, False))
    if neutral is None:
        return {}
    sides = [_spread(operand, known.shape) for operand in operands if operand.array.dtype.kind in "iu"]
    if len(sides) != 2:
        return {}
    names: dict[int, OpenDim] = {}
    for i, (one, other) in enumerate(zip(*sides, strict=True)):
        for dim, number in ((one, other), (other, one)) if is_either_side else ((one, other),):
            if isinstance(dim, OpenDim) and number == neutral:
                names[i] = dim
    return names
