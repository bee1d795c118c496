"""What passes of users put among nodes that work in layouts of the chip; and what is counted at the end."""

from __future__ import annotations

import numpy as np
import pytest

from ge.errors import ReportedError
from ge.graph import Graph, TensorDesc
from ge.graph_inference import infer_graph
from ge.layout_check import layout_fault
from ge.ops import infer_node
from ge.text import parse_graph
from ge.verify import UNSETTLED, verify
from passes.format.count_trans_data import CountTransData
from passes.format.fold_trans_data import FoldTransData
from passes.format.insert_trans_data import InsertTransData
from passes.format.settle_formats import SettleFormats
from tests.passes.format.refined import ALL, layouts, refined, run, session, settle, trans_data

CONV = 'strides=[1,1,1,1], pads=[0,0,0,0], data_format="NCHW"'
TWO_CONVOLUTIONS = f"""graph g(%x: f16[1,16,8,8]@ND, %w: f16[16,16,1,1]@ND) {{
  %a = Conv2D(%x, %w) {{{CONV}}}
  %r = Relu(%a)
  %b = Conv2D(%r, %w) {{{CONV}}}
  return %b
}}"""


def replaced(type: str, **attrs: object) -> Graph:
    """Two convolutions; in the place of the Relu between them stands a new node that knows nothing of layouts."""
    graph = refined(TWO_CONVOLUTIONS)
    old = graph.find("r")
    assert old is not None
    new = graph.add_node(type, "new", old.inputs, attrs, output_descs=[TensorDesc([-2])])
    infer_node(new)
    graph.replace_uses(old.output(), new.output())
    graph.remove_unread(old)
    graph.attrs[UNSETTLED] = True
    run(graph, [SettleFormats(), InsertTransData()])
    assert UNSETTLED not in graph.attrs
    return graph


def test_new_nodes_work_as_their_neighbours_do_if_they_can() -> None:
    graph = replaced("Sigmoid")
    assert layouts(graph)["new"] == "NC1HWC0 -> NC1HWC0"
    assert trans_data(graph) == trans_data(refined(TWO_CONVOLUTIONS))


def test_operators_that_have_no_such_layout_get_origin_views() -> None:
    graph = replaced("TransposeD", perm=[0, 1, 3, 2])
    found = layouts(graph)
    assert (found["new"], found["b"]) == ("NCHW -> NCHW", "NC1HWC0 FRACTAL_Z -> NC1HWC0")
    assert trans_data(graph)[2:] == ["a: NC1HWC0 -> NCHW", "new: NCHW -> NC1HWC0", "b: NC1HWC0 -> NCHW"]


def test_nothing_happens_to_a_graph_that_is_settled() -> None:
    graph = refined(TWO_CONVOLUTIONS)
    before = layouts(graph)
    assert not SettleFormats().run(graph, session())
    graph.attrs[UNSETTLED] = True
    assert not SettleFormats().run(graph, session())
    assert not InsertTransData().run(graph, session())
    assert layouts(graph) == before


def test_inference_leaves_a_refined_graph_as_it_is() -> None:
    graph = refined(TWO_CONVOLUTIONS)
    before = layouts(graph)
    assert not infer_graph(graph)
    assert layouts(graph) == before
    verify(graph)


# -- counting ----------------------------------------------------------------------------------------------------------
def test_transfers_are_counted_by_what_they_move() -> None:
    text = f"""graph g(%x: f16[1,3,8,8]@ND, %w: f16[16,3,1,1]@ND) {{
  %n = Const {{value=f16[16,3,1,1] sha256:n}} -> f16[16,3,1,1]@ND
  %m = Neg(%n) {{_load_time_const=true}}
  %a = Conv2D(%x, %w) {{{CONV}}}
  %b = Conv2D(%x, %m) {{{CONV}}}
  %f = Flatten(%a)
  return %f, %b
}}"""
    graph = parse_graph(text, {"n": np.ones((16, 3, 1, 1), np.float16)})
    settle(graph)
    run(graph, [*ALL, CountTransData()])
    running = [line for line in trans_data(graph) if "*" not in line]
    assert running == ["x: NCHW -> NC1HWC0", "w: NCHW -> FRACTAL_Z", "a: NC1HWC0 -> NCHW", "b: NC1HWC0 -> NCHW"]
    image, blocks, filters, tiles = 3 * 64, 16 * 64, 16 * 3, 16 * 16
    assert graph.attrs["_trans_data_count"] == 4
    assert graph.attrs["_trans_data_bytes"] == 2 * (image + blocks + filters + tiles + 2 * (blocks + 16 * 64))
    assert graph.attrs["_trans_data_weight_count"] == 1


