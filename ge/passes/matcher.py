"""Finding a pattern in a graph.

A pattern is compiled once (:class:`CompiledPattern`), then tried at one candidate of its first output after the other.
From there the match is fixed by walking back along the data edges; outputs that the walk has not met are looked for
among the readers of what is bound already, in node-list order, and the first that fits together counts. Different
outputs of a pattern are different tensors.
"""

from __future__ import annotations

import itertools
import struct
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ge.graph.graph import CycleError, Graph
from ge.graph.node import Node, NodeOut
from ge.graph.tensor import Tensor
from ge.ops import lookup
from ge.ops.signature import Arity
from ge.passes.boundary import Boundary, in_order, outside_reader
from ge.passes.node_index import NodeIndex, type_of
from ge.passes.pattern import PLACEHOLDER_TYPES, NodeIo, Pattern, PatternMatcherConfig
from ge.passes.rewriter import Replacement


class PatternFault(ValueError):
    """A pattern that cannot be matched; the message says why."""


@dataclass(frozen=True)
class _Edge:
    """An input port of a pattern node and what it reads."""

    slot: int
    source: int
    port: int


@dataclass(frozen=True)
class _Hop:
    """One step from a bound node towards an output that is not bound yet: along ``port`` into ``slot`` of ``node``."""

    source: int
    port: int
    slot: int
    node: int


