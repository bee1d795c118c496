"""What a legal AscGraph is. Graphs are read from files of strangers, so every number is bounded before it is used."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from ge.ascir.asc_graph import AscGraph, AscOp, AscTensor, Schedule
from ge.ascir.op_types import OP_TYPES, Attr, AttrValue, ComputeType
from ge.graph.types import DataType

MAX_AXES = 16
MAX_OPS = 20_000
MAX_NAME = 1024
MAX_TEXT_VALUE = 64
MAX_ELEMENTS = 2**48
"""Elements of the loops, and of memory that a view may reach."""
MAX_GUARDS = 16

ELEMENT_TYPES = frozenset(
    {
        DataType.DT_FLOAT,
        DataType.DT_FLOAT16,
        DataType.DT_BF16,
        DataType.DT_DOUBLE,
        DataType.DT_INT8,
        DataType.DT_INT16,
        DataType.DT_INT32,
        DataType.DT_INT64,
        DataType.DT_UINT8,
        DataType.DT_UINT16,
        DataType.DT_UINT32,
        DataType.DT_UINT64,
    }
)
TRUTH = DataType.DT_UINT8
COMPARISONS = frozenset({"Eq", "Ne", "Ge", "Gt", "Le", "Lt"})
TRUTHS = COMPARISONS | {"IsFinite", "IsInf", "Isnan", "LogicalAnd", "LogicalNot", "LogicalOr"}
"""Operators whose result is a truth: uint8, whatever they take."""
NUMBER = re.compile(r"-?(?:[0-9]{1,24}(?:\.[0-9]{1,24})?(?:e[+-]?[0-9]{1,3})?|inf)\Z|nan\Z")
_OWN_DIMS = (ComputeType.CONCAT, ComputeType.SPLIT, ComputeType.GATHER, ComputeType.CUBE)


class AscGraphFault(ValueError):
    """The graph is not legal; the message names the operator, what is expected and what was found."""


def check(graph: AscGraph) -> None:
    """Check a whole graph. Raises :class:`AscGraphFault`."""
    _require(0 < len(graph.name) <= MAX_NAME, "a graph has a name of at most 1024 characters")
    _require(len(graph.axes) <= MAX_AXES, f"a graph has at most {MAX_AXES} axes, not {len(graph.axes)}")
    _require(len(graph.ops) <= MAX_OPS, f"a graph has at most {MAX_OPS} operators, not {len(graph.ops)}")
    for place, axis in enumerate(graph.axes):
        _require(axis.name == f"z{place}", f"axis {place} is called z{place}, not {axis.name!r}")
    _check_extent("the graph", graph.sizes)
    loops_alone = all(OP_TYPES[op.type].compute not in _OWN_DIMS for op in graph.ops if op.type in OP_TYPES)
    for place, op in enumerate(graph.ops):
        _OpCheck(graph, place, op).run(graph.sizes if loops_alone else None)
    _check_indices(graph, "Data")
    _check_indices(graph, "Output")
    if graph.schedule is not None:
        _check_schedule(graph.schedule, graph.sizes)


def _require(holds: bool, fault: str) -> None:
    if not holds:
        raise AscGraphFault(fault)


def _check_extent(owner: str, dims: Sequence[int]) -> None:
    for dim in dims:
        _require(0 <= dim <= MAX_ELEMENTS, f"{owner}: {dim} is no size of an axis")
    _require(math.prod(max(dim, 1) for dim in dims) <= MAX_ELEMENTS, f"{owner} has more than 2^48 elements")


def _check_indices(graph: AscGraph, type: str) -> None:
    found = sorted(int(op.attr("index")) for op in graph.ops if op.type == type)
    _require(found == list(range(len(found))), f"the operators of type {type} are numbered {found}, not 0, 1, ...")


def _check_schedule(schedule: Schedule, sizes: tuple[int, ...]) -> None:
    axes = [axis for loop in schedule.loops for axis in loop]
    _require(axes == list(range(len(sizes))), f"the loops of the schedule hold the axes {axes}")
    _require(all(schedule.loops), "a loop of the schedule has no axis")
    count = len(schedule.loops)
    grouped = [*schedule.x, *schedule.y, *schedule.r, *schedule.n]
    _require(sorted(grouped) == list(range(count)), f"the tiling groups hold the loops {grouped}, of {count}")
    _require(len(schedule.tiles) == count, f"the schedule has {len(schedule.tiles)} tile sizes for {count} loops")
    for loop, tile in zip(schedule.loops, schedule.tiles, strict=True):
        extent = max(1, math.prod(sizes[axis] for axis in loop))
        _require(1 <= tile <= extent, f"a tile of {tile} steps in a loop of {extent}")
    _require(-1 <= schedule.block < count, f"there is no loop {schedule.block} to divide among cores")


class _OpCheck:
    """Checks one operator, of which the earlier ones are known to be legal."""

    def __init__(self, graph: AscGraph, place: int, op: AscOp) -> None:
        self.graph = graph
        self.place = place
        self.op = op

    def require(self, holds: bool, fault: str) -> None:
        if not holds:
            raise AscGraphFault(f"operator %{self.place} ({self.op.type}): {fault}")

    def run(self, sizes: tuple[int, ...] | None) -> None:
        op, known = self.op, OP_TYPES.get(self.op.type)
        self.require(known is not None, "the type is not known")
        assert known is not None
        count = len(op.inputs)
        self.require(known.least <= count <= known.most, f"has {count} inputs, takes {known.least} to {known.most}")
        self.require(all(0 <= k < self.place for k in op.inputs), "reads what does not stand before it")
        self._check_attrs(known.attrs)
        self.require((op.output is not None) == known.has_output, "exactly an Output has no tensor")
        self.require(all(0 < len(name) <= MAX_NAME for name in op.origins), "an origin is a name")
        if op.output is not None:
            self._check_tensor(op.output, sizes)
        self._check_sources()
        _RULES.get(op.type, _RULE_OF_COMPUTE.get(known.compute, _OpCheck.any))(self)

    def _check_attrs(self, formal: dict[str, Attr]) -> None:
        names = [name for name, _ in self.op.attrs]
        self.require(names == sorted(set(names)), f"the attributes {names} are not in order")
        for name, value in self.op.attrs:
            attr = formal.get(name)
            self.require(attr is not None, f"there is no attribute {name}")
            assert attr is not None
            self.require(_is_of_kind(attr.kind, value), f"attribute {name} is no {attr.kind}: {value!r}")
            self.require(value != attr.default, f"attribute {name} has its default, which is left out")
        for name, attr in formal.items():
            self.require(attr.default is not None or name in names, f"attribute {name} is missing")

    def _check_tensor(self, tensor: AscTensor, sizes: tuple[int, ...] | None) -> None:
        repeats, strides = tensor.repeats, tensor.strides
        self.require(tensor.dtype in ELEMENT_TYPES, f"{tensor.dtype.name} is no element type of a kernel")
        self.require(len(repeats) == len(strides) <= MAX_AXES, "repeats and strides differ in number")
        _check_extent(f"operator %{self.place}", repeats)
        self.require(all(0 <= s <= MAX_ELEMENTS for s in strides), f"strides {list(strides)} are out of range")
        self.require(all(s == 0 for r, s in zip(repeats, strides, strict=True) if r == 1), "a repeat of 1 has stride 0")
        self.require(tensor.span <= MAX_ELEMENTS, "the view reaches more than 2^48 elements")
        if sizes is not None:
            fits = len(repeats) == len(sizes) and all(r in (1, size) for r, size in zip(repeats, sizes, strict=True))
            self.require(fits, f"repeats {list(repeats)} do not fit the axes {list(sizes)}")

    def _check_sources(self) -> None:
        reads = {"Load": {"Data"}, "Gather": {"Data"}, "Output": {"Store"}}.get(self.op.type)
        for number in self.op.inputs:
            found = self.graph.ops[number].type
            if reads is None:
                self.require(found not in ("Data", "Store", "Output"), f"reads %{number}, which is a {found}")
            else:
                self.require(found in reads, f"reads a {' or '.join(reads)}, but %{number} is a {found}")

    # rules of the types
    def source(self, place: int = 0) -> AscTensor:
        return self.graph.ops[self.op.inputs[place]].tensor

    def same_type(self, first: int = 0) -> None:
        """All inputs from ``first`` on have the type of the output."""
        wanted = self.op.tensor.dtype
        for place in range(first, len(self.op.inputs)):
            found = self.source(place).dtype
            self.require(found == wanted, f"input {place} is {found.name}, the output {wanted.name}")

    def any(self) -> None:
        """Nothing more to ask."""

    def scalar(self) -> None:
        self.require(NUMBER.match(str(self.op.attr("value"))) is not None, f"{self.op.attr('value')!r} is no number")
        self.require(all(r == 1 for r in self.op.tensor.repeats), "a number has repeats of 1")

    def load(self) -> None:
        self.same_type()
        view, out = self.source().repeats, self.op.tensor.repeats
        fits = len(view) == len(out) and all(v in (1, r) for v, r in zip(view, out, strict=True))
        self.require(fits, f"a view of {list(view)} cannot be repeated to {list(out)}")
        offset = self.op.attr("offset")
        self.require(0 <= offset <= MAX_ELEMENTS, f"offset {offset} is out of range")

    def store(self) -> None:
        self.same_type()
        self.require(self.source().repeats == self.op.tensor.repeats, "what is stored has other repeats")
        self._check_guards(len(self.op.tensor.repeats))

    def reduce(self) -> None:
        self.same_type()
        view, out = self.source().repeats, self.op.tensor.repeats
        fits = len(view) == len(out) and all(r in (1, v) for v, r in zip(view, out, strict=True))
        self.require(fits, f"{list(view)} is not reduced to {list(out)}")
        self._check_guards(len(view))

    def _check_guards(self, rank: int) -> None:
        guards = self.op.attr("guards")
        self.require(len(guards) <= MAX_GUARDS, f"has {len(guards)} guards, at most {MAX_GUARDS} are allowed")
        for guard in guards:
            self.require(len(guard) == rank + 1, f"a guard has {rank + 1} numbers, not {len(guard)}")
            self.require(all(0 <= v <= MAX_ELEMENTS for v in guard), f"guard {list(guard)} is out of range")

    def elementwise(self) -> None:
        kind = self.op.type
        if kind in TRUTHS:
            taken = {self.source(k).dtype for k in range(len(self.op.inputs))}
            self.require(len(taken) == 1, "the inputs have different types")
            legal = {TRUTH} | (taken if kind == "LogicalNot" else set())
            self.require(self.op.tensor.dtype in legal, "a truth is uint8")
        elif kind == "Where":
            self.require(self.source().dtype == TRUTH, "the condition is uint8")
            self.same_type(first=1)
        elif kind not in ("Cast", "TrueDiv"):
            self.same_type()
        for place, number in enumerate(self.op.inputs):
            if self.graph.ops[number].type != "Scalar":
                found, wanted = self.source(place).repeats, self.op.tensor.repeats
                self.require(found == wanted, f"input {place} has repeats {list(found)}, the output {list(wanted)}")

    def broadcast(self) -> None:
        self.same_type()
        view, out = self.source().repeats, self.op.tensor.repeats
        fits = len(view) == len(out) and all(v in (1, r) for v, r in zip(view, out, strict=True))
        self.require(fits, f"{list(view)} cannot be repeated to {list(out)}")

    def transpose(self) -> None:
        self.same_type()
        view, out, order = self.source().repeats, self.op.tensor.repeats, self.op.attr("order")
        self.require(sorted(order) == list(range(len(view))), f"{list(order)} is no order of {len(view)} axes")
        self.require(out == tuple(view[k] for k in order), f"{list(view)} in another order is not {list(out)}")

    def _axis(self, rank: int) -> int:
        axis: int = self.op.attr("axis")
        self.require(0 <= axis < rank, f"there is no axis {axis} among {rank}")
        return axis

    def concat(self) -> None:
        self.same_type()
        out = self.op.tensor.repeats
        axis, length = self._axis(len(out)), 0
        for place in range(len(self.op.inputs)):
            part = self.source(place).repeats
            fits = len(part) == len(out) and all(
                p == o for k, (p, o) in enumerate(zip(part, out, strict=True)) if k != axis
            )
            self.require(fits, f"input {place} of {list(part)} is no part of {list(out)} along axis {axis}")
            length += part[axis]
        self.require(
            length == out[axis], f"the inputs have {length} elements along axis {axis}, the output {out[axis]}"
        )

    def split(self) -> None:
        self.same_type()
        whole, part = self.source().repeats, self.op.tensor.repeats
        axis, start = self._axis(len(whole)), self.op.attr("start")
        fits = len(part) == len(whole) and all(
            p == w for k, (p, w) in enumerate(zip(part, whole, strict=True)) if k != axis
        )
        self.require(fits, f"{list(part)} is no part of {list(whole)} along axis {axis}")
        self.require(
            0 <= start <= whole[axis] - part[axis], f"the part would end behind {whole[axis]} along axis {axis}"
        )

    def gather(self) -> None:
        params, places, out = self.source(0), self.source(1), self.op.tensor
        self.require(params.dtype == out.dtype, "the output has the type of the first input")
        self.require(places.dtype in (DataType.DT_INT32, DataType.DT_INT64), "places are int32 or int64")
        axis = self._axis(len(params.repeats))
        wanted = params.repeats[:axis] + places.repeats + params.repeats[axis + 1 :]
        self.require(out.repeats == wanted, f"the output has repeats {list(out.repeats)}, not {list(wanted)}")


_RULES = {
    "Scalar": _OpCheck.scalar,
    "Load": _OpCheck.load,
    "Store": _OpCheck.store,
    "Split": _OpCheck.split,
    "Concat": _OpCheck.concat,
}
_RULE_OF_COMPUTE = {
    ComputeType.ELEWISE: _OpCheck.elementwise,
    ComputeType.REDUCE: _OpCheck.reduce,
    ComputeType.BROADCAST: _OpCheck.broadcast,
    ComputeType.TRANSPOSE: _OpCheck.transpose,
    ComputeType.GATHER: _OpCheck.gather,
}


def _is_of_kind(kind: str, value: AttrValue) -> bool:
    if kind == "b":
        return isinstance(value, bool)
    if kind == "i":
        return _is_int(value)
    if kind == "f":
        return isinstance(value, float) and not math.isnan(value)
    if kind == "s":
        return isinstance(value, str) and len(value) <= MAX_TEXT_VALUE
    if kind == "I":
        return isinstance(value, tuple) and len(value) <= MAX_AXES and all(_is_int(v) for v in value)
    return isinstance(value, tuple) and len(value) <= MAX_GUARDS and all(_is_guard(v) for v in value)


def _is_int(value: object) -> bool:
    return type(value) is int and -(2**63) <= value < 2**63


def _is_guard(value: object) -> bool:
    return isinstance(value, tuple) and len(value) <= MAX_AXES + 1 and all(_is_int(v) for v in value)
