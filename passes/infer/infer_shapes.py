"""Pass infer-shape."""

from __future__ import annotations

from typing import ClassVar

from ge.graph import Graph
from ge.graph_inference import infer_graph
from ge.session import CompileSession


class InferShapes:
    """Before: descriptors as the parser left them. After: every output has shape and type, as far as they are known.

    Shapes that depend on values (Reshape, Slice, Range ...) use constant expressions, evaluated on the way.
    Raises E14001 for the first node whose arguments do not fit, E19999 for a cycle.
    """

    name: ClassVar[str] = "infer-shape"

    def run(self, graph: Graph, session: CompileSession) -> bool:
        """Infer the root graph; call nodes infer their bodies, for which they know the arguments."""
        return infer_graph(graph)
