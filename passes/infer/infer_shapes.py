"""Pass infer-shape."""

from __future__ import annotations

from typing import ClassVar

from ge.errors import ReportedError
from ge.graph import CycleError, DataType, Graph, Shape
from ge.ops import infer_node
from ge.session import CompileSession
from passes.infer.constant_values import ConstantValues


class InferShapes:
    """Before: descriptors as the parser left them. After: every output has shape and type, as far as they are known.

    Shapes that depend on values (Reshape, Slice, Range ...) use constant expressions, evaluated on the way.
    Raises E14001 for the first node whose arguments do not fit, E19999 for a cycle.
    """

    name: ClassVar[str] = "infer-shape"

    def run(self, graph: Graph, session: CompileSession) -> bool:
        """Infer the root graph, producers first; call nodes infer their bodies, for which they know the arguments."""
        before = _known(graph)
        values = ConstantValues()
        try:
            order = graph.topological_order()
        except CycleError as cycle:
            raise ReportedError("E19999", reason=f"graph {graph.name} has a {cycle}") from cycle
        for node in order:
            infer_node(node, values.known_input, lambda given: ConstantValues(given).known_input)
        return before != _known(graph)


def _known(graph: Graph) -> list[tuple[Shape, DataType]]:
    descs = (desc for part in graph.all_graphs() for node in part for desc in node.output_descs)
    return [(desc.origin_shape, desc.data_type) for desc in descs]
