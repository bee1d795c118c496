"""Operator functions: signatures, what they add to a graph, what they return, where they are found."""

from __future__ import annotations

import importlib
import inspect
import subprocess
import sys
import typing
from typing import Any

import numpy as np
import pytest

from ge import es
from ge.es import GraphBuilder, TensorHolder, get_plugin, list_plugins
from ge.es import all as every
from ge.es.op_function import OperatorOutput, make_function
from ge.es.plugins import offered
from ge.graph import DataType, Graph, Tensor
from ge.graph_inference import infer_graph
from ge.ops import OpDef, lookup, registered_types
from ge.ops.inference import same_as
from ge.ops.registry import _REGISTRY, register
from ge.ops.signature import Arity, parse_signature
from ge.verify import verify
from tests.parsers.evaluation import evaluate

SAMPLE_OPERATORS = "GEMM Add MatMul BatchMatMulV2 Identity TensorMove Split Conv2D Concat ConcatV2 Relu"
BOUNDARY = {"Data", "RefData", "AippData", "AnyData", "Variable", "NetOutput", "AscBackend", "AscBackendNoKernelOp"}


def imported(statement: str) -> dict[str, Any]:
    """The names that an import statement brings."""
    found: dict[str, Any] = {}
    exec(statement, found)  # noqa: S102, what the import statement itself does is tested
    return found


def short(function: Any) -> str:
    """The signature with tensors shortened: T, and T+ where numbers and lists will do."""
    text = str(inspect.signature(function)).replace("'", "").replace("ge.es.all.", "")
    for long, name in (("ge.es.tensor_holder.", ""), ("TensorHolder | TensorLike", "T+"), ("TensorHolder", "T")):
        text = text.replace(long, name)
    return text


@pytest.mark.parametrize(
    ("name", "signature"),
    [
        ("MatMul", "(x1: T+, x2: T+, bias: T+ | None = None, *, "
                   "transpose_x1: bool = False, transpose_x2: bool = False) -> T"),
        ("GEMM", "(a: T+, b: T+, c: T+, alpha: T+, beta: T+, *, "
                 "transpose_a: bool = False, transpose_b: bool = False) -> T"),
        ("Split", "(split_dim: T+, x: T+, y_num: int, *, num_split: int) -> list[T]"),
        ("Concat", "(concat_dim: T+, x: list[T+], *, N: int = 1) -> T"),
        ("ConcatV2", "(x: list[T+], concat_dim: T+, *, N: int = 1) -> T"),
        ("ConcatD", "(x: list[T], *, concat_dim: int, N: int = 1) -> T"),
        ("Relu", "(x: T) -> T"),
        ("Cast", "(x: T, *, dst_type: int) -> T"),
        ("TensorMove", "(x: T) -> T"),
        ("Conv2D", "(x: T+, filter: T+, bias: T+ | None = None, offset_w: T+ | None = None, *, strides: list[int], "
                   "pads: list[int], dilations: list[int] = [1, 1, 1, 1], groups: int = 1, "
                   "data_format: str = NHWC, offset_x: int = 0) -> T"),
        ("SelectV2", "(condition: T+, then: T+, in_else: T+) -> T"),
        ("IdentityN", "(x: list[T], y_num: int) -> list[T]"),
        ("If", "(cond: T+, input: list[T+], output_num: int, then_branch: Graph, else_branch: Graph) -> list[T]"),
        ("Case", "(branch_index: T+, input: list[T+], output_num: int, branches: list[Graph]) -> list[T]"),
        ("TopK", "(x: T+, k: T+, *, sorted: bool = True, largest: bool = True, dim: int = -1) -> TopKOutput"),
        ("AddLayerNorm", "(x1: T+, x2: T+, gamma: T+, beta: T+, bias: T+ | None = None, *, epsilon: float = 1e-05, "
                         "additional_output: bool = False) -> AddLayerNormOutput"),
        ("NoOp", "(owner_graph_builder: GraphBuilder) -> T"),
        ("Const", "(owner_graph_builder: GraphBuilder, *, value: Tensor | None = None) -> T"),
        ("PadD", "(x: T, *, paddings: list[list[int]]) -> T"),
    ],
)  # fmt: skip
def test_signatures(name: str, signature: str) -> None:
    assert short(getattr(every, name)) == signature


