"""Pass trans-op-symmetry-elimination."""

from __future__ import annotations

from math import prod
from typing import ClassVar

import numpy as np

from ge.graph import Format, Graph, Node, NodeOut, Shape, Tensor, TensorDesc
from ge.session import CompileSession
from passes.format.trans_ops.trans_op import (
    ORIGINS,
    RESHAPES,
    TRANSPOSES,
    bypass,
    has_gap,
    input_desc,
    is_lossy,
    is_static,
    is_trans_op,
    only_reader,
    permutation,
    relink,
    remove,
    same_tensor,
)
from passes.format.trans_ops.trans_op_pass import TransOpPass


class TransOpSymmetryElimination(TransOpPass):
    """Before: TransData(NCHW -> NC1HWC0), TransData(NC1HWC0 -> NCHW), and other pairs that undo each other. After: what
    the first one reads.

    1. Pairs are TransData, Cast, Transposes with inverse permutations, and any two of Reshape, Squeeze, Unsqueeze and
       ExpandDims: their elements have one order. Both ends must have the same type, layout and shapes.
    2. Other readers of the first one keep it.
    3. TransData(NCHW -> NC1HWC0), Reshape of N and C1, TransData(NC1HWC0 -> NCHW) without padding: a Reshape.

    Left alone:
    4. a Cast that loses something;
    5. shapes that are not known to be equal;
    6. an operator that takes its input for something else than what the producer makes.
    """

    name: ClassVar[str] = "trans-op-symmetry-elimination"

    def go_over(self, graph: Graph, session: CompileSession) -> bool:
        """Remove pairs, producers first, so that a pair around a pair is found too."""
        changed = False
        for node in graph.topological_order():
            if not node.is_removed and is_trans_op(node):
                changed |= _remove_pair(graph, node) or _remove_around_reshape(graph, node)
        return changed


def _remove_pair(graph: Graph, second: Node) -> bool:
    middle = second.input(0)
    first = None if middle is None else middle.node
    if first is None or not is_trans_op(first) or has_gap(first) or has_gap(second):
        return False
    source = first.input(0)
    if source is None or not _undo_each_other(first, second) or not same_tensor(source.desc, second.output_descs[0]):
        return False
    waited_for, readers = first.control_inputs, [reader.node for reader in second.consumers()]
    bypass(graph, second, source)
    if graph.is_read(first):
        for before in waited_for:
            for reader in dict.fromkeys(readers):
                graph.add_control(before, reader)
    else:
        remove(graph, first, source, readers)
    return True


def _undo_each_other(first: Node, second: Node) -> bool:
    if first.type in RESHAPES and second.type in RESHAPES:
        return True
    if first.type == second.type == "Cast":
        return not is_lossy(first)
    if first.type == second.type == "TransData":
        return not input_desc(first).shape.is_unknown_rank()
    if first.type in TRANSPOSES and second.type in TRANSPOSES:
        one, other = permutation(first), permutation(second)
        return one is not None and other is not None and len(one) == len(other) and _is_inverse(one, other)
    return False


def _is_inverse(one: list[int], other: list[int]) -> bool:
    return [one[axis] for axis in other] == list(range(len(one)))


# -- a Reshape of a layout ---------------------------------------------------------------------------------------------
def _remove_around_reshape(graph: Graph, back: Node) -> bool:
    """Case 3: let a Reshape in the origin view take the place of three operators, each the only reader of the last."""
    chain = [back]
    for kind in ("Reshape", "TransData"):
        source = chain[0].input(0)
        if source is None or source.node.type != kind or only_reader(source) is not chain[0]:
            return False
        chain.insert(0, source.node)
    there, middle, _ = chain
    source = there.input(0)
    if back.type != "TransData" or source is None or any(has_gap(node) for node in chain):
        return False
    if any(node.control_inputs or node.control_outputs for node in chain):
        return False
    if not _keeps_order(source.desc, there.output_descs[0], middle.output_descs[0], back.output_descs[0]):
        return False
    reshape = _add_reshape(graph, source, back)
    relink(graph, back.output(), reshape)
    for node in reversed(chain):
        remove(graph, node, reshape, [])
    return True


def _keeps_order(start: TensorDesc, blocks: TensorDesc, moved: TensorDesc, end: TensorDesc) -> bool:
    """Tell whether elements of NCHW tensors without padding keep their order by way of NC1HWC0, whose N and C1 move."""
    if not all(is_static(desc) for desc in (start, blocks, moved, end)):
        return False
    if (start.format, end.format, blocks.format, moved.format) != (
        *(Format.FORMAT_NCHW, Format.FORMAT_NCHW),
        *(Format.FORMAT_NC1HWC0, Format.FORMAT_NC1HWC0),
    ):
        return False
    if len({start.data_type, blocks.data_type, moved.data_type, end.data_type}) != 1:
        return False
    is_full = start.shape.elements == blocks.shape.elements == moved.shape.elements == end.shape.elements
    is_planar = len(start.shape) == len(end.shape) == 4 and start.shape == start.origin_shape
    return is_full and is_planar and _same_planes(start.shape, end.shape, blocks.shape, moved.shape)


def _same_planes(start: Shape, end: Shape, blocks: Shape, moved: Shape) -> bool:
    """Tell whether H * W and C0 stay: then the planes of both tensors are the same, one behind the other."""
    return len(blocks) == len(moved) == 5 and blocks[4] == moved[4] and prod(start[2:]) == prod(end[2:])


def _add_reshape(graph: Graph, source: NodeOut, back: Node) -> NodeOut:
    dims = graph.add_const(
        graph.unique_name(f"{back.name}_dims"), Tensor.of(np.array(back.output_descs[0].shape, np.int64))
    )
    dims.node.attrs[ORIGINS] = []
    node = graph.add_node(
        "Reshape",
        graph.unique_name(f"{back.name}_Reshape"),
        [source, dims],
        {ORIGINS: []},
        output_descs=[back.output_descs[0].copy()],
    )
    return node.output()
