"""Transposes that move nothing, or into a layout that could be made without them."""

from __future__ import annotations

import numpy as np
import pytest

from passes.format.trans_ops.dim1_transpose_to_squeeze import Dim1TransposeToSqueeze
from passes.format.trans_ops.transpose_trans_data import TransposeTransData
from passes.format.trans_ops.unchanged_transpose_remove import UnchangedTransposeRemove
from tests.passes.format.trans_ops.notation import IMAGE, LAST, trans, transpose
from tests.passes.format.trans_ops.rewritten import after, graph_of, run, shown

LAST_BLOCKS = f"{LAST} | [1,2,4,4,16]@NC1HWC0"


def moved(dims: str, perm: str, kind: str = "D") -> list[str]:
    """A Transpose of a tensor of these dims, its permutation an attribute (D) or a constant (C)."""
    shape, order = ([int(part) for part in text.split(",")] for text in (dims, perm))
    result = [shape[axis] for axis in order] if len(order) == len(shape) else shape
    desc = f"f32{str(result).replace(' ', '')}@ND"
    if kind == "D":
        return [f"%y = {transpose('%x', perm, desc)}"]
    return [
        f"%p = Const {{value=i64[{len(order)}]{{{perm}}}}} -> i64[{len(order)}]@ND",
        f"%y = Transpose(%x, %p) -> {desc}",
    ]


# -- unchanged-transpose-remove ----------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", ["C", "D"])
@pytest.mark.parametrize(
    ("dims", "perm", "is_kept"),
    [
        # spec case 50
        ("1,1,2,2,8", "1,0,2,3,4", False),
        ("3,4,2,2,8", "1,0,2,3,4", True),
        ("1,1,2,2,8", "1,0,2,3,4,5", True),
        ("2,3", "0,1", False),
        ("2,3", "-2,-1", False),
        ("1,3", "1,0", True),
        ("1,-1,1", "2,1,0", False),
        ("-1,-1", "1,0", True),
    ],
)
def test_a_transpose_that_changes_nothing(dims: str, perm: str, is_kept: bool, kind: str) -> None:
    graph = graph_of(*moved(dims, perm, kind), params=f"%x: f32[{dims}]@ND")
    assert run(UnchangedTransposeRemove(), graph) is not is_kept
    assert bool(graph.nodes_of_type("Transpose", "TransposeD")) is is_kept
    assert bool(graph.nodes_of_type("Const")) is (is_kept and kind == "C")


def test_a_permutation_that_is_computed_is_left_alone() -> None:
    nodes = ["%y = Transpose(%x, %p) -> f32[1,1]@ND"]
    assert len(after(UnchangedTransposeRemove(), *nodes, params="%x: f32[1,1]@ND, %p: i64[2]@ND")) == 2


def test_another_meaning_of_the_axes_is_left_alone() -> None:
    nodes = [f"%y = {transpose('%x', '0,2,3,1', 'f32[1,1,1,1]@NHWC')}"]
    assert len(after(UnchangedTransposeRemove(), *nodes, params="%x: f32[1,1,1,1]@NCHW")) == 2


# -- dim1-transpose-to-squeeze -----------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", ["C", "D"])
def test_axes_of_one_element_are_taken_out_and_put_in_elsewhere(kind: str) -> None:
    graph = graph_of(*moved("1,3,1,5", "1,0,3,2", kind), params="%x: f32[1,3,1,5]@ND")
    assert run(Dim1TransposeToSqueeze(), graph)
    assert sorted(shown(graph)) == [
        "NetOutput(y_Unsqueeze)",
        "y_Squeeze = Squeeze(x) -> f32[3,5]@ND",
        "y_Unsqueeze = Unsqueeze(y_Squeeze) -> f32[3,1,5,1]@ND",
    ]
    [squeeze], [unsqueeze] = graph.nodes_of_type("Squeeze"), graph.nodes_of_type("Unsqueeze")
    assert (squeeze.attrs["axis"], unsqueeze.attrs["axes"]) == ([0, 2], [1, 3])
    names = [node.attrs["_datadump_original_op_names"] for node in (squeeze, unsqueeze)]
    assert names == [[], ["y"]]  # what the Squeeze makes is no tensor of the model


@pytest.mark.parametrize("seed", range(40))
def test_the_numbers_stay(seed: int) -> None:
    """Against numpy: what Squeeze and Unsqueeze make of all elements is what the Transpose makes."""
    random = np.random.default_rng(seed)
    dims = random.choice([1, 1, 2, 3], size=random.integers(1, 6))
    perm = random.permutation(len(dims))
    x = np.arange(dims.prod()).reshape(dims)
    graph = graph_of(
        *moved(",".join(map(str, dims)), ",".join(map(str, perm))), params=f"%x: f32[{','.join(map(str, dims))}]@ND"
    )
    if not run(Dim1TransposeToSqueeze(), graph):
        assert 1 not in dims or [a for a in perm if dims[a] > 1] != sorted(a for a in perm if dims[a] > 1)
        return
    [squeeze], [unsqueeze] = graph.nodes_of_type("Squeeze"), graph.nodes_of_type("Unsqueeze")
    y = np.expand_dims(np.squeeze(x, tuple(squeeze.attrs["axis"])), tuple(unsqueeze.attrs["axes"]))
    np.testing.assert_array_equal(y, x.transpose(perm))


