"""What becomes of open dimensions: shape arithmetic keeps what is known, names tell which unknown dims are equal."""

from __future__ import annotations

import numpy as np
import pytest

from ge.errors import ReportedError
from ge.graph import Graph, OpenDim
from ge.options import CompileOptions, Environment
from ge.session import CompileSession
from ge.text import parse_graph, print_graph
from ge.verify import verify
from passes.infer.fold_constants import FoldConstants
from passes.infer.infer_shapes import InferShapes


def inferred(body: str, x: str = "f32[-1,3,4,4]", y: str = "f32[-1,8]", *steps) -> Graph:
    """Infer a graph with inputs x and y; `%i0` to `%i3`, `%m1` are int64 vectors of one number, `%axis` is axis 0."""
    numbers = " ".join(f"%i{k} = Const {{value=i64[1]{{{k}}}}} -> i64[1]@ND" for k in range(4))
    graph = parse_graph(f"""graph g(%x: {x}@ND, %y: {y}@ND) {{
  {numbers} %m1 = Const {{value=i64[1]{{-1}}}} -> i64[1]@ND %axis = Const {{value=i32[]{{0}}}} -> i32[]@ND
  {body}
  return %r
}}""")
    for step in (InferShapes(), *steps):
        step.run(graph, CompileSession(CompileOptions(), Environment()))
        verify(graph)
    return graph


def shape_of(graph: Graph) -> str:
    """The shape of the result, unknown dims under their names."""
    dims = graph.outputs[0].desc.origin_shape
    return ",".join(dim.name if isinstance(dim, OpenDim) else str(dim) for dim in dims)


S = "%s = Shape(%x) {dtype=9}"
N = f"{S} %n = GatherV2(%s, %i0, %axis)"

SHAPES = [
    ("flatten-keeps-the-batch", f"{N} %t = ConcatD(%n, %m1) {{concat_dim=0}} %r = Reshape(%x, %t)", "x:0.0,48"),
    ("merged-from-behind", f"%t = Const {{value=i64[2]{{-1,48}}}} {N} %r = Reshape(%x, %t)", "x:0.0,48"),
    ("copied-by-zero", "%t = Const {value=i64[2]{0,-1}} %r = Reshape(%x, %t)", "x:0.0,48"),
    (
        "known-dims-become-numbers",
        f"{S} %c = GatherV2(%s, %i1, %axis) %t = ConcatD(%c, %m1) {{concat_dim=0}} %r = Reshape(%x, %t)",
        "3,r:0.1",
    ),
    (
        "slice-of-the-shape",
        f"{S} %t = StridedSliceV2(%s, %i1, %i3, %i0) %u = ConcatD(%t, %m1) {{concat_dim=0}} %r = Reshape(%x, %u)",
        "3,4,r:0.2",
    ),
    (
        "scalars-and-back",
        f"{S} %k = Const {{value=i32[]{{0}}}} %a = GatherV2(%s, %k, %axis) %b = UnsqueezeV3(%a, %i0) "
        "%t = ConcatD(%b, %m1) {concat_dim=0} %r = Reshape(%x, %t)",
        "x:0.0,48",
    ),
    (
        "product-of-known-dims",
        f"{S} %a = GatherV2(%s, %i2, %axis) %b = GatherV2(%s, %i3, %axis) %p = Mul(%a, %b) "
        f"%n = GatherV2(%s, %i0, %axis) %t = ConcatD(%n, %i3, %p) {{concat_dim=0}} %r = Reshape(%x, %t)",
        "x:0.0,3,16",
    ),
    (
        "times-one-keeps-the-name",
        f"{N} %p = Mul(%n, %i1) %t = ConcatD(%p, %m1) {{concat_dim=0}} %r = Reshape(%x, %t)",
        "x:0.0,48",
    ),
    (
        "times-two-does-not",
        f"{N} %p = Mul(%n, %i2) %t = ConcatD(%p, %m1) {{concat_dim=0}} %r = Reshape(%x, %t)",
        "r:0.0,r:0.1",
    ),
    (
        "exported-expand",  # a dim is never -1, so the shape itself is taken
        f"{N} %t = ConcatD(%n, %i3) {{concat_dim=0}} %q = Equal(%t, %m1) %o = Const {{value=i64[2]{{1,1}}}} "
        "%w = SelectV2(%q, %o, %t) %z = Const {value=f32[1,1]{0.0}} %r = Expand(%z, %w)",
        "x:0.0,3",
    ),
    (
        "filled",
        f"{N} %t = ConcatD(%n, %i3) {{concat_dim=0}} %z = Const {{value=f32[]{{0.0}}}} %r = Fill(%t, %z)",
        "x:0.0,3",
    ),
    (
        "counted-up",
        f"{S} %a = Const {{value=i64[]{{0}}}} %b = Const {{value=i64[]{{1}}}} %k = Const {{value=i32[]{{0}}}} "
        "%n = GatherV2(%s, %k, %axis) %r = Range(%a, %n, %b)",
        "x:0.0",
    ),
    (
        "whole-axis",
        "%e = Const {value=i64[1]{9223372036854775807}} %r = StridedSliceV2(%x, %i0, %e, %i0)",
        "x:0.0,3,4,4",
    ),
    ("up-to-its-own-length", f"{N} %r = StridedSliceV2(%x, %i0, %n, %i0)", "x:0.0,3,4,4"),
    ("part-of-an-open-axis", "%r = StridedSliceV2(%x, %i0, %i2, %i0)", "r:0.0,3,4,4"),
    ("only-one-region-is-unknown", f"{N} %r = StridedSliceV2(%y, %n, %i3, %i0)", "r:0.0,8"),
    (
        "tiled",
        f"{N} %o = Const {{value=i64[3]{{1,2,1}}}} %t = ConcatD(%n, %o) {{concat_dim=0}} %r = Tile(%x, %t)",
        "r:0.0,3,8,4",
    ),
]


