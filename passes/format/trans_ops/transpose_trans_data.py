"""Pass transpose-trans-data."""

from __future__ import annotations

from typing import ClassVar

from ge.formats import AXES, can_transfer
from ge.graph import Format, Graph, Node
from ge.graph.types import FORMAT_TEXT
from ge.session import CompileSession
from passes.format.trans_ops.trans_op import (
    TRANSPOSES,
    has_gap,
    input_desc,
    is_static,
    permutation,
    remove,
)
from passes.format.trans_ops.trans_op_pass import TransOpPass


class TransposeTransData(TransOpPass):
    """Before: Transpose(NCHW -> NHWC), TransData(NHWC -> NC1HWC0). After: TransData(NCHW -> NC1HWC0).

    1. The TransData reads what the Transpose reads; its result stays as it is.
    2. Other readers of the Transpose keep it.

    Left alone:
    3. a permutation that is not the one from the axes of its input's format to those of its result's;
    4. unknown dims, ND, and pairs of formats that one TransData cannot do;
    5. a TransData that takes its input for something else than the Transpose makes.
    """

    name: ClassVar[str] = "transpose-trans-data"

    def go_over(self, graph: Graph, session: CompileSession) -> bool:
        """Let each TransData read what is before its Transpose."""
        changed = False
        for node in graph.nodes_of_type("TransData"):
            changed |= _skip_transpose(graph, node)
        return changed


def _skip_transpose(graph: Graph, node: Node) -> bool:
    middle = node.input(0)
    transpose = None if middle is None else middle.node
    if transpose is None or transpose.type not in TRANSPOSES or has_gap(node) or has_gap(transpose):
        return False
    source, target = transpose.input(0), node.output_descs[0]
    if source is None or not _renames_axes(transpose) or not can_transfer(source.desc.format, target.format):
        return False
    waited_for = transpose.control_inputs
    graph.set_input(node, 0, source)
    node.attrs["src_format"] = FORMAT_TEXT[source.desc.format]
    if "input_format" in node.attrs:
        node.attrs["input_format"] = int(source.desc.format)
    if graph.is_read(transpose):
        for before in waited_for:
            graph.add_control(before, node)
    else:
        remove(graph, transpose, source, [node])
    return True


def _renames_axes(transpose: Node) -> bool:
    """Tell whether a Transpose does nothing but turn a tensor from one format with named axes into another."""
    before, after, perm = input_desc(transpose), transpose.output_descs[0], permutation(transpose)
    if not (is_static(before) and is_static(after)) or Format.FORMAT_ND in (before.format, after.format):
        return False
    if (before.format, after.format) != (before.origin_format, after.origin_format) or before.format == after.format:
        return False
    axes, wanted = AXES.get(before.format, ""), AXES.get(after.format, "")
    return perm is not None and len(perm) == len(axes) and "".join(axes[axis] for axis in perm) == wanted
