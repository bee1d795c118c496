"""Control flow: If and Loop. Their bodies become graphs of the model, what they read from outside becomes inputs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from ge.graph import DataType, NodeOut, Shape
from parsers.call_branches import Branch, ChoiceBuilder
from parsers.onnx.bodies import Argument, Body, Turn, add_while, captures
from parsers.onnx.mapping import Mapped, maps
from parsers.onnx.node_builder import Array, NodeBuilder
from parsers.onnx.onnx_graph import OnnxGraph, OnnxValue

BRANCHES = ("then_branch", "else_branch")


# -- If ----------------------------------------------------------------------------------------------------------------
@maps("If")
def if_(n: NodeBuilder) -> Mapped:
    """Before: If(cond) {then_branch, else_branch}. After: If(cond, captures...); captures are sorted by name.

    A condition that follows from shapes (exporters write "if this dim is 1, squeeze it") decides here: the branch taken
    stands in place of the If. The other one need not even fit the shapes.

    Where only the run decides, one branch need not fit the shapes; see :class:`ChoiceBuilder`.
    """
    condition = _boolean(n, 0)
    bodies = [n.node.graphs[name] for name in BRANCHES]
    for body in bodies:
        if body.inputs or len(body.outputs) != len(n.outputs):
            raise n.fail(
                f"its branch [{body.name}] has {len(body.inputs)} inputs and {len(body.outputs)} outputs, "
                f"but must have 0 and {len(n.outputs)}"
            )
    decision = n.value(condition)
    if decision is not None and condition.node.type != "Const":
        n.builder.session.info(f"node {n.name} (If) always takes its {BRANCHES[_taken(decision)]}")
        return n.builder.inline(n, bodies[_taken(decision)])
    captured = captures(n, bodies)
    branches = [
        Branch(name, partial(_fill, content, captured), [value.name for value in content.outputs])
        for name, content in zip(BRANCHES, bodies, strict=True)
    ]
    taken = None if decision is None else _taken(decision)
    choice = ChoiceBuilder(n, partial(Body, n), captured)
    return choice.add("If", condition, branches, len(n.outputs), taken, n.builder.session.warn)


def _taken(decision: Array) -> int:
    return 0 if decision.reshape(-1)[0] else 1


def _fill(content: OnnxGraph, captured: Sequence[Argument], body: Body, inputs: list[NodeOut]) -> list[NodeOut]:
    return body.add_graph(content, {a.name: source for a, source in zip(captured, inputs, strict=True)})


def _boolean(n: NodeBuilder, index: int) -> NodeOut:
    """Return an input that must be one boolean."""
    condition = n.need(index)
    if n.dtype(condition) is not DataType.DT_BOOL or n.shape(condition).elements not in (1, -1):
        raise n.fail(f"its condition is {condition.desc!r}, but must be one boolean")
    return condition


# -- Loop --------------------------------------------------------------------------------------------------------------
@maps("Loop")
def loop(n: NodeBuilder) -> Mapped:
    """Before: Loop(M?, cond?, v...) {body(i, cond, v...) -> cond, v..., scans...}. After: While, and what it collects.

    The state is (captures..., M, i, cond, v..., handles...): the While goes on as long as ``i < M and cond``, as far as
    these are given. Each scan output is XScanBuffer before, XScanAppend in the body, XScanStack behind.
    """
    content, n_values = n.node.graphs["body"], len(n.inputs) - 2
    n_scans = len(content.outputs) - 1 - n_values
    if len(content.inputs) != 2 + n_values or n_scans < 0 or len(n.outputs) > n_values + n_scans:
        raise n.fail(
            f"with {n_values} carried values and {len(n.outputs)} outputs its body [{content.name}] must have "
            f"{2 + n_values} inputs and at least {1 + max(n_values, len(n.outputs))} outputs, "
            f"but has {len(content.inputs)} and {len(content.outputs)}"
        )
    return _LoopMapping(n, content, n_values, n_scans).add()


class _LoopMapping:
    def __init__(self, n: NodeBuilder, content: OnnxGraph, n_values: int, n_scans: int) -> None:
        self.n = n
        self.content = content
        self.n_values = n_values
        self.n_scans = n_scans
        self.captured = captures(n, [content])
        self.limit = self._limit()
        self.first_condition = self._first_condition()
        self.stays_true = False
        """The body never changes the condition, or makes it true."""
        self.collected: list[NodeOut] = []
        """What one turn adds to the scan outputs."""

    def add(self) -> Mapped:
        n, names = self.n, [value.name for value in self.content.inputs]
        begin = n.const("Iteration", np.zeros(_one_element(self.content.inputs[0]), np.int64))
        values = [Argument(name, n.need(2 + k)) for k, name in enumerate(names[2:])]
        handles = [
            Argument(f"scan_{k}", n.add("XScanBuffer", role=f"Buffer_{k}").output()) for k in range(self.n_scans)
        ]
        state = [Argument(names[0], begin), Argument(names[1], self.first_condition), *values, *handles]
        results = add_while(n, self._fixed(), state, self._turn, self._goes_on)
        stacks = [
            stack_scan(n, handle, value, k, count=self._count())
            for k, (handle, value) in enumerate(zip(results[2 + self.n_values :], self.collected, strict=True))
        ]
        return [*results[2 : 2 + self.n_values], *stacks][: len(n.outputs)]

    def _limit(self) -> NodeOut | None:
        limit = self.n.input(0)
        if limit is not None and (
            self.n.dtype(limit) is not DataType.DT_INT64 or self.n.shape(limit).elements not in (1, -1)
        ):
            raise self.n.fail(f"its trip count is {limit.desc!r}, but must be one int64 number")
        return limit

    def _first_condition(self) -> NodeOut:
        shape = _one_element(self.content.inputs[1])
        if self.n.input(1) is None:
            return self.n.const("Condition", np.ones(shape, np.bool_))
        return _shaped(self.n, _boolean(self.n, 1), shape, "Condition")

    def _fixed(self) -> list[Argument]:
        return [*self.captured, *([] if self.limit is None else [Argument("trip_count", self.limit)])]

    def _turn(self, turn: Turn) -> list[NodeOut]:
        body, n = turn.body, turn.body.n
        given = turn.captured(self.captured)
        given.update(zip([value.name for value in self.content.inputs], turn.carried, strict=False))
        outputs = body.add_graph(self.content, given)
        iteration, condition = turn.carried[:2]
        one = n.const("One", np.int64(1))
        going = outputs[0]
        if n.dtype(going) is not DataType.DT_BOOL or n.shape(going).elements not in (1, -1):
            raise n.fail(f"the condition that its body returns is {going.desc!r}, but must be one boolean")
        self.stays_true = _passes(going, condition) or _is(n, going, True)
        self.collected = outputs[1 + self.n_values :]
        return [
            n.add("Add", iteration, one, role="Next").output(),
            _shaped(n, going, tuple(n.shape(condition)), "Going"),
            *outputs[1 : 1 + self.n_values],
            *append_scans(n, turn.carried[2 + self.n_values :], self.collected),
        ]

    def _goes_on(self, turn: Turn) -> NodeOut:
        n, iteration, condition = turn.body.n, *turn.carried[:2]
        is_always = self.stays_true and _is(self.n, self.first_condition, True)
        if self.limit is None:
            if is_always:
                self.n.builder.session.warn(f"node {self.n.name} (Loop) never ends: nothing limits it")
            return condition
        counts = n.add("Less", iteration, turn.fixed[-1], role="Counts")
        return (counts if is_always else n.add("LogicalAnd", counts, condition, role="Goes_On")).output()

    def _count(self) -> int:
        """Return the number of turns if it is known, else -1."""
        if _is(self.n, self.first_condition, False):
            return 0
        limit = self.n.ints(self.limit)
        if limit is None or not (self.stays_true and _is(self.n, self.first_condition, True)):
            return 0 if limit is not None and limit[0] <= 0 else -1
        return max(limit[0], 0)


def _one_element(value: OnnxValue) -> tuple[int, ...]:
    """Return the shape of a body's iteration number or condition: a scalar unless a vector is declared."""
    return (1,) if value.dims is not None and len(value.dims) == 1 else ()


