"""Sequences: what they hold, and what is known of tensors that come out of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper
from onnx.reference import ReferenceEvaluator

from ge.errors import ReportedError
from ge.graph import Graph, NodeOut, Tensor, TensorDesc
from ge.graph.types import DataType
from ge.graph_inference import infer_graph
from ge.ops import infer_node, lookup
from ge.ops.registry import Misfit
from ge.ops.sequence import element_of
from ge.text import parse_graph


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


# -- values ------------------------------------------------------------------------------------------------------------
def compute(type: str, *inputs: object, **attrs: object) -> Any:
    found = lookup(type)
    assert found is not None
    dtype = DataType.DT_INT64 if type == "SequenceLength" else DataType.DT_FLOAT
    is_tensor = type in ("SequenceAt", "SequenceLength", "ConcatFromSequence")
    return found.evaluate(dict(attrs), list(inputs), [dtype if is_tensor else DataType.DT_RESOURCE])[0]


def by_onnx(op_type: str, *inputs: Any, **attrs: Any) -> Any:
    """Compute one node with onnx's evaluator; lists are sequences."""
    names = ["" if value is None else f"x{k}" for k, value in enumerate(inputs)]
    node = helper.make_node(op_type, names, ["y"], **attrs)
    feeds = {name: value for name, value in zip(names, inputs, strict=True) if name}
    ends = [[helper.make_tensor_value_info(name, 1, None) for name in part] for part in (feeds, ["y"])]
    graph = helper.make_graph([node], "g", *ends)
    return ReferenceEvaluator(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])).run(None, feeds)[0]


def tensors(rng: np.random.Generator, count: int) -> list[np.ndarray]:
    return [rng.standard_normal((2, k + 1)).astype(np.float32) for k in range(count)]


def assert_same(found: Any, expected: Any) -> None:
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("at", [None, 0, 1, 3, -1, -3])
def test_insert_and_erase(at: int | None, rng: np.random.Generator) -> None:
    held, value = tensors(rng, 3), np.ones((2, 9), np.float32)
    where = None if at is None else np.array(at, np.int64)
    sequence = compute("SequenceConstruct", *held)
    place = 3 if at is None else at % 3 if at < 0 else at
    assert_same(compute("SequenceInsert", sequence, value, where), [*held[:place], value, *held[place:]])
    if at != 3:
        erased = [t for k, t in enumerate(held) if k != (-1 if at is None else at) % 3]
        assert_same(compute("SequenceErase", sequence, where), erased)
    assert_same(sequence, held)


@pytest.mark.parametrize("at", [0, 2, -1, -3])
def test_at_and_length(at: int, rng: np.random.Generator) -> None:
    held = tensors(rng, 3)
    sequence = compute("SequenceConstruct", *held)
    where = np.array(at)
    np.testing.assert_array_equal(compute("SequenceAt", sequence, where), by_onnx("SequenceAt", held, where))
    assert compute("SequenceLength", sequence) == 3
    assert compute("SequenceLength", compute("SequenceEmpty")) == 0


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("split", [None, np.int64(2), np.int64(3), np.int64([1, 3]), np.int64([2, 0, 2])])
@pytest.mark.parametrize("keepdims", [0, 1])
def test_split(axis: int, split: np.ndarray | None, keepdims: int, rng: np.random.Generator) -> None:
    x = rng.standard_normal((4, 4)).astype(np.float32)
    parts = None if split is None else np.asarray(split)
    expected = by_onnx("SplitToSequence", x, parts, axis=axis, keepdims=keepdims)
    assert_same(compute("SplitToSequence", x, parts, axis=axis, keepdims=bool(keepdims)), expected)


@pytest.mark.parametrize(("axis", "new_axis"), [(0, 0), (1, 0), (-1, 0), (0, 1), (2, 1), (-1, 1)])
def test_join(axis: int, new_axis: int, rng: np.random.Generator) -> None:
    held = [rng.standard_normal((2, 3)).astype(np.float32) for _ in range(3)]
    found = compute("ConcatFromSequence", tuple(held), axis=axis, new_axis=new_axis)
    np.testing.assert_array_equal(found, by_onnx("ConcatFromSequence", held, axis=axis, new_axis=new_axis))


def test_a_sequence_owns_its_tensors() -> None:
    x = np.ones(3, np.float32)
    sequence = compute("SequenceInsert", compute("SequenceConstruct", x), x)
    x[:] = 0
    for held in sequence:
        np.testing.assert_array_equal(held, np.ones(3))
        assert not held.flags.writeable


@pytest.mark.parametrize(
    ("type", "inputs", "attrs", "message"),
    [
        ("SequenceAt", [(np.ones(1),), np.array(1)], {}, "index 1 is out of range for a sequence of 1 tensors"),
        ("SequenceErase", [(), None], {}, "index -1 is out of range for a sequence of 0 tensors"),
        ("SequenceInsert", [(), np.ones(1), np.array(1)], {}, "index 1 is out of range for a sequence of 0"),
        ("ConcatFromSequence", [()], {"axis": 0}, "the sequence is empty"),
        ("SplitToSequence", [np.ones(4), np.array(0)], {}, "pieces of length 0"),
        ("SplitToSequence", [np.ones(4), np.array([1, 2])], {}, r"pieces of lengths \[1, 2\] do not make up axis 0"),
        ("SplitToSequence", [np.ones(4), np.array([5, -1])], {}, "do not make up axis 0"),
    ],
)
def test_values_that_do_not_fit(type: str, inputs: list[Any], attrs: dict[str, Any], message: str) -> None:
    with pytest.raises(Misfit, match=message):
        compute(type, *inputs, **attrs)


# -- through loops -----------------------------------------------------------------------------------------------------
def looping(change: str) -> NodeOut:
    """What is taken from a sequence that a loop starts with [2,3] and changes."""
    graph = parse_graph(f"""graph g(%n: i64[]@ND, %x: f32[2,3]@ND, %z: f32[2,4]@ND) {{
  %s = SequenceConstruct(%x) -> resource[]@ND
  %w:3 = While(%n, %s, %z) {{cond=@c, body=@b}} -> i64[]@ND, resource[]@ND, f32[2,4]@ND
  %i = Const {{value=i64[]{{0}}}} -> i64[]@ND
  %y = SequenceAt(%w:1, %i) -> f32[-2]@ND
  return %y
}}
graph c(%c/n: i64[]@ND) {{ %c/y = Greater(%c/n, %c/n) -> bool[]@ND return %c/y }}
graph b(%b/n: i64[]@ND, %b/s: resource[]@ND, %b/z: f32[2,4]@ND) {{
  {change}
  return %b/n, %b/t, %b/z
}}""")
    infer_graph(graph)
    return graph.outputs[0]


def test_what_a_loop_inserts_counts_behind_it_and_in_it() -> None:
    assert looping("%b/t = Identity(%b/s) -> resource[]@ND").desc.shape == (2, 3)
    found = looping("%b/t = SequenceInsert(%b/s, %b/z) -> resource[]@ND")
    assert found.desc.shape == (2, -1)
    body = found.node.graph.subgraphs["b"]
    assert element_of(body.find("b/s").output())[0] == (2, -1)
