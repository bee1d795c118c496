"""Small programs with branches and loops: run by Python, and written as TensorFlow 1 and TensorFlow 2 write them.

A program changes some int32 values; all arithmetic is modulo :data:`MODULUS`, so results are exact.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from parsers.tensorflow import graph_def_pb2 as pb
from tests.parsers.tensorflow.tf_models import Func, Type, attr_value, const, graph, node, placeholder

MODULUS = 97
_BINARY: dict[str, Callable[[int, int], int]] = {"AddV2": int.__add__, "Sub": int.__sub__, "Mul": int.__mul__}
_INT = Type(pb.DT_INT32)


@dataclass(frozen=True)
class Assign:
    """``values[target] = op(values[first], values[second]) mod MODULUS``."""

    target: int
    op: str
    first: int
    second: int


@dataclass(frozen=True)
class Branch:
    """``if values[first] > values[second]``."""

    first: int
    second: int
    then: tuple[Statement, ...]
    other: tuple[Statement, ...]


@dataclass(frozen=True)
class Repeat:
    """``for _ in range(values[count] mod 4)``; the count is taken before the first turn."""

    count: int
    body: tuple[Statement, ...]


Statement = Assign | Branch | Repeat


def execute(program: Sequence[Statement], values: Sequence[int]) -> list[int]:
    """Return the values behind a program."""
    found = list(values)
    for statement in program:
        match statement:
            case Assign(target, op, first, second):
                found[target] = _BINARY[op](found[first], found[second]) % MODULUS
            case Branch(first, second, then, other):
                found = execute(then if found[first] > found[second] else other, found)
            case Repeat(count, body):
                for _ in range(found[count] % 4):
                    found = execute(body, found)
    return found


def random_program(source: random.Random, n_values: int, depth: int = 3, length: int = 3) -> tuple[Statement, ...]:
    """Return a program of at most ``depth`` levels."""

    def one() -> Statement:
        kind = source.choice(["assign", "branch", "repeat"]) if depth else "assign"
        first, second, target = (source.randrange(n_values) for _ in range(3))
        if kind == "assign":
            return Assign(target, source.choice(sorted(_BINARY)), first, second)
        inner = [random_program(source, n_values, depth - 1, source.randint(0, length)) for _ in range(2)]
        return Branch(first, second, inner[0], inner[1]) if kind == "branch" else Repeat(first, inner[0])

    return tuple(one() for _ in range(length))


# -- what both have in common ------------------------------------------------------------------------------------------
@dataclass
class _Writer:
    nodes: list[pb.NodeDef] = field(default_factory=list)
    count: int = 0

    def name(self, stem: str) -> str:
        self.count += 1
        return f"{stem}_{self.count}"

    def add(self, op: str, inputs: Sequence[str], name: str = "", **attrs: Any) -> str:
        """Add a node and return its name."""
        name = name or self.name(op)
        self.nodes.append(node(op, name, " ".join(inputs), **attrs))
        return name

    def number(self, value: int, pivot: str) -> str:
        """Add a constant that is there when ``pivot`` is."""
        made = const(self.name("Const"), np.int32(value))
        made.input.extend([f"^{pivot}"] if pivot else [])
        self.nodes.append(made)
        return made.name


# -- TensorFlow 1 ------------------------------------------------------------------------------------------------------
class _Old(_Writer):
    """Writes Switch, Merge, Enter, Exit, NextIteration. ``pivot`` is what constants of the place at hand wait for."""

    def statements(self, program: Sequence[Statement], values: list[str], pivot: str) -> list[str]:
        for statement in program:
            match statement:
                case Assign(target, op, first, second):
                    whole = self.add(op, [values[first], values[second]])
                    values = [*values]
                    values[target] = self.add("FloorMod", [whole, self.number(MODULUS, pivot)])
                case Branch():
                    values = self._branch(statement, values)
                case Repeat():
                    values = self._repeat(statement, values, pivot)
        return values

    def _branch(self, statement: Branch, values: list[str]) -> list[str]:
        predicate = self.add("Greater", [values[statement.first], values[statement.second]])
        pivots = self.add("Switch", [predicate, predicate])
        results = []
        for outcome, program in enumerate((statement.other, statement.then)):
            pivot = self.add("Identity", [f"{pivots}:{outcome}"])
            inner = [f"{self.add('Switch', [value, predicate])}:{outcome}" for value in values]
            results.append(self.statements(program, inner, pivot))
        return [self.add("Merge", pair, N=2) for pair in zip(*results, strict=True)]

    def _repeat(self, statement: Repeat, values: list[str], pivot: str) -> list[str]:
        frame = self.name("while")
        limit = self.add("FloorMod", [values[statement.count], self.number(4, pivot)])
        begin = self.number(0, pivot)
        limit = self.add("Enter", [limit], frame_name=frame, is_constant=True)
        enters = [self.add("Enter", [value], frame_name=frame, is_constant=False) for value in (begin, *values)]
        backs = [self.name("NextIteration") for _ in enters]
        merges = [self.add("Merge", pair, N=2) for pair in zip(enters, backs, strict=True)]
        decision = self.add("LoopCond", [self.add("Less", [merges[0], limit])])
        switches = [self.add("Switch", [merge, decision]) for merge in merges]
        inside = self.add("Identity", [f"{switches[0]}:1"])
        after = self.statements(statement.body, [f"{switch}:1" for switch in switches[1:]], inside)
        counted = self.add("AddV2", [inside, self.number(1, inside)])
        for back, value in zip(backs, [counted, *after], strict=True):
            self.add("NextIteration", [value], name=back)
        return [self.add("Exit", [switch]) for switch in switches[1:]]


def old_graph(program: Sequence[Statement], n_values: int) -> pb.GraphDef:
    """Return the program for inputs ``v0``, ``v1`` and so on; outputs are ``y0``, ``y1``."""
    writer = _Old()
    values = writer.statements(program, [f"v{k}" for k in range(n_values)], "")
    ends = [node("Identity", f"y{k}", value) for k, value in enumerate(values)]
    return graph(*(placeholder(f"v{k}", [], np.int32) for k in range(n_values)), *writer.nodes, *ends)


# -- TensorFlow 2 ------------------------------------------------------------------------------------------------------
def function(
    name: str, arguments: Sequence[str], nodes: Sequence[pb.NodeDef], results: dict[str, str]
) -> pb.FunctionDef:
    """Return a function. Arguments and results are int32 unless written ``name:type``, a number of TensorFlow's."""

    def args(names: Sequence[str]) -> list[pb.OpDef.ArgDef]:
        split = [text.partition(":") for text in names]
        return [pb.OpDef.ArgDef(name=name, type=int(kind or _INT)) for name, _, kind in split]  # type: ignore[arg-type]

    signature = pb.OpDef(name=name, input_arg=args(arguments), output_arg=args(list(results)))
    plain = {text.partition(":")[0]: source for text, source in results.items()}
    return pb.FunctionDef(signature=signature, node_def=nodes, ret=plain)


