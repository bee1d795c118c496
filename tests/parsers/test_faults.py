"""Faults of models and options: each gives its code and names the culprit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper

from ge.errors import ReportedError
from ge.graph import Format
from ge.option_grammar import OutNode
from parsers.onnx import parse, precheck
from tests.parsers.evaluation import parse_model, session
from tests.parsers.onnx_models import graph, model, node, one, value


def refused(source: ModelProto, **options: Any) -> ReportedError:
    with pytest.raises(ReportedError) as caught:
        parse_model(source, **options)
    return caught.value


def all_of(fault: ReportedError) -> list[tuple[str, Any, Any]]:
    return [(f.code, f.fields.get("opname"), f.fields.get("optype")) for f in (fault, *fault.also)]


def test_unsupported_operators_are_reported_together() -> None:
    nodes = [node("Foo", "x", "t", "a"), node("Relu", "t", "u", "b"), node("Bar", "u", "v", "c")]
    fault = refused(model([*nodes, node("Foo", "v", "y", "d")]))
    assert all_of(fault) == [
        ("E13010", "a", "ai.onnx::13::Foo"),
        ("E13010", "c", "ai.onnx::13::Bar"),
        ("E13010", "d", "ai.onnx::13::Foo"),
    ]
    table = [line.split() for line in "\n".join(fault.lines()).splitlines()[-3:]]
    assert table == [
        ["unsupported", "type", "count", "first", "node"],
        ["ai.onnx::13::Foo", "2", "a"],
        ["ai.onnx::13::Bar", "1", "c"],
    ]


def test_unsupported_operators_inside_of_branches_and_functions() -> None:
    branch = graph([node("Foo", "x", "t", "inner")], [], [value("t")])
    function = helper.make_function(
        "my", "F", ["a"], ["b"], [node("Bar", "a", "b", "deep")], [helper.make_opsetid("", 13)]
    )
    nodes = [
        node("If", "c", "u", "if", then_branch=branch, else_branch=branch),
        helper.make_node("F", ["u"], ["y"], "call", domain="my"),
    ]
    inputs = ["x", value("c", [], TensorProto.BOOL)]
    fault = refused(model(nodes, inputs, imports={"my": 1}, functions=[function]))
    assert {row[1:] for row in all_of(fault)} == {("inner", "ai.onnx::13::Foo"), ("call/deep", "ai.onnx::13::Bar")}


def test_operator_of_another_domain() -> None:
    source = model([helper.make_node("Thing", ["x"], ["y"], "n", domain="ai.onnx.ml")], imports={"ai.onnx.ml": 3})
    assert all_of(refused(source)) == [("E13010", "n", "ai.onnx.ml::3::Thing")]


def test_domain_that_is_not_imported() -> None:
    fault = refused(model([helper.make_node("Thing", ["x"], ["y"], "n", domain="my.dom")]))
    assert fault.code == "E19999"
    assert "[my.dom]" in fault.message
    assert "node n" in fault.message


def test_operator_newer_than_the_opset() -> None:
    assert all_of(refused(model([node("Gelu", "x")], opset=13))) == [("E13010", "n", "ai.onnx::13::Gelu")]


@pytest.mark.parametrize(("opset", "word"), [(0, "older"), (99, "newer")])
def test_opset_out_of_range(opset: int, word: str) -> None:
    fault = refused(model([node("Relu", "x")], opset=opset))
    assert fault.code == "E16002"
    assert str(opset) in fault.message
    assert word in fault.solution


@pytest.mark.parametrize(("domain", "versions"), [("", [17, 13]), ("ai.onnx", [17]), ("my", [1, 2])])
def test_two_versions_of_one_domain(domain: str, versions: list[int]) -> None:
    source = model([node("Relu", "x")], opset=13)
    source.opset_import.extend(helper.make_opsetid(domain, version) for version in versions)
    fault = refused(source)
    assert fault.code == "E16005"
    assert domain in fault.message
    assert str(sorted({*versions, 13} if domain != "my" else versions)) in fault.message


def test_one_version_said_twice_is_one() -> None:
    source = model([node("Relu", "x")], opset=13)
    source.opset_import.append(helper.make_opsetid("ai.onnx", 13))
    assert [n.type for n in parse_model(source)] == ["Data", "Relu"]


def test_precheck_lists_every_node() -> None:
    nodes = [node("Foo", "x", "t", "a"), node("Relu", "t", "u", "b"), node("Abs", "u", "y", "b")]
    checked = precheck(model(nodes), session())
    assert [(n.name, n.type, [cause.code for cause in n.causes]) for n in checked] == [
        ("a", "Foo", ["E13010"]),
        ("b", "Relu", ["E13009"]),
        ("b", "Abs", ["E13009"]),
    ]


def test_two_nodes_of_one_name() -> None:
    fault = refused(model([node("Relu", "x", "t", "a"), node("Abs", "t", "y", "a")]))
    assert [(code, name) for code, name, _ in all_of(fault)] == [("E13009", "a"), ("E13009", "a")]
    assert [line[:6] for line in fault.lines()] == ["E13009", " " * 6]  # said once


def test_node_named_like_an_input() -> None:
    assert all_of(refused(model([node("Relu", "x", "y", "x")])))[0][:2] == ("E13009", "x")


def test_graph_without_outputs() -> None:
    fault = refused(model([node("Relu", "x")], ["x"], []))
    assert fault.code == "E16001"
    assert "output" in fault.message


@pytest.mark.parametrize(
    ("source", "code", "words"),
    [
        (model([node("Add", "x ghost")]), "E13025", ["[n]", "[ghost]"]),
        (model([node("Relu", "x", "t", "n")]), "E13031", ["[y]"]),
        (model([node("Relu", "x", "y", "a"), node("Abs", "x", "y", "b")]), "E13031", ["[y]", "node a", "node b"]),
        (
            model([node("Relu", "x", "y", "a"), node("Abs", "w", "x", "b")], initializers={"w": np.float32([1])}),
            "E13031",
            ["[x]", "graph input x", "node b"],
        ),
        (
            model([node("Add", "x b", "a", "p"), node("Relu", "a", "b", "q")], ["x"], ["a"]),
            "E13025",
            ["wait for each other", "q -> p -> q"],
        ),
        (
            model([node("Relu", "x", "w", "a")], ["x"], ["w"], {"w": np.zeros(2, np.float32)}),
            "E13031",
            ["[w]", "initializer [w]", "node a"],
        ),
        (model([node("Relu", "x")], [value("x", [2], TensorProto.UNDEFINED)]), "E19999", ["[x]", "UNDEFINED"]),
        (
            model([node("Relu", "x")], [helper.make_tensor_sequence_value_info("x", TensorProto.FLOAT, [2])]),
            "E13025",
            ["[x]", "sequence"],
        ),
        (one("Relu", (2,), (2,)), "E11010", ["[n]", "2 inputs"]),
        (one("Add", (2,), None), "E11010", ["[n]", "input 1 (B) is absent"]),
        (one("Concat", (2,), None, (2,), axis=0), "E11010", ["[n]", "absent"]),
        (one("Concat", (2,), (2,)), "E11010", ["[n]", "axis is missing"]),
        (one("Flatten", (2, 3), axis=1.5), "E11010", ["[n]", "axis", "FLOAT", "INT"]),
        (one("BitShift", np.uint8([1]), np.uint8([1]), direction="UP"), "E11010", ["[n]", "direction", "UP", "LEFT"]),
        (one("Conv", (1, 3, 8, 8), (4, 3, 3, 3), kernel_shape=[5, 5]), "E11010", ["[n]", "kernel_shape", "[5, 5]"]),
        (one("Conv", (1, 3, 8, 8), (4, 3, 3, 3), strides=[1]), "E11010", ["[n]", "strides"]),
        (one("Conv", (1, 3), (4, 3)), "E11010", ["[n]", "2 axes"]),
        (one("Split", (6,), outputs=2, opset=18, num_outputs=3), "E11010", ["[n]", "num_outputs", "3", "2"]),
        (one("Constant"), "E11010", ["[n]", "exactly one"]),
        (one("MatMul", (), (2, 2)), "E11010", ["[n]", "scalar"]),
        (one("Add", (2,), (3,)), "E14001", ["[n]", "[2]", "[3]"]),
        (one("Conv", (1, 3, 8, 8), (4, 2, 3, 3)), "E14001", ["[n]", "channels"]),
        (one("Reshape", (2, 3), np.int64([4, 2])), "E14001", ["[n]"]),
        (one("Cast", (2,), to=99), "E19999", ["node n", "99"]),
    ],
    ids=lambda item: item if isinstance(item, str) else "",
)
def test_fault_names_its_culprit(source: ModelProto, code: str, words: list[str]) -> None:
    fault = refused(source)
    assert fault.code == code, fault.lines()
    for word in words:
        assert word in fault.message


def test_attribute_that_the_operator_does_not_have_is_a_warning() -> None:
    from parsers.onnx import parse

    compile_session = session()
    parse(one("Relu", (2,), slope=0.1), compile_session)
    assert compile_session.warnings == ["node n (Relu): attribute slope is unknown and ignored"]


# -- options -------------------------------------------------------------------------------------------------------
def dynamic() -> ModelProto:
    return model([node("Relu", "x")], [value("x", ["batch", 3])], [value("y", None)])


def test_open_dimension_without_input_shape() -> None:
    fault = refused(dynamic())
    assert fault.code == "E10001"
    assert "--input_shape" in fault.message
    assert "x [-1, 3]" in fault.message
    assert 'x:1,3"' in fault.solution


def test_input_without_shape() -> None:
    fault = refused(model([node("Relu", "x")], [value("x", None)]))
    assert fault.code == "E10001"
    assert "x of unknown rank" in fault.message


@pytest.mark.parametrize("dims", [["batch", 3], [None, 3], [5, 3], [], None], ids=str)
def test_input_shape_replaces_dims(dims: list[Any] | None) -> None:
    source = model([node("Relu", "x")], [value("x", dims)], [value("y", None)])
    parsed = parse_model(source, input_shape={"x": (2, 4)})
    assert parsed.data_nodes()[0].output().desc.shape == (2, 4)
    assert parsed.outputs[0].desc.shape == (2, 4)


def test_input_shape_of_another_rank() -> None:
    fault = refused(dynamic(), input_shape={"x": (2, 3, 4)})
    assert fault.code == "E10001"
    for word in ("[x]", "3 dimensions", "has 2", "x:2,3,4"):
        assert word in fault.message


def test_input_shape_of_an_unknown_name() -> None:
    fault = refused(dynamic(), input_shape={"z": (2, 3)})
    assert (fault.code, fault.fields["opname"]) == ("E10016", "z")
    assert "x (FLOAT [-1, 3])" in fault.solution


@pytest.mark.parametrize("name", ["y", "n"])
def test_input_shape_of_an_inner_name(name: str) -> None:
    fault = refused(dynamic(), input_shape={name: (2, 3)})
    assert (fault.code, fault.fields["opname"]) == ("E10017", name)


CHAIN = model(
    [node("Gemm", "x w c", "t", "gemm"), node("Split", "t", "u v", "split", axis=1), node("Relu", "u", "y", "last")],
    [value("x", [2, 3])],
    [value("y", None), value("v", None)],
    {"w": np.ones((3, 4), np.float32), "c": np.ones(4, np.float32)},
)


def test_outputs_by_node_and_index() -> None:
    found = parse_model(CHAIN, out_nodes=(OutNode("split", 1), OutNode("gemm", 0)))
    assert [(out.node.name, out.index, out.node.type) for out in found.outputs] == [
        ("split", 1, "Split"),
        ("gemm", 0, "Add"),
    ]
    assert found.output_names == ["v", "t"]
    assert found.find("split").attrs["_user_defined_output_nodes"] == "true"
    assert "_user_defined_output_nodes" not in found.find("last").attrs


def test_outputs_by_tensor_name() -> None:
    assert parse_model(CHAIN, out_nodes=(OutNode("v"),)).output_names == ["v"]


def test_output_name_that_ends_like_an_index() -> None:
    source = model([node("Relu", "x", "y:0")], ["x"], ["y:0"])
    assert parse_model(source, out_nodes=(OutNode("y", 0),)).output_names == ["y:0"]


@pytest.mark.parametrize(
    ("item", "code", "word"),
    [
        (OutNode("none", 0), "E10016", "[none]"),
        (OutNode("t"), "E10016", "[t]"),
        (OutNode("split", 2), "E10003", "split:2"),
    ],
    ids=str,
)
def test_outputs_that_do_not_exist(item: OutNode, code: str, word: str) -> None:
    fault = refused(CHAIN, out_nodes=(item,))
    assert fault.code == code
    assert word in fault.message


@pytest.mark.parametrize(("name", "code"), [("none", "E10016"), ("t", "E10017"), ("relu", "E10017")])
def test_names_of_half_inputs_that_are_no_inputs(name: str, code: str) -> None:
    source = model([node("Relu", "x", "t", name="relu"), node("Neg", "t", "y", name="neg")])
    fault = refused(source, half_inputs={"x": True, name: False}, input_shape={"wrong": (1,)})
    assert (fault.code, fault.fields["parameter"]) == (code, "--input_fp16_nodes")
    assert f"[{name}]" in fault.message
    assert "x (" in fault.solution


@pytest.mark.parametrize("input_format", [Format.FORMAT_NCHW, Format.FORMAT_NCDHW, Format.FORMAT_ND])
def test_what_axes_mean_is_left_to_inference(input_format: Format) -> None:
    desc = parse_model(model([node("Relu", "x")]), input_format=input_format).data_nodes()[0].output().desc
    assert desc.format is desc.origin_format is Format.FORMAT_ND


def test_an_input_that_is_given_twice() -> None:
    fault = refused(model([node("Relu", "x")], ["x", "x"]))
    assert (fault.code, fault.fields["reason"]) == ("E13025", "the graph input [x] is given twice")


def test_an_input_without_a_name() -> None:
    fault = refused(model([node("Relu", "x")], ["x", ""]))
    assert (fault.code, fault.fields["reason"]) == ("E13025", "the graph input 1 has no name")


@pytest.mark.parametrize("dims", [(2**40, 2**40), (0, 2**62), (2**31, 2**31, 2**31)])
def test_a_tensor_that_no_memory_can_hold(dims: tuple[int, ...]) -> None:
    by_input = refused(model([node("Relu", "x")], [value("x", dims)], [value("y", None)]))
    assert by_input.code == "E14001"
    assert str(list(dims)).replace(" ", "") in by_input.message
    big = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=dims)
    by_weight = refused(model([node("Mul", "x w")], [value("x", [1])], [value("y", None)], {"w": big}))
    assert "[w]" in by_weight.message
    assert str(list(dims)) in by_weight.message


@pytest.mark.parametrize("rank", [65, 300])
def test_a_tensor_of_too_many_axes(rank: int) -> None:
    fault = refused(model([node("Relu", "x")], [value("x", [1] * rank)], [value("y", None)]))
    assert fault.code == "E14001"
    assert f"it has {rank} axes, and tensors have at most 64" in fault.message
    parse_model(model([node("Relu", "x")], [value("x", [1] * 64)], [value("y", None)]))


@pytest.mark.parametrize(("op_type", "inputs"), [("Relu", "x"), ("MatMul", "x x"), ("Sum", "x x x")])
def test_texts_where_an_operator_takes_none(op_type: str, inputs: str) -> None:
    fault = refused(model([node(op_type, inputs)], [value("x", [2, 2], TensorProto.STRING)], [value("y", None)]))
    assert (fault.code, fault.fields["opname"]) == ("E11010", "n")
    assert "input 0" in fault.message
    assert "texts" in fault.message


@pytest.mark.parametrize(
    ("inputs", "takes"), [("x", "it has 1 inputs, but takes 2"), ("x x x", "it has 3 inputs, but takes 2")]
)
def test_wrong_number_of_inputs(inputs: str, takes: str) -> None:
    assert refused(model([node("Add", inputs)])).fields["reason"] == takes


def test_an_input_that_is_no_tensor() -> None:
    sequence = helper.make_tensor_sequence_value_info("x", TensorProto.FLOAT, [2])
    for given, what in ((sequence, "the type sequence"), (helper.make_empty_tensor_value_info("x"), "no type")):
        fault = refused(model([node("Identity", "x")], [given], [value("y", None)]))
        assert fault.code == "E13025"
        assert f"model input [x] has {what}" in fault.message


@pytest.mark.parametrize("version", [2**31, 2**62, -(2**63)])
def test_an_opset_version_of_64_bits(version: int) -> None:
    source = model([helper.make_node("Binarizer", ["x"], ["y"], "n", domain="ai.onnx.ml")], [value("x", [1, 3])])
    source.opset_import.append(helper.make_opsetid("ai.onnx.ml", version))
    if version < 0:
        assert all_of(refused(source)) == [("E13010", "n", f"ai.onnx.ml::{version}::Binarizer")]
    else:  # newer than any known version: the newest schema rules
        assert [n.type for n in parse_model(source)][1:] != []


@pytest.mark.parametrize(
    ("declared", "options", "told"),
    [
        (value("y", [9, 9]), {}, "FLOAT [9, 9], but its nodes make FLOAT [2, 3]"),
        (value("y", [2]), {}, "FLOAT [2], but its nodes make FLOAT [2, 3]"),
        (value("y", [2, 3], TensorProto.INT64), {}, "INT64 [2, 3], but its nodes make FLOAT [2, 3]"),
        (value("y", [2, 3]), {}, None),
        (value("y", ["n", 3]), {}, None),
        (value("y", None), {}, None),
        (value("y", [2, 3]), {"input_shape": {"x": (-1, 3)}}, None),
        (value("y", [2, 3]), {"input_shape": {"x": (4, 3)}}, None),  # asked for: the declared shape is no longer meant
    ],
)
def test_outputs_that_are_not_as_declared(declared: Any, options: dict[str, Any], told: str | None) -> None:
    compile_session = session(**options)
    source = model([node("Relu", "x")], [value("x", [2, 3])], [declared])
    parse(source.SerializeToString(), compile_session)
    wanted = [] if told is None else [f"the model declares its output y as {told}"]
    assert compile_session.warnings == wanted
