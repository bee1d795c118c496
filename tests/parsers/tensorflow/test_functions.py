"""Functions of the library: how they are called, what stands for their attributes, and what cannot be followed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from ge.errors import ReportedError
from ge.graph import Graph
from parsers.tensorflow import graph_def_pb2 as pb
from parsers.tensorflow import precheck
from tests.parsers.evaluation import session
from tests.parsers.tensorflow.programs import function
from tests.parsers.tensorflow.tf_models import Func, Type, attr_value, const, graph, node, parsed, placeholder, run

FLOAT = Type(pb.DT_FLOAT)
F = f":{pb.DT_FLOAT}"
X = np.array([3, -1, 2], np.float32)


def func(name: str, **attrs: Any) -> pb.AttrValue:
    """An attribute that names a function and gives it attributes."""
    given = {key: attr_value(value) for key, value in attrs.items()}
    return pb.AttrValue(func=pb.NameAttrList(name=name, attr=given))


def funcs(*names: str) -> pb.AttrValue:
    return pb.AttrValue(list=pb.AttrValue.ListValue(func=[pb.NameAttrList(name=name) for name in names]))


def stands_for(name: str) -> pb.AttrValue:
    return pb.AttrValue(placeholder=name)


def unary(name: str, op: str = "Neg", **attrs: Any) -> pb.FunctionDef:
    return function(name, [f"v{F}"], [node(op, "inner", "v", **attrs)], {f"r{F}": "inner:y:0"})


def calling(**functions: pb.FunctionDef) -> pb.GraphDef:
    """A graph that calls ``f`` for ``x``."""
    return graph(placeholder("x", [3]), node("PartitionedCall", "y", "x", f=Func("f")), **functions)


def types(found: Graph) -> list[str]:
    return [n.type for part in found.all_graphs() for n in part if n.type not in ("Data", "Const")]


# -- calls -------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("op", ["PartitionedCall", "StatefulPartitionedCall"])
def test_calls_are_put_in_place(op: str) -> None:
    model = graph(placeholder("x", [3]), node(op, "y", "x", f=Func("f")), f=unary("f"))
    assert types(parsed(model)) == ["Neg"]
    assert "y/inner" in parsed(model)
    np.testing.assert_array_equal(run(model, {"x": X})[0], -X)


def test_a_function_is_called_by_its_name_as_a_type() -> None:
    model = graph(
        placeholder("x", [3]),
        node("twice", "y", "x"),
        twice=function("twice", [f"v{F}"], [node("AddV2", "sum", "v v")], {f"r{F}": "sum:z:0"}),
    )
    np.testing.assert_array_equal(run(model, {"x": X})[0], 2 * X)


def test_functions_that_call_functions_each_with_its_own_nodes() -> None:
    outer = function(
        "f",
        [f"v{F}"],
        [
            node("PartitionedCall", "a", "v", f=Func("g")),
            node("PartitionedCall", "b", "a:output:0", f=Func("g")),
            node("AddV2", "c", "a:output:0 b:output:0"),
        ],
        {f"r{F}": "c:z:0"},
    )
    model = calling(f=outer, g=unary("g", "Square"))
    assert {"y/a/inner", "y/b/inner", "y/c"} <= {n.name for n in parsed(model)}
    np.testing.assert_array_equal(run(model, {"x": X})[0], X**2 + X**4)


def test_several_results_and_arguments_handed_through() -> None:
    made = function("f", [f"a{F}", f"b{F}"], [node("Sub", "d", "a b")], {f"p{F}": "b", f"q{F}": "d:z", f"r{F}": "a"})
    model = graph(
        placeholder("x", [3]),
        placeholder("w", [3]),
        node("PartitionedCall", "c", "x w", f=Func("f")),
        *(node("Identity", f"y{k}", f"c:{k}") for k in range(3)),
        f=made,
    )
    w = np.array([1, 1, 5], np.float32)
    for found, expected in zip(run(model, {"x": X, "w": w}), [w, X - w, X], strict=True):
        np.testing.assert_array_equal(found, expected)


def test_outputs_are_named_by_argument_and_index() -> None:
    made = function(
        "f",
        [f"v{F}"],
        [
            const("k", np.int32(2)),
            node("TopKV2", "top", "v k:output:0", sorted=True),
            node("Unpack", "parts", "v", num=3, axis=0),
            node("Cast", "indices", "top:indices:0", DstT=FLOAT),
            node("Pack", "both", "parts:output:0 parts:output:2", N=2, axis=0),
            node("AddV2", "sum", "top:values:0 both:output:0"),
            node("AddV2", "all", "sum:z:0 indices:y:0"),
        ],
        {f"r{F}": "all:z:0"},
    )
    expected = np.sort(X)[::-1][:2] + X[[0, 2]] + np.argsort(-X)[:2]
    np.testing.assert_array_equal(run(calling(f=made), {"x": X})[0], expected)


def test_attributes_that_the_call_fills_in() -> None:
    made = function(
        "f",
        [f"v{F}"],
        [node("PartitionedCall", "to", "v", f=func("g", wanted=stands_for("T")))],
        {f"r{F}": "to:output:0"},
    )
    inner = function("g", [f"v{F}"], [node("Cast", "cast", "v", DstT=stands_for("wanted"))], {f"r{F}": "cast:y:0"})
    model = graph(
        placeholder("x", [3]),
        node("PartitionedCall", "a", "x", f=func("f", T=Type(pb.DT_INT32))),
        node("PartitionedCall", "b", "x", f=func("f", T=Type(pb.DT_DOUBLE))),
        f=made,
        g=inner,
    )
    assert [result.dtype for result in run(model, {"x": X})] == [np.int32, np.float64]


def test_an_attribute_has_the_default_of_the_signature() -> None:
    made = function("f", [f"v{F}"], [node("Cast", "cast", "v", DstT=stands_for("T"))], {f"r{F}": "cast:y:0"})
    made.signature.attr.add(name="T", type="type", default_value=attr_value(Type(pb.DT_INT64)))
    assert run(calling(f=made), {"x": X})[0].dtype == np.int64


def test_arguments_that_are_several_tensors() -> None:
    made = function(
        "f", ["many"], [node("AddN", "sum", "many:0 many:2", N=2)], {"first": "many", f"sum{F}": "sum:sum:0"}
    )
    made.signature.input_arg[0].number_attr = "N"
    made.signature.output_arg[0].number_attr = "N"
    model = graph(
        placeholder("x", [3]),
        node("Neg", "n", "x"),
        node("PartitionedCall", "c", "x n x", f=func("f", N=3)),
        *(node("Identity", f"y{k}", f"c:{k}") for k in range(4)),
        f=made,
    )
    for found, expected in zip(run(model, {"x": X}), [X, -X, X, 2 * X], strict=True):
        np.testing.assert_array_equal(found, expected)


def test_what_no_result_needs_is_left_out() -> None:
    made = unary("f")
    made.node_def.append(node("Exp", "unused", "v"))
    made.control_ret["unused"] = "unused"
    assert types(parsed(calling(f=made))) == ["Neg"]


def test_old_control_flow_inside_of_a_function() -> None:
    made = function(
        "f",
        [f"v{F}", f"p:{pb.DT_BOOL}"],
        [
            node("Switch", "s", "v p"),
            node("Neg", "n", "s:output_false:0"),
            node("Merge", "m", "n:y:0 s:output_true:0", N=2),
        ],
        {f"r{F}": "m:output:0"},
    )
    model = graph(
        placeholder("x", [3]), placeholder("p", [], np.bool_), node("PartitionedCall", "y", "x p", f=Func("f")), f=made
    )
    for p in (False, True):
        np.testing.assert_array_equal(run(model, {"x": X, "p": np.array(p)})[0], X if p else -X)


# -- branches and loops ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("op", ["If", "StatelessIf"])
@pytest.mark.parametrize(
    ("condition", "is_true"),
    [(np.array(True), True), (np.array(0.5, np.float32), True), (np.array(0, np.int32), False)],
    ids=["boolean", "float", "integer"],
)
def test_conditions_of_several_types(op: str, condition: np.ndarray, is_true: bool) -> None:
    model = graph(
        placeholder("c", [], condition.dtype),
        placeholder("x", [3]),
        node(op, "y", "c x", then_branch=Func("f"), else_branch=Func("g")),
        f=unary("f", "Square"),
        g=unary("g"),
    )
    assert op in types(parsed(model))
    np.testing.assert_array_equal(run(model, {"c": condition, "x": X})[0], X**2 if is_true else -X)


@pytest.mark.parametrize("shape", [(0,), (2,)])
def test_a_condition_that_is_no_scalar_is_true_unless_it_is_empty(shape: Sequence[int]) -> None:
    model = graph(
        placeholder("c", shape),
        placeholder("x", [3]),
        node("If", "y", "c x", then_branch=Func("f"), else_branch=Func("g")),
        f=unary("f", "Square"),
        g=unary("g"),
    )
    feeds = {"c": np.zeros(shape, np.float32), "x": X}
    np.testing.assert_array_equal(run(model, feeds)[0], X**2 if shape[0] else -X)


@pytest.mark.parametrize(("index", "taken"), [(0, 0), (1, 1), (2, 2), (9, 2), (-1, 2)])
@pytest.mark.parametrize("is_known", [False, True])
def test_case(index: int, taken: int, is_known: bool) -> None:
    selector = const("k", np.int32(index)) if is_known else placeholder("k", [], np.int32)
    model = graph(
        selector,
        placeholder("x", [3]),
        node("StatelessCase", "y", "k x", branches=funcs("f", "g", "h")),
        f=unary("f"),
        g=unary("g", "Square"),
        h=unary("h", "Exp"),
    )
    assert ("Case" in types(parsed(model))) is not is_known
    feeds = {"x": X} if is_known else {"x": X, "k": np.array(index, np.int32)}
    np.testing.assert_array_equal(run(model, feeds)[0], [-X, X**2, np.exp(X)][taken])


@pytest.mark.parametrize("op", ["While", "StatelessWhile"])
@pytest.mark.parametrize("turns", [0, 1, 4])
def test_a_loop_whose_value_grows(op: str, turns: int) -> None:
    turn = function(
        "turn",
        ["i", "n", f"v{F}", f"w{F}"],
        [
            const("one", np.int32(1)),
            const("axis", np.int32(0)),
            node("AddV2", "next", "i one:output:0"),
            node("ConcatV2", "joined", "v w axis:output:0", N=2),
        ],
        {"r0": "next:z:0", "r1": "n", f"r2{F}": "joined:output:0", f"r3{F}": "w"},
    )
    goes_on = function(
        "goes_on", ["i", "n", f"v{F}", f"w{F}"], [node("Less", "less", "i n")], {f"r:{pb.DT_BOOL}": "less:z:0"}
    )
    model = graph(
        placeholder("n", [], np.int32),
        placeholder("x", [3]),
        placeholder("w", [2]),
        const("zero", np.int32(0)),
        node(op, "loop", "zero n x w", cond=Func("goes_on"), body=Func("turn"), parallel_iterations=10),
        *(node("Identity", f"y{k}", f"loop:{k}") for k in range(4)),
        turn=turn,
        goes_on=goes_on,
    )
    assert op in types(parsed(model))
    w = np.array([7, 8], np.float32)
    i, n, v, fixed = run(model, {"n": np.array(turns, np.int32), "x": X, "w": w})
    assert (i, n) == (turns, turns)
    np.testing.assert_array_equal(v, np.concatenate([X, *[w] * turns]))
    np.testing.assert_array_equal(fixed, w)


def test_a_loop_that_hands_the_same_on_has_it_once() -> None:
    # the values that a body gives back as it got them are known inside, so the shape that one of them is can be used
    turn = function(
        "turn",
        [f"v{F}", "shape"],
        [node("Reshape", "r", "v shape"), node("Neg", "n", "r:output:0"), node("Identity", "same", "shape")],
        {f"r0{F}": "n:y:0", "r1": "same:output:0"},
    )
    stop = function("stop", [f"v{F}", "shape"], [const("no", np.bool_(False))], {f"r:{pb.DT_BOOL}": "no:output:0"})
    model = graph(
        placeholder("x", [3]),
        const("shape", np.array([3], np.int32)),
        node("While", "loop", "x shape", cond=Func("stop"), body=Func("turn")),
        node("Identity", "y", "loop"),
        turn=turn,
        stop=stop,
    )
    found = parsed(model)
    loop = next(n for n in found if n.type == "While")
    assert [str(source) for source in loop.inputs] == ["shape:0", "x:0"]
    assert found.outputs[0].desc.shape == (3,)


# -- what is refused ---------------------------------------------------------------------------------------------------
def recursive() -> pb.FunctionDef:
    return function("f", [f"v{F}"], [node("PartitionedCall", "again", "v", f=Func("f"))], {f"r{F}": "again:output:0"})


def chain(length: int) -> dict[str, pb.FunctionDef]:
    made = {
        f"f{k}": function(
            f"f{k}", [f"v{F}"], [node("PartitionedCall", "c", "v", f=Func(f"f{k + 1}"))], {f"r{F}": "c:output:0"}
        )
        for k in range(length)
    }
    return {**made, f"f{length}": unary(f"f{length}")}


def without_result() -> pb.FunctionDef:
    made = unary("f")
    del made.ret["r"]
    return made


def counted() -> pb.FunctionDef:
    made = function("f", ["many"], [], {"r": "many"})
    made.signature.input_arg[0].number_attr = "N"
    return made


def with_attr(**attrs: Any) -> pb.FunctionDef:
    return unary("f", "Cast", **attrs)


def test_calls_can_be_as_deep_as_this() -> None:
    model = graph(placeholder("x", [3]), node("PartitionedCall", "y", "x", f=Func("f0")), **chain(60))
    np.testing.assert_array_equal(run(model, {"x": X})[0], -X)


FAULTS: dict[str, tuple[pb.GraphDef, str, str]] = {
    "missing": (calling(g=unary("g")), "E12013", r"\[f\]"),
    "recursion": (calling(f=recursive()), "E11010", "function f calls itself"),
    "recursion_in_a_branch": (
        graph(
            placeholder("c", [], np.bool_),
            placeholder("x", [3]),
            node("If", "y", "c x", then_branch=Func("f"), else_branch=Func("g")),
            f=function(
                "f",
                [f"v{F}"],
                [
                    const("no", np.int32(0)),
                    const("half", np.float32(0.5)),
                    node("Sum", "sum", "v no:output:0"),
                    node("Greater", "more", "sum:output:0 half:output:0"),
                    node("If", "again", "more:z:0 v", then_branch=Func("f"), else_branch=Func("g")),
                ],
                {f"r{F}": "again:output:0"},
            ),
            g=unary("g"),
        ),
        "E11010",
        "function f calls itself",
    ),
    "too_deep": (
        graph(placeholder("x", [3]), node("PartitionedCall", "y", "x", f=Func("f0")), **chain(70)),
        "E11010",
        "nested deeper than 64 levels",
    ),
    "too_few_arguments": (
        graph(node("PartitionedCall", "y", "", f=Func("f")), f=unary("f")),
        "E11010",
        "function f takes 1 tensors, but is given 0",
    ),
    "no_function_named": (
        graph(placeholder("x", [3]), node("PartitionedCall", "y", "x")),
        "E11010",
        "must name a function",
    ),
    "no_branches": (
        graph(placeholder("k", [], np.int32), node("Case", "y", "k")),
        "E11010",
        "attribute branches names 0 functions",
    ),
    "branches_of_different_counts": (
        graph(
            placeholder("c", [], np.bool_),
            placeholder("x", [3]),
            node("If", "y", "c x", then_branch=Func("f"), else_branch=Func("g")),
            f=unary("f"),
            g=function("g", [f"v{F}"], [], {f"r{F}": "v", f"s{F}": "v"}),
        ),
        "E11010",
        "its branches give 1, 2 tensors",
    ),
    "a_loop_that_gives_too_little": (
        graph(
            placeholder("x", [3]),
            placeholder("w", [3]),
            node("While", "y", "x w", cond=Func("c"), body=Func("b")),
            c=function("c", [f"v{F}", f"w{F}"], [const("no", np.bool_(False))], {f"r:{pb.DT_BOOL}": "no:output:0"}),
            b=function("b", [f"v{F}", f"w{F}"], [], {f"r{F}": "v"}),
        ),
        "E11010",
        "function b gives 1 tensors, but must give 2",
    ),
    "a_result_from_nowhere": (calling(f=without_result()), "E11010", "nothing says what its result r is"),
    "a_dangling_result": (calling(f=function("f", [f"v{F}"], [], {f"r{F}": "gone:y:0"})), "E12009", "gone:0"),
    "a_dangling_input": (
        calling(f=function("f", [f"v{F}"], [node("Neg", "n", "gone:y:0")], {f"r{F}": "n:y:0"})),
        "E12009",
        "gone:0",
    ),
    "no_such_output": (
        calling(f=function("f", [f"v{F}"], [node("Unique", "u", "v")], {f"r{F}": "u:values:0"})),
        "E11010",
        "node u .Unique. has no output values, but y, idx",
    ),
    "a_wrong_index": (
        calling(f=function("f", [f"v{F}"], [node("Neg", "n", "v")], {f"r{F}": "n:y:one"})),
        "E10014",
        "n:one",
    ),
    "an_attribute_that_nobody_gives": (calling(f=with_attr(DstT=stands_for("T"))), "E11010", "gives no attribute T"),
    "a_count_that_nobody_gives": (
        calling(f=counted()),
        "E11010",
        "attribute N does not say how many tensors many is",
    ),
    "two_nodes_of_one_name": (
        calling(f=function("f", [f"v{F}"], [node("Neg", "n", "v"), node("Exp", "n", "v")], {f"r{F}": "n:y:0"})),
        "E13009",
        "n",
    ),
    "a_cycle": (
        calling(
            f=function("f", [f"v{F}"], [node("AddV2", "a", "v b:y:0"), node("Neg", "b", "a:z:0")], {f"r{F}": "b:y:0"})
        ),
        "E13025",
        "a -> b -> a|b -> a -> b",
    ),
    "a_stray_exit": (
        calling(f=function("f", [f"v{F}"], [node("Exit", "e", "v")], {f"r{F}": "e:output:0"})),
        "E11010",
        "outside of any frame",
    ),
}


@pytest.mark.parametrize(("model", "code", "reason"), FAULTS.values(), ids=FAULTS)
def test_faults_are_named(model: pb.GraphDef, code: str, reason: str) -> None:
    with pytest.raises(ReportedError, match=reason) as caught:
        parsed(model)
    assert caught.value.code == code


def test_all_unsupported_nodes_of_functions_are_named_at_once() -> None:
    inner = function("g", [f"v{F}"], [node("NoSuch", "b", "v")], {f"r{F}": "b:y:0"})
    outer = function(
        "f",
        [f"v{F}"],
        [
            node("Neither", "a", "v"),
            node("PartitionedCall", "c", "a:y:0", f=Func("g")),
            node("PartitionedCall", "d", "v", f=Func("h")),
        ],
        {f"r{F}": "c:output:0"},
    )
    with pytest.raises(ReportedError) as caught:
        parsed(calling(f=outer, g=inner))
    faults = [caught.value, *caught.value.also]
    assert [(fault.code, fault.fields.get("opname", fault.fields.get("functionname"))) for fault in faults] == [
        ("E10501", "f/a"),
        ("E10501", "g/b"),
        ("E12013", "h"),
    ]


def test_a_check_lists_the_nodes_of_functions() -> None:
    model = calling(f=unary("f"))
    listed = precheck(model.SerializeToString(), session())
    assert [(checked.name, checked.type, checked.causes) for checked in listed] == [
        ("x", "Placeholder", ()),
        ("y", "PartitionedCall", ()),
        ("f/inner", "Neg", ()),
    ]
