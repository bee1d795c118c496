"""Models with control flow, each with feeds that take different ways through it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx import GraphProto, ModelProto, ValueInfoProto, helper

from tests.control_case import BOOL, COUNT, F32, GO, GOING, I64, TURN, VECTOR, Case, arrays, body, numbers
from tests.parsers.onnx_models import graph, model, node, value
from tests.scan_models import SCANS, random_values


# -- Loop --------------------------------------------------------------------------------------------------------------
def growing() -> GraphProto:
    """v += x until its sum passes 50; collects v * v and the number of the turn."""
    return body(
        [
            node("Add", "v x", "v2", "add"),
            node("ReduceSum", "v2", "sum", "sum", keepdims=0),
            node("Less", "sum limit", "go2", "less"),
            node("Mul", "v2 v2", "square", "mul"),
            node("Identity", "i", "turn", "turn"),
        ],
        [TURN, GO, value("v", [3])],
        [value("go2", [], BOOL), value("v2", [3]), value("square", [3]), value("turn", [], I64)],
        limit=np.float32(50),
    )


def loop(inputs: str) -> ModelProto:
    given = {"m": COUNT, "c": GOING, "v0": value("v0", [3]), "x": value("x", [3])}
    return model(
        [node("Loop", inputs, "last squares turns", "loop", body=growing())],
        [given[name] for name in [*(n for n in inputs.split() if n != "_"), "x"]],
        [value("last", [3]), value("squares", ["n", 3]), value("turns", ["n"], I64)],
    )


def simple_loop(
    nodes: list[Any],
    carried: list[ValueInfoProto],
    results: list[ValueInfoProto],
    *,
    inputs: Sequence[ValueInfoProto],
    outputs: Sequence[ValueInfoProto],
    formals: Sequence[ValueInfoProto] = (TURN, GO),
    going: str = "go",
    before: Sequence[Any] = (),
    initializers: dict[str, Any] | None = None,
    opset: int = 13,
    **inner: Any,
) -> ModelProto:
    """A Loop over ``m`` turns that starts from the model inputs, in order."""
    content = body(nodes, [*formals, *carried], [value(going, None, BOOL), *results], **inner)
    names = " ".join(v.name for v in inputs[: len(carried)])
    made = node("Loop", f"m _ {names}", " ".join(v.name for v in outputs), "loop", body=content)
    return model([*before, made], [COUNT, *inputs], outputs, initializers, opset=opset)


def nested_loops() -> ModelProto:
    """The inner Loop runs i turns, reads the outer loop's state, an initializer and a model input."""
    inner = body(
        [
            node("Add", "w v", "t", "plus"),
            node("Mul", "t x", "u", "times"),
            node("Add", "u shift", "w2", "shifted"),
        ],
        [value("j", [], I64), value("go_in", [], BOOL), value("w", [3])],
        [value("go_in", [], BOOL), value("w2", [3]), value("t", [3])],
    )
    outer = body(
        [
            node("Loop", "i _ v", "v2 ts", "inner", body=inner),
            node("ReduceSum", "ts", "total", "total", keepdims=0),
        ],
        [TURN, GO, value("v", [3])],
        [value("go", [], BOOL), value("v2", [3]), value("total", [])],
    )
    return model(
        [node("Loop", "m _ v0", "last totals", "outer", body=outer)],
        [COUNT, value("v0", [3]), value("x", [3])],
        [value("last", [3]), value("totals", ["n"])],
        {"shift": np.float32([0.25, 0, -0.5])},
    )


def if_in_loop() -> ModelProto:
    """Odd turns negate, even turns add a captured tensor; the condition is computed in the body."""
    then = graph([node("Neg", "v", "then_v", "neg")], [], [value("then_v", [3])])
    otherwise = graph([node("Add", "v x", "else_v", "add")], [], [value("else_v", [3])])
    return simple_loop(
        [
            node("Mod", "i two", "odd", "mod"),
            node("Cast", "odd", "is_odd", "cast", to=BOOL),
            node("If", "is_odd", "v2", "choice", then_branch=then, else_branch=otherwise),
        ],
        [value("v", [3])],
        [value("v2", [3]), value("v2", [3])],
        inputs=[value("v0", [3]), value("x", [3])],
        outputs=[value("last", [3]), value("all", ["n", 3])],
        two=np.int64(2),
    )


