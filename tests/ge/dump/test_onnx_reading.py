"""The way back from ge_onnx files."""

from __future__ import annotations

import json

import pytest
from google.protobuf import text_format
from hypothesis import given
from hypothesis import strategies as st

from ge.dump.onnx_reading import read_onnx_text
from ge.dump.onnx_text import onnx_model, onnx_text
from ge.dump.proto_text import model_message
from ge.dump.protobuf_text import TextFormError
from ge.dump.settings import Detail
from ge.graph import Graph
from ge.graph.compare import first_difference
from ge.proto.attr_def import InvalidGraphDef
from ge.proto.graph_def import graph_of
from ge.text import parse_graph, print_graph

PLAIN = """
graph net(%x: f16[1,2,4,4]@NCHW | [1,1,4,4,16]@NC1HWC0, %go: f32[]@ND) {
  %w = Const {value=f32[2,1]{0.5, -1.0}} -> f32[2,1]@ND
  %mix:2 = MixForTest(%x, _, %w) {alpha=0.5, kind="sum", names=["a", "ü"], pads=[0, -1], weights=[0.25, 1.5]}
    ctrl(%go) -> f32[3,4]@ND{label="a", level=2}, i64[]@ND
  %Node_Output:0 = NetOutput(%mix, %mix:1)
  return
}
graph body(%body/x: bf16[-1,4]@ND) { %out:0 = NetOutput(%body/x) return }
"""


def text_of(graph: Graph, detail: Detail) -> str:
    return onnx_text(model_message(graph, detail), detail)


def test_what_onnx_attributes_can_say_comes_back() -> None:
    graph = parse_graph(PLAIN)
    model, detail = read_onnx_text(text_of(graph, Detail.FULL))
    assert detail is Detail.FULL
    assert first_difference(graph, graph_of(model)) is None


@pytest.mark.parametrize(
    "view",
    [
        "f16[1,3,4,4]@NCHW | [1,1,4,4,16]@NC1HWC0",
        "f16[16,3,1,1]@NCHW | [1,1,16,16]@FRACTAL_Z:4",
        "f32[128,1000]@ND | [63,8,16,16]@FRACTAL_NZ",
        "f16[1,3,4,4]@ND | [1,3,4,4]@NCHW",
        "f32[-1,3]@NHWC | [3,-1]@ND",
    ],
)
@pytest.mark.parametrize("readers", [1, 30])
def test_both_views_of_a_tensor_come_back(view: str, readers: int) -> None:
    uses = ", ".join(["%x"] * readers)
    graph = parse_graph(f"graph g(%x: {view}) {{ %n = Unknown({uses}) %Node_Output:0 = NetOutput(%n) return }}")
    model, _ = read_onnx_text(text_of(graph, Detail.FULL))
    found = graph_of(model)
    assert first_difference(graph, found) is None
    assert print_graph(found) == print_graph(graph)


def test_many_tensors_come_back() -> None:
    uses = ", ".join(["%x"] * 30)
    graph = parse_graph(
        f'graph g(%x: f16[2,3]@NCHW{{label="a", levels=[1,2], parts=[0.5,2.0], names=["b"]}}) '
        f"{{ %n = Unknown({uses}) %Node_Output:0 = NetOutput(%n) return }}"
    )
    model, _ = read_onnx_text(text_of(graph, Detail.FULL))
    assert first_difference(graph, graph_of(model)) is None


@pytest.mark.parametrize("detail", [Detail.FULL, Detail.WITHOUT_WEIGHTS])
def test_written_again_it_is_the_same_text(net: Graph, detail: Detail) -> None:
    text = text_of(net, detail)
    model, found = read_onnx_text(text)
    assert found is detail
    assert onnx_text(model, detail) == text


@pytest.mark.parametrize("detail", [Detail.WITHOUT_WEIGHTS, Detail.LINKS_ONLY])
def test_less_detail_is_a_part_of_more(net: Graph, detail: Detail) -> None:
    full, _ = read_onnx_text(text_of(net, Detail.FULL))
    assert onnx_text(full, detail) == text_of(net, detail)


def test_edges_without_any_attributes(net: Graph) -> None:
    model, _ = read_onnx_text(text_of(net, Detail.LINKS_ONLY))
    root, then, _ = model.graph
    assert [(op.name, op.type, list(op.input)) for op in root.op][3:5] == [
        ("mix", "MixForTest", ["x:0", "", "w:0", "go:-1"]),
        ("if", "If", ["go:0", "mix:0"]),
    ]
    assert (then.name, list(then.input), list(then.output)) == ("then", ["then/x:0"], ["then/neg:0"])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('graph { node { op_type: "Conv" name: "c" } }', "node c: types of a dump begin with 'ge:', this is 'Conv'"),
        ("ir_version: 6", "no graph"),
        ('graph { node { op_type: "ge:A" name: "n" attribute { name: "id" s: "x" type: STRING } } }', "node n"),
        ('graph { node { op_type: "ge:A" attribute { name: "input_desc_shape:0" f: 1 type: FLOAT } } }', "of a dump"),
        ('graph { node { op_type: "ge:A" attribute { name: "input_desc_dtype:0" i: 1 type: INT } } }', "of a dump"),
        ('graph { node { op_type: "ge:A" attribute { name: "v_desc_dtype" i: 1 type: INT } } }', "of a dump"),
        ('graph { node { op_type: "ge:A" attribute { name: "input_desc_3" s: "[1" type: STRING } } }', "of a dump"),
        ('graph { node { op_type: "ge:A" attribute { name: "input_desc_3" s: "[1]" type: STRING } } }', "of a dump"),
        (
            'graph { node { op_type: "ge:A" attribute { name: "input_desc_shape:99999999" type: INTS } } }',
            "a tensor number 99999999; at most 100000 are read",
        ),
        (
            f'graph {{ node {{ op_type: "ge:A" attribute {{ name: "input_desc_0" s: {json.dumps("[" * 99999)} '
            "type: STRING } } }",
            "of a dump",
        ),
    ],
)
def test_what_is_no_dump(text: str, expected: str) -> None:
    with pytest.raises(InvalidGraphDef) as fault:
        read_onnx_text(text)
    assert expected in str(fault.value)


@given(data=st.data())
def test_damaged_dumps_are_read_or_refused(data: st.DataObject) -> None:
    """Swaps attribute values, names and types of a dump at random."""
    model = onnx_model(model_message(parse_graph(PLAIN), Detail.FULL), Detail.FULL)
    attributes = [attribute for node in model.graph.node for attribute in node.attribute]
    for _ in range(data.draw(st.integers(1, 5))):
        one, two = (data.draw(st.sampled_from(attributes)) for _ in range(2))
        kept = one.name
        one.CopyFrom(two)
        if data.draw(st.booleans()):
            one.name = kept
    try:
        read_onnx_text(text_format.MessageToString(model))
    except (InvalidGraphDef, TextFormError):
        return
