"""Lists of tensors as TensorFlow's recurrent layers use them. A handle is a scalar of type VARIANT.

At run time a handle is a :class:`TensorList`, which nobody changes: what sets an item gives a new list. An item that
was never set is there as zeros, if its shape is known. ``dynamic_size`` and ``resize_if_index_out_of_bounds`` are ours:
lists that grow when they are written behind their end.

An element shape is a vector (-1: not known); a scalar -1 stands for an unknown rank.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ge.graph.node import Node, NodeOut
from ge.graph.tensor_desc import Shape
from ge.graph.types import DataType, numpy_dtype
from ge.ops.control import Known, agreed
from ge.ops.registry import Array, Attributes, InferContext, Misfit, OutputSpec, const_value, operator
from ge.ops.sequence import first_handle, outside_handles

UNKNOWN = Shape([-2])
MAX_ITEMS = 1 << 24
"""Items that a list can have."""


# -- at run time -------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class TensorList:
    """``items`` of one type; ``None`` was never set. ``shape`` is what all items fit, ``[-2]`` if nothing is known."""

    element_type: DataType
    shape: Shape
    items: tuple[Array | None, ...]
    grows: bool = False

    def position(self, index: int) -> int:
        """Return an index that must be that of an item."""
        if not 0 <= index < len(self.items):
            raise Misfit(f"index {index} is out of range for a list of {len(self.items)} tensors")
        return index

    def with_item(self, index: int, item: Array, *, grows: bool = False) -> TensorList:
        """Return this list with another item. A list that grows gets unset items up to a place behind its end."""
        items = self.items
        if (grows or self.grows) and len(items) <= index < MAX_ITEMS:
            items = (*items, *[None] * (index + 1 - len(items)))
        at = replace(self, items=items).position(index)
        return replace(self, items=(*items[:at], self.own(item), *items[at + 1 :]))

    def own(self, item: Array) -> Array:
        """Return a copy of an item, whose memory may be used again. Raises ``Misfit`` for a shape that does not fit."""
        if not _fits(item.shape, self.shape):
            raise Misfit(f"an item of shape {list(item.shape)} is put into a list of {self.shape}")
        copy = np.array(item)
        copy.flags.writeable = False
        return copy

    def item(self, index: int, shape: Shape) -> Array:
        """Return an item, zeros for one that was never set; ``shape`` is what is known of it besides."""
        found = self.items[self.position(index)]
        if found is None:
            dims = refined(self.shape, shape)
            if dims.is_unknown_shape():
                raise Misfit(f"item {index} was never set, and its shape is not known ({dims})")
            return np.zeros(tuple(dims), numpy_dtype(self.element_type))
        if not _fits(found.shape, shape):
            raise Misfit(f"item {index} has the shape {list(found.shape)}, which does not fit {shape}")
        return found

    def stacked(self, indices: Sequence[int], shape: Shape) -> Array:
        """Return items along a new first axis; what one of them says of the shape holds for all."""
        known = refined(self.shape, shape)
        for index in indices:
            found = self.items[self.position(index)]
            if found is not None:
                known = refined(known, Shape(found.shape))
        if not indices and known.is_unknown_shape():
            raise Misfit(f"there is nothing to stack, and the shape of an item is not known ({known})")
        result = np.empty((len(indices), *known), numpy_dtype(self.element_type)) if not indices else None
        return np.stack([self.item(index, known) for index in indices]) if result is None else result


def _fits(dims: Sequence[int], shape: Shape) -> bool:
    if shape.is_unknown_rank():
        return True
    return len(dims) == len(shape) and all(b in (a, -1) for a, b in zip(dims, shape, strict=True))


def refined(first: Shape, second: Shape) -> Shape:
    """Return what two statements on one shape say together. Raises ``Misfit`` when both cannot hold."""
    if first.is_unknown_rank() or second.is_unknown_rank():
        return second if first.is_unknown_rank() else first
    if len(first) != len(second) or any(a != b and a >= 0 and b >= 0 for a, b in zip(first, second, strict=True)):
        raise Misfit(f"the shapes {first} and {second} of an item do not fit together")
    return Shape(b if a < 0 else a for a, b in zip(first, second, strict=True))


def _shape_of(value: Array) -> Shape:
    """Return the shape that an input ``element_shape`` gives."""
    return UNKNOWN if value.ndim == 0 else Shape(max(int(dim), -1) for dim in value)


def _count_of(value: Array | int) -> int:
    count = int(value)
    if not 0 <= count <= MAX_ITEMS:
        raise Misfit(f"a list cannot have {count} items")
    return count


# -- what is known of a list -------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class _Origin:
    """What a node says of the list that it gives."""

    handles: Sequence[NodeOut] = ()
    """Lists that the items come from."""
    parts: Sequence[Known] = ()
    """Items that it adds."""
    declared: Shape | None = None
    """What all items of a new list fit."""
    length: int | None = -1
    """How many items a new list has; -1 when that is not known or changes, ``None`` for as many as before."""
    is_complete: bool = True
    """False in a loop under construction: what the turns will make of the list is not known yet."""


def _nameless(shape: Shape) -> Shape:
    return Shape(int(dim) for dim in shape)  # items of one list need not share what one of them calls a dim


def _part(node: Node, slot: int, n_axes: int = 0) -> Known | None:
    """Return what is known of an input of a node without its first axes."""
    source = node.input(slot)
    if source is None:
        return None
    shape, dtype = _nameless(source.desc.origin_shape), source.desc.data_type
    return (shape if shape.is_unknown_rank() else Shape(shape[n_axes:])), dtype


def _declared(node: Node, slot: int) -> Shape:
    known = const_value(node, slot)
    return UNKNOWN if known is None or known.whole is None else _shape_of(known.whole)


def _number(node: Node, slot: int) -> int:
    known = const_value(node, slot)
    return -1 if known is None or known.whole is None or known.whole.size != 1 else int(known.whole.reshape(-1)[0])


def _first_dim(node: Node) -> int:
    source = node.input(0)
    shape = UNKNOWN if source is None else source.desc.origin_shape
    return int(shape[0]) if len(shape) and not shape.is_unknown_rank() else -1


def _origin(handle: NodeOut) -> _Origin:
    """Return where a list comes from."""
    node = handle.node
    first = [source for source in node.inputs[:1] if source is not None]
    if node.type == "TensorListReserve":
        grows = bool(node.attrs.get("dynamic_size", False))
        return _Origin(declared=_declared(node, 0), length=-1 if grows else _number(node, 1))
    if node.type == "EmptyTensorList":
        return _Origin(declared=_declared(node, 0))
    if node.type in ("TensorListFromTensor", "TensorListScatterV2", "TensorListSplit"):
        part = _part(node, 0, 1)
        if part is None:
            return _Origin(is_complete=False)
        declared = _declared(node, 1 if node.type != "TensorListScatterV2" else 2)
        if node.type == "TensorListSplit":
            part = (part[0] if part[0].is_unknown_rank() else Shape((-1, *part[0])), part[1])
        length = _first_dim(node) if node.type == "TensorListFromTensor" else -1
        return _Origin(parts=[part], declared=declared, length=length)
    if node.type in ("TensorListSetItem", "TensorListPushBack", "TensorListScatterIntoExistingList"):
        slot, n_axes = (2, 0) if node.type == "TensorListSetItem" else (1, int(node.type != "TensorListPushBack"))
        part = _part(node, slot, n_axes)
        keeps = node.type == "TensorListSetItem" and not node.attrs.get("resize_if_index_out_of_bounds", False)
        return _Origin(first, [] if part is None else [part], length=None if keeps else -1)
    if node.type == "Identity":
        return _Origin(first, length=None)
    if node.type in ("TensorListPopBack", "TensorListResize"):
        return _Origin(first)
    if node.type == "TensorListConcatLists":
        return _Origin([source for source in node.inputs if source is not None])
    around = outside_handles(handle)
    if around is not None:
        return _Origin(around, length=None)
    before = first_handle(node)
    return _Origin([] if before is None else [before], is_complete=False)


@dataclass(frozen=True)
class _Content:
    """What is known of the items of a list, and how many there are (-1: not known)."""

    shape: Shape
    length: int


def content_of(handle: NodeOut) -> _Content:
    """Return what all items behind ``handle`` agree on. Raises ``Misfit`` for items that cannot be in one list.

    In a loop under construction this is the rank of what was there before: items of other ranks are not foreseen.
    """
    found: list[_Origin] = []
    waiting, seen = [handle], {handle}
    while waiting:
        found.append(_origin(waiting.pop()))
        waiting += [source for source in found[-1].handles if source not in seen]
        seen.update(found[-1].handles)
    parts = _common([shape for origin in found for shape, _ in origin.parts])
    shape = refined(parts, _common([origin.declared for origin in found if origin.declared is not None]))
    if not all(origin.is_complete for origin in found):
        return _Content(shape if shape.is_unknown_rank() else Shape([-1] * len(shape)), -1)
    lengths = {origin.length for origin in found if origin.length is not None}
    return _Content(shape, lengths.pop() if len(lengths) == 1 else -1)


def _common(shapes: Sequence[Shape]) -> Shape:
    if not shapes:
        return UNKNOWN
    found = (shapes[0], DataType.DT_FLOAT)
    for shape in shapes[1:]:
        found = agreed(found, (shape, DataType.DT_FLOAT))
    return found[0]


# -- inference ---------------------------------------------------------------------------------------------------------
def _handle(ctx: InferContext) -> Sequence[OutputSpec]:
    return [((), DataType.DT_VARIANT)]


def _source(ctx: InferContext, slot: int = 0) -> NodeOut:
    source = ctx.node.input(slot)
    if source is None or source.desc.data_type is not DataType.DT_VARIANT:
        raise ctx.fail(f"input {slot} is no list of tensors")
    return source


def _changed(ctx: InferContext) -> Sequence[OutputSpec]:
    _source(ctx)
    return _handle(ctx)


def _joined_lists(ctx: InferContext) -> Sequence[OutputSpec]:
    _source(ctx, 1)
    return _changed(ctx)


def _item_shape(ctx: InferContext) -> Shape:
    """Return what the list and the input ``element_shape`` say of an item together."""
    given = ctx.value("element_shape") if ctx.has("element_shape") else None
    return refined(content_of(_source(ctx)).shape, UNKNOWN if given is None else _shape_of(given))


def _item(ctx: InferContext) -> Sequence[OutputSpec]:
    return [(_item_shape(ctx), ctx.op.element_dtype)]


def _popped(ctx: InferContext) -> Sequence[OutputSpec]:
    return [*_handle(ctx), *_item(ctx)]


def _stacked(ctx: InferContext) -> Sequence[OutputSpec]:
    length, shape = content_of(_source(ctx)).length, _item_shape(ctx)
    count = ctx.op.num_elements
    if count >= 0 and length >= 0 and count != length:
        raise ctx.fail(f"attribute num_elements is {count}, but the list has {length} items", value=count)
    return [(_behind(count if count >= 0 else length, shape), ctx.op.element_dtype)]


def _behind(count: int, shape: Shape) -> Shape:
    return shape if shape.is_unknown_rank() else Shape((count, *shape))


def _gathered(ctx: InferContext) -> Sequence[OutputSpec]:
    indices, shape = ctx.shape("indices"), _item_shape(ctx)
    count = indices[0] if len(indices) == 1 and not indices.is_unknown_rank() else -1
    return [(_behind(count, shape), ctx.op.element_dtype)]


def _concatenated(ctx: InferContext) -> Sequence[OutputSpec]:
    found = content_of(_source(ctx))
    shape, length = _item_shape(ctx), found.length
    if shape.is_unknown_rank():
        return [(shape, ctx.op.element_dtype), ((length,), DataType.DT_INT64)]
    if not shape:
        raise ctx.fail("scalars cannot be joined along an axis")
    return [((-1, *shape[1:]), ctx.op.element_dtype), ((length,), DataType.DT_INT64)]


def _length(ctx: InferContext) -> Sequence[OutputSpec]:
    _source(ctx)
    return [((), DataType.DT_INT32)]


def _known_length(ctx: InferContext) -> Array | None:
    length = content_of(_source(ctx)).length
    return None if length < 0 else np.asarray(length, np.int32)


def _shape_vector(ctx: InferContext) -> Sequence[OutputSpec]:
    shape = content_of(_source(ctx)).shape
    return [((-1 if shape.is_unknown_rank() else len(shape),), ctx.op.shape_type)]


# -- operators ---------------------------------------------------------------------------------------------------------
_NEW = "[element_dtype:t! shape_type:t=INT32]"


@operator(
    "TensorListReserve(element_shape, num_elements) -> handle [element_dtype:t! shape_type:t=INT32 dynamic_size:b=F]",
    infer=_handle,
    exact_types=True,
)
def reserve(op: Attributes, element_shape: Array, num_elements: Array) -> Any:
    items = (None,) * _count_of(num_elements)
    return TensorList(op.element_dtype, _shape_of(element_shape), items, op.dynamic_size)


@operator(f"EmptyTensorList(element_shape, max_num_elements) -> handle {_NEW}", infer=_handle, exact_types=True)
def empty(op: Attributes, element_shape: Array, max_num_elements: Array) -> Any:
    return TensorList(op.element_dtype, _shape_of(element_shape), ())


@operator(f"TensorListFromTensor(tensor, element_shape) -> output_handle {_NEW}", infer=_handle, exact_types=True)
def from_tensor(op: Attributes, tensor: Array, element_shape: Array) -> Any:
    if tensor.ndim == 0:
        raise Misfit("a scalar has no rows that could be the items of a list")
    rows = np.array(tensor)
    rows.flags.writeable = False
    return TensorList(op.element_dtype, refined(Shape(tensor.shape[1:]), _shape_of(element_shape)), tuple(rows))


@operator(
    "TensorListScatterV2(tensor, indices, element_shape, num_elements) -> output_handle "
    "[element_dtype:t! shape_type:t=INT32]",
    infer=_handle,
    exact_types=True,
)
def scatter(op: Attributes, tensor: Array, indices: Array, element_shape: Array, num_elements: Array) -> Any:
    """``num_elements`` -1: as many as the largest index needs."""
    count = int(num_elements)
    items = (None,) * _count_of(max(int(indices.max(initial=-1)) + 1, 0) if count == -1 else count)
    return _scattered(TensorList(op.element_dtype, _shape_of(element_shape), items), tensor, indices)


@operator(
    "TensorListScatterIntoExistingList(input_handle, tensor, indices) -> output_handle [element_dtype:t!]",
    infer=_changed,
    exact_types=True,
)
def scatter_into(op: Attributes, input_handle: TensorList, tensor: Array, indices: Array) -> Any:
    longest = _count_of(max(int(indices.max(initial=-1)) + 1, len(input_handle.items)))
    items = (*input_handle.items, *[None] * (longest - len(input_handle.items)))
    return _scattered(replace(input_handle, items=items), tensor, indices)


def _scattered(handle: TensorList, tensor: Array, indices: Array) -> TensorList:
    if indices.shape != tensor.shape[:1]:
        raise Misfit(f"{list(indices.shape)} indices are given for the rows of {list(tensor.shape)}")
    items = list(handle.items)
    for index, row in zip(indices.tolist(), tensor, strict=True):
        items[handle.position(index)] = handle.own(row)
    return replace(handle, items=tuple(items))


@operator(f"TensorListSplit(tensor, element_shape, lengths) -> output_handle {_NEW}", infer=_handle, exact_types=True)
def split(op: Attributes, tensor: Array, element_shape: Array, lengths: Array) -> Any:
    if tensor.ndim == 0 or (lengths < 0).any() or int(lengths.sum()) != tensor.shape[0]:
        raise Misfit(f"pieces of lengths {lengths.tolist()} do not make up axis 0 of {list(tensor.shape)}")
    made = TensorList(op.element_dtype, _shape_of(element_shape), ())
    pieces = np.split(tensor, np.cumsum(lengths)[:-1]) if lengths.size else []
    return replace(made, items=tuple(made.own(piece) for piece in pieces))


@operator(
    "TensorListSetItem(input_handle, index, item) -> output_handle "
    "[element_dtype:t! resize_if_index_out_of_bounds:b=F]",
    infer=_changed,
    exact_types=True,
)
def set_item(op: Attributes, input_handle: TensorList, index: Array, item: Array) -> Any:
    return input_handle.with_item(int(index), item, grows=op.resize_if_index_out_of_bounds)


@operator(
    "TensorListGetItem(input_handle, index, element_shape) -> item [element_dtype:t!]", infer=_item, exact_types=True
)
def get_item(op: Attributes, input_handle: TensorList, index: Array, element_shape: Array) -> Array:
    return input_handle.item(int(index), _shape_of(element_shape))


@operator(
    "TensorListPushBack(input_handle, tensor) -> output_handle [element_dtype:t!]", infer=_changed, exact_types=True
)
def push_back(op: Attributes, input_handle: TensorList, tensor: Array) -> Any:
    return replace(input_handle, items=(*input_handle.items, input_handle.own(tensor)))


@operator(
    "TensorListPopBack(input_handle, element_shape) -> output_handle, tensor [element_dtype:t!]",
    infer=_popped,
    exact_types=True,
)
def pop_back(op: Attributes, input_handle: TensorList, element_shape: Array) -> Any:
    if not input_handle.items:
        raise Misfit("the list is empty")
    last = input_handle.item(len(input_handle.items) - 1, _shape_of(element_shape))
    return replace(input_handle, items=input_handle.items[:-1]), last


@operator("TensorListLength(input_handle) -> length", infer=_length, exact_types=True, value_infer=_known_length)
def length(op: Attributes, input_handle: TensorList) -> Array:
    return np.asarray(len(input_handle.items), np.int32)


@operator(
    "TensorListElementShape(input_handle) -> element_shape [shape_type:t!]", infer=_shape_vector, exact_types=True
)
def element_shape(op: Attributes, input_handle: TensorList) -> Array:
    """An unknown rank is a scalar -1."""
    shape = input_handle.shape
    return np.asarray(-1) if shape.is_unknown_rank() else np.asarray([int(dim) for dim in shape], np.int64)


@operator("TensorListResize(input_handle, size) -> output_handle", infer=_changed, exact_types=True)
def resize(op: Attributes, input_handle: TensorList, size: Array) -> Any:
    count = _count_of(size)
    kept = input_handle.items[:count]
    return replace(input_handle, items=(*kept, *[None] * (count - len(kept))))


@operator(
    "TensorListStack(input_handle, element_shape) -> tensor [element_dtype:t! num_elements:i=-1]",
    infer=_stacked,
    exact_types=True,
)
def stack(op: Attributes, input_handle: TensorList, element_shape: Array) -> Array:
    count = len(input_handle.items)
    if op.num_elements >= 0 and op.num_elements != count:
        raise Misfit(f"the list has {count} items, but must have {op.num_elements}")
    return input_handle.stacked(range(count), _shape_of(element_shape))


@operator(
    "TensorListGather(input_handle, indices, element_shape) -> values [element_dtype:t!]",
    infer=_gathered,
    exact_types=True,
)
def gather(op: Attributes, input_handle: TensorList, indices: Array, element_shape: Array) -> Array:
    return input_handle.stacked(np.ravel(indices).tolist(), _shape_of(element_shape))


@operator(
    "TensorListConcatV2(input_handle, element_shape, leading_dims) -> tensor, lengths "
    "[element_dtype:t! shape_type:t=INT32]",
    infer=_concatenated,
    exact_types=True,
)
def concat(op: Attributes, input_handle: TensorList, element_shape: Array, leading_dims: Array) -> Any:
    """Items that were never set are as long as ``leading_dims`` says."""
    wanted = refined(input_handle.shape, _shape_of(element_shape))
    leading = np.ravel(leading_dims).tolist()
    parts = []
    for index, item in enumerate(input_handle.items):
        known = wanted
        if item is None and index < len(leading) and not wanted.is_unknown_rank():
            known = Shape((leading[index], *wanted[1:]))
        parts.append(input_handle.item(index, known) if item is None else item)
    if any(part.ndim == 0 for part in parts):
        raise Misfit("scalars cannot be joined along an axis")
    lengths = np.asarray([len(part) for part in parts], np.int64)
    if parts:
        return np.concatenate(parts), lengths
    if wanted.is_unknown_rank() or Shape(wanted[1:]).is_unknown_shape():
        raise Misfit(f"there is nothing to join, and the shape of an item is not known ({wanted})")
    return np.empty((0, *wanted[1:]), numpy_dtype(input_handle.element_type)), lengths


@operator("TensorListConcatLists(input_a, input_b) -> output [element_dtype:t!]", infer=_joined_lists, exact_types=True)
def concat_lists(op: Attributes, input_a: TensorList, input_b: TensorList) -> Any:
    if input_a.element_type is not input_b.element_type:
        raise Misfit(f"the lists hold {input_a.element_type.name} and {input_b.element_type.name}")
    return replace(
        input_a,
        shape=agreed((input_a.shape, DataType.DT_FLOAT), (input_b.shape, DataType.DT_FLOAT))[0],
        items=input_a.items + input_b.items,
    )
