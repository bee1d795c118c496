"""How formats are written into descriptors while they are chosen: outputs say what is made, inputs what is wanted."""

from __future__ import annotations

from ge.formats import SERVER_CUBES, CubeSizes, is_origin_layout, lay_out
from ge.graph import Format, Graph, Node, TensorDesc
from ge.ops.format_columns import FormatColumn
from ge.tensor_memory import first_without_size

BOUNDARY = frozenset({"Data", "RefData", "AnyData", "AippData", "Variable", "Const", "NetOutput", "NoOp"})
"""Types whose tensors lie as the model's user or its file has them."""


def is_refinable(graph: Graph) -> bool:
    """Tell whether the formats of a model can be refined: all its tensors have sizes, so all are laid out once."""
    return all(first_without_size(part) is None for part in graph.all_graphs())


def take_column(node: Node, column: FormatColumn, cubes: CubeSizes = SERVER_CUBES) -> None:
    """Let ``node`` make and want what ``column`` says."""
    for made, layout in zip(node.output_descs, column.outputs, strict=True):
        if layout != Format.FORMAT_ND:
            lay_out(made, layout, column.groups, cubes=cubes)
        elif not is_origin_layout(made.format, made.origin_format):
            lay_out(made, made.origin_format, cubes=cubes)
    for slot, wish in enumerate(column.inputs):
        wanted = node.input_descs[slot]
        if wanted is None or wish is None:
            continue
        if wish == Format.FORMAT_ND:
            want_origin(node, slot)
        else:
            lay_out(wanted, wish, column.groups, cubes=cubes)


def want_origin(node: Node, slot: int) -> None:
    """Let an input want its tensor as the producer names the axes."""
    source, desc = node.input(slot), node.input_descs[slot]
    if source is None or desc is None:
        return
    made = source.desc
    is_made_so = is_origin_layout(made.format, made.origin_format)
    desc.shape, desc.sub_format = made.origin_shape, 0
    desc.format = made.format if is_made_so else made.origin_format


def take_layout(desc: TensorDesc, made: TensorDesc) -> None:
    """Let a descriptor show the storage of ``made``; its own view of the axes stays."""
    desc.shape, desc.format, desc.sub_format, desc.data_type = made.layout
    desc.origin_shape = made.origin_shape
    desc.shape_range = list(made.shape_range)
