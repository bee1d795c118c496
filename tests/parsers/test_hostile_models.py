"""Damaged and malicious models: whatever comes in, a graph or a ReportedError comes out."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import AttributeProto, ModelProto, TensorProto, helper

from ge.errors import ReportedError
from ge.graph import Graph
from parsers.onnx import parse, precheck
from tests.parsers.evaluation import session
from tests.parsers.onnx_models import graph, model, node, one, value


def outcome(content: bytes | ModelProto) -> Graph | ReportedError:
    """Parse; any other exception than a ReportedError fails the test."""
    try:
        return parse(content, session())
    except ReportedError as fault:
        return fault


def specimen() -> ModelProto:
    """Return a model with a bit of everything: constants, a nested graph, a function, attributes of most kinds."""
    weights = np.random.default_rng(0).standard_normal((4, 3, 3, 3)).astype(np.float32)
    function = helper.make_function(
        "my", "Twice", ["a"], ["b"], [node("Add", "a a", "b", "add")], [helper.make_opsetid("", 17)]
    )
    branch = graph([node("Neg", "f", "r", "neg")], [], [value("r", None)])
    other = graph([node("Abs", "f", "r", "abs")], [], [value("r", None)])
    nodes = [
        node("Conv", "x w b", "c", "conv", kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[2, 1]),
        node("MaxPool", "c", "p", "pool", kernel_shape=[2, 2], ceil_mode=1),
        node("Constant", "", "s", "shape", value_ints=[1, 4, -1]),
        node("Reshape", "p s", "q", "reshape"),
        node("Softmax", "q", "t", "softmax", axis=1),
        node("Slice", "t zero one axis", "u", "slice"),
        helper.make_node("Twice", ["u"], ["f"], "call", domain="my"),
        node("If", "cond", "y", "if", then_branch=branch, else_branch=other),
    ]
    constants = {
        "w": weights,
        "b": np.zeros(4, np.float32),
        "zero": np.int64([0]),
        "one": np.int64([2]),
        "axis": np.int64([1]),
    }
    inputs = [value("x", [1, 3, 8, 8]), value("cond", [], TensorProto.BOOL)]
    return model(nodes, inputs, [value("y", None)], constants, opset=17, imports={"my": 1}, functions=[function])


SPECIMEN = specimen().SerializeToString()


def test_specimen_is_sound() -> None:
    assert isinstance(outcome(SPECIMEN), Graph)


@given(st.binary(max_size=300))
def test_random_bytes(content: bytes) -> None:
    assert isinstance(outcome(content), ReportedError)


@given(st.integers(0, len(SPECIMEN) - 1))
def test_truncated(length: int) -> None:
    outcome(SPECIMEN[:length])


@settings(max_examples=400)
@given(st.lists(st.tuples(st.integers(0, len(SPECIMEN) - 1), st.integers(0, 255)), min_size=1, max_size=4))
def test_changed_bytes(changes: list[tuple[int, int]]) -> None:
    content = bytearray(SPECIMEN)
    for position, byte in changes:
        content[position] = byte
    outcome(bytes(content))


@settings(max_examples=200)
@given(st.integers(0, len(SPECIMEN) - 1), st.integers(1, 40), st.binary(max_size=40))
def test_replaced_pieces(position: int, length: int, piece: bytes) -> None:
    outcome(SPECIMEN[:position] + piece + SPECIMEN[position + length :])


# -- sound protobuf, senseless content -----------------------------------------------------------------------------
NUMBERS = st.sampled_from([0, 1, -1, 2, 3, -2, 7, 100, 2**31 - 1, -(2**31), 2**31, 2**62, -(2**63), 2**63 - 1])
SMALL = st.lists(st.integers(0, 4), max_size=4).map(tuple)
OPERATORS: dict[str, dict[str, Any]] = {
    "Conv": {"kernel_shape": NUMBERS, "pads": NUMBERS, "strides": NUMBERS, "dilations": NUMBERS, "group": NUMBERS},
    "ConvTranspose": {"output_padding": NUMBERS, "output_shape": NUMBERS, "strides": NUMBERS, "group": NUMBERS},
    "MaxPool": {"kernel_shape": NUMBERS, "pads": NUMBERS, "strides": NUMBERS, "ceil_mode": NUMBERS},
    "AveragePool": {"kernel_shape": NUMBERS, "pads": NUMBERS, "strides": NUMBERS},
    "LRN": {"size": NUMBERS},
    "Transpose": {"perm": NUMBERS},
    "Concat": {"axis": NUMBERS},
    "Split": {"axis": NUMBERS},
    "Gather": {"axis": NUMBERS},
    "Flatten": {"axis": NUMBERS},
    "Softmax": {"axis": NUMBERS},
    "ReduceMean": {"axes": NUMBERS, "keepdims": NUMBERS},
    "DepthToSpace": {"blocksize": NUMBERS},
    "Cast": {"to": NUMBERS},
    "OneHot": {"axis": NUMBERS},
    "TopK": {"axis": NUMBERS},
    "Shape": {"start": NUMBERS, "end": NUMBERS},
    "EyeLike": {"k": NUMBERS, "dtype": NUMBERS},
    "Reshape": {"allowzero": NUMBERS},
    "Expand": {},
    "Tile": {},
    "Pad": {},
    "Slice": {},
    "Resize": {},
    "ConstantOfShape": {},
    "Range": {},
    "Trilu": {"upper": NUMBERS},
    "Einsum": {},
    "MatMul": {},
    "Gemm": {"transA": NUMBERS},
    "LSTM": {"hidden_size": NUMBERS},
    "GridSample": {"align_corners": NUMBERS},
    "BatchNormalization": {},
    "LayerNormalization": {"axis": NUMBERS},
    "GatherND": {"batch_dims": NUMBERS},
    "ScatterElements": {"axis": NUMBERS},
    "QuantizeLinear": {"axis": NUMBERS},
}
LISTS = {"kernel_shape", "pads", "strides", "dilations", "output_padding", "output_shape", "perm", "axes"}


@st.composite
def senseless(draw: st.DrawFn) -> ModelProto:
    """Return one operator with senseless attributes, input shapes and constants."""
    op_type = draw(st.sampled_from(sorted(OPERATORS)))
    attributes = {
        name: draw(st.lists(strategy, min_size=1, max_size=6) if name in LISTS else strategy)
        for name, strategy in OPERATORS[op_type].items()
        if draw(st.booleans())
    }
    if op_type == "Einsum":
        attributes["equation"] = draw(st.text("ij,->. k", max_size=12))
    inputs: list[Any] = []
    for _ in range(draw(st.integers(0, 4))):
        kind = draw(st.sampled_from(["fed", "integers", "floats", "absent"]))
        dims = draw(SMALL)
        if kind == "absent":
            inputs.append(None)
        elif kind == "fed":
            inputs.append(dims)
        else:
            count = int(np.prod(dims))
            numbers = draw(st.lists(NUMBERS, min_size=count, max_size=count))
            inputs.append(np.array(numbers, np.int64 if kind == "integers" else np.float32).reshape(dims))
    outputs = draw(st.integers(1, 3))
    return one(op_type, *inputs, outputs=outputs, opset=draw(st.integers(7, 22)), **attributes)


@settings(max_examples=1500)
@given(senseless())
def test_senseless_operators(source: ModelProto) -> None:
    outcome(source)


@given(st.lists(NUMBERS, max_size=3), st.lists(NUMBERS, max_size=3))
def test_senseless_input_dims(first: list[int], second: list[int]) -> None:
    source = model([node("MatMul", "a b")], [value("a", [0] * len(first)), value("b", [0] * len(second))])
    for entry, dims in zip(source.graph.input, (first, second), strict=True):
        for dim, number in zip(entry.type.tensor_type.shape.dim, dims, strict=True):
            dim.dim_value = number
    outcome(source)


@pytest.mark.parametrize("kind", range(15))
def test_every_kind_of_attribute_in_the_wrong_place(kind: int) -> None:
    source = one("Flatten", (2, 3))
    source.graph.node[0].attribute.append(AttributeProto(name="axis", type=kind))
    result = outcome(source)
    assert isinstance(result, Graph) == (kind == AttributeProto.INT)


def test_deeply_nested_graphs() -> None:
    inner = graph([node("Relu", "x", "t", "relu")], [], [value("t", None)])
    for _ in range(20):
        inner = graph([node("If", "c", "t", "if", then_branch=inner, else_branch=inner)], [], [value("t", None)])
        if inner.ByteSize() > 100_000:
            break
    nodes = [node("If", "c", "y", "if", then_branch=inner, else_branch=inner)]
    source = model(nodes, ["x", value("c", [], TensorProto.BOOL)], [value("y", None)])
    outcome(source)


def test_long_chain() -> None:
    nodes = [node("Relu", f"t{i}", f"t{i + 1}", f"n{i}") for i in reversed(range(3000))]
    source = model(nodes, [value("t0", [4])], [value("t3000", None)])
    assert isinstance(outcome(source), Graph)


def test_large_cycle_is_named_in_short() -> None:
    nodes = [node("Relu", f"t{i}", f"t{(i + 1) % 500}", f"n{i}") for i in range(500)]
    fault = outcome(model(nodes, [], [value("t0", None)]))
    assert isinstance(fault, ReportedError)
    assert len(fault.message) < 300


def test_precheck_of_damaged_models() -> None:
    for position in range(0, len(SPECIMEN), 97):
        content = bytearray(SPECIMEN)
        content[position] ^= 0x55
        with contextlib.suppress(ReportedError):
            precheck(bytes(content), session())
