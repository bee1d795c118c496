"""From the expression of a box to an AscGraph: axes are chosen, views become strides and offsets, equal parts merge."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from ge.ascir import AscGraph, AscGraphFault, AscOp, AscTensor, check
from ge.ascir.asc_graph import contiguous_strides
from ge.graph import DataType, NodeOut
from passes.lowering.element_types import kernel_type
from passes.lowering.loop_index import Indices, axis_strides, flat, loop_indices
from passes.lowering.loop_ir import STORES, VIEWS, LoopOp, source_indices
from passes.lowering.refusal import Refusal, Rule

MAX_OPS = 2000
"""Operators of a program: the text of one must stay below 1 MiB."""
Dims = tuple[int, ...]


class _State(NamedTuple):
    """An operator at one index, over loops of the sizes ``frame``."""

    op: LoopOp
    indices: Indices
    frame: Dims

    @property
    def key(self) -> tuple[int, Indices, Dims]:
        return self.op.id, self.indices, self.frame


@dataclass(frozen=True)
class Emitted:
    """A kernel's program and the tensors that its inputs are, by index of Data."""

    graph: AscGraph
    sources: tuple[NodeOut, ...]


def emit(name: str, root: LoopOp, guards: Sequence[tuple[int, ...]] = (), *, merges: bool = True) -> Emitted:
    """Make the AscGraph of an expression that ends in a store.

    ``guards`` tell elements of the result from padding. With ``merges=False`` equal parts stay apart. Raises
    :class:`Refusal` for what no AscGraph can say, for more than :data:`MAX_OPS`, and for kernels over one element.
    """
    emission = _Emission(merges=merges)
    sizes = axes_of(root)
    is_cube = root.type in ("StoreMatMul", "StoreConv2D")
    if not is_cube and (not sizes or (root.slices == 0 and all(size == 1 for size in sizes))):
        raise Refusal(Rule.SCALAR_KERNEL, f"loops of {list(sizes)}")
    value = emission.root_value(root)
    written = replace(emission.tensor(value), strides=contiguous_strides(emission.tensor(value).repeats))
    store = emission.add(AscOp.of("Store", [value], written, [root.origin], guards=tuple(guards)))
    emission.add(AscOp.of("Output", [store], index=0))
    if len(emission.ops) > MAX_OPS:
        raise Refusal(Rule.EMISSION, f"{len(emission.ops)} operators, at most {MAX_OPS}")
    graph = AscGraph.of(name, sizes, emission.ops)
    try:
        check(graph)
    except AscGraphFault as fault:
        raise Refusal(Rule.EMISSION, str(fault)) from fault
    return Emitted(graph, tuple(emission.sources))


def axes_of(root: LoopOp) -> Dims:
    """Return the sizes of the axes: dims of the result, of what is reduced, or of what is split."""
    return root.inputs[0].dims if root.type in ("StoreReduction", "StoreSplit") else root.dims


def _resolved(op: LoopOp, indices: Indices, frame: Dims) -> _State:
    """Follow views and inner stores down to what loads or computes."""
    while op.type in VIEWS or op.type in STORES:
        indices = source_indices(op, indices)
        op = op.inputs[0]
    return _State(op, indices, frame)


