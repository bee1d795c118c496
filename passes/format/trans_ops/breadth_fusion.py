"""Pass trans-op-breadth-fusion."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, ClassVar

from ge.graph import Graph, Node, NodeOut, Tensor, TensorDesc
from ge.session import CompileSession
from passes.format.trans_ops.trans_op import ORIGINS, is_trans_op, relink, remove
from passes.format.trans_ops.trans_op_pass import TransOpPass

_NOTES = frozenset({ORIGINS, "_datadump_original_op_types", "_datadump_is_multiop", "pass_name"})
"""Attributes that tell where a node comes from, not what it does."""
_FEW = 64
"""Elements up to which constants are compared by value."""


class TransOpBreadthFusion(TransOpPass):
    """Before: two readers of one tensor turn it into the same form. After: one does, for the readers of both.

    1. Same means: type, attributes, result, nodes to wait for, and further inputs, constants by value.
    2. The one that comes first in the graph stays; what waited for another one waits for it.
    """

    name: ClassVar[str] = "trans-op-breadth-fusion"

    def go_over(self, graph: Graph, session: CompileSession) -> bool:
        """Fuse readers, producers first, so that whole runs are fused."""
        changed = False
        place = {node: index for index, node in enumerate(graph)}
        for node in graph.topological_order():
            for out in () if node.is_removed else node.outputs():
                changed |= _fuse(graph, out, place)
        return changed


def _fuse(graph: Graph, out: NodeOut, place: dict[Node, int]) -> bool:
    readers = out.node.consumers(out.index)
    if len(readers) < 2:
        return False
    groups: dict[Hashable, list[Node]] = {}
    for reader in readers:
        if reader.index == 0 and is_trans_op(reader.node):
            groups.setdefault(_identity(reader.node), []).append(reader.node)
    for nodes in groups.values():
        kept, *others = sorted(nodes, key=place.__getitem__)
        for other in others:
            relink(graph, other.output(), kept.output())
            for after in other.control_outputs:
                graph.add_control(kept, after)
            remove(graph, other, kept.output(), [])
    return any(len(nodes) > 1 for nodes in groups.values())


def _identity(node: Node) -> Hashable:
    attrs = tuple(sorted((name, _frozen(value)) for name, value in node.attrs.items() if name not in _NOTES))
    further = tuple(_value(source) for source in node.inputs[1:])
    return node.type, attrs, further, _form(node.output_descs[0]), frozenset(node.control_inputs)


def _form(desc: TensorDesc) -> Hashable:
    dims = tuple(getattr(dim, "name", dim) for dim in (*desc.shape, *desc.origin_shape))
    return desc.layout, desc.origin_format, dims


def _value(source: NodeOut | None) -> Hashable:
    value = None if source is None or source.node.type != "Const" else source.node.attrs.get("value")
    if isinstance(value, Tensor) and value.array.size <= _FEW and not value.array.dtype.hasobject:
        return value.array.dtype.str, value.array.shape, value.array.tobytes()
    return source


def _frozen(value: Any) -> str:
    return f"{type(value).__name__} {value!r}"
