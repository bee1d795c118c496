"""Graph lowering: every node in topological order gets boxes for its results, and boxes learn where fusion ends."""

from __future__ import annotations

from dataclasses import dataclass, field

from ge.graph import Graph, Node, NodeOut
from ge.ops import lookup
from ge.ops.signature import Arity
from ge.tensor_memory import LOAD_TIME_CONST
from passes.lowering import families
from passes.lowering.kernel_box import KernelBox
from passes.lowering.loop_builder import LoopBuilder
from passes.lowering.refusal import Refusal, Rule, Stop
from passes.lowering.registry import NodeLowering, find_lowering
from passes.lowering.strategy import LoweringStrategy

__all__ = ["LoweredGraph", "check_lowerable", "families", "lower_graph", "vector_core_number"]

_REDUCE_TYPES = frozenset(
    f"Reduce{kind}{suffix}" for kind in ("Mean", "Max", "Min", "Sum", "Prod") for suffix in ("", "D")
)
_BOUNDARY = ("Data", "Const", "Constant", "NetOutput")


@dataclass
class LoweredGraph:
    """The boxes of one graph, by tensor, and where fusion ended."""

    graph: Graph
    boxes: dict[NodeOut, KernelBox] = field(default_factory=dict)
    stops: list[Stop] = field(default_factory=list)

    def box(self, tensor: NodeOut) -> KernelBox:
        """Return the box of a tensor; one that is not known is extern."""
        return self.boxes.get(tensor) or KernelBox(tensor)


def lower_graph(graph: Graph, strategy: LoweringStrategy) -> LoweredGraph:
    """Lower one graph (not its subgraphs). The graph stays as it is."""
    lowered = LoweredGraph(graph)
    walk = _GraphLowering(lowered, strategy)
    for node in graph.topological_order():
        walk.visit(node)
    for result in graph.outputs:
        walk.realize(result, Rule.READ_BY_OPERATOR, "a result of the graph")
    return lowered


class _GraphLowering:
    def __init__(self, lowered: LoweredGraph, strategy: LoweringStrategy) -> None:
        self.lowered = lowered
        self.strategy = strategy
        self.loops = LoopBuilder(strategy.platform, lowered.boxes.get)

    # -- one node -----------------------------------------------------------------------------------------------------
    def visit(self, node: Node) -> None:
        try:
            check_lowerable(node, self.strategy)
            boxes = self._lower(node)
            fault = self._fault(node, boxes)
            if fault is not None:
                for source in _sources(node):
                    self.realize(source, fault.rule, fault.detail, node)
                boxes = self._lower(node)
                fault = self._fault(node, boxes)
                if fault is not None and fault.rule is Rule.OVERSIZE:
                    raise fault
        except Refusal as refusal:
            self._fall_back(node, refusal)
            return
        self._keep(node, boxes)

    def _lower(self, node: Node) -> list[KernelBox]:
        found = find_lowering(node.type)
        if found is None:
            raise Refusal(Rule.NO_LOWERING, node.type)
        context = NodeLowering(node, self.loops, self.strategy, lambda source: self._realize_for(source, node))
        found.lower(context)
        made = context.results
        missing = [t.index for t in node.outputs() if t.index not in made and context.is_read(t)]
        if missing:
            raise Refusal(Rule.NOT_EXPRESSIBLE, f"outputs {missing} are not made by loops")
        boxes = [KernelBox(node.output(k), root) for k, root in sorted(context.results.items())]
        for box in boxes:
            box.disables_lifting = context.disables_lifting
            if context.is_material or (box.root is not None and box.root.type == "StoreReduction"):
                box.realize()
        return boxes

    def _fault(self, node: Node, boxes: list[KernelBox]) -> Refusal | None:
        for box in boxes:
            if box.ops > self.strategy.max_loop_ops:
                return Refusal(Rule.OVERSIZE, f"{box.ops} operators, at most {self.strategy.max_loop_ops}")
            if box.loads > self.strategy.max_loop_loads and len(box.origins) > 1:
                return Refusal(Rule.OVERSIZE, f"{box.loads} loads, at most {self.strategy.max_loop_loads}")
        cores = vector_core_number(node)
        for source in _sources(node):
            if source.node.type not in _BOUNDARY and vector_core_number(source.node) != cores:
                box_of_source = self.lowered.box(source)
                if not box_of_source.is_extern and box_of_source.expression() is not None:
                    return Refusal(Rule.CORE_NUMBER, f"{vector_core_number(source.node)} and {cores} cores")
        return None

    def _fall_back(self, node: Node, refusal: Refusal) -> None:
        """The operator of the model stays, and needs real tensors."""
        if node.type not in _BOUNDARY:
            self.lowered.stops.append(Stop(refusal.rule, node.name, detail=refusal.detail))
        for source in _sources(node):
            self.realize(source, Rule.READ_BY_OPERATOR, node.type, node)
        for tensor in node.outputs():
            self.lowered.boxes[tensor] = KernelBox(tensor)

    def _keep(self, node: Node, boxes: list[KernelBox]) -> None:
        for box in boxes:
            self.lowered.boxes[box.anchor] = box
        for box in boxes:
            for source in box.unused_inputs:
                self.realize(source, Rule.UNUSED_INPUT, "", node)
        for box in boxes:
            if box.is_realized:
                self._note(Rule.MATERIAL, node, box.fuse_type.name.lower())
            stop = _end_of_fusion(node, box, self.strategy)
            if stop is not None and box.realize():
                self.lowered.stops.append(stop)

    # -- realizing ----------------------------------------------------------------------------------------------------
    def realize(self, tensor: NodeOut, rule: Rule, detail: str, reader: Node | None = None) -> None:
        """Make a tensor real, and remember why if it was not."""
        if self.lowered.box(tensor).realize():
            self.lowered.stops.append(Stop(rule, tensor.node.name, "" if reader is None else reader.name, detail))

    def _realize_for(self, tensor: NodeOut, reader: Node) -> None:
        self.realize(tensor, Rule.MATERIAL, f"input of {reader.type}", reader)

    def _note(self, rule: Rule, node: Node, detail: str) -> None:
        self.lowered.stops.append(Stop(rule, node.name, detail=detail))


