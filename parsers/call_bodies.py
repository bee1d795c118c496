"""Bodies of call nodes: graphs of the model whose Data nodes stand for inputs of the node that calls them.

A front end says how a body is opened and what fills it; what all have in common stands here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Generic, TypeVar

from ge.call_tree import MAX_NESTING
from ge.graph import Graph, Node, NodeOut, TensorDesc
from ge.ops.control import Known, agreed, is_same
from ge.ops.registry import Misfit, named_dims
from parsers.ge_nodes import GeNodes
from parsers.mapped_node import MappedNode

N = TypeVar("N", bound=MappedNode)
"""What a front end calls a node to be mapped."""


@dataclass(frozen=True)
class Argument:
    """An input of a call node: where it comes from, and the name that it has inside, if any."""

    name: str
    source: NodeOut


def graph_name(n: MappedNode, stem: str) -> str:
    """Return ``stem``, or ``stem_1`` and so on where the model has a graph of that name."""
    root = n.builder.graph.root
    name, count = stem, 0
    while name in root.subgraphs or name == root.name:
        count += 1
        name = f"{stem}_{count}"
    return name


def new_graph(caller: MappedNode, name: str, depth: int) -> Graph:
    """Add an empty graph to the model, for a body of ``caller``, which is itself in a graph ``depth`` levels deep."""
    if depth >= MAX_NESTING:
        raise caller.fail(f"its graph is nested deeper than {MAX_NESTING} levels")
    root = caller.builder.graph.root
    graph = Graph(name, parent=root)
    root.add_subgraph(graph)
    return graph


class Body(Generic[N]):
    """A body under construction. ``n`` adds nodes to it on behalf of the model's node; ``outer`` is around the call."""

    def __init__(self, n: N, outer: GeNodes) -> None:
        self.n = n
        self.graph = n.builder.graph
        self._outer = outer

    def add_data(self, argument: Argument, slot: int, index: int, known: Known | None = None) -> NodeOut:
        """Add the Data node for an input of the call node.

        ``known`` is what all turns of a loop agree on; without it the value is the same in all turns.
        """
        if known is None:
            desc = argument.source.desc.copy()
            desc.attrs = {}
        else:
            desc = TensorDesc(known[0], argument.source.desc.format, known[1])
        attrs = {"index": index, "data_type": int(desc.data_type), "_parent_node_index": slot}
        name = self.graph.unique_name(self.n.builder.prefix + argument.name)
        source = self.graph.add_node("Data", name, attrs=attrs, output_descs=[desc]).output()
        if known is None:
            self.n.builder.knowledge.tell(source, self._outer.knowledge.value(argument.source))
        return source

    def finish(self, outputs: Sequence[NodeOut], names: Sequence[str] = ()) -> None:
        """Make ``outputs`` the results."""
        self.graph.outputs, self.graph.output_names = list(outputs), list(names)
        for position, out in enumerate(outputs):
            out.desc.attrs["_parent_node_index"] = position


B = TypeVar("B", bound=Body)


def drop_graphs(root: Graph, kept: int) -> None:
    """Drop all bodies of ``root`` but the first ``kept``: those that came later."""
    for name in list(root.subgraphs)[kept:]:
        root.remove_subgraph(name)


def known_of(source: NodeOut) -> Known:
    """Return what is known of a tensor."""
    return source.desc.origin_shape, source.desc.data_type


def set_results(node: Node, known: Sequence[Known]) -> None:
    """Say what is known of the outputs of a call node."""
    for index, (desc, (shape, dtype)) in enumerate(zip(node.output_descs, known, strict=True)):
        desc.shape = desc.origin_shape = named_dims(node, index, shape)
        desc.data_type = dtype


def agreed_results(n: MappedNode, branches: Sequence[Sequence[Known]]) -> list[Known]:
    """Return what is known of the results of a node that takes one of several branches."""
    known = []
    for j, (first, *rest) in enumerate(zip(*branches, strict=True)):
        try:
            known.append(reduce(agreed, rest, first))
        except Misfit as fault:
            raise n.fail(f"its branches give different results for output {j}: {fault}") from fault
    return known


# -- loops -------------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Turn(Generic[B]):
    """One turn of a loop: its body, the values that never change, and the state that the body turns into the next."""

    body: B
    fixed: list[NodeOut]
    carried: list[NodeOut]

    def captured(self, arguments: Sequence[Argument]) -> dict[str, NodeOut]:
        """Return the first fixed values, those that ``arguments`` stand for, by name."""
        return {argument.name: source for argument, source in zip(arguments, self.fixed, strict=False)}


class LoopBuilder(Generic[B]):
    """Adds a While (or another ``type`` of loop). ``open_body`` opens a body of a name.

    The inputs of the node are ``fixed``, then ``carried``; its graphs are ``<node>_0_cond`` and ``<node>_1_body``.
    """

    def __init__(
        self,
        n: MappedNode,
        open_body: Callable[[str], B],
        fixed: Sequence[Argument],
        carried: Sequence[Argument],
        type: str = "While",
    ) -> None:
        self._n = n
        self._type = type
        self._open_body = open_body
        self._fixed = fixed
        self._carried = carried

    def add(self, turn: Callable[[Turn[B]], Sequence[NodeOut]], goes_on: Callable[[Turn[B]], NodeOut]) -> list[NodeOut]:
        """Add the loop and return what became of ``carried``.

        ``turn`` adds the nodes of a turn and returns the next state, ``goes_on`` adds those of the condition. ``turn``
        is called again, for a new body, when the state changes its shape from turn to turn: until all turns agree.
        """
        n, fixed = self._n, self._fixed
        arguments = [*fixed, *self._carried]
        node = n.add_call(self._type, *(argument.source for argument in arguments), n_outputs=len(arguments))
        formals = enumerate(("cond", "body"))
        node.subgraphs = [(formal, graph_name(n, f"{n.name}_{k}_{formal}")) for k, formal in formals]
        known = [known_of(argument.source) for argument in self._carried]
        root = n.builder.graph.root
        while True:
            n_others = len(root.subgraphs)
            begun = self._begin(node.subgraphs[1][1], known)
            begun.body.graph.outputs = begun.fixed  # so much is certain already: what sequences hold, for one
            after = turn(begun)
            begun.body.finish([*begun.fixed, *after])
            merged = self._merged(known, after)
            if all(map(is_same, merged, known)):
                break
            known = merged
            drop_graphs(root, n_others)
        begun = self._begin(node.subgraphs[0][1], known)
        begun.body.finish([goes_on(begun)])
        set_results(node, [*(known_of(argument.source) for argument in fixed), *known])
        return list(node.outputs())[len(fixed) :]

    def _begin(self, name: str, known: Sequence[Known]) -> Turn[B]:
        body, fixed, carried = self._open_body(name), self._fixed, self._carried
        inner_fixed = [body.add_data(argument, k, k) for k, argument in enumerate(fixed)]
        slots = range(len(fixed), len(fixed) + len(carried))
        inner_carried = [body.add_data(a, k, k, state) for k, a, state in zip(slots, carried, known, strict=True)]
        return Turn(body, inner_fixed, inner_carried)

    def _merged(self, before: Sequence[Known], after: Sequence[NodeOut]) -> list[Known]:
        merged = []
        for k, (known, out) in enumerate(zip(before, after, strict=True)):
            try:
                merged.append(agreed(known, known_of(out)))
            except Misfit as fault:
                raise self._n.fail(f"its body changes the type of value {k} of its state: {fault}") from fault
        return merged
