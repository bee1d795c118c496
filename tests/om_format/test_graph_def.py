"""Graph <-> ModelDef: the exact message of a small graph, round trips of random graphs, refusal of broken messages."""

from __future__ import annotations

import contextlib
import re
import time
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from google.protobuf import text_format
from google.protobuf.message import DecodeError
from hypothesis import given, settings
from hypothesis import strategies as st

from ge.formats import GROUPED_FORMATS
from ge.formats.packed_format import MAX_GROUPS
from ge.graph import DataType, Format, Graph, Shape, Tensor, TensorDesc
from ge.graph.types import bit_width, has_numpy_dtype, numpy_dtype
from ge.proto import ge_ir_pb2 as pb
from ge.proto.attr_def import InvalidGraphDef, read_attr, write_attr
from ge.proto.graph_def import graph_of, model_def
from ge.proto.tensor_bytes import array_of, stored_bytes

DESC = """
  dtype: {dtype} shape {{ {dims} }} layout: "{layout}" device_type: "NPU" size: {size}
  attr {{ key: "format_for_int" value {{ i: {number} }} }}
  attr {{ key: "origin_format" value {{ s: "{origin}" }} }}
  attr {{ key: "origin_format_for_int" value {{ i: {origin_number} }} }}
  attr {{ key: "origin_shape" value {{ list {{ {origin_dims} val_type: VT_LIST_INT }} }} }}
  attr {{ key: "origin_shape_initialized" value {{ b: true }} }}
"""
X = DESC.format(
    dtype="DT_FLOAT16", dims="dim: 1 dim: 1 dim: 2 dim: 2 dim: 16", layout="NC1HWC0", size=128, number=3,
    origin="NCHW", origin_number=0, origin_dims="i: 1 i: 3 i: 2 i: 2",
)  # fmt: skip
W = DESC.format(
    dtype="DT_INT8", dims="dim: 2", layout="ND", size=2, number=2, origin="ND", origin_number=2, origin_dims="i: 2"
)
EXPECTED = f"""
  name: "net" version: 2
  graph {{
    name: "net" input: "x:0" output: "mix:0"
    op {{
      name: "x" type: "Data" output_desc {{ {X} }} attr {{ key: "index" value {{ i: 0 }} }}
      attr {{ key: "_output_name_key" value {{ list {{ s: "y" val_type: VT_LIST_STRING }} }} }}
      attr {{ key: "_output_name_value" value {{ list {{ i: 0 val_type: VT_LIST_INT }} }} }}
      attr {{ key: "_ir_attr_names" value {{ list {{ s: "index" val_type: VT_LIST_STRING }} }} }}
      attr {{ key: "_ir_outputs_key" value {{ list {{ s: "y" val_type: VT_LIST_STRING }} }} }}
      attr {{ key: "_ir_outputs_value" value {{ list {{ i: 0 val_type: VT_LIST_INT }} }} }}
    }}
    op {{
      name: "w" type: "Const" id: 1 output_desc {{ {W} }}
      attr {{ key: "value" value {{ t {{ desc {{ {W} weight_size: 2 }} data: "\\005\\377" }} }} }}
      attr {{ key: "_output_name_key" value {{ list {{ s: "y" val_type: VT_LIST_STRING }} }} }}
      attr {{ key: "_output_name_value" value {{ list {{ i: 0 val_type: VT_LIST_INT }} }} }}
      attr {{ key: "_ir_attr_names" value {{ list {{ s: "value" val_type: VT_LIST_STRING }} }} }}
      attr {{ key: "_ir_outputs_key" value {{ list {{ s: "y" val_type: VT_LIST_STRING }} }} }}
      attr {{ key: "_ir_outputs_value" value {{ list {{ i: 0 val_type: VT_LIST_INT }} }} }}
    }}
    op {{
      name: "mix" type: "MixForTest" id: 2 input: ["x:0", "", "w:0", "x:-1"]
      is_input_const: [false, false, true]
      input_desc {{ {X} }} input_desc {{ }} input_desc {{ {W} }} output_desc {{ {X} }}
      attr {{ key: "alpha" value {{ f: 0.5 }} }}
      attr {{ key: "to" value {{ dt: 27 }} }}
      attr {{ key: "pads" value {{ list {{ i: 1 i: 2 val_type: VT_LIST_INT }} }} }}
      attr {{ key: "none" value {{ list {{ val_type: VT_LIST_INT }} }} }}
      attr {{ key: "mode" value {{ s: "same" }} }}
      attr {{ key: "_subgraph_ir_names" value {{ list {{ s: "then_branch" val_type: VT_LIST_STRING }} }} }}
      subgraph_name: "body"
    }}
  }}
  graph {{ name: "body" }}
"""


