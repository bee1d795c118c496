"""The quick reader of protobuf texts against the library's own."""

from __future__ import annotations

import struct
from typing import Any

import onnx
import pytest
from google.protobuf import text_format
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from hypothesis import given
from hypothesis import strategies as st

from ge.dump import protobuf_text
from ge.dump.proto_text import model_message
from ge.dump.protobuf_text import TextFormError, parse_message
from ge.dump.settings import Detail
from ge.graph import Graph
from ge.proto import ge_ir_pb2 as pb

FLOAT32 = st.floats(width=32, allow_nan=False)
SCALARS: dict[int, st.SearchStrategy[Any]] = {
    FieldDescriptor.TYPE_INT64: st.integers(-(2**63), 2**63 - 1),
    FieldDescriptor.TYPE_INT32: st.integers(-(2**31), 2**31 - 1),
    FieldDescriptor.TYPE_UINT64: st.integers(0, 2**64 - 1),
    FieldDescriptor.TYPE_UINT32: st.integers(0, 2**32 - 1),
    FieldDescriptor.TYPE_BOOL: st.booleans(),
    FieldDescriptor.TYPE_FLOAT: FLOAT32,
    FieldDescriptor.TYPE_DOUBLE: st.floats(allow_nan=False),
    FieldDescriptor.TYPE_STRING: st.text(st.characters(exclude_categories=["Cs"])),
    FieldDescriptor.TYPE_BYTES: st.binary(),
}


@st.composite
def messages(draw: st.DrawFn, message_type: type[Message], depth: int = 4) -> Message:
    """Messages of the type with some of their fields set, nested ones too."""
    message = message_type()
    fields = [f for f in message.DESCRIPTOR.fields if depth > 0 or f.type != FieldDescriptor.TYPE_MESSAGE]
    for field in draw(st.lists(st.sampled_from(fields), max_size=4, unique_by=lambda f: f.name)) if fields else ():
        kind = field.message_type
        if kind is not None and kind.GetOptions().map_entry:
            target = getattr(message, field.name)[draw(st.text(st.characters(exclude_categories=["Cs"])))]
            if isinstance(target, Message):
                target.CopyFrom(draw(messages(type(target), depth - 1)))
        elif kind is not None:
            one = getattr(message, field.name)
            target = one.add() if field.is_repeated else one
            target.CopyFrom(draw(messages(type(target), depth - 1)))
        else:
            values = SCALARS.get(field.type)
            if values is None:
                values = st.sampled_from([value.number for value in field.enum_type.values])
            if field.is_repeated:
                getattr(message, field.name).extend(draw(st.lists(values, max_size=3)))
            else:
                setattr(message, field.name, draw(values))
    return message


def read_by_the_library(text: str, message_type: type[Message]) -> bytes:
    return text_format.Parse(text, message_type()).SerializeToString(deterministic=True)


@pytest.mark.parametrize("message_type", [pb.ModelDef, onnx.ModelProto], ids=lambda t: t.__name__)
@given(data=st.data())
def test_any_message_is_read_as_the_library_reads_it(message_type: type[Message], data: st.DataObject) -> None:
    text = text_format.MessageToString(data.draw(messages(message_type)))
    assert parse_message(text, message_type).SerializeToString(deterministic=True) == read_by_the_library(
        text, message_type
    )


def test_a_dump_takes_the_quick_way(net: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    message = model_message(net, Detail.FULL)
    text = text_format.MessageToString(message)
    monkeypatch.setattr(protobuf_text.text_format, "Parse", None)
    assert parse_message(text, pb.ModelDef) == message


@pytest.mark.parametrize(
    "text",
    [
        "version: 2 # a comment",
        "version: 1_0 attr { key: 'a' value { f: 1_0 } }",
        "name: 'single' version: 0x10",
        'name: "joined" "text"',
        "graph: { input: ['a:0', 'b:0'] }",
        "graph < name: 'g' >",
        "graph { op { id: 010 } };",
        "graph { op { is_input_const: t is_input_const: 0 is_input_const: True } }",
        "graph { op { output_desc { dtype: 7 } output_desc { dtype: 900 } } }",
        "attr { key: 'a' value { f: 1e99 } } attr { key: 'b' value { f: -1.5f } }",
        "attr { key: 'a' value { f: -inf } } attr { key: 'b' value { f: Infinity } }",
        'attr { key: "a" value { s: "\\303\\274\\x41\\n\\"" } }',
        "",
        " \n ",
    ],
)
def test_the_rest_of_the_grammar(text: str) -> None:
    assert parse_message(text, pb.ModelDef).SerializeToString(deterministic=True) == read_by_the_library(
        text, pb.ModelDef
    )


def test_not_a_number() -> None:
    model = parse_message('attr { key: "a" value { f: nan } }', pb.ModelDef)
    assert struct.pack("<f", model.attr["a"].f) == struct.pack("<f", float("nan"))


def test_fields_that_are_not_known_are_skipped() -> None:
    text = (
        'novel: 1 version: 2 new { graph { name: "x" } k: "}" } '
        'graph { name: "g" later: [1, 2] op { new: 1 name: "n" } }'
    )
    expected = pb.ModelDef(version=2, graph=[pb.GraphDef(name="g", op=[pb.OpDef(name="n")])])
    assert parse_message(text, pb.ModelDef) == expected
    assert parse_message(text.replace("later: [1, 2]", "later: 1"), pb.ModelDef) == expected


@pytest.mark.parametrize(
    "text",
    [
        "version: -1",
        "version: 4294967296",
        "version: two",
        "graph {",
        "graph { op { }",
        "}",
        "graph: 1",
        "version { }",
        "graph { op { id: 9223372036854775808 } }",
        "attr { key: 'a' value { b: 2 } }",
        "graph { op { output_desc { dtype: DT_NONE } } }",
        'name: "open',
        'name: "line\nend"',
        r'name: "\377"',
        "name: text",
        "?",
        "graph { op { attr { key: 'a' value { g { " * 40 + "}}}}" * 40,
        "graph { op { attr { key: 'a' value { g { " * 4000 + "}}}}" * 4000,
    ],
)
def test_faults(text: str) -> None:
    with pytest.raises(TextFormError):
        parse_message(text, pb.ModelDef)


@given(text=st.text("{}[]<>:;,\"'\\# \nabgop01.-+e_", max_size=60))
def test_any_text_is_a_message_or_a_fault(text: str) -> None:
    try:
        parse_message(text, pb.ModelDef)
    except TextFormError:
        return
