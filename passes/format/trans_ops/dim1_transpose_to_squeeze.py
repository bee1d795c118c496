"""Pass dim1-transpose-to-squeeze."""

from __future__ import annotations

from typing import ClassVar

from ge.formats import is_private
from ge.graph import Graph, Node, TensorDesc
from ge.session import CompileSession
from passes.format.trans_ops.trans_op import (
    ORIGINS,
    TRANSPOSES,
    has_gap,
    input_desc,
    is_trans_op,
    origins_of,
    permutation,
    relink,
    remove,
)
from passes.format.trans_ops.trans_op_pass import TransOpPass

MADE_BY_COMPILER = "_inserted_by_fe"
"""Attribute of Transposes that do not mean what their permutation says."""


class Dim1TransposeToSqueeze(TransOpPass):
    """Before: Transpose of [1,3,1,5] by [1,0,3,2]. After: Squeeze to [3,5], Unsqueeze to [3,1,5,1]: both move nothing.

    1. The axes of other than one element keep their order. Unknown dims are such axes.

    Left alone:
    2. a permutation that is no constant, or of another length than the tensor has dims;
    3. layouts of the hardware, and Transposes with ``_inserted_by_fe``;
    4. tensors without an axis that is known to have one element.
    """

    name: ClassVar[str] = "dim1-transpose-to-squeeze"

    def go_over(self, graph: Graph, session: CompileSession) -> bool:
        """Replace them."""
        found = [node for node in graph.nodes_of_type(*TRANSPOSES) if is_trans_op(node) and _moves_nothing(node)]
        for node in found:
            _replace(graph, node)
        return bool(found)


def _moves_nothing(node: Node) -> bool:
    perm, before, after = permutation(node), input_desc(node), node.output_descs[0]
    if perm is None or len(perm) != len(before.shape) or has_gap(node) or node.attrs.get(MADE_BY_COMPILER):
        return False
    if any(is_private(d.format) or d.shape != d.origin_shape for d in (before, after)):
        return False
    if 1 not in before.shape:
        return False
    moved = [axis for axis in perm if before.shape[axis] != 1]
    return moved == sorted(moved)


def _replace(graph: Graph, node: Node) -> None:
    source, after = node.input(0), node.output_descs[0]
    assert source is not None
    before, origins = input_desc(node), origins_of(node)
    dims = [dim for dim in before.shape if dim != 1]
    squeezed = TensorDesc(dims, data_type=after.data_type)
    if before.shape_range:
        squeezed.shape_range = [r for r, dim in zip(before.shape_range, before.shape, strict=True) if dim != 1]
    squeeze = graph.add_node(
        "Squeeze",
        graph.unique_name(f"{node.name}_Squeeze"),
        [source],
        {"axis": [axis for axis, dim in enumerate(before.shape) if dim == 1], ORIGINS: []},
        output_descs=[squeezed],
    )
    unsqueeze = graph.add_node(
        "Unsqueeze",
        graph.unique_name(f"{node.name}_Unsqueeze"),
        [squeeze.output()],
        {"axes": [axis for axis, dim in enumerate(after.shape) if dim == 1], ORIGINS: origins},
        output_descs=[after.copy()],
    )
    for before_it in node.control_inputs:
        graph.add_control(before_it, squeeze)
    for after_it in node.control_outputs:
        graph.add_control(unsqueeze, after_it)
    relink(graph, node.output(), unsqueeze.output())
    remove(graph, node, unsqueeze.output(), [])
