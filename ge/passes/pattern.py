"""Patterns: small graphs to be found in a model, and what of them a pass wants to look at."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar, overload

from ge.error import GeError
from ge.es.graph_builder import GraphBuilder
from ge.es.tensor_holder import TensorHolder
from ge.graph.graph import Graph
from ge.graph.node import Node

PLACEHOLDER_TYPES = frozenset({"Data", "RefData", "AippData", "AnyData"})
"""Types of nodes that stand for a graph's inputs."""

PATTERN_MARK = "__ge_pattern_method__"

Method = TypeVar("Method", bound=Callable[..., Any])


def pattern(method: Method) -> Method:
    """Mark a method ``name(self, inputs)`` of a :class:`PatternFusionPass` as one of its patterns."""
    setattr(method, PATTERN_MARK, True)
    return method


class NodeOutput(Protocol):
    """Whatever has a node and an output index."""

    @property
    def node(self) -> Node: ...
    @property
    def index(self) -> int: ...


@dataclass(frozen=True)
class NodeIo:
    """An output of a node, in a pattern or in a model."""

    node: Node
    index: int = 0


class PatternMatcherConfig:
    """How strictly a pattern is matched. Made by :class:`PatternMatcherConfigBuilder`."""

    def __init__(self, *, const_value_match: bool = False, ir_attr_match: bool = False) -> None:
        self._const_value_match = const_value_match
        self._ir_attr_match = ir_attr_match

    def is_enable_const_value_match(self) -> bool:
        """Tell whether constants match only with equal shape, type and bytes."""
        return self._const_value_match

    def is_enable_ir_attr_match(self) -> bool:
        """Tell whether operators match only with equal attributes."""
        return self._ir_attr_match


class PatternMatcherConfigBuilder:
    """Switches on what a :class:`PatternMatcherConfig` is to ask for; calls chain."""

    def __init__(self) -> None:
        self._const_value_match = False
        self._ir_attr_match = False

    def enable_const_value_match(self) -> PatternMatcherConfigBuilder:
        """Compare constants: shape, type and bytes."""
        self._const_value_match = True
        return self

    def enable_ir_attr_match(self) -> PatternMatcherConfigBuilder:
        """Compare the attributes of the operators' signatures, defaults filled in."""
        self._ir_attr_match = True
        return self

    def build(self) -> PatternMatcherConfig:
        """Return the configuration."""
        return PatternMatcherConfig(
            const_value_match=self._const_value_match,
            ir_attr_match=self._ir_attr_match,
        )


_consumed: weakref.WeakSet[Graph] = weakref.WeakSet()


class Pattern:
    """A pattern graph and the tensors of it that a pass wants to see in a match.

    It takes the graph over: one graph makes one pattern.
    """

    def __init__(self, graph: Graph) -> None:
        if not isinstance(graph, Graph):
            raise TypeError(f"graph must be a Graph, not {type(graph).__name__}")
        if graph in _consumed:
            raise GeError(f"graph {graph.name} was given to a Pattern already")
        _consumed.add(graph)
        self._graph: Graph | None = graph
        self._captured: list[NodeIo] = []

    @property
    def graph(self) -> Graph:
        """The pattern graph. Raises ``RuntimeError`` once the pattern is released."""
        if self._graph is None:
            raise GeError("Pattern handle has been released")
        return self._graph

    def capture_tensor(self, source: TensorHolder | Node | NodeOutput, index: int | None = None) -> Pattern:
        """Remember a tensor; a match tells what it was bound to, by the number of the call. Calls chain.

        GE quirk, custom_passes.md 1.4: without ``index`` it is output 0, whichever output a TensorHolder stands for.
        """
        graph = self.graph
        if index is not None and (not isinstance(index, int) or isinstance(index, bool)):
            raise TypeError(f"index must be an int, not {type(index).__name__}")
        node, output = _captured(source, index)
        if node.is_removed or node.graph is not graph:
            raise GeError(f"node {node.name} is not in the pattern graph {graph.name}")
        if not 0 <= output < len(node.output_descs):
            raise GeError(f"node {node.name} ({node.type}) has {len(node.output_descs)} outputs, no output {output}")
        self._captured.append(NodeIo(node, output))
        return self

    def get_captured_tensors(self) -> list[NodeIo]:
        """Return the captured tensors in the order of the calls."""
        _ = self.graph
        return list(self._captured)

    def is_valid(self) -> bool:
        """Tell whether the pattern has not been released yet."""
        return self._graph is not None

    def release(self) -> Graph:
        """Give the graph away. Possible once; the pattern is of no use afterwards."""
        graph = self.graph
        self._graph = None
        return graph


