"""Nodes that take one of several branches: If and Case."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic

from ge.errors import ReportedError
from ge.graph import Node, NodeOut
from ge.ops.control import Known
from parsers.call_bodies import (
    Argument,
    B,
    agreed_results,
    drop_graphs,
    graph_name,
    known_of,
    set_results,
)
from parsers.mapped_node import MappedNode


@dataclass(frozen=True)
class Branch(Generic[B]):
    """A branch: its formal name, and what adds its nodes to a body and returns the results.

    ``fill`` is given the body and what stands for the captured values inside.
    """

    formal: str
    fill: Callable[[B, list[NodeOut]], Sequence[NodeOut]]
    output_names: Sequence[str] = ()


class ChoiceBuilder(Generic[B]):
    """Adds an If or Case. ``open_body`` opens a body of a name; branches read ``captured`` and nothing else.

    The branches are the graphs ``<node>_<k>_<formal>``; each has a Data node per captured value, whose
    ``_parent_node_index`` is the input slot of the node.
    """

    def __init__(self, n: MappedNode, open_body: Callable[[str], B], captured: Sequence[Argument]) -> None:
        self._n = n
        self._open_body = open_body
        self._captured = captured

    def add(
        self,
        type: str,
        selector: NodeOut,
        branches: Sequence[Branch[B]],
        n_outputs: int,
        taken: int | None,
        warn: Callable[[str], None],
    ) -> Node:
        """Add the node. ``taken`` is the number of the branch that is taken if it is known.

        Where only the run decides, a branch that does not fit the shapes (made for other ones: two sample rates in one
        model) is replaced by XFail, which stops the run that takes it. At least one branch must fit.
        """
        n = self._n
        node = n.add_call(type, selector, *(argument.source for argument in self._captured), n_outputs=n_outputs)
        node.subgraphs = [
            (branch.formal, graph_name(n, f"{n.name}_{k}_{branch.formal}")) for k, branch in enumerate(branches)
        ]
        names = [name for _, name in node.subgraphs]
        results = [self._branch(name, branch) for name, branch in zip(names, branches, strict=True)]
        faults = [result for result in results if isinstance(result, ReportedError)]
        found = [result for result in results if not isinstance(result, ReportedError)]
        if not found or (taken is not None and isinstance(results[taken], ReportedError)):
            raise faults[0]
        known = agreed_results(n, found)
        set_results(node, known)
        for name, branch, result in zip(names, branches, results, strict=True):
            if isinstance(result, ReportedError):
                if taken is None:
                    warn(f"node {n.name} ({type}) cannot take its branch [{name}] with these shapes: {result}")
                self._add_failing(name, branch, known, result)
        return node

    def _begin(self, name: str) -> tuple[B, list[NodeOut]]:
        body = self._open_body(name)
        return body, [body.add_data(a, slot=1 + index, index=index) for index, a in enumerate(self._captured)]

    def _branch(self, name: str, branch: Branch[B]) -> list[Known] | ReportedError:
        """Build a branch and return what is known of its results, or why it cannot have the shapes at hand."""
        root = self._n.builder.graph.root
        n_others = len(root.subgraphs)
        body, inputs = self._begin(name)
        try:
            outputs = branch.fill(body, inputs)
        except ReportedError as fault:
            if fault.code != "E14001":
                raise
            drop_graphs(root, n_others)
            return fault
        body.finish(outputs, branch.output_names)
        return [known_of(out) for out in outputs]

    def _add_failing(self, name: str, branch: Branch[B], known: Sequence[Known], fault: ReportedError) -> None:
        body, _ = self._begin(name)
        failing = body.n.add(
            "XFail",
            role="Fail",
            n_outputs=len(known),
            reason=fault.message,
            dtypes=[int(dtype) for _, dtype in known],
            shapes=[list(shape) for shape, _ in known],
        )
        body.finish(list(failing.outputs()), branch.output_names)
