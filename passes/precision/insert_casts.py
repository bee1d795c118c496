"""Pass insert-casts."""

from __future__ import annotations

from typing import ClassVar

from ge.graph import DataType, Graph, Node, NodeIn, NodeOut
from ge.session import CompileSession
from ge.verify import UNSETTLED
from passes.precision.casts import ConvertedConstants, add_cast

Wanted = dict[tuple[NodeOut, DataType], list[NodeIn]]


class InsertCasts:
    """Before: a reader wants another type than its producer makes. After: a Cast stands between them.

    1. All readers of a tensor that want the same type read one Cast.
    2. A constant is converted now. With --is_weight_clip it is clamped to the finite range of the new type first.
    3. Behind a load-time constant the Cast becomes one too, and clamps when it is evaluated.

    ``_descs_unsettled`` goes, unless edges differ in shape or format still.
    """

    name: ClassVar[str] = "insert-casts"

    def run(self, graph: Graph, session: CompileSession) -> bool:
        """Reconcile the types of all edges of the model."""
        if not graph.attrs.get(UNSETTLED):
            return False
        constants = ConvertedConstants(clips=session.options.is_weight_clip)
        changed = False
        for part in graph.all_graphs():
            order = list(part)
            differing = _differing(part)
            made = {_insert(part, *edge, readers, constants): None for edge, readers in differing.items()}
            if made:
                _put_before_readers(part, order, made)
                changed = True
        for name, count in constants.clipped.items():
            session.info(f"constant {name}: {count} elements are out of the range of the narrower type and clamped")
        if not any(_is_unsettled(part) for part in graph.all_graphs()):
            del graph.attrs[UNSETTLED]
        return changed


def _differing(graph: Graph) -> Wanted:
    """Return the readers that want another type, by tensor and type."""
    wanted: Wanted = {}
    for node in graph:
        for slot, source in enumerate(node.inputs):
            desc = node.input_descs[slot]
            if source is not None and desc is not None and desc.data_type is not source.desc.data_type:
                wanted.setdefault((source, desc.data_type), []).append(NodeIn(node, slot))
    return wanted


def _insert(
    graph: Graph, source: NodeOut, dtype: DataType, readers: list[NodeIn], constants: ConvertedConstants
) -> Node:
    if source.node.type == "Const":
        made = constants.add(graph, source, dtype)
    else:
        made = add_cast(graph, source, dtype, clips=constants.clips)
    for reader in readers:
        wanted = reader.node.input_descs[reader.index]
        graph.set_input(reader.node, reader.index, made)
        reader.node.input_descs[reader.index] = wanted  # may differ from the producer in more than the type
    if not graph.is_read(source.node) and source.node.type == "Const":
        graph.remove_unread(source.node)
    return made.node


def _put_before_readers(graph: Graph, order: list[Node], made: dict[Node, None]) -> None:
    """Let each new node stand in front of its first reader: an order that was topological stays so."""
    waiting, full = dict(made), []
    for node in order:
        if node.is_removed:
            continue
        for source in node.inputs:
            if source is not None and source.node in waiting:
                del waiting[source.node]
                full.append(source.node)
        full.append(node)
    graph.reorder(full)


def _is_unsettled(graph: Graph) -> bool:
    return any(
        source is not None and desc is not None and (desc.shape, desc.format) != (source.desc.shape, source.desc.format)
        for node in graph
        for source, desc in zip(node.inputs, node.input_descs, strict=True)
    )
