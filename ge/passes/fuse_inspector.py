"""Questions and reports of passes that edit graphs themselves."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ge.error import GeError
from ge.graph.graph import CycleError
from ge.graph.node import Node
from ge.passes import origins
from ge.passes.context import PassContext
from ge.passes.topology import Topology


@dataclass(frozen=True)
class FuseCheckResult:
    """Whether nodes may become one node; if not, why."""

    ok: bool
    reason: str = ""


def can_fuse(nodes: Iterable[Node]) -> FuseCheckResult:
    """Tell whether ``nodes`` may be replaced by one node.

    They must be of one graph, agree in the attributes of :data:`ge.passes.origins.AGREEING_ATTRS`, and no path may
    leave them and come back. Raises ``TypeError`` for anything but nodes.
    """
    before = _checked_nodes(nodes, "nodes")
    reason = _owner_fault(before) or origins.conflict(before)
    if not reason:
        try:
            closes_cycle = Topology(before[0].graph).closes_cycle(before)
        except CycleError:
            closes_cycle = True
        reason = "it will create cycle after fuse" if closes_cycle else ""
    return FuseCheckResult(not reason, reason)


def report_fuse(nodes_before_fuse: Iterable[Node], nodes_after_fuse: Iterable[Node], context: PassContext) -> None:
    """Note on new nodes which nodes they replace and which pass made them, and count a match with effect.

    To be called after rewiring, before the old nodes are removed; ``nodes_after_fuse`` may be empty. Raises
    ``RuntimeError`` for no old nodes, nodes of several graphs, and a context without the name of a pass.
    """
    before = _checked_nodes(nodes_before_fuse, "nodes_before_fuse")
    after = _checked_nodes(nodes_after_fuse, "nodes_after_fuse")
    if not isinstance(context, PassContext):
        raise TypeError(f"context must be a PassContext, not {type(context).__name__}")
    reason = _owner_fault(before) or (_owner_fault([*before, *after]) if after else "")
    name = context.get_pass_name()
    if not reason and not name:
        reason = "the context has no pass name"
    if reason:
        raise GeError(f"report_fuse failed: {reason}")
    origins.record_origins(before, after)
    origins.record_pass(before, after, name)
    context.statistics.count(name, matched=1, effected=1)


def _checked_nodes(nodes: Iterable[Node], what: str) -> list[Node]:
    found = list(nodes)
    if not all(isinstance(node, Node) for node in found):
        raise TypeError(f"{what} must contain only ge.graph.Node objects")
    return found


def _owner_fault(nodes: list[Node]) -> str:
    if not nodes:
        return "nodes_before_fuse is empty"
    if nodes[0].is_removed:
        return "owner graph is null"
    stranger = next((node for node in nodes if node.is_removed or node.graph is not nodes[0].graph), None)
    return "" if stranger is None else f"nodes belong to different graphs, node: {stranger.name}"
