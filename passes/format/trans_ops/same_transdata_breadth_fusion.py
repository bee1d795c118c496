"""Pass same-transdata-breadth-fusion."""

from __future__ import annotations

from collections.abc import Hashable
from typing import ClassVar

from ge.formats import CubeSizes, LayoutError, cube_sizes
from ge.formats.storage_view import stored_shape
from ge.graph import Graph, Node, NodeOut, TensorDesc
from ge.session import CompileSession
from passes.format.trans_ops.trans_op import ORIGINS, has_gap, input_desc, is_lossy, is_trans_op, only_reader, relink
from passes.format.trans_ops.trans_op_pass import TransOpPass

_STREAM = "_stream_label"


class SameTransdataBreadthFusion(TransOpPass):
    """Before: one tensor, cast to several types, and a TransData to one layout behind each Cast. After: one TransData
    of the tensor, and the Casts behind it.

    1. Ways lead from the tensor through any number of Casts, none among them, to TransDatas that agree in stream,
       formats, groups and origin view. The first TransData takes the tensor's own type.

    Left alone:
    2. ways that all arrive in one type: when their Casts are one (``TransOpBreadthFusion``), so are the TransDatas, and
       less is moved where the type is a narrower one;
    3. Casts that others read, or that wait for or are waited for; lossy Casts;
    4. a type in which the layout has another C0;
    5. ways through bodies: tensors that go in and out lie in their origin format here.
    """

    name: ClassVar[str] = "same-transdata-breadth-fusion"

    def go_over(self, graph: Graph, session: CompileSession) -> bool:
        """Fuse what reads each tensor."""
        cubes = cube_sizes(session.options.soc_version)
        changed = False
        for node in graph:
            for out in () if node.type == "Cast" else node.outputs():
                changed |= _fuse(graph, out, cubes)
        return changed


def _fuse(graph: Graph, out: NodeOut, cubes: CubeSizes) -> bool:
    readers = out.node.consumers(out.index)
    if len(readers) < 2:
        return False
    groups: dict[Hashable, list[list[Node]]] = {}
    for reader in readers:
        way = _way(reader.node) if reader.index == 0 else []
        if way:
            groups.setdefault(_target(way[-1]), []).append(way)
    changed = False
    for ways in groups.values():
        if len({way[-1].output_descs[0].data_type for way in ways}) > 1 and _fits(out.desc, ways[0][-1], cubes):
            _share(graph, out, ways)
            changed = True
    return changed


def _way(node: Node) -> list[Node]:
    """Return the Casts from ``node`` on, and the TransData behind them; nothing if there is none."""
    way = []
    while is_trans_op(node) and not (has_gap(node) or node.control_inputs or node.control_outputs or is_lossy(node)):
        way.append(node)
        if node.type == "TransData":
            return way
        follower = only_reader(node.output()) if node.type == "Cast" else None
        if follower is None:
            return []
        node = follower
    return []


def _target(node: Node) -> Hashable:
    before, after = input_desc(node), node.output_descs[0]
    return (
        node.attrs.get(_STREAM),
        *(before.format, before.sub_format, before.shape, before.origin_format, before.origin_shape),
        *(after.format, after.sub_format, after.shape, after.origin_format, after.origin_shape),
    )


def _fits(desc: TensorDesc, node: Node, cubes: CubeSizes) -> bool:
    """Tell whether both ends of a TransData have the same shapes in the type of ``desc``."""
    ends = [input_desc(node).copy(), node.output_descs[0].copy()]
    for end in ends:
        end.data_type = desc.data_type
    try:
        return all(end.shape == stored_shape(end, cubes) for end in ends) and ends[0].layout == desc.layout
    except LayoutError:
        return False


def _share(graph: Graph, out: NodeOut, ways: list[list[Node]]) -> None:
    """Put one TransData in front of the Casts."""
    plain = [way[-1] for way in ways if len(way) == 1]
    last = ways[0][-1]
    if plain:
        shared = plain[0].output()
    else:
        desc = last.output_descs[0].copy()
        desc.data_type, desc.attrs = out.desc.data_type, {}
        name = graph.unique_name(f"{out.node.name}_{out.index}_TransData")
        shared = graph.add_node("TransData", name, [out], {**last.attrs, ORIGINS: []}, output_descs=[desc]).output()
    for *casts, trans in ways:
        if trans is shared.node:
            continue
        if not casts:
            relink(graph, trans.output(), shared)
        else:
            graph.set_input(casts[0], 0, shared)
            _lay_out(casts, trans.output_descs[0])
            relink(graph, trans.output(), casts[-1].output())
        graph.remove_unread(trans)


def _lay_out(casts: list[Node], target: TensorDesc) -> None:
    """Let the results of Casts lie as ``target`` does."""
    for cast in casts:
        desc, before = target.copy(), cast.output_descs[0]
        desc.data_type, desc.attrs = before.data_type, before.attrs
        cast.output_descs[0] = desc
        for reader in cast.consumers():
            reader.node.take_desc(reader.index)
