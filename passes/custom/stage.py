"""The stages at which the passes of users run."""

from __future__ import annotations

import logging
from typing import ClassVar

from ge.constant_values import ConstantValues
from ge.errors import ReportedError
from ge.graph import Graph, Node, NodeOut, TensorDesc
from ge.graph_inference import infer_graph
from ge.layout_check import STORAGE_FORMAT, result_fault, transfer_type_fault
from ge.ops import infer_node
from ge.passes.base import PassStage
from ge.passes.context import PassContext
from ge.passes.engine import FAILED, PassFailure, run_pass
from ge.passes.registry import PassDescriptor
from ge.session import CompileSession
from ge.verify import UNSETTLED, verify
from passes.custom.interface import Interface, missing_descs
from passes.custom.snapshot import Snapshot

logger = logging.getLogger("atc")


class CustomStage:
    """Before: any graph. After: the passes that users registered for the stage have run, by ascending name.

    1. A pass that is switched off is not even made.
    2. After each pass, whatever it says that it did, the graph is compared with the one from before. If it changed it
       is verified and inferred anew, and its inputs and results must be those from before; otherwise the compile fails
       with E13028, which names the pass. Once storage formats are chosen only nodes without descriptors are inferred:
       inference knows nothing of storage.
    3. From stage AfterInferShape on a pass has to give its new nodes descriptors, because CANN would miss them; here
       they are inferred, with a warning.
    """

    name: ClassVar[str]
    stage: ClassVar[PassStage]

    def run(self, graph: Graph, session: CompileSession) -> bool:
        """Run them."""
        changed = False
        for descriptor in session.passes.of_stage(self.stage):
            if session.options.fusion_switches.allows_custom(descriptor.pass_name):
                changed |= run_custom_pass(descriptor, graph, session)
            else:
                logger.info("custom pass %s is switched off", descriptor.pass_name)
        session.is_rewritten |= changed
        return changed


class BeforeInferShape(CustomStage):
    """The graph as parsed, with its NetOutput. Shapes may be unknown."""

    name: ClassVar[str] = "custom-before-infer-shape"
    stage: ClassVar[PassStage] = PassStage.BEFORE_INFER_SHAPE


class AfterInferShape(CustomStage):
    """All shapes inferred, constants folded."""

    name: ClassVar[str] = "custom-after-infer-shape"
    stage: ClassVar[PassStage] = PassStage.AFTER_INFER_SHAPE


class AfterBuiltinFusion(CustomStage):
    """Built-in fusions have run."""

    name: ClassVar[str] = "custom-after-builtin-fusion"
    stage: ClassVar[PassStage] = PassStage.AFTER_BUILTIN_FUSION_PASS


class AfterOriginGraphOptimize(CustomStage):
    """The last look at the graph before it is built. What does not fit the layouts around it is settled afterwards."""

    name: ClassVar[str] = "custom-after-origin-graph-optimize"
    stage: ClassVar[PassStage] = PassStage.AFTER_ORIGIN_GRAPH_OPTIMIZE

    def run(self, graph: Graph, session: CompileSession) -> bool:
        """Run them; where they changed something layouts may differ at the two ends of an edge."""
        changed = super().run(graph, session)
        if changed:
            graph.attrs[UNSETTLED] = True
        return changed


def run_custom_pass(descriptor: PassDescriptor, graph: Graph, session: CompileSession) -> bool:
    """Run one pass and check what it leaves; return whether it may have changed something. Raises E13028."""
    name = descriptor.pass_name
    before, snapshot, layouts = Interface.of(graph), Snapshot.of(graph), _chosen_layouts(graph)
    unknown = set(missing_descs(graph))
    context = PassContext(name, options=session.options.ge_options, statistics=session.fusion, warn=session.warn)
    logger.info("custom pass %s runs at stage %s", name, descriptor.stage.value)
    with session.watch("E13028", name):
        try:
            changed = run_pass(descriptor.cls, graph, context)
        except PassFailure as failure:
            raise _failed(name, failure.reason, failure.retcode) from failure
    is_silent = not changed and snapshot != Snapshot.of(graph)
    if changed or is_silent:
        _check(descriptor, graph, before, unknown, session)
        if descriptor.stage is PassStage.AFTER_ORIGIN_GRAPH_OPTIMIZE:
            _check_layouts(name, graph, layouts)
    if is_silent:
        session.warn(
            f"custom pass {name} changes the graph although it says that it does not, or in a hook that should only "
            "look; the changed graph is taken"
        )
    return changed or is_silent


