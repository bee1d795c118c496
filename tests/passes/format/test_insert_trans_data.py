"""Where the two ends of an edge differ, nodes come between: graph text in, graph text out."""

from __future__ import annotations

import numpy as np
import pytest

from ge.errors import ReportedError
from ge.formats import lay_out
from ge.graph import Format, Graph, Tensor
from ge.graph.types import FORMAT_BY_TEXT, FORMAT_TEXT
from ge.tensor_memory import LOAD_TIME_CONST
from ge.text import parse_graph, print_graph
from ge.verify import UNSETTLED, verify
from passes.format.fold_trans_data import FoldTransData
from passes.format.insert_trans_data import InsertTransData
from passes.prepare.add_net_output import AddNetOutput
from tests.ge.formats import index_formulas
from tests.passes.format.refined import (
    CHOOSING,
    given,
    layouts,
    origin_graph,
    refined,
    run,
    session,
    settle,
    trans_data,
)

CONV = 'strides=[1,1,1,1], pads=[0,0,0,0], data_format="NCHW"'


def test_what_stands_between_two_layouts() -> None:
    graph = refined(f"""graph g(%x: f16[1,20,8,8]@ND, %w: f16[32,10,1,1]@ND) {{
  %c = Conv2D(%x, %w) {{{CONV}, groups=2}}
  %y = Flatten(%c)
  return %y
}}""")
    made = "_datadump_original_op_names=[]"
    assert (
        print_graph(graph)
        == f"""graph g(%x: f16[1,20,8,8]@NCHW, %w: f16[32,10,1,1]@NCHW) {{_is_graph_inferred=true}} {{
  %trans_TransData_0 = TransData(%x) {{src_format="NCHW", dst_format="NC1HWC0", input_format=0, output_format=3, \
groups=1, src_subformat=0, dst_subformat=0, {made}}} -> f16[1,20,8,8]@NCHW | [1,2,8,8,16]@NC1HWC0
  %trans_TransData_1 = TransData(%w) {{src_format="NCHW", dst_format="FRACTAL_Z", input_format=0, output_format=4, \
groups=2, src_subformat=0, dst_subformat=2, {made}}} -> f16[32,10,1,1]@NCHW | [2,2,16,16]@FRACTAL_Z:2
  %c = Conv2D(%trans_TransData_0, %trans_TransData_1) {{strides=[1, 1, 1, 1], pads=[0, 0, 0, 0], data_format="NCHW", \
groups=2}} -> f16[1,32,8,8]@NCHW | [1,2,8,8,16]@NC1HWC0
  %trans_TransData_2 = TransData(%c) {{src_format="NC1HWC0", dst_format="NCHW", input_format=3, output_format=0, \
groups=1, src_subformat=0, dst_subformat=0, {made}}} -> f16[1,32,8,8]@NCHW
  %y = Flatten(%trans_TransData_2) -> f16[1,2048]@ND
  %Node_Output:0 = NetOutput(%y)
  return %y
}}"""
    )


def between(made: str, wanted: str, shape: str = "1,20,8,8") -> list[str]:
    """The nodes between a tensor and its reader: ``FORMAT:NAMES`` for both, such as ``NC1HWC0:NCHW``."""
    graph = parse_graph(f"graph g(%x: f16[{shape}]@ND) {{ %y = TensorMove(%x) -> f16[{shape}]@ND return %y }}")
    AddNetOutput().run(graph, session())
    source, reader = graph.data_nodes()[0].output_descs[0], graph.find("y")
    assert reader is not None
    reading = reader.input_descs[0]
    assert reading is not None
    for desc, text in ((source, made), (reading, wanted)):
        layout, names = text.split(":")
        desc.origin_format = FORMAT_BY_TEXT[names]
        lay_out(desc, FORMAT_BY_TEXT[layout])
    reader.output_descs[0] = reading.copy()
    net_output = graph.net_output()
    assert net_output is not None
    net_output.take_desc(0)
    graph.attrs[UNSETTLED] = True
    InsertTransData().run(graph, session())
    found, node = [], reader.input(0)
    assert node is not None
    while node.node.type != "Data":
        hop = node.desc.format
        found.append(f"{FORMAT_TEXT[hop]}" if node.node.type == "TransData" else f"called {FORMAT_TEXT[hop]}")
        before = node.node.input(0)
        assert before is not None
        assert node.node.attrs["_datadump_original_op_names"] == []
        node = before
    assert reading.format == FORMAT_BY_TEXT[wanted.split(":")[0]]
    return found[::-1]


