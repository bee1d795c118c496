"""What becomes of a graph: references, control edges, trimming, inputs, outputs, and the faults of its nodes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ge.errors import ReportedError
from ge.graph import Format, Graph, Node
from ge.option_grammar import OutNode
from ge.options import Framework, Mode, parse_input_shape, parse_out_nodes
from parsers.tensorflow import graph_def_pb2 as pb
from parsers.tensorflow import parse, precheck
from passes.driver import Driver
from passes.format.infer_origin_format import InferOriginFormat
from passes.prepare.remove_identity import RemoveIdentity
from tests.parsers.evaluation import session
from tests.parsers.tensorflow.tf_models import (
    Type,
    const,
    graph,
    node,
    parsed,
    placeholder,
    run,
    shape_proto,
)

X = np.float32([[1, -2, 3], [-4, 5, -6]])


def refused(model: pb.GraphDef, **options: Any) -> ReportedError:
    with pytest.raises(ReportedError) as caught:
        parsed(model, **options)
    return caught.value


def the(found: Graph, name: str) -> Node:
    node_found = found.find(name)
    assert node_found is not None
    return node_found


def sources(of: Node) -> list[str]:
    return [f"{source.node.name}:{source.index}" for source in of.inputs if source is not None]


# -- references --------------------------------------------------------------------------------------------------------
def test_outputs_are_read_by_name_and_index() -> None:
    model = graph(
        placeholder("x", [2, 3]),
        const("axis", np.int32(1)),
        node("Split", "s", "axis x", num_split=3),
        node("Sub", "y", "s:2 s"),
    )
    assert sources(the(parsed(model), "y")) == ["s:2", "s:0"]
    np.testing.assert_array_equal(run(model, {"x": X})[0], X[:, 2:] - X[:, :1])


@pytest.mark.parametrize(
    ("inputs", "code", "told"),
    [
        ("a:x b", "E10014", "a:x"),
        ("a: b", "E10014", "a:"),
        ("a:-1 b", "E10014", "a:-1"),
        (f"a:{2**63} b", "E10013", str(2**63)),
        (f"a:{'9' * 400} b", "E10013", "999"),
        ("a:1 b", "E12009", "a:1"),
        ("a gone", "E12009", "gone"),
        ("a b ^gone", "E12009", "^gone"),
        ("a", "E13014", "it takes 2"),
        ("a b a", "E13014", "it takes 2"),
    ],
)
def test_inputs_that_are_wrong(inputs: str, code: str, told: str) -> None:
    fault = refused(graph(placeholder("a", [1]), placeholder("b", [1]), node("Add", "y", inputs)))
    assert fault.code == code
    assert told in fault.message
    assert "y" in fault.message


def test_all_faults_of_nodes_are_reported_at_once() -> None:
    model = graph(
        placeholder("x", [1]),
        node("Foo", "first", "x"),
        node("Foo", "second", "first"),
        node("Bar", "third", "second gone"),
        node("Abs", "third", "x"),
        node("Add", "y", "third third:q"),
    )
    fault = refused(model)
    found = [(one.code, one.fields.get("opname", one.fields.get("value"))) for one in (fault, *fault.also)]
    assert found == [
        ("E10501", "first"),
        ("E10501", "second"),
        ("E13009", "third"),
        ("E12009", "third"),
        ("E10501", "third"),
        ("E13009", "third"),
        ("E10014", "third:q"),
    ]
    assert "Foo" in str(fault.also[3].solution)
    assert [one.name for one in precheck(model, session()) if one.causes] == ["first", "second", "third", "third", "y"]


@pytest.mark.parametrize(
    ("op", "told"), [("VariableV2", "freeze"), ("ReadVariableOp", "freeze"), ("LookupTableFindV2", "Tables")]
)
def test_what_freezing_should_have_removed_says_so(op: str, told: str) -> None:
    fault = refused(graph(node(op, "v"), node("Identity", "y", "v")))
    assert (fault.code, fault.fields["opname"]) == ("E10501", "v")
    assert told in str(fault.solution)


def test_a_function_of_two_definitions() -> None:
    model = graph(placeholder("x", [1]), node("Abs", "y", "x"))
    for _ in range(2):
        model.library.function.add().signature.name = "f"
    assert refused(model).code == "E13009"


# -- control edges -----------------------------------------------------------------------------------------------------
def test_control_edges_take_no_input_slot() -> None:
    model = graph(
        placeholder("a", [2]),
        placeholder("b", [2]),
        node("Abs", "before", "a"),
        node("NoOp", "init", "^before"),
        node("Add", "y", "a b ^init ^before"),
        node("Identity", "z", "before"),
    )
    add = the(parsed(model), "y")
    assert sources(add) == ["a:0", "b:0"]
    assert [other.name for other in add.control_inputs] == ["init", "before"]
    assert [other.name for other in the(add.graph, "init").control_inputs] == ["before"]


def test_constants_hand_on_what_they_wait_for() -> None:
    waiting = const("c", np.float32(1))
    waiting.input.append("^before")
    model = graph(placeholder("x", [2]), node("Abs", "before", "x"), waiting, node("Add", "y", "x c ^c ^x"))
    edges = [(other.name, n.name) for n in parsed(model) for other in n.control_inputs]
    assert edges == [("before", "y")]


def test_no_ops_go_and_hand_on_only_what_has_an_effect() -> None:
    model = graph(
        const("shape", np.int32([2])),
        node("RandomUniform", "noise", "shape", dtype=Type(pb.DT_FLOAT), T=Type(pb.DT_INT32)),
        placeholder("x", [2]),
        node("Abs", "pure", "x"),
        node("NoOp", "first", "^noise ^pure"),
        node("NoOp", "second", "^first"),
        node("Neg", "y", "x ^second"),
        node("Add", "z", "noise pure"),
    )
    found = parsed(model)
    Driver(session()).run(found, [RemoveIdentity()])
    assert not found.nodes_of_type("NoOp")
    assert [other.name for other in the(found, "y").control_inputs] == ["noise"]


# -- outputs and trimming ----------------------------------------------------------------------------------------------
def leftovers() -> list[pb.NodeDef]:
    return [
        const("prefix", np.array(b"model", object)),
        node("SaveV2", "save/SaveV2", "prefix y ^y"),
        node("Identity", "save/control", "prefix ^save/SaveV2"),
        node("Assert", "check", "prefix y"),
        node("ScalarSummary", "loss", "prefix y"),
        node("NoOp", "group_deps", "^y ^check ^z"),
    ]


def test_outputs_are_what_nobody_reads_but_the_leftovers_of_training() -> None:
    model = graph(placeholder("x", [2, 3]), node("Abs", "y", "x"), node("Neg", "z", "y"), const("unused", np.int32(1)))
    model.node.extend([*leftovers()[:2], *leftovers()[3:]])
    asked = session(framework=Framework.TENSORFLOW)
    found = parse(model, asked)
    assert found.output_names == ["z:0"]
    assert sorted(n.name for n in found) == ["x", "y", "z"]
    assert asked.warnings == ["what belongs to training is left out: 1 Assert, 1 SaveV2, 1 ScalarSummary"]


def test_a_result_that_only_leftovers_read_is_an_output_if_there_is_no_other() -> None:
    model = graph(placeholder("x", [2, 3]), node("Abs", "y", "x"), node("Assert", "check", "y y"))
    assert parsed(model).output_names == ["y:0"]


def test_all_outputs_of_a_node_that_nobody_reads() -> None:
    model = graph(placeholder("x", [2, 4]), const("axis", np.int32(1)), node("Split", "s", "axis x", num_split=2))
    assert parsed(model).output_names == ["s:0", "s:1"]


def test_a_graph_without_results() -> None:
    assert refused(graph(placeholder("x", [1]), node("Assert", "a", "x"))).code == "E13031"


@pytest.mark.parametrize(
    ("asked", "names", "left"),
    [
        ("a:0", ["a:0"], ["a", "x"]),
        ("b:0;a:0", ["b:0", "a:0"], ["a", "b", "x"]),
        ("s:1", ["s:1"], ["axis", "s", "x2"]),
    ],
)
def test_out_nodes_choose_and_trim(asked: str, names: list[str], left: list[str]) -> None:
    model = graph(
        placeholder("x", [2, 4]),
        placeholder("x2", [2, 4]),
        node("Abs", "a", "x"),
        node("Neg", "b", "a"),
        const("axis", np.int32(1)),
        node("Split", "s", "axis x2", num_split=2),
        node("Unknown", "u", "s"),
    )
    found = parsed(model, out_nodes=parse_out_nodes(asked))
    assert found.output_names == names
    assert sorted(n.name for n in found) == left


@pytest.mark.parametrize(("asked", "code"), [("gone:0", "E10016"), ("y:1", "E10003"), ("y", "E10001")])
def test_out_nodes_that_are_wrong(asked: str, code: str) -> None:
    name, _, index = asked.partition(":")
    requested = (OutNode(name, int(index) if index else None),)
    assert refused(graph(placeholder("x", [1]), node("Abs", "y", "x")), out_nodes=requested).code == code


def test_input_shape_on_an_inner_node_makes_it_an_input_and_cuts_off_what_is_above() -> None:
    model = graph(
        node("IteratorGetNext", "batch", output_types=[Type(pb.DT_FLOAT)]),
        node("Cast", "image", "batch", SrcT=Type(pb.DT_UINT8), DstT=Type(pb.DT_HALF)),
        placeholder("scale", []),
        node("Cast", "scale_half", "scale", SrcT=Type(pb.DT_FLOAT), DstT=Type(pb.DT_HALF)),
        node("Mul", "y", "image scale_half"),
    )
    found = parsed(model, input_shape=parse_input_shape("image:2,3"))
    assert [(data.name, list(data.output_descs[0].shape)) for data in found.data_nodes()] == [
        ("image", [2, 3]),
        ("scale", []),
    ]
    assert found.find("batch") is None
    assert [data.attrs["index"] for data in found.data_nodes()] == [0, 1]
    y = run(model, {"image": X.astype(np.float16), "scale": np.float32(3)}, input_shape=parse_input_shape("image:2,3"))
    np.testing.assert_array_equal(y[0], X.astype(np.float16) * np.float16(3))


@pytest.mark.parametrize(
    ("asked", "code"), [("gone:1", "E10016"), ("init:1", "E10017"), ("x:0:1,2", "E10016"), ("x:1,2,3", "E10001")]
)
def test_input_shapes_that_are_wrong(asked: str, code: str) -> None:
    model = graph(placeholder("x", [1, 2]), node("NoOp", "init"), node("Abs", "y", "x ^init"))
    fault = refused(model, input_shape=parse_input_shape(asked))
    assert fault.code == code
    assert "x" in f"{fault.message} {fault.solution}"


# -- inputs ------------------------------------------------------------------------------------------------------------
def test_open_dims_must_be_given() -> None:
    model = graph(placeholder("x", [-1, 3]), placeholder("z", None), node("Add", "y", "x z"))
    fault = refused(model)
    assert fault.code == "E10001"
    assert "x [-1, 3], z of unknown rank" in fault.message
    found = parsed(model, input_shape=parse_input_shape("x:4,3;z:3"))
    assert [list(data.output_descs[0].shape) for data in found.data_nodes()] == [[4, 3], [3]]
    found = parsed(model, input_shape=parse_input_shape("x:-1,3;z:1~5"))
    assert the(found, "x").output_descs[0].shape_range == [(0, -1), (3, 3)]
    listed = parsed(model, mode=Mode.TO_JSON)
    assert list(the(listed, "z").output_descs[0].shape) == [-2]


def test_an_empty_shape_means_nothing_in_old_graphs() -> None:
    model = graph(placeholder("x", []), node("Abs", "y", "x"))
    assert list(the(parsed(model), "x").output_descs[0].shape) == []
    model.versions.producer = 21
    assert refused(model).code == "E10001"


def test_the_default_of_an_input_counts_unless_it_is_fed() -> None:
    model = graph(
        const("c", np.float32([1, 2])),
        node("PlaceholderWithDefault", "x", "c", dtype=Type(pb.DT_FLOAT), shape=shape_proto([2])),
        node("Neg", "y", "x"),
    )
    np.testing.assert_array_equal(run(model)[0], [-1, -2])
    fed = run(model, {"x": np.float32([5])}, input_shape=parse_input_shape("x:1"))
    np.testing.assert_array_equal(fed[0], [-5])


def test_inputs_that_freezing_left_behind_are_dropped_and_others_stay() -> None:
    model = graph(
        placeholder("x", [1]),
        placeholder("unused_control_flow_input_3", [7]),
        placeholder("keep_prob", []),
        node("Abs", "y", "x"),
    )
    assert [data.name for data in parsed(model).data_nodes()] == ["x", "keep_prob"]


# -- spec rows 35 to 47 ------------------------------------------------------------------------------------------------
IMAGE, FILTER = placeholder("x", [1, 5, 6, 3]), const("w", np.ones((3, 3, 3, 4), np.float32))


def test_35_conv_same() -> None:
    found = parsed(graph(IMAGE, FILTER, node("Conv2D", "y", "x w", strides=[1, 2, 2, 1], padding="SAME")))
    conv = the(found, "y")
    assert conv.type == "Conv2D"
    assert (conv.attrs["strides"], conv.attrs["pads"], conv.attrs["padding"]) == ([1, 2, 2, 1], [0] * 4, "SAME")
    assert list(conv.output_descs[0].shape) == [1, 3, 3, 4]
    InferOriginFormat().run(found, session(framework=Framework.TENSORFLOW))
    assert [source.desc.origin_format for source in conv.inputs if source is not None] == [
        Format.FORMAT_NHWC,
        Format.FORMAT_HWCN,
    ]


@pytest.mark.parametrize(
    ("data_format", "explicit"),
    [("NHWC", [0, 0, 1, 2, 3, 4, 0, 0]), ("NCHW", [0, 0, 0, 0, 1, 2, 3, 4])],
)
def test_36_explicit_paddings(data_format: str, explicit: list[int]) -> None:
    image = IMAGE if data_format == "NHWC" else placeholder("x", [1, 3, 5, 6])
    attrs = {"strides": [1, 1, 1, 1], "padding": "EXPLICIT", "explicit_paddings": explicit, "data_format": data_format}
    conv = the(parsed(graph(image, FILTER, node("Conv2D", "y", "x w", **attrs))), "y")
    assert conv.attrs["pads"] == [1, 2, 3, 4]
    assert sorted(conv.output_descs[0].shape) == sorted([1, 4, 6, 11])


def test_37_matmul_transposed() -> None:
    model = graph(placeholder("a", [2, 3]), placeholder("b", [4, 3]), node("MatMul", "y", "a b", transpose_b=True))
    product = the(parsed(model), "y")
    assert (product.type, product.attrs["transpose_x1"], product.attrs["transpose_x2"]) == ("MatMulV2", False, True)


def test_39_batch_norm_in_training() -> None:
    parts = [const(name, np.ones(3, np.float32)) for name in "abcd"]
    model = graph(IMAGE, *parts, node("FusedBatchNormV3", "y", "x a b c d", is_training=True))
    norm = the(parsed(model), "y")
    assert (norm.type, len(norm.inputs), norm.attrs["is_training"]) == ("BatchNorm", 3, True)
    model.node[-1].attr["is_training"].b = False
    assert len(the(parsed(model), "y").inputs) == 5


def test_40_concat() -> None:
    model = graph(IMAGE, const("axis", np.int32(3)), node("ConcatV2", "y", "x x x axis", N=3))
    assert sources(the(parsed(model), "y")) == ["x:0", "x:0", "x:0", "axis:0"]


def test_41_mean() -> None:
    model = graph(IMAGE, const("axes", np.int32([1, 2])), node("Mean", "y", "x axes", keep_dims=True))
    mean = the(parsed(model), "y")
    assert (mean.type, sources(mean)[1]) == ("ReduceMean", "axes:0")
    assert (mean.attrs["keep_dims"], mean.attrs["noop_with_empty_axes"]) == (True, True)


def test_42_squeeze_with_two_lists() -> None:
    fault = refused(graph(placeholder("x", [1, 2]), node("Squeeze", "y", "x", axis=[0], squeeze_dims=[0])))
    assert (fault.code, fault.fields["opname"]) == ("E11010", "y")


def test_44_unknown_operator() -> None:
    assert refused(graph(placeholder("x", [1]), node("Frobnicate", "y", "x"))).code == "E10501"


def test_46_unused_constants_go() -> None:
    found = parsed(graph(placeholder("x", [1]), const("c", np.float32(1)), node("Abs", "y", "x")))
    assert found.find("c") is None


# -- attributes --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"strides": [1, 1, 1]}, "needs 4 values"),
        ({"strides": [2, 1, 1, 1]}, "over batch and channels"),
        ({"strides": [1, 0, 1, 1]}, "must be positive"),
        ({"strides": 1}, "must be a list"),
        ({"strides": ["a"]}, "list of integers"),
        ({"padding": "WIDE"}, "must be one of VALID, SAME, EXPLICIT"),
        ({"padding": 3}, "must be a text"),
        ({"padding": "EXPLICIT"}, "explicit_paddings is missing"),
        ({"data_format": "HWNC"}, "must be one of NHWC, NCHW"),
    ],
)
def test_attributes_that_are_wrong_name_node_and_attribute(changed: dict[str, Any], told: str) -> None:
    attrs = {"strides": [1, 1, 1, 1], "padding": "SAME", **changed}
    fault = refused(graph(IMAGE, FILTER, node("Conv2D", "the/conv", "x w", **attrs)))
    assert fault.code in ("E11010", "E14001")
    assert "the/conv" in fault.message
    assert told in fault.message


def test_a_missing_attribute() -> None:
    fault = refused(graph(placeholder("x", [4]), node("Cast", "y", "x")))
    assert (fault.code, "attribute DstT is missing" in fault.message) == ("E11010", True)


def test_sizes_that_are_known_stay_known_beside_an_open_batch() -> None:
    numbers = [const(name, np.int32(value)) for name, value in (("h", 8), ("w", 10), ("c", 6))]
    model = graph(
        placeholder("x", [-1, 4, 5, 3]),
        const("filter", np.ones((3, 3, 6, 3), np.float32)),
        node("Shape", "shape", "x"),
        *(const(name, np.int32([value])) for name, value in (("zero", 0), ("one", 1))),
        node("StridedSlice", "batch", "shape zero one one", shrink_axis_mask=1),
        *numbers,
        node("Pack", "sizes", "batch h w c", N=4, axis=0),
        node("Conv2DBackpropInput", "deconv", "sizes filter x", strides=[1, 2, 2, 1], padding="SAME"),
        const("rows", np.int32([-1, 480])),
        node("Reshape", "y", "deconv rows"),
    )
    found = parsed(model, input_shape=parse_input_shape("x:-1,4,5,3"))
    assert list(the(found, "deconv").output_descs[0].shape) == [-1, 8, 10, 6]
    assert list(the(found, "y").output_descs[0].shape) == [-1, 480]
