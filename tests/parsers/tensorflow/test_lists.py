"""TensorArray and TensorList, as recurrent layers and others use them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from ge.errors import ReportedError
from ge.option_grammar import OutNode
from parsers.tensorflow import graph_def_pb2 as pb
from tests.parsers.tensorflow.list_models import FLOAT, LIST, B, F, V, dynamic_rnn, keras_rnn, rnn
from tests.parsers.tensorflow.programs import function
from tests.parsers.tensorflow.tf_models import (
    Array,
    Func,
    Type,
    const,
    graph,
    node,
    parsed,
    placeholder,
    run,
    shape_proto,
)

MODELS = {"TensorFlow1": dynamic_rnn, "TensorFlow2": keras_rnn}


@pytest.fixture
def weights(rng: np.random.Generator) -> tuple[Array, Array]:
    return rng.standard_normal((3, 4)).astype(np.float32), rng.standard_normal((4, 4)).astype(np.float32)


@pytest.mark.parametrize("steps", [0, 1, 6])
@pytest.mark.parametrize("write", MODELS.values(), ids=MODELS)
def test_recurrent_models(write: Callable, steps: int, weights: tuple[Array, Array], rng: np.random.Generator) -> None:
    x = rng.standard_normal((steps, 2, 3)).astype(np.float32)
    model = write(x.shape, *weights)
    assert {str(out.desc.shape) for out in parsed(model).outputs} == {f"[{steps},2,4]", "[2,4]"}
    for found, expected in zip(run(model, {"x": x}), rnn(x, *weights), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("steps", [1, 5])
@pytest.mark.parametrize("is_dynamic", [False, True])
def test_a_sequence_of_any_length(
    is_dynamic: bool, steps: int, weights: tuple[Array, Array], rng: np.random.Generator
) -> None:
    model = dynamic_rnn([None, 2, 3], *weights, is_dynamic=is_dynamic)
    x = rng.standard_normal((steps, 2, 3)).astype(np.float32)
    found = run(model, {"x": x}, input_shape={"x": (-1, 2, 3)})
    for one, expected in zip(found, rnn(x, *weights), strict=True):
        np.testing.assert_allclose(one, expected, rtol=1e-5, atol=1e-6)


def array(name: str, size: str, dims: list[int] | None = None, **attrs: bool) -> pb.NodeDef:
    return node("TensorArrayV3", name, size, dtype=FLOAT, element_shape=shape_proto(dims), **attrs)


X = np.arange(12, dtype=np.float32).reshape(4, 3)


def test_splitting_and_joining_an_array() -> None:
    model = graph(
        placeholder("x", [4, 3]),
        const("size", np.int32(3)),
        const("lengths", np.array([1, 0, 3], np.int64)),
        const("last", np.int32(2)),
        array("a", "size"),
        node("TensorArraySplitV3", "s", "a x lengths a:1", T=FLOAT),
        node("TensorArrayReadV3", "part", "a last s", dtype=FLOAT),
        node("TensorArrayConcatV3", "c", "a s", dtype=FLOAT, element_shape_except0=shape_proto([3])),
    )
    part, whole, lengths = run(model, {"x": X})
    np.testing.assert_array_equal(part, X[1:])
    np.testing.assert_array_equal(whole, X)
    assert lengths.tolist() == [1, 0, 3]
    assert parsed(model).outputs[1].desc.shape == (-1, 3)


def test_a_loop_that_reads_what_it_wrote_before() -> None:
    # fib[k] = fib[k-1] + fib[k-2]
    turn = function(
        "turn",
        ["i", f"flow{F}", f"handle:{pb.DT_RESOURCE}"],
        [
            const("one", np.int32(1)),
            const("two", np.int32(2)),
            node("Sub", "before", "i one:output:0"),
            node("Sub", "earlier", "i two:output:0"),
            node("TensorArrayReadV3", "a", "handle before:z:0 flow", dtype=FLOAT),
            node("TensorArrayReadV3", "b", "handle earlier:z:0 flow", dtype=FLOAT),
            node("AddV2", "sum", "a:value:0 b:value:0"),
            node("TensorArrayWriteV3", "w", "handle i sum:z:0 flow", T=FLOAT),
            node("AddV2", "next", "i one:output:0"),
        ],
        {"r0": "next:z:0", f"r1{F}": "w:flow_out:0", f"r2:{pb.DT_RESOURCE}": "handle"},
    )
    goes_on = function(
        "goes_on",
        ["i", f"flow{F}", f"handle:{pb.DT_RESOURCE}"],
        [const("n", np.int32(8)), node("Less", "less", "i n:output:0")],
        {f"r{B}": "less:z:0"},
    )
    model = graph(
        placeholder("x", [2]),
        const("n", np.int32(8)),
        const("first", np.array([0, 1], np.int32)),
        const("begin", np.int32(2)),
        array("a", "n", []),
        node("TensorArrayScatterV3", "s", "a first x a:1", T=FLOAT),
        node("While", "loop", "begin s a", cond=Func("goes_on"), body=Func("turn")),
        const("all", np.arange(8, dtype=np.int32)),
        node("TensorArrayGatherV3", "y", "a all loop:1", dtype=FLOAT, element_shape=shape_proto([])),
        turn=turn,
        goes_on=goes_on,
    )
    assert run(model, {"x": np.array([1, 2], np.float32)})[0].tolist() == [1, 2, 3, 5, 8, 13, 21, 34]
    reads = [n for part in parsed(model).all_graphs() for n in part if n.type == "TensorListGetItem"]
    assert [n.output().desc.shape for n in reads] == [(), ()]


@pytest.mark.parametrize("p", [False, True])
def test_a_list_that_a_branch_changes(p: bool) -> None:
    put = function(
        "put",
        [f"l{V}", f"v{F}"],
        [const("at", np.int32(1)), node("TensorListSetItem", "set", "l at:output:0 v", **LIST)],
        {f"r{V}": "set:output_handle:0"},
    )
    model = graph(
        placeholder("p", [], np.bool_),
        placeholder("x", [4, 3]),
        placeholder("v", [3]),
        const("any", np.int32(-1)),
        node("TensorListFromTensor", "l", "x any", **LIST),
        node("If", "c", "p l v", then_branch=Func("put"), else_branch=Func("keep")),
        node("TensorListStack", "y", "c any", num_elements=4, **LIST),
        put=put,
        keep=function("keep", [f"l{V}", f"v{F}"], [], {f"r{V}": "l"}),
    )
    assert parsed(model).outputs[0].desc.shape == (4, 3)
    v = np.array([7, 8, 9], np.float32)
    expected = X.copy()
    expected[1] = v if p else X[1]
    np.testing.assert_array_equal(run(model, {"p": np.array(p), "x": X, "v": v})[0], expected)


def test_pushing_popping_and_counting() -> None:
    model = graph(
        placeholder("x", [3]),
        const("shape", np.array([3], np.int32)),
        const("most", np.int32(-1)),
        node("EmptyTensorList", "none", "shape most", **LIST),
        node("Neg", "n", "x"),
        node("TensorListPushBack", "one", "none x", **LIST),
        node("TensorListPushBack", "two", "one n", **LIST),
        node("TensorListPopBack", "popped", "two shape", **LIST),
        node("Identity", "last", "popped:1"),
        node("TensorListLength", "length", "popped"),
        node("TensorListElementShape", "dims", "two", shape_type=Type(pb.DT_INT32)),
        node("TensorListConcatLists", "both", "two popped", **LIST),
        node("TensorListStack", "y", "both shape", **LIST),
    )
    last, length, dims, y = run(model, {"x": X[0]})
    np.testing.assert_array_equal(last, -X[0])
    assert (length, dims.tolist()) == (1, [3])
    np.testing.assert_array_equal(y, [X[0], -X[0], X[0]])


def test_scattering_gathering_resizing_and_joining_lists() -> None:
    model = graph(
        placeholder("x", [4, 3]),
        const("shape", np.array([3], np.int32)),
        const("to", np.array([5, 0, 2, 1], np.int32)),
        const("from", np.array([1, 5], np.int32)),
        const("six", np.int32(6)),
        node("TensorListScatter", "s", "x to shape", **LIST),
        node("TensorListGather", "g", "s from shape", **LIST),
        node("TensorListResize", "r", "s six"),
        node("TensorListStack", "all", "r shape", **LIST),
        node("TensorListSplit", "parts", "x shape2 cuts", **LIST),
        const("shape2", np.array([-1, 3], np.int32)),
        const("cuts", np.array([3, 1], np.int64)),
        node("TensorListConcat", "joined", "parts", element_shape=shape_proto([-1, 3]), **LIST),
    )
    gathered, everything, joined, lengths = run(model, {"x": X})
    np.testing.assert_array_equal(gathered, X[[3, 0]])
    np.testing.assert_array_equal(everything, [X[1], X[3], X[2], [0] * 3, [0] * 3, X[0]])
    np.testing.assert_array_equal(joined, X)
    assert lengths.tolist() == [3, 1]


def unread_list(*more: pb.NodeDef) -> pb.GraphDef:
    return graph(
        placeholder("x", [4, 3]), const("any", np.int32(-1)), node("TensorListFromTensor", "l", "x any", **LIST), *more
    )


def test_a_list_is_no_output() -> None:
    assert parsed(unread_list(node("Neg", "n", "x"))).output_names == ["n:0"]
    with pytest.raises(ReportedError, match="nobody reads give lists of tensors"):
        parsed(unread_list())
    with pytest.raises(ReportedError, match=r"\[l:0\] is a list of tensors") as caught:
        parsed(unread_list(node("Neg", "n", "x")), out_nodes=(OutNode("n", 0), OutNode("l", 0)))
    assert caught.value.code == "E13031"


def test_lists_of_lists_are_refused() -> None:
    model = graph(
        const("shape", np.int32(-1)),
        const("n", np.int32(2)),
        node("TensorListReserve", "l", "shape n", element_dtype=Type(pb.DT_VARIANT)),
        node("TensorListLength", "y", "l"),
    )
    with pytest.raises(ReportedError, match="of which there are no lists") as caught:
        parsed(model)
    assert caught.value.code == "E11010"


def test_what_a_loop_collects_has_one_shape_even_when_it_changes() -> None:
    # items of several shapes: what is known is what they agree on, here by a loop that doubles its value
    turn = function(
        "turn",
        [f"l{V}", f"v{F}"],
        [
            const("axis", np.int32(0)),
            node("TensorListPushBack", "push", "l v", **LIST),
            node("ConcatV2", "twice", "v v axis:output:0", N=2),
        ],
        {f"r0{V}": "push:output_handle:0", f"r1{F}": "twice:output:0"},
    )
    goes_on = function(
        "goes_on",
        [f"l{V}", f"v{F}"],
        [
            const("three", np.int32(3)),
            node("TensorListLength", "n", "l"),
            node("Less", "less", "n:length:0 three:output:0"),
        ],
        {f"r{B}": "less:z:0"},
    )
    model = graph(
        placeholder("x", [1, 3]),
        const("any", np.int32(-1)),
        node("EmptyTensorList", "none", "any any", **LIST),
        node("While", "loop", "none x", cond=Func("goes_on"), body=Func("turn")),
        const("two", np.int32(2)),
        node("TensorListGetItem", "y", "loop two any", **LIST),
        turn=turn,
        goes_on=goes_on,
    )
    assert parsed(model).outputs[0].desc.shape == (-1, 3)
    np.testing.assert_array_equal(run(model, {"x": X[:1]})[0], np.repeat(X[:1], 4, axis=0))
