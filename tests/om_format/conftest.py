"""A small classifier, compiled by hand: graph, plan and description are written out, so that no pass is involved."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from ge.graph import Format, Graph, NodeOut, Tensor, TensorDesc
from ge.plan import Block, GraphPlan, Plan, Task
from om_format import ModelIO, OfflineModel, TensorInfo


def f32(*dims: int, format: Format = Format.FORMAT_ND) -> TensorDesc:
    return TensorDesc(dims, format)


def build_classifier(seed: int = 0) -> OfflineModel:
    """Conv2D, Relu (in place), Reshape (a view), MatMulV2, Add, SoftmaxV2 (in place); two equal constants, one int4."""
    rng = np.random.default_rng(seed)

    def constant(graph: Graph, name: str, array: Any) -> NodeOut:
        return graph.add_const(name, Tensor.of(array))

    graph = Graph("classifier")
    nchw = Format.FORMAT_NCHW
    x = graph.add_node("Data", "image", attrs={"index": 0}, output_descs=[f32(1, 2, 4, 4, format=nchw)]).output()
    w = constant(graph, "conv/w", rng.normal(size=(3, 2, 3, 3)).astype(np.float32))
    bias = rng.normal(size=5).astype(np.float32)
    conv_attrs = {"strides": [1, 1, 1, 1], "pads": [1, 1, 1, 1], "dilations": [1, 1, 1, 1], "data_format": "NCHW"}
    desc = f32(1, 3, 4, 4, format=nchw)
    conv = graph.add_node("Conv2D", "conv", [x, w], conv_attrs, output_descs=[desc]).output()
    relu = graph.add_node("Relu", "relu", [conv], output_descs=[desc.copy()]).output()
    shape = constant(graph, "shape", np.array([1, 48], np.int64))
    flat = graph.add_node("Reshape", "flat", [relu, shape], output_descs=[f32(1, 48)]).output()
    dense = constant(graph, "dense/w", rng.normal(size=(48, 5)).astype(np.float32))
    first = constant(graph, "bias/1", bias)
    second = constant(graph, "bias/2", bias.copy())
    constant(graph, "packed", np.array([1, -2, 3], ml_dtypes.int4))
    matmul = graph.add_node("MatMulV2", "dense", [flat, dense, first], output_descs=[f32(1, 5)]).output()
    add = graph.add_node("Add", "add", [matmul, second], output_descs=[f32(1, 5)]).output()
    softmax = graph.add_node("SoftmaxV2", "softmax", [add], {"axes": [-1]}, output_descs=[f32(1, 5)]).output()
    graph.outputs = [softmax]
    graph.output_names = ["probability"]
    graph.add_node("NetOutput", "Node_Output", [softmax], n_outputs=0)

    plan = GraphPlan(
        tasks=[Task(name) for name in ("conv", "relu", "dense", "add", "softmax")],
        blocks={
            ("image", 0): Block(0, 128),
            ("conv", 0): Block(512, 192),
            ("relu", 0): Block(512, 192),
            ("flat", 0): Block(512, 192),
            ("dense", 0): Block(0, 20),
            ("add", 0): Block(0, 20),
            ("softmax", 0): Block(512, 20),
        },
        workspaces={"dense": [Block(1024, 100)]},
        arena_size=1536,
        bound=1536,
        naive_size=5 * 512 + 512,
    )
    return OfflineModel(
        graph,
        attrs={
            "atc_cmdline": "atc --soc_version=Ascend310P3",
            "atc_version": "0.1.0",
            "framework_type": "Onnx",
            "soc_version": "Ascend310P3",
        },
        plan=Plan({"classifier": plan}),
        io=ModelIO(
            inputs=(TensorInfo.of("image", f32(1, 2, 4, 4, format=nchw)),),
            outputs=(TensorInfo.of("probability:0", f32(1, 5)),),
        ),
        name="digits",
    )


@pytest.fixture
def classifier() -> Callable[..., OfflineModel]:
    """`classifier(seed=0)`: a new classifier with weights drawn from that seed."""
    return build_classifier
