"""Pass count-trans-data."""

from __future__ import annotations

from typing import ClassVar

from ge.graph import Graph, Node
from ge.session import CompileSession
from ge.tensor_memory import is_constant, memory_size

COUNT, BYTES = "_trans_data_count", "_trans_data_bytes"
"""Attributes of a model: TransData that each run executes, and the bytes that they read and write."""
WEIGHT_COUNT = "_trans_data_weight_count"
"""Attribute of a model: TransData that are executed once, when the model is loaded."""


class CountTransData:
    """Before: formats are refined. After: the model says how many TransData are left, and how much they move.

    Those behind constants that are computed at load run once and are counted for themselves; those of constants have
    been done by the compiler. The bodies of a call node count like everything else, once.
    """

    name: ClassVar[str] = "count-trans-data"

    def run(self, graph: Graph, session: CompileSession) -> bool:
        """Count in all graphs, unless formats are not refined; what there is is reported at info level."""
        nodes = [node for part in graph.all_graphs() for node in part if node.type == "TransData"]
        if not nodes and not session.options.format_refinement:
            return False
        running = [node for node in nodes if not is_constant(node)]
        moved = sum(map(_moved_bytes, running))
        graph.attrs.update({COUNT: len(running), BYTES: moved, WEIGHT_COUNT: len(nodes) - len(running)})
        if nodes:
            session.info(
                f"TransData: {len(running)} on activations, which read and write {moved} bytes per run; "
                f"{len(nodes) - len(running)} on weights, when the model is loaded"
            )
        return False


def _moved_bytes(node: Node) -> int:
    source = node.input(0)
    descs = [*node.output_descs, *([] if source is None else [source.desc])]
    return sum(memory_size(desc) or 0 for desc in descs)
