"""TensorFlow 1 loops: frames of Enter, Merge, Switch, NextIteration and Exit become While nodes.

    Enter -> Merge -> Switch(LoopCond) -> body -> NextIteration -> Merge
                         `-> Exit

A frame is well formed when each of its variables goes round as drawn and one LoopCond decides for all. Constants of a
frame (Enter with is_constant, and what is read without any Enter) stay what they are. Anything else is refused by the
name of the frame: nothing is run that might mean something else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from ge.call_tree import MAX_NESTING
from ge.errors import ReportedError
from parsers.execution_order import ordered
from parsers.tensorflow.tf_graph import Reference, TfBody, TfNode

ENTER = frozenset({"Enter", "RefEnter"})
EXIT = frozenset({"Exit", "RefExit"})
NEXT = frozenset({"NextIteration", "RefNextIteration"})
MERGE = frozenset({"Merge", "RefMerge"})
SWITCH = frozenset({"Switch", "RefSwitch"})
LOOP_ONLY = ENTER | EXIT | NEXT | {"LoopCond"}
PASSING = frozenset({"Identity", "RefIdentity", "StopGradient", "PreventGradient", "Snapshot"})

Path = tuple[str, ...]
"""The frames around a node by name, the outermost first."""
RaiseBody = Callable[[Sequence[TfNode], Sequence[Reference], int], list[TfNode]]
"""Raises what control flow there is in a body, given its nodes, results and depth."""


def malformed(node: TfNode, reason: str) -> ReportedError:
    """Return the error for control flow that has no meaning as a loop or a branch."""
    return ReportedError("E11010", opname=node.name, optype=node.op, reason=reason)


def by_name(nodes: Iterable[TfNode]) -> dict[str, TfNode]:
    """Return nodes by name."""
    return {node.name: node for node in nodes}


def free_name(stem: str, taken: Mapping[str, TfNode]) -> str:
    """Return ``stem`` or ``stem_1``, ...: a name that no node has."""
    name, count = stem, 0
    while name in taken:
        count += 1
        name = f"{stem}_{count}"
    return name


def frame_name(node: TfNode) -> str:
    """Return the frame that an Enter opens. Raises E11010 when it does not say."""
    value = node.attributes.get("frame_name")
    if value is None or value.WhichOneof("value") != "s" or not value.s:
        raise malformed(node, "attribute frame_name is missing")
    return value.s.decode(errors="replace")


# -- which node is in which frame --------------------------------------------------------------------------------------
def paths_of(nodes: Sequence[TfNode]) -> dict[str, Path]:
    """Return the frames around each node; an Enter is inside of its own, an Exit outside.

    Raises E11010 for nodes that no frame can hold, E13025 for a cycle that does not lead through a NextIteration.
    """
    known = by_name(nodes)
    number = {node.name: i for i, node in enumerate(nodes)}
    before = [[number[name] for name in _forward_producers(node, known)] for node in nodes]
    paths: dict[str, Path] = {}
    for i in ordered(before, [node.name for node in nodes]):
        node = nodes[i]
        paths[node.name] = _path(node, [paths[name] for name in _forward_producers(node, known)])
    return paths


def _forward_producers(node: TfNode, known: Mapping[str, TfNode]) -> list[str]:
    read = [reference.node for reference in node.inputs]
    if node.op in MERGE:
        read = [name for name in read if name in known and known[name].op not in NEXT]
    return [name for name in dict.fromkeys([*read, *node.controls]) if name in known]


def _path(node: TfNode, given: Sequence[Path]) -> Path:
    path = max(given, key=len, default=())
    for other in given:
        if path[: len(other)] != other:
            named = f"{'/'.join(path)} and {'/'.join(other)}"
            raise malformed(node, f"it reads values of the frames {named}, neither of which is inside the other")
    if node.op in ENTER:
        if len(path) >= MAX_NESTING:
            raise malformed(node, f"frame {frame_name(node)} is nested deeper than {MAX_NESTING} levels")
        return (*path, frame_name(node))
    if not path and node.op in LOOP_ONLY:
        raise malformed(node, "it is outside of any frame: no Enter leads to it")
    return path[:-1] if node.op in EXIT else path


# -- one frame ---------------------------------------------------------------------------------------------------------
class _Variable(NamedTuple):
    """A value that goes round."""

    enter: TfNode
    merge: TfNode
    back: TfNode


@dataclass
class _Part:
    """Nodes that a body consists of, and what it reads from outside of the frame without an Enter."""

    nodes: list[TfNode] = field(default_factory=list)
    outer: dict[Reference, None] = field(default_factory=dict)


class _Frame:
    """A frame that lies directly in the graph at hand, with all that is inside of it."""

    def __init__(
        self, name: str, members: Sequence[TfNode], exits: Sequence[TfNode], paths: Mapping[str, Path]
    ) -> None:
        self.name = name
        self.members = by_name(members)
        self.exits = exits
        self._order = {node.name: i for i, node in enumerate(members)}
        level = [node for node in members if paths[node.name] == (name,)]
        self.condition = self._only_condition(level)
        self.switches = {node.name: node for node in level if node.op in SWITCH and self._is_loop_switch(node)}
        enters = {node.name: node for node in level if node.op in ENTER}
        self.variables = self._variables(level, enters)
        self.constants = {node.name: node for node in enters.values() if _is_constant(node)}
        self._merges = {variable.merge.name for variable in self.variables}
        self._backs = {variable.back.name for variable in self.variables}
        self._only_first = enters.keys() - self.constants.keys()
        waits = (name for node in self.members.values() for name in node.controls if name not in self.members)
        self.controls = tuple(dict.fromkeys(waits))
        self.conditional = self._conditional()

    def fault(self, node: TfNode, reason: str) -> ReportedError:
        """Return the error for a node that does not fit into the frame."""
        return malformed(node, f"frame {self.name} is not well formed: {reason}")

    def _only_condition(self, level: Sequence[TfNode]) -> TfNode:
        found = [node for node in level if node.op == "LoopCond"]
        if len(found) != 1:
            at = found[1] if found else next(iter(level), next(iter(self.members.values())))
            raise self.fault(at, f"it has {len(found) or 'no'} LoopCond nodes, but must have one")
        return found[0]

    def _is_loop_switch(self, node: TfNode) -> bool:
        return len(node.inputs) == 2 and self.passed(node.inputs[1]) == Reference(self.condition.name, 0)

    def passed(self, reference: Reference) -> Reference:
        """Return what a chain of nodes that pass their input on begins with."""
        seen = set()
        while reference.node in self.members and reference not in seen:
            seen.add(reference)
            node = self.members[reference.node]
            if node.op not in PASSING or reference.output or not node.inputs:
                break
            reference = node.inputs[0]
        return reference

    def _variables(self, level: Sequence[TfNode], enters: Mapping[str, TfNode]) -> list[_Variable]:
        found = []
        for merge in level:
            inputs = [self.members.get(reference.node) for reference in merge.inputs] if merge.op in MERGE else []
            backs = [node for node in inputs if node is not None and node.op in NEXT]
            firsts = [node for node in inputs if node is not None and node.name in enters]
            if not backs and not firsts:
                continue
            if len(backs) != 1 or len(firsts) != 1 or [reference.output for reference in merge.inputs] != [0, 0]:
                raise self.fault(merge, "it must join one Enter and one NextIteration")
            if _is_constant(firsts[0]):
                raise self.fault(merge, f"it joins the constant {firsts[0].name}, which is there in every turn")
            early = [name for name in merge.controls if name in enters and not _is_constant(enters[name])]
            if early or any(name in self.members and self.members[name].op in NEXT for name in merge.controls):
                raise self.fault(merge, f"it waits for {', '.join(merge.controls)}, which is not there in every turn")
            found.append(_Variable(firsts[0], merge, backs[0]))
        return found

    # -- what the bodies consist of ------------------------------------------------------------------------------------
    def _conditional(self) -> set[str]:
        """Return the nodes that depend on what LoopCond decides in the same turn.

        Raises E11010 for a variable that goes round whatever it decides: such a loop never ends.
        """
        readers: dict[str, list[TfNode]] = {}
        for node in self.members.values():
            for name in node.producers():
                readers.setdefault(name, []).append(node)
        found, waiting = set(self.switches), list(self.switches)
        while waiting:
            for reader in readers.get(waiting.pop(), ()):
                if reader.name not in found:
                    found.add(reader.name)
                    waiting += [] if reader.name in self._backs else [reader.name]
        for variable in self.variables:
            if variable.back.name not in found:
                raise self.fault(variable.back, "it does not depend on the LoopCond, so the loop would never end")
        return found

    def is_there_at_the_end(self, name: str) -> bool:
        """Tell whether a node lives in the turn in which the loop ends, however many there were."""
        return name not in self.conditional and name not in self._only_first and name not in self._backs

    def resolved(self, reference: Reference) -> Reference:
        """Return what the frame's own Switches let through; other references as they are."""
        seen = set()
        while reference.node in self.switches and reference not in seen:
            seen.add(reference)
            reference = self.switches[reference.node].inputs[0]
        return reference

    def part(self, ends: Sequence[TfNode]) -> _Part:
        """Return ``ends`` and what they need inside the frame; control edges count, they say what lives when."""
        found, waiting = _Part(), list(ends)
        seen = {*self._merges, *self.constants, *self.switches, *(node.name for node in ends)}
        while waiting:
            node = waiting.pop()
            waits = [*node.controls, *(name for reference in node.inputs for name in self._checked(reference, node))]
            inputs = tuple(self.resolved(reference) for reference in node.inputs)
            found.outer.update((source, None) for source in inputs if source.node not in self.members)
            for name in (*(source.node for source in inputs), *waits):
                if name in self._backs or name in self._only_first:
                    when = "next turn" if name in self._backs else "first turn"
                    raise self.fault(node, f"it needs {name}, which is only there in the {when}")
                if name in self.members and name not in seen:
                    seen.add(name)
                    waiting.append(self.members[name])
            found.nodes.append(replace(node, inputs=inputs, controls=tuple(dict.fromkeys(waits))))
        found.nodes.sort(key=lambda node: self._order[node.name])
        return found

    def _checked(self, reference: Reference, reader: TfNode) -> list[str]:
        """Return what the Switches that a reference leads through wait for. Refuse what has no value inside a turn."""
        waits: list[str] = []
        while reference.node in self.switches:
            switch = self.switches[reference.node]
            if reference.output != 1:
                raise self.fault(
                    reader, f"inside of the loop it reads {reference}, which is there behind the last turn"
                )
            if switch.inputs[0].node == switch.name:
                raise self.fault(switch, "it reads itself")
            waits += switch.controls
            reference = switch.inputs[0]
        if reference.output != 0 and reference.node in self._merges:
            raise self.fault(reader, f"it asks which turn it is in ({reference})")
        return waits