_ARGUMENTS = {"AddV2": "z", "Sub": "z", "Mul": "z", "FloorMod": "z", "Greater": "z", "Less": "z", "Const": "output"}


class _New(_Writer):
    """Writes If, While and calls of functions, which refer to outputs as ``node:argument:index``."""

    def __init__(self, functions: dict[str, pb.FunctionDef]) -> None:
        super().__init__()
        self.functions = functions

    def out(self, op: str, inputs: Sequence[str], **attrs: Any) -> str:
        return f"{self.add(op, inputs, **attrs)}:{_ARGUMENTS.get(op, 'output')}:0"

    def const(self, value: int) -> str:
        return f"{self.number(value, '')}:output:0"

    def statements(self, program: Sequence[Statement], values: list[str]) -> list[str]:
        for statement in program:
            match statement:
                case Assign(target, op, first, second):
                    whole = self.out(op, [values[first], values[second]])
                    values = [*values]
                    values[target] = self.out("FloorMod", [whole, self.const(MODULUS)])
                case Branch(first, second, then, other):
                    condition = self.out("Greater", [values[first], values[second]])
                    branches = {"then_branch": then, "else_branch": other}
                    named: dict[str, Any] = {
                        name: Func(self.function(part, len(values))) for name, part in branches.items()
                    }
                    call = self.add("If", [condition, *values], **named)
                    values = [f"{call}:output:{k}" for k in range(len(values))]
                case Repeat(count, body):
                    limit = self.out("FloorMod", [values[count], self.const(4)])
                    named = {"cond": Func(self._condition(len(values))), "body": Func(self._turn(body, len(values)))}
                    call = self.add("While", [self.const(0), limit, *values], **named)
                    values = [f"{call}:output:{2 + k}" for k in range(len(values))]
        return values

    def function(self, program: Sequence[Statement], n_values: int) -> str:
        """Add a function of the values to the library."""
        inner = _New(self.functions)
        arguments = [f"v{k}" for k in range(n_values)]
        results = inner.statements(program, [*arguments])
        return self._named("part", arguments, inner, results)

    def _condition(self, n_values: int) -> str:
        inner = _New(self.functions)
        arguments = ["i", "limit", *(f"v{k}" for k in range(n_values))]
        inner.nodes.append(node("Less", "goes_on", "i limit"))
        name = f"cond_{len(self.functions)}"
        self.functions[name] = function(name, arguments, inner.nodes, {f"r0:{pb.DT_BOOL}": "goes_on:z:0"})
        return name

    def _turn(self, body: Sequence[Statement], n_values: int) -> str:
        inner = _New(self.functions)
        values = [f"v{k}" for k in range(n_values)]
        called = self.function(body, n_values)
        call = inner.add("PartitionedCall", values, f=Func(called))
        counted = inner.out("AddV2", ["i", inner.const(1)])
        results = [counted, "limit", *(f"{call}:output:{k}" for k in range(n_values))]
        return self._named("turn", ["i", "limit", *values], inner, results)

    def _named(self, stem: str, arguments: Sequence[str], inner: _New, results: Sequence[str]) -> str:
        name = f"{stem}_{len(self.functions)}"
        self.functions[name] = function(
            name, arguments, inner.nodes, {f"r{k}": source for k, source in enumerate(results)}
        )
        return name


def new_graph(program: Sequence[Statement], n_values: int) -> pb.GraphDef:
    """Return the program as one function; inputs and outputs are those of :func:`old_graph`."""
    functions: dict[str, pb.FunctionDef] = {}
    main = _New(functions).function(program, n_values)
    call = node("StatefulPartitionedCall", "call", " ".join(f"v{k}" for k in range(n_values)), f=attr_value(Func(main)))
    ends = [node("Identity", f"y{k}", f"call:{k}") for k in range(n_values)]
    inputs = [placeholder(f"v{k}", [], np.int32) for k in range(n_values)]
    return graph(*inputs, call, *ends, **functions)


def stateless_graph(program: Sequence[Statement], n_values: int) -> pb.GraphDef:
    """Return :func:`new_graph` with the types of nodes that promise to have no state."""
    model = new_graph(program, n_values)
    for part in model.library.function:
        for made in part.node_def:
            made.op = f"Stateless{made.op}" if made.op in ("If", "While") else made.op
    return model
