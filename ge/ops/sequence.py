"""Sequences of tensors. A handle is a scalar of type RESOURCE; what its tensors are is told by what built it.

At run time a handle is a tuple of arrays that nobody changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ge.call_tree import parent_slot
from ge.graph.graph import Graph
from ge.graph.node import Node, NodeOut
from ge.graph.tensor_desc import Shape, TensorDesc
from ge.graph.types import DataType
from ge.ops.control import Known, agreed
from ge.ops.inference import axis_in_rank
from ge.ops.registry import Array, Attributes, InferContext, Misfit, OutputSpec, operator

UNKNOWN = Shape([-2])
Tensors = tuple[Array, ...]
"""A handle at run time."""


# -- what a handle holds -----------------------------------------------------------------------------------------------
def element_of(handle: NodeOut) -> Known:
    """Return what all tensors behind ``handle`` agree on. Raises ``Misfit`` when it cannot be told, or types differ."""
    parts: list[Known] = []
    empty_types: list[DataType] = []
    waiting, seen = [handle], {handle}
    is_complete = True
    while waiting:
        out = waiting.pop()
        found = _origins(out)
        if found is None:
            is_complete = False
            continue
        parts += found.parts
        empty_types += found.empty_types
        waiting += [source for source in found.handles if source not in seen]
        seen.update(found.handles)
    if not parts or not is_complete:
        types = empty_types or [part[1] for part in parts]
        if not types:
            raise Misfit(f"it cannot be told what tensors the sequence {handle} holds")
        parts.append((UNKNOWN, types[0]))
    found_so_far = parts[0]
    for part in parts[1:]:
        found_so_far = agreed(found_so_far, part)
    return found_so_far


@dataclass(frozen=True)
class _Origins:
    """Where the tensors of a sequence come from: put in here, or held by other sequences."""

    handles: Sequence[NodeOut] = ()
    parts: Sequence[Known] = ()
    empty_types: Sequence[DataType] = ()
    """Types of empty sequences."""


def _origins(handle: NodeOut) -> _Origins | None:
    """Return where the tensors of a sequence come from; ``None`` while a loop that changes it is under construction."""
    node = handle.node
    first = [node.inputs[0]] if node.inputs and node.inputs[0] is not None else []
    if node.type == "SequenceConstruct":
        return _Origins(parts=[_known(source.desc) for source in node.inputs if source is not None])
    if node.type == "SequenceEmpty":
        return _Origins(empty_types=[DataType(node.attrs.get("dtype", DataType.DT_FLOAT))])
    if node.type == "SplitToSequence":
        return _Origins(parts=[_piece(node)])
    if node.type == "SequenceInsert":
        value = node.input(1)
        return _Origins(first, [] if value is None else [_known(value.desc)])
    if node.type in ("SequenceErase", "Identity"):
        return _Origins(first)
    around = outside_handles(handle)
    return None if around is None else _Origins(around)


def outside_handles(handle: NodeOut) -> list[NodeOut] | None:
    """Return the handles behind one that a body is given (in a loop, also by the turn before) or that a call gives.

    ``None`` while a loop that changes it is under construction.
    """
    node = handle.node
    if node.type != "Data":
        bodies = [node.graph.root.subgraphs[name] for ir_name, name in node.subgraphs if ir_name != "cond"]
        before = node.input(handle.index) if any(ir_name == "body" for ir_name, _ in node.subgraphs) else None
        found = [body.outputs[handle.index] for body in bodies if handle.index < len(body.outputs)]
        return found if before is None else [before, *found]  # a loop may have no turn at all
    caller, source = _caller(node.graph), first_handle(node)
    if caller is None or source is None:
        return []
    slot = parent_slot(node, caller)
    loops = [caller.graph.root.subgraphs[name] for ir_name, name in caller.subgraphs if ir_name == "body"]
    if any(slot >= len(body.outputs) for body in loops):
        return None
    return [source, *(body.outputs[slot] for body in loops)]


def first_handle(data: Node) -> NodeOut | None:
    """Return what the caller of a body gives it, in a loop for the first turn."""
    caller = _caller(data.graph)
    return None if caller is None else caller.input(parent_slot(data, caller))


def _caller(body: Graph) -> Node | None:
    for graph in body.root.all_graphs():
        for node in graph:
            if any(name == body.name for _, name in node.subgraphs):
                return node
    return None


def _known(desc: TensorDesc) -> Known:
    return desc.origin_shape, desc.data_type


def _piece(node: Node) -> Known:
    """Return one part that SplitToSequence makes; parts may differ along its axis."""
    source = node.input(0)
    if source is None:
        raise Misfit(f"node {node.name} splits nothing")
    x, dtype = _known(source.desc)
    if x.is_unknown_rank():
        return x, dtype
    axis = axis_in_rank(node.attrs.get("axis", 0), len(x))
    if node.input(1) is not None:
        return Shape((*x[:axis], -1, *x[axis + 1 :])), dtype
    keeps = node.attrs.get("keepdims", True)
    return Shape((*x[:axis], *([1] if keeps else []), *x[axis + 1 :])), dtype


# -- operators ---------------------------------------------------------------------------------------------------------
def _handle(ctx: InferContext) -> Sequence[OutputSpec]:
    return [((), DataType.DT_RESOURCE)]


def _source(ctx: InferContext) -> NodeOut:
    source = ctx.node.input(0)
    if source is None or source.desc.data_type is not DataType.DT_RESOURCE:
        raise ctx.fail("input handle is no sequence")
    return source


def _constructed(ctx: InferContext) -> Sequence[OutputSpec]:
    element_of(NodeOut(ctx.node, 0))
    return _handle(ctx)


def _inserted(ctx: InferContext) -> Sequence[OutputSpec]:
    _source(ctx)
    return _constructed(ctx)


def _changed(ctx: InferContext) -> Sequence[OutputSpec]:
    _source(ctx)
    return _handle(ctx)


def _one(ctx: InferContext) -> Sequence[OutputSpec]:
    return [element_of(_source(ctx))]


def _length(ctx: InferContext) -> Sequence[OutputSpec]:
    _source(ctx)
    return [((), DataType.DT_INT64)]


def _concatenated(ctx: InferContext) -> Sequence[OutputSpec]:
    shape, dtype = element_of(_source(ctx))
    if shape.is_unknown_rank():
        return [(shape, dtype)]
    if ctx.op.new_axis:
        axis = axis_in_rank(ctx.op.axis, len(shape) + 1)
        return [((*shape[:axis], -1, *shape[axis:]), dtype)]
    axis = axis_in_rank(ctx.op.axis, len(shape))
    return [((*shape[:axis], -1, *shape[axis + 1 :]), dtype)]


@operator("SequenceConstruct(inputs*) -> handle", infer=_constructed, exact_types=True)
def sequence_construct(op: Attributes, tensors: list[Array]) -> Any:
    return [tuple(_own(tensor) for tensor in tensors)]


@operator("SequenceEmpty() -> handle [dtype:t=FLOAT]", infer=_handle, exact_types=True)
def sequence_empty(op: Attributes) -> Any:
    return [()]


@operator("SequenceInsert(handle, value, index?) -> handle_y", infer=_inserted, exact_types=True)
def sequence_insert(op: Attributes, handle: Tensors, value: Array, index: Array | None) -> Any:
    at = len(handle) if index is None else _position(index, len(handle), len(handle))
    return [(*handle[:at], _own(value), *handle[at:])]


@operator("SequenceErase(handle, index?) -> handle_y", infer=_changed, exact_types=True)
def sequence_erase(op: Attributes, handle: Tensors, index: Array | None) -> Any:
    at = _position(np.int64(-1) if index is None else index, len(handle), len(handle) - 1)
    return [handle[:at] + handle[at + 1 :]]


@operator("SequenceAt(handle, index)", infer=_one, exact_types=True)
def sequence_at(op: Attributes, handle: Tensors, index: Array) -> Array:
    return handle[_position(index, len(handle), len(handle) - 1)]


@operator("SequenceLength(handle) -> length", infer=_length, exact_types=True)
def sequence_length(op: Attributes, handle: Tensors) -> Array:
    return np.asarray(len(handle), np.int64)


@operator("SplitToSequence(x, split?) -> handle [axis:i=0 keepdims:b=T]", infer=_constructed, exact_types=True)
def split_to_sequence(op: Attributes, x: Array, split: Array | None) -> Any:
    """Without ``split`` pieces have length 1; one number is the length of all but the last; a list has one for each."""
    axis = axis_in_rank(op.axis, x.ndim)
    length = x.shape[axis]
    if split is None or split.ndim == 0:
        step = 1 if split is None else int(split)
        if step < 1:
            raise Misfit(f"pieces of length {step} cannot be cut")
        ends = list(range(step, length, step))
    else:
        if int(split.sum()) != length or (split < 0).any():
            raise Misfit(f"pieces of lengths {split.tolist()} do not make up axis {axis} of {list(x.shape)}")
        ends = np.cumsum(split)[:-1].tolist()
    pieces = np.split(x, ends, axis) if length or split is not None else []
    if split is None and not op.keepdims:
        pieces = [piece.squeeze(axis) for piece in pieces]
    return [tuple(_own(piece) for piece in pieces)]


@operator("ConcatFromSequence(handle) [axis:i! new_axis:i=0]", infer=_concatenated, exact_types=True)
def concat_from_sequence(op: Attributes, handle: Tensors) -> Array:
    if not handle:
        raise Misfit("there is nothing to join: the sequence is empty")
    join = np.stack if op.new_axis else np.concatenate
    return join(handle, axis_in_rank(op.axis, handle[0].ndim + bool(op.new_axis)))


def _own(tensor: Array) -> Array:
    """Return a copy: the memory of ``tensor`` may be used again."""
    copy = np.array(tensor)
    copy.flags.writeable = False
    return copy


def _position(index: Array | np.int64, length: int, last: int) -> int:
    """Return an index in 0..last. Raises ``Misfit`` when it is out of range."""
    at = int(index)
    if not -length <= at <= last:
        raise Misfit(f"index {at} is out of range for a sequence of {length} tensors")
    return at % length if at < 0 else at
