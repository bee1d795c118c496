"""Tensors of call nodes and their bodies that are one and the same.

An input of an If is what a Data node in each of its branches stands for; a result of a branch is an output of the If.
In a loop all of these are one: what goes in, what comes out, and the state in between.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ge.call_tree import parent_slot
from ge.graph import Graph, Node

_LOOPS = frozenset({"While", "StatelessWhile"})


class Cell(NamedTuple):
    """A tensor as one node sees it: an input or an output. (``place`` is its slot; inputs of NetOutput are results.)"""

    node: Node
    is_output: bool
    place: int


class Reflections:
    """Classes of cells that stand for the same tensor; empty for all others."""

    def __init__(self, root: Graph) -> None:
        self._classes: dict[Cell, dict[Cell, None]] = {}
        by_name: dict[str, list[Cell]] = {}
        for part in root.all_graphs():
            for node in part:
                if node.type == "Variable":
                    by_name.setdefault(node.name, []).append(Cell(node, True, 0))
                elif node.type in _LOOPS:
                    self._join_loop(root, node)
                elif node.subgraphs:
                    self._join_call(root, node)
        for variables in by_name.values():
            self._join(variables)

    def of(self, cell: Cell) -> tuple[Cell, ...]:
        """Return all cells of the tensor, ``cell`` among them; nothing for one that stands for itself."""
        found = self._classes.get(cell) if self._classes else None
        return () if found is None or len(found) == 1 else tuple(found)

    def _join(self, cells: Iterable[Cell]) -> None:
        merged: dict[Cell, None] = {}
        for cell in cells:
            merged |= self._classes.get(cell, {cell: None})
        for cell in merged:
            self._classes[cell] = merged

    def _join_call(self, root: Graph, node: Node) -> None:
        for _, name in node.subgraphs:
            body = root.subgraphs[name]
            self._join_data(body, node)
            for place, result in enumerate(_results(body)):
                self._join([Cell(node, True, place), result])

    def _join_loop(self, root: Graph, node: Node) -> None:
        """Make one class per slot of the state; two slots share one if the body hands a value from one to the other."""
        for place in range(min(len(node.inputs), len(node.output_descs))):
            self._join([Cell(node, False, place), Cell(node, True, place)])
        for formal, name in node.subgraphs:
            body = root.subgraphs[name]
            self._join_data(body, node)
            if formal == "cond":
                continue
            for place, result in enumerate(_results(body)):
                self._join([Cell(node, True, place), result])
                source = result.node.input(result.place)
                if source is not None and source.node.type == "Data":
                    self._join([result, Cell(source.node, True, 0)])

    def _join_data(self, body: Graph, caller: Node) -> None:
        for data in body.data_nodes():
            self._join([Cell(caller, False, parent_slot(data, caller)), Cell(data, True, 0)])


def _results(body: Graph) -> list[Cell]:
    net_output = body.net_output()
    return [] if net_output is None else [Cell(net_output, False, place) for place in range(len(net_output.inputs))]