def loop_in_if() -> ModelProto:
    content = body(
        [node("Mul", "v x", "v2", "mul")], [TURN, GO, value("v", [3])], [value("go", [], BOOL), value("v2", [3])]
    )
    then = graph([node("Loop", "m _ x", "then_y", "loop", body=content)], [], [value("then_y", [3])])
    otherwise = graph([node("Neg", "x", "else_y", "neg")], [], [value("else_y", [3])])
    made = node("If", "c", "y", "choice", then_branch=then, else_branch=otherwise)
    return model([made], [COUNT, GOING, value("x", [3])], [value("y", [3])])


LOOPS: dict[str, Case] = {
    "loop_count_and_condition": Case(
        loop("m c v0"),
        [f | arrays(c=c) for f in numbers(0, 1, 3, 40, -2, v0=VECTOR, x=np.abs(VECTOR)) for c in (True, False)],
    ),
    "loop_count": Case(loop("m _ v0"), numbers(0, 1, 3, 40, v0=VECTOR, x=np.abs(VECTOR))),
    "loop_condition": Case(loop("_ c v0"), [arrays(c=c, v0=VECTOR, x=np.abs(VECTOR)) for c in (True, False)]),
    "loop_neither": Case(loop("_ _ v0"), [arrays(v0=VECTOR, x=x) for x in (np.abs(VECTOR), np.float32([60, 0, 0]))]),
    "loop_swaps": Case(
        simple_loop(
            [node("Add", "a b", "sum", "add")],
            [value("a", [3]), value("b", [3]), value("k", [3])],
            [value("b", [3]), value("sum", [3]), value("a", [3])],
            inputs=[value("a0", [3]), value("b0", [3]), value("k0", [3])],
            outputs=[value("a1", [3]), value("b1", [3]), value("k1", [3])],
        ),
        numbers(0, 1, 2, 7, a0=VECTOR, b0=VECTOR + 1, k0=VECTOR * 0),
    ),
    "loop_collects_its_state": Case(
        simple_loop(
            [],
            [value("a", [3]), value("b", [3])],
            [value("b", [3]), value("a", [3]), value("a", [3])],
            inputs=[value("a0", [3]), value("b0", [3])],
            outputs=[value("a1", [3]), value("b1", [3]), value("as", ["n", 3])],
        ),
        numbers(0, 1, 2, 5, a0=VECTOR, b0=VECTOR + 1),
    ),
    "loop_rotates_its_state": Case(
        simple_loop(
            [],
            [value("a", [3]), value("b", [3]), value("d", [3])],
            [value("b", [3]), value("d", [3]), value("a", [3])],
            inputs=[value("a0", [3]), value("b0", [3]), value("d0", [3])],
            outputs=[value("a1", [3]), value("b1", [3]), value("d1", [3])],
        ),
        numbers(0, 1, 2, 3, 5, a0=VECTOR, b0=VECTOR + 1, d0=VECTOR + 2),
    ),
    "loop_views_of_its_state": Case(
        simple_loop(
            [
                node("Reshape", "b flat", "b2", "reshape_b"),
                node("Reshape", "a square", "a2", "reshape_a"),
            ],
            [value("a", [4]), value("b", [2, 2])],
            [value("b2", [4]), value("a2", [2, 2])],
            inputs=[value("a0", [4]), value("b0", [2, 2])],
            outputs=[value("a1", [4]), value("b1", [2, 2])],
            flat=np.int64([4]),
            square=np.int64([2, 2]),
        ),
        numbers(0, 1, 2, 3, a0=np.arange(4, dtype=np.float32), b0=np.float32([[9, 8], [7, 6]])),
    ),
    "loop_grows": Case(
        simple_loop(
            [node("Concat", "v x", "v2", "cat", axis=0)],
            [value("v", ["n"])],
            [value("v2", ["k"])],
            inputs=[value("v0", [2]), value("x", [3])],
            outputs=[value("last", ["n"])],
        ),
        numbers(0, 1, 4, v0=VECTOR[:2], x=VECTOR),
    ),
    "loop_grows_by_its_own_length": Case(
        simple_loop(
            [
                node("Shape", "v", "s", "shape"),
                node("Expand", "x s", "ones", "expand"),
                node("Concat", "v ones", "twice", "cat", axis=0),
                node("ReduceSum", "v", "sum", "sum", keepdims=1),
            ],
            [value("v", ["n"])],
            [value("twice", ["k"]), value("sum", [1])],
            inputs=[value("v0", [2]), value("x", [1])],
            outputs=[value("last", ["n"]), value("sums", ["n", 1])],
        ),
        numbers(0, 1, 4, v0=VECTOR[:2], x=[np.float32(3)]),
    ),
    "loop_collects_scalars_and_bools": Case(
        simple_loop(
            [
                node("ReduceSum", "v", "sum", "sum", keepdims=0),
                node("Greater", "v sum", "over", "over"),
                node("Mul", "v v", "v2", "mul"),
            ],
            [value("v", [3])],
            [value("v2", [3]), value("sum", []), value("over", [3], BOOL), value("i", [], I64)],
            inputs=[value("v0", [3])],
            outputs=[value("last", [3]), value("sums", ["n"]), value("overs", ["n", 3], BOOL), value("is", ["n"], I64)],
        ),
        numbers(0, 1, 3, v0=VECTOR),
    ),
    "loop_number_and_condition_as_vectors": Case(
        simple_loop(
            [
                node("Cast", "i", "f", "cast", to=F32),
                node("Add", "v f", "v2", "add"),
                node("Less", "i last", "more", "less"),
            ],
            [value("v", [3])],
            [value("v2", [3])],
            inputs=[value("v0", [3])],
            outputs=[value("y", [3])],
            formals=[value("i", [1], I64), value("go", [1], BOOL)],
            going="more",
            last=np.int64([2]),
        ),
        numbers(0, 1, 2, 9, v0=VECTOR),
    ),
    "loop_reads_only_constants": Case(
        simple_loop(
            [node("Constant", "", "k", "k", value_floats=[1.0, 2.0, 4.0]), node("Mul", "k w", "v2", "mul")],
            [value("v", [3])],
            [value("v2", [3])],
            inputs=[value("v0", [3])],
            outputs=[value("y", [3])],
            initializers={"w": np.float32([3, 5, 7])},
        ),
        numbers(0, 1, 2, v0=VECTOR),
    ),
    "loop_of_known_length": Case(
        model(
            [node("Loop", "count yes v0", "last squares turns", "loop", body=growing())],
            [value("v0", [3]), value("x", [3])],
            [value("last", [3]), value("squares", ["n", 3]), value("turns", ["n"], I64)],
            {"count": np.int64(4), "yes": np.array(True)},
        ),
        [arrays(v0=VECTOR, x=x) for x in (VECTOR, np.float32([60, 0, 0]))],
    ),
    "loops_nested": Case(nested_loops(), numbers(0, 1, 2, 4, v0=VECTOR, x=np.float32([0.5, -1, 0.25]))),
    "if_in_loop": Case(if_in_loop(), numbers(0, 1, 2, 5, v0=VECTOR, x=VECTOR + 1)),
    "loop_in_if": Case(loop_in_if(), [f | arrays(c=c) for f in numbers(0, 1, 3, x=VECTOR) for c in (True, False)]),
}


