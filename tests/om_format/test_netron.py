"""Saved models open in Netron with nodes, edges, shapes, types and weights: its own reader is asked."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from atc import compile_model
from ge.graph import DataType, Format, Graph, Tensor, TensorDesc
from ge.graph.types import FORMAT_TEXT, numpy_dtype
from ge.plan import GraphPlan, Plan
from ge.proto.tensor_bytes import stored_bytes
from om_format import ModelIO, OfflineModel
from tests.om_format.netron_reader import netron_view

NETRON_TYPE = {
    DataType.DT_FLOAT: "float32",
    DataType.DT_FLOAT16: "float16",
    DataType.DT_BF16: "bfloat16",
    DataType.DT_DOUBLE: "float64",
    DataType.DT_INT8: "int8",
    DataType.DT_INT16: "int16",
    DataType.DT_INT32: "int32",
    DataType.DT_INT64: "int64",
    DataType.DT_UINT8: "uint8",
    DataType.DT_UINT16: "uint16",
    DataType.DT_UINT32: "uint32",
    DataType.DT_UINT64: "uint64",
    DataType.DT_BOOL: "boolean",
    DataType.DT_STRING: "string",
    DataType.DT_COMPLEX64: "complex<float32>",
    DataType.DT_COMPLEX128: "complex<float64>",
    DataType.DT_INT4: "int4",
    DataType.DT_INT2: "int2",
    DataType.DT_UINT2: "uint2",
}


def value_view(name: str, desc: TensorDesc, tensor: Tensor | None = None) -> dict[str, Any]:
    data = b"" if tensor is None else stored_bytes(tensor)
    return {
        "name": name,
        "type": {"dtype": NETRON_TYPE[desc.data_type], "shape": list(desc.shape), "layout": FORMAT_TEXT[desc.format]},
        "bytes": len(data),
        "sha256": hashlib.sha256(data).hexdigest() if data else "",
    }


def graph_view(graph: Graph) -> dict[str, Any]:
    """What a reader of the file ought to see: all nodes but the constants, which are values."""
    nodes = []
    for node in graph:
        if node.type == "Const":
            continue
        inputs = [
            value_view(repr(source), source.desc, source.node.attrs["value"] if source.node.type == "Const" else None)
            for source in node.inputs
            if source is not None
        ]
        outputs = [value_view(repr(out), out.desc) for out in node.outputs()]
        nodes.append({"name": node.name, "type": node.type, "inputs": inputs, "outputs": outputs})
    return {"name": graph.name, "nodes": nodes}


def without_attributes(graph: dict[str, Any]) -> dict[str, Any]:
    nodes = [{k: v for k, v in node.items() if k not in ("attributes", "controls")} for node in graph["nodes"]]
    return {"name": graph["name"], "nodes": nodes}


@pytest.fixture
def seen(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[OfflineModel], list[dict[str, Any]]]:
    """`seen(model)`: the graphs that Netron shows after the model was saved."""

    def show(model: OfflineModel) -> list[dict[str, Any]]:
        model.save(tmp_path / "net.om")
        view = netron_view(tmp_path / "net.om", tmp_path_factory.getbasetemp() / "netron")
        assert view["format"] == "DaVinci OM"
        graphs: list[dict[str, Any]] = view["graphs"]
        return graphs

    return show


def bare(graph: Graph) -> OfflineModel:
    """A model of a graph that need not be executable."""
    return OfflineModel(graph, {}, Plan({part.name: GraphPlan() for part in graph.all_graphs()}), ModelIO())


def test_a_classifier(classifier, seen):
    model = classifier(seed=3)
    (graph,) = seen(model)
    assert without_attributes(graph) == graph_view(model.graph)
    conv = next(node for node in graph["nodes"] if node["name"] == "conv")
    assert conv["attributes"]["pads"] == [1, 1, 1, 1]
    assert conv["attributes"]["data_format"] == "NCHW"


def test_absent_inputs_control_edges_and_bodies(seen):
    graph = Graph("root")
    x = graph.add_node("Data", "a:b", attrs={"index": 0}, output_descs=[TensorDesc([2, -1])])
    call = graph.add_node("CallForTest", "call", [None, x.output(), None, x.output()], output_descs=[TensorDesc([])])
    graph.add_control(x, call)
    call.subgraphs = [("body", "inner")]
    inner = Graph("inner")
    inner.add_node("Data", "inner/x", attrs={"index": 0}, output_descs=[TensorDesc([-2])])
    graph.add_subgraph(inner)
    root_view, inner_view = seen(bare(graph))
    assert without_attributes(root_view) == graph_view(graph)
    assert root_view["nodes"][1]["controls"] == 1
    assert without_attributes(inner_view) == graph_view(inner)


@pytest.mark.parametrize("dtype", NETRON_TYPE, ids=lambda dtype: dtype.name)
def test_constants_of_every_type_that_netron_knows(dtype, seen, rng):
    if dtype is DataType.DT_STRING:
        array: Any = np.array([["ab", "c"], ["", "défg"]], object)
    else:
        array = rng.integers(0, 2, (2, 2)).astype(numpy_dtype(dtype))
    graph = Graph("constants")
    tensor = Tensor.of(array, Format.FORMAT_NCHW)
    constant = graph.add_const("c", tensor)
    graph.add_node("ReaderForTest", "reader", [constant], output_descs=[constant.desc.copy()])
    (found,) = seen(bare(graph))
    assert without_attributes(found) == graph_view(graph)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (3, 3),
        (-7, -7),
        (0.25, 0.25),
        (True, True),
        ("text", "text"),
        ("größe", None),  # shown as bytes
        (DataType.DT_INT64, "uint32"),  # Netron looks data types up in the other numbering
        ([1, 2], [1, 2]),
        ([0.5, 1.0], [0.5, 1.0]),
        (["a", "bc"], "a, bc"),
        ([True, False], [True, False]),
        ([], []),
        ([[1, 2], [3]], [[1, 2], [3]]),
        (b"1234", None),
        (Tensor.of(np.arange(3.0)), None),
    ],
    ids=repr,
)
def test_attributes_of_every_kind(value, shown, seen):
    graph = Graph("attributes")
    graph.add_node("ReaderForTest", "reader", attrs={"attribute": value}, output_descs=[TensorDesc([1])])
    (found,) = seen(bare(graph))
    assert found["nodes"][0]["attributes"]["attribute"] == shown


def test_a_dynamic_model(digits_model, seen):
    model = compile_model(
        digits_model, soc_version="Ascend310P3", precision_mode_v2="origin", input_shape="image:1~8,1,8,8"
    )
    assert not model.plan.is_static
    (graph,) = seen(model)
    assert without_attributes(graph) == graph_view(model.graph)
    assert graph["nodes"][0]["outputs"][0]["type"]["shape"] == [-1, 1, 8, 8]


def test_a_compiled_model(digits_model, seen):
    model = compile_model(digits_model, framework=5, soc_version="Ascend310P3", precision_mode_v2="origin")
    (graph,) = seen(model)
    assert without_attributes(graph) == graph_view(model.graph)
    assert {node["type"] for node in graph["nodes"]} >= {"Data", "Conv2D", "NetOutput"}
    assert sum(value["bytes"] for node in graph["nodes"] for value in node["inputs"]) > 10_000
