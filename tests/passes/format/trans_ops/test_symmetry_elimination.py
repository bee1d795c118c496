"""Pairs of trans-ops that undo each other."""

from __future__ import annotations

import pytest

from passes.format.trans_ops.symmetry_elimination import TransOpSymmetryElimination
from tests.passes.format.trans_ops.notation import BLOCKS, IMAGE, LAST, back, cast, trans, transpose
from tests.passes.format.trans_ops.rewritten import after, graph_of, run, shown

X = f"%x: f32{IMAGE}"
GONE = ["y = Relu(x) -> f32[1,32,4,4]@NCHW", "NetOutput(y)"]
RELU = f"%y = Relu(%b) -> f32{IMAGE}"


@pytest.mark.parametrize(
    "pair",
    [
        (trans("%x", f"f32{BLOCKS}"), back("%a", f"f32{IMAGE}")),
        (cast("%x", f"f16{IMAGE}"), cast("%a", f"f32{IMAGE}")),
        (transpose("%x", "0,2,3,1", f"f32{LAST}"), transpose("%a", "0,3,1,2", f"f32{IMAGE}")),
        ("Squeeze(%x) {axis=[0]} -> f32[32,4,4]@ND", f"Unsqueeze(%a) {{axes=[0]}} -> f32{IMAGE}"),
        ("Unsqueeze(%x) {axes=[0]} -> f32[1,1,32,4,4]@ND", f"Squeeze(%a) {{axis=[1]}} -> f32{IMAGE}"),
    ],
    ids=["TransData", "Cast", "Transpose", "Squeeze", "Unsqueeze"],
)
def test_they_go(pair: tuple[str, str]) -> None:
    assert after(TransOpSymmetryElimination(), f"%a = {pair[0]}", f"%b = {pair[1]}", RELU, params=X) == GONE


def test_reshapes_go_with_their_constants() -> None:
    nodes = ["%s = Const {value=i64[2]{32,16}} -> i64[2]@ND", "%t = Const {value=i64[4]{1,32,4,4}} -> i64[4]@ND"]
    nodes += ["%a = Reshape(%x, %s) -> f32[32,16]@ND", f"%b = Reshape(%a, %t) -> f32{IMAGE}", RELU]
    graph = graph_of(*nodes, params=X)
    assert run(TransOpSymmetryElimination(), graph)
    assert shown(graph) == GONE
    assert not graph.nodes_of_type("Const")


def test_pairs_around_pairs_go() -> None:
    nodes = [f"%p = {cast('%x', f'f16{IMAGE}')}", f"%a = {trans('%p', f'f16{BLOCKS}')}"]
    nodes += [f"%q = {back('%a', f'f16{IMAGE}')}", f"%b = {cast('%q', f'f32{IMAGE}')}", RELU]
    assert after(TransOpSymmetryElimination(), *nodes, params=X) == GONE


def test_other_readers_keep_the_first() -> None:
    nodes = [f"%a = {trans('%x', f'f32{BLOCKS}')}", f"%b = {back('%a', f'f32{IMAGE}')}", RELU]
    assert after(TransOpSymmetryElimination(), *nodes, f"%z = Neg(%a) -> f32{BLOCKS}", params=X, results="%y, %z") == [
        "a = TransData(x) -> f32[1,2,4,4,16]@NC1HWC0",
        "y = Relu(x) -> f32[1,32,4,4]@NCHW",
        "z = Neg(a) -> f32[1,2,4,4,16]@NC1HWC0",
        "NetOutput(y, z)",
    ]


@pytest.mark.parametrize("is_first_kept", [False, True])
def test_who_waited_still_waits(is_first_kept: bool) -> None:
    nodes = [f"%w = Abs(%x) -> f32{IMAGE}", f"%v = Exp(%x) -> f32{IMAGE}"]
    nodes += [f"%a = {trans('%x', f'f32{BLOCKS}', ctrl='%w')}"]
    nodes += [f'%b = TransData(%a) {{src_format="NC1HWC0", dst_format="NCHW"}} ctrl(%v) -> f32{IMAGE}', RELU]
    nodes += [f"%z = Neg(%a) -> f32{BLOCKS}"] * is_first_kept
    found = after(TransOpSymmetryElimination(), *nodes, params=X, results="%y" + ", %z" * is_first_kept)
    [line] = [line for line in found if line.startswith("y = ")]
    assert set(line.partition(" after ")[2].split(", ")) == {"v", "w"}


def test_a_reshape_of_the_layout_between_them() -> None:
    """Spec case 47: both TransDatas go. What reads them sees another shape than what is read, so a Reshape stays."""
    nodes = [
        "%s = Const {value=i64[5]{8,2,100,190,16}} -> i64[5]@ND",
        f"%a = {trans('%x', 'f32[1,256,100,190]@NCHW | [1,16,100,190,16]@NC1HWC0')}",
        "%r = Reshape(%a, %s) -> f32[8,32,100,190]@NCHW | [8,2,100,190,16]@NC1HWC0",
        f"%b = {back('%r', 'f32[8,32,100,190]@NCHW')}",
        "%y = Relu(%b) -> f32[8,32,100,190]@NCHW",
    ]
    graph = graph_of(*nodes, params="%x: f32[1,256,100,190]@NCHW")
    assert run(TransOpSymmetryElimination(), graph)
    [reshape] = graph.nodes_of_type("Reshape")
    assert not graph.nodes_of_type("TransData")
    assert sorted(shown(graph)) == [
        "NetOutput(y)",
        "b_Reshape = Reshape(x, b_dims) -> f32[8,32,100,190]@NCHW",
        "y = Relu(b_Reshape) -> f32[8,32,100,190]@NCHW",
    ]
    assert reshape.input(1).node.attrs["value"].array.tolist() == [8, 32, 100, 190]


