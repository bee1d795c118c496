"""The readable listing, character by character."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from ge.dump.readable import readable_text
from ge.graph import Graph, Tensor
from ge.ops import registry
from ge.ops.signature import parse_signature
from ge.text import parse_graph

# operators of GE that are not registered here
FURTHER = (
    "TopKV2(x, k) -> values, indices [sorted:b=T dim:i=-1 largest:b=T]",
    "For(start, limit, delta, input*) -> output* {body}",
)


@pytest.fixture(autouse=True)
def further_operators(monkeypatch: pytest.MonkeyPatch) -> None:
    for signature in map(parse_signature, FURTHER):
        monkeypatch.setitem(registry._REGISTRY, signature.type, registry.OpDef(signature, None, None))


def listing(text: str) -> str:
    return readable_text(parse_graph(text))


def test_results_of_several_outputs_are_numbered_over_the_graph() -> None:
    assert (
        listing(
            """
            graph net(%x: f32[4,8]@ND) {
              %perm = Const {value=i32[2]{1, 0}} -> i32[2]@ND
              %t = Transpose(%x, %perm) -> f32[8,4]@ND
              %k = Const {value=i32[1]{2}} -> i32[1]@ND
              %top:2 = TopKV2(%t, %k) {dim=-1, sorted=true} -> f32[8,2]@ND, i32[8,2]@ND
              %pair:2 = TopKV2(%top, %k) {_private=1} -> f32[8,2]@ND, i32[8,2]@ND
              %sum = Add(%pair, %top:1)
              %Node_Output:0 = NetOutput(%sum, %top:1, %x)
              return
            }
            """
        )
        == """\