def small_graph() -> Graph:
    graph = Graph("net")
    image = TensorDesc([1, 1, 2, 2, 16], Format.FORMAT_NC1HWC0, DataType.DT_FLOAT16, [1, 3, 2, 2], Format.FORMAT_NCHW)
    x = graph.add_node("Data", "x", attrs={"index": 0}, output_descs=[image])
    w = graph.add_const("w", Tensor.of(np.array([5, -1], np.int8)))
    attrs = {"alpha": 0.5, "to": DataType.DT_BF16, "pads": [1, 2], "none": [], "mode": "same"}
    mix = graph.add_node("MixForTest", "mix", [x.output(), None, w], attrs, output_descs=[image.copy()])
    graph.add_control(x, mix)
    mix.subgraphs = [("then_branch", "body")]
    graph.outputs = [mix.output()]
    graph.add_subgraph(Graph("body"))
    return graph


def test_message_of_a_small_graph():
    assert model_def(small_graph()) == text_format.Parse(EXPECTED, pb.ModelDef())


def test_signature_attributes_follow_the_ports():
    graph = Graph("net")
    a, b = (graph.add_node("Data", name, output_descs=[TensorDesc([2])]) for name in "ab")
    graph.add_node("IdentityN", "n", [a.output(), b.output()], n_outputs=2)
    attr = model_def(graph).graph[0].op[2].attr
    assert list(attr["_input_name_key"].list.s) == [b"x0", b"x1"]
    assert list(attr["_input_name_value"].list.i) == [0, 1]
    assert list(attr["_output_name_key"].list.s) == [b"y0", b"y1"]
    assert list(attr["_ir_inputs_key"].list.s) == [b"x"]
    assert list(attr["_ir_inputs_value"].list.i) == [2]
    assert list(attr["_ir_outputs_value"].list.i) == [1]
    assert "_opt_input" not in attr


# -- round trips ---------------------------------------------------------------------------------------------------
def plain(value: Any) -> Any:
    """A value in a form that ``==`` compares exactly, types and NaN included."""
    if isinstance(value, Tensor):
        content = value.array.tolist() if value.array.dtype == object else stored_bytes(value)
        return ("tensor", plain(value.desc), value.array.shape, value.array.dtype, content)
    if isinstance(value, TensorDesc):
        return ("desc", *((f, plain(getattr(value, f))) for f in TensorDesc.__slots__))
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    return (type(value).__name__, repr(value))


def description(graph: Graph) -> Any:
    """Everything that a graph consists of."""
    return [
        {
            "name": part.name,
            "attrs": plain(part.attrs),
            "outputs": [repr(out) for out in part.outputs],
            "output names": part.output_names,
            "nodes": [
                {
                    "head": (node.name, node.type, node.subgraphs),
                    "inputs": [repr(source) for source in node.inputs],
                    "controls": [before.name for before in node.control_inputs],
                    "attrs": plain(node.attrs),
                    "input descs": plain(node.input_descs),
                    "output descs": plain(node.output_descs),
                }
                for node in part
            ],
        }
        for part in graph.all_graphs()
    ]


int64 = st.integers(-(1 << 63), (1 << 63) - 1)
float32 = st.floats(width=32)
names = st.text(min_size=1, max_size=6)
data_types = st.sampled_from([t for t in DataType if t is not DataType.DT_MAX])
dims = st.integers(-1, 5)


