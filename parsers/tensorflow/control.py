"""Control flow: nodes that call functions of the library, or bodies that were made of TensorFlow 1's nodes.

What a call runs is built anew for each call, so a function's nodes know the shapes that they are given.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from ge.graph import DataType, NodeOut
from ge.graph.types import has_numpy_dtype, numpy_dtype
from parsers import call_bodies
from parsers.call_bodies import Argument, LoopBuilder, new_graph
from parsers.call_branches import Branch, ChoiceBuilder
from parsers.ge_nodes import Mapped
from parsers.tensorflow.control_branches import MAX_BRANCHES
from parsers.tensorflow.frames import PASSING, malformed
from parsers.tensorflow.functions import Called
from parsers.tensorflow.mapping import maps
from parsers.tensorflow.node_builder import NodeBuilder
from parsers.tensorflow.tf_graph import TfBody

Body = call_bodies.Body[NodeBuilder]
Turn = call_bodies.Turn[Body]


def open_body(n: NodeBuilder, name: str) -> Body:
    """Add the graph of a body of ``n``; inner nodes are named ``<graph>/<node>``."""
    builder = n.builder.inside(new_graph(n, name, n.builder.depth), f"{name}/")
    return Body(n.inside(builder), n.builder)


def _fill(content: TfBody, body: Body, inputs: list[NodeOut]) -> list[NodeOut]:
    return body.n.builder.add_body(body.n, content, inputs)


def _arguments(content: TfBody, sources: Sequence[NodeOut]) -> list[Argument]:
    return [
        Argument(references[0].node if references else f"argument_{k}", source)
        for k, (references, source) in enumerate(zip(content.arguments, sources, strict=True))
    ]


def truth(n: NodeBuilder, source: NodeOut) -> NodeOut:
    """Return a condition as one boolean. A number is true unless it is 0, any other tensor unless it is empty."""
    shape, dtype = n.shape(source), n.dtype(source)
    if shape.is_unknown_rank() or len(shape):
        if shape.elements < 0:
            raise n.fail(f"its condition is {source.desc!r}, but must be one value")
        return n.const("Condition", np.bool_(shape.elements > 0))
    if dtype is DataType.DT_BOOL:
        return source
    if not has_numpy_dtype(dtype) or numpy_dtype(dtype).kind not in "iufV":
        raise n.fail(f"its condition is {source.desc!r}, but must be a boolean or a number")
    return n.add("NotEqual", source, n.scalar("Zero", 0, dtype), role="Condition").output()


# -- branches ----------------------------------------------------------------------------------------------------------
@maps("If", "StatelessIf", inputs=(1, None))
def if_(n: NodeBuilder) -> Mapped:
    """Before: If(cond, inputs...) {then_branch, else_branch}. After: the same in GE, or the branch always taken.

    A condition that is known now decides here; the other branch need not even fit the shapes.
    """
    contents = [n.body(formal, len(n.inputs) - 1) for formal in ("then_branch", "else_branch")]
    condition = truth(n, n.need(0))
    decision = n.value(condition)
    taken = None if decision is None else 0 if decision.reshape(-1)[0] else 1
    return _choice(n, n.op_type, condition, contents, ["then_branch", "else_branch"], taken)


@maps("Case", "StatelessCase", inputs=(1, None))
def case(n: NodeBuilder) -> Mapped:
    """Before: Case(branch_index, inputs...) {branches}. After: Case, or the branch that is always taken.

    An index out of range takes the last branch.
    """
    contents = _case_bodies(n)
    index = n.need(0)
    decision = n.ints(index)
    taken = None
    if decision is not None and len(decision) == 1:
        taken = decision[0] if 0 <= decision[0] < len(contents) else len(contents) - 1
    return _choice(n, "Case", index, contents, [f"branches{k}" for k in range(len(contents))], taken)


def _case_bodies(n: NodeBuilder) -> list[TfBody]:
    n_inputs = len(n.inputs) - 1
    if n.node.bodies:
        return [n.checked(body, n_inputs) for body in n.node.bodies.values()]
    value = n.node.attributes.get("branches")
    funcs = [] if value is None or value.WhichOneof("value") != "list" else list(value.list.func)
    if not 1 <= len(funcs) <= MAX_BRANCHES:
        raise n.fail(f"attribute branches names {len(funcs)} functions, but must name 1 to {MAX_BRANCHES}")
    library = n.builder.context.functions
    return [n.checked(library.body(Called(func.name, dict(func.attr))), n_inputs) for func in funcs]


def _choice(
    n: NodeBuilder,
    type: str,
    selector: NodeOut,
    contents: Sequence[TfBody],
    formals: Sequence[str],
    taken: int | None,
) -> Mapped:
    counts = {len(content.results) for content in contents}
    if len(counts) > 1:
        raise n.fail(f"its branches give {', '.join(map(str, sorted(counts)))} tensors, but must give equally many")
    sources = n.sources()[1:]
    if taken is not None:
        n.builder.session.info(f"node {n.name} ({n.op_type}) always takes its {formals[taken]}")
        return n.builder.inline(n, contents[taken], sources)
    captured = _arguments(contents[0], sources)
    branches = [Branch(formal, partial(_fill, content)) for formal, content in zip(formals, contents, strict=True)]
    return ChoiceBuilder(n, partial(open_body, n), captured).add(
        type, selector, branches, counts.pop(), None, n.builder.session.warn
    )


# -- loops -------------------------------------------------------------------------------------------------------------
@maps("While", "StatelessWhile", inputs=(0, None))
def while_(n: NodeBuilder) -> Mapped:
    """Before: While(inputs...) {cond, body}. After: the same in GE; what the body hands on as it is comes first.

    The state of the new loop is (what never changes..., what changes...).
    """
    count = len(n.inputs)
    condition, content = n.body("cond", count, 1), n.body("body", count, count)
    sources = n.sources()
    arguments = _arguments(content, sources)
    fixed_slots = [k for k in range(count) if _is_handed_on(content, k)]
    slots = [*fixed_slots, *(k for k in range(count) if k not in set(fixed_slots))]
    position = {slot: k for k, slot in enumerate(slots)}
    n_fixed = len(fixed_slots)

    def values(turn: Turn) -> list[NodeOut]:
        given = [*turn.fixed, *turn.carried]
        return [given[position[slot]] for slot in range(count)]

    def turn(turn: Turn) -> list[NodeOut]:
        results = _fill(content, turn.body, values(turn))
        return [results[slot] for slot in slots[n_fixed:]]

    def goes_on(turn: Turn) -> NodeOut:
        return truth(turn.body.n, _fill(condition, turn.body, values(turn))[0])

    fixed, carried = ([arguments[slot] for slot in part] for part in (fixed_slots, slots[n_fixed:]))
    after = LoopBuilder(n, partial(open_body, n), fixed, carried, n.op_type).add(turn, goes_on)
    return [sources[slot] if slot in fixed_slots else after[position[slot] - n_fixed] for slot in range(count)]


def _is_handed_on(content: TfBody, slot: int) -> bool:
    """True when a body gives back an argument as it got it."""
    nodes = {node.name: node for node in content.nodes}
    reference, seen = content.results[slot], set()
    while reference not in content.arguments[slot] and reference not in seen:
        seen.add(reference)
        node = nodes.get(reference.node)
        if node is None or node.op not in PASSING or reference.output or not node.inputs:
            return False
        reference = node.inputs[0]
    return reference in content.arguments[slot]


# -- calls -------------------------------------------------------------------------------------------------------------
@maps("PartitionedCall", "StatefulPartitionedCall", inputs=(0, None))
def call(n: NodeBuilder) -> Mapped:
    """Before: PartitionedCall(args...) {f}. After: the nodes of the function, named ``<call>/<node>``."""
    return n.builder.inline(n, n.body("f", len(n.inputs)), n.sources())


# -- TensorFlow 1 ------------------------------------------------------------------------------------------------------
@maps("Switch", "RefSwitch", "_SwitchN", inputs=2)
@maps("Merge", "RefMerge", inputs=(1, None))
@maps("Enter", "RefEnter", "Exit", "RefExit", "NextIteration", "RefNextIteration", "LoopCond", inputs=1)
def stray(n: NodeBuilder) -> Mapped:
    """Before: a part of a loop or a branch. After: nothing, loops and branches are raised before any node is mapped."""
    raise malformed(n.node, "it belongs to no loop and no branch that is whole")
