"""Lifting: kernels that bring nothing are taken back; what nobody needs any more goes."""

from __future__ import annotations

from ge.graph import Graph, Node
from ge.graph.types import numpy_dtype
from ge.ops.fused import FUSED_TYPES
from passes.lowering.fused_nodes import FusedGraph, Kernel, compressed, fused_name
from passes.lowering.kernel_box import FuseType
from passes.lowering.refusal import Rule, Stop
from passes.lowering.strategy import LoweringStrategy

_SPLITS = frozenset({"Split", "SplitD", "SplitV", "SplitVD"})
_SLOW_TRANSPOSE_BYTES = 512


def lift(fused: FusedGraph, strategy: LoweringStrategy) -> bool:
    """Give single operators back to the model, remove what is not read, and name what stays. Tell what changed."""
    liftable = {node for node, kernel in fused.kernels.items() if not _reason_to_keep(kernel, strategy)}
    siblings = _kernels_by_origin(fused)
    for node in [*liftable]:
        if any(other not in liftable for origin in fused.kernels[node].origins
               if len(origin.output_descs) > 1 for other in siblings[origin]):  # fmt: skip
            liftable.discard(node)
    for node in [node for node in fused.kernels if node in liftable]:
        _give_back(fused, node)
    _prune(fused)
    for kernel in fused.kernels.values():
        _rename(fused.graph, kernel, strategy)
    return bool(fused.kernels)


def _kernels_by_origin(fused: FusedGraph) -> dict[Node, list[Node]]:
    found: dict[Node, list[Node]] = {}
    for node, kernel in fused.kernels.items():
        for origin in kernel.origins:
            found.setdefault(origin, []).append(node)
    return found


def _reason_to_keep(kernel: Kernel, strategy: LoweringStrategy) -> str:
    """Return why a kernel stays; empty: its operators are given back. The first rule that says something counts."""
    count = len(kernel.compute_nodes)
    types = kernel.fuse_types
    if kernel.disables_lifting:
        return "lifting is off"
    if FuseType.CUBE in types:
        return "a product with more in it" if count >= 2 or not kernel.is_from_lowering else ""
    if FuseType.SPLIT in types:
        return "" if _is_whole_split(kernel) else "a split with more in it, or in part"
    if not kernel.is_from_lowering:
        return "fused from kernels"
    if FuseType.SLICE in types and len(kernel.origins) > 1:
        return "a slice with more in it"
    if count >= 2:
        return "several operators"
    return _reason_to_keep_one(kernel, strategy)


def _reason_to_keep_one(kernel: Kernel, strategy: LoweringStrategy) -> str:
    if len(kernel.results) > 1:
        return "several results"
    if any(source.node.type not in ("Const", "Data") for source in kernel.unused_inputs):
        return "an input that need not be computed"
    if len(kernel.origins) == 1:
        origin = kernel.origins[0]
        if len(origin.inputs) > strategy.concat_max_inputs:
            return "more inputs than the operator can have"
        if origin.type in ("Transpose", "TransposeD") and _keeps_long_rows(kernel):
            return "a transposition of long rows"
    return ""


def _keeps_long_rows(kernel: Kernel) -> bool:
    """Whether the last axis stays in its place and is long enough to be copied as it is."""
    source, result = kernel.sources[0].desc, kernel.results[0].desc
    data = kernel.graph.ops[kernel.graph.inputs[0]].tensor
    itemsize = numpy_dtype(result.data_type).itemsize
    is_kept = bool(data.strides) and data.strides[-1] == 1 and source.shape[-1] == result.shape[-1]
    return is_kept and result.shape[-1] >= _SLOW_TRANSPOSE_BYTES // itemsize


def _is_whole_split(kernel: Kernel) -> bool:
    if any(origin.type not in _SPLITS for origin in kernel.origins):
        return False
    wanted = {tensor for origin in kernel.origins for tensor in origin.outputs()}
    return kernel.is_from_lowering or wanted == set(kernel.results)


def _give_back(fused: FusedGraph, node: Node) -> None:
    """The readers of a kernel read the operators of the model again."""
    graph, kernel = fused.graph, fused.kernels.pop(node)
    for origin in kernel.origins:
        for slot, source in enumerate(fused.inputs[origin]):
            if source is not None and origin.input(slot) is None:
                graph.set_input(origin, slot, fused.provider(source))
    for index, result in enumerate(kernel.results):
        graph.replace_uses(node.output(index), result)
        fused.providers.pop(result, None)
    last = kernel.results[0].node
    for after in node.control_outputs:
        graph.remove_control(node, after)
        if after is not last:
            graph.add_control(last, after)
    for before in node.control_inputs:
        graph.remove_control(before, node)
    graph.remove_node(node)
    fused.stops.append(Stop(Rule.LIFTED, kernel.origins[-1].name, detail="one operator alone"))


def _prune(fused: FusedGraph) -> None:
    """Remove operators of the model that kernels have taken the place of, unread kernels, and constants of theirs."""
    graph = fused.graph
    constants: dict[Node, None] = {}
    for node in reversed(graph.topological_order()):
        is_needed = graph.is_read(node) or bool(node.control_outputs)
        if is_needed or not (node in fused.origins or node.type in FUSED_TYPES):
            continue
        constants.update(dict.fromkeys(s.node for s in node.inputs if s is not None and s.node.type == "Const"))
        fused.kernels.pop(node, None)
        for before in node.control_inputs:
            graph.remove_control(before, node)
        graph.remove_node(node)
    for node in constants:
        if not node.is_removed and not graph.is_read(node) and not node.control_outputs:
            graph.remove_node(node)


def _rename(graph: Graph, kernel: Kernel, strategy: LoweringStrategy) -> None:
    if not kernel.is_from_lowering:
        return
    types = compressed(node.type for node in kernel.origins)
    stem = f"autofuse_{kernel.fuse_type.name.lower()}_{kernel.number}"
    name = fused_name(stem, types, strategy.max_name_length)
    if name != kernel.node.name:
        graph.rename(kernel.node, graph.unique_name(name))
