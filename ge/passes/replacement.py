"""Replacing a part of a graph by hand, and giving a replacement shapes."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import TypeVar, overload

from ge.constant_values import ConstantValues
from ge.error import GeError
from ge.errors import ReportedError
from ge.graph.graph import Graph
from ge.graph.node import Node, NodeOut
from ge.graph_inference import infer_graph
from ge.ops.known_value import KnownValue
from ge.passes.boundary import Boundary, BoundaryFault, NodeInPort
from ge.passes.context import PassContext
from ge.passes.fuse_inspector import can_fuse
from ge.passes.match_result import MatchResult
from ge.passes.origins import conflict
from ge.passes.pattern import PLACEHOLDER_TYPES
from ge.passes.rewriter import Replacement, ReplacementFault, rewrite
from ge.tensor_memory import is_constant

logger = logging.getLogger("atc")

Item = TypeVar("Item")

SUCCESS, FAILED = 0, 0xFFFFFFFF
"""Status values as GE numbers them."""


def create_replacement(graph: Graph) -> Graph:
    """Return ``graph``. Raises ``TypeError`` unless it is a Graph."""
    if not isinstance(graph, Graph):
        raise TypeError(f"graph must be a Graph, not {type(graph).__name__}")
    return graph


class SubgraphInput:
    """One input of a part of a graph: the **input ports** of nodes inside that read one tensor from outside."""

    def __init__(self, node_inputs: Iterable[tuple[Node, int]] = ()) -> None:
        self._ports: list[NodeInPort] = []
        self._fault = ""
        for item in node_inputs:
            if not isinstance(item, tuple) or len(item) != 2:
                raise GeError(f"SubgraphInput takes pairs (node, input port), not {item!r}")
            if self.add_input(*item) != SUCCESS:
                self._fault = f"input {item[1]} of node {item[0].name} reads another tensor than the ports before it"

    def add_input(self, node: Node, in_index: int) -> int:
        """Add input port ``in_index`` of ``node``; 0 if it reads the same tensor as those before, else not 0."""
        _check_port(node, in_index, "in_index")
        source = None if node.is_removed else node.input(in_index)
        if source is None or any(other.input(slot) != source for other, slot in self._ports):
            return FAILED
        self._ports.append((node, in_index))
        return SUCCESS

    def ports(self) -> list[NodeInPort]:
        """Return the ports. Raises :class:`BoundaryFault` if they read several tensors."""
        if self._fault:
            raise BoundaryFault(self._fault)
        return list(self._ports)


class SubgraphOutput:
    """One output of a part of a graph."""

    @overload
    def __init__(self) -> None: ...
    @overload
    def __init__(self, node: Node, out_index: int) -> None: ...
    def __init__(self, node: Node | None = None, out_index: int | None = None) -> None:
        self._out: NodeOut | None = None
        if node is not None or out_index is not None:
            self.set_output(node, out_index)  # type: ignore[arg-type]  # checked there

    def set_output(self, node: Node, out_index: int) -> int:
        """Say which output it is: 0, or not 0 if that was said already or the node has no such output."""
        _check_port(node, out_index, "out_index")
        if self._out is not None or not 0 <= out_index < len(node.output_descs):
            return FAILED
        self._out = NodeOut(node, out_index)
        return SUCCESS

    def is_same(self, other: SubgraphOutput) -> bool:
        """Tell whether both were set to one tensor."""
        return self._out is not None and self._out == other._out

    def output(self) -> NodeOut:
        """Return the output. Raises :class:`BoundaryFault` if none was set."""
        if self._out is None:
            raise BoundaryFault("an output of the boundary was not set")
        return self._out


class SubgraphBoundary:
    """The border of the part of a graph that is to be replaced: inputs and outputs by number, from 0 on.

    They stand in the order of the replacement's inputs and outputs.
    """

    def __init__(self) -> None:
        self._inputs: dict[int, SubgraphInput] = {}
        self._outputs: dict[int, SubgraphOutput] = {}

    def add_input(self, index: int, input: SubgraphInput) -> int:
        """Set input ``index``: 0, or not 0 if it is set already."""
        _check_type(input, SubgraphInput, "input")
        return _set(self._inputs, index, input)

    def add_output(self, index: int, output: SubgraphOutput) -> int:
        """Set output ``index``: 0, or not 0 if it is set already or ``output`` is the tensor of another output."""
        _check_type(output, SubgraphOutput, "output")
        if any(other.is_same(output) for other in self._outputs.values()):
            return FAILED
        return _set(self._outputs, index, output)

    def _boundary(self) -> Boundary:
        """Return the border in the compiler's form. Raises :class:`BoundaryFault`."""
        for what, given in (("input", self._inputs), ("output", self._outputs)):
            missing = next((i for i in range(len(given)) if i not in given), None)
            if missing is not None:
                raise BoundaryFault(f"the boundary has {len(given)} {what}s but no {what} {missing}")
        outputs = [self._outputs[i].output() for i in range(len(self._outputs))]
        if not outputs:
            raise BoundaryFault("the boundary has no output")
        inputs = [self._inputs[i].ports() for i in range(len(self._inputs))]
        nodes = [out.node for out in outputs] + [node for ports in inputs for node, _ in ports]
        if any(node.is_removed or node.graph is not nodes[0].graph for node in nodes):
            raise BoundaryFault("the nodes of the boundary are not in one graph")
        return Boundary.enclosing(nodes[0].graph, inputs, outputs)


