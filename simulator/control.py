"""Running the bodies of call nodes in planned memory.

The results of a body are copied to the outputs of the call node. In a loop these hold the state, which the body reads;
a result that shows the state itself (values that change places) is read before any of the state is overwritten.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from ge.call_tree import bodies, unchanged_slots
from ge.errors import ReportedError
from ge.graph import Node
from simulator.binding import cannot_run, damaged
from simulator.kernels.registry import Array, ScratchLayout
from simulator.steps import RunSteps, Step


@dataclass
class Body:
    """A bound body: the memory of its results, and its steps, once they are ready."""

    results: list[Array]
    steps: list[Step] = field(default_factory=list)


class Control(Protocol):
    """What runs the bodies of a call node. ``scratch_bytes`` is what it needs of scratch between them."""

    name: str
    scratch_bytes: int

    def run(self, scratch: Array, run_steps: RunSteps) -> None: ...


class Copies:
    """Copies arrays to others of their shapes, as if all were read before any is written."""

    def __init__(self, sources: Sequence[Array], targets: Sequence[Array]) -> None:
        self._direct: list[tuple[Array, Array]] = []
        self._staged: list[tuple[Array, Array, Callable[[Array], Array]]] = []
        layout = ScratchLayout()
        for source, target in zip(sources, targets, strict=True):
            if _is_same(source, target):
                continue
            if any(np.may_share_memory(source, other) for other in targets):
                self._staged.append((source, target, layout.take(source.shape, source.dtype)))
            else:
                self._direct.append((source, target))
        self.scratch_bytes = layout.size

    def run(self, scratch: Array) -> None:
        """Copy; ``scratch`` has at least ``scratch_bytes``."""
        for source, _, place in self._staged:
            np.copyto(place(scratch), source)
        for source, target in self._direct:
            np.copyto(target, source)
        for _, target, place in self._staged:
            np.copyto(target, place(scratch))


def _is_same(one: Array, other: Array) -> bool:
    return one.ctypes.data == other.ctypes.data and one.nbytes == other.nbytes


class Choice:
    """If and Case: one of the branches. A boolean takes the first if it is true; a number outside takes the last."""

    name = "choice"

    def __init__(
        self, selector: Array, branches: Sequence[Body], outputs: Sequence[Array], *, is_boolean: bool
    ) -> None:
        self._selector = selector
        self._branches = branches
        self._copies = [Copies(branch.results, outputs) for branch in branches]
        self._is_boolean = is_boolean
        self.scratch_bytes = max(copies.scratch_bytes for copies in self._copies)

    def run(self, scratch: Array, run_steps: RunSteps) -> None:
        """Run the branch that the selector chooses."""
        value = self._selector.reshape(-1)[0]
        chosen = (0 if value else 1) if self._is_boolean else int(value)
        if not 0 <= chosen < len(self._branches):
            chosen = len(self._branches) - 1
        run_steps(self._branches[chosen].steps)
        self._copies[chosen].run(scratch)


class Loop:
    """While: the state lies in the outputs of the node. Values of the slots ``fixed`` stay what they are."""

    name = "loop"

    def __init__(
        self,
        inputs: Sequence[Array],
        state: Sequence[Array],
        condition: Body,
        body: Body,
        fixed: Collection[int] = frozenset(),
    ) -> None:
        changing = [slot for slot in range(len(state)) if slot not in fixed]
        self._condition = condition
        self._body = body
        self._start = Copies(inputs, state)
        self._turn = Copies([body.results[slot] for slot in changing], [state[slot] for slot in changing])
        self.scratch_bytes = max(self._start.scratch_bytes, self._turn.scratch_bytes)

    def run(self, scratch: Array, run_steps: RunSteps) -> None:
        """Run the body as long as the condition holds."""
        self._start.run(scratch)
        [decision] = self._condition.results
        while True:
            run_steps(self._condition.steps)
            if not decision.reshape(-1)[0]:
                return
            run_steps(self._body.steps)
            self._turn.run(scratch)


class Call:
    """PartitionedCall: one body, once."""

    name = "call"

    def __init__(self, body: Body, outputs: Sequence[Array]) -> None:
        self._body = body
        self._copies = Copies(body.results, outputs)
        self.scratch_bytes = self._copies.scratch_bytes

    def run(self, scratch: Array, run_steps: RunSteps) -> None:
        """Run the body."""
        run_steps(self._body.steps)
        self._copies.run(scratch)


# -- from nodes --------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class BoundCall:
    """A call node with its memory and its bodies, which have that of their results."""

    node: Node
    inputs: Sequence[Array]
    outputs: Sequence[Array]
    bodies: Mapping[str, Body]

    def body(self, formal: str) -> Body:
        """Return a body whose results fit the outputs of the node. Raises R1010."""
        body = self._find(formal)
        found, wanted = ([(array.shape, array.dtype) for array in arrays] for arrays in (body.results, self.outputs))
        if found != wanted:
            raise self.damaged(f"the results of its graph {formal} do not fit its outputs: {found}, {wanted}")
        return body

    def condition(self) -> Body:
        """Return the body ``cond``, which decides. Raises R1010."""
        body = self._find("cond")
        if [array.size for array in body.results] != [1]:
            raise self.damaged("its graph cond must give one value")
        return body

    def selector(self) -> Array:
        """Return the first input, which chooses. Raises R1010."""
        if not self.inputs or self.inputs[0].size != 1:
            raise self.damaged("its first input must be one value")
        return self.inputs[0]

    def _find(self, formal: str) -> Body:
        body = self.bodies.get(formal)
        if body is None:
            raise self.damaged(f"it has no graph {formal}")
        return body

    def damaged(self, reason: str) -> ReportedError:
        """Return the error for a node that cannot be executed as it stands."""
        return damaged(self.node.graph, f"node {self.node.name} ({self.node.type}): {reason}")


def _if(call: BoundCall) -> Control:
    branches = [call.body("then_branch"), call.body("else_branch")]
    return Choice(call.selector(), branches, call.outputs, is_boolean=True)


def _case(call: BoundCall) -> Control:
    branches = [call.body(formal) for formal in call.bodies if formal.startswith("branches")]
    if not branches:
        raise call.damaged("it has no branches")
    return Choice(call.selector(), branches, call.outputs, is_boolean=False)


def _while(call: BoundCall) -> Control:
    found, wanted = ([(array.shape, array.dtype) for array in arrays] for arrays in (call.inputs, call.outputs))
    if found != wanted:
        raise call.damaged(f"its inputs do not fit its outputs: {found}, {wanted}")
    body = call.body("body")
    fixed = unchanged_slots(bodies(call.node)["body"], call.node)
    return Loop(call.inputs, call.outputs, call.condition(), body, fixed)


def _call(call: BoundCall) -> Control:
    return Call(call.body("f"), call.outputs)


_CONTROLS: dict[str, Callable[[BoundCall], Control]] = {
    "If": _if,
    "StatelessIf": _if,
    "Case": _case,
    "While": _while,
    "StatelessWhile": _while,
    "PartitionedCall": _call,
    "StatefulPartitionedCall": _call,
}


def control_of(call: BoundCall) -> Control:
    """Return what runs the bodies of a call node. Raises R1010 for bodies that do not fit and R1051 for other types."""
    make = _CONTROLS.get(call.node.type)
    if make is None:
        raise cannot_run(call.node, "graphs of an operator of this type cannot be run")
    return make(call)