graph("net"):
  %x : [#users=1] = Node[type=Data] (attrs = {index: 0})
  %perm : [#users=1] = Node[type=Const] (attrs = {value: [1 0]})
  %t : [#users=1] = Node[type=Transpose] (inputs = (x=%x, perm=%perm))
  %k : [#users=1] = Node[type=Const] (attrs = {value: [2]})
  %top : [#users=2] = Node[type=TopKV2] (inputs = (x=%t, k=%k), attrs = {sorted: true, dim: -1})
  %ret : [#users=1] = get_element[node=%top](0)
  %ret_1 : [#users=2] = get_element[node=%top](1)
  %pair : [#users=2] = Node[type=TopKV2] (inputs = (x=%ret, k=%k))
  %ret_2 : [#users=1] = get_element[node=%pair](0)
  %ret_3 : [#users=0] = get_element[node=%pair](1)
  %sum : [#users=1] = Node[type=Add] (inputs = (x1=%ret_2, x2=%ret_1))

  return (output_0=%sum, output_1=%ret_1, output_2=%x)
"""
    )


def test_bodies_follow_once_each_depth_first_with_numbers_of_their_own() -> None:
    assert (
        listing(
            """
            graph net(%c: bool[]@ND, %x: f32[4]@ND) {
              %if:2 = If(%c, %x) {then_branch=@then, else_branch=@else} -> f32[4]@ND, f32[4]@ND
              %case = Case(%c, %if, %if:1) {branches0=@then, branches1=@last}
              return %case as "y"
            }
            graph last(%last/x: f32[4]@ND) { return %last/x }
            graph inner(%inner/x: f32[4]@ND) { return }
            graph else(%else/x: f32[4]@ND) { return %else/x, %else/x }
            graph then(%then/x: f32[4]@ND) {
              %then/call:2 = PartitionedCall(%then/x) {f=@inner} -> f32[4]@ND, f32[4]@ND
              return %then/call, %then/call:1
            }
            """
        )
        == """\
graph("net"):
  %c : [#users=1] = Node[type=Data] (attrs = {index: 0})
  %x : [#users=1] = Node[type=Data] (attrs = {index: 1})
  %if : [#users=2] = Node[type=If] (inputs = (cond=%c, input_0=%x), attrs = {then_branch: %then, else_branch: %else})
  %ret : [#users=1] = get_element[node=%if](0)
  %ret_1 : [#users=1] = get_element[node=%if](1)
  %case : [#users=1] = Node[type=Case] (inputs = (branch_index=%c, input_0=%ret, input_1=%ret_1), \
attrs = {branches0: %then, branches1: %last})

  return (%case)

graph("then"):
  %then/x : [#users=1] = Node[type=Data] (attrs = {index: 0})
  %then/call : [#users=2] = Node[type=PartitionedCall] (inputs = (args_0=%then/x), attrs = {f: %inner})
  %ret : [#users=1] = get_element[node=%then/call](0)
  %ret_1 : [#users=1] = get_element[node=%then/call](1)

  return (output_0=%ret, output_1=%ret_1)

graph("inner"):
  %inner/x : [#users=1] = Node[type=Data] (attrs = {index: 0})

graph("else"):
  %else/x : [#users=1] = Node[type=Data] (attrs = {index: 0})

  return (output_0=%else/x, output_1=%else/x)

graph("last"):
  %last/x : [#users=1] = Node[type=Data] (attrs = {index: 0})

  return (%last/x)
"""
    )


def node_line(text: str) -> str:
    """The line of the node `n` in a graph of that node and an input `x`."""
    lines = listing(f"graph g(%x: f32[4]@ND) {{ {text} return }} graph body() {{ return }}").splitlines()
    return next(line for line in lines if line.startswith("  %n :")).partition("] (")[2].removesuffix(")")


@pytest.mark.parametrize(
    ("node", "shown"),
    [
        ("%n = Unknown", ""),
        ("%n = Relu(_) {_private=1}", ""),
        ("%n = Relu(%x) ctrl(%x)", "inputs = (x=%x)"),
        ("%n = Unknown(%x, _, %x)", "inputs = (_input_0=%x, _input_2=%x)"),
        ("%n = Unknown {a=1, body=@body}", "attrs = {_graph_0: %body}"),
        ("%n = Relu(%x, _, %x)", "inputs = (x=%x, _input_2=%x)"),
        ("%n = Conv2D(%x, %x, _, %x)", "inputs = (x=%x, filter=%x, offset_w=%x)"),
        ("%n = ConcatV2(%x, %x, %x) {N=2}", "inputs = (x_0=%x, x_1=%x, concat_dim=%x), attrs = {N: 2}"),
        ("%n = Conv2D {pads=[0,1], data_format=\"NCHW\", groups=1, strides=[]}",
         'attrs = {pads: {0, 1}, groups: 1, data_format: "NCHW"}'),
        ("%n = For(%x, %x, %x, %x, %x) {body=@body}",
         "inputs = (start=%x, limit=%x, delta=%x, input_1=%x, input_2=%x), attrs = {body: %body}"),
        ("%n = Cast {dst_type=dtype f16}", "attrs = {dst_type: DT_FLOAT16}"),
        ("%n = LeakyRelu {negative_slope=0.25}", "attrs = {negative_slope: 0.250000}"),
        ("%n = Einsum {equation=\"a\\\"\\n\"}", 'attrs = {equation: "a\\"\\n"}'),
        ("%n = Einsum {equation=\"\"}", ""),
        ("%n = MatMulV2 {transpose_x1=true, transpose_x2=false}", "attrs = {transpose_x1: true, transpose_x2: false}"),
    ],
)  # fmt: skip
def test_inputs_and_attributes(node: str, shown: str) -> None:
    assert node_line(node) == shown


@pytest.mark.parametrize(
    ("array", "shown"),
    [
        (np.array(7), "[7]"),
        (np.array([], np.float32), "<empty>"),
        (np.array([0.5, -1 / 3], np.float32), "[0.500000 -0.333333]"),
        (np.array([1e9, np.inf, np.nan]), "[1000000000.000000 inf nan]"),
        (np.array([0.1], np.float16), "[0.099976]"),
        (np.array([[1, 2, 3], [4, 5, 6]], np.uint8), "[1 2 3 4 5 6]"),
        (np.arange(7), "[0 1 2 ... 4 5 6]"),
        (np.arange(1000).reshape(10, 100), "[0 1 2 ... 997 998 999]"),
        (np.array([True, False]), "[true false]"),
        (np.array([1], ml_dtypes.bfloat16), "<not_supported>"),
        (np.array([1 + 2j]), "<not_supported>"),
        (np.array(["a"], object), "<not_supported>"),
    ],
    ids=str,
)
def test_constants(array: np.ndarray, shown: str) -> None:
    graph = Graph("g")
    graph.add_const("c", Tensor.of(array))
    assert readable_text(graph) == f'graph("g"):\n  %c : [#users=1] = Node[type=Const] (attrs = {{value: {shown}}})\n'


def test_a_listing_starts_at_the_graph_that_is_asked_for() -> None:
    graph = parse_graph(
        "graph a() { %call = PartitionedCall {f=@b} return } graph b() { %c = Identity {g=@a, h=@none} return }"
    )
    assert readable_text(graph.subgraphs["b"]).splitlines()[0] == 'graph("b"):'
