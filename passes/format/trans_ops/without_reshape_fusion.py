"""Pass trans-op-without-reshape-fusion."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

from ge.formats import AXES, CubeSizes, LayoutError, can_transfer, cube_sizes, is_private
from ge.formats.storage_view import stored_shape
from ge.graph import DataType, Format, Graph, Node, NodeIn, NodeOut, TensorDesc
from ge.graph.node import AttrValue
from ge.graph.types import FORMAT_TEXT
from ge.session import CompileSession
from passes.format.trans_ops.trans_op import (
    ORIGINS,
    TRANSPOSES,
    has_gap,
    input_desc,
    is_lossy,
    is_static,
    is_trans_op,
    origins_of,
    permutation,
    remove,
)
from passes.format.trans_ops.trans_op_pass import TransOpPass

LINKS = TRANSPOSES | {"Cast", "Reshape", "TransData"}
MAX_LINKS = 64
_FUSED_FORMATS = frozenset({Format.FORMAT_NCHW, Format.FORMAT_NHWC, Format.FORMAT_FRACTAL_Z, Format.FORMAT_NC1HWC0})
"""Formats from which TransData and Transpose are looked at."""


class TransOpWithoutReshapeFusion(TransOpPass):
    """Before: Cast, TransData, Transpose, TransData, Cast between operators. After: at most one TransData and one Cast.

    1. Ways lead from an operator through Casts, TransDatas and Transposes to one that is none of these. Where both ends
       are the same tensor, the reader reads the producer.
    2. Otherwise what remains is one TransData and one Cast, if there were more. A Cast to float16 comes first.
    3. Control edges of what goes are handed on.

    Left alone, with all its operators:
    4. a way with a Reshape, a lossy Cast, an operator that takes its input for something else than what is made, or a
       Transpose that is not from the axes of one format to those of another;
    5. a TransData or Transpose from other than NCHW, NHWC, FRACTAL_Z and NC1HWC0;
    6. unknown dims, and ways of more than 64 operators;
    7. ends of different origin views, or with C0 of their own for each type, unless they are the same tensor.
    """

    name: ClassVar[str] = "trans-op-without-reshape-fusion"

    def go_over(self, graph: Graph, session: CompileSession) -> bool:
        """Fuse the ways that begin at each tensor."""
        cubes = cube_sizes(session.options.soc_version)
        changed = False
        sources = dict.fromkeys(node.input(0) for node in graph if _is_link(node))
        for out in sources:
            if out is not None and not out.node.is_removed and not _is_link(out.node):
                changed |= _fuse_from(graph, out, cubes)
        return changed


def _is_link(node: Node) -> bool:
    return is_trans_op(node) and node.type in LINKS


@dataclass(frozen=True)
class _Way:
    """Trans-ops from a producer to one input of a reader, in order."""

    links: tuple[Node, ...]
    end: NodeIn

    @property
    def made(self) -> TensorDesc:
        return self.links[-1].output_descs[0]


@dataclass
class _Group:
    """Ways to the same form; ``steps`` are the forms to be made on the way, none if the producer's will do."""

    steps: list[TensorDesc]
    ways: list[_Way] = field(default_factory=list)


def _fuse_from(graph: Graph, out: NodeOut, cubes: CubeSizes) -> bool:
    if not is_static(out.desc):
        return False
    groups: dict[tuple[object, ...], _Group] = {}
    staying: set[Node] = set()
    for way in _ways(out):
        steps = _steps(out.desc, way.made, cubes) if _may_go(way) else None
        if steps is None:
            staying.update(way.links)
        else:
            key = (way.made.layout, way.made.origin_shape, way.made.origin_format)
            groups.setdefault(key, _Group(steps)).ways.append(way)
    chosen = _worthwhile(list(groups.values()), staying)
    for group in chosen:
        _rewire(graph, out, group)
    return bool(chosen)


def _ways(out: NodeOut) -> Iterator[_Way]:
    """Yield all ways of at least one trans-op that begin at ``out``."""
    waiting: list[tuple[NodeIn, tuple[Node, ...]]] = [
        (reader, ()) for reader in reversed(out.node.consumers(out.index))
    ]
    while waiting:
        reader, links = waiting.pop()
        if _is_link(reader.node) and reader.index == 0 and len(links) < MAX_LINKS:
            longer = (*links, reader.node)
            waiting += [(further, longer) for further in reversed(reader.node.consumers())]
        elif links and not _is_link(reader.node):
            yield _Way(links, reader)