def _failed(name: str, reason: str, retcode: str = FAILED) -> ReportedError:
    return ReportedError("E13028", passname=name, retcode=retcode, reason=reason)


def _check(
    descriptor: PassDescriptor, graph: Graph, before: Interface, unknown: set[NodeOut], session: CompileSession
) -> None:
    name = descriptor.pass_name
    try:
        verify(graph, with_layouts=False)  # new nodes need not know the layouts around them: settle-formats
    except ReportedError as fault:
        raise _failed(name, f"it leaves an illegal graph: {fault.fields.get('reason', fault.message)}") from fault
    change = before.change(graph)
    if change:
        raise _failed(name, f"it changes the interface: {change}")
    bare = [out for out in missing_descs(graph) if out not in unknown]
    try:
        if _has_storage_formats(graph):
            _infer_nodes(graph, {out.node for out in bare})
        else:
            infer_graph(graph)
    except ReportedError as fault:
        raise _failed(name, f"what it leaves cannot be inferred: {fault.message}") from fault
    change = before.change(graph)
    if change:
        raise _failed(name, f"it changes the interface: {change}")
    if descriptor.stage is not PassStage.BEFORE_INFER_SHAPE:
        _warn_of_missing(name, [out for out in bare if not out.desc.origin_shape.is_unknown_rank()], session)


def _chosen_layouts(graph: Graph) -> dict[int, TensorDesc]:
    """Return the results of the model, by number, for which users have chosen a layout."""
    net_output = graph.net_output()
    descs = [] if net_output is None else net_output.input_descs
    return {slot: d.copy() for slot, d in enumerate(descs) if d is not None and STORAGE_FORMAT in d.attrs}


def _check_layouts(name: str, graph: Graph, layouts: dict[int, TensorDesc]) -> None:
    """Refuse what nothing behind the pass puts right: a result without the TransData that turned it back, a TransData
    without the Cast beside it. A result with another producer has forgotten what its user chose, and gets it back."""
    net_output = graph.net_output()
    for slot, desc in layouts.items():
        if net_output is not None and slot < len(net_output.input_descs):
            net_output.input_descs[slot] = desc
    for part in graph.all_graphs():
        for node in part:
            reason = result_fault(node) if node.type == "NetOutput" else transfer_type_fault(node)
            if reason:
                reason = f"graph {part.name}, node {node.name} ({node.type}): {reason}"
                raise _failed(name, f"it leaves an illegal graph: {reason}")


def _has_storage_formats(graph: Graph) -> bool:
    descs = (desc for part in graph.all_graphs() for node in part for desc in node.output_descs)
    return any((desc.shape, desc.format) != (desc.origin_shape, desc.origin_format) for desc in descs)


def _infer_nodes(graph: Graph, nodes: set[Node]) -> None:
    values = ConstantValues()
    for part in graph.all_graphs() if nodes else []:
        for node in part.topological_order():
            if node in nodes:
                infer_node(node, values.known_input)


def _warn_of_missing(name: str, bare: list[NodeOut], session: CompileSession) -> None:
    nodes = list(dict.fromkeys(f"{out.node.name} ({out.node.type})" for out in bare))
    if nodes:
        more = f" and {len(nodes) - 3} more" if len(nodes) > 3 else ""
        session.warn(
            f"custom pass {name} leaves nodes without shapes: {', '.join(nodes[:3])}{more}; they are inferred here, "
            "CANN would not do that: call ge.passes.infer_shape on the replacement"
        )
