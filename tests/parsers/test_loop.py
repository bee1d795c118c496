"""Loop, Scan, If and sequences as parsed: what graphs they become, and that these mean what onnxruntime computes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, numpy_helper

from ge.call_tree import bodies
from ge.errors import ReportedError
from ge.graph import Graph
from ge.verify import verify
from parsers.onnx import parse
from tests.control_case import Case, body
from tests.control_models import CASES, LOOPS, loop
from tests.parsers.evaluation import evaluate, parse_model, session
from tests.parsers.onnx_models import graph, model, node, value
from tests.scan_models import SCANS, running_sum, scan

I64, BOOL = TensorProto.INT64, TensorProto.BOOL


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_parsed_graphs_agree_with_onnxruntime(case: Case) -> None:
    parsed = parse_model(case.model)
    verify(parsed)
    for feeds, expected in zip(case.feeds, case.expected(), strict=True):
        found = evaluate(parsed, [feeds[data.name] for data in parsed.data_nodes()])
        for ours, theirs in zip(found, expected, strict=True):
            assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
            np.testing.assert_allclose(ours, theirs, rtol=1e-6)


def names(parsed: Graph, call: str) -> list[str]:
    return [source.node.name for source in parsed.find(call).inputs]


# -- Loop --------------------------------------------------------------------------------------------------------------
def test_a_loop_becomes_a_while() -> None:
    parsed = parse_model(LOOPS["loop_count_and_condition"].model)
    while_ = parsed.find("loop")
    assert (while_.type, dict(while_.subgraphs)) == ("While", {"cond": "loop_0_cond", "body": "loop_1_body"})
    carried = ["loop_Iteration", "c", "v0", "loop_Buffer_0", "loop_Buffer_1"]
    assert names(parsed, "loop") == ["x", "m", *carried], "what is captured, the trip count, then what changes"
    turn = bodies(while_)["body"]
    labels = ["x", "trip_count", "i", "go", "v", "scan_0", "scan_1"]
    assert [data.name for data in turn.data_nodes()] == [f"loop_1_body/{label}" for label in labels]
    assert [data.attrs["_parent_node_index"] for data in turn.data_nodes()] == list(range(7))
    assert [out.node.name for out in turn.outputs[:2]] == ["loop_1_body/x", "loop_1_body/trip_count"]
    assert [out.node.type for out in turn.outputs[2:]] == ["Add", "Less", "Add", "XScanAppend", "XScanAppend"]
    assert {n.type for n in bodies(while_)["cond"]} == {"Data", "Less", "LogicalAnd"}
    assert [n.type for n in parsed if n.name.startswith("loop_Scan")] == ["XScanStack", "XScanStack"]
    assert [out.desc.shape for out in parsed.outputs] == [(3,), (-1, 3), (-1,)]


@pytest.mark.parametrize(
    ("inputs", "kept", "condition"),
    [
        ("m _ v0", ["m"], {"Data", "Less", "LogicalAnd"}),
        ("_ c v0", [], {"Data"}),
        ("_ _ v0", [], {"Data"}),
    ],
)
def test_what_is_not_given_is_not_asked(inputs: str, kept: list[str], condition: set[str]) -> None:
    parsed = parse_model(loop(inputs))
    first = "c" if "c" in inputs.split() else "loop_Condition"
    assert names(parsed, "loop")[: len(kept) + 3] == ["x", *kept, "loop_Iteration", first]
    assert {n.type for n in bodies(parsed.find("loop"))["cond"]} == condition


def counting(trip: Any, first: Any, going: str = "go", **inner: Any) -> ModelProto:
    """A Loop that collects its state; trip count and first condition are constants, or model inputs where None."""
    content = body(
        [node("Neg", "v", "w", "neg")],
        [value("i", [], I64), value("go", [], BOOL), value("v", [3])],
        [value(going, [], BOOL), value("w", [3]), value("w", [3])],
        **inner,
    )
    constants = {"m": trip, "c": first}
    inputs = [value("m", [], I64)] * (trip is None) + [value("c", [], BOOL)] * (first is None)
    return model(
        [node("Loop", "m c x", "y all", "loop", body=content)],
        [*inputs, value("x", [3])],
        [value("y", [3]), value("all", None)],
        {name: np.asarray(constant) for name, constant in constants.items() if constant is not None},
    )


@pytest.mark.parametrize(
    ("source", "count"),
    [
        (counting(np.int64(5), True), 5),
        (counting(np.int64(5), True, "yes", yes=np.array(True)), 5),
        (counting(np.int64(-5), True), 0),
        (counting(np.int64(5), False), 0),
        (counting(None, False), 0),
        (counting(np.int64(0), None), 0),
        (counting(np.int64(5), None), -1),
        (counting(None, True), -1),
        (counting(np.int64(5), True, "no", no=np.array(False)), -1),
    ],
    ids=["passed on", "always true", "negative", "never begins", "never begins either", "no turns", "condition unknown",
         "trip count unknown", "ends early"],
)  # fmt: skip
def test_a_known_number_of_turns_fixes_the_shape(source: ModelProto, count: int) -> None:
    parsed = parse_model(source)
    assert parsed.outputs[1].desc.shape == (count, 3)
    assert parsed.find("loop_Scan_0").attrs["count"] == count


def test_a_trip_count_alone_decides_where_the_condition_stays_true() -> None:
    parsed = parse_model(counting(None, True))
    assert {n.type for n in bodies(parsed.find("loop"))["cond"]} == {"Data", "Less"}


def test_a_loop_that_nothing_ends_is_warned_about() -> None:
    content = body([], [value("i", [], I64), value("go", [], BOOL)], [value("go", [], BOOL), value("i", [], I64)])
    source = model([node("Loop", "_ _", "y", "forever", body=content)], [value("x", [3])], [value("y", None, I64)])
    state = session()
    parse(source.SerializeToString(), state)
    assert state.warnings == ["node forever (Loop) never ends: nothing limits it"]


@pytest.mark.parametrize(
    ("name", "carried"),
    [("loop_grows", (-1,)), ("loop_grows_by_its_own_length", (-1,)), ("loop_swaps", (3,))],
)
def test_state_is_known_as_far_as_all_turns_agree(name: str, carried: tuple[int, ...]) -> None:
    parsed = parse_model(LOOPS[name].model)
    turn = bodies(parsed.find("loop"))["body"]
    assert parsed.outputs[0].desc.shape == carried
    slot = len(turn.data_nodes()) - (4 if name == "loop_grows_by_its_own_length" else 3 if name == "loop_swaps" else 1)
    assert carried in [data.output_descs[0].shape for data in turn.data_nodes()[slot:]]
    assert set(parsed.subgraphs) == {"loop_0_cond", "loop_1_body"}, "bodies of earlier attempts are gone"


def test_values_of_fixed_state_are_known_inside_and_those_of_carried_state_are_not() -> None:
    """The body reshapes by a captured constant and by a carried one."""
    content = body(
        [node("Reshape", "v fixed", "a", "a"), node("Reshape", "v carried", "b", "b")],
        [value("i", [], I64), value("go", [], BOOL), value("v", [6]), value("carried", [2], I64)],
        [value("go", [], BOOL), value("v", [6]), value("carried", [2], I64), value("a", None), value("b", None)],
    )
    source = model(
        [node("Loop", "m _ x shape", "v2 c2 as bs", "loop", body=content)],
        [value("m", [], I64), value("x", [6])],
        [value("as", None), value("bs", None)],
        {"fixed": np.int64([2, 3]), "shape": np.int64([3, 2])},
    )
    assert [out.desc.shape for out in parse_model(source).outputs] == [(-1, 2, 3), (-1, -1, -1)]


def test_captures_reach_through_levels_and_shadows() -> None:
    parsed = parse_model(CASES["ifs_nested"].model)
    assert names(parsed, "if_y") == ["d", "c", "d", "w_Initializer_0", "x", "z"]
    middle, innermost = "if_y_0_then_branch", "if_y_0_then_branch/if_y2_0_then_branch"
    assert [data.name for data in parsed.subgraphs[innermost].data_nodes()] == [
        f"{innermost}/{name}" for name in ("d", "w", "x", "z")
    ], "a is made in this branch, and captured by the one inside"
    inner = parsed.subgraphs[innermost].find(f"{innermost}/if_y3")
    assert [source.node.name for source in inner.inputs] == [f"{innermost}/{n}" for n in ("d", "neg", "w", "x", "z")]
    assert parsed.subgraphs[middle].find(f"{middle}/if_y2") is not None


def faulty_loop(**changes: Any) -> ModelProto:
    parts: dict[str, Any] = {
        "nodes": [node("Neg", "v", "w", "neg")],
        "inputs": [value("i", [], I64), value("go", [], BOOL), value("v", [3])],
        "outputs": [value("go", [], BOOL), value("w", [3])],
        "given": "m c x",
        "made": "y",
        "count": value("m", [], I64),
        "condition": value("c", [], BOOL),
        **changes,
    }
    content = body(parts["nodes"], parts["inputs"], parts["outputs"])
    return model(
        [node("Loop", parts["given"], parts["made"], "loop", body=content)],
        [parts["count"], parts["condition"], value("x", [3])],
        [value("y", None)],
    )


@pytest.mark.parametrize(
    ("source", "code", "words"),
    [
        (faulty_loop(given="m c x x"), "E11010", ["2 carried values", "must have 4 inputs", "has 3 and 2"]),
        (faulty_loop(made="y z"), "E11010", ["2 outputs", "at least 3 outputs", "has 3 and 2"]),
        (faulty_loop(outputs=[value("go", [], BOOL)]), "E11010", ["at least 2 outputs", "has 3 and 1"]),
        (faulty_loop(count=value("m", [])), "E11010", ["trip count", "DT_FLOAT", "one int64 number"]),
        (faulty_loop(count=value("m", [2], I64)), "E11010", ["trip count", "[2]"]),
        (faulty_loop(condition=value("c", [], I64)), "E11010", ["condition", "one boolean"]),
        (
            faulty_loop(outputs=[value("w", [3]), value("w", [3])]),
            "E11010",
            ["condition that its body returns", "one boolean"],
        ),
        (
            faulty_loop(nodes=[node("Cast", "v", "w", "cast", to=I64)]),
            "E11010",
            ["changes the type of value 2 of its state", "DT_FLOAT, DT_INT64"],
        ),
        (faulty_loop(nodes=[node("Add", "v ghost", "w", "add")]), "E13025", ["[ghost]"]),
        (faulty_loop(outputs=[value("go", [], BOOL), value("ghost", [3])]), "E13025", ["[loop] (Loop)", "[ghost]"]),
        (faulty_loop(nodes=[node("Neg", "w", "w", "neg")]), "E13025", ["wait for each other"]),
    ],
    ids=["too many values", "too many outputs", "too few results", "trip count type", "trip count size",
         "condition type", "body condition", "type of state", "dangling", "missing result", "cycle"],
)  # fmt: skip
def test_faults_of_a_loop(source: ModelProto, code: str, words: list[str]) -> None:
    with pytest.raises(ReportedError) as caught:
        parse_model(source)
    assert caught.value.code == code
    for word in words:
        assert word in caught.value.message


# -- Scan --------------------------------------------------------------------------------------------------------------
def test_a_scan_becomes_a_while_over_an_index() -> None:
    parsed = parse_model(SCANS["scan_axes_and_directions"].model)
    state = ["scan_Index", "s0", "scan_Buffer_0", "scan_Buffer_1"]
    assert names(parsed, "scan") == ["w_Initializer_0", "x", "z", "scan_Length", *state]
    turn = bodies(parsed.find("scan"))["body"]
    slices = [n for n in turn if n.type == "GatherV2"]
    assert [n.output_descs[0].shape for n in slices] == [(2, 3), (2, 3)]
    stacks = [parsed.find(f"scan_Scan_{k}").attrs for k in range(2)]
    assert [(s["count"], s["axis"], s["reverse"]) for s in stacks] == [(4, -1, True), (4, 1, False)]
    assert [out.desc.shape for out in parsed.outputs] == [(2, 3), (2, 3, 4), (2, 4, 3)]


def test_a_scan_in_batches_is_a_loop_around_a_loop() -> None:
    parsed = parse_model(SCANS["scan_in_batches"].model)
    assert set(parsed.subgraphs) == {
        "scan_0_cond", "scan_1_body", "scan_1_body/scan_0_cond", "scan_1_body/scan_1_body"
    }  # fmt: skip
    assert [out.desc.shape for out in parsed.outputs] == [(2, 3), (2, 4, 3), (2, 4, 3)]


def faulty_scan(**changes: Any) -> ModelProto:
    shapes = changes.pop("shapes", {"s0": [3], "x": [4, 3], "z": [4, 3]})
    content = changes.pop("content", running_sum(3))
    outputs = [value(name, None) for name in changes.pop("made", ["s", "sums", "scaleds"])]
    return scan(
        [value(name, dims) for name, dims in shapes.items()],
        outputs,
        content,
        initializers={"w": np.float32(2)},
        **{"num_scan_inputs": 2, **changes},
    )


ONE_IN = body([node("Neg", "a", "b", "neg")], [value("a", [3])], [value("b", [3])])


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (faulty_scan(num_scan_inputs=4), ["4 scan inputs of 3"]),
        (faulty_scan(num_scan_inputs=0), ["0 scan inputs of 3"]),
        (faulty_scan(content=ONE_IN), ["must have 3 inputs and at least 1 outputs, but has 1 and 1"]),
        (faulty_scan(shapes={"s0": [3], "x": [4, 3], "z": [5, 3]}), ["one length", "4 of scan input 0, 5 of scan"]),
        (faulty_scan(scan_input_axes=[0]), ["scan_input_axes has 1 numbers, but must have 2"]),
        (faulty_scan(scan_input_axes=[0, 2]), ["scan axis 2 is out of range for rank 2"]),
        (faulty_scan(scan_output_directions=[0, 2]), ["[0, 2], but must hold 0 (forward) and 1 (backward)"]),
        (faulty_scan(made=["s", "sums", "scaleds", "more"]), ["4 outputs"]),
    ],
    ids=["more than there are", "none", "another body", "two lengths", "too few axes", "axis", "direction", "outputs"],
)
def test_faults_of_a_scan(source: ModelProto, words: list[str]) -> None:
    with pytest.raises(ReportedError) as caught:
        parse_model(source)
    for word in words:
        assert word in caught.value.message


def test_joining_along_an_axis_that_does_not_exist() -> None:
    with pytest.raises(ReportedError, match="axis 3 is out of range for rank 2"):
        parse_model(faulty_scan(scan_output_axes=[0, 3]))


# -- branches for other shapes -----------------------------------------------------------------------------------------
def unfit(then: str, otherwise: str) -> ModelProto:
    def branch(name: str, other: str) -> Any:
        return graph([node("Add", f"x {other}", name, f"add_{name}")], [], [value(name, [3])])

    made = node("If", "c", "y", "choice", then_branch=branch("t", then), else_branch=branch("e", otherwise))
    constants = {"three": np.float32([1, 2, 3]), "four": np.float32([1, 2, 3, 4])}
    return model([made], [value("c", [], BOOL), value("x", [3])], [value("y", None)], constants)


@pytest.mark.parametrize(("branches", "failing"), [(("three", "four"), 1), (("four", "three"), 0)])
def test_a_branch_for_other_shapes_stops_the_run(branches: tuple[str, str], failing: int) -> None:
    state = session()
    parsed = parse(unfit(*branches).SerializeToString(), state)
    [warning] = state.warnings
    name = ("choice_0_then_branch", "choice_1_else_branch")[failing]
    assert f"node choice (If) cannot take its branch [{name}]" in warning
    assert "[3]" in warning
    assert "[4]" in warning
    assert parsed.outputs[0].desc.shape == (3,)
    assert [n.type for n in parsed.subgraphs[name]] == ["Data", "Data", "Data", "XFail"]
    x = np.float32([1, 1, 1])
    np.testing.assert_array_equal(evaluate(parsed, [np.array(failing != 0), x])[0], [2, 3, 4])


def test_one_branch_must_fit() -> None:
    with pytest.raises(ReportedError, match=r"E14001.*choice_0_then_branch/add_t"):
        parse_model(unfit("four", "four"))


@pytest.mark.parametrize("decision", [True, False])
def test_a_constant_condition_needs_its_branch_only(decision: bool) -> None:
    source = unfit("three", "four")
    del source.graph.input[0]
    source.graph.initializer.append(numpy_helper.from_array(np.array(decision), "c"))
    state = session()
    if decision:
        parse(source.SerializeToString(), state)
        assert not state.warnings
        return
    with pytest.raises(ReportedError, match=r"E14001.*choice_1_else_branch/add_e"):
        parse(source.SerializeToString(), state)


# -- depth -------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", ["Loop", "Scan", "If"])
def test_depth_counts_graphs_and_calls_alike(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    wrap: dict[str, Callable[[Any], Any]] = {
        "If": lambda inner: node("If", "c", "y", "n", then_branch=inner, else_branch=inner),
        "Loop": lambda inner: node("Loop", "m c", "y", "n", body=inner),
        "Scan": lambda inner: node("Scan", "x", "y", "n", body=inner, num_scan_inputs=1),
    }
    ends = {
        "If": ([], [value("y", None)]),
        "Loop": ([value("i", [], I64), value("go", [], BOOL)], [value("go", [], BOOL), value("y", None)]),
        "Scan": ([value("s", [2])], [value("y", None)]),
    }
    content = graph([node("Neg", "x", "y", "neg")], *ends[kind])
    for _ in range(4):
        content = graph([wrap[kind](content)], *ends[kind])
    source = model(
        [wrap[kind](content)],
        [value("m", [], I64), value("c", [], BOOL), value("x", [2, 2])],
        [value("y", None)],
        {"unused": np.float32(0)},
    )
    verify(parse_model(source))
    monkeypatch.setattr("parsers.call_bodies.MAX_NESTING", 4)
    with pytest.raises(ReportedError, match=r"E11010.*its graph is nested deeper than 4 levels"):
        parse_model(source)
