"""Why fusion ends: the rules, and a record of every place where one of them ended it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Rule(Enum):
    """What ends a fusion; the value is the identifier in reports."""

    # the operator is not lowered
    NO_LOWERING = "no-lowering"
    SCOPE = "scope-attribute"
    SKIPPED = "skip-list"
    PASS_OFF = "pass-off"
    EXTENSION = "extension"
    EMPTY_INPUT = "empty-input"
    SIGNATURE = "signature"
    OPEN_SHAPE = "open-shape"
    LAYOUT = "layout"
    ELEMENT_TYPE = "element-type"
    NOT_EXPRESSIBLE = "not-expressible"
    OVERSIZE = "oversize"
    # the operator is lowered, and its result is made a tensor
    CONTROL_EDGE = "control-edge"
    HEAVY = "heavy-operator"
    SLICE_BEFORE_REDUCE = "slice-before-reduce"
    LOOP_OPS = "loop-ops"
    LOADS = "loads"
    READERS = "readers"
    STREAM_LABEL = "stream-label"
    CORE_NUMBER = "core-number"
    MATERIAL = "result-of-its-kind"
    UNUSED_INPUT = "unused-input"
    READ_BY_OPERATOR = "read-by-operator"
    # the kernel is not made, or taken back
    SCALAR_KERNEL = "scalar-kernel"
    EMISSION = "emission"
    VIEW_ALONE = "view-alone"
    LIFTED = "lifted"


@dataclass(frozen=True)
class Stop:
    """One place where fusion ended: the node concerned, and the one that would have read its result.

    ``reader`` is empty where the node alone is the cause.
    """

    rule: Rule
    node: str
    reader: str = ""
    detail: str = ""

    def __str__(self) -> str:
        place = f"{self.node} -> {self.reader}" if self.reader else self.node
        return f"[{self.rule.value}] {place}{': ' + self.detail if self.detail else ''}"


@dataclass(frozen=True)
class KernelStop:
    """Two kernels that share data and stay apart; ``code`` is that of CANN's log (NF1001 and so on)."""

    code: str
    first: str
    second: str
    detail: str = ""

    def __str__(self) -> str:
        return f"[{self.code}] {self.first} -> {self.second}: {self.detail}"


class Refusal(Exception):
    """A node cannot be lowered; raised by lowerings and by what they build with."""

    def __init__(self, rule: Rule, detail: str) -> None:
        self.rule = rule
        self.detail = detail
        super().__init__(f"{rule.value}: {detail}")