@pytest.mark.parametrize(
    ("made", "wanted", "expected"),
    [
        ("NCHW:NCHW", "NC1HWC0:NCHW", ["NC1HWC0"]),
        ("NC1HWC0:NCHW", "NCHW:NCHW", ["NCHW"]),
        ("NHWC:NHWC", "NC1HWC0:NHWC", ["NC1HWC0"]),
        ("NC1HWC0:NCHW", "NC1HWC0:NCHW", []),
        ("NC1HWC0:NCHW", "FRACTAL_Z:NCHW", ["NCHW", "FRACTAL_Z"]),
        ("FRACTAL_NZ:NCHW", "NC1HWC0:NCHW", ["NCHW", "NC1HWC0"]),
        ("NCHW:NCHW", "FRACTAL_NZ:NCHW", ["FRACTAL_NZ"]),
        # names of axes do not matter to matrices
        ("FRACTAL_NZ:NCHW", "FRACTAL_NZ:ND", []),
        ("NCHW:NCHW", "FRACTAL_NZ:ND", ["FRACTAL_NZ"]),
        ("FRACTAL_NZ:ND", "FRACTAL_NZ:NHWC", []),
        # they matter to images
        ("NHWC:NHWC", "NC1HWC0:NCHW", ["called NCHW", "NC1HWC0"]),
        ("ND:ND", "NC1HWC0:NCHW", ["called NCHW", "NC1HWC0"]),
        ("NC1HWC0:NHWC", "NC1HWC0:NCHW", ["NHWC", "called NCHW", "NC1HWC0"]),
        ("HWCN:HWCN", "FRACTAL_Z:HWCN", ["FRACTAL_Z"]),
        # a user's layout may be a permutation
        ("NHWC:NCHW", "NC1HWC0:NCHW", ["NCHW", "NC1HWC0"]),
    ],
)
def test_ways_between_layouts(made: str, wanted: str, expected: list[str]) -> None:
    assert between(made, wanted) == expected


def test_layouts_that_nothing_connects_are_a_fault_of_who_chose_them() -> None:
    with pytest.raises(
        ReportedError, match=r"no TransData turns ND .* into NC1HWC0, which input 0 of node y \(TensorMove\)"
    ):
        between("ND:ND", "NC1HWC0:ND")


def test_readers_of_one_layout_share_its_trans_data() -> None:
    graph = refined(f"""graph g(%x: f16[1,16,8,8]@ND, %w: f16[16,16,1,1]@ND, %v: f16[16,16,1,1]@ND) {{
  %a = Conv2D(%x, %w) {{{CONV}}}
  %b = Conv2D(%x, %v) {{{CONV}}}
  %f = Flatten(%a)
  return %f, %a, %b
}}""")
    assert trans_data(graph) == [
        "x: NCHW -> NC1HWC0",
        "w: NCHW -> FRACTAL_Z",
        "v: NCHW -> FRACTAL_Z",
        "a: NC1HWC0 -> NCHW",
        "b: NC1HWC0 -> NCHW",
    ]


def test_new_nodes_stand_before_their_first_readers() -> None:
    graph = refined(f"""graph g(%x: f16[1,16,8,8]@ND, %w: f16[16,16,1,1]@ND) {{
  %a = Conv2D(%x, %w) {{{CONV}}}
  %f = Flatten(%a)
  %b = Conv2D(%x, %w) {{{CONV}}}
  return %f, %b
}}""")
    order = [node.name.removeprefix("trans_") for node in graph]
    assert order == ["x", "w", "TransData_0", "TransData_1", "a", "TransData_2", "f", "b", "TransData_3", "Node_Output"]


def test_a_layout_of_the_user_is_read_where_it_was_before_a_trans_data() -> None:
    graph = origin_graph(f"""graph g(%x: f16[1,16,8,8]@NCHW, %w: f16[16,16,1,1]@ND) {{
  %c = Conv2D(%x, %w) {{{CONV}}}
  return %c
}}""")
    given(graph, "x", Format.FORMAT_NC1HWC0)
    run(graph, [InsertTransData()])
    assert trans_data(graph) == ["x: NC1HWC0 -> NCHW"]
    graph.attrs[UNSETTLED] = True
    run(graph, [*CHOOSING, InsertTransData()])
    assert trans_data(graph) == ["w: NCHW -> FRACTAL_Z", "c: NC1HWC0 -> NCHW"]


def test_results_in_a_layout_that_the_user_wants() -> None:
    text = f"""graph g(%x: f16[1,16,8,8]@ND, %w: f16[16,16,1,1]@ND) {{
  %c = Conv2D(%x, %w) {{{CONV}}}
  return %c
}}"""
    graph = origin_graph(text)
    net_output = graph.net_output()
    assert net_output is not None
    given(graph, net_output.name, Format.FORMAT_NC1HWC0)
    run(graph, [*CHOOSING, InsertTransData()])
    assert trans_data(graph) == ["x: NCHW -> NC1HWC0", "w: NCHW -> FRACTAL_Z"]
    assert trans_data(refined(text))[-1] == "c: NC1HWC0 -> NCHW"


