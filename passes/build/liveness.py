"""Which tensors share memory, and from which step to which step that memory must be kept.

Steps are positions in the task list. What is there before the first task (graph inputs) lives from step -1; graph
results live up to step ``len(tasks)``, one behind the last task. Both ends of a lifetime count: the output of a task
never lies where one of its inputs lies, unless they share a symbol.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ge.graph import Graph, Node, NodeOut
from ge.plan import align
from ge.tensor_memory import in_place_slots, memory_size, view_roots


@dataclass
class Symbol:
    """Tensors that share one piece of memory on purpose. ``size`` is a multiple of 512; both steps are inclusive."""

    tensors: list[NodeOut]
    size: int
    first: int
    last: int
    is_input: bool = False


@dataclass(frozen=True)
class Liveness:
    """The symbols of a graph in the order in which their memory comes alive, and what they would take unshared.

    ``separate_size`` counts every tensor that is not a view with memory of its own.
    """

    symbols: list[Symbol]
    separate_size: int


def analyse(
    graph: Graph, tasks: Sequence[Node], is_sharing: bool = True, roots: Mapping[NodeOut, NodeOut] | None = None
) -> Liveness:
    """Find the symbols of ``graph`` when ``tasks`` run in this order; ``roots`` are its view roots, if known already.

    1. A view shares the symbol of what it shows.
    2. With ``is_sharing``, an elementwise operator writes over an input that dies there (see ``in_place_slots``), but
       never over a graph input: that memory belongs to the caller.

    Tensors without a symbol are constants, views of constants, what has no size (strings, handles), and Data nodes of
    bodies with their views: these show memory of the node that calls the body.
    """
    symbols = _written(graph, tasks)
    separate_size = sum(symbol.size for symbol in symbols.values())
    if roots is None:
        roots = view_roots(graph)
    _extend_to_readers(graph, tasks, symbols, roots)
    if is_sharing:
        _merge_in_place(tasks, symbols, roots)
    return Liveness(list({id(symbol): symbol for symbol in symbols.values()}.values()), separate_size)


def _written(graph: Graph, tasks: Sequence[Node]) -> dict[NodeOut, Symbol]:
    symbols: dict[NodeOut, Symbol] = {}
    for node in graph.data_nodes() if graph.parent is None else ():
        _add(symbols, node, -1)
    for step, node in enumerate(tasks):
        _add(symbols, node, step)
    return symbols


def _add(symbols: dict[NodeOut, Symbol], node: Node, step: int) -> None:
    for out in node.outputs():
        size = memory_size(out.desc)
        if size is not None:
            symbols[out] = Symbol([out], align(size), step, step, node.type == "Data")


def _extend_to_readers(
    graph: Graph, tasks: Sequence[Node], symbols: dict[NodeOut, Symbol], roots: Mapping[NodeOut, NodeOut]
) -> None:
    for step, node in enumerate(tasks):
        for source in node.inputs:
            if source is not None and (symbol := symbols.get(roots[source])) is not None:
                symbol.last = max(symbol.last, step)
    for out in graph.outputs:
        if (symbol := symbols.get(roots[out])) is not None:
            symbol.last = len(tasks)
    for out, root in roots.items():
        if out != root and (symbol := symbols.get(root)) is not None:
            symbol.tensors.append(out)


def _merge_in_place(tasks: Sequence[Node], symbols: dict[NodeOut, Symbol], roots: Mapping[NodeOut, NodeOut]) -> None:
    for step, node in enumerate(tasks):
        slots = in_place_slots(node)
        if not slots:
            continue
        read = [None if s is None else symbols.get(roots[s]) for s in node.inputs]
        for slot in slots:
            symbol = read[slot]
            if symbol is None or symbol.is_input or symbol.last != step or sum(r is symbol for r in read) > 1:
                continue
            taken_over = symbols[node.output()]
            symbol.tensors.extend(taken_over.tensors)
            symbol.last = taken_over.last
            symbols[node.output()] = symbol
            break