# -- before an operator is lowered -------------------------------------------------------------------------------------
def check_lowerable(node: Node, strategy: LoweringStrategy) -> None:
    """Check what keeps a node from being lowered at all. Raises :class:`Refusal`."""
    found = find_lowering(node.type)
    if found is None:
        raise Refusal(Rule.NO_LOWERING, node.type)
    if "_super_kernel_scope" in node.attrs or node.attrs.get("_disable_autofuse_scope"):
        raise Refusal(Rule.SCOPE, "its attributes keep it out of kernels")
    if node.type in strategy.skipped_types or node.name in strategy.skipped_names:
        raise Refusal(Rule.SKIPPED, "a list of nodes keeps it out of kernels")
    if found.is_ours and not strategy.allows_ours:
        raise Refusal(Rule.EXTENSION, f"CANN has no lowering of {node.type}")
    if found.needs and found.needs not in strategy.passes:
        raise Refusal(Rule.PASS_OFF, f"pass {found.needs} is off")
    if node.attrs.get(LOAD_TIME_CONST):
        raise Refusal(Rule.SCOPE, "it is computed once, at load")
    _check_signature(node)
    shapes_in = [source.desc.shape for source in _sources(node)]
    shapes_out = [desc.shape for desc in node.output_descs]
    if any(shape.is_unknown_shape() for shape in (*shapes_in, *shapes_out)):
        raise Refusal(Rule.OPEN_SHAPE, "not all dims are known")
    if any(0 in shape for shape in shapes_in) and not any(0 in shape for shape in shapes_out):
        raise Refusal(Rule.EMPTY_INPUT, "an input is empty and no output is")


def _check_signature(node: Node) -> None:
    definition = lookup(node.type)
    assert definition is not None
    signature = definition.signature
    for spec in signature.attrs.values():
        if spec.is_required and node.attrs.get(spec.name) is None:
            raise Refusal(Rule.SIGNATURE, f"attribute {spec.name} is missing")
    most = signature.max_inputs
    if len(node.inputs) < signature.min_inputs or (most is not None and len(node.inputs) > most):
        raise Refusal(Rule.SIGNATURE, f"{len(node.inputs)} inputs")
    slices = signature.input_slices(len(node.inputs))
    for port in signature.inputs:
        if port.arity is not Arity.OPTIONAL and None in node.inputs[slices[port.name]]:
            raise Refusal(Rule.SIGNATURE, f"input {port.name} is not connected")


def vector_core_number(node: Node) -> int:
    """Return how many vector cores a node asks for; -1 when it does not say."""
    text = str(node.attrs.get("_op_vectorcore_num", ""))
    return int(text) if text.lstrip("-").isdecimal() and text.isascii() and len(text) < 10 else -1


def _sources(node: Node) -> list[NodeOut]:
    return list(dict.fromkeys(source for source in node.inputs if source is not None))


# -- after an operator is lowered --------------------------------------------------------------------------------------
def _end_of_fusion(node: Node, box: KernelBox, strategy: LoweringStrategy) -> Stop | None:
    """Return the first rule that makes a result a tensor."""
    readers = [reader.node for reader in node.consumers(box.anchor.index)]
    if node.control_inputs or node.control_outputs:
        return Stop(Rule.CONTROL_EDGE, node.name, detail="fusing would lose an order of execution")
    if node.type in strategy.heavy_types:
        return Stop(Rule.HEAVY, node.name, detail=f"{node.type} is not computed twice")
    if box.slices:
        for reader in readers:
            if reader.type in _REDUCE_TYPES:
                return Stop(Rule.SLICE_BEFORE_REDUCE, node.name, reader.name)
    if box.ops == strategy.max_loop_ops:
        return Stop(Rule.LOOP_OPS, node.name, detail=f"{box.ops} operators")
    if box.loads >= strategy.max_loop_loads:
        return Stop(Rule.LOADS, node.name, detail=f"{box.loads} loads")
    is_single = len(node.output_descs) == 1
    most = strategy.recomputation_threshold if is_single else strategy.max_buffer_readers
    if len(readers) > most and not (is_single and box.is_slice_alone):
        return Stop(Rule.READERS, node.name, detail=f"{len(readers)} readers")
    label = box.stream_label[0]
    for reader in readers:
        other = str(reader.attrs.get("_user_stream_label", ""))
        if label and other and label != other:
            return Stop(Rule.STREAM_LABEL, node.name, reader.name, f"{label} and {other}")
    return None
