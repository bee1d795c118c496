"""Boxes that were realized become AscBackend nodes. The operators of the model stay until lifting has decided."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from ge.ascir import AscGraph
from ge.graph import Graph, Node, NodeOut
from ge.ops.fused import FUSED_TYPES
from ge.passes.origins import ORIGIN_NAMES, ORIGIN_TYPES
from passes.lowering.emission import emit
from passes.lowering.kernel_box import FuseType, KernelBox
from passes.lowering.lower_graph import LoweredGraph, vector_core_number
from passes.lowering.refusal import KernelStop, Refusal, Rule, Stop
from passes.lowering.storage_axes import guards
from passes.lowering.strategy import LoweringStrategy

logger = logging.getLogger(__name__)

ASC_GRAPH = "asc_graph"
"""Attribute of a fused node: the text of its AscGraph, put there when nothing changes any more."""
VIEW_TYPES = frozenset({"ExpandDims", "Reshape", "Squeeze", "SqueezeV3", "Unsqueeze", "UnsqueezeV3"})
"""Operators that move nothing: kernels of them alone are not worth it, and they do not count as work."""


@dataclass
class Kernel:
    """What is known of a fused node beside what the graph says.

    ``sources`` are the tensors of the model that its inputs stand for, ``results`` those that its outputs replace.
    """

    node: Node
    fuse_types: frozenset[FuseType]
    graph: AscGraph
    sources: list[NodeOut]
    results: list[NodeOut]
    origins: list[Node]
    number: int
    unused_inputs: list[NodeOut] = field(default_factory=list)
    vector_core_num: int = 0
    is_from_lowering: bool = True
    disables_lifting: bool = False

    @property
    def fuse_type(self) -> FuseType:
        """The kind of the kernel, where it is one."""
        return min(self.fuse_types)

    @property
    def compute_nodes(self) -> list[Node]:
        """The operators of the model inside that are work."""
        return [node for node in self.origins if node.type not in VIEW_TYPES]


@dataclass
class FusedGraph:
    """A graph with fused nodes beside the operators that they stand for."""

    graph: Graph
    kernels: dict[Node, Kernel] = field(default_factory=dict)
    stops: list[Stop] = field(default_factory=list)
    kernel_stops: list[KernelStop] = field(default_factory=list)
    inputs: dict[Node, tuple[NodeOut | None, ...]] = field(default_factory=dict)
    """What the operators of the model read before there were fused nodes."""
    origins: set[Node] = field(default_factory=set)
    """The operators of the model that stand, or stood, inside a kernel."""
    providers: dict[NodeOut, NodeOut] = field(default_factory=dict)
    """Which output of a fused node took the place of a tensor of the model."""

    def provider(self, tensor: NodeOut) -> NodeOut:
        """Return who makes a tensor of the model now."""
        return self.providers.get(tensor, tensor)


class Numbers:
    """Numbers of fused nodes: one sequence per root graph."""

    def __init__(self) -> None:
        self._next = 0

    def take(self) -> int:
        """Return 0, 1, 2, ..."""
        self._next += 1
        return self._next - 1


def build_fused_nodes(lowered: LoweredGraph, strategy: LoweringStrategy, numbers: Numbers) -> FusedGraph:
    """Put an AscBackend behind every operator whose results were realized, and let its readers read that."""
    fused = FusedGraph(lowered.graph, stops=lowered.stops)
    fused.inputs = {node: node.inputs for node in lowered.graph}
    for node in lowered.graph.topological_order():
        boxes = [lowered.box(tensor) for tensor in node.outputs() if tensor in lowered.boxes]
        realized = [box for box in boxes if box.is_realized]
        if not realized or any(box.is_extern for box in boxes):
            continue
        has_control = bool(node.control_inputs or node.control_outputs)
        if has_control and len(realized) < len(boxes):
            fused.stops.append(Stop(Rule.CONTROL_EDGE, node.name, detail="not all results are needed as tensors"))
            continue
        made = [kernel for box in realized if (kernel := _kernel(fused, box, strategy, numbers)) is not None]
        _move_control_outputs(fused.graph, node, made)
    _drop_dead_edges(fused)
    return fused


def _kernel(fused: FusedGraph, box: KernelBox, strategy: LoweringStrategy, numbers: Numbers) -> Kernel | None:
    assert box.root is not None
    node, index = box.anchor
    if _is_view_alone(box):
        fused.stops.append(Stop(Rule.VIEW_ALONE, node.name, detail="only shapes change"))
        return None
    try:
        emitted = emit(f"{node.name}_out{index}_graph", box.root, guards(node.output_descs[index]),
                       merges=strategy.merges_equal_parts)  # fmt: skip
    except Refusal as refusal:
        logger.info("no kernel for %s: %s", node.name, refusal)
        fused.stops.append(Stop(refusal.rule, node.name, detail=refusal.detail))
        return None
    number = numbers.take()
    types = [origin.type for origin in box.origins]
    fuse_type = box.fuse_type
    name = fused_name(f"autofuse_{fuse_type.name.lower()}_{number}", types, strategy.max_name_length)
    made = _add_node(fused, box, name, emitted.sources)
    kernel = Kernel(
        made, frozenset({fuse_type}), replace(emitted.graph, name=name), list(emitted.sources), [box.anchor],
        box.origins, number, box.unused_inputs, max(vector_core_number(node), 0),
        disables_lifting=strategy.disables_lifting or box.disables_lifting,
    )  # fmt: skip
    _set_attributes(kernel, box)
    fused.kernels[made] = kernel
    fused.origins.update(kernel.origins)
    return kernel


def fused_name(stem: str, types: Iterable[str], most: int) -> str:
    """Return the name of a fused node: at most ``most`` characters."""
    return "_".join([stem, *types])[:most]


def compressed(types: Iterable[str]) -> list[str]:
    """Write runs of equal types as one, with their number in front: ``2Abs``."""
    found: list[tuple[str, int]] = []
    for name in types:
        if found and found[-1][0] == name:
            found[-1] = (name, found[-1][1] + 1)
        else:
            found.append((name, 1))
    return [f"{times}{name}" if times > 1 else name for name, times in found]


def _is_view_alone(box: KernelBox) -> bool:
    if any(node.type not in VIEW_TYPES for node in box.origins):
        return False
    is_one_reshape = [node.type for node in box.origins] == ["Reshape"]
    node = box.anchor.node
    has_control = bool(node.control_inputs or node.control_outputs)
    return not (is_one_reshape and not has_control and len(node.consumers(box.anchor.index)) == 1)


def _add_node(fused: FusedGraph, box: KernelBox, name: str, sources: Iterable[NodeOut]) -> Node:
    graph, (node, index) = fused.graph, box.anchor
    desc = node.output_descs[index].copy()
    kind = "AscBackendNoKernelOp" if 0 in desc.shape else "AscBackend"
    made = graph.add_node(kind, graph.unique_name(name), [fused.provider(s) for s in sources], output_descs=[desc])
    graph.replace_uses(box.anchor, made.output())
    fused.providers[box.anchor] = made.output()
    for before in node.control_inputs:
        graph.add_control(before, made)
    for unused in box.unused_inputs:
        if unused.node.type not in ("Data", "Const"):
            graph.add_control(fused.provider(unused).node, made)
    return made


def _move_control_outputs(graph: Graph, node: Node, made: list[Kernel]) -> None:
    if not made:
        return
    for after in node.control_outputs:
        for kernel in made:
            if after is not kernel.node:
                graph.add_control(kernel.node, after)
        if after not in [kernel.node for kernel in made]:
            graph.remove_control(node, after)


def _set_attributes(kernel: Kernel, box: KernelBox) -> None:
    attrs = kernel.node.attrs
    label, priority = box.stream_label
    if label:
        attrs["_user_stream_label"] = label
    if priority:
        attrs["_user_stream_priority"] = priority
    if kernel.vector_core_num:
        attrs["_op_vectorcore_num"] = str(kernel.vector_core_num)
    if kernel.disables_lifting:
        attrs["_disable_lifting"] = True
    names = [name for node in kernel.origins for name in node.attrs.get(ORIGIN_NAMES, [node.name])]
    types = [name for node in kernel.origins for name in node.attrs.get(ORIGIN_TYPES, [node.type])]
    attrs[ORIGIN_NAMES], attrs[ORIGIN_TYPES] = names, types


def _drop_dead_edges(fused: FusedGraph) -> None:
    """Operators of the model that no result needs any more stop reading fused nodes; lifting knows what they read."""
    living: set[Node] = set()
    waiting = [source.node for source in fused.graph.outputs]
    net_output = fused.graph.net_output()
    if net_output is not None:
        waiting.append(net_output)
    while waiting:
        node = waiting.pop()
        if node not in living:
            living.add(node)
            waiting += node.predecessors()
    for node in fused.graph:
        if node in living or node not in fused.origins:
            continue
        for slot, source in enumerate(node.inputs):
            if source is not None and source.node.type in FUSED_TYPES:
                fused.graph.set_input(node, slot, None)