def _check_port(node: object, index: object, what: str) -> None:
    _check_type(node, Node, "node")
    _check_type(index, int, what)


def _check_type(value: object, expected: type, what: str) -> None:
    if not isinstance(value, expected) or isinstance(value, bool):
        raise TypeError(f"{what} must be {expected.__name__}, not {type(value).__name__}")


def _set(given: dict[int, Item], index: int, value: Item) -> int:
    _check_type(index, int, "index")
    if index < 0 or index in given:
        return FAILED
    given[index] = value
    return SUCCESS


class SubgraphRewriter:
    """Replaces parts of graphs."""

    @overload
    @staticmethod
    def replace(boundary: SubgraphBoundary, replacement: Graph) -> int: ...
    @overload
    @staticmethod
    def replace(boundary: SubgraphBoundary, replacement: Graph, *, context: PassContext) -> None: ...
    @staticmethod
    def replace(boundary: SubgraphBoundary, replacement: Graph, *, context: PassContext | None = None) -> int | None:
        """Replace what lies inside ``boundary`` by a copy of ``replacement``.

        Without ``context`` return a status: 0, or not 0 for a failure, which the log explains. With it return nothing;
        ask :func:`can_fuse` before, note the pass on the new nodes and count as :func:`report_fuse` does; a failure
        is a ``RuntimeError``.
        """
        _check_type(boundary, SubgraphBoundary, "boundary")
        _check_type(replacement, Graph, "replacement")
        try:
            _replace(boundary, replacement, context)
        except (BoundaryFault, ReplacementFault) as fault:
            if context is not None:
                raise GeError(f"SubgraphRewriter.replace failed: {fault}") from None
            logger.error("SubgraphRewriter.replace failed: %s", fault)
            return FAILED
        return SUCCESS if context is None else None


def _replace(boundary: SubgraphBoundary, replacement: Graph, context: PassContext | None) -> None:
    place = boundary._boundary()
    fitting = Replacement.fitting(replacement, place)
    pass_name = ""
    if context is None:
        reason = conflict(place.nodes)
    else:
        _check_type(context, PassContext, "context")
        pass_name = context.get_pass_name()
        reason = "" if pass_name else "the context has no pass name"
        reason = reason or can_fuse(place.nodes).reason
    if reason:
        raise BoundaryFault(reason)
    graph, anchor = place.graph, place.anchor
    order = list(graph)
    new = rewrite(place, fitting, pass_name)
    at = order.index(anchor) + 1
    graph.reorder([node for node in (*order[:at], *new, *order[at:]) if not node.is_removed])
    if context is not None:
        context.statistics.count(pass_name, matched=1, effected=1)


def infer_shape(replacement: Graph, source: MatchResult | Node | SubgraphBoundary) -> None:
    """Give all tensors of ``replacement`` shapes and types, as they will be in the place of ``source``.

    Its inputs take the descriptors of the tensors that will feed them; constants among these are known inside. Raises
    ``RuntimeError`` for an empty graph, an input without a tensor to feed it, and arguments that do not fit.
    """
    _check_type(replacement, Graph, "replacement")
    if not isinstance(source, MatchResult | Node | SubgraphBoundary):
        raise TypeError(f"source must be a MatchResult, a Node or a SubgraphBoundary, not {type(source).__name__}")
    if not len(replacement):
        raise GeError("replacement graph is empty")
    what = f"replacement_graph={replacement.name}, source_type={type(source).__name__}"
    try:
        feeding = (Boundary.around(source) if isinstance(source, Node) else source._boundary()).inputs
        infer_graph(replacement, _fed(replacement, feeding))
    except (BoundaryFault, ReplacementFault) as fault:
        raise GeError(f"infer_shape failed, {what}: {fault}") from None
    except ReportedError as fault:
        raise GeError(f"infer_shape failed, {what}: {fault.code}: {fault.message}") from None


def _fed(replacement: Graph, feeding: tuple[NodeOut, ...]) -> dict[NodeOut, KnownValue]:
    """Describe the inputs of the replacement; return the values of those that are constant."""
    given: dict[NodeOut, KnownValue] = {}
    for node in replacement:
        if node.type not in PLACEHOLDER_TYPES:
            continue
        place = int(node.attrs.get("index", 0))
        if not 0 <= place < len(feeding):
            raise ReplacementFault(f"input {place} is outside the boundary, which has {len(feeding)} inputs")
        node.update_output_desc(0, feeding[place].desc)
        known = _constant_behind(feeding[place])
        if known is not None:
            given[node.output(0)] = known
    return given


def _constant_behind(source: NodeOut) -> KnownValue | None:
    """Return the value of a constant; others are not looked for, that would mean to look at all of the graph."""
    return ConstantValues().known(source) if is_constant(source.node) else None