@st.composite
def descs(draw):
    shape = draw(st.one_of(st.lists(dims, max_size=5), st.just([-2])))
    desc = TensorDesc(
        shape,
        draw(st.sampled_from(list(Format))),
        draw(data_types),
        draw(st.lists(dims, max_size=4)),
        draw(st.sampled_from(list(Format))),
    )
    if desc.format in GROUPED_FORMATS:
        desc.sub_format = draw(st.integers(0, MAX_GROUPS))
    desc.shape_range = draw(st.lists(st.tuples(int64, int64), max_size=3))
    desc.name = draw(st.text(max_size=4))
    desc.attrs = draw(st.dictionaries(names.map("k_".__add__), st.one_of(int64, st.lists(int64)), max_size=2))
    return desc


@st.composite
def tensors(draw):
    dtype = draw(st.sampled_from([t for t in DataType if has_numpy_dtype(t)]))
    shape = draw(st.lists(st.integers(0, 3), max_size=3))
    count = int(np.prod(shape, dtype=int))
    if dtype is DataType.DT_STRING:
        flat: Any = np.empty(count, object)
        flat[:] = draw(st.lists(st.text(max_size=5), min_size=count, max_size=count))
    elif dtype is DataType.DT_BOOL:
        flat = np.array(draw(st.lists(st.booleans(), min_size=count, max_size=count)), bool)
    else:
        width = np.dtype(numpy_dtype(dtype)).itemsize
        raw = np.frombuffer(draw(st.binary(min_size=count * width, max_size=count * width)), np.uint8)
        bits = bit_width(dtype)
        flat = raw.view(numpy_dtype(dtype)) if bits >= 8 else (raw & (2**bits - 1)).astype(np.uint8)
        if bits < 8:
            flat = array_of(np.packbits(_bits(flat, bits), bitorder="little"), dtype, [count])
    tensor = Tensor.of(flat.reshape(shape), draw(st.sampled_from(list(Format))))
    tensor.desc.data_type = dtype
    return tensor


def _bits(codes: np.ndarray, width: int) -> np.ndarray:
    """The ``width`` low bits of each code, lowest first, one after the other."""
    return ((codes[:, None] >> np.arange(width)) & 1).astype(np.uint8).reshape(-1)


attr_values = st.one_of(
    int64,
    float32,
    st.booleans(),
    st.text(max_size=8),
    st.binary(max_size=8),
    data_types,
    tensors(),
    descs(),
    st.lists(int64, max_size=4),
    st.lists(float32, max_size=4),
    st.lists(st.booleans(), max_size=3),
    st.lists(st.text(max_size=4), max_size=3),
    st.lists(st.binary(max_size=4), max_size=3),
    st.lists(data_types, max_size=3),
    st.lists(st.lists(int64, max_size=3), min_size=1, max_size=3),
    st.lists(st.lists(float32, min_size=1, max_size=3), min_size=1, max_size=3),
    st.lists(tensors(), max_size=2),
    st.lists(descs(), max_size=2),
)
attrs = st.dictionaries(names.map("a_".__add__), attr_values, max_size=3)


@st.composite
def graphs(draw, name="root", bodies=2):
    graph = Graph(name)
    graph.attrs = draw(attrs)
    for i in range(draw(st.integers(0, 6))):
        sources = [out for node in graph for out in node.outputs()]
        inputs = draw(st.lists(st.one_of(st.none(), st.sampled_from(sources)) if sources else st.none(), max_size=3))
        outputs = draw(st.lists(descs(), max_size=2))
        kinds = ["Data", "Identity", "Nowhere Registered"] + ["NetOutput"] * (graph.net_output() is None)
        kind = draw(st.sampled_from(kinds))
        node = graph.add_node(kind, draw(names) + f":{i}", inputs, draw(attrs), output_descs=outputs)
        for before in draw(st.lists(st.sampled_from(list(graph)), max_size=2)):
            if before is not node:
                graph.add_control(before, node)
    if draw(st.booleans()):
        graph.add_const("const", draw(tensors()))
    sources = [out for node in graph for out in node.outputs()]
    if graph.net_output() is None:
        graph.outputs = draw(st.lists(st.sampled_from(sources), max_size=3)) if sources else []
    if draw(st.booleans()):
        graph.output_names = [f"out {i}" for i in range(len(graph.outputs))]
    for i in range(bodies if draw(st.booleans()) else 0):
        body = draw(graphs(name=f"{name}/body{i}", bodies=0))
        graph.add_subgraph(body)
        nodes = list(graph)
        if nodes:
            draw(st.sampled_from(nodes)).subgraphs.append((f"branch{i}", body.name))
    return graph


