"""Pass unchanged-transpose-remove."""

from __future__ import annotations

from typing import ClassVar

from ge.graph import Graph, Node
from ge.session import CompileSession
from passes.format.trans_ops.trans_op import TRANSPOSES, bypass, has_gap, input_desc, is_trans_op, permutation
from passes.format.trans_ops.trans_op_pass import TransOpPass


class UnchangedTransposeRemove(TransOpPass):
    """Before: Transpose of [1,1,2,2,8] by [1,0,2,3,4]. After: what it reads.

    1. Every axis stays, or has one element.

    Left alone:
    2. a permutation that is no constant, or of another length than the tensor has dims;
    3. input and result in different layouts: it is needed to make one the other.
    """

    name: ClassVar[str] = "unchanged-transpose-remove"

    def go_over(self, graph: Graph, session: CompileSession) -> bool:
        """Remove them."""
        found = [node for node in graph.nodes_of_type(*TRANSPOSES) if is_trans_op(node) and _is_unchanged(node)]
        for node in found:
            bypass(graph, node)
        return bool(found)


def _is_unchanged(node: Node) -> bool:
    perm, before, after = permutation(node), input_desc(node), node.output_descs[0]
    if perm is None or len(perm) != len(before.shape) or has_gap(node):
        return False
    is_same = before.layout == after.layout and before.shape == before.origin_shape == after.origin_shape
    return is_same and all(axis == place or before.shape[place] == 1 for place, axis in enumerate(perm))
