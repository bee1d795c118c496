"""Inference of whole graphs."""

from __future__ import annotations

from collections.abc import Mapping

from ge.constant_values import ConstantValues
from ge.errors import ReportedError
from ge.graph import CycleError, DataType, Graph, NodeOut, Shape
from ge.ops import infer_node
from ge.ops.known_value import KnownValue


def infer_graph(graph: Graph, given: Mapping[NodeOut, KnownValue] | None = None) -> bool:
    """Infer shapes and types of ``graph``, producers first; return whether any changed.

    Call nodes infer their bodies. Shapes that depend on values use constant expressions, evaluated on the way; values
    of ``given`` outputs (Data nodes, for one) are known too. Raises E14001 for the first node whose arguments do not
    fit, E19999 for a cycle.
    """
    before = _known(graph)
    values = ConstantValues(given)
    try:
        order = graph.topological_order()
    except CycleError as cycle:
        raise ReportedError("E19999", reason=f"graph {graph.name} has a {cycle}") from cycle
    for node in order:
        infer_node(node, values.known_input, lambda known: ConstantValues(known).known_input)
    return before != _known(graph)


def _known(graph: Graph) -> list[tuple[Shape, DataType]]:
    descs = (desc for part in graph.all_graphs() for node in part for desc in node.output_descs)
    return [(desc.origin_shape, desc.data_type) for desc in descs]
