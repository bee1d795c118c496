"""Taking large tensor data out of a model's bytes before they are parsed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import ModelProto, TensorProto, helper, numpy_helper

from parsers.onnx import parse
from parsers.onnx.model import _LAYOUT
from parsers.wire import (
    MIN_PIECE,
    BrokenWireError,
    Pieces,
    encoded_varint,
    fields,
    varint,
    without_large_data,
)
from tests.parsers.evaluation import session
from tests.parsers.onnx_models import graph, model, node, value

BIG = np.random.default_rng(0).standard_normal(MIN_PIECE).astype(np.float32)


def everywhere() -> ModelProto:
    """Return a model with big tensors as initializer, in a Constant, in a branch and in a function."""
    constant = node("Constant", "", "k", "constant", value=numpy_helper.from_array(BIG + 1))
    branch = graph([node("Add", "s v", "r", "add")], [], [value("r", None)], {"v": BIG + 2})
    inner = [node("Constant", "", "k", "k", value=numpy_helper.from_array(BIG + 3)), node("Add", "a k", "b", "add")]
    function = helper.make_function("my", "F", ["a"], ["b"], inner, [helper.make_opsetid("", 17)])
    nodes = [
        constant,
        node("Add", "w k", "s", "sum"),
        node("If", "c", "t", "if", then_branch=branch, else_branch=branch),
        helper.make_node("F", ["t"], ["y"], "f", domain="my"),
    ]
    inputs = [value("c", [], TensorProto.BOOL)]
    return model(nodes, inputs, [value("y", None)], {"w": BIG}, opset=17, imports={"my": 1}, functions=[function])


def constants(source: bytes | ModelProto) -> dict[str, np.ndarray[Any, Any]]:
    parsed = parse(source, session())
    return {n.name: n.attrs["value"].array for g in parsed.all_graphs() for n in g.nodes_of_type("Const")}


def test_bytes_and_parsed_model_give_the_same_constants() -> None:
    source = everywhere()
    whole, found = constants(source), constants(source.SerializeToString())
    assert set(found) == set(whole)
    assert len(found) == 5
    for name, array in found.items():
        np.testing.assert_array_equal(array, whole[name])


def test_all_big_tensors_are_taken_out() -> None:
    content = everywhere().SerializeToString()
    slim, _ = without_large_data(content, _LAYOUT, "model")
    assert len(content) > 5 * BIG.nbytes
    assert len(slim) < 3000
    assert [n.name for n in ModelProto.FromString(slim).graph.node] == ["constant", "sum", "if", "f"]


def test_weights_are_views_of_the_file() -> None:
    content = everywhere().SerializeToString()
    array = constants(content)["w_Initializer_0"]
    base: Any = array
    while isinstance(base, np.ndarray):
        base = base.base
    assert isinstance(base, memoryview)
    assert base.obj is content


def test_small_models_stay_as_they_are() -> None:
    content = model([node("Add", "x w")], initializers={"w": np.float32(1)}).SerializeToString()
    assert without_large_data(content, _LAYOUT, "model")[0] == content


def test_data_that_looks_like_a_token_of_another_model() -> None:
    forged = Pieces().put(memoryview(b"secret"))
    assert Pieces().get(forged) == forged


def test_token_gives_its_data() -> None:
    pieces = Pieces()
    tokens = [pieces.put(memoryview(data)) for data in (b"a", b"b")]
    assert [bytes(pieces.get(token)) for token in tokens] == [b"a", b"b"]
    assert pieces.get(b"plain") == b"plain"


@given(st.integers(0, 2**64 - 1))
def test_numbers_of_variable_length(number: int) -> None:
    encoded = encoded_varint(number)
    assert varint(encoded + b"\xff", 0, len(encoded) + 1) == (number, len(encoded))
    assert varint(encoded[:-1], 0, len(encoded) - 1) == (0, 0)


@given(st.integers(0, 2**32), st.text(max_size=20), st.binary(max_size=20))
def test_fields_cover_a_message(number: int, text: str, data: bytes) -> None:
    message = TensorProto(data_type=1, name=text, raw_data=data, dims=[number]).SerializeToString()
    found = list(fields(message, 0, len(message)))
    assert [f.start for f in found[1:]] + [len(message)] == [f.end for f in found]
    assert [message[f.content : f.end] for f in found if f.number == 9] == [data]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"\x0a\x05abc", "needs 2 bytes more"),
        (b"\x0a\xff", "no whole length"),
        (b"\x0b", "starts no protobuf field"),
        (b"\x00\x01", "starts no protobuf field"),
        (b"\x08" + b"\xff" * 11, "no whole length"),
        (b"\x0d\x01\x02", "needs 2 bytes more"),
    ],
)
def test_broken_messages(content: bytes, reason: str) -> None:
    with pytest.raises(BrokenWireError, match=reason):
        list(fields(content, 0, len(content)))