class _Emission:
    def __init__(self, *, merges: bool) -> None:
        self.merges = merges
        self.ops: list[AscOp] = []
        self.sources: list[NodeOut] = []
        self._numbers: dict[AscOp, int] = {}
        self._data: dict[tuple[NodeOut, AscTensor], int] = {}
        self._values: dict[tuple[int, Indices, Dims], int] = {}

    def tensor(self, number: int) -> AscTensor:
        return self.ops[number].tensor

    def add(self, op: AscOp) -> int:
        """Append an operator, or find its equal; that then comes from both operators of the model."""
        key = replace(op, origins=())
        number = self._numbers.get(key) if self.merges else None
        if number is None:
            number = self._numbers[key] = len(self.ops)
            self.ops.append(op)
            return number
        known = self.ops[number]
        merged = tuple(dict.fromkeys((*known.origins, *op.origins)))
        self.ops[number] = replace(known, origins=merged)
        return number

    # -- the expression -----------------------------------------------------------------------------------------------
    def root_value(self, root: LoopOp) -> int:
        """Emit all below a store and return the number of the value that it writes."""
        if root.type in ("StoreConcat", "StorePack", "StoreMatMul", "StoreConv2D"):
            frames = [value.dims for value in root.inputs]
        else:
            frames = [axes_of(root)]
        tops = [_resolved(op, loop_indices(len(f)), f) for op, f in zip(root.inputs, frames, strict=True)]
        self._emit_below(tops)
        values = [self._whole(self._values[top.key], top.frame) for top in tops]
        dtype = kernel_type(root.dtype)
        if root.type == "StoreReduction":
            kept = [n if d == "NORM" else 1 for n, d in zip(root.inputs[0].dims, root.attrs["fates"], strict=True)]
            return self.add(self._op(root, root.attrs["kind"], values, dtype, kept))
        if root.type in ("StoreConcat", "StorePack"):
            return self.add(self._op(root, "Concat", values, dtype, root.dims, axis=root.attrs["dim"]))
        if root.type == "StoreSplit":
            attrs = {name: root.attrs[name] for name in ("start", "index", "gid")}
            return self.add(self._op(root, "Split", values, dtype, root.dims, axis=root.attrs["dim"], **attrs))
        if root.type in ("StoreMatMul", "StoreConv2D"):
            attrs = {name: value for name, value in root.attrs.items() if name != "functor"}
            return self.add(self._op(root, root.attrs["functor"], values, dtype, root.dims, **attrs))
        return values[0]

    @staticmethod
    def _op(
        op: LoopOp, name: str, inputs: Sequence[int], dtype: DataType, repeats: Sequence[int], **attrs: int
    ) -> AscOp:
        return AscOp.of(name, inputs, AscTensor.contiguous(dtype, repeats), [op.origin], **attrs)

    def _emit_below(self, tops: Sequence[_State]) -> None:
        states: dict[tuple[int, Indices, Dims], _State] = {}
        waiting = list(reversed(tops))
        while waiting:
            state = waiting.pop()
            if state.key not in states:
                states[state.key] = state
                waiting += reversed(self._below(state))
        for state in sorted(states.values(), key=lambda state: state.op.id):
            self._values[state.key] = self._emit(state)

    @staticmethod
    def _below(state: _State) -> list[_State]:
        found = []
        for value in state.op.inputs:
            is_number = value.type == "Scalar"
            found.append(_State(value, (), state.frame) if is_number else _resolved(value, state.indices, state.frame))
        return found

    def _emit(self, state: _State) -> int:
        op = state.op
        if op.type == "Load":
            return self._load(state)
        if op.type == "LoadGather":
            return self._gather(state)
        if op.type == "Scalar":
            ones = AscTensor.contiguous(kernel_type(op.dtype), (1,) * len(state.frame))
            return self.add(AscOp.of("Scalar", (), ones, [op.origin], value=op.attrs["value"]))
        inputs = [self._values[below.key] for below in self._below(state)]
        if op.type == "ReduceThenBroadcast":
            return self._reduced(state, inputs[0])
        return self._elementwise(state, inputs)

    def _elementwise(self, state: _State, inputs: list[int]) -> int:
        op, frame = state.op, state.frame
        if any(self.tensor(number).repeats == frame for number in inputs):
            inputs = [n if self.ops[n].type == "Scalar" else self._whole(n, frame) for n in inputs]
            repeats = frame
        else:
            repeats = (1,) * len(frame)
        return self.add(self._op(op, op.type, inputs, kernel_type(op.dtype), repeats, **op.attrs))

    def _whole(self, number: int, frame: Dims) -> int:
        """Repeat a value over all loops, unless it is."""
        tensor = self.tensor(number)
        if tensor.repeats == frame:
            return number
        return self.add(
            AscOp.of("Broadcast", [number], AscTensor.contiguous(tensor.dtype, frame), self.ops[number].origins)
        )

    def _reduced(self, state: _State, value: int) -> int:
        op, frame = state.op, state.frame
        axis = state.indices[op.attrs["dim"]].axis
        if axis is None or frame[axis] != op.dims[op.attrs["dim"]]:
            raise Refusal(Rule.EMISSION, "a reduced dim is no loop of its own")
        whole = self._whole(value, frame)
        left = (*frame[:axis], 1, *frame[axis + 1 :])
        total = self.add(self._op(op, op.attrs["kind"], [whole], kernel_type(op.dtype), left))
        return self._whole(total, frame)

    # -- memory -------------------------------------------------------------------------------------------------------
    def _load(self, state: _State) -> int:
        op, frame = state.op, state.frame
        assert op.anchor is not None
        place = flat(state.indices, op.dims)
        strides = axis_strides(place, len(frame))
        if 0 in frame:
            strides = (0,) * len(frame)
        repeats = tuple(1 if stride == 0 and size else size for size, stride in zip(frame, strides, strict=True))
        steps = tuple(0 if repeat == 1 else stride for repeat, stride in zip(repeats, strides, strict=True))
        dtype = kernel_type(op.dtype)
        data = self._input(op.anchor, AscTensor(dtype, repeats, steps))
        whole = AscTensor.contiguous(dtype, frame)
        return self.add(AscOp.of("Load", [data], whole, [op.origin], offset=place.constant))

    def _gather(self, state: _State) -> int:
        op, frame = state.op, state.frame
        if op.dims != frame or state.indices != loop_indices(len(frame)):
            raise Refusal(Rule.EMISSION, "a Gather is read through a view")
        inputs = []
        for source in op.sources:
            view = AscTensor.contiguous(kernel_type(source.desc.data_type), source.desc.shape)
            inputs.append(self._input(source, view))
        attrs = {"axis": op.attrs["axis"], "negative_index_support": op.attrs["negative"]}
        return self.add(self._op(op, "Gather", inputs, kernel_type(op.dtype), frame, **attrs))

    def _input(self, source: NodeOut, view: AscTensor) -> int:
        number = self._data.get((source, view)) if self.merges else None
        if number is None:
            number = len(self.ops)
            self.ops.append(AscOp.of("Data", output=view, index=len(self.sources)))
            self._data[source, view] = number
            self.sources.append(source)
        return number
