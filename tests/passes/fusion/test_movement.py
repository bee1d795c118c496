"""Runs of Reshapes, runs of Transposes, and what a Split parts and a Concat joins."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from ge.options import CompileOptions, Environment
from ge.session import CompileSession
from passes.fusion.fuse_graph import FuseGraph
from passes.fusion.join_split import JoinSplit
from passes.fusion.merge_reshapes import MergeReshapes
from passes.fusion.merge_transposes import MergeTransposes
from tests.passes.fusion.fused import fused, graph_of, left_alone, results, run_model


def ints(name: str, *values: int, dtype: str = "i64") -> str:
    numbers = ",".join(map(str, values))
    return f"%{name} = Const {{value={dtype}[{len(values)}]{{{numbers}}}}} -> {dtype}[{len(values)}]@ND\n  "


def text(lines: str, shape: str = "[2,3,4]", result: str = "%z", dtype: str = "f32", more: str = "") -> str:
    last = "" if "%z =" in lines else "\n  %z = Neg(%y)"
    return f"graph g(%x: {dtype}{shape}@ND{more}) {{\n  {lines}{last}\n  return {result}\n}}"


# -- Reshapes ----------------------------------------------------------------------------------------------------------
RESHAPES = {
    "reshapes": ints("s", 6, 4) + ints("t", 4, 6) + "%p = Reshape(%x, %s)\n  %y = Reshape(%p, %t)",
    "flattened": ints("s", 4, 3, 2) + "%p = Flatten(%x) {axis=1}\n  %y = Reshape(%p, %s)",
    "new axes": ints("a", 0) + "%p = Unsqueeze(%x) {axes=[1]}\n  %q = UnsqueezeV3(%p, %a)\n  %y = Flatten(%q) {axis=3}",
    "axes that go": ints("s", 1, 6, 1, 4)
    + ints("a", -2)
    + "%p = Reshape(%x, %s)\n  %q = Squeeze(%p) {axis=[0]}\n  %y = SqueezeV3(%q, %a)",
    "all axes of 1 go": ints("s", 1, 24, 1) + "%p = Reshape(%x, %s)\n  %y = Squeeze(%p)",
    "expanded": "%a = Const {value=i32[]{-1}} -> i32[]@ND\n  %p = ExpandDims(%x, %a)\n  %y = Flatten(%p) {axis=2}",
    "the rest": ints("s", -1) + ints("t", 3, -1) + "%p = Reshape(%x, %s)\n  %y = Reshape(%p, %t)",
    "dims kept": ints("s", 0, -1) + ints("t", 0, 4, 3) + "%p = Reshape(%x, %s)\n  %y = Reshape(%p, %t)",
}


@pytest.mark.parametrize("name", RESHAPES)
def test_runs_of_reshapes_become_one(name, rng) -> None:
    graph = graph_of(text(RESHAPES[name]))
    [y] = (node for node in graph if node.name == "y")
    dims = list(y.output_descs[0].shape)
    result = fused(MergeReshapes, graph)
    assert result.types() == ["Reshape", "Neg"]
    assert result.times == (1, 1)
    np.testing.assert_array_equal(result.constant(result.only("Reshape"), 1), dims)
    x = rng.standard_normal((2, 3, 4)).astype(np.float32)
    for which in (MergeReshapes, None):
        [found] = results(which, graph_of(text(RESHAPES[name])), [x])
        np.testing.assert_array_equal(found, -x.reshape(dims))


def test_the_text_of_a_merged_run() -> None:
    before = """graph g(%x: f32[2,3]@ND) {
  %s = Const {value=i64[1]{-1}} -> i64[1]@ND
  %p = Reshape(%x, %s) -> f32[6]@ND
  %y = Unsqueeze(%p) {axes=[0]} -> f32[1,6]@ND
  return %y
}"""
    after = """graph g(%x: f32[2,3]@ND) {
  %Const_p_y_0 = Const {value=i64[2]{1, 6}} -> i64[2]@ND
  %Reshape_p_y_1 = Reshape(%x, %Const_p_y_0) {_x_allowzero=1} -> f32[1,6]@ND
  return %Reshape_p_y_1
}"""
    assert fused(MergeReshapes, before).text() == after


IDLE_RESHAPES = {
    "Reshape": ints("s", 2, 3, 4) + "%y = Reshape(%x, %s)",
    "Reshape to the rest": ints("s", 2, -1, 4) + "%y = Reshape(%x, %s)",
    "Reshape that keeps dims": ints("s", 0, 0, -1) + "%y = Reshape(%x, %s)",
    "Squeeze of nothing": "%y = Squeeze(%x)",
    "there and back": "%p = Unsqueeze(%x) {axes=[1]}\n  %y = Squeeze(%p) {axis=[1]}",
    "far and back": ints("s", 24)
    + ints("t", 2, 3, 4)
    + "%p = Flatten(%x) {axis=2}\n  %q = Reshape(%p, %s)\n  %y = Reshape(%q, %t)",
}


@pytest.mark.parametrize("name", IDLE_RESHAPES)
def test_what_ends_in_the_first_shape_goes(name) -> None:
    result = fused(MergeReshapes, text(IDLE_RESHAPES[name]))
    assert result.text() == "graph g(%x: f32[2,3,4]@ND) {\n  %z = Neg(%x) -> f32[2,3,4]@ND\n  return %z\n}"


def test_one_reshape_stays() -> None:
    assert left_alone(MergeReshapes, text(ints("s", 4, 6) + "%y = Reshape(%x, %s)")) == []


@pytest.mark.parametrize("result", ["%z, %p", "%z, %w"])
def test_shapes_in_between_that_others_read_end_the_run(result) -> None:
    lines = RESHAPES["reshapes"] + ("\n  %w = Abs(%p)" if "%w" in result else "")
    assert left_alone(MergeReshapes, text(lines, result=result)) == []


def test_a_shape_in_between_that_others_read_cuts_the_run() -> None:
    lines = ints("s", 6, 4) + "%p = Reshape(%x, %s)\n  %q = Unsqueeze(%p) {axes=[0]}\n  %y = Flatten(%q) {axis=2}"
    result = fused(MergeReshapes, text(lines + "\n  %w = Abs(%p)", result="%z, %w"))
    assert result.types() == ["Reshape", "Abs", "Neg"]


def test_control_edges_end_a_run_of_reshapes() -> None:
    lines = "%w = Abs(%x)\n  " + RESHAPES["reshapes"] + " ctrl(%w)"
    assert left_alone(MergeReshapes, text(lines, result="%z, %w")) == []


@pytest.mark.parametrize(
    ("lines", "shape", "more", "types", "dims"),
    [
        (ints("s", -1) + ints("t", -1, 2) + "%p = Reshape(%x, %s)\n  %y = Reshape(%p, %t)", "[-1,4]", "", 1, [-1, 2]),
        ("%p = Unsqueeze(%x) {axes=[0]}\n  %y = Squeeze(%p) {axis=[0]}", "[-1,-1]", "", 0, [-1, -1]),
        (ints("s", 0, -1) + "%p = Unsqueeze(%x) {axes=[2]}\n  %y = Reshape(%p, %s)", "[-1,4]", "", 0, [-1, 4]),
        ("%p = Unsqueeze(%x) {axes=[1]}\n  %y = Reshape(%p, %m)", "[2,3]", ", %m: i64[2]@ND", None, [-1, -1]),
        ("%p = Unsqueeze(%x) {axes=[0]}\n  %y = Unsqueeze(%p) {axes=[1]}", "[-1,-1]", "", None, [1, 1, -1, -1]),
        ("%p = Unsqueeze(%x) {axes=[0]}\n  %y = Unsqueeze(%p) {axes=[1]}", "[-1,0]", "", None, [1, 1, -1, 0]),
        ("%p = Squeeze(%x)\n  %y = Unsqueeze(%p) {axes=[0]}", "[-2]", "", None, [-2]),
    ],
    ids=[
        "one open dim",
        "there and back",
        "an open dim kept",
        "computed",
        "two open dims",
        "one that nothing tells",
        "unknown rank",
    ],
)
def test_dims_may_be_unknown(lines, shape, more, types, dims) -> None:
    """``types`` counts the Reshapes that are left; ``None``: all is left alone."""
    if types is None:
        reasons = left_alone(MergeReshapes, text(lines, shape, more=more))
        assert reasons == [f"the shape {dims} in the end is not known well enough"]
        return
    result = fused(MergeReshapes, text(lines, shape, more=more))
    assert result.types() == ["Reshape"] * types + ["Neg"]
    assert result.only("Neg").output_descs[0].shape == dims


def test_no_elements() -> None:
    lines = ints("s", 0, 12) + ints("t", 4, 0) + "%p = Reshape(%x, %s)\n  %y = Reshape(%p, %t) {_x_allowzero=1}"
    result = fused(MergeReshapes, text(lines, "[0,3,4]"))
    assert result.types() == ["Reshape", "Neg"]
    assert result.only("Neg").output_descs[0].shape == [4, 0]


# -- Transposes --------------------------------------------------------------------------------------------------------
def transposes(*perms, kinds="") -> str:
    lines, value = [], "%x"
    for place, perm in enumerate(perms):
        made = "%y" if place == len(perms) - 1 else f"%t{place}"
        numbers = ",".join(map(str, perm))
        if kinds[place : place + 1] == "D":
            lines.append(f"{made} = TransposeD({value}) {{perm=[{numbers}]}}")
        else:
            lines.append(
                ints(f"p{place}", *perm, dtype="i32" if place % 2 else "i64")
                + f"{made} = Transpose({value}, %p{place})"
            )
        value = made
    return "\n  ".join(lines)


@pytest.mark.parametrize(
    ("perms", "kinds", "order"),
    [
        (((1, 0, 2), (0, 2, 1)), "", [1, 2, 0]),
        (((2, 0, 1), (2, 0, 1)), "", [1, 2, 0]),
        (((1, 0, 2), (0, 2, 1)), "DT", [1, 2, 0]),
        (((1, 0, 2), (0, 2, 1), (2, 1, 0)), "TD", [0, 2, 1]),
        (((-2, 0, -1), (0, -1, 1)), "D", [1, 2, 0]),
    ],
)
def test_runs_of_transposes_become_one(perms, kinds, order, rng) -> None:
    lines = transposes(*perms, kinds=kinds)
    result = fused(MergeTransposes, text(lines))
    assert result.types() == ["Transpose", "Neg"]
    assert result.times == (1, 1)
    np.testing.assert_array_equal(result.constant(result.only("Transpose"), 1), order)
    x = rng.standard_normal((2, 3, 4)).astype(np.float32)
    for which in (MergeTransposes, None):
        [found] = results(which, graph_of(text(lines)), [x])
        np.testing.assert_array_equal(found, -x.transpose(order))


@pytest.mark.parametrize(
    "perms",
    [((0, 1, 2),), ((0, -2, -1),), ((1, 2, 0), (2, 0, 1)), ((1, 0, 2), (1, 0, 2)), ((2, 1, 0), (0, 1, 2), (2, 1, 0))],
)
@pytest.mark.parametrize("shape", ["[2,3,4]", "[-1,3,-1]"])
def test_what_leaves_all_axes_goes(perms, shape) -> None:
    result = fused(MergeTransposes, text(transposes(*perms), shape))
    assert result.types() == ["Neg"]
    assert list(result.only("Neg").inputs) == list(result.graph.data_nodes()[0].outputs())


@pytest.mark.parametrize(
    ("shape", "perms", "dims"),
    [
        ([2, 1, 3], ((1, 0, 2),), [1, 2, 3]),
        ([1, 2, 3], ((1, 2, 0),), [2, 3, 1]),
        ([1, 2, 1], ((2, 1, 0), (1, 0, 2)), [2, 1, 1]),
        ([1, 5, 0], ((1, 0, 2),), [5, 1, 0]),
    ],
)
def test_moving_axes_of_one_element_is_a_reshape(shape, perms, dims, rng) -> None:
    given_text = text(transposes(*perms), f"[{','.join(map(str, shape))}]")
    result = fused(MergeTransposes, given_text)
    assert result.types() == ["Reshape", "Neg"]
    np.testing.assert_array_equal(result.constant(result.only("Reshape"), 1), dims)
    if math.prod(shape):
        x = rng.standard_normal(shape).astype(np.float32)
        [found] = results(MergeTransposes, graph_of(given_text), [x])
        np.testing.assert_array_equal(found, -x.reshape(dims))


@pytest.mark.parametrize(
    ("lines", "shape", "result", "more"),
    [
        (transposes((1, 0, 2)), "[2,3,4]", "%z", ""),
        (transposes((1, 0, 2)), "[-1,1,4]", "%z", ""),
        (transposes((0, 2, 1)), "[2,3,0]", "%z", ""),
        (transposes((1, 0, 2), (0, 2, 1)), "[2,3,4]", "%z, %t0", ""),
        (transposes((1, 0, 2), (0, 2, 1)) + "\n  %w = Abs(%t0)", "[2,3,4]", "%z, %w", ""),
        ("%w = Abs(%x)\n  " + transposes((1, 0, 2), (0, 2, 1)) + " ctrl(%w)", "[2,3,4]", "%z, %w", ""),
        ("%p = Transpose(%x, %m)\n  %y = Transpose(%p, %m)", "[2,3,4]", "%z", ", %m: i64[3]@ND"),
    ],
    ids=["one", "a size that is not known", "no elements", "result", "shared", "control edge", "computed"],
)
def test_transposes_that_stay(lines, shape, result, more) -> None:
    assert left_alone(MergeTransposes, text(lines, shape, result, more=more)) == []


def test_both_readers_of_a_transpose_may_end_runs() -> None:
    lines = transposes((1, 0, 2)).replace("%y", "%t") + "\n  " + ints("q", 1, 0, 2)
    lines += "%y = Transpose(%t, %q)\n  %v = Transpose(%t, %q)\n  %w = Transpose(%v, %q)"
    result = fused(MergeTransposes, text(lines, result="%z, %w"))
    assert result.types() == ["Transpose", "Transpose", "Neg"]


@st.composite
def runs_of_transposes(draw):
    rank = draw(st.integers(1, 4))
    shape = draw(st.lists(st.integers(1, 3), min_size=rank, max_size=rank))
    perms = draw(st.lists(st.permutations(range(rank)), min_size=1, max_size=4))
    return shape, [[axis - rank if draw(st.booleans()) else axis for axis in perm] for perm in perms]


@settings(max_examples=80)
@given(case=runs_of_transposes(), seed=st.integers(0, 2**32 - 1), kinds=st.text("DT", max_size=4))
def test_any_run_of_transposes(case, seed, kinds) -> None:
    shape, perms = case
    x = np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
    expected, order = x, list(range(len(shape)))
    for perm in perms:
        expected, order = expected.transpose(perm), [order[axis] for axis in perm]
    given_text = text(transposes(*perms, kinds=kinds), f"[{','.join(map(str, shape))}]")
    result = fused(MergeTransposes, given_text)
    moved = [axis for axis in order if shape[axis] != 1]
    stays = [] if order == sorted(order) else ["Reshape"] if moved == sorted(moved) else None
    last = ["Transpose" if kinds[:1] != "D" or len(perms) > 1 else "TransposeD"] if stays is None else stays
    assert result.types() == [*last, "Neg"]
    which = MergeTransposes if result.times[1] else None
    [found] = results(which, graph_of(given_text), [x])
    np.testing.assert_array_equal(found, -expected)


@st.composite
def runs_of_shapes(draw):
    """Shapes of 24 elements."""
    shapes = st.sampled_from(
        [[24], [1, 24], [2, 12], [4, 6], [2, 3, 4], [4, 3, 2], [2, 1, 12], [1, 4, 1, 6], [2, 3, 2, 2]]
    )
    return draw(st.lists(shapes, min_size=2, max_size=6))


@settings(max_examples=60)
@given(shapes=runs_of_shapes(), seed=st.integers(0, 2**32 - 1), open_at=st.integers(0, 3))
def test_any_run_of_reshapes(shapes, seed, open_at) -> None:
    x = np.random.default_rng(seed).standard_normal(shapes[0]).astype(np.float32)
    lines, value = [], "%x"
    for place, shape in enumerate(shapes[1:]):
        dims = [-1 if axis == open_at else dim for axis, dim in enumerate(shape)]
        lines.append(ints(f"s{place}", *dims) + f"%v{place} = Reshape({value}, %s{place})")
        value = f"%v{place}"
    given_text = text("\n  ".join([*lines, f"%z = Neg({value})"]), str(shapes[0]).replace(" ", ""))
    result = fused(MergeReshapes, given_text)
    assert result.types() == (["Neg"] if shapes[0] == shapes[-1] else ["Reshape", "Neg"])
    [found] = results(MergeReshapes if result.times[1] else None, graph_of(given_text), [x])
    np.testing.assert_array_equal(found, -x.reshape(shapes[-1]))


# -- Split and Concat --------------------------------------------------------------------------------------------------
AXIS = "%a = Const {value=i32[]{AT}} -> i32[]@ND\n  "
SPLITS = {
    "Split": AXIS + "%s:2 = Split(%a, %x) {num_split=2}",
    "SplitD": "%s:2 = SplitD(%x) {split_dim=AT, num_split=2}",
    "SplitV": AXIS + ints("n", 1, 3) + "%s:2 = SplitV(%x, %n, %a) {num_split=2}",
    "SplitVD": "%s:2 = SplitVD(%x) {size_splits=[3,1], split_dim=AT, num_split=2}",
}
CONCATS = {
    "Concat": "%c = Const {value=i32[]{TO}} -> i32[]@ND\n  %y = Concat(%c, %s:0, %s:1) {N=2}",
    "ConcatV2": "%c = Const {value=i64[]{TO}} -> i64[]@ND\n  %y = ConcatV2(%s:0, %s:1, %c) {N=2}",
    "ConcatD": "%y = ConcatD(%s:0, %s:1) {concat_dim=TO, N=2}",
}


def joined(split: str, concat: str, at: int = 2, to: int = 2) -> str:
    return SPLITS[split].replace("AT", str(at)) + "\n  " + CONCATS[concat].replace("TO", str(to))


@pytest.mark.parametrize(("at", "to"), [(2, 2), (-1, 2), (2, -1), (-1, -1)])
@pytest.mark.parametrize("concat", CONCATS)
@pytest.mark.parametrize("split", SPLITS)
def test_what_is_parted_and_joined_again_goes(split, concat, at, to, rng) -> None:
    given_text = text(joined(split, concat, at, to))
    result = fused(JoinSplit, given_text)
    assert result.times == (1, 1)
    assert result.types() == [split, "Neg"]
    assert list(result.only("Neg").inputs) == list(result.graph.data_nodes()[0].outputs())
    x = rng.standard_normal((2, 3, 4)).astype(np.float32)
    for which in (JoinSplit, None):
        [found] = results(which, graph_of(given_text), [x])
        np.testing.assert_array_equal(found, -x)


@pytest.mark.parametrize(("at", "to"), [(0, 0), (1, 1), (-3, 0), (1, -2)])
def test_unpacked_and_packed_again(at, to, rng) -> None:
    count = (2, 3, 4)[at]
    parts = ", ".join(f"%s:{part}" for part in range(count))
    given_text = text(
        f"%s:{count} = Unpack(%x) {{num={count}, axis={at}}}\n  %y = Pack({parts}) {{axis={to}, N={count}}}"
    )
    assert fused(JoinSplit, given_text).types() == ["Unpack", "Neg"]
    x = rng.standard_normal((2, 3, 4)).astype(np.float32)
    [found] = results(JoinSplit, graph_of(given_text), [x])
    np.testing.assert_array_equal(found, -x)


def test_the_split_stays_where_others_read_parts() -> None:
    result = fused(JoinSplit, text(joined("SplitD", "ConcatD") + "\n  %w = Abs(%s:1)", result="%z, %w"))
    assert (
        result.text()
        == """graph g(%x: f32[2,3,4]@ND) {
  %s:2 = SplitD(%x) {split_dim=2, num_split=2} -> f32[2,3,2]@ND, f32[2,3,2]@ND
  %w = Abs(%s:1) -> f32[2,3,2]@ND
  %z = Neg(%x) -> f32[2,3,4]@ND
  return %z, %w
}"""
    )


def test_the_split_goes_where_nobody_reads_parts() -> None:
    session = CompileSession(CompileOptions(), Environment())
    graph = graph_of(text(joined("SplitD", "ConcatD")))
    FuseGraph().run(graph, session)
    assert "ConcatD" not in {node.type for node in graph}
    model_text = text(joined("SplitD", "ConcatD"))
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    [found] = run_model(graph_of(model_text), CompileSession(CompileOptions(), Environment()), [x])
    np.testing.assert_array_equal(found, -x)


OTHER_PARTS = "y joins other parts than all of s in their order"
OTHER_AXIS = "y joins along another axis than s splits"


@pytest.mark.parametrize(
    ("lines", "reasons"),
    [
        (joined("SplitD", "ConcatD").replace("%s:0, %s:1", "%s:1, %s:0"), [OTHER_PARTS]),
        (joined("SplitD", "ConcatD").replace("%s:0, %s:1", "%s:0, %s:0"), [OTHER_PARTS]),
        (joined("SplitD", "ConcatD").replace("%s:0, %s:1", "%s:0, %s:1, %s:1").replace("N=2", "N=3"), [OTHER_PARTS]),
        (
            joined("SplitD", "ConcatD").replace("%s:2", "%s:4").replace("num_split=2", "num_split=4"),
            [OTHER_PARTS],
        ),
        (joined("SplitD", "ConcatD", 2, 1), [OTHER_AXIS]),
        (joined("Split", "ConcatV2", -1, 0), [OTHER_AXIS]),
        (joined("SplitD", "ConcatD").replace("%s:0, %s:1", "%s:0, %x"), []),
        (
            joined("SplitD", "ConcatD")
            .replace("%y", "%t:2 = SplitD(%x) {split_dim=2, num_split=2}\n  %y")
            .replace("%s:0, %s:1", "%s:0, %t:1"),
            [],
        ),
        (
            "%s:2 = SplitD(%x) {split_dim=0, num_split=2}\n  %y = Pack(%s:0, %s:1) {axis=0, N=2}",
            ["y (Pack) does not undo s (SplitD)"],
        ),
        (
            "%s:2 = Unpack(%x) {num=2, axis=0}\n  %y = ConcatD(%s:0, %s:1) {concat_dim=0, N=2}",
            ["y (ConcatD) does not undo s (Unpack)"],
        ),
        ("%s:2 = Unpack(%x) {num=2, axis=0}\n  %y = Pack(%s:0, %s:1) {axis=1, N=2}", [OTHER_AXIS]),
        (joined("SplitD", "ConcatD").replace("%s:0, %s:1", "%r, %s:1").replace("%y", "%r = Abs(%s:0)\n  %y"), []),
    ],
    ids=[
        "order",
        "repeated",
        "one more",
        "left out",
        "another axis",
        "another axis, V2",
        "something else",
        "two splits",
        "packed",
        "unpacked",
        "packed along another axis",
        "changed",
    ],
)
def test_parts_that_are_not_joined_as_they_were(lines, reasons) -> None:
    assert left_alone(JoinSplit, text(lines)) == reasons


def test_axes_that_are_computed() -> None:
    split = text(
        "%s:2 = Split(%m, %x) {num_split=2}\n  " + CONCATS["ConcatD"].replace("TO", "2"), more=", %m: i32[]@ND"
    )
    concat = text(SPLITS["SplitD"].replace("AT", "2") + "\n  %y = Concat(%m, %s:0, %s:1) {N=2}", more=", %m: i32[]@ND")
    assert left_alone(JoinSplit, split) == [OTHER_AXIS]
    assert left_alone(JoinSplit, concat) == [OTHER_AXIS]


@pytest.mark.parametrize("at", [0, 1, 2])
def test_open_dims_of_other_axes_do_not_matter(at) -> None:
    shape = ["-1", "-1", "-1"]
    shape[at] = "4"
    given_text = text(joined("SplitD", "ConcatD", at, at), f"[{','.join(shape)}]")
    assert fused(JoinSplit, given_text).types() == ["SplitD", "Neg"]


def test_an_unknown_rank_is_left_alone() -> None:
    for to in (0, 1):
        reasons = left_alone(JoinSplit, text(joined("SplitD", "ConcatD", 0, to), "[-2]"))
        assert reasons == ["the rank of x is not known"]


def test_control_edges_of_a_concat() -> None:
    lines = "%w = Abs(%x)\n  " + joined("SplitD", "ConcatD") + " ctrl(%w)"
    assert left_alone(JoinSplit, text(lines, result="%z, %w")) == ["y has control edges"]


@settings(max_examples=60)
@given(
    rank=st.integers(1, 3),
    data=st.data(),
    seed=st.integers(0, 2**32 - 1),
)
def test_any_parts_in_any_order(rank, data, seed) -> None:
    at, to = data.draw(st.integers(-rank, rank - 1)), data.draw(st.integers(-rank, rank - 1))
    sizes = data.draw(st.lists(st.integers(1, 3), min_size=1, max_size=3))
    shape = [4] * rank
    shape[at] = sum(sizes)
    order = data.draw(st.permutations(range(len(sizes))))
    x = np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
    parts = np.split(x, np.cumsum(sizes)[:-1], at)
    try:
        expected = np.concatenate([parts[part] for part in order], to)
    except ValueError:  # parts of different sizes cannot be joined along another axis
        reject()
    split = f"%s:{len(sizes)} = SplitVD(%x) {{size_splits={sizes}, split_dim={at}, num_split={len(sizes)}}}"
    operands = ", ".join(f"%s:{part}" for part in order)
    given_text = text(
        f"{split}\n  %y = ConcatD({operands}) {{concat_dim={to}, N={len(sizes)}}}", str(shape).replace(" ", "")
    )
    result = fused(JoinSplit, given_text)
    assert (result.times[1] == 1) == (list(order) == sorted(order) and at % rank == to % rank)
    [found] = results(JoinSplit if result.times[1] else None, graph_of(given_text), [x])
    np.testing.assert_array_equal(found, -expected)