class CompiledPattern:
    """A pattern in the form in which it is matched. Pattern nodes are numbered, output 0's producer is 0.

    Raises :class:`PatternFault` for graphs with bodies, control edges, operators with dynamic inputs or outputs,
    cycles, and without outputs.
    """

    def __init__(self, pattern: Pattern, config: PatternMatcherConfig | None = None) -> None:
        self.captured = pattern.get_captured_tensors()
        graph = pattern.release()
        self.name = graph.name
        _check(graph)
        self._compares_constants = config is not None and config.is_enable_const_value_match()
        self._compares_attrs = config is not None and config.is_enable_ir_attr_match()
        self.outputs = list(graph.outputs)
        self.nodes = _reachable(out.node for out in self.outputs)
        self.numbers = {node: number for number, node in enumerate(self.nodes)}
        self.is_placeholder = [node.type in PLACEHOLDER_TYPES for node in self.nodes]
        self.types = [type_of(node) for node in self.nodes]
        self.edges = [self._edges_of(node) for node in self.nodes]
        self.n_connected = [len(edges) for edges in self.edges]
        self.output_ports = [(self.numbers[out.node], out.index) for out in self.outputs]
        self.paths = self._paths()
        inputs = [node for node in self.nodes if node.type in PLACEHOLDER_TYPES]
        inputs.sort(key=lambda node: int(node.attrs.get("index", 0)))
        self.inputs = [self.numbers[node] for node in inputs]
        """Placeholders that outputs depend on, by index: the inputs of a match."""
        distinct = dict.fromkeys(self.output_ports)
        self.result_ports = [(number, port) for number, port in distinct if not self.is_placeholder[number]]
        """Outputs of a match: tensors that are returned, each once, placeholders left out."""
        self.ends = frozenset(number for number, _ in self.output_ports)
        self.rivals = [self._rivals(place) for place in range(len(self.output_ports))]
        self.causes = self._causes()
        self.needs = self._needs()

    @property
    def driver_type(self) -> str:
        """The operator type of output 0's producer."""
        return self.types[0]

    def _edges_of(self, node: Node) -> tuple[_Edge, ...]:
        return tuple(
            _Edge(slot, self.numbers[source.node], source.index)
            for slot, source in enumerate(node.inputs)
            if source is not None
        )

    def _paths(self) -> list[tuple[_Hop, ...] | None]:
        """For each output: how to come to its producer from what the outputs before it have bound.

        Empty: it is bound itself. ``None``: there is no way, all nodes of its type are candidates.
        """
        readers: dict[int, list[tuple[int, _Edge]]] = {}
        for number, edges in enumerate(self.edges):
            for edge in edges:
                readers.setdefault(edge.source, []).append((number, edge))
        bound: set[int] = set()
        paths: list[tuple[_Hop, ...] | None] = []
        for number, _ in self.output_ports:
            paths.append(() if not bound else self._path_to(number, bound))
            bound |= self._behind(number)
        return paths

    def _behind(self, number: int) -> set[int]:
        found, stack = {number}, [number]
        while stack:
            for edge in self.edges[stack.pop()]:
                if edge.source not in found:
                    found.add(edge.source)
                    stack.append(edge.source)
        return found

    def _path_to(self, number: int, bound: set[int]) -> tuple[_Hop, ...] | None:
        """Return the shortest way, found backwards from the output."""
        queue: deque[tuple[int, tuple[_Hop, ...]]] = deque([(number, ())])
        seen = {number}
        while queue:
            at, way = queue.popleft()
            if at in bound:
                return way
            for edge in self.edges[at]:
                if edge.source not in seen:
                    seen.add(edge.source)
                    queue.append((edge.source, (_Hop(edge.source, edge.port, edge.slot, at), *way)))
        return None

    # -- which outputs have to do with each other --------------------------------------------------------------------
    def _rivals(self, place: int) -> list[int]:
        """Return the outputs before number ``place`` that must be other tensors."""
        own = self.output_ports[place]
        if self.is_placeholder[own[0]]:
            return []
        others = enumerate(self.output_ports[:place])
        return [p for p, port in others if port != own and not self.is_placeholder[port[0]]]

    def _causes(self) -> list[frozenset[int]]:
        """For each output: those before it that bind what its own binding starts from, or has to agree with."""
        binder: dict[int, int] = {}
        causes = []
        for place, (number, _) in enumerate(self.output_ports):
            path = self.paths[place]
            behind = self._behind(number) | ({path[0].source} if path else set())
            causes.append(frozenset(binder[n] for n in behind if n in binder))
            for n in behind:
                binder.setdefault(n, place)
        return causes

    def _needs(self) -> list[int]:
        """For each output: how many candidates there must be for it and those behind it that have the same ones."""
        needs: list[int] = []
        counts: dict[object, int] = {}
        for place in reversed(range(len(self.output_ports))):
            path = self.paths[place]
            number, port = self.output_ports[place]
            is_repeated = (number, port) in self.output_ports[:place]
            if not path or is_repeated or self.is_placeholder[number]:
                needs.append(1)
                continue
            way = (port, path[0].source, *((hop.port, hop.slot, self.types[hop.node]) for hop in path))
            counts[way] = counts.get(way, 0) + 1
            needs.append(counts[way])
        return needs[::-1]

    # -- single nodes ----------------------------------------------------------------------------------------------
    def fits(self, number: int, target: Node) -> bool:
        """Tell whether a pattern node (no placeholder) and a node of the graph are alike, their inputs aside."""
        if type_of(target) != self.types[number]:
            return False
        if sum(source is not None for source in target.inputs) != self.n_connected[number]:
            return False
        if self.types[number] == "Const":
            return not self._compares_constants or _same_constant(self.nodes[number], target)
        return not self._compares_attrs or same_ir_attrs(self.nodes[number], target)


def _check(graph: Graph) -> None:
    if graph.subgraphs or any(node.subgraphs for node in graph):
        raise PatternFault("it has bodies of control flow")
    if not graph.outputs:
        raise PatternFault("it has no output")
    for node in graph:
        if node.type in PLACEHOLDER_TYPES or node.type == "NetOutput":
            continue
        if node.control_inputs or node.control_outputs:
            raise PatternFault(f"node {node.name} has control edges")
        definition = lookup(node.type)
        ports = () if definition is None else (*definition.signature.inputs, *definition.signature.outputs)
        dynamic = next((port.name for port in ports if port.arity is Arity.DYNAMIC), None)
        if dynamic is not None:
            raise PatternFault(f"{dynamic} of node {node.name} ({node.type}) is dynamic")
    try:
        graph.topological_order()
    except CycleError as cycle:
        raise PatternFault(f"it has a {cycle}") from cycle