def function(signature: str) -> Any:
    return make_function(OpDef(parse_signature(signature), same_as("x"), None))


@pytest.mark.parametrize(
    ("formal", "signature"),
    [
        ("Odd(x?)", "(x: T+ | None = None, owner_builder: GraphBuilder | None = None) -> T"),
        ("Odd(x?, w?) -> y, z*", "(x: T+ | None, w: T+ | None, owner_builder: GraphBuilder | None, z_num: int) "
                                 "-> OddOutput"),
        ("Odd(x, b?, c)", "(x: T+, b: T+ | None, c: T+) -> T"),
        ("Odd(lambda, x) -> in* [in:i=1 x:f!]", "(in_lambda: T+, x: T+, out_in_num: int, *, attr_in: int = 1, "
                                                "attr_x: float) -> list[T]"),
        ("Odd(var, x) -> var, y", "(var: T+, x: T+) -> OddOutput"),
        ("Odd(x*) -> x*", "(x: list[T], ref_x_num: int) -> list[T]"),
    ],
)  # fmt: skip
def test_names_and_defaults_follow_the_rules(formal: str, signature: str) -> None:
    assert short(function(formal)) == signature


def test_outputs_named_like_inputs_are_references() -> None:
    builder = GraphBuilder()
    a, b = builder.create_inputs(2)
    register(OpDef(parse_signature("RefOdd(var, x) -> var, from*"), same_as("x"), None))
    try:
        found = make_function(_REGISTRY["RefOdd"])(a, b, 2)
    finally:
        del _REGISTRY["RefOdd"]
    assert isinstance(found, OperatorOutput)
    assert (type(found).__name__, found._fields) == ("RefOddOutput", ("ref_var", "out_from"))
    assert [repr(h) for h in (found.ref_var, *found.out_from)] == [  # type: ignore[attr-defined]
        f"<TensorHolder RefOdd_0:{i}>" for i in range(3)
    ]


@pytest.mark.parametrize("name", [t for t in registered_types() if t not in BOUNDARY])
def test_every_operator_has_a_function(name: str) -> None:
    made = getattr(every, name)
    hints = typing.get_type_hints(made)
    definition = lookup(name)
    assert definition is not None
    assert (made.__name__, made.__module__) == (name, "ge.es.all")
    assert made.__doc__.startswith(f"Add the operator {name} ")
    parameters = inspect.signature(made).parameters
    assert set(hints) == {*parameters, "return"}
    keywords = [p for p in parameters.values() if p.kind is p.KEYWORD_ONLY]
    assert len(keywords) == len(definition.signature.attrs)
    given = [p for p in parameters.values() if p.kind is not p.KEYWORD_ONLY]
    dynamic = sum(p.arity is Arity.DYNAMIC for p in definition.signature.outputs)
    builders = sum("builder" in p.name for p in given)
    assert len(given) == len(definition.signature.inputs) + dynamic + len(definition.signature.subgraphs) + builders


# -- what a call does --------------------------------------------------------------------------------------------------
def test_arguments_become_ports_and_attributes() -> None:
    builder = GraphBuilder()
    x, w = builder.create_inputs(2)
    y = every.Conv2D(x, w, None, None, strides=(1, 1, 2, 2), pads=[0] * 4, data_format="NCHW")
    node = y._get_node_snapshot()
    assert [s.node.name for s in node.inputs if s is not None] == ["input_0", "input_1"]
    assert len(node.inputs) == 2
    assert node.attrs == {"strides": [1, 1, 2, 2], "pads": [0, 0, 0, 0], "data_format": "NCHW"}
    assert (node.get_attr("groups"), node.get_attr("dilations")) == (1, [1, 1, 1, 1])


