"""Every operator in half precision: it compiles, runs, and gives what it gives in fp32, rounded."""

from __future__ import annotations

import numpy as np
import pytest

from atc.compiler import compile_graph
from ge.graph import DataType, Graph, Tensor, TensorDesc
from ge.graph.types import data_type_of
from ge.ops import definition, infer_node, lookup, registered_types
from ge.ops.precision import ALL, AS_MADE, BLACK_LIST, CUBE, KEPT, WHITE_LIST, WIDE_RESULT, lowered_slots
from ge.options import CompileOptions, Environment
from ge.session import CompileSession
from simulator import InferSession
from tests.ops.test_definitions import ROWS, Row

# Sums of several rounded products; everything else rounds its result once.
LOOSE = {"CommonGRU", "CommonLSTM", "XCommonRNN", "DynamicRNN", "DynamicGRUV2"}
TOLERANCE, LOOSE_TOLERANCE = 1e-3, 1e-2
UNROUNDED = 1e-6
"""Sums of products of fp16 numbers, which fp32 holds exactly."""


def half(x: np.ndarray | None) -> np.ndarray | None:
    """Round fp32 values to what fp16 holds, so that only results are rounded when the operator is lowered."""
    return x.astype(np.float16).astype(np.float32) if x is not None and x.dtype == np.float32 else x


def model_of(name: str, row: Row) -> Graph:
    """Return a graph of one node: fp32 inputs are fed, others are constants."""
    graph = Graph("one")
    sources = []
    for slot, x in enumerate(row.inputs):
        if x is None:
            sources.append(None)
        elif x.dtype == np.float32:
            desc = TensorDesc(x.shape, data_type=data_type_of(x.dtype))
            sources.append(graph.add_node("Data", f"in{slot}", attrs={"index": slot}, output_descs=[desc]).output())
        else:
            sources.append(graph.add_const(f"in{slot}", Tensor.of(x)))
    node = graph.add_node(name, "node", sources, row.attrs, row.n_outputs)
    infer_node(node)
    graph.outputs = list(node.outputs())
    return graph


@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize("mode", ["fp16", "cube_fp16in_fp32out"])
def test_every_operator_runs_in_half_precision(name: str, mode: str) -> None:
    row = Row([half(x) for x in ROWS[name].inputs], ROWS[name].attrs, ROWS[name].n_outputs)
    graph = model_of(name, row)
    node = graph.find("node")
    assert node is not None
    types = [desc.data_type for desc in node.output_descs]
    expected = definition(node).evaluate(row.attrs, row.inputs, types)
    session = CompileSession(CompileOptions(precision_mode_v2=mode, soc_version="Ascend310P3"), Environment())
    runner = InferSession(0, compile_graph(graph, session))
    feeds = {f"in{slot}": x for slot, x in enumerate(row.inputs)}
    results = runner.infer([feeds[port.name] for port in runner.get_inputs()])
    tolerance = LOOSE_TOLERANCE if name in LOOSE else TOLERANCE
    if mode == "cube_fp16in_fp32out" and name in WIDE_RESULT:
        tolerance = UNROUNDED
    for found, wanted in zip(results, expected, strict=False):
        assert found.dtype == wanted.dtype, "results keep the type of the model"
        if wanted.dtype == np.float32:
            scale = float(np.nanmax(np.abs(wanted), initial=0))
            np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance * scale)
        else:
            np.testing.assert_array_equal(found, wanted)


def test_tables_name_operators_and_inputs_that_exist() -> None:
    listed = CUBE | WIDE_RESULT | WHITE_LIST | BLACK_LIST | set(KEPT) | set(AS_MADE)
    assert listed <= set(registered_types())
    assert not WHITE_LIST & BLACK_LIST
    for name, inputs in [*KEPT.items(), *AS_MADE.items()]:
        known = {port.name for port in lookup(name).signature.inputs}  # type: ignore[union-attr]
        assert inputs == {ALL} or inputs & known, name


@pytest.mark.parametrize(
    ("name", "lowered"),
    [("Conv2D", [0, 1, 2]), ("Resize", [0]), ("Range", []), ("XDFT", []), ("BatchNorm", [0]), ("Cast", []), ("If", [])],
)
def test_only_inputs_that_stand_it_are_lowered(name: str, lowered: list[int]) -> None:
    graph = Graph("one")
    count = len(lookup(name).signature.inputs)  # type: ignore[union-attr]
    inputs = [graph.add_node("Data", f"x{k}", output_descs=[TensorDesc([1])]).output() for k in range(count)]
    node = graph.add_node(name, "node", inputs)
    assert [slot for slot in lowered_slots(node) if slot < 3] == lowered


def test_operators_of_users_keep_the_types_of_the_model() -> None:
    graph = Graph("one")
    x = graph.add_node("Data", "x", output_descs=[TensorDesc([1], data_type=DataType.DT_FLOAT)])
    assert lowered_slots(graph.add_node("NobodyKnowsThis", "node", [x.output()])) == []
