"""ge_onnx files: what they say at each detail, to ONNX's text reader and to Netron's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from google.protobuf import text_format

from ge.dump.onnx_text import onnx_text
from ge.dump.proto_text import model_message
from ge.dump.settings import Detail
from ge.graph import DataType, Graph, NodeOut, Tensor, TensorDesc
from ge.plan import Block, GraphPlan, Plan, Task
from ge.text import parse_graph
from tests.om_format.netron_reader import netron_view

NETRON_SCRIPT = Path(__file__).with_name("netron_onnx_reader.mjs")
NETRON_MODULES = ("base.js", "onnx.js", "onnx-proto.js", "protobuf.js")


def text_of(graph: Graph, detail: Detail, plan: Plan | None = None) -> str:
    return onnx_text(model_message(graph, detail, plan), detail)


def dumped(graph: Graph, detail: Detail = Detail.FULL, plan: Plan | None = None) -> onnx.ModelProto:
    return text_format.Parse(text_of(graph, detail, plan), onnx.ModelProto())


def attributes(graph: onnx.GraphProto, node: str) -> dict[str, Any]:
    """The attributes of a node as Python values; an empty list keeps its kind in the name of a type."""
    found = next(n for n in graph.node if n.name == node)
    names = [attribute.name for attribute in found.attribute]
    assert names == sorted(names)
    return {attribute.name: onnx.helper.get_attribute_value(attribute) for attribute in found.attribute}


def test_model_and_graph(net: Graph) -> None:
    model = dumped(net)
    assert (model.ir_version, model.producer_name, model.model_version) == (6, "GE", 2)
    assert not model.opset_import
    assert not model.graph.initializer
    assert not model.graph.input
    assert model.graph.name == "net"
    (output,) = model.graph.output
    assert (output.name, output.type.tensor_type.elem_type) == ("Node_Output", onnx.TensorProto.FLOAT)
    # the dims of several results run together: f32[4] and i64[]
    assert [dim.dim_value for dim in output.type.tensor_type.shape.dim] == [4]


def test_results_before_there_is_a_net_output() -> None:
    graph = parse_graph(
        """graph g(%x: bf16[3]@ND) {
             %two:2 = Unknown(%x) -> i32[5,-1]@ND, f32[7]@ND
             return %two:1, %x, %two
           }"""
    )
    found = [
        (value.name, value.type.tensor_type.elem_type, [dim.dim_value for dim in value.type.tensor_type.shape.dim])
        for value in dumped(graph).graph.output
    ]
    assert found == [("two", onnx.TensorProto.INT32, [5, -1, 7]), ("x", onnx.TensorProto.UNDEFINED, [3])]


def test_nodes_and_edges(net: Graph) -> None:
    nodes = [(n.name, n.op_type, list(n.input), list(n.output)) for n in dumped(net).graph.node]
    assert nodes == [
        ("x", "ge:Data", [], ["x:0"]),
        ("go", "ge:Data", [], ["go:0", "go:-1"]),
        ("w", "ge:Const", [], ["w:0"]),
        ("mix", "ge:MixForTest", ["x:0", "", "w:0", "go:-1"], ["mix:0", "mix:1"]),
        ("if", "ge:If", ["go:0", "mix:0"], ["if:0"]),
        ("Node_Output", "ge:NetOutput", ["if:0", "mix:1"], []),
        ("then", "subgraph", [], []),
        ("else", "subgraph", [], []),
    ]


def test_only_outputs_with_readers_are_listed() -> None:
    graph = parse_graph(
        "graph g(%x: f32[1]@ND) { %split:3 = Unknown(%x) %last = Neg(%split:2) ctrl(%split) return %last }"
    )
    assert [list(n.output) for n in dumped(graph).graph.node] == [["x:0"], ["split:2", "split:-1"], []]


def test_bodies_are_whole_graphs_with_inputs(net: Graph) -> None:
    model = dumped(net)
    then = next(n for n in model.graph.node if n.name == "then").attribute[0]
    assert (then.name, then.type) == ("graph", onnx.AttributeProto.GRAPH)
    assert [(n.name, n.op_type, list(n.input)) for n in then.g.node] == [
        ("then/x", "ge:Data", []),
        ("then/neg", "ge:Neg", ["then/x:0"]),
    ]
    assert [value.name for value in then.g.input] == ["then/x"]
    assert [value.name for value in then.g.output] == ["then/neg"]


def test_attributes_of_every_kind(net: Graph) -> None:
    found = attributes(dumped(net).graph, "mix")
    shown = {name: value for name, value in found.items() if "_desc_" not in name}
    assert shown == {
        "alpha": 0.5,
        "dst_index": [],
        "dst_name": [],
        "flag": 1,
        "flags": [1, 0],
        "id": 3,
        "input_i": [],
        "input_name": [],
        "is_input_const": [0, 0, 1],
        "kind": b"sum",
        "names": [b"a", "ü".encode()],
        "nested_0": [1, 2],
        "nested_1": [3],
        "output_i": [],
        "pads": [0, -1],
        "src_index": [],
        "src_name": [],
        "stream_id": 0,
        "weights": [0.25, 1.5],
        "workspace": [],
        "workspace_bytes": [],
    }
    assert (found["input_desc_nums"], found["output_desc_nums"]) == (3, 2)


def test_descriptors(net: Graph) -> None:
    found = attributes(dumped(net).graph, "mix")
    prefix = "input_desc_"
    first = {name.removeprefix(prefix): v for name, v in found.items() if name.startswith(prefix) and ":0" in name}
    assert first == {
        "attr_format_for_int:0": 3,
        "attr_origin_format_for_int:0": 0,
        "attr_origin_shape_initialized:0": 1,
        "cmps_size:0": 0,
        "cmps_tab:0": b"",
        "cmps_tab_offset:0": 0,
        "data_offset:0": 0,
        "device_type:0": b"NPU",
        "dtype:0": b"DT_FLOAT16",
        "input_tensor:0": 0,
        "layout:0": b"NC1HWC0",
        "origin_dtype:0": b"DT_UNDEFINED",
        "origin_layout:0": b"NCHW",
        "origin_shape:0": [1, 2, 4, 4],
        "output_tensor:0": 0,
        "real_dim_cnt:0": 0,
        "reuse_input:0": 0,
        "shape:0": [1, 1, 4, 4, 16],
        "size:0": 512,
        "weight_size:0": 0,
    }
    assert found["input_desc_dtype:1"] == b"DT_UNDEFINED"
    assert found["input_desc_shape:1"] == []
    assert found["output_desc_shape:0"] == [-1, 4]
    assert found["output_desc_attr_shape_range_0:0"] == [1, 8]
    assert found["output_desc_dtype:1"] == b"DT_INT64"


def test_descriptor_attributes_of_passes() -> None:
    graph = parse_graph('graph g() { %n = Unknown -> f32[1]@ND{label="a", level=3} return }')
    for detail in (Detail.FULL, Detail.WITHOUT_WEIGHTS):
        found = attributes(dumped(graph, detail).graph, "n")
        assert (found["output_desc_attr_label:0"], found["output_desc_attr_level:0"]) == (b"a", 3)


@pytest.mark.parametrize("detail", list(Detail))
def test_constants(net: Graph, detail: Detail) -> None:
    found = attributes(dumped(net, detail).graph, "w")
    expected = {
        "value_desc_dtype": b"DT_FLOAT",
        "value_desc_shape": [2, 1],
        "value_desc_layout": b"ND",
        "value_desc_device_type": b"NPU",
    }
    data = {"value_data": np.array([0.5, -1], "<f4").tobytes()}
    shown = {name: value for name, value in found.items() if name.startswith("value")}
    assert shown == {1: expected | data, 2: expected, 3: {}}[detail]


def test_detail_2_keeps_numbers_and_descriptors(net: Graph) -> None:
    full = attributes(dumped(net).graph, "mix")
    texts = {"dst_name", "input_name", "kind", "names", "src_name"}
    expected = {name: value for name, value in full.items() if name not in texts}
    assert attributes(dumped(net, Detail.WITHOUT_WEIGHTS).graph, "mix") == expected


def test_a_text_named_like_a_descriptor_is_still_a_text() -> None:
    graph = parse_graph('graph g() { %n = Unknown {my_desc_text="a", input_desc_kind="b"} return }')
    found = attributes(dumped(graph, Detail.WITHOUT_WEIGHTS).graph, "n")
    assert not {"my_desc_text", "input_desc_kind"} & set(found)


def test_detail_3_is_names_types_and_edges(net: Graph) -> None:
    full, links = dumped(net), dumped(net, Detail.LINKS_ONLY)
    for graph in (full.graph, *(n.attribute[0].g for n in full.graph.node if n.op_type == "subgraph")):
        for node in graph.node:
            if node.op_type != "subgraph":
                del node.attribute[:]
    assert links == full


@pytest.mark.parametrize(("n_inputs", "as_json"), [(19, False), (20, True), (25, True)])
def test_many_tensors_are_json_texts(n_inputs: int, as_json: bool) -> None:
    uses = ", ".join(["%x"] * n_inputs)
    graph = parse_graph(f"graph g(%x: f16[2,3]@NCHW) {{ %n = Unknown({uses}) -> f32[5]@ND return }}")
    for detail in (Detail.FULL, Detail.WITHOUT_WEIGHTS):
        found = attributes(dumped(graph, detail).graph, "n")
        assert found["output_desc_shape:0"] == [5]
        assert ("input_desc_shape:0" in found) == (not as_json)
        if as_json:
            assert [name for name in found if name.startswith("input_desc_") and ":" in name] == []
            fields = json.loads(found[f"input_desc_{n_inputs - 1}"])
            assert (fields["dtype"], fields["shape"], fields["layout"]) == ("DT_FLOAT16", [2, 3], "NCHW")
            x = attributes(dumped(graph, detail).graph, "x")
            single = {name.removeprefix("output_desc_").removesuffix(":0") for name in x if name.endswith(":0")}
            assert set(fields) == single


@pytest.mark.parametrize("dtype", [d for d in DataType if d is not DataType.DT_MAX], ids=lambda dtype: dtype.name)
def test_element_types_of_outputs(dtype: DataType) -> None:
    graph = Graph("g")
    x = graph.add_node("Data", "x", output_descs=[TensorDesc([1], data_type=dtype)]).output()
    graph.add_node("NetOutput", "out", [x], n_outputs=0)
    name = dtype.name.removeprefix("DT_").replace("FLOAT8_", "FLOAT8")
    in_onnx = {"FLOAT", "FLOAT16", "DOUBLE", "BOOL", "FLOAT8E5M2", "FLOAT8E4M3FN"}
    in_onnx |= {f"{sign}INT{bits}" for sign in ("", "U") for bits in (8, 16, 32, 64)}
    expected = onnx.TensorProto.DataType.Value(name) if name in in_onnx else onnx.TensorProto.UNDEFINED
    assert dumped(graph).graph.output[0].type.tensor_type.elem_type == expected


def test_places_in_memory(net: Graph) -> None:
    plan = GraphPlan(
        tasks=[Task("mix"), Task("if")],
        blocks={("x", 0): Block(512, 64), ("mix", 0): Block(1024, 128), ("if", 0): Block(0, 32)},
        workspaces={"if": [Block(2048, 96)]},
        arena_size=4096,
    )
    found = dumped(net, Detail.WITHOUT_WEIGHTS, Plan({"net": plan})).graph
    mix, branch = attributes(found, "mix"), attributes(found, "if")
    assert (mix["input_i"], mix["output_i"], mix["output_desc_size:0"]) == ([512, -1, -1], [1024, -1], 128)
    assert (branch["workspace"], branch["workspace_bytes"]) == ([2048], [96])
    assert attributes(found, "Node_Output")["src_index"] == [0, 1]


# -- Netron ------------------------------------------------------------------------------------------------------------
def edge(source: NodeOut | None) -> str:
    return "" if source is None else f"{source.node.name}:{source.index}"


def expected_view(graph: Graph, shown: onnx.GraphProto) -> dict[str, Any]:
    """What a reader ought to see: edges from the graph, attributes as ONNX's own reader gives them."""
    nodes = []
    for node in graph:
        inputs = [edge(source) for source in node.inputs if source is not None]  # Netron hides what is absent
        read = [edge(out) for out in node.outputs() if node.consumers(out.index)]
        nodes.append(
            {
                "name": node.name,
                "type": f"ge:{node.type}",
                "inputs": inputs + [f"{before.name}:-1" for before in node.control_inputs],
                "outputs": read + ([f"{node.name}:-1"] if node.control_outputs else []),
                "attributes": {name: in_json(value) for name, value in attributes(shown, node.name).items()},
            }
        )
    return {"name": graph.name, "nodes": nodes}