def test_an_absent_input_before_a_present_one_keeps_its_slot() -> None:
    builder = GraphBuilder()
    x, sizes = builder.create_inputs(2)
    node = every.Resize(x, None, None, sizes)._get_node_snapshot()
    assert [None if s is None else s.node.name for s in node.inputs] == ["input_0", None, None, "input_1"]
    assert node.get_inputs_size() == 4


def test_numbers_become_constants_where_several_inputs_are() -> None:
    builder = GraphBuilder()
    x = builder.create_input(0)
    node = every.GEMM(x, [[1.0]], x, 1.0, 1)._get_node_snapshot()
    sources = [s.node for s in node.inputs if s is not None]
    assert [s.type for s in sources] == ["Data", "Const", "Data", "Const", "Const"]
    assert [s.get_output_desc(0).data_type.name for s in sources[3:]] == ["DT_FLOAT", "DT_INT64"]
    with pytest.raises(TypeError, match="Relu: input x must be a TensorHolder, not float"):
        every.Relu(1.0)
    with pytest.raises(TypeError, match="ConcatD: input x must be a TensorHolder, not int"):
        every.ConcatD([x, 1], concat_dim=0)


def test_dynamic_outputs_are_lists_several_outputs_objects() -> None:
    builder = GraphBuilder()
    x = builder.create_input(0)
    parts = every.Split(1, x, 3, num_split=3)
    assert [repr(p) for p in parts] == [f"<TensorHolder Split_1:{i}>" for i in range(3)]
    assert every.Split(1, x, 0, num_split=0) == []
    found = every.TopK(x, 2)
    assert repr(found) == "TopKOutput(values=<TensorHolder TopK_5:0>, indices=<TensorHolder TopK_5:1>)"
    assert found.values.get_owner_builder() is builder


def test_the_builder_is_taken_from_anywhere() -> None:
    builder = GraphBuilder()
    assert every.NoOp(builder)._get_node_snapshot().type == "NoOp"
    optional = function("Odd(x?)")
    with pytest.raises(ValueError, match="Odd: no builder is known"):
        optional()
    with pytest.raises(TypeError, match="NoOp: owner_graph_builder must be a GraphBuilder, not int"):
        every.NoOp(1)


def test_a_constant_may_hold_any_tensor() -> None:
    builder = GraphBuilder()
    value = Tensor([1, 2], data_type=DataType.DT_INT8, shape=[2, 1])
    graph = builder.build_and_reset([every.Const(builder, value=value)])
    desc = graph.get_direct_nodes()[0].get_output_desc(0)
    assert (desc.shape, desc.data_type) == ([2, 1], DataType.DT_INT8)
    verify(graph)


