"""Operator signatures, written in one line and parsed once.

    Conv2D(x, filter, bias?, offset_w?) -> y [strides:I! pads:I! dilations:I=[1]*4 groups:i=1 data_format:s=NHWC]
    If(cond, input*) -> output* {then_branch, else_branch}

``?`` optional, ``*`` dynamic, ``!`` required attribute; without ``->`` there is one output ``y``. Attribute kinds:
``i`` int, ``f`` float, ``b`` bool (T/F), ``s`` string, ``t`` data type, ``I F B S`` lists of these, ``II`` nested int
list, ``tensor``. Subgraph names stand in braces, a dynamic one with ``*``.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import Any

from ge.graph.types import DataType


class SignatureFault(ValueError):
    """A signature that cannot be parsed. ``optype`` is the operator type as far as it can be read."""

    def __init__(self, text: str, reason: str) -> None:
        super().__init__(f"{reason}: {text}")
        self.optype = text.partition("(")[0].strip()


class Arity(Enum):
    """How many tensors one formal input or output stands for."""

    REQUIRED = 0
    OPTIONAL = 1
    DYNAMIC = 2


@dataclass(frozen=True)
class Port:
    """A formal input or output."""

    name: str
    arity: Arity


@dataclass(frozen=True)
class AttrSpec:
    """A formal attribute; ``default`` is ``None`` for required ones."""

    name: str
    kind: str
    is_required: bool
    default: Any


@dataclass(frozen=True)
class Signature:
    """A parsed signature."""

    type: str
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    attrs: dict[str, AttrSpec]
    subgraphs: tuple[Port, ...]

    def input_slices(self, n_inputs: int) -> Mapping[str, slice]:
        """Map input names to slots of a node with ``n_inputs`` flat inputs (trailing optionals may be left out).

        At most one input is dynamic; it takes what the others leave.
        """
        found = self._slices.get(n_inputs)
        if found is None:
            found = self._slices[n_inputs] = self._slices_of(n_inputs)
        return found

    @cached_property
    def _slices(self) -> dict[int, dict[str, slice]]:
        return {}

    def _slices_of(self, n_inputs: int) -> dict[str, slice]:
        spare = n_inputs - sum(p.arity is not Arity.DYNAMIC for p in self.inputs)
        start, found = 0, {}
        for port in self.inputs:
            width = max(spare, 0) if port.arity is Arity.DYNAMIC else 1
            found[port.name] = slice(start, start + width)
            start += width
        return found

    @cached_property
    def min_inputs(self) -> int:
        """Fewest flat inputs of a well-formed node."""
        required = [i for i, p in enumerate(self.inputs) if p.arity is Arity.REQUIRED]
        dynamic_before = sum(p.arity is Arity.DYNAMIC for p in self.inputs[: required[-1]]) if required else 0
        return required[-1] + 1 - dynamic_before if required else 0

    @cached_property
    def max_inputs(self) -> int | None:
        """Most flat inputs; ``None`` when one of them is dynamic."""
        return None if any(p.arity is Arity.DYNAMIC for p in self.inputs) else len(self.inputs)

    @cached_property
    def has_dynamic_output(self) -> bool:
        """True when the number of outputs is chosen per node."""
        return any(p.arity is Arity.DYNAMIC for p in self.outputs)


_FORM = re.compile(
    r"(?P<type>\w+)\s*\((?P<inputs>[^)]*)\)\s*(?:->\s*(?P<outputs>[\w\s,*?]*?))?\s*"
    r"(?P<attrs>\[.*\])?\s*(?P<subgraphs>\{.*\})?\s*$",
    re.S,
)
_ATTR = re.compile(r"\s*(\w+):(\w+)(!|=)")
_DEFAULT_END = re.compile(r"\s+\w+:\w+[!=]|\s*$")
KINDS = frozenset(["i", "f", "b", "s", "t", "I", "F", "B", "S", "II", "tensor"])


def parse_signature(text: str) -> Signature:
    """Parse one signature. Raises :class:`SignatureFault` with the text when it is malformed."""
    form = _FORM.match(text.strip())
    if form is None:
        raise SignatureFault(text, "malformed operator signature")
    outputs = form["outputs"]
    return Signature(
        form["type"],
        _ports(form["inputs"]),
        _ports("y" if outputs is None else outputs),
        _attrs(form["attrs"][1:-1] if form["attrs"] else "", text),
        _ports(form["subgraphs"][1:-1] if form["subgraphs"] else ""),
    )


def _ports(text: str) -> tuple[Port, ...]:
    arity = {"?": Arity.OPTIONAL, "*": Arity.DYNAMIC}
    names = [part.strip() for part in text.split(",") if part.strip()]
    return tuple(Port(name.rstrip("?*"), arity.get(name[-1], Arity.REQUIRED)) for name in names)


def _attrs(text: str, whole: str) -> dict[str, AttrSpec]:
    specs: dict[str, AttrSpec] = {}
    at = 0
    while text[at:].strip():
        head = _ATTR.match(text, at)
        if head is None:
            raise SignatureFault(whole, "malformed attribute in signature")
        name, kind, mark = head.groups()
        if kind not in KINDS or name in specs:
            fault = "occurs twice" if name in specs else f"is of the kind {kind}, which is none of {sorted(KINDS)}"
            raise SignatureFault(whole, f"attribute {name} {fault}")
        at = head.end()
        default = None
        if mark == "=":
            end = _DEFAULT_END.search(text, at)
            assert end is not None
            written = text[at : end.start()].strip()
            try:
                default = _default(kind, written)
            except (KeyError, SyntaxError, TypeError, ValueError) as fault:
                reason = f"{written!r} is no {kind} for a default of attribute {name}"
                raise SignatureFault(whole, reason) from fault
            at = end.start()
        specs[name] = AttrSpec(name, kind, mark == "!", default)
    return specs


def _default(kind: str, text: str) -> Any:
    if kind == "s":
        return text
    if kind == "b":
        return {"T": True, "F": False}[text]
    if kind == "t":
        return DataType[f"DT_{text}"]
    if kind == "tensor":
        return None
    repeated = re.fullmatch(r"(\[.*\])\*(\d+)", text)
    if repeated:
        return ast.literal_eval(repeated[1]) * int(repeated[2])
    value = ast.literal_eval(text)
    return float(value) if kind == "f" else value
