"""TensorFlow 1 conditionals: Switch and Merge become If and Case nodes.

A node behind output k of a Switch lives only if the predicate is k. A Merge joins branches when its inputs live under
the same conditions but for one predicate, of which each has another outcome. Whatever else may be dead when it is read
is refused: nothing is run that might mean something else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from ge.call_tree import MAX_NESTING
from parsers.execution_order import ordered
from parsers.tensorflow import graph_def_pb2 as pb
from parsers.tensorflow.frames import MERGE, PASSING, SWITCH, by_name, free_name, malformed
from parsers.tensorflow.tf_graph import Reference, TfBody, TfNode

SWITCH_N = "_SwitchN"
"""What TensorFlow lowers Case to: one output per branch."""
_SWITCHES = SWITCH | {SWITCH_N}
MAX_BRANCHES = 1024


class _Literal(NamedTuple):
    """One of the outcomes that a predicate can have."""

    predicate: Reference
    outcome: int
    outcomes: int
    is_boolean: bool


Condition = frozenset[_Literal]
_ALWAYS: Condition = frozenset()


def _is_impossible(condition: Condition) -> bool:
    return len({literal.predicate for literal in condition}) < len(condition)


@dataclass(frozen=True)
class _Choice:
    """What a Merge decides by. ``inputs`` are the numbers of its inputs by outcome."""

    predicate: Reference
    is_boolean: bool
    inputs: tuple[int, ...]


@dataclass
class _Lives:
    """Under which conditions nodes live, and what Merges join."""

    nodes: Mapping[str, TfNode]
    number: Mapping[str, int]
    conditions: dict[str, Condition] = field(default_factory=dict)
    choices: dict[str, _Choice] = field(default_factory=dict)
    """By the name of the Merge; Merges with one living input have none."""
    single: dict[str, int] = field(default_factory=dict)
    """The only living input of such a Merge."""
    asked: set[str] = field(default_factory=set)
    """Nodes whose output 1 is read."""

    def base(self, reference: Reference) -> Reference:
        """Return the predicate that a reference shows: behind Switches and nodes that pass their input on."""
        seen = set()
        while reference not in seen:
            seen.add(reference)
            node = self.nodes.get(reference.node)
            is_passing = node is not None and (node.op in _SWITCHES or (node.op in PASSING and reference.output == 0))
            if node is None or not is_passing or not node.inputs:
                break
            reference = node.inputs[0]
        return reference

    def of(self, reference: Reference) -> Condition:
        """Return the condition of what a node reads."""
        found = self.conditions.get(reference.node, _ALWAYS)
        node = self.nodes.get(reference.node)
        if node is None or node.op not in _SWITCHES:
            return found
        return found | {self.literal(node, reference)}

    def literal(self, switch: TfNode, reference: Reference) -> _Literal:
        """Return the outcome that an output of a Switch stands for."""
        count = branch_count(switch)
        if reference.output >= count:
            raise malformed(switch, f"{reference} is read, but it has {count} outputs")
        return _Literal(self.base(switch.inputs[1]), reference.output, count, switch.op != SWITCH_N)

    def add(self, node: TfNode) -> None:
        """Find out about a node whose producers are known already."""
        self.asked.update(reference.node for reference in node.inputs if reference.output == 1)
        waits = _ALWAYS.union(*(self.conditions.get(name, _ALWAYS) for name in node.controls))
        given = [self.of(reference) for reference in node.inputs]
        if node.op in MERGE:
            self.conditions[node.name] = waits | self._joined(node, given)
        else:
            self.conditions[node.name] = waits.union(*given)

    def _joined(self, merge: TfNode, given: Sequence[Condition]) -> Condition:
        living = [k for k, condition in enumerate(given) if not _is_impossible(condition)]
        if len(living) == 1:
            self.single[merge.name] = living[0]
            return given[living[0]]
        common = frozenset.intersection(*(given[k] for k in living)) if living else _ALWAYS
        rests = [sorted(given[k] - common) for k in living]
        literals = [rest[0] for rest in rests if len(rest) == 1]
        predicates = {literal[:1] + literal[2:] for literal in literals}
        outcomes = {literal.outcome: k for literal, k in zip(literals, living, strict=False)}
        if len(literals) < len(living) or len(predicates) != 1 or len(outcomes) != literals[0].outcomes:
            raise malformed(merge, f"its inputs are not the branches of one Switch: {_in_words(merge, given)}")
        first = literals[0]
        self.choices[merge.name] = _Choice(
            first.predicate, first.is_boolean, tuple(outcomes[k] for k in range(first.outcomes))
        )
        return common


def _in_words(merge: TfNode, given: Sequence[Condition]) -> str:
    parts = []
    for reference, condition in zip(merge.inputs[:4], given, strict=False):
        living = " and ".join(f"{literal.predicate} is {literal.outcome}" for literal in sorted(condition)[:4])
        parts.append(f"{reference} lives {f'if {living}' if living else 'always'}")
    return ", ".join([*parts, *(["..."] if len(merge.inputs) > 4 else [])])


def branch_count(switch: TfNode) -> int:
    """Return how many outputs a Switch has. Raises E11010 for a _SwitchN that does not say."""
    if switch.op != SWITCH_N:
        return 2
    value = switch.attributes.get("num_outs")
    if value is None or value.WhichOneof("value") != "i" or not 1 <= value.i <= MAX_BRANCHES:
        raise malformed(switch, f"attribute num_outs must be a number from 1 to {MAX_BRANCHES}")
    return int(value.i)


def raise_branches(nodes: Sequence[TfNode], results: Sequence[Reference], depth: int) -> list[TfNode]:
    """Return the nodes with If and Case nodes, whose results have the names of the Merges; dead ends are dropped.

    ``results`` must live always: E11010 for one that does not.
    """
    if not any(node.op in _SWITCHES or node.op in MERGE for node in nodes):
        return list(nodes)
    lives = _Lives(by_name(nodes), {node.name: i for i, node in enumerate(nodes)})
    lives.asked.update(reference.node for reference in results if reference.output == 1)
    for node in in_order(nodes):
        lives.add(node)
    for reference in results:
        condition = lives.of(reference)
        if condition:
            said = " and ".join(f"{literal.predicate} is {literal.outcome}" for literal in sorted(condition))
            raise malformed(lives.nodes[reference.node], f"{reference} is a result, but is only there if {said}")
    kept = [node for node in nodes if not lives.conditions[node.name] and node.op not in _SWITCHES]
    raised: dict[str, TfNode] = {}
    taken = dict(lives.nodes)
    for group in _groups(kept, lives):
        call, joined = _call(group, lives, taken, depth)
        taken[call.name] = raised[call.name] = call
        raised.update((node.name, node) for node in joined)
    for node in kept:
        if node.name in lives.single:
            raised[node.name] = _passed_on(node, lives.single[node.name])
        else:
            raised.setdefault(node.name, node)
    return list(raised.values())


def in_order(nodes: Sequence[TfNode]) -> list[TfNode]:
    """Return nodes, producers first. Raises E13025 for a cycle."""
    number = {node.name: i for i, node in enumerate(nodes)}
    before = [[number[name] for name in dict.fromkeys(node.producers()) if name in number] for node in nodes]
    return [nodes[i] for i in ordered(before, [node.name for node in nodes])]


def _passed_on(merge: TfNode, living: int) -> TfNode:
    return replace(merge, op="Identity", inputs=(merge.inputs[living],))


def _groups(kept: Iterable[TfNode], lives: _Lives) -> list[list[TfNode]]:
    """Return the Merges that one call can replace: they have one predicate, and none needs another.

    ``level`` counts the Merges on the way to a node; those of one level never need each other.
    """
    levels: dict[str, int] = {}
    groups: dict[tuple[Reference, bool, int, int], list[TfNode]] = {}
    merges = {node.name for node in kept if node.name in lives.choices}
    for node in in_order(list(lives.nodes.values())):
        level = max((levels[name] + (name in merges) for name in node.producers() if name in levels), default=0)
        levels[node.name] = level
        if node.name in merges:
            choice = lives.choices[node.name]
            key = (choice.predicate, choice.is_boolean, len(choice.inputs), level)
            groups.setdefault(key, []).append(node)
    return list(groups.values())


# -- the branches of one call ------------------------------------------------------------------------------------------
def _call(
    merges: Sequence[TfNode], lives: _Lives, taken: Mapping[str, TfNode], depth: int
) -> tuple[TfNode, list[TfNode]]:
    """Return the If or Case that replaces ``merges``, and Identities of its results in their place."""
    if depth >= MAX_NESTING:
        raise malformed(merges[0], f"its branches are nested deeper than {MAX_NESTING} levels")
    choice = lives.choices[merges[0].name]
    count = len(choice.inputs)
    asked = [merge for merge in merges if merge.name in lives.asked]
    parts = [_Branch(lives, choice, outcome) for outcome in range(count)]
    for part in parts:
        part.add(merges, asked)
    captured = list(dict.fromkeys(reference for part in parts for reference in part.captured))
    arguments = [[reference] for reference in captured]
    bodies = [TfBody(arguments, raised_body(part.nodes, part.results, depth + 1), part.results) for part in parts]
    if choice.is_boolean:
        formals, op = ["else_branch", "then_branch"], "If"
    else:
        formals, op = [f"branches{k}" for k in range(count)], "Case"
    name = free_name(f"{merges[0].name}/{op}", taken)
    waits = tuple(dict.fromkeys(control for merge in merges for control in merge.controls))
    call = TfNode(name, op, (choice.predicate, *captured), waits, {}, bodies=dict(zip(formals, bodies, strict=True)))
    extra = {merge.name: len(merges) + k for k, merge in enumerate(asked)}
    joined = []
    for k, merge in enumerate(merges):
        inputs = [Reference(name, k), *([Reference(name, extra[merge.name])] if merge.name in extra else [])]
        joined.append(replace(merge, op="IdentityN" if len(inputs) > 1 else "Identity", inputs=tuple(inputs)))
    return call, joined


class _Branch:
    """What runs for one outcome of a predicate."""

    def __init__(self, lives: _Lives, choice: _Choice, outcome: int) -> None:
        self._lives = lives
        self._literal = _Literal(choice.predicate, outcome, len(choice.inputs), choice.is_boolean)
        self._found: dict[str, TfNode] = {}
        self._added: list[TfNode] = []
        self.results: list[Reference] = []
        self.captured: dict[Reference, None] = {}

    @property
    def nodes(self) -> list[TfNode]:
        """Nodes of the branch, in the order of the file."""
        number = self._lives.number
        return sorted(self._found.values(), key=lambda node: number[node.name]) + self._added

    def add(self, merges: Sequence[TfNode], asked: Sequence[TfNode]) -> None:
        """Take what this branch gives to the Merges; ``asked`` are those that also say which input they took."""
        numbers = {merge.name: self._lives.choices[merge.name].inputs[self._literal.outcome] for merge in merges}
        for merge in merges:
            self.results.append(self._through(merge.inputs[numbers[merge.name]]))
        waiting = [self._inside(reference) for reference in self.results]
        while waiting:
            name = waiting.pop()
            if name is None or name in self._found:
                continue
            node = self._lives.nodes[name]
            inputs = tuple(self._through(reference) for reference in node.inputs)
            self._found[name] = replace(node, inputs=inputs)
            waiting += [self._inside(reference) for reference in inputs]
            waiting += [before for before in node.controls if self._literal in self._condition(before)]
        for merge in asked:
            index = pb.AttrValue(tensor=pb.TensorProto(dtype=pb.DT_INT32, int_val=[numbers[merge.name]]))
            index.tensor.tensor_shape.SetInParent()
            attributes = {"dtype": pb.AttrValue(type=pb.DT_INT32), "value": index}
            name = free_name(f"{merge.name}/value_index", self._lives.nodes)
            self._added.append(TfNode(name, "Const", (), (), attributes))
            self.results.append(Reference(name, 0))

    def _condition(self, name: str) -> Condition:
        return self._lives.conditions.get(name, _ALWAYS)

    def _through(self, reference: Reference) -> Reference:
        """Return what the Switches of the predicate let through; other references as they are."""
        seen = set()
        while reference not in seen:
            seen.add(reference)
            node = self._lives.nodes.get(reference.node)
            if node is None or node.op not in _SWITCHES or self._lives.literal(node, reference) != self._literal:
                break
            reference = node.inputs[0]
        return reference

    def _inside(self, reference: Reference) -> str | None:
        """Return the producer if it is part of the branch; else the branch is given the value."""
        if self._literal in self._condition(reference.node):
            return reference.node
        self.captured[reference] = None
        return None


# -- what is left ------------------------------------------------------------------------------------------------------
def raised_body(nodes: Sequence[TfNode], results: Sequence[Reference], depth: int) -> list[TfNode]:
    """Return the nodes of a body without Switches and Merges, and without what its results do not need."""
    return trimmed(raise_branches(nodes, results, depth), results)


def trimmed(nodes: Sequence[TfNode], results: Sequence[Reference]) -> list[TfNode]:
    """Return what the results read, directly or not; control edges between these nodes stay."""
    known = by_name(nodes)
    seen: set[str] = set()
    waiting = [reference.node for reference in results]
    while waiting:
        name = waiting.pop()
        if name in known and name not in seen:
            seen.add(name)
            waiting += [reference.node for reference in known[name].inputs]
    return with_controls_inside([node for node in nodes if node.name in seen])


def with_controls_inside(nodes: Sequence[TfNode]) -> list[TfNode]:
    """Return the nodes without control edges from others."""
    names = {node.name for node in nodes}
    return [
        replace(node, controls=tuple(name for name in node.controls if name in names))
        if not names.issuperset(node.controls)
        else node
        for node in nodes
    ]