# -- If ----------------------------------------------------------------------------------------------------------------
def branch(*nodes: Any, output: str, dims: Sequence[Any] = (3,), **initializers: Any) -> GraphProto:
    return graph(nodes, [], [value(output, dims)], initializers)


def choice(then: GraphProto, otherwise: GraphProto, output: str = "y", condition: str = "c", name: str = "") -> Any:
    return node("If", condition, output, name or f"if_{output}", then_branch=then, else_branch=otherwise)


def nested_ifs() -> ModelProto:
    """Three levels; z and the initializer w are read in the innermost only, a at the second level shadows none."""
    innermost = choice(
        branch(node("Mul", "z w", "t3", "mul"), output="t3"),
        branch(node("Add", "a x", "e3", "add"), output="e3"),
        "y3",
        "d",
    )
    middle = choice(
        branch(node("Neg", "x", "a", "neg"), innermost, output="y3"),
        branch(node("Sub", "x k", "e2", "sub"), output="e2", k=np.float32([1, 2, 3])),
        "y2",
        "c",
    )
    outer = choice(
        branch(middle, node("Abs", "y2", "t1", "abs"), output="t1"),
        branch(output="x"),
        "y",
        "d",
    )
    return model(
        [outer],
        [GOING, value("d", [], BOOL), value("x", [3]), value("z", [3])],
        [value("y", [3])],
        {"w": np.float32([2, 3, 4])},
    )


