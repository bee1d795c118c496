"""Pass copy-into-outputs."""

from __future__ import annotations

from typing import ClassVar

from ge.graph import Graph, NodeOut
from ge.session import CompileSession
from ge.tensor_memory import MUST_COPY, is_constant, view_roots


class CopyIntoOutputs:
    """Before: any tensor may be a result. After: every result of the model has memory of its own.

    An Identity that copies is put before NetOutput when the result is

    1. a model input, or a view of one: the caller may hand over one buffer and read another;
    2. a constant, or a view of one: the caller may write over what it got;
    3. given back already, under the same name or as a view.

    Bodies of control flow are left alone: their results are copied to the outputs of the calling node anyway.
    """

    name: ClassVar[str] = "copy-into-outputs"

    def run(self, graph: Graph, session: CompileSession) -> bool:
        """Insert the copies."""
        net_output = graph.net_output()
        if net_output is None:
            return False
        roots = view_roots(graph)
        given: set[NodeOut] = set()
        changed = False
        for slot, source in enumerate(net_output.inputs):
            if source is None:
                continue
            root = roots[source]
            if root.node.type == "Data" or is_constant(root.node) or root in given:
                graph.set_input(net_output, slot, _copy(graph, source))
                changed = True
            given.add(root)
        return changed


def _copy(graph: Graph, source: NodeOut) -> NodeOut:
    node = graph.add_node(
        "Identity",
        graph.unique_name(f"{source.node.name}_{source.index}_copy"),
        [source],
        attrs={MUST_COPY: True, "_datadump_original_op_names": []},
        output_descs=[source.desc.copy()],
    )
    return node.output()
