"""What is known of tensors that come out of sequences."""

from __future__ import annotations

import numpy as np
import pytest

from ge.errors import ReportedError
from ge.graph import Graph, NodeOut, Tensor, TensorDesc
from ge.graph.types import DataType
from ge.ops import infer_node


def add(graph: Graph, type: str, inputs: list[NodeOut | None], **attrs: object) -> NodeOut:
    node = graph.add_node(type, graph.unique_name(type), inputs, attrs)
    infer_node(node)
    return node.output(0)


def data(graph: Graph, *dims: int, dtype: DataType = DataType.DT_FLOAT) -> NodeOut:
    return graph.add_node("Data", graph.unique_name("x"), output_descs=[TensorDesc(dims, data_type=dtype)]).output(0)


def index(graph: Graph) -> NodeOut:
    return graph.add_const(graph.unique_name("i"), Tensor.of(np.array(0, np.int64)))


def test_elements_of_a_built_sequence() -> None:
    graph = Graph()
    handle = add(graph, "SequenceConstruct", [data(graph, 2, 3), data(graph, 4, 3)])
    assert (handle.desc.shape, handle.desc.data_type) == ((), DataType.DT_RESOURCE)
    taken = add(graph, "SequenceAt", [handle, index(graph)])
    assert (taken.desc.shape, taken.desc.data_type) == ((-1, 3), DataType.DT_FLOAT)
    assert add(graph, "SequenceLength", [handle]).desc.data_type is DataType.DT_INT64
    joined = add(graph, "ConcatFromSequence", [handle], axis=0)
    assert joined.desc.shape == (-1, 3)
    assert add(graph, "ConcatFromSequence", [handle], axis=-1, new_axis=1).desc.shape == (-1, 3, -1)


def test_inserting_and_erasing() -> None:
    graph = Graph()
    handle = add(graph, "SequenceEmpty", [], dtype=DataType.DT_INT32)
    assert add(graph, "SequenceAt", [handle, index(graph)]).desc.data_type is DataType.DT_INT32
    for _ in range(3):
        handle = add(graph, "SequenceInsert", [handle, data(graph, 5, dtype=DataType.DT_INT32)])
    handle = add(graph, "Identity", [add(graph, "SequenceErase", [handle, index(graph)])])
    assert add(graph, "SequenceAt", [handle, index(graph)]).desc.shape == (5,)


def test_splitting() -> None:
    graph = Graph()
    x = data(graph, 4, 6)
    assert add(graph, "SequenceAt", [add(graph, "SplitToSequence", [x], axis=1), index(graph)]).desc.shape == (4, 1)
    without = add(graph, "SplitToSequence", [x], axis=-2, keepdims=False)
    assert add(graph, "SequenceAt", [without, index(graph)]).desc.shape == (6,)
    sizes = graph.add_const("sizes", Tensor.of(np.array([1, 3])))
    parts = add(graph, "SplitToSequence", [x, sizes])
    assert add(graph, "SequenceAt", [parts, index(graph)]).desc.shape == (-1, 6)


def test_a_sequence_captured_by_a_branch() -> None:
    root = Graph("root")
    handle = add(root, "SequenceConstruct", [data(root, 2, 3)])
    call = root.add_node("PartitionedCall", "call", [handle, data(root, 2, 5)])
    inner = Graph("f")
    slots = [inner.add_node("Data", f"f/{k}", attrs={"index": k, "_parent_node_index": k}).output(0) for k in range(2)]
    inner.outputs = [inner.add_node("SequenceInsert", "f/insert", slots).output(0)]
    root.add_subgraph(inner)
    call.subgraphs = [("f", "f")]
    infer_node(call)
    assert add(root, "SequenceAt", [call.output(0), index(root)]).desc.shape == (2, -1)


@pytest.mark.parametrize(
    ("dtypes", "message"),
    [([DataType.DT_FLOAT, DataType.DT_INT32], "element types differ: DT_FLOAT, DT_INT32"), ([], "cannot be told")],
)
def test_misfits_are_reported(dtypes: list[DataType], message: str) -> None:
    graph = Graph()
    with pytest.raises(ReportedError, match=message):
        add(graph, "SequenceConstruct", [data(graph, 2, dtype=dtype) for dtype in dtypes])


def test_a_tensor_is_no_sequence() -> None:
    graph = Graph()
    with pytest.raises(ReportedError, match="input handle is no sequence"):
        add(graph, "SequenceLength", [data(graph, 2)])
