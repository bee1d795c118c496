"""Control flow: call nodes with their bodies, and TensorFlow's older Switch and Merge.

A body is a graph of the model whose Data nodes stand for inputs of the call node (see ``ge.call_tree``); its results
are ``outputs`` in the order of the call node's outputs. Inferring a call node infers its bodies. A result that two
branches make differently, or that changes from turn to turn, is known as far as all agree. Constants that a body is
given, and a loop does not change, are known inside.

Running bodies is the executor's task, so these operators have no numpy meaning.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ge.call_tree import parent_slot, unchanged_slots
from ge.graph.graph import CycleError, Graph
from ge.graph.node import NodeOut
from ge.graph.tensor_desc import OpenDim, Shape, TensorDesc, same_dim
from ge.graph.types import DataType
from ge.ops.inference import common_type, same_as
from ge.ops.known_value import KnownValue
from ge.ops.registry import (
    Attributes,
    InferContext,
    InferFunction,
    Misfit,
    OpDef,
    OutputSpec,
    infer_node,
    operator,
    register,
)
from ge.ops.signature import parse_signature

Known = tuple[Shape, DataType]
"""What is known of a tensor at compile time."""


# -- bodies ------------------------------------------------------------------------------------------------------------
def _known(desc: TensorDesc) -> Known:
    return desc.origin_shape, desc.data_type


def _body(ctx: InferContext, ir_name: str) -> Graph:
    for name, graph_name in ctx.node.subgraphs:
        if name == ir_name:
            found = ctx.node.graph.root.subgraphs.get(graph_name)
            if found is not None:
                return found
    raise ctx.fail(f"the graph {ir_name} is missing", value=ir_name)


def _through(
    ctx: InferContext, body: Graph, arguments: Sequence[Known | None], changing: frozenset[int] = frozenset()
) -> list[Known]:
    """Infer ``body`` for ``arguments`` (by input slot of the call node) and return what is known of its results.

    The values of ``changing`` slots are not those that the call node is given.
    """
    values: dict[NodeOut, KnownValue] = {}
    for data in body.data_nodes():
        slot = parent_slot(data, ctx.node)
        known = arguments[slot] if 0 <= slot < len(arguments) else None
        if known is None:
            raise ctx.fail(f"graph {body.name} reads input {slot}, which is not connected", value=slot)
        desc = data.output_descs[0]
        desc.shape = desc.origin_shape = known[0]
        desc.data_type = known[1]
        value = None if slot in changing else ctx.known_at(slot)
        if value is not None:
            values[data.output(0)] = value
    value_of = ctx.new_value_of(values)
    try:
        order = body.topological_order()
    except CycleError as cycle:
        raise ctx.fail(f"graph {body.name} has a {cycle}") from cycle
    for node in order:
        infer_node(node, value_of, ctx.new_value_of, ctx.loops)
    return [_known(out.desc) for out in body.outputs]


def _results(
    ctx: InferContext, body: Graph, arguments: Sequence[Known | None], changing: frozenset[int] = frozenset()
) -> list[Known]:
    """Like ``_through``, for bodies whose results are those of the call node."""
    results = _through(ctx, body, arguments, changing)
    if len(results) != ctx.n_outputs:
        raise ctx.fail(f"graph {body.name} has {len(results)} outputs, the node has {ctx.n_outputs}")
    return results


def _arguments(ctx: InferContext) -> list[Known | None]:
    return [None if source is None else _known(source.desc) for source in ctx.node.inputs]


def agreed(first: Known, second: Known) -> Known:
    """Return what two views of a tensor agree on. Raises ``Misfit`` for different element types."""
    if first[1] is not second[1]:
        raise Misfit(f"element types differ: {first[1].name}, {second[1].name}")
    one, other = first[0], second[0]
    if len(one) != len(other) or one.is_unknown_rank() or other.is_unknown_rank():
        return (one if one == other else Shape([-2])), first[1]
    return Shape(a if same_dim(a, b) else -1 for a, b in zip(one, other, strict=True)), first[1]


def is_same(first: Known, second: Known) -> bool:
    """Tell whether as much is known of both: ``agreed`` has forgotten nothing."""
    pairs = zip(first[0], second[0], strict=False)
    return first == second and all(same_dim(a, b) or not isinstance(b, OpenDim) for a, b in pairs)


def _one_of(ctx: InferContext, bodies: Sequence[Graph]) -> Sequence[OutputSpec]:
    results = [_results(ctx, body, _arguments(ctx)) for body in bodies]
    merged = results[0]
    for other in results[1:]:
        merged = [agreed(a, b) for a, b in zip(merged, other, strict=True)]
    return merged


def _if(ctx: InferContext) -> Sequence[OutputSpec]:
    return _one_of(ctx, [_body(ctx, "then_branch"), _body(ctx, "else_branch")])


def _case(ctx: InferContext) -> Sequence[OutputSpec]:
    names = [name for name, _ in ctx.node.subgraphs if name.startswith("branches")]
    if not names:
        raise ctx.fail("there are no branches")
    return _one_of(ctx, [_body(ctx, name) for name in names])


def _call(ctx: InferContext) -> Sequence[OutputSpec]:
    return _results(ctx, _body(ctx, "f"), _arguments(ctx))


def _while(ctx: InferContext) -> Sequence[OutputSpec]:
    """Forget what changes until nothing does: each turn makes a dim or a rank unknown, so it ends.

    A loop inside another is inferred once per turn of the outer one, of which ever less is known: it goes on from what
    it forgot before. (From the beginning each time, the work would double with each level.)
    """
    body, condition = _body(ctx, "body"), _body(ctx, "cond")
    state = [known for known in _arguments(ctx) if known is not None]
    if len(state) != len(ctx.node.inputs) or len(state) != ctx.n_outputs:
        raise ctx.fail(f"{len(state)} inputs and {ctx.n_outputs} outputs: a loop gives back what it is given")
    changing = frozenset(range(len(state))) - unchanged_slots(body, ctx.node)
    state = [agreed(a, b) for a, b in zip(state, ctx.loops.get(ctx.node, state), strict=True)]
    while True:
        after = _results(ctx, body, state, changing)
        merged = [agreed(a, b) for a, b in zip(state, after, strict=True)]
        if all(map(is_same, merged, state)):
            break
        state = merged
    ctx.loops[ctx.node] = state
    decision = _through(ctx, condition, state, changing)
    if len(decision) != 1:
        raise ctx.fail(f"graph {condition.name} has {len(decision)} outputs, a condition has 1")
    return state


for _type in ("If", "StatelessIf"):
    register(OpDef(parse_signature(f"{_type}(cond, input*) -> output* {{then_branch, else_branch}}"), _if, None))
register(OpDef(parse_signature("Case(branch_index, input*) -> output* {branches*}"), _case, None))
for _type in ("While", "StatelessWhile"):
    register(
        OpDef(parse_signature(f"{_type}(input*) -> output* [parallel_iterations:i=10] {{cond, body}}"), _while, None)
    )
for _type in ("PartitionedCall", "StatefulPartitionedCall"):
    _form = f"{_type}(args*) -> output* [config:s= config_proto:s= executor_type:s=] {{f}}"
    register(OpDef(parse_signature(_form), _call, None, is_stateful=_type.startswith("Stateful")))


# -- what cannot be run ------------------------------------------------------------------------------------------------
def _told(ctx: InferContext) -> Sequence[OutputSpec]:
    if len(ctx.op.dtypes) != ctx.n_outputs or len(ctx.op.shapes) != ctx.n_outputs:
        raise ctx.fail(f"{ctx.n_outputs} outputs, {len(ctx.op.dtypes)} types and {len(ctx.op.shapes)} shapes")
    return [(shape, DataType(dtype)) for shape, dtype in zip(ctx.op.shapes, ctx.op.dtypes, strict=True)]


@operator("XFail() -> y* [reason:s! dtypes:I! shapes:II!]", infer=_told, is_stateful=True)
def fail(op: Attributes) -> Any:
    """Stop the run. Ours: it stands in a branch that cannot be run with the shapes of this compile."""
    raise Misfit(op.reason)


# -- TensorFlow 1 ------------------------------------------------------------------------------------------------------
def _both_ways(ctx: InferContext) -> Sequence[OutputSpec]:
    return [_known(ctx.desc("data"))] * 2


def _merge(ctx: InferContext) -> Sequence[OutputSpec]:
    descs = ctx.descs("x")
    common_type(ctx, descs)
    merged = _known(descs[0])
    for desc in descs[1:]:
        merged = agreed(merged, _known(desc))
    return [merged, ((), DataType.DT_INT32)]


def _passing(signature: str) -> None:
    infer: InferFunction = same_as("x")
    register(OpDef(parse_signature(signature), infer, None))


register(OpDef(parse_signature("Switch(data, pred) -> output_false, output_true"), _both_ways, None))
register(OpDef(parse_signature("Merge(x*) -> y, value_index"), _merge, None))
_passing("Enter(x) [frame_name:s! is_constant:b!]")
_passing("Exit(x)")
_passing("NextIteration(x)")
_passing("LoopCond(x)")
