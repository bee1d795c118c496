"""Pass infer-shape."""

from __future__ import annotations

from typing import ClassVar

from ge.errors import ReportedError
from ge.graph import CycleError, Graph
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
        """Infer all graphs of the model, producers first."""
        changed = False
        for part in graph.all_graphs():
            values = ConstantValues()
            try:
                order = part.topological_order()
            except CycleError as cycle:
                raise ReportedError("E19999", reason=f"graph {part.name} has a {cycle}") from cycle
            for node in order:
                changed |= infer_node(node, values.of_input, lambda: ConstantValues().of_input)
        return changed
