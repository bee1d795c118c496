"""TransData move the narrower of the two types beside a Cast."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import atc
from passes.format.trans_ops.narrow_trans_data import NarrowTransData
from simulator import InferSession
from tests.passes.format.trans_ops.notation import BLOCKS, IMAGE, back, cast, trans
from tests.passes.format.trans_ops.rewritten import after, graph_of, run

PACKED = "[1,2,4,4,16]@NC1HWC0"


@pytest.mark.parametrize("narrow", ["f16", "bf16"])
def test_a_cast_that_narrows_comes_first(narrow: str) -> None:
    nodes = [f"%t = {trans('%x', f'f32{BLOCKS}')}", f"%c = {cast('%t', narrow + BLOCKS)}"]
    found = after(NarrowTransData(), *nodes, f"%y = Relu(%c) -> {narrow}{BLOCKS}", params=f"%x: f32{IMAGE}")
    assert sorted(found) == [
        "NetOutput(y)",
        f"c = Cast(x) -> {narrow}{IMAGE}",
        f"t = TransData(c) -> {narrow}{PACKED}",
        f"y = Relu(t) -> {narrow}{PACKED}",
    ]


@pytest.mark.parametrize("narrow", ["f16", "bf16"])
def test_a_cast_that_widens_comes_last(narrow: str) -> None:
    """Whoever reads what the two made together reads it of the Cast now, results too."""
    nodes = [f"%c = {cast('%x', f'f32{BLOCKS}')}", f"%t = {back('%c', f'f32{IMAGE}')}", f"%y = Relu(%t) -> f32{IMAGE}"]
    found = after(NarrowTransData(), *nodes, params=f"%x: {narrow}{BLOCKS}", results="%y, %t")
    assert sorted(found) == [
        "NetOutput(y, c)",
        f"c = Cast(t) -> f32{IMAGE}",
        f"t = TransData(x) -> {narrow}{IMAGE}",
        f"y = Relu(c) -> f32{IMAGE}",
    ]


NARROWING = [f"%t = {trans('%x', f'f32{BLOCKS}')}", f"%c = {cast('%t', f'f16{BLOCKS}')}"]


@pytest.mark.parametrize(
    ("nodes", "results"),
    [
        (NARROWING, "%c, %t"),
        ([NARROWING[0], f"%c = {cast('%t', f'f16{BLOCKS}', of_model=True)}"], "%c"),
        ([f"%c = {cast('%x', f'f16{IMAGE}')}", f"%t = {trans('%c', f'f16{BLOCKS}')}"], "%t"),
        ([NARROWING[0], f"%c = {cast('%t', f'f64{BLOCKS}')}"], "%c"),
        ([NARROWING[0], f"%a = Abs(%x) -> f32{IMAGE}", f"%c = {cast('%t', f'f16{BLOCKS}', ctrl='%a')}"], "%c, %a"),
    ],
    ids=["another reader", "of the model", "done", "widens", "waits"],
)
def test_what_stays(nodes: list[str], results: str) -> None:
    graph = graph_of(*nodes, params=f"%x: f32{IMAGE}", results=results)
    assert not run(NarrowTransData(), graph)


@pytest.mark.parametrize("channels", [3, 20])
def test_half_precision_moves_half_the_bytes(channels: int) -> None:
    """A model with float32 at both ends: as many TransData as in float32, with half of its bytes."""
    rng = np.random.default_rng(channels)
    w = rng.normal(size=(33, channels, 3, 3), scale=0.1).astype(np.float32)
    x = rng.normal(size=(2, channels, 9, 7)).astype(np.float32)
    graph = helper.make_graph(
        [helper.make_node("Conv", ["x", "w"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 33, 7, 5])],
        [numpy_helper.from_array(w, "w")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    moved = {}
    for precision in ("origin", "fp16"):
        made = atc.compile_model(model, soc_version="Ascend310P3", precision_mode_v2=precision, format_refinement="1")
        moved[precision] = made.graph.attrs["_trans_data_count"], made.graph.attrs["_trans_data_bytes"]
        [y] = InferSession(0, made).infer([x])
        [wanted] = ReferenceEvaluator(model).run(None, {"x": x})
        np.testing.assert_allclose(y, wanted, atol=2e-2 if precision == "fp16" else 1e-4)
    assert moved["fp16"] == (moved["origin"][0], moved["origin"][1] // 2)
