"""The canonical text of an AscGraph; what the attribute ``asc_graph`` of a fused node holds.

    ascgraph 1 "autofuse_pointwise_0_Abs_Exp" [4, 8] {
      %0 = Data {index=0} -> f32[4,8]:[8,1]
      %1 = Load(%0) -> f32[4,8]:[8,1] from "abs_1"
      %2 = Abs(%1) -> f32[4,8]:[8,1] from "abs_1"
      %3 = Exp(%2) -> f32[4,8]:[8,1] from "exp_1"
      %4 = Store(%3) -> f32[4,8]:[8,1] from "exp_1"
      %5 = Output(%4) {index=0}
      schedule loops=[[0,1]] x=[] y=[0] r=[] n=[] tiles=[32] block=0
    }

Grammar (``x?`` optional, ``x*`` any number; white space separates tokens):

    text     := "ascgraph" VERSION STRING ints "{" op* schedule? "}"         name and sizes of the axes
    op       := "%" NUMBER "=" TYPE ["(" [use ("," use)*] ")"] [attrs] ["->" tensor] ["from" STRING ("," STRING)*]
    tensor   := ELEMENT-TYPE ints ":" ints                                   repeats and strides
    attrs    := "{" NAME "=" value ("," NAME "=" value)* "}"
    value    := INT | FLOAT | STRING | "true" | "false" | ints | "[" ints ("," ints)* "]"
    schedule := "schedule" "loops" "=" "[" [ints ("," ints)*] "]" ("x"|"y"|"r"|"n"|"tiles") "=" ints ... "block" "=" INT

Operators are numbered 0, 1, ... in order. A graph is printed in one way only, and ``parse(print(g)) == g``. The reader
takes at most 1 MiB and checks the graph before it gives it out.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any

from ge.ascir.asc_graph import AscGraph, AscOp, AscTensor, Schedule
from ge.ascir.check import MAX_AXES, MAX_NAME, MAX_OPS, AscGraphFault, check
from ge.ascir.op_types import MAX_INPUTS, OP_TYPES, AttrValue
from ge.graph.types import DataType, data_type_by_short_name, short_name

VERSION = 1
MAX_TEXT_BYTES = 1 << 20
_GROUPS = ("x", "y", "r", "n", "tiles")


class AscTextError(ValueError):
    """The text cannot be read; the message gives line and column."""


# -- printing ----------------------------------------------------------------------------------------------------------
def print_asc_graph(graph: AscGraph) -> str:
    """Return the canonical text of a legal graph. Raises ``AscGraphFault`` for one that is not, or is too large."""
    check(graph)
    lines = [f"ascgraph {VERSION} {json.dumps(graph.name)} {_ints(graph.sizes)} {{"]
    lines += [f"  %{number} = {_op(op)}" for number, op in enumerate(graph.ops)]
    if graph.schedule is not None:
        lines.append(f"  {_schedule(graph.schedule)}")
    text = "\n".join([*lines, "}", ""])
    if len(text.encode()) > MAX_TEXT_BYTES:
        raise AscGraphFault(f"the text of graph {graph.name} would have more than {MAX_TEXT_BYTES} bytes")
    return text


def _op(op: AscOp) -> str:
    text = op.type
    if op.inputs:
        text += f"({', '.join(f'%{number}' for number in op.inputs)})"
    if op.attrs:
        text += f" {{{', '.join(f'{name}={_value(value)}' for name, value in op.attrs)}}}"
    if op.output is not None:
        text += f" -> {short_name(op.output.dtype)}{_ints(op.output.repeats)}:{_ints(op.output.strides)}"
    return text + (f" from {', '.join(map(json.dumps, op.origins))}" if op.origins else "")


def _schedule(schedule: Schedule) -> str:
    loops = f"[{','.join(map(_ints, schedule.loops))}]"
    groups = " ".join(f"{name}={_ints(getattr(schedule, name))}" for name in _GROUPS)
    return f"schedule loops={loops} {groups} block={schedule.block}"


def _ints(values: tuple[int, ...]) -> str:
    return f"[{','.join(map(str, values))}]"


def _value(value: AttrValue) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value)
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else f"{'-' if value < 0 else ''}inf"
    if isinstance(value, int):
        return str(value)
    return f"[{','.join(_value(v) for v in value)}]"


# -- parsing -----------------------------------------------------------------------------------------------------------
def parse_asc_graph(text: str) -> AscGraph:
    """Read a graph. Raises :class:`AscTextError` for anything that is not the text of a legal graph."""
    if len(text) > MAX_TEXT_BYTES or len(text.encode(errors="surrogatepass")) > MAX_TEXT_BYTES:
        raise AscTextError(f"the text has more than {MAX_TEXT_BYTES} bytes")
    graph = _Parser(text).parse()
    try:
        check(graph)
    except AscGraphFault as fault:
        raise AscTextError(f"graph {graph.name}: {fault}") from fault
    return graph


_TOKEN = re.compile(
    r"""(?P<string>"(?:[^"\\\n]|\\.)*")
      | (?P<float>-?(?:[0-9]{1,24}\.[0-9]{1,24}(?:e[+-]?[0-9]{1,3})?|[0-9]{1,24}e[+-]?[0-9]{1,3}|inf\b))
      | (?P<int>-?[0-9]{1,20}(?![0-9.A-Za-z]))
      | (?P<word>[A-Za-z][A-Za-z0-9_]{0,63})
      | (?P<sign>->|[\[\](){},=:%])
      | (?P<end>\Z)""",
    re.X,
)
_SPACE = re.compile(r"[ \n\t\r]*")


class _Parser:
    """Reads token by token; only lists nest, and only twice."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.kind = self.token = ""
        self._advance(0)

    def _advance(self, end: int) -> None:
        space = _SPACE.match(self.text, end)
        self.at = end if space is None else space.end()
        match = _TOKEN.match(self.text, self.at)
        if match is None:
            raise self.error(f"unexpected {self.text[self.at : self.at + 20]!r}")
        self.kind, self.token = str(match.lastgroup), match.group()

    def error(self, reason: str) -> AscTextError:
        line = self.text.count("\n", 0, self.at) + 1
        column = self.at - self.text.rfind("\n", 0, self.at)
        return AscTextError(f"line {line}, column {column}: {reason}")

    def take(self, kind: str, what: str) -> str:
        if self.kind != kind:
            raise self.error(
                f"expected {what}, found {self.token[:40]!r}" if self.token else f"expected {what} at the end"
            )
        token = self.token
        self._advance(self.at + len(token))
        return token

    def expect(self, token: str) -> None:
        if self.token != token or self.kind == "string":
            raise self.error(f"expected {token!r}, found {self.token[:40]!r}")
        self._advance(self.at + len(token))

    def found(self, token: str) -> bool:
        if self.token != token or self.kind == "string":
            return False
        self._advance(self.at + len(token))
        return True

    def integer(self) -> int:
        return int(self.take("int", "a whole number"))

    def string(self, most: int = MAX_NAME) -> str:
        token = self.take("string", "a text in quotes")
        try:
            value = json.loads(token)
        except ValueError:
            raise self.error("a text with an escape that is none") from None
        if len(value) > most:
            raise self.error(f"a text of more than {most} characters")
        return str(value)

    def listed(self, close: str, most: int, item: Any) -> tuple[Any, ...]:
        found: list[Any] = []
        while not self.found(close):
            if len(found) == most:
                raise self.error(f"more than {most} entries")
            if found:
                self.expect(",")
            found.append(item())
        return tuple(found)

    def ints(self) -> tuple[int, ...]:
        self.expect("[")
        return self.listed("]", MAX_AXES + 1, self.integer)

    # grammar
    def parse(self) -> AscGraph:
        self.expect("ascgraph")
        version = self.integer()
        if version != VERSION:
            raise self.error(f"version {version} is not known, this program reads version {VERSION}")
        name, sizes = self.string(), self.ints()
        self.expect("{")
        ops: list[AscOp] = []
        while self.found("%"):
            if len(ops) == MAX_OPS:
                raise self.error(f"more than {MAX_OPS} operators")
            if self.integer() != len(ops):
                raise self.error(f"operators are numbered in order: expected %{len(ops)}")
            self.expect("=")
            ops.append(self.op())
        schedule = self.schedule() if self.found("schedule") else None
        self.expect("}")
        self.take("end", "the end of the text")
        return AscGraph.of(name, sizes, ops, schedule)

    def op(self) -> AscOp:
        if self.kind == "word" and self.token not in OP_TYPES:
            raise self.error(f"there is no operator of type {self.token}")
        name = self.take("word", "a type of an operator")
        inputs = self.listed(")", MAX_INPUTS, self.use) if self.found("(") else ()
        attrs = self.listed("}", 16, self.attr) if self.found("{") else ()
        output = self.tensor() if self.found("->") else None
        origins: list[str] = []
        if self.found("from"):
            origins.append(self.string())
            while self.found(","):
                origins.append(self.string())
        return AscOp(name, inputs, attrs, output, tuple(origins))

    def use(self) -> int:
        self.expect("%")
        return self.integer()

    def attr(self) -> tuple[str, AttrValue]:
        name = self.take("word", "the name of an attribute")
        self.expect("=")
        return name, self.value()

    def value(self) -> AttrValue:
        if self.kind == "string":
            return self.string()
        if self.kind == "float":
            return float(self.take("float", "a number"))
        if self.kind == "int":
            return self.integer()
        if self.kind == "word":
            if self.token not in ("true", "false"):
                raise self.error(f"{self.token!r} is no value")
            return self.take("word", "a truth") == "true"
        self.expect("[")
        if self.token == "[":
            return self.listed("]", MAX_AXES + 1, self.ints)
        return self.listed("]", MAX_AXES + 1, self.integer)

    def tensor(self) -> AscTensor:
        dtype = self.element_type()
        repeats = self.ints()
        self.expect(":")
        return AscTensor(dtype, repeats, self.ints())

    def element_type(self) -> DataType:
        name = self.take("word", "an element type")
        try:
            return data_type_by_short_name(name)
        except KeyError:
            raise self.error(f"there is no element type {name}") from None

    def schedule(self) -> Schedule:
        self.expect("loops")
        self.expect("=")
        self.expect("[")
        loops = self.listed("]", MAX_AXES, self.ints)
        groups = {}
        for name in _GROUPS:
            self.expect(name)
            self.expect("=")
            groups[name] = self.ints()
        self.expect("block")
        self.expect("=")
        return Schedule(loops, block=self.integer(), **groups)