@pytest.mark.parametrize(
    ("start", "blocks", "moved", "end"),
    [
        # C is padded: other elements would lie side by side
        ("[2,24,2,2]", "[2,2,2,2,16]", "[4,1,2,2,16]", "[4,12,2,2]"),
        # the planes are other ones
        ("[2,16,2,2]", "[2,1,2,2,16]", "[4,1,1,2,16]", "[4,16,1,2]"),
    ],
)
def test_a_reshape_that_moves_more_than_whole_blocks_is_left_alone(
    start: str, blocks: str, moved: str, end: str
) -> None:
    nodes = [
        f"%s = Const {{value=i64[5]{{{moved[1:-1]}}}}} -> i64[5]@ND",
        f"%a = {trans('%x', f'f32{start}@NCHW | {blocks}@NC1HWC0')}",
        f"%r = Reshape(%a, %s) -> f32{end}@NCHW | {moved}@NC1HWC0",
        f"%b = {back('%r', f'f32{end}@NCHW')}",
    ]
    assert len(after(TransOpSymmetryElimination(), *nodes, params=f"%x: f32{start}@NCHW")) == 4


@pytest.mark.parametrize(
    ("pair", "start"),
    [
        ((cast("%x", f"i32{IMAGE}"), cast("%a", f"f32{IMAGE}")), f"f32{IMAGE}"),
        ((cast("%x", f"f16{IMAGE}", of_model=True), cast("%a", f"f32{IMAGE}")), f"f32{IMAGE}"),
        ((cast("%x", f"f16{IMAGE}"), cast("%a", f"bf16{IMAGE}")), f"f32{IMAGE}"),
        ((transpose("%x", "0,2,3,1", f"f32{LAST}"), transpose("%a", "0,2,3,1", "f32[1,4,32,4]@ND")), f"f32{IMAGE}"),
        # the same permutation twice, over equal dims: not an inverse
        ((transpose("%x", "1,2,0", "f32[2,2,2]@ND"), transpose("%a", "1,2,0", "f32[2,2,2]@ND")), "f32[2,2,2]@ND"),
        # back to other axes
        (
            (
                trans("%x", "f32[1,16,16,16]@NCHW | [1,1,16,16,16]@NC1HWC0"),
                trans("%a", "f32[1,16,16,16]@NCHW | [1,16,16,16]@NHWC", "NC1HWC0 NHWC"),
            ),
            "f32[1,16,16,16]@NCHW",
        ),
        (("Squeeze(%x) {axis=[0]} -> f32[2,-1]@ND", "Unsqueeze(%a) {axes=[2]} -> f32[2,-1,1]@ND"), "f32[1,2,-1]@ND"),
    ],
    ids=["loss", "rounding of the model", "another type", "another order", "twice", "other axes", "other dims"],
)
def test_left_alone(pair: tuple[str, str], start: str) -> None:
    assert len(after(TransOpSymmetryElimination(), f"%a = {pair[0]}", f"%b = {pair[1]}", params=f"%x: {start}")) == 3


def test_a_layout_of_other_axes_is_left_alone() -> None:
    """The bytes are the same, but what reads NC1HWC0 of NHWC takes axis 3 for the channels."""
    nodes = ['%a = TransData(%x) {src_format="NC1HWC0", dst_format="NCHW"} -> f32[1,32,4,4]@NCHW']
    nodes += ['%b = TransData(%a) {src_format="NCHW", dst_format="NC1HWC0"} ']
    nodes[-1] += f"-> f32{LAST} | [1,2,4,4,16]@NC1HWC0"
    assert len(after(TransOpSymmetryElimination(), *nodes, params=f"%x: f32{BLOCKS}")) == 3


def test_dims_that_are_not_known_to_be_equal_are_left_alone() -> None:
    nodes = ["%s = Const {value=i64[2]{-1,4}} -> i64[2]@ND", "%t = Const {value=i64[2]{-1,2}} -> i64[2]@ND"]
    nodes += ["%a = Reshape(%x, %s) -> f32[-1,4]@ND", "%b = Reshape(%a, %t) -> f32[-1,2]@ND"]
    assert len(after(TransOpSymmetryElimination(), *nodes, params="%x: f32[-1,2]@ND")) == 3


def test_a_type_that_differs_between_two_trans_datas_is_left_alone() -> None:
    """Spec case 48."""
    nodes = [f"%a = {back('%x', f'f32{IMAGE}')}", f"%b = {trans('%a', f'f16{BLOCKS}')}"]
    assert len(after(TransOpSymmetryElimination(), *nodes, params=f"%x: f16{BLOCKS}")) == 3
