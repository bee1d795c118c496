"""Model-local functions, and operators that ONNX defines by smaller ones: inlined."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import AttributeProto, FunctionProto, ModelProto, NodeProto, TensorProto, helper

from ge.errors import ReportedError
from tests.parsers.evaluation import evaluate, parse_model
from tests.parsers.onnx_models import graph, model, node, one, value

OPSETS = [helper.make_opsetid("", 17), helper.make_opsetid("my", 1)]


def function(
    name: str, inputs: list[str], outputs: list[str], nodes: list[NodeProto], attributes: Any = (), defaults: Any = ()
) -> FunctionProto:
    return helper.make_function("my", name, inputs, outputs, nodes, OPSETS, list(attributes), list(defaults))


def call(name: str, inputs: str, outputs: str, node_name: str, **attributes: Any) -> NodeProto:
    made = node(name, inputs, outputs, node_name, **attributes)
    made.domain = "my"
    return made


def refer(op_type: str, inputs: str, outputs: str, attribute: str, to: str, kind: int) -> NodeProto:
    """Return a node whose attribute is that of the enclosing function."""
    made = node(op_type, inputs, outputs, "")
    made.attribute.append(AttributeProto(name=attribute, ref_attr_name=to, type=kind))
    return made


def with_functions(nodes: list[NodeProto], *functions: FunctionProto, inputs: Any = ("x",)) -> ModelProto:
    return model(nodes, inputs, ["y"], opset=17, imports={"my": 1}, functions=functions)


def check(source: ModelProto, *feeds: np.ndarray[Any, Any]) -> Any:
    """Parse and compare with onnxruntime; return the graph."""
    parsed = parse_model(source)
    runner = onnxruntime.InferenceSession(source.SerializeToString(), providers=["CPUExecutionProvider"])
    expected = runner.run(None, dict(zip([v.name for v in source.graph.input], feeds, strict=True)))
    for found, wanted in zip(evaluate(parsed, feeds), expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-6)
    return parsed


X = np.linspace(-2, 2, 48, dtype=np.float32).reshape(1, 3, 4, 4)


def test_nodes_are_named_by_the_call() -> None:
    twice = function("Twice", ["a"], ["c"], [node("Relu", "a", "b", "first"), node("Add", "b b", "c", "")])
    parsed = check(with_functions([call("Twice", "x", "y", "t")], twice), X)
    assert [(n.name, n.type) for n in parsed if n.type != "Data"] == [("t/first", "Relu"), ("t/Add_1", "Add")]


def test_two_calls_share_nothing() -> None:
    square = function("Square", ["a"], ["b"], [node("Mul", "a a", "b", "m")])
    parsed = check(with_functions([call("Square", "x", "t", "p"), call("Square", "t", "y", "q")], square), X)
    assert [n.name for n in parsed if n.type != "Data"] == ["p/m", "q/m"]


def test_nested_calls() -> None:
    inner = function("Inner", ["a"], ["b"], [node("Abs", "a", "b", "abs")])
    outer = function("Outer", ["a"], ["c"], [call("Inner", "a", "b", "in"), node("Sqrt", "b", "c", "sqrt")])
    parsed = check(with_functions([call("Outer", "x", "y", "out")], inner, outer), X)
    assert [n.name for n in parsed if n.type != "Data"] == ["out/in/abs", "out/sqrt"]


@pytest.mark.parametrize(("given", "alpha"), [({"slope": 0.5}, 0.5), ({}, 0.25)], ids=["given", "default"])
def test_attributes_of_the_function(given: dict[str, float], alpha: float) -> None:
    leaky = function(
        "Leaky",
        ["a"],
        ["b"],
        [refer("LeakyRelu", "a", "b", "alpha", "slope", AttributeProto.FLOAT)],
        defaults=[helper.make_attribute("slope", 0.25)],
    )
    parsed = check(with_functions([call("Leaky", "x", "y", "l", **given)], leaky), X)
    assert parsed.find("l/LeakyRelu_0").attrs["negative_slope"] == alpha


def test_attribute_that_neither_call_nor_function_gives_has_the_operator_default() -> None:
    made = refer("LeakyRelu", "a", "b", "alpha", "slope", AttributeProto.FLOAT)
    leaky = function("Leaky", ["a"], ["b"], [made], attributes=["slope"])
    parsed = parse_model(with_functions([call("Leaky", "x", "y", "l")], leaky))
    assert parsed.find("l/LeakyRelu_0").attrs["negative_slope"] == pytest.approx(0.01)


def test_absent_argument() -> None:
    clip = function("Hold", ["a", "low", "high"], ["b"], [node("Clip", "a low high", "b", "c")])
    parsed = parse_model(with_functions([call("Hold", "x _ x", "y", "h")], clip))
    assert [n.type for n in parsed if n.type != "Data"] == ["Minimum"]


def test_branch_inside_of_a_function_reads_its_arguments() -> None:
    branches = {
        "then_branch": graph([node("Abs", "a", "t", "abs")], [], [value("t")]),
        "else_branch": graph([node("Neg", "a", "t", "neg")], [], [value("t")]),
    }
    choose = function("Choose", ["flag", "a"], ["b"], [node("If", "flag", "b", "if", **branches)])
    inputs = [value("c", [], TensorProto.BOOL), "x"]
    source = with_functions([call("Choose", "c x", "y", "ch")], choose, inputs=inputs)
    for flag in (True, False):
        check(source, np.array(flag), X)


def test_absent_argument_that_a_nested_graph_reads() -> None:
    branches = {
        "then_branch": graph([node("Clip", "a low", "t", "")], [], [value("t")]),
        "else_branch": graph([node("Neg", "a", "t", "")], [], [value("t")]),
    }
    hold = function("Hold", ["flag", "a", "low"], ["b"], [node("If", "flag", "b", "", **branches)])
    inputs = [value("c", [], TensorProto.BOOL), "x", value("z", [])]
    for arguments in ("c x _", "c x z"):
        parsed = parse_model(with_functions([call("Hold", arguments, "y", "h")], hold, inputs=inputs))
        for flag in (True, False):
            clipped = np.maximum(X, 0.5) if "z" in arguments else X
            found = evaluate(parsed, [np.array(flag), X, np.float32(0.5)])[0]
            np.testing.assert_array_equal(found, clipped if flag else -X)


def test_nested_graphs_of_a_function_see_its_attributes_and_call_functions() -> None:
    """Unnamed nodes; the branches refer to an attribute, call another function, and hold a loop."""
    inner = function(
        "Leaky",
        ["a"],
        ["b"],
        [refer("LeakyRelu", "a", "b", "alpha", "slope", AttributeProto.FLOAT)],
        defaults=[helper.make_attribute("slope", 0.25)],
    )
    passing = call("Leaky", "v", "w", "")
    passing.attribute.append(AttributeProto(name="slope", ref_attr_name="alpha", type=AttributeProto.FLOAT))
    turn = graph(
        [passing],
        [value("i", [], TensorProto.INT64), value("go", [], TensorProto.BOOL), value("v")],
        [value("go", [], TensorProto.BOOL), value("w")],
    )
    branches = {
        "then_branch": graph([node("Loop", "n _ a", "t", "", body=turn)], [], [value("t")]),
        "else_branch": graph([refer("LeakyRelu", "a", "t", "alpha", "alpha", AttributeProto.FLOAT)], [], [value("t")]),
    }
    nodes = [
        node("If", "flag", "s", "", **branches),
        node("If", "flag", "r", "", **branches),
        node("Add", "s r", "b", ""),
    ]
    outer = function("Outer", ["flag", "a", "n"], ["b"], nodes, attributes=["alpha"])
    inputs = [value("c", [], TensorProto.BOOL), "x", value("m", [], TensorProto.INT64)]
    source = with_functions([call("Outer", "c x m", "y", "o", alpha=0.5)], inner, outer, inputs=inputs)
    for flag in (True, False):
        check(source, np.array(flag), X, np.array(3))
    assert "o/If_1_0_then_branch/Loop_0_1_body" in parse_model(source).subgraphs


def test_function_that_calls_itself_in_a_branch() -> None:
    again = graph([call("Endless", "flag a", "t", "again")], [], [value("t")])
    endless = function("Endless", ["flag", "a"], ["b"], [
        node("If", "flag", "b", "if", then_branch=again, else_branch=again)
    ])  # fmt: skip
    inputs = [value("c", [], TensorProto.BOOL), "x"]
    with pytest.raises(ReportedError, match=r"nest too deeply|nested deeper than"):
        parse_model(with_functions([call("Endless", "c x", "y", "e")], endless, inputs=inputs))


def test_function_that_calls_itself() -> None:
    endless = function("Endless", ["a"], ["b"], [call("Endless", "a", "b", "again")])
    with pytest.raises(ReportedError) as caught:
        parse_model(with_functions([call("Endless", "x", "y", "e")], endless))
    assert caught.value.code == "E11010"
    assert "nest too deeply" in caught.value.message


def test_functions_that_double_their_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("parsers.ge_nodes.MAX_NODES", 500)
    levels = [function("F0", ["a"], ["c"], [node("Abs", "a", "c", "abs")])]
    for i in range(1, 20):
        pair = [call(f"F{i - 1}", "a", "b", "p"), call(f"F{i - 1}", "b", "c", "q")]
        levels.append(function(f"F{i}", ["a"], ["c"], pair))
    with pytest.raises(ReportedError) as caught:
        parse_model(with_functions([call("F19", "x", "y", "f")], *levels))
    assert "more than 500 nodes" in caught.value.message


def test_two_functions_of_one_name() -> None:
    same = function("Same", ["a"], ["b"], [node("Abs", "a", "b", "n")])
    with pytest.raises(ReportedError) as caught:
        parse_model(with_functions([call("Same", "x", "y", "s")], same, same))
    assert caught.value.code == "E13009"


def test_too_many_arguments() -> None:
    same = function("Same", ["a"], ["b"], [node("Abs", "a", "b", "n")])
    with pytest.raises(ReportedError) as caught:
        parse_model(with_functions([call("Same", "x x", "y", "s")], same))
    assert (caught.value.code, caught.value.fields["opname"]) == ("E11010", "s")


@pytest.mark.parametrize(
    ("source", "feeds"),
    [
        (one("HannWindow", np.int64(8), opset=17), []),
        (one("CenterCropPad", (4, 9), np.int64([7, 4]), opset=18), [np.arange(36, dtype=np.float32).reshape(4, 9)]),
        (
            one("NegativeLogLikelihoodLoss", (3, 5), np.int64([0, 4, 2]), reduction="mean"),
            [np.linspace(-4, -1, 15, dtype=np.float32).reshape(3, 5)],
        ),
    ],
    ids=lambda item: item.graph.node[0].op_type if isinstance(item, ModelProto) else "",
)
def test_operators_that_onnx_defines_by_others(source: ModelProto, feeds: list[np.ndarray[Any, Any]]) -> None:
    parsed = check(source, *feeds)
    assert parsed.outputs[0].node.name.startswith("n/")
