"""Lists of tensors: their values against numpy, and what is known of tensors that come out of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ge.errors import ReportedError
from ge.graph import DataType, Graph, Node, NodeOut, Shape, Tensor, TensorDesc
from ge.graph.types import data_type_of
from ge.graph_inference import infer_graph
from ge.ops import infer_node
from ge.ops.registry import Misfit
from ge.ops.tensor_list import TensorList, content_of
from tests.parsers.evaluation import evaluate

FLOAT = {"element_dtype": DataType.DT_FLOAT}


def i32(*values: int) -> np.ndarray:
    return np.array(values, np.int32)


def i64(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


ANY = np.int32(-1)
"""An unknown rank."""


class Bench:
    """A graph under construction; ``data`` are fed, everything else is constant."""

    def __init__(self) -> None:
        self.graph = Graph("g")
        self.feeds: list[np.ndarray] = []

    def add(self, type: str, *inputs: Any, n_outputs: int = 1, **attrs: Any) -> Node:
        sources = [self.source(value) for value in inputs]
        node = self.graph.add_node(type, self.graph.unique_name(type), sources, attrs, n_outputs)
        infer_node(node)
        return node

    def source(self, value: Any) -> NodeOut:
        if isinstance(value, Node):
            return value.output()
        if isinstance(value, NodeOut):
            return value
        return self.graph.add_const(self.graph.unique_name("const"), Tensor.of(np.asarray(value)))

    def data(self, array: Any, dims: list[int] | None = None) -> NodeOut:
        array = np.asarray(array)
        desc = TensorDesc(array.shape if dims is None else dims, data_type=data_type_of(array.dtype))
        self.feeds.append(array)
        return self.graph.add_node("Data", self.graph.unique_name("x"), output_descs=[desc]).output()

    def run(self, *outputs: NodeOut) -> list[np.ndarray]:
        self.graph.outputs = list(outputs)
        return evaluate(self.graph, self.feeds)


@pytest.fixture
def bench() -> Bench:
    return Bench()


ROWS = np.arange(12, dtype=np.float32).reshape(4, 3)


def reserved(bench: Bench, count: int, shape: Any = ANY, **attrs: Any) -> Node:
    return bench.add("TensorListReserve", shape, np.int32(count), **FLOAT, **attrs)


def test_rows_come_back_as_they_were(bench: Bench) -> None:
    handle = bench.add("TensorListFromTensor", bench.data(ROWS), i32(3), **FLOAT)
    stacked = bench.add("TensorListStack", handle, ANY, **FLOAT).output()
    item = bench.add("TensorListGetItem", handle, np.int32(2), ANY, **FLOAT).output()
    picked = bench.add("TensorListGather", handle, i32(3, 0, 3), ANY, **FLOAT).output()
    length = bench.add("TensorListLength", handle).output()
    shape = bench.add("TensorListElementShape", handle, shape_type=DataType.DT_INT64).output()
    assert [out.desc.shape for out in (stacked, item, picked, length, shape)] == [(4, 3), (3,), (3, 3), (), (1,)]
    found = bench.run(stacked, item, picked, length, shape)
    for one, expected in zip(found, [ROWS, ROWS[2], ROWS[[3, 0, 3]], np.int32(4), i64(3)], strict=True):
        np.testing.assert_array_equal(one, expected)
        assert one.dtype == expected.dtype


def test_items_that_were_never_set_are_zeros_of_the_known_shape(bench: Bench) -> None:
    handle = bench.add("TensorListSetItem", reserved(bench, 3, i32(2, -1)), np.int32(1), np.ones((2, 2), "f"), **FLOAT)
    stacked = bench.add("TensorListStack", handle, ANY, **FLOAT, num_elements=3).output()
    assert stacked.desc.shape == (3, 2, 2)
    np.testing.assert_array_equal(
        bench.run(stacked)[0], np.stack([np.zeros((2, 2)), np.ones((2, 2)), np.zeros((2, 2))])
    )


def test_setting_gives_a_new_list_and_leaves_the_old_one(bench: Bench) -> None:
    old = bench.add("TensorListFromTensor", bench.data(ROWS), ANY, **FLOAT)
    new = bench.add("TensorListSetItem", old, np.int32(0), -ROWS[0], **FLOAT)
    results = bench.run(*(bench.add("TensorListStack", handle, ANY, **FLOAT).output() for handle in (old, new)))
    np.testing.assert_array_equal(results[0], ROWS)
    np.testing.assert_array_equal(results[1], np.concatenate([-ROWS[:1], ROWS[1:]]))


def test_pushing_and_popping(bench: Bench) -> None:
    handle = bench.add("EmptyTensorList", i32(3), np.int32(-1), **FLOAT)
    for row in ROWS:
        handle = bench.add("TensorListPushBack", handle, row, **FLOAT)
    popped = bench.add("TensorListPopBack", handle, ANY, n_outputs=2, **FLOAT)
    rest = bench.add("TensorListStack", popped.output(0), ANY, **FLOAT).output()
    assert (popped.output(1).desc.shape, rest.desc.shape) == ((3,), (-1, 3))
    last, others = bench.run(popped.output(1), rest)
    np.testing.assert_array_equal(last, ROWS[3])
    np.testing.assert_array_equal(others, ROWS[:3])


@pytest.mark.parametrize(("count", "expected"), [(5, [2, 0, 0, 1, 0]), (-1, [2, 0, 0, 1])])
def test_scattering_rows(bench: Bench, count: int, expected: list[int]) -> None:
    rows = np.array([[1], [2]], np.float32)
    handle = bench.add("TensorListScatterV2", bench.data(rows), i32(3, 0), i32(1), np.int32(count), **FLOAT)
    stacked = bench.add("TensorListStack", handle, ANY, **FLOAT).output()
    np.testing.assert_array_equal(bench.run(stacked)[0][:, 0], expected)


def test_scattering_into_a_list_makes_it_as_long_as_need_be(bench: Bench) -> None:
    handle = bench.add("TensorListFromTensor", ROWS, ANY, **FLOAT)
    handle = bench.add("TensorListScatterIntoExistingList", handle, -ROWS[:2], i32(1, 4), **FLOAT)
    stacked = bench.add("TensorListStack", handle, ANY, **FLOAT).output()
    assert stacked.desc.shape == (-1, 3)
    np.testing.assert_array_equal(bench.run(stacked)[0], [ROWS[0], -ROWS[0], ROWS[2], ROWS[3], -ROWS[1]])


def test_splitting_and_joining(bench: Bench) -> None:
    lengths = i64(1, 0, 3)
    handle = bench.add("TensorListSplit", bench.data(ROWS), ANY, lengths, **FLOAT)
    second = bench.add("TensorListGetItem", handle, np.int32(2), ANY, **FLOAT).output()
    joined = bench.add("TensorListConcatV2", handle, ANY, i64(), n_outputs=2, **FLOAT)
    assert (second.desc.shape, joined.output(0).desc.shape) == ((-1, 3), (-1, 3))
    part, whole, found = bench.run(second, *joined.outputs())
    np.testing.assert_array_equal(part, ROWS[1:])
    np.testing.assert_array_equal(whole, ROWS)
    np.testing.assert_array_equal(found, lengths)


def test_joining_takes_unset_items_as_zeros_of_the_leading_dims(bench: Bench) -> None:
    handle = bench.add("TensorListSetItem", reserved(bench, 2, i32(-1, 3)), np.int32(1), ROWS[:2], **FLOAT)
    joined = bench.add("TensorListConcatV2", handle, ANY, i64(1, 2), n_outputs=2, **FLOAT)
    whole, lengths = bench.run(*joined.outputs())
    np.testing.assert_array_equal(whole, np.concatenate([np.zeros((1, 3)), ROWS[:2]]))
    assert lengths.tolist() == [1, 2]


def test_resizing_and_lists_behind_each_other(bench: Bench) -> None:
    handle = bench.add("TensorListFromTensor", ROWS, ANY, **FLOAT)
    short, long = (bench.add("TensorListResize", handle, np.int32(size)) for size in (1, 5))
    both = bench.add("TensorListConcatLists", short, long, **FLOAT)
    stacked = bench.add("TensorListStack", both, ANY, **FLOAT).output()
    np.testing.assert_array_equal(bench.run(stacked)[0], np.concatenate([ROWS[:1], ROWS, np.zeros((1, 3))]))


@pytest.mark.parametrize(
    ("made", "written"),
    [({"dynamic_size": True}, {}), ({}, {"resize_if_index_out_of_bounds": True})],
    ids=["list", "write"],
)
def test_lists_that_grow(bench: Bench, made: dict[str, Any], written: dict[str, Any]) -> None:
    handle = reserved(bench, 0, i32(3), **made)
    handle = bench.add("TensorListSetItem", handle, np.int32(2), ROWS[1], **FLOAT, **written)
    stacked = bench.add("TensorListStack", handle, ANY, **FLOAT).output()
    assert stacked.desc.shape == (-1, 3)
    np.testing.assert_array_equal(bench.run(stacked)[0], [np.zeros(3), np.zeros(3), ROWS[1]])


# -- what is known -----------------------------------------------------------------------------------------------------
def test_items_of_several_shapes_are_known_as_far_as_they_agree(bench: Bench) -> None:
    handle = bench.add("TensorListSetItem", reserved(bench, 2), np.int32(0), np.ones((2, 3), "f"), **FLOAT)
    handle = bench.add("TensorListSetItem", handle, np.int32(1), np.ones((4, 3), "f"), **FLOAT)
    content = content_of(handle.output())
    assert (content.shape, content.length) == (Shape([-1, 3]), 2)
    assert bench.add("TensorListGetItem", handle, np.int32(0), ANY, **FLOAT).output().desc.shape == (-1, 3)
    given = bench.add("TensorListGetItem", handle, np.int32(0), i32(2, -1), **FLOAT)
    assert given.output().desc.shape == (2, 3)


def test_a_list_that_a_loop_fills_has_the_shape_of_what_it_is_given() -> None:
    root, cond, body = Graph("root"), Graph("cond"), Graph("body")
    bench = Bench()
    bench.graph = root
    begin = reserved(bench, 4)
    x = bench.data(ROWS[0])
    loop = root.add_node("While", "loop", [begin.output(), x], {}, 2)
    for graph in (cond, body):
        root.add_subgraph(graph)
        for k in range(2):
            graph.add_node("Data", f"{graph.name}/{k}", attrs={"index": k, "_parent_node_index": k})
    cond.outputs = [cond.add_const("stop", Tensor.of(np.array(False)))]
    handle, value = (data.output() for data in body.data_nodes())
    index = body.add_const("index", Tensor.of(np.array(0, np.int32)))
    body.outputs = [body.add_node("TensorListSetItem", "set", [handle, index, value], FLOAT).output(), value]
    loop.subgraphs = [("cond", "cond"), ("body", "body")]
    infer_graph(root)
    stacked = bench.add("TensorListStack", loop.output(0), ANY, **FLOAT)
    assert stacked.output().desc.shape == (4, 3)


# -- what does not fit -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("type", "inputs", "reason"),
    [
        ("TensorListGetItem", [np.int32(4), ANY], "index 4 is out of range for a list of 4"),
        ("TensorListGetItem", [np.int32(-1), ANY], "index -1 is out of range"),
        ("TensorListSetItem", [np.int32(4), ROWS[0]], "index 4 is out of range"),
        ("TensorListGather", [i32(0, 9), ANY], "index 9 is out of range"),
        ("TensorListResize", [np.int32(-1)], "cannot have -1 items"),
        ("TensorListPushBack", [np.ones((2, 2), "f")], "put into a list of"),
        ("TensorListScatterIntoExistingList", [ROWS, i32(1)], "indices are given for the rows"),
    ],
)
def test_runs_stop_where_values_do_not_fit(bench: Bench, type: str, inputs: list[Any], reason: str) -> None:
    handle = bench.add("TensorListFromTensor", bench.data(ROWS), ANY, **FLOAT)
    attrs = {} if type == "TensorListResize" else FLOAT
    out = bench.add(type, handle, *inputs, **attrs).output()
    with pytest.raises(Misfit, match=reason):
        bench.run(out)


def test_nothing_to_stack_needs_a_known_shape(bench: Bench) -> None:
    empty = reserved(bench, 0)
    known = bench.add("TensorListStack", empty, i32(2, 3), **FLOAT).output()
    assert bench.run(known)[0].shape == (0, 2, 3)
    with pytest.raises(Misfit, match="nothing to stack"):
        bench.run(bench.add("TensorListStack", empty, i32(2, -1), **FLOAT).output())


def test_an_unset_item_of_unknown_shape_cannot_be_read(bench: Bench) -> None:
    with pytest.raises(Misfit, match="was never set"):
        bench.run(bench.add("TensorListGetItem", reserved(bench, 1), np.int32(0), ANY, **FLOAT).output())


@pytest.mark.parametrize(
    ("type", "inputs", "attrs", "reason"),
    [
        ("TensorListStack", [i32(4)], {}, "do not fit together"),
        ("TensorListStack", [ANY], {"num_elements": 3}, "num_elements is 3, but the list has 4"),
    ],
)
def test_inference_refuses(bench: Bench, type: str, inputs: list[Any], attrs: dict[str, Any], reason: str) -> None:
    handle = bench.add("TensorListFromTensor", bench.data(ROWS), ANY, **FLOAT)
    with pytest.raises(ReportedError, match=reason):
        bench.add(type, handle, *inputs, **FLOAT, **attrs)


def test_a_tensor_is_no_list(bench: Bench) -> None:
    with pytest.raises(ReportedError, match="no list of tensors"):
        bench.add("TensorListStack", bench.data(ROWS), ANY, **FLOAT)


def test_items_cannot_be_changed_from_outside() -> None:
    item = np.ones(3, np.float32)
    made = TensorList(DataType.DT_FLOAT, Shape([3]), (None,)).with_item(0, item)
    item[:] = 2
    assert made.item(0, Shape([-2])).tolist() == [1, 1, 1]
