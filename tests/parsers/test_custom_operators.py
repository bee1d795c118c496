"""ONNX nodes for which custom operators stand."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, NodeProto, TensorProto, helper

from ge.custom_ops import custom_operators
from ge.errors import ReportedError
from ge.graph import DataType, Graph, Node, Tensor
from parsers.onnx import check_onnx_names, mapping, parse, precheck
from tests.parsers.evaluation import evaluate, parse_model, session
from tests.parsers.onnx_models import graph, model, node, value

X = np.array([[1, -2, 3], [4, 5, -6]], np.float32)


@contextmanager
def declared(folder: Path, signature: str, compute: str, infer: str = "same_as('x')", **flags: str) -> Iterator[None]:
    """Let one operator be known in the block; ``compute`` is a lambda."""
    options = "".join(f", {name}={given}" for name, given in flags.items())
    text = (
        "import numpy as np\nfrom ge.graph import DataType\nfrom ge.ops import operator\n"
        f"from ge.ops.inference import same_as\n\noperator({signature!r}, infer={infer}{options})({compute})\n"
    )
    (folder / "mine.py").write_text(text)
    with custom_operators(folder) as operators:
        check_onnx_names(operators)
        yield


def custom(op_type: str, inputs: str = "x", outputs: str = "y", domain: str = "acme", **attributes: Any) -> NodeProto:
    made = node(op_type, inputs, outputs, "n", **attributes)
    made.domain = domain
    return made


def of(*nodes: NodeProto, dims: Any = (2, 3), outputs: tuple[str, ...] = ("y",), inputs: str = "x") -> ModelProto:
    ends = [value(name, dims) for name in inputs.split()]
    return model(list(nodes), ends, [value(name, None) for name in outputs], imports={"acme": 1})


def found(graph: Graph, name: str = "n") -> Node:
    result = graph.find(name)
    assert result is not None
    return result


def refused(source: ModelProto) -> ReportedError:
    with pytest.raises(ReportedError) as caught:
        parse_model(source)
    return caught.value


# -- names -------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("onnx", "domain"),
    [
        ("'acme::Double'", "acme"),
        ("'Double'", ""),
        ("'ai.onnx::Double'", ""),
        ("['acme::Other', 'ai.onnx::Double']", "ai.onnx"),
        ("('ai.onnx::Double', 'acme::Double')", "acme"),
        ("{'acme::Double': {}}", "acme"),
    ],
)
def test_a_domain_of_its_own_or_that_of_onnx(tmp_path, onnx, domain) -> None:
    with declared(tmp_path, "Twice(x)", "lambda op, x: x * 2", onnx=onnx):
        parsed = parse_model(of(custom("Double", domain=domain), node("Neg", "y", "z", "neg"), outputs=("z",)))
        assert [(n.name, n.type) for n in parsed] == [("x", "Data"), ("n", "Twice"), ("neg", "Neg")]
        assert found(parsed).attrs["_datadump_original_op_names"] == ["n"]
        np.testing.assert_array_equal(evaluate(parsed, [X])[0], -2 * X)


def test_names_are_not_shared_between_domains(tmp_path) -> None:
    with declared(tmp_path, "Twice(x)", "lambda op, x: x * 2", onnx="'acme::Double'"):
        error = refused(of(custom("Double", domain="")))
    assert (error.code, error.fields["optype"]) == ("E13010", "ai.onnx::13::Double")
    assert "custom_ops" in error.solution


def test_a_custom_operator_may_be_called_like_one_of_onnx_in_another_domain(tmp_path) -> None:
    """Add of opset 6 had attributes of its own, which must not be looked for here."""
    with declared(tmp_path, "MyAdd(x, b)", "lambda op, x, b: x - b", onnx="'acme::Add'"):
        parsed = parse_model(of(custom("Add", "x b"), inputs="x b"))
        np.testing.assert_array_equal(evaluate(parsed, [X, X[::-1]])[0], X - X[::-1])


@pytest.mark.parametrize("name", ["Relu", "ai.onnx::Softmax", "ai.onnx.ml::Scaler", "ai.onnx.preview.training::Adam"])
def test_operators_of_onnx_cannot_be_replaced(tmp_path, name) -> None:
    with pytest.raises(ReportedError) as caught, declared(tmp_path, "Mine(x)", "lambda op, x: x", onnx=repr(name)):
        pass
    full = name if "::" in name else f"ai.onnx::{name}"
    assert (caught.value.code, caught.value.fields["passname"]) == ("E13030", "Mine")
    assert f"{tmp_path / 'mine.py'}: ONNX itself defines {full}" in caught.value.message


def test_operators_of_other_domains_that_are_mapped_here_cannot_be_replaced(tmp_path, monkeypatch) -> None:
    monkeypatch.setitem(mapping._MAPPINGS, ("com.example", "Known"), mapping.Row("Relu"))
    with (
        pytest.raises(ReportedError, match=r"E13030.*com\.example::Known has a meaning here"),
        declared(tmp_path, "Mine(x)", "lambda op, x: x", onnx="'com.example::Known'"),
    ):
        pass


def test_the_domain_must_be_imported(tmp_path) -> None:
    with declared(tmp_path, "Twice(x)", "lambda op, x: x", onnx="'elsewhere::Twice'"):
        error = refused(of(custom("Twice", domain="elsewhere")))
    assert error.code == "E19999"
    assert "[elsewhere], which the model does not import" in error.message


def test_a_function_of_the_model_comes_first(tmp_path) -> None:
    """A model that says itself what the operator is means that."""
    opsets = [helper.make_opsetid("", 13)]
    negate = helper.make_function("acme", "Twice", ["a"], ["b"], [helper.make_node("Neg", ["a"], ["b"])], opsets)
    source = of(custom("Twice"))
    source.functions.append(negate)
    with declared(tmp_path, "Twice(x)", "lambda op, x: x * 2", onnx="'acme::Twice'"):
        np.testing.assert_array_equal(evaluate(parse_model(source), [X])[0], -X)


def test_inside_functions_and_bodies(tmp_path) -> None:
    body = helper.make_graph([custom("Twice", "x", "t")], "b", [], [value("t", None)])
    other = helper.make_graph([node("Neg", "x", "e")], "b", [], [value("e", None)])
    branch = node("If", "c", "y", "if", then_branch=body, else_branch=other)
    call = custom("Wrapped", "y", "z")
    wrapped = helper.make_function(
        "acme",
        "Wrapped",
        ["a"],
        ["b"],
        [helper.make_node("Twice", ["a"], ["b"], "inner", domain="acme")],
        [helper.make_opsetid("acme", 1)],
    )
    ends = [value("x", (2, 3)), value("c", (), TensorProto.BOOL)]
    source = model([branch, call], ends, [value("z", None)], imports={"acme": 1}, functions=[wrapped])
    with declared(tmp_path, "Twice(x)", "lambda op, x: x * 2", onnx="'acme::Twice'"):
        parsed = parse_model(source)
        assert [n.type for part in parsed.all_graphs() for n in part].count("Twice") == 2
        for condition, expected in ((True, 4 * X), (False, -2 * X)):
            np.testing.assert_array_equal(evaluate(parsed, [X, np.array(condition)])[0], expected)


def test_checking_a_model_knows_them_while_they_are_there(tmp_path) -> None:
    source = of(custom("Twice")).SerializeToString()
    with declared(tmp_path, "Twice(x)", "lambda op, x: x * 2", onnx="'acme::Twice'"):
        assert [checked.causes for checked in precheck(source, session())] == [()]
    [checked] = precheck(source, session())
    assert [cause.code for cause in checked.causes] == ["E13010"]


# -- attributes --------------------------------------------------------------------------------------------------------
ALL_KINDS = "Mine(x) [i:i! f:f=0 b:b=F s:s=none t:t=FLOAT I:I=[] F:F=[] B:B=[] S:S=[] tensor:tensor=none]"


def test_attributes_of_all_kinds(tmp_path) -> None:
    tensor = helper.make_tensor("t", TensorProto.INT32, [2], [7, 8])
    given = {
        "i": -3, "f": 0.5, "b": 1, "s": "text", "t": int(TensorProto.FLOAT16), "I": [1, 2], "F": [0.25, 2.0],
        "B": [1, 0], "S": ["a", "b"], "tensor": tensor,
    }  # fmt: skip
    with declared(tmp_path, ALL_KINDS, "lambda op, x: x", onnx="'acme::Mine'"):
        attrs = found(parse_model(of(custom("Mine", **given)))).attrs
    held = attrs["tensor"]
    assert isinstance(held, Tensor)
    assert held.array.tolist() == [7, 8]
    assert {name: attrs[name] for name in given if name != "tensor"} == {
        "i": -3, "f": 0.5, "b": True, "s": "text", "t": DataType.DT_FLOAT16, "I": [1, 2], "F": [0.25, 2.0],
        "B": [True, False], "S": ["a", "b"],
    }  # fmt: skip
    assert attrs["b"] is True


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({}, "attribute i is missing"),
        ({"i": 0.5}, "attribute i of Mine must be an int, not 0.5 of type float"),
        ({"i": 1, "f": "x"}, "attribute f of Mine must be a float, not 'x' of type str"),
        ({"i": 1, "b": 2}, "attribute b of Mine must be a bool, not 2 of type int"),
        ({"i": 1, "I": 3}, "attribute I of Mine must be a list of int, not 3"),
        ({"i": 1, "t": 99}, "attribute t of node n"),
        (
            {"i": 1, "s": graph([node("Neg", "x", "t")], [], [value("t")])},
            "attribute s has a type that cannot be used here",
        ),
    ],
)
def test_attributes_that_do_not_fit(tmp_path, given, reason) -> None:
    with declared(tmp_path, ALL_KINDS, "lambda op, x: x", onnx="'acme::Mine'"):
        error = refused(of(custom("Mine", **given)))
    assert reason in error.message
    assert "n" in error.message


def test_renamed_attributes(tmp_path) -> None:
    renames = "{'acme::Scaled': {'scale': 'alpha'}, 'acme::Plain': {}}"
    compute = "lambda op, x: x * op.alpha + op.beta"
    with declared(tmp_path, "Mine(x) [alpha:f=1 beta:f=0]", compute, onnx=renames):
        for op_type, given, expected in (
            ("Scaled", {"scale": 3.0, "beta": 1.0}, 3 * X + 1),
            ("Scaled", {"scale": 0.0}, 0 * X),
            ("Scaled", {}, X),
            ("Plain", {"alpha": 2.0}, 2 * X),
        ):
            np.testing.assert_array_equal(evaluate(parse_model(of(custom(op_type, **given))), [X])[0], expected)
        for op_type, given in (("Scaled", {"alpha": 5.0}), ("Plain", {"scale": 5.0})):
            own = session()
            parsed = parse(of(custom(op_type, **given)).SerializeToString(), own)
            np.testing.assert_array_equal(evaluate(parsed, [X])[0], X)
            assert own.warnings == [f"node n ({op_type}): attribute {next(iter(given))} is unknown and ignored"]


# -- inputs and outputs ------------------------------------------------------------------------------------------------
def test_optional_inputs(tmp_path) -> None:
    compute = "lambda op, x, a, b: x + (0 if a is None else 10 * a) + (0 if b is None else 100 * b)"
    with declared(tmp_path, "Mine(x, a?, b?)", compute, onnx="'acme::Mine'"):
        for names, expected in (("x", X), ("x a", 11 * X), ("x _ a", 101 * X), ("x a a", 111 * X), ("x _ _", X)):
            parsed = parse_model(of(custom("Mine", names), inputs="x a"))
            np.testing.assert_array_equal(evaluate(parsed, [X, X])[0], expected)


def test_dynamic_inputs_and_outputs(tmp_path) -> None:
    compute = "lambda op, x, rest: (x, *[x + r for r in rest])"
    infer = "lambda ctx: [(ctx.shape('x'), ctx.dtype('x'))] * ctx.n_outputs"
    with declared(tmp_path, "Mine(x, rest*) -> first, more*", compute, infer, onnx="'acme::Mine'"):
        for count in range(4):
            outputs = tuple(f"y{i}" for i in range(count + 1))
            parsed = parse_model(of(custom("Mine", " ".join(["x"] * (count + 1)), " ".join(outputs)), outputs=outputs))
            results = evaluate(parsed, [X])
            assert [r.tolist() for r in results] == [X.tolist()] + [(2 * X).tolist()] * count


def test_outputs_that_nobody_wants(tmp_path) -> None:
    infer = "lambda ctx: [(ctx.shape('x'), ctx.dtype('x'))] * 3"
    with declared(tmp_path, "Mine(x) -> a, b, c", "lambda op, x: (x, 2 * x, 3 * x)", infer, onnx="'acme::Mine'"):
        parsed = parse_model(of(custom("Mine", "x", "_ y")))
        assert len(found(parsed).output_descs) == 3
        np.testing.assert_array_equal(evaluate(parsed, [X])[0], 2 * X)
        error = refused(of(custom("Mine", "x", "a b c y")))
    assert (error.code, error.fields["reason"]) == ("E11010", "its output 3 (y) is not supported")


@pytest.mark.parametrize(
    ("signature", "inputs", "reason"),
    [
        ("Mine(x, b)", "x", "it has 1 inputs, but takes 2"),
        ("Mine(x)", "x x", "it has 2 inputs, but takes 1"),
        ("Mine(x, b, c?)", "x", "it has 1 inputs, but takes 2 to 3"),
        ("Mine(x, b, c*)", "x", "it has 1 inputs, but takes 2 or more"),
        ("Mine(x, b, c)", "x _ x", "its input b is absent"),
        ("Mine(x, b*)", "x _ x", "its input b is absent"),
    ],
)
def test_inputs_that_do_not_fit(tmp_path, signature, inputs, reason) -> None:
    with declared(tmp_path, signature, "lambda op, *x: x[0]", onnx="'acme::Mine'"):
        error = refused(of(custom("Mine", inputs)))
    assert (error.code, error.fields["opname"], error.fields["reason"]) == ("E11010", "n", reason)


def test_inference_gives_shapes_to_what_follows(tmp_path) -> None:
    """Flatten before opset 13 asks its mapping for the rank of what it gets."""
    infer = "lambda ctx: [([*ctx.shape('x'), 2], DataType.DT_DOUBLE)]"
    with declared(tmp_path, "Pairs(x)", "lambda op, x: np.stack([x, -x], -1)", infer, onnx="'acme::Pairs'"):
        parsed = parse_model(of(custom("Pairs"), node("Flatten", "y", "z", "f", axis=-1), outputs=("z",)))
        [result] = evaluate(parsed, [X])
    assert result.dtype == np.float64
    np.testing.assert_array_equal(result, np.stack([X, -X], -1).reshape(6, 2))


def test_a_fault_of_inference_names_the_node(tmp_path) -> None:
    with declared(tmp_path, "Mine(x)", "lambda op, x: x", "lambda ctx: missing", onnx="'acme::Mine'"):
        error = refused(of(custom("Mine")))
    assert (error.code, error.fields["opname"]) == ("E14001", "n")
    assert f"{tmp_path / 'mine.py'}, line 6: NameError: name 'missing' is not defined" in error.message


# -- a function of the node --------------------------------------------------------------------------------------------
def test_a_function_says_how(tmp_path) -> None:
    """Before: Mine(x, scale) with a constant scale. After: an attribute, and a Neg where it asks for one."""
    text = """
