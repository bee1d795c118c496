"""What is known of the results of branches, loops and calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from ge.errors import ReportedError
from ge.graph import Graph, Node, NodeOut, Tensor, TensorDesc
from ge.graph.types import DataType
from ge.ops import control, definition, infer_node
from ge.ops.registry import Misfit

through = control._through

Build = Callable[[Graph, Sequence[NodeOut]], Sequence[NodeOut]]


def body(root: Graph, name: str, slots: Sequence[int], build: Build) -> str:
    """Add a body with one Data per slot of the call node."""
    graph = Graph(name)
    inputs = []
    for index, slot in enumerate(slots):
        attrs = {"index": index, "_parent_node_index": slot}
        inputs.append(graph.add_node("Data", f"{name}/in{index}", attrs=attrs).output(0))
    graph.outputs = list(build(graph, inputs))
    root.add_subgraph(graph)
    return name


def data(root: Graph, name: str, *dims: int, dtype: DataType = DataType.DT_FLOAT) -> NodeOut:
    return root.add_node("Data", name, output_descs=[TensorDesc(dims, data_type=dtype)]).output(0)


def relu(graph: Graph, inputs: Sequence[NodeOut]) -> list[NodeOut]:
    return [graph.add_node("Abs", f"{graph.name}/abs", inputs[:1]).output(0)]


def concat_with_itself(graph: Graph, inputs: Sequence[NodeOut]) -> list[NodeOut]:
    node = graph.add_node("ConcatD", f"{graph.name}/twice", [inputs[0], inputs[0]], {"concat_dim": 0, "N": 2})
    return [node.output(0)]


def flatten(graph: Graph, inputs: Sequence[NodeOut]) -> list[NodeOut]:
    return [graph.add_node("Flatten", f"{graph.name}/flat", inputs[:1], {"axis": 0}).output(0)]


def to_half(graph: Graph, inputs: Sequence[NodeOut]) -> list[NodeOut]:
    return [graph.add_node("Cast", f"{graph.name}/half", inputs[:1], {"dst_type": 1}).output(0)]


def compare(graph: Graph, inputs: Sequence[NodeOut]) -> list[NodeOut]:
    limit = graph.add_const(f"{graph.name}/limit", Tensor.of(np.array(10, np.int64)))
    return [graph.add_node("Less", f"{graph.name}/less", [inputs[0], limit]).output(0)]


def conditional(then: Build, otherwise: Build, type: str = "If") -> Node:
    root = Graph("root")
    condition, x = data(root, "c", dtype=DataType.DT_BOOL), data(root, "x", 2, 3)
    node = root.add_node(type, "if", [condition, x])
    node.subgraphs = [
        ("then_branch", body(root, "then", [1], then)), ("else_branch", body(root, "else", [1], otherwise))
    ]  # fmt: skip
    return node


@pytest.mark.parametrize(
    ("then", "otherwise", "shape"),
    [(relu, relu, (2, 3)), (relu, concat_with_itself, (-1, 3)), (flatten, relu, (-1, -1)), (flatten, flatten, (1, 6))],
)
def test_branches_agree_as_far_as_they_can(then: Build, otherwise: Build, shape: tuple[int, ...]) -> None:
    node = conditional(then, otherwise)
    infer_node(node)
    assert (node.output_descs[0].shape, node.output_descs[0].data_type) == (shape, DataType.DT_FLOAT)


def test_other_names_of_the_same_operators() -> None:
    node = conditional(relu, concat_with_itself, "StatelessIf")
    infer_node(node)
    assert node.output_descs[0].shape == (-1, 3)
    node = loop(concat_with_itself, 2, 3, type="StatelessWhile")
    infer_node(node)
    assert node.output_descs[1].shape == (-1, 3)
    call = node.graph.add_node("StatefulPartitionedCall", "call", [node.output(1)])
    call.subgraphs = [("f", body(node.graph, "f", [0], relu))]
    infer_node(call)
    assert call.output_descs[0].shape == (-1, 3)


@pytest.mark.parametrize(
    ("type", "attrs"),
    [("Enter", {"frame_name": "f", "is_constant": False}), ("Exit", {}), ("NextIteration", {}), ("LoopCond", {})],
)
def test_operators_of_frames_pass_on(type: str, attrs: dict[str, object]) -> None:
    root = Graph("root")
    node = root.add_node(type, "node", [data(root, "x", 2, -1, dtype=DataType.DT_BF16)], attrs)
    infer_node(node)
    assert (node.output_descs[0].shape, node.output_descs[0].data_type) == ((2, -1), DataType.DT_BF16)


def test_inference_reaches_into_the_bodies() -> None:
    node = conditional(concat_with_itself, relu)
    infer_node(node)
    inner = node.graph.root.subgraphs["then"].find("then/twice")
    assert inner is not None
    assert inner.output_descs[0].shape == (4, 3)
    assert inner.input_descs[1] is not None
    assert inner.input_descs[1].shape == (2, 3)


def test_case_merges_all_branches_and_calls_pass_through() -> None:
    root = Graph("root")
    index, x = data(root, "i", dtype=DataType.DT_INT32), data(root, "x", 2, 3)
    node = root.add_node("Case", "case", [index, x])
    node.subgraphs = [
        (f"branches{k}", body(root, f"b{k}", [1], build)) for k, build in enumerate((relu, relu, concat_with_itself))
    ]
    infer_node(node)
    assert node.output_descs[0].shape == (-1, 3)
    call = root.add_node("PartitionedCall", "call", [x])
    call.subgraphs = [("f", body(root, "f", [0], to_half))]
    infer_node(call)
    assert (call.output_descs[0].shape, call.output_descs[0].data_type) == ((2, 3), DataType.DT_FLOAT16)


def loop(step: Build, *dims: int, type: str = "While") -> Node:
    root = Graph("root")
    count, x = data(root, "n", dtype=DataType.DT_INT64), data(root, "x", *dims)

    def turn(graph: Graph, inputs: Sequence[NodeOut]) -> list[NodeOut]:
        one = graph.add_const(f"{graph.name}/one", Tensor.of(np.array(1, np.int64)))
        more = graph.add_node("Add", f"{graph.name}/more", [inputs[0], one]).output(0)
        return [more, *step(graph, inputs[1:])]

    node = root.add_node(type, "while", [count, x], n_outputs=2)
    node.subgraphs = [("cond", body(root, "cond", [0, 1], compare)), ("body", body(root, "body", [0, 1], turn))]
    return node


@pytest.mark.parametrize(
    ("step", "dims", "shape"),
    [
        (relu, (2, 3), (2, 3)),
        (concat_with_itself, (2, 3), (-1, 3)),
        (flatten, (2, 3), (-1, -1)),
        (flatten, (4,), (-2,)),
    ],
)
def test_a_loop_forgets_what_changes(step: Build, dims: tuple[int, ...], shape: tuple[int, ...]) -> None:
    node = loop(step, *dims)
    infer_node(node)
    assert [desc.shape for desc in node.output_descs] == [(), shape]
    assert [desc.data_type for desc in node.output_descs] == [DataType.DT_INT64, DataType.DT_FLOAT]


def test_a_loop_inside_a_branch() -> None:
    def looping(graph: Graph, inputs: Sequence[NodeOut]) -> list[NodeOut]:
        inner = graph.add_node("While", f"{graph.name}/while", inputs[:1])
        return [inner.output(0)]

    node = conditional(looping, relu)
    root = node.graph
    inner = root.subgraphs["then"].find("then/while")
    assert inner is not None
    inner.subgraphs = [
        ("cond", body(root, "cond", [0], lambda graph, x: [graph.add_node("ReduceAnyOf", "any").output(0)])),
        ("body", body(root, "body", [0], concat_with_itself)),
    ]
    with pytest.raises(ReportedError) as error:
        infer_node(node)
    assert error.value.code == "E10501"  # the unknown operator is found two graphs down
    root.remove_subgraph("cond")
    body(root, "cond", [0], lambda graph, x: [graph.add_node("IsFinite", "cond/finite", x).output(0)])
    infer_node(node)
    assert node.output_descs[0].shape == (-1, 3)


@pytest.mark.parametrize(
    ("node", "message"),
    [
        (conditional(relu, to_half), "element types differ: DT_FLOAT, DT_FLOAT16"),
        (conditional(relu, lambda graph, inputs: []), "graph else has 0 outputs, the node has 1"),
        (loop(to_half, 2), "element types differ: DT_FLOAT, DT_FLOAT16"),
        (loop(lambda graph, inputs: [], 2), "graph body has 1 outputs, the node has 2"),
    ],
)
def test_bodies_that_do_not_fit(node: Node, message: str) -> None:
    with pytest.raises(ReportedError, match=message):
        infer_node(node)


def test_missing_bodies_and_inputs() -> None:
    root = Graph("root")
    node = root.add_node("If", "if", [data(root, "c", dtype=DataType.DT_BOOL)])
    with pytest.raises(ReportedError, match="the graph then_branch is missing"):
        infer_node(node)
    node.subgraphs = [("then_branch", body(root, "a", [1], relu)), ("else_branch", body(root, "b", [1], relu))]
    with pytest.raises(ReportedError, match="graph a reads input 1, which is not connected"):
        infer_node(node)


def test_switch_and_merge() -> None:
    root = Graph("root")
    x, condition = data(root, "x", 2, 3), data(root, "c", dtype=DataType.DT_BOOL)
    switch = root.add_node("Switch", "switch", [x, condition], n_outputs=2)
    infer_node(switch)
    assert [desc.shape for desc in switch.output_descs] == [(2, 3), (2, 3)]
    twice = root.add_node("ConcatD", "twice", [switch.output(0)] * 2, {"concat_dim": 0})
    infer_node(twice)
    merge = root.add_node("Merge", "merge", [switch.output(1), twice.output(0)], n_outputs=2)
    infer_node(merge)
    assert [desc.shape for desc in merge.output_descs] == [(-1, 3), ()]
    assert merge.output_descs[1].data_type is DataType.DT_INT32


def reshape_to_captured(graph: Graph, inputs: Sequence[NodeOut]) -> list[NodeOut]:
    return [graph.add_node("Reshape", f"{graph.name}/reshape", inputs[:2]).output(0)]


def test_constants_that_a_body_is_given_are_known_inside() -> None:
    root = Graph("root")
    shape = root.add_const("shape", Tensor.of(np.array([3, 2], np.int64)))
    condition, x = data(root, "c", dtype=DataType.DT_BOOL), data(root, "x", 6)
    node = root.add_node("If", "if", [condition, x, shape])
    node.subgraphs = [
        (branch, body(root, name, [1, 2], reshape_to_captured))
        for branch, name in (("then_branch", "a"), ("else_branch", "b"))
    ]
    infer_node(node)
    assert node.output_descs[0].shape == (3, 2)


@pytest.mark.parametrize(("keeps_shape", "shape"), [(True, (3, 2)), (False, (-1, -1))])
def test_a_loop_knows_the_constants_that_it_does_not_change(keeps_shape: bool, shape: tuple[int, ...]) -> None:
    root = Graph("root")
    wanted = root.add_const("shape", Tensor.of(np.array([3, 2], np.int64)))
    x = data(root, "x", 3, 2)

    def turn(graph: Graph, inputs: Sequence[NodeOut]) -> list[NodeOut]:
        passed = graph.add_node("Identity" if keeps_shape else "Neg", f"{graph.name}/passed", inputs[1:]).output(0)
        return [*reshape_to_captured(graph, inputs), passed]

    node = root.add_node("While", "while", [x, wanted], n_outputs=2)
    node.subgraphs = [
        ("cond", body(root, "cond", [0], lambda graph, x: [graph.add_node("IsFinite", "cond/finite", x).output(0)])),
        ("body", body(root, "body", [0, 1], turn)),
    ]
    infer_node(node)
    assert [desc.shape for desc in node.output_descs] == [shape, (2,)]


def test_a_branch_that_cannot_be_run_has_the_results_it_is_told_and_stops() -> None:
    attrs = {"reason": "x must have rank 3", "dtypes": [0, 9], "shapes": [[2, -1], []]}
    node = Graph("root").add_node("XFail", "fail", attrs=attrs, n_outputs=2)
    infer_node(node)
    assert [(d.shape, d.data_type) for d in node.output_descs] == [
        ((2, -1), DataType.DT_FLOAT), ((), DataType.DT_INT64)
    ]  # fmt: skip
    with pytest.raises(Misfit, match="x must have rank 3"):
        definition(node).evaluate(node.attrs, [], [d.data_type for d in node.output_descs])
    node.attrs["shapes"] = [[2]]
    with pytest.raises(ReportedError, match="2 outputs, 2 types and 1 shapes"):
        infer_node(node)