def _captured(source: object, index: int | None) -> tuple[Node, int]:
    if isinstance(source, TensorHolder):
        return source._get_node_snapshot(), 0 if index is None else index
    if isinstance(source, Node):
        return source, 0 if index is None else index
    node, output = getattr(source, "node", None), getattr(source, "index", None)
    if not isinstance(node, Node) or not isinstance(output, int):
        raise TypeError(f"source must be a TensorHolder, a Node or a NodeIo, not {type(source).__name__}")
    if index is not None:
        raise TypeError("a NodeIo has an index of its own: leave index out")
    return node, output


def create_pattern(graph: Graph) -> Pattern:
    """Return ``Pattern(graph)``."""
    return Pattern(graph)


def ensure_pattern(item: object) -> Pattern:
    """Return a pattern for what a pass gave as one. Raises ``TypeError`` unless it is a Pattern or a Graph."""
    if isinstance(item, Pattern):
        return item
    if isinstance(item, Graph):
        return Pattern(item)
    raise TypeError(f"PatternFusionPass.patterns must return Pattern or Graph objects, not {type(item).__name__}")


MAX_INPUTS = 1 << 16
"""Inputs that a pattern may have: more are a slip, and would fill the memory."""


class PatternInputs:
    """The inputs of a graph that is being written as an expression; they come to be when they are asked for.

    ``inputs[i]`` makes the inputs up to ``i``, ``inputs[a:b]`` gives a list. How many there will be is not known, so
    they cannot be iterated.
    """

    def __init__(self, builder: GraphBuilder) -> None:
        self._builder = builder
        self._inputs: list[TensorHolder] = []

    @overload
    def __getitem__(self, index: int) -> TensorHolder: ...
    @overload
    def __getitem__(self, index: slice[Any, Any, Any]) -> list[TensorHolder]: ...
    def __getitem__(self, index: int | slice[Any, Any, Any]) -> TensorHolder | list[TensorHolder]:
        if isinstance(index, slice):
            return [self[i] for i in _range_of(index)]
        if not isinstance(index, int) or isinstance(index, bool):
            raise TypeError(f"inputs are indexed with an int or a slice, not with {type(index).__name__}")
        if index < 0:
            raise ValueError("inputs have no negative indexes: how many there will be is not known")
        if index >= MAX_INPUTS:
            raise ValueError(f"there are at most {MAX_INPUTS} inputs, none with the index {index}")
        while len(self._inputs) <= index:
            self._inputs.append(self._builder.create_input(len(self._inputs)))
        return self._inputs[index]

    def __iter__(self) -> Any:
        raise TypeError("inputs cannot be iterated: how many there will be is not known; use inputs[:N]")

    def created(self) -> list[TensorHolder]:
        """Return the inputs made so far, in order."""
        return list(self._inputs)


def _range_of(part: slice[Any, Any, Any]) -> range:
    start = 0 if part.start is None else part.start
    if part.step not in (None, 1):
        raise ValueError("a slice of inputs has the step 1")
    if part.stop is None:
        raise ValueError("a slice of inputs needs an end, as in inputs[:3]")
    for bound in (start, part.stop):
        if not isinstance(bound, int) or isinstance(bound, bool):
            raise TypeError(f"inputs are sliced with ints, not with {type(bound).__name__}")
    if start < 0 or part.stop < start:
        raise ValueError(f"inputs[{start}:{part.stop}] is not a range of inputs")
    return range(start, part.stop)
