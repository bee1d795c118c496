"""Pass choose-formats."""

from __future__ import annotations

from typing import ClassVar

from ge.formats import CubeSizes, cube_sizes, is_private
from ge.graph import Format, Graph, Node, NodeOut
from ge.layout_check import STORAGE_FORMAT
from ge.ops.format_columns import FormatColumn, format_columns, is_heavy, origin_column
from ge.ops.format_columns_selectors import MATRIX_PRODUCTS
from ge.session import CompileSession
from ge.tensor_memory import is_constant
from ge.verify import UNSETTLED
from passes.format.node_layouts import BOUNDARY, is_refinable, take_column, want_origin

_SMALL_CHANNELS = (Format.FORMAT_NC1HWC0_C04, Format.FORMAT_FRACTAL_Z_C04)


class ChooseFormats:
    """Before: all tensors lie as their origin views say. After: every node makes and wants what suits it alone.

    1. Behind an input of the model that lies in a private layout, a node follows it if it can.
    2. Convolutions and the like work in private layouts; matrix products do so if ``allow_nz`` says it.
    3. All others keep the origin view if they have a column for it; pooling, for one, has none.
    4. Layouts for few channels are for convolutions, and only with --enable_small_channel=1.
    5. Constants computed at load, bodies' arguments and results, and dynamic models keep origin views.
    6. Nothing happens with --format_refinement=0.

    The two ends of an edge may differ now: ``_descs_unsettled``.
    """

    name: ClassVar[str] = "choose-formats"

    def run(self, graph: Graph, session: CompileSession) -> bool:
        """Choose for all nodes of the model, each for itself."""
        if not session.options.format_refinement or not is_refinable(graph):
            return False
        cubes = cube_sizes(session.options.soc_version)
        takes_few = session.options.enable_small_channel
        changed = False
        for part in graph.all_graphs():
            for node in part:
                if node.type not in BOUNDARY and node.type != "TransData":
                    column = _chosen(node, cubes, takes_few=takes_few)
                    take_column(node, column, cubes)
                    changed |= not column.is_origin
        for part in graph.all_graphs():
            for node in part:
                _settle_wishes(node)
        graph.attrs[UNSETTLED] = True
        return changed


def _chosen(node: Node, cubes: CubeSizes, *, takes_few: bool) -> FormatColumn:
    origin = origin_column(node)
    if node.subgraphs or is_constant(node):
        return origin
    if not (origin.is_origin_only or is_heavy(node) or _reads_private_input(node)):
        return origin
    columns = [column for column in format_columns(node, cubes) if not column.is_origin_only]
    columns = _few_channels(columns, takes_few=takes_few)
    columns = _following_inputs(node, columns)
    if is_heavy(node) and node.type not in MATRIX_PRODUCTS:
        columns = [column for column in columns if not column.is_origin] or columns
    elif is_heavy(node):
        columns = columns[-1:]
    columns = [column for column in columns if column.is_origin] or columns
    return columns[0] if columns else origin


def _reads_private_input(node: Node) -> bool:
    """Tell whether a node reads an input of the model that lies in a private layout."""
    return any(source is not None and _is_given_so(source) for source in node.inputs)


def _is_given_so(source: NodeOut) -> bool:
    return source.node.type == "Data" and is_private(source.desc.format)


def _few_channels(columns: list[FormatColumn], *, takes_few: bool) -> list[FormatColumn]:
    """Where a column for few channels stands beside others, keep it alone or drop it."""
    few = [column for column in columns if any(layout in _SMALL_CHANNELS for layout in column.inputs)]
    if not few or len(few) == len(columns):
        return columns
    return few if takes_few else [column for column in columns if column not in few]


def _following_inputs(node: Node, columns: list[FormatColumn]) -> list[FormatColumn]:
    """Keep the columns that take inputs of the model in the private layouts that they have, if there are any."""
    for slot, source in enumerate(node.inputs):
        if source is not None and _is_given_so(source):
            same = [column for column in columns if column.inputs[slot] == source.desc.format]
            columns = same or columns
    return columns


def _settle_wishes(node: Node) -> None:
    """Let inputs that want an origin view name it as their producers do now; results of the model likewise."""
    for slot, desc in enumerate(node.input_descs):
        if desc is None or is_private(desc.format):
            continue
        if node.type != "NetOutput" or STORAGE_FORMAT not in desc.attrs:
            want_origin(node, slot)