def _reachable(starts: Iterable[Node]) -> list[Node]:
    found = dict.fromkeys(starts)
    stack = list(found)
    while stack:
        for source in stack.pop().inputs:
            if source is not None and source.node not in found:
                found[source.node] = None
                stack.append(source.node)
    return list(found)


# -- comparing nodes ---------------------------------------------------------------------------------------------------
def _same_constant(pattern: Node, target: Node) -> bool:
    """Compare shape, type and bytes; a pattern constant without a value fits all."""
    wanted, found = pattern.attrs.get("value"), target.attrs.get("value")
    return wanted is None or (isinstance(found, Tensor) and _same_tensor(wanted, found))


def _same_tensor(first: Tensor, second: Tensor) -> bool:
    one, other = first.array, second.array
    if one.shape != other.shape or first.data_type is not second.data_type:
        return False
    if one.dtype == object:
        return bool(np.array_equal(one, other))
    return one.tobytes() == other.tobytes()


def same_ir_attrs(pattern: Node, target: Node) -> bool:
    """Compare the attributes of the signature, defaults filled in.

    Attributes ``_x_<name>`` count too: they hold meaning for which GE's operator has no attribute.
    """
    definition = lookup(pattern.type)
    names = {name for node in (pattern, target) for name in node.attrs if name.startswith("_x_")}
    defaults = {}
    if definition is not None:
        defaults = {name: spec.default for name, spec in definition.signature.attrs.items()}
    return all(
        _same_value(_value(pattern, name, defaults), _value(target, name, defaults)) for name in names | set(defaults)
    )


def _value(node: Node, name: str, defaults: dict[str, Any]) -> Any:
    found = node.attrs.get(name)
    return defaults.get(name) if found is None else found


def _same_value(first: Any, second: Any) -> bool:
    if isinstance(first, Tensor) and isinstance(second, Tensor):
        return _same_tensor(first, second)
    if isinstance(first, list | tuple) and isinstance(second, list | tuple):
        return len(first) == len(second) and all(map(_same_value, first, second))
    if isinstance(first, float) and isinstance(second, float):
        return struct.pack("f", _float32(first)) == struct.pack("f", _float32(second))
    return bool(first == second)


def _float32(value: float) -> float:
    """Round as a float attribute is stored in a file."""
    with np.errstate(over="ignore"):
        return float(np.float32(value))


# -- matching ----------------------------------------------------------------------------------------------------------
class _Binding:
    """What the pattern nodes are bound to, so far."""

    __slots__ = ("nodes", "tensors")

    def __init__(self, nodes: list[Node | None], tensors: dict[int, NodeOut]) -> None:
        self.nodes = nodes
        self.tensors = tensors

    def copy(self) -> _Binding:
        return _Binding(self.nodes[:], dict(self.tensors))


@dataclass(frozen=True)
class _Choice:
    """What one output may still be bound to, and which outputs before it have a say in that."""

    bindings: Iterator[_Binding]
    causes: set[int]


class Match:
    """A place where a pattern was found."""

    def __init__(self, pattern: CompiledPattern, binding: _Binding, index: NodeIndex) -> None:
        self.pattern = pattern
        self._binding = binding
        inside = dict.fromkeys(node for node in binding.nodes if node is not None)
        driver = binding.nodes[0] if not pattern.is_placeholder[0] else next(iter(inside), None)
        self.boundary = Boundary(
            index.graph,
            tuple(in_order(inside, index.rank)),
            tuple(binding.tensors[number] for number in pattern.inputs),
            tuple(self._tensor(number, port) for number, port in pattern.result_ports),
            binding.tensors[0].node if driver is None else driver,
        )

    def _tensor(self, number: int, port: int) -> NodeOut:
        node = self._binding.nodes[number]
        assert node is not None
        return NodeOut(node, port)

    @property
    def nodes(self) -> tuple[Node, ...]:
        """The matched nodes, producers first; what placeholders are bound to is not among them."""
        return self.boundary.nodes

    def bound(self, captured: NodeIo) -> NodeIo | None:
        """Return the tensor that a tensor of the pattern was bound to; ``None`` if the match does not reach it."""
        number = self.pattern.numbers.get(captured.node)
        if number is None:
            return None
        if self.pattern.is_placeholder[number]:
            source = self._binding.tensors[number]
            return NodeIo(source.node, source.index)
        node = self._binding.nodes[number]
        return None if node is None else NodeIo(node, captured.index)

    def __str__(self) -> str:
        nodes = ", ".join(f"{node.name} ({node.type})" for node in self.nodes)
        return f"pattern {self.pattern.name}: {nodes}"


