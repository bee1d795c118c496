"""Loops and branches of TensorFlow 1, part by part; what cannot be raised is refused by name."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ge.errors import ReportedError
from ge.option_grammar import OutNode
from parsers.tensorflow import graph_def_pb2 as pb
from parsers.tensorflow import precheck
from tests.parsers.evaluation import session
from tests.parsers.tensorflow.tf_models import Type, const, graph, node, parsed, placeholder, run

INT = Type(pb.DT_INT32)


def enter(name: str, source: str, frame: str = "loop", *, is_constant: bool = False) -> pb.NodeDef:
    return node("Enter", name, source, frame_name=frame, is_constant=is_constant)


def counting(*body: pb.NodeDef, result: str = "next", init: str = "x") -> list[pb.NodeDef]:
    """A loop of ``n`` turns that carries ``v``: nodes of ``body`` turn ``now`` into ``result``. Its Exit is ``y``."""
    return [
        placeholder("n", [], np.int32),
        const("zero", np.int32(0)),
        const("one", np.int32(1)),
        enter("limit", "n", is_constant=True),
        enter("step", "one", is_constant=True),
        enter("i/enter", "zero"),
        node("Merge", "i", "i/enter i/back", N=2),
        node("LoopCond", "goes_on", "less"),
        node("Less", "less", "i limit"),
        node("Switch", "i/switch", "i goes_on"),
        node("AddV2", "i/next", "i/switch:1 step"),
        node("NextIteration", "i/back", "i/next"),
        enter("v/enter", init),
        node("Merge", "v", "v/enter v/back", N=2),
        node("Switch", "v/switch", "v goes_on"),
        node("Identity", "now", "v/switch:1"),
        *body,
        node("NextIteration", "v/back", result),
        node("Exit", "y", "v/switch"),
    ]


def number(value: Any) -> np.ndarray:
    return np.array(value, np.int32)


# -- loops -------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("turns", [0, 1, 5])
def test_a_loop_that_reads_constants_with_and_without_enter(turns: int) -> None:
    model = graph(
        placeholder("x", [2]),
        const("two", np.float32(2)),
        const("three", np.float32(3)),
        enter("factor", "two", is_constant=True),
        *counting(node("Mul", "scaled", "now factor"), node("AddV2", "next", "scaled three")),
    )
    x = expected = np.array([1, -2], np.float32)
    for _ in range(turns):
        expected = expected * 2 + 3
    np.testing.assert_array_equal(run(model, {"x": x, "n": number(turns)})[0], expected)
    loop = next(n for n in parsed(model) if n.type == "While")
    assert loop.name == "loop"
    assert [formal for formal, _ in loop.subgraphs] == ["cond", "body"]


@pytest.mark.parametrize("turns", [0, 2])
def test_values_that_change_their_shape(turns: int) -> None:
    model = graph(
        placeholder("x", [2, 3]),
        const("axis", np.int32(0)),
        *counting(node("ConcatV2", "next", "now now axis", N=2)),
    )
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    (found,) = run(model, {"x": x, "n": number(turns)})
    np.testing.assert_array_equal(found, np.concatenate([x] * 2**turns))
    assert parsed(model).outputs[0].desc.shape == (-1, 3)


def test_several_exits_one_of_what_never_changes() -> None:
    nodes = counting(node("AddV2", "next", "now now"))
    nodes += [
        node("Exit", "turns", "i/switch"),
        node("Switch", "limit/switch", "limit goes_on"),
        node("Exit", "limit/exit", "limit/switch"),
        node("AddV2", "sum", "turns limit/exit"),
        node("Identity", "passed", "v/switch"),
        node("Exit", "again", "passed"),
    ]
    found = parsed(graph(placeholder("x", []), *nodes))
    assert found.output_names == ["y:0", "sum:0", "again:0"]
    y, total, again = run(graph(placeholder("x", []), *nodes), {"x": np.array(3, np.float32), "n": number(4)})
    assert (y, total, again) == (48, 8, 48)


def test_a_condition_with_parts_that_the_body_shares() -> None:
    # what the condition computes is there in the body too, where the loop goes on
    model = graph(
        placeholder("x", [], np.int32),
        *counting(node("Cast", "flag", "less", DstT=INT), node("AddV2", "next", "now flag")),
    )
    assert run(model, {"x": number(10), "n": number(3)})[0] == 13


def test_forms_on_references() -> None:
    nodes = counting(node("AddV2", "next", "now now"))
    for made in nodes:
        if made.op in ("Switch", "Merge", "Enter", "Exit", "NextIteration"):
            made.op = f"Ref{made.op}"
    assert run(graph(placeholder("x", []), *nodes), {"x": np.array(1, np.float32), "n": number(3)})[0] == 8


def inner_loop(prefix: str, source: str, *, result: str) -> list[pb.NodeDef]:
    """A loop in the loop of ``counting``, in a frame called ``inner``: it adds the numbers 1 to ``i``."""
    names = {name: f"{prefix}/{name}" for name in ("a", "k")}
    a, k, goes_on = names["a"], names["k"], f"{prefix}/goes_on"
    return [
        enter(f"{a}/enter", source, "inner"),
        enter(f"{k}/enter", "i/switch:1", "inner"),
        enter(f"{prefix}/floor", "none", "inner", is_constant=True),
        enter(f"{prefix}/unit", "step", "inner", is_constant=True),
        *(node("Merge", name, f"{name}/enter {name}/back", N=2) for name in (a, k)),
        node("LoopCond", goes_on, f"{prefix}/greater"),
        node("Greater", f"{prefix}/greater", f"{k} {prefix}/floor"),
        *(node("Switch", f"{name}/switch", f"{name} {goes_on}") for name in (a, k)),
        node("AddV2", f"{a}/next", f"{a}/switch:1 {k}/switch:1"),
        node("Sub", f"{k}/next", f"{k}/switch:1 {prefix}/unit"),
        *(node("NextIteration", f"{name}/back", f"{name}/next") for name in (a, k)),
        node("Exit", result, f"{a}/switch"),
    ]


@pytest.mark.parametrize("turns", [0, 1, 5])
def test_loops_in_a_loop_that_hand_captured_values_on(turns: int) -> None:
    nodes = counting(*inner_loop("first", "now", result="half"), *inner_loop("second", "half", result="next"))
    nodes.append(enter("none", "zero", is_constant=True))
    model = graph(placeholder("x", [], np.int32), *nodes)
    expected = 7 + 2 * sum(sum(range(i + 1)) for i in range(turns))
    if turns:
        # both inner loops have one frame name and stand beside each other, which makes them one frame
        with pytest.raises(ReportedError, match="frame inner is not well formed: it has 2 LoopCond"):
            parsed(model)
        for made in model.node:
            if made.name.startswith("second/") and made.op == "Enter":
                made.attr["frame_name"].s = b"inner_2"
        assert run(model, {"x": number(7), "n": number(turns)})[0] == expected


# -- branches ----------------------------------------------------------------------------------------------------------
def branching(*merges: pb.NodeDef) -> pb.GraphDef:
    """``x`` behind a Switch on ``p``: negated where ``p`` is false, plus 1 where it is true."""
    return graph(
        placeholder("x", [2]),
        placeholder("p", [], np.bool_),
        node("Switch", "s", "x p"),
        node("Switch", "pivot", "p p"),
        node("Identity", "on", "pivot:1"),
        node("NoOp", "wait", "^on"),
        const("late", np.float32(1)),
        node("Neg", "negated", "s"),
        node("AddV2", "more", "s:1 late"),
        *merges,
    )


X = np.array([1.5, -2], np.float32)


@pytest.mark.parametrize("p", [False, True])
@pytest.mark.parametrize(("inputs", "index"), [("negated more", [0, 1]), ("more negated", [1, 0])])
def test_a_merge_says_which_input_it_took(p: bool, inputs: str, index: list[int]) -> None:
    model = branching(node("Merge", "m", inputs, N=2), node("Cast", "which", "m:1", DstT=INT), node("Neg", "y", "m"))
    which, y = run(model, {"x": X, "p": np.array(p)})
    np.testing.assert_array_equal(y, -(X + 1) if p else X)
    assert which == index[p]


@pytest.mark.parametrize("p", [False, True])
def test_values_that_only_pass_and_constants_that_wait(p: bool) -> None:
    waiting = const("waiting", np.array([7, 7], np.float32))
    waiting.input.append("^wait")
    model = branching(waiting, node("Merge", "y", "s waiting", N=2))
    np.testing.assert_array_equal(run(model, {"x": X, "p": np.array(p)})[0], [7, 7] if p else X)


def test_what_is_in_a_branch_and_nobody_reads_is_no_output() -> None:
    model = branching(node("Neg", "dead_end", "more"), node("Merge", "y", "negated more", N=2))
    assert parsed(model).output_names == ["y:0"]


def test_the_merges_of_one_predicate_become_one_node() -> None:
    model = branching(node("Merge", "a", "negated more", N=2), node("Merge", "b", "s more", N=2))
    found = parsed(model)
    assert [n.type for n in found].count("If") == 1
    a, b = run(model, {"x": X, "p": np.array(False)})
    np.testing.assert_array_equal(a, -X)
    np.testing.assert_array_equal(b, X)


@pytest.mark.parametrize("p", [False, True])
@pytest.mark.parametrize("q", [False, True])
def test_merges_that_need_each_other_crosswise(p: bool, q: bool) -> None:
    # m1 and m4 go by p, m2 and m3 by q; m2 needs m1, m4 needs m3
    model = branching(
        placeholder("q", [], np.bool_),
        node("Merge", "m1", "negated more", N=2),
        node("Switch", "t", "m1 q"),
        node("Neg", "t/negated", "t"),
        node("Merge", "m2", "t/negated t:1", N=2),
        node("Switch", "u", "x q"),
        node("Neg", "u/negated", "u"),
        node("Merge", "m3", "u/negated u:1", N=2),
        node("Switch", "w", "m3 p"),
        node("AddV2", "w/twice", "w w"),
        node("Merge", "m4", "w/twice w:1", N=2),
    )
    m1, m3 = (X + 1 if p else -X), (X if q else -X)
    m2, m4 = run(model, {"x": X, "p": np.array(p), "q": np.array(q)})
    np.testing.assert_array_equal(m2, m1 if q else -m1)
    np.testing.assert_array_equal(m4, m3 if p else 2 * m3)


@pytest.mark.parametrize(("index", "taken"), [(0, 0), (1, 1), (2, 2), (7, 2), (-1, 2)])
def test_a_switch_of_several_outputs(index: int, taken: int) -> None:
    model = graph(
        placeholder("x", [2]),
        placeholder("k", [], np.int32),
        node("_SwitchN", "s", "x k", num_outs=3),
        node("Neg", "a", "s"),
        node("AddV2", "b", "s:1 s:1"),
        node("Merge", "y", "a b s:2", N=3),
    )
    assert "Case" in [n.type for n in parsed(model)]
    np.testing.assert_array_equal(run(model, {"x": X, "k": number(index)})[0], [-X, 2 * X, X][taken])


def test_a_constant_predicate_leaves_one_branch() -> None:
    model = graph(
        placeholder("x", [2]),
        const("is_training", np.bool_(False)),
        node("Switch", "s", "x is_training"),
        node("Exp", "e", "s:1"),
        node("Merge", "y", "s e", N=2),
    )
    assert not {"If", "Exp"} & {n.type for n in parsed(model)}
    np.testing.assert_array_equal(run(model, {"x": X})[0], X)


def test_branches_of_different_shapes() -> None:
    model = branching(
        const("axis", np.int32(0)), node("ConcatV2", "twice", "s s axis", N=2), node("Merge", "y", "twice s:1", N=2)
    )
    assert parsed(model).outputs[0].desc.shape == (-1,)
    np.testing.assert_array_equal(run(model, {"x": X, "p": np.array(False)})[0], [*X, *X])


# -- what is refused ---------------------------------------------------------------------------------------------------
def without(nodes: list[pb.NodeDef], *names: str) -> list[pb.NodeDef]:
    return [made for made in nodes if made.name not in names]


BODY = node("AddV2", "next", "now now")
REFUSED: dict[str, tuple[pb.GraphDef, str, str]] = {
    "exit_alone": (graph(placeholder("x", []), node("Exit", "y", "x")), "y", "outside of any frame"),
    "next_alone": (graph(placeholder("x", []), node("NextIteration", "y", "x")), "y", "outside of any frame"),
    "loop_cond_alone": (graph(placeholder("x", [], np.bool_), node("LoopCond", "y", "x")), "y", "outside of any frame"),
    "no_condition": (
        graph(placeholder("x", []), enter("e", "x"), node("Exit", "y", "e")),
        "e",
        "frame loop is not well formed: it has no LoopCond",
    ),
    "two_conditions": (
        graph(placeholder("x", []), *counting(BODY, node("LoopCond", "other", "less"), node("Exit", "z", "other"))),
        "other",
        "has 2 LoopCond nodes",
    ),
    "no_next_iteration": (
        graph(
            placeholder("x", []), *without(counting(BODY), "v/back", "v"), node("Merge", "v", "v/enter v/enter", N=2)
        ),
        "v",
        "must join one Enter and one NextIteration",
    ),
    "never_ends": (
        graph(placeholder("x", []), *without(counting(BODY), "v/back"), node("NextIteration", "v/back", "v")),
        "v/back",
        "the loop would never end",
    ),
    "first_turn_only": (
        graph(placeholder("x", []), enter("first", "x"), *counting(node("AddV2", "next", "now first"))),
        "next",
        "it needs first, which is only there in the first turn",
    ),
    "value_of_the_end": (
        graph(placeholder("x", []), *counting(node("AddV2", "next", "now v/switch"))),
        "next",
        "behind the last turn",
    ),
    "which_turn": (
        graph(
            placeholder("x", []),
            *counting(node("Cast", "f", "v:1", DstT=Type(pb.DT_FLOAT)), node("AddV2", "next", "now f")),
        ),
        "f",
        "asks which turn",
    ),
    "exit_of_a_turn": (
        graph(placeholder("x", []), *counting(BODY), node("Exit", "z", "next")),
        "z",
        "must take a value of the loop behind the last turn",
    ),
    "two_frames": (
        graph(
            placeholder("x", []),
            enter("a", "x", "one"),
            enter("b", "x", "two"),
            node("AddV2", "c", "a b"),
            node("Exit", "y", "c"),
        ),
        "c",
        "frames one and two, neither of which is inside the other",
    ),
    "no_frame_name": (graph(placeholder("x", []), node("Enter", "e", "x"), node("Exit", "y", "e")), "e", "frame_name"),
    "merge_of_living": (
        graph(placeholder("x", []), node("Neg", "a", "x"), node("Merge", "y", "a x", N=2)),
        "y",
        "not the branches of one Switch: a:0 lives always, x:0 lives always",
    ),
    "merge_of_two_predicates": (
        branching(placeholder("q", [], np.bool_), node("Switch", "t", "x q"), node("Merge", "y", "s t:1", N=2)),
        "y",
        "s:0 lives if p:0 is 0, t:1 lives if q:0 is 1",
    ),
    "merge_of_one_outcome": (branching(node("Merge", "y", "negated s", N=2)), "y", "not the branches of one Switch"),
    "a_third_output": (branching(node("Neg", "z", "s:2"), node("Merge", "y", "z more", N=2)), "s", "has 2 outputs"),
    "no_count": (
        graph(
            placeholder("x", []), placeholder("k", [], np.int32), node("_SwitchN", "s", "x k"), node("Neg", "y", "s:1")
        ),
        "s",
        "num_outs",
    ),
}


@pytest.mark.parametrize(("model", "name", "reason"), REFUSED.values(), ids=REFUSED)
def test_what_is_no_loop_and_no_branch_is_refused(model: pb.GraphDef, name: str, reason: str) -> None:
    with pytest.raises(ReportedError) as caught:
        parsed(model)
    assert caught.value.code == "E11010"
    assert f"[{name}]" in caught.value.message
    assert reason in caught.value.message


def test_a_check_blames_the_node_that_does_not_fit() -> None:
    model, name, reason = REFUSED["never_ends"]
    blamed = [checked for checked in precheck(model.SerializeToString(), session()) if checked.causes]
    assert [checked.name for checked in blamed] == [name]
    assert reason in blamed[0].causes[0].message


LESS = node("Less", "less", "i/switch:1 limit")


@pytest.mark.parametrize(
    ("model", "cycle"),
    [
        (graph(placeholder("x", []), node("AddV2", "a", "x b"), node("Neg", "b", "a"), enter("y", "b")), {"a", "b"}),
        (
            graph(placeholder("x", []), *without(counting(BODY), "less"), LESS),
            {"goes_on", "less", "i/switch"},
        ),
    ],
    ids=["plain", "condition_of_itself"],
)
def test_a_cycle_without_next_iteration(model: pb.GraphDef, cycle: set[str]) -> None:
    with pytest.raises(ReportedError, match="nodes wait for each other") as caught:
        parsed(model)
    assert caught.value.code == "E13025"
    assert set(caught.value.message.split(": ")[-1].split(" -> ")) == cycle


@pytest.mark.parametrize(
    ("model", "name", "reason"),
    [
        (graph(placeholder("x", []), *counting(BODY)), "next", "a value for each turn of the loop loop"),
        (branching(node("Merge", "y", "negated more", N=2)), "more", "is only there if p:0 is 1"),
        (branching(node("Merge", "y", "negated more", N=2)), "s", "is only there if p:0 is 0"),
    ],
)
def test_outputs_inside_of_loops_and_branches(model: pb.GraphDef, name: str, reason: str) -> None:
    with pytest.raises(ReportedError, match=reason):
        parsed(model, out_nodes=(OutNode(name, 0),))


def test_nothing_outside_of_branches_to_give() -> None:
    with pytest.raises(ReportedError, match="inside of loops and branches") as caught:
        parsed(branching())
    assert caught.value.code == "E13031"


@pytest.mark.parametrize("depth", [30, 70])
def test_frames_can_be_nested_so_deep(depth: int) -> None:
    nodes = [placeholder("x", []), const("stop", np.bool_(False))]
    source = "x"
    for k in range(depth):
        nodes += [enter(f"e{k}", source, f"f{k}"), node("Merge", f"m{k}", f"e{k} b{k}", N=2)]
        nodes += [
            node(
                "LoopCond",
                f"c{k}",
                "stop",
            ),
            node("Switch", f"s{k}", f"m{k} c{k}"),
        ]
        nodes[-2].input.append(f"^m{k}")
        source = f"s{k}:1"
    for k in reversed(range(depth)):
        nodes += [node("NextIteration", f"b{k}", source), node("Exit", f"x{k}", f"s{k}")]
        source = f"x{k}"
    nodes.append(node("Neg", "y", source))
    if depth < 64:
        assert run(graph(*nodes), {"x": np.array(2, np.float32)})[0] == -2
    else:
        with pytest.raises(ReportedError, match="nested deeper than 64 levels"):
            parsed(graph(*nodes))