@settings(max_examples=150)
@given(graphs())
def test_round_trip(graph):
    model = model_def(graph)
    data = model.SerializeToString(deterministic=True)
    again = graph_of(pb.ModelDef.FromString(data))
    assert description(again) == description(graph)
    assert model_def(again).SerializeToString(deterministic=True) == data


@given(attr_values)
def test_attribute_round_trip(value):
    stored = pb.AttrDef()
    write_attr(stored, value)
    assert plain(read_attr(stored, "x")) == plain(value)
    if isinstance(value, list) and stored.WhichOneof("value") == "list":
        assert stored.list.val_type != 0


@pytest.mark.parametrize(
    ("value", "kind", "text"),
    [
        (1, "f", "f: 1"),
        (1, "i", "i: 1"),
        (1, "t", "dt: 1"),
        (DataType.DT_BOOL, "i", "i: 12"),
        (True, "", "b: true"),
        (np.int64(3), "", "i: 3"),
        (np.float32(0.5), "", "f: 0.5"),
        (np.bool_(False), "", "b: false"),
        ([], "F", "list { val_type: VT_LIST_FLOAT }"),
        ([], "S", "list { val_type: VT_LIST_STRING }"),
        ([], "B", "list { val_type: VT_LIST_BOOL }"),
        ([1, 2.5], "", "list { f: 1 f: 2.5 val_type: VT_LIST_FLOAT }"),
        ([1, 2], "F", "list { f: 1 f: 2 val_type: VT_LIST_FLOAT }"),
        (Shape([2, 3]), "", "list { i: 2 i: 3 val_type: VT_LIST_INT }"),
        ([[1, 2], []], "", "list_list_int { list_list_i { list_i: 1 list_i: 2 } list_list_i { } }"),
        ([[1, 2.5]], "", "list_list_float { list_list_f { list_f: 1 list_f: 2.5 } }"),
        ("é", "", 's: "\\303\\251"'),
        (b"\xff", "", 'bt: "\\377"'),
    ],
)
def test_attribute_message(value, kind, text):
    stored = pb.AttrDef()
    write_attr(stored, value, kind)
    assert stored == text_format.Parse(text, pb.AttrDef())


@pytest.mark.parametrize("value", [None, {"a": 1}, object(), [1, "a"], [None], np.zeros(3)])
def test_values_that_no_attribute_can_hold(value):
    with pytest.raises(TypeError):
        write_attr(pb.AttrDef(), value)


# -- tensor bytes --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (np.array([1, -2, 3], ml_dtypes.int4), "e1 03"),
        (np.array([1, -2, 0, -1, 1], ml_dtypes.int2), "c9 01"),
        (np.array([3, 0, 1], ml_dtypes.uint2), "13"),
        (np.array([0.5, -6, 1], ml_dtypes.float4_e2m1fn), "f1 02"),
        (np.array([1, 0x0203], ">i2"), "01 00 03 02"),
        (np.array([[1, 2], [3, 4]], np.int8).T, "01 03 02 04"),
        (np.array(1.0, np.float32), "00 00 80 3f"),
        (np.zeros((0, 3), np.float64), ""),
        (np.array(["ab", ""], object), f"{32:02x}{'00' * 7} 02{'00' * 7} 23{'00' * 7}{'00' * 8} 6162 00 00"),
    ],
)
def test_stored_bytes(array, expected):
    tensor = Tensor.of(array)
    data = stored_bytes(tensor)
    assert data == bytes.fromhex(expected)
    again = array_of(np.frombuffer(data, np.uint8), tensor.data_type, array.shape)
    assert again.tolist() == array.tolist()
    assert again.dtype == array.dtype.newbyteorder("=")