class Matcher:
    """Matches one pattern in one graph. ``obstacle`` says who reads what would lie inside the match tried last."""

    def __init__(self, pattern: CompiledPattern, index: NodeIndex) -> None:
        self._pattern = pattern
        self._index = index
        self.obstacle: tuple[Node, str] | None = None
        # ends of paths by start and output: a tensor with thousands of readers is looked through once, not per match
        self._ends: dict[tuple[NodeOut, int], deque[Node]] = {}

    def note(self, new: Sequence[Node], replacement: Replacement) -> None:
        """Take a rewrite into account. Paths to new ends come from new nodes, or from inputs that are passed on."""
        types = self._pattern.types
        if any(type_of(node) in types for node in new) or any(
            o.node in replacement.inputs for o in replacement.outputs
        ):
            self._ends.clear()

    def match_at(self, driver: Node) -> Match | None:
        """Return the match whose output 0 ``driver`` makes, or ``None``."""
        pattern = self._pattern
        self.obstacle = None
        start = _Binding([None] * len(pattern.nodes), {})
        if not self._bind(start, 0, pattern.output_ports[0][1], driver):
            return None
        binding = start if len(pattern.output_ports) == 1 else self._complete(start)
        if binding is None:
            return None
        self.obstacle = self._reader_outside(binding)
        if self.obstacle is not None:
            return None
        return Match(pattern, binding, self._index)

    def _bind(self, binding: _Binding, number: int, port: int, target: Node) -> bool:
        """Bind an output's producer and everything behind it; False leaves a binding that is of no use."""
        pattern = self._pattern
        if port >= len(target.output_descs):
            return False
        if pattern.is_placeholder[number]:
            return self._bind_placeholder(binding, number, NodeOut(target, port))
        stack = [(number, target)]
        while stack:
            at, node = stack.pop()
            known = binding.nodes[at]
            if known is not None:
                if known is not node:
                    return False
                continue
            if not pattern.fits(at, node):
                return False
            binding.nodes[at] = node
            for edge in pattern.edges[at]:
                source = node.input(edge.slot)
                if source is None:
                    return False
                if pattern.is_placeholder[edge.source]:
                    if not self._bind_placeholder(binding, edge.source, source):
                        return False
                elif source.index != edge.port:
                    return False
                else:
                    stack.append((edge.source, source.node))
        return True

    @staticmethod
    def _bind_placeholder(binding: _Binding, number: int, source: NodeOut) -> bool:
        """GE quirk, custom_passes.md 3: it compares nodes only; here a placeholder is one tensor."""
        return binding.tensors.setdefault(number, source) == source

    def _complete(self, start: _Binding) -> _Binding | None:
        """Bind the outputs behind the first; the first binding that works counts.

        When nothing is left to try for an output, the search goes back to the last output that has to do with that.
        Those in between would only be tried in vain.
        """
        trail, choices = [start], [_Choice(iter(()), set())]
        while len(trail) < len(self._pattern.output_ports):
            choice = self._choice(trail[-1], len(trail))
            choices.append(choice)
            found = next(choice.bindings, None)
            while found is None:
                back = max(choice.causes, default=0)
                if back == 0:
                    return None
                del trail[back:], choices[back + 1 :]
                choices[back].causes.update(choice.causes - {back})
                choice = choices[back]
                found = next(choice.bindings, None)
            trail.append(found)
        return trail[-1]

    def _choice(self, binding: _Binding, place: int) -> _Choice:
        """Return what output number ``place`` may be; two outputs of the pattern are never one tensor."""
        pattern = self._pattern
        taken: dict[NodeOut, int] = {}
        for rival in pattern.rivals[place]:
            producer = binding.nodes[pattern.output_ports[rival][0]]
            if producer is not None:
                taken[NodeOut(producer, pattern.output_ports[rival][1])] = rival
        causes = set(pattern.causes[place])
        return _Choice(self._bindings(binding, place, taken, causes), causes)

    def _bindings(
        self, binding: _Binding, place: int, taken: dict[NodeOut, int], causes: set[int]
    ) -> Iterator[_Binding]:
        """Iterate over the bindings that output number ``place`` can add; ``causes`` gets the outputs that took what it
        might have been."""
        number, port = self._pattern.output_ports[place]
        known = binding.nodes[number]
        if known is not None:
            rival = taken.get(NodeOut(known, port))
            if rival is not None:
                causes.add(rival)
            elif port < len(known.output_descs):
                yield binding
            return
        if number in binding.tensors:
            yield binding
            return
        free = self._free_candidates(binding, place, taken, causes)
        needed = self._pattern.needs[place]
        first = list(itertools.islice(free, needed))
        if len(first) < needed:
            return
        for candidate in itertools.chain(first, free):
            trial = binding.copy()
            if self._bind(trial, number, port, candidate):
                yield trial

    def _free_candidates(
        self, binding: _Binding, place: int, taken: dict[NodeOut, int], causes: set[int]
    ) -> Iterator[Node]:
        port = self._pattern.output_ports[place][1]
        for candidate in self._candidates(binding, place):
            rival = taken.get(NodeOut(candidate, port)) if taken else None
            if rival is None:
                yield candidate
            else:
                causes.add(rival)

    def _candidates(self, binding: _Binding, place: int) -> Iterator[Node]:
        """Iterate over the nodes that may be the producer of an output, in node-list order. Some may not fit."""
        path = self._pattern.paths[place]
        if path is None:
            yield from self._index.of_type(self._pattern.types[self._pattern.output_ports[place][0]])
            return
        first = path[0]
        node = binding.nodes[first.source]
        start = binding.tensors[first.source] if node is None else NodeOut(node, first.port)
        ends = self._ends.get((start, place))
        if ends is None:
            reached = [end for end in self._reached(start, path) if self._may_be(place, end)]
            ends = self._ends[start, place] = deque(sorted(reached, key=self._index.rank))
        while ends and ends[0].is_removed:
            ends.popleft()
        yield from (end for end in ends if not end.is_removed)

    def _may_be(self, place: int, end: Node) -> bool:
        number = self._pattern.output_ports[place][0]
        return self._pattern.is_placeholder[number] or self._pattern.fits(number, end)

    def _reached(self, start: NodeOut, path: tuple[_Hop, ...]) -> dict[Node, None]:
        reached = dict.fromkeys(self._readers(start, path[0]))
        for hop in path[1:]:
            reached = dict.fromkeys(
                reader for node in reached for reader in self._readers(NodeOut(node, hop.port), hop)
            )
        return reached

    def _readers(self, source: NodeOut, hop: _Hop) -> Iterator[Node]:
        if source.index >= len(source.node.output_descs):
            return
        wanted = self._pattern.types[hop.node]
        for reader in source.node.consumers(source.index):
            if reader.index == hop.slot and type_of(reader.node) == wanted:
                yield reader.node

    def _reader_outside(self, binding: _Binding) -> tuple[Node, str] | None:
        """Return a node inside that somebody outside reads, and who; the producers of outputs may be read."""
        inside = dict.fromkeys(node for node in binding.nodes if node is not None)
        ends = {binding.nodes[number] for number in self._pattern.ends}
        for node in inside:
            reader = "" if node in ends else outside_reader(node, inside)
            if reader:
                return node, reader
        return None
