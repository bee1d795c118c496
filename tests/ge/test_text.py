"""Graph text: printing and parsing are inverse, and faults are located."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ge.graph import DataType, Graph, Tensor, TensorDesc
from ge.graph.types import has_numpy_dtype, numpy_dtype
from ge.text import GraphTextError, parse_graph, print_graph

EVERYTHING = """graph net(%x: f32[1,3,8,8]@NCHW, %"y:0": i64[-1(1~8),4]@ND {foo="a"}) {note="n"} {
  %w = Const {value=f32[2]{0.5, -1.0}} -> f32[2]@ND
  %c = Conv2D(%x, %w, _, _) {strides=[1, 1, 2, 2], a=1.5, n=-inf, e=[], d=dtype f16, b=true, nested=[[1], [2, 3]], \
raw=bytes "00ff"} ctrl(%w) -> f32[1,64,4,4]@NCHW | [1,4,4,4,16]@NC1HWC0{flag=1}
  %f = TransData(%c) {dst_format="FRACTAL_Z", groups=2} -> f32[32,2,3,3]@NCHW | [9,2,16,16]@FRACTAL_Z:2
  %i:2 = If(%c, %c) {then_branch=@g1, else_branch=@g1} -> f32[]@ND, f32[-1,4]@ND
  return %c as "probability", %i:1
}
graph g1(%g1/x: f32[1]@ND) {
  %r = Relu(%g1/x) -> f32[-2]@ND
  return %r
}"""


def test_text_survives_a_round_trip() -> None:
    assert print_graph(parse_graph(EVERYTHING)) == EVERYTHING


def test_parsing_builds_edges_descriptors_and_bodies() -> None:
    graph = parse_graph(EVERYTHING)
    conv = graph.find("c")
    assert conv is not None
    assert [s and s.node.name for s in conv.inputs] == ["x", "w", None, None]
    assert [n.name for n in conv.control_inputs] == ["w"]
    desc = conv.output_descs[0]
    assert (list(desc.origin_shape), list(desc.shape), desc.attrs) == ([1, 64, 4, 4], [1, 4, 4, 4, 16], {"flag": 1})
    assert (graph.find("f").output_descs[0].sub_format, desc.sub_format) == (2, 0)
    assert graph.find("y:0").output_descs[0].shape_range == [(1, 8), (4, 4)]
    assert conv.attrs["d"] is DataType.DT_FLOAT16
    assert [out.index for out in graph.outputs] == [0, 1]
    assert graph.find("i").subgraphs == [("then_branch", "g1"), ("else_branch", "g1")]


@pytest.mark.parametrize("dtype", [d for d in DataType if has_numpy_dtype(d) and d is not DataType.DT_STRING])
def test_small_tensors_of_every_type_are_written_out(dtype: DataType) -> None:
    array = np.array([[1, 1], [0 if numpy_dtype(dtype) != "float8_e8m0fnu" else 1, 1]]).astype(numpy_dtype(dtype))
    graph = Graph("g")
    graph.outputs = [graph.add_const("c", Tensor.of(array))]
    back = parse_graph(print_graph(graph)).find("c").attrs["value"]
    assert back.data_type is dtype
    np.testing.assert_array_equal(back.array, array)


def test_large_tensors_travel_beside_the_text() -> None:
    array = np.arange(100, dtype=np.float32)
    graph = Graph("g")
    graph.outputs = [graph.add_const("c", Tensor.of(array))]
    side: dict[str, np.ndarray] = {}
    text = print_graph(graph, side)
    assert len(text) < 250
    np.testing.assert_array_equal(parse_graph(text, side).find("c").attrs["value"].array, array)
    with pytest.raises(GraphTextError, match="not at hand"):
        parse_graph(text)


_names = st.text(min_size=1, max_size=12)
_numbers = st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | st.booleans()
_values = st.recursive(_numbers | _names | st.binary(max_size=8), lambda v: st.lists(v, max_size=3), max_leaves=5)


@given(
    st.lists(
        st.tuples(_names, st.dictionaries(_names, _values, max_size=3), st.lists(st.integers(-1, 9), max_size=4)),
        min_size=1,
        max_size=6,
        unique_by=lambda row: row[0],
    )
)
def test_any_names_attributes_and_shapes_survive(rows: list) -> None:
    graph = Graph("g")
    last = None
    for name, attrs, dims in rows:
        node = graph.add_node("Relu", name, [] if last is None else [last], attrs, output_descs=[TensorDesc(dims)])
        last = node.output(0)
    graph.outputs = [last]
    text = print_graph(graph)
    back = parse_graph(text)
    assert print_graph(back) == text
    for name, attrs, dims in rows:
        node = back.find(name)
        assert node.attrs == attrs
        assert list(node.output_descs[0].shape) == dims


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("graph g() { %a = Relu(%b) return %a }", r"line 1, column 23: %b:0 is not defined"),
        ("graph g() {\n  %a = Relu() -> f99[1]@ND\n return }", r"line 2, column 18: 'f99' is not an element type"),
        ("graph g() { %a = C %a = C return }", "%a is defined twice"),
        ("graph g() { %a:2 = C -> f32[]@ND return }", "2 outputs and 1 descriptors"),
        ("graph g(", "expected a %name, found 'end of text'"),
        ("graph g() { %a = C {v=f32[3]{1.0}} return }", "needs 3 elements, found 1"),
        ("graph g() { ; return }", "unexpected character ';'"),
        ("graph g() { %a:99999999999 = C return }", "at most 100000 outputs, %a has 99999999999"),
        ('graph g() { %a = C {v="\\q"} return }', "line 1, column 27: this cannot be read"),
        ('graph g() { %a = C {v=bytes "zz"} return }', "this cannot be read"),
        ("graph g() { %a = C {v=f32[2]{1,[2]}} return }", "this cannot be read"),
        ("graph g() { %a = C {v=" + "9" * 5000 + "} return }", "this cannot be read"),
        ("graph g() { %a = C {v=" + "[" * 20_000 + "} return }", "nested too deeply"),
        ("graph g() {", "expected a %name, found 'end of text'"),
        ("graph g", "found 'end of text'"),
    ],
)
def test_faults_are_located(text: str, message: str) -> None:
    with pytest.raises(GraphTextError, match=message.replace("[", r"\[") if "\\" not in message else message):
        parse_graph(text)
