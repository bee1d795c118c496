"""Bodies of call nodes: graphs of the model whose Data nodes stand for inputs of the node that calls them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ge.call_tree import MAX_NESTING
from ge.graph import Graph, Node, NodeOut, TensorDesc
from ge.ops.control import Known, agreed, is_same
from ge.ops.registry import Misfit, named_dims
from parsers.onnx.graph_builder import GraphBuilder
from parsers.onnx.node_builder import NodeBuilder
from parsers.onnx.onnx_graph import OnnxGraph
from parsers.onnx.scope import Scope


@dataclass(frozen=True)
class Argument:
    """An input of a call node: where it comes from, and the name that it has inside, if any."""

    name: str
    source: NodeOut


def captures(n: NodeBuilder, bodies: Sequence[OnnxGraph]) -> list[Argument]:
    """Return what the bodies read from outside, sorted by name. Absent arguments of a function stay absent inside."""
    names = sorted({name for body in bodies for name in body.captures})
    found = [(name, n.scope.find(name, n.node)) for name in names]
    return [Argument(name, source) for name, source in found if source is not None]


def graph_name(n: NodeBuilder, stem: str) -> str:
    """Return ``stem``, or ``stem_1`` and so on where the model has a graph of that name."""
    root = n.builder.graph.root
    name, count = stem, 0
    while name in root.subgraphs or name == root.name:
        count += 1
        name = f"{stem}_{count}"
    return name


class Body:
    """A body under construction. ``n`` adds nodes to it on behalf of the call's ONNX node."""

    def __init__(self, caller: NodeBuilder, name: str) -> None:
        outer = caller.builder
        if caller.scope.depth >= MAX_NESTING:
            raise caller.fail(f"its graph is nested deeper than {MAX_NESTING} levels")
        self.graph = Graph(name, parent=outer.graph.root)
        outer.graph.add_subgraph(self.graph)
        scope = Scope(caller.scope.opsets, bindings=caller.scope.bindings, depth=caller.scope.depth + 1)
        self.builder = GraphBuilder(outer.context, self.graph, scope, f"{name}/")
        self.n = caller.inside(self.builder)
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
        name = self.graph.unique_name(self.builder.prefix + argument.name)
        source = self.graph.add_node("Data", name, attrs=attrs, output_descs=[desc]).output()
        if known is None:
            self.builder.knowledge.tell(source, self._outer.knowledge.value(argument.source))
        return source

    def add_graph(self, content: OnnxGraph, given: dict[str, NodeOut]) -> list[NodeOut]:
        """Add initializers and nodes of ``content``, which can read ``given`` by name; return its outputs."""
        scope = self.builder.scope
        for name, source in given.items():
            scope.define(name, source, f"graph input {name}")
        for name in content.captures:
            if name not in given:
                scope.define(name, None, "the outer graph")
        self.builder.add_initializers(content, scope)
        self.builder.add_nodes(content.nodes, scope)
        return self.builder.outputs(content.outputs)[0]

    def finish(self, outputs: Sequence[NodeOut], names: Sequence[str] = ()) -> None:
        """Make ``outputs`` the results."""
        self.graph.outputs, self.graph.output_names = list(outputs), list(names)
        for position, out in enumerate(outputs):
            out.desc.attrs["_parent_node_index"] = position


def drop_graphs(root: Graph, kept: int) -> None:
    """Drop all bodies of ``root`` but the first ``kept``: those that came later."""
    for name in list(root.subgraphs)[kept:]:
        root.remove_subgraph(name)


# -- loops -------------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Turn:
    """One turn of a loop: its body, the values that never change, and the state that the body turns into the next."""

    body: Body
    fixed: list[NodeOut]
    carried: list[NodeOut]

    def captured(self, arguments: Sequence[Argument]) -> dict[str, NodeOut]:
        """Return the first fixed values, those that ``arguments`` stand for, by name."""
        return {argument.name: source for argument, source in zip(arguments, self.fixed, strict=False)}


def add_while(
    n: NodeBuilder,
    fixed: Sequence[Argument],
    carried: Sequence[Argument],
    turn: Callable[[Turn], Sequence[NodeOut]],
    goes_on: Callable[[Turn], NodeOut],
) -> list[NodeOut]:
    """Add a While and return what became of ``carried``.

    ``turn`` adds the nodes of a turn and returns the next state, ``goes_on`` adds those of the condition. ``turn`` is
    called again, for a new body, when the state changes its shape from turn to turn: until all turns agree.
    The inputs of the While are ``fixed``, then ``carried``; its graphs are ``<node>_0_cond`` and ``<node>_1_body``.
    """
    arguments = [*fixed, *carried]
    node = n.add_call("While", *(argument.source for argument in arguments), n_outputs=len(arguments))
    node.subgraphs = [(formal, graph_name(n, f"{n.name}_{k}_{formal}")) for k, formal in enumerate(("cond", "body"))]
    known = [_known(argument.source) for argument in carried]
    root = n.builder.graph.root
    while True:
        n_others = len(root.subgraphs)
        begun = _begin(n, node.subgraphs[1][1], fixed, carried, known)
        begun.body.graph.outputs = begun.fixed  # so much is certain already: what sequences hold, for one
        after = turn(begun)
        begun.body.finish([*begun.fixed, *after])
        merged = _merged(n, known, after)
        if all(map(is_same, merged, known)):
            break
        known = merged
        drop_graphs(root, n_others)
    begun = _begin(n, node.subgraphs[0][1], fixed, carried, known)
    begun.body.finish([goes_on(begun)])
    set_results(node, [*(_known(argument.source) for argument in fixed), *known])
    return list(node.outputs())[len(fixed) :]


def _begin(
    n: NodeBuilder, name: str, fixed: Sequence[Argument], carried: Sequence[Argument], known: Sequence[Known]
) -> Turn:
    body = Body(n, name)
    inner_fixed = [body.add_data(argument, k, k) for k, argument in enumerate(fixed)]
    slots = range(len(fixed), len(fixed) + len(carried))
    inner_carried = [body.add_data(a, k, k, state) for k, a, state in zip(slots, carried, known, strict=True)]
    return Turn(body, inner_fixed, inner_carried)


def _merged(n: NodeBuilder, before: Sequence[Known], after: Sequence[NodeOut]) -> list[Known]:
    merged = []
    for k, (known, out) in enumerate(zip(before, after, strict=True)):
        try:
            merged.append(agreed(known, _known(out)))
        except Misfit as fault:
            raise n.fail(f"its body changes the type of value {k} of its state: {fault}") from fault
    return merged


def _known(source: NodeOut) -> Known:
    return source.desc.origin_shape, source.desc.data_type


def set_results(node: Node, known: Sequence[Known]) -> None:
    """Say what is known of the outputs of a call node."""
    for index, (desc, (shape, dtype)) in enumerate(zip(node.output_descs, known, strict=True)):
        desc.shape = desc.origin_shape = named_dims(node, index, shape)
        desc.data_type = dtype