def _may_go(way: _Way) -> bool:
    for node in way.links:
        before, after = input_desc(node), node.output_descs[0]
        if node.type == "Reshape" or is_lossy(node) or has_gap(node) or not (is_static(before) and is_static(after)):
            return False
        if node.type == "Cast":
            continue
        if before.format not in _FUSED_FORMATS or before.data_type != after.data_type:
            return False
        if node.type in TRANSPOSES and not _renames_axes(node):
            return False
    return True


def _renames_axes(node: Node) -> bool:
    before, after, perm = input_desc(node), node.output_descs[0], permutation(node)
    axes, wanted = AXES.get(before.format, ""), AXES.get(after.format, "")
    if (before.format, after.format) != (before.origin_format, after.origin_format) or axes == wanted:
        return False
    return perm is not None and len(perm) == len(axes) and "".join(axes[axis] for axis in perm) == wanted


def _steps(start: TensorDesc, end: TensorDesc, cubes: CubeSizes) -> list[TensorDesc] | None:
    """Return the forms to be made of ``start``, ``end`` the last of them; ``None`` if that is not possible."""
    if (start.origin_shape, start.origin_format) != (end.origin_shape, end.origin_format):
        return None
    is_moved = (start.format, start.sub_format) != (end.format, end.sub_format)
    is_cast = start.data_type != end.data_type
    if not is_moved:
        return None if start.shape != end.shape else [end] if is_cast else []
    if not can_transfer(start.format, end.format):
        return None
    if not is_cast:
        return [end]
    is_cast_first = end.data_type is DataType.DT_FLOAT16
    middle = (start if is_cast_first else end).copy()
    middle.attrs = {}  # it is no tensor of the model
    middle.data_type = (end if is_cast_first else start).data_type
    try:
        fits = not is_private(middle.format) or stored_shape(middle, cubes) == middle.shape
    except LayoutError:
        return None
    return [middle, end] if fits else None


def _worthwhile(groups: list[_Group], staying: set[Node]) -> list[_Group]:
    """Return the groups after whose fusion there are fewer nodes; ``staying`` are nodes that others need."""
    chosen = []
    for group in sorted(groups, key=lambda group: len(group.steps)):
        links = dict.fromkeys(node for way in group.ways for node in way.links)
        if len(group.steps) < sum(node not in staying for node in links):
            chosen.append(group)
        else:
            staying.update(links)
    for group in [group for group in chosen if group.steps]:
        links = dict.fromkeys(node for way in group.ways for node in way.links)
        if len(group.steps) >= sum(node not in staying for node in links):
            chosen.remove(group)
            staying.update(links)
    return [group for group in chosen if any(node not in staying for way in group.ways for node in way.links)]


def _rewire(graph: Graph, out: NodeOut, group: _Group) -> None:
    made = out
    for desc in group.steps:
        made = _add(graph, made, desc)
    if group.steps:
        made.node.attrs[ORIGINS] = origins_of(*group.ways[0].links)
    for way in group.ways:
        reader = way.end
        meant = reader.node.input_descs[reader.index]
        graph.set_input(reader.node, reader.index, made)
        own = reader.node.input_descs[reader.index]
        if meant is not None and own is not None:
            own.origin_format = meant.origin_format
        for node in reversed(way.links):
            if node.is_removed or graph.is_read(node):
                _wait_for(graph, node, reader.node)
            else:
                remove(graph, node, made, [reader.node])


def _wait_for(graph: Graph, node: Node, reader: Node) -> None:
    """Let a reader wait for what a node of its way that stays waits for."""
    if not node.is_removed:
        for before in node.control_inputs:
            graph.add_control(before, reader)


def _add(graph: Graph, source: NodeOut, desc: TensorDesc) -> NodeOut:
    """Add the Cast or TransData that makes ``desc``."""
    if source.desc.data_type != desc.data_type:
        kind, attrs = "Cast", _cast_attrs(desc)
    else:
        kind, attrs = "TransData", _trans_data_attrs(source.desc, desc)
    name = graph.unique_name(f"{source.node.name}_{source.index}_{kind}")
    return graph.add_node(kind, name, [source], attrs | {ORIGINS: []}, output_descs=[desc.copy()]).output()


def _cast_attrs(desc: TensorDesc) -> dict[str, AttrValue]:
    return {"dst_type": int(desc.data_type)}


def _trans_data_attrs(source: TensorDesc, target: TensorDesc) -> dict[str, AttrValue]:
    return {
        "src_format": FORMAT_TEXT[source.format],
        "dst_format": FORMAT_TEXT[target.format],
        "groups": max(source.sub_format, target.sub_format, 1),
    }
