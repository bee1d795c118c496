"""Pass choose-precision."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from ge.call_tree import bodies, callers_first, parent_slot, unchanged_slots
from ge.constant_values import ConstantValues
from ge.errors import ReportedError
from ge.graph import DataType, Graph, Node, TensorDesc
from ge.ops import lookup
from ge.ops.known_value import KnownValue
from ge.ops.precision import (
    BLACK_LIST,
    CUBE,
    WHITE_LIST,
    WIDE_RESULT,
    as_made_slots,
    bias_slots,
    has_bf16,
    lowered_slots,
    mix_colour,
)
from ge.ops.registry import InferContext, Misfit, OpDef, ValueOf
from ge.passes.origins import OUTPUT_TYPE as MODEL_TYPE
from ge.precision_files import CustomTypes
from ge.session import CompileSession
from ge.tensor_memory import is_constant
from ge.verify import UNSETTLED
from passes.precision.named_nodes import CustomizedNodes, KeptByName, warn_unregistered
from passes.precision.rules import CONCERNED, FP16, FP32, RULES, Rule, Situation

OUTPUT_TYPE = "_x_output_type"


class ChoosePrecision:
    """Before: every node wants what its producers make. After: it wants what the precision mode says, and makes what
    inference gives for that; both ends of an edge may differ (``_descs_unsettled``).

    1. Floating inputs get the type of the mode, unless ``ge.ops.precision`` or --keep_dtype keeps them, or inference
       asks for their values.
    2. What follows from shapes and constants alone keeps the model's types: it decides shapes in models with open
       dimensions, and costs nothing in others. Inputs and results of the model and of bodies keep theirs too.
    3. Operators that take any type take what comes (Cast, Shape, IsNan).
    4. A cube operator that may give its fp32 sums gets ``_x_output_type``.
    5. Outputs whose type changes note that of the model, in which data dumps show them.
    6. --customize_dtypes beats all of this; a type that the node cannot have is E20001.
    """

    name: ClassVar[str] = "choose-precision"

    def run(self, graph: Graph, session: CompileSession) -> bool:
        """Choose for all graphs of the model."""
        options = session.options
        if options.precision == "origin" and not (options.custom_types.by_name or options.custom_types.by_type):
            return False
        white, black = options.mix_list_changes.apply(WHITE_LIST, BLACK_LIST)
        kept = KeptByName(options.kept_nodes, session) if options.precision != "origin" else None
        custom = CustomizedNodes(options.custom_types, session)
        has_narrow = has_bf16(options.soc_version)
        choice = _Choice(session, RULES[options.precision], has_narrow, white, black, kept, custom)
        changed = choice.make(graph)
        custom.warn_unknown(graph)
        warn_unregistered(options.mix_list_changes, session)
        if kept is not None:
            kept.warn_unknown(graph)
        if changed:
            graph.attrs[UNSETTLED] = True
        return changed


@dataclass
class _Choice:
    """The choice for one model."""

    session: CompileSession
    rule: Rule
    has_bf16: bool
    white: frozenset[str]
    black: frozenset[str]
    kept: KeptByName | None
    custom: CustomizedNodes
    known: set[Node] = field(default_factory=set)
    """Nodes that follow from shapes and constants alone."""

    def make(self, root: Graph) -> bool:
        changed = False
        for part in callers_first(root):
            values = ConstantValues()
            for node in part.topological_order():
                if self._follows_from_shapes(node):
                    self.known.add(node)
                changed |= self._choose(node, values.known_input)
                if node.subgraphs:
                    self._tell_bodies(node)
        return changed

    # -- what is kept --------------------------------------------------------------------------------------------------
    def _follows_from_shapes(self, node: Node) -> bool:
        if node in self.known or is_constant(node):
            return True
        found = lookup(node.type)
        if found is None or found.is_stateful or node.subgraphs:
            return False
        if found.value_infer is not None:
            return True
        sources = [source.node for source in node.inputs if source is not None]
        return bool(sources) and all(source in self.known for source in sources)

    def _tell_bodies(self, caller: Node) -> None:
        found = bodies(caller)
        slots = unchanged_slots(found["body"], caller) if "body" in found else set(range(len(caller.inputs)))
        for body in found.values():
            for data in body.data_nodes():
                slot = parent_slot(data, caller)
                source = caller.input(slot) if slot in slots else None
                if source is not None and source.node in self.known:
                    self.known.add(data)

    # -- one node ------------------------------------------------------------------------------------------------------
    def _choose(self, node: Node, value_of: ValueOf) -> bool:
        custom = self.custom.of(node)
        if custom is not None and (node.subgraphs or node.type in ("Const", "Data", "NetOutput")):
            raise _unsupported(node, "it computes nothing by itself: its types are those of what it stands between")
        if not node.inputs and custom is None:
            return False
        wanted = self._wanted(node)
        lowered = [slot for slot in lowered_slots(node) if _model_type(node, slot) is not wanted[slot]]
        if custom is not None:
            _put_custom(node, wanted, custom)
        is_wide = self._has_wide_result(node, wanted, custom)
        if is_wide:
            lowered = _keep_bias(node, wanted, lowered)
        if not is_wide and not _differs(node, wanted):
            return False
        made = _made(node, wanted, value_of, lowered, is_wide)
        if custom is not None:
            _check_outputs(node, made, custom)
        for slot, dtype in enumerate(wanted):
            desc = node.input_descs[slot]
            if desc is not None and dtype is not None:
                desc.data_type = dtype
        for desc, dtype in zip(node.output_descs, made, strict=False):
            if dtype is not desc.data_type:
                desc.attrs.setdefault(MODEL_TYPE, desc.data_type.name)
            desc.data_type = dtype
        if is_wide:
            node.attrs[OUTPUT_TYPE] = int(FP32)
        return True

    def _wanted(self, node: Node) -> list[DataType | None]:
        wanted = [None if desc is None else desc.data_type for desc in node.input_descs]
        if node in self.known or (self.kept is not None and self.kept.has(node)):
            return wanted
        for slot in as_made_slots(node):
            source = node.input(slot)
            wanted[slot] = None if source is None else source.desc.data_type
        colour, before = mix_colour(node.type, self.white, self.black), _before(node, self.known)
        for slot in lowered_slots(node):
            model = wanted[slot]
            if model in CONCERNED:
                is_cube, is_wide = node.type in CUBE, node.type in WIDE_RESULT
                wanted[slot] = self.rule(Situation(model, is_cube, is_wide, colour, before, self.has_bf16))
        return wanted

    def _has_wide_result(self, node: Node, wanted: Sequence[DataType | None], custom: CustomTypes | None) -> bool:
        """Tell whether a cube operator shall give fp32 for operands of half precision."""
        if node.type not in WIDE_RESULT or not any(dtype in CONCERNED - {FP32} for dtype in wanted):
            return False
        if custom is not None and custom.outputs and custom.outputs[0] is not None:
            return custom.outputs[0] is FP32
        is_kept = node in self.known or (self.kept is not None and self.kept.has(node))
        return not is_kept and self.rule is RULES["cube_fp16in_fp32out"] and FP16 in wanted


def _model_type(node: Node, slot: int) -> DataType | None:
    desc = node.input_descs[slot]
    return None if desc is None else desc.data_type


def _keep_bias(node: Node, wanted: list[DataType | None], lowered: Sequence[int]) -> list[int]:
    """Let the bias keep its type where sums are not rounded before it is added; return what is lowered still."""
    kept = [slot for slot in bias_slots(node) if slot in lowered]
    for slot in kept:
        wanted[slot] = _model_type(node, slot)
    return [slot for slot in lowered if slot not in kept]


def _differs(node: Node, wanted: Sequence[DataType | None]) -> bool:
    return any(_model_type(node, slot) is not dtype for slot, dtype in enumerate(wanted))


def _before(node: Node, known: set[Node]) -> DataType | None:
    """Return the type that the first producer of floats makes now, constants aside."""
    for source in node.inputs:
        if source is not None and source.node not in known and source.desc.data_type in CONCERNED:
            return source.desc.data_type
    return None


def _put_custom(node: Node, wanted: list[DataType | None], custom: CustomTypes) -> None:
    for slot, dtype in enumerate(custom.inputs):
        if dtype is None:
            continue
        model = _model_type(node, slot) if slot < len(wanted) else None
        if model is None:
            raise _unsupported(node, f"input {slot} is not there, but is to be {dtype.name}")
        if model is not dtype and not (model in CONCERNED and dtype in CONCERNED):
            raise _unsupported(node, f"input {slot} is {model.name} and cannot be {dtype.name}")
        wanted[slot] = dtype


def _check_outputs(node: Node, made: Sequence[DataType], custom: CustomTypes) -> None:
    for index, dtype in enumerate(custom.outputs):
        if dtype is not None and (index >= len(made) or made[index] is not dtype):
            found = "is not there" if index >= len(made) else f"becomes {made[index].name} by these inputs"
            raise _unsupported(node, f"output {index} {found} and cannot be {dtype.name}")


def _unsupported(node: Node, reason: str) -> ReportedError:
    return ReportedError(
        "E20001",
        opname=node.name,
        optype=node.type,
        reason=reason,
        solution="Correct the line of --customize_dtypes that is for this node.",
    )


# -- inference with the wanted types -----------------------------------------------------------------------------------
class _Wanting(InferContext):
    """Inputs have the types that the node wants. Remembers whose values were asked for."""

    def __init__(self, node: Node, definition: OpDef, value_of: ValueOf, wanted: Sequence[DataType | None]) -> None:
        super().__init__(node, definition, value_of)
        self._wanted = wanted
        self.asked: set[int] = set()

    def _typed(self, slot: int) -> TensorDesc:
        source, dtype = self.node.input(slot), self._wanted[slot]
        assert source is not None
        assert dtype is not None
        desc = source.desc.copy()
        desc.data_type = dtype
        return desc

    def desc(self, name: str) -> TensorDesc:
        slot = self._slot(name)
        return super().desc(name) if self.node.input(slot) is None else self._typed(slot)

    def descs(self, name: str) -> list[TensorDesc]:
        slots = range(*self._slices[name].indices(len(self.node.inputs)))
        return [self._typed(slot) for slot in slots if self.node.input(slot) is not None]

    def known_at(self, slot: int) -> KnownValue | None:
        self.asked.add(slot)
        return super().known_at(slot)


def _made(
    node: Node, wanted: list[DataType | None], value_of: ValueOf, lowered: Iterable[int], is_wide: bool
) -> list[DataType]:
    """Return the output types for ``wanted`` inputs; first, inputs whose values are asked for get their type back."""
    definition = lookup(node.type)
    if definition is None:
        raise ReportedError("E10501", opname=node.name, optype=node.type)
    context = _Wanting(node, definition, value_of, wanted)
    types = _inferred(context, definition, is_wide)
    asked = context.asked.intersection(lowered)
    if asked:
        for slot in asked:
            wanted[slot] = _model_type(node, slot)
        types = _inferred(_Wanting(node, definition, value_of, wanted), definition, is_wide)
    return types


def _inferred(context: _Wanting, definition: OpDef, is_wide: bool) -> list[DataType]:
    if is_wide:
        context.op = definition.attributes({**context.node.attrs, OUTPUT_TYPE: int(FP32)})
    try:
        results = [dtype for _, dtype in definition.infer(context)]
    except Misfit as fault:
        raise context.fail(fault) from fault
    return results[: len(context.node.output_descs)]
