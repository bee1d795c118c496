"""Pass settle-formats."""

from __future__ import annotations

from typing import ClassVar

from ge.formats import CubeSizes, cube_sizes, is_origin_layout, is_private
from ge.graph import Format, Graph, Node
from ge.layout_check import layout_fault
from ge.ops.format_columns import FormatColumn, format_columns
from ge.session import CompileSession
from ge.verify import UNSETTLED
from passes.format.infer_origin_format import InferOriginFormat
from passes.format.node_layouts import BOUNDARY, take_column


class SettleFormats:
    """Before: passes of users have put nodes among others that work in private layouts. After: all work in layouts that
    they have a column for.

    1. New tensors get the names of axes that their neighbours have for them.
    2. A node that cannot work with what it reads and makes takes the column that agrees with most of it; of two, the
       one in private layouts. Its readers may want something else: ``_descs_unsettled`` stays, for insert-trans-data.
    """

    name: ClassVar[str] = "settle-formats"

    def run(self, graph: Graph, session: CompileSession) -> bool:
        """Settle all graphs of a model whose formats have been refined."""
        if not graph.attrs.get(UNSETTLED):
            return False
        changed = InferOriginFormat().run(graph, session)
        cubes = cube_sizes(session.options.soc_version)
        for part in graph.all_graphs():
            for node in part.topological_order():
                if node.type not in BOUNDARY and node.type not in ("TransData", "ReFormat") and layout_fault(node):
                    take_column(node, _closest(node, cubes), cubes)
                    changed = True
        return changed


def _closest(node: Node, cubes: CubeSizes) -> FormatColumn:
    return max(format_columns(node, cubes), key=lambda column: (_agreement(node, column), not column.is_origin))


def _agreement(node: Node, column: FormatColumn) -> int:
    """Return how many tensors of a node lie as a column has them."""
    found = 0
    for source, layout in zip(node.inputs, column.inputs, strict=True):
        if source is not None and layout is not None:
            found += _is_so(source.desc.format, source.desc.origin_format, layout)
    for desc, layout in zip(node.output_descs, column.outputs, strict=True):
        found += _is_so(desc.format, desc.origin_format, layout)
    return found


def _is_so(found: Format, named: Format, layout: Format) -> bool:
    return is_origin_layout(found, named) if layout == Format.FORMAT_ND else is_private(found) and found == layout