REFUSALS: dict[str, tuple[str, tuple[Any, ...], dict[str, Any], type[Exception], str]] = {
    "missing input": ("Add", ("x",), {}, TypeError, "Add: missing a required argument: 'x2'"),
    "none": ("Add", ("x", None), {}, TypeError, "Add: input x2 must be a tensor, not None"),
    "attribute by position": ("MatMul", ("x", "x", None, True), {}, TypeError, "MatMul: too many positional"),
    "unknown attribute": ("Relu", ("x",), {"alpha": 1}, TypeError, "Relu: got an unexpected keyword argument 'alpha'"),
    "missing attribute": ("Split", (1, "x", 2), {}, TypeError, "Split: missing a required.* argument: 'num_split'"),
    "attribute kind": ("Conv2D", ("x", "x"), {"strides": "a", "pads": [0]}, TypeError,
                       "attribute strides of Conv2D must be a list of int, not 'a' of type str"),
    "list kind": ("Conv2D", ("x", "x"), {"strides": [1.5], "pads": [0]}, TypeError, "strides of Conv2D"),
    "bool kind": ("MatMul", ("x", "x"), {"transpose_x1": 2}, TypeError, "transpose_x1 of MatMul must be a bool"),
    "type kind": ("RandomUniform", ("x",), {"dtype": 5}, TypeError, "dtype of RandomUniform must be a DataType"),
    "float kind": ("LeakyRelu", ("x",), {"negative_slope": "a"}, TypeError, "must be a float"),
    "not a list": ("ConcatV2", ("x", 1), {}, TypeError, "ConcatV2: x must be a list of tensors, not TensorHolder"),
    "hole in a list": ("ConcatV2", (["x", None], 1), {}, TypeError, "ConcatV2: input x must be a tensor, not None"),
    "ragged": ("Add", ("x", [[1], [2, 3]]), {}, ValueError, "Add: input x2: nested lists are ragged"),
    "count": ("Split", (1, "x", "2"), {"num_split": 2}, TypeError, "Split: y_num must be an int, not str"),
    "negative count": ("Split", (1, "x", -1), {"num_split": 2}, ValueError, "y_num must be between 0 and 65536"),
    "huge count": ("Split", (1, "x", 1 << 40), {"num_split": 2}, ValueError, "y_num must be between"),
    "body": ("PartitionedCall", (["x"], 1, "body"), {}, TypeError, "PartitionedCall: f must be a Graph, not str"),
    "bodies": ("Case", ("x", [], 1, Graph("b")), {}, TypeError, "Case: branches must be a list of Graph, not Graph"),
    "no tensor": ("Add", (1, 2), {}, ValueError, "Add: no builder is known"),
    "foreign": ("Add", ("x", "foreign"), {}, ValueError, "Add: tensors of two builders, one and other"),
}  # fmt: skip


@pytest.mark.parametrize(("name", "args", "kwargs", "error", "message"), REFUSALS.values(), ids=REFUSALS)
def test_refusals(
    name: str, args: tuple[Any, ...], kwargs: dict[str, Any], error: type[Exception], message: str
) -> None:
    builder = GraphBuilder("one")
    holders = {"x": builder.create_input(0), "foreign": GraphBuilder("other").create_input(0)}

    def real(value: Any) -> Any:
        if isinstance(value, list):
            return [real(v) for v in value]
        return holders.get(value, value) if isinstance(value, str) else value

    with pytest.raises(error, match=message):
        getattr(every, name)(*map(real, args), **kwargs)


# -- bodies ------------------------------------------------------------------------------------------------------------
def scaled(name: str, factor: float) -> Graph:
    body = GraphBuilder(name)
    return body.build_and_reset([body.create_input(0) * factor])


def test_bodies_belong_to_the_graph_of_their_operator() -> None:
    builder = GraphBuilder("main")
    condition = builder.create_input(0, data_type=DataType.DT_BOOL)
    x = builder.create_input(1, shape=[2])
    (y,) = every.If(condition, [x], 1, scaled("twice", 2.0), scaled("half", 0.5))
    graph = builder.build_and_reset([y])
    verify(graph)
    infer_graph(graph)
    assert graph.find_node_by_name("If_0").get_output_desc(0).shape == [2]
    assert [part.name for part in graph.get_all_subgraphs()] == ["twice", "half"]
    names = [node.name for node in graph.get_all_nodes()]
    assert len(set(names)) == len(names)
    assert "twice/Mul_1" in names
    for decision, factor in ((True, 2.0), (False, 0.5)):
        value = np.float32([1.5, -3])
        (found,) = evaluate(graph, [np.array(decision), value])
        np.testing.assert_array_equal(found, value * np.float32(factor))


def test_a_body_is_used_once() -> None:
    builder = GraphBuilder("main")
    x = builder.create_input(0)
    body = scaled("body", 2.0)
    every.PartitionedCall([x], 1, body)
    with pytest.raises(RuntimeError, match="already has a subgraph named body"):
        every.PartitionedCall([x], 1, body)


def test_numbered_branches() -> None:
    builder = GraphBuilder("main")
    index = builder.create_input(0, data_type=DataType.DT_INT32)
    x = builder.create_input(1, shape=[1])
    (y,) = every.Case(index, [x], 1, [scaled(f"by{k}", float(k)) for k in range(3)])
    assert y._get_node_snapshot().subgraphs == [(f"branches{k}", f"by{k}") for k in range(3)]
    graph = builder.build_and_reset([y])
    infer_graph(graph)
    verify(graph)


