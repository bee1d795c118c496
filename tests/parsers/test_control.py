"""If: branches as graphs of the model, and what they capture."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import ModelProto, TensorProto

from ge.errors import ReportedError
from ge.verify import verify
from tests.parsers.evaluation import evaluate, parse_model
from tests.parsers.onnx_models import graph, model, node, value

COND = value("c", [], TensorProto.BOOL)
VECTOR = [value("x", [3])]


def if_model(then: Any, otherwise: Any, **extra: Any) -> ModelProto:
    nodes = [node("If", "c", "y", "choice", then_branch=then, else_branch=otherwise)]
    inputs = extra.pop("inputs", [COND, value("x", [3]), value("z", [3])])
    return model([*extra.pop("before", []), *nodes], inputs, [value("y", None)], **extra)


def branch(*nodes: Any, output: str = "t", **initializers: Any) -> Any:
    return graph(nodes, [], [value(output, [3])], initializers)


ONE = branch(node("Relu", "x", "t", "relu"))
OTHER = branch(node("Add", "x z", "t", "add"))


def check(source: ModelProto, **feeds: Any) -> None:
    """Compare with onnxruntime for both conditions."""
    runner = onnxruntime.InferenceSession(source.SerializeToString(), providers=["CPUExecutionProvider"])
    parsed = parse_model(source)
    verify(parsed)
    for flag in (True, False):
        given = {"c": np.array(flag), **feeds}
        expected = runner.run(None, given)
        found = evaluate(parsed, [given[data.name] for data in parsed.data_nodes()])
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-6)


X, Z = np.float32([-1, 2, -3]), np.float32([10, 20, 30])


def test_captures_become_inputs_of_both_branches() -> None:
    source = if_model(ONE, OTHER)
    parsed = parse_model(source)
    choice = parsed.find("choice")
    assert [str(s.node.name) for s in choice.inputs] == ["c", "x", "z"]
    assert choice.subgraphs == [("then_branch", "choice_0_then_branch"), ("else_branch", "choice_1_else_branch")]
    for name, inner in (("choice_0_then_branch", "relu"), ("choice_1_else_branch", "add")):
        body = parsed.subgraphs[name]
        slots = {d.name: (d.attrs["index"], d.attrs["_parent_node_index"]) for d in body.data_nodes()}
        assert slots == {f"{name}/x": (0, 1), f"{name}/z": (1, 2)}
        assert body.find(f"{name}/{inner}") is not None
        assert [out.desc.attrs["_parent_node_index"] for out in body.outputs] == [0]
    check(source, x=X, z=Z)


def test_only_one_branch_captures() -> None:
    source = if_model(branch(c1=np.float32([1, 2, 3]), output="c1"), branch(node("Neg", "z", "t", "neg")))
    parsed = parse_model(source)
    assert [s.node.name for s in parsed.find("choice").inputs] == ["c", "z"]
    assert [d.name for d in parsed.subgraphs["choice_0_then_branch"].data_nodes()] == ["choice_0_then_branch/z"]
    check(source, x=X, z=Z)


def test_branch_that_returns_a_captured_tensor() -> None:
    parsed = parse_model(if_model(branch(output="x"), OTHER))
    for flag, expected in ((True, X), (False, X + Z)):
        np.testing.assert_array_equal(evaluate(parsed, [np.array(flag), X, Z])[0], expected)


def test_nested_if_captures_through_the_outer_branch() -> None:
    inner = node("If", "c", "t", "inner", then_branch=branch(node("Mul", "x w", "t", "mul")), else_branch=ONE)
    source = if_model(branch(inner), OTHER, initializers={"w": np.float32([2, 3, 4])})
    parsed = parse_model(source)
    assert set(parsed.subgraphs) == {
        "choice_0_then_branch",
        "choice_1_else_branch",
        "choice_0_then_branch/inner_0_then_branch",
        "choice_0_then_branch/inner_1_else_branch",
    }
    assert [s.node.name for s in parsed.find("choice").inputs] == ["c", "c", "w_Initializer_0", "x", "z"]
    check(source, x=X, z=Z)


def test_shadowed_names_are_no_captures() -> None:
    source = if_model(branch(node("Neg", "v", "t", "neg"), v=np.float32([7, 8, 9])), OTHER)
    assert [s.node.name for s in parse_model(source).find("choice").inputs] == ["c", "x", "z"]
    check(source, x=X, z=Z)


def test_value_of_a_captured_constant_is_known_inside() -> None:
    shaped = graph([node("Reshape", "x s", "t", "reshape")], [], [value("t", [3, 1])])
    source = if_model(shaped, shaped, initializers={"s": np.int64([3, 1])}, inputs=[COND, value("x", [3])])
    assert parse_model(source).outputs[0].desc.shape == (3, 1)


def test_results_agree_as_far_as_both_branches_do() -> None:
    longer = graph([node("Concat", "x x", "t", "cat", axis=0)], [], [value("t", [6])])
    assert parse_model(if_model(ONE, longer)).outputs[0].desc.shape == (-1,)
    square = graph([node("Expand", "x s", "t", "exp")], [], [value("t", [3, 3])], {"s": np.int64([3, 3])})
    assert parse_model(if_model(ONE, square)).outputs[0].desc.shape == (-2,)


def test_condition_that_shapes_decide_takes_its_branch() -> None:
    before = [
        node("Shape", "x", "s", "shape"),
        node("Equal", "s three", "e", "equal"),
        node("Squeeze", "e zero", "c", "squeeze"),
    ]
    unfit = branch(node("Add", "x wrong", "t", "add"), wrong=np.ones(4, np.float32))
    numbers = {"three": np.int64([3]), "zero": np.int64([0])}
    source = if_model(ONE, unfit, before=before, inputs=VECTOR, initializers=numbers)
    parsed = parse_model(source)
    assert not parsed.subgraphs
    assert [n.type for n in parsed if n.name == "choice/relu"] == ["Relu"]
    np.testing.assert_array_equal(evaluate(parsed, [X])[0], np.maximum(X, 0))


def test_unnamed_nodes_count_through_all_graphs() -> None:
    inner = branch(node("Relu", "x", "u", ""), node("Abs", "u", "t", ""))
    parsed = parse_model(
        model(
            [node("If", "c", "v", "", then_branch=inner, else_branch=inner), node("Neg", "v", "y", "")],
            [COND, *VECTOR],
            [value("y", None)],
        )
    )
    assert [n.name for n in parsed if n.type != "Data"] == ["If_0", "Neg_1"]
    # onnx.helper writes attributes sorted by name, so the file has else_branch first
    for branch_name, names in (("1_else_branch", ["Relu_2", "Abs_3"]), ("0_then_branch", ["Relu_4", "Abs_5"])):
        found = [n.name for n in parsed.subgraphs[f"If_0_{branch_name}"] if n.type != "Data"]
        assert found == [f"If_0_{branch_name}/{name}" for name in names]


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (if_model(ONE, OTHER, inputs=[value("c", []), *VECTOR, value("z", [3])]), ["[choice]", "one boolean"]),
        (if_model(ONE, OTHER, inputs=[value("c", [2], TensorProto.BOOL), *VECTOR, value("z", [3])]), ["one boolean"]),
        (if_model(graph([node("Relu", "q", "t", "n")], [value("q", [3])], [value("t", [3])]), OTHER), ["1 inputs"]),
        (
            if_model(graph([node("Relu", "x", "t", "n")], [], [value("t", [3]), value("x", [3])]), OTHER),
            ["2 outputs", "must have 0 and 1"],
        ),
        (if_model(branch(node("Cast", "x", "t", "n", to=6)), OTHER), ["different results for output 0"]),
    ],
    ids=["condition type", "condition size", "inputs", "outputs", "types"],
)
def test_faults_of_an_if(source: ModelProto, words: list[str]) -> None:
    with pytest.raises(ReportedError) as caught:
        parse_model(source)
    assert caught.value.code == "E11010"
    for word in words:
        assert word in caught.value.message


def test_branch_that_reads_what_nothing_produces() -> None:
    with pytest.raises(ReportedError) as caught:
        parse_model(if_model(ONE, branch(node("Add", "x ghost", "t", "add"))))
    assert caught.value.code == "E13025"
    assert "[ghost]" in caught.value.message


def test_branch_without_output() -> None:
    with pytest.raises(ReportedError) as caught:
        parse_model(if_model(ONE, graph([node("Relu", "x", "t", "n")], [], [])))
    assert caught.value.code == "E16001"