def test_nothing_is_counted_where_nothing_is_refined() -> None:
    graph = parse_graph("graph g(%x: f16[1,3,8,8]@ND) { %r = Relu(%x) return %r }")
    CountTransData().run(graph, session(format_refinement=False))
    assert not any(name.startswith("_trans_data") for name in graph.attrs)


# -- what the verifier says --------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            "graph g(%x: f16[1,20,8,8]@NCHW | [1,2,8,8,16]@NC1HWC0) { %y = Relu(%x) -> f16[1,20,8,8]@NCHW return %y }",
            "it cannot work with the layouts NC1HWC0 -> NCHW",
        ),
        (
            "graph g(%x: f16[1,20,8,8]@NCHW | [1,2,8,8,16]@NC1HWC0) "
            "{ %y = Relu(%x) -> f16[1,20,8,8]@NCHW | [1,3,8,8,16]@NC1HWC0 return %y }",
            "output 0: [1,20,8,8]@NCHW in NC1HWC0 has the shape [1,2,8,8,16], not [1,3,8,8,16]",
        ),
        (
            "graph g(%x: f16[1,20,8,8]@NCHW) { %y = TransData(%x) "
            '{src_format="NCHW", dst_format="NC1HWC0"} -> f16[1,20,8,8]@NCHW return %y }',
            "it says that it turns NCHW into NC1HWC0, and turns NCHW into NCHW",
        ),
        (
            "graph g(%x: f16[1,20,8,8]@NCHW) { %y = TransData(%x) "
            '{src_format="NCHW", dst_format="NC1HWC0"} -> f32[1,20,8,8]@NCHW | [1,2,8,8,16]@NC1HWC0 return %y }',
            "which is not the same tensor",
        ),
        (
            "graph g(%x: f16[1,20,8,8]@NCHW | [1,2,8,8,16]@NC1HWC0) { %y = TransData(%x) "
            '{src_format="NC1HWC0", dst_format="FRACTAL_NZ"} -> f16[1,20,8,8]@NCHW | [1,20,1,1,16,16]@FRACTAL_NZ '
            "return %y }",
            "no TransData turns NC1HWC0 into FRACTAL_NZ",
        ),
        (
            "graph g(%x: f16[1,20,8,8]@NCHW | [1,2,8,8,16]@NC1HWC0) "
            "{ %y = ReFormat(%x) -> f16[1,20,8,8]@NHWC return %y }",
            "it changes names of axes",
        ),
    ],
)
def test_layouts_that_nobody_can_work_with(text: str, reason: str) -> None:
    with pytest.raises(ReportedError) as caught:
        verify(parse_graph(text))
    assert reason in str(caught.value.fields["reason"])
    verify(parse_graph(text), with_layouts=False)


def test_filters_for_other_groups_are_other_filters() -> None:
    graph = refined(f"""graph g(%x: f16[1,16,8,8]@ND, %w: f16[16,4,1,1]@ND) {{
  %a = Conv2D(%x, %w) {{{CONV}, groups=4}}
  return %a
}}""")
    conv = graph.find("a")
    assert conv is not None
    assert layout_fault(conv) == ""
    conv.attrs["groups"] = 2
    assert "it cannot work with the layouts" in layout_fault(conv)


def test_constants_are_folded_once_more_behind_passes_of_users() -> None:
    graph = refined(TWO_CONVOLUTIONS)
    assert not FoldTransData().run(graph, session())