@pytest.mark.parametrize(("body", "expected"), [row[1:] for row in SHAPES], ids=[row[0] for row in SHAPES])
def test_shapes_computed_from_shapes(body: str, expected: str) -> None:
    assert shape_of(inferred(body)) == expected


@pytest.mark.parametrize(
    ("x", "y", "expected"),
    [
        ("f32[-1,8]", "f32[-1,8]", "r:0.0,8"),
        ("f32[-1,8]", "f32[1,8]", "x:0.0,8"),
        ("f32[8]", "f32[-1,8]", "y:0.0,8"),
        ("f32[-1,8]", "f32[5,8]", "5,8"),
        ("f32[-1,1]", "f32[1,-1]", "x:0.0,y:0.1"),
    ],
)
def test_broadcasting_open_dims(x: str, y: str, expected: str) -> None:
    """Of two open dims either may be 1, so the result has neither's name."""
    assert shape_of(inferred("%r = Add(%x, %y)", x, y)) == expected


def test_an_open_dim_equals_itself_in_a_broadcast() -> None:
    assert shape_of(inferred("%a = Neg(%x) %r = Add(%a, %x)")) == "x:0.0,3,4,4"


def test_data_decides() -> None:
    text = print_graph(inferred("%r = NonZero(%x)"))
    assert "%r = NonZero(%x) -> i64[-1,4]@ND" in text or "%r = NonZero(%x) -> i64[4,-1]@ND" in text


def test_known_parts_are_folded() -> None:
    """The shape vector is not constant, but the channel taken from it is."""
    body = f"{N} %c = GatherV2(%s, %i1, %axis) %f = Cast(%c) {{dst_type=0}} %z = Fill(%n, %f) %r = Neg(%z)"
    graph = inferred(body, "f32[-1,3,4,4]", "f32[-1,8]", FoldConstants())
    fill = next(node for node in graph if node.type == "Fill")
    value = fill.inputs[1].node.attrs["value"].array
    np.testing.assert_array_equal(value, np.array([3.0], np.float32))
    assert fill.inputs[0].node.type == "GatherV2"
    assert not any("_load_time_const" in node.attrs for node in graph)


@pytest.mark.parametrize(
    ("x", "target", "message"),
    [
        ("f32[-1,3]", "0,4", r"\[-1, 3\] cannot become \[0, 4\]"),
        ("f32[7,3]", "-1,5", r"\[7, 3\] cannot become \[-1, 5\]"),
        ("f32[-1,3]", "0,3,0", r"\[0, 3, 0\] cannot keep dims of the shape \[-1, 3\]"),
    ],
)
def test_reshapes_that_no_size_makes_possible(x: str, target: str, message: str) -> None:
    count = target.count(",") + 1
    with pytest.raises(ReportedError, match=message):
        inferred(f"%t = Const {{value=i64[{count}]{{{target}}}}} %r = Reshape(%x, %t)", x)


LOOP = """graph g(%n: i64[]@ND, %x: f32[-1,3]@ND, %k: f32[-1,3]@ND) {{
  %w:3 = While(%n, %x, %k) {{cond=@c, body=@b}}
  %r = Add(%w:{result}, %{other})
  return %r
}}
graph c(%n: i64[]@ND, %x: f32[-1,3]@ND, %k: f32[-1,3]@ND) {{
  %zero = Const {{value=i64[]{{0}}}} %q = Greater(%n, %zero) return %q
}}
graph b(%n: i64[]@ND, %x: f32[-1,3]@ND, %k: f32[-1,3]@ND) {{
  %one = Const {{value=i64[]{{1}}}} %m = Sub(%n, %one) {body}
  return %m, %y, %k
}}"""


@pytest.mark.parametrize(
    ("body", "result", "other", "expected"),
    [
        ("%y = Neg(%x)", 1, "x", "x:0.0,3"),
        ("%y = ConcatD(%x, %k) {concat_dim=0}", 1, "x", "r:0.0,3"),
        ("%y = ConcatD(%x, %k) {concat_dim=0}", 2, "k", "k:0.0,3"),
        ("%y = Identity(%k)", 1, "x", "r:0.0,3"),
        ("%y = Add(%x, %k)", 1, "x", "r:0.0,3"),
    ],
)
def test_a_loop_keeps_the_names_of_what_it_leaves_alone(body: str, result: int, other: str, expected: str) -> None:
    graph = parse_graph(LOOP.format(body=body, result=result, other=other))
    InferShapes().run(graph, CompileSession(CompileOptions(), Environment()))
    verify(graph)
    assert shape_of(graph) == expected


def test_branches_that_make_different_sizes_make_a_new_name() -> None:
    graph = parse_graph("""graph g(%c: bool[]@ND, %x: f32[-1,3]@ND, %k: f32[-1,3]@ND) {
  %i:2 = If(%c, %x, %k) {then_branch=@t, else_branch=@e}
  %r = ConcatD(%i:0, %i:1) {concat_dim=1}
  return %r
}
graph t(%x: f32[-1,3]@ND, %k: f32[-1,3]@ND) { %y = Neg(%x) return %y, %x }
graph e(%x: f32[-1,3]@ND, %k: f32[-1,3]@ND) { %y = Neg(%k) return %y, %x }""")
    InferShapes().run(graph, CompileSession(CompileOptions(), Environment()))
    names = [getattr(out.desc.origin_shape[0], "name", "") for out in graph.find("i").outputs()]
    assert names == ["i:0.0", "x:0.0"]
