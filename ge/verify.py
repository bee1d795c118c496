"""What a legal graph is."""

from __future__ import annotations

from collections.abc import Callable

from ge.call_tree import CallFault, callers
from ge.errors import ReportedError
from ge.graph import CycleError, Graph, Node
from ge.layout_check import layout_fault
from ge.ops import lookup
from ge.ops.signature import Arity, Signature
from ge.tensor_memory import LOAD_TIME_CONST, is_constant

UNSETTLED = "_descs_unsettled"
"""Attribute of a root graph while its input descriptors say what nodes want, not what their producers make."""


def verify(graph: Graph, *, with_layouts: bool = True) -> None:
    """Check structure, names, ports and descriptors of ``graph`` and its bodies, which must form a tree.

    ``with_layouts``: tensors must lie in memory so that those who make and read them can work on them (not while
    descriptors are :data:`UNSETTLED`).

    Raises E19999 that names the graph, the node and what is wrong: an illegal graph is a fault of a pass.
    """
    try:
        callers(graph)
    except CallFault as fault:
        raise ReportedError("E19999", reason=str(fault)) from fault
    is_settled = with_layouts and not graph.root.attrs.get(UNSETTLED)
    for part in graph.all_graphs():
        _verify_one(part, with_layouts=is_settled)


def verify_after(culprit: str, graph: Graph) -> None:
    """Check ``graph`` behind a pass. Raises E19999 that names it besides."""
    try:
        verify(graph)
    except ReportedError as fault:
        reason = fault.fields.get("reason", fault.message)
        raise ReportedError("E19999", reason=f"{culprit} leaves an illegal graph: {reason}") from fault


def _verify_one(graph: Graph, *, with_layouts: bool) -> None:
    def fault(node: Node, reason: str) -> ReportedError:
        return ReportedError("E19999", reason=f"graph {graph.name}, node {node.name} ({node.type}): {reason}")

    for node in graph:
        definition = lookup(node.type)
        if definition is None:
            raise fault(node, "the operator type is not registered")
        _verify_ports(node, fault)
        _verify_load_time(node, fault)
    for node in graph if with_layouts else ():
        reason = layout_fault(node)
        if reason:
            raise fault(node, reason)
    for out in graph.outputs:
        if out.node.is_removed or graph.find(out.node.name) is not out.node:
            raise ReportedError("E19999", reason=f"graph {graph.name}: output {out} is not in the graph")
    try:
        graph.topological_order()
    except CycleError as cycle:
        raise fault(cycle.nodes[0], str(cycle)) from cycle


def _verify_load_time(node: Node, fault: Callable[[Node, str], ReportedError]) -> None:
    """What is computed once, when the model is loaded, reads constants only."""
    if not node.attrs.get(LOAD_TIME_CONST):
        return
    varying = next((source for source in node.inputs if source is not None and not is_constant(source.node)), None)
    if varying is not None:
        raise fault(node, f"is computed when the model is loaded, but reads {varying}, which is not constant")


def _verify_ports(node: Node, fault: Callable[[Node, str], ReportedError]) -> None:
    definition = lookup(node.type)
    assert definition is not None
    signature = definition.signature
    count, most = len(node.inputs), signature.max_inputs
    if count < signature.min_inputs or (most is not None and count > most):
        raise fault(node, f"has {count} inputs, the signature takes {signature.min_inputs}..{most}")
    if None in node.inputs:
        _verify_absent(node, signature, fault)
    if len(node.input_descs) != count:
        raise fault(node, f"has {count} inputs but {len(node.input_descs)} input descriptors")
    for slot, source in enumerate(node.inputs):
        desc = node.input_descs[slot]
        if source is None:
            continue
        if source.node.graph is not node.graph:
            raise fault(node, f"input {slot} comes from another graph")
        if node.graph.root.attrs.get(UNSETTLED):
            continue  # the edge is about to get a Cast or a TransData
        if desc is None or desc.layout != source.desc.layout:
            raise fault(node, f"input {slot} is {desc!r}, its producer {source} makes {source.desc!r}")


def _verify_absent(node: Node, signature: Signature, fault: Callable[[Node, str], ReportedError]) -> None:
    slices = signature.input_slices(len(node.inputs))
    for port in signature.inputs:
        if port.arity is Arity.REQUIRED and None in node.inputs[slices[port.name]]:
            raise fault(node, f"required input {port.name} is not connected")
    if node.type == "NetOutput":
        raise fault(node, f"result {node.inputs.index(None)} is not connected")