def test_large_arrays_pass_in_pieces_without_a_copy():
    rng = np.random.default_rng(1)
    array = rng.integers(0, 100, (700, 1000)).astype(np.int32)
    assert stored_bytes(Tensor.of(array)) == array.tobytes()
    assert stored_bytes(Tensor.of(array.T)) == array.T.tobytes()
    assert stored_bytes(Tensor.of(array[::2, 1:])) == array[::2, 1:].tobytes()
    data = np.frombuffer(array.tobytes(), np.uint8)
    assert np.shares_memory(array_of(data, DataType.DT_INT32, [700, 1000]), data)


# -- broken messages -----------------------------------------------------------------------------------------------
def edited(edit: str) -> pb.ModelDef:
    """The small model with fields replaced by those of ``edit`` (text of a graph, its ops merged by position)."""
    model = model_def(small_graph())
    wanted = text_format.Parse(edit, pb.GraphDef())
    for op, change in zip(model.graph[0].op, wanted.op, strict=False):
        for field, _ in change.ListFields():
            if field.name != "attr":
                op.ClearField(field.name)
        op.MergeFrom(change)
    for field, _ in wanted.ListFields():
        if field.name not in ("op", "attr"):
            model.graph[0].ClearField(field.name)
    wanted.ClearField("op")
    model.graph[0].MergeFrom(wanted)
    return model


@pytest.mark.parametrize(
    ("edit", "reason"),
    [
        ('op {} op {} op { input: "y:0" }', "node mix reads 'y', which is not a node of the graph"),
        ('op {} op {} op { input: "x:1" }', "reads 'x:1', but x has 1 outputs"),
        ('op {} op {} op { input: "x" }', "'x' is not of the form producer:index"),
        ('op {} op {} op { input: "x:-2" }', "'x:-2' is not of the form producer:index"),
        ('op {} op {} op { input: "x:1_0" }', "'x:1_0' is not of the form producer:index"),
        ('op {} op {} op { input: "x:99999999999999999999" }', "but x has 1 outputs"),
        ('op {} op {} op { input: ["x:-1", "x:0"] }', "data input 'x:0' follows a control input"),
        ('op {} op {} op { name: "x" }', "node x: the name is used twice"),
        ('op { type: "NetOutput" } op {} op { type: "NetOutput" }', "node mix: a graph has one NetOutput"),
        ('op {} op {} op { subgraph_name: "nobody" }', "subgraph 'nobody' does not exist"),
        ('op {} op {} op { subgraph_name: ["body", "body"] }', "must hold 2 names"),
        ('op {} op {} op { attr { key: "_subgraph_ir_names" value { i: 1 } } }', "must hold 1 names"),
        ('op {} op {} op { attr { key: "alpha" value { s: "\\377" } } }', "attribute alpha is not UTF-8"),
        ('op {} op {} op { attr { key: "alpha" value { dt: 99 } } }', "unknown data type 99"),
        ('op {} op {} op { attr { key: "alpha" value { } } }', "kind none"),
        ('op {} op {} op { attr { key: "alpha" value { g { } } } }', "kind g, which cannot be read"),
        ('op {} op {} op { attr { key: "mode" value { list { val_type: VT_LIST_INT f: 1 } } } }', "holds the fields f"),
        ("op { output_desc { dtype: 77 } }", "node x, output 0 has the unknown data type 77"),
        ('op { output_desc { layout: "NICE" } }', "unknown format 'NICE'"),
        ('op { output_desc { attr { key: "format_for_int" value { i: 60 } } } }', "unknown format 60"),
        ("op { output_desc { shape { dim: -3 } } }", "[-3] is not a shape"),
        (
            "op { output_desc { shape { dim: [0, 4611686018427387904] } } }",
            "904] is not the shape of a tensor: no",
        ),
        (f"op {{ output_desc {{ shape {{ dim: {[1] * 65} }} }} }}", "it has 65 axes"),
        ('op {} op { attr { key: "value" value { i: 1 } } }', "a constant has an attribute value that holds a tensor"),
        ('op {} op { type: "Const" attr { key: "value" value { t { desc { dtype: DT_INT8 } } } } }', "1 bytes, 0 are"),
        ('output: "mix:1"', "reads 'mix:1', but mix has 1 outputs"),
        ('attr { key: "_output_names" value { list { s: "a" s: "b" } } }', "has 1 outputs but 2 names"),
        ('attr { key: "_output_names" value { i: 1 } }', "must be a list of names"),
    ],
)
def test_broken_messages_are_refused_with_a_reason(edit, reason):
    model = edited(edit)
    if "t { desc" in edit:
        model.graph[0].op[1].attr["value"].t.data = b""
        model.graph[0].op[1].attr["value"].t.desc.CopyFrom(pb.TensorDescriptor(dtype="DT_INT8"))
    with pytest.raises(InvalidGraphDef) as caught:
        graph_of(model)
    assert reason in str(caught.value)