_PAIRS = [arrays(c=c, d=d) for c in (True, False) for d in (True, False)]
IFS: dict[str, Case] = {
    "ifs_nested": Case(nested_ifs(), [f | arrays(x=VECTOR, z=VECTOR * 2) for f in _PAIRS]),
    "if_gives_captured_values": Case(
        model(
            [
                node("Relu", "x", "r", "relu"),
                node(
                    "If",
                    "c",
                    "y1 y2 y3",
                    "choice",
                    then_branch=graph([], [], [value("x", [3]), value("r", [3]), value("w", [3])]),
                    else_branch=graph(
                        [node("Neg", "r", "n", "neg")], [], [value("r", [3]), value("r", [3]), value("n", [3])]
                    ),
                ),
            ],
            [GOING, value("x", [3])],
            [value("y1", [3]), value("y2", [3]), value("y3", [3])],
            {"w": np.float32([2, 3, 4])},
        ),
        [arrays(c=c, x=VECTOR) for c in (True, False)],
    ),
    "if_of_two_shapes": Case(
        model(
            [
                choice(
                    branch(node("Relu", "x", "t", "relu"), output="t"),
                    branch(node("Concat", "x x", "e", "cat", axis=0), output="e", dims=[6]),
                    "p",
                ),
                node("Mul", "p two", "y", "mul"),
            ],
            [GOING, value("x", [3])],
            [value("y", ["n"])],
            {"two": np.float32(2)},
        ),
        [arrays(c=c, x=VECTOR) for c in (True, False)],
    ),
    "if_of_constants": Case(
        model(
            [choice(branch(output="k", k=np.float32([1, 2, 3])), branch(output="w"))],
            [GOING],
            [value("y", [3])],
            {"w": np.float32([4, 5, 6])},
        ),
        [arrays(c=c) for c in (True, False)],
    ),
    "if_of_one_element": Case(
        model(
            [
                choice(
                    branch(node("Relu", "x", "t", "relu"), output="t"), branch(node("Neg", "x", "e", "neg"), output="e")
                )
            ],
            [value("c", [1], BOOL), value("x", [3])],
            [value("y", [3])],
        ),
        [arrays(c=[c], x=VECTOR) for c in (True, False)],
    ),
}


# -- sequences ---------------------------------------------------------------------------------------------------------
def _sequence(name: str, dims: Any, elem_type: int = F32) -> ValueInfoProto:
    tensor = helper.make_tensor_type_proto(elem_type, dims)
    return helper.make_value_info(name, helper.make_sequence_type_proto(tensor))


def collecting_sequence() -> ModelProto:
    """Each turn inserts a longer tensor; they are joined behind the loop."""
    content = body(
        [node("Concat", "v x", "v2", "cat", axis=0), node("SequenceInsert", "s v2", "s2", "insert")],
        [TURN, GO, value("v", ["n"]), _sequence("s", ["n"])],
        [value("go", [], BOOL), value("v2", ["n"]), _sequence("s2", ["n"])],
    )
    return model(
        [
            node("SequenceConstruct", "x", "s0", "construct"),
            node("Loop", "m _ x s0", "last s1", "loop", body=content),
            node("ConcatFromSequence", "s1", "y", "join", axis=0),
            node("SequenceLength", "s1", "n", "length"),
        ],
        [COUNT, value("x", [3])],
        [value("y", ["n"]), value("n", [], I64)],
        opset=14,
    )


def mapped_sequence() -> ModelProto:
    content = graph(
        [node("Mul", "a w", "b", "mul"), node("Shape", "a", "n", "shape")],
        [value("a", ["n"])],
        [value("b", ["n"]), value("n", [1], I64)],
    )
    return model(
        [
            node("SplitToSequence", "x parts", "s", "split"),
            node("SequenceMap", "s", "t ns", "map", body=content),
            node("ConcatFromSequence", "t", "y", "join", axis=0),
            node("ConcatFromSequence", "ns", "lengths", "join_lengths", axis=0),
        ],
        [value("x", [6])],
        [value("y", ["n"]), value("lengths", ["k"], I64)],
        {"parts": np.int64([1, 3, 2]), "w": np.float32([2])},
        opset=17,
    )


SEQUENCES: dict[str, Case] = {
    "loop_fills_a_sequence": Case(collecting_sequence(), numbers(0, 1, 3, x=VECTOR)),
    "sequence_map": Case(mapped_sequence(), [arrays(x=random_values(6))]),
}

CASES = LOOPS | SCANS | IFS | SEQUENCES