def _shaped(n: NodeBuilder, source: NodeOut, shape: tuple[int, ...], role: str) -> NodeOut:
    """Return one element in the given shape."""
    if n.shape(source) == Shape(shape):
        return source
    return n.add("Reshape", source, n.int64(shape, f"{role}_Shape"), role=f"{role}_Reshape").output()


def _passes(out: NodeOut, given: NodeOut) -> bool:
    while out != given and out.node.type == "Identity":
        source = out.node.input(0)
        assert source is not None
        out = source
    return out == given


def _is(n: NodeBuilder, source: NodeOut, wanted: bool) -> bool:
    value = n.value(source)
    return value is not None and value.size == 1 and bool(value.reshape(-1)[0]) is wanted


# -- scan outputs ------------------------------------------------------------------------------------------------------
def scan_buffers(n: NodeBuilder, count: int) -> list[Argument]:
    """Add the buffers that a loop fills."""
    return [Argument(f"scan_{k}", n.add("XScanBuffer", role=f"Buffer_{k}").output()) for k in range(count)]


def append_scans(n: NodeBuilder, handles: list[NodeOut], values: list[NodeOut]) -> list[NodeOut]:
    """Add what collects one turn's values."""
    return [
        n.add("XScanAppend", handle, value, role=f"Append_{k}").output()
        for k, (handle, value) in enumerate(zip(handles, values, strict=True))
    ]


def stack_scan(
    n: NodeBuilder, handle: NodeOut, value: NodeOut, k: int, *, count: int, axis: int = 0, is_reversed: bool = False
) -> NodeOut:
    """Add what joins the values that a loop collected; ``value`` is that of one turn, ``count`` is -1 if not known."""
    desc = value.desc
    return n.add(
        "XScanStack",
        handle,
        role=f"Scan_{k}",
        dtype=desc.data_type,
        shape=list(desc.origin_shape),
        count=count,
        axis=axis,
        reverse=is_reversed,
    ).output()