def _is_constant(enter: TfNode) -> bool:
    value = enter.attributes.get("is_constant")
    return value is not None and value.WhichOneof("value") == "b" and value.b


def raise_loops(nodes: Sequence[TfNode], depth: int, raise_body: RaiseBody) -> list[TfNode]:
    """Return the nodes with one While for each frame. Exits become Identities of its results."""
    if not any(node.op in LOOP_ONLY for node in nodes):
        return list(nodes)
    paths = paths_of(nodes)
    taken = by_name(nodes)
    kept = {node.name: node for node in nodes if not paths[node.name]}
    members: dict[str, list[TfNode]] = {}
    exits: dict[str, list[TfNode]] = {}
    for node in nodes:
        inside = paths[node.name]
        if inside:
            members.setdefault(inside[0], []).append(node)
        elif node.op in EXIT:
            exits.setdefault(paths[node.inputs[0].node][0], []).append(node)
    for name, inner in members.items():
        frame = _Frame(name, inner, exits.get(name, ()), paths)
        loop, ends = _while(frame, free_name(name, taken), depth, raise_body)
        taken[loop.name] = kept[loop.name] = loop
        kept.update((node.name, node) for node in ends)
    return list(kept.values())


def _while(frame: _Frame, name: str, depth: int, raise_body: RaiseBody) -> tuple[TfNode, list[TfNode]]:
    """Return the While of a frame and the Identities in place of its Exits."""
    if depth >= MAX_NESTING:
        raise frame.fault(frame.condition, f"it is nested deeper than {MAX_NESTING} levels")
    condition = frame.part([_end(frame.condition)])
    turn = frame.part([_end(variable.back) for variable in frame.variables])
    outer = list(dict.fromkeys([*turn.outer, *condition.outer]))
    own = [Reference(name, 0) for name in frame.constants]
    arguments = [[Reference(variable.merge.name, 0)] for variable in frame.variables]
    arguments += [[reference] for reference in (*own, *outer)]
    decisions = [Reference(frame.condition.name, 0)]
    results = [*(Reference(variable.back.name, 0) for variable in frame.variables), *own, *outer]
    bodies = {
        "cond": TfBody(arguments, raise_body(condition.nodes, decisions, depth + 1), decisions),
        "body": TfBody(arguments, raise_body(turn.nodes, results, depth + 1), results),
    }
    inputs = [variable.enter.inputs[0] for variable in frame.variables]
    inputs += [*(node.inputs[0] for node in frame.constants.values()), *outer]
    loop = TfNode(name, "While", tuple(inputs), frame.controls, {}, bodies=bodies)
    slots = {argument[0]: k for k, argument in enumerate(arguments)}
    return loop, [_exit(frame, node, loop, slots) for node in frame.exits]


def _end(node: TfNode) -> TfNode:
    """Return what stands for a NextIteration or the LoopCond in a body: it waits for what they wait for."""
    return replace(node, op="Identity")


def _exit(frame: _Frame, node: TfNode, loop: TfNode, slots: Mapping[Reference, int]) -> TfNode:
    source = frame.passed(node.inputs[0])
    switch = frame.switches.get(source.node) if source.output == 0 else None
    slot = None if switch is None else slots.get(frame.passed(switch.inputs[0]))
    if switch is None or slot is None:
        raise frame.fault(node, f"it must take a value of the loop behind the last turn, but reads {node.inputs[0]}")
    for name in switch.controls:
        if not frame.is_there_at_the_end(name):
            raise frame.fault(node, f"behind the last turn it waits for {name}, which is not there then")
    return replace(node, op="Identity", inputs=(Reference(loop.name, slot),))