@pytest.mark.parametrize(
    ("dims", "perm"), [("1,3,5", "0,2,1"), ("3,5", "0,1"), ("1,-1,-1", "0,2,1"), ("-1,-1", "1,0"), ("1,3", "1,0,2")]
)
def test_other_transposes_are_left_alone(dims: str, perm: str) -> None:
    assert len(after(Dim1TransposeToSqueeze(), *moved(dims, perm), params=f"%x: f32[{dims}]@ND")) == 2


def test_unknown_dims_that_keep_their_order_do_not_matter() -> None:
    assert len(after(Dim1TransposeToSqueeze(), *moved("1,-1,-1", "1,2,0"), params="%x: f32[1,-1,-1]@ND")) == 3


def test_a_transpose_of_the_compiler_is_left_alone() -> None:
    nodes = ["%y = TransposeD(%x) {perm=[1,0], _inserted_by_fe=1} -> f32[3,1]@ND"]
    assert len(after(Dim1TransposeToSqueeze(), *nodes, params="%x: f32[1,3]@ND")) == 2


def test_who_waited_still_waits() -> None:
    nodes = ["%w = Exp(%x) -> f32[1,3]@ND", "%y = TransposeD(%x) {perm=[1,0]} ctrl(%w) -> f32[3,1]@ND"]
    nodes += ["%z = Neg(%x) ctrl(%y) -> f32[1,3]@ND"]
    found = after(Dim1TransposeToSqueeze(), *nodes, params="%x: f32[1,3]@ND", results="%y, %z, %w")
    assert "y_Squeeze = Squeeze(x) -> f32[3]@ND after w" in found
    [line] = [line for line in found if line.startswith("z = ")]
    assert "y_Unsqueeze" in line.partition(" after ")[2]


# -- transpose-trans-data ----------------------------------------------------------------------------------------------
def test_the_trans_data_reads_what_the_transpose_reads() -> None:
    nodes = [
        f"%t = {transpose('%x', '0,2,3,1', f'f32{LAST}')}",
        f"%d = {trans('%t', f'f32{LAST_BLOCKS}', 'NHWC NC1HWC0')}",
    ]
    graph = graph_of(*nodes, f"%y = Relu(%d) -> f32{LAST_BLOCKS}", params=f"%x: f32{IMAGE}")
    assert run(TransposeTransData(), graph)
    assert shown(graph) == [
        "d = TransData(x) -> f32[1,2,4,4,16]@NC1HWC0",
        "y = Relu(d) -> f32[1,2,4,4,16]@NC1HWC0",
        "NetOutput(y)",
    ]
    [trans_data] = graph.nodes_of_type("TransData")
    assert (trans_data.attrs["src_format"], trans_data.output().desc.origin_shape) == ("NCHW", [1, 4, 4, 32])


def test_other_readers_keep_the_transpose() -> None:
    nodes = [f"%w = Exp(%x) -> f32{IMAGE}", f"%t = {transpose('%x', '0,2,3,1', f'f32{LAST}', '%w')}"]
    nodes += [f"%d = {trans('%t', f'f32{LAST_BLOCKS}', 'NHWC NC1HWC0')}"]
    assert after(TransposeTransData(), *nodes, params=f"%x: f32{IMAGE}", results="%d, %t, %w") == [
        "w = Exp(x) -> f32[1,32,4,4]@NCHW",
        "t = TransposeD(x) -> f32[1,4,4,32]@NHWC after w",
        "d = TransData(x) -> f32[1,2,4,4,16]@NC1HWC0 after w",
        "NetOutput(d, t, w)",
    ]


@pytest.mark.parametrize(
    ("start", "perm", "middle", "end", "formats"),
    [
        # the dims move otherwise than the names of the axes
        ("[1,4,4,32]@NCHW", "0,2,1,3", LAST, LAST_BLOCKS, "NHWC NC1HWC0"),
        ("[1,32,4,4]@ND", "0,2,3,1", LAST, LAST_BLOCKS, "NHWC NC1HWC0"),
        ("[1,32,4,4]@NCHW", "0,2,3,1", "[1,4,4,32]@ND", "[1,4,4,32]@ND | [1,4,2,1,16,16]@FRACTAL_NZ", "ND FRACTAL_NZ"),
        ("[-1,32,4,4]@NCHW", "0,2,3,1", "[-1,4,4,32]@NHWC", "[-1,4,4,32]@NHWC | [-1,2,4,4,16]@NC1HWC0", "NHWC NC1HWC0"),
    ],
    ids=["another permutation", "no names", "to ND", "unknown dims"],
)
def test_left_alone(start: str, perm: str, middle: str, end: str, formats: str) -> None:
    nodes = [f"%t = {transpose('%x', perm, f'f32{middle}')}", f"%d = {trans('%t', f'f32{end}', formats)}"]
    assert len(after(TransposeTransData(), *nodes, params=f"%x: f32{start}")) == 3
