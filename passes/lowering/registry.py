"""Which operators have a lowering, and what a lowering works with.

    pointwise("AddV2", "Add")                    one line for an operator that is one functor over its inputs

    @lowering("ReduceSum", needs="reduce")
    def reduce_sum(node: NodeLowering) -> None:
        ...

A lowering stores an expression for every output, or raises :class:`Refusal`. ``needs`` is the loop pass that must be
on; ``is_ours`` marks lowerings that CANN does not have, which the ``cann`` profile leaves out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ge.formats import is_private, lies_in_origin
from ge.graph import DataType, Node, NodeOut
from ge.ops import lookup
from ge.ops.registry import Attributes, const_value
from passes.lowering.loop_builder import LoopBuilder
from passes.lowering.loop_ir import LoopOp
from passes.lowering.refusal import Refusal, Rule
from passes.lowering.storage_axes import check_same_layout
from passes.lowering.strategy import LoweringStrategy

Lower = Callable[["NodeLowering"], None]


@dataclass(frozen=True)
class Lowering:
    """How one operator type is lowered."""

    lower: Lower
    needs: str = ""
    is_ours: bool = False


_LOWERINGS: dict[str, Lowering] = {}


def lowering(*types: str, needs: str = "", is_ours: bool = False) -> Callable[[Lower], Lower]:
    """Register the decorated function as the lowering of operator types."""

    def decorate(function: Lower) -> Lower:
        for name in types:
            if name in _LOWERINGS:
                raise ValueError(f"operator {name} has two lowerings")
            _LOWERINGS[name] = Lowering(function, needs, is_ours)
        return function

    return decorate


def pointwise(name: str, functor: str = "", *, is_ours: bool = False) -> None:
    """Register an operator that applies one functor (by default that of its name) to its broadcast inputs."""
    chosen = functor or name
    lowering(name, is_ours=is_ours)(lambda node: node.store(node.loops.functor(chosen, *node.operands())))


def find_lowering(name: str) -> Lowering | None:
    """Return the lowering of an operator type, if it has one."""
    return _LOWERINGS.get(name)


def lowered_types() -> list[str]:
    """Return the operator types that have a lowering, sorted."""
    return sorted(_LOWERINGS)


class NodeLowering:
    """One node that is being lowered: its inputs as expressions, its attributes, and where its results go."""

    def __init__(
        self, node: Node, loops: LoopBuilder, strategy: LoweringStrategy, realize: Callable[[NodeOut], None]
    ) -> None:
        self.node = node
        self.loops = loops
        self.strategy = strategy
        self.results: dict[int, LoopOp] = {}
        self.is_material = False
        """Whether fusion ends with the results, whoever reads them."""
        self.disables_lifting = False
        self._realize = realize
        loops.origin = node.name
        definition = lookup(node.type)
        assert definition is not None  # a graph of unregistered types is not legal
        self._slices = definition.signature.input_slices(len(node.inputs))
        self.op: Attributes = definition.attributes(node.attrs)

    # -- inputs -------------------------------------------------------------------------------------------------------
    def source(self, name: str) -> NodeOut | None:
        """Return what an input reads; ``None`` when it is absent."""
        part = self.node.inputs[self._slices[name]]
        return part[0] if part else None

    def input_named(self, name: str) -> NodeOut:
        """Return what an input reads. Raises :class:`Refusal` when it is absent."""
        source = self.source(name)
        if source is None:
            raise self.refusal(f"input {name} is not connected")
        return source

    def sources(self, name: str) -> list[NodeOut]:
        """Return what a dynamic input reads."""
        return [source for source in self.node.inputs[self._slices[name]] if source is not None]

    def load(self, name: str) -> LoopOp:
        """Return an input as it is."""
        return self.loops.load(self.input_named(name))

    def ints(self, name: str) -> list[int] | None:
        """Return the constant whole numbers of an input; ``None`` when they are not known."""
        slot = self._slices[name].start
        known = const_value(self.node, slot) if self.node.input(slot) is not None else None
        return None if known is None or known.whole is None else [int(v) for v in known.whole.ravel()]

    def operand(self, source: NodeOut, output: int = 0) -> LoopOp:
        """Return an input, repeated to the dims of an output; the layouts of both must go together."""
        target = self.node.output_descs[output]
        value = self.loops.load(source)
        if value.type == "Scalar":
            return value
        check_same_layout(source.desc, target)
        return self.loops.broadcast(value, target.shape)

    def operands(self) -> list[LoopOp]:
        """Return all inputs, repeated to the dims of the output."""
        return [self.operand(source) for source in self.node.inputs if source is not None]

    def realize(self, source: NodeOut) -> LoopOp:
        """Make an input a tensor, whatever it is, and load that."""
        self._realize(source)
        return self.loops.load_memory(source)

    # -- what may be --------------------------------------------------------------------------------------------------
    def refusal(self, detail: str, rule: Rule = Rule.NOT_EXPRESSIBLE) -> Refusal:
        """Return what to raise: ``raise node.refusal("...")``."""
        return Refusal(rule, detail)

    def require_plain(self) -> None:
        """Check that all tensors lie as the model has them: their dims are those that the attributes speak of."""
        descs = [source.desc for source in self.node.inputs if source is not None]
        for desc in (*descs, *self.node.output_descs):
            if is_private(desc.format) or (not lies_in_origin(desc) and desc.shape != desc.origin_shape):
                raise self.refusal(f"loops over {desc.format.name}", Rule.LAYOUT)
            if not lies_in_origin(desc):
                raise self.refusal(f"axes of {desc.format.name} beside {desc.origin_format.name}", Rule.LAYOUT)

    @property
    def dims(self) -> tuple[int, ...]:
        """The dims of the first output, as stored."""
        return tuple(self.node.output_descs[0].shape)

    @property
    def dtype(self) -> DataType:
        """The element type of the first output."""
        return self.node.output_descs[0].data_type

    def number(self, value: float, dtype: DataType | None = None) -> LoopOp:
        """Return a number in the type of the output, or another one."""
        return self.loops.scalar(value, self.dtype if dtype is None else dtype)

    def is_read(self, tensor: NodeOut) -> bool:
        """Tell whether somebody reads a tensor, or it is a result of the graph."""
        return bool(self.node.consumers(tensor.index)) or tensor in self.node.graph.outputs

    # -- results ------------------------------------------------------------------------------------------------------
    def store(self, value: LoopOp, output: int = 0) -> None:
        """Make a value an output."""
        self.results[output] = self.loops.store(self.node.output(output), value)

    def store_reshape(self, value: LoopOp) -> None:
        """Make a value the output, of which only the shape is new."""
        self.results[0] = self.loops.store_reshape(self.node.output(), value)

    def store_root(self, root: LoopOp, output: int = 0) -> None:
        """Make a root that is no plain store an output; fusion ends with it."""
        self.results[output] = root
        self.is_material = True

    def apply(self, functor: str, *values: LoopOp, **attrs: Any) -> LoopOp:
        """Apply a functor."""
        return self.loops.functor(functor, *values, **attrs)


def normalised_axes(axes: Sequence[int], rank: int) -> list[int]:
    """Return axes counted from the front, in order. Raises :class:`Refusal` for those that are none."""
    if any(not -rank <= axis < rank for axis in axes):
        raise Refusal(Rule.NOT_EXPRESSIBLE, f"axes {list(axes)} of {rank}")
    return sorted({axis % rank for axis in axes})