@pytest.mark.parametrize(
    ("bodies", "reason"),
    [(0, "the model holds no graph"), (3, "already has a subgraph named")],
)
def test_broken_sets_of_graphs(bodies, reason):
    model = pb.ModelDef()
    for i in range(bodies):
        model.graph.add(name="root" if i == 0 else "body")
    with pytest.raises(InvalidGraphDef, match=reason):
        graph_of(model)


@pytest.mark.parametrize(
    ("dtype", "shape", "size", "reason"),
    [
        (DataType.DT_FLOAT, [2], 7, "takes 8 bytes, 7 are given"),
        (DataType.DT_FLOAT, [-1], 4, "is not the shape of a constant"),
        (DataType.DT_FLOAT, [1 << 50], 4, "is not the shape of a constant"),
        (DataType.DT_FLOAT, [1 << 40] * 3, 4, f"takes {1 << 122} bytes"),
        (DataType.DT_FLOAT, [1] * 65, 4, "is not the shape of a constant"),
        (DataType.DT_RESOURCE, [], 4, "cannot hold data"),
        (DataType.DT_STRING, [2], 16, "2 strings need at least 32 bytes"),
    ],
)
def test_bytes_that_do_not_fit_are_refused(dtype, shape, size, reason):
    with pytest.raises(ValueError, match=re.escape(reason)):
        array_of(np.ones(size, np.uint8), dtype, shape)


def test_strings_and_booleans_of_hostile_files():
    head = np.array([0, 1 << 62], "<i8").view(np.uint8)
    with pytest.raises(ValueError, match="string 0 lies outside"):
        array_of(head, DataType.DT_STRING, [1])
    overlapping = np.array([0, 64] * 4, "<i8").view(np.uint8)
    with pytest.raises(ValueError, match="string 1 lies outside"):
        array_of(overlapping, DataType.DT_STRING, [4])
    with pytest.raises(ValueError, match="bytes 0 and 1 only"):
        array_of(np.array([0, 2], np.uint8), DataType.DT_BOOL, [2])


@given(st.binary(max_size=200))
def test_random_bytes_as_a_model(data):
    with contextlib.suppress(DecodeError, InvalidGraphDef):
        graph_of(pb.ModelDef.FromString(data))


def test_twenty_thousand_nodes_in_a_chain():
    graph = Graph("deep")
    desc = TensorDesc([1, 8], Format.FORMAT_ND)
    out = graph.add_node("Data", "x", attrs={"index": 0}, output_descs=[desc]).output()
    for i in range(20_000):
        out = graph.add_node("Identity", f"n{i}", [out], output_descs=[desc.copy()]).output()
    graph.outputs = [out]
    start = time.perf_counter()
    data = model_def(graph).SerializeToString(deterministic=True)
    written = time.perf_counter()
    again = graph_of(pb.ModelDef.FromString(data))
    read = time.perf_counter()
    print(f"20,000 nodes: written in {written - start:.2f} s, read in {read - written:.2f} s, {len(data)} bytes")
    assert len(again) == len(graph)
    assert len(again.topological_order()) == 20_001
