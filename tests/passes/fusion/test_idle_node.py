"""Operators that give out their input as it is."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from ge.graph.types import data_type_by_short_name, numpy_dtype
from passes.fusion.drop_idle_node import DropIdleNode
from tests.passes.fusion.fused import fused, graph_of, left_alone, results


def ints(name: str, *values: int) -> str:
    return f"%{name} = Const {{value=i64[{len(values)}]{{{','.join(map(str, values))}}}}} -> i64[{len(values)}]@ND\n  "


def number(name: str, value: int) -> str:
    return f"%{name} = Const {{value=i32[]{{{value}}}}} -> i32[]@ND\n  "


def text(lines: str, shape: str = "[2,3]", result: str = "%z", dtype: str = "f32", more: str = "") -> str:
    return f"graph g(%x: {dtype}{shape}@ND{more}) {{\n  {lines}\n  %z = Neg(%y)\n  return {result}\n}}"


PAIRS = "%n = Const {value=i32[2,2]{0, 0, 0, 0}} -> i32[2,2]@ND\n  "
FILL = "%f = Const {value=f32[]{7.0}} -> f32[]@ND\n  "
IDLE = {
    "ConcatD": "%y = ConcatD(%x) {concat_dim=1, N=1}",
    "Concat": number("d", 0) + "%y = Concat(%d, %x) {N=1}",
    "ConcatV2": number("d", -1) + "%y = ConcatV2(%x, %d) {N=1}",
    "AddN": "%y = AddN(%x) {N=1}",
    "AccumulateNV2": "%y = AccumulateNV2(%x) {N=1}",
    "Split": number("d", 1) + "%y:1 = Split(%d, %x) {num_split=1}",
    "SplitD": "%y:1 = SplitD(%x) {split_dim=0, num_split=1}",
    "SplitV": ints("s", 3) + number("d", 1) + "%y:1 = SplitV(%x, %s, %d) {num_split=1}",
    "SplitV, the rest": ints("s", -1) + number("d", 0) + "%y:1 = SplitV(%x, %s, %d) {num_split=1}",
    "SplitVD": "%y:1 = SplitVD(%x) {size_splits=[2], split_dim=0, num_split=1}",
    "Slice": ints("o", 0, 0) + ints("s", 2, 3) + "%y = Slice(%x, %o, %s)",
    "Slice to the end": ints("o", 0, 0) + ints("s", -1, 3) + "%y = Slice(%x, %o, %s)",
    "StridedSlice": ints("b", 0, 0) + ints("e", 2, 3) + ints("s", 1, 1) + "%y = StridedSlice(%x, %b, %e, %s)",
    "StridedSlice beyond": ints("b", -9, 0)
    + ints("e", 9, 2**40)
    + ints("s", 1, 1)
    + "%y = StridedSlice(%x, %b, %e, %s)",
    "StridedSlice masked": ints("b", 1, 1)
    + ints("e", 1, 1)
    + ints("s", 1, 1)
    + "%y = StridedSlice(%x, %b, %e, %s) {begin_mask=3, end_mask=3}",
    "StridedSlice, ellipsis": ints("b", 0)
    + ints("e", 0)
    + ints("s", 1)
    + "%y = StridedSlice(%x, %b, %e, %s) {ellipsis_mask=1}",
    "StridedSliceV2": ints("b", 0) + ints("e", 3) + ints("a", 1) + "%y = StridedSliceV2(%x, %b, %e, %a)",
    "StridedSliceV2 in steps": ints("b", 0)
    + ints("e", 3)
    + ints("a", -1)
    + ints("s", 1)
    + "%y = StridedSliceV2(%x, %b, %e, %a, %s)",
    "Pad": PAIRS + "%y = Pad(%x, %n)",
    "PadD": "%y = PadD(%x) {paddings=[[0,0],[0,0]]}",
    "PadV2": PAIRS + FILL + "%y = PadV2(%x, %n, %f)",
    "PadV3": ints("n", 0, 0, 0, 0) + "%y = PadV3(%x, %n) {paddings_contiguous=false}",
    "PadV3 of an axis": ints("n", 0, 0) + "%y = PadV3(%x, %n) {_x_axes=[1]}",
    "PadV3 reflect": ints("n", 0, 0, 0, 0) + '%y = PadV3(%x, %n) {mode="reflect"}',
    "MirrorPad": PAIRS + '%y = MirrorPad(%x, %n) {mode="SYMMETRIC"}',
    "Tile": ints("m", 1, 1) + "%y = Tile(%x, %m)",
    "TileD": "%y = TileD(%x) {multiples=[1,1]}",
    "Expand": ints("s", 2, 3) + "%y = Expand(%x, %s)",
    "Expand of some axes": ints("s", 3) + "%y = Expand(%x, %s)",
    "Expand by ones": ints("s", 1, 1) + "%y = Expand(%x, %s)",
    "BroadcastTo": ints("s", 2, 3) + "%y = BroadcastTo(%x, %s)",
}


@pytest.mark.parametrize("dtype", ["f32", "i64"])
@pytest.mark.parametrize("name", IDLE)
def test_what_does_nothing_goes(name, dtype, rng) -> None:
    given_text = text(IDLE[name].replace("f32", dtype).replace("{7.0}", "{7}"), dtype=dtype)
    result = fused(DropIdleNode, given_text)
    assert result.times == (1, 1)
    assert result.text() == f"graph g(%x: {dtype}[2,3]@ND) {{\n  %z = Neg(%x) -> {dtype}[2,3]@ND\n  return %z\n}}"
    x = (rng.standard_normal((2, 3)) * 100).astype(numpy_dtype(data_type_by_short_name(dtype)))
    for which in (DropIdleNode, None):
        [found] = results(which, graph_of(given_text), [x])
        np.testing.assert_array_equal(found, -x)


@pytest.mark.parametrize(
    "lines",
    [
        "%y = ConcatD(%x, %x) {concat_dim=1, N=2}",
        "%y = AddN(%x, %x) {N=2}",
        "%y:3 = SplitD(%x) {split_dim=1, num_split=3}",
        ints("o", 0, 1) + ints("s", 2, 2) + "%y = Slice(%x, %o, %s)",
        ints("b", 0, 1) + ints("e", 2, 3) + ints("s", 1, 1) + "%y = StridedSlice(%x, %b, %e, %s)",
        ints("b", 0, -1) + ints("e", 2, -9) + ints("s", 1, -1) + "%y = StridedSlice(%x, %b, %e, %s)",
        ints("b", -1) + ints("e", -9) + ints("a", 0) + ints("s", -1) + "%y = StridedSliceV2(%x, %b, %e, %a, %s)",
        PAIRS.replace("0, 0}", "1, 0}") + "%y = Pad(%x, %n)",
        PAIRS.replace("0, 0}", "1, -1}") + "%y = Pad(%x, %n)",
        PAIRS.replace("0, 0}", "-1, 1}") + '%y = MirrorPad(%x, %n) {mode="SYMMETRIC"}',
        "%y = PadD(%x) {paddings=[[-1,1],[0,0]]}",
        ints("m", 1, 2) + "%y = Tile(%x, %m)",
        ints("s", 4, 2, 3) + "%y = Expand(%x, %s)",
        ints("s", 1, 2, 3) + "%y = BroadcastTo(%x, %s)",
    ],
    ids=[
        "two joined",
        "two added",
        "three parts",
        "a slice",
        "a region",
        "reversed",
        "reversed along an axis",
        "padded",
        "moved",
        "moved and mirrored",
        "moved by PadD",
        "repeated",
        "expanded",
        "expanded by an axis",
    ],
)
def test_what_does_something_stays(lines) -> None:
    assert left_alone(DropIdleNode, text(lines)) == []


def test_steps_and_new_axes_that_leave_the_shape() -> None:
    """Of one row, a step of 2 takes all; a new axis in place of one that goes has the old size."""
    steps = ints("b", 0, 0) + ints("e", 1, 3) + ints("s", 2, 1) + "%y = StridedSlice(%x, %b, %e, %s)"
    assert left_alone(DropIdleNode, text(steps, "[1,3]")) == []
    masks = "{new_axis_mask=1, shrink_axis_mask=2}"
    replaced = (
        ints("b", 0, 0, 0) + ints("e", 1, 1, 3) + ints("s", 1, 1, 1) + f"%y = StridedSlice(%x, %b, %e, %s) {masks}"
    )
    assert left_alone(DropIdleNode, text(replaced, "[1,3]")) == []


@pytest.mark.parametrize(
    ("lines", "more"),
    [
        ("%y = Tile(%x, %m)", ", %m: i64[2]@ND"),
        ("%y = Pad(%x, %m)", ", %m: i64[2,2]@ND"),
        ("%y = Expand(%x, %m)", ", %m: i64[2]@ND"),
        ("%y = BroadcastTo(%x, %m)", ", %m: i64[2]@ND"),
        (ints("o", 0, 0) + "%y = Slice(%x, %o, %m)", ", %m: i64[2]@ND"),
        (ints("b", 0, 0) + ints("e", 2, 3) + "%y = StridedSlice(%x, %b, %e, %m)", ", %m: i64[2]@ND"),
    ],
    ids=["Tile", "Pad", "Expand", "BroadcastTo", "Slice", "steps"],
)
def test_what_is_computed_stays(lines, more) -> None:
    assert left_alone(DropIdleNode, text(lines, "[1,3]", more=more)) == []


def test_where_no_axis_can_grow_it_does_not_matter_to_which_shape_is_expanded() -> None:
    assert fused(DropIdleNode, text("%y = Expand(%x, %m)", more=", %m: i64[2]@ND")).types() == ["Neg"]


@pytest.mark.parametrize(
    ("lines", "shape", "goes"),
    [
        ("%y = ConcatD(%x) {concat_dim=1, N=1}", "[-1,3]", True),
        ("%y = PadD(%x) {paddings=[[0,0],[0,0]]}", "[-1,-1]", True),
        ("%y = TileD(%x) {multiples=[1,1]}", "[-1,3]", True),
        (ints("o", 0, 0) + ints("s", -1, 3) + "%y = Slice(%x, %o, %s)", "[-1,3]", True),
        (ints("o", 1, 0) + ints("s", -1, 3) + "%y = Slice(%x, %o, %s)", "[-1,3]", False),
        (ints("o", 0, 0) + ints("s", 2, 3) + "%y = Slice(%x, %o, %s)", "[-1,3]", False),
        (ints("s", 2, 3) + "%y = Expand(%x, %s)", "[-1,3]", False),
        (ints("s", 1, 3) + "%y = Expand(%x, %s)", "[-1,3]", True),
        ("%y = TileD(%x) {multiples=[2,1]}", "[-1,3]", False),
        ("%y = AddN(%x) {N=1}", "[-2]", False),
    ],
)
def test_sizes_may_be_unknown(lines, shape, goes) -> None:
    if goes:
        assert fused(DropIdleNode, text(lines, shape)).types() == ["Neg"]
    else:
        assert left_alone(DropIdleNode, text(lines, shape)) == []


def test_constants_are_folded_elsewhere() -> None:
    given_text = text(FILL + "%c = AddN(%f) {N=1}\n  %y = Mul(%c, %x)")
    assert left_alone(DropIdleNode, given_text) == []


def test_runs_go_whole_and_results_are_given_out() -> None:
    lines = "%p = AddN(%x) {N=1}\n  %q = ConcatD(%p) {concat_dim=0, N=1}\n  %y = TileD(%q) {multiples=[1,1]}"
    result = fused(DropIdleNode, text(lines, result="%y, %q, %z"))
    assert result.types() == ["Neg"]
    assert [out.node.name for out in result.graph.outputs] == ["x", "x", "z"]
    assert result.times == (3, 3)


def test_control_edges_are_left_alone() -> None:
    given_text = text("%w = Abs(%x)\n  %y = AddN(%x) {N=1} ctrl(%w)", result="%z, %w")
    assert left_alone(DropIdleNode, given_text) == ["y has control edges"]


# -- laws --------------------------------------------------------------------------------------------------------------
positions = st.integers(-6, 6)


@settings(max_examples=150)
@given(
    begin=positions,
    end=st.one_of(positions, st.just(2**31 - 1), st.just(2**63 - 1), st.just(-(2**31))),
    step=st.sampled_from([1, 1, 1, 2, -1]),
    masks=st.tuples(st.integers(0, 1), st.integers(0, 1)),
    is_known=st.booleans(),
)
def test_a_region_goes_only_if_it_is_everything(begin, end, step, masks, is_known) -> None:
    attrs = f"{{begin_mask={masks[0]}, end_mask={masks[1]}}}"
    lines = ints("b", begin) + ints("e", end) + ints("s", step) + f"%y = StridedSlice(%x, %b, %e, %s) {attrs}"
    result = fused(DropIdleNode, text(lines, "[4]" if is_known else "[-1]"))
    index = slice(None if masks[0] else begin, None if masks[1] else end, step)
    sizes = [4] if is_known else range(12)
    is_everything = all(np.array_equal(np.arange(size)[index], np.arange(size)) for size in sizes)
    assert (result.types() == ["Neg"]) == is_everything


@settings(max_examples=60)
@given(offset=st.integers(0, 3), length=st.integers(-1, 4), is_known=st.booleans(), others=st.sampled_from([(), (3,)]))
def test_a_slice_goes_only_if_it_is_everything(offset, length, is_known, others) -> None:
    zeros = [0] * len(others)
    assume(offset + max(length, 0) <= 4)
    lines = ints("o", offset, *zeros) + ints("s", length, *others) + "%y = Slice(%x, %o, %s)"
    shape = [4 if is_known else -1, *others]
    result = fused(DropIdleNode, text(lines, f"[{','.join(map(str, shape))}]"))
    is_everything = offset == 0 and (length == -1 or (is_known and length == 4))
    assert (result.types() == ["Neg"]) == is_everything
