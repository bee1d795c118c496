"""GraphBuilder and TensorHolder: what they make, how it is named, and what they refuse."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ge.es import GraphBuilder, TensorHolder
from ge.es.all import Add, NoOp, Relu
from ge.es.graph_builder import InputType, attr_scope, control_dependency_scope
from ge.es.tensor_like import convert_to_tensor_holder
from ge.graph import DataType, Format, Graph, Node
from ge.text import parse_graph, print_graph
from ge.verify import verify


@pytest.fixture
def builder() -> GraphBuilder:
    return GraphBuilder("net")


def node_of(holder: TensorHolder) -> Node:
    return holder._get_node_snapshot()


def constant(holder: TensorHolder) -> tuple[DataType, list[int], Any]:
    """Element type, shape and value of the Const that made a tensor."""
    node = node_of(holder)
    assert node.type == "Const"
    value = node.get_attr("value")
    assert node.get_output_desc(0).get_shape() == value.shape
    return value.data_type, list(value.shape), value.data


def test_a_graph_is_built_node_by_node(builder: GraphBuilder) -> None:
    a, b = builder.create_inputs(2)
    graph = builder.build_and_reset([Relu(a + b) * 2.0, b])
    assert print_graph(graph) == (
        "graph net(%input_0: f32[]@ND, %input_1: f32[]@ND) {\n"
        "  %Add_0 = Add(%input_0, %input_1) -> f32[-2]@ND\n"
        "  %Relu_1 = Relu(%Add_0) -> f32[-2]@ND\n"
        "  %Const_2 = Const {value=f32[]{2.0}} -> f32[]@ND\n"
        "  %Mul_3 = Mul(%Relu_1, %Const_2) -> f32[-2]@ND\n"
        "  %NetOutput_net:0 = NetOutput(%Mul_3, %input_1)\n"
        "  return %Mul_3, %input_1\n"
        "}"
    )
    verify(graph)


def test_inputs_have_types_names_and_descriptors(builder: GraphBuilder) -> None:
    image = builder.create_input(
        0, name="image", type_str=InputType.REF_DATA, data_type=DataType.DT_FLOAT16, format=Format.FORMAT_NCHW,
        shape=[1, 3, -1, 8],
    )  # fmt: skip
    plain = builder.create_input(1)
    assert (image.name, node_of(image).type, node_of(image).get_attr("index")) == ("image", "RefData", 0)
    desc = node_of(image).get_output_desc(0)
    assert (desc.shape, desc.origin_shape, desc.data_type) == ([1, 3, -1, 8], [1, 3, -1, 8], DataType.DT_FLOAT16)
    assert (desc.format, desc.origin_format) == (Format.FORMAT_NCHW, Format.FORMAT_NCHW)
    assert (plain.name, node_of(plain).type, node_of(plain).get_output_desc(0).shape) == ("input_1", "Data", [])


def test_input_types() -> None:
    assert [t.value for t in InputType] == ["Data", "RefData", "AippData", "AnyData"]


CONSTANTS: dict[str, tuple[Callable[[GraphBuilder], TensorHolder], DataType, list[int], Any]] = {
    "int64": (lambda b: b.create_const_int64(5), DataType.DT_INT64, [], 5),
    "int64 list": (lambda b: b.create_const_int64([5, -6]), DataType.DT_INT64, [2], [5, -6]),
    "int64 shaped": (lambda b: b.create_const_int64([1, 2, 3, 4], [2, 2]), DataType.DT_INT64, [2, 2], [[1, 2], [3, 4]]),
    "int32": (lambda b: b.create_const_int32([1], shape=[]), DataType.DT_INT32, [], 1),
    "uint64": (lambda b: b.create_const_uint64(2**64 - 1), DataType.DT_UINT64, [], 2**64 - 1),
    "uint32": (lambda b: b.create_const_uint32([2**32 - 1]), DataType.DT_UINT32, [1], [2**32 - 1]),
    "float": (lambda b: b.create_const_float(1), DataType.DT_FLOAT, [], 1.0),
    "float one": (lambda b: b.create_const_float(0.5, [1, 1]), DataType.DT_FLOAT, [1, 1], [[0.5]]),
    "vector": (lambda b: b.create_vector_int64([7, 8]), DataType.DT_INT64, [2], [7, 8]),
    "empty": (lambda b: b.create_vector_int64([]), DataType.DT_INT64, [0], []),
    "scalar int64": (lambda b: b.create_scalar_int64(-1), DataType.DT_INT64, [], -1),
    "scalar int32": (lambda b: b.create_scalar_int32(-1), DataType.DT_INT32, [], -1),
    "scalar uint64": (lambda b: b.create_scalar_uint64(1), DataType.DT_UINT64, [], 1),
    "scalar uint32": (lambda b: b.create_scalar_uint32(1), DataType.DT_UINT32, [], 1),
    "scalar float": (lambda b: b.create_scalar_float(0.25), DataType.DT_FLOAT, [], 0.25),
}


@pytest.mark.parametrize(("make", "data_type", "shape", "value"), CONSTANTS.values(), ids=CONSTANTS)
def test_constants(
    builder: GraphBuilder,
    make: Callable[[GraphBuilder], TensorHolder],
    data_type: DataType,
    shape: list[int],
    value: Any,
) -> None:
    assert constant(make(builder)) == (data_type, shape, value)


def test_float_constants_are_rounded_once(builder: GraphBuilder) -> None:
    array = node_of(builder.create_scalar_float(0.1)).attrs["value"].array
    assert array.tobytes() == np.float32(0.1).tobytes()
    assert constant(builder.create_scalar_float(1e39))[2] == float("inf")


@pytest.mark.parametrize(
    ("value", "data_type", "shape", "data"),
    [
        (3, DataType.DT_INT64, [], 3),
        (True, DataType.DT_INT64, [], 1),
        (0.5, DataType.DT_FLOAT, [], 0.5),
        ([1, 2], DataType.DT_INT64, [2], [1, 2]),
        ([[1, 2.5], [3, 4]], DataType.DT_FLOAT, [2, 2], [[1.0, 2.5], [3.0, 4.0]]),
        ([[[1]], [[2]]], DataType.DT_INT64, [2, 1, 1], [[[1]], [[2]]]),
        ([], DataType.DT_INT64, [0], []),
    ],
)
def test_numbers_stand_for_tensors(
    builder: GraphBuilder, value: Any, data_type: DataType, shape: list[int], data: Any
) -> None:
    holder = convert_to_tensor_holder(value, builder)
    assert holder is not None
    assert constant(holder) == (data_type, shape, data)


def test_none_is_an_absent_input_and_holders_stay(builder: GraphBuilder) -> None:
    holder = builder.create_input(0)
    assert convert_to_tensor_holder(None, builder) is None
    assert convert_to_tensor_holder(holder, builder) is holder


@pytest.mark.parametrize(
    ("value", "error"),
    [([[1, 2], [3]], ValueError), ([1, [2]], ValueError), ("a", TypeError), (["a"], TypeError), ((1, 2), TypeError)],
)
def test_other_values_do_not_stand_for_tensors(builder: GraphBuilder, value: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        convert_to_tensor_holder(value, builder)
    assert len(builder.build_and_reset()) == 0


OPERATORS: dict[str, tuple[Callable[[TensorHolder, TensorHolder], TensorHolder], str, list[str]]] = {
    "a + b": (lambda a, b: a + b, "Add", ["input_0", "input_1"]),
    "a - b": (lambda a, b: a - b, "Sub", ["input_0", "input_1"]),
    "a * b": (lambda a, b: a * b, "Mul", ["input_0", "input_1"]),
    "a / b": (lambda a, b: a / b, "Div", ["input_0", "input_1"]),
    "a.add(b)": (lambda a, b: a.add(b), "Add", ["input_0", "input_1"]),
    "a.sub(2)": (lambda a, b: a.sub(2), "Sub", ["input_0", "Const_0"]),
    "a.mul([2])": (lambda a, b: a.mul([2]), "Mul", ["input_0", "Const_0"]),
    "a.div(2)": (lambda a, b: a.div(2), "Div", ["input_0", "Const_0"]),
    "2 + a": (lambda a, b: 2 + a, "Add", ["input_0", "Const_0"]),
    "2 - a": (lambda a, b: 2 - a, "Sub", ["Const_0", "input_0"]),
    "2 * a": (lambda a, b: 2 * a, "Mul", ["input_0", "Const_0"]),
    "2 / a": (lambda a, b: 2 / a, "Div", ["Const_0", "input_0"]),
    "[[1.5]] - a": (lambda a, b: [[1.5]] - a, "Sub", ["Const_0", "input_0"]),
}


@pytest.mark.parametrize(("make", "type_", "sources"), OPERATORS.values(), ids=OPERATORS)
def test_python_operators(
    builder: GraphBuilder, make: Callable[[TensorHolder, TensorHolder], TensorHolder], type_: str, sources: list[str]
) -> None:
    """Reflected + and * put the tensor first, as in CANN."""
    a, b = builder.create_inputs(2)
    node = node_of(make(a, b))
    assert node.type == type_
    assert [node.get_in_data_nodes_and_port_indexes(i)[0].name for i in range(2)] == sources


def test_setters_chain_and_reach_the_readers(builder: GraphBuilder) -> None:
    a = builder.create_input(0)
    reader = node_of(Relu(a))
    assert a.set_shape([2, 3]).set_data_type(DataType.DT_INT8).set_format(Format.FORMAT_NHWC) is a
    for desc in (node_of(a).get_output_desc(0), reader.get_input_desc(0)):
        assert (desc.shape, desc.origin_shape, desc.data_type) == ([2, 3], [2, 3], DataType.DT_INT8)
        assert (desc.format, desc.origin_format) == (Format.FORMAT_NHWC, Format.FORMAT_NHWC)


def test_attributes_go_to_graph_tensor_and_node(builder: GraphBuilder) -> None:
    a = builder.create_input(0)
    for name, value in (("int64", 7), ("string", "s"), ("bool", True)):
        assert getattr(builder, f"set_graph_attr_{name}")(f"g_{name}", value) is None
        assert getattr(builder, f"set_tensor_attr_{name}")(a, f"t_{name}", value) is None
        assert getattr(builder, f"set_node_attr_{name}")(a, f"n_{name}", value) is None
        assert node_of(a).get_output_attr(f"t_{name}", 0) == node_of(a).get_attr(f"n_{name}") == value
    graph = builder.build_and_reset([a])
    assert [graph.get_attr(f"g_{name}") for name in ("int64", "string", "bool")] == [7, "s", True]


def test_control_dependencies(builder: GraphBuilder) -> None:
    a, b = builder.create_inputs(2)
    barrier = NoOp(builder)
    assert builder.add_control_dependency(Relu(a), [barrier, b]) is None
    graph = builder.build_and_reset()
    assert [n.name for n in graph.find_node_by_name("Relu_1").get_in_control_nodes()] == ["NoOp_0", "input_1"]
    with pytest.raises(ValueError, match=r"node NoOp_0 \(NoOp\) has no output"):
        barrier._output()


def test_a_variable_is_a_node(builder: GraphBuilder) -> None:
    variable = node_of(builder.create_variable(3, "weights"))
    assert (variable.name, variable.type, variable.get_attr("index")) == ("weights", "Variable", 3)


# -- scopes ------------------------------------------------------------------------------------------------------------
def test_scopes_apply_to_every_node_made_inside(builder: GraphBuilder) -> None:
    before = builder.create_input(0)
    with attr_scope({"_label": "outer", "_kept": 1}), control_dependency_scope([before]):
        outer = before + 1.0
        with attr_scope({"_label": "inner"}), control_dependency_scope([outer]):
            inner = Relu(outer)
    after = Relu(inner)
    graph = builder.build_and_reset([after])
    found = {
        node.name: (
            node.attrs.get("_label"), node.attrs.get("_kept"), [n.name for n in node.get_in_control_nodes()]
        )
        for node in graph.get_direct_nodes()
    }  # fmt: skip
    assert found == {
        "input_0": (None, None, []),
        "Const_0": ("outer", 1, ["input_0"]),
        "Add_1": ("outer", 1, ["input_0"]),
        "Relu_2": ("inner", 1, ["input_0", "Add_1"]),
        "Relu_3": (None, None, []),
        "NetOutput_net": (None, None, []),
    }


def test_scopes_end_with_a_fault(builder: GraphBuilder) -> None:
    a = builder.create_input(0)
    with pytest.raises(RuntimeError, match="stop"), attr_scope({"_label": "x"}):
        raise RuntimeError("stop")
    assert not node_of(Relu(a)).has_attr("_label")


@pytest.mark.parametrize("scope", [lambda: attr_scope(["a"]), lambda: control_dependency_scope("a")])  # type: ignore[arg-type]
def test_scopes_check_their_arguments(scope: Callable[[], Any]) -> None:
    with pytest.raises(TypeError, match="must"), scope():
        pass


# -- the end -----------------------------------------------------------------------------------------------------------
AFTERWARDS: dict[str, Callable[[GraphBuilder, TensorHolder], object]] = {
    "input": lambda b, t: b.create_input(1),
    "inputs": lambda b, t: b.create_inputs(1, 1),
    "constant": lambda b, t: b.create_const_float(1.0),
    "scalar": lambda b, t: b.create_scalar_int32(1),
    "vector": lambda b, t: b.create_vector_int64([1]),
    "variable": lambda b, t: b.create_variable(1, "v"),
    "operator": lambda b, t: Relu(t),
    "sum": lambda b, t: t + t,
    "output": lambda b, t: b.set_graph_output(t, 1),
    "graph attr": lambda b, t: b.set_graph_attr_int64("a", 1),
    "tensor attr": lambda b, t: b.set_tensor_attr_bool(t, "a", True),
    "node attr": lambda b, t: b.set_node_attr_string(t, "a", "b"),
    "control": lambda b, t: b.add_control_dependency(t, []),
    "type": lambda b, t: t.set_data_type(DataType.DT_INT8),
    "format": lambda b, t: t.set_format(Format.FORMAT_ND),
    "shape": lambda b, t: t.set_shape([1]),
    "again": lambda b, t: b.build_and_reset(),
}


@pytest.mark.parametrize("use", AFTERWARDS.values(), ids=AFTERWARDS)
def test_a_builder_builds_once(builder: GraphBuilder, use: Callable[[GraphBuilder, TensorHolder], object]) -> None:
    a = builder.create_input(0)
    graph = builder.build_and_reset([a])
    before = print_graph(graph)
    with pytest.raises(RuntimeError, match="the graph net is built already"):
        use(builder, a)
    assert print_graph(graph) == before


def test_holders_still_show_their_nodes(builder: GraphBuilder) -> None:
    a = builder.create_input(0)
    graph = builder.build_and_reset([a])
    assert (a.name, a.get_owner_builder()) == ("input_0", builder)
    assert node_of(a) is graph.find_node_by_name("input_0")


def test_outputs_may_be_set_one_by_one(builder: GraphBuilder) -> None:
    a, b = builder.create_inputs(2)
    builder.set_graph_output(b, 1)
    builder.set_graph_output(a, 0)
    assert [out.node.name for out in builder.build_and_reset().outputs] == ["input_0", "input_1"]


def test_a_graph_without_outputs_has_no_net_output(builder: GraphBuilder) -> None:
    builder.create_input(0)
    assert [n.type for n in builder.build_and_reset().get_direct_nodes()] == ["Data"]


def test_default_names() -> None:
    assert GraphBuilder().name == GraphBuilder().build_and_reset().name == "graph"


FAILURES: dict[str, tuple[Callable[[GraphBuilder, TensorHolder], object], type[Exception], str]] = {
    "index taken": (lambda b, t: b.create_input(0, name="n"), RuntimeError, "input index 0 is taken by input_0"),
    "negative index": (lambda b, t: b.create_input(-1), RuntimeError, "input index -1 is negative"),
    "name taken": (lambda b, t: b.create_input(1, name="input_0"), RuntimeError, "already has a node named input_0"),
    "input gap": (lambda b, t: (b.create_input(2), b.build_and_reset()), RuntimeError, "no input 1"),
    "output gap": (lambda b, t: (b.set_graph_output(t, 1), b.build_and_reset()), RuntimeError, "no output 0"),
    "output taken": (lambda b, t: [b.set_graph_output(t, 0) for _ in "12"], RuntimeError, "is taken by input_0:0"),
    "negative output": (lambda b, t: b.set_graph_output(t, -1), RuntimeError, "output index -1 is negative"),
    "too few values": (lambda b, t: b.create_const_float([1.0], [2]), ValueError, "2 elements, 1 values"),
    "negative uint32": (lambda b, t: b.create_scalar_uint32(-1), ValueError, "outside the range of DT_UINT32"),
    "large int32": (lambda b, t: b.create_const_int32([2**31]), ValueError, "outside the range of DT_INT32"),
    "negative uint64": (lambda b, t: b.create_scalar_uint64(-1), ValueError, "outside the range of DT_UINT64"),
    "large int64": (lambda b, t: b.create_scalar_int64(2**63), ValueError, "outside the range of DT_INT64"),
    "huge float": (lambda b, t: b.create_scalar_float(10**400), ValueError, "does not fit into DT_FLOAT"),
    "foreign output": (lambda b, t: GraphBuilder("o").set_graph_output(t, 0), ValueError, "belongs to the builder net"),
    "foreign sum": (lambda b, t: GraphBuilder("o").create_input(0) + t, ValueError, "belongs to the builder"),
    "foreign control": (lambda b, t: GraphBuilder("o").add_control_dependency(t, []), ValueError, "builder net"),
    "name": (lambda b, t: GraphBuilder(3), TypeError, "graph name"),  # type: ignore[arg-type]
    "index": (lambda b, t: b.create_input("1"), TypeError, "index"),  # type: ignore[arg-type]
    "input type": (lambda b, t: b.create_input(1, type_str="Data"), TypeError, "type_str"),  # type: ignore[arg-type]
    "input name": (lambda b, t: b.create_input(1, name=1), TypeError, "name"),  # type: ignore[arg-type]
    "input shape": (lambda b, t: b.create_input(1, shape="1"), TypeError, "shape"),  # type: ignore[arg-type]
    "input dtype": (lambda b, t: b.create_input(1, data_type=0), TypeError, "data type"),  # type: ignore[arg-type]
    "no inputs": (lambda b, t: b.create_inputs(0), TypeError, "num must be a positive int"),
    "start": (lambda b, t: b.create_inputs(1, -1), TypeError, "start_index"),
    "int value": (lambda b, t: b.create_const_int64(1.5), TypeError, "DT_INT64"),  # type: ignore[arg-type]
    "list value": (lambda b, t: b.create_const_float([[1.0]]), TypeError, "DT_FLOAT"),  # type: ignore[list-item]
    "vector": (lambda b, t: b.create_vector_int64(1), TypeError, "value"),  # type: ignore[arg-type]
    "scalar": (lambda b, t: b.create_scalar_int32([1]), TypeError, "number"),  # type: ignore[arg-type]
    "variable": (lambda b, t: b.create_variable(1, 2), TypeError, "name"),  # type: ignore[arg-type]
    "output": (lambda b, t: b.set_graph_output("t", 0), TypeError, "TensorHolder"),  # type: ignore[arg-type]
    "output index": (lambda b, t: b.set_graph_output(t, None), TypeError, "int"),  # type: ignore[arg-type]
    "bool attr": (lambda b, t: b.set_graph_attr_bool("a", 1), TypeError, "value"),  # type: ignore[arg-type]
    "string attr": (lambda b, t: b.set_node_attr_string(t, "a", 1), TypeError, "value"),  # type: ignore[arg-type]
    "attr name": (lambda b, t: b.set_tensor_attr_int64(t, 1, 1), TypeError, "name"),  # type: ignore[arg-type]
    "control list": (lambda b, t: b.add_control_dependency(t, t), TypeError, "src_tensors"),  # type: ignore[arg-type]
    "outputs": (lambda b, t: b.build_and_reset(t), TypeError, "list of TensorHolder"),  # type: ignore[arg-type]
    "holder shape": (lambda b, t: t.set_shape(3), TypeError, "shape"),  # type: ignore[arg-type]
    "holder type": (lambda b, t: t.set_data_type(0), TypeError, "DataType"),  # type: ignore[arg-type]
    "holder format": (lambda b, t: t.set_format(0), TypeError, "Format"),  # type: ignore[arg-type]
    "sum": (lambda b, t: t + "a", TypeError, "TensorHolder"),  # type: ignore[operator]
    "absent": (lambda b, t: t + None, TypeError, "None"),  # type: ignore[operator]
    "holder": (lambda b, t: TensorHolder(), RuntimeError, "made by a GraphBuilder"),
}


@pytest.mark.parametrize(("use", "error", "message"), FAILURES.values(), ids=FAILURES)
def test_refusals(
    builder: GraphBuilder, use: Callable[[GraphBuilder, TensorHolder], object], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        use(builder, builder.create_input(0))


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
def test_nothing_is_copied(builder: GraphBuilder, copied: Callable[[Any], Any]) -> None:
    for thing in (builder, builder.create_input(0)):
        with pytest.raises(RuntimeError, match="cannot be copied"):
            copied(thing)


def test_counters_skip_names_that_are_taken(builder: GraphBuilder) -> None:
    a = builder.create_input(0, name="Relu_0")
    assert Relu(a).name == "Relu_1"


def test_built_graphs_go_through_text(builder: GraphBuilder) -> None:
    graph = builder.build_and_reset([Add(builder.create_input(0), [[1.5, 2]])])
    again = parse_graph(print_graph(graph))
    assert isinstance(again, Graph)
    assert print_graph(again) == print_graph(graph)
