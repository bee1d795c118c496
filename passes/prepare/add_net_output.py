"""Pass add-net-output."""

from __future__ import annotations

from typing import ClassVar

from ge.graph import Graph
from ge.session import CompileSession


class AddNetOutput:
    """Before: results are listed beside the graph. After: a ``NetOutput`` node reads them in order.

    Bodies of control flow get theirs too. A graph that has one already is left alone.
    """

    name: ClassVar[str] = "add-net-output"

    def run(self, graph: Graph, session: CompileSession) -> bool:
        """Add the missing nodes."""
        bare = [part for part in graph.all_graphs() if part.net_output() is None]
        for part in bare:
            stem = "Node_Output" if part is graph else f"{part.name}/Node_Output"
            part.add_node("NetOutput", part.unique_name(stem), part.outputs, output_descs=[])
        return bool(bare)
