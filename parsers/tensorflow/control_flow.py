"""Control flow of TensorFlow 1 in a graph: loops first, then what decides inside and outside of them."""

from __future__ import annotations

from collections.abc import Sequence

from parsers.tensorflow.control_branches import raise_branches, raised_body, with_controls_inside
from parsers.tensorflow.frames import by_name, malformed, paths_of, raise_loops
from parsers.tensorflow.tf_graph import Reference, TfNode


def raise_body(nodes: Sequence[TfNode], results: Sequence[Reference], depth: int = 0) -> list[TfNode]:
    """Return what the results of a body need, with While, If and Case in place of Enter, Switch, Merge and so on."""
    return raised_body(raise_loops(nodes, depth, raise_body), results, depth)


def raise_graph(nodes: Sequence[TfNode], requested: Sequence[Reference]) -> list[TfNode]:
    """Like :func:`raise_body` for a whole graph.

    Nodes inside of loops and branches are gone then. E11010 when one of them is ``requested`` as an output.
    """
    raised = raise_loops(nodes, 0, raise_body)
    outside = by_name(raised)
    for reference in requested:
        node = by_name(nodes).get(reference.node)
        if node is not None and node.name not in outside:
            frames = "/".join(paths_of(nodes)[node.name])
            raise malformed(
                node, f"it is an output, but has a value for each turn of the loop {frames}; name an Exit of the loop"
            )
    return with_controls_inside(raise_branches(raised, requested, 0))
