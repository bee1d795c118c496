"""Two kernels in one program: the axes of the first are found among those of the second, and what the first stores is
handed on without memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from ge.ascir import AscGraph, AscOp, AscTensor
from ge.ascir.asc_graph import contiguous_strides
from ge.graph import NodeOut


class Unmergeable(Exception):
    """The loops of two kernels do not go together; the message says why."""


@dataclass(frozen=True)
class Part:
    """A kernel that is to be fused: its program, and the tensors behind its inputs and its outputs."""

    graph: AscGraph
    sources: Sequence[NodeOut]
    results: Sequence[NodeOut]


@dataclass
class _Program:
    """Operators of the fused kernel, with equal ones merged."""

    ops: list[AscOp] = field(default_factory=list)
    sources: list[NodeOut] = field(default_factory=list)
    numbers: dict[AscOp, int] = field(default_factory=dict)
    data: dict[tuple[NodeOut, AscTensor], int] = field(default_factory=dict)

    def add(self, op: AscOp) -> int:
        """Append an operator, or find its equal; every Store writes a tensor of its own."""
        key = replace(op, origins=())
        if key not in self.numbers or op.type == "Store":
            self.numbers[key] = len(self.ops)
            self.ops.append(op)
        return self.numbers[key]

    def add_data(self, source: NodeOut, view: AscTensor) -> int:
        if (source, view) not in self.data:
            self.data[source, view] = len(self.ops)
            self.ops.append(AscOp.of("Data", output=view, index=len(self.sources)))
            self.sources.append(source)
        return self.data[source, view]


@dataclass(frozen=True)
class Fused:
    """The program of both kernels. ``results`` are the tensors that it stores, in order of its outputs."""

    graph: AscGraph
    sources: tuple[NodeOut, ...]
    results: tuple[NodeOut, ...]


def fuse(name: str, first: Part, second: Part, stored: Sequence[NodeOut]) -> Fused:
    """Fuse two kernels; ``second`` may read results of ``first``, of which those in ``stored`` are written too.

    Raises :class:`Unmergeable`.
    """
    axes = axis_places(first, second)
    program = _Program()
    made: dict[NodeOut, int] = {}
    stores: dict[NodeOut, int] = {}
    _append(program, first, axes.first, axes.count, {}, made, stores)
    kept = {tensor: number for tensor, number in stores.items() if tensor in stored}
    handed = dict(made)
    _append(program, second, axes.second, axes.count, handed, made, kept)
    results = tuple(kept)
    for index, tensor in enumerate(results):
        program.ops.append(AscOp.of("Output", [kept[tensor]], index=index))
    ops, sources = _swept(program)
    return Fused(AscGraph.of(name, axes.sizes, ops), sources, results)


@dataclass(frozen=True)
class SharedAxes:
    """The axes of a fused kernel, and where among them those of its parts are."""

    sizes: tuple[int, ...]
    first: tuple[int, ...]
    second: tuple[int, ...]

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self.sizes)


def axis_places(first: Part, second: Part) -> SharedAxes:
    """Find common axes: those of the kernel that has more. Raises :class:`Unmergeable`."""
    have, want = first.graph.sizes, second.graph.sizes
    if len(have) <= len(want):
        # as in broadcasting, the last axes go together
        places = tuple(range(len(want) - len(have), len(want)))
        return SharedAxes(_joint(have, want, places), places, tuple(range(len(want))))
    places = _places_of_kept_axes(first, second)
    return SharedAxes(_joint(want, have, places), tuple(range(len(have))), places)


def _joint(fewer: tuple[int, ...], more: tuple[int, ...], places: tuple[int, ...]) -> tuple[int, ...]:
    """An axis that is one step long in one kernel is that of the other: its values are the same at all steps."""
    sizes = list(more)
    for size, place in zip(fewer, places, strict=True):
        if size != sizes[place] and 1 not in (size, sizes[place]):
            raise Unmergeable(f"axes {list(fewer)} and {list(more)}")
        sizes[place] = size if sizes[place] == 1 else sizes[place]
    return tuple(sizes)


def _places_of_kept_axes(first: Part, second: Part) -> tuple[int, ...]:
    """Where a reduction has dropped axes: those of ``second`` are the axes left in what it reads."""
    read = [index for index, result in enumerate(first.results) if result in second.sources]
    if not read:
        raise Unmergeable(f"axes {list(first.graph.sizes)} and {list(second.graph.sizes)}")
    stored = first.graph.ops[first.graph.outputs[read[0]]].tensor
    kept = tuple(axis for axis, repeat in enumerate(stored.repeats) if repeat > 1)
    if tuple(stored.repeats[axis] for axis in kept) != second.graph.sizes:
        raise Unmergeable(f"axes {list(stored.repeats)} and {list(second.graph.sizes)}")
    return kept


def _spread(tensor: AscTensor, places: tuple[int, ...], count: int) -> AscTensor:
    """Return a tensor over more axes; it does not change along those that are new."""
    repeats, strides = [1] * count, [0] * count
    for place, repeat, stride in zip(places, tensor.repeats, tensor.strides, strict=True):
        repeats[place], strides[place] = repeat, stride
    return AscTensor(tensor.dtype, tuple(repeats), tuple(strides))


def _append(
    program: _Program,
    part: Part,
    places: tuple[int, ...],
    count: int,
    handed: Mapping[NodeOut, int],
    made: dict[NodeOut, int],
    stores: dict[NodeOut, int],
) -> None:
    """Append a kernel; loads of what is in ``handed`` become the values there."""
    numbers: dict[int, int] = {}
    inputs = {number: index for index, number in enumerate(part.graph.inputs)}
    outputs = {number: part.results[index] for index, number in enumerate(part.graph.outputs)}
    for number, op in enumerate(part.graph.ops):
        if op.type == "Output":
            continue
        spread = _spread_op(op, places, count)
        if op.type == "Data":
            source = part.sources[inputs[number]]
            numbers[number] = -1 if source in handed else program.add_data(source, spread.tensor)
        elif op.type == "Load" and numbers[op.inputs[0]] == -1:
            source = part.sources[inputs[op.inputs[0]]]
            view = _spread(part.graph.ops[op.inputs[0]].tensor, places, count)
            numbers[number] = _handed_value(program, handed[source], view, spread)
        else:
            numbers[number] = program.add(replace(spread, inputs=tuple(numbers[k] for k in spread.inputs)))
        if op.type == "Store":
            made[outputs[number]] = numbers[op.inputs[0]]
            stores[outputs[number]] = numbers[number]


def _spread_op(op: AscOp, places: tuple[int, ...], count: int) -> AscOp:
    if len(places) == count:
        return op
    if (
        op.output is None
        or len(op.output.repeats) != len(places)
        or op.type in ("Gather", "Concat", "Split", "Transpose")
    ):
        raise Unmergeable(f"a {op.type} has axes of its own")
    attrs = dict(op.attrs)
    if "guards" in attrs:
        raise Unmergeable("padding depends on the axes")
    return replace(op, output=_spread(op.output, places, count))


def _handed_value(program: _Program, number: int, view: AscTensor, load: AscOp) -> int:
    """Return a value in the place of a load of the tensor that it was stored as; it must be read as it was written."""
    value = program.ops[number].tensor
    written = AscTensor(value.dtype, value.repeats, contiguous_strides(value.repeats))
    if load.attr("offset") or (view.repeats, view.strides) != (written.repeats, written.strides):
        raise Unmergeable("the result of one kernel is read through a view by the other")
    if value.repeats == load.tensor.repeats:
        return number
    return program.add(AscOp.of("Broadcast", [number], load.tensor, load.origins))


def _swept(program: _Program) -> tuple[list[AscOp], tuple[NodeOut, ...]]:
    """Drop what no Output needs, and number what is left."""
    needed: set[int] = set()
    waiting = [k for k, op in enumerate(program.ops) if op.type == "Output"]
    while waiting:
        number = waiting.pop()
        if number not in needed:
            needed.add(number)
            waiting += program.ops[number].inputs
    numbers: dict[int, int] = {}
    ops: list[AscOp] = []
    sources: list[NodeOut] = []
    for number, op in enumerate(program.ops):
        if number not in needed:
            continue
        numbers[number] = len(ops)
        if op.type == "Data":
            sources.append(program.sources[op.attr("index")])
            ops.append(AscOp.of("Data", output=op.output, index=len(sources) - 1))
        else:
            ops.append(replace(op, inputs=tuple(numbers[k] for k in op.inputs)))
    return ops, tuple(sources)