from ge.ops import operator
from ge.ops.inference import same_as


def from_onnx(n):
    scale = n.value(n.need(1))
    if scale is None:
        raise n.fail("its scale must be constant")
    made = n.add("Mine", n.input(0), alpha=float(scale))
    return n.add("Neg", made, role="Neg") if n.attr("negative", 0) else made


@operator("Mine(x) [alpha:f=1]", infer=same_as("x"), onnx={"acme::Mine": from_onnx})
def mine(op, x):
    return x * op.alpha
"""
    (tmp_path / "mine.py").write_text(text)
    constant = helper.make_node("Constant", [], ["s"], "c", value_float=2.5)
    with custom_operators(tmp_path):
        plain = parse_model(of(constant, custom("Mine", "x s")))
        assert [(n.name, n.type) for n in plain if n.type != "Const"] == [("x", "Data"), ("n", "Mine")]
        np.testing.assert_array_equal(evaluate(plain, [X])[0], 2.5 * X)
        negative = parse_model(of(constant, custom("Mine", "x s", negative=1)))
        np.testing.assert_array_equal(evaluate(negative, [X])[0], -2.5 * X)
        error = refused(of(custom("Mine", "x b"), inputs="x b"))
    assert (error.code, error.fields["reason"]) == ("E11010", "its scale must be constant")


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        ("lambda n: missing", "mine.py, line 6: NameError: name 'missing' is not defined"),
        ("lambda n: None", "returns None, not a node or outputs of nodes"),
        ("lambda n: []", "returns [], not a node or outputs of nodes"),
        ("lambda n: [n.input(0), None]", "not a node or outputs of nodes"),
        ("lambda n: n.add('NoSuchOperator', n.input(0)) and 3", "returns 3, not a node or outputs of nodes"),
        ("lambda n: n.input(0)", None),
        ("lambda n: (n.add('Mine', n.input(0)),)", None),
    ],
)
def test_what_such_a_function_may_return(tmp_path, function, reason) -> None:
    with declared(tmp_path, "Mine(x)", "lambda op, x: x", onnx=f"{{'acme::Mine': {function}}}"):
        if reason is None:
            np.testing.assert_array_equal(evaluate(parse_model(of(custom("Mine"))), [X])[0], X)
            return
        error = refused(of(custom("Mine")))
    assert (error.code, error.fields["opname"]) == ("E11010", "n")
    assert reason in error.message


def test_narrow_types_are_those_of_the_model(tmp_path) -> None:
    ends = [value("x", (2, 3), TensorProto.FLOAT16)]
    source = model([custom("Twice")], ends, [value("y", None)], imports={"acme": 1})
    with declared(tmp_path, "Twice(x)", "lambda op, x: x * 2", onnx="'acme::Twice'"):
        parsed = parse_model(source)
        [result] = evaluate(parsed, [X.astype(np.float16)])
    assert result.dtype == np.float16
    np.testing.assert_array_equal(result, 2 * X)