# -- constants ---------------------------------------------------------------------------------------------------------
def test_constants_are_converted_when_they_are_compiled() -> None:
    weight = np.random.default_rng(1).standard_normal((6, 4, 3, 3)).astype(np.float32)
    graph = parse_graph(f"""graph g(%x: f32[1,8,4,4]@ND, %w: f32[6,4,3,3]@ND) {{
  %c = Conv2D(%x, %w) {{{CONV}, groups=2}}
  %d = Conv2D(%x, %w) {{{CONV}, groups=2}}
  return %c, %d
}}""")
    fix(graph, "w", weight)
    settle(graph)
    run(graph, [*CHOOSING, InsertTransData(), FoldTransData()])
    assert trans_data(graph) == ["x: NCHW -> NC1HWC0", "c: NC1HWC0 -> NCHW", "d: NC1HWC0 -> NCHW"]
    (constant,) = graph.nodes_of_type("Const")
    assert constant.name == "w"
    assert constant.attrs["_datadump_original_op_names"] == ["w"]
    value = constant.attrs["value"]
    expected = index_formulas.lay_out(weight, "NCHW", "FRACTAL_Z", 16, groups=2)
    np.testing.assert_array_equal(value.array, expected.reshape(value.array.shape))
    assert (value.desc.layout, value.desc.sub_format) == (constant.output_descs[0].layout, 2)


def test_a_constant_that_others_read_as_it_is_stays_beside_the_converted_one() -> None:
    graph = parse_graph(f"""graph g(%x: f32[1,8,4,4]@ND, %w: f32[6,8,1,1]@ND) {{
  %c = Conv2D(%x, %w) {{{CONV}}}
  %f = Flatten(%w)
  return %c, %f
}}""")
    fix(graph, "w", np.ones((6, 8, 1, 1), np.float32))
    settle(graph)
    run(graph, [*CHOOSING, InsertTransData(), FoldTransData()])
    assert layouts(graph)["f"] == "NCHW -> ND"
    assert [list(node.output_descs[0].shape) for node in graph.nodes_of_type("Const")] == [[6, 8, 1, 1], [1, 1, 16, 16]]


def test_constants_with_elements_in_common_have_them_in_common_afterwards() -> None:
    graph = parse_graph(f"""graph g(%x: f32[1,8,4,4]@ND, %w: f32[6,8,1,1]@ND, %v: f32[6,8,1,1]@ND) {{
  %c = Conv2D(%x, %w) {{{CONV}}}
  %d = Conv2D(%x, %v) {{{CONV}}}
  return %c, %d
}}""")
    shared = np.ones((6, 8, 1, 1), np.float32)
    fix(graph, "w", shared)
    fix(graph, "v", shared)
    settle(graph)
    run(graph, [*CHOOSING, InsertTransData(), FoldTransData()])
    first, second = (node.attrs["value"].array for node in graph.nodes_of_type("Const"))
    assert first is second


def test_what_is_computed_at_load_is_converted_at_load() -> None:
    graph = parse_graph(f"""graph g(%x: f32[1,8,4,4]@ND, %w: f32[6,8,1,1]@ND) {{
  %n = Neg(%w) {{_load_time_const=true}}
  %c = Conv2D(%x, %n) {{{CONV}}}
  return %c
}}""")
    fix(graph, "w", np.ones((6, 8, 1, 1), np.float32))
    settle(graph)
    run(graph, [*CHOOSING, InsertTransData(), FoldTransData()])
    assert trans_data(graph) == ["x: NCHW -> NC1HWC0", "n*: NCHW -> FRACTAL_Z", "c: NC1HWC0 -> NCHW"]
    assert [node.attrs.get(LOAD_TIME_CONST) for node in graph.nodes_of_type("TransData")] == [None, True, None]


def fix(graph: Graph, name: str, value: np.ndarray) -> None:
    """Put a constant in the place of an input."""
    data = graph.find(name)
    assert data is not None
    constant = graph.add_const(f"{name}_fixed", Tensor.of(value))
    constant.node.attrs["_datadump_original_op_names"] = [name]
    graph.replace_uses(data.output(), constant)
    graph.remove_unread(data)
    graph.rename(constant.node, name)


# -- what the verifier says --------------------------------------------------------------------------------------------
def test_a_removed_trans_data_is_rejected() -> None:
    text = f"""graph g(%x: f16[1,16,8,8]@ND, %w: f16[16,16,1,1]@ND) {{
  %c = Conv2D(%x, %w) {{{CONV}}}
  %r = Relu(%c)
  %f = Flatten(%r)
  return %f, %r
}}"""
    count = len(trans_data(refined(text)))
    assert count == 3
    for place in range(count):
        graph = refined(text)
        node = graph.nodes_of_type("TransData")[place]
        before = node.input(0)
        assert before is not None
        graph.replace_uses(node.output(), before)
        graph.remove_unread(node)
        with pytest.raises(ReportedError, match=r"cannot work with the layouts|which nobody asked for"):
            verify(graph)