# -- numbers -----------------------------------------------------------------------------------------------------------
def test_a_built_graph_computes_what_it_says() -> None:
    builder = GraphBuilder("net")
    a = builder.create_input(0, shape=[3, 4])
    b = builder.create_input(1, shape=[2, 4])
    left, right = every.Split(1, every.MatMul(a, b, transpose_x2=True), 2, num_split=2)
    joined = every.ConcatV2([right, left], 1, N=2)
    graph = builder.build_and_reset([every.Relu(joined.add([[0.5, 1.0]]) / 2.0)])
    infer_graph(graph)
    verify(graph)
    rng = np.random.default_rng(5)
    x, y = rng.normal(size=(3, 4)).astype(np.float32), rng.normal(size=(2, 4)).astype(np.float32)
    product = x.astype(np.float64) @ y.T.astype(np.float64)
    expected = np.maximum((product[:, ::-1] + [0.5, 1.0]) / 2, 0)
    assert expected.std() > 0.1
    np.testing.assert_allclose(evaluate(graph, [x, y])[0], expected, rtol=1e-5, atol=1e-6)


# -- modules -----------------------------------------------------------------------------------------------------------
def test_plugins_are_listed() -> None:
    assert list_plugins() == ["all", "custom", "math", "nn"]
    assert get_plugin("math") is importlib.import_module("ge.es.math")
    assert get_plugin("unknown") is None
    assert {"GraphBuilder", "TensorHolder", "list_plugins", "get_plugin"} == set(es.__all__)


@pytest.mark.parametrize("plugin", ["all", "math", "nn"])
@pytest.mark.parametrize("name", SAMPLE_OPERATORS.split())
def test_samples_find_their_operators_in_any_module(plugin: str, name: str) -> None:
    found = imported(f"from ge.es.{plugin} import {name}")
    assert found[name] is getattr(every, name)


@pytest.mark.parametrize("name", ["NoSuchOperator", "Data", "NetOutput", "_private"])
def test_an_absent_operator_is_an_import_error(name: str) -> None:
    with pytest.raises(ImportError, match=f"cannot import name '{name}'"):
        imported(f"from ge.es.math import {name}")
    with pytest.raises(AttributeError, match=f"ge.es.math has no operator {name}"):
        getattr(importlib.import_module("ge.es.math"), name)


def test_star_import_and_dir_give_all_operators() -> None:
    found = imported("from ge.es.nn import *")
    expected = sorted(set(registered_types()) - BOUNDARY)
    assert sorted(set(found) - {"__builtins__"}) == expected
    assert dir(get_plugin("nn")) == expected


def test_custom_operators_appear_when_they_are_registered() -> None:
    with pytest.raises(ImportError, match="cannot import name 'AddCustom'"):
        imported("from ge.es.custom import AddCustom")
    register(OpDef(parse_signature("AddCustom(x1, x2)"), same_as("x1"), None, plugin="custom"))
    try:
        found = imported("from ge.es.custom import AddCustom")
        assert found["AddCustom"] is every.AddCustom
        assert offered("custom") == ["AddCustom"]
        builder = GraphBuilder()
        assert found["AddCustom"](builder.create_input(0), 1.0).name == "AddCustom_1"
    finally:
        del _REGISTRY["AddCustom"]
    assert offered("custom") == []


def test_functions_are_made_on_demand() -> None:
    """Importing the modules makes no function: it costs what importing the registry costs."""
    code = (
        "import sys, ge.es, ge.es.all, ge.es.math, ge.es.nn, ge.es.custom; "
        "assert 'ge.es.op_function' not in sys.modules; ge.es.all.Relu; assert 'ge.es.op_function' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_holders_are_what_functions_take() -> None:
    assert isinstance(GraphBuilder().create_input(0), TensorHolder)