def in_json(value: Any) -> Any:
    if isinstance(value, list):
        return [in_json(item) for item in value]
    return value.decode(errors="replace") if isinstance(value, bytes) else value


@pytest.mark.parametrize("detail", list(Detail))
def test_netron_shows_nodes_edges_and_attributes(
    net: Graph, detail: Detail, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    net.find("w").attrs["value"] = Tensor.of(np.array([[65.0], [0.0]], np.float32))  # bytes that are ASCII
    path = tmp_path / "ge_onnx_00000000_graph_0_Build.pbtxt"
    path.write_text(text_of(net, detail))
    modules = tmp_path_factory.getbasetemp() / "netron_onnx"
    view = netron_view(path, modules, NETRON_SCRIPT, NETRON_MODULES, "onnx-metadata.json")
    assert (view["format"], view["producer"]) == ("ONNX v6", "GE")
    shown = dumped(net, detail).graph
    bodies = [
        {
            "name": body.name,
            "type": "subgraph",
            "inputs": [],
            "outputs": [],
            "attributes": {"graph": expected_view(body, shown_body.attribute[0].g)},
        }
        for body, shown_body in zip(net.subgraphs.values(), shown.node[-2:], strict=True)
    ]
    expected = expected_view(net, shown)
    expected["nodes"] += bodies
    assert view["graph"] == expected
    assert view["outputs"] == [{"name": "Node_Output", "dtype": "float32", "shape": [4]}]
